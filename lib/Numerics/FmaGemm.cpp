// The model of a GEMM without a tensor core: exact sums of scale blocks, added with fused
// multiply-adds in lanes, which are added in pairs (BlockScaledGemm.h).
#include "GemmOperands.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/UE8M0.h"
#include "fp4/Support/Parallel.h"

#include <array>
#include <cmath>
#include <mutex>

namespace fp4::numerics {
namespace {

/// Rows as twice their values, and their factors.
struct DecodedRows {
  std::vector<int8_t> values;
  std::vector<float> factors;
  uint64_t depth, blocks;

  DecodedRows(const GemmProblem &p, const GemmOperand &o)
      : depth(p.depth), blocks(p.depth / blockSizeOf(p.format)) {
    const uint64_t dataPitch = o.dataPitch ? o.dataPitch : depth / 2;
    const uint64_t scalePitch = o.scalePitch ? o.scalePitch : blocks;
    for (uint64_t row = 0; row < o.rows; ++row) {
      for (uint64_t k = 0; k < depth; ++k) {
        const uint8_t code = o.data[row * dataPitch + k / 2] >> (k % 2 * 4) & 15;
        values.push_back(static_cast<int8_t>(2 * decodeE2M1(code)));
      }
      for (uint64_t block = 0; block < blocks; ++block) {
        const uint8_t scale = o.scales[row * scalePitch + block];
        factors.push_back(isMX(p.format) ? decodeUE8M0(scale) : decodeUE4M3(scale));
      }
    }
  }

  const int8_t *block(uint64_t row, uint64_t number, unsigned size) const {
    return &values[row * depth + number * size];
  }
  float factor(uint64_t row, uint64_t number) const { return factors[row * blocks + number]; }
};

float sumOf(const DecodedRows &a, uint64_t row, const DecodedRows &b, uint64_t column,
            unsigned size) {
  std::array<float, fmaLanes> lanes = {};
  for (uint64_t block = 0; block < a.blocks; ++block) {
    const int8_t *x = a.block(row, block, size), *y = b.block(column, block, size);
    int dot = 0;
    for (unsigned i = 0; i < size; ++i)
      dot += x[i] * y[i];
    float &lane = lanes[block * size / fmaChunk % fmaLanes];
    lane = std::fma(static_cast<float>(dot) * (a.factor(row, block) * 0.25f),
                    b.factor(column, block), lane);
  }
  for (unsigned stride = fmaLanes / 2; stride > 0; stride /= 2)
    for (unsigned i = 0; i < stride; ++i)
      lanes[i] += lanes[i + stride];
  return lanes[0];
}

} // namespace

uint64_t fmaRoundings(const GemmProblem &p) {
  const uint64_t chunks = (p.depth + fmaChunk - 1) / fmaChunk;
  const uint64_t ofLane = (chunks + fmaLanes - 1) / fmaLanes * (fmaChunk / blockSizeOf(p.format));
  return ofLane + 5; // and of the pairs
}

std::vector<float> fmaModel(const GemmProblem &p) {
  const DecodedRows a(p, p.a), b(p, p.b);
  const EpilogueProgram epilogue(hasAlpha(p), p.epilogue, p.output);
  std::vector<float> result(p.a.rows * p.b.rows);
  std::mutex mutex;
  uint64_t done = 0;
  parallelFor(p.b.rows, p.threads, [&](uint64_t column) {
    for (uint64_t row = 0; row < p.a.rows; ++row)
      result[row * p.b.rows + column] = epilogue.apply(
          sumOf(a, row, b, column, blockSizeOf(p.format)), alphaAt(p, row, column).value_or(1.f));
    const std::lock_guard lock(mutex);
    if (p.progress)
      p.progress(done += p.a.rows, result.size());
  });
  return result;
}

} // namespace fp4::numerics
