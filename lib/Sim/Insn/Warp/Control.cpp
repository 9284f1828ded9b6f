//===- Control.cpp - Branches, exits, barriers and fences -----------------===//
// PTX ISA 9.7.12 "Control Flow", 9.7.13 "Parallel Synchronization": bar, barrier, fence, membar.
#include "Sim/Async/TicketQueue.h"
#include "Sim/Decode/Handlers.h"
#include "Sim/Insn/Lanes.h"
#include "Sim/Insn/Warp/Members.h"
#include "Sim/State/Awaited.h"
#include "Sim/State/Barriers.h"
#include "fp4/Sim/Events/BarrierEvent.h"
#include "fp4/Sim/Events/FenceEvent.h"
#include "fp4/Sim/Observer.h"
#include <fmt/format.h>

using namespace fp4;
using namespace fp4::sim;

namespace {

Outcome bra(ExecContext &cx, const Insn &insn) {
  cx.target = insn.target;
  return Outcome::Jump;
}

Outcome exitLanes(ExecContext &, const Insn &) { return Outcome::Exit; }

Outcome trap(ExecContext &cx, const Insn &) {
  return cx.fail("the program executed trap", "the kernel itself found an error", cx.firstLane());
}

//===----------------------------------------------------------------------===//
// barrier.cta
//===----------------------------------------------------------------------===//

BarrierArrivals &arrivalsAt(const Cta &cta, uint32_t id) {
  return static_cast<TicketQueue &>(*cta.cluster->async).state(cta.rank).barrierArrivals[id];
}

class BarrierWait : public Wait, public AwaitsWarps {
public:
  BarrierWait(const Cta &cta, uint32_t id)
      : cta(cta), id(id), generation(cta.barriers[id].generation) {}
  bool ready() const override { return cta.barriers[id].generation != generation; }
  std::string describe() const override {
    const CtaBarrier &b = cta.barriers[id];
    const Launch *launch = cta.cluster->launch;
    const BarrierArrivals &arrivals = arrivalsAt(cta, id);
    const uint32_t wanted = b.expected ? b.expected : cta.barrierThreads();
    std::string text =
        fmt::format("barrier {} of its CTA: {} of {} threads have arrived: {}", id, b.arrived,
                    wanted, listArrivals(arrivals.now(generation), launch));
    if (const ArrivalEvents &before = arrivals.before(generation); !before.empty())
      text += "; in the phase before: " + listArrivals(before, launch);
    return text;
  }
  Awaited awaited() const override {
    return {Awaited::What::Barrier, cta.rank, id, fmt::format("barrier {}", id)};
  }

private:
  const Cta &cta;
  uint32_t id;
  uint64_t generation;
};

void emitBarrier(ExecContext &cx, BarrierOp op, uint64_t object, uint64_t count,
                 MemOrder order = MemOrder::AcqRel) {
  if (!cx.observer)
    return;
  BarrierEvent event;
  event.actor = cx.actor();
  event.at = cx.here();
  event.op = op;
  event.object = object;
  event.count = count;
  event.laneMask = cx.mask;
  event.order = order;
  event.scope =
      op == BarrierOp::ClusterArrive || op == BarrierOp::ClusterWait ? Scope::Cluster : Scope::Cta;
  cx.observer->onBarrier(event);
}

/// Validates the operands and arrives. False after an error.
bool arrive(ExecContext &cx, const Operand &idOperand, const Operand &countOperand, uint32_t &id) {
  id = static_cast<uint32_t>(cx.scalar(idOperand));
  if (id >= 16) {
    cx.fail(fmt::format("a barrier number must be below 16, but got {}", id));
    return false;
  }
  CtaBarrier &barrier = cx.cta().barriers[id];
  uint32_t count = countOperand ? static_cast<uint32_t>(cx.scalar(countOperand)) : 0;
  if (countOperand && (count == 0 || count % 32 != 0)) {
    cx.fail(fmt::format(
        "the thread count of a barrier must be a positive multiple of 32, but got {}", count));
    return false;
  }
  if (barrier.arrived && barrier.expected != count) {
    cx.fail(fmt::format("barrier {} is used with {} threads here, but others arrived with {}", id,
                        count ? std::to_string(count) : "all",
                        barrier.expected ? std::to_string(barrier.expected) : "all"),
            "arrived already: " +
                listArrivals(arrivalsAt(cx.cta(), id).now(barrier.generation), &cx.launch()));
    return false;
  }
  barrier.expected = count;
  emitBarrier(cx, BarrierOp::CtaArrive, id, barrier.generation);
  arrivalsAt(cx.cta(), id).add({cx.actor(), cx.here()}, barrier.generation);
  bool whole = cx.mask == cx.warp().live;
  arriveAt(cx.cta(), id, whole ? 32u : static_cast<uint32_t>(std::popcount(cx.mask)));
  return true;
}

Outcome waitBarrier(ExecContext &cx, uint32_t id, uint64_t generation) {
  cx.token = (generation + 1) << 8 | id | 0x80;
  if (cx.cta().barriers[id].generation != generation)
    return Outcome::Next;
  return cx.block(std::make_unique<BarrierWait>(cx.cta(), id));
}

/// Arrives at the first execution; passes at the second. Returns Next when the barrier is behind.
Outcome syncBarrier(ExecContext &cx, const Insn &insn, const Operand &id, const Operand &count) {
  if (!cx.token) {
    if (insn.as<BarrierModifiers>().aligned && !cx.together())
      return Outcome::Retry;
    uint32_t number;
    uint64_t generation[16];
    for (int i = 0; i < 16; ++i)
      generation[i] = cx.cta().barriers[static_cast<size_t>(i)].generation;
    if (!arrive(cx, id, count, number))
      return Outcome::Error;
    if (waitBarrier(cx, number, generation[number]) == Outcome::Retry)
      return Outcome::Retry;
  }
  emitBarrier(cx, BarrierOp::CtaPass, cx.token & 0x7F, (cx.token >> 8) - 1);
  cx.token = 0;
  return Outcome::Next;
}

Outcome barSync(ExecContext &cx, const Insn &insn) {
  return syncBarrier(cx, insn, insn.op[0], insn.op[1]);
}

Outcome barArrive(ExecContext &cx, const Insn &insn) {
  if (insn.as<BarrierModifiers>().aligned && !cx.together())
    return Outcome::Retry;
  uint32_t id;
  return arrive(cx, insn.op[0], insn.op[1], id) ? Outcome::Next : Outcome::Error;
}

/// op: d, a, [b,] p.
Outcome barRed(ExecContext &cx, const Insn &insn) {
  const Operand none;
  const auto &how = insn.as<BarrierModifiers>();
  bool counted = how.predicate == 3;
  if (!cx.token && (!how.aligned || cx.together())) {
    auto id = static_cast<uint32_t>(cx.scalar(insn.op[1])) & 15;
    CtaBarrier &barrier = cx.cta().barriers[id];
    barrier.trues +=
        static_cast<uint32_t>(std::popcount(cx.predicate(insn.op[how.predicate]) & cx.mask));
    barrier.reducers += static_cast<uint32_t>(std::popcount(cx.mask));
  }
  auto id = static_cast<uint32_t>(cx.scalar(insn.op[1])) & 15;
  Outcome outcome = syncBarrier(cx, insn, insn.op[1], counted ? insn.op[2] : none);
  if (outcome != Outcome::Next)
    return outcome;
  const CtaBarrier &barrier = cx.cta().barriers[id];
  bool all = barrier.lastTrues == barrier.lastReducers, any = barrier.lastTrues > 0;
  if (how.reduction == BarrierReduction::Popc)
    cx.store<uint32_t>(insn.op[0], [&](int) { return barrier.lastTrues; });
  else
    cx.setPredicate(insn.op[0],
                    (how.reduction == BarrierReduction::And ? all : any) ? kAllLanes : 0);
  return Outcome::Next;
}

void barWarpSync(ExecContext &cx, const Insn &) { emitBarrier(cx, BarrierOp::WarpSync, 0, 0); }

//===----------------------------------------------------------------------===//
// barrier.cluster
//===----------------------------------------------------------------------===//

class ClusterWait : public Wait, public AwaitsWarps {
public:
  ClusterWait(const Warp &warp, uint32_t lanes) : warp(warp), lanes(lanes) {}
  bool ready() const override { return (warp.clusterArrived & lanes) == 0; }
  std::string describe() const override {
    const Cluster &cluster = *warp.cta->cluster;
    return fmt::format("the cluster barrier: {} of {} threads have arrived",
                       cluster.barrier.arrived, cluster.liveThreads);
  }
  Awaited awaited() const override {
    return {Awaited::What::ClusterBarrier, 0, 0, "the cluster barrier"};
  }

private:
  const Warp &warp;
  uint32_t lanes;
};

Outcome clusterArrive(ExecContext &cx, const Insn &insn) {
  const auto &how = insn.as<ClusterBarrierModifiers>();
  if (how.aligned && !cx.together())
    return Outcome::Retry;
  Warp &warp = cx.warp();
  if (warp.clusterPending & cx.mask)
    return cx.fail("barrier.cluster.arrive again without barrier.cluster.wait in between", "",
                   std::countr_zero(warp.clusterPending & cx.mask));
  warp.clusterPending |= cx.mask;
  emitBarrier(cx, BarrierOp::ClusterArrive, 0, cx.cluster().barrier.generation, how.order);
  arriveAtCluster(warp, cx.mask);
  return Outcome::Next;
}

Outcome clusterWait(ExecContext &cx, const Insn &insn) {
  if (insn.as<ClusterBarrierModifiers>().aligned && !cx.together())
    return Outcome::Retry;
  Warp &warp = cx.warp();
  if (cx.mask & ~warp.clusterPending)
    return cx.fail("barrier.cluster.wait without barrier.cluster.arrive before it", "",
                   std::countr_zero(cx.mask & ~warp.clusterPending));
  if (warp.clusterArrived & cx.mask)
    return cx.block(std::make_unique<ClusterWait>(warp, cx.mask));
  warp.clusterPending &= ~cx.mask;
  emitBarrier(cx, BarrierOp::ClusterWait, 0, cx.cluster().barrier.generation);
  return Outcome::Next;
}

//===----------------------------------------------------------------------===//
// Fences and the rest
//===----------------------------------------------------------------------===//

FenceEvent fenceEvent(ExecContext &cx, const Insn &insn) {
  const auto &how = insn.as<FenceModifiers>();
  FenceEvent event;
  event.actor = cx.actor();
  event.at = cx.here();
  event.kind = how.kind;
  event.order = how.order;
  event.scope = how.scope;
  event.space = how.space;
  event.laneMask = cx.mask;
  return event;
}

Outcome fence(ExecContext &cx, const Insn &insn) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (cx.observer)
    cx.observer->onFence(fenceEvent(cx, insn));
  return Outcome::Next;
}

/// op[0] = the tensor map, of each lane.
Outcome acquireTensormap(ExecContext &cx, const Insn &insn) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  const auto map = [&](int lane) {
    return cx.place(Space::Generic, cx.address(insn.op[0], lane)).address;
  };
  for (uint32_t rest = cx.observer ? cx.mask : 0; rest;) {
    FenceEvent event = fenceEvent(cx, insn);
    event.groups = map(std::countr_zero(rest));
    event.laneMask = 0; // lanes that acquire this map
    for (uint32_t lanes = rest; lanes; lanes &= lanes - 1)
      if (map(std::countr_zero(lanes)) == event.groups)
        event.laneMask |= lanes & (0 - lanes);
    rest &= ~event.laneMask;
    cx.observer->onFence(event);
  }
  return Outcome::Next;
}

Outcome sleepHint(ExecContext &, const Insn &) { return Outcome::Yield; }

Status useFence(BindContext &cx, FenceKind kind, MemOrder order, Scope scope,
                Space space = Space::Generic) {
  cx.insn.make<FenceModifiers>({kind, order, scope, space});
  return cx.use(fence);
}

/// bar means aligned; barrier says so.
bool isAligned(BindContext &cx) { return !cx.match.find("aligned") || cx.match.has("aligned"); }

Status useBarrier(BindContext &cx, Handler handler) {
  cx.insn.make<BarrierModifiers>({isAligned(cx)});
  return cx.use(handler);
}

Status barrierReduction(BindContext &cx, uint8_t predicateIndex) {
  const auto reduction = cx.match.pick<BarrierReduction>("op");
  cx.insn.make<BarrierModifiers>({isAligned(cx), reduction, predicateIndex});
  bool popc = reduction == BarrierReduction::Popc;
  if (cx.insn.type != (popc ? Type::U32 : Type::Pred))
    return useFor(cx, nullptr);
  return cx.use(barRed);
}

} // namespace

Handler fp4::sim::exitHandler() { return exitLanes; }

namespace fp4::sim {

Status bindBra(BindContext &cx) {
  cx.insn.flow = Flow::Branch;
  return cx.use(bra);
}
Status bindExit(BindContext &cx) {
  cx.insn.flow = Flow::Exit;
  return cx.use(exitLanes);
}
Status bindTrap(BindContext &cx) { return cx.use(trap); }

Status bindBarSync(BindContext &cx) { return useBarrier(cx, barSync); }
Status bindBarArrive(BindContext &cx) { return useBarrier(cx, barArrive); }
Status bindBarRed(BindContext &cx) { return barrierReduction(cx, 3); }
Status bindBarRedAll(BindContext &cx) { return barrierReduction(cx, 2); }
Status bindBarWarpSync(BindContext &cx) { return cx.use(together<barWarpSync, 0>); }

Status bindClusterArrive(BindContext &cx) {
  MemOrder order = cx.match.order("sem", MemOrder::Release);
  if (order != MemOrder::Release && order != MemOrder::Relaxed)
    return cx.fail("expects .release or .relaxed");
  cx.insn.make<ClusterBarrierModifiers>({cx.match.has("aligned"), order});
  return cx.use(clusterArrive);
}

Status bindClusterWait(BindContext &cx) {
  if (cx.match.order("sem", MemOrder::Acquire) != MemOrder::Acquire)
    return cx.fail("expects .acquire");
  cx.insn.make<ClusterBarrierModifiers>({cx.match.has("aligned"), MemOrder::Acquire});
  return cx.use(clusterWait);
}

/// membar is a fence.sc since sm_70.
Status bindMembar(BindContext &cx) {
  const std::string_view scope = cx.match.text("scope");
  return useFence(cx, FenceKind::Thread, MemOrder::SeqCst,
                  scope == "gl"    ? Scope::Gpu
                  : scope == "sys" ? Scope::Sys
                                   : Scope::Cta);
}

Status bindFence(BindContext &cx) {
  MemOrder order = cx.match.order("sem", MemOrder::AcqRel);
  if (order == MemOrder::Weak || order == MemOrder::Relaxed || order == MemOrder::Volatile ||
      order == MemOrder::Mmio)
    return cx.fail("expects .acq_rel, .sc, .acquire or .release");
  return useFence(cx, FenceKind::Thread, order, cx.match.scope());
}

Status bindFenceProxyAsync(BindContext &cx) {
  Space space = cx.match.text("space") == "global"            ? Space::Global
                : cx.match.text("space") == "shared::cta"     ? Space::SharedCta
                : cx.match.text("space") == "shared::cluster" ? Space::SharedCluster
                                                              : Space::Generic;
  return useFence(cx, FenceKind::ProxyAsync, MemOrder::AcqRel, Scope::Cta, space);
}

Status bindFenceProxyAlias(BindContext &cx) {
  return useFence(cx, FenceKind::ProxyAlias, MemOrder::AcqRel, Scope::Cta);
}

Status bindFenceTensormap(BindContext &cx) {
  const MemOrder order = cx.match.order("sem", MemOrder::AcqRel);
  const bool acquires = order == MemOrder::Acquire;
  if ((!acquires && order != MemOrder::Release) || acquires != bool(cx.insn.op[0]))
    return cx.fail("expects .release, or .acquire with an address and a size");
  if (acquires && cx.insn.op[1].imm != 128)
    return cx.fail("expects a size of 128, but got " + std::to_string(cx.insn.op[1].imm));
  FP4_TRY(useFence(cx, FenceKind::ProxyTensormap, order, cx.match.scope()));
  return acquires ? cx.use(acquireTensormap) : Status();
}

Status bindFenceMbarrierInit(BindContext &cx) {
  return useFence(cx, FenceKind::MbarrierInit, MemOrder::Release, Scope::Cluster);
}

Status bindNanosleep(BindContext &cx) {
  cx.insn.flow = Flow::Sleep;
  return useFor(cx, cx.insn.type == Type::U32 ? sleepHint : nullptr);
}

} // namespace fp4::sim
