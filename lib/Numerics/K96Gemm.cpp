// The model of GEMMs by instructions of K = 96 (sm_103a).
//
// An instruction has the sums of six groups of 16 products. [uncertain] Nobody has published its
// arithmetic. The model aligns six terms and the accumulator as an instruction of K = 64 aligns
// four.
#include "GemmOperands.h"
#include "fp4/Support/Parallel.h"
#include <cstring>

namespace fp4::numerics {
namespace {

constexpr unsigned k96 = 96, k96RowBytes = k96 / 2;

/// An operand with dense rows of whole steps of 96, zero behind K.
struct LongSteps {
  uint64_t steps, scalesPerStep;
  std::vector<uint8_t> data, scales;

  LongSteps(const GemmProblem &p, const GemmOperand &o)
      : steps((p.depth + k96 - 1) / k96), scalesPerStep(k96 / blockSizeOf(p.format)),
        data(o.rows * steps * k96RowBytes), scales(o.rows * steps * scalesPerStep) {
    const uint64_t rowBytes = p.depth / 2, rowScales = p.depth / blockSizeOf(p.format);
    const uint64_t dataPitch = o.dataPitch ? o.dataPitch : rowBytes;
    const uint64_t scalePitch = o.scalePitch ? o.scalePitch : rowScales;
    for (uint64_t r = 0; r < o.rows; ++r) {
      std::memcpy(&data[r * steps * k96RowBytes], o.data + r * dataPitch, rowBytes);
      std::memcpy(&scales[r * steps * scalesPerStep], o.scales + r * scalePitch, rowScales);
    }
  }
  const uint8_t *dataOf(uint64_t row, uint64_t step) const {
    return &data[(row * steps + step) * k96RowBytes];
  }
  const uint8_t *scalesOf(uint64_t row, uint64_t step) const {
    return &scales[(row * steps + step) * scalesPerStep];
  }
};

} // namespace

std::vector<float> k96Model(const GemmProblem &p) {
  const LongSteps a(p, p.a), b(p, p.b);
  const auto type = isMX(p.format) ? hw::ScaleType::UE8M0 : hw::ScaleType::UE4M3;
  const auto vector = blockSizeOf(p.format) == 16 ? hw::ScaleVector::X4 : hw::ScaleVector::X2;
  const EpilogueProgram epilogue(hasAlpha(p), p.epilogue, p.output);
  std::vector<float> result(p.a.rows * p.b.rows);
  parallelFor(p.a.rows, p.threads, [&](uint64_t row) {
    for (uint64_t column = 0; column < p.b.rows; ++column) {
      float sum = 0;
      for (uint64_t s = 0; s < a.steps; ++s)
        sum = fp4MmaElement(type, vector, a.dataOf(row, s), a.scalesOf(row, s), b.dataOf(column, s),
                            b.scalesOf(column, s), sum, k96);
      result[row * p.b.rows + column] = epilogue.apply(sum, alphaAt(p, row, column).value_or(1.f));
    }
  });
  return result;
}

} // namespace fp4::numerics
