//===- Passes.td - Streaming fp4 operations to GPU kernels ----------------===//
#ifndef FP4_CONVERSION_FP4TOGPU_PASSES_TD
#define FP4_CONVERSION_FP4TOGPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertFp4ToGPU : Pass<"convert-fp4-to-gpu", "::mlir::ModuleOp"> {
  let summary = "Lower amax, quantize, dequantize, scale swizzles and matmul_alpha to kernels";
  let description = [{
    **Why.** These operations stream through memory once and need no warp roles. Each becomes a
    kernel in which one thread handles blocks (16 or 32 elements) or 32-byte chunks with vector
    loads and stores, as many as the plan says.

    **Precondition.** Operations with a plan (`fp4-plan-kernels`), on tensors, in functions. The
    order of this pass and convert-fp4-to-pipe is free.

    **Postcondition.** Each lowered operation is a `gpu.launch_func` of a kernel of its own
    in a `gpu.module @<function>_<operation>_<number>`; its result is a `gpu.alloc` of the type that
    BufferTypes.h gives, joined to the remaining tensor operations by
    `builtin.unrealized_conversion_cast`. Constant `tensor<f32>` operands become one-element
    buffers. Kernels hold arith, scf, llvm, nvvm and vector operations and `pipe.view`. The
    fp32 arithmetic of a recipe is spelled out operation by operation. `fp4.matmul` is
    left for `convert-fp4-to-pipe`.

    An operation or a combination of attributes that has no kernel yet is an error that names what
    is supported.

    ```mlir
    // fp4-opt --fp4-set-target --fp4-plan-kernels --convert-fp4-to-gpu
    func.func @f(%x: tensor<64x32xbf16>) -> tensor<f32> {
      %amax = fp4.amax %x : tensor<64x32xbf16> -> tensor<f32>
      return %amax : tensor<f32>
    }
    // becomes
    ...
    gpu.module @f_amax_0 {
      ...
      gpu.func @kernel(%x: !pipe.global<64x32xbf16>, %amax: !pipe.global<f32>, %blocks: i32,
          %counters: !pipe.global<592xi32>) kernel attributes {known_block_size = array<i32: 512, 1, 1>} {
        ...
        gpu.return
      }
    }
    func.func @f(%x: tensor<64x32xbf16>) -> tensor<f32> {
      ...
      %b = gpu.alloc () : memref<f32>
      %amax = builtin.unrealized_conversion_cast %b : memref<f32> to tensor<f32>
      %xb = builtin.unrealized_conversion_cast %x : tensor<64x32xbf16> to memref<64x32xbf16>
      %g0 = pipe.view %xb : memref<64x32xbf16> -> !pipe.global<64x32xbf16>
      %g1 = pipe.view %b : memref<f32> -> !pipe.global<f32>
      ...
      %c = gpu.alloc () {fp4.counters} : memref<592xi32>
      %g2 = pipe.view %c : memref<592xi32> -> !pipe.global<592xi32>
      ...
      gpu.launch_func @f_amax_0::@kernel blocks in (%n, %c1, %c1) threads in (%c256, %c1, %c1)
          args(%g0 : !pipe.global<64x32xbf16>, %g1 : !pipe.global<f32>, %blocks : i32,
               %g2 : !pipe.global<592xi32>) {fp4.leads}
      return %amax : tensor<f32>
    }
    ```
  }];
  let options = [
    Option<"noArithmetic", "no-arithmetic", "bool", /*default=*/"false",
           "Keep loads and stores and drop the arithmetic of row-wise kernels: the twin that "
           "benchmarks time beside a kernel; results are garbage">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect", "::fp4::pipe::PipeDialect"
  ];
}

#endif // FP4_CONVERSION_FP4TOGPU_PASSES_TD
