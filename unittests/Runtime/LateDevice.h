//===- LateDevice.h - A device without memory or kernels -------*- C++ -*-===//
#pragma once

#include "fp4/Runtime/Session.h"

#include <string>
#include <vector>

namespace fp4::rt {

/// A device whose work is late, as a GPU's is: it fails, or is timed, when somebody waits.
class LateDevice final : public Device {
public:
  Status outcome;                      ///< of synchronize
  LaunchShape lastShape;               ///< of the last launch
  std::vector<uint32_t> launched;      ///< the value of each launch's first parameter
  std::vector<uint64_t> dims, strides; ///< of the last tensor map
  DevicePtr base = 0;                  ///< of it
  std::vector<StreamHandle> streams;   ///< of everything that was issued
  uint32_t loaded = 0, unloaded = 0, events = 0;

  std::string name() const override { return "late"; }
  std::string selector() const override { return "late"; }
  std::string target() const override { return "sm_90a"; }
  int32_t smCount() const override { return 1; }
  bool isHardware() const override { return true; }
  Expected<DevicePtr> allocate(uint64_t) override { return DevicePtr(64); }
  Expected<DevicePtr> allocateOn(StreamHandle stream, uint64_t) override {
    streams.push_back(stream);
    return DevicePtr(128);
  }
  Status freeOn(StreamHandle stream, DevicePtr) override {
    streams.push_back(stream);
    return {};
  }
  Status free(DevicePtr) override { return {}; }
  Status copyToDevice(DevicePtr, std::span<const std::byte>) override { return {}; }
  Status copyToHost(std::span<std::byte>, DevicePtr) override { return {}; }
  Status copy2D(const Copy2D &copy) override {
    streams.push_back(copy.stream);
    return {};
  }
  Status memset(DevicePtr, uint8_t, uint64_t, StreamHandle stream) override {
    streams.push_back(stream);
    return {};
  }
  Expected<ModuleId> loadModule(const fp4rt_module &) override { return loaded++; }
  Status unloadModule(ModuleId) override {
    ++unloaded;
    return {};
  }
  Expected<KernelInfo> kernelInfo(ModuleId, std::string_view kernel) override {
    KernelInfo info;
    info.name = kernel;
    info.parameterBytes = {4};
    return info;
  }
  Status launch(ModuleId, std::string_view, const LaunchShape &shape,
                std::span<void *const> params) override {
    streams.push_back(shape.stream);
    lastShape = shape;
    launched.push_back(*static_cast<uint32_t *>(params[0]));
    return {};
  }
  Status encodeTensorMap(std::span<std::byte, 128>, const TensorMapRequest &request) override {
    dims.assign(request.dims.begin(), request.dims.end());
    strides.assign(request.strides.begin(), request.strides.end());
    base = request.base;
    return {};
  }
  Expected<StreamHandle> createStream() override { return 1; }
  Status destroyStream(StreamHandle) override { return {}; }
  Status synchronize() override { return outcome; }
  Status synchronizeStream(StreamHandle stream) override {
    streams.push_back(stream);
    return outcome;
  }
  Expected<uint32_t> recordEvent(StreamHandle stream) override {
    streams.push_back(stream);
    return events++;
  }
  Expected<double> elapsedMs(uint32_t first, uint32_t second) override {
    return 10.0 * first + second;
  }
};

inline void launchValue(const fp4rt_module &module, uint32_t value) {
  void *params[] = {&value};
  fp4rt_launch(&module, "k", 1, 1, 1, 1, 1, 1, 0, params, 1);
}

} // namespace fp4::rt
