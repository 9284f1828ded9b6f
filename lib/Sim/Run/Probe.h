//===- Probe.h - Observers of warps that run --------------------*- C++ -*-===//
#pragma once

#include "Sim/State/Cluster.h"
#include "fp4/Sim/Events.h"
#include "fp4/Sim/Observer.h"

namespace fp4::sim {

/// Stands before the observer of a cluster for a while and hands every event on.
class Probe : public Observer {
public:
  Probe(const Cluster &cluster, Observer *next) : cluster(cluster), next(next) {}

  void onMemory(const MemoryEvent &event) override {
    if (next)
      next->onMemory(event);
  }
  void onBarrier(const BarrierEvent &event) override {
    if (next)
      next->onBarrier(event);
  }
  void onFence(const FenceEvent &event) override {
    if (next)
      next->onFence(event);
  }
  void onTicket(const TicketEvent &event) override {
    if (next)
      next->onTicket(event);
  }
  void onLife(const LifeEvent &event) override {
    if (next)
      next->onLife(event);
  }

protected:
  /// Returns true when threads of several warps meet, so that the actions of one depend on the
  /// others.
  static bool meetsOthers(const BarrierEvent &event) {
    return event.op != BarrierOp::WarpSync && event.op != BarrierOp::Exchange &&
           event.op != BarrierOp::Parted;
  }
  const Cluster &cluster;

private:
  Observer *next;
};

} // namespace fp4::sim
