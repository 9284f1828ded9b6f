//===- StaticPersistent.cpp - Every g-th tile for one of g blocks ----------===//

#include "fp4/Dialect/Pipe/IR/Cluster.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace fp4::pipe;

LogicalResult StaticPersistentAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                           Raster raster, int64_t width) { // (C146)
  if (raster == Raster::Panels && width < 1)
    return emitError() << "panels must be at least 1 tile wide, but got " << width;
  if (raster != Raster::Panels && width)
    return emitError() << "raster " << stringifyRaster(raster)
                       << " must have no width, but got " << width;
  return success();
}

namespace {
/// Arithmetic on i32 in `%x = op %a, %b` form.
struct I32Builder {
  OpBuilder &b;
  Location loc;

  Value constant(int64_t value) { return arith::ConstantIntOp::create(b, loc, value, 32); }
  Value mul(Value x, Value y) { return arith::MulIOp::create(b, loc, x, y); }
  Value div(Value x, Value y) { return arith::DivUIOp::create(b, loc, x, y); }
  Value rem(Value x, Value y) { return arith::RemUIOp::create(b, loc, x, y); }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
  Value min(Value x, Value y) { return arith::MinUIOp::create(b, loc, x, y); }
  Value index(Value x) { return arith::IndexCastOp::create(b, loc, b.getI32Type(), x); }
};

struct Tile {
  Value m, n;
};
} // namespace

/// `count` is known to be a multiple of `unit`.
static bool isMultiple(Value count, int64_t unit) {
  APInt value;
  return matchPattern(count, m_ConstantInt(&value)) && value.getSExtValue() % unit == 0;
}

/// Tile number `t` in panels of `width` columns, the last of which may be narrower.
static Tile tileInPanels(I32Builder i32, Value t, Value numM, Value numN, int64_t width) {
  Value columns = i32.constant(width);
  Value whole = i32.mul(numM, columns); // tiles of a whole panel
  Value panel = i32.div(t, whole), within = i32.rem(t, whole);
  Value first = i32.mul(panel, columns);
  Value actual = isMultiple(numN, width) ? columns : i32.min(i32.sub(numN, first), columns);
  return {i32.div(within, actual), i32.add(first, i32.rem(within, actual))};
}

static Tile tileOf(I32Builder i32, StaticPersistentAttr schedule, Value t, Value numM, Value numN) {
  switch (schedule.getRaster()) {
  case Raster::AlongM:
    return {i32.rem(t, numM), i32.div(t, numM)};
  case Raster::AlongN:
    return {i32.div(t, numN), i32.rem(t, numN)};
  case Raster::Panels:
    return tileInPanels(i32, t, numM, numN, schedule.getWidth());
  }
  llvm_unreachable("all rasters are handled");
}

/// The number of this worker and how many there are: blocks, or clusters of them, which a grid has
/// side by side along x. %clusterid and %nclusterid say the same; ptxas computes them from the sizes
/// that the launch gives, in ten instructions and more.
static std::pair<Value, Value> workers(I32Builder i32, fp4::hw::ClusterShape cluster) {
  OpBuilder &b = i32.b;
  Value block = i32.index(gpu::BlockIdOp::create(b, i32.loc, gpu::Dimension::x));
  Value blocks = i32.index(gpu::GridDimOp::create(b, i32.loc, gpu::Dimension::x));
  if (cluster.m == 1)
    return {block, blocks};
  Value along = i32.constant(cluster.m);
  return {i32.div(block, along), i32.div(blocks, along)};
}

void StaticPersistentAttr::expand(RewriterBase &rewriter, Operation *op,
                                  OpBuilder::InsertPoint shared) const {
  auto work = cast<ForEachWorkOp>(op);
  Location loc = work.getLoc();
  I32Builder i32{rewriter, loc};
  rewriter.restoreInsertionPoint(shared);
  Value total = i32.mul(work.getNumM(), work.getNumN());
  auto [first, blocks] = workers(i32, clusterOf(work));

  rewriter.setInsertionPoint(work);
  auto loop = scf::ForOp::create(rewriter, loc, first, total, blocks, work.getInitArgs());
  rewriter.setInsertionPointToStart(loop.getBody());
  Tile tile = tileOf(i32, *this, loop.getInductionVar(), work.getNumM(), work.getNumN());
  SmallVector<Value> arguments = {tile.m, tile.n};
  llvm::append_range(arguments, loop.getRegionIterArgs());
  Operation *yield = work.getBody()->getTerminator();
  SmallVector<Value> yielded = llvm::to_vector(yield->getOperands());
  rewriter.eraseOp(yield);
  if (!loop.getBody()->empty() && isa<scf::YieldOp>(loop.getBody()->back()))
    rewriter.eraseOp(loop.getBody()->getTerminator());
  rewriter.mergeBlocks(work.getBody(), loop.getBody(), arguments);
  rewriter.setInsertionPointToEnd(loop.getBody());
  auto end = scf::YieldOp::create(rewriter, loc, ValueRange());
  end.getResultsMutable().assign(yielded);
  rewriter.replaceOp(work, loop.getResults());
}
