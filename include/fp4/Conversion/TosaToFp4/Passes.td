//===- Passes.td - Block-scaled operations of tosa to fp4 -----------------===//
#ifndef FP4_CONVERSION_TOSATOFP4_PASSES_TD
#define FP4_CONVERSION_TOSATOFP4_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertTosaToFp4 : Pass<"convert-tosa-to-fp4", "::mlir::ModuleOp"> {
  let summary = "Make fp4 operations of tosa's block-scaled casts and matmuls";
  let description = [{
    **Why.** TOSA has block-scaled operations, and upstream has no lowering of them.

    **Precondition.** None.

    **Postcondition.** None of the operations on the left is left. One that fp4 has not is
    an error with the reason and a remedy.

    | tosa | fp4 |
    |---|---|
    | `cast_to_block_scaled` | `quantize` with the recipe of the option |
    | `cast_from_block_scaled` | `dequantize` |
    | `matmul_t_block_scaled` | for each batch 2 x `swizzle_scales` and `scaled`, and `matmul`; one GEMM if the right side has batch 1 |

    Elementwise operations, casts and reshapes of tosa that are connected with these, such as `add`
    and `clamp` behind a GEMM, and the constants that they read, are operations of linalg, tensor
    and arith by upstream's patterns, so that `fp4-fuse` can put them into a kernel. Other
    operations of tosa stay.

    The TOSA specification does not say how `cast_to_block_scaled` derives a scale from a block. A
    program that has this operation therefore needs the option `recipe`, such as `recipe=ocp_ceil`.

    ```mlir
    // fp4-opt --convert-tosa-to-fp4=recipe=ocp_ceil
    func.func @f(%x: tensor<1x64x128xf32>, %w: tensor<1x256x128xf4E2M1FN>,
                 %sw: tensor<1x256x4xf8E8M0FNU>) -> tensor<1x64x256xf32> {
      %q, %s = tosa.cast_to_block_scaled %x {block_size = #tosa.block_size<BLOCK_SIZE_32>}
          : (tensor<1x64x128xf32>) -> (tensor<1x64x128xf4E2M1FN>, tensor<1x64x4xf8E8M0FNU>)
      %y = tosa.matmul_t_block_scaled %q, %s, %w, %sw
          {block_size = #tosa.block_size<BLOCK_SIZE_32>}
          : (tensor<1x64x128xf4E2M1FN>, tensor<1x64x4xf8E8M0FNU>, tensor<1x256x128xf4E2M1FN>,
             tensor<1x256x4xf8E8M0FNU>) -> tensor<1x64x256xf32>
      return %y : tensor<1x64x256xf32>
    }
    // becomes
    ...
    %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_ceil>} : ...
    ...
    %lhs = fp4.scaled %d, %ts : ...
    %rhs = fp4.scaled %w, %tw : ...
    %y = fp4.matmul %lhs, %rhs : ...
    ...
    ```
  }];
  let options = [
    Option<"recipe", "recipe", "std::string", /*default=*/"",
           "Recipe of the MX formats by which cast_to_block_scaled derives a scale">,
  ];
  let statistics = [Statistic<"numConverted", "converted", "Operations converted">];
  let dependentDialects = ["::fp4::Fp4Dialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // FP4_CONVERSION_TOSATOFP4_PASSES_TD
