//===- TimeCompare.cpp - Reasons for a difference of predicted times ------===//

#include "fp4/Harness/TimeCompare.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace fp4::harness {
namespace {

using sim::KernelTime;
using Differences = std::vector<TimeDifference>;

/// The share of the slower kernel's time below which changes explain nothing.
constexpr double kMatters = 0.02;

/// Microseconds without the launch.
double running(const KernelTime &time) { return time.microseconds - time.launchMicroseconds; }

void add(Differences &list, const std::string &name, double value, bool now) {
  auto found = std::find_if(list.begin(), list.end(),
                            [&](const TimeDifference &known) { return known.name == name; });
  if (found == list.end())
    found = list.insert(list.end(), {name});
  (now ? found->now : found->before) += value;
}

void sortByChange(Differences &list) {
  std::sort(list.begin(), list.end(), [](const auto &a, const auto &b) {
    return std::pair(-std::abs(a.delta()), a.name) < std::pair(-std::abs(b.delta()), b.name);
  });
}

/// "products" of "products: warps 0 to 7": plans differ in the warps of a role.
std::string kindOf(const sim::RoleTime &role) { return role.name.substr(0, role.name.find(':')); }

void addKernel(TimeComparison &comparison, const KernelTime &time, bool now) {
  for (const sim::ResourceTime &resource : time.resources)
    add(comparison.resources, resource.name, resource.busy * running(time), now);
  for (const sim::RoleTime &role : time.roles)
    for (size_t a = 0; a < sim::kActivities; ++a)
      add(comparison.waits, kindOf(role) + ": " + std::string(stringify(sim::Activity(a))),
          role.share[a] * running(time), now);
  const auto amount = [&](const char *name, double value) {
    add(comparison.amounts, name, value, now);
  };
  const auto blocks = double(time.grid[0]) * time.grid[1] * time.grid[2];
  const double warps = std::ceil(double(time.block[0]) * time.block[1] * time.block[2] / 32);
  double instructions = 0;
  for (const sim::RoleTime &role : time.roles)
    instructions += role.instructions * (role.lastWarp - role.firstWarp + 1.0);
  amount("MB through L2", time.l2Bytes * 1e-6);
  amount("MB of device memory", time.memoryBytes * 1e-6);
  amount("thousand warp instructions", instructions * blocks * 1e-3);
  amount("GFLOP of GEMMs", time.flops * 1e-9);
  amount("CTAs", blocks);
  amount("warps on an SM", warps * time.ctasPerSm);
}

const TimedProgram::Launch *counterpart(const TimedProgram &of, const TimedProgram &in, size_t i) {
  if (of.launches.size() == in.launches.size())
    return &in.launches[i];
  auto found = std::find_if(in.launches.begin(), in.launches.end(), [&](const auto &launch) {
    return launch.name == of.launches[i].name;
  });
  return found == in.launches.end() ? nullptr : &*found;
}

/// Explains the change of the kernel's time by changes in the same direction, as sentences.
void explain(TimeComparison &comparison, double change) {
  const auto agrees = [&](const TimeDifference &one) {
    return one.delta() * change > 0 && std::abs(one.delta()) >= kMatters * std::abs(change);
  };
  auto &reasons = comparison.reasons;
  if (comparison.boundBefore != comparison.boundNow)
    reasons.push_back(fmt::format("the bound is {} now and was {}", comparison.boundNow,
                                  comparison.boundBefore));
  constexpr size_t most = 2;
  size_t said = 0;
  for (const TimeDifference &one : comparison.resources)
    if (agrees(one) && said++ < most)
      reasons.push_back(fmt::format("{} is busy {:.2f} us {}", one.name, std::abs(one.delta()),
                                    one.delta() < 0 ? "less" : "longer"));
  said = 0;
  for (const TimeDifference &one : comparison.waits)
    if (agrees(one) && said++ < most)
      reasons.push_back(fmt::format("{} takes {:.2f} us {} of its time", one.name,
                                    std::abs(one.delta()), one.delta() < 0 ? "less" : "more"));
  for (const TimeDifference &one : comparison.amounts)
    if (one.before > 0 && one.now > 0 && one.delta() * change > 0 &&
        std::abs(one.delta()) >= 0.05 * one.before)
      reasons.push_back(fmt::format("{:.2f} times the {}", one.now / one.before, one.name));
}

std::string row(const TimeDifference &one, const char *unit = "") {
  return fmt::format("  {:<34} {:>12.2f} {:>12.2f} {:>+12.2f}{}\n", one.name, one.before, one.now,
                     one.delta(), unit);
}

/// The first rows that are more than noise.
std::string rows(const Differences &list, double least, size_t most) {
  std::string text;
  for (const TimeDifference &one : list)
    if (std::abs(one.delta()) >= least && most-- > 0)
      text += row(one);
  return text;
}

std::string missingOf(const TimedProgram &program) {
  for (const TimedProgram::Launch &launch : program.launches)
    if (!launch.time.missing.empty())
      return fmt::format("{} has no prediction: unknown: {}", launch.name,
                         launch.time.missing.front());
  return "nothing was launched";
}

} // namespace

std::string launchName(const std::string &module, const std::string &function) {
  bool prefixed = module.size() > function.size() + 1 && module.starts_with(function + "_");
  return prefixed ? module.substr(function.size() + 1) : module;
}

std::optional<double> TimedProgram::microseconds() const {
  if (launches.empty())
    return std::nullopt;
  double sum = 0;
  for (const Launch &launch : launches) {
    if (!launch.time.missing.empty())
      return std::nullopt;
    sum += launch.time.microseconds;
  }
  return sum;
}

TimeComparison compareTimes(const TimedProgram &before, const TimedProgram &now) {
  TimeComparison comparison;
  comparison.before = before;
  comparison.now = now;
  const std::optional<double> then = before.microseconds(), today = now.microseconds();
  if (!then || !today)
    return comparison;
  comparison.ratio = *today / *then;
  const TimedProgram::Launch *worst[2] = {};
  double most = -1;
  for (size_t i = 0; i < now.launches.size(); ++i) {
    const TimedProgram::Launch &mine = now.launches[i], *other = counterpart(now, before, i);
    comparison.kernels.push_back(
        {mine.name, other ? other->time.microseconds : 0, mine.time.microseconds});
    if (!other || std::abs(comparison.kernels.back().delta()) <= most)
      continue;
    most = std::abs(comparison.kernels.back().delta());
    worst[0] = other;
    worst[1] = &mine;
  }
  for (size_t i = 0; i < before.launches.size(); ++i)
    if (!counterpart(before, now, i))
      comparison.kernels.push_back({before.launches[i].name, before.launches[i].time.microseconds});
  if (!worst[0])
    return comparison;
  comparison.kernel = worst[1]->name;
  comparison.boundBefore = worst[0]->time.bound();
  comparison.boundNow = worst[1]->time.bound();
  addKernel(comparison, worst[0]->time, false);
  addKernel(comparison, worst[1]->time, true);
  sortByChange(comparison.resources);
  sortByChange(comparison.waits);
  explain(comparison, worst[1]->time.microseconds - worst[0]->time.microseconds);
  return comparison;
}

std::string TimeComparison::text() const {
  std::string text = fmt::format("  before         {}\n  now            {}\n", before.label, now.label);
  if (!ratio) {
    const TimedProgram &without = now.microseconds() ? before : now;
    return text + fmt::format("  comparison     none: {}\n", missingOf(without));
  }
  text += ratio == 1 ? "  predicted      the same time\n"
                     : fmt::format("  predicted      {:.3f} times as {} now: {:.2f} us after {:.2f} us\n",
                                   ratio < 1 ? 1 / ratio : ratio, ratio < 1 ? "fast" : "slow",
                                   *now.microseconds(), *before.microseconds());
  text += fmt::format("  {:<34} {:>12} {:>12} {:>12}\n", "kernel, us", "before", "now", "change");
  for (const TimeDifference &one : kernels)
    text += row(one);
  if (kernel.empty() || ratio == 1)
    return text;
  const double least = kMatters * std::max(*before.microseconds(), *now.microseconds());
  constexpr size_t most = 6;
  text += fmt::format("  why: {} (bound before: {}; now: {})\n", kernel, boundBefore, boundNow);
  for (const std::string &reason : reasons)
    text += fmt::format("    - {}\n", reason);
  text += fmt::format("  busy, us of {}\n{}", kernel, rows(resources, least / 2, most));
  text += fmt::format("  roles, us of {}\n{}", kernel, rows(waits, least / 2, most));
  text += fmt::format("  amounts\n{}", rows(amounts, 0, amounts.size()));
  return text;
}

} // namespace fp4::harness
