//===- Pipelines.h - The named phases of the compiler ---------------------===//
//
// From fp4 operations to an executable program in named phases, defined once for fp4-opt,
// fp4-runner, the plugin and embedders. Each phase ends in IR that prints, parses and verifies:
//
//   fused      fp4 operations, inlined, simplified, legal for the target
//   planned    the same, each with the plan of the kernel that it becomes
//   tiles      kernels: streaming ones in gpu.func, GEMMs in sequential pipe form
//   roles      GEMMs as warp roles connected by channels
//   pipelined  channels with depth and addresses; host functions on device buffers
//   scheduled  the same without what need not run: waits, fences, divisions
//   nvvm       kernels in the llvm and nvvm dialects
//   ptx        kernels as PTX text in gpu.binary
//   cubin      the same with a cubin beside each PTX (needs ptxas)
//   host       host functions in the llvm dialect, calling the runtime; kernels as constants
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace fp4 {

enum class Phase {
  Fused,
  Planned,
  Tiles,
  Roles,
  Pipelined,
  Scheduled,
  Nvvm,
  Ptx,
  Cubin,
  Host
};

/// "fused", "planned", ...
std::string_view stringifyPhase(Phase phase);
std::optional<Phase> parsePhase(std::string_view text);
/// "fused, planned, ...": what an error about an unknown phase lists.
std::string phaseNames();

/// Kernels that begin while the kernel before them ends (PDL): none, the kernels whose plans say so,
/// or all.
enum class PdlLaunches : uint8_t { None, Chosen, All };

/// Parses "none", "chosen" or "all".
std::optional<PdlLaunches> parsePdlLaunches(std::string_view text);

/// Options of all phases. Drivers pass the struct whole: a new option is a member here and its use
/// in Pipelines.cpp.
struct PhaseOptions {
  std::string target = "sm_100a"; ///< a name of the target table
  std::string ptxas;              ///< the ptxas to run; empty: search for one
  std::vector<std::string> plans; ///< plans of kernels, as inside of #fp4.plan<...>
  bool noArithmetic = false;      ///< streaming kernels only load and store, for measurements
  PdlLaunches pdl = PdlLaunches::Chosen;
  unsigned sms = 0;   ///< SMs that grids of GEMM kernels fill; 0: all of the target
  std::string device; ///< the product of the target that plans are for; empty: all of them
};

/// Adds the passes from the end of the previous phase to the end of `phase`. `Host` follows `Ptx`
/// or `Cubin`. `Cubin` follows `Nvvm` directly and also does the work of `Ptx`.
void addPhase(mlir::OpPassManager &manager, Phase phase, const PhaseOptions &options);

/// Adds all phases up to `last`; for `Host` these include `Ptx`.
void addPhasesTo(mlir::OpPassManager &manager, Phase last, const PhaseOptions &options);

/// Registers the pipeline `fp4-compile{to=... target=...}`.
void registerPipelines();

} // namespace fp4
