//===- CudaDevice.cpp - A GPU behind the CUDA driver ----------------------===//

#include "CudaDevice.h"

#include "../TargetMatch.h"

#include <fmt/format.h>

namespace fp4::rt {
using namespace cuda;

Expected<std::unique_ptr<Device>> openCudaDevice(int ordinal) { return CudaDevice::open(ordinal); }

Expected<std::unique_ptr<Device>> CudaDevice::open(int ordinal) {
  FP4_ASSIGN(auto driver, Driver::get());
  std::unique_ptr<CudaDevice> device(new CudaDevice(*driver, ordinal));
  FP4_TRY(device->initialize());
  return device;
}

Status CudaDevice::initialize() {
  int count = 0;
  FP4_TRY(check(driver_.DeviceGetCount(&count), "cuDeviceGetCount", "counting the GPUs"));
  if (ordinal_ < 0 || ordinal_ >= count)
    return makeError(ErrorKind::Device,
                     fmt::format("device 'cuda:{}' does not exist: the driver shows {} GPU{}",
                                 ordinal_, count, count == 1 ? "" : "s"),
                     count ? fmt::format("choose cuda:0 to cuda:{}", count - 1)
                           : "check CUDA_VISIBLE_DEVICES, or run with --device sim");
  FP4_TRY(check(driver_.DeviceGet(&device_, ordinal_), "cuDeviceGet", "opening " + selector()));
  char name[256] = {};
  FP4_TRY(check(driver_.DeviceGetName(name, sizeof(name) - 1, device_), "cuDeviceGetName",
                "reading the name of " + selector()));
  name_ = name;
  int shared = 0;
  const std::pair<DeviceAttribute, int *> attributes[] = {{ComputeCapabilityMajor, &major_},
                                                          {ComputeCapabilityMinor, &minor_},
                                                          {SmCount, &sms_},
                                                          {L2CacheBytes, &l2Bytes_},
                                                          {MaxSharedPerBlockOptin, &shared}};
  for (auto [attribute, value] : attributes)
    FP4_TRY(check(driver_.DeviceGetAttribute(value, attribute, device_), "cuDeviceGetAttribute",
                  "reading the attributes of " + selector()));
  maxSharedBytes_ = static_cast<uint32_t>(shared);
  FP4_TRY(check(driver_.DevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain",
                "creating a context on " + selector()));
  return Entered(*this).status;
}

CudaDevice::~CudaDevice() {
  if (!context_)
    return;
  {
    Entered entered(*this);
    releaseAll();
  }
  driver_.DevicePrimaryCtxRelease(device_);
}

void CudaDevice::releaseAll() {
  for (GraphExec graph : graphs_)
    driver_.GraphExecDestroy(graph);
  for (Event event : events_)
    driver_.EventDestroy(event);
  for (LoadedModule &module : modules_)
    if (module.handle)
      driver_.ModuleUnload(module.handle);
}

std::string CudaDevice::target() const {
  // The name has an "a": architecture-specific features exist from Hopper on.
  return fmt::format("sm_{}{}{}", major_, minor_, major_ >= 9 ? "a" : "");
}

CudaDevice::Entered::Entered(const CudaDevice &device) : device_(device) {
  const Result asked = device_.driver_.CtxGetCurrent(&previous_);
  if (asked == Success && previous_ == device_.context_)
    return; // no message is formatted, as in nearly every call
  status = device_.check(asked, "cuCtxGetCurrent", "asking for the current context");
  if (!status)
    return;
  status = device_.check(device_.driver_.CtxSetCurrent(device_.context_), "cuCtxSetCurrent",
                         "selecting " + device_.selector());
  changed_ = status.has_value();
}

CudaDevice::Entered::~Entered() {
  if (changed_)
    device_.driver_.CtxSetCurrent(previous_);
}

cuda::Stream CudaDevice::streamOf(StreamHandle handle) const {
  return handle ? reinterpret_cast<cuda::Stream>(handle) : stream_;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Expected<DevicePtr> CudaDevice::allocate(uint64_t bytes) {
  Entered entered(*this);
  FP4_TRY(entered.status);
  uint64_t address = 0;
  // The driver refuses empty allocations; a buffer of fp4 may be empty and still has an address.
  FP4_TRY(check(driver_.MemAlloc(&address, bytes ? bytes : 1), "cuMemAlloc",
                fmt::format("allocating {} bytes", bytes)));
  return address;
}

Status CudaDevice::free(DevicePtr address) {
  Entered entered(*this);
  FP4_TRY(entered.status);
  return check(driver_.MemFree(address), "cuMemFree", fmt::format("freeing {:#x}", address));
}

Expected<DevicePtr> CudaDevice::allocateOn(StreamHandle stream, uint64_t bytes) {
  Entered entered(*this);
  FP4_TRY(entered.status);
  uint64_t address = 0;
  FP4_TRY(check(driver_.MemAllocAsync(&address, bytes ? bytes : 1, streamOf(stream)),
                "cuMemAllocAsync", fmt::format("allocating {} bytes", bytes)));
  return address;
}

Status CudaDevice::freeOn(StreamHandle stream, DevicePtr address) {
  Entered entered(*this);
  FP4_TRY(entered.status);
  return check(driver_.MemFreeAsync(address, streamOf(stream)), "cuMemFreeAsync",
               fmt::format("freeing {:#x}", address));
}

/// Allocates zeroed memory. While any stream is captured, a thread may allocate, and wait for a
/// stream that is not captured, only in the relaxed mode. The memory is not part of the graph:
/// kernels of the graph find it there whenever they run.
Expected<DevicePtr> CudaDevice::allocateZeroed(uint64_t bytes) {
  Entered entered(*this);
  FP4_TRY(entered.status);
  CaptureMode mode = CaptureRelaxed;
  FP4_TRY(check(driver_.ThreadExchangeStreamCaptureMode(&mode), "cuThreadExchangeStreamCaptureMode",
                "allocating counters"));
  Expected<DevicePtr> address = allocate(bytes);
  Status zeroed = address ? zeroAside(*address, bytes) : Status{};
  if (!zeroed) {
    driver_.MemFree(*address);
    address = tl::unexpected<Error>(zeroed.error());
  }
  driver_.ThreadExchangeStreamCaptureMode(&mode);
  return address;
}

/// Zeroes memory on a stream of its own, because work on the default stream would touch one that is
/// captured.
Status CudaDevice::zeroAside(DevicePtr address, uint64_t bytes) {
  FP4_ASSIGN(auto stream, createStream());
  Status status = memset(address, 0, bytes, stream);
  if (status)
    status = synchronizeStream(stream);
  driver_.StreamDestroy(streamOf(stream));
  return status;
}

/// The identity of a stream's order. Handles are given to other streams later, and one of them is
/// another stream on every thread; numbers are unique. The driver tells none while the stream is
/// captured, but then the stream lives.
Expected<WorkOrder> CudaDevice::orderOf(StreamHandle handle) {
  Stream stream = streamOf(handle);
  if (!stream) // the default stream is never captured
    return WorkOrder{};
  Entered entered(*this);
  FP4_TRY(entered.status);
  unsigned long long number = 0, capture = 0;
  CaptureStatus capturing = {};
  FP4_TRY(check(driver_.StreamGetCaptureInfo(stream, &capturing, &capture, nullptr, nullptr, nullptr),
                "cuStreamGetCaptureInfo", "asking whether a stream is captured"));
  if (capturing == CaptureActive)
    return WorkOrder{reinterpret_cast<uint64_t>(stream), capture};
  FP4_TRY(check(driver_.StreamGetId(stream, &number), "cuStreamGetId", "identifying a stream"));
  return WorkOrder{number, 0};
}

Status CudaDevice::copyToDevice(DevicePtr dst, std::span<const std::byte> src) {
  if (src.empty())
    return {};
  Entered entered(*this);
  FP4_TRY(entered.status);
  return check(driver_.MemcpyHtoD(dst, src.data(), src.size()), "cuMemcpyHtoD",
               fmt::format("copying {} bytes to the device at {:#x}", src.size(), dst));
}

Status CudaDevice::copyToHost(std::span<std::byte> dst, DevicePtr src) {
  if (dst.empty())
    return {};
  Entered entered(*this);
  FP4_TRY(entered.status);
  return check(driver_.MemcpyDtoH(dst.data(), src, dst.size()), "cuMemcpyDtoH",
               fmt::format("copying {} bytes from the device at {:#x}", dst.size(), src));
}

Status CudaDevice::copy2D(const Copy2D &copy) {
  if (!copy.width || !copy.height)
    return {};
  Entered entered(*this);
  FP4_TRY(entered.status);
  Memcpy2D raw;
  raw.srcDevice = copy.src;
  raw.srcPitch = copy.srcPitch;
  raw.dstDevice = copy.dst;
  raw.dstPitch = copy.dstPitch;
  raw.width = copy.width;
  raw.height = copy.height;
  // Only the asynchronous call has a stream; only the synchronous one takes every pitch.
  Stream stream = streamOf(copy.stream);
  return check(stream ? driver_.Memcpy2DAsync(&raw, stream) : driver_.Memcpy2DUnaligned(&raw),
               "cuMemcpy2D",
               fmt::format("copying {} rows of {} bytes (pitch {} to {})", copy.height, copy.width,
                           copy.srcPitch, copy.dstPitch));
}

Status CudaDevice::memset(DevicePtr dst, uint8_t value, uint64_t bytes, StreamHandle stream) {
  if (!bytes)
    return {};
  Entered entered(*this);
  FP4_TRY(entered.status);
  return check(driver_.MemsetD8Async(dst, value, bytes, streamOf(stream)), "cuMemsetD8Async",
               fmt::format("setting {} bytes at {:#x}", bytes, dst));
}

//===----------------------------------------------------------------------===//
// Modules and kernels
//===----------------------------------------------------------------------===//

Expected<ModuleId> CudaDevice::loadModule(const fp4rt_module &module) {
  Entered entered(*this);
  FP4_TRY(entered.status);
  TargetMatch match = matchTarget(module.target, major_, minor_);
  LoadedModule loaded{nullptr, module.name, false, {}};
  if (module.cubin && match.cubin) {
    FP4_TRY(check(driver_.ModuleLoadDataEx(&loaded.handle, module.cubin, 0, nullptr, nullptr),
                  "cuModuleLoadDataEx", fmt::format("loading the cubin of '{}'", module.name)));
  } else if (module.ptx_size && match.ptx) {
    FP4_ASSIGN(auto handle, loadPtx(module));
    loaded.handle = handle;
    loaded.fromPtx = true;
  } else {
    return makeError(ErrorKind::Device,
                     fmt::format("module '{}' is compiled for {}, which '{}' ({}) cannot execute",
                                 module.name, module.target, name_, target()),
                     fmt::format("run with --device sim, or compile with --target={}", target()));
  }
  std::scoped_lock lock(mutex_);
  modules_.push_back(std::move(loaded));
  return static_cast<ModuleId>(modules_.size() - 1);
}

Status CudaDevice::unloadModule(ModuleId id) {
  Entered entered(*this);
  FP4_TRY(entered.status);
  std::scoped_lock lock(mutex_);
  if (id >= modules_.size() || !modules_[id].handle)
    return makeError(ErrorKind::Internal, fmt::format("no module has the number {}", id));
  LoadedModule unloaded = std::exchange(modules_[id], {});
  return check(driver_.ModuleUnload(unloaded.handle), "cuModuleUnload",
               fmt::format("unloading '{}'", unloaded.name));
}

Expected<Module> CudaDevice::loadPtx(const fp4rt_module &module) const {
  std::string text(module.ptx, module.ptx_size); // the driver wants a terminating NUL
  std::string log(16384, '\0');
  JitOption options[] = {ErrorLogBuffer, ErrorLogBufferBytes};
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size())};
  Module handle = nullptr;
  Result result = driver_.ModuleLoadDataEx(&handle, text.c_str(), 2, options, values);
  if (result == Success)
    return handle;
  Status status =
      check(result, "cuModuleLoadDataEx", fmt::format("compiling the PTX of '{}'", module.name));
  Error error = status.error();
  error.kind = ErrorKind::Compile;
  log.resize(log.find('\0') == std::string::npos ? log.size() : log.find('\0'));
  if (!log.empty())
    error.message += "\n" + log;
  return tl::unexpected<Error>(std::move(error));
}

Expected<CudaDevice::Kernel *> CudaDevice::findKernel(ModuleId id, std::string_view kernel) {
  std::scoped_lock lock(mutex_);
  if (id >= modules_.size() || !modules_[id].handle)
    return makeError(ErrorKind::Internal, fmt::format("no module has the number {}", id));
  LoadedModule &module = modules_[id];
  if (auto it = module.kernels.find(kernel); it != module.kernels.end())
    return &it->second;
  FP4_ASSIGN(auto described, describeKernel(module, std::string(kernel)));
  return &module.kernels.emplace(kernel, std::move(described)).first->second;
}

Expected<CudaDevice::Kernel> CudaDevice::describeKernel(const LoadedModule &module,
                                                        const std::string &name) const {
  Kernel kernel;
  Result found = driver_.ModuleGetFunction(&kernel.function, module.handle, name.c_str());
  if (found == ErrorNotFound)
    return makeError(ErrorKind::Device,
                     fmt::format("module '{}' has no kernel named '{}'", module.name, name));
  FP4_TRY(check(found, "cuModuleGetFunction", "looking up kernel '" + name + "'"));
  int registers = 0, shared = 0, local = 0, cluster[3] = {};
  const std::pair<FunctionAttribute, int *> attributes[] = {{Registers, &registers},
                                                            {StaticSharedBytes, &shared},
                                                            {LocalBytes, &local},
                                                            {RequiredClusterWidth, &cluster[0]},
                                                            {RequiredClusterHeight, &cluster[1]},
                                                            {RequiredClusterDepth, &cluster[2]}};
  for (auto [attribute, value] : attributes)
    FP4_TRY(check(driver_.FuncGetAttribute(value, attribute, kernel.function), "cuFuncGetAttribute",
                  "reading the resources of '" + name + "'"));
  kernel.info = {name, uint32_t(registers), uint32_t(shared), uint32_t(local), module.fromPtx, {}};
  kernel.requiredCluster = {uint32_t(cluster[0]), uint32_t(cluster[1]), uint32_t(cluster[2])};
  size_t offset = 0, size = 0;
  while (driver_.FuncGetParamInfo(kernel.function, kernel.parameters, &offset, &size) == Success) {
    ++kernel.parameters;
    kernel.info.parameterBytes.push_back(size);
  }
  return kernel;
}

Expected<KernelInfo> CudaDevice::kernelInfo(ModuleId module, std::string_view kernel) {
  Entered entered(*this);
  FP4_TRY(entered.status);
  FP4_ASSIGN(auto found, findKernel(module, kernel));
  return found->info;
}

//===----------------------------------------------------------------------===//
// Launch
//===----------------------------------------------------------------------===//

Status CudaDevice::checkLaunch(const Kernel &kernel, const LaunchShape &shape,
                               size_t numParams) const {
  if (numParams != kernel.parameters)
    return makeError(ErrorKind::Device,
                     fmt::format("kernel '{}' expects {} parameters, but got {}", kernel.info.name,
                                 kernel.parameters, numParams));
  uint64_t shared = uint64_t(kernel.info.staticSharedBytes) + shape.dynamicSharedBytes;
  if (shared > maxSharedBytes_)
    return makeError(
        ErrorKind::Device,
        fmt::format("kernel '{}' needs {} bytes of shared memory per CTA, but {} has {}",
                    kernel.info.name, shared, selector(), maxSharedBytes_));
  return {};
}

/// Allows dynamic shared memory of more than 48 KiB for a CTA, once per kernel.
Status CudaDevice::allowDynamicShared(Kernel &kernel, uint32_t bytes) {
  if (!bytes)
    return {};
  std::scoped_lock lock(mutex_);
  if (bytes <= kernel.allowedDynamicBytes)
    return {};
  FP4_TRY(check(driver_.FuncSetAttribute(kernel.function, MaxDynamicSharedBytes, int(bytes)),
                "cuFuncSetAttribute", fmt::format("launching '{}'", kernel.info.name)));
  kernel.allowedDynamicBytes = bytes;
  return {};
}

/// Puts the attributes of a launch into `attributes` and returns their number. A kernel may state
/// its cluster itself.
static unsigned attributesOf(const LaunchShape &shape, bool saysCluster,
                             std::array<LaunchAttribute, 4> &attributes) {
  unsigned count = 0;
  auto addCluster = [&](LaunchAttributeId id, const Dim3 &size) {
    attributes[count].id = id;
    attributes[count++].value.cluster = {size.x, size.y, size.z};
  };
  auto addFlag = [&](LaunchAttributeId id) {
    attributes[count].id = id;
    attributes[count++].value.allowed = 1;
  };
  if (shape.cluster.x != 0 && !saysCluster)
    addCluster(ClusterDimension, shape.cluster);
  if (shape.preferredCluster.x != 0)
    addCluster(PreferredClusterDimension, shape.preferredCluster);
  if (shape.dependent)
    addFlag(ProgrammaticStreamSerialization);
  if (shape.cooperative && shape.grid.count() > 1) // one CTA waits for nobody: 0.6 us less
    addFlag(Cooperative);
  return count;
}

Status CudaDevice::launch(ModuleId module, std::string_view name, const LaunchShape &shape,
                          std::span<void *const> params) {
  Entered entered(*this);
  FP4_TRY(entered.status);
  FP4_ASSIGN(auto found, findKernel(module, name));
  Kernel &kernel = *found;
  FP4_TRY(checkLaunch(kernel, shape, params.size()));
  FP4_TRY(allowDynamicShared(kernel, shape.dynamicSharedBytes));
  std::array<LaunchAttribute, 4> attributes;
  const unsigned numAttributes = attributesOf(shape, kernel.requiredCluster.x != 0, attributes);
  if (std::max({shape.cluster.count(), shape.preferredCluster.count(),
                kernel.requiredCluster.count()}) > 8)
    FP4_TRY(check(driver_.FuncSetAttribute(kernel.function, NonPortableClusterAllowed, 1),
                  "cuFuncSetAttribute", fmt::format("launching '{}'", name)));
  LaunchConfig config{shape.grid.x,
                      shape.grid.y,
                      shape.grid.z,
                      shape.block.x,
                      shape.block.y,
                      shape.block.z,
                      shape.dynamicSharedBytes,
                      streamOf(shape.stream),
                      attributes.data(),
                      numAttributes};
  const Result launched =
      driver_.LaunchKernelEx(&config, kernel.function, const_cast<void **>(params.data()), nullptr);
  if (launched == Success)
    return {};
  return check(launched, "cuLaunchKernelEx", fmt::format("launching '{}'", name));
}

//===----------------------------------------------------------------------===//
// Order and time
//===----------------------------------------------------------------------===//

Expected<StreamHandle> CudaDevice::createStream() {
  Entered entered(*this);
  FP4_TRY(entered.status);
  Stream stream = nullptr;
  constexpr unsigned nonBlocking = 1; // CU_STREAM_NON_BLOCKING: not in order with stream 0
  FP4_TRY(check(driver_.StreamCreate(&stream, nonBlocking), "cuStreamCreate", "creating a stream"));
  return reinterpret_cast<StreamHandle>(stream);
}

Status CudaDevice::destroyStream(StreamHandle stream) {
  Entered entered(*this);
  FP4_TRY(entered.status);
  return check(driver_.StreamDestroy(reinterpret_cast<Stream>(stream)), "cuStreamDestroy",
               "destroying a stream");
}

Status CudaDevice::synchronize() {
  Entered entered(*this);
  FP4_TRY(entered.status);
  return check(driver_.CtxSynchronize(), "cuCtxSynchronize", "running the kernels");
}

Status CudaDevice::synchronizeStream(StreamHandle stream) {
  Entered entered(*this);
  FP4_TRY(entered.status);
  return check(driver_.StreamSynchronize(streamOf(stream)), "cuStreamSynchronize",
               "running the kernels");
}

Expected<uint32_t> CudaDevice::recordEvent(StreamHandle stream) {
  Entered entered(*this);
  FP4_TRY(entered.status);
  Event event = nullptr;
  FP4_TRY(check(driver_.EventCreate(&event, 0), "cuEventCreate", "creating a timing event"));
  Status recorded = check(driver_.EventRecord(event, reinterpret_cast<Stream>(stream)),
                          "cuEventRecord", "recording a timing event");
  std::scoped_lock lock(mutex_);
  events_.push_back(event);
  if (!recorded)
    return tl::unexpected<Error>(recorded.error());
  return static_cast<uint32_t>(events_.size() - 1);
}

Expected<std::pair<Event, Event>> CudaDevice::eventPair(uint32_t first, uint32_t second) {
  std::scoped_lock lock(mutex_);
  if (first >= events_.size() || second >= events_.size())
    return makeError(ErrorKind::Internal, fmt::format("no event pair {}, {}", first, second));
  return std::pair(events_[first], events_[second]);
}

Expected<double> CudaDevice::elapsedMs(uint32_t first, uint32_t second) {
  Entered entered(*this);
  FP4_TRY(entered.status);
  FP4_ASSIGN(auto events, eventPair(first, second));
  FP4_TRY(
      check(driver_.EventSynchronize(events.second), "cuEventSynchronize", "running the kernels"));
  float milliseconds = 0;
  FP4_TRY(check(driver_.EventElapsedTime(&milliseconds, events.first, events.second),
                "cuEventElapsedTime", "reading a timing event"));
  return milliseconds;
}

//===----------------------------------------------------------------------===//
// Benchmarks
//===----------------------------------------------------------------------===//

std::string CudaDevice::driver() const {
  return fmt::format("CUDA {}.{}", driver_.version / 1000, driver_.version % 1000 / 10);
}

std::optional<Condition> CudaDevice::condition() {
  char bus[64] = {};
  if (driver_.DeviceGetPCIBusId(bus, sizeof(bus), device_) != Success)
    return std::nullopt;
  return monitor_.read(bus);
}

Status CudaDevice::copyOnDevice(DevicePtr dst, DevicePtr src, uint64_t bytes) {
  if (!bytes)
    return {};
  Entered entered(*this);
  FP4_TRY(entered.status);
  return check(driver_.MemcpyDtoDAsync(dst, src, bytes, stream_), "cuMemcpyDtoDAsync",
               fmt::format("copying {} bytes from {:#x} to {:#x}", bytes, src, dst));
}

/// Captures work on a stream. The default stream cannot be captured: everything goes to a stream of
/// the device's own meanwhile.
Expected<cuda::Graph> CudaDevice::captureStream(const std::function<Status()> &work) {
  const char *doing = "capturing a graph";
  FP4_TRY(check(driver_.StreamCreate(&stream_, 0), "cuStreamCreate", doing));
  Graph graph = nullptr;
  Status status =
      check(driver_.StreamBeginCapture(stream_, CaptureThreadLocal), "cuStreamBeginCapture", doing);
  if (status) {
    status = work();
    Result ended = driver_.StreamEndCapture(stream_, &graph);
    if (status)
      status = check(ended, "cuStreamEndCapture", doing);
  }
  driver_.StreamDestroy(std::exchange(stream_, nullptr));
  if (status)
    return graph;
  if (graph)
    driver_.GraphDestroy(graph);
  return tl::unexpected<Error>(status.error());
}

Expected<CapturedGraph> CudaDevice::capture(const std::function<Status()> &work) {
  Entered entered(*this);
  FP4_TRY(entered.status);
  FP4_ASSIGN(auto graph, captureStream(work));
  CapturedGraph captured{uint32_t(graphs_.size()), 0};
  GraphExec executable = nullptr;
  Status status = check(driver_.GraphGetNodes(graph, nullptr, &captured.nodes), "cuGraphGetNodes",
                        "counting the nodes of a graph");
  if (status)
    status = check(driver_.GraphInstantiate(&executable, graph, 0), "cuGraphInstantiateWithFlags",
                   "instantiating a graph");
  driver_.GraphDestroy(graph);
  if (!status)
    return tl::unexpected<Error>(status.error());
  graphs_.push_back(executable);
  return captured;
}

Status CudaDevice::replay(uint32_t graph) {
  if (graph >= graphs_.size())
    return makeError(ErrorKind::Internal, fmt::format("no graph has the number {}", graph));
  Entered entered(*this);
  FP4_TRY(entered.status);
  return check(driver_.GraphLaunch(graphs_[graph], nullptr), "cuGraphLaunch", "replaying a graph");
}

} // namespace fp4::rt
