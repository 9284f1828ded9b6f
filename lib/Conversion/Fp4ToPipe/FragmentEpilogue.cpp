//===- FragmentEpilogue.cpp - Results of GEMMs with sums in registers -----===//

#include "FragmentEpilogue.h"

#include "fp4/Dialect/Pipe/IR/PipeWarps.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

using Sums = SumConversion::Sums;

void FragmentEpilogue::begin() {
  bool reducesLate = gemm.work.hasWorkspace() && !gemm.work.stream; // and reads sums beside alpha
  if (gemm.results.alpha == Results::Alpha::One && !reducesLate && !gemm.problem.dual)
    alphaOfAll = LoadScalarOp::create(b, b.getF32Type(), args.alpha);
  if (gemm.results.quantizer && !gemm.problem.dual)
    results.emplace(b, gemm, args.derived);
}

FragmentEpilogue::Place FragmentEpilogue::placeOfPart(Value row, Value column, int64_t first) {
  bool isTransposed = gemm.transposes();
  Value place = b.add(isTransposed ? row : column, b.constant(first));
  return isTransposed ? Place{place, column} : Place{row, place};
}

SmallVector<Value> FragmentEpilogue::alphasOfPlaces(Value row, Value column) {
  SmallVector<Value> alphas;
  fragments.forParts([&](VectorType type, int64_t first) {
    auto [atRow, atColumn] = placeOfPart(row, column, first);
    alphas.push_back(conversion.loadAlphas(
        type.getNumElements(), args.alpha,
        [&](VectorType ofType, Value global, Value limit, bool) -> Value {
          return FragmentFactorsOp::create(b, ofType, global, atRow, atColumn, limit,
                                           gemm.transposes(), /*one_row=*/false);
        }));
  });
  return alphas;
}

FragmentEpilogue::Factors FragmentEpilogue::broadcastAlphas(VectorType type, OfGroup group) {
  auto all = [&](Value scalar) -> Value {
    return scalar ? vector::BroadcastOp::create(b, type, scalar).getResult() : Value();
  };
  if (gemm.results.alpha != Results::Alpha::One)
    return {all(group.alpha), all(group.alpha2)};
  auto load = [&](Value from) -> Value {
    return from ? LoadScalarOp::create(b, b.getF32Type(), from).getResult() : Value();
  };
  return {all(alphaOfAll ? alphaOfAll : load(args.alpha)), all(load(args.alpha2))};
}

Value FragmentEpilogue::restored(Value sums, Restoring restoring) {
  sums = conversion.timesPower(sums, restoring.exponent);
  if (!restoring.powers)
    return sums;
  int64_t count = cast<VectorType>(sums.getType()).getNumElements();
  SmallVector<int64_t> order = llvm::map_to_vector(
      llvm::seq<int64_t>(count), [](int64_t i) { return i % 4; }); // two of each of two rows
  Value powers = vector::ShuffleOp::create(b, restoring.powers, restoring.powers, order);
  return arith::MulFOp::create(b, sums, powers);
}

void FragmentEpilogue::storeSums(FragmentSums::From sums, Value row, Value column,
                                 Restoring restoring, OfGroup group, PartGuard isStored,
                                 FragmentSums::From second) {
  using Alpha = Results::Alpha;
  Factors factors;
  bool isScalar = gemm.results.alpha == Alpha::One || group.alpha;
  Alpha ofLines = gemm.transposes() ? Alpha::Columns : Alpha::Rows; // alike in every part
  SmallVector<Value> ahead;
  if (!isStored && gemm.results.alpha == Alpha::Rows && loadsAlphasAhead())
    ahead = alphasOfPlaces(row, column);
  fragments.forParts([&](VectorType type, int64_t first) {
    OpBuilder::InsertionGuard restore(b);
    // Parts that have the factors of their rows in common take those of the first.
    bool isOwn = first == 0 || 2 * type.getNumElements() < fragments.partColumns;
    if (isStored) {
      auto branch = scf::IfOp::create(b, isStored(first), /*withElseRegion=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
      isOwn = true;
    }
    auto [atRow, atColumn] = placeOfPart(row, column, first);
    auto numbers = [&](VectorType ofType, Value global, Value limit, bool ofGroup) -> Value {
      return FragmentFactorsOp::create(b, ofType, global, ofGroup ? group.group : atRow, atColumn,
                                       limit, gemm.transposes(), ofGroup);
    };
    auto load = [&](Value from) {
      return from ? conversion.loadAlphas(type.getNumElements(), from, numbers) : Value();
    };
    if (isScalar)
      factors = broadcastAlphas(type, group);
    else if (!ahead.empty())
      factors.first = ahead[size_t(first / fragments.partColumns)];
    else if (args.alpha && (gemm.results.alpha != ofLines || isOwn))
      factors = {load(args.alpha), load(args.alpha2)};
    SmallVector<Sums> products = {{restored(sums(type, first), restoring), factors.first}};
    if (second)
      products.push_back({restored(second(type, first), restoring), factors.second});
    leave(conversion.convertSums(products, numbers), atRow, atColumn, group);
  });
  storeStaged(group);
}

/// Elements of some columns of a fragment, from (row, column) of the result on.
void FragmentEpilogue::leave(Value elements, Value row, Value column, OfGroup group) {
  if (gemm.results.storesElements)
    store(elements, row, column, group);
  if (!gemm.storesAtOnce())
    storeStaged(group);
  if (gemm.results.derives())
    derive(elements, row, column, group);
}

void FragmentEpilogue::store(Value elements, Value row, Value column, OfGroup group) {
  if (gemm.results.storesTiles)
    return stageTile(elements, row, column);
  constexpr int64_t fewestStaged = 8; // columns that stmatrix takes
  int64_t count = cast<VectorType>(elements.getType()).getNumElements();
  // All staged stores have one size; the columns behind the last whole part are stored directly.
  bool isStaged =
      gemm.stagesStores() && count % fewestStaged == 0 && 2 * count == fragments.partColumns;
  StoreFragmentOp::create(b, elements, args.result, row, column,
                          group.rowLimit ? group.rowLimit : args.rows, gemm.transposes(), isStaged,
                          IntegerAttr());
}

void FragmentEpilogue::stageTile(Value elements, Value row, Value column) {
  auto box = cast<TensorMapType>(args.result.getType());
  auto type = SharedType::get(box.getShape(), box.getElementType(), box.getLayout());
  Value tile = StageFragmentOp::create(b, type, elements, Value()).getResult();
  staged.push_back({tile, elements, row, column});
}

/// Stores the staged parts. Rows behind a group belong to the next one, and the box of the last
/// tile of a group has some of them.
void FragmentEpilogue::storeStaged(OfGroup group) {
  SmallVector<StagedPart> parts = std::exchange(staged, {});
  auto storeWhole = [&] {
    for (const StagedPart &part : parts)
      StoreTileOp::create(b, part.tile, args.result, part.row, part.column,
                          /*halves=*/IntegerAttr());
  };
  if (parts.empty() || !gemm.storesEnds())
    return storeWhole();
  Value end = b.add(parts.front().row, b.constant(gemm.storedRows()));
  b.when(b.compare(arith::CmpIPredicate::sle, end, group.rowLimit), storeWhole);
  b.when(b.compare(arith::CmpIPredicate::sgt, end, group.rowLimit), [&] {
    for (const StagedPart &part : parts)
      StoreFragmentOp::create(b, part.elements, args.resultBuffer, part.row, part.column,
                              group.rowLimit, gemm.transposes(), /*staged=*/false, IntegerAttr());
  });
}

void FragmentEpilogue::storeSums(Value acc, Value row, Value column, Restoring restoring,
                                 OfGroup group, PartGuard isStored, Value second) {
  auto read = [&](Value from) {
    return [this, from](VectorType type, int64_t first) -> Value {
      return ReadFragmentOp::create(b, type, from, b.getI64IntegerAttr(first));
    };
  };
  auto sums = read(acc), ofSecond = read(second);
  storeSums(sums, row, column, restoring, group, isStored,
            second ? FragmentSums::From(ofSecond) : FragmentSums::From());
}
