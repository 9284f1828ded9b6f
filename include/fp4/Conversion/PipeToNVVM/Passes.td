//===- Passes.td - Pipe kernels to NVVM -------------------------------------===//
#ifndef FP4_CONVERSION_PIPETONVVM_PASSES_TD
#define FP4_CONVERSION_PIPETONVVM_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertPipeToNVVM : Pass<"convert-pipe-to-nvvm", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Lower pipelined pipe kernels and streaming kernels to NVVM";
  let description = [{
    **Why.** The last step in MLIR: roles become warp dispatch, channels become rings of mbarriers,
    tile ops become TMA, tcgen05 and vector memory instructions. Every descriptor bit comes from the
    layout authority (include/fp4/ISA).

    **Precondition.** Kernels are in the pipelined form (pipe-pipeline), or streaming: no pipe op but
    `pipe.global_ptr` and `pipe.load_scalar`, the rest `llvm`, `arith`, `math`, `scf`, `vector`,
    `nvvm` and the index ops of `gpu`.

    **What holds afterwards.** The module holds `llvm` and `nvvm` ops only. Each kernel is an
    `llvm.func` with `nvvm.kernel`, `nvvm.reqntid` and, for pipe kernels,
    `fp4.dynamic_shared_bytes`. A `!pipe.global` operand is an `!llvm.ptr<1>`; a `!pipe.tensor_map`
    is a grid constant of 128 bytes passed by value, which TMA reads from parameter space.

    A pipe kernel runs like this:
    ```
    thread 0     prefetch tensor maps, initialize barriers, fence
    mma warp     allocate tensor memory
    all          barrier, read the tensor memory address
    load warp    one thread: wait empty, expect bytes, TMA and bulk loads that complete full
    mma warp     one thread: wait full, tcgen05.cp scales, tcgen05.mma, tcgen05.commit to empty
    4 warps      wait accumulator, tcgen05.ld, arithmetic, predicated stores, release
    all          barrier
    mma warp     free tensor memory
    ```

    ```mlir
    pipe.consumer_release %ab[%it] : !channel
    // becomes, for a channel whose consumer is the tensor core:
    %stage = arith.remui %it, %depth : i32
    %full = llvm.getelementptr inbounds %barriers[%stage] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<8 x i8>
    %empty = llvm.getelementptr inbounds %full[32] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    nvvm.tcgen05.commit %empty : !llvm.ptr<3>
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

#endif // FP4_CONVERSION_PIPETONVVM_PASSES_TD
