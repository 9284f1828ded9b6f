//===- OrderRecorder.h - Footprint of the step that executes --------------===//
//
// Listens to the events of a simulation, and to calls that only its policy gets, and gathers the
// footprint of the step that executes: one or several instructions of a warp, or one stage of an
// asynchronous operation. An operation has a name that is the same in every order.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Async/Tcgen05Pairs.h"
#include "Sim/Decode/Modifiers.h"
#include "Sim/Orders/Trace.h"
#include "Sim/State/Cluster.h"
#include "fp4/Sim/Observer.h"
#include "fp4/Sim/TicketKind.h"
#include <array>
#include <deque>
#include <map>
#include <tuple>

namespace fp4::sim {

struct Kernel;

class OrderRecorder final : public Observer {
public:
  /// Accesses of memory end a step, as everything else does that others can notice.
  bool everyAccess = false;
  /// Steps that pass registers on depend on each other.
  bool ordersRegisters = false;
  /// Has the steps before this one.
  Trace *trace = nullptr;

  /// A launch begins. `clusters` are those that run, by index.
  void begin(const Kernel &kernel, const std::map<uint64_t, Cluster *> &clusters);
  /// A step of `process` begins.
  void beginStep(Process process);
  /// The step ends: its footprint is complete.
  void endStep();
  /// An instruction of the step begins.
  void beginInstruction() {
    touchedHere = step.ticket;
    readsBefore = step.bytes[uint8_t(ByteUse::Read)].size();
    for (uint8_t use = 0; use < kByteUses; ++use)
      rangesBefore[use] = step.bytes[use].size();
    lanesReading = 0;
  }

  const Footprint &footprint() const { return step; }
  /// Returns true when the last instruction ends the step of a warp.
  bool visible() const { return ends; }
  /// Returns true when the instruction looked at something, as a loop does that waits.
  bool looked() const { return looks; }
  /// The step had to wait for that ticket of its cluster.
  void await(uint64_t cluster, uint64_t ticket) {
    step.awaited.push_back({processOf(cluster, ticket)});
  }
  /// A test of an mbarrier found its phase incomplete.
  void poll(uint64_t cluster, uint32_t mbarrier);
  /// The step made it possible that this process begins.
  void issue(Process process) { step.issued.push_back(process); }
  /// The step is that of a copy of threads (cp.async), or of an arrival behind such copies.
  void touchCopy(Process ticket);
  /// The step is that of an operation of the tensor core: what comes before it without a wait.
  void awaitPipeline(Process ticket);
  /// The step ends a cluster, and clusters have not started, or not had when others ended.
  void freePlace(bool starts) {
    step.objects.push_back({objectId(ObjectKind::WorkQueue, 0, 0), 0,
                            starts ? ObjectUse::Write : ObjectUse::Read});
  }
  /// The step touches the whole machine.
  void touchEverything() { step.everything = true; }
  /// Returns true when a tcgen05 operation was published before the place where a warp is now.
  bool follows(Process warp, Process operation);
  void touch(ObjectKind kind, ObjectUse use, uint64_t cluster, uint32_t index, uint64_t phase = 0);
  /// The ticket of the queue of `cluster` with this name, 0 if none was issued.
  uint64_t ticketOf(Process process) const;
  Process processOf(uint64_t cluster, uint64_t ticket) const;
  /// Cells of tensor memory that the step reads or writes.
  void touchCells(ByteUse use, uint64_t cluster, uint32_t rank, uint32_t address, uint32_t lanes,
                  uint32_t columns);

  void onMemory(const MemoryEvent &event) override;
  void onBarrier(const BarrierEvent &event) override;
  void onFence(const FenceEvent &event) override;
  void onTicket(const TicketEvent &event) override;
  void onLife(const LifeEvent &event) override;

private:
  /// The bulk groups of a thread.
  struct Groups {
    std::vector<Process> open;
    std::deque<std::vector<Process>> committed;
  };
  using ThreadKey = std::pair<Process, uint32_t>; ///< warp, lane

  void noticed(bool endsStep);
  bool isUnused(uint32_t pc);
  ByteUse useOf(const MemoryEvent &event);
  void touchBytes(const MemoryEvent &event, ByteUse use);
  void noteAtomic(const MemoryEvent &event);
  void touchLife(uint64_t cluster, uint32_t rank);
  void exitWarp(uint64_t cluster, uint32_t rank);
  void touchMbarrier(uint64_t cluster, uint32_t address, ObjectUse use);
  void waitForGroups(const FenceEvent &event);
  void noteCopy(const TicketEvent &event, Process warp, Process copy);
  void orderInPipeline(const TicketEvent &event, Process warp, Process operation);
  void publish(Process warp, uint32_t lane);
  void acquire(Process warp, uint32_t lane);
  void waitForKind(Process warp, TicketKind kind);
  const Cluster &cluster(uint64_t index) const { return *clusters->at(index); }

  const Kernel *kernel = nullptr;
  const std::map<uint64_t, Cluster *> *clusters = nullptr;
  Footprint step;
  Process running = 0;
  bool ends = false, looks = false, touchedHere = false;
  bool countsPending = false; ///< the kernel can tell the arrivals of a phase apart
  size_t readsBefore = 0;     ///< ranges that the step read before its last instruction
  /// Ranges of the step before its last instruction, and before the last that others notice.
  std::array<size_t, kByteUses> rangesBefore{}, rangesEarlier{};
  uint32_t lanesReading = 0; ///< mask of the lanes that read in the step's last instruction

  /// The bytes of an atomic before it: one that changes nothing is a read.
  struct Atomic {
    ByteRange range;
    const std::byte *at;
    std::array<std::byte, 16> before;
  };
  std::vector<Atomic> atomics;

  std::map<Process, uint32_t> issued;                       ///< operations of each warp
  std::map<std::pair<uint64_t, uint64_t>, Process> names;   ///< operations by cluster and ticket
  std::map<Process, uint64_t> tickets;
  std::map<std::pair<Process, TicketKind>, std::vector<Process>> unwaited; ///< tcgen05.ld and .st
  std::map<ThreadKey, Groups> groups;
  /// The reads and writes of a copy of threads, and the copies behind which an arrival comes.
  struct ThreadCopy {
    Process warp = 0;
    uint32_t lanes = 0;
    std::vector<ByteRange> reads, writes;
    std::vector<Process> after;
  };
  std::map<Process, ThreadCopy> copies;
  /// Operations of a thread on the tensor core, of one cta_group, in their order.
  struct Pipeline {
    std::vector<std::pair<PipelinedOp, Process>> issued; ///< operations that others may follow
    Process commit = 0;                                  ///< last commit
  };
  std::map<std::pair<ThreadKey, uint32_t>, Pipeline> pipelines;
  std::map<Process, std::vector<Process>> inOrder; ///< operations behind which each one comes
  /// A tcgen05 operation that its thread has published.
  struct Published {
    PipelinedOp op;
    ThreadKey thread;
    uint32_t ctaGroup;
    size_t steps; ///< steps of the thread's warp before it was published
  };
  std::map<Process, Published> published;             ///< publications by operation
  std::map<ThreadKey, std::vector<Process>> acquired; ///< operations that a thread comes after
  Trace::Past past;                           ///< steps before this one, if somebody asked for them
  std::tuple<Process, size_t, size_t> pastAt; ///< place of `past`: warp, steps, what it touched
  std::map<uint32_t, bool> unused; ///< flag of each atomic, by pc: nothing reads what it returns
  std::map<std::pair<AtomicOp, Type>, ByteUse> reductions; ///< uses by operation and type
};

} // namespace fp4::sim
