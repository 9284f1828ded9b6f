//===- Passes.td - Kernel emission pass -----------------------------------===//
#ifndef FP4_TARGET_PASSES_TD
#define FP4_TARGET_PASSES_TD

include "mlir/Pass/PassBase.td"

def EmitKernels : Pass<"fp4-emit-kernels", "::mlir::ModuleOp"> {
  let summary = "Compile every gpu.module to PTX, and to a cubin where asked";
  let description = [{
    **Why.** Kernels reach the runtime as data: PTX text, which the simulator executes and the
    driver can compile, and a cubin, which the driver loads directly.

    **Precondition.** Every `gpu.module` holds only the `llvm` and `nvvm` dialects (the result of
    `convert-pipe-to-nvvm`).

    **Postcondition.** Each `gpu.module @m` is a `gpu.binary @m` with one object of format
    `assembly` (the PTX) and, with `emit=cubin`, a second one of format `bin`. The two objects carry
    the same kernel table, one entry per kernel, whose metadata dictionary holds
    - `block_size` (array of 3 x i32): the required threads of a CTA, from nvvm.reqntid;
    - `dynamic_shared_bytes` (i64): what the launch must ask for;
    - `ptx_version` (string) in the object's `properties`, together with `target`;
    and, with `emit=cubin`, what ptxas reported: `registers`, `spill_bytes`, `stack_bytes`,
    `shared_bytes` (static), `barriers` (all i64). Nothing is replaced when one kernel fails.

    `emit=cubin` needs ptxas of CUDA 12.9 or newer for sm_100a. The pass looks for ptxas in this
    order: the option `ptxas`, `$FP4_PTXAS`, `PATH`, then `bin/` below `$CUDA_HOME`, `$CUDA_PATH`
    and `$CUDA_ROOT`, then the wheel nvidia-cuda-nvcc beside the wheels of fp4.

    ```mlir
    // fp4-opt --fp4-set-target --fp4-emit-kernels
    gpu.module @scale_kernels {
      llvm.func @scale(%x: !llvm.ptr<1>, %n: i32)
          attributes {gpu.kernel, nvvm.kernel, nvvm.reqntid = array<i32: 256, 1, 1>} {
        llvm.store %n, %x : i32, !llvm.ptr<1>
        llvm.return
      }
    }
    // becomes
    ...
    gpu.binary @scale_kernels [#gpu.object<
        #nvvm.target<O = 3, chip = "sm_100a", features = "+ptx88">,
        properties = {ptx_version = "8.8", target = "sm_100a"},
        kernels = <[#gpu.kernel_metadata<"scale", !llvm.func<void (ptr<1>, i32)>,
          metadata = {block_size = array<i32: 256, 1, 1>, dynamic_shared_bytes = 0 : i64}>]>,
        assembly = "...">]
    ```
  }];
  let options = [
    Option<"emit", "emit", "std::string", /*default=*/"\"ptx\"", "Output: ptx or cubin">,
    Option<"ptxas", "ptxas", "std::string", /*default=*/"\"\"",
           "The ptxas to run (default: search)">,
    Option<"dumpDir", "dump-dir", "std::string", /*default=*/"\"\"",
           "Directory that receives <module>.ptx and <module>.cubin as well">
  ];
  let statistics = [
    Statistic<"numKernels", "kernels", "Number of kernels compiled">,
    Statistic<"numPtxBytes", "ptx-bytes", "Bytes of PTX text">
  ];
  let dependentDialects = ["::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect"];
}

#endif // FP4_TARGET_PASSES_TD
