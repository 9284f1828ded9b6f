//===- SimDevice.cpp - The PTX simulator as a device ----------------------===//

#include "SimDevice.h"

#include "fp4/ISA/TargetModel.h"
#include "fp4/ISA/TensorMap.h"
#include "fp4/Support/Progress.h"

#include <cstring>
#include <fmt/format.h>
#include <new>

namespace fp4::rt {
namespace {

/// Turns an answer of the memory of a GPU into an error of the device, on any device.
Status asDeviceError(Status status) {
  if (!status)
    status.error().kind = ErrorKind::Device;
  return status;
}

std::array<uint32_t, 3> toArray(const Dim3 &dim) { return {dim.x, dim.y, dim.z}; }

} // namespace

Expected<std::unique_ptr<Device>> openSimDevice(const DeviceOptions &options) {
  return SimDevice::open(options);
}

Expected<std::unique_ptr<Device>> SimDevice::open(const DeviceOptions &options) {
  FP4_ASSIGN(const hw::TargetModel *target, hw::requireTarget(options.target));
  FP4_ASSIGN(sim::SimOptions settings, sim::settingsOf(options));
  FP4_ASSIGN(auto instruments, sim::Instruments::create(options, settings));
  if (options.showProgress) {
    settings.progress = makeProgressLine("simulating", "CTAs");
    settings.orders.progress = makeProgressLine("exploring", "orders");
  }
  return std::unique_ptr<Device>(
      new SimDevice(*target, std::move(settings), std::move(instruments)));
}

SimDevice::SimDevice(const hw::TargetModel &target, sim::SimOptions options,
                     std::unique_ptr<sim::Instruments> instruments)
    : target_(target), instruments_(std::move(instruments)), simulator_(std::move(options)) {}

std::string SimDevice::target() const { return std::string(target_.name); }

int32_t SimDevice::smCount() const { return int32_t(target_.sms); }

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Expected<DevicePtr> SimDevice::allocate(uint64_t bytes) {
  constexpr uint64_t kLimit = uint64_t(1) << 40;
  if (bytes > kLimit)
    return makeError(ErrorKind::Device,
                     fmt::format("allocating {} bytes failed: more than any device has", bytes));
  std::scoped_lock lock(mutex_);
  if (uint64_t address = simulator_.memory().allocate(bytes))
    return address;
  return makeError(
      ErrorKind::Device,
      fmt::format("allocating {} bytes failed: this machine has too little memory", bytes),
      "use a smaller problem");
}

Expected<DevicePtr> SimDevice::allocateShared(uint64_t bytes) {
  FP4_ASSIGN(const DevicePtr address, allocateZeroed(bytes));
  std::scoped_lock lock(mutex_);
  simulator_.memory().markPolled(address);
  return address;
}

Status SimDevice::free(DevicePtr address) {
  std::scoped_lock lock(mutex_);
  return asDeviceError(simulator_.memory().free(address));
}

Status SimDevice::copyToDevice(DevicePtr dst, std::span<const std::byte> src) {
  std::scoped_lock lock(mutex_);
  return src.empty() ? Status{}
                     : asDeviceError(simulator_.memory().write(dst, src.data(), src.size()));
}

Status SimDevice::copyToHost(std::span<std::byte> dst, DevicePtr src) {
  std::scoped_lock lock(mutex_);
  return dst.empty() ? Status{}
                     : asDeviceError(simulator_.memory().read(src, dst.data(), dst.size()));
}

Status SimDevice::memset(DevicePtr dst, uint8_t value, uint64_t bytes, StreamHandle) {
  std::scoped_lock lock(mutex_);
  return bytes ? asDeviceError(simulator_.memory().fill(dst, value, bytes)) : Status{};
}

Status SimDevice::copy2D(const Copy2D &copy) {
  if (!copy.width || !copy.height)
    return {};
  std::scoped_lock lock(mutex_);
  sim::GlobalMemory &memory = simulator_.memory();
  uint64_t srcBytes = (copy.height - 1) * copy.srcPitch + copy.width;
  uint64_t dstBytes = (copy.height - 1) * copy.dstPitch + copy.width;
  const std::byte *src = memory.translate(copy.src, srcBytes);
  std::byte *dst = memory.translate(copy.dst, dstBytes);
  if (!src || !dst)
    return makeError(
        ErrorKind::Device,
        fmt::format("copying {} rows of {} bytes failed: the {} is out of bounds, {}", copy.height,
                    copy.width, src ? "destination" : "source",
                    src ? memory.explain(copy.dst, dstBytes) : memory.explain(copy.src, srcBytes)));
  for (uint64_t row = 0; row < copy.height; ++row)
    std::memcpy(dst + row * copy.dstPitch, src + row * copy.srcPitch, copy.width);
  for (uint64_t row = 0; memory.tracksWrites() && row < copy.height; ++row)
    memory.markWritten(copy.dst + row * copy.dstPitch, copy.width);
  return {};
}

//===----------------------------------------------------------------------===//
// Modules and launches
//===----------------------------------------------------------------------===//

Expected<ModuleId> SimDevice::loadModule(const fp4rt_module &module) {
  if (!module.ptx_size)
    return makeError(ErrorKind::Device,
                     fmt::format("module '{}' carries no PTX, which is what the simulator executes",
                                 module.name),
                     "emit the library with its PTX");
  FP4_ASSIGN(auto program, sim::Program::parse({module.ptx, module.ptx_size}, module.name));
  std::scoped_lock lock(mutex_);
  modules_.push_back(std::move(program));
  return static_cast<ModuleId>(modules_.size() - 1);
}

Status SimDevice::unloadModule(ModuleId module) {
  std::scoped_lock lock(mutex_);
  if (module >= modules_.size() || !modules_[module])
    return makeError(ErrorKind::Internal, fmt::format("no module has the number {}", module));
  modules_[module].reset();
  return {};
}

Expected<const sim::KernelInfo *> SimDevice::findKernel(ModuleId module,
                                                        std::string_view kernel) const {
  if (module >= modules_.size() || !modules_[module])
    return makeError(ErrorKind::Internal, fmt::format("no module has the number {}", module));
  const sim::Program &program = *modules_[module];
  if (const sim::KernelInfo *info = program.findKernel(kernel))
    return info;
  std::string known;
  for (const sim::KernelInfo &info : program.kernels())
    known += (known.empty() ? "" : ", ") + info.name;
  return makeError(ErrorKind::Device,
                   fmt::format("module '{}' has no kernel named '{}'", program.name(), kernel),
                   known.empty() ? "it has no kernels" : "its kernels are " + known);
}

Expected<KernelInfo> SimDevice::kernelInfo(ModuleId module, std::string_view kernel) {
  std::scoped_lock lock(mutex_);
  FP4_ASSIGN(auto found, findKernel(module, kernel));
  KernelInfo info;
  info.name = found->name;
  info.staticSharedBytes = found->staticSharedBytes;
  info.localBytes = found->localBytes;
  info.compiledFromPtx = true;
  for (const auto &parameter : found->params)
    info.parameterBytes.push_back(parameter.size);
  return info;
}

Status SimDevice::launch(ModuleId module, std::string_view kernel, const LaunchShape &shape,
                         std::span<void *const> params) {
  std::scoped_lock lock(mutex_);
  FP4_ASSIGN(auto found, findKernel(module, kernel));
  const sim::KernelInfo &info = *found;
  if (params.size() != info.params.size())
    return makeError(ErrorKind::Device, fmt::format("kernel '{}' expects {} parameters, but got {}",
                                                    kernel, info.params.size(), params.size()));
  std::vector<std::byte> block(info.paramBytes);
  for (size_t i = 0; i < params.size(); ++i)
    std::memcpy(block.data() + info.params[i].offset, params[i], info.params[i].size);
  sim::LaunchConfig config;
  config.grid = toArray(shape.grid);
  config.block = toArray(shape.block);
  config.cluster = toArray(shape.cluster);
  config.preferredCluster = toArray(shape.preferredCluster);
  config.dynamicSharedBytes = shape.dynamicSharedBytes;
  if (shape.dependent && lastMark_)
    config.dependence.on = {{lastMark_}};
  config.dependence.by = "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION";
  config.dependence.mark = lastMark_ = std::make_shared<sim::LaunchMark>();
  constexpr uint64_t kWorkspaceBytes = 256;
  if (shape.cooperative) {
    config.gridWorkspace = simulator_.memory().allocate(kWorkspaceBytes, "the grid's workspace");
    FP4_TRY(simulator_.memory().fill(config.gridWorkspace, 0, kWorkspaceBytes));
  }
  auto launched = simulator_.launch(*modules_[module], kernel, config, block);
  if (shape.cooperative)
    (void)simulator_.memory().free(config.gridWorkspace);
  FP4_ASSIGN(auto stats, std::move(launched));
  lastLaunch_ = {stats.warpInstructions, stats.mmas, stats.tickets};
  return {};
}

std::optional<LaunchCounts> SimDevice::lastLaunch() const {
  std::scoped_lock lock(mutex_);
  return lastLaunch_;
}

uint64_t SimDevice::hazardCount() const {
  std::scoped_lock lock(mutex_);
  return instruments_->hazardCount();
}

std::vector<std::string> SimDevice::hazardsSince(uint64_t count) const {
  std::scoped_lock lock(mutex_);
  std::vector<std::string> texts;
  for (const sim::HazardReport &report : instruments_->hazards())
    if (report.last > count)
      texts.push_back(report.text());
  return texts;
}

Status SimDevice::encodeTensorMap(std::span<std::byte, 128> out, const TensorMapRequest &request) {
  if (request.swizzle < 0 || request.swizzle > int32_t(hw::SwizzleMode::B128Atom32))
    return makeError(ErrorKind::Device,
                     fmt::format("encoding a tensor map failed: swizzle must be 0 to 4, but got {}",
                                 request.swizzle));
  hw::TensorMap map;
  map.elementType = static_cast<hw::TensorMapType>(request.elementType);
  map.swizzle = static_cast<hw::SwizzleMode>(request.swizzle);
  map.rank = static_cast<uint32_t>(request.dims.size());
  map.address = request.base;
  for (size_t i = 0; i < request.dims.size(); ++i) {
    map.dims[i] = request.dims[i];
    map.box[i] = i < request.box.size() ? request.box[i] : 1;
    map.elementStrides[i] = request.elementStrides.empty() ? 1 : request.elementStrides[i];
  }
  if (!request.lower.empty())
    map.pixels.emplace();
  for (size_t i = 0; i < request.lower.size(); ++i) {
    map.pixels->lower[i] = request.lower[i];
    map.pixels->upper[i] = request.upper[i];
  }
  for (size_t i = 0; i < request.strides.size(); ++i)
    map.strides[i] = request.strides[i];
  map.promotion = request.promotion();
  FP4_ASSIGN(auto bytes, map.encode());
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return {};
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

Expected<uint32_t> SimDevice::recordEvent(StreamHandle) {
  std::scoped_lock lock(mutex_);
  events_.push_back(std::chrono::steady_clock::now());
  return static_cast<uint32_t>(events_.size() - 1);
}

Expected<double> SimDevice::elapsedMs(uint32_t first, uint32_t second) {
  std::scoped_lock lock(mutex_);
  if (first >= events_.size() || second >= events_.size())
    return makeError(ErrorKind::Internal, fmt::format("no event pair {}, {}", first, second));
  return std::chrono::duration<double, std::milli>(events_[second] - events_[first]).count();
}

} // namespace fp4::rt
