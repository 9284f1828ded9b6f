//===- GemmArguments.cpp - Arguments of a GEMM's kernel ----------------===//

#include "GemmArguments.h"

#include "DynamicSizes.h"
#include "GroupTable.h"
#include "StreamTable.h"

#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Dialect/Utils/StridedArguments.h"
#include "fp4/Dialect/Pipe/IR/PipeMatrices.h"
#include "fp4/Numerics/UE8M0.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace fp4;

/// A tile of scales that are one, which is loaded with the program.
static Value scalesOfOne(OpBuilder &b, Location loc, const MatmulShape &shape) {
  MemRefType type = pipe::getBufferType(shape.scalesOfOne());
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
static Value scaleArgument(OpBuilder &b, Location loc, const MatmulShape &shape, Type type,
                           Value tiles, int64_t rows, Value givenDepth) {
  if (!tiles)
    givenDepth = {};
  int64_t depth = tiles ? shape.k : shape.tileK;
  Value buffer = !tiles         ? scalesOfOne(b, loc, shape)
                 : shape.groups ? scalesOfGroups(b, loc, shape, tiles, rows)
                                : tiles;
  if (!isa<pipe::TensorMapType>(type))
    return viewOf(b, loc, type, buffer);
  Value blocks;
  if (givenDepth)
    blocks = arith::CeilDivUIOp::create(b, loc, givenDepth,
                                        arith::ConstantIndexOp::create(b, loc, shape.block));
  return mapOf(b, loc, type, buffer, depth / shape.block, blocks);
}

/// A view of prepacked weights.
static Value packedArgument(OpBuilder &b, Location loc, const MatmulShape &shape, Value buffer) {
  pipe::GlobalType type = shape.packedTiles();
  return viewOf(b, loc, type,
                pipe::BufferViewOp::create(b, loc, pipe::getBufferType(type), buffer, /*offset=*/0,
                                           /*rows=*/Value()));
}

/// The operands with the scales of those that have some, and their alphas.
static SmallVector<Value> operandArguments(OpBuilder &b, Location loc, const MatmulShape &shape,
                                           BlockScaledMatmulOp::Adaptor adaptor, Value powers,
                                           Value depth) {
  auto map = [&](Type type, Value buffer) -> Value {
    return mapOf(b, loc, type, buffer, shape.k, depth);
  };
  auto view = [&](Type type, Value buffer) -> Value { return viewOf(b, loc, type, buffer); };
  auto scales = [&](Type type, Value tiles, int64_t rows) {
    return scaleArgument(b, loc, shape, type, tiles, rows, depth);
  };
  std::pair a(adaptor.getLhs(), adaptor.getLhsScales());
  std::pair second(adaptor.getRhs(), powers ? powers : adaptor.getRhsScales());
  if (shape.swap)
    std::swap(a, second);
  auto tiles = [&](Value buffer) { return packedArgument(b, loc, shape, buffer); };
  SmallVector<Value> values = {shape.prepackedA ? tiles(a.first) : map(shape.mapA(), a.first),
                               shape.prepackedB ? tiles(second.first)
                                                : map(shape.mapB(), second.first)};
  if (shape.hasScalesA())
    values.push_back(scales(shape.argumentOf(shape.scalesA()), a.second, shape.rowsOfBlocksA()));
  if (!shape.prepackedB && !shape.floatB)
    values.push_back(scales(shape.argumentOf(shape.scalesB(), /*hasRows=*/!shape.swap),
                            second.second, shape.scaleRowsB()));
  if (shape.alpha != MatmulShape::Alpha::None)
    values.push_back(view(shape.argumentOf(shape.alphas()), adaptor.getAlpha()));
  if (!shape.dual)
    return values;
  Type ofSecond = shape.secondScales();
  values.push_back(ofSecond ? map(shape.secondWeights(), adaptor.getRhs2())
                            : tiles(adaptor.getRhs2()));
  if (ofSecond)
    values.push_back(scales(shape.argumentOf(ofSecond, /*hasRows=*/!shape.swap),
                            adaptor.getRhs2Scales(), shape.scaleRowsB()));
  if (adaptor.getAlpha2())
    values.push_back(view(shape.argumentOf(shape.alphas()), adaptor.getAlpha2()));
  return values;
}

/// The elements, and what is derived from them, behind the amax of their quantizer.
static void addResults(OpBuilder &b, Location loc, const MatmulShape &shape,
                       BlockScaledMatmulOp::Adaptor adaptor, ValueRange results, Value columns,
                       SmallVector<Value> &values) {
  if (shape.storesTiles)
    values.push_back(mapOf(b, loc, shape.result(), results.front(), shape.n, columns));
  else if (shape.pitchedResult())
    llvm::append_values(values,
                        viewOf(b, loc, shape.withoutSizes(shape.resultBuffer()), results.front()),
                        pitchBytes(b, loc, results.front()));
  else if (shape.storesElements)
    values.push_back(pipe::GlobalViewOp::create(b, loc, shape.result(), results.front()));
  if (shape.storesEnds())
    values.push_back(pipe::GlobalViewOp::create(b, loc, shape.resultBuffer(), results.front()));
  SmallVector<Value> buffers;
  if (adaptor.getQuantizeAmax())
    buffers.push_back(adaptor.getQuantizeAmax());
  llvm::append_range(buffers, results.drop_front(shape.storesElements ? 1 : 0));
  for (auto [type, buffer] : llvm::zip_equal(shape.derivedTypes(), buffers)) {
    Value view = buffer;
    if (shape.groups && type.isScales()) // a list of tiles
      view = pipe::BufferViewOp::create(b, loc, pipe::getBufferType(type), buffer, /*offset=*/0,
                                        /*rows=*/Value());
    values.push_back(
        viewOf(b, loc, shape.argumentOf(type, /*hasRows=*/shape.dynamicWidth()), view));
  }
}

/// Adds the workspace of split-K, and the counters of its parts.
static void addWorkspace(OpBuilder &b, Location loc, const MatmulShape &shape, Value rows,
                         SmallVector<Value> &values) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto sizes = [&](int64_t perTile) -> SmallVector<Value> {
    if (!shape.dynamicRows())
      return {};
    int64_t unit = shape.dynamicColumns() ? shape.workN() : shape.workM();
    Value tiles = arith::CeilDivUIOp::create(b, loc, rows, constant(unit));
    return {arith::MulIOp::create(b, loc, tiles, constant(perTile))};
  };
  bool ofFragments = shape.hasFragments();
  pipe::GlobalType partsType = ofFragments ? shape.fragmentWorkspace() : shape.workspace();
  pipe::GlobalType countersType = ofFragments ? shape.fragmentCounters() : shape.counters();
  int64_t rowsOfParts = shape.splits * (ofFragments ? shape.tilesN() : shape.workM());
  int64_t tilesOfRow = shape.tilesN();
  if (shape.dynamicColumns()) { // columns of the other operand
    tilesOfRow = shape.tilesM();
    rowsOfParts *= tilesOfRow;
  }
  Value parts = gpu::AllocOp::create(b, loc, pipe::getBufferType(partsType), /*asyncToken=*/Type(),
                                     ValueRange(), sizes(rowsOfParts), ValueRange())
                    .getMemref();
  Value counters = allocateCounters(b, loc, pipe::getBufferType(countersType),
                                    sizes(shape.clusterM * tilesOfRow * shape.clusterN));
  values.push_back(pipe::GlobalViewOp::create(b, loc, partsType, parts));
  values.push_back(pipe::GlobalViewOp::create(b, loc, countersType, counters));
}

SmallVector<Value> fp4::gemmArguments(OpBuilder &b, Location loc, const MatmulShape &shape,
                                      BlockScaledMatmulOp::Adaptor adaptor, Value powers,
                                      const GivenSizes &sizes, ValueRange results) {
  SmallVector<Value> values = operandArguments(b, loc, shape, adaptor, powers, sizes.depth);
  for (auto [input, buffer] : llvm::zip_equal(shape.inputs, adaptor.getEpilogueInputs())) {
    Value matrix = buffer;
    if (input.isOfGroups)
      matrix = pipe::BufferViewOp::create(b, loc, pipe::getBufferType(input.type), buffer,
                                          /*offset=*/0, /*rows=*/Value());
    values.push_back(viewOf(b, loc, shape.argumentOf(input.type), matrix));
  }
  addResults(b, loc, shape, adaptor, results, sizes.columns, values);
  auto add = [&](Value size) {
    values.push_back(arith::IndexCastOp::create(b, loc, b.getI32Type(), size));
  };
  if (shape.dynamicRows())
    add(sizes.rows);
  if (shape.dynamicWidth())
    add(sizes.columns);
  if (shape.dynamicDepth())
    add(sizes.depth);
  if (shape.stream)
    values.push_back(tableOfStream(b, loc, shape));
  if (shape.hasWorkspace())
    addWorkspace(b, loc, shape, sizes.rows, values);
  return values;
}
