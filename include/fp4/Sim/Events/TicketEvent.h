//===- TicketEvent.h - An asynchronous operation begins or ends -----------===//
#pragma once

#include "fp4/Sim/Actor.h"
#include "fp4/Sim/MemoryModel.h"
#include "fp4/Sim/TicketKind.h"

#include <span>

namespace fp4::sim {

enum class TicketState : uint8_t { Issued, Completed };

/// An asynchronous operation was issued by `actor` (at `at`) or completed. `id` never repeats
/// within a cluster and is not 0.
struct TicketEvent {
  Actor actor;
  CodePoint at;
  TicketState state{};
  uint64_t id = 0;
  TicketKind kind{};
  Engine engine{};                     ///< engine that does the work
  uint64_t bytes = 0;                  ///< bytes that the work writes
  uint64_t flops = 0;                  ///< flops of a GEMM: 2 M N K, zeros of a sparse A included
  uint32_t lane = 0;                   ///< lane of the issuing thread
  bool bulkGroup = false;              ///< belongs to the thread's open bulk group
  uint32_t ctaGroup = 0;               ///< group of tcgen05 operations
  uint64_t accumulator = 0;            ///< number for tcgen05.mma: the same for one D and shape
  bool narrowCopy = false;             ///< tcgen05.cp.4x256b
  Proxy proxy = Proxy::Async;          ///< proxy of the accesses to memory other than tensor memory
  std::span<const SharedRange> writes; ///< the shared memory it will write
  std::span<const uint32_t> signals;   ///< the mbarriers it will signal, by shared::cluster address
};

} // namespace fp4::sim
