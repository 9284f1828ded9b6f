//===- TimedCode.cpp - Costs of the instructions of a kernel --------------===//
#include "Sim/Time/TimedCode.h"
#include "Sim/Decode/OperandRoles.h"
#include "Sim/Time/MachineMix.h"
#include "Sim/Time/RegisterFlow.h"
#include "fp4/Support/Glob.h"
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <unordered_map>

namespace fp4::sim {
namespace {

struct UnitRow {
  const char *pattern;
  Unit unit;
  uint8_t count;
};
constexpr UnitRow unitRows[] = {
#define FP4_UNIT(pattern, unit, count) {pattern, Unit::unit, count},
#include "Sim/Time/Units.def"
#undef FP4_UNIT
};

const UnitRow *unitOf(const std::string &opcode) {
  for (const UnitRow &row : unitRows)
    if (matchesGlob(row.pattern, opcode))
      return &row;
  return nullptr;
}

/// Packing two 16-bit registers into one takes an instruction, pairs of 32-bit registers none.
bool packsHalves(const Kernel &kernel, const Insn &insn) {
  const Operand &from = insn.op[1];
  return from.kind == OperandKind::Vector && kernel.operandPool[from.offset].width <= 2;
}

/// ptxas puts a fence before an access that releases, and before an arrival at the barrier of a
/// cluster that does.
bool releasesDevice(const std::string &opcode) {
  if (opcode.find(".cluster.arrive") != opcode.npos)
    return opcode.find(".relaxed") == opcode.npos;
  return opcode.find(".release.gpu") != opcode.npos || opcode.find(".acq_rel.gpu") != opcode.npos;
}

bool wakesOthers(Unit unit) {
  switch (unit) {
  case Unit::Barrier:
  case Unit::ClusterArrive:
  case Unit::Registers:
  case Unit::Mbarrier:
  case Unit::MbarrierTest:
  case Unit::Memory:
  case Unit::Exit:
  case Unit::Async:
  case Unit::Copy:
  case Unit::Wait:
  case Unit::TmemAlloc:
  case Unit::Branch:
    return true;
  default:
    return false;
  }
}

/// The memories that an access may mean: without a space, any.
void addSpaces(const std::string &opcode, TimedInsn &timed) {
  const auto has = [&](std::string_view part) { return opcode.find(part) != opcode.npos; };
  const bool matrix = has("matrix"); // of shared memory, whether or not it says so
  const bool generic = !has(".shared") && !has(".global") && !has(".local") && !has(".param") &&
                       !has(".const") && !matrix;
  timed.shared = generic || matrix || has(".shared");
  timed.global = generic || has(".global");
}

/// Branches and accesses by threads: nobody waits for one of them.
bool wakesNobody(Unit unit, const std::string &opcode) {
  constexpr std::string_view plain[] = {"bra", "brx",  "call", "ld.",      "ldu.",
                                        "st.", "atom", "red.", "ldmatrix", "stmatrix"};
  return (unit == Unit::Branch || unit == Unit::Memory) &&
         std::ranges::any_of(plain, [&](std::string_view one) { return opcode.starts_with(one); });
}

/// Loads that may come earlier or later: nobody may have stored meanwhile.
bool isMovable(const std::string &opcode) {
  constexpr std::string_view fixed[] = {".volatile", ".relaxed", ".acquire", ".mmio"};
  return opcode.starts_with("ld.") && std::ranges::none_of(fixed, [&](std::string_view one) {
           return opcode.find(one) != opcode.npos;
         });
}

/// The work of "mma.sync.aligned.m16n8k16....f16...": shape and type are in the name.
void addMma(const std::string &opcode, TimedInsn &timed) {
  const auto has = [&](std::string_view part) { return opcode.find(part) != opcode.npos; };
  unsigned m = 0, n = 0, k = 0;
  for (size_t at = opcode.find(".m"); at != opcode.npos; at = opcode.find(".m", at + 1))
    if (std::sscanf(opcode.c_str() + at, ".m%un%uk%u", &m, &n, &k) == 3)
      break;
  timed.mma.flops = 2.0f * float(m) * float(n) * float(k);
  timed.mma.halves = has(".f16.f16");
  const bool bytes =
      has(".e4m3") || has(".e5m2") || has(".s8") || has(".u8") || has(".e2m") || has(".e3m2");
  timed.mma.rate = has("mxf4")    ? hw::TimingRate::Fp4Flops
                   : has("mxf8")  ? hw::TimingRate::ScaledQuarterFlops
                   : bytes        ? hw::TimingRate::QuarterFlops
                   : has(".tf32") ? hw::TimingRate::Tf32Flops
                                  : hw::TimingRate::HalfFlops;
}

/// Adds properties that the opcode shows.
void addDetails(const std::string &opcode, TimedInsn &timed) {
  timed.mayWake = wakesOthers(timed.unit) && !wakesNobody(timed.unit, opcode);
  timed.remote = timed.unit == Unit::Mbarrier && opcode.find("shared::cluster") != opcode.npos;
  timed.releases = (timed.unit == Unit::Memory || timed.unit == Unit::ClusterArrive) &&
                   releasesDevice(opcode);
  timed.fills = opcode.starts_with("cp.async");
  timed.bypassesL1 = opcode.find(".cg") != opcode.npos || opcode.find(".volatile") != opcode.npos;
  timed.wide = timed.unit == Unit::Imad &&
               (opcode.find(".wide") != opcode.npos || opcode.find(".hi.") != opcode.npos);
  timed.rejoins =
      timed.unit == Unit::Fma &&
      (opcode.starts_with("div.") || opcode.starts_with("rcp.") || opcode.starts_with("sqrt."));
  if (timed.unit == Unit::Memory) {
    addSpaces(opcode, timed);
    timed.movable = isMovable(opcode);
  }
  if (timed.unit == Unit::MmaSync)
    addMma(opcode, timed);
}

} // namespace

/// "add.rn.f32": the opcode as the program spells it, of the instruction at `start`.
static std::string_view opcodeAt(std::string_view text, size_t start) {
  text = text.substr(std::min(start, text.size()));
  if (text.starts_with('@')) { // a guard, which may stand apart
    text.remove_prefix(std::min(text.find_first_of(" \t"), text.size()));
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  }
  return text.substr(0, text.find_first_of(" \t\n;"));
}

TimedCode::TimedCode(const ProgramImpl &program, const Kernel &kernel,
                     const MachineKernel *machine) {
  classify(program, kernel);
  findLooks(kernel);
  listRegisters(kernel);
  findTalks(kernel);
  findUnused(kernel);
  if (machine) {
    useMachineCode(kernel, *machine);
  } else {
    narrow(kernel);
    fold(kernel);
  }
  leaveOutElections(kernel);
  places.assign(1, 0);
  for (const TimedInsn &insn : insns)
    places.push_back(places.back() + insn.count);
  countLive(kernel);
  exact = machine && machine->registers;
  if (exact)
    needed = machine->registers;
}

void TimedCode::classify(const ProgramImpl &program, const Kernel &kernel) {
  std::unordered_map<std::string, const UnitRow *> known;
  std::vector<size_t> lineStarts{0};
  for (size_t at = program.text.find('\n'); at != std::string::npos;
       at = program.text.find('\n', at + 1))
    lineStarts.push_back(at + 1);
  insns.resize(kernel.code.size());
  for (size_t pc = 0; pc < kernel.code.size(); ++pc) {
    const Insn &insn = kernel.code[pc];
    if (insn.flow == Flow::Exit) { // the decoder appends one, which has no text
      insns[pc] = {Unit::Exit, 1, true};
      continue;
    }
    const auto base = opcodeTable()[insn.row].base;
    const bool written = insn.line && insn.line <= lineStarts.size() && insn.column;
    std::string opcode(written ? opcodeAt(program.text, lineStarts[insn.line - 1] + insn.column - 1)
                               : base);
    if (!opcode.starts_with(base.substr(0, base.find('.'))))
      opcode = base;
    auto [row, fresh] = known.try_emplace(opcode, nullptr);
    if (fresh)
      row->second = unitOf(opcode);
    TimedInsn &timed = insns[pc];
    if (!row->second) {
      unknownOpcode = unknownOpcode.empty() ? opcode : unknownOpcode;
      continue;
    }
    timed.unit = row->second->unit;
    timed.count = row->second->count;
    addDetails(opcode, timed);
    if (timed.unit == Unit::Free && opcode.starts_with("mov") && packsHalves(kernel, insn))
      timed = {Unit::Alu, 1};
  }
}

/// A try_wait that no branch repeats is a look ahead: CUTLASS asks for the next stage before it
/// fills this one. The machine instruction has its answer in a predicate behind a scoreboard, so
/// that a warp waits where it uses the predicate, and what follows in the program goes ahead.
void TimedCode::findLooks(const Kernel &kernel) {
  constexpr uint32_t near = 6; // instructions of a loop that waits
  for (uint32_t pc = 0; pc < insns.size(); ++pc) {
    if (opcodeTable()[kernel.code[pc].row].base != "mbarrier.try_wait")
      continue;
    const uint32_t end = std::min(uint32_t(insns.size()), pc + near);
    bool repeats = false;
    for (uint32_t next = pc + 1; next < end && !repeats; ++next)
      repeats = insns[next].unit == Unit::Branch && kernel.code[next].target <= pc &&
                kernel.code[next].target + near > pc;
    insns[pc].looks = !repeats;
  }
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

namespace {

constexpr uint32_t kCarry = ~0u; ///< carry's number in place of an offset: a register as any other

/// Gives registers numbers in the order in which they are met.
struct Numbering {
  std::unordered_map<uint32_t, uint32_t> numbers;
  std::vector<uint8_t> &words;

  void add(const Operand &o, const Kernel &kernel, std::vector<uint32_t> &to) {
    if (o.kind == OperandKind::Vector) {
      for (int64_t i = 0; i < o.imm; ++i)
        add(kernel.operandPool[o.offset + size_t(i)], kernel, to);
      return;
    }
    if (o.kind == OperandKind::None || o.bank != kRegBank)
      return;
    add(o.offset, o.kind == OperandKind::Pred ? 0 : o.width, to);
  }
  void add(uint32_t offset, unsigned width, std::vector<uint32_t> &to) {
    auto [found, fresh] = numbers.try_emplace(offset, uint32_t(numbers.size()));
    if (fresh)
      words.push_back(uint8_t((width + 3) / 4));
    to.push_back(found->second);
  }
};

/// Sizes are parameters of a launch; other special registers have an instruction that reads them.
bool isConstant(Special special) {
  switch (special) {
  case Special::NtidX:
  case Special::NtidY:
  case Special::NtidZ:
  case Special::NctaidX:
  case Special::NctaidY:
  case Special::NctaidZ:
    return true;
  default:
    return false;
  }
}

/// Returns true when a special register says which CTA or cluster of the grid a thread is in.
bool isIndex(Special special) {
  switch (special) {
  case Special::CtaidX:
  case Special::CtaidY:
  case Special::CtaidZ:
  case Special::ClusteridX:
  case Special::ClusteridY:
  case Special::ClusteridZ:
  case Special::Smid:
    return true;
  default:
    return false;
  }
}

/// Returns the number of operands of the row's pattern, from the first, that are destinations.
unsigned destinations(const OpcodeRow &row) {
  unsigned number = 0;
  for (const PatternItem &item : row.pattern) {
    switch (item.kind) {
    case PatternKind::Dst:
    case PatternKind::DstPred:
    case PatternKind::DstPredPair:
    case PatternKind::DstRegPred:
    case PatternKind::VecDst:
      number += item.operands();
      continue;
    default:
      return number;
    }
  }
  return number;
}

} // namespace

void TimedCode::listRegisters(const Kernel &kernel) {
  Numbering numbering{{}, words};
  std::vector<unsigned> outputs;
  for (const OpcodeRow &row : opcodeTable())
    outputs.push_back(destinations(row));
  for (size_t pc = 0; pc < kernel.code.size(); ++pc) {
    const Insn &insn = kernel.code[pc];
    TimedInsn &timed = insns[pc];
    timed.first = uint32_t(registers.size());
    if (timed.unit == Unit::Branch && opcodeTable()[insn.row].base == "call")
      continue;
    if (insn.guard != kNoGuard)
      numbering.add(insn.guard, 0, registers);
    const unsigned written = timed.outputs = uint8_t(outputs[insn.row]);
    const CarryModifiers carry = carryOf(insn);
    const bool accumulates = timed.unit == Unit::Wgmma; // in order, without the scoreboard
    for (unsigned i = written; i < kMaxOperands; ++i)
      numbering.add(insn.op[i], kernel, registers);
    if (carry.uses)
      numbering.add(kCarry, 0, registers);
    timed.reads = uint16_t(registers.size() - timed.first);
    for (unsigned i = 0; i < written && !accumulates; ++i)
      numbering.add(insn.op[i], kernel, registers);
    if (carry.sets)
      numbering.add(kCarry, 0, registers);
    timed.writes = uint16_t(registers.size() - timed.first - timed.reads);
    if (accumulates)
      numbering.add(insn.op[0], kernel, accumulators[uint32_t(pc)]);
  }
  for (const SpecialUse &use : kernel.specials)
    if (const auto at = numbering.numbers.find(use.offset);
        at != numbering.numbers.end() && !isConstant(use.which)) {
      specials.push_back(at->second);
      if (isIndex(use.which))
        indices.push_back(at->second);
    }
  count = uint32_t(words.size());
}

//===----------------------------------------------------------------------===//
// Machine code of ptxas
//===----------------------------------------------------------------------===//

namespace {

/// Units of which ptxas makes an instruction of their own for each.
bool isAnchor(Unit unit) {
  switch (unit) {
  case Unit::Shuffle:
  case Unit::Memory:
  case Unit::Barrier:
  case Unit::Mbarrier:
  case Unit::MbarrierTest:
  case Unit::Copy:
  case Unit::Async:
  case Unit::Wgmma:
  case Unit::MmaSync:
    return true;
  default:
    return false;
  }
}

/// Returns how many copies ptxas wrote of the MMAs of a basic block. Instructions between MMAs that
/// ptxas unrolls have the lines of MMAs too, so only all of the block tell. 1 where they do not.
uint32_t copiesOfMmas(std::span<const TimedInsn> insns,
                      std::span<const MachineCount *const> counts) {
  uint32_t written = 0, made = 0;
  for (size_t i = 0; i < insns.size(); ++i) {
    written += insns[i].unit == Unit::Wgmma;
    made += counts[i] ? counts[i]->wgmma : 0;
  }
  return written && made && made % written == 0 ? made / written : 1;
}

/// Returns how many copies ptxas wrote of the instructions of a basic block: the fewest copies of
/// any that it cannot make up. If none tells, the copies of the block's MMAs.
uint32_t copiesOf(std::span<const TimedInsn> insns, std::span<const MachineCount *const> counts) {
  uint32_t copies = ~0u;
  for (size_t i = 0; i < insns.size(); ++i)
    if (isAnchor(insns[i].unit) && counts[i] && counts[i]->anchors)
      copies = std::min(copies, counts[i]->anchors);
  return copies == ~0u ? copiesOfMmas(insns, counts) : copies;
}

uint8_t share(uint32_t count, uint32_t copies) {
  return uint8_t(std::min<uint32_t>((count + copies / 2) / copies, 255));
}

} // namespace

/// Instructions of one line of PTX belong to the first that begins there. An instruction with an
/// effect counts, although ptxas may have merged it with another.
void TimedCode::useMachineCode(const Kernel &kernel, const MachineKernel &machine) {
  std::vector<const MachineCount *> counts(insns.size());
  uint32_t last = 0;
  for (uint32_t pc = 0; pc < insns.size(); ++pc) {
    const uint32_t line = kernel.code[pc].line;
    auto found = machine.lines.find(line);
    if (line != last && found != machine.lines.end())
      counts[pc] = &found->second;
    last = line;
  }
  machinePipes.resize(insns.size());
  parameters.resize(insns.size());
  const std::vector<uint32_t> starts = blockStarts(kernel);
  for (size_t b = 0; b + 1 < starts.size(); ++b) {
    const uint32_t begin = starts[b], size = starts[b + 1] - begin;
    const uint32_t copies =
        copiesOf(std::span(insns).subspan(begin, size),
                 std::span<const MachineCount *const>(counts).subspan(begin, size));
    for (uint32_t pc = begin; pc < begin + size; ++pc) {
      TimedInsn &timed = insns[pc];
      const MachineCount none, &count = counts[pc] ? *counts[pc] : none;
      const bool counted = isArithmetic(timed.unit) || timed.unit == Unit::Free;
      timed.count = std::max(share(count.issue, copies), uint8_t(counted ? 0 : 1));
      if (timed.unit == Unit::Wgmma)
        timed.count = uint8_t(std::min(share(count.issue, copies) + 1, 255)); // and the MMA
      timed.rejoins = share(count.rejoins, copies);
      parameters[pc] = count.parameters;
      if (timed.unit == Unit::Free && timed.count)
        timed.unit = Unit::Alu;
      for (unsigned pipe = 0; pipe < kPipes; ++pipe)
        machinePipes[pc][pipe] = share(count.pipes[pipe], copies);
      machinePipes[pc][kEitherHalf] = share(count.fp32, copies);
      machinePipes[pc][kWide] = share(count.wide, copies);
      machinePipes[pc][kReloads] = share(count.reloads, copies);
      machinePipes[pc][kSpills] = share(count.spills, copies);
      for (unsigned bank = 0; bank < kBanks; ++bank)
        machinePipes[pc][kBankReads + bank] = share(count.reads[bank], copies);
    }
  }
}

//===----------------------------------------------------------------------===//
// Combinations by ptxas, where its code is not known
//===----------------------------------------------------------------------===//

/// The immediate that an operand is; nothing for a register.
static std::optional<uint64_t> immediate(const Operand &o, const Kernel &kernel) {
  if (o.kind != OperandKind::Reg || o.bank != kConstBank)
    return std::nullopt;
  uint64_t value = 0;
  std::memcpy(&value, kernel.constants.data() + o.offset, std::min<size_t>(o.width, 8));
  return value;
}

/// 64-bit operations on what 32 bits hold: the upper half of a register costs nothing, and a
/// product is one instruction.
void TimedCode::narrow(const Kernel &kernel) {
  constexpr uint64_t low = 0xFFFFFFFF;
  std::vector<uint8_t> fits(count);
  for (uint32_t pc = 0; pc < insns.size(); ++pc) {
    TimedInsn &timed = insns[pc];
    const Insn &insn = kernel.code[pc];
    if (timed.writes != 1 || insn.op[0].width != 8 || timed.count > 4)
      continue;
    const auto base = opcodeTable()[insn.row].base;
    const auto second = immediate(insn.op[2], kernel);
    const uint32_t result = writes(timed)[0];
    const bool all =
        std::ranges::all_of(reads(timed), [&](uint32_t r) { return fits[r] || words[r] < 2; });
    const bool half =
        (base == "and" && second == low) || (base == "shr" && second && *second >= 32);
    const bool combines = all && (!second || *second <= low);
    if (half)
      timed = {.unit = Unit::Free,
               .outputs = timed.outputs,
               .first = timed.first,
               .reads = timed.reads,
               .writes = timed.writes};
    else if (combines &&
             (base == "mul" || base == "mad" || base == "and" || base == "or" || base == "xor"))
      timed.count = std::min<uint8_t>(timed.count, 1);
    fits[result] =
        half || base == "cvt" || (combines && (base == "and" || base == "or" || base == "xor"));
  }
}

/// Logic whose only use is logic becomes one LOP3 while there are three inputs; a shift by a
/// constant whose only use is a sum becomes LEA or part of a product.
void TimedCode::fold(const Kernel &kernel) {
  std::vector<uint32_t> uses(count), definitions(count), user(count);
  for (uint32_t pc = 0; pc < insns.size(); ++pc) {
    for (uint32_t r : reads(insns[pc])) {
      ++uses[r];
      user[r] = pc;
    }
    for (uint32_t r : writes(insns[pc]))
      ++definitions[r];
  }
  const auto base = [&](uint32_t pc) { return opcodeTable()[kernel.code[pc].row].base; };
  const auto isLogic = [&](uint32_t pc) {
    const auto name = base(pc);
    return insns[pc].unit == Unit::Alu &&
           (name == "and" || name == "or" || name == "xor" || name == "not");
  };
  std::vector<uint8_t> inputs(insns.size());
  for (uint32_t pc = 0; pc < insns.size(); ++pc)
    inputs[pc] = uint8_t(insns[pc].reads);
  for (uint32_t pc = 0; pc < insns.size(); ++pc) {
    TimedInsn &insn = insns[pc];
    if (insn.writes != 1 || kernel.code[pc].guard != kNoGuard)
      continue;
    const uint32_t result = writes(insn)[0];
    if (uses[result] != 1 || definitions[result] != 1 || user[result] <= pc || insn.count != 1)
      continue;
    const uint32_t into = user[result];
    const bool logic = isLogic(pc) && isLogic(into) && inputs[pc] + inputs[into] - 1 <= 3;
    const bool shift = insn.unit == Unit::Shift && insns[into].unit == Unit::Sum &&
                       insns[into].count == 1 && base(into) == "add";
    if (!logic && !shift)
      continue;
    insn.unit = Unit::Free;
    insn.count = 0;
    inputs[into] = uint8_t(inputs[pc] + inputs[into] - 1);
  }
}

namespace {

/// A set of registers, and their words.
class LiveSet {
public:
  explicit LiveSet(const std::vector<uint8_t> &words) : words(&words), set(words.size()) {}
  void add(uint32_t r) {
    alive += set.has(r) ? 0 : (*words)[r];
    set.add(r);
  }
  void remove(uint32_t r) {
    alive -= set.has(r) ? (*words)[r] : 0;
    set.remove(r);
  }
  void join(const LiveSet &other) {
    set.join(other.set, [&](uint32_t r) { alive += (*words)[r]; });
  }
  bool operator==(const LiveSet &other) const { return set == other.set; }
  uint32_t size() const { return alive; }

private:
  const std::vector<uint8_t> *words;
  RegisterSet set;
  uint32_t alive = 0;
};

} // namespace

/// Returns the places where basic blocks begin, and the end of the code.
std::vector<uint32_t> TimedCode::blockStarts(const Kernel &kernel) const {
  const uint32_t size = uint32_t(insns.size());
  std::vector<uint32_t> starts{0, size};
  for (uint32_t pc = 0; pc < size; ++pc)
    if (insns[pc].unit == Unit::Branch)
      starts.insert(starts.end(), {std::min(kernel.code[pc].target, size), pc + 1});
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  return starts;
}

/// Registers of a thread where most are alive.
void TimedCode::countLive(const Kernel &kernel) {
  uint32_t most = 0;
  flowBackward(*this, kernel, blockStarts(kernel), LiveSet(words), [&](uint32_t pc, LiveSet &live) {
    most = std::max(most, live.size());
    if (kernel.code[pc].guard == kNoGuard)
      for (uint32_t r : writes(insns[pc]))
        live.remove(r);
    for (uint32_t r : reads(insns[pc]))
      live.add(r);
  });
  constexpr uint32_t besides = 8, granularity = 8;
  needed = (most + besides + granularity - 1) / granularity * granularity;
}

} // namespace fp4::sim
