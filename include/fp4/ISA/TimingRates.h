//===- TimingRates.h - Rates and latencies of a target --------------------===//
//
// The numbers behind predictions of time (lib/Sim/Time), by name, so that a prediction that needs a
// number nobody has measured can say which. TimingRates.def lists what there is to know and what is
// known, with its source. Cycles ("clk") are those of the SM's clock.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/Rates.h"
#include <cstddef>
#include <iterator>

namespace fp4::hw {

enum class TimingRate : uint8_t {
#define FP4_TIMING(Name, unit, meaning) Name,
#include "fp4/ISA/TimingRates.def"
};

struct TimingRateInfo {
  std::string_view name, unit, meaning;
};
inline constexpr TimingRateInfo timingRateInfos[] = {
#define FP4_TIMING(Name, unit, meaning) {#Name, unit, meaning},
#include "fp4/ISA/TimingRates.def"
};
inline constexpr size_t timingRateCount = std::size(timingRateInfos);

/// One line of the table.
struct TimingRow {
  std::string_view target; ///< target, or for a rate not its own a product of it (GpuModel.h)
  TimingRate which;
  Rate rate;
};
inline constexpr TimingRow timingRows[] = {
#define FP4_TIMING_OF(target, Name, value, mark, source)                                           \
  {#target, TimingRate::Name, {value, Mark::mark, source}},
#include "fp4/ISA/TimingRates.def"
};

/// The rate of a target called "sm_90a"; null where nobody has published or measured it.
constexpr const Rate *timingRate(std::string_view target, TimingRate which) {
  for (const TimingRow &row : timingRows)
    if (row.which == which && row.target == target)
      return &row.rate;
  return nullptr;
}

constexpr const TimingRateInfo &describe(TimingRate which) {
  return timingRateInfos[size_t(which)];
}
std::string_view stringify(Mark mark); ///< "documented", "measured", "fitted", "assumed"

} // namespace fp4::hw
