//===- Attention.h - Attention in fp64, and the bound of a kernel ----------===//
#pragma once

#include "fp4/Numerics/Float16.h"
#include "fp4/Support/Error.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace fp4::numerics {

/// The growth of the exponent of 2 of a row's maximum before a kernel with tcgen05 scales the sums
/// of the row: powers are up to 2^8 until then, and most blocks of keys scale nothing.
inline constexpr double kLazyGrowth = 8;

/// The power of two by which kernels of e4m3 multiply powers, as FlashAttention-3 does
/// (max_offset): the largest is 256, below 448, and e4m3 has the numbers from 2^-17 of it on.
inline constexpr double kByteShift = 8;

/// The decisions of the quantizer of powers beside values of NVFP4, which are up to 448 * 6 then:
/// scale e4m3(amax * fp32(1/6)), codes e2m1(power * min(rcp(scale), FLT_MAX)). SageAttention3
/// (arXiv 2505.11594) divides by the scale before its rounding.
inline constexpr std::string_view kPowerRecipe =
    "flashinfer, tensor_scale = one, guard = clamp_drop_nan, reciprocals = approximate_factor";
/// The decisions beside values of MXFP8: exponents of scales are rounded up, so that no code
/// saturates.
inline constexpr std::string_view kBytePowerRecipe =
    "mxfp8_e4m3_rceil, amax_nan = drop, exponent = round_up";
/// log2(448 * 6), the exponent of 2 of the factor of powers of NVFP4.
inline constexpr double kPackedShift = 11.392317422778762;

/// A paged cache: the pages of each sequence, batches x keyTokens / tokens; none where empty.
struct AttentionPages {
  std::span<const int32_t> numbers = {};
  uint64_t tokens = 0;     ///< of a page
  bool headsFirst = false; ///< heads of keys in front of tokens

  bool empty() const { return numbers.empty(); }
};

/// Scales of blocks that tensor cores multiply by, row-major: of f8E8M0FNU, of 32 elements (MXFP8),
/// or of f8E4M3FN, of 16 (NVFP4). Scales of queries and keys are batches x heads x tokens x
/// blocks, and of values batches x keyHeads x valueElements x blocks of keys. None where empty.
struct AttentionBlocks {
  std::span<const uint8_t> queries = {}, keys = {}, values = {};
  uint64_t size = 0; ///< elements of a block

  bool arePacked() const { return size == 16; }       ///< queries and keys of NVFP4
  bool haveValues() const { return !values.empty(); } ///< of values, and of powers
  bool havePackedValues() const { return haveValues() && arePacked(); }
};

/// Factors of products, and of values, of each head of keys of each sequence; 1 where empty.
struct AttentionFactors {
  std::span<const float> keys = {}, values = {};
  AttentionBlocks blocks = {};
};

/// Sizes of an attention: queries are batches x queryTokens x heads x queryElements, keys are
/// batches x keyTokens x keyHeads x queryElements, values have valueElements in a head. A paged
/// cache has keys of pages x tokens x keyHeads x queryElements, or with headsFirst of pages x
/// keyHeads x tokens x queryElements. Packed queries, or keys, lie one sequence behind another,
/// without batches: queryTokens, or keyTokens, are those of all.
struct AttentionShape {
  uint64_t batches = 1, queryTokens = 0, keyTokens = 0;
  uint64_t heads = 1, keyHeads = 1;
  uint64_t queryElements = 0, valueElements = 0;
  double scale = 1;
  double softcap = 0;  ///< c of c * tanh(score / c), in place of scores; none where 0
  bool causal = false; ///< query i sees keys up to i + keys of the sequence - queryTokens
  uint64_t window = 0; ///< keys that a query sees at most, the last ones; all where 0
  /// A logit for each head of queries, whose power joins the sum of powers; none where empty.
  std::span<const float> sinks = {};
  /// Keys of each sequence, which a kernel reads as a number from 0 to keyTokens; all where empty.
  std::span<const int32_t> lengths = {};
  AttentionPages pages = {};
  /// Begins of the queries, and of the keys, of each packed sequence, and the ends of the last
  /// ones; not packed where empty. Packed keys are of packed queries, which else have pages.
  std::span<const int32_t> queryOffsets = {}, keyOffsets = {};
  /// Loss of a score for each token of distance, for each head of queries; none where empty.
  std::span<const float> slopes = {};
  /// Growth of the exponent of 2 of a row's maximum that a kernel allows before it scales sums.
  double growth = 0;
  AttentionFactors factors = {};
  /// Keys and values are of NVFP4: kernels multiply them as f16, with queries and powers of f16.
  /// Beside queries and keys with scales of blocks: values of e4m3 alone, with powers of f16.
  bool areHalves = false;

  bool isPacked() const { return !queryOffsets.empty(); }
  uint64_t rows() const { return (isPacked() ? 1 : batches) * queryTokens * heads; }
};

/// The exact results, and the distance from each within which a kernel of `type` is right; and of
/// each row the logarithm of the sum of powers, with its distance.
struct AttentionReference {
  std::vector<double> values, bounds;
  std::vector<double> logSums, logBounds;
};

/// Attention of elements of `type`, given as numbers, on `threads` threads (0: all). Results of
/// e4m3 are bf16. A query that sees no key gives 0, and minus infinity or the sink, and keys of a
/// page that does not exist are 0. Usage error where operands have not the sizes of `shape`.
///
/// The bound of sum(p v) / sum(p), with u = 2^-24 and p = exp(s - max s):
///   products  D u |q| . |k| 2 for the order of D products and the truncation of the tensor core
///   softcap   12 u c of tanh(x) = 1 - 2 / (1 + e), e = 2^y: 1.4 u for three roundings of y, as
///             x sech^2(x) < 0.45; 2 u for the power; 2, 4 and 1 for 1 + e, its reciprocal and the
///             result. Errors of products do not grow, since no slope of tanh is above 1.
///   slopes    4 u (|slope distance| + |s|), of the slope in the scale of products and their sum
///   argument  4 u (|max| + |s - max|), of a power of two whose own error is 2 ulp
///   p         half an ulp of `type`, in the numerator alone, or all of it below 2^-126
///   sums      one u for each key and block
///   sink      one more power, of the distance from the maximum of keys to that of all
///   result    half an ulp of `type`
///
/// With e4m3 and w = 2^-13 (docs/reference/numerics.md), an instruction of 32 products adds 33 w of
/// the largest one, or of its sum before, and w of its sum. Powers are rounded by 2^-4, or 2^-18 of
/// the largest. Products of powers and values are of blocks of 128 keys at most, with as many
/// magnitudes. The smallest powers of a block of MXFP8 are rounded by 2^-17 of its largest.
///
/// With blocks of NVFP4, an instruction of 64 products cuts four sums to 35 bits below the largest
/// product of two scales, which is 448 * 448 at most. Powers have half a step of e2m1, which is a
/// quarter of the number or of its scale, and scales half an ulp of e4m3.
///
/// Kernels of f16 scale queries and powers by powers of two, so that the largest have the largest
/// exponent of f16. Half its smallest subnormal number is then 2^-40 of the largest query, or of
/// the largest power, and other powers are rounded by 2^-11.
///
/// The bound of max s + ln(sum(p)): the relative error of the sum, 2^-22 of lg2.approx or that part
/// of the logarithm, and 4 u of the maximum and 2 u of the result for its products.
Expected<AttentionReference> referenceAttention(const AttentionShape &shape, FloatType type,
                                                std::span<const float> query,
                                                std::span<const float> key,
                                                std::span<const float> value, unsigned threads);

/// The order of a kernel with tcgen05, or with wgmma: blocks of so many keys, a multiple of 16, or
/// of 32 of e4m3, from the last one on. The sums of a row are scaled when the exponent of 2 of its
/// maximum has grown by more than `growth` since the last time, and with 0 whenever it has grown.
struct AttentionOrder {
  uint64_t keys = 128;
  double growth = kLazyGrowth;
  bool isOfWgmma = false; ///< four threads have the sums of a row, as always of e4m3
};

/// Results before they are rounded to their type, and logarithms of sums.
struct AttentionModel {
  std::vector<float> values, logSums;
};

/// The numbers that a kernel of `order` computes, bit for bit, from operands as those of
/// referenceAttention. Products are those of kind::f16, 16 elements at a time; a thread adds up the
/// powers of a block in eight chains and these by halves; all else is fp32. With wgmma each of the
/// eight chains goes through all blocks before threads add the two that each has, and these by
/// halves. Products of e4m3 are of 32 elements at a time, and powers 2^(8 - growth) times as large;
/// with wgmma products have 13 fraction bits, and those of a block of values are added to the sums
/// of before, fma(sums, shrink, products). Operands that have scales of blocks are given without
/// them; their products are those of kind::mxf8f6f4 or kind::mxf4nvf4, and powers beside values of
/// NVFP4 are 2^(kPackedShift - growth) times as large and quantized as kPowerRecipe says, those
/// beside values of MXFP8 as kBytePowerRecipe does. As in the simulator, lg2 is correctly rounded,
/// and ex2 and rcp have the bits of an H200 (PowerOfTwo.h, Reciprocal.h).
Expected<AttentionModel> modelAttention(const AttentionShape &shape, const AttentionOrder &order,
                                        FloatType type, std::span<const float> query,
                                        std::span<const float> key, std::span<const float> value,
                                        unsigned threads);

} // namespace fp4::numerics
