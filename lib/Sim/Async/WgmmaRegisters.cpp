//===- WgmmaRegisters.cpp - What a warp did with registers since wgmma.fence ===//
#include "WgmmaRegisters.h"

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
    f(units[i]);
}

void WgmmaRegisters::use(const Insn &insn, const Operand *pool, uint32_t pc, bool move) {
  for (const Operand &o : insn.op)
    forEachUnit(o, pool, [&](Unit &unit) {
      unit.onlyMoved = move && &o == insn.op.data() && (unit.onlyMoved || !unit.usedBy);
      unit.usedBy = pc + 1;
    });
}

void WgmmaRegisters::fence() { units.clear(); }

std::optional<uint32_t> WgmmaRegisters::multiply(const Operand &d, const Operand *a,
                                                 const Operand *pool, uint32_t shape, uint32_t pc,
                                                 bool movesAreFine) {
  uint32_t found = 0;
  forEachUnit(d, pool, [&](Unit &unit) {
    if (unit.usedBy && !(movesAreFine && unit.onlyMoved))
      found = unit.usedBy;
    else if (unit.accumulated && unit.shape != shape)
      found = unit.accumulated;
    unit = {0, false, pc + 1, shape};
  });
  if (a)
    forEachUnit(*a, pool, [&](Unit &unit) {
      if (unit.usedBy || unit.accumulated)
        found = unit.usedBy ? unit.usedBy : unit.accumulated;
    });
  return found ? std::optional(found - 1) : std::nullopt;
}

} // namespace fp4::sim
