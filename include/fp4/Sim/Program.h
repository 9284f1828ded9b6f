//===- Program.h - A PTX module, decoded and ready to launch --------------===//
//
// PTX text is the only input of the simulator. Program::parse reads it, resolves every name,
// decodes every instruction to its handler and fails with a located error ("name:line:col: ...")
// on anything it does not know: an unknown instruction or modifier is never ignored.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fp4::sim {

/// A kernel parameter: `size` bytes at `offset` of the launch parameter block.
struct ParamInfo {
  std::string name;
  uint32_t offset = 0;
  uint32_t size = 0;
  uint32_t align = 1;
};

/// The facts about a .entry that a launcher needs.
struct KernelInfo {
  std::string name;
  std::vector<ParamInfo> params;
  uint32_t paramBytes = 0;
  std::array<uint32_t, 3> requiredCta{};     ///< .reqntid, zeros when absent
  std::array<uint32_t, 3> maximumCta{};      ///< .maxntid, zeros when absent
  std::array<uint32_t, 3> requiredCluster{}; ///< .reqnctapercluster, zeros when absent
  bool blocksAreClusters = false;            ///< .blocksareclusters: grids of CUDA count clusters
  uint32_t maximumCluster = 0;               ///< .maxclusterrank, in CTAs; 0 when absent
  uint32_t maximumRegisters = 0;             ///< .maxnreg, per thread; 0 when absent
  uint32_t minimumCtasPerSm = 0;             ///< .minnctapersm, 0 when absent
  uint32_t largestIncrease = 0;              ///< largest setmaxnreg.inc, per thread; or 0
  uint32_t staticSharedBytes = 0;
  uint32_t localBytes = 0; ///< per thread
  uint32_t instructions = 0;
  uint32_t line = 0; ///< line of the .entry
};

/// A module-scope .global or .const variable.
struct VariableInfo {
  std::string name;
  uint64_t address = 0; ///< device address, fixed when the program is parsed
  uint64_t size = 0;
  bool readOnly = false; ///< .const
};

/// A kernel that the simulator cannot run, with every instruction it does not know.
struct RefusedKernel {
  std::string name;
  std::vector<Error> errors;
};

/// A kernel's name for messages: "cutlass::device_kernel<...>" of a mangled C++ name, and of a long
/// name its two ends.
std::string displayName(std::string_view kernel);

struct ProgramImpl; // lib/Sim/Decode/ProgramImpl.h

class Program {
public:
  /// `name` is used in messages: usually the file name.
  static Expected<std::shared_ptr<const Program>> parse(std::string_view ptx, std::string name);
  /// Leaves out the kernels that cannot be decoded and gives the reasons in refused(), because a
  /// program launches only few of the kernels it carries.
  static Expected<std::shared_ptr<const Program>> parseAvailable(std::string_view ptx,
                                                                 std::string name);
  ~Program();

  const std::string &name() const;
  const std::vector<KernelInfo> &kernels() const;
  /// Null when there is no such kernel.
  const KernelInfo *findKernel(std::string_view name) const;
  /// Empty unless parseAvailable made the program.
  const std::vector<RefusedKernel> &refused() const;
  std::vector<VariableInfo> variables() const;
  /// The `.version` and `.target` lines.
  const std::string &ptxVersion() const;
  const std::string &target() const;

  const ProgramImpl &impl() const { return *implementation; }

private:
  Program();
  static Expected<std::shared_ptr<const Program>> parseAs(std::string_view ptx, std::string name,
                                                          bool partly);
  std::unique_ptr<ProgramImpl> implementation;
};

} // namespace fp4::sim
