//===- Spinning.cpp - Warps that run and get nowhere ----------------------===//
#include "Sim/Run/Spinning.h"
#include "Sim/Async/Arrivals.h"
#include "Sim/Async/Deadlock.h"
#include "Sim/Decode/OpcodeTable.h"
#include "Sim/Run/Polling.h"
#include "Sim/State/ConcurrentBytes.h"
#include "Sim/State/ExecContext.h"
#include "fp4/Sim/Events.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <optional>

using namespace fp4;
using namespace fp4::sim;

//===----------------------------------------------------------------------===//
// The probe
//===----------------------------------------------------------------------===//

/// Remembers what a place holds. Too many places are taken for a change: no loop waits so.
void LoopProbe::note(Space space, uint64_t address, uint32_t bytes) {
  constexpr size_t kMostPlaces = 1 << 16;
  const std::byte *place = storageOf(cluster, space, address, bytes);
  if (!place || bytes > sizeof(Value) || written.size() > kMostPlaces) {
    different = true;
    return;
  }
  Written now{space, bytes, {}};
  loadBytes(now.value.data(), place, bytes);
  const auto [entry, first] = written.emplace(address, now);
  different |= !first && (entry->second.bytes != bytes || entry->second.value != now.value);
}

void LoopProbe::onMemory(const MemoryEvent &event) {
  if (event.space == Space::Global && steady) // changed() follows what is written
    steady = polled.note(cluster, event) != PolledPlaces::Access::Unclear;
  for (uint32_t rest = different ? 0 : event.laneMask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const uint64_t address = event.addressOf(static_cast<uint32_t>(lane));
    if (event.kind != AccessKind::Write && lane == std::countr_zero(event.laneMask))
      firstReads.try_emplace({event.actor.ctaRank, event.actor.warp, event.at.line},
                             Read{event.space, address, event.bytes});
    if (event.kind != AccessKind::Read)
      note(event.space, address, event.bytes);
    if (event.space == Space::Global && !hostMemory)
      if (const Allocation *found = cluster.launch->memory->find(address, 1))
        hostMemory = found->hostWrites();
  }
  Probe::onMemory(event);
}

bool LoopProbe::changed() {
  for (const auto &[address, entry] : written) {
    const std::byte *place = storageOf(cluster, entry.space, address, entry.bytes);
    Value now;
    if (place)
      loadBytes(now.data(), place, entry.bytes);
    different |= !place || std::memcmp(now.data(), entry.value.data(), entry.bytes) != 0;
  }
  return different;
}

void LoopProbe::onBarrier(const BarrierEvent &event) {
  barriers |= meetsOthers(event);
  Probe::onBarrier(event);
}

void LoopProbe::onLife(const LifeEvent &event) {
  different = true;
  Probe::onLife(event);
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

std::vector<WarpState::Group> WarpState::groupsOf(const Warp &warp) {
  std::vector<Group> groups;
  for (const LaneGroup &group : warp.groups)
    groups.push_back({group.pc, group.mask, group.token != 0, group.wait && !group.wait->ready()});
  std::ranges::sort(groups, {}, &Group::mask); // disjoint
  return groups;
}

WarpState::WarpState(const Warp &warp, size_t registerBytes)
    : groups(groupsOf(warp)), registers(warp.registers, warp.registers + registerBytes),
      local(warp.local), carry(warp.carry) {}

bool WarpState::sameData(const Warp &warp) const {
  return carry == warp.carry &&
         std::memcmp(registers.data(), warp.registers, registers.size()) == 0 &&
         local == warp.local;
}

std::vector<uint32_t> Recurrence::arrivals(const Cluster &cluster) {
  std::vector<uint32_t> counts{cluster.barrier.arrived};
  for (const auto &cta : cluster.ctas)
    for (const CtaBarrier &barrier : cta->barriers)
      counts.insert(counts.end(), {barrier.arrived, barrier.expected, barrier.trues});
  return counts;
}

Recurrence::Recurrence(const Cluster &cluster) : cluster(cluster), arrived(arrivals(cluster)) {
  for (const auto &cta : cluster.ctas)
    for (const Warp &warp : cta->warps)
      if (!warp.done())
        anchors.push_back(
            {&warp, WarpState(warp, cluster.launch->kernel->registerBytes), warp.executed});
}

/// Returns true when the warp is in its state again. Registers of a warp that waits are not
/// compared anew in each of thousands of rounds.
bool Recurrence::Anchor::isBack() {
  if (!state.sameGroups(*warp))
    return false;
  if (executed != warp->executed) {
    executed = warp->executed;
    same = state.sameData(*warp);
  }
  return same;
}

bool Recurrence::complete(bool together) {
  constexpr unsigned kTwice = 2;
  bool all = true, here = true;
  for (Anchor &anchor : anchors) {
    const bool same = anchor.isBack();
    anchor.returns += same;
    all &= anchor.returns >= kTwice;
    here &= same;
  }
  returns += here && arrived == arrivals(cluster);
  return together ? returns >= kTwice : all;
}

//===----------------------------------------------------------------------===//
// In words
//===----------------------------------------------------------------------===//

namespace {

/// A loop that several warps of a CTA execute alike.
struct Loop {
  const Cta *cta;
  std::vector<uint32_t> warps;
  const std::vector<uint32_t> *pcs;
};

std::vector<Loop> loopsOf(const LoopTrace &trace) {
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, Loop> loops;
  for (const auto &[warp, pcs] : trace.pcs)
    if (!pcs.empty()) {
      Loop &loop =
          loops.try_emplace({warp->cta->rank, pcs}, Loop{warp->cta, {}, &pcs}).first->second;
      loop.warps.push_back(warp->index);
    }
  std::vector<Loop> list;
  for (auto &[key, loop] : loops) {
    std::ranges::sort(loop.warps);
    list.push_back(std::move(loop));
  }
  std::ranges::sort(list, {}, [](const Loop &l) { return std::pair(l.cta->rank, l.warps); });
  return list;
}

/// "global 0x1000000000 ('flag' + 0), which is 0x0".
std::string describePlace(const Cluster &cluster, const LoopProbe::Read &read) {
  std::string text = fmt::format("shared {:#x}", read.address);
  if (read.space == Space::Global) {
    const Allocation *found = cluster.launch->memory->find(read.address, 1);
    text = fmt::format("global {:#x} ('{}' + {})", read.address, found ? found->name : "?",
                       found ? read.address - found->address : 0);
  }
  uint64_t value = 0;
  const std::byte *place = storageOf(cluster, read.space, read.address, read.bytes);
  if (!place || read.bytes > sizeof(value))
    return text;
  loadBytes(&value, place, read.bytes);
  return text + fmt::format(", which is {:#x}", value);
}

std::string sourceAt(const Launch &launch, uint32_t line) {
  return std::string(launch.program->sourceLine(line));
}

/// Describes the read of each line of the loop, for the first of its warps.
std::string describeReads(const Cluster &cluster, const LoopTrace &trace, const Loop &loop) {
  std::string text;
  for (const auto &[reader, read] : trace.reads)
    if (reader[0] == loop.cta->rank && reader[1] == loop.warps.front())
      text += fmt::format("\n    line {} reads {} bytes of {}: {}", reader[2], read.bytes,
                          describePlace(cluster, read), sourceAt(*cluster.launch, reader[2]));
  return text.empty() ? "\n    it reads no memory: its registers alone decide" : text;
}

/// The value of an operand in a lane; none if it is not a register or constant of 8 bytes at most.
std::optional<uint64_t> valueOf(const Warp &warp, const Operand &operand, int lane) {
  uint64_t value = 0;
  if (operand.kind != OperandKind::Reg || operand.width > sizeof(value))
    return std::nullopt;
  const std::byte *bank = operand.bank == kConstBank ? warp.constants : warp.registers;
  std::memcpy(&value, bank + operand.offset + uint32_t(lane) * operand.width, operand.width);
  return value;
}

/// "; line 20 compares 0x0 with 0x5: setp...", of the comparison in the loop that decides a guard.
std::string describeComparison(const Launch &launch, const Loop &loop, uint32_t guard) {
  const Warp &warp = loop.cta->warps[loop.warps.front()];
  const auto running =
      std::ranges::find_if(warp.groups, [](const LaneGroup &group) { return !group.wait; });
  if (running == warp.groups.end())
    return "";
  const int lane = std::countr_zero(running->mask);
  for (uint32_t pc : *loop.pcs) {
    const Insn &insn = launch.kernel->code[pc];
    if (opcodeTable()[insn.row].base != "setp" || insn.op[0].kind != OperandKind::Pred ||
        insn.op[0].offset != guard)
      continue;
    const auto left = valueOf(warp, insn.op[2], lane), right = valueOf(warp, insn.op[3], lane);
    if (left && right)
      return fmt::format("\n    line {} has compared {:#x} with {:#x}: {}", insn.line, *left,
                         *right, sourceAt(launch, insn.line));
  }
  return "";
}

/// The guarded branches and exits that lead out.
std::string describeLeaves(const Launch &launch, const Loop &loop) {
  const auto inside = [&](uint32_t pc) { return std::ranges::binary_search(*loop.pcs, pc); };
  std::string text;
  for (uint32_t pc : *loop.pcs) {
    const Insn &insn = launch.kernel->code[pc];
    const bool branch = insn.flow == Flow::Branch;
    if (insn.guard == kNoGuard || (!branch && insn.flow != Flow::Exit))
      continue;
    if (!branch || !inside(insn.target) || !inside(pc + 1))
      text += describeComparison(launch, loop, insn.guard) +
              fmt::format("\n    line {} decides whether it ends: {}", insn.line,
                          sourceAt(launch, insn.line));
  }
  return text.empty() ? "\n    no branch of it leads out" : text;
}

std::string describeLoop(const Cluster &cluster, const LoopTrace &trace, const Loop &loop) {
  const Launch &launch = *cluster.launch;
  const auto &code = launch.kernel->code;
  uint32_t first = ~0u, last = 0;
  for (uint32_t pc : *loop.pcs) {
    first = std::min(first, code[pc].line);
    last = std::max(last, code[pc].line);
  }
  const std::string others = listNumbers({loop.warps.begin() + 1, loop.warps.end()});
  std::string text =
      "\n  " + describeLocation(launch, *loop.cta, loop.warps.front(), -1, code[loop.pcs->front()]);
  text += first == last ? fmt::format(" repeats line {}", first)
                        : fmt::format(" repeats lines {} to {}", first, last);
  if (!others.empty())
    text += fmt::format(", as warps {} do", others);
  return text + describeReads(cluster, trace, loop) + describeLeaves(launch, loop);
}

} // namespace

std::string fp4::sim::describeLoops(const Cluster &cluster, const LoopTrace &trace) {
  constexpr size_t kMost = 16;
  std::string text;
  const std::vector<Loop> loops = loopsOf(trace);
  for (size_t i = 0; i < std::min(kMost, loops.size()); ++i)
    text += describeLoop(cluster, trace, loops[i]);
  if (loops.size() > kMost)
    text += fmt::format("\n  and {} other loops", loops.size() - kMost);
  return text + describeBlocked(cluster);
}
