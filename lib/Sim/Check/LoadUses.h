//===- LoadUses.h - Where the value of a load goes ------------------------===//
//
// Compilers let every thread load a scalar that only one thread uses. The text of the kernel shows
// whether a racing load is of that kind: its value goes through arithmetic into one store.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace fp4::sim {
struct Kernel;
}

namespace fp4::sim::check {

class LoadUses {
public:
  /// The one store whose data the values of the load at `pc` become, when they reach nothing else:
  /// no address, predicate of an effect, branch, other lane or other instruction with an effect.
  std::optional<uint32_t> onlyStore(const Kernel &kernel, uint32_t pc);
  /// Whether any instruction reads a register that the one at `pc` writes.
  bool isUsed(const Kernel &kernel, uint32_t pc);
  /// For another kernel.
  void clear() {
    known.clear();
    used.clear();
  }

private:
  static constexpr uint32_t unknown = 0, none = 1; ///< else pc of the store + 2
  std::vector<uint32_t> known;                     ///< by pc
  std::vector<std::optional<bool>> used;           ///< by pc
};

} // namespace fp4::sim::check
