//===- ClusterLaunch.cpp - Tiles of clusters that have not started ---------===//
//
// Every role runs the same loop: its first tile is that of its own CTA or cluster, and each next
// one is what the response to a request says. A response that nothing is left ends the loop, as
// does a first tile that does not exist.
//
//===----------------------------------------------------------------------===//

#include "Rasters.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// More responses would only keep tiles from CTAs that are ready for them.
static constexpr int64_t kMostResponses = 8;

LogicalResult ClusterLaunchAttr::verify(function_ref<InFlightDiagnostic()> emitError, Raster raster,
                                        int64_t width, int64_t depth) { // (C300)
  if (depth < 1 || depth > kMostResponses)
    return withNote(emitError() << "depth must be 1 to " << kMostResponses << " responses, but got "
                                << depth,
                    "two responses hide the time that one takes");
  return verifyOrder(emitError, {raster, width});
}

int64_t ClusterLaunchAttr::getRingDepth() const { return getDepth(); }

/// The loop over tile numbers below `total`, of which the first is `first`. The loop carries the
/// number, the count of responses that this role has taken, and the values that `work` carries.
static scf::WhileOp createLoop(RewriterBase &rewriter, ForEachWorkOp work, Value first,
                               Value total) {
  Location loc = work.getLoc();
  SmallVector<Value> inits = {first, I32Builder{rewriter, loc}.constant(0)};
  llvm::append_range(inits, work.getInitArgs());
  TypeRange types = ValueRange(inits).getTypes();
  SmallVector<Location> locations(inits.size(), loc);
  auto loop = scf::WhileOp::create(rewriter, loc, types, inits);
  OpBuilder::InsertionGuard guard(rewriter);
  Block *before = rewriter.createBlock(&loop.getBefore(), {}, types, locations);
  Value exists = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ult,
                                       before->getArgument(0), total);
  scf::ConditionOp::create(rewriter, loc, exists, before->getArguments());
  rewriter.createBlock(&loop.getAfter(), {}, types, locations);
  return loop;
}

void ClusterLaunchAttr::expand(RewriterBase &rewriter, Operation *op,
                               OpBuilder::InsertPoint shared) const {
  auto work = cast<ForEachWorkOp>(op);
  Location loc = work.getLoc();
  I32Builder i32{rewriter, loc};
  rewriter.restoreInsertionPoint(shared);
  auto [cluster, total, first] = numbersOf(i32, work);

  rewriter.setInsertionPoint(work);
  scf::WhileOp loop = createLoop(rewriter, work, first, total);
  Block *body = loop.getAfterBody();
  Value number = body->getArgument(0), taken = body->getArgument(1);
  for (auto request : work.getBody()->getOps<RequestWorkOp>())
    request.getIterationMutable().assign(taken);
  rewriter.setInsertionPointToEnd(body);
  TilePlace tile = tileOf(i32, {getRaster(), getWidth()}, number, work);
  SmallVector<Value> arguments = {tile.m, tile.n};
  llvm::append_range(arguments, body->getArguments().drop_front(2));
  SmallVector<Value> carried = moveBody(rewriter, work, body, arguments);

  rewriter.setInsertionPointToEnd(body);
  auto next = NextWorkOp::create(rewriter, loc, taken);
  Value worker = workerOf(i32, next.getBlock(), cluster);
  Value after = arith::SelectOp::create(rewriter, loc, next.getMore(), worker, total);
  SmallVector<Value> yielded = {after, i32.add(taken, i32.constant(1))};
  llvm::append_range(yielded, carried);
  scf::YieldOp::create(rewriter, loc, yielded);
  rewriter.replaceOp(work, loop.getResults().drop_front(2));
}
