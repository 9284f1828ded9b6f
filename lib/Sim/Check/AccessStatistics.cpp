//===- AccessStatistics.cpp - Efficiency of the accesses of warps ---------===//
#include "fp4/Sim/AccessStatistics.h"
#include "Sim/Decode/ProgramImpl.h"
#include "fp4/Sim/Events.h"
#include "fp4/Sim/Program.h"

#include <algorithm>
#include <array>
#include <bit>
#include <fmt/format.h>
#include <tuple>

namespace fp4::sim {
namespace {

constexpr uint32_t bankCount = 32, bankBytes = 4, sectorBytes = 32;

/// The distinct units of `unit` bytes that the active lanes touch, in order.
std::vector<uint64_t> unitsOf(const MemoryEvent &event, uint32_t unit) {
  std::vector<uint64_t> units;
  for (uint32_t rest = event.laneMask; rest; rest &= rest - 1) {
    const uint64_t address = event.addressOf(uint32_t(std::countr_zero(rest)));
    for (uint64_t at = address / unit; at <= (address + event.bytes - 1) / unit; ++at)
      units.push_back(at);
  }
  std::sort(units.begin(), units.end());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  return units;
}

/// Words of one bank follow each other; words that are the same are one.
uint64_t wavefronts(const std::vector<uint64_t> &words) {
  std::array<uint64_t, bankCount> perBank{};
  for (uint64_t word : words)
    ++perBank[word % bankCount];
  return *std::max_element(perBank.begin(), perBank.end());
}

uint64_t roundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit; }

} // namespace

std::string AccessCount::text() const {
  return fmt::format("{}:{}:{}: {} accesses, {} {} where {} suffice: {}", program, line, column,
                     accesses, cost, shared ? "wavefronts" : "sectors", least, source);
}

void AccessStatistics::onLaunch(const LaunchEvent &event) {
  program = &event.program;
  kernel = event.kernel;
  byPc.clear();
}

void AccessStatistics::onMemory(const MemoryEvent &event) {
  const bool shared = event.space == Space::SharedCta || event.space == Space::SharedCluster;
  if (event.actor.ticket || event.proxy != Proxy::Generic ||
      (!shared && event.space != Space::Global))
    return;
  const size_t index = 2 * size_t(event.at.pc) + shared;
  if (byPc.size() <= index)
    byPc.resize(index + 1);
  if (!byPc[index]) {
    AccessCount &count = counts[{program->name(), kernel, event.at.pc, shared}];
    const Insn &insn = program->impl().find(kernel)->code[event.at.pc];
    count.program = program->name();
    count.kernel = kernel;
    count.line = insn.line;
    count.column = insn.column;
    count.source = program->impl().sourceLine(insn.line);
    count.shared = shared;
    byPc[index] = &count;
  }
  AccessCount &count = *byPc[index];
  ++count.accesses;
  const auto units = unitsOf(event, shared ? bankBytes : sectorBytes);
  count.cost += shared ? wavefronts(units) : units.size();
  // Narrow accesses to one word are one word.
  const uint64_t bytes = uint64_t(unitsOf(event, std::min(event.bytes, bankBytes)).size()) *
                         std::min(event.bytes, bankBytes);
  count.least += shared ? roundUp(units.size(), bankCount) : roundUp(bytes, sectorBytes);
}

std::vector<AccessCount> AccessStatistics::wasteful() const {
  std::vector<AccessCount> list;
  for (const auto &[key, count] : counts)
    if (count.cost > count.least)
      list.push_back(count);
  std::sort(list.begin(), list.end(), [](const AccessCount &a, const AccessCount &b) {
    const auto key = [](const AccessCount &c) {
      return std::tuple(c.least - c.cost, std::string_view(c.program), std::string_view(c.kernel),
                        c.line);
    };
    return key(a) < key(b);
  });
  return list;
}

std::string textOf(const std::vector<AccessCount> &wasteful) {
  constexpr size_t shown = 10;
  if (wasteful.empty())
    return "no bank conflicts, all accesses coalesced";
  std::string text = fmt::format("{} instructions cost more than they must", wasteful.size());
  for (size_t i = 0; i < std::min(shown, wasteful.size()); ++i)
    text += "\n    " + wasteful[i].text();
  return text;
}

} // namespace fp4::sim
