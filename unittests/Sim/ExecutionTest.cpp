//===- ExecutionTest.cpp - Memory, control flow, barriers, launches -------===//
#include "SimFixture.h"
#include "fp4/Sim/Events.h"
#include "fp4/Sim/HazardChecker.h"
#include "fp4/Sim/Observer.h"
#include <algorithm>
#include <bit>
#include <fmt/format.h>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;

namespace {

std::vector<uint32_t> iota(size_t count, uint32_t from = 0) {
  std::vector<uint32_t> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = from + static_cast<uint32_t>(i);
  return values;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TEST(Memory, VectorsAndExtension) {
  auto d = perThread(R"(
.shared .align 16 .b8 buffer[1024];
shl.b32 %r1, %lane, 5;
mov.u32 %r2, buffer;
add.u32 %r3, %r2, %r1;
st.shared.v4.b32 [%r3], {%lane, 1, 2, 3};
st.shared.v4.b32 [%r3+16], {4, 5, 6, -2};
ld.shared.v2.b64 {%rd1, %rd2}, [%r3+16];
ld.shared.s8 %r4, [%r3+28];
ld.shared.u8 %r5, [%r3+28];
ld.shared.s16 %rd3, [%r3+28];
cvt.u32.u64 %r6, %rd3;
shr.u64 %rd4, %rd1, 32;
cvt.u32.u64 %r7, %rd4;
mad.lo.u32 %r0, %r7, 1000, %r5;
add.u32 %r0, %r0, %r4;
sub.u32 %r0, %r0, %r6;
ld.shared.b32 %r8, [%r3];
add.u32 %r0, %r0, %r8;)");
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(d[lane], 5000 + 254 - 2 + 2 + lane);
}

TEST(Memory, LocalAndGenericAddresses) {
  auto d = perThread(R"(
.local .align 8 .b8 frame[64];
.shared .align 4 .b32 word;
mov.u64 %rd1, frame;
cvta.local.u64 %rd2, %rd1;
mul.lo.u32 %r1, %lane, 3;
st.b32 [%rd2+4], %r1;
ld.local.b32 %r2, [%rd1+4];
mov.u64 %rd3, word;
cvta.shared.u64 %rd4, %rd3;
setp.eq.u32 %pr1, %lane, 0;
@%pr1 st.b32 [%rd4], 100;
bar.warp.sync -1;
ld.b32 %r3, [%rd4];
isspacep.shared %pr2, %rd4;
isspacep.local %pr3, %rd4;
selp.b32 %r4, 1000, 0, %pr2;
selp.b32 %r5, 5000, 0, %pr3;
add.u32 %r0, %r2, %r3;
add.u32 %r0, %r0, %r4;
add.u32 %r0, %r0, %r5;)");
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(d[lane], 3 * lane + 1100);
}

TEST(Memory, ModuleVariablesAreInitialised) {
  Simulator simulator;
  uint64_t out = upload(simulator, std::vector<uint32_t>(4));
  auto stats = run(simulator, header() + R"(
.const .align 4 .b32 table[4] = {10, 20, 30, 40};
.global .align 8 .u64 pointer = counter;
.global .align 4 .u32 counter = 7;
.global .f32 half = 0f3F000000;
.visible .entry k(.param .b64 out) {
.reg .b32 %r<8>; .reg .b64 %rd<8>;
ld.param.b64 %rd0, [out];
ld.const.b32 %r0, [table+8];
st.global.b32 [%rd0], %r0;
ld.global.b64 %rd1, [pointer];
ld.global.b32 %r1, [%rd1];
st.global.b32 [%rd0+4], %r1;
ld.global.b32 %r2, [half];
st.global.b32 [%rd0+8], %r2;
atom.global.add.u32 %r3, [%rd1], 1;
ret;
})",
                   {out}, blocks(1));
  ASSERT_TRUE(stats) << messageOf(stats);
  auto d = download<uint32_t>(simulator, out, 3);
  EXPECT_EQ(d, (std::vector<uint32_t>{30, 7, 0x3F000000}));
}

TEST(Memory, AtomicsOfVectors) {
  Simulator simulator;
  uint64_t floats = upload(simulator, std::vector<float>{1, 2, 3, 4});
  uint64_t halves =
      upload(simulator, std::vector<uint16_t>{0x3C00, 0xC000, 0, 0x7E00, 0, 0, 0, 0x4900});
  uint64_t out = upload(simulator, std::vector<float>(4));
  auto stats = run(simulator, kernel(R"(
setp.eq.u32 %pr1, %lane, 0;
mov.b32 %f1, 0f3F000000; // 0.5
red.global.gpu.relaxed.add.v2.f32 [%p0], {%f1, %f1};
@%pr1 atom.acq_rel.gpu.global.v4.f32.add {%f2, %f3, %f4, %f5}, [%p0], {%f1, %f1, %f1, %f1};
@%pr1 st.global.v4.f32 [%p2], {%f2, %f3, %f4, %f5};
mov.b16 %rs1, 0x3C00;    // 1
mov.b16 %rs2, 0x4400;    // 4
@%pr1 atom.global.max.noftz.v4.f16 {%rs3, %rs4, %rs5, %rs6}, [%p1], {%rs2, %rs1, %rs1, %rs2};
mov.b32 %r1, 0x3C00C000; // -2 and 1
@%pr1 red.global.min.noftz.v2.f16x2 [%p1+8], {%r1, %r1};
)"),
                   {floats, halves, out});
  ASSERT_TRUE(stats) << messageOf(stats);
  EXPECT_EQ(download<float>(simulator, floats, 4), (std::vector<float>{17.5, 18.5, 3.5, 4.5}));
  EXPECT_EQ(download<float>(simulator, out, 4), (std::vector<float>{17, 18, 3, 4}));
  EXPECT_EQ(download<uint16_t>(simulator, halves, 8),
            (std::vector<uint16_t>{0x4400, 0x3C00, 0x3C00, 0x4400, 0xC000, 0, 0xC000, 0x3C00}));
}

TEST(Memory, AtomicsReturnTheOldValue) {
  Simulator simulator;
  uint64_t data = upload(simulator, std::vector<uint32_t>{0, 100, 0xFFFFFFFF, 5, 0, 0});
  uint64_t out = upload(simulator, std::vector<uint32_t>(128));
  auto stats = run(simulator,
                   kernel(R"(
atom.global.add.u32 %r1, [%p0], 1;
red.global.max.s32 [%p0+4], %lane;
atom.global.min.u32 %r2, [%p0+8], %lane;
atom.global.inc.u32 %r3, [%p0+12], 6;
cvt.rn.f32.u32 %f1, %lane;
red.global.add.f32 [%p0+16], %f1;
setp.eq.u32 %pr1, %lane, 31;
@%pr1 atom.global.cas.b32 %r4, [%p0+20], 0, 77;
mad.wide.u32 %rd1, %lane, 4, %p1;
st.global.b32 [%rd1], %r1;
)",
                          2),
                   {data, out});
  ASSERT_TRUE(stats) << messageOf(stats);
  EXPECT_EQ(download<uint32_t>(simulator, out, 32), iota(32));
  auto after = download<uint32_t>(simulator, data, 6);
  EXPECT_EQ(after[0], 32u);
  EXPECT_EQ(after[1], 100u);
  EXPECT_EQ(after[2], 0u);
  EXPECT_EQ(after[3], 2u); // 5, 6, then 0..6 again and again: (5 + 32) mod 7
  EXPECT_EQ(std::bit_cast<float>(after[4]), 496.0f);
  EXPECT_EQ(after[5], 77u);
}

TEST(Memory, OutOfBoundsNamesTheAllocation) {
  std::string error = failure("ld.global.b32 %r1, [%p0+256];");
  EXPECT_CONTAINS(error, "kernel 'k', CTA (0,0,0), warp 0, lane 0, at test.ptx:");
  EXPECT_CONTAINS(error, "reads 4 bytes of global memory out of bounds");
  EXPECT_CONTAINS(error, "0 bytes past the end of 'out' (256 bytes");
  EXPECT_EQ(failure("ld.global.b32 %r1, [%p0+252];"), "no error");
}

// The end of an access just below 2^64 is a small number.
TEST(Memory, AddressesJustBelowTheEnd) {
  auto load = [](const char *space, const char *address, const char *offset) {
    return failure(fmt::format(".local .b32 l;\n.shared .b32 s;\nst.local.b32 [l], 1;\n"
                               "st.shared.b32 [s], 1;\nmov.u64 %rd1, {};\nshl.b64 %rd2, %lane64, "
                               "2;\nld.{}.b32 %r1, [%rd1{}];",
                               address, space, offset));
  };
  EXPECT_EQ(load("param", "0", "+4"), "no error");
  EXPECT_CONTAINS(load("param", "0", "-4"), "reads 4 bytes at local address 0xffffffff7ffffffc");
  EXPECT_EQ(load("local", "l", "+0"), "no error");
  EXPECT_CONTAINS(load("local", "l", "-4"), "reads 4 bytes at local address 0xfffffffffffffffc");
  EXPECT_EQ(load("shared", "s", "+0"), "no error");
  EXPECT_CONTAINS(load("shared", "0", "-4"), "shared address 0xfffffffffffffffc");
  // Lanes on both sides of the end.
  EXPECT_CONTAINS(failure("shl.b64 %rd2, %lane64, 2;\nadd.s64 %rd2, %rd2, -4;\n"
                          "ld.param.b32 %r1, [%rd2];"),
                  "reads 4 bytes at local address 0xffffffff7ffffffc");
}

// An observer would look at each of 4 GiB.
TEST(Memory, ABulkStoreOfMoreThanThereIs) {
  auto store = [](const char *bytes) {
    HazardChecker checker;
    SimOptions options;
    options.observer = &checker;
    return failure(fmt::format(R"(.shared .align 16 .b8 s[256];
mov.u32 %r1, s;
mad.lo.u32 %r1, %lane, 8, %r1;
st.shared.b64 [%r1], 7;
fence.proxy.async.shared::cta;
bar.sync 0;
setp.ne.u32 %pr0, %lane, 0;
@%pr0 bra END;
cp.async.bulk.global.shared::cta.bulk_group [%p0], [s], {};
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:)",
                               bytes),
                   blocks(32), options);
  };
  EXPECT_EQ(store("256"), "no error");
  EXPECT_CONTAINS(store("-256"), "shared memory");
}

TEST(Memory, MisalignedAccess) {
  EXPECT_CONTAINS(failure("ld.global.v2.b32 {%r1, %r2}, [%p0+4];"),
                  "the address must be a multiple of 8");
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

TEST(Control, DivergentLoopsReconverge) {
  // Collatz steps: every lane leaves the loop at its own time; shfl.sync after it needs all.
  auto d = perThread(R"(
add.u32 %r1, %lane, 1;
mov.u32 %r2, 0;
LOOP: setp.eq.u32 %pr1, %r1, 1;
@%pr1 bra DONE;
and.b32 %r3, %r1, 1;
setp.eq.u32 %pr2, %r3, 0;
@%pr2 bra EVEN;
mad.lo.u32 %r1, %r1, 3, 1;
bra NEXT;
EVEN: shr.u32 %r1, %r1, 1;
NEXT: add.u32 %r2, %r2, 1;
bra LOOP;
DONE: shfl.sync.bfly.b32 %r4|%pr3, %r2, 0, 31, -1;
mov.u32 %r0, %r4;)");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t v = lane + 1, steps = 0;
    for (; v != 1; ++steps)
      v = v & 1 ? 3 * v + 1 : v / 2;
    EXPECT_EQ(d[lane], steps);
  }
}

TEST(Control, SpinningLaneDoesNotStarveTheOneItWaitsFor) {
  // Lane 0 spins at the lower address for a flag that lane 1 sets further down.
  auto d = perThread(R"(
.shared .align 4 .b32 flag;
setp.eq.u32 %pr1, %lane, 0;
st.shared.b32 [flag], 0;
bar.warp.sync -1;
@!%pr1 bra OTHERS;
SPIN: ld.volatile.shared.b32 %r1, [flag];
setp.eq.u32 %pr2, %r1, 0;
@%pr2 bra SPIN;
bra JOIN;
OTHERS: st.volatile.shared.b32 [flag], 1;
JOIN: bar.warp.sync -1;
mov.u32 %r0, 42;)");
  EXPECT_EQ(d, std::vector<uint32_t>(32, 42));
}

TEST(Control, ExitOfSomeLanes) {
  Simulator simulator;
  uint64_t out = upload(simulator, std::vector<uint32_t>(32, 9));
  auto stats = run(simulator,
                   kernel(R"(
setp.ge.u32 %pr1, %lane, 5;
@%pr1 exit;
mad.wide.u32 %rd1, %lane, 4, %p0;
st.global.b32 [%rd1], %lane;)",
                          1),
                   {out});
  ASSERT_TRUE(stats) << messageOf(stats);
  auto d = download<uint32_t>(simulator, out, 32);
  EXPECT_EQ(d[4], 4u);
  EXPECT_EQ(d[5], 9u);
}

TEST(Control, EndlessLoopHitsTheLimit) {
  SimOptions options;
  options.instructionLimit = 10000;
  EXPECT_CONTAINS(failure("L: bra L;", blocks(32), options),
                  "executed more than 10000 warp instructions");
}

TEST(Control, TrapIsAnError) { EXPECT_CONTAINS(failure("trap;"), "the program executed trap"); }

TEST(Control, LocDirectivesNameTheSource) {
  Simulator simulator;
  auto stats =
      run(simulator, header() + ".file 1 \"gemm.mlir\"\n.entry k()\n{\n.loc 1 14 5\ntrap;\n}\n", {},
          blocks(1));
  EXPECT_CONTAINS(messageOf(stats), "at test.ptx:8:1 (gemm.mlir:14:5): the program executed trap");
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

TEST(Barrier, SharedReductionAcrossWarps) {
  // Each thread writes, all meet, each reads its neighbour in the next warp.
  for (auto policy : {CompletionPolicy::Eager, CompletionPolicy::Random}) {
    SimOptions options;
    options.policy = policy;
    options.seed = 3;
    auto d = perThread(R"(
.shared .align 4 .b8 data[512];
mov.u32 %r1, %tid.x;
shl.b32 %r2, %r1, 2;
mov.u32 %r3, data;
add.u32 %r4, %r3, %r2;
st.shared.b32 [%r4], %r1;
bar.sync 0;
add.u32 %r5, %r1, 32;
and.b32 %r5, %r5, 127;
shl.b32 %r5, %r5, 2;
add.u32 %r6, %r3, %r5;
ld.shared.b32 %r0, [%r6];)",
                       blocks(128, 3), options);
    for (uint32_t i = 0; i < d.size(); ++i)
      EXPECT_EQ(d[i], (i % 128 + 32) % 128);
  }
}

TEST(Barrier, ProducerAndConsumerWithCounts) {
  auto d = perThread(R"(
.shared .align 4 .b32 word;
mov.u32 %r1, %warpid;
mov.u32 %r0, 0;
setp.eq.u32 %pr1, %r1, 0;
@%pr1 bra CONSUMER;
st.shared.b32 [word], 55;
barrier.cta.arrive.aligned 3, 64;
bra END;
CONSUMER: barrier.cta.sync.aligned 3, 64;
ld.shared.b32 %r0, [word];
END:)",
                     blocks(64));
  EXPECT_EQ(d[0], 55u);
  EXPECT_EQ(d[40], 0u);
}

TEST(Barrier, Reductions) {
  auto d = perThread(R"(
mov.u32 %r1, %tid.x;
setp.lt.u32 %pr1, %r1, 40;
bar.red.popc.u32 %r2, 0, %pr1;
bar.red.and.pred %pr2, 0, %pr1;
bar.red.or.pred %pr3, 0, %pr1;
selp.b32 %r3, 1000, 0, %pr2;
selp.b32 %r4, 2000, 0, %pr3;
add.u32 %r0, %r2, %r3;
add.u32 %r0, %r0, %r4;)",
                     blocks(64));
  EXPECT_EQ(d, std::vector<uint32_t>(64, 2040));
}

TEST(Barrier, ExitedWarpsDoNotHoldTheOthers) {
  auto d = perThread(R"(
mov.u32 %r0, 1;
mov.u32 %r1, %warpid;
setp.eq.u32 %pr1, %r1, 1;
@%pr1 bra OUT;
bar.sync 0;
mov.u32 %r0, 2;
OUT:)",
                     blocks(96));
  EXPECT_EQ(d[0], 2u);
  EXPECT_EQ(d[32], 1u);
  EXPECT_EQ(d[64], 2u);
}

TEST(Barrier, DeadlockIsExplained) {
  std::string error = failure(R"(
mov.u32 %r1, %warpid;
setp.eq.u32 %pr1, %r1, 0;
@%pr1 bar.sync 1, 64;
@!%pr1 bar.sync 2, 64;)",
                              blocks(64));
  EXPECT_CONTAINS(error, "deadlock");
  EXPECT_CONTAINS(error, "barrier 1 of its CTA: 32 of 64 threads have arrived");
}

TEST(Barrier, CountsMustAgree) {
  EXPECT_CONTAINS(failure(R"(
mov.u32 %r1, %warpid;
setp.eq.u32 %pr1, %r1, 0;
@%pr1 bar.sync 1, 64;
@!%pr1 bar.sync 1, 96;)",
                          blocks(96)),
                  "barrier 1 is used with 96 threads here, but others arrived with 64");
}

TEST(Cluster, DistributedSharedMemory) {
  // Each CTA writes its rank into its right neighbour's shared memory.
  auto d = perThread(R"(
.shared .align 4 .b32 word;
mov.u32 %r1, %cluster_ctarank;
mov.u32 %r2, %cluster_nctarank;
add.u32 %r3, %r1, 1;
rem.u32 %r3, %r3, %r2;
mov.u32 %r4, word;
mapa.shared::cluster.u32 %r5, %r4, %r3;
setp.eq.u32 %pr1, %lane, 0;
@%pr1 st.shared::cluster.b32 [%r5], %r1;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
ld.shared.b32 %r6, [word];
mad.lo.u32 %r0, %r1, 100, %r6;
barrier.cluster.arrive;
barrier.cluster.wait;)",
                     blocks(32, 8, 4));
  for (uint32_t cta = 0; cta < 8; ++cta)
    EXPECT_EQ(d[cta * 32], cta % 4 * 100 + (cta + 3) % 4);
}

TEST(Cluster, ARankThatIsNotThere) {
  const std::string map = ".shared .align 4 .b32 word;\nmov.u32 %r4, word;\n"
                          "mapa.shared::cluster.u32 %r5, %r4, 1;\n";
  EXPECT_EQ(failure(map), "no error");
  EXPECT_CONTAINS(failure(map + "st.shared::cluster.b32 [%r5], %r4;"), "which is out of bounds");
}

TEST(Cluster, WaitWithoutArrive) {
  EXPECT_CONTAINS(failure("barrier.cluster.wait;"),
                  "barrier.cluster.wait without barrier.cluster.arrive");
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

TEST(Launch, BadConfigurationsAreRefused) {
  EXPECT_CONTAINS(failure("", blocks(2048)), "a CTA must have at most 1024 threads, but got 2048");
  EXPECT_CONTAINS(failure("", blocks(32, 3, 2)),
                  "the grid (3,1,1) must be a multiple of the cluster (2,1,1)");
  LaunchConfig large = blocks(32);
  large.dynamicSharedBytes = 300000;
  EXPECT_CONTAINS(
      failure("", large),
      "a CTA of sm_100a has 232448 bytes of shared memory, but the kernel needs 300000");
  Simulator simulator;
  EXPECT_CONTAINS(messageOf(run(simulator, kernel(""), {1})),
                  "the kernel has 24 bytes of parameters, but got 8");
}

TEST(Launch, ManyClustersOnSeveralThreads) {
  SimOptions options;
  options.hostThreads = 4;
  uint64_t last = 0, calls = 0;
  options.progress = [&](uint64_t done, uint64_t total) {
    EXPECT_EQ(total, 148u);
    EXPECT_GT(done, last);
    last = done;
    ++calls;
  };
  auto d =
      perThread("mov.u32 %r1, %ctaid.x;\nmad.lo.u32 %r0, %r1, 7, %lane;", blocks(32, 148), options);
  EXPECT_EQ(last, 148u);
  for (uint32_t i = 0; i < d.size(); ++i)
    EXPECT_EQ(d[i], i / 32 * 7 + i % 32);
}

TEST(Launch, TheErrorOfTheLowestClusterIsReported) {
  for (uint32_t threads : {1u, 4u}) {
    SimOptions options;
    options.hostThreads = threads;
    std::string error = failure("mov.u32 %r1, %ctaid.x;\nsetp.ge.u32 %pr1, %r1, 5;\n@%pr1 trap;",
                                blocks(32, 64), options);
    EXPECT_CONTAINS(error, "CTA (5,0,0)");
  }
}

TEST(Launch, FlagsBetweenCtas) {
  // CTA 0 waits for a flag that the last CTA sets: it must be set aside for the others to run.
  SimOptions options;
  options.hostThreads = 1;
  Simulator simulator(options);
  uint64_t flag = upload(simulator, std::vector<uint32_t>(1));
  auto stats = run(simulator,
                   kernel(R"(
mov.u32 %r1, %ctaid.x;
setp.eq.u32 %pr1, %r1, 3;
@%pr1 st.global.b32 [%p0], 1;
setp.ne.u32 %pr2, %r1, 0;
@%pr2 exit;
SPIN: ld.relaxed.gpu.global.b32 %r2, [%p0];
setp.eq.u32 %pr3, %r2, 0;
@%pr3 bra SPIN;)",
                          1),
                   {flag}, blocks(32, 4));
  EXPECT_TRUE(stats) << messageOf(stats);
}

TEST(Launch, AFlagPublishesWhatWasWrittenBefore) {
  // Each CTA adds one to the rows that the CTA before it has written, on any host thread: the
  // preset tsan sees whether the flag orders the accesses of the host.
  SimOptions options;
  options.hostThreads = 4;
  constexpr uint32_t ctas = 24;
  Simulator simulator(options);
  const uint64_t flag = upload(simulator, std::vector<uint32_t>(1));
  const uint64_t rows = upload(simulator, std::vector<uint32_t>(128, 7));
  auto stats = run(simulator,
                   kernel(R"(
mov.u32 %r1, %ctaid.x;
mad.wide.u32 %rd1, %lane, 16, %p1;
WAIT: ld.acquire.gpu.global.b32 %r2, [%p0];
setp.ne.u32 %pr1, %r2, %r1;
@%pr1 bra WAIT;
ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd1];
add.u32 %r4, %r4, 1;
add.u32 %r5, %r5, 1;
add.u32 %r6, %r6, 1;
add.u32 %r7, %r7, 1;
st.global.v4.b32 [%rd1], {%r4, %r5, %r6, %r7};
bar.warp.sync 0xFFFFFFFF;
add.u32 %r2, %r2, 1;
setp.eq.u32 %pr2, %lane, 0;
@%pr2 st.release.gpu.global.b32 [%p0], %r2;)",
                          2),
                   {flag, rows}, blocks(32, ctas));
  EXPECT_TRUE(stats) << messageOf(stats);
  EXPECT_EQ(download<uint32_t>(simulator, rows, 128), std::vector<uint32_t>(128, 7 + ctas));
}

struct Counter : Observer {
  unsigned reads = 0, writes = 0, barriers = 0, exits = 0;
  void onMemory(const MemoryEvent &e) override {
    (e.kind == AccessKind::Read ? reads : writes) += e.space == Space::SharedCluster;
  }
  void onBarrier(const BarrierEvent &) override { ++barriers; }
  void onLife(const LifeEvent &e) override { exits += e.op == LifeOp::CtaExit; }
};

TEST(Launch, ObserverSeesTheEvents) {
  Counter counter;
  SimOptions options;
  options.observer = &counter;
  EXPECT_EQ(failure(".shared .align 4 .b32 word;\nst.shared.b32 [word], 1;\nbar.sync "
                    "0;\nld.shared.b32 %r1, [word];",
                    blocks(64), options),
            "no error");
  EXPECT_EQ(counter.reads, 2u);
  EXPECT_EQ(counter.writes, 2u);
  EXPECT_EQ(counter.barriers, 4u); // two arrive, two pass
  EXPECT_EQ(counter.exits, 1u);
}

TEST(GlobalMemory, BoundsAndNames) {
  GlobalMemory memory;
  uint64_t a = memory.allocate(100, "a"), b = memory.allocate(50, "b");
  EXPECT_EQ(a % 512, 0u);
  uint8_t bytes[100] = {1, 2, 3};
  EXPECT_TRUE(memory.write(a, bytes, 100));
  auto past = memory.write(a + 1, bytes, 100);
  EXPECT_CONTAINS(messageOf(past), "begin at byte 1 of 'a', which has only 100 bytes");
  EXPECT_TRUE(memory.fill(b, 7, 50));
  EXPECT_CONTAINS(messageOf(memory.free(b + 1)), "free expects the address of an allocation");
  EXPECT_TRUE(memory.free(b));
  EXPECT_FALSE(memory.read(b, bytes, 1));
  EXPECT_EQ(memory.bytesInUse(), 100u);
}

} // namespace
