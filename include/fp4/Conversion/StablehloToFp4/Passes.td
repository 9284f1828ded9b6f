//===- Passes.td - Block-scaled GEMMs of stablehlo to fp4 -----------------===//
#ifndef FP4_CONVERSION_STABLEHLOTOFP4_PASSES_TD
#define FP4_CONVERSION_STABLEHLOTOFP4_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertStablehloToFp4 : Pass<"convert-stablehlo-to-fp4", "::mlir::ModuleOp"> {
  let summary = "Make fp4 matmuls of the block-scaled GEMMs that jax exports";
  let description = [{
    **Why.** StableHLO has the types of block-scaled numbers and no operation on them. jax exports
    `jax.nn.scaled_matmul` as a custom call and `jax.lax.scaled_dot` as a composite; a program may
    dequantize its numbers itself before a `dot_general`.

    **Precondition.** The program is in MLIR's generic form
    (`module.operation.get_asm(print_generic_op_form=True)`), and is read with
    `--allow-unregistered-dialect`. The pass knows operations of stablehlo by their names and needs
    no stablehlo library.

    **Postcondition.** Each GEMM is 2 x `fp4.swizzle_scales` and `fp4.scaled`, and a `fp4.matmul`,
    for each batch unless the right side has one. The private functions that jax puts GEMMs into are
    inlined. Decompositions of composites that nobody calls are gone, and so are attributes of
    modules and functions that belong to dialects which are not loaded. An operation of stablehlo on
    numbers of 4 bits that is none of these is an error with the reason and a remedy.

    | stablehlo | condition |
    |---|---|
    | `custom_call @__op$block_scaled_dot` | 4 operands, in row-major layouts |
    | `composite "xla.scaled_dot"` | `dimension_numbers` contract the last dimension of the left side. A right side of K x N, which is the default of jax, comes from a `stablehlo.transpose` of N x K, as its scales do |
    | `dot_general` of `multiply(convert(data), convert(scales))` | the scales are repeated for their blocks by `broadcast_in_dim` and `reshape`, in bf16 or f32, which is exact; the left side may be bf16 or f16. K is last on both sides, or the right side is transposed |
    | `multiply` with a `broadcast_in_dim` of one f32 behind the GEMM | alpha |

    ```mlir
    // fp4-opt --allow-unregistered-dialect --convert-stablehlo-to-fp4
    func.func @f(%a: tensor<1x128x64xf4E2M1FN>, %b: tensor<1x256x64xf4E2M1FN>,
                 %sa: tensor<1x128x2xf8E8M0FNU>, %sb: tensor<1x256x2xf8E8M0FNU>)
        -> tensor<1x128x256xf32> {
      %y = "stablehlo.custom_call"(%a, %b, %sa, %sb) {call_target_name = "__op$block_scaled_dot"}
          : (tensor<1x128x64xf4E2M1FN>, tensor<1x256x64xf4E2M1FN>, tensor<1x128x2xf8E8M0FNU>,
             tensor<1x256x2xf8E8M0FNU>) -> tensor<1x128x256xf32>
      return %y : tensor<1x128x256xf32>
    }
    // becomes
    ...
    %lhs = fp4.scaled %am, %ta : ...
    %rhs = fp4.scaled %bm, %tb : ...
    %y = fp4.matmul %lhs, %rhs : ...
    ...
    ```
  }];
  let statistics = [Statistic<"numConverted", "converted", "Products converted">];
  let dependentDialects = ["::fp4::Fp4Dialect", "::mlir::tensor::TensorDialect"];
}

#endif // FP4_CONVERSION_STABLEHLOTOFP4_PASSES_TD
