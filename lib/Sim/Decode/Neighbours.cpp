//===- Neighbours.cpp - Launches and clusters that run beside --------------===//
#include "Sim/Decode/Neighbours.h"
#include "Sim/Decode/Handlers.h"
#include "Sim/Decode/OpcodeTable.h"
#include "Sim/Decode/ProgramImpl.h"

#include <algorithm>

namespace fp4::sim {
namespace {

bool isPrivate(Space space) {
  return space == Space::SharedCta || space == Space::SharedCluster || space == Space::Local ||
         space == Space::Param;
}

/// Returns true for an instruction that tells other clusters something, or takes their place.
bool reachesOthers(const Insn &insn) {
  if (const auto *access = insn.get<MemoryModifiers>())
    return access->order != MemOrder::Weak && !isPrivate(access->space);
  if (const auto *atomic = insn.get<AtomicModifiers>())
    return !isPrivate(atomic->space);
  return insn.get<CancelModifiers>() != nullptr;
}

} // namespace

void findNeighbours(Kernel &kernel) {
  Neighbours &found = kernel.neighbours;
  found.triggers = std::ranges::any_of(kernel.code, [](const Insn &insn) {
    return opcodeTable()[insn.row].base == "griddepcontrol";
  });
  found.prints = std::ranges::any_of(kernel.callSites, [](const CallSite &site) {
    return site.builtin == findBuiltin("vprintf");
  });
  found.readsClock = std::ranges::any_of(
      kernel.code, [](const Insn &insn) { return insn.get<ClockModifiers>() != nullptr; });
  found.allocations = uint32_t(std::ranges::count_if(kernel.code, [](const Insn &insn) {
    return opcodeTable()[insn.row].base == "tcgen05.alloc";
  }));
  found.takesTurns = found.triggers || found.prints || found.readsClock ||
                     std::ranges::any_of(kernel.code, reachesOthers);
}

} // namespace fp4::sim
