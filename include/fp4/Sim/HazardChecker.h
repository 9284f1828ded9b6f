//===- HazardChecker.h - Races of a simulated kernel, explained -----------===//
//
//   HazardChecker checker;
//   Simulator simulator({.observer = &checker});
//   simulator.launch(...);
//   for (const HazardReport &report : checker.reports()) puts(report.text().c_str());
//
// Computes happens-before from the event stream (Observer.h), whatever order the events came in: a
// race is found under every completion policy, not only when it changes the result. What is checked
// and what is not: docs/Simulator.md, "The hazard checker".
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Sim/Observer.h"
#include <memory>
#include <string>
#include <vector>

namespace fp4::sim {

/// The kinds of reports; the identifiers that stringify() gives are stable.
enum class HazardRule : uint8_t {
  SharedRace,           ///< "shared-race": generic accesses without synchronization
  UnwaitedCopy,         ///< "unwaited-copy": data of an asynchronous write used before it is known
  OverwrittenWhileRead, ///< "overwritten-while-read": written while somebody may still read it
  MissingProxyFence,    ///< "missing-proxy-fence": generic write, asynchronous access, no fence
  RelaxedSync,          ///< "relaxed-sync": synchronized, but .relaxed or in too narrow a scope
  MbarrierInit,         ///< "mbarrier-init": used without being ordered after its initialization
  MbarrierInitFence,    ///< "mbarrier-init-fence": ordered, but unfenced for an asynchronous use
};
std::string_view stringify(HazardRule rule);

/// One side of a race.
struct HazardAccess {
  Agent agent;
  uint32_t line = 0;  ///< in the PTX
  std::string what;   ///< "write of warp 1 of CTA rank 0"
  std::string source; ///< the text of the line
};

struct HazardReport {
  HazardRule rule{};
  std::string program, kernel;
  uint32_t address = 0; ///< shared::cluster address of the first byte both touch
  HazardAccess first, second;
  std::string message; ///< what is wrong
  std::string remedy;  ///< the missing edge

  /// "error: gemm.ptx:41: ... [shared-race]", with a note per access and one for the remedy.
  std::string text() const;
};

struct HazardOptions {
  /// Hold to the PTX text where practice relies on more: scopes of mbarrier operations between CTAs
  /// count, and a generic read needs a proxy fence before an asynchronous write.
  bool strict = false;
  size_t maxReports = 64; ///< a pair of lines is reported once
};

class HazardChecker final : public Observer {
public:
  explicit HazardChecker(HazardOptions options = {});
  ~HazardChecker() override;

  /// Of all launches since construction or clear().
  const std::vector<HazardReport> &reports() const;
  void clear();

  void onLaunch(const Program &program, std::string_view kernel) override;
  void onMemory(const MemoryEvent &event) override;
  void onBarrier(const BarrierEvent &event) override;
  void onFence(const FenceEvent &event) override;
  void onTicket(const TicketEvent &event) override;
  void onLife(const LifeEvent &event) override;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace fp4::sim
