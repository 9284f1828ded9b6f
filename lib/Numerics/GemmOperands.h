//===- GemmOperands.h - Operands of both models of a GEMM -----------------===//
#pragma once

#include "fp4/Numerics/BlockScaledGemm.h"
#include <algorithm>

namespace fp4::numerics {

/// Checks that K fits the format and the split-K ranges, that operands are there, and that alphas
/// are as many as rows or columns.
Status validate(const GemmProblem &p);

/// Returns true when there are alphas: one, one for each row, or one for each column.
bool hasAlpha(const GemmProblem &p);
/// The factor of element (row, column) of the result.
std::optional<float> alphaAt(const GemmProblem &p, uint64_t row, uint64_t column);

/// The reference of a GEMM before its elements are known.
inline GemmReference emptyReference(const GemmProblem &p) {
  const uint64_t elements = p.a.rows * p.b.rows;
  return {std::vector<double>(elements), std::vector<double>(elements),
          std::vector<Overflow>(elements)};
}

/// Slices of K, of which the ranges of a split-K GEMM consist.
uint64_t slicesOf(const GemmProblem &p);

/// Steps of 64 in K.
uint64_t stepsOf(const GemmProblem &p);

/// Runs body(first step, end) for every split-K range, from the first to the last.
template <typename Body> void forRanges(const GemmProblem &p, const Body &body) {
  const uint64_t slices = slicesOf(p), steps = stepsOf(p), perSlice = splitSlice / fp4MmaK;
  for (uint64_t split = 0; split < p.splits; ++split) {
    const SplitRange range = splitRange(split, p.splits, slices);
    body(range.begin * perSlice, std::min(range.end * perSlice, steps));
  }
}

/// Runs body as forRanges does, for the elements of `row` from `column` on, a multiple of
/// streamUnit, up to the next multiple.
template <typename Body>
void forRangesAt(const GemmProblem &p, uint64_t row, uint64_t column, const Body &body) {
  if (!p.streamK)
    return forRanges(p, body);
  const uint64_t steps = stepsOf(p), perSlice = splitSlice / fp4MmaK;
  const StreamShares shares(*p.streamK, p.a.rows, p.b.rows, slicesOf(p));
  shares.forRanges(shares.tileAt(row, column), [&](uint64_t begin, uint64_t end, uint64_t) {
    body(begin * perSlice, std::min(end * perSlice, steps));
  });
}

/// An operand with dense rows of whole K = 64 steps, zero behind K.
struct PaddedOperand {
  uint64_t rows, steps, scalesPerStep;
  std::vector<uint8_t> data, scales;

  PaddedOperand(const GemmProblem &p, const GemmOperand &o);

  /// The rows from `row` on, in step s.
  Fp4MmaOperand step(uint64_t row, uint64_t s) const {
    return {&data[(row * steps + s) * fp4MmaRowBytes], steps * fp4MmaRowBytes,
            &scales[(row * steps + s) * scalesPerStep], steps * scalesPerStep};
  }
};

/// The model of TensorCore::Converted (gemmMmaModel calls it).
std::vector<float> convertedModel(const GemmProblem &p);
/// The reference of a GEMM with elements of 8 bits or floats (gemmReference calls it).
GemmReference convertedReference(const GemmProblem &p);

/// The code and the scale of an element of an operand with scales.
struct ScaledCode {
  uint8_t code, scale;
};
/// Element k of row `row` of `operand`, whose scales have 8 bits.
ScaledCode scaledCode(const GemmProblem &p, const GemmOperand &operand, BlockFormat format,
                      uint64_t row, uint64_t k);
/// The number that `code` stands for, of elements of 4 or 8 bits.
float decodeElement(BlockFormat format, uint8_t code);

/// The bits of element k of row `row` of A, which are floats of 16 bits.
uint16_t floatBits(const GemmProblem &p, uint64_t row, uint64_t k);

/// The model of TensorCore::None, and how often it rounds a sum.
std::vector<float> fmaModel(const GemmProblem &p);
uint64_t fmaRoundings(const GemmProblem &p);

/// The model of instructions of fp4 of K = 96 and 128 (gemmMmaModel calls it).
std::vector<float> longModel(const GemmProblem &p);

/// The model and the reference of kind mxf8f6f4 (gemmMmaModel and gemmReference call them).
std::vector<float> wideModel(const GemmProblem &p);
GemmReference wideReference(const GemmProblem &p);

/// The model and the reference of formats with f32 scales (gemmMmaModel and gemmReference call
/// them).
std::vector<float> promotedModel(const GemmProblem &p);
GemmReference promotedReference(const GemmProblem &p);

} // namespace fp4::numerics
