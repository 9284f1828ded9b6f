//===- SimDevice.h - The PTX simulator as a device ------------------------===//
//
// Loads the PTX of a module (never its cubin), runs it in fp4::sim, and keeps the conventions of
// Device: addresses are made up, work is done when a call returns, time is host time.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Runtime/Device.h"
#include "fp4/Sim/ObserverList.h"
#include "fp4/Sim/Simulator.h"
#include "fp4/Sim/Timeline.h"
#include "fp4/Support/OutputFile.h"

#include <chrono>

namespace fp4::hw {
struct TargetModel;
}

namespace fp4::rt {

class SimDevice final : public Device {
public:
  static Expected<std::unique_ptr<Device>> open(const DeviceOptions &options);

  std::string name() const override { return "simulator"; }
  std::string selector() const override { return "sim"; }
  std::string target() const override;
  int32_t multiprocessorCount() const override;
  bool isHardware() const override { return false; }

  Expected<DevicePtr> allocate(uint64_t bytes) override;
  Status free(DevicePtr address) override;
  Status copyToDevice(DevicePtr dst, std::span<const std::byte> src) override;
  Status copyToHost(std::span<std::byte> dst, DevicePtr src) override;
  Status copy2D(const Copy2D &copy) override;
  Status memset(DevicePtr dst, uint8_t value, uint64_t bytes) override;
  Expected<ModuleId> loadModule(const fp4rt_module &module) override;
  Expected<KernelInfo> kernelInfo(ModuleId module, std::string_view kernel) override;
  Status launch(ModuleId module, std::string_view kernel, const LaunchShape &shape,
                std::span<void *const> params) override;
  Status encodeTensorMap(std::span<std::byte, 128> out, const TensorMapRequest &request) override;
  Status synchronize() override { return {}; }
  Expected<uint32_t> recordEvent() override;
  Expected<double> elapsedMs(uint32_t first, uint32_t second) override;
  Status finish() override;

  std::optional<LaunchCounts> lastLaunch() const override { return lastLaunch_; }
  std::vector<sim::HazardReport> hazards() const override;
  std::vector<sim::AccessCount> wastefulAccesses() const override;

private:
  /// The observers of the simulation; those that were not requested are null.
  struct Observers {
    std::unique_ptr<sim::HazardChecker> checker;
    std::unique_ptr<sim::AccessStatistics> statistics;
    std::unique_ptr<OutputFile> timelineFile;
    std::unique_ptr<sim::Timeline> timeline; ///< writes to timelineFile
    sim::ObserverList list;
  };
  static Expected<std::unique_ptr<Observers>> makeObservers(const DeviceOptions &options);

  SimDevice(const hw::TargetModel &target, sim::SimOptions options,
            std::unique_ptr<Observers> observers);
  Expected<const sim::KernelInfo *> findKernel(ModuleId module, std::string_view kernel) const;

  const hw::TargetModel &target_;
  std::unique_ptr<Observers> observers_; ///< null: nobody watches
  sim::Simulator simulator_;
  std::optional<LaunchCounts> lastLaunch_;
  std::vector<std::shared_ptr<const sim::Program>> modules_;
  std::vector<std::chrono::steady_clock::time_point> events_;
};

} // namespace fp4::rt
