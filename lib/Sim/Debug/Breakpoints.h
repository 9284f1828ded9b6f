//===- Breakpoints.h - Places where a debugger stops ----------------------===//
#pragma once

#include "Sim/Decode/ProgramImpl.h"
#include <string>
#include <vector>

namespace fp4::sim::debug {

/// A breakpoint is one of: a line of the PTX; a line of the source that .loc names; instructions by
/// the begin of their opcode, or all that synchronize; a kernel.
struct Breakpoint {
  int id = 0;
  std::string file;   ///< source file, or the end of its path; empty: the PTX
  uint32_t line = 0;  ///< 0: no line
  std::string opcode; ///< "mbarrier.try_wait", or "barriers"
  std::string kernel;
};

class Breakpoints {
public:
  /// Returns the number of the new breakpoint.
  int add(Breakpoint breakpoint);
  bool remove(int id);
  /// Removes those of a file; of the PTX if it has no name.
  void removeLines(const std::string &file);
  /// Removes those of opcodes and kernels.
  void removeNames();
  const std::vector<Breakpoint> &list() const { return all; }

  /// The kernel that runs from now on.
  void enter(const ProgramImpl &program, const Kernel &kernel);
  /// The breakpoint at a pc of the kernel; 0: none.
  int at(uint32_t pc) const { return pc < byPc.size() ? byPc[pc] : 0; }
  /// The breakpoint at the begin of the kernel; 0: none.
  int atBegin() const { return begin; }
  /// The line where a breakpoint of this kernel stops; 0: nowhere in it.
  uint32_t lineOf(int id) const;
  /// The number of instructions of this kernel at which a breakpoint stops.
  size_t placesOf(int id) const;

private:
  void place();
  void placeOne(const Breakpoint &breakpoint);

  std::vector<Breakpoint> all;
  int last = 0;
  const ProgramImpl *program = nullptr;
  const Kernel *kernel = nullptr;
  std::vector<int> byPc;
  int begin = 0;
};

} // namespace fp4::sim::debug
