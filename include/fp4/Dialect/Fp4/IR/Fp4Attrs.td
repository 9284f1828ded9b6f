//===- Fp4Attrs.td - Formats, recipes, rounding, scale layouts ------------===//
#ifndef FP4_DIALECT_FP4_IR_FP4ATTRS_TD
#define FP4_DIALECT_FP4_IR_FP4ATTRS_TD

include "fp4/Dialect/Fp4/IR/Fp4Dialect.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/TensorEncoding.td"

class Fp4_I32Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::fp4";
  let genSpecializedAttr = 0;
}

def Fp4_Format : Fp4_I32Enum<"Format", "block-scaled 4-bit format", [
    I32EnumAttrCase<"NVFP4", 0, "nvfp4">,
    I32EnumAttrCase<"MXFP4", 1, "mxfp4">]>;

def Fp4_FormatAttr : EnumAttr<Fp4_Dialect, Fp4_Format, "format"> {
  let description = [{
    | format | data     | block | block scale | tensor scale |
    |--------|----------|-------|-------------|--------------|
    | nvfp4  | f4E2M1FN | 16    | f8E4M3FN    | fp32, derived from the tensor's amax |
    | mxfp4  | f4E2M1FN | 32    | f8E8M0FNU   | none |
  }];
  let assemblyFormat = "`<` $value `>`";
}

def Fp4_Recipe : Fp4_I32Enum<"Recipe", "order and guards of the fp32 operations in a quantizer", [
    I32EnumAttrCase<"TransformerEngine", 0, "transformer_engine">,
    I32EnumAttrCase<"TransformerEngine213", 1, "transformer_engine_2_13">,
    I32EnumAttrCase<"OcpFloor", 2, "ocp_floor">,
    I32EnumAttrCase<"OcpCeil", 3, "ocp_ceil">,
    I32EnumAttrCase<"OcpEven", 4, "ocp_even">,
    I32EnumAttrCase<"OcpRceil", 5, "ocp_rceil">]>;

def Fp4_RecipeAttr : EnumAttr<Fp4_Dialect, Fp4_Recipe, "recipe"> {
  let description = [{
    Libraries agree on what a block scale is and disagree on its last bit. A recipe names one order
    of IEEE fp32 operations (round to nearest even, subnormals kept, no contraction) with its
    guards; docs/Numerics.md has the formulas.

    | recipe                  | format | block scale before its cast |
    |-------------------------|--------|-----------------------------|
    | transformer_engine      | nvfp4  | `a_b * (S * fp32(1/6))`, TransformerEngine 2.14 and later |
    | transformer_engine_2_13 | nvfp4  | `(a_b / 6) * S`, TransformerEngine 2.8 to 2.13 |
    | ocp_floor               | mxfp4  | exponent of `a_b`, minus 2 (OCP MX v1.0) |
    | ocp_ceil                | mxfp4  | the same, plus 1 unless `a_b` is a power of two |
    | ocp_even                | mxfp4  | exponent of `a_b` rounded to one mantissa bit, minus 2 |
    | ocp_rceil               | mxfp4  | `a_b * fp32(1/6)` rounded up to a power of two |

    `a_b` is the block's amax; `S` is the tensor's encode scale, 2688 / amax.
  }];
  let assemblyFormat = "`<` $value `>`";
}

def Fp4_Rounding : Fp4_I32Enum<"Rounding", "how scaled elements become codes", [
    I32EnumAttrCase<"NearestEven", 0, "nearest_even">,
    I32EnumAttrCase<"Stochastic", 1, "stochastic">]>;

def Fp4_RoundingAttr : EnumAttr<Fp4_Dialect, Fp4_Rounding, "rounding"> {
  let description = [{
    `nearest_even`: to the nearest representable value, ties to the even code. `stochastic`: up
    with probability equal to the discarded fraction, from a Philox4x32-10 stream.
  }];
  let assemblyFormat = "`<` $value `>`";
}

def Fp4_Outputs : Fp4_I32Enum<"Outputs", "which orientations a quantizer writes", [
    I32EnumAttrCase<"Rowwise", 0, "rowwise">,
    I32EnumAttrCase<"Columnwise", 1, "columnwise">,
    I32EnumAttrCase<"Both", 2, "both">]>;

def Fp4_OutputsAttr : EnumAttr<Fp4_Dialect, Fp4_Outputs, "outputs"> {
  let description = [{
    `rowwise` blocks run along the columns of the input. `columnwise` blocks run along its rows and
    the output is transposed, so that its contraction axis is contiguous. `both` writes the
    rowwise pair and then the columnwise pair in one pass over the input.
  }];
  let assemblyFormat = "`<` $value `>`";
}

def Fp4_ScaleLayout : Fp4_I32Enum<"ScaleLayout", "layout of block scales in memory", [
    I32EnumAttrCase<"Tiled128x4", 0, "tiled_128x4">]>;

def Fp4_ScaleLayoutAttr : EnumAttr<Fp4_Dialect, Fp4_ScaleLayout, "scale_layout",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let description = [{
    The encoding of a scale tensor. No encoding means row-major. `tiled_128x4` is the layout that
    tcgen05 reads: tiles of 128 rows by 4 blocks, 512 bytes each, rows padded to 128 and blocks to
    4 with zero bytes. With `T = ceil(B/4)` tiles per row of tiles, the scale of row `r` and block
    `b` is the byte `((r/128)*T + b/4)*512 + (r%32)*16 + (r%128)/32*4 + b%4`.
  }];
  let assemblyFormat = "`<` $value `>`";
}

#endif // FP4_DIALECT_FP4_IR_FP4ATTRS_TD
