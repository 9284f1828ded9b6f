//===- ModuleCache.cpp - Data that the calls of a program share -----------===//

#include "fp4/Runtime/ModuleCache.h"

#include <bit>

namespace fp4::rt {

ModuleCache::~ModuleCache() {
  if (modules_.empty() && constants_.empty() && counterMemory_.empty()) {
    device_.groupReports().drop(this); // no kernel has run
    return;
  }
  // Errors here have no caller left to hear them; sessions have kept the first one.
  (void)device_.synchronize();
  device_.groupReports().drop(this);
  for (auto [module, id] : modules_)
    (void)device_.unloadModule(id);
  for (auto [bytes, address] : constants_)
    (void)device_.free(address);
  for (DevicePtr address : counterMemory_)
    (void)device_.free(address);
}

Expected<ModuleId> ModuleCache::load(const fp4rt_module &module) {
  std::scoped_lock lock(mutex_);
  if (auto it = modules_.find(&module); it != modules_.end())
    return it->second;
  FP4_ASSIGN(auto loaded, device_.loadModule(exchange_ ? exchange_(module) : module));
  modules_.emplace(&module, loaded);
  return loaded;
}

Expected<DevicePtr> ModuleCache::constant(std::span<const std::byte> bytes) {
  std::scoped_lock lock(mutex_);
  if (auto it = constants_.find(bytes.data()); it != constants_.end())
    return it->second;
  FP4_ASSIGN(auto address, device_.allocate(bytes.size()));
  constants_.emplace(bytes.data(), address); // freed with the cache even if the copy fails
  constantBytes_ += bytes.size();
  FP4_TRY(device_.copyToDevice(address, bytes));
  return address;
}

Expected<DevicePtr> ModuleCache::counters(WorkOrder order, uint64_t bytes) {
  constexpr uint64_t kLeast = 4096; // few programs ask for more
  std::scoped_lock lock(mutex_);
  if (auto it = counters_.find(order); it != counters_.end() && it->second.bytes >= bytes)
    return it->second.address;
  const uint64_t wanted = std::bit_ceil(std::max(bytes, kLeast));
  FP4_ASSIGN(auto address, device_.allocateZeroed(wanted));
  counterMemory_.push_back(address);
  counters_[order] = {address, wanted};
  return address;
}

void ModuleCache::dropCounters(WorkOrder order) {
  std::scoped_lock lock(mutex_);
  counters_.erase(order);
}

uint64_t ModuleCache::constantBytes() const {
  std::scoped_lock lock(mutex_);
  return constantBytes_;
}

} // namespace fp4::rt
