//===- GpuModel.cpp - A GPU that one can buy ------------------------------===//
//
// Sources: data sheets of the products. A target's own row (Targets.cpp) has no more SMs and L2
// than each of its products. Nobody sells vr200 yet: its memory is that of NVIDIA's announcement,
// eight stacks of HBM4, its SMs and L2 are those of sm_107a. [uncertain]
//
// gainsFromLastingLoads was measured on an H200, whose die an H100 has. [uncertain] Others were not
// measured.
//
//===----------------------------------------------------------------------===//
#include "fp4/ISA/GpuModel.h"
#include <array>
#include <fmt/format.h>

namespace fp4::hw {

static constexpr std::array kGpus = {
    GpuModel{"b200", "NVIDIA B200", "sm_100a", 180ull << 30, 8192, 148, 126ull << 20, false},
    GpuModel{"b300", "NVIDIA B300", "sm_103a", 270ull << 30, 8192, 148, 126ull << 20, false},
    GpuModel{"h100", "NVIDIA H100 80GB HBM3", "sm_90a", 80ull << 30, 5120, 132, 50ull << 20, true},
    GpuModel{"h200", "NVIDIA H200", "sm_90a", 140ull << 30, 6144, 132, 50ull << 20, true},
    GpuModel{"rtx5090", "NVIDIA GeForce RTX 5090", "sm_120a", 32ull << 30, 512, 170, 96ull << 20,
             false},
    GpuModel{"gb10", "NVIDIA GB10", "sm_121a", 128ull << 30, 256, 48, 24ull << 20, false},
    GpuModel{"vr200", "NVIDIA VR200", "sm_107a", 288ull << 30, 16384, 212, 126ull << 20, false},
};

std::span<const GpuModel> gpus() { return kGpus; }

TargetModel GpuModel::model() const {
  TargetModel model = *lookupTarget(target);
  model.sms = sms;
  model.l2Bytes = l2Bytes;
  model.device = requireGpu(option).value();
  return model;
}

const Rate *GpuModel::rate(TimingRate which) const {
  const Rate *own = timingRate(option, which);
  return own ? own : timingRate(target, which);
}

double memoryOfDevice(const TargetModel &target, double terabytes) {
  const Rate *memory = target.device ? target.device->rate(TimingRate::MemoryTerabytes) : nullptr;
  return memory ? *memory / terabytes : 1;
}

bool gainsFromLastingLoads(const TargetModel &target) {
  if (target.device)
    return target.device->gainsFromLastingLoads;
  bool all = false;
  for (const GpuModel &gpu : kGpus) {
    if (gpu.target != target.name)
      continue;
    if (!gpu.gainsFromLastingLoads)
      return false;
    all = true;
  }
  return all;
}

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
