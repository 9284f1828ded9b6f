//===- Orders.h - Every distinguishable order of a launch -----------------===//
//
// With CompletionPolicy::Exhaustive a launch runs again and again, until every order of the steps
// of its warps and of its asynchronous operations has run that a program could tell apart. Two
// orders that differ only in steps that have nothing to do with each other are one (docs/reference/
// simulator.md, "Every order", says what that means and what is proven).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fp4::sim {

/// Result of the orders of one launch.
struct OrderReport {
  std::string kernel;
  uint64_t orders = 0;    ///< orders that ran to their end
  uint64_t pruned = 0;    ///< begun, and left when all that could follow had run before
  uint64_t longest = 0;   ///< steps of the longest order
  uint64_t processes = 0; ///< warps and asynchronous operations of that order
  /// Pairs of the launch's steps that no order tells apart: the reason why few orders stand for
  /// all.
  uint64_t commuting = 0;
  bool everyAccess = false; ///< plain accesses of memory are steps too: two were not ordered
  bool complete = false;    ///< no order is left
  double seconds = 0;

  enum class Failure : uint8_t { None, Error, Hazard, Result };
  Failure failure = Failure::None; ///< failure of the last order, which was the last to run
  std::string order;               ///< the order that failed, for OrderOptions::replay
};

/// "1 order", "24 orders, 3 left early, 118 steps at most; not complete: ...".
std::string summaryOf(const OrderReport &report);

struct OrderOptions {
  uint64_t most = 0;  ///< orders of one launch that run, those left early too; 0: no limit
  bool reduce = true; ///< false: every order of the steps, for tests that compare
  std::string replay; ///< runs this one order of the launches whose kernel it names
  /// Number of findings of a checker so far; an order in which it finds more has failed.
  std::function<uint64_t()> hazards;
  std::function<void(OrderReport)> report; ///< receives that of every launch
  /// Receives how many orders of a launch have ended, of `most` of them; both are equal at its end.
  std::function<void(uint64_t ended, uint64_t most)> progress;
  /// Function that is called when an order has ended, whose results are then not compared with
  /// those of the first one; may be empty.
  std::function<void()> ended;
};

/// Exit code of a tool whose kernels did not fail, but have orders that did not run.
inline constexpr int kOrdersLeft = 7;

} // namespace fp4::sim
