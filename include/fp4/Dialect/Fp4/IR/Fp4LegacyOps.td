//===- Fp4LegacyOps.td - Former spellings of operations ------------------===//
//
// Operations of earlier releases that this release still reads. upgradeLegacyOps (Fp4Upgrade.h)
// rewrites them, and no other code makes or reads them. Arguments keep their order, by which
// bytecode stores them.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_FP4_IR_FP4LEGACYOPS_TD
#define FP4_DIALECT_FP4_IR_FP4LEGACYOPS_TD

def Fp4_LegacyMatmulOp
    : Op<Fp4_Dialect, "blockscaled_matmul",
         [Pure, Fp4_KnownAttributes, AttrSizedOperandSegments, IsolatedFromAbove]> {
  let summary = "former spelling of `fp4.matmul`";
  let description = [{
    `fp4-upgrade`, which every tool and pipeline runs first, makes an `fp4.matmul` of it. The next
    release does not read this spelling.

    ```mlir
    %y = fp4.blockscaled_matmul %q scaled %sw, %qw scaled %tw {format = #fp4.format<mxfp4>}
        : (tensor<?x1024xf4E2M1FN>, tensor<?x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
           tensor<512x1024xf4E2M1FN>, tensor<512x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
        -> tensor<?x512xbf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$lhs, Optional<AnyRankedTensor>:$lhs_scales,
                       AnyRankedTensor:$rhs, Optional<AnyRankedTensor>:$rhs_scales,
                       Optional<AnyRankedTensor>:$alpha,
                       Variadic<AnyRankedTensor>:$epilogue_inputs,
                       Optional<AnyRankedTensor>:$offsets,
                       Optional<AnyRankedTensor>:$rhs2,
                       Optional<AnyRankedTensor>:$rhs2_scales,
                       Optional<AnyRankedTensor>:$alpha2,
                       Optional<AnyRankedTensor>:$quantize_amax,
                       Fp4_FormatAttr:$format,
                       OptionalAttr<Fp4_FormatAttr>:$rhs_format,
                       OptionalAttr<Fp4_EpilogueAttr>:$epilogue,
                       OptionalAttr<I64Attr>:$split_k,
                       OptionalAttr<I64Attr>:$split_rows,
                       OptionalAttr<DenseI64ArrayAttr>:$stream_k,
                       OptionalAttr<DenseI64ArrayAttr>:$groups,
                       OptionalAttr<I64Attr>:$expected_rows,
                       UnitAttr:$unspecified_rows,
                       OptionalAttr<Fp4_MatmulArithmeticAttr>:$arithmetic,
                       OptionalAttr<Fp4_RecipeAttr>:$quantize_recipe,
                       OptionalAttr<Fp4_OutputsAttr>:$quantize_outputs,
                       UnitAttr:$with_amax);
  let regions = (region AnyRegion:$epilogue_body);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = [{
    $lhs (`scaled` $lhs_scales^)? `,` $rhs (`scaled` $rhs_scales^)? (`alpha` $alpha^)?
    (`offsets` $offsets^)? (`with` $rhs2^)? (`scaled` $rhs2_scales^)? (`alpha2` $alpha2^)?
    (`quantize_amax` $quantize_amax^)? (`epilogue` `(` $epilogue_inputs `)` $epilogue_body^)?
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // FP4_DIALECT_FP4_IR_FP4LEGACYOPS_TD
