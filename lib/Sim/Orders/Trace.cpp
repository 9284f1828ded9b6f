//===- Trace.cpp - The steps of one order, and what happens before what ---===//
#include "Sim/Orders/Trace.h"
#include <algorithm>
#include <bit>
#include <ranges>

namespace fp4::sim {

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

uint32_t StepSets::with(uint32_t set, uint32_t step, uint32_t previous) {
  const auto [entry, fresh] = larger.try_emplace({set, step}, uint32_t(sets.size()));
  if (fresh) {
    std::vector<uint32_t> steps = sets[set];
    if (!steps.empty() && steps.back() == previous)
      steps.back() = step;
    else if (steps.empty() || steps.back() != step)
      steps.push_back(step);
    sets.push_back(std::move(steps));
  }
  return entry->second;
}

void ByteHistory::collect(const Byte &byte, uint8_t use, bool ticket,
                          std::vector<uint32_t> &before) const {
  const auto add = [&](uint32_t set, bool warpsOnly) {
    for (uint32_t step : sets[set])
      if (!warpsOnly || !ofTickets[step])
        before.push_back(step);
  };
  if (use == uint8_t(ByteUse::Poison))
    return add(byte.last, true);
  const bool together = byte.last && byte.use == use && commute(use, false, use, false);
  add(together ? byte.older : byte.last, false);
  if (byte.poison && !ticket)
    before.push_back(byte.poison - 1);
}

void ByteHistory::record(Byte &byte, uint8_t use, uint32_t previous, uint32_t step) {
  if (use == uint8_t(ByteUse::Poison)) {
    byte.poison = step + 1;
    return;
  }
  if (byte.last && byte.use == use && commute(use, false, use, false)) {
    byte.last = sets.with(byte.last, step, previous);
    return;
  }
  byte.older = byte.last;
  byte.last = sets.with(0, step, previous);
  byte.use = use;
}

void ByteHistory::use(uint32_t step, uint32_t previous, bool ticket, uint8_t use,
                      const ByteRange &range, std::vector<uint32_t> &before, bool kept) {
  ofTickets.resize(step + 1);
  ofTickets[step] = ticket;
  Byte was, now; // neighbours mostly have one history
  bool known = false;
  for (uint64_t at = range.begin; at < range.end; ++at) {
    auto &page = pages[at / kPage];
    if (!page)
      page = std::make_unique<Page>();
    const uint64_t stop = std::min(range.end, (at / kPage + 1) * kPage);
    for (; at < stop; ++at) {
      Byte &byte = (*page)[at % kPage];
      if (!known || !(byte == was)) {
        was = now = byte;
        known = true;
        collect(was, use, ticket, before);
        if (kept)
          record(now, use, previous, step);
      }
      byte = now;
    }
    --at;
  }
  std::ranges::sort(before);
  before.erase(std::ranges::unique(before).begin(), before.end());
  std::erase(before, step);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void Trace::join(Past &past, uint32_t step) const {
  const Past &other = steps[step].past;
  for (size_t i = 0; i < other.size(); ++i)
    past[i] |= other[i];
}

void Trace::reductionAwaited(Past &past, const AwaitedTicket &awaited) const {
  const auto found = ofProcess.find(awaited.ticket);
  if (found != ofProcess.end())
    join(past, found->second[std::min<size_t>(awaited.stage, found->second.size() - 1)]);
}

/// Returns the steps that happen before any next step of the process.
Trace::Past Trace::beginOf(Process process) const {
  Past past(steps.size() / 64 + 1);
  if (const auto own = ofProcess.find(process); own != ofProcess.end())
    join(past, own->second.back());
  else if (const auto issue = issues.find(process);
           issue != issues.end() && issue->second < steps.size())
    join(past, issue->second);
  if (lastOfAll != ~0u)
    join(past, lastOfAll);
  return past;
}

/// Returns true when `later` might have come before `earlier`, on which it depends. A wait by
/// parity passes in every second phase: arrivals of the phase it waited for had to be there,
/// arrivals of the phase before had not.
static bool mayComeFirst(const ObjectAccess &earlier, const ObjectAccess &later) {
  const bool arrival = earlier.use == ObjectUse::Arrive || earlier.use == ObjectUse::Expect;
  return !(arrival && later.use == ObjectUse::Read && later.passed) ||
         (earlier.phase & 1) == (later.phase & 1);
}

/// Returns true when the process that made this wait has arrived since then in the phase that ends
/// now: that phase cannot end before the wait.
bool Trace::isNeeded(uint32_t wait, const ObjectAccess &completing) const {
  for (const ObjectStep &arrival : std::views::reverse(objects.at(completing.object))) {
    if (arrival.step < wait)
      return false;
    if (arrival.access.use == ObjectUse::Arrive && arrival.access.phase == completing.phase &&
        arrival.step < steps.size() && before(wait, arrival.step))
      return true;
  }
  return false;
}

/// Returns the number of accesses, from the first on, that are in the past, which has those before
/// `from`.
size_t Trace::coveredBy(const Past &past, const std::vector<ObjectStep> &history, size_t from) {
  while (from < history.size() && has(past, history[from].step))
    ++from;
  return from;
}

/// Adds an access to an object. Accesses in the process's own past happen before the step anyway:
/// if an object is used in turns, that is all but the last accesses.
void Trace::useObject(uint32_t step, const ObjectAccess &access, const Past &own, Past &past,
                      Past &waited, std::vector<Before> &before, bool kept) {
  auto &history = objects[access.object];
  size_t covered = 0;
  for (size_t i = history.size(); i-- > covered;) {
    const ObjectStep &earlier = history[i];
    if (earlier.step == step)
      continue;
    if (has(own, earlier.step)) {
      covered = std::max(covered, earlier.covered);
      continue;
    }
    const bool awaits = access.use == ObjectUse::Await && earlier.access.use == ObjectUse::Arrive &&
                        earlier.access.phase == access.phase;
    ObjectAccess alone = access;
    const bool spoils = earlier.access.use == ObjectUse::Await; // its wait was for the phase before
    alone.completes &= spoils; // of arrivals both have happened, in one phase
    if (awaits)
      join(waited, earlier.step);
    else if (!commute(earlier.access, alone)) {
      if (!has(past, earlier.step))
        join(past, earlier.step);
      if (mayComeFirst(earlier.access, access) && !(spoils && isNeeded(earlier.step, access)))
        before.push_back({earlier.step, false});
    }
  }
  if (kept)
    history.push_back({access, step, coveredBy(own, history, covered)});
}

/// Returns the candidates that `own` does not order and that do not happen before another one.
std::vector<uint32_t> Trace::racesOf(const Past &own, const Past &ready,
                                     std::vector<Before> candidates, const Footprint &footprint) {
  std::erase_if(candidates, [&](const Before &b) {
    return (b.memory ? own : ready)[b.step / 64] >> (b.step % 64) & 1;
  });
  std::ranges::sort(candidates, {}, &Before::step);
  std::vector<uint32_t> races;
  for (size_t i = candidates.size(); i-- > 0;) {
    const uint32_t step = candidates[i].step;
    coarse |= candidates[i].memory && dependInside(*steps[step].footprint, footprint);
    if (std::ranges::none_of(races, [&](uint32_t r) { return r == step || before(step, r); }))
      races.push_back(step);
  }
  return races;
}

/// Returns true when the step gives registers back after one that took some.
bool Trace::givesLate(const Footprint &footprint, const Past &past) const {
  return std::ranges::any_of(footprint.objects, [&](const ObjectAccess &access) {
    return access.use == ObjectUse::Give &&
           std::ranges::any_of(objects.at(access.object), [&](const ObjectStep &earlier) {
             return earlier.access.use == ObjectUse::Take &&
                    past[earlier.step / 64] >> (earlier.step % 64) & 1;
           });
  });
}

std::vector<uint32_t> Trace::append(Process process, const Footprint &footprint, bool kept) {
  const auto step = uint32_t(steps.size());
  Past own = beginOf(process), past = own, waited(own.size());
  std::vector<Before> candidates;
  std::vector<uint32_t> users;
  const auto earlier = ofProcess.find(process);
  const uint32_t previous = earlier == ofProcess.end() ? ~0u : earlier->second.back();
  for (uint8_t use = 0; use < kByteUses; ++use)
    for (const ByteRange &range : footprint.bytes[use])
      memory.use(step, previous, footprint.ticket, use, range, users, kept);
  for (uint32_t user : users) {
    candidates.push_back({user, true});
    join(past, user);
  }
  for (const AwaitedTicket &awaited : footprint.awaited)
    reductionAwaited(waited, awaited);
  for (const ObjectAccess &access : footprint.objects)
    useObject(step, access, own, past, waited, candidates, kept);
  Past ready = own; // when it has waited: a warp may have accessed bytes before that
  for (size_t i = 0; i < past.size(); ++i) {
    past[i] |= waited[i];
    ready[i] |= waited[i];
  }
  if (footprint.everything)
    for (uint32_t i = 0; i < step; ++i)
      past[i / 64] |= 1ull << (i % 64);
  takesFirst |= givesLate(footprint, past);
  past[step / 64] |= 1ull << (step % 64);
  auto races = racesOf(footprint.ticket ? ready : own, ready, std::move(candidates), footprint);
  steps.push_back({process, std::move(past), &footprint});
  if (kept)
    note(step);
  return races;
}

/// Notes facts of a step that later steps need, besides its uses.
void Trace::note(uint32_t step) {
  const auto &[process, past, footprint] = steps[step];
  if (footprint->everything)
    lastOfAll = step;
  ofProcess[process].push_back(step);
  for (Process ticket : footprint->issued)
    issues[ticket] = step;
  for (Process absorbed : footprint->absorbed)
    ofProcess[absorbed].push_back(step);
}

Trace::Past Trace::pastOf(Process process, const Footprint &soFar) {
  const bool wasCoarse = coarse, tookFirst = takesFirst;
  append(process, soFar, /*kept=*/false);
  coarse = wasCoarse; // which the whole step decides
  takesFirst = tookFirst;
  Past past = std::move(steps.back().past);
  forgetLook();
  return past;
}

bool Trace::isIn(const Past &past, Process process, size_t ordinal) const {
  const auto own = ofProcess.find(process);
  if (own == ofProcess.end() || ordinal >= own->second.size())
    return false;
  const uint32_t step = own->second[ordinal];
  return past[step / 64] >> (step % 64) & 1;
}

size_t Trace::stepsOf(Process process) const {
  const auto own = ofProcess.find(process);
  return own == ofProcess.end() ? 0 : own->second.size();
}

std::vector<Process> Trace::initialsAgainst(uint32_t step) const {
  const auto last = uint32_t(steps.size() - 1);
  std::vector<Process> seen, initials;
  std::vector<uint64_t> sequence(last / 64 + 1); // a bit for each of its steps
  for (uint32_t i = step + 1; i <= last; ++i) {
    if (i < last && before(step, i))
      continue;
    const Step &next = steps[i];
    bool first = std::ranges::find(seen, next.process) == seen.end();
    for (size_t word = 0; word < next.past.size() && first; ++word)
      first = !(next.past[word] & sequence[word]);
    seen.push_back(next.process);
    if (first)
      initials.push_back(next.process);
    sequence[i / 64] |= 1ull << (i % 64);
  }
  return initials;
}

uint64_t Trace::unordered() const {
  uint64_t ordered = 0;
  for (const Step &step : steps)
    for (uint64_t word : step.past)
      ordered += uint64_t(std::popcount(word));
  const uint64_t all = steps.size();
  return all * (all + 1) / 2 - ordered; // each step is in its own past
}

} // namespace fp4::sim
