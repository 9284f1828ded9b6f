//===- Observer.h - The event stream of a simulation ----------------------===//
//
// Instructions and engines emit typed events. Checkers (the hazard engine, traces, counters)
// listen; instruction code does not call them in any other way. Without an observer an event costs
// one predictable branch. Pointers inside an event are valid only during the call.
//
// Agents: a warp (cta, warp) or a ticket (an asynchronous operation, by its id). One launch has one
// observer; when it is set the clusters run one after the other on one host thread.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace fp4::sim {

class GlobalMemory;
class Program;

enum class Space : uint8_t { Generic, Global, SharedCta, SharedCluster, Local, Param, Const, Tmem };
enum class Proxy : uint8_t { Generic, Async, Tensormap, Tcgen05, Alias };
enum class Scope : uint8_t { None, Cta, Cluster, Gpu, Sys };
enum class MemOrder : uint8_t { Weak, Relaxed, Acquire, Release, AcqRel, Volatile, SeqCst, Mmio };
enum class AccessKind : uint8_t { Read, Write, Atomic };

/// The agent: a warp if `ticket` is 0, otherwise the asynchronous operation with that id.
struct Agent {
  uint32_t cluster = 0; ///< linear cluster index in the grid
  uint32_t ctaRank = 0; ///< rank of the CTA in the cluster
  uint32_t warp = 0;
  uint64_t ticket = 0;
};

/// The place in the PTX: the index of the instruction in its kernel, and the line.
struct CodePoint {
  uint32_t pc = 0;
  uint32_t line = 0;
};

/// `laneMask` says which entries of `addresses` hold; each access is `bytes` long. Engines use
/// lane 0 for one contiguous run. Shared addresses are shared::cluster addresses (rank << 24 |
/// offset); TMEM addresses are lane << 16 | column with `ctaRank` in `tmemRank`, 4 bytes a cell.
/// The tensor memory that a ticket writes is told when it is issued, all else when data moves.
struct MemoryEvent {
  Agent agent;
  CodePoint at;
  AccessKind kind = AccessKind::Read;
  Space space = Space::Global;
  Proxy proxy = Proxy::Generic;
  MemOrder order = MemOrder::Weak;
  Scope scope = Scope::None;
  uint32_t laneMask = 0;
  /// Lanes of a store that find in memory what they write; of a contiguous or uniform one all, or
  /// none.
  uint32_t unchanged = 0;
  uint32_t bytes = 0;
  uint32_t tmemRank = 0;
  uint32_t tmemLanes = 1;              ///< lanes from the address on, `bytes` of columns in each
  bool contiguous = false;             ///< the lanes' bytes are one run, in lane order
  bool uniform = false;                ///< all lanes access the same bytes
  const uint64_t *addresses = nullptr; ///< up to the highest lane of laneMask; of a contiguous or
                                       ///< uniform access only the first

  uint64_t addressOf(uint32_t lane) const {
    return contiguous ? addresses[0] + uint64_t(lane) * bytes : addresses[uniform ? 0 : lane];
  }
};

enum class BarrierOp : uint8_t {
  CtaArrive, ///< barrier.cta arrive/sync/red reached; `object` is the barrier number, count the
             ///< generation arrived at
  CtaPass,   ///< ... sync or red passed; count = the generation of the barrier that ended
  WarpSync,  ///< bar.warp.sync passed by `laneMask`
  Parted,    ///< an .aligned instruction, barriers excepted, of a warp whose lanes parted at the
             ///< branch with index `count` and have not synchronized since
  ClusterArrive, ///< barrier.cluster.arrive; count = the generation arrived at
  ClusterWait,   ///< barrier.cluster.wait passed; count = the generation after it
  MbarInit,      ///< `object` is the shared::cluster address of the mbarrier, `count` the arrivals
  MbarInval,
  MbarArrive,   ///< count = arrivals
  MbarExpectTx, ///< count = bytes
  MbarCompleteTx,
  MbarPhaseDone, ///< a phase completed; count = its number
  MbarWaitPass,  ///< a test_wait or try_wait returned true; count = the phase number waited for
};

struct BarrierEvent {
  Agent agent;
  CodePoint at;
  BarrierOp op{};
  uint64_t object = 0;
  uint64_t count = 0;
  uint32_t laneMask = 0;
  MemOrder order = MemOrder::AcqRel;
  Scope scope = Scope::Cta;
};

enum class FenceKind : uint8_t {
  Thread,         ///< fence / membar: order, scope
  ProxyAsync,     ///< fence.proxy.async: `space` restricts it
  ProxyTensormap, ///< fence.proxy.tensormap: `order` is Release, or Acquire of the map at `groups`
  ProxyAlias,
  MbarrierInit,  ///< fence.mbarrier_init.release.cluster
  Tcgen05Before, ///< tcgen05.fence::before_thread_sync
  Tcgen05After,
  Tcgen05WaitLd,
  Tcgen05WaitSt,
  TicketWaited, ///< the warp knows that ticket `groups` is done: it used a register of a tcgen05.ld
                ///< before its wait, or waited for a cp.async
  WgmmaUnfenced, ///< a wgmma names a register that was used otherwise since the last wgmma.fence,
                 ///< by the instruction `groups` - 1 as `use` says; 0: the warp has executed no
                 ///< wgmma.fence
  BulkCommit,    ///< cp.async.bulk.commit_group
  BulkWait,      ///< cp.async.bulk.wait_group passed; `groups` may still be pending
};

/// The use that an instruction made of a register of a wgmma.
enum class RegisterUse : uint8_t { Read, Write, Product };

struct FenceEvent {
  Agent agent;
  CodePoint at;
  FenceKind kind{};
  MemOrder order = MemOrder::AcqRel;
  Scope scope = Scope::Cta;
  Space space = Space::Generic;
  uint32_t laneMask = 0;
  uint64_t groups = 0;
  bool readOnly = false; ///< BulkWait: .read, the sources were read
  uint32_t reg = 0;      ///< WgmmaUnfenced: the register, by its place in the warp's
  RegisterUse use{};     ///< ... and what was done with it: a product is one of another shape, or
                         ///< reads A where another accumulated
};

enum class TicketState : uint8_t { Issued, Completed };

/// Bytes of shared memory, by shared::cluster address.
struct SharedRange {
  uint32_t address = 0, bytes = 0;
};

/// An asynchronous operation was issued by `agent` (at `at`) or completed. `engine` is "tma",
/// "bulk", "tcgen05.mma", "tcgen05.cp", ... ; `id` never repeats within a cluster and is not 0.
struct TicketEvent {
  Agent agent;
  CodePoint at;
  TicketState state{};
  uint64_t id = 0;
  std::string_view engine;
  uint32_t lane = 0;                   ///< of the issuing thread
  bool bulkGroup = false;              ///< belongs to the thread's open bulk group
  uint32_t ctaGroup = 0;               ///< of tcgen05 operations
  uint64_t accumulator = 0;            ///< of tcgen05.mma: the same for one D and shape
  bool narrowCopy = false;             ///< tcgen05.cp.4x256b
  Proxy proxy = Proxy::Async;          ///< of its accesses to memory other than tensor memory
  std::span<const SharedRange> writes; ///< the shared memory it will write
  std::span<const uint32_t> signals;   ///< the mbarriers it will signal, by shared::cluster address
};

enum class LifeOp : uint8_t {
  WarpExit,
  CtaExit,
  ClusterEnd, ///< its last operation is done
  TmemAlloc,
  TmemDealloc,
  TmemRelinquish
};

/// Starts, exits and resource lifetimes. TMEM: `object` is the address, `count` the columns.
struct LifeEvent {
  Agent agent;
  CodePoint at;
  LifeOp op{};
  uint32_t laneMask = 0;
  uint64_t object = 0;
  uint64_t count = 0;
};

/// A launch begins. The objects it refers to live until its last event.
struct LaunchEvent {
  const Program &program;
  std::string_view kernel;
  const GlobalMemory &memory;
  uint32_t ctasPerCluster = 1, warpsPerCta = 1;
};

class Observer {
public:
  virtual ~Observer() = default;
  virtual void onLaunch(const LaunchEvent &) {}
  virtual void onMemory(const MemoryEvent &) {}
  virtual void onBarrier(const BarrierEvent &) {}
  virtual void onFence(const FenceEvent &) {}
  virtual void onTicket(const TicketEvent &) {}
  virtual void onLife(const LifeEvent &) {}
};

} // namespace fp4::sim
