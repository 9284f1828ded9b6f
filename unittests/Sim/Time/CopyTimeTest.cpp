//===- CopyTimeTest.cpp - Predicted times of copies that wait their turn --===//
//
// A look at a barrier that nobody has to wait for and copies that a load from tensor memory has
// nothing to do with hold nobody up. Each was once served as if it did, and GEMMs were predicted 15
// times, and 8 %, too slow.
//
//===----------------------------------------------------------------------===//
#include "../Async/KernelHarness.h"
#include "fp4/ISA/TimingRates.h"
#include "fp4/Sim/Predictor.h"

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using hw::TimingRate;

namespace {

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

/// Every CTA copies `copies` pieces of 32 KiB of its own. A copy needs no warp, so that all are
/// asked for at once, more than an SM can have in flight.
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
  EXPECT_NEAR(many - few, blocks * 4 * 32768 / rate, 0.9); // and a wait for a part of the memory
  // one SM alone is bound by its own port, not by the machine
  const double port = hw::timingRate("sm_90a", TimingRate::L2PortBytes)->value * 1.98e3;
  const double flight = hw::timingRate("sm_90a", TimingRate::TmaInFlight)->value * 1024;
  const double latency = (hw::timingRate("sm_90a", TimingRate::MemoryLatency)->value) / 1.98e3;
  const double slower = std::min(port, flight / latency);
  const double alone = microsecondsOfCopies(1, 6) - microsecondsOfCopies(1, 2);
  EXPECT_GT(alone, 4 * 32768 / slower - 0.2);
  EXPECT_LT(alone, 2 * 4 * 32768 / slower);
}

/// Each CTA asks for `copies` of 8 KiB of its own, waits for the first of them and computes for
/// longer than the others take.
double cyclesToTheFirstOf(unsigned copies, unsigned blocks) {
  constexpr unsigned piece = 8192;
  std::string body =
      begin + fmt::format("  mov.u32 %r2, %ctaid.x;\n  mul.wide.u32 %rd1, %r2, {0};\n"
                          "  add.u64 %rd1, %out, %rd1;\n  add.u32 %r3, %r0, {0};\n"
                          "  mbarrier.init.shared::cta.b64 [%r3], 1;\n"
                          "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], {1};\n"
                          "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {2};\n",
                          copies * piece, piece, (copies - 1) * piece);
  for (unsigned i = 0; i < copies; ++i)
    body += fmt::format("  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                        "[%r0+{0}], [%rd1+{0}], {1}, [{2}];\n",
                        i * piece, piece, i ? "%r3" : "%r1");
  body += wait + "  mov.u32 %r2, %t;\n";
  for (unsigned i = 0; i < 500; ++i)
    body += "  ex2.approx.ftz.f32 %r2, %r2;\n";
  const LaunchConfig config{
      .grid = {blocks, 1, 1}, .block = {1, 1, 1}, .dynamicSharedBytes = copies * piece + 16};
  return predict(body + "AGAIN:\n  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r3], 0;\n"
                        "  @!%p1 bra AGAIN;\n  st.global.b32 [%out], %r2;\n",
                 config, size_t(blocks) * copies * piece)
      .cycles;
}

/// Copies were once served in the order of their requests, so that the first of a launch came as if
/// nobody had asked for more.
TEST(CopyTime, TheFirstCopyWaitsForThoseThatAreAskedForAtOnce) {
  constexpr unsigned blocks = 132;
  const double rate = hw::timingRate("sm_90a", TimingRate::MemoryTerabytes)->value * 1e3 / 1.98;
  const double others = blocks * 3 * 8192 / rate;
  EXPECT_NEAR(cyclesToTheFirstOf(4, blocks) - cyclesToTheFirstOf(1, blocks), others, 150);
  EXPECT_LT(cyclesToTheFirstOf(4, 1) - cyclesToTheFirstOf(1, 1), 150);
}

/// A copy of 4 KiB at `copied`, behind `prefetches` of 16 KiB each from the start of the buffer on
/// and a chain of `between` instructions.
double cyclesBehindPrefetches(unsigned prefetches, unsigned copied, unsigned between) {
  std::string body = begin;
  for (unsigned i = 0; i < prefetches; ++i)
    body += fmt::format("  cp.async.bulk.prefetch.L2.global [%out+{}], 16384;\n", i * 16384);
  body += "  mov.u32 %r2, %t;\n";
  for (unsigned i = 0; i < between; ++i)
    body += "  ex2.approx.ftz.f32 %r2, %r2;\n";
  body += fmt::format("  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 4096;\n"
                      "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                      "[%r0], [%out+{}], 4096, [%r1];\n",
                      copied) +
          wait + "  st.global.b32 [%out], %r2;\n";
  const LaunchConfig config{.grid = {1, 1, 1}, .block = {1, 1, 1}, .dynamicSharedBytes = 4096};
  return predict(body, config, 1 << 20).cycles;
}

/// A prefetch once cost nothing, and brought nothing.
TEST(CopyTime, APrefetchTakesTheEngineAndBringsLinesToL2) {
  constexpr unsigned elsewhere = 1 << 19;
  const auto rate = [](TimingRate which) { return hw::timingRate("sm_90a", which)->value; };
  EXPECT_NEAR(cyclesBehindPrefetches(2, elsewhere, 0) - cyclesBehindPrefetches(0, elsewhere, 0),
              2 * 16384 / rate(TimingRate::TmaBytes), 20);
  const double nearer = rate(TimingRate::MemoryLatency) - rate(TimingRate::L2Latency);
  EXPECT_NEAR(cyclesBehindPrefetches(1, elsewhere, 100) - cyclesBehindPrefetches(1, 8192, 100),
              nearer, 25);
  EXPECT_LT(cyclesBehindPrefetches(1, elsewhere, 0) - cyclesBehindPrefetches(1, 12288, 0), 65);
}

TEST(CopyTime, ACopyOfAThreadIsReadOnce) {
  constexpr unsigned copies = 8, bytes = 16 * 32;
  std::string body = "  mad.lo.u32 %r2, %t, 16, 0;\n  cvt.u64.u32 %rd1, %r2;\n"
                     "  add.u64 %rd1, %out, %rd1;\n  mov.u32 %r0, dynamic;\n"
                     "  add.u32 %r0, %r0, %r2;\n";
  for (unsigned i = 0; i < copies; ++i)
    body += fmt::format("  cp.async.cg.shared.global [%r0+{0}], [%rd1+{0}], 16;\n", i * bytes);
  const KernelTime time =
      predict(body + "  cp.async.wait_all;\n",
              {.grid = {1, 1, 1}, .block = {32, 1, 1}, .dynamicSharedBytes = copies * bytes},
              copies * bytes);
  EXPECT_EQ(time.l2Bytes, copies * bytes);
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
                       "  barrier.cluster.arrive.relaxed;\n  barrier.cluster.wait.acquire;\n" +
                       copy + wait +
                       "  barrier.cluster.arrive.relaxed;\n  barrier.cluster.wait.acquire;\n",
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

/// A thread stores to the first `bytes` of dynamic shared memory, which are at %r0 then.
std::string filled(unsigned bytes) {
  return "  mov.u32 %r0, dynamic;\n  mov.u32 %r2, 0;\nFILL:\n  add.u32 %r3, %r0, %r2;\n"
         "  st.shared.v4.b32 [%r3], {%r2, %r2, %r2, %r2};\n  add.u32 %r2, %r2, 16;\n" +
         fmt::format("  setp.lt.u32 %p1, %r2, {};\n  @%p1 bra FILL;\n", bytes) +
         "  fence.proxy.async.shared::cta;\n";
}

/// One thread stores pieces from shared memory, one after the other or all at once.
double cyclesOfStores(unsigned pieces, unsigned bytes, const std::string &wait, bool inTurn) {
  std::string body = filled(bytes);
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

/// A CTA that exits once completed the stores of the other one too, whose wait nobody ended then.
TEST(CopyTime, ABlockThatExitsLeavesStoresOfOthersOnTheirWay) {
  const auto cycles = [&](const std::string &first) {
    const LaunchConfig two{
        .grid = {2, 1, 1}, .block = {1, 1, 1}, .cluster = {2, 1, 1}, .dynamicSharedBytes = 16384};
    return predict(filled(16384) + "  mov.u32 %r2, %cluster_ctarank;\n" + first +
                       "  cp.async.bulk.global.shared::cta.bulk_group [%out], [%r0], 16384;\n"
                       "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\n",
                   two, 16384)
        .cycles;
  };
  std::string exits = "  setp.eq.u32 %p1, %r2, 1;\n  @%p1 bra STORE;\n";
  for (int i = 0; i < 10; ++i) // until the store is issued, and not until it ends
    exits += "  ex2.approx.ftz.f32 %r5, %r5;\n";
  EXPECT_NEAR(cycles(exits + "  exit;\nSTORE:\n"), cycles(""), 100);
}

/// Loads and stores of an SM share the way to L2. Rows of a load take a cycle each, and four while
/// a store waits: a load that comes behind many stores is not held up by all.
TEST(CopyTime, StoresLeaveLoadsAQuarterOfTheWayToL2) {
  constexpr unsigned piece = 32768, rows = piece / 128, stored = 16384;
  const std::string load = fmt::format(
      "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], {0};\n"
      "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0+16384], [%out], "
      "{0}, [%r1];\n",
      piece);
  const auto cycles = [&](unsigned stores, unsigned bytes) {
    std::string body = begin + filled(stored);
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

/// Cycles of `stores` stores of 512 bytes to shared memory and a fence, on an H200. Somebody
/// measured 48 for the fence behind 8 stmatrix.x4, which store as much, and 66 behind 16.
TEST(CopyTime, AFenceOfSharedMemoryWaitsForStores) {
  const LaunchConfig config{.grid = {1, 1, 1}, .block = {32, 1, 1}, .dynamicSharedBytes = 16384};
  const auto cycles = [&](int stores, const std::string &fence) {
    std::string body = "  mov.u32 %r1, dynamic;\n  mad.lo.u32 %r1, %t, 16, %r1;\n";
    for (int i = 0; i < stores; ++i)
      body += fmt::format("  st.shared.v4.b32 [%r1+{}], {{%t, %t, %t, %t}};\n", 512 * i);
    return predict(body + fence + "  mov.u32 %r2, %t;\n", config, 256, "sm_90a").cycles;
  };
  const auto ofFence = [&](int stores) {
    return cycles(stores, "  fence.proxy.async.shared::cta;\n") - cycles(stores, "");
  };
  const double alone = hw::timingRate("sm_90a", TimingRate::FenceProxyAsyncShared)->value;
  EXPECT_NEAR(ofFence(0), alone, 2);
  EXPECT_NEAR(ofFence(8), 48, 8);
  EXPECT_NEAR(ofFence(16), 66, 8);
}

/// H200, micro: conversions: loads of 2 KiB and a fence of 1, 4 and 8 warps take 43, 105 and 204
/// clk, and the loads alone 32, 64 and 128.
TEST(CopyTime, FencesOfSharedMemoryComeOneAfterTheOther) {
  const auto cycles = [](unsigned warps, const std::string &fence) {
    const LaunchConfig config{
        .grid = {1, 1, 1}, .block = {32 * warps, 1, 1}, .dynamicSharedBytes = 65536};
    constexpr int times = 16;
    std::string body = "  mov.u32 %r1, dynamic;\n  mad.lo.u32 %r1, %t, 16, %r1;\n";
    for (int i = 0; i < 4; ++i)
      body += fmt::format("  st.shared.v4.b32 [%r1+{}], {{%t, %t, %t, %t}};\n", 8192 * i);
    for (int turn = 0; turn < times; ++turn) {
      for (int i = 0; i < 4; ++i)
        body += fmt::format("  ld.volatile.shared.v4.b32 {{%r{}, %r{}, %r{}, %r{}}}, [%r1+{}];\n",
                            4 + 4 * i, 5 + 4 * i, 6 + 4 * i, 7 + 4 * i, 8192 * i);
      body += fence;
    }
    return predict(body, config, 256, "sm_90a").cycles / times;
  };
  const std::string fence = "  fence.proxy.async.shared::cta;\n";
  EXPECT_NEAR(cycles(4, fence) - cycles(4, ""), 41, 6);
  EXPECT_NEAR(cycles(8, fence) - cycles(8, ""), 76, 8);
}

/// A tile copies 16 KiB of its own. A CTA takes the tiles of CTAs that have not begun.
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

/// Tiles that members took were once not counted: a GEMM of 14 tiles each moved 22 times as much as
/// it has.
TEST(CopyTime, ASampleKnowsTheTilesThatItsBlocksTook) {
  constexpr unsigned tiles = 148 * 12;
  const KernelTime whole = tilesTaken(tiles, 0), sample = tilesTaken(tiles, 10000);
  EXPECT_EQ(whole.sample.simulated, 148u);
  EXPECT_EQ(sample.sample.simulated, 8u);
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

/// Every CTA loads four boxes of 128 rows, of which `rows` exist; all load the same ones.
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

/// Returns the cycle at which the last row is filled, of `rows` outside of their tensors that wait
/// at once.
double outsideCycles(double rows) {
  const auto rate = [](TimingRate which) { return hw::timingRate("sm_90a", which)->value; };
  return rows / (rate(TimingRate::OutsideRows) + rate(TimingRate::OutsideTogether) * rows / 1000);
}

/// As `benchmarks/micro/run.py --only outside` measures it on an H200: one CTA loses nothing.
TEST(CopyTime, BoxesThatReachBeyondTheTensorAreSlowWhereAllLoadThem) {
  constexpr unsigned blocks = 132;
  const double cycles = outsideCycles(blocks * 4 * 127) - outsideCycles(blocks * 4 * 64);
  EXPECT_NEAR(cyclesOfBoxes(blocks, 1) - cyclesOfBoxes(blocks, 64), cycles, 0.05 * cycles);
  EXPECT_GT(cyclesOfBoxes(blocks, 64), 1.5 * cyclesOfBoxes(blocks, 128));
  EXPECT_LT(cyclesOfBoxes(1, 1), cyclesOfBoxes(1, 128) + 10);
}

/// 64 of 128 rows outside take 346 cycles of a box with 33 CTAs, and 875 with 132.
TEST(CopyTime, RowsOutsideAreFilledFasterWhereManyWait) {
  const auto lost = [](unsigned blocks) {
    return cyclesOfBoxes(blocks, 1) - cyclesOfBoxes(blocks, 128);
  };
  const double few = outsideCycles(33 * 4 * 127), many = outsideCycles(132 * 4 * 127);
  EXPECT_LT(many, 3 * few);
  EXPECT_NEAR(lost(132) / lost(33), many / few, 0.2);
}

} // namespace
