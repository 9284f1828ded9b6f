//===- Session.cpp - The state behind the C ABI ---------------------------===//

#include "fp4/Runtime/Session.h"

#include <fmt/format.h>

#include <algorithm>

namespace fp4::rt {
namespace {
thread_local Session *currentSession = nullptr;

DevicePtr toDevice(const void *pointer) { return reinterpret_cast<DevicePtr>(pointer); }
} // namespace

Session::Scope::Scope(Session &session) : previous_(currentSession) { currentSession = &session; }
Session::Scope::~Scope() { currentSession = previous_; }
Session *Session::current() { return currentSession; }

Session::Session(Device &device, SessionOptions options)
    : device_(device), options_(std::move(options)),
      ownCache_(options_.cache ? nullptr : std::make_unique<ModuleCache>(device)),
      cache_(options_.cache ? *options_.cache : *ownCache_) {}

Session::~Session() {
  // A kernel that did not end has left its counters as they were.
  if (failed() && countersOrder_)
    cache_.dropCounters(*countersOrder_);
  // Errors while freeing have no caller left to hear them; the first error is already kept.
  for (auto [address, bytes] : allocations_)
    (void)release(address);
}

bool Session::check(const Status &status) {
  if (!status && status_)
    status_ = status;
  return status.has_value();
}

void Session::fail(Error error) { check(tl::unexpected<Error>(std::move(error))); }

Status Session::finish() {
  if (!failed())
    check(withLaunches(options_.stream ? device_.synchronizeStream(options_.stream)
                                       : device_.synchronize()));
  if (!failed())
    check(device_.groupReports().take(&cache_));
  if (!failed())
    check(resolveTimes());
  return status_;
}

Status Session::withLaunches(Status status) const {
  if (status || launches_.empty())
    return status;
  std::string names;
  for (const LaunchRecord &launch : launches_)
    names += (names.empty() ? "" : ", ") + launch.module;
  status.error().message += "; launched were " + names;
  return status;
}

Status Session::resolveTimes() {
  for (size_t i = 0; i < events_.size(); ++i) {
    FP4_ASSIGN(auto time, device_.elapsedMs(events_[i].begin, events_[i].end));
    launches_[i].milliseconds = time;
  }
  return {};
}

Expected<DevicePtr> Session::newMemory(uint64_t bytes) {
  if (options_.allocator)
    return options_.allocator->allocate(bytes, options_.stream);
  return options_.stream ? device_.allocateOn(options_.stream, bytes) : device_.allocate(bytes);
}

Status Session::release(DevicePtr address) {
  if (options_.allocator)
    return options_.allocator->free(address, options_.stream);
  return options_.stream ? device_.freeOn(options_.stream, address) : device_.free(address);
}

void *Session::allocate(uint64_t bytes) {
  if (failed())
    return nullptr;
  auto address = newMemory(bytes);
  if (!address) {
    fail(address.error());
    return nullptr;
  }
  allocations_.emplace(*address, bytes);
  liveBytes_ += bytes;
  return reinterpret_cast<void *>(*address);
}

/// Checks that a provided buffer fits. The last row of a strided result has no gap behind it.
Status Session::tryProvided(uint32_t index, uint64_t bytes) const {
  const ResultBuffer &buffer = options_.results[index];
  if (auto gap = gaps_.find(index); gap != gaps_.end())
    bytes -= std::min(bytes, gap->second);
  if (buffer.bytes < bytes)
    return makeError(ErrorKind::Usage,
                     fmt::format("the buffer of result {} must have at least {} bytes, but got {}",
                                 index, bytes, buffer.bytes),
                     "the manifest has the type of the result, and docs/guides/libraries.md "
                     "its buffer");
  if (buffer.address % 16)
    return makeError(ErrorKind::Usage,
                     fmt::format("the buffer of result {} must start at a multiple of 16 bytes, "
                                 "but got {:#x}",
                                 index, buffer.address),
                     "TMA and vector stores write it");
  return {};
}

void *Session::allocateResult(uint32_t index, uint64_t bytes) {
  if (failed())
    return nullptr;
  if (index < destinations_.size() && destinations_[index].bytes == bytes && bytes)
    return reinterpret_cast<void *>(destinations_[index].address);
  if (index < options_.results.size() && options_.results[index].address) {
    check(tryProvided(index, bytes));
    return failed() ? nullptr : reinterpret_cast<void *>(options_.results[index].address);
  }
  return allocate(bytes);
}

uint64_t Session::resultPitch(uint32_t index, uint64_t bytes) {
  constexpr uint64_t unit = 16;
  uint64_t pitch = (bytes + unit - 1) / unit * unit;
  bool isProvided = destinations_.empty() && index < options_.results.size();
  if (uint64_t given = isProvided ? options_.results[index].pitch : 0) {
    if (given < bytes || given % unit || given > (uint64_t(1) << 40) - unit)
      fail({ErrorKind::Usage,
            fmt::format("the pitch of result {} must be a multiple of 16 from {} bytes on, but got "
                        "{}",
                        index, bytes, given),
            "rows must not overlap, and TMA writes them where multiples of 16 bytes begin"});
    else
      pitch = given;
  }
  gaps_[index] = pitch - bytes;
  return pitch;
}

void Session::handOver(void *pointer) {
  auto it = allocations_.find(toDevice(pointer));
  if (it == allocations_.end())
    return;
  liveBytes_ -= it->second;
  allocations_.erase(it);
}

void Session::free(void *pointer) {
  if (failed() || !pointer)
    return; // after an error the destructor frees
  if (!allocations_.contains(toDevice(pointer)))
    return fail({ErrorKind::Device,
                 fmt::format("cannot free {}: it is not the start of a live allocation", pointer),
                 "free what fp4rt_alloc returned, once"});
  if (recording_)
    return;
  handOver(pointer);
  check(release(toDevice(pointer)));
}

void *Session::constant(const void *bytes, uint64_t size) {
  if (failed())
    return nullptr;
  auto address = cache_.constant({static_cast<const std::byte *>(bytes), size});
  if (!address)
    fail(address.error());
  return address ? reinterpret_cast<void *>(*address) : nullptr;
}

void *Session::counters(uint64_t bytes) {
  if (failed())
    return nullptr;
  auto order = device_.orderOf(options_.stream);
  if (order)
    countersOrder_ = *order;
  auto address = order.and_then([&](WorkOrder of) { return cache_.counters(of, bytes); });
  if (!address)
    fail(address.error());
  return address ? reinterpret_cast<void *>(*address) : nullptr;
}

void *Session::groupReport(const char *what) {
  if (failed())
    return nullptr;
  auto address = device_.groupReports().place(&cache_, what);
  if (!address)
    fail(address.error());
  return address ? reinterpret_cast<void *>(*address) : nullptr;
}

void Session::memset(void *pointer, uint8_t value, uint64_t bytes) {
  if (failed())
    return;
  auto issue = [=, stream = options_.stream](Device &device) {
    return device.memset(toDevice(pointer), value, bytes, stream);
  };
  if (check(issue(device_)) && recording_)
    recorded_.push_back({issue, {}});
}

void Session::copy2D(Copy2D copy) {
  if (failed())
    return;
  if (copy.height > 1 && (copy.srcPitch < copy.width || copy.dstPitch < copy.width))
    return fail({ErrorKind::Device,
                 fmt::format("a 2-D copy of {}-byte rows must have pitches of at least that, but "
                             "got source pitch {} and destination pitch {}",
                             copy.width, copy.srcPitch, copy.dstPitch),
                 ""});
  copy.stream = options_.stream;
  if (check(device_.copy2D(copy)) && recording_)
    recorded_.push_back({[copy](Device &device) { return device.copy2D(copy); }, {}});
}

/// Encodes a map without elements, whose address may be null and which the driver refuses. A kernel
/// prefetches the map and loads nothing through it, so it gets one of a single element.
Status Session::encodeEmptyMap(std::span<std::byte, 128> out, TensorMapRequest request) const {
  constexpr uint64_t unit = 16;
  const std::vector<uint64_t> dims(request.dims.size(), 1);
  const std::vector<uint64_t> strides(request.strides.size(), unit);
  request.dims = dims;
  request.strides = strides;
  request.base = request.base ? request.base : unit;
  return device_.encodeTensorMap(out, request);
}

void Session::encodeTensorMap(void *out128, const TensorMapRequest &request) {
  if (failed())
    return;
  std::span<std::byte, 128> out(static_cast<std::byte *>(out128), 128);
  if (std::ranges::count(request.dims, 0u) == 0)
    check(device_.encodeTensorMap(out, request));
  else
    check(encodeEmptyMap(out, request));
}

int32_t Session::smCount() { return failed() ? 1 : device_.smCount(); }

void Session::launch(const fp4rt_module &module, const char *kernel, LaunchShape shape,
                     std::span<void *const> params) {
  if (failed() || shape.grid.count() == 0)
    return;
  shape.stream = options_.stream;
  check(tryLaunch(module, kernel, shape, params));
}

Status Session::tryLaunch(const fp4rt_module &module, const char *kernel, const LaunchShape &shape,
                          std::span<void *const> params) {
  FP4_ASSIGN(auto id, cache_.load(module));
  if (!options_.measure)
    return device_.launch(id, kernel, shape, params);
  FP4_ASSIGN(auto info, device_.kernelInfo(id, kernel));
  FP4_ASSIGN(auto begin, device_.recordEvent(options_.stream));
  FP4_TRY(device_.launch(id, kernel, shape, params));
  FP4_ASSIGN(auto end, device_.recordEvent(options_.stream));
  launches_.push_back({module.name, kernel, shape, std::move(info), 0, device_.lastLaunch()});
  events_.push_back({begin, end});
  if (recording_)
    recordLaunch(id, shape, params);
  return {};
}

/// Records a launch. Parameters are copied: those of the caller live until its launch returns.
void Session::recordLaunch(ModuleId module, const LaunchShape &shape,
                           std::span<void *const> params) {
  const KernelInfo &info = launches_.back().info;
  std::vector<std::vector<std::byte>> values;
  for (size_t i = 0; i < params.size(); ++i) {
    auto *bytes = static_cast<const std::byte *>(params[i]);
    values.emplace_back(bytes, bytes + info.parameterBytes[i]);
  }
  auto issue = [=, name = info.name, values = std::move(values)](Device &device) mutable {
    std::vector<void *> pointers;
    for (std::vector<std::byte> &value : values)
      pointers.push_back(value.data());
    return device.launch(module, name, shape, pointers);
  };
  recorded_.push_back({std::move(issue), launches_.size() - 1});
}

} // namespace fp4::rt
