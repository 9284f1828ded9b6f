//===- Observer.h - The event stream of a simulation ----------------------===//
//
// Instructions and engines emit typed events. Observers (the hazard checker, traces, counters)
// listen; instruction code does not call them in any other way. Without an observer an event costs
// one predictable branch. Pointers inside an event are valid only during the call. Each event has a
// header of its own in fp4/Sim/Events, so that only those who emit or read it see a new field.
//
// One launch has one observer; when it is set the clusters run one after the other on one host
// thread, unless it is an ApartObserver.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace fp4::sim {

struct ActivityEvent;
struct BarrierEvent;
struct FenceEvent;
struct LaunchEvent;
struct LifeEvent;
struct MemoryEvent;
struct TicketEvent;

class Observer {
public:
  virtual ~Observer() = default;
  virtual void onLaunch(const LaunchEvent &) {}
  virtual void onMemory(const MemoryEvent &) {}
  virtual void onBarrier(const BarrierEvent &) {}
  virtual void onFence(const FenceEvent &) {}
  virtual void onTicket(const TicketEvent &) {}
  virtual void onLife(const LifeEvent &) {}
  virtual void onActivity(const ActivityEvent &) {}
};

} // namespace fp4::sim
