//===- ModuleCache.h - State shared by a program's calls ------------------===//
//
// Modules and constants are brought to a device once and stay there while the program is in use,
// and so do the counters of its kernels, which are zero between them. A program that is called
// again and again has a cache that outlives its sessions; a session without one makes its own. A
// cache may be used by several sessions on several threads.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Runtime/Device.h"

#include <map>
#include <mutex>

namespace fp4::rt {

class ModuleCache {
public:
  /// The code that a device gets instead of a program's own. The code lives as long as the cache.
  using Exchange = std::function<fp4rt_module(const fp4rt_module &)>;

  /// `device` must outlive the cache. Without an `exchange` it gets each module as it is.
  explicit ModuleCache(Device &device, Exchange exchange = {})
      : device_(device), exchange_(std::move(exchange)) {}
  /// Waits for the device, then unloads the modules and frees the constants and the counters.
  ~ModuleCache();
  ModuleCache(const ModuleCache &) = delete;
  ModuleCache &operator=(const ModuleCache &) = delete;

  /// The module at this host address, loaded at its first use.
  Expected<ModuleId> load(const fp4rt_module &module);
  /// Device memory with the bytes at this host address, copied at their first use.
  Expected<DevicePtr> constant(std::span<const std::byte> bytes);
  /// Bytes of all constants.
  uint64_t constantBytes() const;
  /// Zeroed device memory of at least `bytes` for kernels that leave it zero, always the same for
  /// work of one order until more is wanted.
  Expected<DevicePtr> counters(WorkOrder order, uint64_t bytes);
  /// The counters of this order are not zero any more: the next call gets others.
  void dropCounters(WorkOrder order);

private:
  Device &device_;
  const Exchange exchange_;
  mutable std::mutex mutex_;
  std::map<const fp4rt_module *, ModuleId> modules_;
  std::map<const std::byte *, DevicePtr> constants_;
  uint64_t constantBytes_ = 0;
  struct Counters {
    DevicePtr address;
    uint64_t bytes;
  };
  std::map<WorkOrder, Counters> counters_;
  /// All that were allocated: kernels of a captured graph may have those that were too small later.
  std::vector<DevicePtr> counterMemory_;
};

} // namespace fp4::rt
