//===- SimDevice.h - The PTX simulator as a device ------------------------===//
//
// The simulator as a device, which loads the PTX of a module (never its cubin), runs it in
// fp4::sim, and keeps the conventions of Device: addresses are made up, work is done when a call
// returns, time is host time. Calls of several threads are executed one after the other.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Runtime/OpenDevice.h"
#include "fp4/Sim/Instruments.h"

#include <atomic>
#include <chrono>
#include <mutex>

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
  int32_t smCount() const override;
  bool isHardware() const override { return false; }

  Expected<DevicePtr> allocate(uint64_t bytes) override;
  Expected<DevicePtr> allocateShared(uint64_t bytes) override;
  Status free(DevicePtr address) override;
  Status copyToDevice(DevicePtr dst, std::span<const std::byte> src) override;
  Status copyToHost(std::span<std::byte> dst, DevicePtr src) override;
  Status copy2D(const Copy2D &copy) override;
  Status memset(DevicePtr dst, uint8_t value, uint64_t bytes, StreamHandle stream) override;
  Expected<ModuleId> loadModule(const fp4rt_module &module) override;
  Status unloadModule(ModuleId module) override;
  Expected<KernelInfo> kernelInfo(ModuleId module, std::string_view kernel) override;
  Status launch(ModuleId module, std::string_view kernel, const LaunchShape &shape,
                std::span<void *const> params) override;
  Status encodeTensorMap(std::span<std::byte, 128> out, const TensorMapRequest &request) override;
  Expected<StreamHandle> createStream() override { return ++streams_; }
  Status destroyStream(StreamHandle) override { return {}; }
  Status synchronize() override { return {}; }
  Expected<uint32_t> recordEvent(StreamHandle stream) override;
  Expected<double> elapsedMs(uint32_t first, uint32_t second) override;
  const sim::Instruments *instruments() const override { return instruments_.get(); }
  uint64_t hazardCount() const override;
  std::vector<std::string> hazardsSince(uint64_t count) const override;
  /// Ends the timeline: nothing is watched from here on.
  Status finish() override { return instruments_->finish(); }

  std::optional<LaunchCounts> lastLaunch() const override;

private:
  SimDevice(const hw::TargetModel &target, sim::SimOptions options,
            std::unique_ptr<sim::Instruments> instruments);
  Expected<const sim::KernelInfo *> findKernel(ModuleId module, std::string_view kernel) const;

  mutable std::mutex mutex_;
  const hw::TargetModel &target_;
  std::unique_ptr<sim::Instruments> instruments_; ///< outlives the simulator, which it watches
  sim::Simulator simulator_;
  std::atomic<StreamHandle> streams_ = 0; ///< number of created streams, which numbers them
  std::optional<LaunchCounts> lastLaunch_;
  sim::LaunchRef lastMark_; ///< mark of the last launch
  std::vector<std::shared_ptr<const sim::Program>> modules_;
  std::vector<std::chrono::steady_clock::time_point> events_;
};

} // namespace fp4::rt
