//===- GpuModel.cpp - A GPU that one can buy ------------------------------===//
//
// Sources: data sheets of the products (memory, width of its bus).
//
//===----------------------------------------------------------------------===//
#include "fp4/ISA/GpuModel.h"
#include <array>
#include <fmt/format.h>

namespace fp4::hw {

static constexpr std::array kGpus = {
    GpuModel{"b200", "NVIDIA B200", "sm_100a", 180ull << 30, 8192},
    GpuModel{"b300", "NVIDIA B300", "sm_103a", 270ull << 30, 8192},
    GpuModel{"h100", "NVIDIA H100 80GB HBM3", "sm_90a", 80ull << 30, 5120},
    GpuModel{"h200", "NVIDIA H200", "sm_90a", 140ull << 30, 6144},
    GpuModel{"rtx5090", "NVIDIA GeForce RTX 5090", "sm_120a", 32ull << 30, 512},
};

std::span<const GpuModel> gpus() { return kGpus; }

std::string gpuOptions(std::string_view target) {
  std::string known;
  for (const GpuModel &gpu : kGpus)
    if (target.empty() || gpu.target == target)
      known += (known.empty() ? "" : ", ") + std::string(gpu.option);
  return known;
}

Expected<const GpuModel *> requireGpu(std::string_view option) {
  for (const GpuModel &gpu : kGpus)
    if (gpu.option == option)
      return &gpu;
  return makeError(ErrorKind::Usage, fmt::format("unknown device '{}'", option),
                   "known devices: " + gpuOptions());
}

} // namespace fp4::hw
