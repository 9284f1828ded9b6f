//===- Warp.h - 32 lanes, their registers and program counters ------------===//
//
// Per-lane program counters are kept as groups: lanes that share a PC run as one group. A
// converged warp has one group. The runnable group whose PC comes first in Kernel::turns runs
// first, so that lanes meet where their ways join, and groups that reach the same PC merge; after a
// quantum another group gets its turn, so a lane that spins cannot starve the lane it waits for.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/State/Poison.h"
#include "Sim/State/Wait.h"
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace fp4::sim {

class Cta;

inline constexpr uint32_t kAllLanes = 0xFFFFFFFFu;

struct LaneGroup {
  uint32_t pc = 0;
  uint32_t mask = 0;
  std::unique_ptr<Wait> wait; ///< null: runnable
  bool retry = false;         ///< when ready: execute the instruction at pc again (it had no
                              ///< effect yet); else pc already points to the next one
  uint64_t token = 0;         ///< ExecContext::token of the instruction to execute again
  bool expired = false;       ///< true when the wait met the time limit: ExecContext::expired
};

class Warp {
public:
  Cta *cta = nullptr;
  uint32_t index = 0;             ///< number in the CTA; TMEM lane quadrant is index % 4
  uint32_t live = 0;              ///< lanes that exist and have not exited
  uint32_t present = 0;           ///< lanes that exist (the last warp of a CTA may be partial)
  std::byte *registers = nullptr; ///< bank 0
  const std::byte *constants = nullptr; ///< bank 1
  std::vector<LaneGroup> groups;        ///< disjoint masks, union == live
  std::vector<std::byte> local;         ///< .local: lane l at l * Kernel::info.localBytes
  uint32_t passedOver = 0; ///< 1 + LaneTurn::order of a group whose quantum ran out while others
                           ///< waited; 0: none
  uint32_t clusterArrived = 0; ///< lanes that arrived at the current barrier.cluster phase
  uint32_t clusterPending = 0; ///< lanes that arrived at a barrier.cluster and have not waited
  uint32_t parted = 0;         ///< 1 + PC of a branch that split the lanes, until they synchronize
  uint32_t carry = 0;          ///< CC.CF: add.cc and friends
  uint32_t maxRegisters = 0;   ///< per thread, for setmaxnreg; 0: the launch does not tell
  uint64_t executed = 0;
  uint32_t turns = 0; ///< turns in a row that the warp has used up, or ended asleep
  /// tcgen05.ld that the warp has not waited for: AsyncWork::useRegisters.
  uint32_t loadsInFlight = 0;
  std::unique_ptr<Poison> poison; ///< poison of registers; null: there has never been any

  bool done() const { return live == 0; }
};

} // namespace fp4::sim
