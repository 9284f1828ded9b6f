//===- ArrivalsAhead.cpp - Arrivals behind a wait --------------------------===//
#include "ArrivalsAhead.h"
#include "Sim/Decode/AddressSpace.h"
#include "Sim/Decode/Modifiers/Copy.h"
#include "Sim/Decode/Modifiers/Scalar.h"
#include "Sim/Decode/Modifiers/TensorCore.h"
#include "Sim/Decode/Modifiers/Warp.h"
#include "Sim/Decode/OperandRoles.h"
#include "TicketQueue.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace fp4::sim {
namespace {

constexpr unsigned kDeepestSum = 16;

/// A sum of constants, and perhaps of something else, such as the number of a stage times 8.
struct Sum {
  int64_t known = 0;
  bool whole = true;
};

/// Addresses by the instructions that compute them.
class Addresses {
public:
  explicit Addresses(const Kernel &kernel) {
    for (const Insn &insn : kernel.code)
      forEachOperand(kernel, insn, /*written=*/true, [&](size_t, const Operand &to) {
        const auto [place, fresh] = writers.try_emplace(to.offset, &insn);
        if (!fresh)
          place->second = nullptr; // one of several
      });
  }

  Sum of(const Operand &operand, const Warp &warp, unsigned depth = 0) const {
    const int64_t offset = operand.kind == OperandKind::Address ? operand.imm : 0;
    if (operand.bank == kConstBank) {
      int64_t value = 0;
      std::memcpy(&value, warp.constants + operand.offset, std::min<size_t>(operand.width, 8));
      return {value + offset};
    }
    const auto writer = writers.find(operand.offset);
    Sum sum = writer == writers.end() || !writer->second || depth > kDeepestSum
                  ? Sum{0, false}
                  : resultOf(*writer->second, warp, depth);
    sum.known += offset;
    return sum;
  }

private:
  Sum resultOf(const Insn &insn, const Warp &warp, unsigned depth) const {
    const std::string_view name = rowOf(insn).base;
    if (insn.guard != kNoGuard)
      return {0, false};
    if (name == "mov" || name == "cvt" || name == "cvta")
      return insn.op[1].kind == OperandKind::Reg ? of(insn.op[1], warp, depth + 1) : Sum{0, false};
    if (name != "add")
      return {0, false};
    const Sum a = of(insn.op[1], warp, depth + 1), b = of(insn.op[2], warp, depth + 1);
    return {a.known + b.known, a.whole && b.whole};
  }

  std::map<uint32_t, const Insn *> writers; ///< by register; null: several
};

/// The address of an instruction that arrives at an mbarrier; null for any other.
const Operand *arrivalAddress(const Insn &insn) {
  const std::string_view name = rowOf(insn).base;
  if (name == "tcgen05.commit" || name == "cp.async.mbarrier.arrive")
    return insn.op.data();
  return name == "mbarrier.arrive" || name == "mbarrier.arrive_drop" ? &insn.op[1] : nullptr;
}

class Search {
public:
  Search(const Cluster &cluster, const Awaited &at)
      : kernel(*cluster.launch->kernel), addresses(kernel), at(at),
        table(static_cast<TicketQueue &>(*cluster.async).state(at.rank).mbarriers) {}

  /// The pc of the first arrival on the way of a group, or none.
  std::optional<uint32_t> from(const Blocked &blocked) const {
    if (blocked.cta->rank != at.rank)
      return std::nullopt; // addresses of other CTAs are not sums
    std::vector<bool> seen(kernel.code.size());
    std::vector<uint32_t> next = {blocked.group->pc};
    for (size_t i = 0; i < next.size(); ++i) {
      const uint32_t pc = next[i];
      if (pc >= seen.size() || seen[pc])
        continue;
      seen[pc] = true;
      if (arrivesHere(pc, *blocked.warp))
        return pc;
      follow(pc, next);
    }
    return std::nullopt;
  }

private:
  void follow(uint32_t pc, std::vector<uint32_t> &next) const {
    const Insn &insn = kernel.code[pc];
    const bool branch = insn.flow == Flow::Branch;
    const auto *table = insn.get<BranchTableModifiers>();
    const bool leaves = branch || table || insn.flow == Flow::Exit || insn.get<ReturnModifiers>();
    if (!leaves || insn.guard != kNoGuard)
      next.push_back(pc + 1);
    if (branch)
      next.push_back(insn.target);
    for (int64_t i = 0; table && i < insn.op[1].imm; ++i)
      next.push_back(kernel.branchTargets[table->first + size_t(i)]);
  }

  bool arrivesHere(uint32_t pc, const Warp &warp) const {
    const Operand *address = arrivalAddress(kernel.code[pc]);
    if (!address)
      return false;
    const Sum sum = addresses.of(*address, warp);
    const auto offset = uint32_t(sum.known) & kSharedOffsetMask;
    if (sum.whole)
      return offset == at.object;
    return sum.known && variableOf(offset) == variableOf(at.object) && !executed(pc, warp);
  }

  std::string variableOf(uint32_t offset) const {
    const std::string symbol = kernel.sharedSymbol(offset);
    return symbol.substr(0, symbol.find('+'));
  }

  /// Returns true when the warp has arrived there before, at another stage: then it has perhaps
  /// passed this one.
  bool executed(uint32_t pc, const Warp &warp) const {
    const auto its = [&](const ArrivalEvent &event) {
      return event.at.pc == pc && event.actor.warp == warp.index;
    };
    return std::ranges::any_of(table.objects(), [&](const auto &object) {
      return std::ranges::any_of(object.second.arrivals, its) ||
             std::ranges::any_of(object.second.previousArrivals, its);
    });
  }

  const Kernel &kernel;
  Addresses addresses;
  const Awaited &at;
  const MbarrierTable &table;
};

} // namespace

std::vector<ArrivalAhead> arrivalsAhead(const Cluster &cluster, const std::vector<Blocked> &blocked,
                                        const Awaited &at) {
  const Search search(cluster, at);
  std::vector<ArrivalAhead> others, own;
  for (const Blocked &one : blocked)
    if (const std::optional<uint32_t> pc = search.from(one))
      (one.awaited && one.awaited->sameObject(at) ? own : others)
          .push_back({&one, {*pc, cluster.launch->kernel->code[*pc].line}});
  return others.empty() ? own : others;
}

} // namespace fp4::sim
