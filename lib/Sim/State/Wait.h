//===- Wait.h - Conditions on which groups of lanes wait ------------------===//
#pragma once

#include <cstdint>
#include <string>

namespace fp4::sim {

/// A condition a handler hands to ExecContext::block. The scheduler asks `ready` once per round
/// while the group is blocked; it must be cheap and free of effects. `describe` completes the
/// sentence "warp 4 waits for ..." of the deadlock report: the barrier, the phase wanted and
/// found, who should have arrived.
class Wait {
public:
  virtual ~Wait() = default;
  virtual bool ready() const = 0;
  virtual std::string describe() const = 0;
  /// Returns true when the hardware's time limit may end the wait; the handler then finds
  /// ExecContext::expired.
  virtual bool expires() const { return false; }
  /// Returns true when the group is in a loop that goes on by itself and only reads the same values
  /// (Polling.h).
  virtual bool polls() const { return false; }
  /// Returns true when another cluster may end the wait.
  virtual bool awaitsClusters() const { return false; }
  /// Differs when what it waits for has moved on.
  virtual uint64_t state() const { return 0; }
};

} // namespace fp4::sim
