//===- WarpGemm512.cpp - 16 rows of one warp, with AVX-512 -------------===//
//
// The 16 rows of A are the lanes of a vector, and one column of B after the other is multiplied by
// all of them (Dense512.h). In a register of A, C or D, lane 4 r + c belongs to row r; word c of
// all rows of two registers makes a vector. A register of B has 8 factors of each column, one after
// the other.
//
//===----------------------------------------------------------------------===//
#include "Dense512.h"
#include "DenseKernels.h"
#include "fp4/Numerics/WarpGemm.h"
#include <cstring>

namespace fp4::numerics {

#ifdef FP4_MULTIVERSION_X86

using namespace dense512;
using hw::MmaType;

namespace {

constexpr unsigned columns = 8, maxK = 16;

/// Words c, 4 + c, ... of two registers, which hold rows 0 to 7 and 8 to 15.
FP4_AVX512_INLINE inline __m512i pick(const uint32_t *low, const uint32_t *high, unsigned c) {
  const __m512i every = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
  const __m512i which = _mm512_add_epi32(every, all(int32_t(c)));
  const __m512i first =
      _mm512_permutex2var_epi32(_mm512_loadu_si512(low), which, _mm512_loadu_si512(low + lanes));
  const __m512i second =
      _mm512_permutex2var_epi32(_mm512_loadu_si512(high), which, _mm512_loadu_si512(high + lanes));
  return _mm512_mask_blend_epi32(0xFF00, first, second);
}

/// Undoes pick: words 0 to 3 of every row go to a register of rows 0 to 7 and to one of rows 8 to
/// 15.
FP4_AVX512_INLINE inline void unpick(const __m512i (&words)[4], uint32_t *low, uint32_t *high) {
  const __m512i lowPairs[] = {_mm512_unpacklo_epi32(words[0], words[1]),
                              _mm512_unpacklo_epi32(words[2], words[3])};
  const __m512i highPairs[] = {_mm512_unpackhi_epi32(words[0], words[1]),
                               _mm512_unpackhi_epi32(words[2], words[3])};
  const __m512i rows[] = {_mm512_unpacklo_epi64(lowPairs[0], lowPairs[1]), // 0, 4, 8, 12
                          _mm512_unpackhi_epi64(lowPairs[0], lowPairs[1]), // 1, 5, 9, 13
                          _mm512_unpacklo_epi64(highPairs[0], highPairs[1]),
                          _mm512_unpackhi_epi64(highPairs[0], highPairs[1])};
  alignas(64) uint32_t out[4][lanes];
  for (unsigned i = 0; i < 4; ++i)
    _mm512_store_si512(out[i], rows[i]);
  for (unsigned row = 0; row < columns; ++row) {
    const auto from = [&](unsigned r) { return &out[r % 4][r / 4 * 4]; };
    _mm_storeu_si128(reinterpret_cast<__m128i *>(low + 4 * row),
                     _mm_load_si128(reinterpret_cast<const __m128i *>(from(row))));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(high + 4 * row),
                     _mm_load_si128(reinterpret_cast<const __m128i *>(from(row + 8))));
  }
}

/// Converts f16 that are the low halves of words.
FP4_AVX512_INLINE inline __m512 fromHalves(__m512i words) {
  return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(words));
}

/// Factor `index` of the 2 or 4 in each word.
FP4_AVX512_INLINE inline __m512 factors(MmaType type, __m512i words, unsigned index) {
  const __m512i shifted = _mm512_srl_epi32(words, _mm_cvtsi32_si128(int(index * 8)));
  switch (type) {
  case MmaType::F16:
    return fromHalves(index ? _mm512_srli_epi32(words, 16) : words);
  case MmaType::BF16:
    return _mm512_castsi512_ps(index ? _mm512_and_si512(words, all(int32_t(0xFFFF0000)))
                                     : _mm512_slli_epi32(words, 16));
  case MmaType::E5M2:
    return fromHalves(_mm512_slli_epi32(shifted, 8));
  default: { // E4M3, whose bias is 7, by way of f16
    const __m512i magnitude = _mm512_and_si512(shifted, all(0x7F));
    const __m512i sign = _mm512_slli_epi32(_mm512_and_si512(shifted, all(0x80)), 8);
    const __m512i code = _mm512_or_si512(_mm512_slli_epi32(magnitude, 7), sign);
    const __m512 value = _mm512_mul_ps(fromHalves(code), _mm512_set1_ps(0x1p8f));
    const __mmask16 nan = _mm512_cmpeq_epi32_mask(magnitude, all(0x7F));
    return _mm512_mask_mov_ps(value, nan, _mm512_castsi512_ps(all(0x7F800000)));
  }
  }
}

/// The least exponent that subnormal factors count with; fp8 may be multiplied as f16.
int32_t leastExponent(MmaType type, bool asHalves) {
  constexpr int32_t ofBrain = -126, ofHalf = -14, ofE4M3 = -6;
  return type == MmaType::BF16 ? ofBrain : type == MmaType::E4M3 && !asHalves ? ofE4M3 : ofHalf;
}

/// The factors of one matmul, `perWord` of which are taken from a word of a register.
template <unsigned depth, unsigned perWord> struct Operands {
  static constexpr unsigned perRegister = 4 * perWord; ///< k of one
  bool special = false;                                ///< true for NaN or infinity
  __m512 a[depth];
  __m256i aExponents[depth];
  // Factors of B by register and place in a word, and then by column and word.
  alignas(64) float b[depth / perRegister][perWord][32];
  alignas(64) int32_t bExponents[depth / perRegister][perWord][32]; ///< twice, in 16 bits
};

/// Loads factors of A, from `first` on of each word.
template <unsigned depth, unsigned perWord>
FP4_AVX512_INLINE inline void loadA(const std::array<const uint32_t *, 4> &a, MmaType type,
                                    bool asHalves, unsigned first, Operands<depth, perWord> &to) {
  const int32_t least = leastExponent(type, asHalves);
  for (unsigned i = 0; i < depth / to.perRegister; ++i)
    for (unsigned c = 0; c < 4; ++c) {
      const __m512i words = pick(a[2 * i], a[2 * i + 1], c);
      for (unsigned j = 0; j < perWord; ++j) {
        const __m512 value = factors(type, words, first + j);
        const unsigned at = to.perRegister * i + perWord * c + j;
        to.special |= specials(value) != 0;
        to.a[at] = value;
        to.aExponents[at] = _mm512_cvtepi32_epi16(exponents(value, least, absentExponent));
      }
    }
}

/// Loads factors of B as loadA does; `b(i)` is register i.
template <unsigned depth, unsigned perWord, typename Registers>
FP4_AVX512_INLINE inline void loadB(Registers b, MmaType type, bool asHalves, unsigned first,
                                    Operands<depth, perWord> &to) {
  const int32_t least = leastExponent(type, asHalves);
  for (unsigned i = 0; i < depth / to.perRegister; ++i)
    for (unsigned half = 0; half < 2; ++half) { // of 4 columns
      const __m512i words = _mm512_loadu_si512(b(i) + half * lanes);
      for (unsigned j = 0; j < perWord; ++j) {
        const __m512 value = factors(type, words, first + j);
        to.special |= specials(value) != 0;
        const __m512i exponent = exponents(value, least, absentExponent);
        _mm512_store_ps(&to.b[i][j][half * lanes], value);
        _mm512_store_si512(&to.bExponents[i][j][half * lanes],
                           _mm512_or_si512(_mm512_and_si512(exponent, all(0xFFFF)),
                                           _mm512_slli_epi32(exponent, 16)));
      }
    }
}

/// Columns of D from those of C, from `n` on: `count` at a time, so that A is loaded once for all
/// of them. `bad` gets the elements that are not right. 32 terms fit in 32 bits with the precision
/// of fp8.
template <unsigned count, unsigned depth, unsigned perWord>
FP4_AVX512_INLINE inline void addColumns(const Operands<depth, perWord> &operands, unsigned n,
                                         __m512i *d, const DenseRowOptions &options,
                                         __mmask16 &bad) {
  constexpr unsigned perRegister = 4 * perWord;
  const auto ofB = [&](const auto &array, unsigned i, unsigned j) {
    return array[i / perRegister][i % perWord][4 * (n + j) + i % perRegister / perWord];
  };
  __m256i most[count];
  for (__m256i &one : most)
    one = _mm256_set1_epi16(2 * absentExponent);
  for (unsigned i = 0; i < depth; ++i)
    for (unsigned j = 0; j < count; ++j)
      most[j] = _mm256_max_epi16(most[j],
                                 _mm256_add_epi16(_mm256_set1_epi32(ofB(operands.bExponents, i, j)),
                                                  operands.aExponents[i]));
  Elements elements[count];
  __m512i sums[count];
  for (unsigned j = 0; j < count; ++j) {
    elements[j] = begin(d[j], options, most[j], 0, nullptr);
    sums[j] = _mm512_setzero_si512();
  }
  for (unsigned i = 0; i < depth; ++i)
    for (unsigned j = 0; j < count; ++j) {
      const __m512 product = _mm512_mul_ps(_mm512_set1_ps(ofB(operands.b, i, j)), operands.a[i]);
      sums[j] = _mm512_add_epi32(sums[j],
                                 _mm512_cvttps_epi32(_mm512_mul_ps(product, elements[j].factor)));
    }
  for (unsigned j = 0; j < count; ++j) {
    add(elements[j], sums[j]);
    __mmask16 some;
    d[j] = finish(elements[j], options, some);
    bad |= some;
  }
}

/// All columns of a tile.
template <unsigned depth, unsigned perWord>
FP4_AVX512_INLINE inline void addTile(const Operands<depth, perWord> &operands,
                                      __m512i (&d)[columns], const DenseRowOptions &options,
                                      __mmask16 &bad) {
  constexpr unsigned together = 4;
  for (unsigned n = 0; n < columns; n += together)
    addColumns<together>(operands, n, d + n, options, bad);
}

FP4_AVX512_INLINE inline __m512i ofC(const WarpGemm &p, unsigned n) {
  return pick(p.c[n % 2], p.c[2 + n % 2], n / 2);
}

/// C plus the sum of fp8's two products, rounded to nearest; NaN is canonical.
FP4_AVX512_INLINE inline __m512i plus(__m512i c, __m512i sum) {
  const __m512 total = _mm512_add_ps(_mm512_castsi512_ps(c), _mm512_castsi512_ps(sum));
  return _mm512_mask_mov_epi32(_mm512_castps_si512(total),
                               _mm512_cmp_ps_mask(total, total, _CMP_UNORD_Q), all(0x7FFFFFFF));
}

template <unsigned depth>
FP4_AVX512_INLINE inline void load(const WarpGemm &p, unsigned first, Operands<depth, 2> &to) {
  loadA(p.a, p.aType, true, first, to);
  loadB([&](unsigned i) { return p.b[i]; }, p.bType, true, first, to);
}

/// Multiplies one tile. For fp8, the two low bytes of all registers are multiplied first, and the
/// two high bytes then.
template <unsigned depth> FP4_AVX512 bool multiply512(const WarpGemm &p) {
  const DenseRowOptions options;
  Operands<depth, 2> operands;
  load(p, 0, operands);
  const bool narrow = depth != p.k;
  __m512i d[columns];
  __mmask16 bad = operands.special ? 0xFFFF : 0;
  for (unsigned n = 0; n < columns; ++n)
    d[n] = narrow ? _mm512_setzero_si512() : ofC(p, n);
  addTile(operands, d, options, bad);
  if (narrow) {
    load(p, 2, operands);
    addTile(operands, d, options, bad);
    for (unsigned n = 0; n < columns; ++n)
      d[n] = plus(ofC(p, n), d[n]);
  }
  if (bad || operands.special)
    return false;
  for (unsigned j = 0; j < 2; ++j)
    unpick({d[j], d[2 + j], d[4 + j], d[6 + j]}, p.d[j], p.d[2 + j]);
  return true;
}

/// Makes two registers of eight rows of 32 bytes: one of the first halves of all rows, one of the
/// second halves.
void intoRegisters(const uint8_t *rows, uint32_t (&out)[2][32]) {
  constexpr size_t rowBytes = 32, part = rowBytes / 2;
  for (size_t row = 0; row < columns; ++row)
    for (size_t half = 0; half < 2; ++half)
      std::memcpy(&out[half][row * part / 4], rows + row * rowBytes + half * part, part);
}

/// Multiplies all tiles and writes D when all of them are right.
template <unsigned depth, unsigned perWord> FP4_AVX512 bool multiplyTiles512(const WarpTiles &p) {
  constexpr unsigned mostTiles = 32;
  DenseRowOptions options;
  if (perWord == 4)
    options.precision = hopperFP8;
  constexpr size_t bytesOfEight = 256;
  alignas(64) uint32_t low[2][32], high[2][32], ofB[2][32];
  intoRegisters(p.a.data(), low);
  intoRegisters(p.a.data() + bytesOfEight, high);
  Operands<depth, perWord> operands;
  loadA({low[0], high[0], low[1], high[1]}, p.aType, false, 0, operands);
  const unsigned tiles = unsigned(p.d.size() / 4);
  __m512i d[mostTiles][columns];
  __mmask16 bad = 0;
  for (unsigned tile = 0; tile < tiles && !bad && !operands.special; ++tile) {
    uint32_t *const *of = &p.d[4 * tile];
    intoRegisters(p.b.data() + tile * bytesOfEight, ofB);
    loadB([&](unsigned i) { return ofB[i]; }, p.bType, false, 0, operands);
    for (unsigned n = 0; n < columns; ++n)
      d[tile][n] = p.accumulate ? pick(of[n % 2], of[2 + n % 2], n / 2) : _mm512_setzero_si512();
    addTile(operands, d[tile], options, bad);
  }
  if (bad || operands.special)
    return false;
  for (unsigned tile = 0; tile < tiles; ++tile)
    for (unsigned j = 0; j < 2; ++j)
      unpick({d[tile][j], d[tile][2 + j], d[tile][4 + j], d[tile][6 + j]}, p.d[4 * tile + j],
             p.d[4 * tile + 2 + j]);
  return true;
}

} // namespace

bool multiplyWarp(const WarpGemm &product) {
  if (!hasAVX512Products())
    return false;
  const bool narrow = product.aType == MmaType::E4M3 || product.aType == MmaType::E5M2;
  return product.k == (narrow ? 2 : 1) * maxK ? multiply512<maxK>(product)
                                              : multiply512<maxK / 2>(product);
}

bool multiplyTiles(const WarpTiles &tiles) {
  if (!hasAVX512Products())
    return false;
  const bool narrow = tiles.aType == MmaType::E4M3 || tiles.aType == MmaType::E5M2;
  return narrow ? multiplyTiles512<2 * maxK, 4>(tiles) : multiplyTiles512<maxK, 2>(tiles);
}

#else

bool multiplyWarp(const WarpGemm &) { return false; }
bool multiplyTiles(const WarpTiles &) { return false; }

#endif

} // namespace fp4::numerics
