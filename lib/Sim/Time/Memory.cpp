//===- Memory.cpp - Caches and device memory with a clock -----------------===//
#include "Sim/Time/Memory.h"
#include <bit>
#include <cmath>

namespace fp4::sim {

//===----------------------------------------------------------------------===//
// Queues
//===----------------------------------------------------------------------===//

double SharedServer::serve(double now, double duration, double present) {
  constexpr double least = 1; // cycles: a shorter time is no gap
  busy += duration;
  if (now < free) {
    const double end = serveInGaps(now, duration, present);
    if (duration <= 0)
      return end;
  } else if (now - free >= least) {
    forget(present);
    gaps.push_back({free, now});
  }
  free = std::max(free, now) + duration;
  return free;
}

double SharedServer::busyUntil(double end) const {
  double behind = std::max(0.0, free - end);
  for (size_t at = past; at < gaps.size(); ++at)
    behind -= std::max(0.0, gaps[at].end - std::max(gaps[at].begin, end));
  return busy - behind;
}

/// Drops the gaps before `present`. Gaps are erased when those to drop are half of all, so that a
/// request moves a gap once on average.
void SharedServer::forget(double present) {
  while (past < gaps.size() && gaps[past].end <= present)
    ++past;
  if (2 * past < gaps.size())
    return;
  gaps.erase(gaps.begin(), gaps.begin() + ptrdiff_t(past));
  past = 0;
}

/// Takes from `duration` what the gaps after `now` hold. Returns the end of the last part.
double SharedServer::serveInGaps(double now, double &duration, double present) {
  constexpr double least = 1;
  const auto endsBefore = [](const Gap &gap, double when) { return gap.end <= when; };
  forget(present);
  size_t at = size_t(std::lower_bound(gaps.begin() + ptrdiff_t(past), gaps.end(), now, endsBefore) -
                     gaps.begin());
  double end = now;
  while (duration > 0 && at < gaps.size()) {
    const Gap gap = gaps[at];
    const double begin = std::max(gap.begin, now), taken = std::min(gap.end - begin, duration);
    end = begin + taken;
    duration -= taken;
    const bool before = begin - gap.begin >= least, after = gap.end - end >= least;
    if (before && after) {
      gaps[at] = {gap.begin, begin};
      gaps.insert(gaps.begin() + ptrdiff_t(++at), {end, gap.end});
    } else if (before || after) {
      gaps[at] = before ? Gap{gap.begin, begin} : Gap{end, gap.end};
      at += before;
    } else {
      gaps.erase(gaps.begin() + ptrdiff_t(at));
    }
  }
  return end;
}

//===----------------------------------------------------------------------===//
// L1
//===----------------------------------------------------------------------===//

void L1Cache::resize(uint64_t bytes) {
  sets = std::max<size_t>(1, std::bit_floor(bytes / kLineBytes / ways));
  table.assign(sets * ways, {});
  next.assign(sets, 0);
}

L1Cache::Way *L1Cache::find(uint64_t line) {
  Way *set = &table[(line ^ line >> 9) % sets * ways];
  for (unsigned i = 0; i < ways; ++i)
    if (set[i].line == line)
      return set + i;
  return nullptr;
}

L1Cache::Found L1Cache::access(const LineAccess &access) {
  Way *way = find(access.line);
  if (!way) {
    const size_t set = (access.line ^ access.line >> 9) % sets;
    way = &table[set * ways + next[set]++ % ways];
    *way = {access.line, 0, 0};
  }
  const Found found{way->ready, access.sectors & ~way->sectors};
  way->sectors |= access.sectors;
  return found;
}

void L1Cache::arrived(uint64_t line, double when) {
  if (Way *way = find(line))
    way->ready = std::max(way->ready, when);
}

//===----------------------------------------------------------------------===//
// L2 and device memory
//===----------------------------------------------------------------------===//

/// The bits of something in no order (splitmix64).
static uint64_t mixed(uint64_t bits) {
  bits += 0x9e3779b97f4a7c15;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
  return bits ^ bits >> 31;
}

/// Returns how long a line stays in L2 when any line goes for one that comes: the distribution is
/// exponential. The number of the line and its step decide the time, so that a run repeats. The
/// logarithm of a double would need a newer libm than our wheels may.
static double lifetimeOf(uint64_t line, uint32_t step) {
  const uint64_t bits = mixed(line << 32 ^ line >> 32 ^ step);
  return -std::log(float((double(bits >> 11) + 0.5) * 0x1p-53));
}

bool PresentLines::has(uint64_t line, uint32_t step, bool own) const {
  const Border &border = borders[own ? 0 : 1];
  if (!step || byAge)
    return step && step >= border.oldest;
  return double(now() - step) * stepBytes < border.capacity * lifetimeOf(line, step);
}

void PresentLines::pass(double bytes) {
  if ((filled += bytes) > stepBytes) {
    steps.push_back(0);
    filled = 0;
  }
}

uint32_t PresentLines::touch(uint32_t step, double before, double kept, double after) {
  if (!byAge) {
    pass(after - kept);
    return kept > 0 ? step : now();
  }
  const double taken = std::min(before, double(steps[step]));
  steps[step] -= float(taken);
  pass(after);
  steps.back() += float(after);
  for (Border &border : borders) {
    border.bytes += after - (step >= border.oldest ? taken : 0);
    while (border.bytes > border.capacity && border.oldest < now())
      border.bytes -= double(steps[border.oldest++]);
  }
  return now();
}

MemorySystem::MemorySystem(const Rates &rates, double gigahertz, uint64_t l2Size)
    : rates(rates), gigahertz(gigahertz), l2Latency(rates[TimingRate::L2Latency]),
      deviceLatency(rates[TimingRate::MemoryLatency]), portRate(rates[TimingRate::L2PortBytes]),
      l2Rate(rates[TimingRate::L2Terabytes] * 1e3 / gigahertz),
      sharedRate(rates[TimingRate::L2SharedTerabytes] * 1e3 / gigahertz),
      foreignRate(rates[TimingRate::L2OtherTerabytes] * 1e3 / gigahertz),
      deviceRate(rates[TimingRate::MemoryTerabytes] * 1e3 / gigahertz),
      storeRate(rates[TimingRate::StoreBytes]),
      takingRate(rates[TimingRate::StoreTerabytes] * 1e3 / gigahertz),
      readers(rates[TimingRate::L2Readers]), pairs(rates[TimingRate::MemoryGranule] > kSectorBytes),
      turnaround(rates[TimingRate::MemoryTurnaround]), burst(rates[TimingRate::MemoryBurst]),
      writeHold(rates[TimingRate::WriteHold]), spread(rates[TimingRate::MemorySpread]),
      orderGain(rates[TimingRate::MemoryInOrder]),
      presentLines(rates[TimingRate::L2ByAge] > 0, double(l2Size) * rates[TimingRate::L2Reach],
                   double(l2Size) * rates[TimingRate::L2OtherReach]) {}

void MemorySystem::sample(double part, unsigned others) {
  share = part;
  companions = others;
  served = part * (1 + companions);
  for (double *rate : {&l2Rate, &sharedRate, &foreignRate, &deviceRate, &takingRate})
    *rate *= served;
  for (int write : {0, 1}) {
    const Traffic &all = traffic[write];
    if (all.bytes <= 0 || all.memberMissing <= 0)
      continue;
    const double alone = all.memberMissing / all.memberBytes;
    bringing[write] = std::min(1.0, all.missing / all.bytes / alone);
    sharing[write] = all.shared / all.bytes;
    const double hits = all.bytes - all.shared - all.missing;
    borrowing[write] = hits > 0 ? std::min(1.0, all.foreign / hits) : 0;
  }
}

/// Returns the sectors that come from device memory for `sectors` when `present` ones are there.
uint32_t MemorySystem::fetched(uint32_t sectors, uint32_t present, bool write) const {
  constexpr uint32_t first = 0b0101; // of a pair
  const uint32_t missing = sectors & ~present;
  if (write || !pairs)
    return missing;
  const uint32_t touched = (missing | missing >> 1) & first;
  return (touched | touched << 1) & ~present;
}

static double bytesOf(uint32_t sectors) { return double(std::popcount(sectors)) * kSectorBytes; }

MemorySystem::Line &MemorySystem::lineOf(uint64_t line) {
  const uint64_t page = line / pageLines;
  if (page != lastPage) {
    auto &lines = pages[page];
    if (!lines)
      lines = std::make_unique<Line[]>(pageLines);
    lastPage = page;
    lastLines = lines.get();
  }
  return lastLines[line % pageLines];
}

void MemorySystem::touch(const LineAccess &access, const Port &port, double now, bool write,
                         Touched &sum) {
  constexpr float together = 2000; // cycles: about two turns of a ring of stages
  Line &line = lineOf(access.line);
  const auto present = [&] { // in the whole machine, of which a sample is a part
    return bytesOf(line.sectors) * bringing[write] / share;
  };
  const double before = present();
  if (line.step && !presentLines.has(access.line, line.step, line.by == &port))
    line.sectors = line.ofMembers = 0; // displaced since
  const double kept = present(), bytes = bytesOf(access.sectors);
  const uint32_t missing = fetched(access.sectors, line.sectors, write);
  sum.bytes += bytes;
  sum.missing += bytesOf(missing);
  if (access.sectors & line.sectors)
    sum.there = std::max(sum.there, double(line.there));
  if (missing && !write)
    asked.push_back(&line);
  if (line.by && line.by != &port) {
    const bool soon = float(now) - line.when < together;
    line.readers = soon ? uint8_t(std::min(line.readers + 1, 255)) : 0;
    if (soon && line.readers >= readers)
      sum.shared += bytes;
    else if (!write)
      sum.foreign += bytesOf(access.sectors & ~missing);
  }
  if (const void *by = &port; share == 1 && by >= members.first && by < members.second) {
    Traffic &seen = traffic[write];
    seen.memberBytes += bytes;
    const uint32_t alone = fetched(access.sectors, line.ofMembers, write);
    seen.memberMissing += bytesOf(alone);
    line.ofMembers |= uint8_t(access.sectors | alone);
  }
  line.sectors |= uint8_t(access.sectors | missing);
  line.step = presentLines.touch(line.step, before, kept, present());
  line.when = float(now);
  line.by = &port;
}

/// Returns the end of a request. Requests of companions come one after the other, so that they do
/// not form a block in front of the next request of the member.
double MemorySystem::serve(SharedServer &server, double now, double duration) const {
  constexpr double apart = 223; // cycles
  const double end = server.serve(now, duration, present);
  for (unsigned i = 1; i <= companions; ++i)
    server.serve(now + i * apart, duration, present);
  return end;
}

/// Returns the loss of device memory by turning from reads to writes and back, where `writes` of
/// the bytes are written, relative to the loss where a half is. Nothing is lost where all are reads
/// or all are writes; most is where reads are rare among writes, which wait for them (H200, micro:
/// mixes).
static double turnsAt(double writes) {
  using Row = std::pair<double, double>;
  static constexpr Row rows[] = {{0, 0},       {0.125, 0},   {0.25, 0.1},  {0.375, 0.8}, {0.5, 1},
                                 {0.625, 1.1}, {0.75, 1.25}, {0.875, 1.7}, {0.969, 1.4}, {1, 0}};
  const auto above = std::find_if(std::begin(rows) + 1, std::end(rows) - 1,
                                  [&](const Row &row) { return writes <= row.first; });
  const auto [low, least] = *(above - 1);
  return std::lerp(least, above->second, (writes - low) / (above->first - low));
}

/// Returns the gain of device memory where CTAs follow each other, so that all together read it in
/// its order, relative to the gain where nothing is written (H200, micro: ladder).
static double gainAt(double writes) { return std::max(0.0, 1 - 3 * writes); }

/// Returns the cycle at which the last of the bytes is through every queue on its way, without
/// latency.
double MemorySystem::transfer(Port &port, double now, const Touched &touched, bool write) {
  const double missing = touched.missing * bringing[write];
  const double bytes = touched.stays ? 0 : touched.bytes;
  const double shared = std::min(bytes, std::max(touched.shared, bytes * sharing[write]));
  if (share == 1)
    traffic[write].add(touched);
  l2Bytes += bytes / share;
  deviceBytes += missing / share;
  const double once = bytes - shared;
  const double foreign =
      std::min(once, std::max(touched.foreign, std::max(0.0, once - missing) * borrowing[write]));
  const double ways =
      (once - foreign) / std::max(l2Rate, sharedRate) + shared / sharedRate + foreign / foreignRate;
  const double ofPort = write ? port.stores.serve(now, bytes / storeRate, present)
                              : port.loads.serve(now, bytes / portRate, present);
  double end = std::max({ofPort, serve(l2, now, once / l2Rate), serve(delivery, now, ways)});
  if (write)
    end = std::max(end, serve(taking, now, bytes / takingRate));
  if (missing <= 0)
    return end;
  constexpr double memory = 1 << 22; // bytes over which reads and writes mix
  const double moved = missing / share, fade = std::max(0.0, 1 - moved / memory);
  read_ = read_ * fade + (write ? 0 : moved);
  written = written * fade + (write ? moved : 0);
  const double writes = written / (read_ + written);
  const double rate = deviceRate * (inOrder ? 1 + orderGain * gainAt(writes) : 1);
  const double inMemory = missing / rate * (1 + turnaround * turnsAt(writes));
  const double least = waitForPart(now, inMemory, writes);
  const double ofDevice = serve(device, now, inMemory);
  noteBacklog(now);
  if (write) { // its own way through them is part of that
    serve(l2, now, std::max(0.0, inMemory * writeHold - once / l2Rate));
    serve(delivery, now, std::max(0.0, inMemory * writeHold - ways));
  }
  writesBack |= write;
  firstRead = write ? firstRead : std::min(firstRead, now);
  reads += !write;
  return std::max({end, ofDevice, write ? 0 : now + least + inMemory});
}

/// Device memory has many parts, each with a queue of its own, so that a request may wait though
/// others are idle: for requests at random as long as in a queue with that use, M/D/1, and `alone`
/// because the last of its lines counts. Writes keep a part busy for longer. With more use than
/// `most` all parts have work to do, and the wait is that of the common queue. The four numbers are
/// fitted, on an H200 alone, to micro: ladder and turnover, and no rates of TimingRates.def: nobody
/// measured them by themselves, and other targets take them as they are.
double MemorySystem::waitForPart(double now, double service, double writes) {
  constexpr double recent = 2000, most = 0.94, ofWrites = 4, alone = 60; // cycles; of 1
  const double since = std::max(0.0, now - useUntil);
  use = use * std::exp(-since / recent) + service * (1 + companions) / recent;
  useUntil = std::max(useUntil, now);
  const double part = std::min(use, most);
  return alone + burst * (1 + ofWrites * writes) * part / (2 * (1 - part));
}

/// Requests come nearly in the order of their times; one that comes late counts for the last time.
void MemorySystem::noteBacklog(double now) {
  constexpr double old = 1 << 14; // cycles: more than any data waits
  while (!backlog.empty() && backlog.front().asked < present - old)
    backlog.pop_front();
  if (backlog.empty() || now > backlog.back().asked)
    backlog.push_back({now, device.end()});
  backlog.back().end = std::max(backlog.back().end, device.end());
}

double MemorySystem::endOfThoseAskedBy(double when) const {
  const auto later = std::ranges::upper_bound(backlog, when, {}, &Backlog::asked);
  return later == backlog.begin() ? 0 : std::prev(later)->end;
}

/// Lines that are read displace others, which are written back meanwhile if they were changed. So
/// the memory is never idle between the reads and the writes of kernels that do the same one after
/// the other, and a launch that writes ends no earlier than this: the last read waits longer than
/// others, and something is stored behind it.
double MemorySystem::leastEnd() const {
  constexpr double most = 3; // deviations
  const double last = std::min(most, std::sqrt(2 * std::log(std::max(1.0, reads))));
  const bool both = writesBack && firstRead < never;
  const double wait = (deviceLatency - l2Latency) * std::exp(last * spread);
  return both ? firstRead + device.busy + l2Latency + wait + l2Latency : 0;
}

double OutsideRows::fill(double now, double rows, double alone, double together, double present) {
  for (; !waiting.empty() && waiting.top().end <= present; waiting.pop())
    count -= waiting.top().rows;
  count += rows;
  const double end = now + count / (alone + together * count);
  waiting.push({end, rows});
  return end;
}

/// The rows of a sample stand for those of the whole machine.
double MemorySystem::fillOutside(double now, double rows, bool whole) {
  constexpr double ofWhole = 0.5, thousand = 1000;
  const double part = served / (1 + companions);
  return outside.fill(now, rows * (whole ? ofWhole : 1) / part, rates[TimingRate::OutsideRows],
                      rates[TimingRate::OutsideTogether] / thousand, present) +
         l2Latency;
}

double MemorySystem::deliver(double now, double bytes) {
  l2Bytes += bytes / share;
  const double rate = rates[TimingRate::MulticastTerabytes] * 1e3 / gigahertz * served;
  return serve(delivery, now, bytes / rate);
}

/// Operations on one line come one after the other, whoever asks for them. SMs that are not
/// simulated ask for a line that several ask for, and not for one that a member has to itself.
double MemorySystem::turnOf(const Port &port, std::span<const LineAccess> lines, double now) {
  forgetTurns();
  double turn = now;
  for (const LineAccess &access : lines) {
    Turns &turns = atomics[access.line];
    turns.several |= turns.by && turns.by != &port;
    turns.by = &port;
    const double interval = rates[TimingRate::AtomicInterval] / (turns.several ? share : 1);
    turn = std::max(turn, turns.server.serve(now, interval, present) - interval);
  }
  return turn;
}

/// Drops the lines that nobody waits for, when there are twice as many as were left last time.
void MemorySystem::forgetTurns() {
  constexpr size_t few = 4096;
  if (atomics.size() < manyTurns)
    return;
  std::erase_if(atomics, [&](const auto &entry) { return entry.second.server.isFree(present); });
  manyTurns = std::max(few, 2 * atomics.size());
}

/// Returns the latency of L2 for a touch: some of the sample's misses count as hits, so that the
/// mean is right.
double MemorySystem::latencyOf(const Touched &touched) const {
  return touched.missing > 0 ? l2Latency + (deviceLatency - l2Latency) * bringing[0] : l2Latency;
}

/// Returns the cycle at which the last byte of a read arrives that is through all queues at `end`.
/// If some bytes are on their way to L2 for another request, it arrives no later than if nobody
/// else had asked for them.
double MemorySystem::arrivalOf(const Touched &touched, double end) const {
  return std::max(end + latencyOf(touched), std::min(touched.there, end + deviceLatency));
}

/// The lines that the present read asked device memory for are there at `arrival`.
double MemorySystem::arrive(double arrival) {
  for (Line *line : asked)
    line->there = float(arrival);
  asked.clear();
  return arrival;
}

namespace {

/// The lines of runs, one after the other.
template <typename F> void forLines(std::span<const GlobalRun> runs, F &&f) {
  for (const GlobalRun &run : runs)
    sim::forLines(run.address, run.address + run.bytes, f);
}

template <typename F> void forLines(std::span<const LineAccess> lines, F &&f) {
  std::ranges::for_each(lines, f);
}

} // namespace

/// Returns the cycle at which the last byte of a read or write is through every queue, and sums up
/// the lines that it touches.
template <typename Lines>
double MemorySystem::pass(Port &port, double now, Lines lines, bool write, Touched &touched) {
  forLines(lines, [&](const LineAccess &access) { touch(access, port, now, write, touched); });
  return transfer(port, now, touched, write);
}

double MemorySystem::read(Port &port, double now, std::span<const LineAccess> lines) {
  Touched touched;
  const double end = pass(port, now, lines, /*write=*/false, touched);
  return arrive(arrivalOf(touched, end));
}

/// Nearly normal, with mean 0 and deviation 1: the same for the same bits.
static double deviate(uint64_t of) {
  const uint64_t bits = mixed(of);
  double sum = 0;
  for (unsigned shift = 0; shift < 64; shift += 16)
    sum += double(bits >> shift & 0xffff) / 0x10000;
  return (sum - 2) * std::sqrt(3.0);
}

/// The wait of a warp behind L2, of the mean of a piece: its logarithm is normal. Lines of the same
/// 512 bytes come together, and a warp has its load when the last of such pieces has come (H200,
/// micro: steps: loads of pieces of 64 bytes take up to 31 % longer than those of 256). Waits for
/// lines of the same 4 KiB have something in common, as they have on an H200 (micro: waits: a
/// correlation of 0.3 between neighbours). Lines decide, so that a run repeats.
static double waitOf(std::span<const LineAccess> lines, double spread) {
  constexpr double common = 0.3;                              // of the variance
  constexpr uint64_t together = 32, piece = 512 / kLineBytes; // lines
  double last = -1e9;
  uint64_t before = ~0ull;
  for (const LineAccess &access : lines) {
    const uint64_t line = access.line;
    if (std::exchange(before, line / piece) == line / piece)
      continue;
    last = std::max(last, std::sqrt(common) * deviate(~(line / together)) +
                              std::sqrt(1 - common) * deviate(line));
  }
  return std::exp(float(spread * last - spread * spread / 2));
}

MemorySystem::Arrival MemorySystem::load(Port &port, double now,
                                         std::span<const LineAccess> lines) {
  Touched touched;
  const double arrival = arrivalOf(touched, pass(port, now, lines, /*write=*/false, touched));
  if (touched.missing <= 0 || arrival < now + deviceLatency)
    return {arrive(arrival), 0, false};
  const double behind = arrival - now - l2Latency, wait = behind * waitOf(lines, spread);
  return {arrive(now + l2Latency + std::min(behind, wait)), std::max(0.0, wait - behind), true};
}

MemorySystem::Arrival MemorySystem::loadFirst(Port &port, double now,
                                              std::span<const LineAccess> lines) {
  Touched touched;
  const double end = pass(port, now, lines, /*write=*/false, touched);
  if (touched.missing <= 0)
    return {arrive(arrivalOf(touched, end)), 0, false};
  const double wait = latencyOf(touched) - l2Latency;
  const double late = wait * (waitOf(lines, spread) - 1);
  const double share = double(mixed(lines[0].line ^ 0x5bd1e995) >> 40) / (1 << 24);
  return {arrive(std::max(end + latencyOf(touched) + late, touched.there)), 0, true, share};
}

/// Each copy of a warp has a wait of its own, and who waits for all of them waits for the last (H100,
/// micro: tiles). Lines that are on their way for another come when they come for that one.
double MemorySystem::fill(Port &port, double now, std::span<const LineAccess> lines) {
  Touched touched;
  const double end = pass(port, now, lines, /*write=*/false, touched), inL2 = now + l2Latency;
  const double wait = touched.missing > 0 ? waitOf(lines, spread) : 1;
  const double own = inL2 + (end + latencyOf(touched) - inL2) * wait;
  return arrive(std::max(own, touched.there));
}

/// Returns the end of a write. The data goes to device memory later, as data that was written
/// before does now.
double MemorySystem::write(Port &port, double now, std::span<const LineAccess> lines) {
  Touched touched;
  return pass(port, now, lines, /*write=*/true, touched) + l2Latency;
}

double MemorySystem::readRuns(Port &port, double now, double last, std::span<const GlobalRun> runs,
                              Touched touched) {
  const double end = pass(port, now, runs, /*write=*/false, touched);
  return arrive(arrivalOf(touched, std::max(last, end)));
}

double MemorySystem::read(Port &port, double now, double last, std::span<const GlobalRun> runs) {
  return readRuns(port, now, last, runs, {});
}

void MemorySystem::prefetch(Port &port, double now, double last, std::span<const GlobalRun> runs) {
  readRuns(port, now, last, runs, {.stays = true});
}

double MemorySystem::write(Port &port, double now, std::span<const GlobalRun> runs) {
  Touched touched;
  return pass(port, now, runs, /*write=*/true, touched);
}

} // namespace fp4::sim
