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
    Weights and their scales as `#fp4.weight_layout<wgmma>` describes them: tiles of 128 rows by 64
    columns, each with its codes and then its scales, so that one copy loads what one step of a GEMM
    needs, and few instructions make 16-bit floats of it. `fp4.unprepack` is the inverse.

    The scales of NVFP4 change their form: exponents get another bias, and magnitudes below 2^-6 are
    no longer subnormal. An element whose scale is zero becomes zero, because no scale in that form
    is.

    The result type of MXFP4 weights names the activations beside them: 16-bit floats, or
    activations of e4m3. The latter has tiles of 128 by 128, whose rows have a power of two each,
    and the elements of a block relative to it are normal numbers of e4m3. A row becomes NaN in a
    tile where its nonzero blocks have scales that are more than 2^11 apart, or where a scale is
    NaN: the range is checked, and no weight is rounded. A block of zeros may get another scale.
    With `#fp4.weight_layout<wgmma_rows>` a row has the same power of two in all tiles, and is NaN
    in all of them where its scales are too far apart.

    | operand | element type | shape | layout |
    |---------|--------------|-------|--------|
    | data    | f4E2M1FN     | N x K, N a multiple of 128, K of 64, or of 128 for e4m3 | row-major |
    | scales  | f8E4M3FN (nvfp4), f8E8M0FNU (mxfp4) | N x K/block | row-major |
    | result  | i8           | N/128 x K/64 x 4608 (nvfp4) or 4352 (mxfp4); N/128 x K/128 x 8704 (mxfp4, for e4m3) | `#fp4.weight_layout<wgmma>`, or of 8704 bytes `<wgmma_rows>` |

    ```mlir
    %p = fp4.prepack %q scaled %s {format = #fp4.format<nvfp4>}
        : (tensor<512x1024xf4E2M1FN>, tensor<512x64xf8E4M3FN>)
        -> tensor<4x16x4608xi8, #fp4.weight_layout<wgmma>>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$data, AnyRankedTensor:$scales, Fp4_FormatAttr:$format);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $data `scaled` $scales attr-dict `:` functional-type(operands, results)
  }];
}

def Fp4_UnprepackOp : Fp4_Op<"unprepack", [Fp4_InferTypes]> {
  let summary = "weights and scales back to row-major";
  let description = [{
    The operation is the inverse of `fp4.prepack`: the codes of a block are those that were packed,
    unless its scale is zero, and so are its scales. With tiles for e4m3, a block of zeros may have
    another scale, and all scales of a row that is NaN in a tile are NaN.

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
  let arguments = (ins AnyRankedTensor:$input, Fp4_FormatAttr:$format);
  let results = (outs AnyRankedTensor:$data, AnyRankedTensor:$scales);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

#endif // FP4_DIALECT_FP4_IR_FP4PREPACKOPS_TD
