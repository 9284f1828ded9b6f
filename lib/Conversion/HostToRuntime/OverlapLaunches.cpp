//===- OverlapLaunches.cpp - Begin a kernel while the one before it ends --===//
//
// Programmatic dependent launch: a kernel may begin when all blocks of the one before it have
// executed griddepcontrol.launch_dependents, and griddepcontrol.wait returns when that one has
// ended and what it wrote is visible. PTX ISA, "Parallel Synchronization and Communication
// Instructions: griddepcontrol". Both instructions are at one place, where
//  - nothing has touched global memory yet,
//  - no block has tensor memory: it would keep that while it waits for a kernel that needs it.
// Every block of every kernel waits, so a kernel that has ended has those before it behind it.
// Where not all do, the amax before a quantizer is launched as usual: it begins when all before it
// has ended. So what the amax only reads does not change any more, and the quantizer loads that
// before it waits. A kernel that says so executes both, whatever is before it and behind it.
//
//===----------------------------------------------------------------------===//

#include "fp4/Conversion/HostToRuntime/Passes.h"
#include "fp4/Conversion/LaunchAttributes.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include "Patterns.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace fp4 {
#define GEN_PASS_DEF_OVERLAPLAUNCHES
#include "fp4/Conversion/HostToRuntime/Passes.h.inc"
} // namespace fp4

using namespace mlir;

namespace {

/// Shared memory, space 3.
bool isShared(Value pointer) {
  return cast<LLVM::LLVMPointerType>(pointer.getType()).getAddressSpace() == 3;
}

/// What a thread has for itself.
bool isOwn(Value pointer) {
  while (Operation *op = pointer.getDefiningOp()) {
    if (isa<LLVM::AllocaOp>(op))
      return true;
    if (!isa<LLVM::GEPOp, LLVM::AddrSpaceCastOp>(op))
      return false;
    pointer = op->getOperand(0);
  }
  return false;
}

/// Inline PTX that loads from global memory. It may say that it has no effects.
bool loadsInPtx(Operation *op) {
  auto text = dyn_cast<LLVM::InlineAsmOp>(op);
  return text && text.getAsmString().contains("ld.global.");
}

/// Touches no global memory and takes no tensor memory: what kernels do before they share out their
/// work.
bool isLocal(Operation *op) {
  if (auto load = dyn_cast<LLVM::LoadOp>(op))
    return isShared(load.getAddr()) || isOwn(load.getAddr());
  if (auto store = dyn_cast<LLVM::StoreOp>(op))
    return isShared(store.getAddr()) || isOwn(store.getAddr());
  if (loadsInPtx(op))
    return false;
  return isMemoryEffectFree(op) || op->hasTrait<OpTrait::IsTerminator>() ||
         // To ask the L2 cache for memory is not to read it.
         isa<LLVM::AllocaOp, NVVM::CpAsyncBulkPrefetchOp, NVVM::MBarrierInitOp,
             NVVM::FenceMbarrierInitOp, NVVM::PrefetchOp, NVVM::ElectSyncOp, NVVM::ShflOp,
             NVVM::ClusterArriveOp, NVVM::ClusterArriveRelaxedOp>(op) ||
         op->getName().getStringRef().starts_with("nvvm.read.ptx.sreg");
}

bool isBarrier(Operation *op) { return isa<NVVM::BarrierOp, NVVM::ClusterWaitOp>(op); }

/// Behind the first barrier of the block, if all before it is local; else the first operation.
Operation *placeIn(LLVM::LLVMFuncOp kernel) {
  for (Block &block : kernel.getBody())
    for (Operation &op : block) {
      if (isBarrier(&op))
        return op.getNextNode();
      if (!isLocal(&op))
        return &kernel.getBody().front().front();
    }
  return &kernel.getBody().front().front();
}

/// The argument of the kernel that `pointer` is computed from, or null.
BlockArgument argumentOf(Value pointer) {
  while (auto element = pointer.getDefiningOp<LLVM::GEPOp>())
    pointer = element.getBase();
  return dyn_cast<BlockArgument>(pointer);
}

/// The pointer of a load from global memory, or null.
Value loadedFrom(Operation *op) {
  if (auto load = dyn_cast<LLVM::LoadOp>(op))
    return isShared(load.getAddr()) || load.getVolatile_() ? Value() : load.getAddr();
  auto text = dyn_cast<LLVM::InlineAsmOp>(op);
  return text && text.getAsmString().starts_with("ld.global.") ? text.getOperand(0) : Value();
}

bool isOnlyLoaded(Value pointer) {
  return llvm::all_of(pointer.getUses(), [&](OpOperand &use) {
    if (isa<LLVM::GEPOp>(use.getOwner()))
      return use.getOperandNumber() == 0 && isOnlyLoaded(use.getOwner()->getResult(0));
    return loadedFrom(use.getOwner()) == pointer;
  });
}

/// Behind the first loads of what nobody writes, if nothing else is before them; where there is
/// nothing of the kind, as placeIn says.
Operation *placeBehindLoads(LLVM::LLVMFuncOp kernel, const llvm::SmallDenseSet<Value> &unwritten) {
  if (unwritten.empty())
    return placeIn(kernel);
  Operation *place = &kernel.getBody().front().front();
  for (Operation &op : kernel.getBody().front()) {
    Value pointer = loadedFrom(&op);
    if (pointer && unwritten.contains(argumentOf(pointer)))
      place = op.getNextNode();
    else if (!isLocal(&op) || isBarrier(&op))
      break;
  }
  return place;
}

/// What a kernel reads may be written after it began. Loads without effects would be moved to the
/// front of the wait.
void loadAsWritten(LLVM::LLVMFuncOp kernel) {
  constexpr StringLiteral constant = "ld.global.nc.", ordinary = "ld.global.";
  kernel.walk([&](LLVM::LoadOp load) { load.setInvariant(false); });
  kernel.walk([&](LLVM::InlineAsmOp text) {
    if (!loadsInPtx(text))
      return;
    std::string ptx = text.getAsmString().str();
    for (size_t at; (at = ptx.find(constant.data())) != std::string::npos;)
      ptx.replace(at, constant.size(), ordinary.data());
    text.setAsmString(ptx);
    text.setHasSideEffects(true);
  });
}

using enum NVVM::GridDepActionKind;

void insert(LLVM::LLVMFuncOp kernel, Operation *place, ArrayRef<NVVM::GridDepActionKind> kinds) {
  OpBuilder b(place);
  for (NVVM::GridDepActionKind kind : kinds)
    NVVM::GriddepcontrolOp::create(b, kernel.getLoc(), kind);
}

/// Kernels that wait for none ask for nothing ahead.
void erasePrefetches(LLVM::LLVMFuncOp kernel) {
  bool waits = kernel
                   .walk([](NVVM::GriddepcontrolOp op) {
                     return op.getKind() == wait ? WalkResult::interrupt() : WalkResult::advance();
                   })
                   .wasInterrupted();
  if (!waits)
    kernel.walk([](NVVM::CpAsyncBulkPrefetchOp prefetch) { prefetch.erase(); });
}

/// The amax that is launched next before a quantizer. A kernel that may take the place of both is
/// between them.
gpu::LaunchFuncOp leaderOf(gpu::LaunchFuncOp follower) {
  for (Operation *op = follower->getPrevNode(); op; op = op->getPrevNode()) {
    auto launch = dyn_cast<gpu::LaunchFuncOp>(op);
    if (launch && launch->hasAttr(fp4::kLeadsAttr))
      return launch;
    if (isa<gpu::MemsetOp, gpu::MemcpyOp>(op) ||
        (launch && !launch->hasAttr(fp4::kCooperativeAttr)))
      break;
  }
  return {};
}

LLVM::LLVMFuncOp kernelOf(gpu::LaunchFuncOp launch) {
  return SymbolTable::lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(launch, launch.getKernelAttr());
}

/// The buffer that a launch takes a view of.
Value bufferOf(Value operand) {
  while (isa_and_present<fp4::pipe::GlobalViewOp, fp4::pipe::BufferViewOp>(operand.getDefiningOp()))
    operand = operand.getDefiningOp()->getOperand(0);
  return operand;
}

/// Buffers that the kernel of `launch` does more with than load from them.
llvm::SmallDenseSet<Value> otherBuffers(gpu::LaunchFuncOp launch) {
  llvm::SmallDenseSet<Value> buffers;
  for (auto [operand, argument] :
       llvm::zip_equal(launch.getKernelOperands(), kernelOf(launch).getArguments()))
    if (!isOnlyLoaded(argument))
      buffers.insert(bufferOf(operand));
  return buffers;
}

/// Arguments of the kernel of `follower` that the one of `leader` has too and only loads from. Of a
/// leader that overlaps with what is before it nothing is known.
llvm::SmallDenseSet<Value> sharedInputs(gpu::LaunchFuncOp leader, gpu::LaunchFuncOp follower) {
  llvm::SmallDenseSet<Value> inputs, others = otherBuffers(leader);
  if (leader->hasAttr(fp4::kOverlapsAttr) || leader->hasAttr(fp4::kDependentAttr))
    return inputs;
  for (Value operand : leader.getKernelOperands())
    for (auto [same, input] :
         llvm::zip_equal(follower.getKernelOperands(), kernelOf(follower).getArguments()))
      if (same == operand && isa<LLVM::LLVMPointerType>(input.getType()) &&
          !others.contains(bufferOf(operand)))
        inputs.insert(input);
  return inputs;
}

struct OverlapLaunches : fp4::impl::OverlapLaunchesBase<OverlapLaunches> {
  using OverlapLaunchesBase::OverlapLaunchesBase;

  void runOnOperation() override {
    if (all || chosen)
      overlapLaunches();
    getOperation().walk(erasePrefetches);
  }

private:
  void overlapLaunches() {
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      if (all)
        return makeDependent(launch);
      bool overlaps = launch->hasAttr(fp4::kOverlapsAttr);
      if (overlaps || launch->hasAttr(fp4::kWaitsAttr)) {
        LLVM::LLVMFuncOp kernel = kernelOf(launch);
        SmallVector<NVVM::GridDepActionKind> both = {launch_dependents, wait};
        insert(kernel, placeIn(kernel), ArrayRef(both).drop_front(overlaps ? 0 : 1));
        return makeDependent(launch);
      }
      if (!launch->hasAttr(fp4::kFollowsAttr))
        return;
      if (gpu::LaunchFuncOp leader = leaderOf(launch)) {
        LLVM::LLVMFuncOp first = kernelOf(leader), second = kernelOf(launch);
        insert(second, placeBehindLoads(second, sharedInputs(leader, launch)), wait);
        insert(first, placeIn(first), launch_dependents);
        makeDependent(launch);
      }
    });
    if (all)
      getOperation().walk([](LLVM::LLVMFuncOp kernel) {
        if (!kernel->hasAttr(gpu::GPUDialect::getKernelFuncAttrName()))
          return;
        loadAsWritten(kernel);
        insert(kernel, placeIn(kernel), {launch_dependents, wait});
      });
  }

  void makeDependent(gpu::LaunchFuncOp launch) {
    launch->setAttr(fp4::kDependentAttr, UnitAttr::get(launch.getContext()));
    if (!all)
      loadAsWritten(kernelOf(launch));
  }
};

} // namespace
