//===- CtaWork.cpp - Equality of the work of CTAs of a launch -----------===//
#include "Sim/Time/CtaWork.h"
#include "Sim/Time/RegisterFlow.h"
#include <algorithm>

namespace fp4::sim {
namespace {

std::string_view baseOf(const Insn &insn) { return opcodeTable()[insn.row].base; }

/// Returns true for a load from memory whose contents are not known here; parameters are those of
/// the launch.
bool loads(const TimedInsn &timed, const Insn &insn) {
  if (timed.unit != Unit::Memory || !timed.writes)
    return false;
  if (const auto *load = insn.get<MemoryModifiers>())
    return load->space != Space::Param && load->space != Space::Const;
  return insn.get<AtomicModifiers>() || insn.get<MatrixModifiers>();
}

/// Registers that may differ between CTAs by more than addresses of their own data: what follows
/// from the index of a CTA or from memory. An mbarrier does not tell CTAs apart.
RegisterSet varyingRegisters(const TimedCode &code, const Kernel &kernel) {
  RegisterSet varying(code.registerCount());
  for (uint32_t r : code.indexRegisters())
    varying.add(r);
  const auto varies = [&](uint32_t r) { return varying.has(r); };
  for (bool again = true; again;) {
    again = false;
    for (uint32_t pc = 0; pc < kernel.code.size(); ++pc) {
      const TimedInsn &insn = code[pc];
      const bool waits = insn.unit == Unit::Mbarrier || insn.unit == Unit::MbarrierTest;
      if (waits || std::ranges::all_of(code.writes(insn), varies) ||
          (!loads(insn, kernel.code[pc]) && std::ranges::none_of(code.reads(insn), varies)))
        continue;
      for (uint32_t r : code.writes(insn))
        varying.add(r);
      again = true;
    }
  }
  return varying;
}

/// The loops of a kernel, each with those inside of it: strongly connected parts of its basic
/// blocks, and of what is left of such a part without the blocks by which it is entered.
class Loops {
public:
  Loops(const TimedCode &code, const Kernel &kernel)
      : code(code), kernel(kernel), starts(code.blockStarts(kernel)),
        varying(varyingRegisters(code, kernel)), next(starts.size() - 1), previous(next.size()),
        inside(next.size()) {
    for (uint32_t b = 0; b < next.size(); ++b)
      connect(b);
  }
  void find(CtaWork &work) {
    Blocks all(next.size());
    for (uint32_t b = 0; b < all.size(); ++b)
      all[b] = b;
    find(all, 0, work);
  }

private:
  using Blocks = std::vector<uint32_t>;

  void connect(uint32_t block) {
    const uint32_t last = starts[block + 1] - 1;
    const Insn &insn = kernel.code[last];
    const bool jumps = code[last].unit == Unit::Branch && baseOf(insn).starts_with("br");
    const auto edge = [&](uint32_t pc) {
      const auto to = uint32_t(std::ranges::lower_bound(starts, pc) - starts.begin());
      if (to >= next.size())
        return;
      next[block].push_back(to);
      previous[to].push_back(block);
    };
    if (jumps)
      edge(insn.target);
    if (insn.guard != kNoGuard || (!jumps && code[last].unit != Unit::Exit))
      edge(last + 1);
  }

  void find(const Blocks &blocks, unsigned depth, CtaWork &work) {
    constexpr unsigned deepest = 16;
    for (const Blocks &part : partsOf(blocks)) {
      const bool self = std::ranges::count(next[part[0]], part[0]);
      if ((part.size() == 1 && !self) || depth > deepest)
        continue;
      const uint32_t line = unevenExit(part);
      work.loop = work.loop ? work.loop : line;
      work.inner = work.inner || !depth ? work.inner : line;
      find(withoutEntries(part), depth + 1, work);
    }
  }

  /// The line of a branch out of the loop that CTAs may take at different times, or 0.
  uint32_t unevenExit(const Blocks &part) {
    mark(part, true);
    uint32_t line = 0;
    for (uint32_t b : part) {
      const uint32_t last = starts[b + 1] - 1;
      const Insn &insn = kernel.code[last];
      const bool leaves = code[last].unit == Unit::Exit ||
                          std::ranges::any_of(next[b], [&](uint32_t to) { return !inside[to]; });
      if (!line && leaves && insn.guard != kNoGuard && varying.has(code.reads(code[last])[0]))
        line = insn.line;
    }
    mark(part, false);
    return line;
  }

  Blocks withoutEntries(const Blocks &part) {
    mark(part, true);
    Blocks rest;
    for (uint32_t b : part)
      if (std::ranges::all_of(previous[b], [&](uint32_t from) { return inside[from] != 0; }))
        rest.push_back(b);
    mark(part, false);
    return rest.size() < part.size() ? rest : Blocks(part.begin() + 1, part.end());
  }

  /// Kosaraju's algorithm.
  std::vector<Blocks> partsOf(const Blocks &blocks) {
    mark(blocks, true);
    Blocks order;
    for (uint32_t b : blocks)
      walk(b, next, order);
    std::vector<Blocks> parts;
    mark(blocks, true);
    for (size_t i = order.size(); i-- > 0;) {
      Blocks part;
      walk(order[i], previous, part);
      if (!part.empty())
        parts.push_back(std::move(part));
    }
    return parts;
  }

  /// Adds the marked blocks that are reached from `first`, the last one first, and unmarks them.
  void walk(uint32_t first, const std::vector<Blocks> &edges, Blocks &order) {
    if (!inside[first])
      return;
    std::vector<std::pair<uint32_t, size_t>> path{{first, 0}};
    inside[first] = false;
    while (!path.empty()) {
      auto &[block, edge] = path.back();
      if (edge == edges[block].size()) {
        order.push_back(block);
        path.pop_back();
        continue;
      }
      const uint32_t to = edges[block][edge++];
      if (std::exchange(inside[to], uint8_t(false)))
        path.push_back({to, 0});
    }
  }

  void mark(const Blocks &blocks, bool value) {
    for (uint32_t b : blocks)
      inside[b] = value;
  }

  const TimedCode &code;
  const Kernel &kernel;
  const std::vector<uint32_t> starts;
  const RegisterSet varying;
  std::vector<Blocks> next, previous;
  std::vector<uint8_t> inside; ///< a mark of each block
};

/// A load that sees what other CTAs store while it runs, or an atomic operation whose result is
/// used. Shared memory and its own CTA tell a CTA nothing of others.
bool mayTalk(const TimedCode &code, const Kernel &kernel, uint32_t pc) {
  const Insn &insn = kernel.code[pc];
  if (!code[pc].talks)
    return false;
  const auto *load = insn.get<MemoryModifiers>();
  if (!load)
    return true;
  return (load->space == Space::Global || load->space == Space::Generic) &&
         load->order != MemOrder::Weak && load->scope != Scope::Cta;
}

} // namespace

void TimedCode::findTalks(const Kernel &kernel) {
  RegisterSet read(count);
  for (const TimedInsn &insn : insns)
    for (uint32_t r : reads(insn))
      read.add(r);
  for (uint32_t pc = 0; pc < insns.size(); ++pc) {
    const std::string_view base = baseOf(kernel.code[pc]);
    const bool asks = base == "ld" || base.starts_with("atom");
    const auto isUsed = [&](uint32_t r) { return read.has(r); };
    insns[pc].talks =
        asks && insns[pc].unit == Unit::Memory && std::ranges::any_of(writes(insns[pc]), isUsed);
  }
}

CtaWork ctaWorkOf(const TimedCode &code, const Kernel &kernel) {
  CtaWork work;
  for (uint32_t pc = 0; pc < kernel.code.size() && !work.talk; ++pc)
    if (mayTalk(code, kernel, pc))
      work.talk = kernel.code[pc].line;
  Loops(code, kernel).find(work);
  return work;
}

} // namespace fp4::sim
