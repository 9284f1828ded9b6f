//===- View.cpp - The state of a cluster, for a debugger ------------------===//
#include "View.h"
#include "Sim/Async/TicketQueue.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/format.h>

namespace fp4::sim::debug {
namespace {

constexpr uint32_t kMostWarps = 64; ///< most warps of a CTA

TicketQueue &queueOf(Cluster &cluster) { return static_cast<TicketQueue &>(*cluster.async); }

std::string nameAt(const Kernel &kernel, uint32_t offset) {
  const std::string symbol = kernel.sharedSymbol(offset);
  return symbol.empty() ? fmt::format("{:#x}", offset) : symbol;
}

/// The bits of a lane of a register of at most 8 bytes, or the lower half of a larger one.
uint64_t bitsOfLane(const Warp &warp, const RegisterName &reg, int lane) {
  const std::byte *at = warp.registers + reg.offset;
  if (reg.type == Type::Pred) {
    uint32_t mask;
    std::memcpy(&mask, at, sizeof mask);
    return mask >> lane & 1;
  }
  const unsigned width = bytesOf(reg.type);
  uint64_t bits = 0;
  std::memcpy(&bits, at + size_t(lane) * width, std::min<size_t>(width, sizeof bits));
  return bits;
}

std::string registerText(const Warp &warp, const RegisterName &reg, int lane) {
  const uint64_t bits = bitsOfLane(warp, reg, lane);
  if (reg.type == Type::B128) {
    uint64_t upper;
    std::memcpy(&upper, warp.registers + reg.offset + size_t(lane) * 16 + 8, sizeof upper);
    return fmt::format("{:#x}{:016x}", upper, bits);
  }
  const std::string text = valueText(std::string(spelling(reg.type)), bits);
  return text.empty() ? fmt::format("{:#x}", bits) : text;
}

bool sameInAllLanes(const Warp &warp, const RegisterName &reg) {
  const int first = std::countr_zero(warp.live);
  for (uint32_t rest = warp.live; rest; rest &= rest - 1)
    if (registerText(warp, reg, std::countr_zero(rest)) != registerText(warp, reg, first))
      return false;
  return true;
}

} // namespace

uint32_t numberOf(const Warp &warp) { return warp.cta->rank * kMostWarps + warp.index + 1; }

std::string nameOf(const Warp &warp) {
  const auto &index = warp.cta->index;
  return fmt::format("CTA ({},{},{}) warp {}", index[0], index[1], index[2], warp.index);
}

Warp *warpOf(Cluster &cluster, uint32_t number) {
  const uint32_t rank = (number - 1) / kMostWarps, index = (number - 1) % kMostWarps;
  if (!number || rank >= cluster.ctas.size() || index >= cluster.ctas[rank]->warps.size())
    return nullptr;
  return &cluster.ctas[rank]->warps[index];
}

Json placeOf(const Launch &launch, uint32_t pc) {
  const Insn &insn = launch.kernel->code[pc];
  Json place = {{"line", insn.line},
                {"column", insn.column},
                {"instruction", launch.program->shownLine(insn.line)}};
  if (insn.debugFile && insn.debugFile < launch.program->files.size()) {
    place["file"] = launch.program->files[insn.debugFile];
    place["source_line"] = insn.debugLine;
  }
  return place;
}

Json sourceOf(const Launch &launch, uint32_t pc) {
  return {{"name", launch.program->name},
          {"text", launch.program->text},
          {"line", launch.kernel->code[pc].line}};
}

Json groupsOf(const Launch &launch, const Warp &warp) {
  Json groups = Json::array();
  for (const LaneGroup &group : warp.groups) {
    // The pc of a group that will not retry already points to the next instruction.
    const bool behind = group.wait && !group.retry && group.pc > 0;
    Json one = placeOf(launch, behind ? group.pc - 1 : group.pc);
    one["lanes"] = fmt::format("{:#010x}", group.mask);
    if (group.wait)
      one["waits"] = group.wait->describe();
    groups.push_back(std::move(one));
  }
  return groups;
}

Json warpsOf(const Cluster &cluster) {
  Json warps = Json::array();
  for (const auto &cta : cluster.ctas)
    for (const Warp &warp : cta->warps)
      warps.push_back({{"warp", numberOf(warp)},
                       {"name", nameOf(warp)},
                       {"groups", groupsOf(*cluster.launch, warp)}});
  return warps;
}

Json registersOf(const Launch &launch, const Warp &warp, int lane) {
  Json registers = Json::array();
  for (const RegisterName &reg : launch.kernel->registerNames)
    registers.push_back({{"name", reg.name},
                         {"type", spelling(reg.type)},
                         {"value", registerText(warp, reg, lane)},
                         {"same", sameInAllLanes(warp, reg)}});
  return registers;
}

Expected<Json> registerOf(const Launch &launch, const Warp &warp, const std::string &name,
                          const std::string &type) {
  const auto &names = launch.kernel->registerNames;
  const auto reg = std::ranges::find(names, name, &RegisterName::name);
  if (reg == names.end())
    return makeError(ErrorKind::Usage, fmt::format("the kernel has no register '{}'", name));
  if (!type.empty() && !valueBits(type))
    return makeError(ErrorKind::Usage, fmt::format("there is no type '{}'", type));
  Json lanes = Json::object();
  for (uint32_t rest = warp.live; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    lanes[std::to_string(lane)] = type.empty() ? registerText(warp, *reg, lane)
                                               : valueText(type, bitsOfLane(warp, *reg, lane));
  }
  return Json{
      {"name", name}, {"type", type.empty() ? spelling(reg->type) : type}, {"lanes", lanes}};
}

Json mbarriersOf(Cluster &cluster) {
  Json list = Json::array();
  for (const auto &cta : cluster.ctas)
    for (const auto &[offset, barrier] : queueOf(cluster).state(cta->rank).mbarriers.objects())
      list.push_back({{"rank", cta->rank},
                      {"name", nameAt(*cluster.launch->kernel, offset)},
                      {"address", fmt::format("{:#x}", offset)},
                      {"state", barrier.describe()},
                      {"history", barrier.describeHistory()}});
  return list;
}

Json barriersOf(const Cluster &cluster) {
  Json list = Json::array();
  for (const auto &cta : cluster.ctas)
    for (size_t i = 0; i < cta->barriers.size(); ++i) {
      const CtaBarrier &barrier = cta->barriers[i];
      const uint32_t expected = barrier.expected ? barrier.expected : cta->barrierThreads();
      if (barrier.arrived || barrier.generation)
        list.push_back({{"rank", cta->rank},
                        {"name", fmt::format("barrier {}", i)},
                        {"state", fmt::format("phase {}, {} of {} threads have arrived",
                                              barrier.generation, barrier.arrived, expected)}});
    }
  if (cluster.ctas.size() > 1)
    list.push_back({{"name", "barrier.cluster"},
                    {"state", fmt::format("phase {}, {} of {} threads have arrived",
                                          cluster.barrier.generation, cluster.barrier.arrived,
                                          cluster.liveThreads)}});
  return list;
}

Json ticketsOf(Cluster &cluster) {
  Json list = Json::array();
  for (const auto &[id, ticket] : queueOf(cluster).tickets())
    list.push_back({{"ticket", id},
                    {"what", queueOf(cluster).describeTicket(id)},
                    {"line", ticket.insn->line}});
  return list;
}

} // namespace fp4::sim::debug
