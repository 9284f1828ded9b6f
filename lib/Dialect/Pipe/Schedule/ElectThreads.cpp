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

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace fp4::pipe {
#define GEN_PASS_DEF_ELECTTHREADS
#include "fp4/Dialect/Pipe/Schedule/Passes.h.inc"
} // namespace fp4::pipe

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Returns true when a role can run as a whole warp, in which more than one thread executes it:
/// only with waits, addresses and loads from memory that nobody writes. Threads that read a
/// response of the work queue would have to meet before one gives it back, and the copies of a role
/// that stores are counted by the thread.
static bool canBeWhole(RoleRegionOp region) {
  auto isHarmless = [](Operation *op) {
    if (isa<ProducerAcquireOp, ConsumerWaitOp, AwaitReleaseOp, ExpectTxOp, LoadOp, CopyScalesOp,
            MmaBlockwiseOp, ProducerCommitOp, ConsumerReleaseOp, RoleRegionOp>(op))
      return true;
    if (auto mma = dyn_cast<MmaOp>(op))
      return isa<TmemType>(mma.getAccumulator().getType());
    if (isa<PipeDialect>(op->getDialect()))
      return isa<CopiedScalesOp, LoadEntryOp, OpaqueOp>(op);
    if (auto effects = dyn_cast<MemoryEffectOpInterface>(op))
      return !effects.hasEffect<MemoryEffects::Write>();
    return op->hasTrait<OpTrait::HasRecursiveMemoryEffects>();
  };
  return !region
              .walk([&](Operation *op) {
                return isHarmless(op) ? WalkResult::advance() : WalkResult::interrupt();
              })
              .wasInterrupted();
}

/// Returns true when the role, or the code in front of all roles, asks which thread executes it:
/// lanes would part where one is elected.
static bool knowsItsThread(RoleRegionOp region) {
  return region->getParentOfType<gpu::GPUFuncOp>()
      .walk([&](Operation *op) {
        auto role = op->getParentOfType<RoleRegionOp>();
        bool asks = isa<gpu::ThreadIdOp, gpu::LaneIdOp, NVVM::ThreadIdXOp, NVVM::LaneIdOp,
                        NVVM::ElectSyncOp>(op);
        return asks && (!role || role == region) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Returns true when all regions of `role`, of which a kernel may have several, can be whole.
static bool isWhole(gpu::GPUFuncOp kernel, RoleAttr role) {
  return llvm::all_of(kernel.getOps<RoleRegionOp>(), [&](RoleRegionOp region) {
    return region.getRole() != role ||
           (role.isElected() && role.getNumWarps() == 1 && !role.getEngines().empty() &&
            !role.drives(Engine::BulkStore) && canBeWhole(region) && !knowsItsThread(region));
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
    entry.setOfWarp(!region || region.getRole().getWhole());
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
