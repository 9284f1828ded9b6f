//===- Recorder.h - The accesses of the instruction that executes ---------===//
//
// Listens to the events of a simulation and keeps what the instruction of a warp touched, until
// whoever gives it its time takes it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Time/Memory.h"
#include "fp4/Sim/MemoryModel.h"
#include "fp4/Sim/Observer.h"
#include <vector>

namespace fp4::sim {

class Recorder final : public Observer {
public:
  void onMemory(const MemoryEvent &event) override;
  void clear() {
    lines.clear();
    wavefronts = 0;
    write = atomic = strong = meets = false;
  }

  std::vector<LineAccess> lines; ///< lines of global memory
  uint32_t wavefronts = 0;       ///< wavefronts of shared memory
  bool write = false, atomic = false;
  bool strong = false; ///< access that goes beyond L1
  bool meets = false;  ///< access to global memory that sees what other CTAs do to it

private:
  void addGlobal(const MemoryEvent &event);
  void addRun(uint64_t begin, uint64_t end);
  void addShared(const MemoryEvent &event);
};

} // namespace fp4::sim
