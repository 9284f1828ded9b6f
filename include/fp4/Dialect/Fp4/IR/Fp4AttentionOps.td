//===- Fp4AttentionOps.td - Attention -------------------------------------===//
//
// A part of Fp4Ops.td.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_FP4_IR_FP4ATTENTIONOPS_TD
#define FP4_DIALECT_FP4_IR_FP4ATTENTIONOPS_TD

def Fp4_AttentionOp
    : Fp4_Op<"attention", [AttrSizedOperandSegments, AttrSizedResultSegments, IsolatedFromAbove]> {
  let summary = "softmax of scaled products of queries and keys, times values";
  let description = [{
    ```
    s[b, h, i, j]      = scale * (sum over d of query[b, i, h, d] * key[b, j, h / G, d])
    result[b, i, h, e] = (sum over j of exp(s[b, h, i, j] - m) * value[b, j, h / G, e])
                         / (sum over j of exp(s[b, h, i, j] - m)),  m the maximum of s over j
    ```

    j are the keys that query i sees: all, or with `causal` those up to i + Sk - Sq, so that the
    last query sees all keys. A query that sees no key gives zeros. G = Hq / Hk query heads share a
    head of keys and values.

    With `lengths`, sequence b has `lengths[b]` keys, and no more than Sk. Values behind them must
    be finite. With `pages`, keys and values are a paged cache of N pages, and key j of sequence b
    is key `j mod T` of page `pages[b, j div T]`; Sk = P * T. Pages behind the length are not read,
    and keys of a page that does not exist are zeros. With `heads_first`, pages have heads in front
    of tokens (HND), and else tokens in front of heads (NHD).

    With `query_offsets`, queries are packed: those of one sequence lie behind those of another.
    Sequence b has the queries from `query_offsets[b]` up to `query_offsets[b + 1]`, none or more.
    The first offset is 0, and queries behind the last sequence see no key. Keys and values have
    pages, or `key_offsets` of the same kind. Only keys and values of a query's own sequence are
    read for it, whatever the others are.

    With `softcap` c, scores are `c * tanh(s / c)`. With `window` N, a query sees the last N keys
    that `causal` leaves, its own among them.

    `slopes`, a number of each query head (ALiBi), subtract `slope * |i + Sk - Sq - j|` from scores
    behind `softcap`, with Sk and Sq of the sequence.

    `sinks`, a logit of each query head, add `exp(sink - m)` to denominators, and m is at least the
    sink. `lse` is m plus the logarithm of the denominator: minus infinity for a query that sees no
    key, or its sink.

    With `scales`, an element is its code times the scale of its block: of 16 codes f4E2M1FN with
    scales of f8E4M3FN (NVFP4), or of 32 codes f4E2M1FN or f8E4M3FN with scales of f8E8M0FNU (MXFP4,
    MXFP8). Such elements are numbers of the query's type. Without `scales`, elements of f8E4M3FN
    are as they are. `factors` multiply all keys, and all values, or those of each head. Codes and
    scales must be numbers: kernels read the NaN of f8E4M3FN as 480.

    Kernels take keys in blocks (online softmax), with sums of fp32. Probabilities are rounded to
    the element type before they multiply values, and added up unrounded. Results lie within a
    bound around the exact value (`include/fp4/Numerics/Attention.h`).

    Queries of f8E4M3FN multiply such keys as they are, with wgmma. Probabilities are 2^8 times as
    large when they are rounded, and the products of values
    with those of a block are promoted to fp32. `factors` are positive then, and may be of each
    sequence: those of keys are the products of the decode scales of queries and keys.

    With `block_scales`, tensor cores scale blocks of queries and keys: of MXFP8, or of NVFP4.
    Values are f8E4M3FN, or codes of that format in blocks of keys. Powers are quantized then, too:
    of MXFP8 with exponents rounded up, of NVFP4 (SageAttention3) up to 2688 = 6 * 448 with scales
    e4m3(amax * fp32(1/6)), codes e2m1(power * rcp(scale)). `factors` are products of tensor scales.
    Scales have a multiple of 128 rows for each head.

    With `order <in_blocks = n, growth = g>` results have bits of their own (`modelAttention` there): blocks of n keys from the last one to the first, whose powers of two
    are of distances from a number of each row. This number is the maximum, but stays until the
    maximum's exponent has grown by more than g. Without it a kernel chooses, with a growth of 8
    with tcgen05 and else of 0.

    With `latent` E, values are the first E elements of keys, which are operand `value` too (the
    absorbed form of multi-head latent attention).

    An epilogue region is that of `fp4.matmul`: rows are tokens of all sequences, and columns elements
    of all heads.

    | operand | element type | shape |
    |---------|--------------|-------|
    | query   | bf16, f16, f8E4M3FN, f4E2M1FN | B x Sq x Hq x D, or Tq x Hq x D with query_offsets |
    | key     | as query, f8E4M3FN, f4E2M1FN | B x Sk x Hk x D, Hq a multiple of Hk |
    | value   | as key       | B x Sk x Hk x E |
    | key, value with pages | the same | N x T x Hk x D, N x T x Hk x E, or N x Hk x T with heads_first |
    | key_scales, value_scales | f8E4M3FN, f8E8M0FNU | as key and value, a scale for each block of a head |
    | block_scales of query, key | f8E8M0FNU, f8E4M3FN, tiled_128x4 | B * Hq * Sq x D / n, B * Hk * Sk x D / n |
    | value and its block_scales | as of key | B x Hk x E x Sk, B * Hk * E x Sk / n |
    | key_factors, value_factors | f32 | 1 or Hk, or B x Hk beside a query of f8E4M3FN |
    | lengths; pages; query_offsets, key_offsets | i32 | B; B x P; B + 1 |
    | key, value with key_offsets | as query | Tk x Hk x D, Tk x Hk x E |
    | sinks, slopes | f32    | Hq |
    | result  | as query, bf16 of f8E4M3FN, f4E2M1FN | B x Sq x Hq x E, or Tq x Hq x E |
    | lse     | f32          | B x Sq x Hq, or Tq x Hq |

    ```mlir
    %g, %l = fp4.attention %q, %k, %v sinks(%s : tensor<8xf32>) scale 1.250000e-01
        softcap 5.000000e+01 causal window 128
        : tensor<1x256x8x64xbf16>, tensor<1x512x2x64xbf16>, tensor<1x512x2x64xbf16>
        -> tensor<1x256x8x64xbf16>, tensor<1x256x8xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$query, AnyRankedTensor:$key, AnyRankedTensor:$value,
                       Optional<AnyRankedTensor>:$key_scales,
                       Optional<AnyRankedTensor>:$value_scales,
                       Optional<AnyRankedTensor>:$key_factors,
                       Optional<AnyRankedTensor>:$value_factors,
                       Optional<AnyRankedTensor>:$lengths, Optional<AnyRankedTensor>:$pages,
                       Optional<AnyRankedTensor>:$sinks,
                       Optional<AnyRankedTensor>:$query_offsets,
                       Optional<AnyRankedTensor>:$key_offsets,
                       Optional<AnyRankedTensor>:$slopes,
                       Optional<AnyRankedTensor>:$query_scales,
                       Variadic<AnyRankedTensor>:$inputs, F32Attr:$scale,
                       OptionalAttr<F32Attr>:$softcap, UnitAttr:$causal,
                       OptionalAttr<I64Attr>:$window, UnitAttr:$heads_first,
                       OptionalAttr<Fp4_KeyOrderAttr>:$order, OptionalAttr<I64Attr>:$latent);
  let regions = (region AnyRegion:$epilogue_body);
  let hasRegionVerifier = 1; // behind the verifiers of the operations of the region
  let results = (outs Optional<AnyRankedTensor>:$result, Optional<AnyRankedTensor>:$lse,
                      Variadic<AnyRankedTensor>:$quantized);
  let assemblyFormat = [{
    $query `,` $key `,` $value
    custom<AttentionScales>($query_scales, $key_scales, $value_scales, type($query_scales),
                            type($key_scales), type($value_scales))
    (`factors` `(` $key_factors^ `,` $value_factors `:` type($key_factors) `,`
     type($value_factors) `)`)? (`lengths` `(` $lengths^ `:` type($lengths) `)`)?
    (`pages` `(` $pages^ `:` type($pages) `)`)? (`heads_first` $heads_first^)?
    (`query_offsets` `(` $query_offsets^ `:` type($query_offsets) `)`)?
    (`key_offsets` `(` $key_offsets^ `:` type($key_offsets) `)`)?
    (`sinks` `(` $sinks^ `:` type($sinks) `)`)?
    (`slopes` `(` $slopes^ `:` type($slopes) `)`)?
    `scale` $scale (`softcap` $softcap^)? (`causal` $causal^)? (`window` $window^)?
    (`order` $order^)? (`latent` $latent^)?
    (`inputs` `(` $inputs^ `:` type($inputs) `)`)? (`epilogue` $epilogue_body^)? attr-dict
    `:` type($query) `,` type($key) `,` type($value)
    `->` custom<AttentionResult>(type($result)) (`,` type($lse)^)?
    (`quantized` `(` type($quantized)^ `)`)?
  }];
  // Fp4Dialect.cpp reads bytecode of earlier versions, which lacks attributes.
  let useCustomPropertiesEncoding = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getQueryType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getQuery().getType());
    }
    ::mlir::RankedTensorType getKeyType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getKey().getType());
    }
    ::mlir::RankedTensorType getValueType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getValue().getType());
    }
    /// The operation of the epilogue region that gives codes and scales, or null.
    ::fp4::EpilogueQuantizeOp getEpilogueQuantize();
    /// The inputs of the region but for the amax of `fp4.epilogue_quantize`, which is the last.
    ::mlir::OperandRange getEpilogueInputs();
    /// The type of the elements behind the region; and of those that the attention itself gives.
    ::mlir::Type getElementType();
    ::mlir::Type getPlainElementType();
    /// Rows and columns of the matrix of elements; rows may be dynamic.
    int64_t getResultRows() {
      return isPacked() ? getQueryType().getDimSize(0) : getBatches() * getQueryTokens();
    }
    int64_t getResultColumns() { return getHeads() * getValueElements(); }
    /// Returns true when queries, or keys, of sequences lie one behind another, as offsets say.
    bool isPacked() { return bool(getQueryOffsets()); }
    bool hasPackedKeys() { return bool(getKeyOffsets()); }
    int64_t getBatches() {
      return isPacked() ? ::llvm::cast<::mlir::RankedTensorType>(getQueryOffsets().getType())
                                  .getDimSize(0) - 1
                        : getQueryType().getDimSize(0);
    }
    /// Returns true when tensor cores scale blocks of queries and keys.
    bool isBlockScaled() { return bool(getQueryScales()); }
    /// Returns true when values have a row for each element of a head, of all keys.
    bool hasValueRows() { return isBlockScaled() && getValueScales(); }
    /// Most queries of a sequence.
    int64_t getQueryTokens() { return sizeOrMost(getQueryType().getDimSize(isPacked() ? 0 : 1)); }
    int64_t getHeads() { return getQueryType().getShape().drop_back().back(); }
    int64_t getKeyHeads() {
      return getKeyType().getDimSize(getHeadsFirst() ? 1 : getKeyType().getRank() - 2);
    }
    int64_t getElements() { return getQueryType().getShape().back(); }
    int64_t getValueElements() {
      return getLatent() ? int64_t(*getLatent())
                         : getValueType().getShape().drop_back(hasValueRows()).back();
    }
    /// Pages of a sequence; 1 without a cache.
    int64_t getPagesOfSequence() {
      return getPages()
                 ? ::llvm::cast<::mlir::RankedTensorType>(getPages().getType()).getDimSize(1)
                 : 1;
    }
    /// Tokens of a page.
    int64_t getPageTokens() { return getKeyType().getDimSize(getHeadsFirst() ? 2 : 1); }
    /// Heads of queries that share a head of keys.
    int64_t getHeadsOfGroup() { return getHeads() / getKeyHeads(); }
    /// Returns true when queries, keys and values are elements of 8 bits, or 4, as tensor cores have
    /// them.
    bool isOfBytes() { return getQueryType().getElementTypeBitWidth() <= 8; }
    /// Returns true when keys and values are codes.
    bool isQuantized() { return getKeyType().getElementType() != getQueryType().getElementType(); }
    /// Elements that share a scale; 0 without scales.
    int64_t getBlockSize();
    /// Most keys of a sequence.
    int64_t getKeyTokens() {
      return hasPackedKeys() ? sizeOrMost(getKeyType().getDimSize(0))
                        : getPagesOfSequence() * getPageTokens();
    }
    /// Most keys that some of `tokens` tokens in a row see.
    int64_t getKeysOfTokens(int64_t tokens) {
      return std::min<int64_t>(getKeyTokens(),
                               getWindow() ? int64_t(*getWindow()) + tokens - 1 : getKeyTokens());
    }
    /// Factor of a product in the exponent of 2, or of its hyperbolic tangent with a softcap.
    double getExponentFactor();
    /// Factor of a product in y of tanh = 1 - 2 / (1 + 2^y), with a softcap.
    double getTangentFactor();
  }];
}

def Fp4_AttentionBackwardOp : Fp4_Op<"attention_backward",
    [AllTypesMatch<["query", "query_gradient"]>, AllTypesMatch<["key", "key_gradient"]>,
     AllTypesMatch<["value", "value_gradient"]>, AllTypesMatch<["output", "output_gradient"]>]> {
  let summary = "gradients of an attention";
  let description = [{
    ```
    p[i, j]  = exp(s[i, j] - lse[i])
    ds[i, j] = p[i, j] * (output_gradient[i] . value[j] - output_gradient[i] . output[i])
    query_gradient[i] = scale * (sum over j of ds[i, j] * key[j])
    key_gradient[j]   = scale * (sum over i of ds[i, j] * query[i])
    value_gradient[j] = sum over i of p[i, j] * output_gradient[i]
    ```

    s, the keys that a query sees, and `lse` are those of `fp4.attention`, and operands have its types
    and shapes, `output_gradient` that of `output`. i are queries of all heads that share keys. A
    query whose `lse` is minus infinity adds nothing. With `softcap` c, ds have a factor
    1 - tanh(s / c)^2. With `query_offsets` and `key_offsets`, all operands are packed; tokens behind
    the last sequence have gradients of zero.

    Sums are fp32, in ascending order of heads and i, or of j, 16 at a time; p and ds are rounded.
    Results have one set of bits, whatever the plan (`include/fp4/Numerics/AttentionBackward.h`).

    ```mlir
    %dq, %dk, %dv = fp4.attention_backward %q, %k, %v, %o, %do, %l scale 1.250000e-01 causal
        : tensor<1x256x8x64xbf16>, tensor<1x512x2x64xbf16>, tensor<1x512x2x64xbf16>,
          tensor<1x256x8x64xbf16>, tensor<1x256x8xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$query, AnyRankedTensor:$key, AnyRankedTensor:$value,
                       AnyRankedTensor:$output, AnyRankedTensor:$output_gradient,
                       AnyRankedTensor:$lse, Variadic<AnyRankedTensor>:$offsets, F32Attr:$scale,
                       OptionalAttr<F32Attr>:$softcap, UnitAttr:$causal,
                       OptionalAttr<I64Attr>:$window);
  let results = (outs AnyRankedTensor:$query_gradient, AnyRankedTensor:$key_gradient,
                      AnyRankedTensor:$value_gradient);
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $output `,` $output_gradient `,` $lse
    custom<PackedOffsets>($offsets, type($offsets)) `scale` $scale
    (`softcap` $softcap^)? (`causal` $causal^)? (`window` $window^)? attr-dict
    `:` type($query) `,` type($key) `,` type($value) `,` type($output) `,` type($lse)
  }];
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getQueryType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getQuery().getType());
    }
    ::mlir::RankedTensorType getKeyType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getKey().getType());
    }
    /// Returns true when sequences lie one behind another, as offsets of queries and of keys say.
    bool isPacked() { return !getOffsets().empty(); }
    ::mlir::Value getQueryOffsets() { return isPacked() ? getOffsets().front() : ::mlir::Value(); }
    ::mlir::Value getKeyOffsets() { return isPacked() ? getOffsets().back() : ::mlir::Value(); }
    int64_t getBatches() {
      return isPacked() ? ::llvm::cast<::mlir::RankedTensorType>(getQueryOffsets().getType())
                                  .getDimSize(0) - 1
                        : getQueryType().getDimSize(0);
    }
    /// Most tokens of a sequence.
    int64_t getQueryTokens() {
      return sizeOrMost(getQueryType().getDimSize(isPacked() ? 0 : 1));
    }
    int64_t getKeyTokens() {
      return sizeOrMost(getKeyType().getDimSize(isPacked() ? 0 : 1));
    }
    int64_t getHeads() { return getQueryType().getShape().drop_back().back(); }
    int64_t getKeyHeads() { return getKeyType().getShape().drop_back().back(); }
    /// Heads of queries that share a head of keys.
    int64_t getHeadsOfGroup() { return getHeads() / getKeyHeads(); }
    int64_t getElements() { return getQueryType().getShape().back(); }
    /// As those of AttentionOp.
    double getExponentFactor();
    double getTangentFactor();
    int64_t getValueElements() {
      return ::llvm::cast<::mlir::RankedTensorType>(getValue().getType()).getShape().back();
    }
  }];
}

#endif // FP4_DIALECT_FP4_IR_FP4ATTENTIONOPS_TD
