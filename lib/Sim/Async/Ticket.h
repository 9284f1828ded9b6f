//===- Ticket.h - One asynchronous operation ------------------------------===//
//
// A ticket has one or two stages. Stores read their source in the first and write in the second,
// because cp.async.bulk.wait_group.read waits for the first alone. A stage may run when every
// ticket in `after` is done; `after` holds only what the PTX ISA orders ("tcgen05 memory
// consistency model, pipelined instructions"), so copies complete in any order.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Async/Tcgen05Pairs.h"
#include "Sim/Async/TensorMemory.h"
#include "Sim/Decode/Insn.h"
#include "fp4/Sim/Actor.h"
#include "fp4/Sim/MemoryModel.h"
#include "fp4/Sim/TicketKind.h"
#include "fp4/Support/Error.h"
#include <functional>
#include <optional>
#include <vector>

namespace fp4::sim {

class Cluster;

/// The thread that issued something.
struct Thread {
  uint32_t rank = 0, warp = 0;
  int lane = 0;
  auto operator<=>(const Thread &) const = default;
};

/// Cells of the tensor memory of one CTA.
struct TmemCells {
  uint32_t rank = 0;
  TmemRange range;
};

/// A run of global memory.
struct GlobalRun {
  uint64_t address = 0;
  uint32_t bytes = 0;
};

/// Registers of a warp: bytes [begin, end) of bank 0.
struct RegisterRange {
  uint32_t begin = 0, end = 0;
};

/// Destinations of an operation.
struct Destinations {
  std::vector<SharedRange> shared;
  std::vector<TmemCells> tmem;
  std::vector<RegisterRange> registers; ///< of the issuing warp
};

/// Work of an operation, for a policy that predicts time.
struct TicketWork {
  uint64_t bytes = 0; ///< bytes written; 0: as many as the destinations have
  uint64_t flops = 0;
  std::vector<GlobalRun> global; ///< memory read or written
  uint32_t outsideRows = 0;      ///< rows of the box that lie outside of the tensor
};

/// Properties of a tcgen05 operation.
struct Tcgen05Work {
  uint32_t ctaGroup = 0;                ///< 1 or 2
  std::optional<PipelinedOp> pipelined; ///< .mma, .cp, .shift
  std::array<TmemRange, 2> scales{};    ///< .mma: the scales that it reads in each CTA
  bool published = false;               ///< a fence::before_thread_sync of its thread followed
};

struct Ticket;
using Stage = std::function<Status(const Ticket &)>;

struct Ticket {
  uint64_t id = 0;
  TicketKind kind{};
  Engine engine{}; ///< the engine that does the work
  Thread issuer;
  const Insn *insn = nullptr;
  uint32_t pc = 0;     ///< program counter of insn
  uint64_t issued = 0; ///< time of issue, by the clock of the policy

  std::vector<uint64_t> after; ///< tickets that must be done before a stage runs
  std::vector<Stage> stages;
  size_t stagesDone = 0;
  Stage signal; ///< barrier effects, after the writes have become valid

  Destinations writes;       ///< poison while the operation is in flight, valid when it is done
  Handler chained = nullptr; ///< instructions that may name writes.registers and run after it

  TicketWork work;
  Tcgen05Work tcgen05;
  Proxy proxy = Proxy::Async;
  uint32_t sharedReads = 0;      ///< mask of CTA ranks whose shared memory the first stage reads
  bool bulkGroup = false;        ///< part of a cp.async.bulk group
  std::vector<uint32_t> signals; ///< shared::cluster addresses of the mbarriers it will signal

  Actor actor(const Cluster &cluster) const;
  CodePoint at() const;
  /// tcgen05: the first of the CTAs whose tensor memory the operation uses.
  uint32_t firstOfGroup() const { return tcgen05.ctaGroup == 2 ? issuer.rank & ~1u : issuer.rank; }
};

} // namespace fp4::sim
