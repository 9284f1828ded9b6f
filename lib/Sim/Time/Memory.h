//===- Memory.h - Caches and device memory with a clock -------------------===//
//
// L1 is a set-associative cache of each SM. L2 and device memory serve all: each is a queue with a
// rate, in cycles of the SMs. L2 is faster where SMs ask for a line at about the same time, and
// slower where another one had it before; device memory is slower where reads and writes alternate.
// Addresses decide hits; nothing stores data.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Async/Ticket.h"
#include "Sim/Time/Rates.h"
#include <algorithm>
#include <deque>
#include <memory>
#include <queue>
#include <span>
#include <unordered_map>
#include <vector>

namespace fp4::sim {

/// Something that is busy for a time with each request.
struct Server {
  double free = 0, busy = 0;

  /// The end of the service of a request that comes at `now`.
  double serve(double now, double duration) {
    free = std::max(free, now) + duration;
    busy += duration;
    return free;
  }
  /// Returns the part of `busy` before `end`, at which something may still be under way.
  double busyUntil(double end) const { return std::max(0.0, busy - std::max(0.0, free - end)); }
};

/// A server that is asked for times in any order. Idle time before a request that comes later stays
/// for those that come earlier: a copy that waits for its turn holds nobody up.
class SharedServer {
public:
  double busy = 0;

  /// The end of the service of a request that comes at `now`. Nobody will ask for a time before
  /// `present`.
  double serve(double now, double duration, double present);
  /// The end of the last service.
  double end() const { return free; }
  /// Returns the part of `busy` before `end`, which is no earlier than any `present` so far.
  double busyUntil(double end) const;
  /// Nothing before `present` counts any more.
  bool isFree(double present) const { return free <= present; }

private:
  struct Gap {
    double begin, end;
  };
  double serveInGaps(double now, double &duration, double present);

  void forget(double present);

  double free = 0;       ///< cycle from which on all is free; before it, busy or a gap
  std::vector<Gap> gaps; ///< idle times, in order
  size_t past = 0;       ///< number of the first gaps that nobody will ask for
};

/// Rows of boxes outside of their tensors, which all SMs wait for in one queue. The more wait, the
/// more are filled in a cycle, as if those that are alike were filled together.
class OutsideRows {
public:
  /// The cycle at which `rows` more are filled that come at `now`; nobody will ask for a time before
  /// `present`. `alone` of a cycle if nobody else waits, and `together` more for each that waits.
  double fill(double now, double rows, double alone, double together, double present);

private:
  struct Waiting {
    double end, rows;
    bool operator>(const Waiting &o) const { return end > o.end; }
  };
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting; ///< the first end first
  double count = 0; ///< rows of all that wait
};

/// The way between one SM and L2: loads come one way, and stores go the other.
struct Port {
  SharedServer loads, stores;
};

/// 32 bytes are a sector, four of them a line.
inline constexpr uint32_t kSectorBytes = 32, kLineBytes = 128;

/// Sectors of one line.
struct LineAccess {
  uint64_t line = 0;    ///< address / kLineBytes
  uint32_t sectors = 0; ///< mask
  bool operator==(const LineAccess &) const = default;
};

/// Calls `f` with each line of the addresses from `begin` to `end`, and its sectors.
template <typename F> void forLines(uint64_t begin, uint64_t end, F &&f) {
  while (begin < end) {
    const uint64_t line = begin / kLineBytes, stop = std::min(end, (line + 1) * kLineBytes);
    const unsigned first = unsigned(begin % kLineBytes / kSectorBytes),
                   last = unsigned((stop - 1) % kLineBytes / kSectorBytes);
    f(LineAccess{line, (2u << last) - (1u << first)});
    begin = stop;
  }
}

class L1Cache {
public:
  void resize(uint64_t bytes);
  /// The cycle at which the present sectors arrived, and the missing ones, which become present.
  struct Found {
    double ready = 0;
    uint32_t missing = 0;
  };
  Found access(const LineAccess &access);
  void arrived(uint64_t line, double when);

private:
  static constexpr unsigned ways = 8;
  struct Way {
    uint64_t line = ~0ull;
    uint32_t sectors = 0;
    double ready = 0;
  };
  Way *find(uint64_t line);
  std::vector<Way> table;
  std::vector<uint8_t> next; ///< way to replace, of each set
  size_t sets = 0;
};

/// The lines that L2 has. L2 gives up the line that was touched longest ago, or any line for each
/// that comes. Time goes in steps of some bytes that were touched, or that came, and a line knows
/// the step of its last touch, or of its coming.
class PresentLines {
public:
  static constexpr double stepBytes = 1 << 16;
  PresentLines(bool byAge, double own, double others)
      : byAge(byAge), borders{Border{own}, Border{others}} {}
  /// Returns true when a line of that step is there, for the client that asked for it last (`own`)
  /// or for another.
  bool has(uint64_t line, uint32_t step, bool own) const;
  /// A line of which L2 has `before` bytes since `step`, of them `kept` still, is asked for, and it
  /// has `after` bytes now. Returns the line's step.
  uint32_t touch(uint32_t step, double before, double kept, double after);

private:
  uint32_t now() const { return uint32_t(steps.size()) - 1; } ///< present step, from 1 on
  void pass(double bytes);

  bool byAge;
  /// The steps from `oldest` on, which have as many bytes as fit into `capacity`.
  struct Border {
    double capacity = 0, bytes = 0;
    uint32_t oldest = 1;
  };
  Border borders[2];                 ///< border for the client that asked last, and for others
  std::vector<float> steps = {0, 0}; ///< bytes of each step that were not touched again, from 1 on
  double filled = 0;                 ///< bytes in the last step
};

/// L2 and device memory. From sample() on, only the members of the sample ask for data, and have
/// their part of the rates. The lines that other SMs would have brought into L2 for them are then
/// known by their share of the traffic so far.
class MemorySystem {
public:
  MemorySystem(const Rates &rates, double gigahertz, uint64_t l2Bytes);

  /// The ports whose requests may go on as a sample.
  void setMembers(const void *begin, const void *end) { members = {begin, end}; }
  /// Counts the shares that a sample assumes from now on.
  void forgetTraffic() { traffic[0] = traffic[1] = {}; }
  /// The members go on alone; they are `share` of the machine. Each has `companions` that are not
  /// simulated and ask for what it asks for, some time later: those who meet in the queues are many
  /// enough that one may ask for more than its part for a while.
  void sample(double share, unsigned companions);

  /// The cycle at which data arrives that an SM asks for at `now` through its `port`.
  double read(Port &port, double now, std::span<const LineAccess> lines);
  /// The cycle for a load of a warp, and how much later it is if as much comes behind: device
  /// memory does not serve warps in the order in which they asked.
  struct Arrival {
    double when = 0, late = 0;
    bool waits = false; ///< true when device memory delivers some of it
    double share = 0;   ///< of the first warps: where among those that are served in no order, of 1
  };
  Arrival load(Port &port, double now, std::span<const LineAccess> lines);
  /// The cycle for a load of one of the first warps, if those behind it do not go before.
  Arrival loadFirst(Port &port, double now, std::span<const LineAccess> lines);
  /// The cycle for a `cp.async` of a warp. The wait deviates too, and may be longer than what comes
  /// behind it takes.
  double fill(Port &port, double now, std::span<const LineAccess> lines);
  /// CTAs of the launch follow others, so that all of them together read memory in its order.
  void setInOrder() { inOrder = true; }
  /// The cycle at which L2 has taken the data.
  double write(Port &port, double now, std::span<const LineAccess> lines);
  /// Contiguous runs, as the copy engine asks for them.
  /// The first is asked for at `now`, the last not before `last`.
  double read(Port &port, double now, double last, std::span<const GlobalRun> runs);
  /// Contiguous runs that the copy engine asks for, to come to L2 and no further.
  void prefetch(Port &port, double now, double last, std::span<const GlobalRun> runs);
  /// The cycle at which L2 has taken a store that begins at `now`.
  double write(Port &port, double now, std::span<const GlobalRun> runs);
  /// The cycle at which the copy engine has filled rows of a box outside of its tensor. A single
  /// engine that does so loses nothing; the reason why many delay each other is not known. Rows of
  /// a box that is outside `whole` count half (H200, micro: outside).
  double fillOutside(double now, double rows, bool whole);
  /// Brings a multicast to another destination; returns the cycle at which L2 is done with it.
  double deliver(double now, double bytes);
  /// The cycle at which L2 comes to an atomic operation on these lines that comes through `port`.
  double turnOf(const Port &port, std::span<const LineAccess> lines, double now);
  /// The earliest cycle at which a launch that did this may end.
  double leastEnd() const;
  /// The cycle at which device memory is through all that it was asked for until `when`.
  double endOfThoseAskedBy(double when) const;

  /// L2 reads a line once for all that ask for it at nearly the same time; the network between L2
  /// and the SMs brings it to each.
  SharedServer l2, delivery, taking, device; ///< `taking`: what is stored
  OutsideRows outside;
  double present = 0;                  ///< cycle before which nobody will ask for anything
  double deviceBytes = 0, l2Bytes = 0; ///< moved; of a sample, what the whole machine would
  double latencyOfL2() const { return l2Latency; }

private:
  static constexpr uint64_t pageLines = 16384; ///< 2 MiB
  struct Line {
    uint32_t step = 0; ///< step of the line's last touch
    uint8_t sectors = 0;
    uint8_t ofMembers = 0; ///< sectors that members asked for
    uint8_t readers = 0;   ///< clients that asked for it, one soon after the other, at most 255
    float when = -1e9f;    ///< cycle of the last request
    float there = 0;       ///< cycle at which missing data have come from device memory
    const Port *by = nullptr;
  };
  struct Touched {
    double bytes = 0;   ///< bytes that were asked for
    double shared = 0;  ///< bytes of lines that others ask for at the time
    double foreign = 0; ///< bytes of lines that another asked for last, before
    double missing = 0; ///< bytes that are not in L2
    double there = 0;   ///< cycle at which what others have asked device memory for has come
    bool stays = false; ///< true when the bytes stay in L2: nobody gets them now
  };
  /// Traffic of all requests, and of requests of members as if they were alone.
  struct Traffic {
    double bytes = 0, shared = 0, foreign = 0, missing = 0, memberBytes = 0, memberMissing = 0;
    void add(const Touched &touched) {
      bytes += touched.bytes;
      shared += touched.shared;
      foreign += touched.foreign;
      missing += touched.missing;
    }
  };
  Line &lineOf(uint64_t line);
  void touch(const LineAccess &access, const Port &port, double now, bool write, Touched &sum);
  uint32_t fetched(uint32_t sectors, uint32_t present, bool write) const;
  double latencyOf(const Touched &touched) const;
  double arrivalOf(const Touched &touched, double end) const;
  template <typename Lines>
  double pass(Port &port, double now, Lines lines, bool write, Touched &touched);
  double arrive(double arrival);
  double readRuns(Port &port, double now, double last, std::span<const GlobalRun> runs,
                  Touched touched);
  double transfer(Port &port, double now, const Touched &touched, bool write);
  double serve(SharedServer &server, double now, double duration) const;
  double waitForPart(double now, double service, double writes);
  void forgetTurns();
  void noteBacklog(double now);

  std::unordered_map<uint64_t, std::unique_ptr<Line[]>> pages;
  std::vector<Line *> asked; ///< device memory, by the present read
  uint64_t lastPage = ~0ull;
  Line *lastLines = nullptr;
  const Rates &rates; ///< rates; of multicasts when there is one: not all targets know that
  double gigahertz;
  double l2Latency, deviceLatency;                              ///< cycles
  double portRate, l2Rate, sharedRate, foreignRate, deviceRate; ///< B/cycle
  double storeRate, takingRate;
  /// Atomic operations on one line.
  struct Turns {
    SharedServer server;
    const Port *by = nullptr; ///< the last port
    bool several = false;     ///< more than one
  };
  std::unordered_map<uint64_t, Turns> atomics;
  size_t manyTurns = 4096; ///< number of lines at which those of the past are dropped
  double served = 1;       ///< share of the rates for the ports that make requests
  double readers;          ///< readers of a line before further ones join them
  bool pairs;              ///< device memory delivers two sectors at a time
  double turnaround, burst, writeHold, spread, orderGain;
  bool inOrder = false;
  double use = 0, useUntil = 0; ///< use of device memory of late, of 1, and the cycle of that
  static constexpr double never = 1e300;
  double firstRead = never; ///< cycle of the first read of device memory
  double reads = 0;         ///< number of reads of device memory
  /// The work of device memory of late, by the time of the request.
  struct Backlog {
    double asked, end; ///< cycles of the request, and of the end of all so far
  };
  std::deque<Backlog> backlog;
  bool writesBack = false;
  std::pair<const void *, const void *> members;
  Traffic traffic[2];            ///< traffic of reads and of writes before the sample
  double share = 1;              ///< share of the machine that makes requests
  unsigned companions = 0;       ///< SMs that each of those stands for besides itself
  double bringing[2] = {1, 1};   ///< share of a sample's misses that the machine has too
  double sharing[2] = {0, 0};    ///< share of bytes in lines that others ask for at the time
  double borrowing[2] = {0, 0};  ///< share of the other bytes in L2 that another asked for last
  double read_ = 0, written = 0; ///< bytes, of the recent past
  PresentLines presentLines;
};

} // namespace fp4::sim
