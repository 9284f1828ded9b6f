//===- Policies.cpp - Eager, lazy, random, delay --------------------------===//
#include "Sim/Async/Ticket.h"
#include "Sim/State/Policy.h"
#include "fp4/Sim/Simulator.h"
#include <fmt/format.h>

namespace fp4::sim {
namespace {

/// Completes an operation as soon as it is issued.
class EagerPolicy final : public Policy {
public:
  bool due(const Ticket &) const override { return true; }
};

/// Completes operations only when no warp of the cluster can run.
class LazyPolicy final : public Policy {
public:
  bool due(const Ticket &) const override { return false; }
  bool hasDue() const override { return false; }
};

/// Completes operations of the chosen engine after a number of rounds, others at once.
class DelayPolicy final : public Policy {
public:
  DelayPolicy(std::string_view engine, uint32_t delay) : engine(engine), delay(delay) {}

  bool due(const Ticket &ticket) const override {
    if (engine != "all" && !stringify(ticket.kind).starts_with(engine))
      return true;
    return clock() >= ticket.issued + delay;
  }

private:
  std::string_view engine; ///< first letters of the kinds that are delayed, or "all"
  uint32_t delay;          ///< rounds
};

/// Completes operations at random points of the schedule; warps run in random order and slices. The
/// seed and the cluster decide everything.
class RandomPolicy final : public Policy {
public:
  RandomPolicy(uint64_t seed, uint64_t cluster) : state(seed * 0xD1342543DE82EF95ull + cluster) {}

  bool due(const Ticket &) const override { return false; }
  bool hasDue() const override { return false; }
  size_t mostChoices() const override { return SIZE_MAX; }
  bool completesAnother() override { return next() % 4 == 0; }
  uint64_t choose(std::span<const uint64_t> ready) override { return ready[next() % ready.size()]; }
  uint32_t quantum() override { return 1 + uint32_t(next() % 128); }
  size_t first(size_t count) override { return next() % count; }
  bool spurious(uint32_t odds) override { return next() % odds == 0; }

private:
  /// splitmix64: small, and good enough to shuffle a schedule.
  uint64_t next() {
    uint64_t z = state += 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
  }
  uint64_t state;
};

} // namespace

std::unique_ptr<Policy> makePolicy(const SimOptions &options, uint64_t cluster) {
  switch (options.policy) {
  case CompletionPolicy::Lazy:
  case CompletionPolicy::Exhaustive: // of launches before the one whose order is replayed: any
    return std::make_unique<LazyPolicy>();
  case CompletionPolicy::Random:
    return std::make_unique<RandomPolicy>(options.seed, cluster);
  case CompletionPolicy::Delay:
    return std::make_unique<DelayPolicy>(options.delayedEngine, options.delayRounds);
  case CompletionPolicy::Timed: // of clusters that are not in the sample (Time/TimedLaunch.h)
  case CompletionPolicy::Eager:
    break;
  }
  return std::make_unique<EagerPolicy>();
}

Expected<CompletionPolicy> parseCompletionPolicy(std::string_view text) {
  if (text == "eager")
    return CompletionPolicy::Eager;
  if (text == "lazy")
    return CompletionPolicy::Lazy;
  if (text == "random")
    return CompletionPolicy::Random;
  if (text == "delay")
    return CompletionPolicy::Delay;
  if (text == "timed")
    return CompletionPolicy::Timed;
  if (text == "exhaustive")
    return CompletionPolicy::Exhaustive;
  return makeError(ErrorKind::Usage, fmt::format("unknown simulation policy '{}'", text),
                   "choose eager, lazy, random, delay, timed or exhaustive");
}

} // namespace fp4::sim
