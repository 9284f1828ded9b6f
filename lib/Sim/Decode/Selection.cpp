//===- Selection.cpp - Guards that choose between values ------------------===//
//
// Kernel::turns is a topological order of the code without the edges that lead back. So the ways
// behind a branch are followed together, the lowest place first. The place at which one is left is
// the one where all of them meet.
//
//===----------------------------------------------------------------------===//
#include "Sim/Decode/Selection.h"
#include "Sim/Decode/OperandRoles.h"
#include <map>

using namespace fp4::sim;

namespace {

/// Returns whether all effects of an instruction are registers of the lanes that execute it.
bool onlyComputes(const Insn &insn) {
  switch (insn.poison) {
  case PoisonRule::Parts:
  case PoisonRule::Pack:
  case PoisonRule::Fill:
  case PoisonRule::Carry:
  case PoisonRule::Logic:
  case PoisonRule::Select:
  case PoisonRule::Compare:
    return true;
  case PoisonRule::Move:
    return rowOf(insn).base != "movmatrix"; // takes registers of other lanes
  default:
    return false;
  }
}

class Ways {
public:
  Ways(const Kernel &kernel, uint32_t branch) : kernel(kernel) { leave(branch); }

  /// Follows the ways until they meet. Returns false where one loops, or does more than compute.
  bool meet(Selection &selection) {
    constexpr unsigned kMost = 512; // instructions of a region
    for (unsigned n = 0; n < kMost && forward && places.size() > 1; ++n) {
      const uint32_t pc = places.begin()->second;
      places.erase(places.begin());
      const Insn &insn = kernel.code[pc];
      if (insn.flow != Flow::Branch && !onlyComputes(insn))
        return false;
      forEachOperand(kernel, insn, true,
                     [&](size_t, const Operand &o) { selection.results.push_back(o); });
      selection.carry |= carryOf(insn).sets;
      leave(pc);
    }
    selection.join = places.empty() ? 0 : places.begin()->second;
    return forward && places.size() == 1;
  }

private:
  void leave(uint32_t pc) {
    const Insn &insn = kernel.code[pc];
    const bool branch = insn.flow == Flow::Branch;
    if (branch)
      arrive(pc, insn.target);
    if (!branch || insn.guard != kNoGuard)
      arrive(pc, pc + 1);
  }
  void arrive(uint32_t from, uint32_t to) {
    forward &= kernel.turns[to].order > kernel.turns[from].order;
    places.emplace(kernel.turns[to].order, to);
  }

  const Kernel &kernel;
  std::map<uint32_t, uint32_t> places; ///< pc by LaneTurn::order
  bool forward = true;
};

} // namespace

std::optional<Selection> fp4::sim::findSelection(const Kernel &kernel, uint32_t pc) {
  const Insn &insn = kernel.code[pc];
  Selection selection;
  if (insn.flow == Flow::Branch)
    return Ways(kernel, pc).meet(selection) ? std::optional(std::move(selection)) : std::nullopt;
  if (!onlyComputes(insn))
    return std::nullopt;
  forEachOperand(kernel, insn, true,
                 [&](size_t, const Operand &o) { selection.results.push_back(o); });
  selection.carry = carryOf(insn).sets;
  selection.join = pc + 1;
  return selection;
}
