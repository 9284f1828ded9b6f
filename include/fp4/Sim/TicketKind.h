//===- TicketKind.h - Kinds of asynchronous operations, and their engines -===//
#pragma once

#include <cstdint>
#include <string_view>

namespace fp4::sim {

/// Kinds of asynchronous work.
enum class TicketKind : uint8_t {
  Tma,        ///< cp.async.bulk.tensor, cp.reduce.async.bulk.tensor
  Bulk,       ///< cp.async.bulk, cp.reduce.async.bulk, st.async, red.async
  ThreadCopy, ///< cp.async
  Mma,        ///< tcgen05.mma
  Wgmma,
  TmemCopy,
  TmemShift,
  Commit, ///< tcgen05.commit
  TmemLoad,
  TmemStore,
  ClusterLaunch ///< clusterlaunchcontrol.try_cancel
};
std::string_view stringify(TicketKind kind); ///< "tma", "bulk", "tcgen05.mma", ...

/// The part of an SM that does the work.
enum class Engine : uint8_t {
  Tma,       ///< loads of the copy engine
  BulkStore, ///< stores and reductions to global memory
  Tensor,    ///< MMAs
  ScaleCopy, ///< shared to tensor memory
  Threads,   ///< the warps' own load and store units
  WorkQueue, ///< the scheduler of clusters
};
std::string_view stringify(Engine engine); ///< "tma", "bulk_store", "tensor", ...
/// Returns the engine of most tickets of `kind`: a copy to global memory belongs to
/// Engine::BulkStore, an st.async to Engine::Threads.
Engine engineOf(TicketKind kind);

} // namespace fp4::sim
