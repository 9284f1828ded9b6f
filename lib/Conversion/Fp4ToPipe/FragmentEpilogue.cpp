//===- FragmentEpilogue.cpp - Results of GEMMs with sums in registers -----===//

#include "FragmentEpilogue.h"

#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

using Sums = SumConversion::Sums;

/// Beside many sums and the values that an epilogue region reads, a thread has registers for what
/// it computes of few.
static constexpr int64_t kManySums = 128, kRegionWidth = 4;

FragmentEpilogue::FragmentEpilogue(GemmKernel &kernel, FragmentSums &fragments)
    : b(kernel.b), gemm(kernel.gemm), args(kernel.args), fragments(fragments), conversion(kernel) {
  int64_t sums = gemm.tiling.tileM * gemm.tiling.tileN * (gemm.problem.dual ? 2 : 1);
  bool isConverted = gemm.route().b == route::Operand::Shared && !gemm.transposes();
  if (isConverted && sums / fragments.threads >= kManySums && !gemm.results.inputs.empty())
    conversion.regionWidth = kRegionWidth;
}

void FragmentEpilogue::begin() {
  bool reducesLate = gemm.work.hasWorkspace() && !gemm.work.stream; // and reads sums beside alpha
  if (gemm.results.alpha == Results::Alpha::One && !reducesLate && !gemm.problem.dual)
    alphaOfAll = LoadEntryOp::create(b, b.getF32Type(), args.alpha);
  if (gemm.results.quantizer && !gemm.problem.dual)
    results.emplace(b, gemm, args.derived);
}

/// The first element of part `part` of a tile that a thread's fragment has.
FragmentEpilogue::Place FragmentEpilogue::placeOf(const Tile &tile, size_t part) {
  auto behindFirst = [&](Value first, int64_t unit) {
    return part ? b.add(first, b.constant(int64_t(part) * unit)) : first;
  };
  if (fragments.kind == FragmentKind::MmaSync)
    return {behindFirst(firstOfWarp.row, FragmentSums::kWarpRows), firstOfWarp.column};
  if (tile.rows.size() > 1)
    return {tile.rows[part], tile.column};
  if (gemm.transposes())
    return {tile.row, behindFirst(tile.column, gemm.partColumns())};
  return {behindFirst(tile.row, gemm.partRows()), tile.column};
}

FragmentEpilogue::Place FragmentEpilogue::behind(Place place, int64_t first) {
  Value &moved = gemm.transposes() ? place.row : place.column;
  moved = b.add(moved, b.constant(first));
  return place;
}

SmallVector<Value> FragmentEpilogue::alphasOfPart(Place place) {
  SmallVector<Value> alphas;
  fragments.forParts([&](RankedTensorType type, int64_t first) {
    Place at = behind(place, first);
    alphas.push_back(conversion.loadAlphas(type, args.alpha,
                                           {at.row, at.column, /*group=*/{}, gemm.transposes()}));
  });
  return alphas;
}

FragmentEpilogue::Factors FragmentEpilogue::broadcastAlphas(RankedTensorType type, OfGroup group) {
  auto all = [&](Value scalar) -> Value { return scalar ? b.splat(type, scalar) : Value(); };
  if (gemm.results.alpha != Results::Alpha::One)
    return {all(group.alpha), all(group.alpha2)};
  auto load = [&](Value from) -> Value {
    return from ? LoadEntryOp::create(b, b.getF32Type(), from).getResult() : Value();
  };
  return {all(alphaOfAll ? alphaOfAll : load(args.alpha)), all(load(args.alpha2))};
}

Value FragmentEpilogue::restored(Value sums, Restoring restoring) {
  sums = conversion.timesPower(sums, restoring.exponent);
  if (!restoring.powers)
    return sums;
  auto type = cast<RankedTensorType>(sums.getType());
  SmallVector<int64_t> order =
      llvm::map_to_vector(llvm::seq<int64_t>(vectorOfThread(type).getNumElements()),
                          [](int64_t i) { return i % 4; }); // two of each of two rows
  Value ofRows = b.toVector(restoring.powers);
  Value powers = vector::ShuffleOp::create(b, ofRows, ofRows, order);
  return arith::MulFOp::create(b, sums, b.fromVector(type, powers));
}

void FragmentEpilogue::storePart(const Tile &tile, size_t part, FragmentSums::From sums,
                                 FragmentSums::From second, FragmentSums::Guard isStored) {
  using Alpha = Results::Alpha;
  const OfGroup &group = tile.group;
  Place place = placeOf(tile, part);
  auto restoringOf = [&](size_t number) -> Restoring {
    return {gemm.restoringExponent(), tile.powers.empty() ? Value() : tile.powers[number]};
  };
  Alpha ofLines = gemm.transposes() ? Alpha::Columns : Alpha::Rows; // alike in every part
  SmallVector<Value> ahead;
  if (!isStored && gemm.results.alpha == Alpha::Rows && loadsAlphasAhead())
    ahead = alphasOfPart(place);
  Factors factors;
  fragments.forParts([&](RankedTensorType type, int64_t first) {
    OpBuilder::InsertionGuard restore(b);
    if (isStored) {
      auto branch = scf::IfOp::create(b, isStored(first), /*withElseRegion=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    // Parts that have the factors of their rows in common take those of the first.
    bool isOwn = isStored || first == 0 || type.getDimSize(1) < fragments.partColumns;
    Place at = behind(place, first);
    SumConversion::Place ofSums{at.row, at.column, group.group, gemm.transposes()};
    auto load = [&](Value x) { return x ? conversion.loadAlphas(type, x, ofSums) : Value(); };
    if (gemm.results.alpha == Alpha::One || group.alpha)
      factors = broadcastAlphas(type, group);
    else if (!ahead.empty())
      factors.first = ahead[size_t(first / fragments.partColumns)];
    else if (args.alpha && (gemm.results.alpha != ofLines || isOwn))
      factors = {load(args.alpha), load(args.alpha2)};
    SmallVector<Sums> products = {{restored(sums(type, first), restoringOf(part)), factors.first}};
    if (second) {
      size_t behind = part + tile.powers.size() / 2;
      products.push_back({restored(second(type, first), restoringOf(behind)), factors.second});
    }
    leave(conversion.convertSums(products, ofSums), at, group);
  });
  storeStaged(group);
}

void FragmentEpilogue::finish(ValueRange accs, const Tile &tile) {
  bool areOfWarp = fragments.kind == FragmentKind::MmaSync;
  if (areOfWarp) {
    Type number = b.getI32Type();
    auto place =
        PlaceOp::create(b, number, number, accs.front(), b.getI64IntegerAttr(gemm.tiling.tileM),
                        b.getI64IntegerAttr(gemm.tiling.tileN));
    ofWarp = {place.getRow(), place.getColumn()};
    firstOfWarp = {b.add(tile.row, ofWarp.row), b.add(tile.column, ofWarp.column)};
  }
  if (gemm.sharesRowsOfThreads())
    rowOfThread = PlaceOp::create(b, accs.front()).getRow();
  fragments.complete(accs, tile,
                     [&](size_t part, FragmentSums::From sums, FragmentSums::From second,
                         FragmentSums::Guard isStored) {
                       storePart(tile, part, sums, second, isStored);
                       if (!areOfWarp)
                         quantizeElements(placeOf(tile, part), tile.group);
                     });
  if (areOfWarp)
    quantizeElements({tile.row, tile.column}, tile.group);
  foldAmax();
}

/// Elements of some columns of a fragment, from `place` of the result on.
void FragmentEpilogue::leave(Value elements, Place place, OfGroup group) {
  if (gemm.results.storesElements)
    store(elements, place, group);
  if (!gemm.storesAtOnce())
    storeStaged(group);
  if (gemm.results.derives())
    derive(elements, place, group);
}

void FragmentEpilogue::store(Value elements, Place place, OfGroup group) {
  if (gemm.results.storesTiles)
    return stageTile(elements, place);
  constexpr int64_t fewestStaged = 8; // columns that stmatrix takes
  int64_t count = vectorOfThread(elements.getType()).getNumElements();
  // All staged stores have one size; the columns behind the last whole part are stored directly.
  bool isStaged = gemm.stagesStores() && !fragments.ofLast && count % fewestStaged == 0 &&
                  2 * count == fragments.partColumns;
  StoreOp::create(b, elements, args.result, place.row, place.column,
                  group.rowLimit ? group.rowLimit : args.rows, gemm.transposes(), isStaged);
}

void FragmentEpilogue::stageTile(Value elements, Place place) {
  auto box = cast<TensorMapType>(args.result.getType());
  auto type = SharedType::get(box.getShape(), box.getElementType(), box.getLayout());
  Value tile = StageOp::create(b, type, elements, Value()).getResult();
  staged.push_back({tile, elements, place});
}

/// Stores the staged parts. Rows behind a group belong to the next one, and the box of the last
/// tile of a group has some of them.
void FragmentEpilogue::storeStaged(OfGroup group) {
  SmallVector<StagedPart> parts = std::exchange(staged, {});
  auto storeWhole = [&] {
    for (const StagedPart &part : parts)
      StoreOp::create(b, part.tile, args.result, part.place.row, part.place.column,
                      /*rows=*/Value());
  };
  if (parts.empty() || !gemm.storesEnds())
    return storeWhole();
  Value end = b.add(parts.front().place.row, b.constant(gemm.storedRows()));
  b.when(b.compare(arith::CmpIPredicate::sle, end, group.rowLimit), storeWhole);
  b.when(b.compare(arith::CmpIPredicate::sgt, end, group.rowLimit), [&] {
    for (const StagedPart &part : parts)
      StoreOp::create(b, part.elements, args.resultBuffer, part.place.row, part.place.column,
                      group.rowLimit, gemm.transposes());
  });
}
