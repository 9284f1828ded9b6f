//===- AsyncWork.h - The asynchronous side of one cluster -----------------===//
//
// Everything that does not happen in a warp's program order: tickets, mbarriers,
// TMA, tensor memory, tcgen05. One object serves one cluster and lives as long as it. The
// scheduler calls it; instruction handlers of the asynchronous families reach it by
// *cx.cluster().async and may downcast.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"
#include <memory>

namespace fp4::sim {

class Cluster;
class Cta;
class Warp;
struct Insn;

class AsyncWork {
public:
  virtual ~AsyncWork() = default;

  /// Completes what the policy says is due, once per scheduling round. Errors end the launch.
  virtual Status round() = 0;
  /// Completes at least one outstanding ticket, when no warp can run, and returns true. Returns
  /// false where there is none: a deadlock, if warps are left.
  virtual Expected<bool> advance() = 0;
  /// Returns true when advance() would return true.
  virtual bool canAdvance() const = 0;
  /// The last warp of `cta` exited: check what must be released by then.
  virtual Status ctaExited(Cta &cta) = 0;
  /// All CTAs exited: complete every ticket still in flight.
  virtual Status drain() = 0;
  /// "the TMA load issued by warp 5 at line 120": for reads of bytes a ticket has poisoned.
  virtual std::string describeTicket(uint64_t ticket) const = 0;
  /// `warp`, which has loadsInFlight, is about to execute `insn`: fails when it names a register
  /// that a tcgen05.ld has still to write (or, by SimOptions, completes that load).
  virtual Status useRegisters(const Warp &warp, const Insn &insn) = 0;
  /// Explains a deadlock. Called when advance() returned false.
  virtual Error deadlock() = 0;
};

/// Defined in lib/Sim/Async.
std::unique_ptr<AsyncWork> makeAsyncWork(Cluster &cluster);

} // namespace fp4::sim
