//===- ElectedCode.cpp - Branches that ptxas leaves out -------------------===//
//
// Compilers let one thread hand work to the copy engine and to the tensor core: elect.sync, and a
// branch of the others around it. The machine instructions (UTMALDG, UTCOMMA, UTCCP, UTCBAR) are of
// the warp and take uniform registers. ptxas therefore makes straight code of such a region: no
// ELECT and no branch is left of those in the loops of CUTLASS' CuTe examples. A region in which a
// thread does anything else, such as an arrival at an mbarrier, keeps both.
//
//===----------------------------------------------------------------------===//
#include "Sim/Decode/OpcodeTable.h"
#include "Sim/Time/TimedCode.h"
#include <algorithm>
#include <span>

namespace fp4::sim {

/// Returns true when the code there gives work to engines and has no other effect but results.
static bool handsWork(std::span<const TimedInsn> region) {
  const auto toEngine = [](const TimedInsn &insn) {
    return insn.unit == Unit::Copy || insn.unit == Unit::Async;
  };
  return std::ranges::any_of(region, toEngine) &&
         std::ranges::all_of(region, [&](const TimedInsn &insn) {
           return toEngine(insn) || isPlain(insn.unit);
         });
}

/// The branch around the region of the elect.sync at `elect`; 0 if there is none.
uint32_t TimedCode::branchOfElected(const Kernel &kernel, uint32_t elect) const {
  const auto written = writes(insns[elect]);
  if (written.empty() || words[written.back()] != 0)
    return 0;
  uint32_t predicate = written.back();
  bool others = false; // true when the predicate is true for lanes that were not elected
  for (uint32_t pc = elect + 1; pc < insns.size(); ++pc) {
    const TimedInsn &insn = insns[pc];
    const bool uses = std::ranges::find(reads(insn), predicate) != reads(insn).end();
    if (insn.unit == Unit::Branch) {
      const Insn &branch = kernel.code[pc];
      const bool around = uses && branch.guard != kNoGuard && branch.guardNegated != others &&
                          branch.target > pc && branch.target <= insns.size();
      return around && handsWork(std::span(insns).subspan(pc + 1, branch.target - pc - 1)) ? pc : 0;
    }
    const bool replaced = std::ranges::find(writes(insn), predicate) != writes(insn).end();
    if (!uses && !replaced)
      continue;
    if (replaced || opcodeTable()[kernel.code[pc].row].base != "not" || writes(insn).size() != 1)
      return 0;
    predicate = writes(insn)[0];
    others = !others;
  }
  return 0;
}

void TimedCode::leaveOutElections(const Kernel &kernel) {
  for (uint32_t pc = 0; pc < insns.size(); ++pc) {
    if (opcodeTable()[kernel.code[pc].row].base != "elect")
      continue;
    if (const uint32_t branch = branchOfElected(kernel, pc))
      insns[pc].count = insns[branch].count = 0;
  }
}

} // namespace fp4::sim
