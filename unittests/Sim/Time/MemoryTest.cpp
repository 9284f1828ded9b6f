//===- MemoryTest.cpp - Times of requests of memory -----------------------===//
//
// The lines that L2 holds, the time that device memory is busy, and the arrival of a request's last
// byte, without kernels.
//
//===----------------------------------------------------------------------===//
#include "Sim/Time/Memory.h"
#include "../Async/KernelHarness.h"
#include "fp4/ISA/TimingRates.h"
#include <cmath>

using namespace fp4;
using namespace fp4::sim;
using hw::TimingRate;

namespace {

TEST(SharedServer, WhoAsksForALaterTimeLeavesTheTimeBeforeItToOthers) {
  SharedServer server;
  EXPECT_EQ(server.serve(1000, 50, 0), 1050);
  EXPECT_EQ(server.serve(0, 100, 0), 100);    // before it
  EXPECT_EQ(server.serve(0, 100, 0), 200);    // one after the other
  EXPECT_EQ(server.serve(950, 100, 0), 1100); // the rest goes on behind it
  EXPECT_EQ(server.serve(1000, 10, 0), 1110);
  EXPECT_EQ(server.busy, 360);
}

TEST(SharedServer, TimesThatNobodyAsksForAnyMoreAreForgotten) {
  SharedServer server;
  server.serve(100, 10, 0);
  server.serve(300, 10, 0);
  EXPECT_EQ(server.serve(150, 100, 120), 250);
  EXPECT_EQ(server.serve(0, 80, 260), 340); // 40 cycles until 300, 10 of somebody else, and then
}

/// Some sweeps over a buffer, one after the other.
struct Sweeps {
  uint64_t bytes;
  double begin = 0;    ///< of 1: each begins so much further than the one before
  bool others = false; ///< by two ports in turn
  std::string_view target = "sm_90a";
  uint64_t l2Bytes = 50ull << 20;
  int count = 4;
};

/// The part of the lines that L2 does not have of the last sweep.
double missesOf(const Sweeps &sweeps) {
  const Rates rates(sweeps.target);
  MemorySystem memory(rates, rates[TimingRate::Gigahertz], sweeps.l2Bytes);
  Port ports[2];
  double before = 0, now = 0;
  const uint64_t lines = sweeps.bytes / kLineBytes;
  for (int sweep = 0; sweep < sweeps.count; ++sweep) {
    before = memory.deviceBytes;
    const auto first = uint64_t(double(lines) * sweeps.begin * sweep);
    for (uint64_t i = 0; i < lines; ++i) {
      const LineAccess access{(first + i) % lines, 15};
      memory.read(ports[sweeps.others ? sweep % 2 : 0], now += 10, std::span(&access, 1));
    }
  }
  return (memory.deviceBytes - before) / double(sweeps.bytes);
}

/// As benchmarks/micro/sweeps.py measures it on an H200: `ncu` counts 0.02, 0.97 and 1 for the
/// first three, 0.20 and 0.98 for 40 and 52 MiB by others, and 0.52 where each sweep begins 3/8
/// further than the one before.
TEST(MemorySystem, L2GivesUpTheLineThatWasTouchedLongestAgo) {
  constexpr uint64_t mib = 1 << 20;
  EXPECT_EQ(missesOf({40 * mib, 0, false}), 0);
  EXPECT_EQ(missesOf({52 * mib, 0, false}), 1);
  EXPECT_EQ(missesOf({64 * mib, 0, false}), 1);
  EXPECT_EQ(missesOf({38 * mib, 0, true}), 0);
  EXPECT_EQ(missesOf({44 * mib, 0, true}), 1);
  EXPECT_NEAR(missesOf({64 * mib, 0.375, true}), 0.375, 0.02);
  EXPECT_EQ(missesOf({80 * mib, 0.375, true}), 1);
}

/// If any line goes for one that comes, the part x of a sweep that stays is exp((x - 1) bytes /
/// room) in the end. Room is half of L2 here.
TEST(MemorySystem, AnL2ThatGivesUpAnyLineKeepsAPartOfALargeSweep) {
  constexpr uint64_t mib = 1 << 20;
  const auto last = [](uint64_t bytes, bool others) {
    return missesOf({bytes, 0, others, "sm_100a", 8 * mib, /*count=*/10});
  };
  EXPECT_NEAR(last(8 * mib, true), 0.797, 0.02);
  EXPECT_NEAR(last(12 * mib, false), 0.941, 0.02);
  EXPECT_LT(last(2 * mib, true), 0.01);
}

/// Lines that L2 has come slower to others than to the one that asked for them last.
TEST(MemorySystem, LinesThatAnotherOneAskedForComeSlower) {
  const Rates rates("sm_100a");
  const double gigahertz = rates[TimingRate::Gigahertz];
  constexpr uint64_t pieces = 512, piece = 16384;
  const auto again = [&](size_t further) {
    MemorySystem memory(rates, gigahertz, 126ull << 20);
    std::vector<Port> ports(128);
    const auto read = [&](size_t first, double now) {
      double end = 0;
      for (uint64_t i = 0; i < pieces; ++i) {
        const GlobalRun run{i * piece, piece};
        Port &port = ports[(i + first) % ports.size()];
        end = std::max(end, memory.read(port, now, now, std::span(&run, 1)));
      }
      return end - now;
    };
    read(0, 0);
    return read(further, 1e6);
  };
  const auto cycles = [&](TimingRate rate) {
    return pieces * piece / (rates[rate] * 1e3 / gigahertz);
  };
  EXPECT_NEAR(again(1) - again(0),
              cycles(TimingRate::L2OtherTerabytes) - cycles(TimingRate::L2Terabytes), 50);
}

/// Cycles until 128 ports have 64 KiB each from L2, of which `readers` at a time read the same.
double cyclesOfReaders(size_t readers) {
  constexpr size_t ports = 128, lines = 512;
  constexpr double later = 1e6;
  const Rates rates("sm_90a");
  MemorySystem memory(rates, rates[TimingRate::Gigahertz], 50ull << 20);
  std::vector<Port> all(ports);
  Port first;
  double end = later;
  const auto read = [&](Port &port, double now, size_t line) {
    const LineAccess access{line, 15};
    return memory.read(port, now, std::span(&access, 1));
  };
  for (size_t line = 0; line < ports / readers * lines; ++line)
    read(first, 0, line);
  for (size_t line = 0; line < lines; ++line)
    for (size_t port = 0; port < ports; ++port)
      end = std::max(end, read(all[port], later, port / readers * lines + line));
  return end - later - rates[TimingRate::L2Latency];
}

/// As benchmarks/micro/cp_async.py measures it: few that read the same get no more than if each
/// read something else.
TEST(MemorySystem, L2ReadsALineForEachOfItsFirstReaders) {
  const double alone = cyclesOfReaders(1);
  const double first = hw::timingRate("sm_90a", TimingRate::L2Readers)->value;
  EXPECT_NEAR(cyclesOfReaders(4), alone, 0.03 * alone);
  EXPECT_NEAR(cyclesOfReaders(8), alone, 0.03 * alone);
  EXPECT_NEAR(cyclesOfReaders(16), alone * first / 16, 0.05 * alone);
  EXPECT_LT(cyclesOfReaders(64), 0.4 * alone);
}

/// Returns how long device memory is busy with lines of which `writes` of 32 are written, relative
/// to the time to read them.
double busyWith(unsigned writes) {
  const Rates rates("sm_90a");
  MemorySystem memory(rates, rates[TimingRate::Gigahertz], 50ull << 20);
  Port port;
  constexpr uint64_t lines = 1 << 20, group = 32;
  for (uint64_t i = 0; i < lines; ++i) {
    const LineAccess access{i, 15};
    i * 7 % group < writes ? memory.write(port, 0, std::span(&access, 1))
                           : memory.read(port, 0, std::span(&access, 1));
  }
  return memory.device.busy / (double(lines * kLineBytes) / 1e3) *
         rates[TimingRate::MemoryTerabytes] / rates[TimingRate::Gigahertz];
}

/// As benchmarks/micro/mixes.py measures it on an H200. Writes alone were once 30 % slower than
/// reads alone.
TEST(MemorySystem, AWarpWaitsForTheLastOfItsPieces) {
  const Rates rates("sm_90a");
  const auto wait = [&](uint64_t apart) { // lines
    MemorySystem memory(rates, rates[TimingRate::Gigahertz], 50ull << 20);
    Port port;
    double sum = 0;
    constexpr unsigned loads = 256;
    for (uint64_t i = 0; i < loads; ++i) {
      std::vector<LineAccess> lines;
      for (uint64_t line = 0; line < 4; ++line)
        lines.push_back({4096 * i + apart * line, 15});
      memory.present = 1e5 * double(i); // nobody else asks
      sum += memory.fill(port, memory.present, lines) - memory.present;
    }
    return sum / loads;
  };
  EXPECT_GT(wait(4), 1.1 * wait(1));
  EXPECT_NEAR(wait(8), wait(4), 0.1 * wait(4));
}

TEST(MemorySystem, ReadsAndWritesInTurnTakeLongerThanEitherAlone) {
  EXPECT_NEAR(busyWith(0), 1, 1e-3);
  EXPECT_NEAR(busyWith(4), 1, 0.01);
  EXPECT_NEAR(busyWith(16), 4.38 / 3.93, 0.01);
  EXPECT_NEAR(busyWith(28), 4.38 / 3.67, 0.01);
  EXPECT_NEAR(busyWith(32), 1, 0.01);
}

/// Lines that hit are touched too, and others go before them. A model that counts misses alone has
/// 20 MiB in L2 while 30 MiB are asked for again and again.
TEST(MemorySystem, LinesThatHitTakeRoomToo) {
  const Rates rates("sm_90a");
  const auto missesOf = [&](int times) {
    MemorySystem memory(rates, rates[TimingRate::Gigahertz], 50ull << 20);
    Port port;
    const GlobalRun old{0, 20 << 20}, often{64 << 20, 25 << 20}, more{256 << 20, 10 << 20};
    memory.read(port, 0, 0, std::span(&old, 1));
    for (int i = 0; i < times; ++i)
      memory.read(port, 0, 0, std::span(&often, 1));
    memory.read(port, 0, 0, std::span(&more, 1));
    const double before = memory.deviceBytes;
    memory.read(port, 0, 0, std::span(&old, 1));
    return (memory.deviceBytes - before) / (20 << 20);
  };
  EXPECT_EQ(missesOf(0), 0);
  EXPECT_GT(missesOf(1), 0.2); // 55 MiB of 49 have been asked for
  EXPECT_EQ(missesOf(10), missesOf(1));
}

/// Reads of a line each, by all ports in turn, that take `use` of device memory; the mean of what
/// the later half of them take.
double latencyAt(double use) {
  const Rates rates("sm_90a");
  const double gigahertz = rates[TimingRate::Gigahertz];
  MemorySystem memory(rates, gigahertz, 50ull << 20);
  std::vector<Port> ports(128);
  const double service = kLineBytes / (rates[TimingRate::MemoryTerabytes] * 1e3 / gigahertz);
  constexpr int count = 400000;
  double sum = 0;
  for (int i = 0; i < count; ++i) {
    const double now = i * service / use;
    const LineAccess access{uint64_t(i), 15};
    const double end = memory.read(ports[size_t(i) % ports.size()], now, std::span(&access, 1));
    sum += i >= count / 2 ? end - now : 0;
  }
  return sum / (count / 2);
}

TEST(MemorySystem, ARequestWaitsForItsPartOfABusyMemory) {
  const Rates rates("sm_90a");
  const double idle = rates[TimingRate::MemoryLatency], burst = rates[TimingRate::MemoryBurst];
  constexpr double alone = 60; // cycles
  EXPECT_NEAR(latencyAt(0.01), idle + alone, 5);
  EXPECT_NEAR(latencyAt(0.7), idle + alone + burst * 0.7 / (2 * 0.3), 20);
}

/// Their mean is that of a wait for all, and the same lines wait as long in another run.
TEST(MemorySystem, WarpsWaitDifferentlyLong) {
  const Rates rates("sm_90a");
  const double gigahertz = rates[TimingRate::Gigahertz], apart = 1000;
  constexpr int count = 4000;
  const auto waits = [&](double &mean) {
    MemorySystem memory(rates, gigahertz, 50ull << 20);
    Port port;
    double sum = 0, squares = 0;
    for (int i = 0; i < count; ++i) {
      const LineAccess access{uint64_t(i) * 8, 15};
      const auto [when, late, waits, share] = memory.load(port, i * apart, std::span(&access, 1));
      const double wait = when + late - i * apart - rates[TimingRate::L2Latency];
      sum += wait;
      squares += wait * wait;
    }
    mean = sum / count;
    return std::sqrt(squares / count - mean * mean) / mean;
  };
  double first = 0, second = 0;
  const double deviation = waits(first);
  EXPECT_NEAR(deviation, rates[TimingRate::MemorySpread], 0.03);
  EXPECT_NEAR(first, rates[TimingRate::MemoryLatency] - rates[TimingRate::L2Latency] + 60, 20);
  EXPECT_EQ(waits(second), deviation);
  EXPECT_EQ(first, second);
}

/// Their waits deviate by as much, to both sides, and no two of them have the same place among
/// those that are served in no order.
TEST(MemorySystem, LoadsOfTheFirstWarpsDeviateToBothSides) {
  const Rates rates("sm_90a");
  MemorySystem memory(rates, rates[TimingRate::Gigahertz], 50ull << 20);
  Port port;
  constexpr int count = 2000, apart = 1000;
  double sum = 0, least = 1e9, shares = 0;
  for (int i = 0; i < count; ++i) {
    const LineAccess access{uint64_t(i) * 8, 15};
    const auto arrival = memory.loadFirst(port, i * apart, std::span(&access, 1));
    EXPECT_TRUE(arrival.waits);
    sum += arrival.when - i * apart;
    least = std::min(least, arrival.when - i * apart);
    shares += arrival.share;
  }
  EXPECT_NEAR(sum / count, rates[TimingRate::MemoryLatency] + 60, 20);
  EXPECT_LT(least, rates[TimingRate::MemoryLatency] - 100);
  EXPECT_NEAR(shares / count, 0.5, 0.03);
  const LineAccess again{0, 15};
  EXPECT_FALSE(memory.loadFirst(port, count * apart, std::span(&again, 1)).waits); // L2 has it
}

/// Requests that come later than a warp's data was served cannot go before it.
TEST(MemorySystem, TellsWhatWasAskedForUntilATime) {
  const Rates rates("sm_90a");
  MemorySystem memory(rates, rates[TimingRate::Gigahertz], 50ull << 20);
  Port port;
  const GlobalRun few{0, 1 << 16}, more{1 << 20, 1 << 20};
  memory.read(port, 100, 100, std::span(&few, 1));
  const double first = memory.device.end();
  memory.read(port, 500, 500, std::span(&more, 1));
  EXPECT_EQ(memory.endOfThoseAskedBy(99), 0);
  EXPECT_EQ(memory.endOfThoseAskedBy(499), first);
  EXPECT_EQ(memory.endOfThoseAskedBy(500), memory.device.end());
}

/// Copies into shared memory of lines that are far apart: as `benchmarks/micro/tiles.py` has them on
/// an H100, the last of more comes later, and who asks for the same lines waits as long.
TEST(MemorySystem, TheLastOfMoreCopiesComesLater) {
  const Rates rates("sm_90a");
  const double inL2 = rates[TimingRate::L2Latency];
  const auto last = [&](int copies, Port *other) {
    constexpr int rounds = 1000;
    MemorySystem memory(rates, rates[TimingRate::Gigahertz], 50ull << 20);
    Port port;
    double sum = 0;
    for (int round = 0; round < rounds; ++round) {
      double mine = 0, others = 0;
      for (int i = 0; i < copies; ++i) {
        const LineAccess access{uint64_t(round * copies + i) * 64, 15};
        mine = std::max(mine, memory.fill(port, round * 1e4, std::span(&access, 1)));
        if (other)
          others = std::max(others, memory.fill(*other, round * 1e4 + 1, std::span(&access, 1)));
      }
      EXPECT_NEAR(others, other ? mine : 0, 3);
      sum += mine - round * 1e4 - inL2;
    }
    return sum / rounds;
  };
  const double one = last(1, nullptr), four = last(4, nullptr), many = last(32, nullptr);
  EXPECT_NEAR(one, rates[TimingRate::MemoryLatency] - inL2 + 60, 20);
  EXPECT_NEAR(four / one, 1.35, 0.08);
  EXPECT_NEAR(many / one, 1.8, 0.08);
  Port other;
  EXPECT_NEAR(last(4, &other), four, 5);
}

TEST(MemorySystem, BlocksInOrderReadFaster) {
  const Rates rates("sm_90a");
  const auto busy = [&](bool inOrder) {
    MemorySystem memory(rates, rates[TimingRate::Gigahertz], 50ull << 20);
    if (inOrder)
      memory.setInOrder();
    Port port;
    const GlobalRun run{0, 4 << 20};
    memory.read(port, 0, 0, std::span(&run, 1));
    return memory.device.busy;
  };
  EXPECT_NEAR(busy(false) / busy(true), 1 + rates[TimingRate::MemoryInOrder], 0.001);
}

TEST(MemorySystem, ALaunchThatWritesEndsWhenMemoryWouldHaveDoneAllOfIt) {
  const Rates rates("sm_90a");
  const double gigahertz = rates[TimingRate::Gigahertz];
  MemorySystem memory(rates, gigahertz, 50ull << 20);
  Port port;
  const GlobalRun read{0, 4 << 20}, written{64 << 20, 1 << 20};
  memory.read(port, 1000, 1000, std::span(&read, 1));
  EXPECT_EQ(memory.leastEnd(), 0);
  // who only writes waits for nobody
  MemorySystem other(rates, gigahertz, 50ull << 20);
  other.write(port, 1000, std::span(&written, 1));
  EXPECT_EQ(other.leastEnd(), 0);
  memory.write(port, 50000, std::span(&written, 1));
  const double least = (5 << 20) / (rates[TimingRate::MemoryTerabytes] * 1e3 / gigahertz);
  const double behind = rates[TimingRate::MemoryLatency] + rates[TimingRate::L2Latency];
  EXPECT_NEAR(memory.leastEnd(), 1000 + least + behind, 0.02 * least);
  // the last of many reads waits longer than one alone
  const double before = memory.leastEnd(), busy = memory.device.busy;
  for (uint64_t i = 0; i < 1000; ++i) {
    const GlobalRun line{(128 << 20) + i * 128, 128};
    memory.read(port, 60000 + double(i), 60000 + double(i), std::span(&line, 1));
  }
  const double wait = rates[TimingRate::MemoryLatency] - rates[TimingRate::L2Latency];
  EXPECT_NEAR(memory.leastEnd() - before - (memory.device.busy - busy),
              wait * (std::exp(3 * rates[TimingRate::MemorySpread]) - 1), 1);
}

/// Reads that hit L2 with writes of new lines beside them take as long as if most of the writes
/// came after them; writes of lines that are there take L2 alone.
TEST(MemorySystem, WritesThatGoToDeviceMemoryHoldL2) {
  const Rates rates("sm_90a");
  const double gigahertz = rates[TimingRate::Gigahertz];
  constexpr uint64_t reads = 8 << 20, writes = 4 << 20, piece = 16384;
  const auto end = [&](bool fresh) {
    MemorySystem memory(rates, gigahertz, 50ull << 20);
    std::vector<Port> ports(128);
    const auto all = [&](uint64_t begin, uint64_t bytes, auto &&access) {
      double last = 0;
      for (uint64_t at = 0; at < bytes; at += piece) {
        const GlobalRun run{begin + at, piece};
        last = std::max(last, access(ports[at / piece % ports.size()], std::span(&run, 1)));
      }
      return last;
    };
    const auto read = [&](double now) {
      return [&memory, now](Port &port, std::span<const GlobalRun> run) {
        return memory.read(port, now, now, run);
      };
    };
    const auto write = [&](double now) {
      return [&memory, now](Port &port, std::span<const GlobalRun> run) {
        return memory.write(port, now, run);
      };
    };
    double now = all(0, reads, read(0));
    now = std::max(now, all(64 << 20, fresh ? 0 : writes, write(now)));
    now += 200000; // everything is done
    all(64 << 20, writes, write(now));
    return all(0, reads, read(now)) - now;
  };
  const auto cycles = [&](TimingRate rate) { return writes / (rates[rate] * 1e3 / gigahertz); };
  const double inMemory = cycles(TimingRate::MemoryTerabytes),
               through = cycles(TimingRate::L2Terabytes);
  EXPECT_NEAR(end(true) - end(false), rates[TimingRate::WriteHold] * inMemory - through,
              0.1 * inMemory);
  EXPECT_GT(end(true) - end(false), 0.2 * inMemory);
}

TEST(MemorySystem, AtomicOperationsOnOneLineComeInTurn) {
  const Rates rates("sm_90a");
  MemorySystem memory(rates, rates[TimingRate::Gigahertz], 50ull << 20);
  const LineAccess one{7, 1}, other{8, 1};
  const double interval = rates[TimingRate::AtomicInterval];
  Port ports[2];
  const auto turnOf = [&](unsigned port, const LineAccess &line, double now) {
    return memory.turnOf(ports[port], std::span(&line, 1), now);
  };
  EXPECT_EQ(turnOf(0, one, 1000), 1000);
  EXPECT_NEAR(turnOf(1, one, 1000), 1000 + interval, 1e-9);
  EXPECT_EQ(turnOf(0, other, 1000), 1000);
  // one that comes behind the stores of its warp leaves the time before it to others
  EXPECT_EQ(turnOf(0, other, 5000), 5000);
  EXPECT_EQ(turnOf(0, other, 2000), 2000);
}

/// Slots that are not simulated ask for a counter, and not for the lines of one SM.
TEST(MemorySystem, AtomicOperationsOfASampleWaitForOthersOnLinesOfSeveral) {
  constexpr double part = 0.25;
  const Rates rates("sm_90a");
  MemorySystem memory(rates, rates[TimingRate::Gigahertz], 50ull << 20);
  memory.sample(part, 0);
  const double interval = rates[TimingRate::AtomicInterval];
  Port ports[2];
  const auto turnOf = [&](unsigned port, uint64_t at, double now) {
    const LineAccess line{at, 1};
    return memory.turnOf(ports[port], std::span(&line, 1), now);
  };
  EXPECT_EQ(turnOf(0, 7, 1000), 1000);
  EXPECT_NEAR(turnOf(0, 7, 1000), 1000 + interval, 1e-9);
  EXPECT_NEAR(turnOf(1, 7, 1000), 1000 + 2 * interval, 1e-9);
  EXPECT_NEAR(turnOf(0, 7, 1000), 1000 + (2 + 1 / part) * interval, 1e-9);
  for (uint64_t line = 8; line < 20000; ++line) { // many lines: some of the past are forgotten
    memory.present = 2000 + double(line);
    EXPECT_NEAR(turnOf(0, line, memory.present), memory.present, 1e-9);
    EXPECT_NEAR(turnOf(0, line, memory.present), memory.present + interval, 1e-9);
  }
}

/// Cycles from `later` on that a second SM waits for a line that a first one asks for at cycle 0.
double waitBehindAnother(double later) {
  const Rates rates("sm_90a");
  MemorySystem memory(rates, rates[TimingRate::Gigahertz], 50ull << 20);
  Port first, second;
  const LineAccess access{0, 15};
  memory.read(first, 0, std::span(&access, 1));
  return memory.read(second, later, std::span(&access, 1)) - later;
}

/// A line that another one had asked device memory for was once there at once.
TEST(MemorySystem, ALineThatIsOnItsWayForAnotherIsNotThereYet) {
  const Rates rates("sm_90a");
  const double alone = waitBehindAnother(1e6), first = waitBehindAnother(0);
  EXPECT_NEAR(alone, rates[TimingRate::L2Latency], 20);
  EXPECT_GT(first, alone + 200);
  EXPECT_NEAR(waitBehindAnother(100), first - 100, 20 + 60); // wait of a read alone
  EXPECT_NEAR(waitBehindAnother(first - alone + 50), alone, 20);
}

} // namespace
