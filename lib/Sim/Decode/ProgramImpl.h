//===- ProgramImpl.h - Decoded kernels ------------------------------------===//
#pragma once

#include "Sim/Decode/Insn.h"
#include "fp4/Sim/Program.h"
#include <memory>

namespace fp4::sim {

/// A 4- or 8-byte constant of bank 1 that holds the address of a shared variable: the CTA's rank
/// is added in bits 24-31 when the CTA starts.
struct RankFixup {
  uint32_t offset = 0;
  uint8_t width = 4;
};

enum class Special : uint8_t {
#define FP4_SPECIAL(Name, text, bytes) Name,
#include "Sim/Decode/Special.def"
#undef FP4_SPECIAL
};

/// A special register the kernel reads: filled when a warp starts.
struct SpecialUse {
  Special which{};
  uint8_t width = 4;   ///< bytes per lane; 0: predicate
  uint32_t offset = 0; ///< bank 0
};

/// A shared variable, for messages. `offset` counts from 0, as shared addresses do.
struct SharedName {
  std::string name;
  uint32_t offset = 0;
};

/// A register, for messages.
struct RegisterName {
  std::string name;
  uint32_t offset = 0; ///< bank 0
  Type type{};
};

/// The place of an argument or a result of a call: `bytes` of local memory at `offset`, or a
/// register or constant.
struct ArgumentPlace {
  Operand value; ///< kind None: in local memory
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

/// A device function as one kernel has it. Registers, .param and .local variables have fixed
/// places, so a lane can be in the function only once.
struct DeviceFunction {
  std::string name;
  uint64_t address = 0;  ///< value of a pointer to the function
  uint32_t entry = 0;    ///< pc of the first instruction
  uint32_t returnTo = 0; ///< register: each lane's pc behind the call
  uint32_t inside = 0;   ///< predicate register of the lanes that are in the function
  std::vector<ArgumentPlace> params, results;
};

struct CallSite;
/// A function that the simulator provides.
using Builtin = Outcome (*)(ExecContext &, const CallSite &);

struct CallSite {
  int32_t function = -1; ///< index in Kernel::functions; -1: a call by pointer, or a built-in
  Builtin builtin = nullptr;
  Operand pointer;
  std::vector<ArgumentPlace> arguments, results;
};

/// The turn of lanes that are at a pc, the lowest first (LaneOrder.cpp).
struct LaneTurn {
  uint32_t order = 0;
  uint32_t until = 0; ///< end of the block: up to it, order follows the text
};

/// Uses of what is outside of a cluster. The decoder finds them once for all launches.
struct Neighbours {
  bool triggers = false;   ///< a later launch may begin beside the end of this one
  bool takesTurns = false; ///< no other cluster may run beside
  bool readsClock = false, prints = false;
  uint32_t allocations = 0; ///< tcgen05.alloc in the text
};

struct Kernel {
  KernelInfo info;
  std::vector<Insn> code;      ///< every body ends with an exit or return that the decoder appends
  std::vector<LaneTurn> turns; ///< turn of each pc
  std::vector<Operand> operandPool;
  std::vector<std::byte> constants; ///< bank 1 for rank 0
  std::vector<RankFixup> rankFixups;
  std::vector<SpecialUse> specials;
  std::vector<DeviceFunction> functions;   ///< device functions that the kernel may call
  std::vector<CallSite> callSites;         ///< CallModifiers::site
  std::vector<uint32_t> branchTargets;     ///< targets of brx.idx
  std::vector<SharedName> sharedNames;     ///< names in order of offset
  std::vector<RegisterName> registerNames; ///< names in order of offset
  /// "full+8": a shared address by the variable that holds it; empty when none does.
  std::string sharedSymbol(uint32_t offset) const;
  /// The register that has the place in bank 0; empty when its name was not kept.
  std::string registerName(uint32_t offset) const;
  Neighbours neighbours;
  uint32_t stackTop = 0; ///< stack's top in local memory; 0: the kernel has no stack (Stack.cpp)
  uint32_t registerBytes = 0;       ///< bank 0, a multiple of 64
  uint32_t sharedBytes = 0;         ///< end of the static variables, counted from kSharedBase
  uint32_t dynamicSharedOffset = 0; ///< begin of .extern shared, counted from kSharedBase
};

/// A module-scope .global or .const variable; its address is fixed when the module is parsed.
struct ModuleVariable {
  std::string name;
  uint64_t address = 0;
  uint64_t size = 0;
  bool readOnly = false;
  std::vector<std::byte> initial; ///< `size` bytes
};

struct ProgramImpl {
  std::string name;
  std::string text;
  std::string version;
  std::string target;
  std::vector<std::string> files; ///< .file directives, index as in .loc; [0] is empty
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<KernelInfo> infos; ///< kernels[i]->info, for Program::kernels
  std::vector<RefusedKernel> refused;
  std::vector<ModuleVariable> variables;

  const Kernel *find(std::string_view kernel) const;
  /// Line `line` (from 1) of the text, without surrounding space.
  std::string_view sourceLine(uint32_t line) const;
  /// Line `line` for messages: a list of many registers is shortened to the first and the last.
  std::string shownLine(uint32_t line) const;
};

} // namespace fp4::sim
