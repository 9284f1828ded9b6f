//===- WarpMatrixTest.cpp - mma.sync, cp.async, carry chains --------------===//
#include "WarpFixture.h"
#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <random>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using ::testing::HasSubstr;

namespace {

/// Byte `byte` of row `row` of A in its fragments: register and lane.
uint8_t &byteOfA(std::vector<uint32_t> &fragments, unsigned row, unsigned byte) {
  unsigned i = row / 8 + 2 * (byte / 16), lane = row % 8 * 4 + byte % 16 / 4;
  return reinterpret_cast<uint8_t *>(&fragments[32 * i + lane])[byte % 4];
}
uint8_t &byteOfB(std::vector<uint32_t> &fragments, unsigned column, unsigned byte) {
  unsigned i = byte / 16, lane = column * 4 + byte % 16 / 4;
  return reinterpret_cast<uint8_t *>(&fragments[32 * i + lane])[byte % 4];
}
/// Word of a 32-bit C or D.
size_t wordOfD(unsigned row, unsigned column) {
  return 32 * (row / 8 * 2 + column % 2) + row % 8 * 4 + column / 2;
}

std::string mma16x8(const std::string &opcode) {
  return loadWords(10) + opcode +
         " {%r20, %r21, %r22, %r23}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%r6, %r7, %r8, %r9};\n" +
         storeWords(4, 20);
}

TEST(MmaSync, BytesTimesBytes) {
  std::mt19937 random(1);
  std::vector<uint32_t> a(128), b(64), c(128);
  for (auto *part : {&a, &b, &c})
    for (uint32_t &word : *part)
      word = static_cast<uint32_t>(random());
  std::vector<uint32_t> input = a;
  input.insert(input.end(), b.begin(), b.end());
  input.insert(input.end(), c.begin(), c.end());
  auto d = words(mma16x8("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32"), input, 4);
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned column = 0; column < 8; ++column) {
      uint32_t sum = c[wordOfD(row, column)];
      for (unsigned k = 0; k < 32; ++k)
        sum += static_cast<uint32_t>(static_cast<int8_t>(byteOfA(a, row, k)) *
                                     static_cast<int>(byteOfB(b, column, k)));
      ASSERT_EQ(d[wordOfD(row, column)], sum) << row << " " << column;
    }
}

/// Small integers as fp32 bits of the first bytes: exact in every type.
void setTF32(std::vector<uint32_t> &fragments, unsigned row, unsigned k, float value, bool ofA) {
  auto bits = std::bit_cast<uint32_t>(value);
  for (unsigned i = 0; i < 4; ++i)
    (ofA ? byteOfA(fragments, row, 4 * k + i) : byteOfB(fragments, row, 4 * k + i)) =
        static_cast<uint8_t>(bits >> (8 * i));
}

TEST(MmaSync, TF32) {
  std::vector<uint32_t> a(128), b(64), c(128);
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned k = 0; k < 8; ++k)
      setTF32(a, row, k, float(int(row) - 3 * int(k)), true);
  for (unsigned column = 0; column < 8; ++column)
    for (unsigned k = 0; k < 8; ++k)
      setTF32(b, column, k, float(int(column * k) - 5) / 4, false);
  for (uint32_t &word : c)
    word = std::bit_cast<uint32_t>(0.5f);
  std::vector<uint32_t> input = a;
  input.insert(input.end(), b.begin(), b.end());
  input.insert(input.end(), c.begin(), c.end());
  auto d = words(mma16x8("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"), input, 4);
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned column = 0; column < 8; ++column) {
      float sum = 0.5f;
      for (unsigned k = 0; k < 8; ++k)
        sum += float(int(row) - 3 * int(k)) * float(int(column * k) - 5) / 4;
      ASSERT_EQ(d[wordOfD(row, column)], std::bit_cast<uint32_t>(sum)) << row << " " << column;
    }
}

TEST(MmaSync, HalfWithHalfResult) {
  // A is the identity in its first 8 columns, so D repeats B: rows 0 to 7 and again 8 to 15.
  std::vector<uint32_t> a(64), b(32);
  auto half = [](unsigned n) { return static_cast<uint16_t>(n ? 0x3C00 : 0); };
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned k = 0; k < 8; ++k) {
      byteOfA(a, row, 2 * k) = static_cast<uint8_t>(half(row % 8 == k));
      byteOfA(a, row, 2 * k + 1) = static_cast<uint8_t>(half(row % 8 == k) >> 8);
    }
  for (unsigned column = 0; column < 8; ++column)
    for (unsigned k = 0; k < 8; ++k) {
      uint16_t value = static_cast<uint16_t>(0x4000 + 16 * column + k);
      byteOfB(b, column, 2 * k) = static_cast<uint8_t>(value);
      byteOfB(b, column, 2 * k + 1) = static_cast<uint8_t>(value >> 8);
    }
  std::vector<uint32_t> input = a;
  input.insert(input.end(), b.begin(), b.end());
  auto d = words(loadWords(3) +
                     "mov.b32 %r10, 0;\n"
                     "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r20, %r21}, "
                     "{%r0, %r1}, {%r2}, {%r10, %r10};\n" +
                     storeWords(2, 20),
                 input, 2);
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned column = 0; column < 8; ++column) {
      uint32_t word = d[32 * (row / 8) + row % 8 * 4 + column / 2];
      EXPECT_EQ(static_cast<uint16_t>(word >> (16 * (column % 2))), 0x4000 + 16 * column + row % 8);
    }
}

// 1 and twelve products of 2^-26: a unit of fp8 aligns each for itself and finds nothing; where f16
// stands in for it, their sum is rounded to nearest.
TEST(MmaSync, EightBitsByWayOfHalves) {
  const std::string body = R"(mov.b32 %r1, 0x00080808;
mov.b32 %r2, 0x3F800000;
mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32 {%r0, %r3, %r4, %r5}, {%r1, %r1, %r6, %r6},
    {%r1, %r1}, {%r2, %r2, %r2, %r2};
)";
  for (const auto &[target, expected] :
       {std::pair("sm_90a", 0x3F800002u), {"sm_100a", 0x3F800002u}, {"sm_120a", 0x3F800000u}}) {
    SimOptions options;
    options.target = target;
    EXPECT_EQ(perThread("mov.b32 %r6, 0;\n" + body, blocks(32), options),
              std::vector<uint32_t>(32, expected));
  }
}

// 1 and three products of 2^-25, which are added up first.
TEST(MmaSync, QuartersAreFusedMultiplyAdds) {
  const std::string body = R"(mov.b32 %r10, 0x0C000C00;
mov.b32 %r11, 0x00000C00;
mov.b32 %r12, 0x08000800;
mov.b32 %r2, 0x3F800000;
mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%r0, %r3, %r4, %r5, %r6, %r7, %r8, %r9},
    {%r10, %r11}, {%r12, %r12}, {%r2, %r2, %r2, %r2, %r2, %r2, %r2, %r2};
)";
  EXPECT_EQ(perThread(body), std::vector<uint32_t>(32, 0x3F800001u));
}

TEST(MmaSync, ScaledFp4) {
  // Every element is 1 (code 2); scale of row r is 2^(r % 4), of column n 2^-(n % 2); K is 64.
  std::vector<uint32_t> input(128 + 64, 0x22222222);
  std::vector<uint32_t> scaleA(32), scaleB(32);
  for (unsigned lane = 0; lane < 32; ++lane) {
    unsigned row = lane / 4 + 8 * (lane % 4 % 2), column = lane / 4;
    scaleA[lane] = 0x01010101u * (127 + row % 4);
    scaleB[lane] = 0x01010101u * (127 - column % 2);
  }
  input.insert(input.end(), scaleA.begin(), scaleA.end());
  input.insert(input.end(), scaleB.begin(), scaleB.end());
  auto d = words(loadWords(8) +
                     "mov.b32 %r10, 0;\nmov.b16 %rs1, 0;\n"
                     "mma.sync.aligned.kind::mxf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32."
                     "e2m1.e2m1.f32.ue8m0 {%r20, %r21, %r22, %r23}, {%r0, %r1, %r2, %r3}, "
                     "{%r4, %r5}, {%r10, %r10, %r10, %r10}, %r6, {%rs1, %rs1}, %r7, {%rs1, "
                     "%rs1};\n" +
                     storeWords(4, 20),
                 input, 4);
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned column = 0; column < 8; ++column)
      EXPECT_EQ(d[wordOfD(row, column)],
                std::bit_cast<uint32_t>(std::ldexp(64.0f, int(row % 4) - int(column % 2))));
}

TEST(Wmma, BytesRowTimesColumn) {
  // p1: A (16x16 bytes, row major), B (column major), C.
  std::mt19937 random(3);
  std::vector<uint32_t> input(64 + 64 + 256);
  for (uint32_t &word : input)
    word = static_cast<uint32_t>(random());
  SimOptions options;
  Simulator simulator(options);
  uint64_t out = upload(simulator, std::vector<uint32_t>(256), "out");
  uint64_t in = upload(simulator, input, "in");
  auto stats = run(simulator,
                   kernel(R"(
.reg .b64 %b; .reg .b64 %c;
add.u64 %b, %p1, 256; add.u64 %c, %p1, 512;
wmma.load.a.sync.aligned.row.m16n16k16.global.s8 {%r0, %r1}, [%p1];
wmma.load.b.sync.aligned.col.m16n16k16.global.s8 {%r2, %r3}, [%b], 16;
wmma.load.c.sync.aligned.row.m16n16k16.global.s32 {%r4,%r5,%r6,%r7,%r8,%r9,%r10,%r11}, [%c];
wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32
  {%r20,%r21,%r22,%r23,%r24,%r25,%r26,%r27}, {%r0,%r1}, {%r2,%r3}, {%r4,%r5,%r6,%r7,%r8,%r9,%r10,%r11};
wmma.store.d.sync.aligned.col.m16n16k16.global.s32 [%p0], {%r20,%r21,%r22,%r23,%r24,%r25,%r26,%r27};
)",
                          2),
                   {out, in});
  ASSERT_TRUE(stats) << messageOf(stats);
  auto d = download<uint32_t>(simulator, out, 256);
  const auto *a = reinterpret_cast<const int8_t *>(input.data());
  const int8_t *b = a + 256;
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned column = 0; column < 16; ++column) {
      uint32_t sum = input[128 + 16 * row + column];
      for (unsigned k = 0; k < 16; ++k)
        sum += static_cast<uint32_t>(a[16 * row + k] * b[16 * column + k]);
      ASSERT_EQ(d[16 * column + row], sum) << row << " " << column;
    }
}

TEST(MmaSync, ErrorsNameTheOperand) {
  EXPECT_THAT(failure("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0,%r1,%r2,%r3}, "
                      "{%r0,%r1}, {%r0,%r1}, {%r0,%r1,%r2,%r3};"),
              HasSubstr("A of .m16n8k16 expects 4 registers, but got 2"));
  EXPECT_THAT(failure("mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%r0,%r1,%r2,%r3}, "
                      "{%r0,%r1,%r2,%r3}, {%r0,%r1}, {%r0,%r1,%r2,%r3};"),
              HasSubstr("there is no shape .m16n8k32 for .f16"));
  EXPECT_THAT(failure("mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%r0,%r1,%r2,%r3}, "
                      "{%r0,%r1,%r2,%r3}, {%r0,%r1}, {%r0,%r1,%r2,%r3};"),
              HasSubstr("does not multiply .f16 by .bf16"));
}

//===----------------------------------------------------------------------===//
// cp.async
//===----------------------------------------------------------------------===//

TEST(CopyAsync, GroupsAndSizes) {
  for (const char *policy : {"eager", "lazy", "random"}) {
    auto d = words(std::string(kShared) + R"(
shl.b32 %row, %lane, 4; add.u32 %row, %row, %base;
shl.b64 %rd1, %lane64, 4; add.u64 %rd1, %rd1, %p1;
cp.async.cg.shared.global [%row], [%rd1], 16, 8;
cp.async.commit_group;
cp.async.wait_group 0;
ld.shared.v4.u32 {%r20, %r21, %r22, %r23}, [%row];
)" + storeWords(4, 20),
                   numbered(), 4, policy);
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned i = 0; i < 4; ++i)
        ASSERT_EQ(d[32 * i + lane], i < 2 ? numbered()[4 * lane + i] : 0) << policy;
  }
}

TEST(CopyAsync, DataIsNotThereBeforeTheWait) {
  std::string body = std::string(kShared) + R"(
shl.b32 %row, %lane, 2; add.u32 %row, %row, %base;
shl.b64 %rd1, %lane64, 2; add.u64 %rd1, %rd1, %p1;
cp.async.ca.shared.global [%row], [%rd1], 4;
cp.async.commit_group;
cp.async.wait_group 1;
ld.shared.u32 %r20, [%row];)";
  SimOptions options;
  options.policy = CompletionPolicy::Lazy;
  Simulator simulator(options);
  uint64_t in = upload(simulator, numbered(), "in");
  EXPECT_THAT(messageOf(run(simulator, kernel(body, 2), {in, in})),
              HasSubstr("which an asynchronous copy has not written yet"));
  size_t wait = body.find("wait_group 1");
  body.replace(wait, 12, "wait_all    ");
  EXPECT_TRUE(run(simulator, kernel(body, 2), {in, in}));
}

TEST(CopyAsync, ArrivesOnAnMbarrier) {
  for (const char *policy : {"eager", "lazy"}) {
    auto d = words(std::string(kShared) + R"(
.shared .align 8 .b64 full;
.reg .b32 %full;
mov.u32 %full, full;
setp.eq.u32 %pr1, %lane, 0;
@%pr1 mbarrier.init.shared.b64 [%full], 32;
bar.sync 0;
shl.b32 %row, %lane, 2; add.u32 %row, %row, %base;
shl.b64 %rd1, %lane64, 2; add.u64 %rd1, %rd1, %p1;
cp.async.ca.shared.global [%row], [%rd1], 4;
cp.async.mbarrier.arrive.noinc.shared.b64 [%full];
WAIT: mbarrier.try_wait.parity.shared.b64 %pr2, [%full], 0;
@!%pr2 bra WAIT;
ld.shared.u32 %r20, [%row];
)" + storeWords(1, 20),
                   numbered(), 1, policy);
    for (unsigned lane = 0; lane < 32; ++lane)
      EXPECT_EQ(d[lane], numbered()[lane]) << policy;
  }
}

//===----------------------------------------------------------------------===//
// Carry chains, waits that give up
//===----------------------------------------------------------------------===//

TEST(Carry, SumsOf128Bits) {
  std::mt19937_64 random(7);
  std::vector<uint32_t> input(8 * 32);
  for (uint32_t &word : input)
    word = random() % 3 ? static_cast<uint32_t>(random()) : ~0u;
  auto d = words(loadWords(8) + R"(
add.cc.u32 %r20, %r0, %r4; addc.cc.u32 %r21, %r1, %r5;
addc.cc.u32 %r22, %r2, %r6; addc.u32 %r23, %r3, %r7;
sub.cc.u32 %r24, %r0, %r4; subc.cc.u32 %r25, %r1, %r5;
subc.cc.u32 %r26, %r2, %r6; subc.u32 %r27, %r3, %r7;
mad.lo.cc.u32 %r28, %r0, %r4, %r1; madc.hi.u32 %r29, %r0, %r4, %r2;
)" + storeWords(10, 20),
                 input, 10);
  for (unsigned lane = 0; lane < 32; ++lane) {
    auto wide = [&](const std::vector<uint32_t> &from, unsigned first) {
      unsigned __int128 value = 0;
      for (unsigned i = 4; i-- > 0;)
        value = value << 32 | from[32 * (first + i) + lane];
      return value;
    };
    EXPECT_TRUE(wide(d, 0) == wide(input, 0) + wide(input, 4)) << lane;
    EXPECT_TRUE(wide(d, 4) == wide(input, 0) - wide(input, 4)) << lane;
    uint64_t product = uint64_t(input[lane]) * input[128 + lane] +
                       (uint64_t(input[64 + lane]) << 32 | input[32 + lane]);
    EXPECT_EQ(uint64_t(d[32 * 9 + lane]) << 32 | d[32 * 8 + lane], product);
  }
}

TEST(Carry, PackedIntegers) {
  std::vector<uint32_t> input(96);
  for (unsigned lane = 0; lane < 32; ++lane) {
    input[lane] = static_cast<uint32_t>(int(lane) * 9000 - 100000);
    input[32 + lane] = static_cast<uint32_t>(300 - int(lane) * 20);
    input[64 + lane] = 0xAABBCCDD;
  }
  auto d = words(loadWords(3) + R"(
cvt.pack.sat.s16.s32 %r20, %r0, %r1;
cvt.pack.sat.u8.s32.b32 %r21, %r0, %r1, %r2;
)" + storeWords(2, 20),
                 input, 2);
  for (unsigned lane = 0; lane < 32; ++lane) {
    int a = int(lane) * 9000 - 100000, b = 300 - int(lane) * 20;
    auto half = [](int v) { return static_cast<uint32_t>(std::clamp(v, -32768, 32767)) & 0xFFFF; };
    auto byte = [](int v) { return static_cast<uint32_t>(std::clamp(v, 0, 255)); };
    EXPECT_EQ(d[lane], half(a) << 16 | half(b));
    EXPECT_EQ(d[32 + lane], 0xCCDD0000u | byte(a) << 8 | byte(b));
  }
}

TEST(Atomics, SixteenBytes) {
  auto d = words(R"(
.reg .b128 %q<4>;
mov.u64 %rd1, 5; mov.u64 %rd2, 6;
mov.b128 %q1, {%rd1, %rd2};
setp.eq.u32 %pr1, %lane, 0;
@%pr1 atom.global.exch.b128 %q2, [%p1], %q1;
mov.u64 %rd3, 7;
mov.b128 %q2, {%rd3, %rd3};
bar.warp.sync 0xFFFFFFFF;
setp.eq.u32 %pr1, %lane, 1;
@%pr1 atom.global.cas.b128 %q3, [%p1], %q1, %q2;
bar.warp.sync 0xFFFFFFFF;
ld.global.u32 %r20, [%p1+8];
)" + storeWords(1, 20),
                 std::vector<uint32_t>(32, 9), 1);
  EXPECT_EQ(d[31], 7u);
}

/// A program may look at a barrier before it does what completes the phase: hardware's time limit
/// lets it go on.
TEST(TryWait, GivesUpWhenNothingElseCanHappen) {
  auto body = [](const char *arrive) {
    return std::string(R"(
.shared .align 8 .b64 full;
.reg .b32 %full;
mov.u32 %full, full;
setp.eq.u32 %pr1, %lane, 0;
@%pr1 mbarrier.init.shared.b64 [%full], 1;
bar.sync 0;
mbarrier.try_wait.parity.shared.b64 %pr2, [%full], 0;
selp.u32 %r20, 1, 0, %pr2;
)") + arrive +
           R"(
WAIT: mbarrier.try_wait.parity.shared.b64 %pr3, [%full], 0;
@!%pr3 bra WAIT;
)" + storeWords(1, 20);
  };
  for (const char *policy : {"eager", "lazy", "random"})
    EXPECT_EQ(words(body("@%pr1 mbarrier.arrive.shared.b64 _, [%full];"), std::vector<uint32_t>(32),
                    1, policy)[5],
              0u);
  EXPECT_THAT(failure(body("")), HasSubstr("deadlock"));
}

} // namespace
