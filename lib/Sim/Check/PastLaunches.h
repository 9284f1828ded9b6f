//===- PastLaunches.h - Launches that may still run beside this one -------===//
#pragma once

#include "UsedBytes.h"
#include "fp4/Sim/Dependence.h"

namespace fp4::sim::check {

/// Earlier launches that may run beside a launch.
struct Beside {
  /// The launches that it depends on, and waits for.
  std::vector<std::shared_ptr<const PastLaunch>> before;
  /// Bytes that all other launches use which may run when it begins, and of these launches those
  /// that its wait does not cover. Null: none.
  std::shared_ptr<const UsedBytes> early, late;
};

/// griddepcontrol.launch_dependents and griddepcontrol.wait of a launch that depends on others.
class GridSignals {
public:
  void waits(uint64_t cta) {
    any = true;
    ctas[cta] |= behindBit;
  }
  /// A thread that `knows` has waited, or has synchronized with one that has.
  void triggers(uint64_t cta, bool knows) { ctas[cta] |= knows ? behindBit : beforeBit; }
  /// Returns true when the end of this launch is behind the end of its prerequisites.
  bool awaits() const { return any; }
  /// Returns true when a launch that depends on this one begins behind the end of the prerequisites
  /// too: every CTA has waited before it triggered or ended.
  bool triggersBehindWait() const {
    return any &&
           std::ranges::any_of(ctas, [](const auto &cta) { return cta.second == behindBit; });
  }

private:
  static constexpr uint8_t behindBit = 1, beforeBit = 2;
  std::unordered_map<uint64_t, uint8_t> ctas;
  bool any = false;
};

/// The launches that later ones may depend on.
class History {
public:
  /// Remembers a launch that has ended, as long as its mark is held.
  void keep(std::weak_ptr<const LaunchMark> mark, std::shared_ptr<const PastLaunch> launch,
            Beside beside, GridSignals signals);
  /// Forgets what nobody can name any more.
  void forget();
  /// Returns the launches that may run beside one with these prerequisites.
  Beside besideOf(const std::vector<Prerequisite> &on) const;

private:
  struct Kept {
    std::weak_ptr<const LaunchMark> mark;
    std::shared_ptr<const PastLaunch> launch;
    Beside beside;
    GridSignals signals;
  };
  const Kept *find(const LaunchRef &mark) const;
  std::vector<Kept> kept;
};

} // namespace fp4::sim::check
