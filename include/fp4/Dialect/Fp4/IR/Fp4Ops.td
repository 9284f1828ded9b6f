//===- Fp4Ops.td - The fp4 operations -------------------------------------===//
//
// docs/reference/semantics.md lists the constraints (C1), .. of each operation; verifiers and tests have the
// labels.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_FP4_IR_FP4OPS_TD
#define FP4_DIALECT_FP4_IR_FP4OPS_TD

include "fp4/Dialect/Fp4/IR/Fp4Attrs.td"
include "fp4/Dialect/Fp4/IR/Fp4Plan.td"
include "fp4/Dialect/Fp4/IR/Fp4Target.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// A misspelled attribute is an error and does not leave the operation with a default.
def Fp4_KnownAttributes : NativeOpTrait<"KnownAttributes"> {
  let cppNamespace = "::fp4";
}

class Fp4_Op<string mnemonic, list<Trait> traits = []>
    : Op<Fp4_Dialect, mnemonic,
         !listconcat([Pure, Fp4_KnownAttributes,
                      DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
                                                ["reifyResultShapes"]>],
                     traits)> {
  let hasVerifier = 1;
}

// An operation whose canonicalizations include those of Fp4Canonicalize.cpp.
class Fp4_TensorOp<string mnemonic, list<Trait> traits = []> : Fp4_Op<mnemonic, traits> {
  let hasCanonicalizer = 1;
}

// Result types follow from operands; the verifier reports a mismatch in its own words, so any is
// let in.
defvar Fp4_InferTypes = InferTypeOpAdaptorWithIsCompatible;

def Fp4_AmaxOp : Fp4_TensorOp<"amax", [Fp4_InferTypes]> {
  let summary = "largest magnitude of a matrix";
  let description = [{
    ```
    amax = max(0, max over all i, j of |input[i, j]|)
    ```

    The tensor scale of NVFP4 derives from this value. A matrix without numbers gives zero. NaN
    elements are skipped, or, with `nan` propagate, make the amax NaN; recipes that propagate NaN
    need the latter.

    With `groups` or `offsets` (docs/reference/semantics.md) the result has an amax for each group,
    which is 0 for one without rows. With `per_row` it has one for each row, and with `per_column`
    one for each column.

    | operand | element type   | shape                        |
    |---------|----------------|------------------------------|
    | input   | bf16, f16, f32 | M x K, each may be dynamic   |
    | offsets | i64            | G + 1, or G x 2 of ranges    |
    | amax    | f32            | scalar; G with `groups` or `offsets`; M with `per_row`; K with `per_column` |

    ```mlir
    %ax = fp4.amax %x : tensor<?x1024xbf16> -> tensor<f32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input,
                       Optional<AnyRankedTensor>:$offsets,
                       DefaultValuedAttr<Fp4_NanPolicyAttr, "NanPolicy::Drop">:$nan,
                       OptionalAttr<DenseI64ArrayAttr>:$groups,
                       UnitAttr:$per_row, UnitAttr:$per_column);
  let results = (outs AnyRankedTensor:$amax);
  let assemblyFormat = [{
    $input (`offsets` $offsets^)? attr-dict `:` type($input) (`,` type($offsets)^)? `->` type($amax)
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Value":$input, CArg<"::fp4::NanPolicy", "NanPolicy::Drop">:$nan), [{
      build($_builder, $_state, input, /*offsets=*/::mlir::Value(), nan,
            /*groups=*/::mlir::DenseI64ArrayAttr());
    }]>];
  let extraClassDeclaration = [{
    /// Has an amax for each row or column.
    bool hasLines() { return getPerRow() || getPerColumn(); }
    /// Has an amax for each group of rows.
    bool isGrouped() { return getGroups() || getOffsets(); }
  }];
}

// The common part of fp4.hadamard and fp4.hadamard_amax.
class Fp4_HadamardBase<string mnemonic> : Fp4_TensorOp<mnemonic, [Fp4_InferTypes]> {
  dag transform = (ins AnyRankedTensor:$input,
                       DefaultValuedAttr<I64Attr, "16">:$size,
                       DefaultValuedAttr<I64Attr, "1">:$dimension,
                       DefaultValuedAttr<I64Attr, "0xD7E8">:$sign_mask,
                       DefaultValuedAttr<Fp4_HadamardArithmeticAttr,
                                         "HadamardArithmetic::Butterfly">:$arithmetic);
  let extraClassDeclaration = [{
    /// The transform without its dimension.
    ::fp4::HadamardAttr getTransform() {
      return ::fp4::HadamardAttr::get(getContext(), getSize(), getSignMask(), getArithmetic(),
                                      /*roundToBF16=*/true);
    }
  }];
}

def Fp4_HadamardOp : Fp4_HadamardBase<"hadamard"> {
  let summary = "random Hadamard transform of groups of elements";
  let description = [{
    For every group `x` of `size` consecutive elements along `dimension`:

    ```
    y[j] = fp32(size^(-1/2)) * sum over i of s[i] * (-1)^popcount(i & j) * x[i]
    s[i] = -1 if bit i mod 16 of sign_mask is set, else +1
    ```

    `arithmetic` says how the sum is computed: `butterfly` in fp32, in stages of ascending stride,
    and `tensor_core` exactly with one rounding to fp32. The result is rounded to bf16. The default
    sign mask is that of TransformerEngine. If the contraction axes of both operands of a matmul are
    transformed with the same signs, the result stays the same, up to rounding.

    | operand | element type | shape                                              |
    |---------|--------------|----------------------------------------------------|
    | input   | bf16         | M x K, the extent of `dimension` a multiple of size |
    | result  | bf16         | as input                                           |

    ```mlir
    %r = fp4.hadamard %x {dimension = 0 : i64} : tensor<256x1024xbf16> -> tensor<256x1024xbf16>
    ```
  }];
  let arguments = transform;
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}

def Fp4_HadamardAmaxOp : Fp4_HadamardBase<"hadamard_amax"> {
  let summary = "largest magnitude of a matrix and of its Hadamard transform, in one pass";
  let description = [{
    ```
    before = fp4.amax(input)        after = fp4.amax(fp4.hadamard(input))
    ```

    The operation has the attributes of both and does not store the transformed matrix.

    | operand | element type | shape                                              |
    |---------|--------------|----------------------------------------------------|
    | input   | bf16         | M x K, the extent of `dimension` a multiple of size |
    | before  | f32          | scalar; G with `groups`                            |
    | after   | f32          | scalar; G with `groups`                            |

    ```mlir
    %ax, %ay = fp4.hadamard_amax %x {dimension = 0 : i64}
        : tensor<256x1024xbf16> -> tensor<f32>, tensor<f32>
    ```
  }];
  let arguments = !con(transform,
      (ins DefaultValuedAttr<Fp4_NanPolicyAttr, "NanPolicy::Drop">:$nan,
           OptionalAttr<DenseI64ArrayAttr>:$groups));
  let results = (outs AnyRankedTensor:$before, AnyRankedTensor:$after);
  let assemblyFormat = [{
    $input attr-dict `:` type($input) `->` type($before) `,` type($after)
  }];
}

def Fp4_QuantizeOp : Fp4_TensorOp<"quantize", [AttrSizedOperandSegments, Fp4_InferTypes]> {
  let summary = "matrix to fp4 data and block scales";
  let description = [{
    With `a_b` the amax of a block and `amax` that of the tensor, recipe `transformer_engine`
    (NVFP4) computes in fp32, each operation rounded to nearest even:

    ```
    S      = min(2688 / amax, FLT_MAX)     or 1 where amax = 0 or S = 0;  2688 = 448 * 6
    scale  = e4m3(a_b * (S * fp32(1/6)))
    factor = min(1 / (fp32(scale) * (1 / S)), FLT_MAX)
    data   = e2m1(fp32(input) * factor)
    ```

    and the `ocp_*` recipes (MXFP4), with `scale` the byte of a power of two:

    ```
    data   = e2m1(fp32(input) * 2^(127 - scale))
    ```

    The two casts saturate. docs/reference/numerics.md has every recipe, its source, and the rules for NaN,
    infinity and zero; `numerics::quantizeMatrix` is this operation on the host.

    | operand | element type | shape |
    |---------|--------------|-------|
    | input   | bf16, f16, f32 | M x K, each may be dynamic; mxfp4: K a multiple of 32 |
    | amax    | f32          | scalar, G with `groups` or `offsets`, M with `per_row` (columnwise: K); exactly for recipes with a tensor scale |
    | columnwise_amax | f32  | as amax, K with `per_row`; of the columnwise outputs where they differ |
    | rng     | i64          | 2: Philox seed and offset; stochastic rounding only |
    | offsets | i64          | G + 1, or G x 2 of ranges; rowwise outputs only |
    | data    | f4E2M1FN     | M x K (columnwise: K x M) |
    | scales  | f8E4M3FN (nvfp4), f8E8M0FNU (mxfp4), f32 (fp8_block128) | M x ceil(K/block) (columnwise: K x ceil(M/block)) |
    | transposed | as data and scales | the columnwise pair when `outputs` is `both`, else none |

    `outputs`: `columnwise` blocks run along the rows of the input and the output is transposed;
    `both` writes the rowwise pair, then the columnwise pair, in one pass.

    A scale result is row-major or, if its type says so, in `#fp4.scale_layout<tiled_128x4>`; it is
    then written directly in this layout, with zero padding. An NVFP4 row whose length is not a
    multiple of 16 ends in a shorter block.

    `block` is the shape of the elements that share a scale: `array<i64: 1, 16>` for NVFP4 and
    `array<i64: 1, 32>` for MXFP4 when absent; NVFP4 also has `array<i64: 16, 16>`, whose scale is
    written to each of its 16 rows.

    Format `fp8_block128` has row-major f32 scales, of 1 x 128 elements, of `array<i64: 128, 128>`,
    or of whole rows, `array<i64: 1, K>`: scale = max(a_b, 1e-4) / 448, with `power_of_two = up`
    rounded up to one; data = e4m3(x * (1 / scale)).

    `hadamard` transforms the input of the rowwise outputs along dimension 1 and
    `columnwise_hadamard` that of the columnwise outputs along dimension 0, as `fp4.hadamard` does,
    before anything else; `amax` and `columnwise_amax` are those of the transformed input.

    `rounding` stochastic takes 8 bits of Philox4x32-10 per element; `philox` says which bits
    (docs/reference/numerics.md). One quantization uses one value of the offset.

    `groups` are the numbers of rows of several matrices that are stacked in `input`. Each group is
    quantized by itself with its own amax: `amax` and `columnwise_amax` have one number per group.
    Data and row-major scales have the same place as without groups. Tiled scales restart with each
    group: the result has type `tensor<(128 * T) x 4>` and holds the T scale tiles of all groups in
    order, each group padded by itself.

    `offsets` are the rows of groups where only the device knows them. The list of tiles then has
    room for any groups, (floor(M/128) + G) * ceil(B/4) tiles of rows of B blocks, of which the
    first are used and the others are zero. Codes and row-major scales of rows of no group are zero,
    or with `unspecified_rows` whatever they are.

    `per_row` gives every row of each output an amax of its own: those of the rows of the input, and
    for columnwise outputs those of its columns.

    ```mlir
    %q, %s = fp4.quantize %x amax %ax
        {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
        : (tensor<?x1024xbf16>, tensor<f32>) -> (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>)
    ```

    The tokens of three experts, of which the second has none:

    ```mlir
    %ag = fp4.amax %tokens {groups = array<i64: 130, 0, 62>} : tensor<192x512xbf16> -> tensor<3xf32>
    %qg, %sg = fp4.quantize %tokens amax %ag
        {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
         groups = array<i64: 130, 0, 62>}
        : (tensor<192x512xbf16>, tensor<3xf32>)
        -> (tensor<192x512xf4E2M1FN>, tensor<3072x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    ```

    The tokens of three experts whose numbers of rows are on the device:

    ```mlir
    %ao = fp4.amax %tokens offsets %rows : tensor<192x512xbf16>, tensor<4xi64> -> tensor<3xf32>
    %qo, %so = fp4.quantize %tokens amax %ao offsets %rows
        {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
        : (tensor<192x512xbf16>, tensor<3xf32>, tensor<4xi64>)
        -> (tensor<192x512xf4E2M1FN>, tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    ```

    A quantization of a gradient in two orientations, as TransformerEngine trains with them:

    ```mlir
    %q, %s, %qt, %st = fp4.quantize %x amax %ax columnwise_amax %ay rng %rng
        {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
         outputs = #fp4.outputs<both>, rounding = #fp4.rounding<stochastic>,
         columnwise_hadamard = #fp4.hadamard<size = 16, sign_mask = 0xD7E8>}
        : (tensor<256x1024xbf16>, tensor<f32>, tensor<f32>, tensor<2xi64>)
        -> (tensor<256x1024xf4E2M1FN>, tensor<256x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
            tensor<1024x256xf4E2M1FN>, tensor<1024x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input,
                       Optional<AnyRankedTensor>:$amax,
                       Optional<AnyRankedTensor>:$columnwise_amax,
                       Optional<AnyRankedTensor>:$rng,
                       Optional<AnyRankedTensor>:$offsets,
                       Fp4_FormatAttr:$format,
                       Fp4_RecipeAttr:$recipe,
                       DefaultValuedAttr<Fp4_RoundingAttr, "Rounding::NearestEven">:$rounding,
                       DefaultValuedAttr<Fp4_OutputsAttr, "Outputs::Rowwise">:$outputs,
                       OptionalAttr<DenseI64ArrayAttr>:$block,
                       OptionalAttr<Fp4_HadamardAttr>:$hadamard,
                       OptionalAttr<Fp4_HadamardAttr>:$columnwise_hadamard,
                       DefaultValuedAttr<Fp4_PhiloxAttr, "Philox::Element">:$philox,
                       OptionalAttr<DenseI64ArrayAttr>:$groups,
                       UnitAttr:$per_row, UnitAttr:$unspecified_rows);
  let results = (outs AnyRankedTensor:$data, AnyRankedTensor:$scales,
                      Variadic<AnyRankedTensor>:$transposed);
  let assemblyFormat = [{
    $input (`amax` $amax^)? (`columnwise_amax` $columnwise_amax^)? (`rng` $rng^)?
    (`offsets` $offsets^)? attr-dict `:` functional-type(operands, results)
  }];
  let builders = [
    // Rowwise, with row-major scales; the default recipe of the format where none is given.
    OpBuilder<(ins "::mlir::Value":$input, "::mlir::Value":$amax, "::fp4::Format":$format,
                   CArg<"::fp4::RecipeAttr", "{}">:$recipe)>];
  let extraClassDeclaration = [{
    /// Elements along the contraction axis that share a scale.
    int64_t getBlockSize() { return ::fp4::blockSize(getFormat()); }
    /// Blocks are 16 x 16, or 128 x 128 under an f32.
    bool hasSquareBlocks() { return getBlock() && getBlock()->front() != 1; }
    /// Blocks are under an f32.
    bool hasF32Scales() { return ::fp4::hasF32Scales(getFormat()); }
    /// Is several quantizers, of which each has rows of the input.
    bool isGrouped() { return getGroups() || getOffsets(); }
    bool hasRowwise() { return getOutputs() != ::fp4::Outputs::Columnwise; }
    bool hasColumnwise() { return getOutputs() != ::fp4::Outputs::Rowwise; }
    /// The columnwise results, null where there are none.
    ::mlir::Value getColumnwiseData();
    ::mlir::Value getColumnwiseScales();
    /// The tiled type of the scales of one orientation whose row-major type is `scales`: theirs
    /// with a layout, or, with groups, a list of tiles.
    ::mlir::RankedTensorType getTiledType(::mlir::RankedTensorType scales, bool columnwise);
  }];
}

def Fp4_DequantizeOp : Fp4_TensorOp<"dequantize"> {
  let summary = "fp4 data and block scales to a matrix";
  let description = [{
    ```
    nvfp4:  result[i, j] = data[i, j] * ((scales[i, j / 16] * amax) * fp32(1/2688))
    mxfp4:  result[i, j] = data[i, j] * scales[i, j / 32]
    ```

    The result is computed in fp32 and rounded once to its element type. `recipe` is the recipe that
    wrote the data (default: transformer_engine or ocp_floor). The decision `dequantize` of the
    recipe gives the factor in the outer parentheses, and 2688 is 6 times its `e4m3_max`. There is
    no `amax` if the recipe has no tensor scale.

    | operand | element type | shape |
    |---------|--------------|-------|
    | data    | f4E2M1FN     | M x K; mxfp4: K a multiple of 32 |
    | scales  | f8E4M3FN (nvfp4), f8E8M0FNU (mxfp4) | M x ceil(K/block), row-major |
    | amax    | f32          | scalar, or M with `per_row`; exactly for recipes with a tensor scale |
    | result  | bf16, f16, f32 | M x K |

    ```mlir
    %y = fp4.dequantize %q scaled %s amax %ax {format = #fp4.format<nvfp4>}
        : (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>, tensor<f32>) -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$data, AnyRankedTensor:$scales,
                       Optional<AnyRankedTensor>:$amax, Fp4_FormatAttr:$format,
                       OptionalAttr<Fp4_RecipeAttr>:$recipe,
                       UnitAttr:$per_row);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $data `scaled` $scales (`amax` $amax^)? attr-dict `:` functional-type(operands, results)
  }];
  // A null amax where the recipe has no tensor scale.
  let builders = [
    OpBuilder<(ins "::mlir::Value":$data, "::mlir::Value":$scales, "::mlir::Value":$amax,
                   "::fp4::Format":$format, "::mlir::Type":$elementType)>];
  let extraClassDeclaration = [{
    /// The decisions of the recipe, or of the format's default.
    ::fp4::numerics::Recipe resolveRecipe();
  }];
}

def Fp4_SwizzleScalesOp : Fp4_TensorOp<"swizzle_scales", [Fp4_InferTypes]> {
  let summary = "block scales from row-major to the layout a matmul reads";
  let description = [{
    Stores the same scales as `#fp4.scale_layout<tiled_128x4>` describes; padding bytes are zero.
    With `offsets` rows are those of groups, and the result is the list of their tiles that
    `fp4.quantize` with `offsets` writes.

    | operand | element type        | shape | layout      |
    |---------|---------------------|-------|-------------|
    | input   | f8E4M3FN, f8E8M0FNU | R x B | row-major   |
    | offsets | i64                 | G + 1, or G x 2 of ranges | row-major |
    | result  | as input            | R x B, or a list of tiles | tiled_128x4 |

    ```mlir
    %sw = fp4.swizzle_scales %s
        : tensor<?x64xf8E4M3FN> -> tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, Optional<AnyRankedTensor>:$offsets);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input (`offsets` $offsets^)? attr-dict `:` type($input) (`,` type($offsets)^)?
    `->` type($result)
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Value":$input), [{
      build($_builder, $_state, input, /*offsets=*/::mlir::Value());
    }]>];
  let hasFolder = 1;
}

def Fp4_UnswizzleScalesOp : Fp4_TensorOp<"unswizzle_scales", [Fp4_InferTypes]> {
  let summary = "block scales back to row-major";
  let description = [{
    The operation is the inverse of `fp4.swizzle_scales`. Padding bytes are not read.

    | operand | element type        | shape | layout      |
    |---------|---------------------|-------|-------------|
    | input   | f8E4M3FN, f8E8M0FNU | R x B | tiled_128x4 |
    | result  | as input            | R x B | row-major   |

    ```mlir
    %s = fp4.unswizzle_scales %sw
        : tensor<256x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> -> tensor<256x64xf8E4M3FN>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

def Fp4_StackScalesOp : Fp4_Op<"stack_scales", [Fp4_InferTypes]> {
  let summary = "scales of several row ranges as those of the whole";
  let description = [{
    The result has the rows of the shards, one shard after the other, in the layout of the shards.
    The ranks of a tensor- or sequence-parallel group quantize their rows by themselves and pad
    them. From their scales this operation makes the scales of the whole: it removes the padding
    between shards and pads the whole at its end.

    | operand | element type        | shape   | layout |
    |---------|---------------------|---------|--------|
    | shards  | f8E4M3FN, f8E8M0FNU | R_i x B | row-major or tiled_128x4, all the same |
    | result  | as the shards       | sum of R_i x B | as the shards |

    The data of the shards needs no operation: an all-gather stacks it.

    ```mlir
    %s = fp4.stack_scales %s0, %s1
        : (tensor<100x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
           tensor<60x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
        -> tensor<160x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$shards);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$shards attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def Fp4_InterleaveShardsOp : Fp4_Op<"interleave_shards", [Fp4_InferTypes]> {
  let summary = "matrices that an all-gather stacked, side by side";
  let description = [{
    ```
    result[r, g * C + c] = input[g * R + r, c]        0 <= g < shards, 0 <= r < R, 0 <= c < C
    ```

    An all-gather stacks columnwise quantized shards, K x M_rank, to (shards * K) x M_rank, but a
    GEMM needs K x (shards * M_rank). The data, and the row-major scales before
    `fp4.swizzle_scales`, are stacked alike.

    | operand | element type | shape |
    |---------|--------------|-------|
    | input   | f4E2M1FN, f8E4M3FN, f8E8M0FNU | shards * R x C, row-major; C even for f4E2M1FN |
    | result  | as input     | R x shards * C |

    ```mlir
    %qt = fp4.interleave_shards %gathered {shards = 4 : i64}
        : tensor<2048x64xf4E2M1FN> -> tensor<512x256xf4E2M1FN>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, I64Attr:$shards);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

def Fp4_MatmulAlphaOp : Fp4_TensorOp<"matmul_alpha", [Fp4_InferTypes]> {
  let summary = "the tensor scales of two NVFP4 operands as one factor of their matmul";
  let description = [{
    ```
    alpha = (lhs_amax * rhs_amax) * fp32(1 / (2688 * 2688))
    ```

    The factor is computed in fp32, from the left. `lhs_recipe` and `rhs_recipe` are the recipes of
    the operands (default: transformer_engine): 2688 is 6 times their `e4m3_max`, which is smaller
    for four-over-six. The decision `alpha` of the recipes can select another formula: the product
    of the decode scales, or 1 over the product of the encode scales.

    One of the operands may have an amax for each of its rows. Then alpha has one number for each
    row, or each column, of the matmul. With `per_group` both operands and alpha have one for each
    group.

    | operand  | element type | shape  |
    |----------|--------------|--------|
    | lhs_amax | f32          | scalar, or M; with `per_group` G |
    | rhs_amax | f32          | scalar, or N; with `per_group` G |
    | alpha    | f32          | scalar; M x 1 or 1 x N where an operand has amaxes of rows; G |

    ```mlir
    %alpha = fp4.matmul_alpha %ax, %aw : tensor<f32>, tensor<f32> -> tensor<f32>
    ```

    ```mlir
    %alpha = fp4.matmul_alpha %ax, %aw {rhs_recipe = #fp4.recipe<four_over_six>}
        : tensor<f32>, tensor<f32> -> tensor<f32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$lhs_amax, AnyRankedTensor:$rhs_amax,
                       OptionalAttr<Fp4_RecipeAttr>:$lhs_recipe,
                       OptionalAttr<Fp4_RecipeAttr>:$rhs_recipe, UnitAttr:$per_group);
  let results = (outs AnyRankedTensor:$alpha);
  let assemblyFormat =
      "$lhs_amax `,` $rhs_amax attr-dict `:` type($lhs_amax) `,` type($rhs_amax) `->` type($alpha)";
  let builders = [
    OpBuilder<(ins "::mlir::Value":$lhs_amax, "::mlir::Value":$rhs_amax), [{
      build($_builder, $_state, lhs_amax, rhs_amax, ::fp4::RecipeAttr(), ::fp4::RecipeAttr());
    }]>];
  let extraClassDeclaration = [{
    /// The recipes that quantized the operands.
    ::fp4::numerics::Recipe getLhsDecisions();
    ::fp4::numerics::Recipe getRhsDecisions();
  }];
}

include "fp4/Dialect/Fp4/IR/Fp4MatmulOps.td"
include "fp4/Dialect/Fp4/IR/Fp4LegacyOps.td"
include "fp4/Dialect/Fp4/IR/Fp4PrepackOps.td"
include "fp4/Dialect/Fp4/IR/Fp4AttentionOps.td"
include "fp4/Dialect/Fp4/IR/Fp4RoutingOps.td"

#endif // FP4_DIALECT_FP4_IR_FP4OPS_TD
