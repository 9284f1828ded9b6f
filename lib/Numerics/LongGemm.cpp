// The model of GEMMs by instructions of fp4 with K of 96 (sm_103a, sm_107a) and 128 (sm_107a).
//
// An instruction has the sums of six or eight groups of 16 products. [uncertain] Nobody has
// published its arithmetic. The model aligns these terms and the accumulator as an instruction of
// K = 64 aligns four and the accumulator.
#include "GemmOperands.h"
#include "fp4/Support/Parallel.h"
#include <cstring>

namespace fp4::numerics {
namespace {

/// An operand with dense rows of whole instructions, zero behind K.
struct LongSteps {
  uint64_t steps, rowBytes, scalesPerStep;
  std::vector<uint8_t> data, scales;

  LongSteps(const GemmProblem &p, const GemmOperand &o, unsigned k)
      : steps((p.depth + k - 1) / k), rowBytes(k / 2), scalesPerStep(k / blockSizeOf(p.format)),
        data(o.rows * steps * rowBytes), scales(o.rows * steps * scalesPerStep) {
    const uint64_t ofData = p.depth / 2, ofScales = p.depth / blockSizeOf(p.format);
    const uint64_t dataPitch = o.dataPitch ? o.dataPitch : ofData;
    const uint64_t scalePitch = o.scalePitch ? o.scalePitch : ofScales;
    for (uint64_t r = 0; r < o.rows; ++r) {
      std::memcpy(&data[r * steps * rowBytes], o.data + r * dataPitch, ofData);
      std::memcpy(&scales[r * steps * scalesPerStep], o.scales + r * scalePitch, ofScales);
    }
  }
  const uint8_t *dataOf(uint64_t row, uint64_t step) const {
    return &data[(row * steps + step) * rowBytes];
  }
  const uint8_t *scalesOf(uint64_t row, uint64_t step) const {
    return &scales[(row * steps + step) * scalesPerStep];
  }
};

} // namespace

std::vector<float> longModel(const GemmProblem &p) {
  const unsigned k = hw::mmaK(hw::MmaKind::MXF4NVF4, /*sparse=*/false, p.mmaDepth);
  const LongSteps a(p, p.a, k), b(p, p.b, k);
  const auto type = isMX(p.format) ? hw::ScaleType::UE8M0 : hw::ScaleType::UE4M3;
  const auto vector = blockSizeOf(p.format) == 16 ? hw::ScaleVector::X4 : hw::ScaleVector::X2;
  const EpilogueProgram epilogue(hasAlpha(p), p.epilogue, p.output);
  std::vector<float> result(p.a.rows * p.b.rows);
  parallelFor(p.a.rows, p.threads, [&](uint64_t row) {
    for (uint64_t column = 0; column < p.b.rows; ++column) {
      float sum = 0;
      forRangesAt(p, row, column / streamUnit * streamUnit, [&](uint64_t begin, uint64_t end) {
        float part = 0;
        const uint64_t last = std::min((end * fp4MmaK + k - 1) / k, a.steps);
        for (uint64_t s = begin * fp4MmaK / k; s < last; ++s)
          part = fp4MmaElement(type, vector, a.dataOf(row, s), a.scalesOf(row, s),
                               b.dataOf(column, s), b.scalesOf(column, s), part, k);
        sum = begin == 0 ? part : sum + part;
      });
      result[row * p.b.rows + column] = epilogue.apply(sum, alphaAt(p, row, column).value_or(1.f));
    }
  });
  return result;
}

} // namespace fp4::numerics
