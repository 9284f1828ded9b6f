//===- Session.cpp - The state behind the C ABI ---------------------------===//

#include "fp4/Runtime/Session.h"

#include <fmt/format.h>

namespace fp4::rt {
namespace {
thread_local Session *currentSession = nullptr;

DevicePtr toDevice(const void *pointer) { return reinterpret_cast<DevicePtr>(pointer); }
} // namespace

Session::Scope::Scope(Session &session) : previous_(currentSession) { currentSession = &session; }
Session::Scope::~Scope() { currentSession = previous_; }
Session *Session::current() { return currentSession; }

Session::~Session() {
  // Errors while freeing have nobody left to hear them; the first error is already kept.
  for (auto [address, bytes] : allocations_)
    (void)device_.free(address);
  for (auto [bytes, address] : constants_)
    (void)device_.free(address);
}

bool Session::check(const Status &status) {
  if (!status && status_)
    status_ = status;
  return status.has_value();
}

void Session::fail(Error error) { check(tl::unexpected<Error>(std::move(error))); }

Status Session::finish() {
  if (!failed())
    check(withLaunches(device_.synchronize()));
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

void *Session::allocate(uint64_t bytes) {
  if (failed())
    return nullptr;
  auto address = device_.allocate(bytes);
  if (!address) {
    fail(address.error());
    return nullptr;
  }
  allocations_.emplace(*address, bytes);
  liveBytes_ += bytes;
  return reinterpret_cast<void *>(*address);
}

void Session::free(void *pointer) {
  if (failed() || !pointer)
    return; // after an error the destructor frees
  auto it = allocations_.find(toDevice(pointer));
  if (it == allocations_.end())
    return fail({ErrorKind::Device,
                 fmt::format("cannot free {}: it is not the start of a live allocation", pointer),
                 "free what fp4rt_alloc returned, once"});
  if (recording_)
    return;
  liveBytes_ -= it->second;
  allocations_.erase(it);
  check(device_.free(toDevice(pointer)));
}

void *Session::constant(const void *bytes, uint64_t size) {
  if (failed())
    return nullptr;
  if (auto it = constants_.find(bytes); it != constants_.end())
    return reinterpret_cast<void *>(it->second);
  auto address = device_.allocate(size);
  if (!address) {
    fail(address.error());
    return nullptr;
  }
  constants_.emplace(bytes, *address);
  liveBytes_ += size;
  check(device_.copyToDevice(*address, {static_cast<const std::byte *>(bytes), size}));
  return failed() ? nullptr : reinterpret_cast<void *>(*address);
}

void Session::memset(void *pointer, uint8_t value, uint64_t bytes) {
  if (failed() || !check(device_.memset(toDevice(pointer), value, bytes)) || !recording_)
    return;
  recorded_.push_back(
      {[=](Device &device) { return device.memset(toDevice(pointer), value, bytes); }, {}});
}

void Session::copy2D(const Copy2D &copy) {
  if (failed())
    return;
  if (copy.height > 1 && (copy.srcPitch < copy.width || copy.dstPitch < copy.width))
    return fail({ErrorKind::Device,
                 fmt::format("a 2-D copy of {}-byte rows must have pitches of at least that, but "
                             "got source pitch {} and destination pitch {}",
                             copy.width, copy.srcPitch, copy.dstPitch),
                 ""});
  if (check(device_.copy2D(copy)) && recording_)
    recorded_.push_back({[copy](Device &device) { return device.copy2D(copy); }, {}});
}

void Session::encodeTensorMap(void *out128, const TensorMapRequest &request) {
  if (failed())
    return;
  std::span<std::byte, 128> out(static_cast<std::byte *>(out128), 128);
  check(device_.encodeTensorMap(out, request));
}

int32_t Session::multiprocessorCount() { return failed() ? 1 : device_.multiprocessorCount(); }

Expected<ModuleId> Session::load(const fp4rt_module &module) {
  if (auto it = modules_.find(&module); it != modules_.end())
    return it->second;
  auto loaded = device_.loadModule(module);
  if (loaded)
    modules_.emplace(&module, *loaded);
  return loaded;
}

void Session::launch(const fp4rt_module &module, const char *kernel, const LaunchShape &shape,
                     std::span<void *const> params) {
  if (!failed() && shape.grid.count() != 0)
    check(tryLaunch(module, kernel, shape, params));
}

Status Session::tryLaunch(const fp4rt_module &module, const char *kernel, const LaunchShape &shape,
                          std::span<void *const> params) {
  FP4_ASSIGN(auto id, load(module));
  FP4_ASSIGN(auto info, device_.kernelInfo(id, kernel));
  FP4_ASSIGN(auto begin, device_.recordEvent());
  FP4_TRY(device_.launch(id, kernel, shape, params));
  FP4_ASSIGN(auto end, device_.recordEvent());
  launches_.push_back({module.name, kernel, shape, std::move(info), 0, device_.lastLaunch()});
  events_.push_back({begin, end});
  if (recording_)
    recordLaunch(id, shape, params);
  return {};
}

/// Parameters are copied: those of the caller live until its launch returns.
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
