//===- Rasters.cpp - What schedules share ---------------------------------===//

#include "Rasters.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp4::pipe;

LogicalResult fp4::pipe::verifyOrder(function_ref<InFlightDiagnostic()> emitError,
                                     TileOrder order) {
  if (order.raster == Raster::Panels && (order.width < 1 || order.width > INT32_MAX))
    return emitError() << "panels must be 1 to " << INT32_MAX << " tiles wide, but got "
                       << order.width;
  if (order.raster != Raster::Panels && order.width)
    return emitError() << "raster " << stringifyRaster(order.raster)
                       << " must have no width, but got " << order.width;
  return success();
}

/// `count` is known to be a multiple of `unit`.
static bool isMultiple(Value count, int64_t unit) {
  APInt value;
  return matchPattern(count, m_ConstantInt(&value)) && value.getSExtValue() % unit == 0;
}

/// `width`, or all columns where there are fewer: the tiles of a whole panel are then no more than all
/// tiles, which 32 bits hold. Those of narrow panels always fit.
static Value columnsOfPanel(I32Builder i32, Value numN, int64_t width) {
  constexpr int64_t narrow = 64;
  APInt value;
  if (matchPattern(numN, m_ConstantInt(&value)))
    return i32.constant(std::min(width, value.getSExtValue()));
  return width <= narrow ? i32.constant(width) : i32.min(i32.constant(width), numN);
}

/// Tile number `t` in panels of `width` columns, the last of which may be narrower.
static TilePlace tileInPanels(I32Builder i32, Value t, Value numM, Value numN, int64_t width) {
  Value columns = columnsOfPanel(i32, numN, width);
  Value whole = i32.mul(numM, columns); // tiles of a whole panel
  Value panel = i32.div(t, whole), within = i32.rem(t, whole);
  Value first = i32.mul(panel, columns);
  Value actual = isMultiple(numN, width) ? columns : i32.min(i32.sub(numN, first), columns);
  return {i32.div(within, actual), i32.add(first, i32.rem(within, actual))};
}

TilePlace fp4::pipe::tileOf(I32Builder i32, TileOrder order, Value t, ForEachWorkOp work) {
  Value numM = work.getNumM(), numN = work.getNumN();
  switch (order.raster) {
  case Raster::AlongM:
    return {i32.rem(t, numM), i32.div(t, numM)};
  case Raster::AlongN:
    return {i32.div(t, numN), i32.rem(t, numN)};
  case Raster::Panels:
    return tileInPanels(i32, t, numM, numN, order.width);
  }
  llvm_unreachable("all rasters are handled");
}

Value fp4::pipe::workerOf(I32Builder i32, Value block, hw::ClusterShape cluster) {
  return cluster.m == 1 ? block : i32.div(block, i32.constant(cluster.m));
}

/// %clusterid says the same; ptxas computes it from the sizes that the launch gives, in ten
/// instructions and more.
static Value thisWorker(I32Builder i32, fp4::hw::ClusterShape cluster) {
  Value block = gpu::BlockIdOp::create(i32.b, i32.loc, gpu::Dimension::x);
  return workerOf(i32, i32.index(block), cluster);
}

WorkNumbers fp4::pipe::numbersOf(I32Builder i32, ForEachWorkOp work) {
  WorkNumbers numbers{clusterOf(work), i32.mul(work.getNumM(), work.getNumN()), Value()};
  numbers.first = thisWorker(i32, numbers.cluster);
  return numbers;
}

SmallVector<Value> fp4::pipe::moveBody(RewriterBase &rewriter, ForEachWorkOp work, Block *block,
                                       ValueRange arguments) {
  rewriter.mergeBlocks(work.getBody(), block, arguments);
  Operation *yield = &block->back();
  SmallVector<Value> yielded = llvm::to_vector(yield->getOperands());
  rewriter.eraseOp(yield);
  return yielded;
}
