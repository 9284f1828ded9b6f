//===- Benchmark.h - Speed of a verified function -------------------------===//
//
// Calls the host code of the function once per operand set while the session records. Then it times
// the recorded work: the whole program, each of its kernels, and for each a device-to-device copy
// of as many bytes. A result that changed during the replays is an Error. Bytes and operations
// follow from the logical tensors of the manifest's program, including scales.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Benchmark/EntryCall.h"
#include "fp4/Benchmark/Measure.h"
#include "fp4/Reference/Reference.h"

#include <map>

namespace fp4::harness {

/// Bytes read and written, and floating-point operations of GEMMs.
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

/// The highest rates of a GPU according to its specification.
struct Roof {
  double bytesPerSecond = 0; ///< rate of the device memory
  double flopsPerClock = 0;  ///< FP4 rate of one SM; 0: no FP4
  uint32_t clockMhz = 0;     ///< clock of the SMs
};
/// Nothing for GPUs without an entry.
std::optional<Roof> roofOf(std::string_view deviceName);

/// "power cap, thermal": NVML's throttle reasons that hold clocks down; empty when none does.
std::string throttleText(uint64_t reasons);

struct BenchmarkReport {
  struct Entry {
    std::string name; ///< the kernel's module, or "program"
    Traffic traffic;
    Timing timing;
    std::optional<Timing> copy; ///< copy of as many bytes, read and written
    std::optional<Timing> twin; ///< same loads and stores without arithmetic
    double bytesPerSecond() const;
    double flopsPerSecond() const;
    /// Fraction of the copy's rate, and of the twin's; 0 when there is none.
    double ofCopy() const;
    double ofTwin() const;
  };
  /// Share of the roof that an entry reaches: the roof of memory, and the roof of GEMMs at the
  /// clock of the specification and at the largest measured clock. 0 where the share is unknown.
  struct OfRoof {
    double memory = 0, products = 0, mmasAtClock = 0;
  };
  OfRoof ofRoof(const Entry &entry) const;
  std::string driver, time; ///< driver version, and UTC
  int32_t sms = 0;
  uint64_t l2Bytes = 0, setBytes = 0;
  size_t sets = 0;
  std::optional<Roof> roof;
  bool cold = true;           ///< the sets a run does not use are together twice the L2 cache
  std::vector<Entry> entries; ///< the kernels in order of launch, then the program

  /// A table for people.
  std::string text() const;
};

/// The numbers of an earlier `--benchmark --json`, to compare with.
struct Baseline {
  struct Entry {
    double median = 0, relativeError = 0;
    uint64_t bytes = 0, flops = 0;
  };
  std::string device;
  std::map<std::string, Entry> entries;
};
Expected<Baseline> readBaseline(const std::string &path);

struct Comparison {
  std::string name;
  double ratio = 0; ///< median now over median then
  double error = 0; ///< uncertainty of the ratio: 2.6 standard errors, 99 %
  /// FASTER or SLOWER by more than 1 %, SAME within 1 %, or UNDECIDED because the error is too
  /// large or the entry then moved other bytes or was not there.
  std::string verdict;
};
/// One per entry of `report`. Numbers of another device are a Usage error.
Expected<std::vector<Comparison>> compare(const BenchmarkReport &report, const std::string &device,
                                          const Baseline &baseline);

/// `verified` is what the function returned for `arguments` when it was checked, and `unspecified`
/// what of each of them may change when it is repeated. `twin` is the same
/// function compiled with --no-arithmetic: its kernels are timed beside those of their names.
Expected<BenchmarkReport> benchmark(rt::Device &device, const Function &function,
                                    EntryFunction entry, std::span<const Tensor> arguments,
                                    std::span<const Tensor> verified,
                                    const MeasureOptions &options = {},
                                    EntryFunction twin = nullptr,
                                    std::span<const std::vector<ByteRange>> unspecified = {});

} // namespace fp4::harness
