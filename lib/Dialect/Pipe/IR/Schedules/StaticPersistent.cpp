//===- StaticPersistent.cpp - Every g-th tile for one of g CTAs -----------===//

#include "Rasters.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp4::pipe;

LogicalResult StaticPersistentAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                           Raster raster, int64_t width, bool) { // (C146)
  return verifyOrder(emitError, {raster, width});
}

/// The number of the tile that takes the place of tile `t` of `total`, where `workers` take a tile
/// each in a round, and odd rounds are turned around. The last round may have fewer tiles.
static Value turnedAround(I32Builder i32, Value t, Value workers, Value total) {
  Value round = i32.div(t, workers), first = i32.mul(round, workers);
  Value end = i32.min(i32.add(first, workers), total);
  Value other = i32.sub(i32.add(first, end), i32.add(t, i32.constant(1)));
  Value isOdd = i32.equal(i32.rem(round, i32.constant(2)), i32.constant(1));
  return i32.select(isOdd, other, t);
}

void StaticPersistentAttr::expand(RewriterBase &rewriter, Operation *op,
                                  OpBuilder::InsertPoint shared) const {
  auto work = cast<ForEachWorkOp>(op);
  Location loc = work.getLoc();
  I32Builder i32{rewriter, loc};
  rewriter.restoreInsertionPoint(shared);
  auto [cluster, total, first] = numbersOf(i32, work);
  Value blocks = i32.index(gpu::GridDimOp::create(rewriter, loc, gpu::Dimension::x));
  Value workers = workerOf(i32, blocks, cluster);

  rewriter.setInsertionPoint(work);
  auto loop = scf::ForOp::create(rewriter, loc, first, total, workers, work.getInitArgs());
  loop->setAttr(PipeDialect::kWorkAttr, rewriter.getUnitAttr());
  if (!loop.getBody()->empty())
    rewriter.eraseOp(loop.getBody()->getTerminator());
  rewriter.setInsertionPointToStart(loop.getBody());
  Value number = loop.getInductionVar();
  if (getSerpentine())
    number = turnedAround(i32, number, workers, total);
  TilePlace tile = tileOf(i32, {getRaster(), getWidth()}, number, work);
  SmallVector<Value> arguments = {tile.m, tile.n};
  llvm::append_range(arguments, loop.getRegionIterArgs());
  SmallVector<Value> yielded = moveBody(rewriter, work, loop.getBody(), arguments);
  rewriter.setInsertionPointToEnd(loop.getBody());
  scf::YieldOp::create(rewriter, loc, yielded);
  rewriter.replaceOp(work, loop.getResults());
}
