//===- ProgramImpl.h - Decoded kernels ------------------------------------===//
#pragma once

#include "Sim/Insn/Insn.h"
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
#include "Sim/Insn/Special.def"
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

struct Kernel {
  KernelInfo info;
  std::vector<Insn> code; ///< ends with an exit that the decoder appends
  std::vector<Operand> operandPool;
  std::vector<std::byte> constants; ///< bank 1 for rank 0
  std::vector<RankFixup> rankFixups;
  std::vector<SpecialUse> specials;
  std::vector<SharedName> sharedNames; ///< in order of offset
  /// "full+8": a shared address by the variable that holds it; empty when none does.
  std::string sharedSymbol(uint32_t offset) const;
  uint32_t registerBytes = 0;       ///< bank 0, a multiple of 64
  uint32_t sharedBytes = 0;         ///< end of the static variables, counted from kSharedBase
  uint32_t dynamicSharedOffset = 0; ///< where .extern shared begins, counted from kSharedBase
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
};

} // namespace fp4::sim
