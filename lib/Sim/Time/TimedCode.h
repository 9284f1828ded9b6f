//===- TimedCode.h - Costs of the instructions of a kernel ----------------===//
//
// Static facts about each instruction of a kernel, once per launch: the unit that executes it, how
// many machine instructions ptxas is expected to make of it, and the registers that it waits for
// and fills. The PTX is all there is to go by; ptxas schedules and combines, so counts are
// estimates.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Decode/ProgramImpl.h"
#include "fp4/ISA/TimingRates.h"
#include "fp4/Sim/MemoryModel.h"
#include <array>
#include <span>
#include <unordered_map>

namespace fp4::sim {

/// Units of one scheduler. fp32 runs on both halves of its pipe, integer products on one.
enum Pipe : uint8_t { PipeAlu, PipeHeavy, PipeLite, PipeHalf, PipeMufu, PipeDouble, PipeTensor };
inline constexpr unsigned kPipes = 7;

/// The registers of a scheduler are in two banks: even and odd ones.
inline constexpr unsigned kBanks = 2;

/// Machine instructions by what they occupy: each pipe, either half of that of fp32, and the pipe
/// of integer products for the time of a wide one. Then the rows of 128 bytes of spilled registers
/// that they load and store, and the registers that they read from each bank.
inline constexpr unsigned kEitherHalf = kPipes, kWide = kPipes + 1, kReloads = kPipes + 2,
                          kSpills = kPipes + 3, kBankReads = kPipes + 4;
using PipeCounts = std::array<uint8_t, kBankReads + kBanks>;

/// The unit that executes an instruction, or the way in which it is timed.
enum class Unit : uint8_t {
  Unknown, ///< Units.def has no pattern for it
  Free,    ///< ptxas makes nothing of it
  Alu,
  Sum,   ///< the ALU or the pipe of integer products, whichever is free
  Shift, ///< shifts by constants
  Imad,
  Fma,
  Half,
  Mufu,
  Double,
  Shuffle,
  Redux,
  Memory,
  Branch,
  Registers, ///< setmaxnreg
  Exit,
  Barrier,
  ClusterArrive,
  ClusterWait,
  Mbarrier,
  MbarrierTest,
  FenceAsync,
  FenceAsyncShared,
  FenceCta,
  Fence,
  Wait, ///< wait for asynchronous work, or its bookkeeping
  Copy, ///< hands work to the copy engine
  Async,
  Wgmma,
  MmaSync,
  TmemAlloc,
  TmemMove,
};

/// Returns true for instructions that read and write registers, in a pipe of their scheduler.
constexpr bool isArithmetic(Unit unit) { return unit >= Unit::Alu && unit <= Unit::Double; }

/// Returns true for such instructions, and for those that cost nothing.
constexpr bool isPlain(Unit unit) { return unit == Unit::Free || isArithmetic(unit); }

/// The rate and work of one mma.sync of a warp.
struct MmaSyncWork {
  hw::TimingRate rate = hw::TimingRate::HalfFlops;
  float flops = 0;     ///< floating-point operations
  bool halves = false; ///< sums of f16
};

struct TimedInsn {
  Unit unit = Unit::Unknown;
  uint8_t count = 0;    ///< machine instructions
  uint8_t rejoins = 0;  ///< branches around a slow path among them
  bool mayWake = false; ///< other warps may wait for what it does
  bool remote = false;  ///< true when it acts on another CTA of the cluster
  bool bypassesL1 = false;
  bool fills = false;    ///< a cp.async, whose data takes the way of what L1 fills, and not of loads
  bool releases = false; ///< an access or arrival that is a fence of the device too
  bool looks = false;    ///< a mbarrier.try_wait whose answer the program may use much later
  bool unused = false;   ///< a result that has no effect: ptxas leaves it out
  bool shared = false;   ///< access that may be one of shared memory
  bool global = false;   ///< access that may be one of global memory
  bool wide = false;     ///< an integer product of which the upper half is wanted
  bool movable = false;  ///< a load that nobody but its thread notices
  bool talks = false;    ///< a CTA may learn by it what others have stored or counted
  uint8_t outputs = 0;   ///< operands that it writes, the first ones
  MmaSyncWork mma = {};
  uint32_t first = 0;  ///< index of its registers in TimedCode::registers: reads, then writes
  uint16_t reads = 0, writes = 0;
};

/// Code and data that a simulation without results leaves out.
struct IdleCode {
  std::vector<uint8_t> insns;      ///< flag of each instruction that is left out; empty: none is
  uint32_t tickets = 0;            ///< mask of the kinds (TicketKind) that move no data
  std::vector<SharedRange> loaded; ///< shared memory to which they move data all the same
};

struct MachineKernel;
struct MachineCount;

/// Ways through the kernel that blockStarts does not know, which knows those of bra.
inline bool hasOtherWays(const Kernel &kernel) {
  return !kernel.callSites.empty() || !kernel.branchTargets.empty();
}

class TimedCode {
public:
  /// With what ptxas makes of the kernel, if somebody knows; it must outlive the constructor alone.
  TimedCode(const ProgramImpl &program, const Kernel &kernel,
            const MachineKernel *machine = nullptr);

  const TimedInsn &operator[](uint32_t pc) const { return insns[pc]; }
  std::span<const uint32_t> reads(const TimedInsn &insn) const {
    return {registers.data() + insn.first, insn.reads};
  }
  std::span<const uint32_t> writes(const TimedInsn &insn) const {
    return {registers.data() + insn.first + insn.reads, insn.writes};
  }
  uint32_t registerCount() const { return count; }
  /// Special registers that an instruction of the kernel reads.
  std::span<const uint32_t> specialRegisters() const { return specials; }
  /// Special registers among them that say which CTA or cluster of the grid it is.
  std::span<const uint32_t> indexRegisters() const { return indices; }
  /// Returns the places where basic blocks begin, and the end of the code.
  std::vector<uint32_t> blockStarts(const Kernel &kernel) const;
  /// Registers of a thread at the place where most are alive, and what ptxas needs besides.
  uint32_t registersNeeded() const { return needed; }
  /// Returns the place of its machine instructions, counted from the kernel's first.
  uint32_t placeOf(uint32_t pc) const { return places[pc]; }
  /// Machine instructions of the kernel.
  uint32_t size() const { return places.back(); }
  /// Returns true when registers are those of the cubin.
  bool registersKnown() const { return exact; }
  /// Returns the use of the pipes where machine instructions are known; null: the unit says it.
  const PipeCounts *pipesOf(uint32_t pc) const {
    return machinePipes.empty() ? nullptr : &machinePipes[pc];
  }
  /// Returns a bit for each line of parameters that the machine instructions read.
  uint64_t parametersOf(uint32_t pc) const { return parameters.empty() ? 0 : parameters[pc]; }
  /// Returns the code that --time-only need not execute.
  IdleCode idleCode(const Kernel &kernel) const;
  /// Puts the instructions of each block into the order of the machine code (MachineOrder.cpp).
  /// `kernel` is the one that this is the code of. Returns the place that each had.
  std::vector<uint32_t> sortAsMachine(Kernel &kernel, const MachineKernel &machine) const;
  std::vector<uint32_t> registersOfMma(uint32_t pc) const;
  /// The opcode of an instruction that has no unit; empty if all have.
  const std::string &unknown() const { return unknownOpcode; }

private:
  void classify(const ProgramImpl &program, const Kernel &kernel);
  void findLooks(const Kernel &kernel);
  void listRegisters(const Kernel &kernel);
  void findUnused(const Kernel &kernel);
  void useMachineCode(const Kernel &kernel, const MachineKernel &machine);
  void narrow(const Kernel &kernel);
  void fold(const Kernel &kernel);
  uint32_t branchOfElected(const Kernel &kernel, uint32_t elect) const;
  void leaveOutElections(const Kernel &kernel);
  void findTalks(const Kernel &kernel);
  void countLive(const Kernel &kernel);
  std::vector<uint8_t> ofMmas(const Kernel &kernel) const;
  std::vector<uint32_t> registersOfMmas() const;

  std::vector<TimedInsn> insns;
  std::vector<PipeCounts> machinePipes;
  std::vector<uint64_t> parameters; ///< lines of parameters, by pc
  std::vector<uint32_t> registers;
  std::vector<uint32_t> places; ///< place of each instruction, and the end
  std::vector<uint8_t> words;   ///< words of 32 bits of each register; 0: a predicate
  /// Accumulator registers of each wgmma, by pc.
  std::unordered_map<uint32_t, std::vector<uint32_t>> accumulators;
  uint32_t count = 0, needed = 0;
  std::vector<uint32_t> specials, indices; ///< numbers of registers
  bool exact = false;                      ///< true when the machine code says how many are needed
  std::string unknownOpcode;
};

} // namespace fp4::sim
