//===- GemmBuilder.cpp - Common part of GEMM kernels -------------------===//

#include "GemmBuilder.h"

#include "ElementwiseEmitter.h"

#include "fp4/Dialect/Pipe/IR/PipeMatrices.h"
#include "fp4/Numerics/BlockScaledGemm.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// The arguments of the results that are derived from the elements.
static void takeDerived(const Gemm &gemm, ResultArguments &derived,
                        llvm::function_ref<Value()> next) {
  if (gemm.results.quantizer && gemm.results.quantizer->hasAmax)
    derived.quantizeAmax = next();
  if (gemm.results.quantizer && gemm.results.quantizer->rows) {
    derived.codes = next();
    derived.scales = next();
  }
  if (gemm.results.quantizer && gemm.results.quantizer->columns) {
    derived.columnCodes = next();
    derived.columnScales = next();
  }
  if (gemm.results.withAmax)
    derived.amax = next();
}

GemmBuilder::GemmBuilder(gpu::GPUFuncOp func, const Gemm &gemm, const KernelPlan &plan,
                         Location loc)
    : b(func, plan, loc), gemm(gemm) {
  unsigned number = 0;
  auto next = [&] { return func.getArgument(number++); };
  a = next();
  bb = next();
  if (gemm.hasScalesA())
    scalesA = next();
  if (!gemm.prepackedB() && !gemm.floatB())
    scalesB = next();
  if (gemm.results.alpha != Results::Alpha::None)
    alpha = next();
  if (gemm.problem.dual) {
    b2 = next();
    if (gemm.secondScales())
      scalesB2 = next();
    if (alpha)
      alpha2 = next();
  }
  for (size_t i = 0; i < gemm.results.inputs.size(); ++i)
    inputs.push_back(next());
  if (gemm.results.storesElements)
    derived.elements = result = next();
  Value pitch = gemm.pitchedResult() ? next() : Value();
  resultBuffer = gemm.storesEnds() ? next() : result;
  takeDerived(gemm, derived, next);
  takeSizes(pitch, next);
  if (gemm.hasTable())
    table = next();
  if (gemm.work.searchedOffsets)
    report = next();
  if (gemm.work.hasWorkspace()) {
    workspace = next();
    counters = next();
  }
}

/// `global`, whose sizes are those of `type` and numbers; a null pitch is that of dense rows.
Value GemmBuilder::sized(Value global, Type type, Value sizeOfRows, Value sizeOfColumns,
                         Value pitch) {
  auto matrix = cast<GlobalType>(type);
  if (!pitch) {
    bool isTiled = matrix.isScales(), isPacked = isa<Float4E2M1FNType>(matrix.getElementType());
    int64_t bytes = isTiled    ? kScaleBlockBytes
                    : isPacked ? kRowUnitBytes
                               : matrix.getElementType().getIntOrFloatBitWidth() / 8;
    Value count = sizeOfColumns ? sizeOfColumns : b.constant(matrix.getShape()[1]);
    if (isTiled || isPacked)
      count = b.quotientUp(count, isTiled ? kScaleBlockColumns : 2 * kRowUnitBytes);
    Value wide = arith::ExtUIOp::create(b, b.getI64Type(), count);
    pitch = b.mul(wide, arith::ConstantIntOp::create(b, bytes, 64));
  }
  return MatrixOp::create(b, type, global, sizeOfRows,
                          matrix.hasDynamicColumns() ? sizeOfColumns : Value(), pitch);
}

/// Buffers whose sizes are numbers.
void GemmBuilder::takeSizes(Value pitch, llvm::function_ref<Value()> next) {
  if (gemm.problem.dynamicRows())
    rows = next();
  if (gemm.problem.dynamicWidth())
    columns = next();
  if (gemm.problem.dynamicDepth())
    depth = next();
  if (pitch)
    derived.elements = result = resultBuffer =
        sized(result, gemm.resultBuffer(), /*rows=*/{}, columns, pitch);
  auto take = [&](Value &global, Type type, Value sizeOfRows, Value sizeOfColumns) {
    auto argument = dyn_cast<GlobalType>(Gemm::argumentOf(type, bool(sizeOfRows)));
    if (global && argument && argument.hasDynamicColumns())
      global = sized(global, type, sizeOfRows, sizeOfColumns, /*pitch=*/{});
  };
  if (!columns && !depth)
    return;
  Value blocks = depth ? b.quotientUp(depth, gemm.problem.block) : Value();
  take(scalesA, gemm.scalesA(), /*sizeOfRows=*/{}, blocks);
  Value ofB =
      columns && gemm.problem.hasF32Scales() ? b.quotientUp(columns, gemm.problem.block) : columns;
  take(scalesB, gemm.scalesB(), ofB, blocks);
  take(scalesB2, gemm.scalesB(), ofB, blocks);
  if (alpha)
    take(alpha, gemm.alphas(), /*sizeOfRows=*/{}, columns);
  if (alpha2)
    take(alpha2, gemm.alphas(), /*sizeOfRows=*/{}, columns);
  for (auto [input, given] : llvm::zip_equal(inputs, gemm.results.inputs))
    take(input, given.type, /*sizeOfRows=*/{}, columns);
  derived.columns = columns;
  if (columns && gemm.results.quantizer)
    takeQuantized(take);
}

/// Codes and scales of rows, and those of columns, which are rows of their buffers.
void GemmBuilder::takeQuantized(TakeSized take) {
  SmallVector<GlobalType> types = gemm.derivedTypes();
  auto next = types.begin() + gemm.results.quantizer->hasAmax;
  if (gemm.results.quantizer->rows) {
    take(derived.codes, *next++, /*sizeOfRows=*/{}, columns);
    take(derived.scales, *next++, /*sizeOfRows=*/{},
         b.quotientUp(columns, gemm.results.quantizer->block()));
  }
  if (gemm.results.quantizer->columns) {
    take(derived.columnCodes, *next++, columns, {});
    take(derived.columnScales, *next++, columns, {});
  }
}

Value GemmBuilder::countWorksN() {
  return columns ? b.quotientUp(columns, gemm.tiling.workN()) : b.constant(gemm.worksN());
}

Value GemmBuilder::existingOfK(Value done, int64_t count, int64_t unit) {
  if (gemm.problem.depthUnit % (count * unit) == 0) // all tiles are whole
    return {};
  if (depth)
    return b.min(b.sub(b.quotientUp(depth, unit), done), count);
  return b.existing(done, count, llvm::divideCeil(gemm.problem.depth, unit));
}

Value GemmBuilder::countTilesK() {
  return depth ? b.quotientUp(depth, gemm.tiling.tileK) : b.constant(gemm.tilesK());
}

Value GemmBuilder::existingRows(Value map, Value row) {
  auto type = cast<TensorMapType>(map.getType());
  if (!type.getResidue())
    return {};
  Value &found = existingOfBoxes[{row, type.getRows()}];
  if (found)
    return found;
  OpBuilder::InsertionGuard restore(b);
  b.setInsertionPointAfterValue(row);
  Value all = rows ? rows : b.constant(gemm.problem.rows);
  bool isOnlyBox =
      !rows && gemm.problem.rows <= type.getRows() &&
      type.getRows() == (gemm.route.swapsOperands() ? gemm.tiling.tileN : gemm.tiling.tileM);
  return found = ExistingRowsOp::create(b, b.getI32Type(), all, isOnlyBox ? b.constant(0) : row,
                                        type.getRows());
}

Value GemmBuilder::entry(Value from, Value index, int64_t column) {
  auto type = cast<GlobalType>(from.getType());
  int64_t columns = type.getRank() == 2 ? type.getShape()[1] : 1;
  auto row = VectorType::get({columns}, type.getElementType());
  return vector::ExtractOp::create(b, LoadEntryOp::create(b, row, from, index), column);
}

/// Number `number` of `words` of the offsets, of 64 bits each, at most the rows that there are.
Value GemmBuilder::rowAt(Value words, int64_t number) {
  Value low = vector::ExtractOp::create(b, words, 2 * number);
  Value high = vector::ExtractOp::create(b, words, 2 * number + 1);
  Value zero = b.constant(0), most = b.constant(gemm.m());
  auto compare = [&](arith::CmpIPredicate holds) -> Value { return b.compare(holds, high, zero); };
  auto choose = [&](arith::CmpIPredicate holds, Value then, Value otherwise) -> Value {
    return arith::SelectOp::create(b, compare(holds), then, otherwise);
  };
  Value row = choose(arith::CmpIPredicate::eq, arith::MinUIOp::create(b, low, most), most);
  return choose(arith::CmpIPredicate::slt, zero, row);
}

/// The rows of `group`, which begin at row `before` or later: no two groups have one in common.
GemmBuilder::Rows GemmBuilder::rowsOfGroup(Value group, Value before) {
  auto type = VectorType::get({2 * gemm.work.searchedOffsets}, b.getI32Type());
  bool areRanges = gemm.work.searchedOffsets == 2;
  Value words = LoadEntryOp::create(b, type, table, group);
  Value next = areRanges ? words : LoadEntryOp::create(b, type, table, b.add(group, b.constant(1)));
  Value begin = arith::MaxUIOp::create(b, before, rowAt(words, 0));
  Value end = rowAt(next, areRanges ? 1 : 0);
  return {begin, arith::MaxUIOp::create(b, begin, end)};
}

/// The row of the table behind all places, which has the number of tiles.
Value GemmBuilder::lastPlace() {
  if (!rows)
    return b.constant(gemm.work.tablePlaces);
  Value whole = b.div(rows, gemm.workRows());
  return b.add(whole, b.constant(gemm.problem.morePlaces()));
}

/// Searched, all groups are read here, once for all tiles.
Value GemmBuilder::countTilesOfGroups() {
  if (gemm.problem.knowsGroups) // a CTA divides by it to find its tiles
    return b.constant(gemm.work.tablePlaces);
  if (!gemm.work.searchedOffsets)
    return entry(table, lastPlace(), 0);
  Value end = b.constant(0), tiles = b.constant(0);
  for (int64_t group = 0; group < gemm.problem.groups; ++group) {
    Rows rows = rowsOfGroup(b.constant(group), end);
    groups.push_back({rows, tiles});
    end = rows.end;
    Value count = b.sub(rows.end, rows.begin);
    tiles =
        b.add(tiles, arith::DivUIOp::create(b, b.add(count, b.constant(gemm.tiling.workM() - 1)),
                                            b.constant(gemm.tiling.workM())));
  }
  return tiles;
}

/// Searched, it is of the last group whose first tile comes no later.
GemmBuilder::TileOfGroup GemmBuilder::tileOfGroup(Value m) {
  if (!gemm.work.searchedOffsets)
    return {entry(table, m, 0), entry(table, m, 1), entry(table, m, 2)};
  TileOfGroup tile;
  for (auto [group, known] : llvm::enumerate(groups)) {
    Value number = b.sub(m, known.tilesBefore);
    TileOfGroup here = {b.add(known.rows.begin, b.mul(number, gemm.tiling.workM())), known.rows.end,
                        b.constant(int64_t(group))};
    if (group == 0) {
      tile = here;
      continue;
    }
    Value isHere = b.compare(arith::CmpIPredicate::uge, m, known.tilesBefore);
    auto choose = [&](Value then, Value otherwise) -> Value {
      return arith::SelectOp::create(b, isHere, then, otherwise);
    };
    tile = {choose(here.row, tile.row), choose(here.rowLimit, tile.rowLimit),
            choose(here.group, tile.group)};
  }
  return tile;
}

Value GemmBuilder::alphaOfGroup(Value alphas, Value group) {
  return alphas && gemm.results.alpha == Results::Alpha::Groups ? entry(alphas, group, 0) : Value();
}

void GemmBuilder::checkGroups() { CheckGroupsOp::create(b, table, gemm.m(), report); }

void GemmBuilder::clearSearched() {
  Value first = b.constant(0);
  auto groups = scf::ForOp::create(b, first, b.constant(gemm.problem.groups), b.constant(1), first);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(groups.getBody());
    Value before = groups.getRegionIterArgs().front();
    Rows rows = rowsOfGroup(groups.getInductionVar(), before);
    ClearRowsOp::create(b, resultBuffer, before, rows.begin);
    scf::YieldOp::create(b, rows.end);
  }
  ClearRowsOp::create(b, resultBuffer, groups.getResult(0), b.constant(gemm.m()));
}

void GemmBuilder::clearRows() {
  if (gemm.work.searchedOffsets)
    return clearSearched();
  b.loop(b.constant(0), b.constant(gemm.gaps()), b.constant(1), [&](Value gap) {
    Value place = b.add(gap, b.constant(gemm.work.gapPlaces()));
    ClearRowsOp::create(b, resultBuffer, entry(table, place, 0), entry(table, place, 1));
  });
}

GemmBuilder::ScaleBlocks GemmBuilder::scaleBlocksOf(Value k) {
  int64_t ofTile = gemm.tiling.tileK / gemm.problem.block / kScaleBlockColumns;
  Value first = b.mul(k, ofTile);
  return {first, existingOfK(first, ofTile, gemm.problem.block * kScaleBlockColumns)};
}

Value GemmBuilder::rowBlockOf(Value row) { return b.div(row, kScaleBlockRows); }

GemmBuilder::Range GemmBuilder::rangeOf(Value part) {
  constexpr auto kSlice = int64_t(numerics::splitSlice);
  int64_t slices = llvm::divideCeil(gemm.problem.depth, kSlice), tiles = kSlice / gemm.tiling.tileK;
  auto bound = [&](Value number) -> Value {
    Value slice = b.div(b.mul(number, slices), gemm.work.splits);
    return tiles == 1 ? slice : b.min(b.mul(slice, tiles), gemm.tilesK());
  };
  return {bound(part), bound(b.add(part, b.constant(1)))};
}

Value GemmBuilder::loadAlphas(int64_t count, Value alphas, Numbers numbers) {
  auto type = VectorType::get({count}, b.getF32Type());
  return numbers(type, alphas, gemm.results.alpha == Results::Alpha::Rows ? rows : Value(),
                 /*ofGroup=*/false);
}

Value GemmBuilder::timesPower(Value sums, int exponent) {
  if (!exponent)
    return sums;
  auto power = b.getF32FloatAttr(float(std::ldexp(1.0, exponent))).getValue();
  auto powers = DenseElementsAttr::get(cast<VectorType>(sums.getType()), power);
  return arith::MulFOp::create(b, sums, arith::ConstantOp::create(b, powers));
}

/// A step on sums; `factor` is their alpha.
Value GemmBuilder::emitStep(numerics::EpilogueOp step, Value sums, Value factor) {
  switch (step) {
  case numerics::EpilogueOp::Scale:
    return arith::MulFOp::create(b, sums, factor);
  case numerics::EpilogueOp::Relu:
    return arith::MaximumFOp::create(b, sums,
                                     arith::ConstantOp::create(b, b.getZeroAttr(sums.getType())));
  case numerics::EpilogueOp::Round:
    return narrowTo(b, sums, gemm.results.type);
  }
  llvm_unreachable("every step has its operation");
}

/// Loads the numbers that the epilogue region reads of an input for `count` sums, in fp32.
Value GemmBuilder::loadInput(Value input, bool isOfGroups, int64_t count, Numbers numbers) {
  auto global = cast<GlobalType>(input.getType());
  auto type = VectorType::get({count}, global.getElementType());
  if (global.getRank() == 0) {
    Value scalar = LoadScalarOp::create(b, global.getElementType(), input);
    return widenToF32(b, vector::BroadcastOp::create(b, type, scalar));
  }
  Value limit = ShapedType::isDynamic(global.getShape()[0]) ? rows : Value();
  return widenToF32(b, numbers(type, input, limit, isOfGroups));
}

Value GemmBuilder::emitBody(ArrayRef<Value> sums, Numbers numbers) {
  int64_t count = cast<VectorType>(sums.front().getType()).getNumElements();
  SmallVector<Value> arguments(sums);
  for (auto [input, given] : llvm::zip_equal(inputs, gemm.results.inputs))
    arguments.push_back(loadInput(input, given.isOfGroups, count, numbers));
  bool hasParts = count > bodyWidth && llvm::isPowerOf2_64(count);
  int64_t width = hasParts ? bodyWidth : count;
  SmallVector<Value> elements;
  for (int64_t first = 0; first < count; first += width)
    elements.push_back(emitBodyOf(arguments, first, width));
  return concatenate(b, elements);
}

/// The elements of `width` sums from `first` on.
Value GemmBuilder::emitBodyOf(ArrayRef<Value> arguments, int64_t first, int64_t width) {
  auto parts = llvm::map_to_vector(arguments, [&](Value argument) -> Value {
    if (cast<VectorType>(argument.getType()).getNumElements() == width)
      return argument;
    return vector::ExtractStridedSliceOp::create(b, argument, first, width, int64_t(1));
  });
  Value element = emitElementwise(b, gemm.results.region->front(), parts).front();
  return narrowTo(b, element, gemm.results.type);
}

Value GemmBuilder::convertSums(ArrayRef<Sums> products, Numbers numbers) {
  SmallVector<Value> elements;
  for (auto [values, factor] : products) {
    Value element = values;
    for (numerics::EpilogueOp step :
         numerics::epilogueSteps(gemm.results.alpha != Results::Alpha::None, gemm.results.steps))
      if (!gemm.results.region ||
          step != numerics::EpilogueOp::Round) // an epilogue region rounds by itself
        element = emitStep(step, element, factor);
    elements.push_back(element);
  }
  return gemm.results.region ? emitBody(elements, numbers) : elements.front();
}
