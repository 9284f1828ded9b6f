//===- PollLoops.cpp - Loops that wait for a value in memory --------------===//
#include "Sim/Orders/PollLoops.h"
#include "Sim/Decode/OpcodeTable.h"
#include <algorithm>
#include <cstring>
#include <set>

namespace fp4::sim {
namespace {

/// The longest loop, and the most that settling executes.
constexpr uint32_t kLongest = 32, kMostSettled = 1024;

const OpcodeRow &rowOf(const Insn &insn) { return opcodeTable()[insn.row]; }

bool isSleeping(const Insn &insn) { return insn.flow == Flow::Sleep; }

/// Reads and writes registers alone, and of those the ones that it names.
bool isArithmetic(const Insn &insn) {
  static constexpr std::string_view bases[] = {"setp", "and", "or",  "xor",  "not",  "shl",
                                               "shr",  "mov", "cvt", "cvta", "selp", "mul"};
  const OpcodeRow &row = rowOf(insn);
  const auto isClock = [](const PatternItem &item) { return item.kind == PatternKind::Clock; };
  return std::ranges::find(bases, row.base) != std::end(bases) &&
         std::ranges::none_of(row.pattern, isClock);
}

/// Others notice nothing of it: it may also read parameters, and the carry.
bool isPrivate(const Insn &insn) {
  static constexpr std::string_view bases[] = {"add", "sub", "mad", "min",  "max", "neg",
                                               "abs", "bfe", "bfi", "prmt", "rem", "div"};
  const std::string_view base = rowOf(insn).base;
  return insn.flow == Flow::Branch || isArithmetic(insn) ||
         std::ranges::find(bases, base) != std::end(bases) ||
         (base == "ld" && insn.as<MemoryModifiers>().space == Space::Param);
}

/// Returns the number of operands, from the first, that are destinations.
unsigned destinationsOf(const OpcodeRow &row) {
  static constexpr PatternKind kinds[] = {PatternKind::Dst, PatternKind::DstPred,
                                          PatternKind::DstPredPair, PatternKind::DstRegPred,
                                          PatternKind::VecDst};
  unsigned number = 0;
  for (const PatternItem &item : row.pattern) {
    if (std::ranges::find(kinds, item.kind) == std::end(kinds))
      break;
    number += item.operands();
  }
  return number;
}

bool isRegister(const Operand &operand) {
  return operand && operand.kind != OperandKind::Vector && operand.bank == kRegBank;
}

/// One pass of a loop, in the order of the text.
class Pass {
public:
  /// Returns true when instructions from `head` to the branch at `end` are a loop as above.
  static bool waits(const Kernel &kernel, uint32_t head, uint32_t end) {
    Pass pass;
    for (uint32_t pc = head; pc < end; ++pc)
      if (!pass.add(kernel.code[pc], pc == head, head, end))
        return false;
    pass.read(kernel.code[end]);
    return pass.isWhole();
  }

private:
  bool add(const Insn &insn, bool first, uint32_t head, uint32_t end) {
    read(insn);
    if (insn.flow == Flow::Branch) { // out of the loop: only with what this pass has written
      left = true;
      return insn.guard != kNoGuard && (insn.target < head || insn.target > end);
    }
    if (isSleeping(insn))
      return true;
    return insn.guard == kNoGuard && !left && (first ? isLoad(insn) : isArithmetic(insn)) &&
           write(insn);
  }
  /// A plain load belongs to the step in which it happens.
  static bool isLoad(const Insn &insn) {
    return rowOf(insn).base == "ld" && insn.as<MemoryModifiers>().order != MemOrder::Weak;
  }

  void read(const Insn &insn) {
    const auto note = [&](uint32_t offset) {
      if (!written.contains(offset))
        before.insert(offset);
    };
    if (insn.guard != kNoGuard)
      note(insn.guard);
    for (unsigned i = destinationsOf(rowOf(insn)); i < kMaxOperands; ++i)
      if (isRegister(insn.op[i]))
        note(insn.op[i].offset);
  }
  /// Vectors are refused: what they name is elsewhere.
  bool write(const Insn &insn) {
    const unsigned destinations = destinationsOf(rowOf(insn));
    for (unsigned i = 0; i < kMaxOperands; ++i) {
      if (insn.op[i].kind == OperandKind::Vector)
        return false;
      if (i < destinations && isRegister(insn.op[i]))
        written.insert(insn.op[i].offset);
    }
    return true;
  }
  /// Nothing that an earlier pass wrote is read.
  bool isWhole() const {
    return std::ranges::none_of(before, [&](uint32_t offset) { return written.contains(offset); });
  }

  std::set<uint32_t> written, before; ///< before: read by a pass before it writes them
  bool left = false;
};

/// The lanes of a group that take a branch.
uint32_t takenBy(const Warp &warp, const Insn &insn, uint32_t mask) {
  if (insn.guard == kNoGuard)
    return mask;
  uint32_t guard = 0;
  std::memcpy(&guard, warp.registers + insn.guard, sizeof guard);
  return (insn.guardNegated ? ~guard : guard) & mask;
}

} // namespace

PollLoops::PollLoops(const Kernel &kernel) : kernel(kernel) {
  for (uint32_t end = 0; end < kernel.code.size(); ++end) {
    const Insn &insn = kernel.code[end];
    if (insn.flow == Flow::Branch && insn.target < end && end - insn.target <= kLongest &&
        !ends.contains(insn.target) && Pass::waits(kernel, insn.target, end))
      ends[insn.target] = end;
  }
}

const LaneGroup *PollLoops::next(Scheduler &scheduler, Warp &warp, bool last) const {
  const LaneGroup *first = scheduler.next(warp);
  if (last && first && beginsAt(first->pc))
    for (const LaneGroup &group : warp.groups)
      if (!group.wait && !beginsAt(group.pc))
        return &group;
  return first;
}

Status PollLoops::settle(Scheduler &scheduler, Warp &warp, bool last) const {
  for (uint32_t count = 0; count < kMostSettled && !warp.done(); ++count) {
    const LaneGroup *group = next(scheduler, warp, last);
    if (!group)
      return {};
    if (!isPrivate(kernel.code[group->pc]))
      return {};
    FP4_TRY(scheduler.stepOne(warp, *group));
  }
  return {};
}

/// Executes one pass without its branches, which would divide the group.
Expected<bool> PollLoops::leadsBack(Scheduler &scheduler, Warp &warp, LaneGroup &group) const {
  const uint32_t head = group.pc, end = ends.at(head);
  for (uint32_t pc = head;; ++pc) {
    const Insn &insn = kernel.code[pc];
    group.pc = pc;
    if (insn.flow == Flow::Branch) {
      const uint32_t taken = takenBy(warp, insn, group.mask);
      if (pc == end)
        return taken == group.mask;
      if (taken)
        return false;
    } else if (!isSleeping(insn)) {
      FP4_ASSIGN(auto done, scheduler.stepOne(warp, group));
      if (done.outcome != Outcome::Next)
        return false;
    }
  }
}

Expected<bool> PollLoops::fails(Scheduler &scheduler, Warp &warp, bool last,
                                OrderRecorder &recorder) const {
  const LaneGroup *first = next(scheduler, warp, last);
  if (!first || !beginsAt(first->pc) || (warp.poison && warp.poison->any()))
    return false; // shadows are not put back below
  LaneGroup &group = warp.groups[size_t(first - warp.groups.data())];
  const uint32_t head = group.pc;
  for (const LaneGroup &other : warp.groups)
    if (last && &other != &group && !other.wait)
      return false; // it could go on
  const std::vector<std::byte> registers(warp.registers, warp.registers + kernel.registerBytes);
  const uint64_t executed = warp.executed;
  const uint32_t passedOver = warp.passedOver;
  Observer *observer = scheduler.observe(&recorder);
  recorder.beginInstruction();
  Expected<bool> back = leadsBack(scheduler, warp, group);
  scheduler.observe(observer);
  std::ranges::copy(registers, warp.registers);
  group.pc = head;
  warp.executed = executed;
  warp.passedOver = passedOver;
  return back; // an error is that of the step, which the warp could make
}

} // namespace fp4::sim
