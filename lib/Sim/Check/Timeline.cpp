//===- Timeline.cpp - A simulation as a trace that Perfetto opens ---------===//
#include "fp4/Sim/Timeline.h"

#include "fp4/Sim/Events.h"
#include "fp4/Sim/Program.h"

#include "Sim/Decode/AddressSpace.h"

#include <algorithm>
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

Timeline::Timeline(std::ostream &out, uint32_t sms) : out(out), sms(sms) { out << kHeader; }

Timeline::~Timeline() {
  endStretches();
  out << "\n]\n" << std::flush;
}

/// Warps of a launch that failed have no end.
void Timeline::endStretches() {
  for (auto &[id, track] : tracks)
    endRunning(id, track.running);
}

void Timeline::write(std::string event) {
  out << (first ? "" : ",\n") << event;
  first = false;
}

bool Timeline::follows(const Actor &actor) const {
  if (sms == 0)
    return true;
  if (!clock)
    return actor.cluster < sms;
  const auto found = smOfCta.find(ctaOf(actor));
  return found != smOfCta.end() && found->second - actor.ctaRank < sms;
}

bool Timeline::tick(const Actor &actor) {
  if (!follows(actor))
    return false;
  if (!clock) {
    latest = ++now;
    return true;
  }
  if (*clock != *clock)
    return false;
  now = begin + *clock;
  latest = std::max(latest, now);
  return true;
}

std::string Timeline::stamp(double when) const {
  return clock ? fmt::format("{:.3f}", when / 1000) : fmt::format("{:.0f}", when);
}

void Timeline::onLaunch(const LaunchEvent &event) {
  endStretches();
  ++launches;
  clock = event.nanoseconds;
  begin = now = latest;
  tracks.clear();
  phases.clear();
  smOfCta.clear();
  launched = event.program.impl().find(event.kernel);
  const std::string program = plain(event.program.name()), kernel = plain(event.kernel);
  write(fmt::format(
      R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":"{} {}","program":"{}","kernel":"{}","unit":"{}"}}}})",
      launches, program, kernel, program, kernel, clock ? "ns" : "events"));
}

uint64_t Timeline::track(const Actor &actor) {
  const uint64_t id = actor.cluster * kClusterTracks + actor.ctaRank * kCtaTracks + actor.warp + 1;
  if (tracks.emplace(id, Track{now, {}}).second) {
    const auto sm = smOfCta.find(ctaOf(actor));
    write(fmt::format(
        R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"cluster {} CTA {} warp {}","cluster":{},"cta":{},"warp":{}{}}}}})",
        launches, id, actor.cluster, actor.ctaRank, actor.warp, actor.cluster, actor.ctaRank,
        actor.warp, sm == smOfCta.end() ? "" : fmt::format(R"(,"sm":{})", sm->second)));
    write(fmt::format(R"({{"ph":"B","pid":{},"tid":{},"ts":{},"name":"warp"}})", launches, id,
                      stamp(now)));
  }
  return id;
}

void Timeline::instant(const Actor &actor, CodePoint at, std::string_view name,
                       std::string_view more) {
  const uint64_t id = track(actor);
  write(fmt::format(
      R"({{"ph":"i","s":"t","pid":{},"tid":{},"ts":{},"name":"{}","args":{{"ptx line":{}{}}}}})",
      launches, id, stamp(now), name, at.line, more));
}

/// `more`: arguments behind the first.
void Timeline::slice(uint64_t track, std::string_view name, double begin, double end,
                     std::string_view more) {
  write(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":"{}","args":{{{}}}}})",
                    launches, track, stamp(begin), stamp(end - begin), name, more));
}

void Timeline::endRunning(uint64_t track, Stretch &running) {
  if (running.end > running.begin) {
    const auto longest = std::ranges::max_element(running.spent);
    slice(track, "running", running.begin, running.end,
          fmt::format(R"("ptx line":{},"last line":{},"issue":{:.2f},"most":"{}")",
                      running.firstLine, running.lastLine,
                      running.spent[size_t(Activity::Issue)] / (running.end - running.begin),
                      stringify(Activity(longest - running.spent.begin()))));
  }
  running = {};
}

void Timeline::onActivity(const ActivityEvent &event) {
  if (!clock || !follows(event.actor))
    return;
  const double from = begin + event.begin, to = begin + event.end;
  now = from; // where a new track begins
  const uint64_t id = track(event.actor);
  Track &mine = tracks[id];
  mine.end = std::max(mine.end, to);
  latest = std::max(latest, to);
  if (event.activity != Activity::Issue && to - from >= kShortest) {
    endRunning(id, mine.running);
    slice(id, stringify(event.activity), from, to, fmt::format(R"("ptx line":{})", event.at.line));
    return;
  }
  Stretch &running = mine.running;
  if (!(running.end > running.begin))
    running = {.begin = from, .end = from, .firstLine = event.at.line};
  running.end = to;
  running.spent[size_t(event.activity)] += to - from;
  running.lastLine = event.at.line;
}

void Timeline::onMemory(const MemoryEvent &event) { tick(event.actor); }

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

/// The mbarrier as arguments of an event; the first one says its name too.
std::string Timeline::objectOf(const BarrierEvent &event) const {
  if (event.op < BarrierOp::MbarInit)
    return "";
  const auto offset = uint32_t(event.object) & kSharedOffsetMask;
  const std::string name =
      launched && event.op == BarrierOp::MbarInit ? plain(launched->sharedSymbol(offset)) : "";
  return fmt::format(R"(,"mbarrier":"{:#x}")", event.object) +
         (name.empty() ? "" : fmt::format(R"(,"symbol":"{}")", name));
}

void Timeline::onBarrier(const BarrierEvent &event) {
  if (event.op == BarrierOp::Exchange || !tick(event.actor))
    return;
  if (event.op == BarrierOp::MbarInit || event.op == BarrierOp::MbarInval ||
      event.op == BarrierOp::MbarPhaseDone)
    mbarrier(event);
  if (event.actor.ticket == 0 || event.op == BarrierOp::MbarArrive)
    instant(event.actor, event.at, nameOf(event.op), objectOf(event));
}

void Timeline::onFence(const FenceEvent &event) {
  if (!tick(event.actor))
    return;
  instant(event.actor, event.at, nameOf(event.kind));
}

void Timeline::onTicket(const TicketEvent &event) {
  if (!tick(event.actor))
    return;
  track(event.actor);
  span(event.state == TicketState::Issued ? 'b' : 'e', event.actor, event.at, stringify(event.kind),
       stringify(event.kind), event.id);
}

void Timeline::endTracks(uint32_t cluster) {
  const auto begin = tracks.lower_bound(cluster * kClusterTracks),
             end = tracks.lower_bound((cluster + 1) * kClusterTracks);
  for (auto it = begin; it != end; ++it) {
    endRunning(it->first, it->second.running);
    write(fmt::format(R"({{"ph":"E","pid":{},"tid":{},"ts":{}}})", launches, it->first,
                      stamp(it->second.end)));
  }
}

void Timeline::onLife(const LifeEvent &event) {
  if (event.op == LifeOp::CtaStart)
    smOfCta[ctaOf(event.actor)] = event.object;
  if (!tick(event.actor))
    return;
  switch (event.op) {
  case LifeOp::WarpExit: // once for every group of lanes that leaves together
    if (double &end = tracks[track(event.actor)].end; end < now)
      end = now;
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
