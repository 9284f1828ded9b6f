//===- Passes.td - Operations of tensor cores to sequential kernels -------===//
#ifndef FP4_CONVERSION_FP4TOPIPE_PASSES_TD
#define FP4_CONVERSION_FP4TOPIPE_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertFp4ToPipe : Pass<"convert-fp4-to-pipe", "::mlir::ModuleOp"> {
  let summary = "Tile what runs on tensor cores into sequential pipe kernels";
  let description = [{
    **Why.** Says what a CTA computes, by the sizes, schedule and roles of the plan. Nothing here
    knows of warps, barriers or stages.

    **Precondition.** Operations whose plan (`fp4-plan-kernels`) is of family tile_gemm or
    tile_transform, on tensors, in a `func.func`. The order of this pass and convert-fp4-to-gpu is
    free.

    **Postcondition.** None of these operations is left. Each became a result buffer
    (`gpu.alloc`), kernel arguments (`pipe.make_tensor_map`, `pipe.view`), a
    `gpu.launch_func` of as many CTAs as there are output tiles, at most as many as fit on the GPU
    at once, and a kernel `@<function>_matmul_<n>::@kernel` in the sequential form. Tensors and
    buffers (BufferTypes.h) are joined by unrealized casts.

    Ragged edges: rows and columns beyond the matrices load as zero and are not stored; in the last
    k tile only the scale blocks that exist are copied and only the matrix steps that see data run.

    The transforming quantizer takes tiles of 64 rows by 128 columns of its input, in strips along
    the rows (TransformKernel.cpp):

    ```mlir
    // fp4-opt --fp4-set-target --fp4-plan-kernels --convert-fp4-to-pipe
    !codes = tensor<512x256xf4E2M1FN>
    !scales = tensor<512x16xf8E4M3FN>
    func.func @f(%x: tensor<256x512xbf16>, %amax: tensor<f32>) -> (!codes, !scales) {
      %q, %s = fp4.quantize %x amax %amax
          {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
           outputs = #fp4.outputs<columnwise>,
           columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>}
          : (tensor<256x512xbf16>, tensor<f32>) -> (!codes, !scales)
      return %q, %s : !codes, !scales
    }
    // becomes
    ...
    %a = pipe.load_entry %amax : !pipe.global<f32> -> f32
    %h = pipe.hadamard_matrix signs 55272 -> !pipe.shared<16x16xbf16, swizzle_32B>
    ...
    pipe.for_each_work %c, %strip in (%num_c, %strips) schedule #pipe.static_persistent<along_m> {
      ...
      scf.for %i = %c0 to %tiles step %c1 : i32 {
        ...
        %tile = pipe.load %map[%row, %column] : ...
        %acc = pipe.accumulator : !pipe.tmem<128x64xf32>
        pipe.mma %acc, %tile, %h : ...
        ...
        %v = pipe.read %acc[%zero] : !pipe.tmem<128x64xf32> -> tensor<128x64xf32, #pipe.distribution<lanes>>
        %r = arith.truncf %v : ...
        %codes, %scales = pipe.quantize_blocks %r amax %a {columnwise, ...} : ...
        pipe.store %codes, %q[%column, %row] : ...
        ...
        pipe.store %scales, %s[%column, %block] : ...
      }
    }
    ```

    A matmul becomes loads, copies of scales and one `pipe.mma` for each k tile:

    ```mlir
    // fp4-opt --fp4-set-target --fp4-plan-kernels --convert-fp4-to-pipe
    !data = tensor<256x512xf4E2M1FN>
    !scales = tensor<256x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
    !operand = !fp4.scaled<nvfp4, !data, !scales>
    func.func @f(%a: !data, %sa: !scales, %b: !data, %sb: !scales) -> tensor<256x256xf32> {
      %lhs = fp4.scaled %a, %sa : !operand
      %rhs = fp4.scaled %b, %sb : !operand
      %y = fp4.matmul %lhs, %rhs {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256]>}
          : (!operand, !operand) -> tensor<256x256xf32>
      return %y : tensor<256x256xf32>
    }
    // becomes
    ...
    pipe.for_each_work %m, %n in (%num_m, %num_n) schedule #pipe.static_persistent<along_m> {
      ...
      %acc = pipe.accumulator : !pipe.tmem<128x128xf32>
      ...
      scf.for %k = %c0 to %num_k step %c1 : i32 {
        ...
        %at = pipe.load %a[%row, %column] : ...
        %bt = pipe.load %b[%first, %column] : ...
        %sat = pipe.load %sa[%m, %block] : ...
        %tsa = pipe.copy_scales %sat : ...
        %sbt = pipe.load %sb[%sn, %block] : ...
        %tsb = pipe.copy_scales %sbt : ...
        ...
        pipe.mma %acc, %at scaled %tsa, %bt scaled %tsb accumulate %more : ...
      }
      ...
      scf.for %c = %zero to %c128 step %c32 : i32 {
        %v = pipe.read %acc[%c] : !pipe.tmem<128x128xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
        %yc = arith.addi %first, %c : i32
        %staged = pipe.stage %v : tensor<128x32xf32, #pipe.distribution<lanes>> -> !pipe.shared<128x32xf32, swizzle_128B>
        pipe.store %staged, %y[%row, %yc] : ...
      }
    }
    ```
  }];
  let statistics = [
    Statistic<"numKernels", "kernels", "Operations converted">,
  ];
  let dependentDialects = ["::fp4::pipe::PipeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect", "::mlir::vector::VectorDialect"];
}

#endif // FP4_CONVERSION_FP4TOPIPE_PASSES_TD
