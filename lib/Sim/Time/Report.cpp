//===- Report.cpp - A predicted time, for people --------------------------===//
#include "fp4/Sim/KernelTime.h"
#include "fp4/Sim/Program.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fp4::sim {

std::string KernelTime::bound() const {
  constexpr double most = 0.7; // queues make a resource the limit before it is always busy
  return !resources.empty() && resources.front().busy >= most ? resources.front().name : "latency";
}

namespace {

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

/// The waits of a role, the longest first, as far as they matter.
std::string waits(const RoleTime &role) {
  constexpr double least = 0.02;
  std::vector<std::pair<double, std::string>> parts;
  for (size_t a = 1; a < kActivities; ++a)
    if (role.share[a] >= least)
      parts.emplace_back(role.share[a],
                         fmt::format("{} {}", stringify(Activity(a)), percent(role.share[a])));
  std::sort(parts.rbegin(), parts.rend());
  std::string list;
  for (const auto &[share, name] : parts)
    list += (list.empty() ? "" : ", ") + name;
  return list;
}

/// The power, and the time at the clock that its limit leaves.
std::string text(const PowerUse &power) {
  constexpr size_t shown = 3;
  std::string parts;
  for (size_t i = 0; i < std::min(shown, power.parts.size()); ++i)
    parts += fmt::format("{}{} {:.0f}", i ? ", " : "", power.parts[i].first, power.parts[i].second);
  const std::string sustained =
      power.falls ? fmt::format("back to back {:.2f} us at {:.3f} GHz; the limit is {:.0f} W",
                                power.microseconds, power.gigahertz, power.limit)
                  : fmt::format("back to back the same: the limit is {:.0f} W", power.limit);
  return fmt::format("  power          {:.0f} W ({}); {}\n", power.watts, parts, sustained);
}

std::string rates(const KernelTime &time) {
  std::string parts;
  const double seconds = time.microseconds * 1e-6;
  if (time.flops > 0)
    parts += fmt::format(", {:.1f} TFLOP/s", time.flops / seconds / 1e12);
  if (time.memoryBytes > 0)
    parts += fmt::format(", {:.2f} TB/s of device memory", time.memoryBytes / seconds / 1e12);
  return parts;
}

} // namespace

std::string text(const KernelTime &time) {
  if (!time.missing.empty())
    return fmt::format("{}: no prediction for {}: unknown: {}\n", displayName(time.kernel),
                       time.target, fmt::join(time.missing, "; "));
  std::string result =
      fmt::format("{}: predicted {:.2f} us ({:.2f} us launch, {:.0f} cycles at {:.3f} GHz){}\n",
                  displayName(time.kernel), time.microseconds, time.launchMicroseconds, time.cycles,
                  time.gigahertz, rates(time));
  std::string busy;
  constexpr size_t shown = 4;
  for (size_t i = 0; i < std::min(shown, time.resources.size()); ++i)
    busy += fmt::format("{}{} {}", i ? ", " : "", time.resources[i].name,
                        percent(time.resources[i].busy));
  result += fmt::format("  bound          {}; busy: {}\n", time.bound(), busy);
  const auto &[simulated, sms, whole] = time.sample;
  std::string part = whole.empty() ? "" : "; not sampled: " + whole;
  if (time.sampled())
    part = fmt::format("; sampled: {} of {} SMs", simulated, sms);
  if (time.spilledBytes)
    part = fmt::format(", {} bytes of them spilled{}", time.spilledBytes, part);
  result += fmt::format("  occupancy      {} CTAs per SM, {} registers{}\n", time.ctasPerSm,
                        time.registers, part);
  if (time.power)
    result += text(*time.power);
  for (const RoleTime &role : time.roles)
    result += fmt::format("  {:<14} issue {}; waits: {}; {:.0f} instructions of a warp\n",
                          role.name, percent(role.share[0]), waits(role), role.instructions);
  return result;
}

} // namespace fp4::sim
