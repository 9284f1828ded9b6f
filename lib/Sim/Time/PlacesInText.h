//===- PlacesInText.h - Observers see the order of the text ---------------===//
#pragma once

#include "fp4/Sim/Events.h"
#include "fp4/Sim/Observer.h"
#include <vector>

namespace fp4::sim {

/// Passes events on with the places that their instructions have in the text.
class PlacesInText final : public Observer {
public:
  /// `places`: of each pc of the kernel that runs; empty: the same.
  PlacesInText(Observer &to, std::vector<uint32_t> places) : to(to), places(std::move(places)) {}

  void onLaunch(const LaunchEvent &event) override { to.onLaunch(event); }
  void onMemory(const MemoryEvent &event) override { to.onMemory(moved(event)); }
  void onBarrier(const BarrierEvent &event) override { to.onBarrier(moved(event)); }
  void onTicket(const TicketEvent &event) override { to.onTicket(moved(event)); }
  void onLife(const LifeEvent &event) override { to.onLife(moved(event)); }
  void onActivity(const ActivityEvent &event) override { to.onActivity(moved(event)); }
  void onFence(const FenceEvent &event) override {
    FenceEvent other = moved(event);
    if (event.kind == FenceKind::WgmmaUnfenced && event.groups) // an instruction too
      other.groups = placeOf(uint32_t(event.groups - 1)) + 1;
    to.onFence(other);
  }

private:
  template <typename Event> Event moved(Event event) const {
    event.at.pc = placeOf(event.at.pc);
    return event;
  }
  uint32_t placeOf(uint32_t pc) const { return places.empty() ? pc : places[pc]; }

  Observer &to;
  std::vector<uint32_t> places;
};

} // namespace fp4::sim
