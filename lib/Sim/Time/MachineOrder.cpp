//===- MachineOrder.cpp - Instructions in the order of the machine code ---===//
//
// ptxas moves the instructions of a basic block: a value that is needed late comes late, and chains
// that do not depend on each other run beside each other. If the listing tells where the machine
// instructions of a line are, the block is simulated in that order. An instruction still comes
// behind those that it needs, and effects that others may see keep their order: loads move between
// stores, barriers and exchanges, and nothing else that touches more than registers moves.
//
// A wgmma uses its registers until a wait: arithmetic moves around it, and not around the waits and
// fences of wgmma if it has a register of one that may be in flight, nor behind the fence before a
// wgmma that has one. A mma.sync has its results in registers and
// moves like arithmetic, but not before a barrier, which may be what brings its lanes together.
// Blocks with tcgen05.mma stay as they are.
//
//===----------------------------------------------------------------------===//
#include "Sim/Decode/OpcodeTable.h"
#include "Sim/Time/MachineMix.h"
#include <algorithm>
#include <numeric>
#include <queue>
#include <ranges>
#include <set>
#include <span>
#include <unordered_map>

namespace fp4::sim {
namespace {

constexpr double never = 1e300;
constexpr uint32_t nobody = ~0u;

/// The instructions of one line, which stay together, or one instruction.
struct LineGroup {
  uint32_t begin = 0, end = 0;  ///< pcs
  double place = -1;            ///< mean address of what ptxas made of the group; negative: nothing
  double needed = never;        ///< mean address of the first group that needs this one
  std::vector<uint32_t> before; ///< groups that have to come first
};

enum class Freedom : uint8_t { Free, AmongLoads, None };

class CtaOrder {
public:
  /// `inUse`: the registers of wgmmas of the kernel.
  CtaOrder(const TimedCode &code, const Kernel &kernel, const MachineKernel &machine,
           const std::vector<uint32_t> &inUse, uint32_t begin, uint32_t end)
      : code(code), kernel(kernel), inUse(inUse) {
    for (uint32_t pc = begin; pc < end; ++pc) {
      if (pc == begin || !kernel.code[pc].line || kernel.code[pc].line != kernel.code[pc - 1].line)
        groups.push_back({pc, pc, placeOf(machine, kernel.code[pc].line), never, {}});
      groups.back().end = pc + 1;
    }
    placeMmas(machine);
  }

  /// The pcs of the block in their new order.
  std::vector<uint32_t> run() {
    linkRegisters();
    linkEffects();
    placeTheRest();
    return sorted();
  }

private:
  static double placeOf(const MachineKernel &machine, uint32_t line) {
    const auto found = machine.lines.find(line);
    return found == machine.lines.end() || !found->second.issue
               ? -1
               : double(found->second.places) / found->second.issue;
  }

  /// Places MMAs of warpgroups, whose order ptxas keeps, where those of the block are that have a
  /// line of it. Copies of an unrolled loop follow each other. If the numbers differ, ptxas has
  /// left some out, and nothing tells which.
  void placeMmas(const MachineKernel &machine) {
    std::vector<LineGroup *> written;
    std::set<uint32_t> lines;
    for (LineGroup &group : groups) {
      lines.insert(kernel.code[group.begin].line);
      if (code[group.begin].unit == Unit::Wgmma && group.end == group.begin + 1)
        written.push_back(&group);
    }
    std::vector<uint64_t> made;
    for (const MachineMma &mma : machine.mmas)
      if (lines.contains(mma.line))
        made.push_back(mma.place);
    if (written.empty() || made.empty() || made.size() % written.size())
      return;
    for (size_t i = 0; i < written.size(); ++i) {
      double sum = 0;
      for (size_t at = i; at < made.size(); at += written.size())
        sum += double(made[at]);
      written[i]->place = sum * double(written.size()) / double(made.size());
    }
  }

  Freedom freedomOf(uint32_t pc) const {
    const TimedInsn &insn = code[pc];
    const std::string_view base = opcodeTable()[kernel.code[pc].row].base;
    if (insn.unit == Unit::Memory)
      return insn.movable ? Freedom::AmongLoads : Freedom::None;
    // Arithmetic by their unit: they know which lanes are there, order them, or move the stack.
    constexpr std::string_view more[] = {"vote", "elect", "activemask", "match",
                                         "bar",  "fence", "stack",      "alloca"};
    const bool fixed = std::ranges::any_of(more, [&](auto one) { return base.starts_with(one); });
    const bool computes = isPlain(insn.unit) || insn.unit == Unit::MmaSync;
    const bool free = computes && !fixed && !kernel.code[pc].get<ClockModifiers>();
    return free ? Freedom::Free : Freedom::None;
  }

  void after(uint32_t group, uint32_t other) {
    if (other != nobody && other != group)
      groups[group].before.push_back(other);
  }

  void linkRegisters() {
    struct Users {
      uint32_t writer = nobody;
      std::vector<uint32_t> readers; ///< readers since that write
    };
    std::unordered_map<uint32_t, Users> registers; // a block has few of a kernel's
    std::set<uint32_t> inFlight(inUse.begin(), inUse.end()); // by wgmmas of the blocks before
    const auto write = [&](uint32_t g, uint32_t r) {
      Users &users = registers[r];
      after(g, users.writer);
      for (uint32_t reader : users.readers)
        after(g, reader);
      users = {g, {}};
    };
    for (uint32_t g = 0; g < groups.size(); ++g)
      for (uint32_t pc = groups[g].begin; pc < groups[g].end; ++pc) {
        for (uint32_t r : code.reads(code[pc])) {
          after(g, registers[r].writer);
          registers[r].readers.push_back(g);
        }
        for (uint32_t r : code.writes(code[pc]))
          write(g, r);
        if (const auto base = opcodeTable()[kernel.code[pc].row].base; base.starts_with("wgmma")) {
          const std::vector<uint32_t> own = code.registersOfMma(pc);
          inFlight.insert(own.begin(), own.end());
          for (uint32_t r : inUse)
            if (inFlight.contains(r))
              write(g, r);
            else if (base == "wgmma.fence")
              after(g, registers[r].writer);
          if (base == "wgmma.wait_group" && !kernel.code[pc].op[0].imm)
            inFlight.clear();
        }
      }
  }

  /// The order of what others see, and the end of the block.
  void linkEffects() {
    uint32_t fixed = nobody, barrier = nobody;
    std::vector<uint32_t> loads;
    for (uint32_t g = 0; g < groups.size(); ++g)
      for (uint32_t pc = groups[g].begin; pc < groups[g].end; ++pc) {
        const Freedom freedom = freedomOf(pc);
        if (code[pc].unit == Unit::Branch || code[pc].unit == Unit::Exit)
          for (uint32_t other = 0; other < g; ++other)
            after(g, other);
        if (freedom != Freedom::Free)
          after(g, fixed);
        if (code[pc].unit == Unit::MmaSync)
          after(g, barrier);
        if (opcodeTable()[kernel.code[pc].row].base.starts_with("bar"))
          barrier = g;
        if (freedom == Freedom::AmongLoads)
          loads.push_back(g);
        if (freedom == Freedom::None) {
          for (uint32_t load : loads)
            after(g, load);
          loads.clear();
          fixed = g;
        }
      }
  }

  /// Places instructions of which ptxas made nothing just before the first that needs them.
  void placeTheRest() {
    for (size_t g = groups.size(); g-- > 0;) {
      const double place = groups[g].place < 0 ? groups[g].needed : groups[g].place;
      for (uint32_t other : groups[g].before)
        groups[other].needed = std::min(groups[other].needed, place);
    }
    double last = 0;
    for (LineGroup &group : groups) {
      if (group.place < 0)
        group.place = group.needed < never ? group.needed : last;
      last = group.place;
    }
  }

  std::vector<uint32_t> sorted() const {
    using Turn = std::pair<double, uint32_t>;
    std::priority_queue<Turn, std::vector<Turn>, std::greater<>> ready;
    std::vector<uint32_t> waits(groups.size());
    std::vector<std::vector<uint32_t>> behind(groups.size());
    for (uint32_t g = 0; g < groups.size(); ++g) {
      for (uint32_t other : groups[g].before)
        behind[other].push_back(g);
      if (!(waits[g] = uint32_t(groups[g].before.size())))
        ready.push({groups[g].place, g});
    }
    std::vector<uint32_t> order;
    while (!ready.empty()) {
      const uint32_t g = ready.top().second;
      ready.pop();
      for (uint32_t pc = groups[g].begin; pc < groups[g].end; ++pc)
        order.push_back(pc);
      for (uint32_t next : behind[g])
        if (!--waits[next])
          ready.push({groups[next].place, next});
    }
    return order;
  }

  const TimedCode &code;
  const Kernel &kernel;
  const std::vector<uint32_t> &inUse;
  std::vector<LineGroup> groups;
};

bool staysAsWritten(const TimedCode &code, uint32_t begin, uint32_t end) {
  const auto pcs = std::views::iota(begin, end);
  return std::ranges::any_of(pcs, [&](uint32_t pc) {
    const Unit unit = code[pc].unit;
    return unit == Unit::Async || unit > Unit::MmaSync;
  });
}

} // namespace

/// Returns the registers that the wgmma at `pc` reads or writes; none where there is no wgmma.
std::vector<uint32_t> TimedCode::registersOfMma(uint32_t pc) const {
  const auto found = accumulators.find(pc);
  if (found == accumulators.end())
    return {};
  std::vector<uint32_t> all = found->second;
  std::ranges::copy(reads(insns[pc]), std::back_inserter(all));
  return all;
}

/// Returns the registers that a wgmma of the kernel reads or writes.
std::vector<uint32_t> TimedCode::registersOfMmas() const {
  std::vector<uint32_t> all;
  for (const auto &[pc, accumulated] : accumulators)
    std::ranges::copy(registersOfMma(pc), std::back_inserter(all));
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  return all;
}

std::vector<uint32_t> TimedCode::sortAsMachine(Kernel &kernel, const MachineKernel &machine) const {
  std::vector<uint32_t> places(kernel.code.size());
  std::iota(places.begin(), places.end(), 0u);
  if (hasOtherWays(kernel))
    return places;
  const std::vector<Insn> written = kernel.code;
  const std::vector<uint32_t> starts = blockStarts(kernel), inUse = registersOfMmas();
  for (size_t b = 0; b + 1 < starts.size(); ++b) {
    if (staysAsWritten(*this, starts[b], starts[b + 1]))
      continue;
    const auto order = CtaOrder(*this, kernel, machine, inUse, starts[b], starts[b + 1]).run();
    std::ranges::copy(order, places.begin() + starts[b]);
    for (uint32_t i = 0; i < order.size(); ++i)
      kernel.code[starts[b] + i] = written[order[i]];
  }
  return places;
}

} // namespace fp4::sim
