//===- BlockScaledMma.cpp - Scalar definition and vector kernels ----------===//
//
// The vector path per row m and per block of 16 columns:
//   1. four integer dot products, six of K = 96 or eight of K = 128, of 16 products each, on
//   doubled fp4 values (int8, |x| <= 12), so
//      that p_g is an integer multiple of 1/4;
//   2. term_g = p_g * scaleA_g * scaleB_g in fp32: at most 12 + 4 + 4 significant bits, exact;
//   3. the terms and C summed in double, one round toward zero to fp32.
// Step 3 is exact, and equal to the definition, for an element where
//   * scale exponents are moderate (no NaN, |e| <= 64), so nothing under- or overflows, and
//   * emax - e_g <= 27 (33 for UE8M0) for every group, as term_g is a multiple of
//     2^(e_g - 8) (2^(e_g - 2)), so nothing of it is truncated at 2^(emax - 35), and
//   * C = 0, or emax - exponent(C) <= 12 with C normal, so that C is not truncated either.
// emax is bounded from above by the largest exponents of the row and of the 16 columns; zero
// scales give zero terms and take no part in the bounds. The sum then has at most 51 bits.
//
// If only the second or third condition fails, the AVX-512 kernel computes emax of each element and
// truncates each term to an integer in double, as the definition says. The scalar definition
// computes the rest: NaNs, huge or subnormal values, and groups whose products cancel to zero while
// their scale has the largest exponent (the model then asks if all products are zero).
//
//===----------------------------------------------------------------------===//
#include "BlockScaledMma.h"
#include "Numerics/ByteDots.h"
#include "fp4/Numerics/UE5M3.h"
#include "fp4/Support/Host.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

namespace fp4::sim {
namespace {

using namespace numerics;

constexpr int zeroExponent = -139;
constexpr int maxGroups = 8;
constexpr uint32_t canonicalNaN = 0x7FFFFFFFu;

/// Twice the value of each fp4 (e2m1) code.
constexpr int8_t doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// A scale as significand (an integer number of eighths) and exponent; eighths = 0 is zero.
struct Scale {
  int eighths = 0;
  int exponent = 0;
  bool nan = false;
};

Scale decodeScale(uint8_t code, hw::ScaleType format) {
  if (format == hw::ScaleType::UE8M0)
    return {8, int(code) - 127, code == 0xFF};
  if (format == hw::ScaleType::UE5M3) {
    const int wide = code >> 3, low = code & 7;
    return {wide ? 8 + low : low, std::max(wide, 1) - ue5m3Bias, code == ue5m3NaN};
  }
  const int field = (code >> 3) & 15, mantissa = code & 7; // the sign bit is ignored
  if ((code & 0x7F) == 0x7F)
    return {0, 0, true};
  return field ? Scale{8 + mantissa, field - 7, false} : Scale{mantissa, -6, false};
}

/// truncate(value * 2^shift) toward zero, for a value below 2^24 and any shift.
__int128 alignTerm(int64_t value, int shift) {
  if (shift >= 0)
    return static_cast<__int128>(value) << shift; // at most 2^24 * 2^35
  if (shift <= -63)
    return 0;
  const int64_t magnitude = (value < 0 ? -value : value) >> -shift;
  return value < 0 ? -magnitude : magnitude;
}

/// Round toward zero of sum * 2^exponent: 24 bits, subnormals kept, overflow to infinity, and every
/// zero +0.
float roundTowardZero(__int128 sum, int exponent) {
  if (sum == 0)
    return 0.0f;
  const bool negative = sum < 0;
  unsigned __int128 magnitude = negative ? -sum : sum;
  const uint64_t high = static_cast<uint64_t>(magnitude >> 64);
  const int bits =
      high ? 128 - std::countl_zero(high) : 64 - std::countl_zero(static_cast<uint64_t>(magnitude));
  int drop = std::max(bits - 24, -149 - exponent); // the unit kept is 2^(exponent + drop)
  const uint32_t sign = negative ? 0x80000000u : 0u;
  if (drop >= 128)
    return 0.0f;
  const uint32_t significand = drop >= 0 ? static_cast<uint32_t>(magnitude >> drop)
                                         : static_cast<uint32_t>(magnitude << -drop);
  const int biased = exponent + drop + 150; // of a significand with bit 23 set
  if (!(significand >> 23)) // subnormal: drop = -149 - exponent
    return std::bit_cast<float>(significand ? sign | significand : 0);
  if (biased >= 255)
    return std::bit_cast<float>(sign | 0x7F800000u);
  return std::bit_cast<float>(sign | static_cast<uint32_t>(biased) << 23 |
                              (significand & 0x7FFFFFu));
}

} // namespace

float blockScaledElement(const uint8_t *a, const uint8_t *b, const uint8_t *scalesA,
                         const uint8_t *scalesB, hw::ScaleType format, bool negate, float c,
                         int groups) {
  int64_t value[maxGroups + 1]; // group g: p_g * sA * sB in 2^-8; C: its significand in 2^-23
  int exponent[maxGroups + 1];
  const uint32_t bits = std::bit_cast<uint32_t>(c);
  const int field = (bits >> 23) & 255;
  bool nan = field == 255 && (bits & 0x7FFFFF);
  for (int g = 0; g < groups; ++g) {
    int sum = 0;
    bool anyMma = false;
    for (int k = 16 * g; k < 16 * g + 16; ++k) {
      const int product =
          doubled[a[k / 2] >> (4 * (k & 1)) & 15] * doubled[b[k / 2] >> (4 * (k & 1)) & 15];
      sum += product;
      anyMma |= product != 0;
    }
    const Scale sa = decodeScale(scalesA[g], format), sb = decodeScale(scalesB[g], format);
    nan |= sa.nan || sb.nan;
    value[g] = static_cast<int64_t>(negate ? -sum : sum) * sa.eighths * sb.eighths;
    exponent[g] = anyMma && sa.eighths * sb.eighths ? sa.exponent + sb.exponent : zeroExponent;
  }
  if (nan)
    return std::bit_cast<float>(canonicalNaN);
  if (field == 255)
    return c;
  const int64_t significand = (bits & 0x7FFFFF) | (field ? 0x800000 : 0);
  value[groups] = bits >> 31 ? -significand : significand;
  exponent[groups] = significand ? std::max(field, 1) - 127 : zeroExponent;
  const int emax = *std::max_element(exponent, exponent + groups + 1);
  __int128 sum = 0;
  for (int x = 0; x <= groups; ++x)
    sum += alignTerm(value[x], exponent[x] - emax + (x < groups ? 27 : 12)); // 35 - 8, 35 - 23
  return roundTowardZero(sum, emax - 35);
}

//===----------------------------------------------------------------------===//
// The fast path
//===----------------------------------------------------------------------===//

namespace {

constexpr int blockColumns = 16;
constexpr int noExponent = 1 << 20;  // lowest exponent of a row of zero scales
constexpr int absentExponent = 1000; // far below zeroExponent

/// The exponents of some scales: bounds over the non-zero ones, and whether the fast path may run.
struct ScaleBounds {
  int highest = -noExponent, lowest = noExponent;
  bool moderate = true;
  void add(const Scale &scale) {
    if (scale.nan || std::abs(scale.exponent) > 32)
      moderate = false;
    if (!scale.eighths)
      return;
    highest = std::max(highest, scale.exponent);
    lowest = std::min(lowest, scale.exponent);
  }
};

/// A decoded for the kernels: doubled values, scale values, bounds.
template <int groups> struct DecodedRow {
  alignas(64) int8_t values[16 * groups];
  float scales[groups];       ///< value of the scale / 4, because both fp4 operands are doubled
  int32_t exponents[groups];  ///< exponents of the scales; -absentExponent for a zero scale
  int32_t correction[groups]; ///< -12 * sum of the group's values: undoes the unsigned offset of B
  ScaleBounds bounds;
};

/// 16 columns of B: for quad q of k, bytes 4*column..4*column+3 are doubled values + 12.
template <int groups> struct DecodedBlock {
  alignas(64) uint8_t quads[4 * groups][64];
  alignas(64) float scales[groups][blockColumns];
  alignas(64) int32_t exponents[groups][blockColumns];
  ScaleBounds bounds;
};

float scaleValue(const Scale &scale) {
  return std::ldexp(float(scale.eighths), scale.exponent - 3);
}

/// The values of all 256 scale codes of a format, decoded once.
struct ScaleTable {
  Scale scale[256];
  float value[256];
  explicit ScaleTable(hw::ScaleType format) {
    for (int code = 0; code < 256; ++code) {
      scale[code] = decodeScale(static_cast<uint8_t>(code), format);
      value[code] = scale[code].nan ? 0.0f : scaleValue(scale[code]);
    }
  }
  static const ScaleTable &get(hw::ScaleType format) {
    static const std::array tables = {ScaleTable(hw::ScaleType::UE4M3),
                                      ScaleTable(hw::ScaleType::UE8M0),
                                      ScaleTable(hw::ScaleType::UE5M3)};
    return tables[static_cast<size_t>(format)];
  }
};

/// The two doubled values of a byte of two codes, low nibble first.
struct PairTable {
  uint16_t plain[256], offset[256]; ///< int8 pairs; the same + 12 as unsigned bytes
  PairTable() {
    for (int byte = 0; byte < 256; ++byte) {
      const int8_t low = doubled[byte & 15], high = doubled[byte >> 4];
      plain[byte] = static_cast<uint16_t>(uint8_t(low) | uint8_t(high) << 8);
      offset[byte] = static_cast<uint16_t>((low + 12) | (high + 12) << 8);
    }
  }
  static const PairTable &get() {
    static const PairTable table;
    return table;
  }
};

int32_t exponentOf(const Scale &scale) { return scale.eighths ? scale.exponent : -absentExponent; }

template <int groups>
void decodeRow(DecodedRow<groups> &row, const uint8_t *codes, const uint8_t *scaleCodes,
               const ScaleTable &scales, bool negate) {
  const PairTable &pairs = PairTable::get();
  for (int byte = 0; byte < 8 * groups; ++byte)
    std::memcpy(row.values + 2 * byte, &pairs.plain[codes[byte]], 2);
  row.bounds = {};
  for (int g = 0; g < groups; ++g) {
    int sum = 0;
    for (int k = 0; k < 16; ++k)
      sum += row.values[16 * g + k];
    row.correction[g] = -12 * sum;
    row.scales[g] = (negate ? -0.25f : 0.25f) * scales.value[scaleCodes[g]];
    row.exponents[g] = exponentOf(scales.scale[scaleCodes[g]]);
    row.bounds.add(scales.scale[scaleCodes[g]]);
  }
}

template <int groups>
void decodeBlock(DecodedBlock<groups> &block, const BlockScaledOperands &o, int firstColumn,
                 const ScaleTable &scales) {
  const PairTable &pairs = PairTable::get();
  block.bounds = {};
  std::memset(block.quads, 12, sizeof block.quads); // columns beyond N are zero
  std::memset(block.scales, 0, sizeof block.scales);
  std::memset(block.exponents, 0, sizeof block.exponents);
  const int count = std::min(blockColumns, o.columns - firstColumn);
  for (int column = 0; column < count; ++column) {
    const uint8_t *codes = o.b + 8 * groups * (firstColumn + column);
    const uint8_t *scaleCodes = o.scalesB + groups * (firstColumn + column);
    for (int quad = 0; quad < 4 * groups; ++quad) {
      const uint32_t four =
          pairs.offset[codes[2 * quad]] | uint32_t(pairs.offset[codes[2 * quad + 1]]) << 16;
      std::memcpy(&block.quads[quad][4 * column], &four, 4);
    }
    for (int g = 0; g < groups; ++g) {
      block.scales[g][column] = scales.value[scaleCodes[g]];
      block.exponents[g][column] = exponentOf(scales.scale[scaleCodes[g]]);
      block.bounds.add(scales.scale[scaleCodes[g]]);
    }
  }
}

/// The range of fp32 exponent fields of C (shifted in place) that keep an element exact; C = 0
/// always does. `empty` when no element of the row and block may take the fast path.
struct ExactRange {
  uint32_t lowest = 0, span = 0;
  bool empty = false;
};

ExactRange exactRange(const ScaleBounds &row, const ScaleBounds &block, hw::ScaleType format) {
  if (!row.moderate || !block.moderate)
    return {0, 0, true};
  if (row.lowest == noExponent || block.lowest == noExponent)
    return {1u << 23, 252u << 23, false}; // all terms zero: D = C
  const int reach = format == hw::ScaleType::UE8M0 ? 33 : 27;
  const int highest = row.highest + block.highest, lowest = row.lowest + block.lowest;
  if (highest - lowest > reach)
    return {0, 0, true};
  const int from = highest - 12, to = std::min(lowest + reach, 100);
  return {static_cast<uint32_t>(from + 127) << 23, static_cast<uint32_t>(to - from) << 23, false};
}

/// Elements of one row and block that the fast path may not do: bit per column. Reads C, so call
/// before D is written.
using Inexact = uint32_t;

template <int groups>
void scalarElements(const BlockScaledOperands &o, int row, int firstColumn, Inexact which,
                    const float *c) {
  for (; which; which &= which - 1) {
    const int lane = std::countr_zero(which), column = firstColumn + lane;
    o.d[row * o.pitch + column] =
        blockScaledElement(o.a + 8 * groups * row, o.b + 8 * groups * column, o.scalesA + groups * row,
                           o.scalesB + groups * column, o.format, o.negateA != o.negateB, c[lane], groups);
  }
}

/// Adds one row times one block to `sums`, exact whenever the element is. The compiler vectorizes
/// the loop over 16 columns for the processor of `Dots`.
template <int groups, typename Dots>
FP4_INLINE void addDots(const DecodedRow<groups> &row, const DecodedBlock<groups> &block,
                        double *sums) {
  for (int g = 0; g < groups; ++g) {
    alignas(64) int32_t p[blockColumns];
    Dots::sum(row.values + 16 * g, block.quads + 4 * g, row.correction[g], p);
    for (int n = 0; n < blockColumns; ++n)
      sums[n] += double(float(p[n]) * (row.scales[g] * block.scales[g][n]));
  }
}

template <int groups>
std::vector<DecodedRow<groups>> decodeRows(const BlockScaledOperands &o, const ScaleTable &scales) {
  std::vector<DecodedRow<groups>> rows(o.rows);
  for (int m = 0; m < o.rows; ++m)
    decodeRow(rows[m], o.a + 8 * groups * m, o.scalesA + groups * m, scales, o.negateA != o.negateB);
  return rows;
}

template <int groups, typename Dots> FP4_INLINE void runBlocks(const BlockScaledOperands &o) {
  const ScaleTable &scales = ScaleTable::get(o.format);
  const std::vector<DecodedRow<groups>> rows = decodeRows<groups>(o, scales);
  DecodedBlock<groups> block;
  for (int first = 0; first < o.columns; first += blockColumns) {
    decodeBlock(block, o, first, scales);
    const int count = std::min(blockColumns, o.columns - first);
    for (int m = 0; m < o.rows; ++m) {
      float c[blockColumns] = {};
      float *d = o.d + m * o.pitch + first;
      if (o.accumulate)
        std::memcpy(c, d, sizeof(float) * count);
      const ExactRange range = exactRange(rows[m].bounds, block.bounds, o.format);
      Inexact inexact = 0;
      alignas(64) double sums[blockColumns];
      for (int n = 0; n < blockColumns; ++n) {
        const uint32_t bits = std::bit_cast<uint32_t>(c[n]);
        const bool exact = (bits & 0x7F800000u) - range.lowest <= range.span || !(bits << 1);
        inexact |= Inexact(!exact || range.empty) << n;
        sums[n] = 0.0 + double(c[n]);
      }
      addDots<groups, Dots>(rows[m], block, sums);
      for (int n = 0; n < count; ++n) // the 29 bits a float lacks, dropped: round toward zero
        d[n] = static_cast<float>(
            std::bit_cast<double>(std::bit_cast<uint64_t>(sums[n]) & ~0x1FFFFFFFull));
      scalarElements<groups>(o, m, first, inexact & ((1u << count) - 1), c);
    }
  }
}

bool always() { return true; }

// The kernel of a class of dot products, compiled for its processor.
#define FP4_BLOCK_KERNEL(Dots, target)                                                             \
  target void run##Dots(const BlockScaledOperands &o) {                                            \
    o.groups == 8   ? runBlocks<8, Dots>(o)                                                        \
    : o.groups == 6 ? runBlocks<6, Dots>(o)                                                        \
                    : runBlocks<4, Dots>(o);                                                       \
  }

FP4_BLOCK_KERNEL(PortableDots, )
#if defined(__x86_64__)
FP4_BLOCK_KERNEL(Avx2Dots, FP4_AVX2)
#elif defined(__aarch64__)
FP4_BLOCK_KERNEL(NeonDots, )
FP4_BLOCK_KERNEL(DotprodDots, FP4_DOTPROD)
#endif

#if defined(__x86_64__)
/// One group of 16 columns: the dot product of 16 k as floats, already scaled.
template <int groups>
FP4_VNNI inline __m512 groupTerm(const DecodedRow<groups> &row, const DecodedBlock<groups> &block,
                                 int g) {
  const __m512i p = VnniDots::sum(row.values + 16 * g, block.quads + 4 * g, row.correction[g]);
  const __m512 scale =
      _mm512_mul_ps(_mm512_set1_ps(row.scales[g]), _mm512_load_ps(block.scales[g]));
  return _mm512_mul_ps(_mm512_cvtepi32_ps(p), scale);
}

FP4_VNNI inline __m512d lower(__m512 x) { return _mm512_cvtps_pd(_mm512_castps512_ps256(x)); }
FP4_VNNI inline __m512d upper(__m512 x) { return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)); }

/// One row of one block: D, and which elements must be redone.
template <int groups>
FP4_VNNI inline __m512 rowAvx512(const DecodedRow<groups> &row, const DecodedBlock<groups> &block,
                                 __m512 c) {
  __m512d low = _mm512_add_pd(_mm512_setzero_pd(), lower(c));
  __m512d high = _mm512_add_pd(_mm512_setzero_pd(), upper(c));
  for (int g = 0; g < groups; ++g) {
    const __m512 term = groupTerm(row, block, g);
    low = _mm512_add_pd(low, lower(term));
    high = _mm512_add_pd(high, upper(term));
  }
  constexpr int towardZero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
  const __m256 lowF = _mm512_cvt_roundpd_ps(low, towardZero);
  const __m256 highF = _mm512_cvt_roundpd_ps(high, towardZero);
  return _mm512_insertf32x8(_mm512_castps256_ps512(lowF), highF, 1);
}

FP4_VNNI inline Inexact inexactAvx512(const ExactRange &range, __m512 c) {
  if (range.empty)
    return 0xFFFF;
  const __m512i bits = _mm512_castps_si512(c);
  const __m512i field = _mm512_and_si512(bits, _mm512_set1_epi32(0x7F800000));
  const __m512i above = _mm512_sub_epi32(field, _mm512_set1_epi32(int(range.lowest)));
  const __mmask16 outside = _mm512_cmpgt_epu32_mask(above, _mm512_set1_epi32(int(range.span)));
  return _mm512_mask_test_epi32_mask(outside, bits, _mm512_set1_epi32(0x7FFFFFFF));
}

/// truncate(x * 2^shift) of 8 terms.
FP4_VNNI inline __m512d truncated(__m512d x, __m512d power) {
  return _mm512_roundscale_pd(_mm512_mul_pd(x, power), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}

/// 2^x of 8 integers in the range of double exponents.
FP4_VNNI inline __m512d powerOfTwo(__m256i x) {
  const __m512i biased = _mm512_cvtepi32_epi64(_mm256_add_epi32(x, _mm256_set1_epi32(1023)));
  return _mm512_castsi512_pd(_mm512_slli_epi64(biased, 52));
}

FP4_VNNI inline __m256i lowerI(__m512i x) { return _mm512_castsi512_si256(x); }
FP4_VNNI inline __m256i upperI(__m512i x) { return _mm512_extracti32x8_epi32(x, 1); }

/// 16 sums, in fp64 by halves, rounded to fp32 toward zero.
FP4_VNNI inline __m512 towardZero(__m512d low, __m512d high) {
  constexpr int mode = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
  return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvt_roundpd_ps(low, mode)),
                            _mm512_cvt_roundpd_ps(high, mode), 1);
}

/// The definition for a row and block of moderate scales, every term aligned and truncated. `left`
/// gets the elements that only the scalar definition can do.
template <int groups>
FP4_VNNI __m512 alignedRowAvx512(const DecodedRow<groups> &row, const DecodedBlock<groups> &block,
                                 __m512 c, Inexact &left) {
  const __m512i bits = _mm512_castps_si512(c);
  const __m512i field = _mm512_and_si512(_mm512_srli_epi32(bits, 23), _mm512_set1_epi32(255));
  const __mmask16 cZero = _mm512_testn_epi32_mask(bits, _mm512_set1_epi32(0x7FFFFFFF));
  // Subnormal C, and C so large that the result may overflow, are left to the definition.
  __mmask16 bad = _mm512_cmpgt_epu32_mask(_mm512_sub_epi32(field, _mm512_set1_epi32(1)),
                                          _mm512_set1_epi32(226)) &
                  ~cZero;
  const __m512i none = _mm512_set1_epi32(zeroExponent);
  __m512i emax =
      _mm512_mask_mov_epi32(_mm512_sub_epi32(field, _mm512_set1_epi32(127)), cZero, none);
  __m512 terms[groups];
  __m512i exponents[groups];
  for (int g = 0; g < groups; ++g) {
    terms[g] = groupTerm(row, block, g);
    exponents[g] = _mm512_max_epi32(none, _mm512_add_epi32(_mm512_set1_epi32(row.exponents[g]),
                                                           _mm512_load_si512(block.exponents[g])));
    emax = _mm512_max_epi32(emax, exponents[g]);
  }
  for (int g = 0; g < groups; ++g) {
    const __mmask16 zero = _mm512_cmp_ps_mask(terms[g], _mm512_setzero_ps(), _CMP_EQ_OQ);
    bad |= zero & _mm512_cmpeq_epi32_mask(exponents[g], emax) &
           _mm512_cmpgt_epi32_mask(exponents[g], none);
  }
  left = bad;
  const __m512i up = _mm512_sub_epi32(_mm512_set1_epi32(35), emax);
  const __m512d upLow = powerOfTwo(lowerI(up)), upHigh = powerOfTwo(upperI(up));
  __m512d low = _mm512_add_pd(_mm512_setzero_pd(), truncated(lower(c), upLow));
  __m512d high = _mm512_add_pd(_mm512_setzero_pd(), truncated(upper(c), upHigh));
  for (int g = 0; g < groups; ++g) {
    low = _mm512_add_pd(low, truncated(lower(terms[g]), upLow));
    high = _mm512_add_pd(high, truncated(upper(terms[g]), upHigh));
  }
  const __m512i down = _mm512_sub_epi32(emax, _mm512_set1_epi32(35));
  return towardZero(_mm512_mul_pd(low, powerOfTwo(lowerI(down))),
                    _mm512_mul_pd(high, powerOfTwo(upperI(down))));
}

template <int groups> FP4_VNNI void runGroupsAvx512(const BlockScaledOperands &o) {
  const ScaleTable &scales = ScaleTable::get(o.format);
  const std::vector<DecodedRow<groups>> rows = decodeRows<groups>(o, scales);
  DecodedBlock<groups> block;
  for (int first = 0; first < o.columns; first += blockColumns) {
    decodeBlock(block, o, first, scales);
    const __mmask16 lanes = o.columns - first >= 16 ? 0xFFFF : 0xFF;
    for (int m = 0; m < o.rows; ++m) {
      float *d = o.d + m * o.pitch + first;
      const __m512 c = o.accumulate ? _mm512_maskz_loadu_ps(lanes, d) : _mm512_setzero_ps();
      const ExactRange range = exactRange(rows[m].bounds, block.bounds, o.format);
      Inexact inexact = inexactAvx512(range, c) & lanes;
      if (!inexact) [[likely]] {
        _mm512_mask_storeu_ps(d, lanes, rowAvx512(rows[m], block, c));
        continue;
      }
      inexact = 0xFFFF;
      if (rows[m].bounds.moderate && block.bounds.moderate)
        _mm512_mask_storeu_ps(d, lanes, alignedRowAvx512(rows[m], block, c, inexact));
      alignas(64) float saved[blockColumns];
      _mm512_store_ps(saved, c);
      scalarElements<groups>(o, m, first, inexact & lanes, saved);
    }
  }
}

void runAvx512(const BlockScaledOperands &o) {
  o.groups == 8   ? runGroupsAvx512<8>(o)
  : o.groups == 6 ? runGroupsAvx512<6>(o)
                  : runGroupsAvx512<4>(o);
}
#endif

const BlockScaledKernel kernels[] = {
#if defined(__x86_64__)
    {"avx512-vnni", hasVnni, runAvx512},
    {"avx2", hasAvx2, runAvx2Dots},
#elif defined(__aarch64__)
    {"neon-dotprod", hasArmByteDots, runDotprodDots},
    {"neon", always, runNeonDots},
#endif
    {"baseline", always, runPortableDots},
};

} // namespace

const BlockScaledKernel *blockScaledKernels(size_t &count) {
  count = std::size(kernels);
  return kernels;
}

void blockScaledMma(const BlockScaledOperands &operands) {
  static const BlockScaledKernel *best =
      std::find_if(std::begin(kernels), std::end(kernels), [](auto &k) { return k.supported(); });
  best->run(operands);
}

} // namespace fp4::sim
