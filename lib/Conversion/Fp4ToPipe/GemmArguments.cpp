//===- GemmArguments.cpp - Arguments of a GEMM's kernel ----------------===//

#include "GemmArguments.h"

#include "DynamicSizes.h"
#include "GroupTable.h"
#include "StreamTable.h"

#include "fp4/Dialect/Pipe/IR/PipeMatrices.h"
#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Dialect/Utils/StridedArguments.h"
#include "fp4/Numerics/UE8M0.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace fp4;

/// A tile of scales that are one, which is loaded with the program.
static Value scalesOfOne(OpBuilder &b, Location loc, const Gemm &gemm) {
  MemRefType type = pipe::getBufferType(gemm.scalesOfOne());
  SmallVector<uint8_t> bytes(size_t(type.getNumElements()), numerics::ue8m0One);
  auto all = RankedTensorType::get({type.getNumElements()}, b.getI8Type());
  auto value = DenseElementsAttr::get(all, ArrayRef<uint8_t>(bytes));
  return pipe::DeviceConstantOp::create(b, loc, type, value);
}

/// A map of a matrix of `columns`, or of as many as `given` says.
static Value mapOf(OpBuilder &b, Location loc, Type type, Value buffer, int64_t columns,
                   Value given) {
  if (given)
    return pipe::MakeMatrixMapOp::create(b, loc, type, buffer, given);
  return pipe::MakeTensorMapOp::create(b, loc, type, buffer, b.getI64IntegerAttr(columns));
}

/// A view or a map of scales, of absent ones that of a tile of ones.
static Value scaleArgument(OpBuilder &b, Location loc, const Gemm &gemm, Type type, Value tiles,
                           int64_t rows, Value givenDepth) {
  if (!tiles)
    givenDepth = {};
  int64_t depth = tiles ? gemm.problem.depth : gemm.tiling.tileK;
  Value buffer = !tiles                ? scalesOfOne(b, loc, gemm)
                 : gemm.problem.groups ? scalesOfGroups(b, loc, gemm, tiles, rows)
                                       : tiles;
  if (!isa<pipe::TensorMapType>(type))
    return viewOf(b, loc, type, buffer);
  Value blocks;
  if (givenDepth)
    blocks = arith::CeilDivUIOp::create(b, loc, givenDepth,
                                        arith::ConstantIndexOp::create(b, loc, gemm.problem.block));
  return mapOf(b, loc, type, buffer, depth / gemm.problem.block, blocks);
}

/// A view of prepacked weights.
static Value packedArgument(OpBuilder &b, Location loc, const Gemm &gemm, Value buffer) {
  pipe::GlobalType type = gemm.packedTiles();
  return viewOf(b, loc, type,
                pipe::BufferViewOp::create(b, loc, pipe::getBufferType(type), buffer, /*offset=*/0,
                                           /*rows=*/Value()));
}

/// The operands with the scales of those that have some, and their alphas.
static SmallVector<Value> operandArguments(OpBuilder &b, Location loc, const Gemm &gemm,
                                           BlockScaledMatmulOp::Adaptor adaptor, Value powers,
                                           Value depth) {
  auto map = [&](Type type, Value buffer) -> Value {
    return mapOf(b, loc, type, buffer, gemm.problem.depth, depth);
  };
  auto view = [&](Type type, Value buffer) -> Value { return viewOf(b, loc, type, buffer); };
  auto scales = [&](Type type, Value tiles, int64_t rows) {
    return scaleArgument(b, loc, gemm, type, tiles, rows, depth);
  };
  std::pair a(adaptor.getLhs(), adaptor.getLhsScales());
  std::pair second(adaptor.getRhs(), powers ? powers : adaptor.getRhsScales());
  if (gemm.swapsOperands())
    std::swap(a, second);
  auto tiles = [&](Value buffer) { return packedArgument(b, loc, gemm, buffer); };
  SmallVector<Value> values = {gemm.prepackedA() ? tiles(a.first) : map(gemm.mapA(), a.first),
                               gemm.prepackedB() ? tiles(second.first)
                                                 : map(gemm.mapB(), second.first)};
  if (gemm.hasScalesA())
    values.push_back(scales(gemm.argumentOf(gemm.scalesA()), a.second, gemm.rowsOfBlocksA()));
  if (!gemm.prepackedB() && !gemm.floatB())
    values.push_back(scales(gemm.argumentOf(gemm.scalesB(), /*hasRows=*/!gemm.swapsOperands()),
                            second.second, gemm.scaleRowsB()));
  if (gemm.results.alpha != Results::Alpha::None)
    values.push_back(view(gemm.argumentOf(gemm.alphas()), adaptor.getAlpha()));
  if (!gemm.problem.dual)
    return values;
  Type ofSecond = gemm.secondScales();
  values.push_back(ofSecond ? map(gemm.secondWeights(), adaptor.getRhs2())
                            : tiles(adaptor.getRhs2()));
  if (ofSecond)
    values.push_back(scales(gemm.argumentOf(ofSecond, /*hasRows=*/!gemm.swapsOperands()),
                            adaptor.getRhs2Scales(), gemm.scaleRowsB()));
  if (adaptor.getAlpha2())
    values.push_back(view(gemm.argumentOf(gemm.alphas()), adaptor.getAlpha2()));
  return values;
}

/// The elements, and what is derived from them, behind the amax of their quantizer.
static void addResults(OpBuilder &b, Location loc, const Gemm &gemm,
                       BlockScaledMatmulOp::Adaptor adaptor, ValueRange results, Value columns,
                       SmallVector<Value> &values) {
  if (gemm.results.storesTiles)
    values.push_back(mapOf(b, loc, gemm.result(), results.front(), gemm.n(), columns));
  else if (gemm.pitchedResult())
    llvm::append_values(values,
                        viewOf(b, loc, gemm.withoutSizes(gemm.resultBuffer()), results.front()),
                        pitchBytes(b, loc, results.front()));
  else if (gemm.results.storesElements)
    values.push_back(pipe::GlobalViewOp::create(b, loc, gemm.result(), results.front()));
  if (gemm.storesEnds())
    values.push_back(pipe::GlobalViewOp::create(b, loc, gemm.resultBuffer(), results.front()));
  SmallVector<Value> buffers;
  if (adaptor.getQuantizeAmax())
    buffers.push_back(adaptor.getQuantizeAmax());
  llvm::append_range(buffers, results.drop_front(gemm.results.storesElements ? 1 : 0));
  for (auto [type, buffer] : llvm::zip_equal(gemm.derivedTypes(), buffers)) {
    Value view = buffer;
    if (gemm.problem.groups && type.isScales()) // a list of tiles
      view = pipe::BufferViewOp::create(b, loc, pipe::getBufferType(type), buffer, /*offset=*/0,
                                        /*rows=*/Value());
    values.push_back(
        viewOf(b, loc, gemm.argumentOf(type, /*hasRows=*/gemm.problem.dynamicWidth()), view));
  }
}

/// Adds the workspace of split-K, and the counters of its parts.
static void addWorkspace(OpBuilder &b, Location loc, const Gemm &gemm, Value rows,
                         SmallVector<Value> &values) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto sizes = [&](int64_t perTile) -> SmallVector<Value> {
    if (!gemm.problem.dynamicRows())
      return {};
    int64_t unit = gemm.dynamicColumns() ? gemm.tiling.workN() : gemm.tiling.workM();
    Value tiles = arith::CeilDivUIOp::create(b, loc, rows, constant(unit));
    return {arith::MulIOp::create(b, loc, tiles, constant(perTile))};
  };
  bool ofFragments = gemm.hasFragments();
  pipe::GlobalType partsType = ofFragments ? gemm.fragmentWorkspace() : gemm.workspace();
  pipe::GlobalType countersType = ofFragments ? gemm.fragmentCounters() : gemm.counters();
  int64_t rowsOfParts = gemm.work.splits * (ofFragments ? gemm.tilesN() : gemm.tiling.workM());
  int64_t tilesOfRow = gemm.tilesN();
  if (gemm.dynamicColumns()) { // columns of the other operand
    tilesOfRow = gemm.tilesM();
    rowsOfParts *= tilesOfRow;
  }
  Value parts = gpu::AllocOp::create(b, loc, pipe::getBufferType(partsType), /*asyncToken=*/Type(),
                                     ValueRange(), sizes(rowsOfParts), ValueRange())
                    .getMemref();
  Value counters =
      allocateCounters(b, loc, pipe::getBufferType(countersType),
                       sizes(gemm.tiling.clusterM * tilesOfRow * gemm.tiling.clusterN));
  values.push_back(pipe::GlobalViewOp::create(b, loc, partsType, parts));
  values.push_back(pipe::GlobalViewOp::create(b, loc, countersType, counters));
}

SmallVector<Value> fp4::gemmArguments(OpBuilder &b, Location loc, const Gemm &gemm,
                                      BlockScaledMatmulOp::Adaptor adaptor, Value powers,
                                      const GivenSizes &sizes, ValueRange results) {
  SmallVector<Value> values = operandArguments(b, loc, gemm, adaptor, powers, sizes.depth);
  for (auto [input, buffer] : llvm::zip_equal(gemm.results.inputs, adaptor.getEpilogueInputs())) {
    Value matrix = buffer;
    if (input.isOfGroups)
      matrix = pipe::BufferViewOp::create(b, loc, pipe::getBufferType(input.type), buffer,
                                          /*offset=*/0, /*rows=*/Value());
    values.push_back(viewOf(b, loc, gemm.argumentOf(input.type), matrix));
  }
  addResults(b, loc, gemm, adaptor, results, sizes.columns, values);
  auto add = [&](Value size) {
    values.push_back(arith::IndexCastOp::create(b, loc, b.getI32Type(), size));
  };
  if (gemm.problem.dynamicRows())
    add(sizes.rows);
  if (gemm.problem.dynamicWidth())
    add(sizes.columns);
  if (gemm.problem.dynamicDepth())
    add(sizes.depth);
  if (gemm.work.stream)
    values.push_back(tableOfStream(b, loc, gemm));
  if (gemm.work.hasWorkspace())
    addWorkspace(b, loc, gemm, sizes.rows, values);
  return values;
}
