//===- CopyTimeTest.cpp - Predicted times of copies that wait their turn --===//
//
// A copy whose turn comes later, a look at a barrier that nobody has to wait for, and copies that a
// load from tensor memory has nothing to do with hold nobody up. Each was once served as if it did,
// and products were predicted 5 and 15 times, and 8 %, too slow.
//
//===----------------------------------------------------------------------===//
#include "../Async/KernelHarness.h"
#include "Sim/Time/Memory.h"
#include "fp4/ISA/TimingRates.h"
#include "fp4/Sim/Predictor.h"

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using hw::TimingRate;

namespace {

TEST(SharedServer, WhoAsksForALaterTimeLeavesTheTimeBeforeItToOthers) {
  SharedServer server;
  EXPECT_EQ(server.serve(1000, 50, 0), 1050);
  EXPECT_EQ(server.serve(0, 100, 0), 100);    // before it
  EXPECT_EQ(server.serve(0, 100, 0), 200);    // one after the other
  EXPECT_EQ(server.serve(950, 100, 0), 1100); // what does not fit goes on behind it
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

/// Where any line goes for one that comes, the part x of a sweep that stays is exp((x - 1) bytes /
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

/// How long device memory is busy with lines of which `writes` of 32 are written, of what it takes
/// to read them.
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
TEST(MemorySystem, ReadsAndWritesInTurnTakeLongerThanEitherAlone) {
  EXPECT_NEAR(busyWith(0), 1, 1e-3);
  EXPECT_NEAR(busyWith(4), 1, 0.01);
  EXPECT_NEAR(busyWith(16), 4.38 / 3.93, 0.01);
  EXPECT_NEAR(busyWith(28), 4.38 / 3.67, 0.01);
  EXPECT_NEAR(busyWith(32), 1, 0.01);
}

/// Lines that hit are touched too, and others go before them. What misses alone once counted, so
/// that 20 MiB were there while 30 MiB were asked for again and again.
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
  EXPECT_NEAR(latencyAt(0.01), idle, 5);
  EXPECT_NEAR(latencyAt(0.7), idle + burst * 0.7 / (2 * 0.3), 20);
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

/// Those who are not simulated ask for a counter, and not for the lines of one multiprocessor.
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

using ParamsAt = std::function<Params(uint64_t out)>;

/// `bytes` of device memory are at `out`.
KernelTime predictText(const std::string &text, const LaunchConfig &config, size_t bytes,
                       const std::string &target, uint64_t sampleAfter, const ParamsAt &params) {
  KernelTime time;
  SimOptions options;
  options.policy = CompletionPolicy::Timed;
  options.target = target;
  Predictor predictor{.timesOnly = sampleAfter > 0, .sampleAfter = sampleAfter};
  predictor.receive = [&](KernelTime received, std::string) { time = std::move(received); };
  options.predicted = predictor;
  Simulator simulator(options);
  auto program = parse(text);
  const uint64_t out = simulator.memory().allocate(bytes, "out");
  auto stats = simulator.launch(*program, "test", config, params(out).span());
  EXPECT_TRUE(stats) << stats.error().message;
  return time;
}

KernelTime predict(const std::string &body, const LaunchConfig &config, size_t bytes,
                   const std::string &target = "sm_90a", uint64_t sampleAfter = 0) {
  const std::string variables =
      "  .shared .align 8 .b64 bar;\n  .shared .align 4 .b32 slot;\n  .reg .b16 %h<4>;\n"
      "  .shared .align 16 .b8 response[16];\n  .reg .b128 %q;\n";
  return predictText(kernelText(body, variables, target), config, bytes, target, sampleAfter,
                     [](uint64_t out) { return Params().add(out); });
}

const std::string begin = "  mov.u32 %r1, bar;\n  mov.u32 %r0, dynamic;\n"
                          "  mbarrier.init.shared::cta.b64 [%r1], 1;\n"
                          "  fence.mbarrier_init.release.cluster;\n";
const std::string wait = "WAIT:\n  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;\n"
                         "  @!%p1 bra WAIT;\n";

/// Every block copies `copies` pieces of 32 KiB of its own. A copy needs no warp, so that all are
/// asked for at once, more than a multiprocessor can have in flight.
double microsecondsOfCopies(unsigned blocks, unsigned copies) {
  constexpr unsigned piece = 32768;
  std::string body =
      begin + fmt::format("  mov.u32 %r2, %ctaid.x;\n  mul.wide.u32 %rd1, %r2, {};\n"
                          "  add.u64 %rd1, %out, %rd1;\n"
                          "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], {};\n",
                          copies * piece, copies * piece);
  for (unsigned i = 0; i < copies; ++i)
    body += fmt::format("  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                        "[%r0+{}], [%rd1+{}], {}, [%r1];\n",
                        i * piece, i * piece, piece);
  const LaunchConfig config{
      .grid = {blocks, 1, 1}, .block = {1, 1, 1}, .dynamicSharedBytes = copies * piece};
  return predict(body + wait, config, size_t(blocks) * copies * piece).microseconds;
}

TEST(CopyTime, MoreBytesThanMayBeInFlightArriveAtTheRateOfTheMemory) {
  constexpr unsigned blocks = 132;
  const double few = microsecondsOfCopies(blocks, 2), many = microsecondsOfCopies(blocks, 6);
  const double rate = hw::timingRate("sm_90a", TimingRate::MemoryTerabytes)->value * 1e6;
  EXPECT_NEAR(many - few, blocks * 4 * 32768 / rate, 0.7); // and a wait for a part of the memory
  // one multiprocessor alone is bound by its own port, not by the machine
  const double port = hw::timingRate("sm_90a", TimingRate::L2PortBytes)->value * 1.98e3;
  const double flight = hw::timingRate("sm_90a", TimingRate::TmaInFlight)->value * 1024;
  const double latency = (hw::timingRate("sm_90a", TimingRate::MemoryLatency)->value) / 1.98e3;
  const double slower = std::min(port, flight / latency);
  const double alone = microsecondsOfCopies(1, 6) - microsecondsOfCopies(1, 2);
  EXPECT_GT(alone, 4 * 32768 / slower - 0.2);
  EXPECT_LT(alone, 2 * 4 * 32768 / slower);
}

TEST(CopyTime, AMulticastIsOneCopyWithMoreDestinations) {
  const LaunchConfig one{.grid = {1, 1, 1}, .block = {1, 1, 1}, .dynamicSharedBytes = 32768};
  LaunchConfig two = one;
  two.grid = two.cluster = {2, 1, 1};
  const auto time = [&](const std::string &copy, const LaunchConfig &config) {
    return predict(begin +
                       "  mov.u32 %r2, %cluster_ctarank;\n  setp.ne.u32 %p2, %r2, 0;\n"
                       "  mov.b16 %h1, 3;\n"
                       "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 32768;\n"
                       "  barrier.cluster.arrive.release;\n  barrier.cluster.wait.acquire;\n" +
                       copy + wait +
                       "  barrier.cluster.arrive.release;\n  barrier.cluster.wait.acquire;\n",
                   config, 65536);
  };
  const std::string bulk = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes";
  const KernelTime alone = time("  " + bulk + " [%r0], [%out], 32768, [%r1];\n", one),
                   multicast = time("  @%p2 bra WAIT;\n  " + bulk +
                                        ".multicast::cluster [%r0], [%out], 32768, [%r1], %h1;\n",
                                    two);
  EXPECT_NEAR(multicast.cycles, alone.cycles, 200); // one behind the other would take 256 more
  EXPECT_EQ(multicast.memoryBytes, 32768);
  EXPECT_EQ(multicast.l2Bytes, 2 * alone.l2Bytes); // L2 delivers to both
}

/// One thread stores pieces from shared memory, one after the other or all at once.
double cyclesOfStores(unsigned pieces, unsigned bytes, const std::string &wait, bool inTurn) {
  std::string body = "  mov.u32 %r0, dynamic;\n  mov.u32 %r2, 0;\nFILL:\n  add.u32 %r3, %r0, %r2;\n"
                     "  st.shared.v4.b32 [%r3], {%r2, %r2, %r2, %r2};\n  add.u32 %r2, %r2, 16;\n" +
                     fmt::format("  setp.lt.u32 %p1, %r2, {};\n  @%p1 bra FILL;\n", bytes) +
                     "  fence.proxy.async.shared::cta;\n";
  for (unsigned i = 0; i < pieces; ++i) {
    body += fmt::format("  cp.async.bulk.global.shared::cta.bulk_group [%out+{}], [%r0], {};\n"
                        "  cp.async.bulk.commit_group;\n",
                        i * bytes, bytes);
    body += inTurn ? wait : "";
  }
  const LaunchConfig config{.grid = {1, 1, 1}, .block = {1, 1, 1}, .dynamicSharedBytes = bytes};
  return predict(body + wait + "  mov.u32 %r5, %r2;\n", config, size_t(pieces) * bytes).cycles;
}

/// A bulk store was once said to have read its source 300 cycles after its issue, whatever L2 took.
TEST(CopyTime, AWaitForASourceWaitsUntilL2HasTakenIt) {
  const std::string source = "  cp.async.bulk.wait_group.read 0;\n",
                    written = "  cp.async.bulk.wait_group 0;\n";
  const auto rate = [](TimingRate which) { return hw::timingRate("sm_90a", which)->value; };
  constexpr unsigned piece = 16384;
  const double each = piece / rate(TimingRate::StoreBytes);
  const auto perStore = [&](const std::string &wait, bool inTurn) {
    return (cyclesOfStores(10, piece, wait, inTurn) - cyclesOfStores(2, piece, wait, inTurn)) / 8;
  };
  EXPECT_NEAR(perStore(source, false), each, 2);
  EXPECT_NEAR(perStore(source, true), each + rate(TimingRate::StoreLatency), 20);
  EXPECT_NEAR(perStore(written, true), perStore(source, true), 2);
}

/// What a multiprocessor loads and what it stores share the way to L2. Rows of a load take a cycle
/// each, and four while a store waits: a load that comes behind many stores is not held up by all.
TEST(CopyTime, StoresLeaveLoadsAQuarterOfTheWayToL2) {
  constexpr unsigned piece = 32768, rows = piece / 128, stored = 16384;
  const std::string load = fmt::format(
      "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], {0};\n"
      "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0+16384], [%out], "
      "{0}, [%r1];\n",
      piece);
  const auto cycles = [&](unsigned stores, unsigned bytes) {
    std::string body = begin + "  mov.u32 %r2, 0;\nFILL:\n  add.u32 %r3, %r0, %r2;\n"
                               "  st.shared.v4.b32 [%r3], {%r2, %r2, %r2, %r2};\n"
                               "  add.u32 %r2, %r2, 16;\n  setp.lt.u32 %p1, %r2, 16384;\n"
                               "  @%p1 bra FILL;\n  fence.proxy.async.shared::cta;\n";
    for (unsigned i = 0; i < stores; ++i)
      body += fmt::format("  cp.async.bulk.global.shared::cta.bulk_group [%out+{}], [%r0], {};\n"
                          "  cp.async.bulk.commit_group;\n",
                          piece + i * stored, bytes);
    const LaunchConfig config{
        .grid = {1, 1, 1}, .block = {1, 1, 1}, .dynamicSharedBytes = piece + stored};
    body += load + wait;
    for (int i = 0; i < 500; ++i) // longer than the stores take
      body += "  ex2.approx.ftz.f32 %r5, %r5;\n";
    return predict(body + "  cp.async.bulk.wait_group.read 0;\n", config, 1 << 18).cycles;
  };
  const auto rate = [](TimingRate which) { return hw::timingRate("sm_90a", which)->value; };
  const double alone = cycles(0, stored), issue = 6 * rate(TimingRate::TmaIssue);
  EXPECT_NEAR(cycles(6, stored), alone + issue + 3 * rows, 100);
  EXPECT_GT(6 * stored / rate(TimingRate::StoreBytes), issue + 6 * rows); // that all would take
  EXPECT_NEAR(cycles(6, 16), alone + issue, 100);
}

TEST(CopyTime, ALookAtABarrierHoldsNobodyUp) {
  const std::string work = [] {
    std::string text;
    for (int i = 0; i < 500; ++i)
      text += "  ex2.approx.ftz.f32 %r5, %r5;\n";
    return text;
  }();
  // the copy arrives after more than 600 cycles; the work takes 500 times 17
  const std::string copy = begin + "  mov.u32 %r5, 0;\n"
                                   "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 32768;\n"
                                   "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
                                   "bytes [%r0], [%out], 32768, [%r1];\n";
  const LaunchConfig config{.grid = {1, 1, 1}, .block = {1, 1, 1}, .dynamicSharedBytes = 32768};
  const std::string look = "  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;\n";
  const auto cycles = [&](const std::string &body) { return predict(body, config, 65536).cycles; };
  const double without = cycles(copy + work + wait), with = cycles(copy + look + work + wait);
  EXPECT_NEAR(with, without, 50);
  // its answer is used before the work: then it is waited for
  EXPECT_GT(cycles(copy + wait + work), without + 600);
}

TEST(CopyTime, AReleaseWaitsForTheStoresOfItsWarp) {
  const LaunchConfig config{.grid = {1, 1, 1}, .block = {32, 1, 1}};
  std::string stores; // a line for each lane: 32 requests of 32 bytes each
  for (int i = 0; i < 16; ++i)
    stores += fmt::format("  st.global.b32 [%rd1+{}], %t;\n", 4096 * i);
  const auto cycles = [&](const std::string &atomic) {
    return predict("  mul.wide.u32 %rd1, %t, 128;\n  add.u64 %rd1, %out, %rd1;\n" + stores +
                       atomic + "  mov.u32 %r5, %r6;\n",
                   config, 1 << 17)
        .cycles;
  };
  const double relaxed = cycles("  atom.relaxed.gpu.global.add.u32 %r6, [%out], 1;\n"),
               release = cycles("  atom.acq_rel.gpu.global.add.u32 %r6, [%out], 1;\n");
  EXPECT_GE(release, relaxed + hw::timingRate("sm_90a", TimingRate::FenceDevice)->value - 40);
}

TEST(CopyTime, ALoadFromTensorMemoryDoesNotWaitForCopiesOfOthers) {
  const LaunchConfig config{.grid = {1, 1, 1}, .block = {32, 1, 1}, .dynamicSharedBytes = 32768};
  const std::string setUp = "  setp.ne.u32 %p5, %t, 0;\n  mov.u32 %r9, slot;\n  @%p5 bra MADE;\n" +
                            begin +
                            "MADE:\n  bar.warp.sync -1;\n  mov.u32 %r1, bar;\n"
                            "  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r9], 32;\n"
                            "  ld.shared.b32 %r10, [%r9];\n"
                            "  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r10], {%t};\n"
                            "  tcgen05.wait::st.sync.aligned;\n";
  const std::string copy = "  @%p5 bra ASKED;\n"
                           "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 32768;\n"
                           "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                           "[%r0], [%out], 32768, [%r1];\nASKED:\n  bar.warp.sync -1;\n";
  std::string work = "  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r5}, [%r10];\n"
                     "  tcgen05.wait::ld.sync.aligned;\n";
  for (int i = 0; i < 300; ++i) // 18 cycles each, longer than the copy
    work += "  ex2.approx.ftz.f32 %r5, %r5;\n";
  const std::string end = "  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 32;\n";
  const auto cycles = [&](const std::string &body) {
    return predict(setUp + body + end, config, 65536, "sm_100a").cycles;
  };
  const double without = cycles(work), with = cycles(copy + work + wait);
  EXPECT_NEAR(with, without, 300);
  EXPECT_GT(cycles(copy + wait + work), without + 900);
}

TEST(CopyTime, AFenceOfSharedMemoryCostsWhatItsMachineInstructionsDo) {
  const LaunchConfig config{.grid = {1, 1, 1}, .block = {32, 1, 1}};
  const auto cycles = [&](const std::string &fence, const char *target = "sm_100a") {
    constexpr int times = 16;
    std::string body;
    for (int i = 0; i < times; ++i)
      body += fence;
    const double none = predict("  mov.u32 %r1, %t;\n", config, 256, target).cycles;
    return (predict(body, config, 256, target).cycles - none) / times;
  };
  const auto rate = [](TimingRate which, const char *target = "sm_100a") {
    return hw::timingRate(target, which)->value;
  };
  EXPECT_NEAR(cycles("  fence.acquire.sync_restrict::shared::cluster.cluster;\n"), 0, 2);
  EXPECT_NEAR(cycles("  fence.release.sync_restrict::shared::cta.cluster;\n"),
              rate(TimingRate::FenceProxyAsyncShared), 10);
  EXPECT_NEAR(cycles("  fence.acq_rel.cluster;\n"), rate(TimingRate::FenceDevice), 10);
  EXPECT_NEAR(cycles("  fence.proxy.async.shared::cta;\n", "sm_90a"),
              rate(TimingRate::FenceProxyAsyncShared, "sm_90a"), 10);
  EXPECT_NEAR(cycles("  fence.proxy.async;\n", "sm_90a"),
              rate(TimingRate::FenceProxyAsync, "sm_90a"), 10);
}

/// A tile copies 16 KiB of its own. A block takes the tiles of blocks that have not begun.
KernelTime tilesTaken(unsigned tiles, uint64_t sampleAfter) {
  constexpr unsigned piece = 16384;
  const std::string body =
      begin + "  mov.u32 %r2, response;\n  mov.u32 %r3, %ctaid.x;\n  mov.u32 %r4, 0;\nWORK:\n" +
      fmt::format("  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], {};\n", piece + 16) +
      "  clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 "
      "[%r2], [%r1];\n" +
      fmt::format("  mul.wide.u32 %rd1, %r3, {0};\n  add.u64 %rd1, %out, %rd1;\n"
                  "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                  "[%r0], [%rd1], {0}, [%r1];\n",
                  piece) +
      "WAIT:\n  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r4;\n  @!%p1 bra WAIT;\n"
      "  xor.b32 %r4, %r4, 1;\n  ld.shared.b128 %q, [%r2];\n"
      "  clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q;\n  @!%p2 ret;\n"
      "  clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r3, %r6, %r7, _}, %q;\n"
      "  fence.proxy.async.shared::cta;\n  bra WORK;\n";
  const LaunchConfig config{
      .grid = {tiles, 1, 1}, .block = {1, 1, 1}, .dynamicSharedBytes = 200 << 10};
  return predict(body, config, size_t(tiles) * piece, "sm_100a", sampleAfter);
}

/// Tiles that members took were once not counted: a product of 14 tiles each moved 22 times as much
/// as it has.
TEST(CopyTime, ASampleKnowsTheTilesThatItsBlocksTook) {
  constexpr unsigned tiles = 148 * 12;
  const KernelTime whole = tilesTaken(tiles, 0), sample = tilesTaken(tiles, 10000);
  EXPECT_EQ(whole.simulated, 148u);
  EXPECT_EQ(sample.simulated, 8u);
  EXPECT_EQ(whole.memoryBytes, tiles * 16384.0);
  EXPECT_NEAR(sample.memoryBytes, whole.memoryBytes, 0.1 * whole.memoryBytes);
  EXPECT_NEAR(sample.microseconds, whole.microseconds, 0.1 * whole.microseconds);
}

/// ptxas makes straight code of what one thread hands to an engine, and none where a thread does
/// more.
TEST(CopyTime, ABranchAroundWhatTheWarpHandsToAnEngineCostsNothing) {
  const LaunchConfig config{.grid = {1, 1, 1}, .block = {32, 1, 1}, .dynamicSharedBytes = 1024};
  constexpr int times = 20;
  const auto cycles = [&](const std::string &negation, const std::string &guard,
                          const std::string &more) {
    std::string body = fmt::format("  setp.ne.u32 %p5, %t, 0;\n  mov.u32 %r0, dynamic;\n"
                                   "  mov.u32 %r1, bar;\n  @%p5 bra MADE;\n"
                                   "  mbarrier.init.shared::cta.b64 [%r1], {};\n"
                                   "  fence.mbarrier_init.release.cluster;\n"
                                   "MADE:\n  bar.warp.sync -1;\n  mov.u32 %r5, %t;\n",
                                   times);
    for (int i = 0; i < times; ++i)
      body += fmt::format("  elect.sync _|%p1, -1;\n{0}  @{1} bra L{2};\n"
                          "  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 "
                          "[%r1];\n{3}L{2}:\n",
                          negation, guard, i, more);
    for (int i = 0; i < 300; ++i) // longer than the barrier takes for the commits
      body += "  ex2.approx.ftz.f32 %r5, %r5;\n";
    return predict(body + wait, config, 65536, "sm_100a").cycles;
  };
  const double branch = hw::timingRate("sm_100a", TimingRate::BranchCycles)->value;
  const double plain = cycles("", "!%p1", ""),
               negated = cycles("  not.pred %p2, %p1;\n", "%p2", "");
  EXPECT_NEAR(plain, negated, 1);
  const double kept = plain + 0.9 * times * branch;
  EXPECT_GT(cycles("", "!%p1", "  st.shared.b32 [%r0], %r1;\n"), kept);
  // another predicate in the same register
  EXPECT_GT(cycles("  setp.eq.u32 %p1, %t, 0;\n", "!%p1", ""), kept);
}

/// CuTe's epilogues let all lanes of a warp store a tile: the machine instruction is one of the
/// warp.
TEST(CopyTime, LanesThatStoreTheSameStoreItOnce) {
  std::string fill; // the tile, by every thread
  for (unsigned at = 0; at < 1024; at += 16)
    fill += fmt::format("  st.shared.v4.b32 [%r0+{}], {{%r2, %r2, %r2, %r2}};\n", at);
  const auto text = [&](const std::string &row) {
    return ".version 8.8\n.target sm_100a\n.address_size 64\n"
           ".visible .entry test(.param .align 64 .b8 map[128], .param .u64 out_param)\n{\n"
           "  .reg .b32 %r<8>;\n  .reg .b64 %rd<4>;\n  .shared .align 128 .b8 tile[1024];\n"
           "  mov.b64 %rd1, map;\n  cvta.param.u64 %rd1, %rd1;\n  mov.u32 %r0, tile;\n  mov.u32 "
           "%r2, %tid.x;\n" +
           fill + row +
           "  fence.proxy.async.shared::cta;\n"
           "  cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd1, {0, %r1}], [%r0];\n"
           "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group.read 0;\n  ret;\n}\n";
  };
  constexpr unsigned rows = 8, rowBytes = 128, lanes = 32;
  const auto time = [&](const std::string &row, unsigned threads) {
    const LaunchConfig config{.grid = {1, 1, 1}, .block = {threads, 1, 1}};
    const auto params = [&](uint64_t out) {
      hw::TensorMap map;
      map.elementType = hw::TensorMapType::Float32;
      map.rank = 2;
      map.address = out;
      map.dims = {rowBytes / 4, lanes * rows};
      map.strides = {rowBytes};
      map.box = {rowBytes / 4, rows};
      return Params().map(map).add(out);
    };
    return predictText(text(row), config, lanes * rows * rowBytes, "sm_100a", 0, params);
  };
  const std::string same = "  mov.u32 %r1, 0;\n", apart = "  mul.lo.u32 %r1, %r2, 8;\n";
  const KernelTime one = time(same, 1), all = time(same, lanes), each = time(apart, lanes);
  EXPECT_NEAR(all.cycles, one.cycles, 10);
  EXPECT_EQ(all.l2Bytes, rows * rowBytes);
  EXPECT_EQ(each.l2Bytes, lanes * rows * rowBytes);
  EXPECT_GT(each.cycles, all.cycles + (lanes - 1) * rows);
}

/// Every block loads four boxes of 128 rows, of which `rows` exist; all load the same ones.
double cyclesOfBoxes(unsigned blocks, unsigned rows) {
  constexpr unsigned boxRows = 128, rowBytes = 128, boxes = 4, bytes = boxRows * rowBytes;
  std::string text =
      ".version 8.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 dynamic[];\n"
      ".visible .entry test(.param .align 64 .b8 map[128], .param .u64 out_param)\n{\n"
      "  .reg .b32 %r<8>;\n  .reg .b64 %rd<4>;\n  .reg .pred %p<2>;\n"
      "  .shared .align 8 .b64 bar;\n  mov.b64 %rd1, map;\n  cvta.param.u64 %rd1, %rd1;\n"
      "  mov.u32 %r2, 0;\n" +
      begin +
      fmt::format("  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], {};\n", boxes * bytes);
  for (unsigned i = 0; i < boxes; ++i)
    text += fmt::format("  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::"
                        "bytes [%r0+{}], [%rd1, {{%r2, %r2}}], [%r1];\n",
                        i * bytes);
  const auto params = [&](uint64_t out) {
    hw::TensorMap map;
    map.elementType = hw::TensorMapType::Float32;
    map.rank = 2;
    map.address = out;
    map.dims = {rowBytes / 4, rows};
    map.strides = {rowBytes};
    map.box = {rowBytes / 4, boxRows};
    return Params().map(map).add(out);
  };
  const LaunchConfig config{
      .grid = {blocks, 1, 1}, .block = {1, 1, 1}, .dynamicSharedBytes = boxes * bytes};
  return predictText(text + wait + "  ret;\n}\n", config, bytes, "sm_90a", 0, params).cycles;
}

/// As `benchmarks/micro/run.py --only outside` measures it on an H200: one block loses nothing.
TEST(CopyTime, BoxesThatReachBeyondTheTensorAreSlowWhereAllLoadThem) {
  constexpr unsigned blocks = 132;
  const double rows = blocks * 4 * 63 / hw::timingRate("sm_90a", TimingRate::OutsideRows)->value;
  EXPECT_NEAR(cyclesOfBoxes(blocks, 1) - cyclesOfBoxes(blocks, 64), rows, 0.05 * rows);
  EXPECT_GT(cyclesOfBoxes(blocks, 64), 1.5 * cyclesOfBoxes(blocks, 128));
  EXPECT_LT(cyclesOfBoxes(1, 1), cyclesOfBoxes(1, 128) + 10);
}

} // namespace
