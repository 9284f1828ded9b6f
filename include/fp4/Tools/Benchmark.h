//===- Benchmark.h - How fast a verified function is ----------------------===//
//
// Calls the function's host code once per operand set while the session records, then times what
// was recorded: the whole program and each of its kernels, and beside each a device-to-device copy
// that moves as many bytes. A result that changed under the replays is an Error. Bytes and
// operations follow from the logical tensors of the manifest's program, scales included.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Tools/Measure.h"
#include "fp4/Tools/Tensor.h"

namespace fp4::tools {

/// Bytes read and written, and floating-point operations of matrix products.
struct Traffic {
  uint64_t bytes = 0; ///< 0: not known
  uint64_t flops = 0;
};

/// The traffic of every launch, given their modules in order. A module is called
/// `<function>_<op>_<n>`; the k-th launch of an `op` is that of the k-th such operation of the
/// fused program. Nothing for an `op` whose launches are not as many as its operations. `arguments`
/// give the dynamic sizes their values.
std::vector<std::optional<Traffic>> launchTraffic(const Function &function,
                                                  std::span<const Tensor> arguments,
                                                  std::span<const std::string> modules);

struct BenchmarkReport {
  struct Entry {
    std::string name; ///< the kernel's module, or "program"
    Traffic traffic;
    Timing timing;
    std::optional<Timing> copy; ///< of as many bytes, read and written
    double bytesPerSecond() const;
    double flopsPerSecond() const;
    /// Fraction of the copy's rate; 0 when there is none.
    double ofCopy() const;
  };
  std::string driver, time; ///< of the device, and UTC
  int32_t multiprocessors = 0;
  uint64_t l2Bytes = 0, setBytes = 0;
  size_t sets = 0;
  bool cold = true;           ///< the sets a run does not use are together twice the L2 cache
  std::vector<Entry> entries; ///< the kernels in order of launch, then the program

  /// A table for a person.
  std::string text() const;
};

/// `verified` is what the function returned for `arguments` when it was checked.
Expected<BenchmarkReport> benchmark(rt::Device &device, const Function &function,
                                    void (*entry)(void **), std::span<const Tensor> arguments,
                                    std::span<const Tensor> verified,
                                    const MeasureOptions &options = {});

} // namespace fp4::tools
