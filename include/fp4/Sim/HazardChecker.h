//===- HazardChecker.h - Races of a simulated kernel, explained -----------===//
//
//   HazardChecker checker;
//   Simulator simulator({.observer = &checker});
//   simulator.launch(...);
//   for (const HazardReport &report : checker.reports()) puts(report.text().c_str());
//
// Computes happens-before from the event stream (Observer.h) in any order of events: a race is
// found under every completion policy, not only when it changes the result. simulator.md, "The
// hazard checker", says what is checked and what is not.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Sim/Actor.h"
#include "fp4/Sim/ApartObserver.h"
#include "fp4/Sim/Observer.h"
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fp4::sim {

/// The kinds of reports; the identifiers that stringify() gives are stable.
enum class HazardRule : uint8_t {
#define FP4_HAZARD(id, name, summary, text, remedy) id,
#include "fp4/Sim/HazardRules.def"
};
std::string_view stringify(HazardRule rule);
std::string_view summaryOf(HazardRule rule); ///< name of the fault, one line
std::string_view remedyOf(HazardRule rule);  ///< the usual missing edge
std::optional<HazardRule> parseHazardRule(std::string_view text);
/// Every rule, in the order of the documents.
std::span<const HazardRule> hazardRules();
/// Some paragraphs for a terminal: what the rule means, an example and the remedy.
std::string explain(HazardRule rule);

/// One side of a race.
struct HazardAccess {
  Actor actor;
  uint32_t line = 0, column = 0; ///< place in the PTX
  std::string what;              ///< "write by warp 1 of CTA rank 0"
  std::string source;            ///< the text of the line
  std::string origin;            ///< "gemm.mlir:14:5", where the PTX has .loc
};

struct HazardReport {
  HazardRule rule{};
  std::string program, kernel;
  std::string place; ///< first byte both touch: "shared 0x400 of CTA rank 0"
  HazardAccess first, second;
  std::string message; ///< description of the fault
  std::string remedy;  ///< the missing edge
  std::string detail;  ///< further facts, or nothing
  uint64_t count = 1;  ///< findings at this pair of lines
  uint64_t last = 0;   ///< HazardChecker::found() at the last finding

  /// "error: gemm.ptx:41:3: ... [shared-race]", with a note per access and one for the remedy.
  std::string text() const;
};

struct HazardOptions {
  /// Follows the PTX text where practice relies on more: scopes of mbarrier operations between CTAs
  /// count, and a generic read needs a proxy fence before an asynchronous write.
  bool strict = false;
  size_t maxReports = 64; ///< a pair of lines is reported once, and counted: of PTX, or where it
                          ///< has .loc of instructions of one kind that come from one line
  std::function<void(const HazardReport &)> noticed = {}; ///< is told of each report at once
};

/// By default it can be told of clusters at the same time, in any number of host threads.
class HazardChecker final : public Observer, public ApartObserver {
public:
  explicit HazardChecker(HazardOptions options = {});
  ~HazardChecker() override;

  /// The reports of all launches since construction or clear().
  const std::vector<HazardReport> &reports() const;
  /// Number of findings in all launches, counting those that a report told before or that found no
  /// room for one. A launch is clean if it leaves the number as it was.
  uint64_t found() const;
  void clear();
  /// Number of pages of 4096 bytes whose unawaited accesses the checker keeps: at most the pages
  /// that launches used, however many launches there are.
  size_t keptPages() const;

  void onLaunch(const LaunchEvent &event) override;
  void onMemory(const MemoryEvent &event) override;
  void onBarrier(const BarrierEvent &event) override;
  void onFence(const FenceEvent &event) override;
  void onTicket(const TicketEvent &event) override;
  void onLife(const LifeEvent &event) override;

  bool beginApart() override;
  void beginCluster() override;
  bool endCluster(uint32_t cluster) override;
  void endApart(bool count) override;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace fp4::sim
