//===- Members.h - Instructions with a member mask ------------------------===//
//
// shfl.sync, vote.sync, match.sync, redux.sync, elect.sync, bar.warp.sync: the lanes of the mask
// execute them together. Lanes of one warp may name different members (tiles of a warp, the groups
// that match.any found); each set executes the instruction by itself.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/State/ExecContext.h"

#include <fmt/format.h>

namespace fp4::sim {

/// The lanes of `active` whose mask is `members`.
inline uint32_t lanesNaming(ExecContext &cx, const Operand &mask, uint32_t members,
                            uint32_t active) {
  if (mask.bank == kConstBank)
    return active;
  const uint32_t *masks = cx.src<uint32_t>(mask);
  uint32_t lanes = 0;
  for (int lane = 0; lane < 32; ++lane)
    lanes |= uint32_t(masks[lane] == members) << lane;
  return lanes & active;
}

/// Executes `body` for each set of members that is together. The lanes of other sets wait.
template <void (*body)(ExecContext &, const Insn &), int maskOperand>
Outcome together(ExecContext &cx, const Insn &insn) {
  const uint32_t active = cx.mask;
  std::vector<MemberSet> waiting;
  for (uint32_t rest = active; rest;) {
    const auto members =
        static_cast<uint32_t>(cx.scalar(insn.op[maskOperand], std::countr_zero(rest)));
    const uint32_t lanes = lanesNaming(cx, insn.op[maskOperand], members, rest);
    cx.mask = lanes;
    if (lanes & ~members)
      return cx.fail(fmt::format("lanes {:#010x} execute this, but the member mask is {:#010x}",
                                 lanes, members),
                     "every lane that executes a .sync instruction must be in its mask");
    if (const uint32_t others = members & active & ~lanes)
      return cx.fail(fmt::format("lanes {:#010x} name the members {:#010x}, but lanes {:#010x} of "
                                 "these name others",
                                 lanes, members, others),
                     "all members of a .sync instruction must name the same members");
    if (members & cx.warp().live & ~lanes) {
      waiting.push_back({lanes, members});
    } else {
      body(cx, insn);
      cx.exchanged(lanes);
    }
    if (!(cx.warp().live & ~lanes))
      cx.warp().parted = 0;
    rest &= ~lanes;
  }
  cx.mask = waiting.empty() ? active : 0;
  for (const MemberSet &set : waiting)
    cx.mask |= set.lanes;
  return waiting.empty() ? Outcome::Next : cx.blockUntilTogether(std::move(waiting));
}

} // namespace fp4::sim
