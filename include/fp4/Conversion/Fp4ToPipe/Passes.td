//===- Passes.td - Operations of tensor cores to sequential kernels -------===//
#ifndef FP4_CONVERSION_FP4TOPIPE_PASSES_TD
#define FP4_CONVERSION_FP4TOPIPE_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertFp4ToPipe : Pass<"convert-fp4-to-pipe", "::mlir::ModuleOp"> {
  let summary = "Tile what runs on tensor cores into sequential pipe kernels";
  let description = [{
    **Why.** Decides what a block of the GPU computes: 128 rows by `tile_n` columns of the result, k
    in tiles of 256, output tiles dealt to the resident blocks in turn. Nothing here knows of warps,
    barriers or stages.

    **Precondition.** `fp4.blockscaled_matmul`, and `fp4.quantize` with outputs columnwise and a
    transform of arithmetic tensor_core, on tensors, in a `func.func`.

    **What holds afterwards.** No `fp4.blockscaled_matmul` is left. Each became a result buffer
    (`gpu.alloc`), kernel arguments (`pipe.make_tensor_map`, `pipe.global_view`), a
    `gpu.launch_func` of as many blocks as there are output tiles, at most one per multiprocessor,
    and a kernel `@<function>_matmul_<n>::@kernel` in the sequential form. Tensors and buffers
    (BufferTypes.h) are joined by unrealized casts.

    Ragged edges: rows and columns beyond the matrices load as zero and are not stored; in the last
    k tile only the scale blocks that exist are copied and only the matrix steps that see data run.

    The transforming quantizer takes tiles of 64 rows by 128 columns of its input, in strips along
    the rows (TransformKernel.cpp):

    ```mlir
    %h = pipe.hadamard_matrix signs 55272 -> !pipe.shared<16x16xbf16, swizzle_32B>
    pipe.for_each_work %c, %strip in (%num_c, %strips) schedule #pipe.static_persistent<along_m> {
      scf.for %i = %c0 to %tiles step %c1 : i32 {
        %x = pipe.load %map[%row, %column] : ...
        %acc = pipe.accumulator : !pipe.tmem<128x64xf32>
        pipe.mma_blockwise %acc, %x, %h : ...
        %v = pipe.read %acc[%c0] : !pipe.tmem<128x64xf32> -> vector<64xf32>
        %r = arith.truncf %v : vector<64xf32> to vector<64xbf16>
        %codes, %scales = pipe.quantize_blocks %r amax %a {recipe = ..., columnwise} : ...
        pipe.store %codes, %q[%column, %row] : ...
        pipe.store %scales, %s[%column, %block] : ...
      }
    }
    ```

    **Tile columns.** `tile_n` of the op where given, else the cheapest of 64, 128, 192, 256 by the
    model in CostModel.h.

    ```mlir
    pipe.for_each_work %m, %n in (%num_m, %num_n) schedule #pipe.static_persistent<along_m> {
      %acc = pipe.accumulator : !pipe.tmem<128x128xf32>
      scf.for %k = %c0 to %num_k step %c1 : i32 {
        %a = pipe.load ...     // and b, and both scales
        pipe.mma %acc, %a scaled %sa, %b scaled %sb accumulate %more : ...
      }
      scf.for %c = %c0 to %c128 step %c32 : i32 {
        %v = pipe.read %acc[%c] : !pipe.tmem<128x128xf32> -> vector<32xf32>
        pipe.store %v, %y[%row, %column] rows %m : vector<32xf32>, !pipe.global<?x512xf32>
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
                           "::mlir::vector::VectorDialect"];
}

#endif // FP4_CONVERSION_FP4TOPIPE_PASSES_TD
