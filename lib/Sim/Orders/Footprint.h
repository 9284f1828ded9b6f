//===- Footprint.h - Bytes and objects that a step of an order touched ----===//
//
// A step touches bytes (of global, shared and tensor memory, in one space of addresses) and
// objects: barriers, allocators, the queue of clusters. Two steps are dependent if their order can
// matter; all others commute.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <vector>

namespace fp4::sim {

/// A warp, an asynchronous operation, or one of the two below: the same in every order.
using Process = uint64_t;
inline constexpr Process kLauncher = ~0ull;    ///< starts clusters
inline constexpr Process kTimeLimit = ~0ull - 1; ///< ends waits when nothing else can happen

constexpr Process warpProcess(uint64_t cluster, uint32_t rank, uint32_t warp) {
  return cluster << 40 | uint64_t(rank) << 32 | uint64_t(warp) << 24;
}
/// The operation that a warp issued as its `ordinal`-th, from 1 on.
constexpr Process ticketProcess(Process warp, uint32_t ordinal) { return warp | ordinal; }
constexpr bool isTicket(Process process) {
  return process < kTimeLimit && (process & 0xFFFFFF) != 0;
}

/// The use of bytes. Uses of one kind from Read on commute, except Write.
enum class ByteUse : uint8_t {
  Poison, ///< an operation that will write them was issued: matters to accesses of warps
  Write,
  Read,
  Reduce ///< reductions whose order does not matter: one kind from here on for each operation
};
inline constexpr uint8_t kByteUses = 16;

/// Bytes [begin, end) in the space of all memories.
struct ByteRange {
  uint64_t begin = 0, end = 0;
};

enum class ObjectKind : uint8_t {
  Mbarrier,
  CtaBarrier,
  ClusterBarrier,
  CtaExits, ///< exits of the warps of a CTA
  CtaLife,
  Registers,
  TensorColumns,
  PairCalls,
  WorkQueue,
  MmaGroups
};
constexpr uint64_t objectId(ObjectKind kind, uint64_t cluster, uint32_t index) {
  return uint64_t(kind) << 56 | cluster << 32 | index;
}

/// The use of an object. `phase` counts the phases that it has completed so far.
enum class ObjectUse : uint8_t {
  Read,   ///< look at the phase
  Arrive, ///< arrivals and transactions of one phase commute
  Expect, ///< may keep a phase from completing: commutes with nothing
  Await,  ///< look at a phase that all who arrived in it have completed; fails two phases later
  Give,   ///< registers, to the CTA
  Take,   ///< free registers: commutes with others and with Give (Trace::takesBeforeGiving)
  Write
};
struct ObjectAccess {
  uint64_t object = 0, phase = 0;
  ObjectUse use{};
  bool completes = false; ///< Arrive: the phase
  bool passed = false;    ///< Read: a wait by parity ended
};

/// The step of an asynchronous operation that another had to wait for; stage ~0: the last.
struct AwaitedTicket {
  Process ticket = 0;
  uint32_t stage = ~0u;
};

struct Footprint {
  std::vector<ByteRange> bytes[kByteUses];
  std::vector<ByteRange> earlier[kByteUses]; ///< bytes of instructions before the last visible one
  std::vector<ObjectAccess> objects;
  std::vector<AwaitedTicket> awaited;
  std::vector<Process> absorbed; ///< operations that ended within this step of another
  std::vector<Process> issued;   ///< operations that this step issued
  bool ticket = false;           ///< an operation accesses the bytes, not a warp
  bool everything = false;       ///< dependent on all steps
  uint32_t visible = 0;          ///< instructions of the step that touch something

  bool empty() const { return visible == 0 && !everything; }
  /// Returns true when others could notice nothing of the step.
  bool readsOnly() const;
  /// Sorts the bytes and joins what touches.
  void normalize();
  void add(ByteUse use, uint64_t begin, uint64_t end) {
    if (begin < end)
      bytes[uint8_t(use)].push_back({begin, end});
  }
  /// Adds what `other` reads, as a whole.
  void join(const Footprint &other);
};

/// Returns true when the order of one step's accesses before its last instruction and those of the
/// other step can matter. Otherwise each order of all their instructions equals an order of the two
/// steps. Both footprints are normalized.
bool dependInside(const Footprint &first, const Footprint &second);

/// Returns true when accesses of bytes in these two ways commute.
bool commute(uint8_t first, bool firstTicket, uint8_t second, bool secondTicket);
/// Returns true when two accesses of one object commute, where the first came first or might have.
bool commute(const ObjectAccess &first, const ObjectAccess &second);

/// Returns true when the order of two steps can matter. Both footprints are normalized.
bool dependent(const Footprint &first, const Footprint &second);

} // namespace fp4::sim
