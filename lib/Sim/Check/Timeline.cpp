//===- Timeline.cpp - A simulation as a trace that Perfetto opens ---------===//
#include "fp4/Sim/Timeline.h"

#include "fp4/Sim/Events.h"
#include "fp4/Sim/Program.h"

#include <fmt/format.h>
#include <iterator>

namespace fp4::sim {
namespace {

std::string_view nameOf(BarrierOp op) {
  static constexpr std::string_view names[] = {"barrier.cta arrive",   "barrier.cta pass",
                                               "bar.warp.sync",        "exchange",
                                               "lanes that parted",    "barrier.cluster.arrive",
                                               "barrier.cluster.wait", "mbarrier.init",
                                               "mbarrier.inval",       "mbarrier.arrive",
                                               "mbarrier.expect_tx",   "mbarrier.complete_tx",
                                               "mbarrier phase done",  "mbarrier wait passed"};
  return size_t(op) < std::size(names) ? names[size_t(op)] : "barrier";
}

std::string_view nameOf(FenceKind kind) {
  static constexpr std::string_view names[] = {"fence",
                                               "fence.proxy.async",
                                               "fence.proxy.tensormap",
                                               "fence.proxy.alias",
                                               "fence.mbarrier_init",
                                               "tcgen05.fence::before_thread_sync",
                                               "tcgen05.fence::after_thread_sync",
                                               "tcgen05.wait::ld",
                                               "tcgen05.wait::st",
                                               "operation waited for",
                                               "wgmma without a fence",
                                               "cp.async.bulk.commit_group",
                                               "cp.async.bulk.wait_group"};
  return size_t(kind) < std::size(names) ? names[size_t(kind)] : "fence";
}

/// Without the characters that would end a JSON string.
std::string plain(std::string_view text) {
  std::string result(text);
  for (char &c : result)
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ')
      c = '_';
  return result;
}

constexpr std::string_view kHeader = "[\n";
constexpr uint64_t kCtaTracks = 64, kClusterTracks = 16 * kCtaTracks;

} // namespace

Timeline::Timeline(std::ostream &out) : out(out) { out << kHeader; }

Timeline::~Timeline() { out << "\n]\n" << std::flush; }

void Timeline::write(std::string event) {
  out << (first ? "" : ",\n") << event;
  first = false;
}

bool Timeline::tick() {
  if (!clock) {
    ++now;
    return true;
  }
  if (*clock != *clock)
    return false;
  now = begin + *clock;
  return true;
}

std::string Timeline::stamp(double when) const {
  return clock ? fmt::format("{:.3f}", when / 1000) : fmt::format("{:.0f}", when);
}

void Timeline::onLaunch(const LaunchEvent &event) {
  ++launches;
  clock = event.nanoseconds;
  begin = now;
  tracks.clear();
  phases.clear();
  write(fmt::format(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":"{}"}}}})",
                    launches, plain(fmt::format("{} {}", event.program.name(), event.kernel))));
}

uint64_t Timeline::track(const Actor &actor) {
  const uint64_t id = actor.cluster * kClusterTracks + actor.ctaRank * kCtaTracks + actor.warp + 1;
  if (tracks.emplace(id, now).second) {
    write(fmt::format(
        R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"cluster {} CTA {} warp {}"}}}})",
        launches, id, actor.cluster, actor.ctaRank, actor.warp));
    write(fmt::format(R"({{"ph":"B","pid":{},"tid":{},"ts":{},"name":"warp"}})", launches, id,
                      stamp(now)));
  }
  return id;
}

void Timeline::instant(const Actor &actor, CodePoint at, std::string_view name) {
  const uint64_t id = track(actor);
  write(fmt::format(
      R"({{"ph":"i","s":"t","pid":{},"tid":{},"ts":{},"name":"{}","args":{{"ptx line":{}}}}})",
      launches, id, stamp(now), name, at.line));
}

void Timeline::span(char phase, const Actor &actor, CodePoint at, std::string_view category,
                    std::string_view name, uint64_t id) {
  write(fmt::format(
      R"({{"ph":"{}","cat":"{}","id":"{}.{}","pid":{},"ts":{},"name":"{}","args":{{"ptx line":{},"warp":{}}}}})",
      phase, category, actor.cluster, id, launches, stamp(now), name, at.line, actor.warp));
}

/// A span for each phase, from the end of the one before.
void Timeline::mbarrier(const BarrierEvent &event) {
  const auto key = std::pair(event.actor.cluster, event.object);
  auto open = phases.find(key);
  const auto name = [&](uint64_t phase) {
    return fmt::format("mbarrier {:#x} phase {}", event.object, phase);
  };
  if (open != phases.end()) {
    span('e', event.actor, event.at, "mbarrier", name(open->second), event.object);
    phases.erase(open);
  }
  if (event.op == BarrierOp::MbarInval)
    return;
  const uint64_t next = event.op == BarrierOp::MbarInit ? 0 : event.count + 1;
  phases[key] = next;
  span('b', event.actor, event.at, "mbarrier", name(next), event.object);
}

void Timeline::onBarrier(const BarrierEvent &event) {
  if (event.op == BarrierOp::Exchange || !tick())
    return;
  if (event.op == BarrierOp::MbarInit || event.op == BarrierOp::MbarInval ||
      event.op == BarrierOp::MbarPhaseDone)
    mbarrier(event);
  if (event.actor.ticket == 0)
    instant(event.actor, event.at, nameOf(event.op));
}

void Timeline::onFence(const FenceEvent &event) {
  if (!tick())
    return;
  instant(event.actor, event.at, nameOf(event.kind));
}

void Timeline::onTicket(const TicketEvent &event) {
  if (!tick())
    return;
  track(event.actor);
  span(event.state == TicketState::Issued ? 'b' : 'e', event.actor, event.at, stringify(event.kind),
       stringify(event.kind), event.id);
}

void Timeline::endTracks(uint32_t cluster) {
  const auto begin = tracks.lower_bound(cluster * kClusterTracks),
             end = tracks.lower_bound((cluster + 1) * kClusterTracks);
  for (auto it = begin; it != end; ++it)
    write(fmt::format(R"({{"ph":"E","pid":{},"tid":{},"ts":{}}})", launches, it->first,
                      stamp(it->second)));
}

void Timeline::onLife(const LifeEvent &event) {
  if (!tick())
    return;
  switch (event.op) {
  case LifeOp::WarpExit: // once for every group of lanes that leaves together
    tracks[track(event.actor)] = now;
    return;
  case LifeOp::ClusterEnd:
    endTracks(event.actor.cluster);
    return;
  case LifeOp::TmemAlloc:
  case LifeOp::TmemDealloc:
    span(event.op == LifeOp::TmemAlloc ? 'b' : 'e', event.actor, event.at, "tensor memory",
         fmt::format("tensor memory {:#x}", event.object),
         uint64_t(event.actor.ctaRank) << 32 | event.object);
    return;
  default:
    return;
  }
}

} // namespace fp4::sim
