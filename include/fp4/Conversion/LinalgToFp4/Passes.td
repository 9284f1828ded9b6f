//===- Passes.td - Block-scaled contractions of linalg to fp4 -------------===//
#ifndef FP4_CONVERSION_LINALGTOFP4_PASSES_TD
#define FP4_CONVERSION_LINALGTOFP4_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertLinalgToFp4 : Pass<"convert-linalg-to-fp4", "::mlir::ModuleOp"> {
  let summary = "Make fp4 matmuls of block-scaled contractions in linalg.generic";
  let description = [{
    **Why.** Upstream has no named operation for a block-scaled GEMM in this release. Compilers
    write a GEMM as a `linalg.generic` over rows, columns, blocks and elements of a block.

    **Precondition.** Sides in blocks come from a `tensor.expand_shape` of their matrix, or have
    blocks of 32: packed rows of 16 elements have no buffer.

    **Postcondition.** Each such `linalg.generic` is a `fp4.matmul`, which has
    the order of sums of the tensor core, with a `fp4.swizzle_scales` for the scales of each side.
    One without reductions that multiplies numbers by their scales is a `fp4.dequantize`. A `linalg`
    operation on f4E2M1FN, or with `arith.scaling_extf` or `arith.scaling_truncf`, that is none of
    these is an error with the reason and a remedy.

    Patterns that match:

    - loops in any order: those of both sides are batches, those of one side its rows, of which
      several are collapsed, and reductions are K. The sides are indexed by (b.., m.., ko, kb) and
      (b.., n.., ko, kb), their scales by (b.., m.., ko) and (b.., n.., ko), the result by
      (b.., m.., n..). K may be one loop: then scales are indexed by (b.., m.., k floordiv 32).
    - a left side of bf16, or f16 beside nvfp4, without scales.
    - an output that is zero: a `linalg.fill` or an `arith.constant`.
    - a body that adds the product of the numbers to the output: each side with its scale in
      `arith.scaling_extf`, or in `arith.extf` and `arith.mulf`, in any association, in f32; a side by
      its scale in bf16 too, which is exact.
    - blocks of 32 and f8E8M0FNU scales are mxfp4, blocks of 16 and f8E4M3FN scales are nvfp4.
    - A `linalg.generic` behind it that multiplies each element with one f32 and alone reads the
      result becomes alpha; it may end in an `arith.truncf` to the type of the result.

    ```mlir
    // fp4-opt --convert-linalg-to-fp4 --canonicalize
    #a = affine_map<(m, n, o, i) -> (m, o, i)>
    #b = affine_map<(m, n, o, i) -> (n, o, i)>
    #sa = affine_map<(m, n, o, i) -> (m, o)>
    #sb = affine_map<(m, n, o, i) -> (n, o)>
    #y = affine_map<(m, n, o, i) -> (m, n)>
    func.func @f(%a: tensor<64x4x32xf4E2M1FN>, %b: tensor<128x4x32xf4E2M1FN>,
                 %sa: tensor<64x4xf8E8M0FNU>, %sb: tensor<128x4xf8E8M0FNU>) -> tensor<64x128xf32> {
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<64x128xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
      %y = linalg.generic
          {indexing_maps = [#a, #b, #sa, #sb, #y],
           iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
          ins(%a, %b, %sa, %sb : tensor<64x4x32xf4E2M1FN>, tensor<128x4x32xf4E2M1FN>,
              tensor<64x4xf8E8M0FNU>, tensor<128x4xf8E8M0FNU>)
          outs(%init : tensor<64x128xf32>) {
      ^bb0(%x: f4E2M1FN, %w: f4E2M1FN, %sx: f8E8M0FNU, %sw: f8E8M0FNU, %acc: f32):
        %xf = arith.scaling_extf %x, %sx : f4E2M1FN, f8E8M0FNU to f32
        %wf = arith.scaling_extf %w, %sw : f4E2M1FN, f8E8M0FNU to f32
        %p = arith.mulf %xf, %wf : f32
        %s = arith.addf %acc, %p : f32
        linalg.yield %s : f32
      } -> tensor<64x128xf32>
      return %y : tensor<64x128xf32>
    }
    // becomes
    ...
    %ta = fp4.swizzle_scales %sa : ...
    %tb = fp4.swizzle_scales %sb : ...
    ...
    %lhs = fp4.scaled %am, %ta : ...
    %rhs = fp4.scaled %bm, %tb : ...
    %y = fp4.matmul %lhs, %rhs : ...
    return %y : tensor<64x128xf32>
    ```
  }];
  let statistics = [Statistic<"numConverted", "converted", "Contractions converted">];
  let dependentDialects = ["::fp4::Fp4Dialect", "::mlir::tensor::TensorDialect"];
}

#endif // FP4_CONVERSION_LINALGTOFP4_PASSES_TD
