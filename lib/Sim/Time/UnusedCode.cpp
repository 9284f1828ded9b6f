//===- UnusedCode.cpp - What ptxas leaves out because nobody uses it ------===//
//
// ptxas removes what has no effect: arithmetic, loads and products. A kernel whose tile has more
// rows than the problem multiplies rows that it never stores, and ptxas leaves those products out,
// with what prepares their operands. A result that no other instruction reads at all is left alone,
// unless it is a product's or of an exchange between lanes, which LLVM never removes: compilers
// write no other such thing, and people who time instructions do.
//
//===----------------------------------------------------------------------===//
#include "Sim/Decode/OpcodeTable.h"
#include "Sim/Time/TimedCode.h"
#include <algorithm>

namespace fp4::sim {
namespace {

/// Whether what an instruction does is in the registers that it writes, and nowhere else.
bool onlyComputes(const TimedInsn &insn, const Insn &code) {
  switch (insn.unit) {
  case Unit::Free:
  case Unit::Shuffle:
  case Unit::Wgmma:
    return true;
  case Unit::Memory:
    return opcodeTable()[code.row].base == "ld" && !insn.bypassesL1 && !insn.releases;
  default:
    return insn.unit >= Unit::Alu && insn.unit <= Unit::Double;
  }
}

/// A set of registers.
class Registers {
public:
  explicit Registers(size_t size) : words(size / 64 + 1) {}
  bool has(uint16_t r) const { return words[r / 64] >> r % 64 & 1; }
  void add(uint16_t r) { words[r / 64] |= uint64_t(1) << r % 64; }
  void remove(uint16_t r) { words[r / 64] &= ~(uint64_t(1) << r % 64); }
  void join(const Registers &other) {
    for (size_t i = 0; i < words.size(); ++i)
      words[i] |= other.words[i];
  }
  bool operator==(const Registers &) const = default;

private:
  std::vector<uint64_t> words;
};

/// Backward data flow over basic blocks, to a fixed point: a register is wanted where an
/// instruction that has an effect, or whose result is wanted, reads it later.
class Wants {
public:
  using Accumulators = std::unordered_map<uint32_t, std::vector<uint16_t>>;
  Wants(const TimedCode &code, const Kernel &kernel, const Accumulators &accumulators)
      : code(code), kernel(kernel), accumulators(accumulators), readByOthers(code.registerCount()),
        effective(kernel.code.size()) {
    for (uint32_t pc = 0; pc < effective.size(); ++pc)
      for (uint16_t r : code.reads(code[pc]))
        readByOthers[r] |= std::ranges::count(code.writes(code[pc]), r) == 0;
  }

  std::span<const uint16_t> sumsOf(uint32_t pc) const {
    const auto found = accumulators.find(pc);
    return found == accumulators.end() ? std::span<const uint16_t>() : std::span(found->second);
  }
  /// Whether each instruction has an effect.
  std::vector<uint8_t> run(const std::vector<uint32_t> &starts) {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = starts.size() - 1; b-- > 0;) {
        Registers wanted = behind(starts[b + 1]);
        for (uint32_t pc = starts[b + 1]; pc-- > starts[b];)
          before(pc, wanted);
        auto [known, fresh] = in.try_emplace(starts[b], code.registerCount());
        changed |= !(known->second == wanted);
        known->second = std::move(wanted);
      }
    }
    return std::move(effective);
  }

private:
  /// What is wanted at the end of a block.
  Registers behind(uint32_t end) const {
    Registers wanted(code.registerCount());
    const auto join = [&](uint32_t pc) {
      if (auto found = in.find(pc); found != in.end())
        wanted.join(found->second);
    };
    const Unit last = code[end - 1].unit;
    if (kernel.code[end - 1].guard != kNoGuard || (last != Unit::Exit && last != Unit::Branch))
      join(end);
    if (last == Unit::Branch)
      join(kernel.code[end - 1].target);
    return wanted;
  }
  void before(uint32_t pc, Registers &wanted) {
    const TimedInsn &insn = code[pc];
    const auto isWanted = [&](uint16_t r) { return wanted.has(r); };
    const bool alone = insn.unit != Unit::Shuffle;
    const auto hasUse = [&](uint16_t r) { return wanted.has(r) || (alone && !readByOthers[r]); };
    if (onlyComputes(insn, kernel.code[pc]) && std::ranges::none_of(sumsOf(pc), isWanted) &&
        std::ranges::none_of(code.writes(insn), hasUse))
      return;
    effective[pc] = true;
    if (kernel.code[pc].guard == kNoGuard)
      for (uint16_t r : code.writes(insn))
        wanted.remove(r);
    for (uint16_t r : code.reads(insn))
      wanted.add(r);
    for (uint16_t r : sumsOf(pc))
      wanted.add(r);
  }

  const TimedCode &code;
  const Kernel &kernel;
  const Accumulators &accumulators;
  std::vector<uint8_t> readByOthers, effective;
  std::unordered_map<uint32_t, Registers> in; ///< what is wanted where a block begins
};

} // namespace

void TimedCode::findUnused(const Kernel &kernel) {
  if (accumulators.empty() || !kernel.callSites.empty() || !kernel.branchTargets.empty())
    return; // products are what matters; and blockStarts knows no other ways than those of bra
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
