//===- LoadUses.h - Uses of the value of a load ---------------------------===//
//
// The text of a kernel shows what a racing load is good for. Compilers let more threads load a
// value than use it: the value goes through arithmetic into stores that some threads make. Programs
// guess a value that an atomic operation checks. And a value that lanes exchange was loaded before.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace fp4::sim {
struct Kernel;
}

namespace fp4::sim::check {

class LoadUses {
public:
  /// The threads in which a value is followed: the lane that loads it, or all lanes of its warp.
  enum class Within : uint8_t { Lane, Warp };
  /// The stores whose data the values of the load at `pc` become, in order, when they reach nothing
  /// else: no address, predicate of an effect, branch, other lane or warp, or other instruction
  /// with an effect, and no local memory. Null where they do, or reach no store.
  const std::vector<uint32_t> *onlyStores(const Kernel &kernel, uint32_t pc, Within within);
  /// Returns true when any instruction reads a register that the one at `pc` writes.
  bool isUsed(const Kernel &kernel, uint32_t pc);
  /// Returns true when a plain load is a guess that an atomic operation makes good: atom.cas
  /// compares memory with its value, as in the loops of CUDA's guide, or its value only decides if
  /// an atomic operation is worth making.
  bool isGuess(const Kernel &kernel, uint32_t pc);
  /// Returns true when the value of a load is an operand of another instruction, itself or through
  /// arithmetic.
  bool reaches(const Kernel &kernel, uint32_t load, uint32_t user);
  /// Forgets everything, for another kernel.
  void clear() { *this = {}; }

private:
  using Stores = std::vector<std::optional<std::vector<uint32_t>>>;
  Stores ofLane, ofWarp;                           ///< by pc; empty where there are none
  std::vector<std::optional<bool>> used, guesses;  ///< by pc
  std::optional<std::set<uint32_t>> guessed;       ///< registers that a guess may become
  std::map<std::pair<uint32_t, uint32_t>, bool> flows;
};

} // namespace fp4::sim::check
