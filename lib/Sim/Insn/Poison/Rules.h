//===- Rules.h - The shadow of a result, by PoisonRule --------------------===//
#pragma once

#include "Sim/State/ExecContext.h"

namespace fp4::sim {

/// An instruction that has been executed, and its scalar sources as they were before.
class PoisonStep {
public:
  using Bits = unsigned __int128; ///< bits of a register, or the one bit of a predicate

  /// Keeps the sources before the instruction is executed.
  PoisonStep(ExecContext &cx, const Insn &insn);
  /// Gives the results their shadows after `lanes` have executed the instruction.
  void propagate(uint32_t lanes);

private:
  struct Source {
    size_t at = 0; ///< index in Insn::op
    std::array<Bits, 32> value{}, shadow{};
  };
  static constexpr size_t slot = 512; ///< bytes in `values` of an operand

  void takeSource(size_t at);
  void takeOrigins(const Operand &o);
  const Source &source(size_t at) const;
  Operand inValues(size_t at) const;
  void setShadow(const Operand &o, int lane, Bits bits);
  Bits allOf(const Operand &o) const;
  template <typename F> void forEachLane(const F &f) const;
  template <typename F> void forEachMembers(size_t operand, const F &f) const;
  uint32_t valueMask(size_t at) const;
  uint32_t shadowMask(size_t at) const;

  void computeShadow();
  void runOnShadows(uint32_t valueOperands);
  void move();
  void parts();
  void pack();
  void fill();
  void carry();
  void logic();
  void select();
  void compare();
  void vote();
  void ballot();
  void members();
  uint32_t comparison();

  ExecContext &cx;
  const Insn &insn;
  Poison &poison;
  uint32_t lanes = 0;
  uint32_t poisoned = 0; ///< lanes of any source
  Poison::Origins origins{};
  std::vector<Source> sources;
  std::vector<Operand> results;
  alignas(64) std::array<std::byte, (kMaxOperands + 2) * slot> values{};
};

} // namespace fp4::sim
