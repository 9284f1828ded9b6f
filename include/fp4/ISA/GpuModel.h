//===- GpuModel.h - A GPU that one can buy --------------------------------===//
//
// A target ("sm_90a") is an architecture; several products implement it with other memories. Rates
// of TimingRates.def that differ from those of the target stand there under the product's name.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/TargetModel.h"
#include "fp4/ISA/TimingRates.h"
#include "fp4/Support/Error.h"
#include <cstdint>
#include <span>
#include <string_view>

namespace fp4::hw {

struct GpuModel {
  std::string_view option; ///< the name in options: "h200"
  std::string_view name;   ///< name from cudaGetDeviceProperties
  std::string_view target;
  uint64_t memoryBytes;
  unsigned memoryBusBits;
  unsigned sms;
  uint64_t l2Bytes;
  /// A kernel that streams ends sooner if what it loads outlasts what it stores in the L2 cache,
  /// which then writes lines back in a better order.
  bool gainsFromLastingLoads;

  /// The target, with the SMs and the L2 of this GPU.
  TargetModel model() const;
  /// The rate called `which`: that of this GPU, or else of its target; null without one.
  const Rate *rate(TimingRate which) const;
  int major() const { return static_cast<int>(model().computeMajor); }
  int minor() const { return static_cast<int>(model().computeMinor); }
};

std::span<const GpuModel> gpus();

/// The rate of memory of the target's device by `terabytes` per second; 1 without a device.
double memoryOfDevice(const TargetModel &target, double terabytes);

/// Returns true where the target's device gains from loads that outlast stores in the L2 cache, and
/// without a device where each product of the target does.
bool gainsFromLastingLoads(const TargetModel &target);

/// The GPU called `option`; the error lists the known ones.
Expected<const GpuModel *> requireGpu(std::string_view option);

/// "b200, b300, ...", and of one target alone where `target` is not empty.
std::string gpuOptions(std::string_view target = {});

} // namespace fp4::hw
