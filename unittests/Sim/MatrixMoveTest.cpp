//===- MatrixMoveTest.cpp - ldmatrix, stmatrix, movmatrix -----------------===//
#include "WarpFixture.h"
#include <gmock/gmock.h>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using ::testing::HasSubstr;

namespace {

TEST(MatrixMove, LoadAndTranspose) {
  for (bool transposed : {false, true}) {
    auto d = words(std::string(kShared) + kFill + "ldmatrix.sync.aligned.m8n8.x4" +
                       (transposed ? ".trans" : "") +
                       ".shared.b16 {%r20, %r21, %r22, %r23}, [%row];\n" + storeWords(4, 20),
                   numbered(), 4);
    for (unsigned i = 0; i < 4; ++i)
      for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned e = 0; e < 2; ++e) {
          unsigned row = lane / 4, column = lane % 4 * 2 + e;
          unsigned element = transposed ? column * 8 + row : row * 8 + column;
          ASSERT_EQ(d[32 * i + lane] >> (16 * e) & 0xFFFF, 64 * i + element);
        }
  }
}

TEST(MatrixMove, StoreIsTheInverse) {
  for (const char *form : {"x4", "x4.trans"}) {
    auto d = words(std::string(kShared) + kFill + "ldmatrix.sync.aligned." + form +
                       ".m8n8.shared.b16 {%r20, %r21, %r22, %r23}, [%row];\n"
                       "bar.warp.sync 0xFFFFFFFF;\nmov.b32 %r0, 0;\n"
                       "st.shared.v4.u32 [%row], {%r0, %r0, %r0, %r0};\n"
                       "bar.warp.sync 0xFFFFFFFF;\n"
                       "stmatrix.sync.aligned." +
                       form +
                       ".m8n8.shared.b16 [%row], {%r20, %r21, %r22, %r23};\n"
                       "bar.warp.sync 0xFFFFFFFF;\n"
                       "ld.shared.v4.u32 {%r30, %r31, %r32, %r33}, [%row];\n" +
                       storeWords(4, 30),
                   numbered(), 4);
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned i = 0; i < 4; ++i)
        ASSERT_EQ(d[32 * i + lane], numbered()[4 * lane + i]) << form;
  }
}

/// A byte for each place, none like its neighbours.
std::vector<uint32_t> bytesIn(unsigned words) {
  std::vector<uint32_t> out(words);
  for (unsigned i = 0; i < 4 * words; ++i)
    out[i / 4] |= uint32_t(uint8_t(i * 29 + i / 64)) << (8 * (i % 4));
  return out;
}
uint8_t byteAt(const std::vector<uint32_t> &words, unsigned i) {
  return uint8_t(words[i / 4] >> (8 * (i % 4)));
}

// Lane and byte of CUTLASS' copy traits for sm_100: they number the 16 bytes that each lane
// addresses, say for each number which lane that is, and swap bytes of the registers after the
// load.
TEST(MatrixMove, SixteenByteRowsTransposed) {
  const auto input = bytesIn(128);
  auto d = words(std::string(kShared) + kFill +
                     "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8 {%r20, %r21, %r22, %r23}, "
                     "[%row];\n" +
                     storeWords(4, 20),
                 input, 4);
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned matrix = 0; matrix < 2; ++matrix)
      for (unsigned j = 0; j < 2; ++j)
        for (unsigned p = 0; p < 4; ++p) {
          const unsigned chunk = 2 * (lane % 4) + p % 2 + 8 * j;
          const unsigned from = chunk % 2 + 2 * (chunk / 8) + 4 * (chunk / 2 % 4) + 16 * matrix;
          const uint32_t word = d[32 * (2 * matrix + p / 2) + lane];
          ASSERT_EQ(uint8_t(word >> (8 * (2 * j + p % 2))),
                    byteAt(input, 16 * from + lane / 4 + 8 * (p / 2)));
        }
  // Lane 5: register 0 has byte 1 of rows 4 to 7, register 1 byte 9.
  for (unsigned i = 0; i < 2; ++i)
    for (unsigned b = 0; b < 4; ++b)
      EXPECT_EQ(uint8_t(d[32 * i + 5] >> (8 * b)), byteAt(input, 16 * (4 + b) + 1 + 8 * i));
}

/// Element i of a row of 16 elements of `bits` bits at `row`.
uint32_t elementOf(const std::vector<uint32_t> &input, unsigned row, unsigned bits, unsigned i) {
  uint32_t value = 0;
  for (unsigned b = 0; b < bits; ++b)
    value |= uint32_t(byteAt(input, 16 * row + (i * bits + b) / 8) >> ((i * bits + b) % 8) & 1)
             << b;
  return value;
}

// The padding is never written: the checker would say so.
TEST(MatrixMove, NarrowElementsBecomeBytes) {
  const auto input = bytesIn(128);
  for (unsigned bits : {6u, 4u})
    for (bool transposed : {false, true}) {
      std::string body = std::string(kShared) + R"(
shl.b32 %row, %lane, 4; add.u32 %row, %row, %base;
shl.b64 %rd1, %lane64, 4; add.u64 %rd1, %rd1, %p1;
ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%rd1];
st.shared.v2.u32 [%row], {%r0, %r1};
)";
      body += bits == 6 ? "st.shared.u32 [%row+8], %r2;\n" : "";
      body += std::string("bar.warp.sync 0xFFFFFFFF;\nldmatrix.sync.aligned.") +
              (transposed ? "m16n16.x2.trans" : "m8n16.x4") + ".shared.b8x16." +
              (bits == 6 ? "b6x16_p32" : "b4x16_p64") + " {%r20, %r21, %r22, %r23}, [%row];\n";
      auto d = words(body + storeWords(4, 20), input, 4);
      for (unsigned i = 0; i < 4; ++i)
        for (unsigned lane = 0; lane < 32; ++lane)
          for (unsigned b = 0; b < 4; ++b) {
            const unsigned row = transposed ? 16 * (i / 2) + 4 * (lane % 4) + b : 8 * i + lane / 4;
            const unsigned column = transposed ? lane / 4 + 8 * (i % 2) : 4 * (lane % 4) + b;
            ASSERT_EQ(d[32 * i + lane] >> (8 * b) & 0xFF, elementOf(input, row, bits, column));
          }
    }
}

// A warp's 16 x 8 result of one mma.sync, columns in memory: CUTLASS' copy traits, as above.
TEST(MatrixMove, StoresBytesTransposed) {
  const auto input = bytesIn(128);
  auto d = words(std::string(kShared) + loadWords(4) + R"(
shl.b32 %row, %lane, 4; add.u32 %row, %row, %base;
stmatrix.sync.aligned.m16n8.x4.trans.shared.b8 [%row], {%r0, %r1, %r2, %r3};
bar.warp.sync 0xFFFFFFFF;
ld.shared.v4.u32 {%r20, %r21, %r22, %r23}, [%row];
)" + storeWords(4, 20),
                 input, 4);
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned p = 0; p < 4; ++p) {
        const unsigned row = 8 * i + 2 * (lane % 4) + p % 2, byte = lane / 4 + 8 * (p / 2);
        ASSERT_EQ(uint8_t(d[32 * (byte / 4) + row] >> (8 * (byte % 4))),
                  uint8_t(input[32 * i + lane] >> (8 * p)));
      }
}

TEST(MatrixMove, ShapesOfBytesHaveTheirCounts) {
  const std::string load = "ldmatrix.sync.aligned.";
  EXPECT_THAT(failure(load + "m16n16.x1.trans.shared.b8 {%r1}, [%r2];"),
              HasSubstr("expects 2 registers, but got 1"));
  EXPECT_THAT(failure(load + "m8n16.x2.shared.b8x16.b4x16_p64 {%r1}, [%r2];"),
              HasSubstr("expects 2 registers, but got 1"));
  EXPECT_THAT(failure(load + "m16n16.x4.trans.shared.b8 {%r1, %r2, %r3, %r4}, [%r2];"),
              HasSubstr("'.x4'"));
  EXPECT_THAT(failure("stmatrix.sync.aligned.m16n8.x1.shared.b8 [%r2], {%r1};"),
              HasSubstr("trans"));
}

TEST(MatrixMove, MovmatrixTransposes) {
  auto d =
      words(loadWords(1) + "movmatrix.sync.aligned.m8n8.trans.b16 %r20, %r0;\n" + storeWords(1, 20),
            numbered(), 1);
  for (unsigned lane = 0; lane < 32; ++lane)
    EXPECT_EQ(d[lane], (lane % 4 * 16 + lane / 4) | (lane % 4 * 16 + 8 + lane / 4) << 16);
}

TEST(MatrixMove, NeedsSharedMemory) {
  EXPECT_THAT(failure("ldmatrix.sync.aligned.m8n8.x1.b16 {%r0}, [%p0];"),
              HasSubstr("expects an address in shared memory"));
  EXPECT_THAT(failure(std::string(kShared) +
                      "add.u32 %row, %base, 8;\n"
                      "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%row];"),
              HasSubstr("must be a multiple of 16"));
}

} // namespace
