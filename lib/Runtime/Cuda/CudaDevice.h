//===- CudaDevice.h - A GPU behind the CUDA driver ------------------------===//
//
// The primary context of one GPU, its default stream, and the streams of callers. All driver calls
// go through check(), so that an error names the action, the call, the CUDA error and a hint.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Driver.h"
#include "Monitor.h"
#include "TensorMaps.h"
#include "fp4/Runtime/OpenDevice.h"

#include <deque>
#include <map>
#include <mutex>

namespace fp4::rt {

class CudaDevice final : public Device {
public:
  static Expected<std::unique_ptr<Device>> open(int ordinal);
  ~CudaDevice() override;

  std::string name() const override { return name_; }
  std::string selector() const override { return "cuda:" + std::to_string(ordinal_); }
  std::string target() const override;
  int32_t smCount() const override { return sms_; }
  bool isHardware() const override { return true; }

  Expected<DevicePtr> allocate(uint64_t bytes) override;
  Status free(DevicePtr address) override;
  Status copyToDevice(DevicePtr dst, std::span<const std::byte> src) override;
  Status copyToHost(std::span<std::byte> dst, DevicePtr src) override;
  Status copy2D(const Copy2D &copy) override;
  Status memset(DevicePtr dst, uint8_t value, uint64_t bytes, StreamHandle stream) override;
  Expected<DevicePtr> allocateOn(StreamHandle stream, uint64_t bytes) override;
  Status freeOn(StreamHandle stream, DevicePtr address) override;
  Expected<DevicePtr> allocateZeroed(uint64_t bytes) override;
  Expected<DevicePtr> allocateShared(uint64_t bytes) override;
  Status freeShared(DevicePtr address) override;
  Status readShared(std::span<std::byte> to, DevicePtr from) override;
  Status writeShared(DevicePtr to, std::span<const std::byte> from) override;
  Expected<WorkOrder> orderOf(StreamHandle stream) override;
  Expected<ModuleId> loadModule(const fp4rt_module &module) override;
  Status unloadModule(ModuleId module) override;
  Expected<KernelInfo> kernelInfo(ModuleId module, std::string_view kernel) override;
  Status launch(ModuleId module, std::string_view kernel, const LaunchShape &shape,
                std::span<void *const> params) override;
  Status encodeTensorMap(std::span<std::byte, 128> out, const TensorMapRequest &request) override;
  Expected<StreamHandle> createStream() override;
  Status destroyStream(StreamHandle stream) override;
  Status synchronize() override;
  Status synchronizeStream(StreamHandle stream) override;
  Expected<uint32_t> recordEvent(StreamHandle stream) override;
  Expected<double> elapsedMs(uint32_t first, uint32_t second) override;

  Status copyOnDevice(DevicePtr dst, DevicePtr src, uint64_t bytes) override;
  uint64_t l2Bytes() const override { return uint64_t(l2Bytes_); }
  std::string driver() const override;
  std::optional<Condition> condition() override;
  Expected<CapturedGraph> capture(const std::function<Status()> &work) override;
  Status replay(uint32_t graph) override;

private:
  struct Kernel {
    cuda::Function function = nullptr;
    KernelInfo info;
    uint32_t parameters = 0;
    Dim3 requiredCluster{0, 0, 0};
    uint32_t allowedDynamicBytes = 0; ///< dynamic bytes that the driver was asked to allow
  };
  struct LoadedModule {
    cuda::Module handle = nullptr;
    std::string name;
    bool fromPtx = false;
    std::map<std::string, Kernel, std::less<>> kernels;
  };

  /// Makes the device's context current on the calling thread, and the previous one when the scope
  /// ends.
  class Entered {
  public:
    explicit Entered(const CudaDevice &device);
    ~Entered();
    Entered(const Entered &) = delete;
    Status status;

  private:
    const CudaDevice &device_;
    cuda::Context previous_ = nullptr;
    bool changed_ = false;
  };

  CudaDevice(const cuda::Driver &driver, int ordinal) : driver_(driver), ordinal_(ordinal) {}
  Status initialize();
  void releaseAll();
  Expected<std::pair<cuda::Event, cuda::Event>> eventPair(uint32_t first, uint32_t second);
  Status check(cuda::Result result, const char *call, const std::string &doing) const {
    return cuda::check(driver_, result, call, doing);
  }
  cuda::Stream streamOf(StreamHandle handle) const;
  Status zeroAside(DevicePtr address, uint64_t bytes);
  Status encode(std::span<std::byte, 128> out, const TensorMapRequest &request) const;
  Expected<Kernel *> findKernel(ModuleId module, std::string_view kernel);
  Status allowDynamicShared(Kernel &kernel, uint32_t bytes);
  Expected<Kernel> describeKernel(const LoadedModule &module, const std::string &kernel) const;
  Status checkLaunch(const Kernel &kernel, const LaunchShape &shape, size_t numParams) const;
  Expected<cuda::Graph> captureStream(const std::function<Status()> &work);
  Expected<cuda::Module> loadPtx(const fp4rt_module &module) const;

  const cuda::Driver &driver_;
  int ordinal_;
  cuda::DeviceOrdinal device_ = 0;
  cuda::Context context_ = nullptr;
  std::string name_;
  int major_ = 0, minor_ = 0;
  int32_t sms_ = 0;
  uint32_t maxSharedBytes_ = 0;
  int l2Bytes_ = 0;
  cuda::Stream stream_ = nullptr; ///< the default stream, but while a graph is captured
  std::vector<cuda::GraphExec> graphs_;
  Monitor monitor_;
  TensorMaps maps_;
  std::mutex mutex_; ///< guards the members below
  std::deque<LoadedModule> modules_;
  std::vector<cuda::Event> events_;
};

} // namespace fp4::rt
