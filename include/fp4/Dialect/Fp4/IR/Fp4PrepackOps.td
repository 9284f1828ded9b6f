//===- Fp4PrepackOps.td - Prepacked weights -------------------------------===//
//
// A part of Fp4Ops.td.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_FP4_IR_FP4PREPACKOPS_TD
#define FP4_DIALECT_FP4_IR_FP4PREPACKOPS_TD

def Fp4_PrepackOp : Fp4_Op<"prepack", [Fp4_InferTypes]> {
  let summary = "weights in the order in which a tensor core takes them from registers";
  let description = [{
    Weights in tiles of 128 rows by 64 columns, each with its codes and then its scales, so that one
    copy loads what a step of a GEMM needs, and few instructions make 16-bit floats of it.

    Zeros fill the last tiles. A matmul takes N from its result and K from its lhs. Each of `groups`
    stacked matrices has rows of tiles of its own.

    The scales of NVFP4 get an exponent with another bias, where none of them is subnormal. An
    element whose scale is zero becomes zero.

    MXFP4 weights for activations of e4m3 have tiles of 128 by 128. A row of a tile has a power of
    two, relative to which its elements are normal numbers of e4m3: no weight is rounded. The row
    becomes NaN there if its nonzero blocks have scales more than 2^11 apart, or if a scale is NaN.
    A block of zeros may get another scale. With `#fp4.weight_layout<wgmma_rows>` a row has the same
    power of two in all tiles, and is NaN in all of them.

    | operand | element type | shape | layout |
    |---------|--------------|-------|--------|
    | data    | f4E2M1FN     | N x K, K in whole scale blocks | row-major |
    | scales  | f8E4M3FN (nvfp4), f8E8M0FNU (mxfp4) | N x K/block | row-major |
    | result  | i8           | ceil(N/128) x ceil(K/64) x 4608 (nvfp4) or 4352 (mxfp4); ceil(N/128) x ceil(K/128) x 8704 (mxfp4, for e4m3) | `#fp4.weight_layout<wgmma>`, or of 8704 bytes `<wgmma_rows>` |

    ```mlir
    %p = fp4.prepack %q scaled %s {format = #fp4.format<nvfp4>}
        : (tensor<512x1024xf4E2M1FN>, tensor<512x64xf8E4M3FN>)
        -> tensor<4x16x4608xi8, #fp4.weight_layout<wgmma>>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$data, AnyRankedTensor:$scales, Fp4_FormatAttr:$format,
                   OptionalAttr<I64Attr>:$groups);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $data `scaled` $scales attr-dict `:` functional-type(operands, results)
  }];
}

def Fp4_UnprepackOp : Fp4_Op<"unprepack", [Fp4_InferTypes]> {
  let summary = "weights and scales back to row-major";
  let description = [{
    The inverse of `fp4.prepack`, but codes of blocks whose scale is zero are zero. With tiles for
    e4m3, a block of zeros may have another scale, and all scales of a row that is NaN in a tile are
    NaN.

    | operand | element type | shape | layout |
    |---------|--------------|-------|--------|
    | input   | i8           | as the result of `fp4.prepack` | `#fp4.weight_layout<wgmma>` or `<wgmma_rows>` |
    | data    | f4E2M1FN     | N x K | row-major |
    | scales  | f8E4M3FN (nvfp4), f8E8M0FNU (mxfp4) | N x K/block | row-major |

    ```mlir
    %q, %s = fp4.unprepack %p {format = #fp4.format<nvfp4>}
        : (tensor<4x16x4608xi8, #fp4.weight_layout<wgmma>>)
        -> (tensor<512x1024xf4E2M1FN>, tensor<512x64xf8E4M3FN>)
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, Fp4_FormatAttr:$format,
                   OptionalAttr<I64Attr>:$groups);
  let results = (outs AnyRankedTensor:$data, AnyRankedTensor:$scales);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

#endif // FP4_DIALECT_FP4_IR_FP4PREPACKOPS_TD
