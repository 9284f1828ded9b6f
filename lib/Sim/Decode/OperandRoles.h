//===- OperandRoles.h - Operands that are read and written ----------------===//
#pragma once

#include "Sim/Decode/OpcodeTable.h"
#include "Sim/Decode/ProgramImpl.h"

namespace fp4::sim {

inline const OpcodeRow &rowOf(const Insn &insn) { return opcodeTable()[insn.row]; }

/// Returns the use that an instruction makes of the carry of each lane (CC.CF), which is no
/// operand.
inline CarryModifiers carryOf(const Insn &insn) {
  const auto *carry = insn.get<CarryModifiers>();
  return carry ? *carry : CarryModifiers();
}

inline bool isDestination(PatternKind kind) {
  return kind == PatternKind::Dst || kind == PatternKind::DstPred ||
         kind == PatternKind::DstPredPair || kind == PatternKind::DstRegPred ||
         kind == PatternKind::VecDst;
}

/// Calls f(register) for each register of an operand.
template <typename F>
void forEachRegister(const Kernel &kernel, const Operand &operand, const F &f) {
  if (operand.kind == OperandKind::Vector)
    for (int64_t e = 0; e < operand.imm; ++e)
      forEachRegister(kernel, kernel.operandPool[operand.offset + size_t(e)], f);
  else if (operand && operand.bank == kRegBank)
    f(operand);
}

/// Calls f(place in Insn::op, register) for the registers that are written, or for those that are
/// read; the guard is not among them. A call has none: its arguments are those of its CallSite.
template <typename F>
void forEachOperand(const Kernel &kernel, const Insn &insn, bool written, const F &f) {
  size_t at = 0;
  for (const PatternItem &item : rowOf(insn).pattern)
    for (unsigned n = 0; n < item.operands() && at < insn.op.size(); ++n, ++at)
      if (item.kind != PatternKind::Clock && isDestination(item.kind) == written)
        forEachRegister(kernel, insn.op[at], [&](const Operand &o) { f(at, o); });
}

} // namespace fp4::sim
