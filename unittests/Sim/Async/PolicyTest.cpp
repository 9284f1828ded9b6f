// Completion policies by themselves: what is due, what is chosen, what time it is.
#include "Sim/State/Policy.h"
#include "Sim/Async/Ticket.h"
#include "fp4/Sim/Simulator.h"

#include <array>
#include <gtest/gtest.h>
#include <vector>

using namespace fp4::sim;

namespace {

std::unique_ptr<Policy> policy(CompletionPolicy which, uint64_t seed = 0, uint64_t cluster = 0,
                               const char *delayed = "all") {
  SimOptions options;
  options.policy = which;
  options.seed = seed;
  options.delayedEngine = delayed;
  options.delayRounds = 3;
  static std::vector<std::unique_ptr<SimOptions>> kept; // a policy refers to its options
  kept.push_back(std::make_unique<SimOptions>(options));
  return makePolicy(*kept.back(), cluster);
}

Ticket ticketOf(TicketKind kind, uint64_t issued = 0) {
  Ticket ticket;
  ticket.kind = kind;
  ticket.issued = issued;
  return ticket;
}

TEST(Policy, WhatIsDueByItself) {
  const Ticket ticket = ticketOf(TicketKind::Mma);
  EXPECT_TRUE(policy(CompletionPolicy::Eager)->due(ticket));
  EXPECT_FALSE(policy(CompletionPolicy::Lazy)->due(ticket));
  EXPECT_FALSE(policy(CompletionPolicy::Random)->due(ticket));
}

TEST(Policy, ADelayEndsByTheClock) {
  const auto delay = policy(CompletionPolicy::Delay, 0, 0, "tma");
  EXPECT_TRUE(delay->due(ticketOf(TicketKind::Mma))); // another engine
  delay->beginRound();
  const Ticket copy = ticketOf(TicketKind::Tma, delay->clock());
  for (int round = 0; round < 3; ++round) {
    EXPECT_FALSE(delay->due(copy)) << round;
    delay->beginRound();
  }
  EXPECT_TRUE(delay->due(copy));
}

TEST(Policy, InOrderUnlessRandom) {
  const std::array<uint64_t, 3> ready = {4, 7, 9};
  for (CompletionPolicy which :
       {CompletionPolicy::Eager, CompletionPolicy::Lazy, CompletionPolicy::Delay}) {
    const auto ordered = policy(which);
    EXPECT_EQ(ordered->choose(ready), 4u);
    EXPECT_EQ(ordered->first(5), 0u);
    EXPECT_FALSE(ordered->completesAnother());
    EXPECT_FALSE(ordered->spurious(1));
  }
}

TEST(Policy, ASeedAndAClusterDecideARandomOne) {
  const std::array<uint64_t, 3> ready = {4, 7, 9};
  const auto draw = [&](uint64_t seed, uint64_t cluster) {
    const auto random = policy(CompletionPolicy::Random, seed, cluster);
    std::vector<uint64_t> drawn;
    for (int i = 0; i < 16; ++i) {
      drawn.push_back(random->choose(ready));
      drawn.push_back(random->quantum());
      drawn.push_back(random->completesAnother());
    }
    return drawn;
  };
  EXPECT_EQ(draw(1, 2), draw(1, 2));
  EXPECT_NE(draw(1, 2), draw(1, 3));
  EXPECT_NE(draw(1, 2), draw(2, 2));
}

} // namespace
