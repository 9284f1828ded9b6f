//===- MemoryModel.h - Words of the PTX memory model ----------------------===//
#pragma once

#include <cstdint>

namespace fp4::sim {

enum class Space : uint8_t { Generic, Global, SharedCta, SharedCluster, Local, Param, Const, Tmem };
enum class Proxy : uint8_t { Generic, Async, Tensormap, Tcgen05, Alias };
enum class Scope : uint8_t { None, Cta, Cluster, Gpu, Sys };
enum class MemOrder : uint8_t { Weak, Relaxed, Acquire, Release, AcqRel, Volatile, SeqCst, Mmio };
enum class AccessKind : uint8_t { Read, Write, Atomic };

/// Bytes of shared memory, by shared::cluster address.
struct SharedRange {
  uint32_t address = 0, bytes = 0;
};

} // namespace fp4::sim
