//===- PollLoops.h - Loops that wait for a value in memory ----------------===//
//
// A loop of one load, of arithmetic on its value, and of branches that lead back to the load or out
// of the loop. Registers that an earlier pass has set are not needed where the loop begins. A pass
// that leads back to the load therefore has done nothing: an order with it ends as the same order
// without it. So a warp in front of such a loop has to wait while the pass would lead back.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Orders/OrderRecorder.h"
#include "Sim/Run/Scheduler.h"

namespace fp4::sim {

class PollLoops {
public:
  explicit PollLoops(const Kernel &kernel);

  bool empty() const { return ends.empty(); }
  bool beginsAt(uint32_t pc) const { return ends.contains(pc); }
  /// The group of `warp` whose turn it is, with `last` one before a loop only if no other can go
  /// on. Null while all lanes wait.
  const LaneGroup *next(Scheduler &scheduler, Warp &warp, bool last) const;
  /// Executes what a warp does with its registers alone, so that it stands before the next
  /// instruction that does more.
  Status settle(Scheduler &scheduler, Warp &warp, bool last) const;
  /// Returns true when the warp stands before a loop and its next pass leads back. Only `recorder`
  /// is told of the load; everything is left as it was.
  Expected<bool> fails(Scheduler &scheduler, Warp &warp, bool last, OrderRecorder &recorder) const;

private:
  Expected<bool> leadsBack(Scheduler &scheduler, Warp &warp, LaneGroup &group) const;

  const Kernel &kernel;
  std::map<uint32_t, uint32_t> ends; ///< the branch back, by the load that a loop begins with
};

} // namespace fp4::sim
