//===- AccessStatistics.h - Use of the memories by warps ------------------===//
//
// Counts the cost of every instruction that accesses shared or global memory: wavefronts of the 32
// banks of shared memory, sectors of 32 bytes of global memory, and the least number that the same
// bytes need. The numbers are counts, not times.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Sim/Observer.h"
#include <map>
#include <string>
#include <vector>

namespace fp4::sim {

class Program;

/// One instruction of a kernel.
struct AccessCount {
  std::string program, kernel;
  uint32_t line = 0, column = 0;
  std::string source; ///< the text of the line
  bool shared = false;
  uint64_t accesses = 0; ///< accesses by warps
  uint64_t cost = 0;     ///< wavefronts (shared) or sectors (global)
  uint64_t least = 0;    ///< cost of the same bytes if they were distinct and side by side
  /// "gemm.ptx:41:3: 640 accesses, 2560 wavefronts where 640 suffice: ld.shared..."
  std::string text() const;
};

/// Text with the number of instructions that waste accesses, and the worst of them, one line each.
std::string textOf(const std::vector<AccessCount> &wasteful);

class AccessStatistics final : public Observer {
public:
  void onLaunch(const LaunchEvent &event) override;
  void onMemory(const MemoryEvent &event) override;

  /// Instructions of all launches that cost more than the least, the worst first.
  std::vector<AccessCount> wasteful() const;

private:
  const Program *program = nullptr;
  std::string kernel;
  std::map<std::tuple<std::string, std::string, uint32_t, bool>, AccessCount> counts;
  std::vector<AccessCount *> byPc; ///< counts of this launch; [2 * pc + shared]
};

} // namespace fp4::sim
