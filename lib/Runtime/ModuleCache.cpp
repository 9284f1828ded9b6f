//===- ModuleCache.cpp - What the calls of one program share on a device --===//

#include "fp4/Runtime/ModuleCache.h"

namespace fp4::rt {

ModuleCache::~ModuleCache() {
  if (modules_.empty() && constants_.empty())
    return;
  // Errors here have nobody left to hear them; sessions have kept the first one.
  (void)device_.synchronize();
  for (auto [module, id] : modules_)
    (void)device_.unloadModule(id);
  for (auto [bytes, address] : constants_)
    (void)device_.free(address);
}

Expected<ModuleId> ModuleCache::load(const fp4rt_module &module) {
  std::scoped_lock lock(mutex_);
  if (auto it = modules_.find(&module); it != modules_.end())
    return it->second;
  FP4_ASSIGN(auto loaded, device_.loadModule(module));
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

uint64_t ModuleCache::constantBytes() const {
  std::scoped_lock lock(mutex_);
  return constantBytes_;
}

} // namespace fp4::rt
