//===- Explorer.h - Choice of the next order ------------------------------===//
//
// Dynamic partial-order reduction with source sets and sleep sets (Abdulla, Aronsson, Jonsson and
// Sagonas, "Source Sets: A Foundation for Optimal Dynamic Partial Order Reduction", 2017). An order
// is a list of processes, of which each makes its next step. The first order is any. Each race of an
// order adds, at the place where it began, a process that makes the steps come the other way round.
// A process whose step has been tried at a place sleeps in what follows until a step is executed on
// which it depends.
//
// The program is behind an interface, so that the algorithm can be tested by itself.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Orders/Trace.h"
#include "fp4/Sim/Orders.h"
#include <optional>
#include <span>

namespace fp4::sim {

/// A program that can be run again from its beginning, step by step.
class Stepped {
public:
  virtual ~Stepped() = default;
  /// The steps of the program will be in `trace`.
  virtual void watch(Trace &trace) {}
  virtual Status begin() = 0;
  /// The processes that may be able to make a step, the preferred first.
  virtual std::vector<Process> candidates() = 0;
  /// Operations that can make a step, at most so many, behind the warps.
  virtual std::vector<Process> operations(size_t most) { return {}; }
  /// Makes the next step of a process; false when it has to wait, and nothing happened.
  virtual Expected<bool> step(Process process) = 0;
  /// Processes that may wait in a loop until memory changes; then waits() says what they look at,
  /// and they make no step. Null: the next step of the process is one that gets on.
  virtual std::vector<Process> pollers() { return {}; }
  virtual Expected<const Footprint *> waits(Process process) { return nullptr; }
  /// Bytes and objects that the last step touched.
  virtual const Footprint &footprint() const = 0;
  /// Ends waits when no process can make a step; false when all processes have ended.
  virtual Expected<bool> expire() = 0;
  /// Checks what must hold when all processes have ended. ErrorKind::Mismatch: a result is another
  /// than before.
  virtual Status end() = 0;
  /// Steps end after every access of memory from now on; false if they do already.
  virtual bool refine() { return false; }
  /// Returns true when the process, which has to wait, waits for registers.
  virtual bool wantsRegisters(Process process) const { return false; }
  /// Steps that pass registers on are dependent from now on; false if they are already.
  virtual bool orderRegisters() { return false; }
};

/// "0.0.3" is warp 3 of the CTA of rank 0 of cluster 0, "0.0.3#7" its seventh operation; "*4" says
/// how often. Processes of an order are separated by spaces.
std::string orderText(std::span<const Process> order);
Expected<std::vector<Process>> parseOrder(std::string_view text);

class Explorer {
public:
  Explorer(Stepped &program, const OrderOptions &options) : program(program), options(options) {
    program.watch(trace);
  }

  /// Runs every order. An error is that of the order in the report; the program is then as that
  /// order left it, else as the last order did.
  Status run(OrderReport &report);
  /// Runs one order; behind its end any process goes on.
  Status replay(std::span<const Process> order);

private:
  struct Sleeper {
    Process process;
    std::shared_ptr<const Footprint> next;
  };
  /// The processes that have been tried before a step, and those that have to be.
  struct Place {
    Process chosen = 0;
    std::shared_ptr<const Footprint> footprint; ///< footprint of the step of `chosen`
    std::vector<Process> wanted; ///< processes to try, with those that have been tried
    std::vector<Process> tried;
    std::vector<Sleeper> asleep;
    std::vector<Sleeper> waiting; ///< processes in a loop, with what they look at
  };
  /// The end of an order: as a whole; when all that could follow had run before; because the
  /// process wanted next has to wait there; or, for an order that only shows if one is left, Left.
  enum class Ended : uint8_t { Whole, Pruned, Impossible, Left };
  enum class Chosen : uint8_t { Step, Pruned, Nobody };

  Expected<Ended> runOrder();
  Expected<bool> take(Process process, size_t depth);
  Expected<bool> takeAny(std::span<const Process> processes, size_t depth);
  Expected<Chosen> chooseAndTake(size_t depth);
  std::vector<Sleeper> asleepAt(size_t depth) const;
  Status noteWaiting(size_t depth);
  void noteRaces(std::span<const uint32_t> races);
  bool backtrack();
  void count(Ended ended, OrderReport &report) const;
  bool beginsAgain(OrderReport &report);
  Status endWhole(Ended last);
  std::vector<Process> currentOrder() const;

  Stepped &program;
  const OrderOptions &options;
  Trace trace;
  std::vector<Place> places;
  std::optional<Process> acting; ///< process whose step has begun and not ended
  size_t fresh = 0; ///< steps before this one have run in the order before, too
  bool replaying = false; ///< the order is a user's
  bool probing = false;   ///< the limit is reached: is an order left?
  bool starved = false;   ///< the process wanted had to wait for registers
  /// All that can be next is wanted, as far as it does not sleep: a race with a step that enabled
  /// another one cannot be turned around, and does not show which others could have been next.
  bool everybody = false;
};

} // namespace fp4::sim
