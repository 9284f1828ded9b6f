//===- Recorder.cpp - The accesses of the instruction that executes -------===//
#include "Sim/Time/Recorder.h"
#include "fp4/Sim/Events/MemoryEvent.h"
#include <bit>

namespace fp4::sim {

void Recorder::addRun(uint64_t begin, uint64_t end) {
  constexpr size_t near = 4; // lanes mostly go up
  forLines(begin, end, [&](const LineAccess &access) {
    for (size_t i = lines.size(); i > 0 && i + near > lines.size(); --i)
      if (lines[i - 1].line == access.line) {
        lines[i - 1].sectors |= access.sectors;
        return;
      }
    lines.push_back(access);
  });
}

void Recorder::addGlobal(const MemoryEvent &event) {
  if (event.contiguous) {
    const unsigned first = unsigned(std::countr_zero(event.laneMask)),
                   last = 31u - unsigned(std::countl_zero(event.laneMask));
    return addRun(event.addressOf(first), event.addressOf(last) + event.bytes);
  }
  for (uint32_t rest = event.laneMask; rest; rest &= rest - 1) {
    const uint64_t address = event.addressOf(unsigned(std::countr_zero(rest)));
    addRun(address, address + event.bytes);
    if (event.uniform)
      return;
  }
}

/// Lanes take part in as many phases as their bytes need; in each, words of one bank follow each
/// other, and words that are the same are one.
void Recorder::addShared(const MemoryEvent &event) {
  constexpr unsigned banks = 32, bankBytes = 4;
  const unsigned lanesTogether = event.bytes <= 4 ? 32 : event.bytes == 8 ? 16 : 8;
  if (event.uniform || (event.contiguous && event.bytes >= bankBytes)) {
    wavefronts += event.uniform ? 1 : 32 / lanesTogether;
    return;
  }
  for (unsigned begin = 0; begin < 32; begin += lanesTogether) {
    std::array<uint32_t, banks> count{};
    std::array<uint64_t, banks> last{};
    uint32_t most = 0;
    for (unsigned lane = begin; lane < begin + lanesTogether; ++lane) {
      if (!(event.laneMask >> lane & 1))
        continue;
      const uint64_t address = event.addressOf(lane);
      for (uint64_t word = address / bankBytes; word <= (address + event.bytes - 1) / bankBytes;
           ++word) {
        const size_t bank = word % banks;
        if (count[bank] && last[bank] == word)
          continue;
        last[bank] = word;
        most = std::max(most, ++count[bank]);
      }
    }
    wavefronts += most;
  }
}

void Recorder::onMemory(const MemoryEvent &event) {
  if (event.actor.ticket || event.proxy != Proxy::Generic || !event.laneMask)
    return;
  write |= event.kind == AccessKind::Write;
  atomic |= event.kind == AccessKind::Atomic;
  strong |= event.order != MemOrder::Weak && event.scope != Scope::Cta;
  meets |= event.space == Space::Global && event.scope != Scope::Cta &&
           (event.kind == AccessKind::Atomic || event.order != MemOrder::Weak);
  if (event.space == Space::Global)
    addGlobal(event);
  else if (event.space == Space::SharedCta || event.space == Space::SharedCluster)
    addShared(event);
}

} // namespace fp4::sim
