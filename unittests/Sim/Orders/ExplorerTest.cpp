// The exploration of orders by itself: small programs of shared variables and counters, whose orders
// are counted by running all of them.
#include "Sim/Orders/Explorer.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>

using namespace fp4;
using namespace fp4::sim;

namespace {

struct Operation {
  enum Kind : uint8_t {
    Load,   ///< own = variable
    Store,  ///< variable = own
    Swap,   ///< own, variable = variable, own + 1
    Add,    ///< variable += 3, whatever it was: commutes with itself
    Arrive, ///< at barrier `where` of two arrivals
    Wait,   ///< until the first phase of the barrier is over
    Pass,   ///< like an mbarrier's wait by parity: passes in every second phase
    Poll,   ///< own = variable, in a loop that waits until it is odd
  } kind;
  uint32_t where;
};
using Code = std::vector<std::vector<Operation>>;

/// The processes of a program, with one register each.
class Machine : public Stepped {
public:
  explicit Machine(Code code) : code(std::move(code)) {}

  Status begin() override {
    at.assign(code.size(), 0);
    own.resize(code.size());
    for (size_t i = 0; i < own.size(); ++i)
      own[i] = 10 * i;
    variables.assign(4, 0);
    arrivals.assign(4, 0);
    history.clear();
    return {};
  }
  std::vector<Process> candidates() override {
    std::vector<Process> all;
    for (uint32_t i = 0; i < code.size(); ++i)
      if (at[i] < code[i].size())
        all.push_back(warpProcess(0, 0, i));
    return all;
  }
  Expected<bool> step(Process process) override;
  std::vector<Process> pollers() override { return candidates(); }
  Expected<const Footprint *> waits(Process process) override {
    const uint32_t index = process >> 24 & 0xFF;
    const auto [kind, where] = code[index][at[index]];
    if (kind != Operation::Poll || variables[where] % 2)
      return nullptr;
    looks = Footprint();
    looks.visible = visible;
    looks.add(ByteUse::Read, where, where + 1);
    return &looks;
  }
  const Footprint &footprint() const override { return touched; }
  Expected<bool> expire() override {
    if (candidates().empty())
      return false;
    return makeError(ErrorKind::Simulation, "deadlock");
  }
  Status end() override {
    auto state = variables;
    state.insert(state.end(), own.begin(), own.end());
    states.insert(state);
    traces.insert(trace());
    ++orders;
    return {};
  }

  std::set<std::vector<uint64_t>> states;
  /// For each order and each step, by process and number: the steps that it depends on and that
  /// came before it.
  std::set<std::vector<uint64_t>> traces;
  uint64_t orders = 0;
  uint32_t visible = 1; ///< instructions of each step

private:
  std::vector<uint64_t> trace() const;
  void object(ObjectUse use, uint32_t where, uint64_t phase, bool completes, bool passed) {
    touched.objects.push_back({objectId(ObjectKind::Mbarrier, 0, where), phase, use, completes});
    touched.objects.back().passed = passed;
  }

  Code code;
  std::vector<size_t> at;
  std::vector<uint64_t> own, variables, arrivals;
  Footprint touched, looks;
  struct Done {
    uint64_t name;
    Footprint footprint;
  };
  std::vector<Done> history;
};

Expected<bool> Machine::step(Process process) {
  const uint32_t index = process >> 24 & 0xFF;
  if (at[index] >= code[index].size())
    return false;
  const auto [kind, where] = code[index][at[index]];
  const uint64_t phase = arrivals[where] / 2;
  touched = Footprint();
  touched.visible = visible;
  const bool parity = where & 1; // of the phase that Pass waits for
  switch (kind) {
  case Operation::Load:
    touched.add(ByteUse::Read, where, where + 1);
    own[index] = variables[where];
    break;
  case Operation::Poll:
    if (variables[where] % 2 == 0)
      return false;
    touched.add(ByteUse::Read, where, where + 1);
    own[index] = variables[where];
    break;
  case Operation::Store:
    touched.add(ByteUse::Write, where, where + 1);
    variables[where] = own[index];
    break;
  case Operation::Swap:
    touched.add(ByteUse::Write, where, where + 1);
    std::swap(variables[where], ++own[index]);
    break;
  case Operation::Add:
    touched.add(ByteUse::Reduce, where, where + 1);
    variables[where] += 3;
    break;
  case Operation::Arrive:
    object(ObjectUse::Arrive, where, phase, ++arrivals[where] % 2 == 0, false);
    break;
  case Operation::Wait:
    if (phase == 0)
      return false;
    object(ObjectUse::Await, where, 0, false, false);
    break;
  case Operation::Pass:
    if ((phase & 1) == parity)
      return false;
    object(ObjectUse::Read, where, phase, false, true);
    own[index] += phase;
    break;
  }
  for (uint8_t use = 0; use < kByteUses && visible > 1; ++use)
    touched.earlier[use] = touched.bytes[use];
  history.push_back({process | ++at[index], touched});
  return true;
}

std::vector<uint64_t> Machine::trace() const {
  std::vector<std::vector<uint64_t>> steps;
  for (size_t i = 0; i < history.size(); ++i) {
    std::vector<uint64_t> step{history[i].name};
    for (size_t j = 0; j < i; ++j)
      if (dependent(history[j].footprint, history[i].footprint))
        step.push_back(history[j].name);
    std::sort(step.begin() + 1, step.end());
    step.push_back(~0ull);
    steps.push_back(step);
  }
  std::ranges::sort(steps);
  std::vector<uint64_t> flat;
  for (const auto &step : steps)
    flat.insert(flat.end(), step.begin(), step.end());
  return flat;
}

struct Found {
  OrderReport report;
  std::set<std::vector<uint64_t>> states, traces;
  std::string error;
};

Found explore(const Code &code, bool reduce, uint64_t most = 0) {
  Machine machine(code);
  OrderOptions options;
  options.reduce = reduce;
  options.most = most;
  Found found;
  Explorer explorer(machine, options);
  if (Status status = explorer.run(found.report); !status)
    found.error = status.error().message;
  found.states = machine.states;
  found.traces = machine.traces;
  return found;
}

using Op = Operation;

TEST(Explorer, WhatHasNothingToDoWithEachOtherIsOneOrder) {
  const Code code = {{{Op::Store, 0}, {Op::Load, 0}}, {{Op::Store, 1}, {Op::Load, 1}}};
  EXPECT_EQ(explore(code, true).report.orders, 1u);
  EXPECT_EQ(explore(code, false).report.orders, 6u); // 4 over 2
  EXPECT_EQ(explore(code, true).report.commuting, 4u);
}

TEST(Explorer, NSwapsOfOneVariableHaveAllTheirOrders) {
  uint64_t factorial = 1;
  for (uint32_t n = 1; n <= 6; ++n) {
    factorial *= n;
    const Found found = explore(Code(n, {{Op::Swap, 2}}), true);
    EXPECT_EQ(found.report.orders, factorial);
    EXPECT_TRUE(found.report.complete);
    EXPECT_EQ(found.report.pruned, 0u);
  }
}

TEST(Explorer, ReductionsAndArrivalsCommute) {
  EXPECT_EQ(explore(Code(5, {{Op::Add, 0}}), true).report.orders, 1u);
  EXPECT_EQ(explore({{{Op::Arrive, 0}}, {{Op::Arrive, 0}}, {{Op::Wait, 0}, {Op::Load, 1}}}, true)
                .report.orders,
            1u);
  EXPECT_EQ(explore({{{Op::Add, 0}}, {{Op::Add, 0}}, {{Op::Load, 0}}}, true).report.orders, 4u);
}

TEST(Explorer, ADeadlockOfOneOrderIsFound) {
  // Each process takes a phase that the other has to see: one that waits too long waits for ever.
  const Code code = {{{Op::Arrive, 0}, {Op::Arrive, 0}, {Op::Arrive, 0}, {Op::Arrive, 0}},
                     {{Op::Pass, 0}}};
  EXPECT_EQ(explore(code, true).error, "deadlock");
  EXPECT_EQ(explore({{{Op::Arrive, 0}, {Op::Arrive, 0}}, {{Op::Pass, 0}}}, true).error, "");
}

TEST(Explorer, ALimitIsNotCompleteness) {
  const Found some = explore(Code(5, {{Op::Swap, 2}}), true, 7);
  EXPECT_EQ(some.report.orders, 7u);
  EXPECT_FALSE(some.report.complete);
  EXPECT_TRUE(explore(Code(3, {{Op::Swap, 2}}), true, 6).report.complete); // just enough
}

TEST(Explorer, WhoWaitsInALoopMakesNoStepUntilItFindsSomething) {
  // 3, 6, 9: found after the first or after the third.
  const Code code = {{{Op::Swap, 0}}, {{Op::Swap, 1}}, {{Op::Poll, 0}}};
  EXPECT_EQ(explore(code, true).report.orders, 1u);
  const Found odd = explore({{{Op::Add, 0}, {Op::Add, 0}, {Op::Add, 0}}, {{Op::Poll, 0}}}, true);
  EXPECT_EQ(odd.report.orders, 2u);
  EXPECT_EQ(odd.error, "");
  // 3, 6: who is too late waits for ever.
  EXPECT_EQ(explore({{{Op::Add, 0}, {Op::Add, 0}}, {{Op::Poll, 0}}}, true).error, "deadlock");
  // A write of another process hides the value, and shows it again.
  EXPECT_EQ(explore({{{Op::Add, 0}}, {{Op::Add, 0}}, {{Op::Add, 0}}, {{Op::Poll, 0}}}, true)
                .report.orders,
            4u);
}

/// Loops that wait for what comes and goes: each way to find it is found, and once.
TEST(Explorer, LeavesOutOnlyPassesThatFindNothing) {
  std::mt19937 random(11);
  const Op::Kind kinds[] = {Op::Load, Op::Store, Op::Swap, Op::Swap, Op::Add, Op::Poll, Op::Poll};
  uint64_t whole = 0, stuck = 0;
  for (int trial = 0; trial < 300; ++trial) {
    Code code(2 + random() % 3);
    for (auto &process : code)
      for (size_t i = 0, count = 1 + random() % (code.size() > 3 ? 2 : 3); i < count; ++i)
        process.push_back({kinds[random() % 7], uint32_t(random() % 2)});
    const Found brute = explore(code, false), reduced = explore(code, true);
    ASSERT_EQ(brute.error.empty(), reduced.error.empty()) << "trial " << trial;
    ++(brute.error.empty() ? whole : stuck);
    if (!brute.error.empty())
      continue;
    EXPECT_EQ(brute.states, reduced.states) << "trial " << trial;
    EXPECT_EQ(brute.traces, reduced.traces) << "trial " << trial;
    EXPECT_EQ(reduced.report.orders, brute.traces.size()) << "trial " << trial;
  }
  EXPECT_GT(whole, 30u);
  EXPECT_GT(stuck, 30u);
}

/// A machine whose first steps are too long; an order of the short ones is a hazard.
class Refined final : public Machine {
public:
  Refined(Code code, uint64_t bad) : Machine(std::move(code)), bad(bad) { visible = 2; }
  bool refine() override { return std::exchange(visible, 1u) == 2; }
  Status end() override {
    found += visible == 1 && ++refined == bad;
    return Machine::end();
  }
  uint64_t bad, refined = 0, found = 0;
};

TEST(Explorer, TheFirstOrderOfShortStepsCounts) {
  const Code code = {{{Op::Store, 0}}, {{Op::Store, 0}}};
  for (uint64_t bad : {1, 2, 3}) {
    Refined machine(code, bad);
    OrderOptions options;
    options.hazards = [&] { return machine.found; };
    OrderReport report;
    EXPECT_TRUE(Explorer(machine, options).run(report));
    EXPECT_EQ(report.orders, std::min<uint64_t>(bad, 2));
    EXPECT_EQ(report.failure,
              bad <= 2 ? OrderReport::Failure::Hazard : OrderReport::Failure::None);
    EXPECT_EQ(report.complete, bad > 2);
  }
}

TEST(Explorer, ALimitHoldsForShortStepsToo) {
  for (uint64_t most : {1, 2, 3, 4}) {
    Refined machine(Code(3, {{Op::Swap, 0}}), 0);
    OrderOptions options;
    options.most = most;
    OrderReport report;
    EXPECT_TRUE(Explorer(machine, options).run(report));
    // The first one was too long, and the last one only leaves a whole order behind.
    EXPECT_EQ(machine.orders, std::max<uint64_t>(most, 2) + 1) << most;
    EXPECT_FALSE(report.complete);
  }
}

TEST(Explorer, ProgressCountsTheOrdersThatHaveEnded) {
  for (uint64_t most : {0, 3}) {
    Machine machine(Code(3, {{Op::Swap, 0}}));
    OrderOptions options;
    options.most = most;
    std::vector<std::pair<uint64_t, uint64_t>> seen;
    options.progress = [&](uint64_t ended, uint64_t all) { seen.emplace_back(ended, all); };
    OrderReport report;
    EXPECT_TRUE(Explorer(machine, options).run(report));
    ASSERT_EQ(seen.size(), report.orders + report.pruned);
    for (size_t i = 0; i < seen.size(); ++i)
      EXPECT_EQ(seen[i], std::pair(uint64_t(i + 1), most));
  }
}

/// Any operations on few places: every result and every trace of the orders that a reduction leaves
/// out is that of one that it runs, and no two that it runs to their end are alike.
TEST(Explorer, LeavesOutOnlyWhatIsEquivalent) {
  std::mt19937 random(7);
  uint64_t all = 0, run = 0;
  for (int trial = 0; trial < 60; ++trial) {
    Code code(2 + random() % 2);
    const bool barriers = trial % 2;
    for (auto &process : code)
      for (size_t i = 0, count = 1 + random() % 3; i < count; ++i)
        process.push_back({Op::Kind(random() % (barriers ? 7 : 4)), uint32_t(random() % 2)});
    const Found brute = explore(code, false), reduced = explore(code, true);
    ASSERT_EQ(brute.error.empty(), reduced.error.empty()) << "trial " << trial;
    if (!brute.error.empty())
      continue;
    EXPECT_EQ(brute.states, reduced.states) << "trial " << trial;
    EXPECT_TRUE(reduced.report.complete);
    all += brute.report.orders;
    run += reduced.report.orders;
    if (barriers)
      continue;
    EXPECT_EQ(brute.traces, reduced.traces) << "trial " << trial;
    EXPECT_EQ(reduced.report.orders, brute.traces.size()) << "trial " << trial;
  }
  EXPECT_GT(all, 5 * run);
}

TEST(Explorer, OrdersAsText) {
  const Process warp = warpProcess(1, 2, 3);
  const std::vector<Process> order = {warp, warp, ticketProcess(warp, 9), kLauncher, kTimeLimit};
  EXPECT_EQ(orderText(order), "1.2.3*2 1.2.3#9 launch expire");
  const auto back = parseOrder(orderText(order));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, order);
  for (const char *wrong : {"1.2", "1.2.3#", "1.2.3*0", "1.2.3*x", "1.2.3*2x", "1.300.3", "lunch"})
    EXPECT_FALSE(parseOrder(wrong)) << wrong;
}

} // namespace
