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
    sum.half += sm.tensor.multipliedHalf - sm.tensor.multipliedFew;
    sum.few += sm.tensor.multipliedFew;
  }
  const double all = cycles * double(processors);
  const auto share = [&](double busy) { return std::min(1.0, busy / all); };
  return {share(sum.tensor), share(sum.half), share(sum.few), share(sum.issue), share(sum.shared)};
}

namespace {

/// The launch at any clock, back to back.
class Sustained {
public:
  Sustained(const KernelTime &time, const SmActivity &activity, const Rates &rates)
      : time(time), activity(activity), rates(rates) {
    for (const ResourceTime &one : time.resources)
      if (one.name == "device memory")
        kept = std::pow(one.busy, sharp);
  }

  /// Device memory has a clock of its own, and L2 that of the SMs (H200: GEMMs whose L2 is busy for
  /// 0.8 to 1 of the time take 1.13 to 1.19 times as long at a clock that is 0.84 to 0.86 of
  /// another, and those that device memory bounds 1.01). The longer of both times counts.
  double microseconds(double gigahertz) const {
    const double running = time.microseconds - time.launchMicroseconds;
    const double longer = std::pow(time.gigahertz / gigahertz, sharp);
    return time.launchMicroseconds + running * std::pow((1 - kept) * longer + kept, 1 / sharp);
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
                              rates[TimingRate::PowerHalf] * activity.half +
                              rates[TimingRate::PowerFew] * activity.few) *
                                 perCycle},
            {"instructions", rates[TimingRate::PowerIssue] * activity.issue * perCycle},
            {"shared memory", rates[TimingRate::PowerShared] * activity.shared * perCycle},
            {"L2", rates[TimingRate::EnergyL2] * time.l2Bytes * terabytes},
            {memory, rates[TimingRate::EnergyMemory] * time.memoryBytes * terabytes}};
  }

  /// Returns the most that SMs have whose tensor cores are busy so long, whatever their power is.
  double most(double gigahertz) const {
    const double half = activity.half + activity.few, all = activity.tensor + half;
    if (all <= 0)
      return time.gigahertz;
    const double part = time.cycles / (microseconds(gigahertz) * 1e3 * gigahertz);
    return std::min(time.gigahertz, rates[TimingRate::TensorGigahertz] -
                                        part * (rates[TimingRate::BusyFall] * activity.tensor +
                                                rates[TimingRate::BusyFallHalf] * half));
  }

  /// The limit holds without device memory: a kernel that reads it all the time draws 738 W for 0.2
  /// s at the full clock (H200, micro: power).
  bool mayHave(double gigahertz) const {
    double sum = 0;
    for (const auto &[name, part] : parts(gigahertz))
      sum += name == memory ? 0 : part;
    return sum <= rates[TimingRate::PowerLimit] && gigahertz <= most(gigahertz);
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
  static constexpr const char *memory = "device memory";
  static constexpr double sharp = 4; ///< the greater, the less the lesser of two times counts
  double kept = 0;                   ///< share of the time, so sharpened, that stays at any clock
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
  use.falls = !launch.mayHave(time.gigahertz);
  for (int step = 0; step < 30 && use.falls; ++step) {
    const double middle = (low + high) / 2;
    (launch.mayHave(middle) ? low : high) = middle;
  }
  use.gigahertz = use.falls ? low : time.gigahertz;
  use.microseconds = launch.microseconds(use.gigahertz);
  return use;
}

} // namespace fp4::sim
