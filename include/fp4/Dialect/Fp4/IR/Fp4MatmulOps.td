//===- Fp4MatmulOps.td - The matmul of the fp4 dialect -------------------===//
//
// Fp4Ops.td includes this file behind the classes that it uses.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_FP4_IR_FP4PRODUCTOPS_TD
#define FP4_DIALECT_FP4_IR_FP4PRODUCTOPS_TD

def Fp4_BlockScaledMatmulOp
    : Fp4_TensorOp<"blockscaled_matmul", [AttrSizedOperandSegments, IsolatedFromAbove]> {
  let summary = "matmul of two block-scaled matrices";
  let description = [{
    ```
    result[m, n] = alpha * sum over k of lhs[m, k] * lhs_scales[m, k / block]
                                       * rhs[n, k] * rhs_scales[n, k / block]
    ```

    Products are exact, and the sum is fp32 in the order of the tensor core (numerics.md has its
    model). Alpha multiplies the sum in fp32: a scalar, M x 1 for rows, or 1 x N for columns. The
    steps of `epilogue`, such as `#fp4.epilogue<relu>`, follow in fp32. One rounding then gives the
    element type of the result. docs/reference/semantics.md has the formulas of all attributes
    below.

    An epilogue region, which fp4-fuse makes of the elementwise operations that follow a matmul,
    comes before this rounding. The arguments of the region are the element in fp32 and elements of
    `epilogue_inputs`: of a scalar, of M x 1 that of the row, of 1 x N that of the column, of M x N
    that of both, and in a matmul of G groups of G x 1 x N that of the column in the row of the
    group. The region yields the element of the result.

    Format `fp8_block128` multiplies FP8 as DeepSeek-V3 does, with row-major f32 scales of 1 x 128
    elements of lhs and of 128 x 128 of rhs.

    Operands of two formats of OCP MX have `rhs_format` besides: `format` is then that of lhs.

    With `split_k` K is cut into that many ranges, whose sums are added in fp32; with `split_rows`
    only where lhs has at most so many rows.

    With `stream_k` = [W, m, n] W workers add up equal parts of K of the shared tiles of m x n
    elements, so that W CTAs, or pairs of CTAs, take equally long.

    With `groups` or `offsets` the matmul multiplies several matrices that are stacked in lhs, and
    every group has N rows of its own in rhs. A batched matmul has groups of equal size, and an
    empty group has no result. Scales are lists of tiles as `fp4.quantize` with `groups` writes
    them. Plans are chosen by `expected_rows`, the rows of a group. Rows of no group are zero, or
    with `unspecified_rows` not written.

    `arithmetic` names the order of the sums (`#fp4.matmul_arithmetic`).

    With `rhs2` the op is a dual GEMM: two GEMMs of one lhs, whose elements in fp32 are the first
    two arguments of the epilogue region. `alpha2` is the alpha of the second. A gated unit such as
    SwiGLU, silu(x w1^T) * (x w3^T), thus reads lhs once and has one result.

    With `quantize_recipe` the elements that the epilogue region yields are quantized as
    `fp4.quantize` does, to the results `quantized`; a recipe with a tensor scale takes
    `quantize_amax`. With `with_amax` the last result is the largest magnitude of the elements,
    where a NaN counts as 0. The elements themselves are the first result where there is one result
    more than that.

    The elements of a lhs of bf16 or f16 are factors as they are, beside quantized weights.
    `fp4.prepack` gives a rhs that contains its scales, in a layout that its type names. A lhs of
    nvfp4 or mxfp4 with scales beside prepacked weights becomes bf16 before the GEMM, exactly but
    for magnitudes from 2^128 on.

    A lhs of f8E4M3FN without scales is the activation beside MXFP4 weights, and alpha the divisor
    of its elements. Beside weights with scales the result is that of a lhs of mxfp8_e4m3 with unit
    scales. Beside weights that are prepacked for it, for each block of 128 k in ascending order, an
    fp32 accumulator takes `fma(sum of the block, 2^e, acc)` with the power of two of the row of
    weights in its tile. With `fast_accumulation` the tensor core adds all of K, or of a split-K
    part, and the power of two of the row multiplies the sum.

    | operand    | element type | shape | layout |
    |------------|--------------|-------|--------|
    | lhs        | f4E2M1FN, f8E4M3FN, f8E5M2; or bf16, f16, f8E4M3FN without scales | M x K, K a multiple of the block; M may be dynamic, and N and K of matmuls of any N and K (docs/reference/semantics.md) | row-major |
    | lhs_scales | f8E4M3FN (nvfp4), f8E8M0FNU (mxfp4, mxfp8); or none | M x K/block; of groups, a list of tiles | tiled_128x4 |
    | rhs        | f4E2M1FN, f8E4M3FN, f8E5M2 | N x K; of G groups, (G * N) x K | row-major |
    | rhs, prepacked | i8       | N/128 x K/64, or K/128 beside f8E4M3FN, x bytes of a tile, with its scales in it; of G groups, G * N/128 | #fp4.weight_layout |
    | rhs_scales | f8E4M3FN (nvfp4), f8E8M0FNU (mxfp4, mxfp8); none beside a prepacked rhs | N x K/block; of groups, a list of tiles | tiled_128x4 |
    | fp8_block128: data, scales | f8E4M3FN, f32 | as above, K a multiple of 16; as (C51) has it | row-major |
    | alpha      | f32          | scalar, M x 1 or 1 x N; of groups, a scalar or G, or beside a lhs without scales M x 1 | row-major |
    | epilogue_inputs | f32, bf16, f16 | scalar, M x 1, 1 x N or M x N; of groups also G x 1 x N or G x 1 x 1 | row-major |
    | offsets    | i64          | G + 1 | row-major |
    | rhs2, rhs2_scales | as rhs, rhs_scales | as rhs, rhs_scales | |
    | alpha2     | f32          | as alpha | row-major |
    | quantize_amax | f32       | scalar | row-major |
    | result     | f32, bf16, f16, f8E4M3FN | M x N | row-major |
    | amax       | f32          | scalar | row-major |
    | quantized  | as the results of `fp4.quantize` | as they | as they |

    ```mlir
    %y = fp4.blockscaled_matmul %q scaled %sw, %qw scaled %tw alpha %alpha
        {format = #fp4.format<nvfp4>}
        : (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
           tensor<512x1024xf4E2M1FN>, tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
           tensor<f32>) -> tensor<?x512xbf16>
    %z = fp4.blockscaled_matmul %q scaled %sw, %qw scaled %tw epilogue(%bias) {
    ^bb0(%sum: f32, %b: f32):
      %biased = arith.addf %sum, %b : f32
      fp4.yield %biased : f32
    } {format = #fp4.format<nvfp4>}
        : (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
           tensor<512x1024xf4E2M1FN>, tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
           tensor<1x512xf32>) -> tensor<?x512xf32>
    ```

    Activations of 8 bits with weights of 4:

    ```mlir
    %y = fp4.blockscaled_matmul %q scaled %sw, %qw scaled %tw
        {format = #fp4.format<mxfp8_e4m3>, rhs_format = #fp4.format<mxfp4>}
        : (tensor<?x1024xf8E4M3FN>, tensor<?x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
           tensor<512x1024xf4E2M1FN>, tensor<512x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
        -> tensor<?x512xbf16>
    ```

    The gate of a dual GEMM, quantized for the next GEMM:

    ```mlir
    %p, %t = fp4.blockscaled_matmul %q scaled %sw, %qw scaled %tw with %qw scaled %tw
        epilogue() {
    ^bb0(%up: f32, %gate: f32):
      %product = arith.mulf %up, %gate : f32
      %rounded = arith.truncf %product : f32 to bf16
      fp4.yield %rounded : bf16
    } {format = #fp4.format<mxfp4>, quantize_recipe = #fp4.recipe<ocp_floor>}
        : (tensor<?x1024xf4E2M1FN>, tensor<?x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
           tensor<512x1024xf4E2M1FN>, tensor<512x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
           tensor<512x1024xf4E2M1FN>, tensor<512x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
        -> (tensor<?x512xf4E2M1FN>, tensor<?x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
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
  // Null scales and a null alpha where there are none.
  let builders = [
    OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$lhs_scales, "::mlir::Value":$rhs,
                   "::mlir::Value":$rhs_scales, "::mlir::Value":$alpha, "::fp4::Format":$format,
                   "::mlir::Type":$elementType)>];
  let extraClassDeclaration = [{
    /// The format of rhs: that of lhs where it has none of its own.
    ::fp4::Format getFormatOfRhs() { return getRhsFormat().value_or(getFormat()); }
    /// An operand with tiled scales has elements of 8 bits: the kind of tcgen05.mma and mma.sync
    /// that has elements of every width (C190).
    bool isMXF8F6F4();
    /// Has an f32 scale for 1 x 128 elements of lhs and 128 x 128 of rhs.
    bool hasF32Scales() { return ::fp4::hasF32Scales(getFormat()); }
    /// Returns true when the lhs is f8E4M3FN without scales, beside mxfp4 weights with scales: the
    /// tensor core multiplies as if the lhs had unit scales.
    bool hasUnitScales();
    /// Returns true when the rhs is a result of `fp4.prepack`, which contains the scales.
    bool hasPrepackedRhs() { return !getRhsScales(); }
    /// Returns true for a grouped GEMM, each of whose groups has rows of lhs.
    bool isGrouped() { return getGroups() || getOffsets(); }
    /// Number of groups; 1 without groups.
    int64_t getNumGroups();
    /// Columns of the result: the rows that a group has in rhs.
    int64_t getColumns();
    /// Most split-K parts: the last CTA to arrive adds all of their sums.
    static constexpr int64_t kMaxSplits = 32;
    /// Split-K parts of a matmul of `rows` rows.
    int64_t splitsOfRows(int64_t rows) {
      bool isCut = rows <= int64_t(getSplitRows().value_or(INT64_MAX));
      return isCut ? int64_t(getSplitK().value_or(1)) : 1;
    }
    /// Partial sums of split-K are reduced, of all elements or of those of some tiles.
    bool addsRanges() { return getSplitK().value_or(1) > 1 || getStreamK(); }
    /// Threads multiply, and not the tensor core.
    bool usesFma() { return getArithmetic() == ::fp4::MatmulArithmetic::Fma; }
    /// Instructions of the tensor core have 96 elements of K.
    bool usesK96() { return getArithmetic() == ::fp4::MatmulArithmetic::TensorCoreK96; }
    /// Sums of e4m3 stay in the accumulator of the tensor core for a split-K part.
    bool accumulatesFast() { return getArithmetic() == ::fp4::MatmulArithmetic::FastAccumulation; }
    /// Most rows of a matmul with arithmetic fma: each thread has the sums of all of them.
    static constexpr int64_t kMaxFmaRows = 8;
    /// Returns true for a dual GEMM, two GEMMs of one lhs.
    bool isDual() { return static_cast<bool>(getRhs2()); }
    /// The type of the elements: that of the result, or the type that the epilogue region yields.
    ::mlir::Type getElementType();
    /// The matrix of elements; null where it is not stored.
    ::mlir::TypedValue<::mlir::RankedTensorType> getResult();
    /// Data and scales of each orientation; none without `quantize_recipe`.
    ::mlir::ResultRange getQuantized();
    /// Return true when the recipe of the results writes rows, or columns.
    bool quantizesRows();
    bool quantizesColumns();
    /// The amax; null without `with_amax`.
    ::mlir::Value getAmax();
    /// Returns true when the op has one result, the matrix of elements.
    bool hasOnlyElements() { return !getQuantizeRecipe() && !getWithAmax(); }
  }];
}

def Fp4_YieldOp : Op<Fp4_Dialect, "yield", [Pure, Terminator, HasParent<"BlockScaledMatmulOp">]> {
  let summary = "element of a result";
  let description = [{
    Ends the epilogue region of a matmul.

    ```mlir
    fp4.yield %x : bf16
    ```
  }];
  let arguments = (ins AnyFloat:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

#endif // FP4_DIALECT_FP4_IR_FP4PRODUCTOPS_TD
