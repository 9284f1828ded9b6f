//===- Trace.h - The steps of one order, and what happens before what -----===//
//
// A step happens before a later one if it is an earlier step of the same process, if it issued the
// operation, if the later one waited for it, or if the two are dependent; and so on through steps in
// between. Two dependent steps that nothing else orders are a race: the order in which they come the
// other way round has to run too.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Orders/Footprint.h"
#include <array>
#include <map>
#include <memory>
#include <unordered_map>

namespace fp4::sim {

/// Sets of steps that share numbers, because many bytes have the same.
class StepSets {
public:
  StepSets() : sets(1) {} ///< 0 is empty
  const std::vector<uint32_t> &operator[](uint32_t set) const { return sets[set]; }
  /// `step` comes after `previous` of the same process, and stands for it.
  uint32_t with(uint32_t set, uint32_t step, uint32_t previous);

private:
  std::vector<std::vector<uint32_t>> sets;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> larger;
};

/// The last users of each byte.
class ByteHistory {
public:
  /// Notes a use by `step`, which follows `previous` of its process, and adds the earlier steps on
  /// which it depends to `before`. Later steps do not see a use that is not `kept`.
  void use(uint32_t step, uint32_t previous, bool ticket, uint8_t use, const ByteRange &range,
           std::vector<uint32_t> &before, bool kept);

private:
  static constexpr uint64_t kPage = 128;
  struct Byte {
    uint32_t last = 0;   ///< uses of one kind, which commute
    uint32_t older = 0;  ///< accesses before these uses
    uint32_t poison = 0; ///< 1 + the step that issued the operation that will write the byte
    uint8_t use = 0;     ///< kind of `last`
    bool operator==(const Byte &) const = default;
  };
  using Page = std::array<Byte, kPage>;
  void collect(const Byte &byte, uint8_t use, bool ticket, std::vector<uint32_t> &before) const;
  void record(Byte &byte, uint8_t use, uint32_t previous, uint32_t step);

  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages;
  StepSets sets;
  std::vector<bool> ofTickets; ///< flag of each step: a ticket's, not a warp's
};

class Trace {
public:
  /// Appends a step, whose footprint has to stay where it is. Returns the earlier steps with which
  /// it races, none of which happens before another.
  std::vector<uint32_t> add(Process process, const Footprint &footprint) {
    return append(process, footprint, /*kept=*/true);
  }
  /// Appends a step that only reads and that no later one comes after: forgetLook() removes it.
  std::vector<uint32_t> look(Process process, const Footprint &footprint) {
    return append(process, footprint, /*kept=*/false);
  }
  void forgetLook() { steps.pop_back(); }
  using Past = std::vector<uint64_t>; ///< a bit for each step
  /// Returns the steps before the step that the process makes, which has touched `soFar`.
  Past pastOf(Process process, const Footprint &soFar);
  /// Returns true when the steps include number `ordinal` of the process.
  bool isIn(const Past &past, Process process, size_t ordinal) const;
  size_t stepsOf(Process process) const;

  size_t size() const { return steps.size(); }
  Process processOf(size_t step) const { return steps[step].process; }
  bool before(size_t first, size_t second) const {
    return steps[second].past[first / 64] >> (first % 64) & 1;
  }
  /// The processes that can begin what has to run instead of `step` so that the last step of the
  /// trace comes before it: all after `step` that does not depend on it, then the last.
  std::vector<Process> initialsAgainst(uint32_t step) const;
  /// Pairs of steps of which none happens before the other.
  uint64_t unordered() const;
  size_t processCount() const { return ofProcess.size(); }
  /// A race was found between steps that access memory in several instructions: one order of two
  /// steps is not every order of their accesses.
  bool isCoarse() const { return coarse; }
  /// A warp gave registers back after another had taken some. If none ever does, taking commutes:
  /// whatever the order, all that is given comes, and then there is enough for all that take.
  bool takesBeforeGiving() const { return takesFirst; }

private:
  struct Step {
    Process process;
    Past past; ///< steps that happen before it, and itself
    const Footprint *footprint; ///< the caller's
  };
  struct Before {
    uint32_t step;
    bool memory; ///< through bytes
  };
  struct ObjectStep {
    ObjectAccess access;
    uint32_t step;
    size_t covered; ///< number of the first accesses that happen before the step
  };
  std::vector<uint32_t> append(Process process, const Footprint &footprint, bool kept);
  void note(uint32_t step);
  void join(Past &past, uint32_t step) const;
  bool isNeeded(uint32_t wait, const ObjectAccess &completing) const;
  void reductionAwaited(Past &past, const AwaitedTicket &awaited) const;
  Past beginOf(Process process) const;
  bool givesLate(const Footprint &footprint, const Past &past) const;
  static bool has(const Past &past, uint32_t step) { return past[step / 64] >> (step % 64) & 1; }
  void useObject(uint32_t step, const ObjectAccess &access, const Past &own, Past &past,
                 Past &waited, std::vector<Before> &before, bool kept);
  static size_t coveredBy(const Past &past, const std::vector<ObjectStep> &history, size_t from);
  std::vector<uint32_t> racesOf(const Past &own, const Past &ready, std::vector<Before> candidates,
                                const Footprint &footprint);

  std::vector<Step> steps;
  std::unordered_map<Process, std::vector<uint32_t>> ofProcess;
  std::unordered_map<Process, uint32_t> issues; ///< the steps that issued operations, started warps
  ByteHistory memory;
  std::unordered_map<uint64_t, std::vector<ObjectStep>> objects;
  uint32_t lastOfAll = ~0u; ///< the last step that depends on all
  bool coarse = false, takesFirst = false;
};

} // namespace fp4::sim
