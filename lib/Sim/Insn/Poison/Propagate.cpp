//===- Propagate.cpp - Executing instructions of warps that have poison ---===//
#include "Sim/Insn/Poison/Propagate.h"
#include "Sim/Decode/OperandRoles.h"
#include "Sim/Insn/Poison/Rules.h"
#include "Sim/Insn/Poison/Uses.h"
#include <algorithm>

using namespace fp4;
using namespace fp4::sim;

bool fp4::sim::beginPoisoned(ExecContext &cx, const Insn &insn, uint32_t lanes) {
  Poison &poison = *cx.warp().poison;
  poison.meet(cx.pc, lanes);
  if (insn.guard == kNoGuard || !poison.has(insn.guard))
    return true;
  Operand guard;
  guard.kind = OperandKind::Pred;
  guard.offset = insn.guard;
  const uint32_t bad = poison.lanesOf(guard) & lanes;
  const Selection *selection = bad ? poison.selectionAt(cx.pc) : nullptr;
  if (!selection)
    return expectClean(cx, guard, lanes,
                       insn.flow == Flow::Branch ? "branches on" : "is guarded by");
  poison.choose(*selection, bad, poison.originsOf(insn.guard));
  return true;
}

/// Returns true when the instruction names a register that has poison.
static bool namesPoison(const ExecContext &cx, const Poison &poison, const Insn &insn) {
  if (insn.poison == PoisonRule::Carry && poison.carry)
    return true;
  const Operand *pool = cx.kernel().operandPool.data();
  const auto has = [&](const Operand &o) { return poison.has(o); };
  return poison.any() && std::ranges::any_of(insn.op, [&](const Operand &o) {
           return o.kind == OperandKind::Vector
                      ? std::any_of(pool + o.offset, pool + o.offset + o.imm, has)
                      : has(o);
         });
}

/// Returns true when poison in an operand counts as a use, whatever becomes of the result.
static bool isUse(const Insn &insn, size_t at) {
  switch (insn.poison) {
  case PoisonRule::Use:
    return true;
  case PoisonRule::Load:
  case PoisonRule::Store:
    return insn.op[at].kind == OperandKind::Address;
  case PoisonRule::Shuffle:
    return insn.poisonArgument >> at & 1;
  case PoisonRule::Vote:
  case PoisonRule::Ballot:
    return at == 2;
  case PoisonRule::Members:
    return insn.poisonArgument == at;
  default:
    return false;
  }
}

static bool sourcesAreUsable(ExecContext &cx, const Insn &insn) {
  if (insn.poison == PoisonRule::Jump)
    return expectClean(cx, insn.op[0], cx.mask, "branches on");
  bool usable = true;
  forEachOperand(cx.kernel(), insn, false, [&](size_t at, const Operand &o) {
    if (usable && isUse(insn, at))
      usable = expectClean(cx, o, cx.mask,
                           o.kind == OperandKind::Address ? "takes as an address" : "uses");
  });
  if (insn.get<WgmmaModifiers>()) // D is also a source
    forEachOperand(cx.kernel(), insn, true, [&](size_t, const Operand &o) {
      usable = usable && expectClean(cx, o, cx.mask, "uses");
    });
  return usable;
}

Outcome fp4::sim::executePoisoned(ExecContext &cx, const Insn &insn) {
  Poison &poison = *cx.warp().poison;
  if (!namesPoison(cx, poison, insn))
    return insn.handler(cx, insn);
  if (!sourcesAreUsable(cx, insn))
    return Outcome::Error;
  if (insn.poison == PoisonRule::Jump || insn.poison == PoisonRule::Store)
    return insn.handler(cx, insn);
  if (insn.poison == PoisonRule::Load) { // the handler sets the poison of the results
    forEachOperand(cx.kernel(), insn, true,
                   [&](size_t, const Operand &o) { poison.clear(o, cx.mask); });
    return insn.handler(cx, insn);
  }
  PoisonStep step(cx, insn);
  const uint32_t active = cx.mask;
  const Outcome outcome = insn.handler(cx, insn);
  // Some lanes that name members may wait; the others have executed the instruction.
  const uint32_t done = outcome == Outcome::Retry ? active & ~cx.mask : active;
  if (outcome != Outcome::Error && done)
    step.propagate(done);
  return outcome;
}
