//===- LaneOrder.cpp - Order of turns of diverged lanes -------------------===//
//
// Lanes of a warp that go different ways should meet where the ways join, as the BSSY and BSYNC of
// ptxas let them. Lanes meet if everything that leads to a place comes before it in the order: then
// lanes run until they reach the join, or an end, before those that are at the join go on. The
// order of the text does not do this, because compilers put rare ways behind the end.
//
// The order is the weak topological order of Bourdoncle ("Efficient chaotic iteration strategies
// with widenings", 1993): without the edges that lead back to the head of a loop it is topological,
// and the blocks of a loop follow each other, so that lanes which leave a loop wait behind it for
// the others. The body of a function comes before those of its callers: lanes that wait behind a
// call have their turn after those in it.
//
//===----------------------------------------------------------------------===//
#include "Sim/Decode/LaneOrder.h"
#include <algorithm>
#include <functional>

namespace fp4::sim {
namespace {

/// The basic blocks of one body: pcs from `begin` to `end`.
class Blocks {
public:
  Blocks(const Kernel &kernel, uint32_t begin, uint32_t end)
      : kernel(kernel), end(end), starts{begin} {
    for (uint32_t pc = begin; pc < end; ++pc)
      if (leaves(pc)) {
        const std::vector<uint32_t> to = targets(pc);
        starts.insert(starts.end(), to.begin(), to.end());
        starts.push_back(pc + 1);
      }
    std::ranges::sort(starts);
    starts.erase(std::ranges::unique(starts).begin(), starts.end());
    starts.erase(std::ranges::lower_bound(starts, end), starts.end());
    for (uint32_t block = 0; block < size(); ++block)
      successors.push_back(successorsOf(block));
  }

  uint32_t size() const { return uint32_t(starts.size()); }
  uint32_t first(uint32_t block) const { return starts[block]; }
  uint32_t behind(uint32_t block) const { return block + 1 < size() ? starts[block + 1] : end; }
  /// The last in the text first, so that it is finished first and ordered last.
  const std::vector<uint32_t> &after(uint32_t block) const { return successors[block]; }

private:
  bool leaves(uint32_t pc) const {
    const Insn &insn = kernel.code[pc];
    return insn.flow == Flow::Branch || insn.flow == Flow::Exit ||
           insn.get<BranchTableModifiers>() || insn.get<ReturnModifiers>();
  }
  std::vector<uint32_t> targets(uint32_t pc) const {
    const Insn &insn = kernel.code[pc];
    if (insn.flow == Flow::Branch)
      return {insn.target};
    const auto *table = insn.get<BranchTableModifiers>();
    if (!table)
      return {};
    const auto from = kernel.branchTargets.begin() + ptrdiff_t(table->first);
    return {from, from + insn.op[1].imm};
  }
  std::vector<uint32_t> successorsOf(uint32_t block) const {
    const uint32_t last = behind(block) - 1;
    std::vector<uint32_t> to = leaves(last) ? targets(last) : std::vector<uint32_t>();
    if (!leaves(last) || kernel.code[last].guard != kNoGuard)
      to.push_back(last + 1);
    std::erase_if(to, [&](uint32_t target) { return target >= end; });
    for (uint32_t &target : to)
      target = uint32_t(std::ranges::lower_bound(starts, target) - starts.begin());
    std::ranges::sort(to, std::greater<>());
    return to;
  }

  const Kernel &kernel;
  uint32_t end;
  std::vector<uint32_t> starts;
  std::vector<std::vector<uint32_t>> successors;
};

/// Bourdoncle's algorithm, without recursion: a kernel may have ten thousand blocks in a row.
class WeakOrder {
public:
  explicit WeakOrder(const Blocks &blocks) : blocks(blocks), numbers(blocks.size(), kUnseen) {}

  /// All blocks; those that nothing leads to at the end.
  std::vector<uint32_t> run() {
    enter(0);
    while (!visits.empty())
      advance();
    std::ranges::reverse(finished);
    for (uint32_t block = 0; block < blocks.size(); ++block)
      if (numbers[block] == kUnseen)
        finished.push_back(block);
    return std::move(finished);
  }

private:
  static constexpr uint32_t kUnseen = 0, kFinished = ~0u;
  struct Visit {
    uint32_t block;
    uint32_t head; ///< the least number that is reached
    size_t edge = 0;
    bool loop = false;   ///< true when the block is in a loop
    bool inside = false; ///< true when the block heads its loop, whose rest is ordered
  };

  void enter(uint32_t block) {
    numbers[block] = ++count;
    path.push_back(block);
    visits.push_back({block, count});
  }
  void reached(uint32_t number) {
    if (visits.empty() || visits.back().inside || number > visits.back().head)
      return;
    visits.back().head = number;
    visits.back().loop = true;
  }
  /// Looks at one more edge of the newest visit, or ends it.
  void advance() {
    Visit &visit = visits.back();
    if (visit.edge < blocks.after(visit.block).size()) {
      const uint32_t next = blocks.after(visit.block)[visit.edge++];
      return numbers[next] == kUnseen ? enter(next) : reached(numbers[next]);
    }
    const uint32_t block = visit.block, head = visit.head;
    const bool ordered = visit.inside || head == numbers[block];
    if (ordered && !visit.inside && close(visit))
      return;
    if (ordered)
      finished.push_back(block);
    visits.pop_back();
    if (!ordered)
      reached(head);
  }
  /// All that the block leads to was seen. True where it is the head of a loop: then the others of
  /// the loop are visited again, without it.
  bool close(Visit &visit) {
    numbers[visit.block] = kFinished;
    for (; path.back() != visit.block; path.pop_back())
      numbers[path.back()] = kUnseen;
    path.pop_back();
    visit.edge = 0;
    return visit.inside = visit.loop;
  }

  const Blocks &blocks;
  std::vector<uint32_t> numbers, path, finished;
  std::vector<Visit> visits;
  uint32_t count = 0;
};

/// The bodies of a kernel, each behind those that it calls: 0 is the kernel's own.
class Bodies {
public:
  explicit Bodies(const Kernel &kernel) : kernel(kernel), seen(kernel.functions.size() + 1) {
    visit(0);
  }
  const std::vector<size_t> &order() const { return ordered; }
  uint32_t begin(size_t body) const { return body ? kernel.functions[body - 1].entry : 0; }
  uint32_t end(size_t body) const {
    return body < kernel.functions.size() ? begin(body + 1) : uint32_t(kernel.code.size());
  }

private:
  void visit(size_t body) {
    seen[body] = true;
    for (uint32_t pc = begin(body); pc < end(body); ++pc) {
      const auto *callee = kernel.code[pc].get<CallModifiers>();
      const CallSite *site = callee ? &kernel.callSites[callee->site] : nullptr;
      if (site && site->function >= 0)
        call(1 + size_t(site->function));
      else if (site && !site->builtin)
        for (size_t other = 1; other < seen.size(); ++other)
          call(other);
    }
    ordered.push_back(body);
  }
  void call(size_t body) {
    if (!seen[body])
      visit(body);
  }

  const Kernel &kernel;
  std::vector<bool> seen;
  std::vector<size_t> ordered;
};

} // namespace

void orderLanes(Kernel &kernel) {
  const Bodies bodies(kernel);
  kernel.turns.resize(kernel.code.size());
  uint32_t turn = 0;
  for (size_t body : bodies.order()) {
    const Blocks blocks(kernel, bodies.begin(body), bodies.end(body));
    for (uint32_t block : WeakOrder(blocks).run())
      for (uint32_t pc = blocks.first(block); pc < blocks.behind(block); ++pc)
        kernel.turns[pc] = {turn++, blocks.behind(block)};
  }
}

} // namespace fp4::sim
