//===- ObserverList.h - Several observers of one simulation ---------------===//
#pragma once

#include "fp4/Sim/Observer.h"
#include <vector>

namespace fp4::sim {

/// Hands every event to each of its members, in order.
class ObserverList final : public Observer {
public:
  void add(Observer *observer) { members.push_back(observer); }
  void remove(Observer *observer) { std::erase(members, observer); }

  void onLaunch(const LaunchEvent &e) override { each(&Observer::onLaunch, e); }
  void onMemory(const MemoryEvent &e) override { each(&Observer::onMemory, e); }
  void onBarrier(const BarrierEvent &e) override { each(&Observer::onBarrier, e); }
  void onFence(const FenceEvent &e) override { each(&Observer::onFence, e); }
  void onTicket(const TicketEvent &e) override { each(&Observer::onTicket, e); }
  void onLife(const LifeEvent &e) override { each(&Observer::onLife, e); }
  void onActivity(const ActivityEvent &e) override { each(&Observer::onActivity, e); }

private:
  template <typename Event>
  void each(void (Observer::*handler)(const Event &), const Event &event) {
    for (Observer *member : members)
      (member->*handler)(event);
  }
  std::vector<Observer *> members;
};

} // namespace fp4::sim
