//===- Fp4MatmulOps.td - The matmul of the fp4 dialect -------------------===//
//
// Fp4Ops.td includes this file behind the classes that it uses.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_FP4_IR_FP4PRODUCTOPS_TD
#define FP4_DIALECT_FP4_IR_FP4PRODUCTOPS_TD

include "fp4/Dialect/Fp4/IR/Fp4Types.td"

def Fp4_ScaledOp : Op<Fp4_Dialect, "scaled", [Pure, Fp4_KnownAttributes]> {
  let summary = "data and their block scales as one operand of a matmul";
  let description = [{
    The result stands for both tensors. The operation moves no data, and has no kernel: that of the
    matmul reads the two tensors.

    | operand | element type | shape | layout |
    |---------|--------------|-------|--------|
    | data    | f4E2M1FN, f6E2M3FN, f6E3M2FN, f8E4M3FN, f8E5M2: that of the format | rows x K | row-major |
    | scales  | f8E4M3FN (nvfp4), f8E8M0FNU (mxfp4, mxfp6, mxfp8), f32 (fp8_block128) | rows x K/block; of groups, a list of tiles | tiled_128x4; of fp8_block128 row-major |

    ```mlir
    !act = !fp4.scaled<nvfp4, tensor<?x1024xf4E2M1FN>,
                       tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
    !weights = !fp4.scaled<nvfp4, tensor<512x1024xf4E2M1FN>,
                           tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
    ```

    ```mlir
    %a = fp4.scaled %q, %sw : !act
    %b = fp4.scaled %qw, %tw : !weights
    ```
  }];
  let arguments = (ins AnyRankedTensor:$data, AnyRankedTensor:$scales);
  let results = (outs Fp4_ScaledType:$result);
  let assemblyFormat = "$data `,` $scales attr-dict `:` custom<ScaledType>(type($data), type($scales), type($result))";
  let builders = [
    OpBuilder<(ins "::fp4::Format":$format, "::mlir::Value":$data, "::mlir::Value":$scales)>];
  let hasVerifier = 1;
}

// Data and their scales, or a tensor that needs none.
def Fp4_MatmulOperand : AnyTypeOf<[Fp4_ScaledType, AnyRankedTensor]>;

def Fp4_BlockScaledMatmulOp
    : Fp4_TensorOp<"matmul", [AttrSizedOperandSegments, IsolatedFromAbove]> {
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

    An operand is `fp4.scaled`, whose type names the format, or a tensor that needs no scales. The
    operands may have two formats of OCP MX. Format `fp8_block128` multiplies FP8 as DeepSeek-V3
    does, with row-major f32 scales of 1 x 128 elements of lhs and of 128 x 128 of rhs.

    An epilogue region, which fp4-fuse makes of the elementwise operations that follow a matmul,
    comes before this rounding. The arguments of the region are the element in fp32 and elements of
    the epilogue inputs: of a scalar, of M x 1 that of the row, of 1 x N that of the column, of
    M x N that of both, and in a matmul of G groups of G x 1 x N that of the column in the row of
    the group. `fp4.yield` gives a value for each result, in their order: the element, then the
    results of `fp4.epilogue_quantize`, then that of `fp4.epilogue_amax`, each where there is one.

    `work` says how the work is divided (`#fp4.work`): the groups of a grouped GEMM, split-K and
    stream-K. `arithmetic` names the order of the sums (`#fp4.matmul_arithmetic`). `dispatch` has
    plans by size (`#fp4.case`).

    With groups, in `work` or as `offsets`, the matmul multiplies several matrices that are stacked
    in lhs, and every group has N rows of its own in rhs. A batched matmul has groups of equal
    size, and an empty group has no result. Scales are lists of tiles as `fp4.quantize` with
    `groups` writes them.

    With `rhs2` the op is a dual GEMM: two GEMMs of one lhs, whose elements in fp32 are the first
    two arguments of the epilogue region. `alpha2` is the alpha of the second. A gated unit such as
    SwiGLU, silu(x w1^T) * (x w3^T), thus reads lhs once and has one result.

    The elements of a lhs of bf16 or f16 are factors as they are, beside quantized weights. MXFP4
    beside f16 is exact for scales 2^-30 to 2^6: beyond, values become 0 or infinite, and bf16 has
    them all.
    `fp4.prepack` gives a rhs that contains its scales, in a layout that its type names: tiles of
    4608 bytes are nvfp4, and others mxfp4. A lhs of nvfp4 or mxfp4 with scales beside prepacked
    weights becomes bf16 before the GEMM, exactly but for magnitudes from 2^128 on.

    A lhs of f8E4M3FN without scales is the activation beside MXFP4 weights, and alpha the divisor
    of its elements. Beside weights with scales the result is that of a lhs of mxfp8_e4m3 with unit
    scales. Beside weights that are prepacked for it, for each block of 128 k in ascending order, an
    fp32 accumulator takes `fma(sum of the block, 2^e, acc)` with the power of two of the row of
    weights in its tile. With `fast_accumulation` the tensor core adds all of K, or of a split-K
    part, and the power of two of the row multiplies the sum.

    | operand    | element type | shape | layout |
    |------------|--------------|-------|--------|
    | lhs: data | f4E2M1FN, f8E4M3FN, f8E5M2; without scales bf16, f16, f8E4M3FN | M x K, K a multiple of the block; M may be dynamic, and N and K of matmuls of any N and K (docs/reference/semantics.md) | row-major |
    | rhs: data | f4E2M1FN, f8E4M3FN, f8E5M2 | N x K; of G groups, (G * N) x K | row-major |
    | rhs, prepacked | i8       | as `fp4.prepack` gives it | #fp4.weight_layout |
    | lhs, rhs: scales | as `fp4.scaled` says | of fp8_block128, as (C51) has it | |
    | rhs2       | as rhs       | as rhs | |
    | alpha, alpha2 | f32       | scalar, M x 1 or 1 x N; of groups, a scalar or G, or beside a lhs without scales M x 1 | row-major |
    | offsets    | i64          | G + 1, or G x 2 of ranges | row-major |
    | epilogue inputs | f32, bf16, f16 | scalar, M x 1, 1 x N or M x N; of groups also G x 1 x N or G x 1 x 1 | row-major |
    | result     | f32, bf16, f16, f8E4M3FN | M x N | row-major |
    | codes and scales | as the results of `fp4.quantize` | as they | as they |
    | amax       | f32          | scalar | row-major |

    With the types and values of the example of `fp4.scaled`:

    ```mlir
    %y = fp4.matmul %a, %b alpha %alpha : (!act, !weights, tensor<f32>) -> tensor<?x512xbf16>
    %z = fp4.matmul %a, %b epilogue(%bias) {
    ^bb0(%sum: f32, %shift: f32):
      %biased = arith.addf %sum, %shift : f32
      fp4.yield %biased : f32
    } : (!act, !weights, tensor<1x512xf32>) -> tensor<?x512xf32>
    ```

    The gate of a dual GEMM, quantized to MXFP4 for the next GEMM:

    ```mlir
    %p, %t = fp4.matmul %a, %b with %b epilogue() {
    ^bb0(%up: f32, %gate: f32):
      %product = arith.mulf %up, %gate : f32
      %rounded = arith.truncf %product : f32 to bf16
      %code, %scale = fp4.epilogue_quantize %rounded {recipe = #fp4.recipe<ocp_floor>}
          : (bf16) -> (f4E2M1FN, f8E8M0FNU)
      fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
    } : (!act, !weights, !weights)
        -> (tensor<?x512xf4E2M1FN>, tensor<?x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
    ```
  }];
  let arguments = (ins Fp4_MatmulOperand:$lhs_operand, Fp4_MatmulOperand:$rhs_operand,
                       Optional<Fp4_MatmulOperand>:$rhs2_operand,
                       Optional<AnyRankedTensor>:$alpha,
                       Optional<AnyRankedTensor>:$alpha2,
                       Optional<AnyRankedTensor>:$offsets,
                       Variadic<AnyRankedTensor>:$inputs,
                       OptionalAttr<Fp4_WorkAttr>:$work,
                       OptionalAttr<Fp4_DispatchAttr>:$dispatch,
                       OptionalAttr<Fp4_MatmulArithmeticAttr>:$arithmetic,
                       OptionalAttr<Fp4_EpilogueAttr>:$epilogue);
  let regions = (region AnyRegion:$epilogue_body);
  let hasRegionVerifier = 1; // behind the verifiers of the operations of the region
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = [{
    custom<MatmulOperand>($lhs_operand) `,` custom<MatmulOperand>($rhs_operand)
    (`with` $rhs2_operand^)? (`alpha` $alpha^)? (`alpha2` $alpha2^)? (`offsets` $offsets^)?
    (`epilogue` `(` $inputs `)` $epilogue_body^)?
    attr-dict `:` functional-type(operands, results)
  }];
  // Null scales and a null alpha where there are none.
  let builders = [
    OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$lhs_scales, "::mlir::Value":$rhs,
                   "::mlir::Value":$rhs_scales, "::mlir::Value":$alpha, "::fp4::Format":$format,
                   "::mlir::Type":$elementType, CArg<"std::optional<::fp4::Format>", "{}">:$rhsFormat)>];
  let extraClassDeclaration = [{
    using Tensor = ::mlir::TypedValue<::mlir::RankedTensorType>;
    /// The tensors of the operands; null scales and second rhs where there are none.
    Tensor getLhs();
    Tensor getLhsScales();
    Tensor getRhs();
    Tensor getRhsScales();
    Tensor getRhs2();
    Tensor getRhs2Scales();
    /// The tensors that the kernel reads, in the order of its definition; none is null.
    ::llvm::SmallVector<::mlir::Value> getTensors();
    /// The format of lhs, or, of a lhs without scales, of the weights.
    ::fp4::Format getFormat();
    /// The format of rhs: that of lhs where rhs does not name its own.
    ::fp4::Format getFormatOfRhs();
    /// The members of `work`.
    std::optional<::fp4::SplitPolicy> getSplitPolicy();
    /// The cases of `dispatch`, in the order of their least M; none without it.
    ::llvm::SmallVector<::fp4::CaseAttr> getCases();
    /// Split-K factors, and the rows up to which each holds, ascending and the last INT64_MAX.
    struct RowSplit {
      int64_t rows, factor;
    };
    ::llvm::SmallVector<RowSplit> getSplits();
    /// The largest split-K factor, 1 where K is not cut; and the most rows for which a factor is
    /// more than 1, INT64_MAX without a bound, and 0 where no factor is.
    int64_t getMostSplits();
    int64_t getMostSplitRows();
    std::optional<int64_t> getExpectedRows();
    std::optional<::llvm::ArrayRef<int64_t>> getStreamK();
    std::optional<::llvm::ArrayRef<int64_t>> getGroups();
    bool getUnspecifiedRows();
    /// The inputs whose elements the elementwise operations of the epilogue region read: all but
    /// the amax of `fp4.epilogue_quantize`, which is the last.
    ::mlir::OperandRange getEpilogueInputs();
    /// The operations of the epilogue region that give other results than the elements, or null.
    ::fp4::EpilogueQuantizeOp getEpilogueQuantize();
    ::fp4::EpilogueAmaxOp getEpilogueAmax();
    /// The recipe and the orientations of `fp4.epilogue_quantize`, and the tensor of its amax.
    std::optional<::fp4::RecipeAttr> getQuantizeRecipe();
    std::optional<::fp4::Outputs> getQuantizeOutputs();
    ::mlir::Value getQuantizeAmax();
    bool getWithAmax();
    /// The value of the epilogue region that is the element; null without a region.
    ::mlir::Value getYieldedElement();
    /// An operand with tiled scales has elements of 8 bits: the kind of tcgen05.mma and mma.sync
    /// that has elements of every width (C190).
    bool isMXF8F6F4();
    /// Has an f32 scale for 1 x 128 elements of lhs and 128 x 128 of rhs.
    bool hasF32Scales() { return ::fp4::hasF32Scales(getFormat()); }
    /// Returns true when the lhs is floats of 16 bits, which have no scales.
    bool hasFloatLhs() { return !::llvm::isa<::fp4::ScaledType>(getLhsOperand().getType()); }
    /// Returns true when the lhs is f8E4M3FN without scales, beside mxfp4 weights with scales: the
    /// tensor core multiplies as if the lhs had unit scales.
    bool hasUnitScales();
    /// Returns true when the rhs is a result of `fp4.prepack`, which contains the scales.
    bool hasPrepackedRhs() { return !::llvm::isa<::fp4::ScaledType>(getRhsOperand().getType()); }
    /// Returns true for a grouped GEMM, each of whose groups has rows of lhs.
    bool isGrouped() { return getGroups() || getOffsets(); }
    /// Number of groups; 1 without groups.
    int64_t getNumGroups();
    /// Columns of the result: the rows that a group has in rhs.
    int64_t getColumns();
    /// Most split-K parts: the last CTA to arrive adds all of their sums.
    static constexpr int64_t kMaxSplits = ::fp4::WorkAttr::kMaxSplits;
    /// Split-K parts of a matmul of `rows` rows.
    int64_t splitsOfRows(int64_t rows);
    /// Partial sums of split-K are reduced, of all elements or of those of some tiles.
    bool addsRanges() { return getMostSplits() > 1 || getStreamK(); }
    /// Threads multiply, and not the tensor core.
    bool usesFma() { return getArithmetic() == ::fp4::MatmulArithmetic::Fma; }
    /// Instructions of the tensor core have 96 elements of K.
    bool usesK96() { return getMmaDepth() == ::fp4::hw::MmaDepth::K96; }
    ::fp4::hw::MmaDepth getMmaDepth();
    /// Sums of e4m3 stay in the accumulator of the tensor core for a split-K part.
    bool accumulatesFast() { return getArithmetic() == ::fp4::MatmulArithmetic::FastAccumulation; }
    /// Most rows of a matmul with arithmetic fma: each thread has the sums of all of them.
    static constexpr int64_t kMaxFmaRows = 8;
    /// Returns true for a dual GEMM, two GEMMs of one lhs.
    bool isDual() { return static_cast<bool>(getRhs2Operand()); }
    /// The type of the elements: that of the result, or the type that the epilogue region yields.
    ::mlir::Type getElementType();
    /// The matrix of elements; null where it is not stored.
    ::mlir::TypedValue<::mlir::RankedTensorType> getResult();
    /// Data and scales of each orientation; none without `fp4.epilogue_quantize`.
    ::mlir::ResultRange getQuantized();
    /// Return true when the recipe of the results writes rows, or columns.
    bool quantizesRows();
    bool quantizesColumns();
    /// The amax; null without `fp4.epilogue_amax`.
    ::mlir::Value getAmax();
    /// Returns true when the op has one result, the matrix of elements.
    bool hasOnlyElements() { return !getQuantizeRecipe() && !getWithAmax(); }
  }];
}

class Fp4_EpilogueOp<string mnemonic>
    : Op<Fp4_Dialect, mnemonic,
         [Pure, Fp4_KnownAttributes, ParentOneOf<["BlockScaledMatmulOp", "AttentionOp"]>]> {
  let hasVerifier = 1;
}

def Fp4_EpilogueQuantizeOp : Fp4_EpilogueOp<"epilogue_quantize"> {
  let summary = "code of an element, and the scale of its block";
  let description = [{
    Quantizes the elements of a matmul as `fp4.quantize` does. The results are, for each
    orientation that `outputs` names, the code of the element and the scale of its block. A recipe
    with a tensor scale takes `amax`: the last argument of the epilogue region, whose input is a
    scalar.

    ```mlir
    %code, %scale = fp4.epilogue_quantize %x amax %a {recipe = #fp4.recipe<transformer_engine>}
        : (bf16, f32) -> (f4E2M1FN, f8E4M3FN)
    ```
  }];
  let arguments = (ins AnyFloat:$value, Optional<F32>:$amax, Fp4_RecipeAttr:$recipe,
                       OptionalAttr<Fp4_OutputsAttr>:$outputs);
  let results = (outs Variadic<AnyFloat>:$quantized);
  let assemblyFormat = [{
    $value (`amax` $amax^)? attr-dict `:` functional-type(operands, results)
  }];
  // The result types follow from the recipe and the outputs; a null amax where there is none.
  let builders = [
    OpBuilder<(ins "::mlir::Value":$value, "::mlir::Value":$amax, "::fp4::RecipeAttr":$recipe,
                   "::fp4::OutputsAttr":$outputs)>];
  let extraClassDeclaration = [{
    bool quantizesRows() { return getOutputs() != ::fp4::Outputs::Columnwise; }
    bool quantizesColumns() { return getOutputs().value_or(::fp4::Outputs::Rowwise) != ::fp4::Outputs::Rowwise; }
  }];
}

def Fp4_EpilogueAmaxOp : Fp4_EpilogueOp<"epilogue_amax"> {
  let summary = "largest magnitude of the elements of a matmul";
  let description = [{
    The result is that of `fp4.amax` of the elements: a NaN counts as 0.

    ```mlir
    %amax = fp4.epilogue_amax %x : bf16 -> f32
    ```
  }];
  let arguments = (ins AnyFloat:$value);
  let results = (outs F32:$amax);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($amax)";
}

def Fp4_YieldOp
    : Op<Fp4_Dialect, "yield",
         [Pure, Terminator,
          ParentOneOf<["BlockScaledMatmulOp", "LegacyMatmulOp", "AttentionOp"]>]> {
  let summary = "elements of the results";
  let description = [{
    Ends the epilogue region of a matmul with a value for each of its results.

    ```mlir
    fp4.yield %x : bf16
    ```
  }];
  let arguments = (ins Variadic<AnyFloat>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

#endif // FP4_DIALECT_FP4_IR_FP4PRODUCTOPS_TD
