//===- DependentLaunch.cpp - Launches that may run beside others ----------===//
#include "DependentLaunch.h"
#include "LaunchAttributes.h"
#include <algorithm>
#include <mutex>

using namespace fp4;
using namespace fp4::simcuda;

namespace {

/// Work of the legacy stream and of blocking streams waits for each other.
struct Host {
  std::recursive_mutex lock;
  uint64_t legacy = 0, blocking = 0; ///< work so far on the legacy stream, and on blocking streams
  uint64_t waits = 0;                ///< waits of the host for the device
  LaunchList ended;                  ///< launches that the host knows to have ended
};

/// Never destroyed, since programs call CUDA in their own exit handlers.
Host &host() {
  static Host *only = new Host;
  return *only;
}

bool contains(const LaunchList &list, const sim::LaunchRef &launch) {
  return std::ranges::any_of(list, [&](const auto &each) { return each.lock() == launch; });
}

/// Adds those of `more` that the list has not; forgets what nobody can name any more.
void append(LaunchList &list, const LaunchList &more) {
  std::erase_if(list, [](const auto &each) { return each.expired(); });
  for (const auto &each : more)
    if (sim::LaunchRef launch = each.lock(); launch && !contains(list, launch))
      list.push_back(each);
}

} // namespace

void StreamOrder::end() {
  last.reset();
  append(ended, std::exchange(begun, {}));
}

/// Takes note of what other streams and the host did since the last work of this one.
void StreamOrder::refresh() {
  Host &all = host();
  const uint64_t now = kind == StreamKind::Legacy     ? all.blocking
                       : kind == StreamKind::Blocking ? all.legacy
                                                      : 0;
  const bool waited = std::exchange(waits, all.waits) != all.waits;
  if (std::exchange(others, now) != now || waited) {
    end();
    running.clear();
  }
  append(ended, all.ended);
  if (last && contains(ended, last))
    end();
  std::erase_if(running, [&](const Running &each) { return contains(ended, each.launch.launch); });
}

sim::Dependence StreamOrder::launch(const DependentLaunch &dependent) {
  std::lock_guard guard(host().lock);
  refresh();
  sim::Dependence made;
  if (!dependent.serialized)
    end();
  std::erase_if(running, [&](const Running &each) {
    return each.launch.launch == last || contains(ended, each.launch.launch);
  });
  if (last)
    running.push_back(
        {{last}, attributeName(AttributeProgrammaticStreamSerialization, dependent.driver)});
  for (Running &each : std::exchange(running, {})) {
    if (made.by.find(each.by) == std::string::npos)
      made.by += (made.by.empty() ? "" : " and ") + each.by;
    made.on.push_back(std::move(each.launch));
  }
  made.mark = last = std::make_shared<sim::LaunchMark>();
  append(begun, {last});
  host().legacy += kind == StreamKind::Legacy;
  host().blocking += kind == StreamKind::Blocking;
  return made;
}

void StreamOrder::settle() {
  std::lock_guard guard(host().lock);
  refresh();
  end();
  running.clear();
  host().legacy += kind == StreamKind::Legacy;
  host().blocking += kind == StreamKind::Blocking;
}

void StreamOrder::wait(const Moment &moment) {
  std::lock_guard guard(host().lock);
  append(ended, moment.ended);
  running.insert(running.end(), moment.running.begin(), moment.running.end());
  refresh();
}

Moment StreamOrder::moment() {
  std::lock_guard guard(host().lock);
  refresh();
  Moment made{ended, running};
  append(made.ended, begun);
  return made;
}

Moment StreamOrder::momentOfLaunch(const DependentLaunch &dependent) {
  std::lock_guard guard(host().lock);
  const bool triggers = dependent.eventAttribute == AttributeProgrammaticEvent;
  return {ended, {{{last, triggers}, attributeName(dependent.eventAttribute, dependent.driver)}}};
}

void fp4::simcuda::hostWaited() {
  std::lock_guard guard(host().lock);
  ++host().waits;
}

void fp4::simcuda::hostWaited(const Moment &moment) {
  std::lock_guard guard(host().lock);
  append(host().ended, moment.ended);
}
