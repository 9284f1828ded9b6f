#include "GemmSteps.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/UE5M3.h"
#include "fp4/Numerics/UE8M0.h"
#include <cmath>
#include <cstring>

namespace fp4::numerics {
namespace {

/// The numbers that the references need for each of the 256 scale bytes of a type.
struct ScaleEntry {
  double value; ///< NaN where the byte says so
  double power; ///< 2^exponent in the model; 0 for a zero or NaN scale
  ExponentRange exponents;
};
using ScaleTable = std::array<ScaleEntry, 256>;

/// A type of scales: its numbers, and the exponent of the least one that is normal.
struct ScaleNumbers {
  float (*decode)(uint8_t);
  int leastExponent;
};

ScaleTable makeScaleTable(ScaleNumbers numbers) {
  ScaleTable table;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto code = static_cast<uint8_t>(byte);
    const double value = numbers.decode(code);
    table[byte] = {value, 0, {}};
    if (std::isnan(value)) {
      table[byte].exponents = {0, 10000};
    } else if (value != 0) {
      // A subnormal scale counts with the exponent of the smallest normal value.
      const int exponent = std::max(numbers.leastExponent, std::ilogb(value));
      table[byte].power = std::ldexp(1.0, exponent);
      table[byte].exponents = {exponent, exponent};
    }
  }
  return table;
}

const ScaleTable &scaleTable(hw::ScaleType type) {
  static const std::array<ScaleTable, 3> tables = {makeScaleTable({decodeUE4M3, -6}),
                                                   makeScaleTable({decodeUE8M0, -127}),
                                                   makeScaleTable({decodeUE5M3, 1 - ue5m3Bias})};
  return tables[static_cast<size_t>(type)];
}

/// The two elements of a byte, the even one first.
struct BytePair {
  int8_t value[2], magnitude[2];
  uint8_t offset[2];
};

constexpr auto bytePairs = [] {
  std::array<BytePair, 256> table = {};
  for (unsigned i = 0; i < 512; ++i) {
    const auto doubled = static_cast<int>(2 * e2m1Values[i / 2 >> (i % 2 * 4) & 15]);
    BytePair &pair = table[i / 2];
    pair.value[i % 2] = static_cast<int8_t>(doubled);
    pair.magnitude[i % 2] = static_cast<int8_t>(doubled < 0 ? -doubled : doubled);
    pair.offset[i % 2] = static_cast<uint8_t>(doubled + 12);
  }
  return table;
}();

const ScaleEntry &groupScale(StepKind kind, const uint8_t *scales, unsigned group) {
  return scaleTable(kind.type)[scales[group * kind.scalesPerStep() / stepGroups]];
}

void decodeColumn(StepKind kind, const Fp4MmaOperand &column, unsigned j, StepPanel &panel) {
  for (unsigned i = 0; i < fp4MmaRowBytes; ++i) {
    const BytePair &pair = bytePairs[column.data[i]];
    std::memcpy(&panel.offset[i / 2][4 * j + i % 2 * 2], pair.offset, 2);
    std::memcpy(&panel.magnitudes[i / 2][4 * j + i % 2 * 2], pair.magnitude, 2);
  }
  for (unsigned g = 0; g < stepGroups; ++g) {
    const ScaleEntry &scale = groupScale(kind, column.scales, g);
    panel.scales[g][j] = scale.value;
    panel.powers[j] = std::max(panel.powers[j], scale.power);
    panel.exponents.add(scale.exponents);
  }
}

} // namespace

StepRow decodeStepRow(StepKind kind, const Fp4MmaOperand &source) {
  StepRow row = {};
  for (unsigned i = 0; i < fp4MmaRowBytes; ++i) {
    const BytePair &pair = bytePairs[source.data[i]];
    std::memcpy(&row.values[2 * i], pair.value, 2);
    std::memcpy(&row.magnitudes[2 * i], pair.magnitude, 2);
    row.correction[2 * i / groupSize] -= 12 * (pair.value[0] + pair.value[1]);
  }
  for (unsigned g = 0; g < stepGroups; ++g) {
    const ScaleEntry &scale = groupScale(kind, source.scales, g);
    row.scales[g] = 0.25 * scale.value;
    row.power = std::max(row.power, scale.power);
    row.exponents.add(scale.exponents);
  }
  return row;
}

void decodeStepPanel(StepKind kind, const Fp4MmaOperand &b, unsigned columns, StepPanel &panel) {
  panel = {};
  std::memset(panel.offset, 12, sizeof panel.offset);
  for (unsigned j = 0; j < columns; ++j)
    decodeColumn(kind, b.from(j), j, panel);
}

} // namespace fp4::numerics
