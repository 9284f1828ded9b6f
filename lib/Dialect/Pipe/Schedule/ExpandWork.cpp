//===- ExpandWork.cpp - Loops over the tiles of a CTA ---------------------===//
//
// A schedule becomes the loop by which a CTA finds its tiles. Code that does not depend on the tile
// stands in front of all roles.
//
//===----------------------------------------------------------------------===//
#include "Schedule.h"

#include "fp4/Dialect/Pipe/Schedule/Passes.h"

namespace fp4::pipe {
#define GEN_PASS_DEF_EXPANDWORK
#include "fp4/Dialect/Pipe/Schedule/Passes.h.inc"
} // namespace fp4::pipe

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

static void expandWork(gpu::GPUFuncOp kernel) {
  IRRewriter rewriter(kernel.getContext());
  auto roles = kernel.getOps<RoleRegionOp>();
  auto isPipelined = [](ChannelOp channel) { return channel.isPipelined(); };
  if (!llvm::all_of(kernel.getOps<ChannelOp>(), isPipelined))
    return;
  if (!roles.empty())
    kernel->setAttr(PipeDialect::kScheduledAttr, rewriter.getUnitAttr());
  kernel.walk([&](ForEachWorkOp work) {
    Operation *before = roles.empty() ? work.getOperation() : *roles.begin();
    OpBuilder::InsertPoint shared(before->getBlock(), before->getIterator());
    work.getSchedule().expand(rewriter, work, shared);
  });
}

namespace {
struct ExpandWork : fp4::pipe::impl::ExpandWorkBase<ExpandWork> {
  void runOnOperation() override { getOperation().walk(expandWork); }
};
} // namespace
