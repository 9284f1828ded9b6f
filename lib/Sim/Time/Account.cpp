//===- Account.cpp - Activities that took the time of a timed launch ------===//
#include "Sim/Time/Account.h"
#include <fmt/format.h>
#include <iterator>
#include <span>

namespace fp4::sim {

std::string_view stringify(Activity activity) {
  static constexpr std::string_view names[] = {
      "issue",   "arithmetic", "global load", "shared memory", "busy unit", "other warps",
      "barrier", "mbarrier",   "async work",  "fence",         "branch"};
  static_assert(std::size(names) == kActivities);
  return names[size_t(activity)];
}

void Account::add(uint32_t warp, const WarpAccount &one) {
  if (places.size() <= warp)
    places.resize(warp + 1);
  Place &place = places[warp];
  for (size_t i = 0; i < kActivities; ++i)
    place.sum.cycles[i] += one.cycles[i];
  place.sum.instructions += one.instructions;
  place.sum.units |= one.units;
  ++place.warps;
}

namespace {

uint32_t maskOf(std::initializer_list<Unit> units) {
  uint32_t mask = 0;
  for (Unit unit : units)
    mask |= 1u << unsigned(unit);
  return mask;
}

/// Returns the units that tell roles apart; arithmetic does not.
uint32_t telling(uint32_t units) {
  return units & maskOf({Unit::Copy, Unit::Wgmma, Unit::MmaSync, Unit::Async, Unit::TmemMove,
                         Unit::TmemAlloc});
}

std::string nameOf(uint32_t units, uint32_t first, uint32_t last) {
  const bool copies = units & maskOf({Unit::Copy}), wgmma = units & maskOf({Unit::Wgmma}),
             reads = units & maskOf({Unit::TmemMove}), async = units & maskOf({Unit::Async}),
             sync = units & maskOf({Unit::MmaSync});
  const std::string_view what = wgmma || sync ? "products"
                                : reads       ? "epilogue"
                                : copies      ? "copies"
                                : async       ? "products"
                                              : "threads";
  return first == last ? fmt::format("{}: warp {}", what, first)
                       : fmt::format("{}: warps {} to {}", what, first, last);
}

} // namespace

std::vector<RoleTime> Account::roles() const {
  std::vector<RoleTime> result;
  for (uint32_t first = 0; first < places.size();) {
    uint32_t last = first;
    while (last + 1 < places.size() &&
           telling(places[last + 1].sum.units) == telling(places[first].sum.units))
      ++last;
    RoleTime role{nameOf(places[first].sum.units, first, last), first, last};
    double total = 0, warps = 0;
    for (uint32_t i = first; i <= last; ++i) {
      for (size_t a = 0; a < kActivities; ++a) {
        role.share[a] += places[i].sum.cycles[a];
        total += places[i].sum.cycles[a];
      }
      role.instructions += places[i].sum.instructions;
      warps += double(places[i].warps);
    }
    for (double &share : role.share)
      share /= total > 0 ? total : 1;
    role.instructions /= warps > 0 ? warps : 1;
    result.push_back(std::move(role));
    first = last + 1;
  }
  return result;
}

std::vector<ResourceTime> resourcesOf(const Machine &machine, double cycles,
                                      size_t processors) {
  std::vector<ResourceTime> result;
  const auto add = [&](std::string_view name, double busy) {
    if (busy > 0)
      result.push_back({std::string(name), busy / cycles});
  };
  const auto of = [&](const auto &server) { return server.busyUntil(cycles); };
  add("device memory", of(machine.memory.device));
  add("L2", std::max(of(machine.memory.l2), of(machine.memory.delivery)));
  double issue = 0, port = 0, shared = 0, copies = 0, tensor = 0, exchange = 0;
  std::array<double, kPipes> pipes{};
  for (const Sm &sm : std::span(machine.processors).first(processors)) {
    for (unsigned s = 0; s < kSchedulers; ++s) {
      issue += of(sm.issue[s]) / kSchedulers;
      for (unsigned p = 0; p < kPipes; ++p)
        pipes[p] += of(sm.pipes[s][p]) / kSchedulers;
    }
    port += std::max(of(sm.port.loads), of(sm.port.stores));
    shared += of(sm.shared);
    copies += of(sm.engine.copies);
    tensor += of(sm.tensor.tcgen05);
    exchange += of(sm.exchange);
  }
  const double n = double(processors);
  add("issue slots", issue / n);
  add("port to L2", port / n);
  add("shared memory", shared / n);
  add("copy engine", copies / n);
  add("exchange between lanes", exchange / n);
  add(tensor > 0 ? "tensor core" : "tensor cores", (tensor > 0 ? tensor : pipes[PipeTensor]) / n);
  add("integer pipe", pipes[PipeAlu] / n);
  add("fp32 pipe", (pipes[PipeHeavy] + pipes[PipeLite]) / 2 / n);
  add("16-bit float pipe", pipes[PipeHalf] / n);
  add("special functions", pipes[PipeMufu] / n);
  add("fp64 pipe", pipes[PipeDouble] / n);
  std::sort(result.begin(), result.end(),
            [](const auto &a, const auto &b) { return a.busy > b.busy; });
  return result;
}

} // namespace fp4::sim
