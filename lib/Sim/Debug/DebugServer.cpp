//===- DebugServer.cpp - The side of a debugger that sees the simulator ---===//
#include "DebugServer.h"
#include "fp4/Sim/HazardChecker.h"
#include "fp4/Support/JsonText.h"

#include <bit>
#include <fmt/format.h>

namespace fp4::sim {

std::unique_ptr<Stepper> makeDebugServer(int socket) {
  return std::make_unique<debug::DebugServer>(socket);
}

namespace debug {

//===----------------------------------------------------------------------===//
// Reasons to stop
//===----------------------------------------------------------------------===//

void DebugServer::began(const Launch &next) {
  launch = &next;
  cluster = nullptr;
  warp = nullptr;
  seen.clear();
  begins = true;
  breakpoints.enter(*next.program, *next.kernel);
}

void DebugServer::hazard(const HazardReport &report) { found += report.text(); }

/// The line that a person sees: that of the source, where there is one.
uint32_t DebugServer::lineAt(uint32_t pc) const {
  const Insn &insn = launch->kernel->code[pc];
  return insn.debugFile ? insn.debugLine : insn.line;
}

bool DebugServer::before(Cluster &now, Warp &next, const LaneGroup &group) {
  constexpr uint64_t kLook = 1024; // instructions between looks at the socket
  if (!attached)
    return true;
  if (cluster != &now)
    seen.clear();
  cluster = &now;
  warp = &next;
  current = numberOf(next);
  const Place place{group.pc, group.mask};
  Place &last = seen.try_emplace(current, Place{}).first->second;
  const bool moved = !(last == place); // a wait that failed is executed again
  last = place;
  if (++count % kLook == 0)
    while (attached && socket.pending()) {
      const auto line = socket.receive();
      attached = line && socket.send(jsonText(answer(Json::parse(*line, nullptr, false))));
    }
  const std::optional<Stop> stop = whyStop(next, place, moved);
  return !stop || converse(*stop, place);
}

std::optional<DebugServer::Stop> DebugServer::whyStop(const Warp &next, Place place, bool moved) {
  if (std::exchange(begins, false) && (std::exchange(first, false) || breakpoints.atBegin()))
    return Stop{"launch", fmt::format("kernel '{}' begins", displayName(launch->kernel->info.name)),
                breakpoints.atBegin()};
  if (!found.empty())
    return Stop{"hazard", std::exchange(found, "")};
  if (std::exchange(paused, false))
    return Stop{"pause", "stopped"};
  if (auto stop = steppedTo(next, place, moved))
    return stop;
  if (const int id = moved ? breakpoints.at(place.pc) : 0)
    return Stop{"breakpoint", fmt::format("breakpoint {}", id), id};
  return std::nullopt;
}

std::optional<DebugServer::Stop> DebugServer::steppedTo(const Warp &next, Place place, bool moved) {
  if (mode == Mode::Run)
    return std::nullopt;
  const Warp *stepping = warpOf(*cluster, target);
  if (!stepping || stepping->done())
    return Stop{"step", "the warp has exited"};
  if (stepping != &next || !moved)
    return std::nullopt;
  if (mode == Mode::Line ? lineAt(place.pc) == line : --steps > 0)
    return std::nullopt;
  return Stop{"step", "stepped"};
}

void DebugServer::failed(Cluster &now, const Error &error) {
  if (!attached || ends)
    return;
  // A cluster that has executed nothing yet: the warp is one of a cluster that may be gone.
  warp = cluster == &now ? warpOf(now, current) : nullptr;
  if (!warp)
    warp = &now.ctas[0]->warps[0];
  cluster = &now;
  const uint32_t pc = warp->groups.empty() ? 0 : warp->groups[0].pc;
  const std::string text = std::exchange(found, "") + format(error);
  converse({"error", text}, {pc, warp->groups.empty() ? 0 : warp->groups[0].mask});
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

bool DebugServer::converse(const Stop &stop, Place place) {
  mode = Mode::Run;
  goes = false;
  Json event = placeOf(*launch, place.pc);
  event.update({{"event", "stopped"},
                {"reason", stop.reason},
                {"text", stop.text},
                {"breakpoint", stop.breakpoint},
                {"warp", numberOf(*warp)},
                {"name", nameOf(*warp)},
                {"lanes", fmt::format("{:#010x}", place.mask)},
                {"kernel", displayName(launch->kernel->info.name)},
                {"program", launch->program->name}});
  attached = socket.send(jsonText(event));
  while (attached && !goes) {
    const std::optional<std::string> request = socket.receive();
    attached = request && socket.send(jsonText(answer(Json::parse(*request, nullptr, false))));
  }
  return !ends;
}

/// The instruction at which a warp stands: its last one, or that of its first group when it has not
/// run since this cluster began.
uint32_t DebugServer::pcOf(uint32_t number) const {
  if (const auto at = seen.find(number); at != seen.end())
    return at->second.pc;
  const Warp *known = warpOf(*cluster, number);
  return known && !known->groups.empty() ? known->groups[0].pc : 0;
}

/// A request with a field of another type throws before anything has changed.
void DebugServer::go(Mode next, const Json &request) {
  const auto number = request.value("warp", numberOf(*warp));
  steps = std::max<uint64_t>(1, request.value("count", uint64_t(1)));
  target = number;
  mode = next;
  goes = true;
  line = lineAt(pcOf(target));
}

Json DebugServer::answer(const Json &request) {
  if (!request.is_object() || !request.contains("do") || !request["do"].is_string())
    return {{"error", "a command is an object with \"do\""}};
  const std::string what = request["do"];
  Json reply = {{"reply", what}};
  try {
    if (what == "continue")
      go(Mode::Run, request);
    else if (what == "step")
      go(Mode::Step, request);
    else if (what == "next")
      go(Mode::Line, request);
    else if (what == "pause")
      paused = true;
    else if (what == "quit")
      goes = ends = true;
    else if (Expected<Json> seenThere = look(what, request))
      reply["value"] = std::move(*seenThere);
    else
      reply["error"] = seenThere.error().message;
  } catch (const Json::exception &error) { // a field of another type
    reply["error"] = error.what();
  }
  return reply;
}

Json DebugServer::describeBreakpoints() const {
  Json list = Json::array();
  for (const Breakpoint &b : breakpoints.list())
    list.push_back({{"breakpoint", b.id},
                    {"file", b.file},
                    {"line", b.line},
                    {"opcode", b.opcode},
                    {"kernel", b.kernel},
                    {"stops_at", breakpoints.lineOf(b.id)}});
  return list;
}

Json DebugServer::addBreakpoint(const Json &request) {
  const int id = breakpoints.add({0, request.value("file", ""), request.value("line", 0u),
                                  request.value("opcode", ""), request.value("kernel", "")});
  return {{"breakpoint", id},
          {"stops_at", breakpoints.lineOf(id)},
          {"places", breakpoints.placesOf(id)}};
}

Expected<Json> DebugServer::look(const std::string &what, const Json &request) {
  if (what == "break")
    return addBreakpoint(request);
  if (what == "delete" && !breakpoints.remove(request.value("breakpoint", 0)))
    return makeError(ErrorKind::Usage, "there is no such breakpoint");
  if (what == "clear")
    breakpoints.removeLines(request.value("file", ""));
  if (what == "clear_names")
    breakpoints.removeNames();
  if (what == "delete" || what == "breakpoints" || what.starts_with("clear"))
    return describeBreakpoints();
  if (what == "warps")
    return warpsOf(*cluster);
  if (what == "mbarriers")
    return mbarriersOf(*cluster);
  if (what == "barriers")
    return barriersOf(*cluster);
  if (what == "tickets")
    return ticketsOf(*cluster);
  const Warp *chosen = warpOf(*cluster, request.value("warp", numberOf(*warp)));
  if (!chosen)
    return makeError(ErrorKind::Usage, "the cluster has no such warp");
  if (what == "source")
    return sourceOf(*launch, pcOf(numberOf(*chosen)));
  if (what == "tile")
    return tileOf(*cluster, chosen->cta->rank, request);
  if (what == "tensor")
    return tensorTileOf(*cluster, chosen->cta->rank, request);
  if (what == "groups")
    return groupsOf(*launch, *chosen);
  const int lane = request.value("lane", chosen->live ? std::countr_zero(chosen->live) : 0);
  if (lane < 0 || lane >= 32)
    return makeError(ErrorKind::Usage, fmt::format("a lane is 0 to 31, but got {}", lane));
  if (what == "registers")
    return registersOf(*launch, *chosen, lane);
  if (what == "register")
    return registerOf(*launch, *chosen, request.value("name", ""), request.value("type", ""));
  return makeError(ErrorKind::Usage, fmt::format("there is no command '{}'", what));
}

} // namespace debug
} // namespace fp4::sim
