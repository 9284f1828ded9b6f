//===- HazardImpl.h - The parts of the hazard checker ---------------------===//
//
// HazardChecker.cpp turns events into clocks, Races.cpp compares accesses, Synchronize.cpp handles
// barriers and fences, MemoryOrder.cpp flags and fences of threads, RacingLoads.cpp loads that may
// race, Contributions.cpp values that count on relaxed ones, PastLaunches.cpp launches that may run
// beside this one, HostReads.cpp the host, Apart.cpp clusters that run at the same time, and
// HazardReport.cpp has the messages.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "HazardState.h"
#include "LoadUses.h"
#include "PastLaunches.h"
#include "ReaderSets.h"
#include "Sim/Decode/ProgramImpl.h"
#include "fp4/Sim/Events.h"
#include "fp4/Sim/GlobalMemory.h"

#include <set>
#include <tuple>

namespace fp4::sim {

namespace check {

inline bool isShared(Space space) {
  return space == Space::SharedCta || space == Space::SharedCluster;
}
inline bool acquires(MemOrder order) {
  return order == MemOrder::Acquire || order == MemOrder::AcqRel || order == MemOrder::SeqCst;
}
inline bool releases(MemOrder order) {
  return order == MemOrder::Release || order == MemOrder::AcqRel || order == MemOrder::SeqCst;
}

/// An access that is being made: the properties that all its bytes share.
struct Access {
  ClusterState &cluster;
  const Clocks *now; ///< clocks of its actor
  Record record;
  Space space{};
  bool asyncProxy = false;
  bool unchanged = false;             ///< a store of what is there already
  uint32_t rank = 0;                  ///< of the tensor memory
  const WarpState *warp = nullptr;    ///< the warp that makes it, or
  const TicketInfo *ticket = nullptr; ///< the operation that does
  /// (strict) True for an access with an order whose value is used, if its warp has not seen one
  /// before.
  bool observes = false;
  bool told = false; ///< a report was made or deferred
};

/// Returns the clock of `made`'s actor for the warp or operation of `old`: `abroad` for another
/// cluster. Null if the actor knows nothing of that cluster.
const VectorClock *clockOf(const Access &made, VectorClock Clocks::*clock,
                           VectorClock Known::*abroad, const Record &old);
/// Returns true for strong accesses whose scopes include each other.
bool bothStrong(const Access &made, const Record &old);

/// Bytes of memory that the host reads while kernels run, before it may read them.
struct Unpublished {
  const Allocation *allocation;
  uint64_t address, bytes;
  Record record;
};

/// The origin of an instruction: the copies that a compiler makes of one have the same.
using Site = std::array<uint32_t, 4>;
using SitePair = std::tuple<HazardRule, uint32_t, Site, Site>; ///< with the number of the kernel

/// Reports, and how often each came.
struct Findings {
  std::vector<HazardReport> reports;
  uint64_t found = 0;
  std::map<SitePair, size_t> seen;               ///< in which report, or beyond them
  std::map<std::string, uint32_t> kernelNumbers; ///< by names of program and kernel

  /// Returns true when the pair was not seen yet; otherwise counts for its report.
  bool isNew(const SitePair &pair, uint64_t count, uint64_t last);
  /// Adds what came after all this. `later` has a report for each pair that it has seen.
  void add(Findings later, size_t maxReports);
};

/// Launches that may run beside others.
struct DependentGrids {
  bool dependent = false;  ///< it may begin before others have ended
  std::string dependentBy; ///< Dependence::by
  Beside beside;
  GridSignals signals;
  std::weak_ptr<const LaunchMark> mark;
  std::string launched; ///< its kernel
  History history;
  /// Details of the last missing-grid-wait.
  struct {
    const PastLaunch *launch = nullptr; ///< null: it is one of several
    bool waited = false;
  } met;
  UsedBytes usedApart; ///< by its clusters, if each had a checker of its own
};

/// Accesses of a launch, or of one of its clusters, to global memory.
struct GlobalAccesses {
  GlobalShadow shadow;
  ReaderSets readers; ///< of the cells of `shadow`
  ReadFilter filter;
  /// The last write that was compared with a set.
  struct {
    ReaderSets::Set set = 0;
    Record write;
  } compared;
  Releases releases;
  std::vector<Unpublished> unpublished;

  void clear() {
    shadow.clear();
    readers.clear();
    filter = {};
    compared = {};
    releases.clear();
    unpublished.clear();
  }
};

} // namespace check

struct HazardChecker::Impl {
  using ClusterState = check::ClusterState;
  using Record = check::Record;
  using Access = check::Access;

  HazardOptions options;
  check::Findings findings;

  // State of the launch.
  uint32_t kernelNumber = 0;
  const ProgramImpl *program = nullptr;
  const Kernel *kernel = nullptr;
  const GlobalMemory *memory = nullptr;
  uint32_t ctasPerCluster = 1, warpsPerCta = 1;
  check::DependentGrids grids;
  std::set<uint32_t> tmemAllocs; ///< pc of each tcgen05.alloc that was executed
  std::unordered_map<uint32_t, std::unique_ptr<ClusterState>> clusters;
  ClusterState *lastCluster = nullptr;
  check::GlobalAccesses global;
  /// The last access, if it is a read by an operation and nothing else came since.
  std::optional<Access> open;
  check::Changes changes;         ///< by the last access of an operation
  uint32_t sharedWrites = 0;      ///< writes so far of cells that others use too
  check::LaneHistory laneHistory; ///< (strict) of the launch
  check::LoadUses loadUses;       ///< of the kernel

  class Apart;
  std::unique_ptr<Apart> apart;      ///< state of clusters that run at the same time, or null
  std::set<uint32_t> orderedKernels; ///< numbers of those with clusters that need each other

  // --- Apart.cpp ---
  /// Returns the state that takes the next event of this host thread.
  Impl &told();
  void checkOneOf(const Impl &launch);

  // --- HazardChecker.cpp ---
  void forgetAccesses();
  /// Returns the cluster of an event, with which no read goes on.
  template <typename Event> ClusterState &next(const Event &event) {
    open.reset();
    return cluster(event.actor.cluster);
  }
  ClusterState &cluster(uint32_t index);

  // --- PastLaunches.cpp ---
  void keepLaunch(std::string_view name, const Dependence &next);
  void signalGrid(ClusterState &cluster, const FenceEvent &event);
  void checkGridWait(Access &made, const MemoryEvent &event);
  template <typename Past> bool meets(const Past &past, const MemoryEvent &event) const;
  std::string gridWaitDetail() const;

  // --- HazardChecker.cpp ---
  /// Returns true for a read that goes on with the last one, and makes it: engines tell what they
  /// read run by run.
  bool goesOn(const MemoryEvent &event);
  void initialized(Access &made, const Record &record, uint64_t address, uint64_t bytes);

  // --- HostReads.cpp ---
  void writePolled(Access &made, const MemoryEvent &event);
  bool isPublished(uint64_t address, const Record &written) const;
  void showHost(Access &made, const check::Unpublished &seen);
  void leavePolled(const Access &exit);

  // --- Races.cpp ---
  Access begin(ClusterState &cluster, const Actor &actor, CodePoint at, Space space, bool write,
               uint32_t lanes = check::allLanes);
  void access(ClusterState &cluster, const MemoryEvent &event);
  void ranges(Access &made, const MemoryEvent &event);
  void lanes(Access &made, const MemoryEvent &event, uint32_t shift);
  void useTensorMap(ClusterState &cluster, const MemoryEvent &event);
  void accessTmem(ClusterState &cluster, const MemoryEvent &event);
  void lateArrivals(Access &exit, const check::VectorClock &known);
  void checkExited(ClusterState &cluster, const Access &read, uint64_t address);
  void exitCta(ClusterState &cluster, const LifeEvent &event);
  void freeTmem(ClusterState &cluster, const LifeEvent &event);
  /// `bytes` from `address` on, of which each lane from `lane` on accesses 2^laneShift.
  void range(Access &made, uint64_t address, uint64_t bytes, int lane, uint32_t laneShift);
  void touch(Access &made, check::Cell &cell, const Record &record, uint64_t address);
  void compare(Access &made, check::Cell &cell, const Record &record, uint64_t address);
  void remember(Access &made, check::Cell &cell, const Record &record);
  void checkReaders(Access &made, check::ReaderSets::Set set, uint64_t address);
  void check(Access &made, const Record &old, uint32_t overlap, uint64_t address);
  bool looselyOrdered(const Access &made, const Record &old) const;
  bool replaces(const Access &made, const Record &record, const Record &old);
  bool staysBeside(const Access &made, const Record &record, const Record &old);
  void checkOrdered(Access &made, const Record &old, uint64_t address);
  bool checkTmem(Access &made, const Record &old, uint64_t address);
  void race(Access &made, const Record &old, HazardRule rule, uint64_t address);
  HazardRule ruleOf(Access &made, const Record &old) const;

  // --- RacingLoads.cpp ---
  bool isUsed(uint32_t pc) { return kernel && loadUses.isUsed(*kernel, pc); }
  bool isGuess(const MemoryEvent &event);
  bool isStoredLoad(const MemoryEvent &event);
  void noteStorer(ClusterState &cluster, const MemoryEvent &event);
  bool mayBeUnused(const Access &made, const Record &old);

  // --- Lanes.cpp ---
  /// The bytes that lanes of a warp access, by what each of them knows.
  void byLanes(Access &made, const MemoryEvent &event);
  void partedRanges(Access &made, const MemoryEvent &event);
  bool lanesRace(const Access &made, const Record &old, uint32_t overlap);
  bool haveMet(const Access &made, const Record &old, uint32_t overlap) const;
  void exchange(ClusterState &cluster, const BarrierEvent &event);
  bool haveExchanged(const Access &made, const Record &old, uint32_t byte);
  const check::LaneRelease *releasedByOthers(const Access &made, const Record &old) const;
  bool acquiredByOthers(const Access &made, const Record &old) const;
  std::string lanesDetail(const Access &made, const Record &old) const;

  // --- Contributions.cpp ---
  bool usesValue(const MemoryEvent &event);
  void observe(Access &made, const MemoryEvent &event);
  void count(ClusterState &cluster, const MemoryEvent &event);
  bool countsOn(const Access &made, const Record &old);

  // --- Synchronize.cpp ---
  void mbarrier(ClusterState &cluster, const BarrierEvent &event);
  void useMbarrier(ClusterState &cluster, const BarrierEvent &event);
  void waited(ClusterState &cluster, const BarrierEvent &event, check::MbarrierState &state);
  void findLappedWaits(ClusterState &cluster, const BarrierEvent &event,
                       const check::MbarrierState &state);
  void findStalePhases(ClusterState &cluster, uint32_t address, check::MbarrierState &state,
                       uint64_t consumed);
  void partedWarp(ClusterState &cluster, const BarrierEvent &event);
  void arrive(ClusterState &cluster, const BarrierEvent &event, check::Clocks &to,
              check::Clocks *near = nullptr);
  void wait(ClusterState &cluster, const BarrierEvent &event, const check::Clocks &from,
            const check::Clocks *near = nullptr);
  bool isNear(ClusterState &cluster, const BarrierEvent &event) const;
  void fence(ClusterState &cluster, const FenceEvent &event);

  // --- MemoryOrder.cpp ---
  /// Release and acquire through the locations that an access names.
  void synchronize(ClusterState &cluster, const MemoryEvent &event);
  void synchronize(ClusterState &cluster, const MemoryEvent &event, uint64_t address,
                   uint32_t lanes);
  void learn(ClusterState &cluster, const MemoryEvent &event, uint32_t lanes,
             const check::Learned &how, check::ReleasesAt &at);
  void threadFence(ClusterState &cluster, const FenceEvent &event);
  bool isReduction(uint32_t pc) const;

  // --- HazardReport.cpp ---
  check::Site siteOf(uint32_t pc) const;
  bool isNew(HazardRule rule, uint32_t first, uint32_t second, uint64_t count = 1);
  void add(HazardReport report);
  void unfencedWgmma(ClusterState &cluster, const FenceEvent &event);
  void report(Access &made, const Record &old, HazardRule rule, uint64_t address);
  void defer(Access &made, const Record &old, HazardRule rule, uint64_t address);
  void reportDeferred(ClusterState &cluster, uint64_t store);
  void deferTo(std::vector<check::Deferred> &list, Access &made, const Record &old, HazardRule rule,
               uint64_t address);
  void deferUse(Access &made, const Record &old, HazardRule rule, uint64_t address);
  void reportUses(ClusterState &cluster, uint32_t slot, uint32_t store);
  HazardReport describe(Access &made, const Record &old, HazardRule rule, uint64_t address);
  HazardAccess sideOf(ClusterState &cluster, const Record &record, std::string_view verb = "");
  std::string placeOf(const Access &made, uint64_t address) const;
  std::string remedyFor(const Access &made, const Record &old, HazardRule rule) const;
  std::string detailOf(const Access &made, const Record &old, HazardRule rule);
};

} // namespace fp4::sim
