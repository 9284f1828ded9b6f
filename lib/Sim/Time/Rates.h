//===- Rates.h - The rates of one target, and which were missed -----------===//
#pragma once

#include "fp4/ISA/TimingRates.h"
#include <array>
#include <limits>
#include <set>

namespace fp4::sim {

using hw::TimingRate;

/// A rate that nobody knows is noted: the prediction must then say so instead. The rate reads as 1,
/// with which a simulation goes on, since rates are divided by too.
class Rates {
public:
  /// The rates of `target`, and in their place those that the table has for the product `gpu`. The
  /// clock is `gigahertz`; 0: as the table has it.
  explicit Rates(std::string_view target, std::string_view gpu = {}, double gigahertz = 0) {
    values.fill(std::numeric_limits<double>::quiet_NaN());
    for (std::string_view of : {target, gpu})
      for (const hw::TimingRow &row : hw::timingRows)
        if (row.target == of)
          values[size_t(row.which)] = row.rate;
    ofTable = values[size_t(TimingRate::Gigahertz)];
    if (gigahertz > 0)
      setClock(gigahertz);
  }
  double operator[](TimingRate which) const {
    const double value = values[size_t(which)];
    if (value == value) [[likely]]
      return value;
    missed.insert(which);
    return 1;
  }
  /// True when the table has the rate.
  bool knows(TimingRate which) const {
    const double value = values[size_t(which)];
    return value == value;
  }
  const std::set<TimingRate> &missing() const { return missed; }
  /// The clock of the table, whatever was set.
  double gigahertzOfTable() const { return ofTable; }

  /// Sets the clock of a kernel whose MMAs run on the tensor cores: some targets have their own.
  void setTensorClock() {
    const double clock = at(TimingRate::TensorGigahertz);
    if (clock > 0) // not where nobody knows it
      setClock(clock);
  }

private:
  double &at(TimingRate which) { return values[size_t(which)]; }

  /// Cycles that pass in L2 are taken to be those of the SMs; what device memory adds to them is a
  /// time.
  void setClock(double gigahertz) {
    const double behind = at(TimingRate::MemoryLatency) - at(TimingRate::L2Latency);
    at(TimingRate::MemoryLatency) += behind * (gigahertz / at(TimingRate::Gigahertz) - 1);
    if (at(TimingRate::Gigahertz) > 0) // of a target without a table nothing becomes known
      at(TimingRate::Gigahertz) = gigahertz;
  }

  std::array<double, hw::timingRateCount> values{};
  double ofTable = 0;
  mutable std::set<TimingRate> missed;
};

} // namespace fp4::sim
