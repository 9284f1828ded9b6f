//===- Arrivals.cpp - Arrivals at barriers, for reports -------------------===//
#include "Arrivals.h"
#include "Sim/Decode/OpcodeTable.h"
#include "Sim/State/Launch.h"
#include "Sim/State/SourcePlace.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace fp4::sim {
namespace {

const Insn *insnAt(const Launch *launch, CodePoint at) {
  return launch && at.pc < launch->kernel->code.size() ? &launch->kernel->code[at.pc] : nullptr;
}

/// Arrivals by one instruction in warps of one CTA, equally often in each.
struct Arrivers {
  uint32_t rank = 0;
  CodePoint at;
  bool operation = false;
  uint64_t times = 0;
  std::vector<uint32_t> warps; ///< sorted
};

std::vector<Arrivers> groupArrivals(const ArrivalEvents &events) {
  std::map<std::tuple<uint32_t, uint32_t, bool, uint32_t>, uint64_t> times;
  std::map<uint32_t, uint32_t> lines;
  for (const ArrivalEvent &event : events) {
    ++times[{event.actor.ctaRank, event.at.pc, event.actor.ticket != 0, event.actor.warp}];
    lines[event.at.pc] = event.at.line;
  }
  std::vector<Arrivers> groups;
  for (const auto &[key, count] : times) {
    const auto [rank, pc, operation, warp] = key;
    const auto same = std::ranges::find_if(
        groups, [&, rank = rank, pc = pc, operation = operation, count = count](const Arrivers &g) {
          return g.rank == rank && g.at.pc == pc && g.operation == operation && g.times == count;
        });
    if (same != groups.end())
      same->warps.push_back(warp);
    else
      groups.push_back({rank, {pc, lines[pc]}, operation, count, {warp}});
  }
  return groups;
}

std::string describeArrivers(const Arrivers &group, const Launch *launch) {
  std::string text;
  if (group.operation) {
    const Insn *insn = insnAt(launch, group.at);
    text = insn ? fmt::format("{} of ", opcodeTable()[insn->row].base) : "an operation of ";
  }
  const bool several = group.warps.size() > 1;
  text += fmt::format("warp{} {} of CTA rank {} ({}", several ? "s" : "", listNumbers(group.warps),
                      group.rank, describePoint(launch, group.at));
  if (group.times > 1)
    text += fmt::format("; {}x{}", several ? "each " : "", group.times);
  return text + ")";
}

} // namespace

std::string listNumbers(const std::vector<uint32_t> &sorted) {
  std::string text;
  for (size_t i = 0; i < sorted.size();) {
    size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[end - 1] + 1)
      ++end;
    const char *between = text.empty() ? "" : ", ";
    if (end - i > 2)
      text += fmt::format("{}{}-{}", between, sorted[i], sorted[end - 1]);
    else
      text += fmt::format("{}{}", between, sorted[i]);
    i = end - i > 2 ? end : i + 1;
  }
  return text;
}

std::string describePoint(const Launch *launch, CodePoint at) {
  std::string text = fmt::format("line {}", at.line);
  const Insn *insn = insnAt(launch, at);
  const std::string place = insn ? sourcePlace(*launch->program, *insn) : "";
  return place.empty() ? text : text + ", " + place;
}

std::string listArrivals(const ArrivalEvents &events, const Launch *launch) {
  constexpr size_t most = 8;
  if (events.empty())
    return "nobody";
  const std::vector<Arrivers> groups = groupArrivals(events);
  std::string text;
  for (size_t i = 0; i < std::min(most, groups.size()); ++i)
    text += (i ? ", " : "") + describeArrivers(groups[i], launch);
  if (groups.size() > most)
    text += fmt::format(" and {} others", groups.size() - most);
  return events.size() < kMostArrivals
             ? text
             : text + fmt::format(" and more than these {}", kMostArrivals);
}

ArrivalEvents missingArrivals(const ArrivalEvents &before, const ArrivalEvents &now) {
  const auto key = [](const ArrivalEvent &event) {
    return std::tuple(event.actor.ctaRank, event.actor.warp, event.actor.ticket != 0);
  };
  std::set<decltype(key(before.front()))> there;
  for (const ArrivalEvent &event : now)
    there.insert(key(event));
  ArrivalEvents missing;
  for (const ArrivalEvent &event : before)
    if (there.insert(key(event)).second)
      missing.push_back(event);
  return missing;
}

void BarrierArrivals::add(const ArrivalEvent &event, uint64_t generation) {
  if (generation != phase) {
    earlier = std::exchange(latest, {});
    phase = generation;
  }
  if (latest.size() < kMostArrivals)
    latest.push_back(event);
}

} // namespace fp4::sim
