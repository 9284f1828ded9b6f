//===- IdleCode.cpp - Instructions that --time-only leaves out ------------===//
//
// --time-only multiplies nothing, so that values which a kernel with MMAs computes from them mean
// nothing. Arithmetic that only feeds MMAs, or results that follow from them, is idle too: no
// address, predicate, barrier or flag depends on it, and so no time does. Data that copies bring
// matters only if an instruction that is not idle loads the data.
//
// Idle instructions take their time all the same. A kernel without MMAs is executed as it is.
//
//===----------------------------------------------------------------------===//
#include "Sim/State/SharedMemory.h"
#include "Sim/Time/RegisterFlow.h"
#include "Sim/Time/TimedLaunch.h"
#include "fp4/Sim/TicketKind.h"
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

namespace fp4::sim {
namespace {

/// Returns true when an instruction that nobody needs may be left out: it has no effect but on
/// registers, and waits for no other lane.
bool mayIdle(const TimedInsn &insn, const Insn &code) {
  const std::string_view base = opcodeTable()[code.row].base;
  if (insn.unit == Unit::MmaSync)
    return code.guard == kNoGuard && base.starts_with("mma");
  const bool exchanges =
      base == "vote" || base == "elect" || base == "activemask" || base == "shfl";
  return !exchanges && isPlain(insn.unit);
}

/// The purpose of an operand that is read.
enum class Use : uint8_t {
  Always, ///< an address, a predicate, a descriptor
  Factor, ///< factor of an asynchronous MMA
  Stored, ///< data of a store
  Tensor, ///< data of a store to tensor memory
};

Use useOf(const TimedInsn &insn, const Insn &code, unsigned operand) {
  const OperandKind kind = code.op[operand].kind;
  const bool data = kind == OperandKind::Vector || (operand == 1 && kind == OperandKind::Reg);
  if (insn.unit == Unit::Wgmma)
    return kind == OperandKind::Vector ? Use::Factor : Use::Always;
  if (insn.unit == Unit::TmemMove)
    return kind == OperandKind::Vector ? Use::Tensor : Use::Always;
  const std::string_view base = opcodeTable()[code.row].base;
  return data && (base == "st" || base == "stmatrix") ? Use::Stored : Use::Always;
}

/// Values that are the same in every thread and in every pass of a loop.
class Constants {
public:
  Constants(const TimedCode &code, const Kernel &kernel)
      : code(code), kernel(kernel), definitions(code.registerCount(), none) {
    for (uint32_t pc = 0; pc < kernel.code.size(); ++pc)
      for (uint32_t r : code.writes(code[pc]))
        definitions[r] = definitions[r] == none ? pc : several;
  }
  /// Returns the constant value of operand `index` of an instruction, with its displacement, if it
  /// has one.
  std::optional<uint64_t> operand(uint32_t pc, unsigned index, unsigned depth = 0) const {
    constexpr unsigned deepest = 8;
    const Operand &o = kernel.code[pc].op[index];
    const uint64_t displacement = o.kind == OperandKind::Address ? uint64_t(o.imm) : 0;
    if ((o.kind != OperandKind::Reg && o.kind != OperandKind::Address) || depth > deepest)
      return std::nullopt;
    if (o.bank == kConstBank) {
      uint64_t value = 0;
      std::memcpy(&value, kernel.constants.data() + o.offset, std::min<size_t>(o.width, 8));
      return value + displacement;
    }
    const auto found = result(definitions[registerOf(pc, index)], depth);
    return found ? std::optional(*found + displacement) : std::nullopt;
  }

private:
  static constexpr uint32_t none = ~0u, several = ~0u - 1;

  std::optional<uint64_t> result(uint32_t pc, unsigned depth) const {
    if (pc == none || pc == several || kernel.code[pc].guard != kNoGuard ||
        kernel.code[pc].op[0].kind == OperandKind::Vector) // each element has its own part
      return std::nullopt;
    const std::string_view base = opcodeTable()[kernel.code[pc].row].base;
    if (base != "mov" && base != "add" && base != "cvta")
      return std::nullopt;
    const auto first = operand(pc, 1, depth + 1);
    const auto second = base == "add" ? operand(pc, 2, depth + 1) : std::optional<uint64_t>(0);
    return first && second ? std::optional(*first + *second) : std::nullopt;
  }
  uint32_t registerOf(uint32_t pc, unsigned index) const {
    const Insn &insn = kernel.code[pc];
    size_t at = insn.guard != kNoGuard;
    for (unsigned i = code[pc].outputs; i < index;
         ++i) // none of these instructions has vectors here
      at += insn.op[i].kind != OperandKind::None && insn.op[i].bank == kRegBank;
    return code.reads(code[pc])[at];
  }

  const TimedCode &code;
  const Kernel &kernel;
  std::vector<uint32_t> definitions; ///< the one instruction that writes a register
};

class Needs {
public:
  Needs(const TimedCode &code, const Kernel &kernel, std::vector<uint8_t> ofMmas)
      : code(code), kernel(kernel), constants(code, kernel), ofMmas(std::move(ofMmas)) {}

  /// Returns for each instruction if it is needed. Repeated while loads turn out to be needed.
  std::vector<uint8_t> run(const std::vector<uint32_t> &starts) {
    for (bool again = true; again;) {
      const std::array before{loadsShared, loadsAnywhere, loadsTensor, loadsGlobal};
      loaded.clear();
      needed.assign(kernel.code.size(), 0);
      flowBackward(code, kernel, starts, RegisterSet(code.registerCount()),
                   [&](uint32_t pc, RegisterSet &wanted) { visit(pc, wanted); });
      again = before != std::array{loadsShared, loadsAnywhere, loadsTensor, loadsGlobal};
    }
    return std::move(needed);
  }
  bool loadsShared = false, loadsTensor = false; ///< true when such loads are needed
  bool loadsAnywhere = false; ///< true when unknown places of shared memory are loaded
  bool loadsGlobal = false;                      ///< a flag that others store, say
  std::vector<SharedRange> loaded;               ///< shared memory that is loaded at known places

private:
  /// Updates the registers that are wanted before an instruction.
  void visit(uint32_t pc, RegisterSet &wanted) {
    const TimedInsn &insn = code[pc];
    const Insn &instruction = kernel.code[pc];
    const bool used =
        std::ranges::any_of(code.writes(insn), [&](uint32_t r) { return wanted.has(r); });
    if (!used && insn.writes && mayIdle(insn, instruction)) {
      if (instruction.guard != kNoGuard) // lanes that execute nothing take no time
        wanted.add(code.reads(insn)[0]);
      return;
    }
    needed[pc] = true;
    loadsGlobal |= used && insn.unit == Unit::Memory && insn.global;
    if ((used && insn.unit == Unit::Memory && insn.shared) || copiesNeeded(instruction))
      addLoad(pc);
    loadsTensor |= used && insn.unit == Unit::TmemMove;
    if (instruction.guard == kNoGuard)
      for (uint32_t r : code.writes(insn))
        wanted.remove(r);
    addReads(insn, instruction, wanted);
  }
  /// Returns true when an instruction brings from shared to global memory what may be needed there:
  /// a tensor map, or a flag that somebody loads. Nobody stores flags as boxes of tensors.
  bool copiesNeeded(const Insn &instruction) const {
    const OpcodeRow &row = opcodeTable()[instruction.row];
    const bool bulk = row.base == "cp.async.bulk" || row.base == "cp.reduce.async.bulk";
    return row.base.starts_with("tensormap") ||
           (loadsGlobal && bulk && row.hasSlot("dst", "global"));
  }
  void addLoad(uint32_t pc) {
    constexpr uint32_t most = 16; // bytes of a lane
    loadsShared = true;
    const bool plain = opcodeTable()[kernel.code[pc].row].base == "ld";
    if (const auto address = plain ? constants.operand(pc, 1) : std::nullopt)
      loaded.push_back({uint32_t(*address) & kSharedOffsetMask, most});
    else
      loadsAnywhere = true;
  }
  /// Returns true when the data of a store, which is in register `r`, may be needed. If shared
  /// memory is loaded at unknown places, results and needed data cannot be told apart.
  bool needsStored(const TimedInsn &insn, uint32_t r) const {
    return (insn.shared && loadsAnywhere) ||
           (!ofMmas[r] && (!insn.shared || insn.global || loadsShared));
  }
  void addReads(const TimedInsn &insn, const Insn &instruction, RegisterSet &wanted) const {
    const std::span<const uint32_t> reads = code.reads(insn);
    size_t at = 0;
    const auto add = [&](Use use) {
      const uint32_t r = reads[at++];
      if (use == Use::Always || (use == Use::Stored && needsStored(insn, r)) ||
          (use == Use::Tensor && loadsTensor))
        wanted.add(r);
    };
    if (instruction.guard != kNoGuard)
      add(Use::Always);
    for (unsigned i = insn.outputs; i < kMaxOperands && at < reads.size(); ++i) {
      const Operand &o = instruction.op[i];
      const bool vector = o.kind == OperandKind::Vector;
      const Operand *element = vector ? kernel.operandPool.data() + o.offset : &o;
      for (int64_t e = 0; e < (vector ? o.imm : 1); ++e)
        if (element[e].kind != OperandKind::None && element[e].bank == kRegBank)
          add(useOf(insn, instruction, i));
    }
    while (at < reads.size()) // the carry
      add(Use::Always);
  }

  const TimedCode &code;
  const Kernel &kernel;
  const Constants constants;
  const std::vector<uint8_t> ofMmas;
  std::vector<uint8_t> needed;
};

} // namespace

/// Registers whose values follow from MMAs, whichever instruction wrote them last. One that holds a
/// flag at another time is none of them; accumulators, which begin with a value, are.
std::vector<uint8_t> TimedCode::ofMmas(const Kernel &kernel) const {
  std::vector<uint8_t> derived(count), sums(count);
  for (const auto &[pc, registers] : accumulators)
    for (uint32_t r : registers)
      derived[r] = sums[r] = true;
  const auto follows = [&](const TimedInsn &insn) {
    const bool computes =
        isPlain(insn.unit) || insn.unit == Unit::Shuffle || insn.unit == Unit::Redux;
    return insn.unit == Unit::MmaSync || insn.unit == Unit::TmemMove ||
           (computes && std::ranges::any_of(reads(insn), [&](uint32_t r) { return derived[r]; }));
  };
  for (bool again = true; again;) {
    again = false;
    for (const TimedInsn &insn : insns) {
      if (!follows(insn))
        continue;
      for (uint32_t r : writes(insn)) {
        again |= !std::exchange(derived[r], uint8_t(true));
        sums[r] |= insn.unit == Unit::MmaSync;
      }
    }
  }
  std::vector<uint8_t> always = derived;
  for (uint32_t pc = 0; pc < insns.size(); ++pc)
    if (!follows(insns[pc]))
      for (uint32_t r : writes(insns[pc]))
        always[r] &= sums[r] && opcodeTable()[kernel.code[pc].row].base == "mov";
  return always;
}

IdleCode TimedCode::idleCode(const Kernel &kernel) const {
  const auto isGemm = [&](uint32_t pc) {
    return insns[pc].unit == Unit::Wgmma || insns[pc].unit == Unit::MmaSync ||
           opcodeTable()[kernel.code[pc].row].base.starts_with("tcgen05.mma");
  };
  bool products = false;
  for (uint32_t pc = 0; pc < insns.size() && !products; ++pc)
    products = isGemm(pc);
  if (!products)
    return {};
  constexpr uint32_t multiplies =
      1u << unsigned(TicketKind::Mma) | 1u << unsigned(TicketKind::Wgmma);
  if (hasOtherWays(kernel))
    return {{}, multiplies, {}};
  Needs needs(*this, kernel, ofMmas(kernel));
  IdleCode idle{needs.run(blockStarts(kernel)), multiplies, {}};
  for (uint8_t &one : idle.insns)
    one = !one;
  for (TicketKind kind :
       {TicketKind::TmemLoad, TicketKind::TmemStore, TicketKind::TmemCopy, TicketKind::TmemShift})
    idle.tickets |= needs.loadsTensor ? 0 : 1u << unsigned(kind);
  for (TicketKind kind : {TicketKind::Tma, TicketKind::Bulk})
    idle.tickets |= needs.loadsAnywhere ? 0 : 1u << unsigned(kind);
  idle.loaded = std::move(needs.loaded);
  return idle;
}

namespace {

/// Stands for an instruction whose result nobody needs.
Outcome idle(ExecContext &, const Insn &) { return Outcome::Next; }

/// Stands for an instruction that all lanes execute together.
Outcome idleTogether(ExecContext &cx, const Insn &) {
  return cx.converged() ? Outcome::Next : Outcome::Retry;
}

} // namespace

void TimedLaunch::leaveOutIdle() {
  const IdleCode found = code.idleCode(*launch.kernel);
  launch.timing.idleTickets = found.tickets;
  launch.timing.loadedShared = found.loaded;
  if (found.insns.empty())
    return;
  withoutIdle = *launch.kernel;
  for (uint32_t pc = 0; pc < found.insns.size(); ++pc)
    if (found.insns[pc])
      withoutIdle.code[pc].handler = code[pc].unit == Unit::MmaSync ? idleTogether : idle;
  launch.kernel = &withoutIdle;
}

} // namespace fp4::sim
