//===- Explorer.cpp - Choice of the next order ----------------------------===//
#include "Sim/Orders/Explorer.h"
#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <sstream>

namespace fp4::sim {

//===----------------------------------------------------------------------===//
// One order
//===----------------------------------------------------------------------===//

std::vector<Explorer::Sleeper> Explorer::asleepAt(size_t depth) const {
  std::vector<Sleeper> asleep;
  if (depth == 0)
    return asleep;
  const Place &before = places[depth - 1];
  for (const Sleeper &sleeper : before.asleep)
    if (sleeper.process != before.chosen && !dependent(*sleeper.next, *before.footprint))
      asleep.push_back(sleeper);
  return asleep;
}

static bool isAmong(const auto &sleepers, Process process) {
  return std::ranges::any_of(sleepers, [&](const auto &s) { return s.process == process; });
}

/// Notes the processes that wait in a loop, which have looked in vain. A pass of the loop that
/// finds nothing is no step, because an order without it ends in the same way. But the pass races
/// with the step that keeps it from finding what it waits for: it could have come earlier, and
/// found it.
Status Explorer::noteWaiting(size_t depth) {
  if (!options.reduce)
    return {};
  for (const Process process : program.pollers()) {
    acting = process;
    FP4_ASSIGN(auto looks, program.waits(process));
    acting.reset();
    if (!looks)
      continue;
    const auto footprint = std::make_shared<const Footprint>(*looks);
    places[depth].waiting.push_back({process, footprint});
    const Place *before = depth ? &places[depth - 1] : nullptr;
    const bool known = before && before->chosen != process && isAmong(before->waiting, process) &&
                       !dependent(*footprint, *before->footprint);
    if (known)
      continue;
    noteRaces(trace.look(process, *footprint));
    trace.forgetLook();
  }
  return {};
}

/// Each race wants its steps the other way round, unless a process that begins so is wanted
/// already.
void Explorer::noteRaces(std::span<const uint32_t> races) {
  for (const uint32_t step : races) {
    const std::vector<Process> initials = trace.initialsAgainst(step);
    std::vector<Process> &wanted = places[step].wanted;
    const auto isWanted = [&](Process p) { return std::ranges::find(wanted, p) != wanted.end(); };
    if (initials.empty() || std::ranges::any_of(initials, isWanted))
      continue;
    const Process last = trace.processOf(trace.size() - 1);
    const bool direct = std::ranges::find(initials, last) != initials.end();
    if (direct && isAmong(places[step].waiting, last))
      continue; // there it would look in vain, which noteWaiting has seen to
    wanted.push_back(direct ? last : initials.front());
  }
}

/// Makes the next step of `process`; false when it has to wait.
Expected<bool> Explorer::take(Process process, size_t depth) {
  acting = process;
  FP4_ASSIGN(auto moved, process == kTimeLimit ? program.expire() : program.step(process));
  acting.reset();
  if (!moved)
    return false;
  Place &place = places[depth];
  place.chosen = process;
  place.footprint = std::make_shared<Footprint>(program.footprint());
  const std::vector<uint32_t> races = trace.add(process, *place.footprint);
  if (options.reduce && depth >= fresh)
    noteRaces(races);
  return true;
}

/// The first of them that can make a step, and does not sleep.
Expected<bool> Explorer::takeAny(std::span<const Process> processes, size_t depth) {
  const std::vector<Sleeper> &asleep = places[depth].asleep;
  for (const Process process : processes) {
    if (std::ranges::find(asleep, process, &Sleeper::process) != asleep.end())
      continue;
    FP4_ASSIGN(auto moved, take(process, depth));
    if (!moved)
      continue;
    places[depth].wanted.push_back(process);
    return true;
  }
  return false;
}

/// A place that no order has reached yet.
Expected<Explorer::Chosen> Explorer::chooseAndTake(size_t depth) {
  places.push_back({0, nullptr, {}, {}, asleepAt(depth), {}});
  FP4_TRY(noteWaiting(depth));
  const bool oneIsEnough = options.reduce && !everybody, sleeping = !places[depth].asleep.empty();
  std::vector<Process> candidates = program.candidates();
  if (!oneIsEnough)
    std::ranges::copy(program.operations(~size_t(0)), std::back_inserter(candidates));
  FP4_ASSIGN(auto moved, takeAny(candidates, depth));
  if (!moved && oneIsEnough) {
    FP4_ASSIGN(moved, takeAny(program.operations(places[depth].asleep.size() + 1), depth));
  }
  if (moved && !oneIsEnough)
    places[depth].wanted = candidates;
  if (moved)
    return Chosen::Step;
  if (!sleeping) {
    FP4_ASSIGN(auto expired, take(kTimeLimit, depth));
    if (expired) {
      places[depth].wanted = {kTimeLimit};
      return Chosen::Step;
    }
  }
  places.pop_back();
  return sleeping ? Chosen::Pruned : Chosen::Nobody;
}

Expected<Explorer::Ended> Explorer::runOrder() {
  trace = Trace();
  FP4_TRY(program.begin());
  for (size_t depth = 0;; ++depth) {
    if (depth < places.size()) {
      FP4_ASSIGN(auto moved, take(places[depth].chosen, depth));
      if (moved)
        continue;
      if (depth + 1 == places.size() || replaying) {
        starved |= program.wantsRegisters(places[depth].chosen);
        return Ended::Impossible; // the process wanted here has to wait
      }
      return makeError(ErrorKind::Internal, "an order of steps does not repeat itself",
                       orderText(currentOrder()) + ", then " +
                           orderText(std::span(&places[depth].chosen, 1)));
    }
    FP4_ASSIGN(auto went, chooseAndTake(depth));
    if (went == Chosen::Pruned)
      return Ended::Pruned;
    if (probing)
      return Ended::Left;
    if (went == Chosen::Nobody)
      break;
  }
  FP4_TRY(program.end());
  return Ended::Whole;
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

/// Goes back to the last place where another process is wanted; false when there is none.
bool Explorer::backtrack() {
  const auto contains = [](const auto &list, Process process) {
    return std::ranges::find(list, process) != list.end();
  };
  while (!places.empty()) {
    Place &place = places.back();
    place.tried.push_back(place.chosen);
    if (options.reduce && place.footprint)
      place.asleep.push_back({place.chosen, place.footprint});
    for (const Process process : place.wanted)
      if (!contains(place.tried, process) &&
          std::ranges::find(place.asleep, process, &Sleeper::process) == place.asleep.end()) {
        place.chosen = process;
        place.footprint.reset();
        fresh = places.size() - 1;
        return true;
      }
    places.pop_back();
  }
  return false;
}

std::vector<Process> Explorer::currentOrder() const {
  std::vector<Process> order;
  for (size_t step = 0; step < trace.size(); ++step)
    order.push_back(trace.processOf(step));
  if (acting)
    order.push_back(*acting); // it failed
  return order;
}

void Explorer::count(Ended ended, OrderReport &report) const {
  report.orders += ended == Ended::Whole;
  report.pruned += ended == Ended::Pruned;
  if (trace.size() <= report.longest)
    return;
  report.longest = trace.size();
  report.processes = trace.processCount();
  report.commuting = trace.unordered();
}

/// Starts again if steps were too coarse, or commute less than was assumed: no order counts then.
bool Explorer::beginsAgain(OrderReport &report) {
  const bool coarse = trace.isCoarse() && program.refine();
  const bool registers = (starved || trace.takesBeforeGiving()) && program.orderRegisters();
  if (!coarse && !registers)
    return false;
  OrderReport again;
  again.kernel = report.kernel;
  again.everyAccess = report.everyAccess || coarse;
  report = again;
  places.clear();
  fresh = 0;
  everybody |= registers;
  return true;
}

/// Later launches find what a whole order leaves: the first one runs again behind one that was not.
Status Explorer::endWhole(Ended last) {
  if (last == Ended::Whole)
    return {};
  probing = false;
  return replay({});
}

Status Explorer::run(OrderReport &report) {
  const auto hazards = [&] { return options.hazards ? options.hazards() : 0; };
  const uint64_t clean = hazards();
  uint64_t begun = 0, most = options.most;
  for (;;) {
    probing = most && begun >= most;
    Expected<Ended> ended = runOrder();
    if (ended && *ended == Ended::Left)
      return endWhole(*ended);
    count(ended ? *ended : Ended::Whole, report);
    begun += !ended || *ended != Ended::Impossible;
    if (options.progress)
      options.progress(begun, most);
    if (!ended || hazards() != clean) {
      report.failure = OrderReport::Failure::Hazard;
      if (!ended)
        report.failure = ended.error().kind == ErrorKind::Mismatch ? OrderReport::Failure::Result
                                                                   : OrderReport::Failure::Error;
      report.order = orderText(currentOrder());
      return ended ? Status() : tl::unexpected<Error>(std::move(ended.error()));
    }
    if (beginsAgain(report)) {
      most = most ? std::max(most, begun + 1) : 0; // at least one order of what begins
    } else if (!backtrack()) {
      report.complete = true;
      return endWhole(*ended);
    }
  }
}

Status Explorer::replay(std::span<const Process> order) {
  places.clear();
  for (const Process process : order)
    places.push_back({process, nullptr, {process}, {}, {}, {}});
  fresh = ~size_t(0); // its races are not asked for
  replaying = true;
  FP4_ASSIGN(auto ended, runOrder());
  if (ended == Ended::Impossible)
    return makeError(ErrorKind::Usage, "the order to replay is not one of this launch",
                     "an order belongs to one program, shape, target and version of the simulator");
  return {};
}

//===----------------------------------------------------------------------===//
// In words
//===----------------------------------------------------------------------===//

static constexpr std::string_view kLauncherText = "launch", kTimeLimitText = "expire";

static std::string processText(Process process) {
  if (process == kLauncher || process == kTimeLimit)
    return std::string(process == kLauncher ? kLauncherText : kTimeLimitText);
  std::string text =
      fmt::format("{}.{}.{}", process >> 40, process >> 32 & 0xFF, process >> 24 & 0xFF);
  return isTicket(process) ? text + fmt::format("#{}", process & 0xFFFFFF) : text;
}

std::string orderText(std::span<const Process> order) {
  std::string text;
  for (size_t i = 0, count; i < order.size(); i += count) {
    for (count = 1; i + count < order.size() && order[i + count] == order[i];)
      ++count;
    text += fmt::format("{}{}", text.empty() ? "" : " ", processText(order[i]));
    if (count > 1)
      text += fmt::format("*{}", count);
  }
  return text;
}

static std::optional<Process> parseProcess(const std::string &text) {
  if (text == kLauncherText || text == kTimeLimitText)
    return text == kLauncherText ? kLauncher : kTimeLimit;
  unsigned cluster = 0, rank = 0, warp = 0, ticket = 0;
  int end = 0;
  const int found = std::sscanf(text.c_str(), "%u.%u.%u%n#%u%n", &cluster, &rank, &warp, &end,
                                &ticket, &end);
  if (found < 3 || size_t(end) != text.size() || rank > 0xFF || warp > 0xFF || ticket > 0xFFFFFF)
    return std::nullopt;
  return ticketProcess(warpProcess(cluster, rank, warp), ticket);
}

Expected<std::vector<Process>> parseOrder(std::string_view text) {
  constexpr unsigned long kMost = 1 << 24;
  std::vector<Process> order;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    const size_t star = word.find('*');
    const auto process = parseProcess(word.substr(0, star));
    unsigned count = 1;
    int end = 0;
    const bool counted = star != word.npos;
    if (counted && std::sscanf(word.c_str() + star, "*%u%n", &count, &end) < 1)
      count = 0;
    if (!process || count == 0 || order.size() + count > kMost ||
        (counted && star + size_t(end) != word.size()))
      return makeError(ErrorKind::Usage, fmt::format("'{}' is no step of an order", word),
                       "an order is what a report of --policy exhaustive names");
    order.insert(order.end(), count, *process);
  }
  return order;
}

static std::string counted(uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string summaryOf(const OrderReport &report) {
  std::string text = counted(report.orders, "order");
  if (report.pruned)
    text += fmt::format(", {} left early", report.pruned);
  text += fmt::format(", at most {} of {} processes, {} commute",
                      counted(report.longest, "step"), report.processes,
                      counted(report.commuting, "pair"));
  if (report.everyAccess)
    text += ", plain accesses are steps";
  if (report.complete)
    return text + ": complete";
  return text + (report.failure == OrderReport::Failure::None ? ": not complete"
                                                              : ": the last one failed");
}

} // namespace fp4::sim
