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

// In the order of numerics::BlockFormat.
def Fp4_Format : Fp4_I32Enum<"Format", "block-scaled format", [
    I32EnumAttrCase<"NVFP4", 0, "nvfp4">,
    I32EnumAttrCase<"MXFP4", 1, "mxfp4">,
    I32EnumAttrCase<"MXFP6E2M3", 2, "mxfp6_e2m3">,
    I32EnumAttrCase<"MXFP6E3M2", 3, "mxfp6_e3m2">,
    I32EnumAttrCase<"MXFP8E4M3", 4, "mxfp8_e4m3">,
    I32EnumAttrCase<"MXFP8E5M2", 5, "mxfp8_e5m2">,
    I32EnumAttrCase<"FP8Block128", 6, "fp8_block128">]>;

def Fp4_FormatAttr : EnumAttr<Fp4_Dialect, Fp4_Format, "format"> {
  let description = [{
    | format | data     | block | block scale | tensor scale |
    |--------|----------|-------|-------------|--------------|
    | nvfp4  | f4E2M1FN | 16    | f8E4M3FN    | fp32, derived from the tensor's amax |
    | mxfp4  | f4E2M1FN | 32    | f8E8M0FNU   | none |
    | mxfp6_e2m3 | f6E2M3FN | 32 | f8E8M0FNU  | none |
    | mxfp6_e3m2 | f6E3M2FN | 32 | f8E8M0FNU  | none |
    | mxfp8_e4m3 | f8E4M3FN | 32 | f8E8M0FNU  | none |
    | mxfp8_e5m2 | f8E5M2   | 32 | f8E8M0FNU  | none |
    | fp8_block128 | f8E4M3FN | 128, or 128 x 128 | f32 | none |

    Data of 6 bits has a byte per element with the code in its low bits. `fp4.quantize` accepts all
    formats, and `fp4.dequantize` all but the last. [Routes](routes.md#the-pairs) has the formats of
    GEMMs.
  }];
  let assemblyFormat = "`<` $value `>`";
}

def Fp4_RecipeAttr : AttrDef<Fp4_Dialect, "Recipe"> {
  let mnemonic = "recipe";
  let description = [{
    Libraries agree on what a block scale is and differ in its last bit. A recipe is the order of
    the IEEE fp32 operations (round to nearest even, subnormals kept, no contraction) together with
    their guards. The attribute is written as the name of a recipe of lib/Numerics, followed by the
    decisions that differ from this recipe:

    ```mlir
    #fp4.recipe<transformer_engine>
    #fp4.recipe<transformer_engine, guard = none, scale_floor = 0.015625>
    ```

    recipes.md lists the recipes, formulas and decisions. Two attributes are equal if their
    decisions are; the printed name is the one that needs the fewest decisions after it.
  }];
  let parameters = (ins AttrParameter<"::fp4::numerics::Recipe", "canonical",
                                      "const ::fp4::numerics::Recipe &">:$decisions);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  // There is no builder from text, which may be no recipe: numerics::parseRecipe reads one.
  let skipDefaultBuilders = 1;
  let builders = [AttrBuilder<(ins "const ::fp4::numerics::Recipe &":$recipe), [{
    return $_get($_ctxt, ::fp4::numerics::canonical(recipe));
  }]>];
  let extraClassDeclaration = [{
    /// The canonical text.
    std::string getText() const { return ::fp4::numerics::spell(getDecisions()); }
  }];
}

def Fp4_EpilogueAttr : AttrDef<Fp4_Dialect, "Epilogue"> {
  let mnemonic = "epilogue";
  let description = [{
    Steps that a matmul applies to every element in fp32, in their order: after alpha, and before
    the element is rounded to the type of the result. lib/Numerics/Epilogue.cpp defines each step by
    its name; the model of the GEMM, its bound and its kernel read the same description.

    | step | element |
    |------|---------|
    | relu | max(x, +0), and a NaN stays a NaN |

    ```mlir
    #fp4.epilogue<relu>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::fp4::numerics::EpilogueOp">:$steps);
  let hasCustomAssemblyFormat = 1;
}

def Fp4_Rounding : Fp4_I32Enum<"Rounding", "rounding of scaled elements to codes", [
    I32EnumAttrCase<"NearestEven", 0, "nearest_even">,
    I32EnumAttrCase<"Stochastic", 1, "stochastic">]>;

def Fp4_RoundingAttr : EnumAttr<Fp4_Dialect, Fp4_Rounding, "rounding"> {
  let description = [{
    `nearest_even` rounds to nearest, ties to the even code. `stochastic` rounds up with a
    probability equal to the discarded fraction, from a Philox4x32-10 stream.
  }];
  let assemblyFormat = "`<` $value `>`";
}

def Fp4_Outputs : Fp4_I32Enum<"Outputs", "orientations that a quantizer writes", [
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

def Fp4_NanPolicy : Fp4_I32Enum<"NanPolicy", "NaN in a maximum of magnitudes", [
    I32EnumAttrCase<"Drop", 0, "drop">,
    I32EnumAttrCase<"Propagate", 1, "propagate">]>;

def Fp4_NanPolicyAttr : EnumAttr<Fp4_Dialect, Fp4_NanPolicy, "nan_policy"> {
  let description = [{
    `drop`: a NaN counts as 0. `propagate`: any NaN makes the maximum NaN.
  }];
  let assemblyFormat = "`<` $value `>`";
}

def Fp4_HadamardArithmetic : Fp4_I32Enum<"HadamardArithmetic", "order of the sums of a Hadamard transform", [
    I32EnumAttrCase<"Butterfly", 0, "butterfly">,
    I32EnumAttrCase<"TensorCore", 1, "tensor_core">]>;

def Fp4_HadamardArithmeticAttr : EnumAttr<Fp4_Dialect, Fp4_HadamardArithmetic,
                                          "hadamard_arithmetic"> {
  let description = [{
    `butterfly` sums in fp32, in stages of `(a + b, a - b)` with strides 1, 2, 4, ..., and scales
    last, as a kernel does in registers. `tensor_core` scales the exact sum and rounds it once to
    fp32, as a matrix unit with bf16 operands does. Either result is then rounded to bf16.
  }];
  let assemblyFormat = "`<` $value `>`";
}

def Fp4_HadamardAttr : AttrDef<Fp4_Dialect, "Hadamard"> {
  let mnemonic = "hadamard";
  let description = [{
    The random Hadamard transform that `fp4.hadamard` describes, as a part of another operation. The
    values make a round trip through bf16, or, with `rounding = none`, stay in fp32 as in
    TransformerEngine's fast math. Parameters that are left out have the values shown:

    ```mlir
    #fp4.hadamard<size = 16, sign_mask = 0xD7E8, arithmetic = butterfly, rounding = bf16>
    ```
  }];
  let parameters = (ins "int64_t":$size, "uint64_t":$signMask,
                        "::fp4::HadamardArithmetic":$arithmetic, "bool":$roundToBF16);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The options of the transform in lib/Numerics.
    ::fp4::numerics::HadamardOptions options() const;
  }];
}

def Fp4_KeyOrderAttr : AttrDef<Fp4_Dialect, "KeyOrder"> {
  let mnemonic = "key_order";
  let description = [{
    The order in which `fp4.attention` takes keys: in blocks of `in_blocks` keys, the last one
    first. The number of a row that its powers of two are relative to stays until the exponent of
    its maximum has grown by more than `growth`.

    ```mlir
    #fp4.key_order<in_blocks = 128, growth = 8.0>
    ```
  }];
  let parameters = (ins "int64_t":$in_blocks, "::mlir::FloatAttr":$growth);
  let assemblyFormat = "`<` `in_blocks` `=` $in_blocks `,` `growth` `=` custom<Growth>($growth) `>`";
  let genVerifyDecl = 1;
}

def Fp4_MatmulArithmetic : Fp4_I32Enum<"MatmulArithmetic", "order of the sums of a matmul", [
    I32EnumAttrCase<"TensorCore", 0, "tensor_core">,
    I32EnumAttrCase<"Fma", 1, "fma">,
    I32EnumAttrCase<"TensorCoreK96", 2, "tensor_core_k96">,
    I32EnumAttrCase<"FastAccumulation", 3, "fast_accumulation">,
    I32EnumAttrCase<"TensorCoreDoubleK", 4, "tensor_core_double_k">]>;

def Fp4_MatmulArithmeticAttr : EnumAttr<Fp4_Dialect, Fp4_MatmulArithmetic,
                                         "matmul_arithmetic"> {
  let description = [{
    `tensor_core` sums as the tensor core of the target does. `fma` sums the products of a block
    exactly, and adds block after block in fp32 with fused multiply-adds, in 32 lanes that are added
    at the end: what threads without a tensor core do. `tensor_core_k96` sums 96 products in an
    instruction, where `tensor_core` sums 64: sm_103a and sm_107a have it. `tensor_core_double_k`
    sums 128 of 4 bits, or 64 of 8 bits, at twice the rate: sm_107a has it, and it reads the padding
    of scales up to its K, which must be zero. `fast_accumulation` leaves the sums of e4m3 in the
    accumulator of the tensor core for a whole split-K part, where `tensor_core` adds those of 128 k
    in fp32 (docs/reference/numerics.md has all five).
  }];
  let assemblyFormat = "`<` $value `>`";
}

def Fp4_SplitPolicy
    : Fp4_I32Enum<"SplitPolicy", "choice of the split-K factors of a matmul",
                  [I32EnumAttrCase<"Fastest", 0, "fastest">, I32EnumAttrCase<"Fixed", 1, "fixed">]>;

def Fp4_WorkAttr : AttrDef<Fp4_Dialect, "Work"> {
  let mnemonic = "work";
  let description = [{
    The shares of a matmul that CTAs have. Members that are left out divide nothing:

    | member | meaning |
    |--------|---------|
    | `split_k` | K is cut into that many ranges, whose sums are added in fp32. `fastest` and `fixed` leave the factor to `fp4-choose-splits`; cases of `dispatch` have some by rows |
    | `stream_k` = [W, m, n] | W workers add up equal parts of K of the shared tiles of m x n elements, so that W CTAs, or pairs of CTAs, take equally long |
    | `groups` | rows of the groups of a grouped GEMM |
    | `expected_rows` | rows of a group of `offsets`, by which plans are chosen |
    | `unspecified_rows` | rows of no group of `offsets` are not written, and else zero |

    ```mlir
    #fp4.work<split_k = 4>
    #fp4.work<split_k = fastest>
    #fp4.work<groups = [130, 0, 62]>
    ```
  }];
  let parameters = (ins "std::optional<int64_t>":$splitK,
      "std::optional<::fp4::SplitPolicy>":$splitPolicy,
      ArrayRefParameter<"int64_t">:$streamK, ArrayRefParameter<"int64_t">:$groups,
      "std::optional<int64_t>":$expectedRows, "bool":$unspecifiedRows);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Most split-K parts: the last CTA to arrive adds all of their sums.
    static constexpr int64_t kMaxSplits = 32;
  }];
}

def Fp4_Philox : Fp4_I32Enum<"Philox", "assignment of random words to elements", [
    I32EnumAttrCase<"Element", 0, "element">,
    I32EnumAttrCase<"TransformerEngine", 1, "transformer_engine">]>;

def Fp4_PhiloxAttr : EnumAttr<Fp4_Dialect, Fp4_Philox, "philox"> {
  let description = [{
    The mapping from elements to counters of Philox4x32-10 (numerics.md has both). `element`
    depends only on the place of the element in the output, so no tiling changes a bit.
    `transformer_engine` is the mapping of TransformerEngine's vector-blockwise kernel.
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

def Fp4_WeightLayout : Fp4_I32Enum<"WeightLayout", "layout of prepacked weights in memory", [
    I32EnumAttrCase<"Wgmma", 0, "wgmma">,
    I32EnumAttrCase<"WgmmaRows", 1, "wgmma_rows">]>;

def Fp4_WeightLayoutAttr : EnumAttr<Fp4_Dialect, Fp4_WeightLayout, "weight_layout",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let description = [{
    The encoding of prepacked weights, the tiles that `fp4.prepack` makes. `wgmma` is for tensor
    cores that take 64 rows of weights from the registers of a warpgroup: a tile has 16 bytes of
    codes for each of two times 128 threads, and then the scales of its rows. With `wgmma_rows` a
    row has the same power of two in all of its tiles (`include/fp4/Numerics/ByteWeights.h`). The
    law of tiles is `include/fp4/ISA/WeightLayout.h`.
  }];
  let assemblyFormat = "`<` $value `>`";
}

def Fp4_LaunchDependents : Fp4_I32Enum<"LaunchDependents", "place of griddepcontrol.launch_dependents", [
    I32EnumAttrCase<"BeforeWait", 0, "before_wait">,
    I32EnumAttrCase<"InTurn", 1, "in_turn">,
    I32EnumAttrCase<"BehindLoads", 2, "behind_loads">,
    I32EnumAttrCase<"AtEnd", 3, "at_end">,
    I32EnumAttrCase<"None", 4, "none">]>;

def Fp4_LaunchDependentsAttr : EnumAttr<Fp4_Dialect, Fp4_LaunchDependents, "launch_dependents"> {
  let description = [{
    A kernel whose plan has `pdl`, and so its launch `fp4.pdl`, executes `griddepcontrol.wait`, and
    lets the next one begin:

    | place | |
    |-------|-|
    | before_wait | before the wait: three launches may have CTAs |
    | in_turn | behind the wait |
    | behind_loads | behind the loads, up to a barrier |
    | at_end | nowhere: this kernel ends first |
    | none | of plans: no PDL |
  }];
  let assemblyFormat = "`<` $value `>`";
}

#endif // FP4_DIALECT_FP4_IR_FP4ATTRS_TD
