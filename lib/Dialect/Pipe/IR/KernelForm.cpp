//===- KernelForm.cpp - Forms of a kernel on its way down -----------------===//
#include "fp4/Dialect/Pipe/IR/KernelForm.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace fp4::pipe;

bool fp4::pipe::belongsToRole(Operation *op) {
  if (auto work = dyn_cast<ForEachWorkOp>(op))
    return work.getSchedule().getRingDepth() > 0;
  return isa<EngineOpInterface, ChannelOpInterface, NextWorkOp>(op);
}

/// Returns true when a kernel without roles may have `op`: one that streams through memory.
static bool streams(Operation *op) {
  return !isa_and_present<PipeDialect>(op->getDialect()) ||
         isa<ViewOp, LoadEntryOp, ForEachWorkOp, YieldOp>(op);
}

LogicalResult fp4::pipe::verifyInRoles(gpu::GPUFuncOp kernel) {
  bool hasRoles = !kernel.getBody().getOps<RoleRegionOp>().empty();
  WalkResult result = kernel.walk([&](Operation *op) {
    bool outside = belongsToRole(op) && !op->getParentOfType<RoleRegionOp>();
    if (!outside && (hasRoles || streams(op)))
      return WalkResult::advance();
    StringRef where =
        outside ? "must be in the region of a role" : "must be in a kernel with roles";
    withNote(op->emitOpError() << where, "run pipe-specialize-warps on the sequential form");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

int64_t fp4::pipe::ctasPerSm(gpu::GPUFuncOp kernel) {
  auto attr = kernel->getAttrOfType<IntegerAttr>(NVVM::NVVMDialect::getMinctasmAttrName());
  return attr ? std::max<int64_t>(attr.getInt(), 1) : 1;
}
