//===- Ptxas.h - NVIDIA's assembler as a subprocess -----------------------===//
//
// ptxas turns PTX into a cubin and reports its resources. Kernels run without it (the simulator and
// the driver accept PTX); cubins need it, and it judges the PTX that we write.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fp4 {

/// A CUDA release, which is also ptxas' version.
struct CudaVersion {
  int major = 0, minor = 0;
  friend auto operator<=>(const CudaVersion &, const CudaVersion &) = default;
  std::string str() const { return std::to_string(major) + "." + std::to_string(minor); }
};

/// The oldest CUDA release whose ptxas reads the PTX ISA version that `features` selects
/// ("+ptx88" -> 12.9); {0, 0} when no version is named.
CudaVersion requiredCuda(std::string_view features);

/// The report of `ptxas -v` on one kernel. Bytes, except registers and barriers.
struct KernelResources {
  std::string name;
  int64_t registers = 0;   ///< 32-bit registers per thread
  int64_t spillStores = 0; ///< bytes stored to local memory because registers ran out
  int64_t spillLoads = 0;
  int64_t stackBytes = 0;  ///< local memory frame per thread
  int64_t sharedBytes = 0; ///< static shared memory per CTA
  int64_t barriers = 0;    ///< named barriers used
};

struct Assembly {
  std::string cubin;
  std::vector<KernelResources> kernels;
  std::vector<std::string> warnings;
};

/// An executable ptxas and its version.
class Ptxas {
public:
  /// Tries `explicitPath` if it is not empty, otherwise $FP4_PTXAS, PATH, and bin/ below
  /// $CUDA_HOME, $CUDA_PATH, $CUDA_ROOT. A path that is named but does not run is an error; the
  /// search never continues after it. The name 'none' is an error as well: it asks for no ptxas.
  static Expected<Ptxas> find(std::string_view explicitPath);
  /// Returns true when `explicitPath` or $FP4_PTXAS names a path; then no other ptxas is used. The
  /// name 'none' is not a path.
  static bool isNamed(std::string_view explicitPath);

  const std::string &path() const { return path_; }
  CudaVersion version() const { return version_; }

  /// An Error with the remedy when this ptxas is older than `features` ("+ptx88") asks.
  Status supports(std::string_view chip, std::string_view features) const;

  /// Assembles `ptx` for `chip`. The messages of ptxas become one Error that quotes the PTX lines
  /// that they name. Temporary files are always removed. After $FP4_PTXAS_TIMEOUT seconds (300)
  /// ptxas is killed, and an Error is returned.
  Expected<Assembly> assemble(std::string_view ptx, std::string_view chip) const;

private:
  Ptxas(std::string path, CudaVersion version) : path_(std::move(path)), version_(version) {}
  std::string path_;
  CudaVersion version_;
};

/// Parses the text of `ptxas -v`. Exposed for its unit test.
std::vector<KernelResources> parsePtxasReport(std::string_view report);
std::vector<std::string> parsePtxasWarnings(std::string_view report);
/// Rewrites ptxas' error lines, quoting the source lines of `ptx` that they name.
std::string explainPtxasErrors(std::string_view report, std::string_view ptx);
/// "... release 13.0, V13.0.88" -> {13, 0}; an Error when the text has another form.
Expected<CudaVersion> parsePtxasVersion(std::string_view text);

} // namespace fp4
