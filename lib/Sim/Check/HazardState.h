//===- HazardState.h - The hazard checker's state of a cluster ------------===//
//
// Clocks of warps, tickets and barriers, and the shadow of shared and tensor memory. Slots of a
// vector clock, for W warps: [0, W) the warps, [W, 2W) their asynchronous reads of global memory,
// [2W, 3W) their asynchronous writes of it, then tickets. The slot of a ticket is used again once
// the ticket is done and no record refers to it (collect).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Clocks.h"
#include "Shadow.h"
#include "Sim/Async/Tcgen05Pairs.h"
#include "fp4/Sim/Events/TicketEvent.h"
#include "fp4/Sim/HazardChecker.h"
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace fp4::sim::check {

constexpr uint32_t rankShift = 24; ///< of shared::cluster addresses
constexpr uint32_t rankMask = (1u << rankShift) - 1;

/// A ticket, by slot and the epoch the slot had then.
struct TicketRef {
  uint32_t slot = 0, epoch = 0;
  uint32_t stores = 0; ///< its number among the warp's asynchronous accesses to global memory
};

/// tcgen05.mma, .cp and .shift of one thread and cta_group.
struct Pipeline {
  struct Alike {
    PipelinedOp op;
    VectorClock clock;
  };
  std::vector<Alike> issued; ///< operations, with what comes before them, by what the table of
                             ///< pairs tells apart
};
using PipelineOf = std::pair<uint32_t, uint32_t>; ///< lane and cta_group

/// Knowledge that lanes have gained from the releases through an address, so that a lane that polls
/// does not gain it again.
struct Learned {
  uint64_t address = ~uint64_t(0), changes = 0; ///< ReleasesAt::changes
  uint32_t lanes = 0;
  Scope scope{};
  bool acquire = false;
  bool operator==(const Learned &) const = default;
};

constexpr uint32_t allLanes = ~0u;

/// (strict) A release by some lanes of a warp, while others had made accesses since all had met: it
/// publishes the accesses of its own lanes. A clock's epoch of `slot` counts for these lanes alone.
struct LaneRelease {
  uint32_t epoch = 0, lanes = 0, pc = 0;
};
struct LaneReleases {
  uint32_t slot = 0;
  std::vector<LaneRelease> all; ///< by epoch of the warp
};
/// Releases of lanes by cluster and slot of the warp, where there are any.
using LaneHistory = std::map<std::pair<uint32_t, uint32_t>, LaneReleases>;
/// Returns true when a release of the access's lane that `clock` has seen published the access to
/// the bytes `overlap`.
bool isReleased(const LaneHistory &history, const VectorClock &clock, const Record &old,
                uint32_t overlap);

/// (strict) Knowledge that lanes of a warp do not have in common (Lanes.cpp).
struct LaneState {
  Clocks few;             ///< clocks of `fewLanes`: all that the warp knows, and more
  uint32_t fewLanes = 0;  ///< some lanes have acquired what others have not; 0: none
  uint32_t met = 0;       ///< accesses of lanes up to this epoch come before all that follow
  uint32_t fewMet = 0;    ///< as `met`, for accesses of `fewLanes`
  uint32_t touched = 0;   ///< lanes that have accessed memory since all of them met
  uint32_t lastTouch = 0; ///< the epoch of the last such access
  uint32_t together = 0;  ///< lanes that have met without others since
};

/// Lanes that have executed an instruction together that takes a value of each.
struct Exchange {
  uint32_t lanes = 0, sequence = 0;
};

/// (default) Events that may have ordered the lanes of a warp, by sequence.
struct LaneOrder {
  uint32_t sync = 0;     ///< the last event after which nothing comes before it
  uint32_t exchange = 0; ///< the last exchange of values, which orders what was loaded for it
  std::unordered_map<uint32_t, std::vector<Exchange>> exchanges; ///< by pc, of each lane the last
  uint32_t last() const { return std::max(sync, exchange); }
};

/// The clocks that a release fence published for later writes of its thread, and the scope.
struct ReleaseFence {
  Scope scope{};
  Clocks clocks;
};

/// The distance of the thread that releases from one that acquires, which the scope must reach.
enum Distance : uint8_t { OwnCta, OwnCluster, Elsewhere };
constexpr size_t distances = 3;

struct WarpState {
  uint32_t rank = 0, index = 0, slot = 0;
  Clocks clocks; ///< known to all of its lanes
  LaneState lanes;
  std::vector<ReleaseFence> released; ///< the last of each scope that no wider one follows
  /// Clocks that relaxed reads and waits saw, by the Distance of the releasing thread: an acquire
  /// fence whose scope reaches as far takes them over.
  std::array<Clocks, distances> unacquired;
  Learned learned; ///< last
  /// (strict) Addresses that it read with an order, and whose value it used.
  std::unordered_set<uint64_t> observed;
  ForeignPtr counted;   ///< (strict) what it has seen of flags in memory, whatever their order: the
                        ///< `loose` clocks of warps that write them
  VectorClock tensorIn; ///< tcgen05 operations that its next ones are ordered after
  VectorClock fenced;   ///< (strict) what the last fence::after_thread_sync knew, and own waits
  std::map<PipelineOf, Pipeline> pipelines;
  std::vector<TicketRef> loads, stores; ///< tcgen05.ld and .st since the last wait
  std::vector<TicketRef> copies;        ///< cp.async that were not waited for
  uint32_t products = 0;                ///< wgmma issued
  uint32_t epoch = 1;
  uint32_t asyncCount = 0; ///< tickets issued: epoch of its two counters
  LaneOrder order;

  /// A release fence: it serves narrower scopes too.
  void release(Scope scope, const Clocks &published) {
    std::erase_if(released, [&](const ReleaseFence &older) { return older.scope <= scope; });
    released.push_back({scope, published});
  }
};

struct TicketInfo {
  uint64_t id = 0;
  uint32_t epoch = 0; ///< of the slot
  uint32_t warpSlot = 0, lane = 0, pc = 0;
  uint32_t issued = 0;   ///< sequence
  uint32_t laneSync = 0; ///< of its warp at the issue
  uint32_t number = 0;   ///< among the warp's tickets
  TicketKind kind{};
  std::optional<PipelinedOp> pipelined;
  uint32_t ctaGroup = 0;
  Proxy proxy{};
  uint32_t signal = 0; ///< the first mbarrier it signals, or 0
  bool stores = false; ///< it may write global memory: it signals no mbarrier
  bool done = true;    ///< and its signals were sent: `clocks` is empty
  Clocks clocks;
  VectorClock tensorIn;   ///< tcgen05 operations of other threads that fences order before it
  VectorClock pipelineIn; ///< tcgen05 operations of its thread that the pipeline orders before it
  VectorClock fenced;     ///< (strict) of its warp, of a tcgen05 operation that reads shared memory
};

/// Passes of one wait instruction by one warp.
struct WaitHistory {
  uint64_t phase = ~0ull;
  uint32_t lanes = 0; ///< that passed for `phase`
  bool repeated = false;
  Record last; ///< the last pass
};

struct MbarrierState {
  Record init;
  bool fenced = false; ///< fence.mbarrier_init or fence.proxy.async came between init and now
  std::map<uint32_t, Record> remote; ///< last arrivals of warps of other CTAs, by slot
  Clocks arrived, passed;            ///< of the phase in progress, of the last one completed
  /// (strict, of a cluster) the same for waits in the scope of the CTA: without the arrivals of
  /// threads of other CTAs, and of their commits.
  Clocks arrivedNear, passedNear;
  uint64_t phase = ~uint64_t(0);                              ///< of `passed`
  std::map<std::pair<uint32_t, uint32_t>, WaitHistory> waits; ///< by warp slot and pc
};

/// Arrivals by generation; old ones are dropped.
using BarrierState = std::map<uint64_t, Clocks>;

struct ThreadGroups {
  std::vector<TicketRef> open;
  std::deque<std::vector<TicketRef>> committed;
};

/// The clocks that a thread released through a location of memory, and the scope.
struct Release {
  uint32_t cluster = 0, rank = 0;
  Scope scope{};
  Clocks clocks;
  bool spread = false; ///< Abroad has it
};
/// The message of the releases through a location to other clusters.
struct Abroad {
  ForeignPtr wide;   ///< to an acquire in the scope of the GPU
  ForeignPtr narrow; ///< to others: as if nothing were out of scope
};
/// The fence.sc before the writes of a location that a read may observe.
struct FencesAt {
  std::map<uint32_t, FencesPtr> near; ///< for those of a cluster, its own
  ForeignPtr far;                     ///< for all, in the scope of the GPU
};
struct ReleasesAt {
  std::map<uint32_t, std::vector<Release>> all; ///< by cluster
  Abroad abroad;
  std::vector<uint32_t> fresh; ///< clusters with releases that `abroad` lacks
  ForeignPtr counted;          ///< (strict) by whoever wrote here, whatever its order
  FencesAt fences;
  uint64_t changes = 0;
};
using Releases = std::unordered_map<uint64_t, ReleasesAt>; ///< by address

/// A wgmma: one operation of four warps, each of which issues its part and waits.
struct Product {
  std::array<TicketRef, 4> parts;
  std::array<uint32_t, 4> epochs{}; ///< of the warps when they issued
  uint8_t issued = 0, waited = 0;   ///< a bit for each
};
/// The operations of a warpgroup for which some warp has not waited, in order.
struct Products {
  uint32_t first = 0; ///< number of the first
  std::deque<Product> open;
};

/// A fence.proxy.tensormap that acquires a map; an agent that knows it may use the release.
struct MapAcquire {
  uint32_t epoch = 0; ///< of the warp
  VectorClock released;
};
/// Acquires of tensor maps by slot of the warp, in order.
using MapAcquires = std::map<uint32_t, std::deque<MapAcquire>>;

/// The threads of a CTA that have executed a store instruction.
struct Storer {
  enum : uint8_t { None, One, Many } count = None;
  uint8_t lane = 0;
  uint16_t slot = 0; ///< of the warp
};

/// A report that is made if a second thread executes the store, or the warp of the load one of the
/// stores that use its value.
struct Deferred {
  uint32_t first = 0, second = 0; ///< pc of the accesses, the lower one first
  uint32_t load = 0;              ///< pc of the one that is a load
  HazardReport report;
};

class ClusterState {
public:
  ClusterState(uint32_t index, uint32_t ctas, uint32_t warpsPerCta, bool strict,
               LaneHistory &laneHistory);

  const uint32_t index, warpsPerCta;
  const bool strict;
  const uint32_t warpCount;
  LaneHistory &laneHistory;
  std::vector<WarpState> warps;
  std::vector<TicketInfo> tickets;             ///< by slot - 3 * warpCount
  std::map<uint32_t, MbarrierState> mbarriers; ///< by shared::cluster address
  std::map<std::pair<uint32_t, uint64_t>, BarrierState> barriers;
  BarrierState clusterBarrier;
  std::map<std::pair<uint32_t, uint32_t>, ThreadGroups> groups; ///< by warp slot and lane
  std::map<uint32_t, Products> products;                        ///< by slot of the first warp
  Releases released;                                            ///< by address in shared memory
  std::map<uint32_t, std::pair<Actor, CodePoint>> exits;        ///< of CTAs, by rank
  std::map<uint64_t, MapAcquires> mapAcquires;                  ///< by address of the map
  std::vector<std::vector<Storer>> storers;                     ///< (default) by CTA rank and pc
  std::map<uint64_t, std::vector<Deferred>> deferred; ///< by CTA rank << 32 | pc of the store
  std::vector<std::vector<bool>> stores;              ///< (default) by slot of the warp and pc
  std::map<uint32_t, std::vector<Deferred>> uses;     ///< by slot of the warp of the load
  uint32_t sequence = 0;

  WarpState &warp(const Actor &actor) { return warps[actor.ctaRank * warpsPerCta + actor.warp]; }
  uint64_t ctaNumber(const Actor &actor) const { return uint64_t(index) << 32 | actor.ctaRank; }
  uint32_t readSlot(uint32_t warpSlot) const { return warpCount + warpSlot; }
  uint32_t writeSlot(uint32_t warpSlot) const { return 2 * warpCount + warpSlot; }
  /// The slot of the previous launch, for a launch that may begin before its end: a warp that has
  /// waited for that launch, or synchronized with one that has, knows epoch 1. No ticket has this
  /// slot.
  uint32_t gridSlot() const { return 3 * warpCount; }
  bool isTicket(uint32_t slot) const { return slot >= 3 * warpCount; }
  TicketInfo &ticketAt(uint32_t slot) { return tickets[slot - 3 * warpCount]; }
  uint32_t slotOf(uint64_t ticket) const;
  TicketInfo &ticket(uint64_t id) { return ticketAt(slotOf(id)); }
  /// The clocks of lanes of a warp, or of a ticket.
  const Clocks &clocks(const Actor &actor, uint32_t lanes = allLanes) {
    return actor.ticket ? ticket(actor.ticket).clocks : known(warp(actor), lanes);
  }
  /// The warp that a slot belongs to or was issued by.
  const WarpState &warpOfSlot(uint32_t slot) {
    return warps[isTicket(slot) ? ticketAt(slot).warpSlot : slot % warpCount];
  }

  /// All cells of a CTA's shared memory that were touched so far.
  std::vector<Cell> &sharedOf(uint32_t rank) { return sharedCells[rank]; }
  /// The first cell of a run; null beyond what any CTA has, which is an error elsewhere.
  Cell *shared(uint32_t address, uint32_t bytes);
  Cell *tmem(uint32_t rank, uint32_t column, uint32_t quarter);
  void dropCta(uint32_t rank);

  /// Other actors may learn what the warp did so far; later accesses are new to them.
  void advance(WarpState &warp);

  // --- Lanes.cpp ---
  /// Returns the clocks that all of these lanes have.
  const Clocks &known(const WarpState &warp, uint32_t lanes) const {
    const LaneState &parted = warp.lanes;
    return parted.fewLanes && !(lanes & ~parted.fewLanes) ? parted.few : warp.clocks;
  }
  /// These lanes come to know what `change` adds to their clocks.
  template <typename Change> void teach(WarpState &warp, uint32_t lanes, const Change &change) {
    LaneState &parted = warp.lanes;
    if (strict && lanes != allLanes) {
      part(warp, lanes);
      change(parted.few);
      warp.clocks.loose = parted.few.loose;
      return parted.fewLanes == allLanes ? join(warp) : void();
    }
    change(warp.clocks);
    if (parted.fewLanes)
      change(parted.few);
  }
  /// Lets lanes acquire a release, which may be one of other lanes of the warp.
  void acquire(WarpState &warp, uint32_t lanes, const Clocks &from);
  /// Lets lanes wait for each other: all that each did and knows comes before all that follows.
  void meet(WarpState &warp, uint32_t lanes);
  /// Returns the clocks that a release by these lanes publishes, valid until the next call.
  const Clocks &published(WarpState &warp, uint32_t lanes, uint32_t pc);

  void fork(const TicketEvent &event);
  void complete(uint64_t id);
  /// `clocks` learns that the operation is done; with `written` also what it wrote to global
  /// memory.
  void learn(Clocks &clocks, const TicketRef &ref, bool written) const;

  /// `warp` has waited for its part of a wgmma: all parts are done.
  void mmaWaited(WarpState &warp, uint64_t ticket);

private:
  /// Notes that these lanes may know more than the others from now on.
  void part(WarpState &warp, uint32_t lanes);
  /// Ends a parting: all lanes know what few did.
  static void join(WarpState &warp);
  void orderTcgen05(WarpState &issuer, TicketInfo &info, const TicketEvent &event, uint32_t slot);
  void enlist(WarpState &issuer, TicketInfo &info, const TicketEvent &event, const TicketRef &ref);
  uint32_t takeSlot();
  void collect();

  Clocks scratch;                                        ///< of `published`
  std::vector<std::vector<Cell>> sharedCells, tmemCells; ///< by CTA rank
  std::unordered_map<uint64_t, uint32_t> slotById;
  std::vector<uint32_t> freeSlots;
  size_t collectAt = 64; ///< tickets in use before the next search for free slots
  uint64_t finished = 0; ///< a completed ticket whose signals may still come, or 0
};

} // namespace fp4::sim::check
