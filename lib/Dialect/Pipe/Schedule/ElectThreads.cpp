//===- ElectThreads.cpp - Roles whose warp stays together -----------------===//
//
// A role without threads has one thread that issues. On targets with tcgen05 its warp stays whole:
// all lanes wait and compute addresses, and one is elected for each instruction that must be issued
// once. ptxas then sees that the values are those of the warp, keeps them in its registers, and
// leaves the elections around tcgen05 out. Behind one election for the whole role, ptxas moves each
// operand of tcgen05 from the registers of the thread to those of the warp. Behind a role that has
// split its warp, ptxas takes every warp for split.
//
//===----------------------------------------------------------------------===//
#include "Schedule.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/Schedule/Passes.h"

namespace fp4::pipe {
#define GEN_PASS_DEF_ELECTTHREADS
#include "fp4/Dialect/Pipe/Schedule/Passes.h.inc"
} // namespace fp4::pipe

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Returns true when all regions of `role`, of which a kernel may have several, can be whole.
static bool isWhole(gpu::GPUFuncOp kernel, RoleAttr role) {
  return llvm::all_of(kernel.getOps<RoleRegionOp>(), [&](RoleRegionOp region) {
    return region.getRole() != role ||
           (role.isElected() && role.getNumWarps() == 1 && !role.getEngines().empty() &&
            !role.drives(Engine::BulkStore) && !findOfOneThread(region));
  });
}

static void electThreads(gpu::GPUFuncOp kernel, const hw::TargetModel &target) {
  if (namesTiles(target)) {
    llvm::SmallDenseMap<RoleAttr, bool> whole;
    for (auto region : kernel.getOps<RoleRegionOp>())
      whole[region.getRole()] = isWhole(kernel, region.getRole());
    for (auto region : kernel.getOps<RoleRegionOp>())
      region.setRoleAttr(region.getRole().withWhole(whole.lookup(region.getRole())));
  }
  kernel.walk([](LoadEntryOp entry) {
    auto region = entry->getParentOfType<RoleRegionOp>();
    entry.setOfWarp(entry.getIndex() && (!region || region.getRole().getWhole()));
  });
}

namespace {
struct ElectThreads : fp4::pipe::impl::ElectThreadsBase<ElectThreads> {
  void runOnOperation() override {
    if (failed(forEachKernel(getOperation(), electThreads)))
      signalPassFailure();
  }
};
} // namespace
