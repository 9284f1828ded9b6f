//===- GemmArguments.cpp - Arguments of a GEMM's kernel ----------------===//

#include "GemmArguments.h"

#include "DynamicSizes.h"
#include "WorkTables.h"

#include "fp4/Dialect/Pipe/IR/PipeMatrices.h"
#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Dialect/Utils/StridedArguments.h"
#include "fp4/Numerics/UE8M0.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

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
  return pipe::MakeTensorMapOp::create(b, loc, type, buffer, given,
                                       given ? IntegerAttr() : b.getI64IntegerAttr(columns));
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
  return mapOf(b, loc, type, buffer, int64_t(llvm::divideCeil(depth, gemm.problem.block)), blocks);
}

/// A view of prepacked weights.
static Value packedArgument(OpBuilder &b, Location loc, const Gemm &gemm, Value buffer) {
  pipe::GlobalType type = gemm.packedTiles();
  Value tiles;
  if (ShapedType::isDynamic(type.getShape()[0]))
    tiles = arith::MulIOp::create(b, loc, memref::DimOp::create(b, loc, buffer, 0),
                                  memref::DimOp::create(b, loc, buffer, 1));
  return viewOf(
      b, loc, type,
      pipe::ViewOp::create(b, loc, pipe::getBufferType(type), buffer, /*offset=*/0, tiles));
}

/// The operands with the scales of those that have some, and their alphas.
static void addOperands(OpBuilder &b, Location loc, const Gemm &gemm,
                        const GemmBuffers &adaptor, Value powers, Value depth,
                        KernelArguments &args) {
  auto operand = [&](bool isPacked, Type map, Value buffer, int64_t columns) -> Value {
    return isPacked ? packedArgument(b, loc, gemm, buffer)
                    : mapOf(b, loc, map, buffer, columns, depth);
  };
  auto scales = [&](Type type, Value tiles, int64_t rows, bool hasRows) {
    return scaleArgument(b, loc, gemm, Gemm::argumentOf(type, hasRows), tiles, rows, depth);
  };
  std::pair lhs(adaptor.lhs, adaptor.lhsScales);
  std::pair rhs(adaptor.rhs, powers ? powers : adaptor.rhsScales);
  auto [ofA, ofB] = gemm.swapsOperands() ? std::pair(rhs, lhs) : std::pair(lhs, rhs);
  args.a = operand(gemm.prepackedA(), gemm.prepackedA() ? Type() : gemm.mapA(), ofA.first,
                   gemm.problem.depth);
  args.bb = operand(gemm.prepackedB(), gemm.prepackedB() ? Type() : gemm.mapB(), ofB.first,
                    gemm.depthOfB());
  bool hasRowsOfB = !gemm.swapsOperands();
  if (gemm.hasScalesA())
    args.scalesA = scales(gemm.scalesA(), ofA.second, gemm.rowsOfBlocksA(), /*hasRows=*/false);
  if (gemm.hasScalesB())
    args.scalesB = scales(gemm.scalesB(), ofB.second, gemm.scaleRowsB(), hasRowsOfB);
  if (adaptor.alpha)
    args.alpha = viewOf(b, loc, Gemm::argumentOf(gemm.alphas()), adaptor.alpha);
  if (!gemm.problem.dual)
    return;
  Type ofSecond = gemm.secondScales();
  args.b2 = operand(!ofSecond, gemm.secondWeights(), adaptor.rhs2, gemm.depthOfB());
  if (ofSecond)
    args.scalesB2 = scales(ofSecond, adaptor.rhs2Scales, gemm.scaleRowsOfWeights(), hasRowsOfB);
  if (adaptor.alpha2)
    args.alpha2 = viewOf(b, loc, Gemm::argumentOf(gemm.alphas()), adaptor.alpha2);
}

/// The elements, and what is derived from them, behind the amax of their quantizer.
static void addResults(OpBuilder &b, Location loc, const Gemm &gemm,
                       const GemmBuffers &adaptor, ValueRange results, Value columns,
                       KernelArguments &args) {
  if (gemm.results.storesTiles) {
    args.result = mapOf(b, loc, gemm.result(), results.front(), gemm.n(), columns);
  } else if (gemm.pitchedResult()) {
    args.result = viewOf(b, loc, gemm.withoutSizes(gemm.resultBuffer()), results.front());
    args.pitch = pitchBytes(b, loc, results.front());
  } else if (gemm.results.storesElements) {
    args.result = pipe::ViewOp::create(b, loc, gemm.result(), results.front());
  }
  if (gemm.storesEnds())
    args.resultBuffer = pipe::ViewOp::create(b, loc, gemm.resultBuffer(), results.front());
  SmallVector<Value> buffers;
  if (adaptor.quantizeAmax)
    buffers.push_back(adaptor.quantizeAmax);
  llvm::append_range(buffers, results.drop_front(gemm.results.storesElements ? 1 : 0));
  for (auto [place, type, buffer] :
       llvm::zip_equal(args.derived.derived(gemm.results), gemm.derivedTypes(), buffers)) {
    Value view = buffer;
    if (gemm.problem.groups && type.isScales()) // a list of tiles
      view = pipe::ViewOp::create(b, loc, pipe::getBufferType(type), buffer, /*offset=*/0,
                                  /*rows=*/Value());
    *place = viewOf(b, loc, gemm.argumentOf(type, /*hasRows=*/gemm.problem.dynamicWidth()), view);
  }
}

/// Adds the workspace of split-K, and the counters of its parts.
static void addWorkspace(OpBuilder &b, Location loc, const Gemm &gemm, Value rows,
                         KernelArguments &args) {
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
  int64_t tilesOfRow = gemm.dynamicColumns() ? gemm.tilesM() : gemm.tilesN();
  int64_t rowsOfParts =
      gemm.work.splits * (gemm.hasFragments()     ? tilesOfRow
                          : gemm.dynamicColumns() ? gemm.tiling.workM() * tilesOfRow
                                                  : gemm.tiling.workM());
  pipe::GlobalType partsType = gemm.workspace(), countersType = gemm.counters();
  Value parts = gpu::AllocOp::create(b, loc, pipe::getBufferType(partsType), /*asyncToken=*/Type(),
                                     ValueRange(), sizes(rowsOfParts), ValueRange())
                    .getMemref();
  Value counters =
      allocateCounters(b, loc, pipe::getBufferType(countersType),
                       sizes(gemm.tiling.clusterM * tilesOfRow * gemm.tiling.clusterN));
  args.workspace = pipe::ViewOp::create(b, loc, partsType, parts);
  args.counters = pipe::ViewOp::create(b, loc, countersType, counters);
}

KernelArguments fp4::gemmArguments(OpBuilder &b, Location loc, const Gemm &gemm,
                                   const GemmBuffers &adaptor, Value powers,
                                   const GivenSizes &sizes, ValueRange results) {
  KernelArguments args;
  addOperands(b, loc, gemm, adaptor, powers, sizes.depth, args);
  for (auto [input, buffer] : llvm::zip_equal(gemm.results.inputs, adaptor.inputs)) {
    Value matrix = buffer;
    if (input.isOfGroups)
      matrix = pipe::ViewOp::create(b, loc, pipe::getBufferType(input.type), buffer,
                                    /*offset=*/0, /*rows=*/Value());
    args.inputs.push_back(viewOf(b, loc, gemm.argumentOf(input.type), matrix));
  }
  addResults(b, loc, gemm, adaptor, results, sizes.columns, args);
  auto number = [&](Value size) -> Value {
    return arith::IndexCastOp::create(b, loc, b.getI32Type(), size);
  };
  if (gemm.problem.dynamicRows())
    args.rows = number(sizes.rows);
  if (gemm.problem.dynamicWidth())
    args.columns = number(sizes.columns);
  if (gemm.problem.dynamicDepth())
    args.depth = number(sizes.depth);
  if (gemm.work.stream)
    args.table = tableOfStream(b, loc, gemm);
  if (gemm.work.hasWorkspace())
    addWorkspace(b, loc, gemm, sizes.rows, args);
  return args;
}
