//===- TimedSample.cpp - Large launches by a sample -----------------------===//
//
// All slots run until enough instructions were executed to know what they do to each other: the
// part of the lines that one asks for and others have brought into L2, and the part that they ask
// for at the same time, both in the later half of that time. Then the first slots go on alone, to
// the end of the launch, with their part of L2 and device memory and with these shares. The members
// have as many clusters as any slot has: in a persistent grid their own, in other grids those whose
// index they would have got.
//
// The computation and traffic of the whole machine are those of the members, as often as there is
// work for the others: clusters that had not begun or, in a persistent grid, the work that is left
// to the slots. Slots with a higher index have a tile less there, so that a few of them finish as
// probes.
//
// The other slots stand still. If anybody wants results, they finish what they have begun after the
// sample, without a time, and what has not begun runs without a clock.
//
//===----------------------------------------------------------------------===//
#include "Sim/Time/TimedLaunch.h"
#include <algorithm>
#include <fmt/format.h>

namespace fp4::sim {

/// Eight SMs, in two clusters or more, so that they see enough of the values of a large grid. The
/// CTAs of a persistent grid go on for long and see many: two clusters are enough.
uint32_t TimedLaunch::membersOf() const {
  constexpr uint64_t processors = 8, clusters = 2;
  const bool persistent = launch.queue.totalClusters <= slotsOfAll * residentCtasPerSm;
  const uint64_t enough = persistent ? 1 : (processors + clusterSize - 1) / clusterSize;
  return uint32_t(std::min(slotsOfAll, std::max(clusters, enough)));
}

/// Returns the companions of a member, so that eight SMs meet in L2.
static unsigned companionsOf(uint64_t processors) {
  constexpr uint64_t together = 8;
  return processors < together ? unsigned(together / processors) - 1 : 0;
}

/// Resets the traffic: lines that L2 does not have at first say nothing of the rest of a launch
/// that asks for them again.
void TimedLaunch::settle() {
  if (settled || executed < predictor.sampleAfter / 2)
    return;
  settled = true;
  machine.memory.forgetTraffic();
}

/// Returns true when a sample saves time: if the other slots have to finish all the same, standing
/// still saves nothing. A grid that synchronizes is never sampled.
bool TimedLaunch::maySample() {
  const uint64_t after = predictor.sampleAfter;
  if (!after || executed < after || launch.config.gridWorkspace || members >= slots.size() ||
      !blocks.whole.empty())
    return false;
  const uint64_t notBegun = launch.queue.totalClusters - launch.queue.nextCluster;
  return (predictor.timesOnly || notBegun > slots.size() * residentCtasPerSm) &&
         standsForRest(notBegun);
}

/// Returns true when CTAs of a sample do what the other CTAs do. Persistent CTAs, and CTAs that
/// take the work of clusters that have not begun, must do the same by the text, up to the number of
/// turns of an outermost loop, which probes find. If the text does not say so of other CTAs, one
/// for each SM has ended: their ends are seen too.
bool TimedLaunch::standsForRest(uint64_t notBegun) {
  constexpr double most = 0.02;
  if (!blocks.work)
    blocks.work = ctaWorkOf(code, *launch.kernel);
  const CtaWork &work = *blocks.work;
  const bool stay =
      launch.queue.totalClusters <= slotsOfAll * residentCtasPerSm || launch.queue.canceledClusters;
  const double sampled = double(notBegun) * double(members) / double(slots.size());
  const uint32_t talk = blocks.talk ? blocks.talk : stay ? work.talk : 0;
  if (talk)
    blocks.whole =
        fmt::format("CTAs take work from a counter, or wait for others (line {})", talk);
  else if (stay && work.inner)
    blocks.whole = fmt::format("CTAs may differ in work (line {} ends a loop)", work.inner);
  else if (stay || (!work.talk && !work.loop))
    return true;
  else if (blocks.spread.count() < slots.size())
    return false; // not yet
  else if (blocks.spread.errorOf(sampled) > most)
    blocks.whole = fmt::format("CTAs differ in work by {:.0f} %", 100 * blocks.spread.relative());
  return blocks.whole.empty();
}

/// Notes that a CTA has learned what others did. CTAs that are not in the sample do nothing.
void TimedLaunch::noteTalk(uint32_t pc) {
  blocks.talk = launch.kernel->code[pc].line;
  if (phase != Phase::Sample)
    return;
  waits = true;
  blocks.refused = fmt::format("the effect of CTAs outside of a sample, which count or store, on "
                               "those in it (line {})",
                               blocks.talk);
}

/// Checks a sample whose clusters have ended: they are too few if they differ much.
void TimedLaunch::checkSpread() {
  constexpr double most = 0.05;
  if (phase == Phase::Sample && launch.queue.totalClusters > left &&
      !launch.queue.canceledClusters && blocks.refused.empty() &&
      blocks.spread.errorOf(double(blocks.spread.count())) > most)
    blocks.refused = fmt::format("the time of CTAs that differ in work by {:.0f} %",
                                 100 * blocks.spread.relative());
}

void TimedLaunch::beginSample() {
  phase = Phase::Sample;
  left = launch.queue.nextCluster;
  launch.sampling.members = members;
  launch.sampling.slots = slots.size();
  launch.sampling.runs = true;
  blocks.spread = {};
  flopsBefore = machine.flops;
  bytesBefore = machine.memory.deviceBytes;
  l2BytesBefore = machine.memory.l2Bytes;
  canceledBefore = launch.queue.canceledClusters;
  for (Slot &slot : slots) {
    slot.before = slot.work();
    slot.atBegin = uint32_t(std::count_if(slot.running.begin(), slot.running.end(),
                                          [](const auto &running) { return bool(running); }));
  }
  machine.memory.sample(double(members) / double(slots.size()),
                        companionsOf(members * clusterSize));
}

void TimedLaunch::retire(Slot &slot, uint32_t place) {
  const Running &running = *slot.running[place];
  stats.warpInstructions += running.scheduler.executed();
  stats.mmas += running.cluster.mmas;
  stats.tickets += running.cluster.tickets;
  stats.ctas += running.cluster.ctas.size();
  if (phase < Phase::Probe)
    blocks.spread.add(double(running.scheduler.executed()));
  slot.running[place].reset();
  if (launch.options->progress)
    launch.options->progress(stats.ctas, launch.queue.totalClusters * clusterSize);
}

/// Finishes the clusters of a slot without a clock, to see how much work they have.
Status TimedLaunch::probe(Slot &slot) {
  constexpr uint64_t turn = 1 << 18; // instructions in which something happens
  const double flops = machine.flops;
  for (uint32_t place = 0; place < slot.running.size() && !waits; ++place) {
    if (!slot.running[place])
      continue;
    Running &running = *slot.running[place];
    const uint64_t before = running.scheduler.executed();
    running.policy->stopClock();
    running.policy->setLooking(false);
    for (auto state = Scheduler::State::Running; state != Scheduler::State::Done && !waits;) {
      const uint64_t tickets = running.cluster.tickets;
      FP4_ASSIGN(state, running.scheduler.run(turn));
      waits = state == Scheduler::State::Spinning ||
              (state == Scheduler::State::Running && running.cluster.tickets == tickets);
    }
    slot.instructions += double(running.scheduler.executed() - before);
    if (!waits)
      retire(slot, place);
  }
  slot.flops += machine.flops - flops;
  return {};
}

/// Returns the work of the slots from `first` to `last`, both of which are done. If these two did
/// the same, so did those between them; between neighbours there is none.
Expected<double> TimedLaunch::workBetween(uint32_t first, uint32_t last) {
  constexpr double same = 0.01;
  const double a = slots[first].work(), b = slots[last].work();
  if (last - first <= 1 || std::abs(a - b) <= same * std::max(a, b) || waits)
    return (a + b) / 2 * (last - first + 1);
  const uint32_t middle = (first + last) / 2;
  FP4_TRY(probe(slots[middle]));
  FP4_ASSIGN(const double left, workBetween(first, middle));
  FP4_ASSIGN(const double right, workBetween(middle, last));
  return left + right - slots[middle].work();
}

/// Slots that have finished as probes did no more than the members, whose end is that of the launch.
void TimedLaunch::checkWork() {
  constexpr double most = 1.05;
  double ofMembers = 0, ofOthers = 0;
  for (const Slot &slot : slots) {
    const bool ended =
        std::ranges::none_of(slot.running, [](const auto &one) { return bool(one); });
    double &work = slot.index < members ? ofMembers : ofOthers;
    work = std::max(work, ended ? slot.work() : 0);
  }
  if (ofOthers > most * ofMembers)
    blocks.refused = fmt::format("the time of CTAs that do {:.2f} times the work of a sample's",
                                 ofOthers / ofMembers);
}

/// Returns how often the machine does what the members did since the sample began. A cluster that
/// ran then was half done. Members may also have taken clusters that had not begun (cluster launch
/// control).
Expected<double> TimedLaunch::machinesOfSample() {
  const double plain = double(slots.size()) / double(members);
  const uint64_t notBegun = launch.queue.totalClusters - left;
  double work = 0, before = 0, ofMembers = 0, clusters = double(notBegun);
  double memberClusters = double(launch.queue.canceledClusters - canceledBefore);
  for (const Slot &slot : slots) {
    const bool member = slot.index < members;
    before += slot.before;
    clusters += slot.atBegin / 2.0;
    memberClusters += member ? slot.begun + slot.atBegin / 2.0 : 0;
    ofMembers += member ? slot.work() - slot.before : 0;
  }
  if (notBegun)
    return memberClusters > 0 ? clusters / memberClusters : plain;
  phase = Phase::Probe;
  const uint32_t last = uint32_t(slots.size()) - 1;
  for (uint32_t i = 0; i + 1 < members; ++i)
    work += slots[i].work();
  FP4_TRY(probe(slots[last]));
  FP4_ASSIGN(const double others, workBetween(members - 1, last));
  const bool waited = std::exchange(waits, false);
  if (!waited)
    checkWork();
  return waited || ofMembers <= 0 ? plain : (work + others - before) / ofMembers;
}

/// Scales the prediction to the computation and traffic of the whole machine.
Status TimedLaunch::scaleSample() {
  if (waits)
    return {};
  const double flops = machine.flops - flopsBefore, bytes = predicted.memoryBytes - bytesBefore,
               ofL2 = predicted.l2Bytes - l2BytesBefore,
               plain = double(slots.size()) / double(members);
  FP4_ASSIGN(const double machines, machinesOfSample());
  if (!blocks.refused.empty())
    predicted = prediction();
  predicted.flops = flopsBefore + flops * machines;
  predicted.memoryBytes = bytesBefore + bytes * machines / plain;
  predicted.l2Bytes = l2BytesBefore + ofL2 * machines / plain;
  return {};
}

uint64_t TimedLaunch::firstLeft() const {
  return predictor.timesOnly || phase == Phase::Whole ? launch.queue.totalClusters : left;
}

Status TimedLaunch::finishRest() {
  phase = Phase::Rest;
  if (!predictor.timesOnly) {
    const bool waited = std::exchange(waits, false);
    FP4_TRY(runSlots(0, uint32_t(slots.size())));
    waits = waited;
  }
  return {};
}

} // namespace fp4::sim
