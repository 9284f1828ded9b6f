//===- MemoryEvent.h - An access to memory --------------------------------===//
#pragma once

#include "fp4/Sim/Actor.h"
#include "fp4/Sim/MemoryModel.h"

namespace fp4::sim {

/// `laneMask` says which entries of `addresses` hold; each access is `bytes` long. Engines use lane
/// 0 for one contiguous run. Shared addresses are shared::cluster addresses (rank << 24 | offset);
/// TMEM addresses are TMEM lane << 16 | column with `ctaRank` in `tmemRank`, 4 bytes a cell. The
/// tensor memory that a ticket writes is told when it is issued, all else when data moves.
struct MemoryEvent {
  Actor actor;
  CodePoint at;
  AccessKind kind = AccessKind::Read;
  Space space = Space::Global;
  Proxy proxy = Proxy::Generic;
  MemOrder order = MemOrder::Weak;
  Scope scope = Scope::None;
  uint32_t laneMask = 0;
  /// Lanes of a store that find in memory the bytes that they write; all or none of a contiguous or
  /// uniform store. All lanes of an atomic operation whose operands can change nothing.
  uint32_t unchanged = 0;
  uint32_t bytes = 0;
  uint32_t tmemRank = 0;
  uint32_t tmemLanes = 1;              ///< TMEM lanes from the address on, `bytes` in each
  bool contiguous = false;             ///< the lanes' bytes are one run, in lane order
  bool uniform = false;                ///< all lanes access the same bytes
  const uint64_t *addresses = nullptr; ///< up to the highest lane of laneMask; of a contiguous or
                                       ///< uniform access only the first

  uint64_t addressOf(uint32_t lane) const {
    return contiguous ? addresses[0] + uint64_t(lane) * bytes : addresses[uniform ? 0 : lane];
  }
};

} // namespace fp4::sim
