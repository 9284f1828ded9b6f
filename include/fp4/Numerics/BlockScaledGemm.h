//===- BlockScaledGemm.h - The FP4 tensor core, bit by bit ----------------===//
//
// Two references for D[m,n] = alpha * sum_k A[m,k] B[n,k] with E2M1 operands and one scale per
// block of 16 or 32 elements:
//
//  * the model of tcgen05.mma kind::mxf4 / mxf4nvf4: what the hardware computes, bit by bit, one
//    K = 64 step after the other; then alpha in fp32 and one rounding to the output type.
//  * a plain sum in fp64 with an a-priori bound on how far the model may lie from it.
//
// One K = 64 step (numerics.md): the four sums of 16 products are exact. Each scaled sum and
// the accumulator are aligned to the largest scale exponent, cut to 35 fractional bits and added
// exactly. The result is cut to fp32 toward zero.
//
// Instructions of K = 96 and 128, which sm_103a and sm_107a have, add six or eight scaled sums at a
// time (LongGemm.cpp).
//
// Elements of 8 bits, or of 8 and 4, are those of kind mxf8f6f4: one instruction has K = 32, a
// truncated fused dot product whose terms have the exponents of both scales besides (DenseMma.h).
//
// Threads without a tensor core (TensorCore::None) add blocks with fused multiply-adds.
//
// A tensor core without block scales (TensorCore::Converted) gets f16 or bf16 operands, and one
// instruction has K = 16: a truncated fused dot product (DenseMma.h).
//
// Operands of fp8_block128 have f32 scales, A one for 1 x 128 elements and B one for 128 x 128. The
// tensor core sums 128 products in four instructions of K = 32, each a truncated fused dot product
// (DenseMma.h), which keeps 13 fraction bits where the core is Converted, wgmma (hopperFP8); then
// acc = fma(sum, fp32(sa * sb), acc), block by block, from acc = +0.
//
// Source of the models: MMA-Sim (arXiv 2511.10909), checked there against B200 and H100 hardware.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/InstrDescriptor.h"
#include "fp4/ISA/TargetModel.h"
#include "fp4/Numerics/Compare.h"
#include "fp4/Numerics/Epilogue.h"
#include "fp4/Numerics/Float16.h"
#include "fp4/Numerics/Quantize.h"
#include "fp4/Numerics/StreamK.h"
#include "fp4/Support/Error.h"
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace fp4::numerics {

//===--- One MMA ---------------------------------------------------------===//

/// Elements of K in one MMA and bytes of one operand row of it.
inline constexpr unsigned fp4MmaK = 64;
inline constexpr unsigned fp4MmaRowBytes = 32;

/// Rows of one operand of one MMA: row r is the 32 bytes at data + r * dataPitch (even k in the
/// low nibble) with its scale bytes (4 for scale_vec 4X, 2 for 2X) at scales + r * scalePitch.
struct Fp4MmaOperand {
  const uint8_t *data = nullptr;
  size_t dataPitch = fp4MmaRowBytes;
  const uint8_t *scales = nullptr;
  size_t scalePitch = 4;

  /// The rows from `row` on.
  Fp4MmaOperand from(size_t row) const {
    return {data + row * dataPitch, dataPitch, scales + row * scalePitch, scalePitch};
  }
};

/// d[i * dPitch + j] = (accumulate ? d : 0) + sum_k a[i,k] b[j,k] over one K = 64 step, for i < m
/// and j < n. Bit-accurate; vectorized where no alignment loss is possible, else element by element
/// through fp4MmaElement.
void fp4MmaStep(hw::ScaleType scaleType, hw::ScaleVector vector, unsigned m, unsigned n,
                const Fp4MmaOperand &a, const Fp4MmaOperand &b, float *d, size_t dPitch,
                bool accumulate);

/// Defines one element of the above in integer arithmetic: `a` and `b` are the 32 packed bytes, the
/// scales are 4 or 2 bytes, and `c` is the accumulator. With `k` = 96 they are 48, and 6 or 3
/// bytes; with 128 they are 64, and 8 or 4.
float fp4MmaElement(hw::ScaleType scaleType, hw::ScaleVector vector, const uint8_t *a,
                    const uint8_t *aScales, const uint8_t *b, const uint8_t *bScales, float c,
                    unsigned k = fp4MmaK);

//===--- Whole matrices --------------------------------------------------===//

/// Units that multiply.
enum class TensorCore : uint8_t {
  BlockScaled, ///< tcgen05.mma kind::mxf4 and mxf4nvf4, mma.sync block_scale: K = 64, fp4 operands
  Converted,   ///< wgmma on operands that were converted to 16-bit floats: K = 16
  None         ///< threads, with exact sums of blocks and fused multiply-adds (FmaGemm.cpp)
};

/// With TensorCore::None, K is cut into chunks. Lane l adds the blocks of the chunks l, l + lanes,
/// .. in fp32: lane = fma(4 * sum * (scale of A / 4), scale of B, lane), where 4 * sum is exact.
/// Then lanes are added in pairs: lane l and l + 16, then l + 8, 4, 2 and 1.
inline constexpr unsigned fmaLanes = 32, fmaChunk = 32;

/// The factor that TensorCore::Converted makes of an element: for NVFP4 the f16 of value * scale *
/// 2^-7, for MXFP4 the bf16 of value * scale * 2^-4. The two are exact for every code and scale.
/// The factor of MXFP8 is the bf16 of value * scale, which is exact from 2^-126 up to 2^128; beyond
/// that it is infinite, and below it is rounded to nearest even. Returns the 16 bits.
uint16_t convertElement(BlockFormat format, uint8_t code, uint8_t scale);
/// Converts to the type of the other operand, bf16 or f16 (not of elements of 6 and 8 bits), where
/// that has no scales. Beside f16, the scale of MXFP4 times 2^7 becomes f16 first: the element is
/// exact for scales 2^-30 to 2^6, zero for those below 2^-31, and infinite or NaN for those of at
/// least 2^9.
uint16_t convertElement(BlockFormat format, FloatType type, uint8_t code, uint8_t scale);
/// The power of two that either multiplies by, so that f16 or bf16 holds every product of a value
/// and a scale.
constexpr int convertedExponent(BlockFormat format) {
  return !isMX(format) ? -7 : isPacked(format) ? -4 : 0;
}

/// The power of two beside floats of `type`: scales of MXFP4 weights times 2^7 are in reach of f16.
constexpr int convertedExponent(BlockFormat format, FloatType type) {
  return type == FloatType::F16 && isMX(format) && isPacked(format) ? 7 : convertedExponent(format);
}

/// An operand with linear scales: rows x depth elements, rows of `depth / 2` bytes, or `depth` of
/// more than 4 bits, at `dataPitch`, rows of `depth / block` scale bytes at `scalePitch` (0:
/// dense). A row of fp8_block128 has `depth` bytes, and ceil(depth / 128) scales of 4 bytes, which
/// 128 rows of B share.
struct GemmOperand {
  const uint8_t *data = nullptr;
  const uint8_t *scales = nullptr;
  uint64_t rows = 0;
  uint64_t dataPitch = 0, scalePitch = 0;
};

struct GemmProblem {
  BlockFormat format = BlockFormat::NVFP4;
  /// Format of B if it differs from A's; both are formats of OCP MX.
  std::optional<BlockFormat> rhsFormat = std::nullopt;
  GemmOperand a, b;                          ///< A is M x K, B is N x K
  uint64_t depth = 0;                        ///< K, a multiple of the block size
  std::optional<float> alpha = std::nullopt; ///< factor in fp32 after the sum
  std::span<const float> rowAlpha = {};    ///< alpha of each row of the result, in place of `alpha`
  std::span<const float> columnAlpha = {}; ///< alpha of each column, in place of `alpha`
  FloatType output = FloatType::F32;
  unsigned threads = 0; ///< 0: one per hardware thread
  /// Called now and then, by one thread at a time, with the number of elements that are done.
  std::function<void(uint64_t done, uint64_t total)> progress = {};
  std::vector<EpilogueOp> epilogue = {}; ///< steps between alpha and the rounding
  /// Split-K parts, whose sums are added in fp32 from the first to the last. A part has whole
  /// slices of 256 elements (splitRange), so there are at most as many as slices.
  uint64_t splits = 1;
  /// Instead, parts of K that differ from tile to tile (StreamK.h). TensorCore::BlockScaled, not
  /// with K = 96.
  std::optional<StreamK> streamK = std::nullopt;
  TensorCore core = TensorCore::BlockScaled;
  /// K of instructions, of TensorCore::BlockScaled. K96: elements of 4 bits, and no split-K.
  /// Double: elements of 4 bits, or of 8 on both sides.
  hw::MmaDepth mmaDepth = hw::MmaDepth::Single;
  /// A has elements of this type, bf16 or f16, of which rows are a.dataPitch bytes apart (0:
  /// dense), and no scales. TensorCore::Converted only.
  std::optional<FloatType> floatA = std::nullopt;
  /// Instructions multiply zeros behind K, up to a multiple of so many elements of it. The zeros
  /// turn -0, which a sum below the smallest number becomes, into +0. 0: up to the last instruction
  /// that has elements of K, or for TensorCore::Converted to a multiple of 128.
  uint64_t filledK = 0;
  /// Rows of B that share a scale of fp8_block128. 1 for weights that were prepacked for e4m3
  /// (ByteWeights.h), whose scales are powers of two; then A may have no scales, which are 1.
  uint64_t rowsPerScaleB = 128;
  /// Sums of a split-K part stay in the accumulator of the tensor core, and the power of two of a
  /// row multiplies the sum of all parts. For such weights whose rows have one power of two each.
  bool accumulatesFast = false;
};

constexpr BlockFormat formatOfB(const GemmProblem &p) { return p.rhsFormat.value_or(p.format); }
/// Exponent of the power of two by which the sums of TensorCore::Converted are too large.
constexpr int convertedExponent(const GemmProblem &p) {
  return p.floatA ? convertedExponent(formatOfB(p), *p.floatA)
                  : convertedExponent(p.format) + convertedExponent(formatOfB(p));
}
/// Kind mxf8f6f4 multiplies: powers of two scale blocks, and elements of an operand do not have 4
/// bits.
constexpr bool isMXF8F6F4(const GemmProblem &p) {
  return isMX(p.format) && !(isPacked(p.format) && isPacked(formatOfB(p)));
}

/// Elements of K in a slice, of which split-K parts consist.
inline constexpr uint64_t splitSlice = 256;
/// First and last-but-one slice of part `split` of `splits`, of a GEMM with `slices` of them.
struct SplitRange {
  uint64_t begin, end;
};
constexpr SplitRange splitRange(uint64_t split, uint64_t splits, uint64_t slices) {
  return {split * slices / splits, (split + 1) * slices / splits};
}

/// M x N results in row-major order, each exactly representable in `problem.output`. Fails if K is
/// not a multiple of the block or an operand is missing. K is padded with zeros to a multiple of
/// 64.
Expected<std::vector<float>> gemmMmaModel(const GemmProblem &problem);

/// The fp64 sum times alpha, unrounded; the distance that the rounded model may have from it; and
/// whether the model may have become infinite: once a partial sum exceeds the range of fp32, the
/// accumulator stays infinite, even if the whole sum is small.
struct GemmReference {
  std::vector<double> values;
  std::vector<double> bounds;
  std::vector<Overflow> mayOverflow;
};
Expected<GemmReference> gemmReference(const GemmProblem &problem);
/// Returns the values that an element may take if its sum, or a result of the steps, may have
/// become infinite.
Overflow overflowOf(const EpilogueProgram &epilogue, bool mayBeInfinite);

/// fp32(1 / (6 a * 6 b)) for operands whose largest scales are a and b (Recipe::e4m3Max).
float alphaFactor(float e4m3MaxA = 448.f, float e4m3MaxB = 448.f);
/// alpha of an NVFP4 GEMM as TransformerEngine's kernel computes it: (amaxA * amaxB) * factor.
float matmulAlpha(float amaxA, float amaxB, float factor = alphaFactor());
/// alpha of operands quantized by recipes that have a tensor scale and one AlphaRule. Several
/// amaxes of one operand, one for each of its rows, give one alpha each; the other operand has one
/// amax.
std::vector<float> matmulAlpha(const Recipe &a, std::span<const float> amaxA, const Recipe &b,
                               std::span<const float> amaxB);

} // namespace fp4::numerics
