//===- UnusedCode.cpp - Code that ptxas leaves out since nothing uses it --===//
//
// ptxas removes what has no effect: arithmetic, loads and MMAs. A kernel whose tile has more rows
// than the problem multiplies rows that it never stores, and ptxas leaves those MMAs out, with what
// prepares their operands. A result that no other instruction reads at all is left alone, unless it
// is an MMA's or of an exchange between lanes, which LLVM never removes: compilers write no other
// such thing, and people who time instructions do.
//
//===----------------------------------------------------------------------===//
#include "Sim/Decode/OpcodeTable.h"
#include "Sim/Time/RegisterFlow.h"
#include <algorithm>

namespace fp4::sim {
namespace {

/// Returns true when an instruction has no effect but on the registers that it writes.
bool onlyComputes(const TimedInsn &insn, const Insn &code) {
  switch (insn.unit) {
  case Unit::Free:
  case Unit::Shuffle:
  case Unit::Wgmma:
    return true;
  case Unit::Memory:
    return opcodeTable()[code.row].base == "ld" && !insn.bypassesL1 && !insn.releases;
  default:
    return isArithmetic(insn.unit);
  }
}

/// A register is wanted where an instruction that has an effect, or whose result is wanted, reads
/// it later.
class Wants {
public:
  using Accumulators = std::unordered_map<uint32_t, std::vector<uint32_t>>;
  Wants(const TimedCode &code, const Kernel &kernel, const Accumulators &accumulators)
      : code(code), kernel(kernel), accumulators(accumulators), readByOthers(code.registerCount()),
        effective(kernel.code.size()) {
    for (uint32_t pc = 0; pc < effective.size(); ++pc)
      for (uint32_t r : code.reads(code[pc]))
        readByOthers[r] |= std::ranges::count(code.writes(code[pc]), r) == 0;
  }

  std::span<const uint32_t> sumsOf(uint32_t pc) const {
    const auto found = accumulators.find(pc);
    return found == accumulators.end() ? std::span<const uint32_t>() : std::span(found->second);
  }
  /// Returns for each instruction if it has an effect.
  std::vector<uint8_t> run(const std::vector<uint32_t> &starts) {
    flowBackward(code, kernel, starts, RegisterSet(code.registerCount()),
                 [&](uint32_t pc, RegisterSet &wanted) { before(pc, wanted); });
    return std::move(effective);
  }

private:
  void before(uint32_t pc, RegisterSet &wanted) {
    const TimedInsn &insn = code[pc];
    const auto isWanted = [&](uint32_t r) { return wanted.has(r); };
    const bool alone = insn.unit != Unit::Shuffle;
    const auto hasUse = [&](uint32_t r) { return wanted.has(r) || (alone && !readByOthers[r]); };
    if (onlyComputes(insn, kernel.code[pc]) && std::ranges::none_of(sumsOf(pc), isWanted) &&
        std::ranges::none_of(code.writes(insn), hasUse))
      return;
    effective[pc] = true;
    if (kernel.code[pc].guard == kNoGuard)
      for (uint32_t r : code.writes(insn))
        wanted.remove(r);
    for (uint32_t r : code.reads(insn))
      wanted.add(r);
    for (uint32_t r : sumsOf(pc))
      wanted.add(r);
  }

  const TimedCode &code;
  const Kernel &kernel;
  const Accumulators &accumulators;
  std::vector<uint8_t> readByOthers, effective;
};

} // namespace

void TimedCode::findUnused(const Kernel &kernel) {
  if (accumulators.empty() || hasOtherWays(kernel))
    return; // MMAs are what matters
  Wants wants(*this, kernel, accumulators);
  const std::vector<uint8_t> effective = wants.run(blockStarts(kernel));
  for (uint32_t pc = 0; pc < insns.size(); ++pc)
    if (!effective[pc] && (insns[pc].writes || !wants.sumsOf(pc).empty())) {
      insns[pc].unit = Unit::Free;
      insns[pc].count = 0;
      insns[pc].unused = true;
    }
}

} // namespace fp4::sim
