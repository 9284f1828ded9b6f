// Whole products: the MMA model step by step, and the fp64 reference with its bound.
#include "fp4/Numerics/BlockScaledGemm.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/UE8M0.h"
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <string>
#include <thread>

namespace fp4::numerics {
namespace {

constexpr uint64_t rowTile = 64;

auto fail(std::string message, std::string note = "") {
  return makeError(ErrorKind::Usage, std::move(message), std::move(note));
}

Status validate(const GemmProblem &p) {
  const unsigned block = blockSizeOf(p.format);
  if (p.depth == 0 || p.depth % block)
    return fail("K must be a positive multiple of " + std::to_string(block) + " for " +
                std::string(stringify(p.format)) + ", but got " + std::to_string(p.depth));
  if (!p.a.data || !p.b.data || !p.a.scales || !p.b.scales)
    return fail("matrix product expects data and scales of both operands");
  if (p.a.dataPitch && p.a.dataPitch < p.depth / 2)
    return fail("row pitch of operand a must be at least K / 2 bytes");
  if (p.b.dataPitch && p.b.dataPitch < p.depth / 2)
    return fail("row pitch of operand b must be at least K / 2 bytes");
  return {};
}

uint64_t stepsOf(const GemmProblem &p) { return (p.depth + fp4MmaK - 1) / fp4MmaK; }

/// An operand with dense rows of whole K = 64 steps, zero behind K.
struct PaddedOperand {
  uint64_t rows, steps, scalesPerStep;
  std::vector<uint8_t> data, scales;

  PaddedOperand(const GemmProblem &p, const GemmOperand &o)
      : rows(o.rows), steps(stepsOf(p)), scalesPerStep(fp4MmaK / blockSizeOf(p.format)),
        data(rows * steps * fp4MmaRowBytes), scales(rows * steps * scalesPerStep) {
    const uint64_t rowBytes = p.depth / 2, rowScales = p.depth / blockSizeOf(p.format);
    const uint64_t dataPitch = o.dataPitch ? o.dataPitch : rowBytes;
    const uint64_t scalePitch = o.scalePitch ? o.scalePitch : rowScales;
    for (uint64_t r = 0; r < rows; ++r) {
      std::memcpy(&data[r * steps * fp4MmaRowBytes], o.data + r * dataPitch, rowBytes);
      std::memcpy(&scales[r * steps * scalesPerStep], o.scales + r * scalePitch, rowScales);
    }
  }

  Fp4MmaOperand step(uint64_t row, uint64_t s) const {
    return {&data[(row * steps + s) * fp4MmaRowBytes], steps * fp4MmaRowBytes,
            &scales[(row * steps + s) * scalesPerStep], steps * scalesPerStep};
  }
};

/// Runs body(first row, rows) for every tile of rows, on `threads` threads.
template <typename Body> void forRowTiles(uint64_t rows, unsigned threads, const Body &body) {
  std::atomic<uint64_t> next = 0;
  const auto work = [&] {
    for (uint64_t row; (row = next.fetch_add(rowTile)) < rows;)
      body(row, std::min(rowTile, rows - row));
  };
  const uint64_t tiles = (rows + rowTile - 1) / rowTile;
  const unsigned wanted = threads ? threads : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> pool;
  for (unsigned i = 1; i < std::min<uint64_t>(wanted, tiles); ++i)
    pool.emplace_back(work);
  work();
  for (std::thread &t : pool)
    t.join();
}

hw::ScaleType scaleTypeOf(BlockFormat f) {
  return f == BlockFormat::NVFP4 ? hw::ScaleType::UE4M3 : hw::ScaleType::UE8M0;
}
hw::ScaleVector scaleVectorOf(BlockFormat f) {
  return f == BlockFormat::NVFP4 ? hw::ScaleVector::X4 : hw::ScaleVector::X2;
}

//===--- fp64 reference --------------------------------------------------===//

/// An operand decoded for the reference: values, and per 16 elements the scale and the power of
/// two of its exponent. Element (row, k) lies at row * rowStride + k * kStride.
struct DecodedOperand {
  std::vector<float> values;
  std::vector<double> scales, powers;
  uint64_t depth, groups, rows;

  /// `transposed` puts k first, for loops along rows of B.
  DecodedOperand(const GemmProblem &p, const GemmOperand &o, bool transposed)
      : depth(stepsOf(p) * fp4MmaK), groups(depth / 16), rows(o.rows) {
    const PaddedOperand padded(p, o);
    values.resize(rows * depth);
    scales.resize(rows * groups);
    powers.resize(rows * groups);
    for (uint64_t r = 0; r < rows; ++r) {
      for (uint64_t k = 0; k < depth; ++k)
        values[transposed ? k * rows + r : r * depth + k] =
            decodeE2M1(static_cast<uint8_t>(padded.data[(r * depth + k) / 2] >> (k % 2 * 4)));
      for (uint64_t g = 0; g < groups; ++g) {
        const uint64_t at = transposed ? g * rows + r : r * groups + g;
        setScale(p.format, padded.scales[(r * depth + g * 16) / blockSizeOf(p.format)], at);
      }
    }
  }

private:
  void setScale(BlockFormat format, uint8_t byte, uint64_t at) {
    const double s = format == BlockFormat::NVFP4 ? decodeUE4M3(byte) : decodeUE8M0(byte);
    scales[at] = s;
    const double lowest = format == BlockFormat::NVFP4 ? 0x1p-6 : 0;
    powers[at] = s == 0 || std::isnan(s)
                     ? 0
                     : std::max(lowest, std::ldexp(1.0, static_cast<int>(std::ilogb(s))));
  }
};

/// Columns handled at once.
constexpr uint64_t chunk = 64;

/// Running quantities of one row against a chunk of columns (docs/Numerics.md, error bound).
struct ReferenceChunk {
  double sum[chunk] = {};       ///< exact sum so far
  double magnitude[chunk] = {}; ///< sum of |term| so far
  double error[chunk] = {};     ///< bound on |model accumulator - sum|
  double power[chunk] = {};     ///< largest 2^(scale exponent) of this step

  void addGroup(const float *aValues, double aScale, double aPower, const DecodedOperand &b,
                uint64_t group, uint64_t first, uint64_t count) {
    float dot[chunk] = {}, absolute[chunk] = {};
    for (uint64_t k = 0; k < 16; ++k) {
      const float a = aValues[k], aAbs = std::fabs(a);
      const float *row = &b.values[(group * 16 + k) * b.rows + first];
      for (uint64_t j = 0; j < count; ++j) {
        dot[j] += a * row[j];
        absolute[j] += aAbs * std::fabs(row[j]);
      }
    }
    const double *bScales = &b.scales[group * b.rows + first];
    const double *bPowers = &b.powers[group * b.rows + first];
    for (uint64_t j = 0; j < count; ++j) {
      const double s = aScale * bScales[j];
      sum[j] += dot[j] * s;
      magnitude[j] += absolute[j] * s;
      power[j] = std::max(power[j], aPower * bPowers[j]);
    }
  }

  /// One step's rounding: five terms cut at 2^-35 of the largest exponent, and the cut to 24 bits.
  void endStep(uint64_t count) {
    for (uint64_t j = 0; j < count; ++j) {
      const double reach = magnitude[j] + error[j];
      error[j] += 0x1p-23 * reach + 5 * 0x1p-35 * std::max(power[j], reach) + 0x1p-148;
      power[j] = 0;
    }
  }
};

struct OutputRounding {
  double unit, smallest; ///< relative and absolute half steps of the output type
  double largest;        ///< above it the result may be infinite
};

OutputRounding outputRounding(FloatType type) {
  switch (type) {
  case FloatType::BF16:
    return {0x1p-8, 0x1p-134, 0x1.FEp127};
  case FloatType::F16:
    return {0x1p-11, 0x1p-25, 65504};
  case FloatType::F32:
    break;
  }
  return {0, 0, 0x1.FFFFFEp127}; // the accumulator or its product with alpha is already fp32
}

void finish(const GemmProblem &p, const ReferenceChunk &r, uint64_t count, double *values,
            double *bounds) {
  const OutputRounding out = outputRounding(p.output);
  const double alpha = p.alpha ? *p.alpha : 1.0;
  const double fp64 = static_cast<double>(p.depth) * 0x1p-52; // of the reference itself
  for (uint64_t j = 0; j < count; ++j) {
    values[j] = alpha * r.sum[j];
    double error = std::fabs(alpha) * (r.error[j] + fp64 * r.magnitude[j]);
    if (p.alpha)
      error += 0x1p-24 * (std::fabs(values[j]) + error) + 0x1p-150;
    bounds[j] = error + out.unit * (std::fabs(values[j]) + error) + out.smallest;
    if (std::fabs(values[j]) + bounds[j] > out.largest)
      bounds[j] = INFINITY;
  }
}

} // namespace

Expected<std::vector<float>> gemmMmaModel(const GemmProblem &p) {
  FP4_TRY(validate(p));
  const PaddedOperand a(p, p.a), b(p, p.b);
  const hw::ScaleType type = scaleTypeOf(p.format);
  const hw::ScaleVector vector = scaleVectorOf(p.format);
  const uint64_t n = p.b.rows;
  std::vector<float> d(p.a.rows * n);
  if (d.empty())
    return d;
  forRowTiles(p.a.rows, p.threads, [&](uint64_t row, uint64_t count) {
    float *tile = &d[row * n];
    for (uint64_t s = 0; s < a.steps; ++s)
      fp4MmaStep(type, vector, static_cast<unsigned>(count), static_cast<unsigned>(n),
                 a.step(row, s), b.step(0, s), tile, n, s != 0);
    for (uint64_t i = 0; i < count * n; ++i)
      tile[i] = roundTo(p.output, p.alpha ? *p.alpha * tile[i] : tile[i]);
  });
  return d;
}

Expected<GemmReference> gemmReference(const GemmProblem &p) {
  FP4_TRY(validate(p));
  const DecodedOperand a(p, p.a, false), b(p, p.b, true);
  GemmReference out;
  out.values.resize(a.rows * b.rows);
  out.bounds.resize(a.rows * b.rows);
  forRowTiles(a.rows, p.threads, [&](uint64_t firstRow, uint64_t rows) {
    for (uint64_t column = 0; column < b.rows; column += chunk)
      for (uint64_t row = firstRow; row < firstRow + rows; ++row) {
        const uint64_t count = std::min(chunk, b.rows - column);
        ReferenceChunk r;
        for (uint64_t g = 0; g < a.groups; ++g) {
          r.addGroup(&a.values[row * a.depth + g * 16], a.scales[row * a.groups + g],
                     a.powers[row * a.groups + g], b, g, column, count);
          if (g % 4 == 3)
            r.endStep(count);
        }
        const uint64_t at = row * b.rows + column;
        finish(p, r, count, &out.values[at], &out.bounds[at]);
      }
  });
  return out;
}

float alphaFactor(float e4m3MaxA, float e4m3MaxB) {
  return static_cast<float>(1.0 / (36.0 * double(e4m3MaxA) * double(e4m3MaxB)));
}

float matmulAlpha(float amaxA, float amaxB, float factor) { return amaxA * amaxB * factor; }

} // namespace fp4::numerics
