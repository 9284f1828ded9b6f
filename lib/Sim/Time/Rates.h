//===- Rates.h - The rates of one target, and which were missed -----------===//
#pragma once

#include "fp4/ISA/TimingRates.h"
#include <array>
#include <limits>
#include <set>

namespace fp4::sim {

using hw::TimingRate;

/// A rate that nobody knows is noted: whoever predicts must then say so instead. It reads as 1, with
/// which a simulation goes on, since rates are divided by too.
class Rates {
public:
  explicit Rates(std::string_view target) {
    values.fill(std::numeric_limits<double>::quiet_NaN());
    for (const hw::TimingRow &row : hw::timingRows)
      if (row.target == target)
        values[size_t(row.which)] = row.rate;
  }
  double operator[](TimingRate which) const {
    const double value = values[size_t(which)];
    if (value == value) [[likely]]
      return value;
    missed.insert(which);
    return 1;
  }
  const std::set<TimingRate> &missing() const { return missed; }

private:
  std::array<double, hw::timingRateCount> values{};
  mutable std::set<TimingRate> missed;
};

} // namespace fp4::sim
