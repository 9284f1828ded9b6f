//===- WgmmaRegisters.h - Register uses of a warp since wgmma.fence -------===//
//
// PTX ISA, "wgmma.fence": it orders accesses to registers before the wgmma.mma_async that uses them
// as accumulator or as A. Kept for warps that executed a wgmma.fence under an observer.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Decode/Insn.h"
#include <map>
#include <optional>

namespace fp4::sim {

enum class RegisterUse : uint8_t;

class WgmmaRegisters {
public:
  /// An access that a wgmma must not follow without a fence.
  struct Access {
    uint32_t pc = 0;
    uint32_t offset = 0; ///< offset in bank 0 of the register, or of a part of it
    RegisterUse use{};
  };

  /// Accesses by other instructions, of operands of bank 0. `pool`: Kernel::operandPool;
  /// `move`: a mov.
  void use(const Insn &insn, const Operand *pool, uint32_t pc, bool move);
  void fence();
  /// Returns the access since the last fence that a wgmma of a shape may not follow: the wgmma
  /// accumulates into D and may read A from registers. With `movesAreFine`, moves to and from D are
  /// allowed: compilers put the zeros of a new accumulator behind the fence.
  std::optional<Access> multiply(const Operand &d, const Operand *a, const Operand *pool,
                                 uint32_t shape, uint32_t pc, bool movesAreFine);

private:
  struct Unit {
    uint32_t usedBy = 0;      ///< pc + 1 of an access that is no wgmma
    bool written = false;     ///< true when that access wrote it
    bool onlyMoved = false;   ///< true when all such accesses were by mov
    bool ofD = false;         ///< part of D, while multiply looks for copies
    uint32_t accumulated = 0; ///< pc + 1 of a wgmma that had it in D
    uint32_t shape = 0;       ///< shape of that wgmma
  };
  template <typename F> void forEachUnit(const Operand &o, const Operand *pool, F &&f);
  std::optional<Access> copyOutOfD(const Operand *pool);

  std::vector<Unit> units; ///< units by offset in the bank / 32: as many as a register has bytes
  std::map<uint32_t, const Insn *> copies; ///< mov from register to register since the fence, by pc
};

} // namespace fp4::sim
