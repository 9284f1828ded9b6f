//===- HazardReport.cpp - Words of the hazard checker ---------------------===//
#include "HazardImpl.h"
#include "fp4/Sim/Program.h"

#include <algorithm>
#include <fmt/format.h>

namespace fp4::sim {

using namespace check;

namespace {

struct RuleText {
  HazardRule rule;
  std::string_view name, summary, text, remedy;
};

constexpr RuleText kRules[] = {
#define FP4_HAZARD(id, name, summary, text, remedy) {HazardRule::id, name, summary, text, remedy},
#include "fp4/Sim/HazardRules.def"
};

constexpr HazardRule kOrder[] = {
#define FP4_HAZARD(id, name, summary, text, remedy) HazardRule::id,
#include "fp4/Sim/HazardRules.def"
};

const RuleText &textOf(HazardRule rule) { return kRules[size_t(rule)]; }

} // namespace

std::string_view stringify(HazardRule rule) { return textOf(rule).name; }
std::string_view summaryOf(HazardRule rule) { return textOf(rule).summary; }
std::string_view remedyOf(HazardRule rule) { return textOf(rule).remedy; }
std::span<const HazardRule> hazardRules() { return kOrder; }

std::optional<HazardRule> parseHazardRule(std::string_view text) {
  const auto *it =
      std::find_if(std::begin(kRules), std::end(kRules), [&](auto &r) { return r.name == text; });
  return it == std::end(kRules) ? std::nullopt : std::optional(it->rule);
}

std::string explain(HazardRule rule) {
  const RuleText &text = textOf(rule);
  return fmt::format("{}: {}\n\n{}\n\nusual remedy: {}\n", text.name, text.summary, text.text,
                     text.remedy);
}

std::string HazardReport::text() const {
  const auto where = [&](const HazardAccess &access) {
    std::string at = fmt::format("{}:{}:{}", program, access.line, access.column);
    return access.origin.empty() ? at : fmt::format("{} ({})", at, access.origin);
  };
  const auto note = [&](const HazardAccess &access) {
    return fmt::format("note: {}: {}: {}\n", where(access), access.what, access.source);
  };
  std::string text = fmt::format("error: {}: kernel '{}': {} ({}) [{}]\n", where(second),
                                 displayName(kernel), message, place, stringify(rule));
  text += note(first);
  const bool oneAccess = rule == HazardRule::StalePhase || rule == HazardRule::UninitializedRead ||
                         rule == HazardRule::MissingGridWait ||
                         (rule == HazardRule::MissingWgmmaFence && first.line == second.line);
  if (!oneAccess)
    text += note(second);
  if (!detail.empty())
    text += fmt::format("note: {}\n", detail);
  if (count > 1)
    text += fmt::format("note: found {} times at this pair of lines\n", count);
  return text + fmt::format("note: missing: {}\n", remedy);
}

//===----------------------------------------------------------------------===//
// From records to words
//===----------------------------------------------------------------------===//

HazardAccess HazardChecker::Impl::sideOf(ClusterState &cluster, const Record &record,
                                         std::string_view verb) {
  HazardAccess side;
  const Insn *insn = kernel && record.pc < kernel->code.size() ? &kernel->code[record.pc] : nullptr;
  if (insn) {
    side.line = insn->line;
    side.column = insn->column;
    side.source = program->shownLine(insn->line);
    if (insn->debugFile && insn->debugFile < program->files.size())
      side.origin = fmt::format("{}:{}:{}", program->files[insn->debugFile], insn->debugLine,
                                insn->debugColumn);
  }
  // Slots have one numbering in all clusters, but for tickets, which no other cluster knows.
  const WarpState &warp = cluster.warpOfSlot(record.slot());
  side.actor = {record.cluster(), warp.rank, warp.index, 0};
  std::string who = fmt::format("warp {} of CTA rank {}", warp.index, warp.rank);
  if (record.cluster() != cluster.index)
    who += fmt::format(" of cluster {}", record.cluster());
  if (cluster.isTicket(record.slot()))
    side.actor.ticket = cluster.ticketAt(record.slot()).id;
  if (verb.empty())
    verb = record.write() ? "write" : "read";
  side.what = record.async() ? fmt::format("{} by an asynchronous operation of {}", verb, who)
                             : fmt::format("{} by {}", verb, who);
  return side;
}

std::string HazardChecker::Impl::placeOf(const Access &made, uint64_t address) const {
  if (made.space == Space::Generic) // no memory
    return fmt::format("warp {} of CTA rank {}", made.warp->index, made.warp->rank);
  if (made.space == Space::Tmem)
    return fmt::format("TMEM lane {}, column {} of CTA rank {}", address >> 16, address & 0xFFFF,
                       made.rank);
  if (isShared(made.space)) {
    const uint32_t offset = uint32_t(address) & rankMask;
    const std::string symbol = kernel ? kernel->sharedSymbol(offset) : "";
    return fmt::format("shared {:#x}{} of CTA rank {}", offset,
                       symbol.empty() ? "" : ", '" + symbol + "'", address >> rankShift);
  }
  const Allocation *allocation = memory ? memory->find(address, 1) : nullptr;
  return allocation ? fmt::format("global {:#x}, byte {} of '{}'", address,
                                  address - allocation->address, allocation->name)
                    : fmt::format("global {:#x}", address);
}

std::string HazardChecker::Impl::remedyFor(const Access &made, const Record &old,
                                           HazardRule rule) const {
  const bool global = made.space == Space::Global;
  if (rule == HazardRule::MissingGridWait && grids.met.waited)
    return "griddepcontrol.wait in every dependent launch between the two";
  if (rule == HazardRule::SharedRace && made.ticket)
    return "fence.proxy.async after the generic access and a barrier before the operation is "
           "issued";
  if (rule == HazardRule::UnwaitedCopy && made.cluster.isTicket(old.slot())) {
    const TicketInfo &copy = made.cluster.ticketAt(old.slot());
    if (copy.kind == TicketKind::ThreadCopy && copy.epoch == old.epoch() && !copy.signal)
      return "cp.async.wait_group (or wait_all) by the threads that copy, and a barrier";
  }
  if ((rule == HazardRule::UnwaitedCopy || rule == HazardRule::OverwrittenWhileWritten) && global)
    return "cp.async.bulk.wait_group (without .read) by the thread that issued the store, and a "
           "barrier";
  if (rule == HazardRule::OverwrittenWhileRead) {
    if ((old.async() && !old.write()) || (made.ticket && !made.record.write()))
      return "a wait for the reader: cp.async.bulk.wait_group, or the mbarrier that its "
             "tcgen05.commit or copy signals";
    return "an arrival of the reader on the empty barrier, and a wait on it before the operation "
           "is issued";
  }
  if (rule == HazardRule::GlobalRace && old.cluster() == made.record.cluster())
    return "a barrier between the two, or a release and an acquire on a flag";
  return std::string(remedyOf(rule));
}

/// Adds detail to a report: for a copy whose barrier nobody waited on, the phases that the other
/// side did wait for; for a launch that waited, the launch for which it did not.
std::string HazardChecker::Impl::detailOf(const Access &made, const Record &old, HazardRule rule) {
  ClusterState &cluster = made.cluster;
  if (rule == HazardRule::MissingWarpSync)
    return lanesDetail(made, old);
  if (rule == HazardRule::MissingGridWait)
    return gridWaitDetail();
  if (rule != HazardRule::UnwaitedCopy || !made.warp || !cluster.isTicket(old.slot()))
    return "";
  const uint32_t signal = cluster.ticketAt(old.slot()).signal;
  auto it = cluster.mbarriers.find(signal);
  if (!signal || it == cluster.mbarriers.end())
    return "";
  const std::string name = kernel ? kernel->sharedSymbol(signal & rankMask) : "";
  std::string text = fmt::format("the copy signals the mbarrier{} at shared {:#x}",
                                 name.empty() ? "" : " '" + name + "'", signal & rankMask);
  const WaitHistory *last = nullptr;
  uint32_t pc = 0;
  for (const auto &[who, history] : it->second.waits)
    if (who.first == made.warp->slot && history.lanes && (!last || history.phase > last->phase)) {
      last = &history;
      pc = who.second;
    }
  if (!last)
    return text + ", on which this warp has not waited";
  return text + fmt::format("; this warp last waited on it for phase {}, at line {}", last->phase,
                            kernel ? kernel->code[pc].line : 0);
}

/// Returns names for the two sides of a report that are no accesses.
static std::pair<const char *, const char *> rolesOf(HazardRule rule, bool isExit) {
  switch (rule) {
  case HazardRule::MbarrierInit:
  case HazardRule::MbarrierInitFence:
    return {"initialization", "use"};
  case HazardRule::StalePhase:
    return {"wait", "wait"};
  case HazardRule::LappedWait:
    return {"wait", "completion of the next phase"};
  case HazardRule::PartedWarp:
    return {"branch", "aligned instruction"};
  case HazardRule::TmemFreed:
    return {"", "release"};
  case HazardRule::EarlyExit:
    return {"", "exit"};
  case HazardRule::HostRace:
    return {"", isExit ? "exit" : "write that the host may see"};
  default:
    return {"", ""};
  }
}

Site HazardChecker::Impl::siteOf(uint32_t pc) const {
  if (!kernel || pc >= kernel->code.size())
    return {pc};
  const Insn &insn = kernel->code[pc];
  if (!insn.debugFile)
    return {0, insn.line};
  return {insn.debugFile, insn.debugLine, insn.debugColumn, insn.row};
}

bool Findings::isNew(const SitePair &pair, uint64_t count, uint64_t last) {
  const auto [known, isNew] = seen.try_emplace(pair, reports.size());
  if (!isNew && known->second < reports.size()) {
    reports[known->second].count += count;
    reports[known->second].last = last;
  }
  return isNew;
}

void Findings::add(Findings later, size_t maxReports) {
  std::vector<const SitePair *> pairs(later.reports.size());
  for (const auto &[pair, report] : later.seen)
    pairs[report] = &pair;
  for (size_t i = 0; i < pairs.size(); ++i) {
    HazardReport &report = later.reports[i];
    report.last += found;
    if (isNew(*pairs[i], report.count, report.last) && reports.size() < maxReports)
      reports.push_back(std::move(report));
  }
  found += later.found;
}

/// Returns true when this pair of lines has no report yet and there is room for one; otherwise its
/// report is counted.
bool HazardChecker::Impl::isNew(HazardRule rule, uint32_t first, uint32_t second, uint64_t count) {
  const auto [low, high] = std::minmax({siteOf(first), siteOf(second)});
  findings.found += count;
  return findings.isNew({rule, kernelNumber, low, high}, count, findings.found) &&
         findings.reports.size() < options.maxReports;
}

void HazardChecker::Impl::add(HazardReport report) {
  report.last = findings.found;
  if (options.noticed)
    options.noticed(report);
  findings.reports.push_back(std::move(report));
}

/// Returns the verb for an access to a register before a wgmma took the register.
static const char *verbOf(RegisterUse use) {
  return use == RegisterUse::Read    ? "read"
         : use == RegisterUse::Write ? "write"
                                     : "wgmma of another shape, or with the register in D,";
}

void HazardChecker::Impl::unfencedWgmma(ClusterState &cluster, const FenceEvent &event) {
  const HazardRule rule = HazardRule::MissingWgmmaFence;
  const WarpState &warp = cluster.warp(event.actor);
  Record use, multiply;
  use.when = multiply.when = Record::time(cluster.index, warp.epoch);
  use.who = multiply.who = warp.slot;
  multiply.pc = event.at.pc;
  use.pc = event.groups ? uint32_t(event.groups - 1) : event.at.pc;
  if (!isNew(rule, use.pc, multiply.pc))
    return;
  const std::string name = event.groups && kernel ? kernel->registerName(event.reg) : "";
  const std::string which =
      name.empty() ? "registers" : fmt::format("register '{}'", name);
  HazardReport report{.rule = rule,
                      .program = program ? program->name : "",
                      .kernel = kernel ? kernel->info.name : "",
                      .place = fmt::format("{} of warp {} of CTA rank {}", which, warp.index,
                                           warp.rank),
                      .first = sideOf(cluster, use, event.groups ? verbOf(event.use) : "wgmma"),
                      .second = sideOf(cluster, multiply, "wgmma"),
                      .message = std::string(summaryOf(rule)),
                      .remedy = std::string(remedyOf(rule)),
                      .detail =
                          event.groups ? "" : "this warp has executed no wgmma.fence before"};
  add(std::move(report));
}

HazardReport HazardChecker::Impl::describe(Access &made, const Record &old, HazardRule rule,
                                           uint64_t address) {
  const auto [before, after] = rolesOf(rule, !made.record.write());
  return {.rule = rule,
          .program = program ? program->name : "",
          .kernel = kernel ? kernel->info.name : "",
          .place = placeOf(made, address),
          .first = sideOf(made.cluster, old, before),
          .second = sideOf(made.cluster, made.record, after),
          .message = std::string(summaryOf(rule)),
          .remedy = remedyFor(made, old, rule),
          .detail = detailOf(made, old, rule)};
}

void HazardChecker::Impl::report(Access &made, const Record &old, HazardRule rule,
                                 uint64_t address) {
  made.told = true;
  if (isNew(rule, old.pc, made.record.pc))
    add(describe(made, old, rule, address));
}

/// Keeps a report until it is needed.
void HazardChecker::Impl::deferTo(std::vector<Deferred> &list, Access &made, const Record &old,
                                  HazardRule rule, uint64_t address) {
  made.told = true;
  const uint32_t low = std::min(old.pc, made.record.pc), high = std::max(old.pc, made.record.pc);
  const auto known = std::ranges::find_if(list, [&](const Deferred &other) {
    return other.report.rule == rule && other.first == low && other.second == high;
  });
  const Record &load = old.write() ? made.record : old;
  if (known == list.end())
    list.push_back({low, high, load.pc, describe(made, old, rule, address)});
  else
    ++known->report.count;
}

/// To be reported when a second thread executes the store, which is one of the two.
void HazardChecker::Impl::defer(Access &made, const Record &old, HazardRule rule,
                                uint64_t address) {
  const Record &store = old.write() ? old : made.record;
  deferTo(made.cluster.deferred[uint64_t(made.warp->rank) << 32 | store.pc], made, old, rule,
          address);
}

/// To be reported when the warp of the load executes a store that uses its value.
void HazardChecker::Impl::deferUse(Access &made, const Record &old, HazardRule rule,
                                   uint64_t address) {
  const Record &load = old.write() ? made.record : old;
  deferTo(made.cluster.uses[load.slot()], made, old, rule, address);
}

void HazardChecker::Impl::reportUses(ClusterState &cluster, uint32_t slot, uint32_t store) {
  const auto found = cluster.uses.find(slot);
  if (found == cluster.uses.end())
    return;
  std::erase_if(found->second, [&](Deferred &race) {
    if (!std::ranges::binary_search(
            *loadUses.onlyStores(*kernel, race.load, LoadUses::Within::Warp), store))
      return false;
    if (isNew(race.report.rule, race.first, race.second, race.report.count))
      add(std::move(race.report));
    return true;
  });
}

void HazardChecker::Impl::reportDeferred(ClusterState &cluster, uint64_t store) {
  auto found = cluster.deferred.find(store);
  if (found == cluster.deferred.end())
    return;
  for (Deferred &race : found->second)
    if (isNew(race.report.rule, race.first, race.second, race.report.count))
      add(std::move(race.report));
  cluster.deferred.erase(found);
}

} // namespace fp4::sim
