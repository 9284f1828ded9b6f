//===- WgmmaRegisters.cpp - Register uses of a warp since wgmma.fence -----===//
#include "WgmmaRegisters.h"
#include "fp4/Sim/Events/FenceEvent.h"

namespace fp4::sim {

template <typename F>
void WgmmaRegisters::forEachUnit(const Operand &o, const Operand *pool, F &&f) {
  if (o.kind == OperandKind::Vector) {
    for (int64_t i = 0; i < o.imm; ++i)
      forEachUnit(pool[o.offset + i], pool, f);
    return;
  }
  if ((o.kind != OperandKind::Reg && o.kind != OperandKind::Address) || o.bank != kRegBank)
    return;
  const size_t first = o.offset / 32, last = first + o.width;
  if (units.size() < last)
    units.resize(last);
  for (size_t i = first; i < last; ++i)
    f(units[i], uint32_t(32 * i));
}

void WgmmaRegisters::use(const Insn &insn, const Operand *pool, uint32_t pc, bool move) {
  bool reads = false; // more than what a mov put there behind the fence
  for (const Operand &o : insn.op)
    forEachUnit(o, pool, [&](Unit &unit, uint32_t) {
      const bool written = &o == insn.op.data() && o.kind != OperandKind::Address;
      if (move && !written && unit.onlyMoved && unit.written)
        return; // compilers take the zeros of one accumulator from another's
      reads |= !written;
      unit.onlyMoved = move && (unit.onlyMoved || !unit.usedBy);
      unit.written = written;
      unit.usedBy = pc + 1;
    });
  if (move && reads && insn.op[1].bank == kRegBank)
    copies[pc] = &insn;
}

void WgmmaRegisters::fence() {
  units.clear();
  copies.clear();
}

/// Returns a copy of a register of D to a register outside of D.
std::optional<WgmmaRegisters::Access> WgmmaRegisters::copyOutOfD(const Operand *pool) {
  for (const auto &[pc, insn] : copies) {
    std::optional<uint32_t> from;
    bool toOther = false;
    for (const Operand &o : insn->op)
      forEachUnit(o, pool, [&](Unit &unit, uint32_t offset) {
        if (&o == insn->op.data())
          toOther |= !unit.ofD;
        else if (unit.ofD)
          from = offset;
      });
    if (from && toOther)
      return Access{pc, *from, RegisterUse::Read};
  }
  return std::nullopt;
}

std::optional<WgmmaRegisters::Access>
WgmmaRegisters::multiply(const Operand &d, const Operand *a, const Operand *pool, uint32_t shape,
                         uint32_t pc, bool movesAreFine) {
  std::optional<Access> found;
  const auto blame = [&](const Unit &unit, uint32_t offset) {
    const RegisterUse use = !unit.usedBy    ? RegisterUse::Product
                            : unit.written ? RegisterUse::Write
                                           : RegisterUse::Read;
    if (!found)
      found = Access{(unit.usedBy ? unit.usedBy : unit.accumulated) - 1, offset, use};
  };
  forEachUnit(d, pool, [](Unit &unit, uint32_t) { unit.ofD = true; });
  if (movesAreFine)
    found = copyOutOfD(pool);
  forEachUnit(d, pool, [&](Unit &unit, uint32_t offset) {
    const bool used = unit.usedBy && !(movesAreFine && unit.onlyMoved);
    if (!used)
      unit.usedBy = 0;
    if (used || (unit.accumulated && unit.shape != shape))
      blame(unit, offset);
    unit = {.accumulated = pc + 1, .shape = shape};
  });
  if (a)
    forEachUnit(*a, pool, [&](Unit &unit, uint32_t offset) {
      if (unit.usedBy || unit.accumulated)
        blame(unit, offset);
    });
  return found;
}

} // namespace fp4::sim
