//===- Passes.td - Matrix multiplication to sequential pipe kernels -------===//
#ifndef FP4_CONVERSION_FP4TOPIPE_PASSES_TD
#define FP4_CONVERSION_FP4TOPIPE_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertFp4ToPipe : Pass<"convert-fp4-to-pipe", "::mlir::ModuleOp"> {
  let summary = "Tile block-scaled matrix multiplications into sequential pipe kernels";
  let description = [{
    **Why.** Decides what a block of the GPU computes: 128 rows by `tile_n` columns of the result, k
    in tiles of 256, output tiles dealt to the resident blocks in turn. Nothing here knows of warps,
    barriers or stages.

    **Precondition.** `fp4.blockscaled_matmul` on tensors, in a `func.func`.

    **What holds afterwards.** No `fp4.blockscaled_matmul` is left. Each became a result buffer
    (`gpu.alloc`), kernel arguments (`pipe.make_tensor_map`, `pipe.global_view`), a
    `gpu.launch_func` of as many blocks as there are output tiles, at most one per multiprocessor,
    and a kernel `@<function>_matmul_<n>::@kernel` in the sequential form. Tensors and buffers
    (BufferTypes.h) are joined by unrealized casts.

    Ragged edges: rows and columns beyond the matrices load as zero and are not stored; in the last
    k tile only the scale blocks that exist are copied and only the matrix steps that see data run.

    **Tile columns.** `tile_n` of the op where given, else the cheapest of 64, 128, 192, 256 by the
    model in CostModel.h.

    ```mlir
    scf.for %tile = %first to %total step %blocks : i32 {
      %m, %n = pipe.tile_coord %tile in(%num_m, %num_n)
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
  let options = [
    Option<"target", "target", "std::string", "\"sm_100a\"", "Target whose facts decide">,
  ];
  let statistics = [
    Statistic<"numKernels", "kernels", "Matrix multiplications converted">,
  ];
  let dependentDialects = ["::fp4::pipe::PipeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

#endif // FP4_CONVERSION_FP4TOPIPE_PASSES_TD
