//===- RegisterFlow.h - Backward data flow over the registers of a kernel -===//
#pragma once

#include "Sim/Decode/OpcodeTable.h"
#include "Sim/Time/TimedCode.h"
#include <bit>

namespace fp4::sim {

/// A set of registers, by their numbers in TimedCode.
class RegisterSet {
public:
  explicit RegisterSet(size_t size) : words(size / 64 + 1) {}
  bool has(uint32_t r) const { return words[r / 64] >> r % 64 & 1; }
  void add(uint32_t r) { words[r / 64] |= uint64_t(1) << r % 64; }
  void remove(uint32_t r) { words[r / 64] &= ~(uint64_t(1) << r % 64); }
  /// Adds those of `other`; calls f(register) for each that is new.
  template <typename F> void join(const RegisterSet &other, F &&f) {
    for (size_t i = 0; i < words.size(); ++i) {
      for (uint64_t fresh = other.words[i] & ~words[i]; fresh; fresh &= fresh - 1)
        f(uint32_t(64 * i) + uint32_t(std::countr_zero(fresh)));
      words[i] |= other.words[i];
    }
  }
  void join(const RegisterSet &other) {
    for (size_t i = 0; i < words.size(); ++i)
      words[i] |= other.words[i];
  }
  bool operator==(const RegisterSet &) const = default;

private:
  std::vector<uint64_t> words;
};

/// Flows backward over the basic blocks that begin at `starts`, whose last is the end of the code,
/// to a fixed point. `before(pc, set)` makes of what holds behind an instruction what holds before
/// it. `none` holds behind the end of a thread.
template <typename Set, typename Before>
void flowBackward(const TimedCode &code, const Kernel &kernel, const std::vector<uint32_t> &starts,
                  const Set &none, Before &&before) {
  std::unordered_map<uint32_t, Set> in; // the sets where blocks begin
  const auto behind = [&](uint32_t end) {
    Set set = none;
    const auto join = [&](uint32_t pc) {
      if (auto found = in.find(pc); found != in.end())
        set.join(found->second);
    };
    const Insn &last = kernel.code[end - 1];
    const bool jumps =
        code[end - 1].unit == Unit::Branch && opcodeTable()[last.row].base.starts_with("br");
    if (last.guard != kNoGuard || (code[end - 1].unit != Unit::Exit && !jumps))
      join(end);
    if (jumps)
      join(last.target);
    return set;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = starts.size() - 1; b-- > 0;) {
      Set set = behind(starts[b + 1]);
      for (uint32_t pc = starts[b + 1]; pc-- > starts[b];)
        before(pc, set);
      auto [known, fresh] = in.try_emplace(starts[b], none);
      changed |= !(known->second == set);
      known->second = std::move(set);
    }
  }
}

} // namespace fp4::sim
