//===- Power.cpp - The power of a timed launch, and the clock it leaves ---===//
#include "Sim/Time/Power.h"
#include <cmath>
#include <span>

namespace fp4::sim {

SmActivity activityOf(const Machine &machine, double cycles, size_t processors) {
  SmActivity sum;
  for (const Sm &sm : std::span(machine.processors).first(processors)) {
    for (const Server &issue : sm.issue)
      sum.issue += issue.busyUntil(cycles) / kSchedulers;
    sum.shared += sm.shared.busyUntil(cycles);
    sum.tensor += sm.tensor.multiplied - sm.tensor.multipliedHalf;
    sum.half += sm.tensor.multipliedHalf;
  }
  const double all = cycles * double(processors);
  return {std::min(1.0, sum.tensor / all), std::min(1.0, sum.half / all),
          std::min(1.0, sum.issue / all), std::min(1.0, sum.shared / all)};
}

namespace {

/// The launch at any clock, back to back.
class Sustained {
public:
  Sustained(const KernelTime &time, const SmActivity &activity, const Rates &rates)
      : time(time), activity(activity), rates(rates) {
    // L2 and device memory have clocks of their own: what they bound takes as long at any clock.
    double most = 0;
    for (const ResourceTime &one : time.resources)
      if (one.name == "L2" || one.name == "device memory")
        most = std::max(most, one.busy);
    slowed = 1 - std::pow(most, 4);
  }

  double microseconds(double gigahertz) const {
    const double running = time.microseconds - time.launchMicroseconds;
    return time.launchMicroseconds + running * (1 + slowed * (time.gigahertz / gigahertz - 1));
  }

  std::vector<std::pair<std::string, double>> parts(double gigahertz) const {
    const double volts =
        std::max(rates[TimingRate::VoltageLeast],
                 1 - rates[TimingRate::VoltageSlope] * (rates.gigahertzOfTable() - gigahertz));
    const double us = microseconds(gigahertz);
    // Cycles that a launch needs at any clock, of those that pass in its time, at its power.
    const double perCycle = time.cycles / (us * 1e3) / rates.gigahertzOfTable() * volts * volts;
    const double terabytes = 1e-6 / us; // of bytes
    return {{"idle", rates[TimingRate::PowerIdle]},
            {"tensor cores", (rates[TimingRate::PowerTensor] * activity.tensor +
                              rates[TimingRate::PowerHalf] * activity.half) *
                                 perCycle},
            {"instructions", rates[TimingRate::PowerIssue] * activity.issue * perCycle},
            {"shared memory", rates[TimingRate::PowerShared] * activity.shared * perCycle},
            {"L2", rates[TimingRate::EnergyL2] * time.l2Bytes * terabytes},
            {"device memory", rates[TimingRate::EnergyMemory] * time.memoryBytes * terabytes}};
  }

  double watts(double gigahertz) const {
    double sum = 0;
    for (const auto &[name, part] : parts(gigahertz))
      sum += part;
    return sum;
  }

private:
  const KernelTime &time;
  const SmActivity &activity;
  const Rates &rates;
  double slowed = 1; ///< share of the time that passes with the clock of the SMs
};

} // namespace

std::optional<PowerUse> powerOf(const KernelTime &time, const SmActivity &activity,
                                const Rates &rates) {
  if (!rates.knows(TimingRate::PowerLimit))
    return std::nullopt;
  const Sustained launch(time, activity, rates);
  PowerUse use{launch.watts(time.gigahertz), rates[TimingRate::PowerLimit],
               launch.parts(time.gigahertz)};
  std::ranges::stable_sort(use.parts, std::greater<>(),
                           [](const auto &part) { return part.second; });
  constexpr double least = 0.3; // GHz: no launch needs a lower clock
  double low = std::min(least, time.gigahertz), high = time.gigahertz;
  for (int step = 0; step < 30 && use.limited(); ++step) {
    const double middle = (low + high) / 2;
    (launch.watts(middle) > use.limit ? high : low) = middle;
  }
  use.gigahertz = use.limited() ? low : time.gigahertz;
  use.microseconds = launch.microseconds(use.gigahertz);
  return use;
}

} // namespace fp4::sim
