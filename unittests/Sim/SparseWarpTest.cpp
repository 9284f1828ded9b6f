//===- SparseWarpTest.cpp - mma.sp, and mma.sync of small and of double types ===//
//
// Factors are small integers, so that every type and every sum is exact. The places of elements of
// A, B, C and D and of metadata are computed here from the PTX ISA's formulas by element, row and
// column; the simulator goes by bytes.
//
//===----------------------------------------------------------------------===//
#include "SimFixture.h"
#include <cmath>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <random>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using ::testing::HasSubstr;

namespace {

/// The code of -2 .. 2 (unsigned: 0 .. 2).
uint32_t encode(const std::string &type, int value) {
  static const std::map<std::string, std::array<uint32_t, 3>> codes = {
      // 1, 2, sign
      {"f16", {0x3C00, 0x4000, 0x8000}},
      {"bf16", {0x3F80, 0x4000, 0x8000}},
      {"tf32", {0x3F800000, 0x40000000, 0x80000000}},
      {"e4m3", {0x38, 0x40, 0x80}},
      {"e5m2", {0x3C, 0x40, 0x80}},
      {"e2m3", {0x08, 0x10, 0x20}},
      {"e3m2", {0x0C, 0x10, 0x20}},
      {"e2m1", {2, 4, 8}}};
  auto known = codes.find(type);
  if (known == codes.end())
    return uint32_t(value);
  const auto &[one, two, sign] = known->second;
  return (value == 0 ? 0 : std::abs(value) == 1 ? one : two) | (value < 0 ? sign : 0);
}

struct Case {
  std::string opcode, aType, bType;
  unsigned bits, k; ///< of an element's container
  bool sparse = true;
  unsigned selector = 0;
  bool half = false; ///< C and D of fp16
  unsigned rows = 16;
  std::string scales = ""; ///< further operands

  bool integer() const { return aType[0] == 's' || aType[0] == 'u'; }
  unsigned stored() const { return sparse ? k / 2 : k; }
  unsigned perRegister() const { return 32 / bits; }
  bool full() const { return stored() * bits == 256; }
  unsigned chunk() const { return bits == 32 ? 2 : bits == 4 ? 8 : 4; }
};

void setBits(uint32_t &word, unsigned at, unsigned bits, uint32_t value) {
  const uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
  word = (word & ~(mask << at)) | (value & mask) << at;
}

/// Registers 0.. of 32 lanes each.
struct Registers {
  std::vector<uint32_t> words;
  explicit Registers(unsigned count) : words(32 * count) {}
  void set(unsigned reg, unsigned lane, unsigned at, unsigned bits, uint32_t value) {
    setBits(words[32 * reg + lane], at, bits, value);
  }
};

/// Element `j` of what is stored of row `row` of A; or of column `row` of B (tall = 1).
void setFactor(Registers &r, const Case &c, const std::string &type, unsigned row, unsigned j,
               unsigned tall, int value) {
  const unsigned e = c.perRegister(), inByte = type == "e2m1" && c.bits == 8 ? 2 : 0;
  const unsigned reg = row / 8 + tall * (j / (4 * e)), lane = row % 8 * 4 + j % (4 * e) / e;
  r.set(reg, lane, j % e * c.bits, c.bits, encode(type, value) << inByte);
}

/// The four bits of the chunk with element k of row `row`.
void setMetadata(Registers &r, const Case &c, unsigned row, unsigned k, uint32_t nibble) {
  const unsigned group = row % 8 * 4;
  if (c.bits >= 16) {
    const unsigned perLane = c.bits == 16 ? 16 : 8;
    const unsigned lane = c.full() ? k / perLane + 2 * c.selector : c.selector;
    return r.set(0, group + lane, 16 * (row / 8) + k % perLane / c.chunk() * 4, 4, nibble);
  }
  const unsigned perLane = c.bits == 8 ? 32 : 64;
  const unsigned lane = row / 8 + 2 * (c.full() ? k / perLane : c.selector);
  r.set(0, group + lane, k % perLane / c.chunk() * 4, 4, nibble);
}

struct Problem {
  std::vector<int> a, b, c; ///< rows x k, 8 x k, rows x 8
  Registers aRegisters, bRegisters, metadata, cRegisters;
};

/// A row of A: in every chunk two of four places (pairs of eight, one of two) may be non-zero.
void makeRow(const Case &c, unsigned row, Problem &p, std::mt19937 &random) {
  static constexpr unsigned choices[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  const auto value = [&] { return int(random() % 5) - 2; };
  const auto number = [&] { return c.aType[0] == 'u' ? std::abs(value()) : value(); };
  unsigned j = 0;
  const auto store = [&](unsigned k) {
    const int x = number();
    p.a[row * c.k + k] = x;
    setFactor(p.aRegisters, c, c.aType, row, j++, c.rows / 8, x);
  };
  for (unsigned k = 0; k < c.k; k += c.chunk()) {
    if (!c.sparse) {
      for (unsigned i = 0; i < c.chunk(); ++i)
        store(k + i);
      continue;
    }
    if (c.bits == 32) {
      const unsigned which = random() % 2;
      setMetadata(p.metadata, c, row, k, which ? 0b1110 : 0b0100);
      store(k + which);
      continue;
    }
    const auto &[first, second] = choices[random() % 6];
    setMetadata(p.metadata, c, row, k, first | second << 2);
    for (unsigned place : {first, second})
      for (unsigned i = 0; i < (c.bits == 4 ? 2 : 1); ++i)
        store(k + (c.bits == 4 ? 2 * place + i : place));
  }
}

Problem makeProblem(const Case &c) {
  std::mt19937 random(c.k + c.bits);
  const unsigned tall = c.rows / 8, storedRegisters = c.stored() * c.bits / 128;
  Problem p{std::vector<int>(c.rows * c.k),
            std::vector<int>(8 * c.k),
            std::vector<int>(c.rows * 8),
            Registers(tall * storedRegisters),
            Registers(storedRegisters * (c.sparse ? 2 : 1)),
            Registers(1),
            Registers(c.half ? tall : 2 * tall)};
  for (unsigned row = 0; row < c.rows; ++row)
    makeRow(c, row, p, random);
  for (unsigned column = 0; column < 8; ++column)
    for (unsigned k = 0; k < c.k; ++k) {
      int x = int(random() % 5) - 2;
      x = c.bType[0] == 'u' ? std::abs(x) : x;
      p.b[column * c.k + k] = x;
      setFactor(p.bRegisters, c, c.bType, column, k, 1, x);
    }
  for (unsigned row = 0; row < c.rows; ++row)
    for (unsigned column = 0; column < 8; ++column) {
      const int x = int(random() % 3) - 1;
      p.c[row * 8 + column] = x;
      const unsigned lane = row % 8 * 4 + column / 2, i = row / 8 * 2 + column % 2;
      if (c.half)
        p.cRegisters.set(i / 2, lane, 16 * (i % 2), 16, encode("f16", x));
      else
        p.cRegisters.set(i, lane, 0, 32, c.integer() ? uint32_t(x) : encode("tf32", x));
    }
  return p;
}

std::string list(unsigned first, unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i)
    text += fmt::format("{}%r{}", i ? ", " : "{", first + i);
  return text + "}";
}

std::string bodyOf(const Case &c, const Problem &p) {
  const auto count = [](const Registers &r) { return unsigned(r.words.size() / 32); };
  const unsigned a = 0, b = count(p.aRegisters), cc = b + count(p.bRegisters),
                 e = cc + count(p.cRegisters);
  std::string text = "shl.b64 %rd50, %lane64, 2;\nadd.u64 %rd51, %rd50, %p0;\n"
                     "add.u64 %rd50, %rd50, %p1;\nmov.b32 %r60, 0x7F7F7F7F;\nmov.b16 %rs1, 0;\n";
  for (unsigned i = 0; i <= e; ++i)
    text += fmt::format("ld.global.u32 %r{}, [%rd50+{}];\n", i, 128 * i);
  text += fmt::format("{} {}, {}, {}, {}", c.opcode, list(40, count(p.cRegisters)),
                      list(a, count(p.aRegisters)), list(b, count(p.bRegisters)),
                      list(cc, count(p.cRegisters)));
  if (c.sparse)
    text += fmt::format(", %r{}, {}", e, c.selector);
  text += c.scales + ";\n";
  for (unsigned i = 0; i < count(p.cRegisters); ++i)
    text += fmt::format("st.global.u32 [%rd51+{}], %r{};\n", 128 * i, 40 + i);
  return text;
}

float valueOf(const Case &c, const std::vector<uint32_t> &d, unsigned row, unsigned column) {
  const unsigned lane = row % 8 * 4 + column / 2, i = row / 8 * 2 + column % 2;
  if (!c.half)
    return c.integer() ? float(int32_t(d[32 * i + lane])) : std::bit_cast<float>(d[32 * i + lane]);
  return float(std::bit_cast<_Float16>(uint16_t(d[32 * (i / 2) + lane] >> (16 * (i % 2)))));
}

void check(const Case &c) {
  SCOPED_TRACE(c.opcode + fmt::format(" selector {}", c.selector));
  const Problem p = makeProblem(c);
  std::vector<uint32_t> input;
  for (const Registers *r : {&p.aRegisters, &p.bRegisters, &p.cRegisters, &p.metadata})
    input.insert(input.end(), r->words.begin(), r->words.end());
  Simulator simulator;
  uint64_t out = upload(simulator, std::vector<uint32_t>(128), "out");
  uint64_t in = upload(simulator, input, "in");
  auto stats = run(simulator, kernel(bodyOf(c, p), 2), {out, in});
  ASSERT_TRUE(stats) << messageOf(stats);
  const auto d = download<uint32_t>(simulator, out, 128);
  for (unsigned row = 0; row < c.rows; ++row)
    for (unsigned column = 0; column < 8; ++column) {
      int sum = p.c[row * 8 + column];
      for (unsigned k = 0; k < c.k; ++k)
        sum += p.a[row * c.k + k] * p.b[column * c.k + k];
      ASSERT_EQ(valueOf(c, d, row, column), float(sum)) << row << " " << column;
    }
}

TEST(SparseMmaSync, SixteenAndThirtyTwoBits) {
  for (unsigned selector = 0; selector < 4; ++selector)
    for (std::string variant : {"sp", "sp::ordered_metadata"}) {
      const std::string head = "mma." + variant + ".sync.aligned.";
      check({head + "m16n8k16.row.col.f32.f16.f16.f32", "f16", "f16", 16, 16, true, selector});
      check({head + "m16n8k8.row.col.f32.tf32.tf32.f32", "tf32", "tf32", 32, 8, true, selector});
      if (selector > 1)
        continue;
      check(
          {head + "m16n8k32.row.col.f16.f16.f16.f16", "f16", "f16", 16, 32, true, selector, true});
      check({head + "m16n8k32.row.col.f32.bf16.bf16.f32", "bf16", "bf16", 16, 32, true, selector});
      check({head + "m16n8k16.row.col.f32.tf32.tf32.f32", "tf32", "tf32", 32, 16, true, selector});
    }
}

TEST(SparseMmaSync, Integers) {
  for (std::string a : {"s", "u"})
    for (std::string b : {"s", "u"}) {
      const auto spell = [&](unsigned k, unsigned bits) {
        return fmt::format("mma.sp.sync.aligned.m16n8k{}.row.col.s32.{}{}.{}{}.s32", k, a, bits, b,
                           bits);
      };
      check({spell(64, 8), a, b, 8, 64});
      check({spell(32, 8), a, b, 8, 32, true, 1});
      check({spell(128, 4), a, b, 4, 128});
      check({spell(64, 4), a, b, 4, 64, true, 1});
    }
}

TEST(SparseMmaSync, EightBitContainers) {
  const std::string ordered = "mma.sp::ordered_metadata.sync.aligned.";
  check({ordered + "m16n8k64.row.col.f32.e5m2.e4m3.f32", "e5m2", "e4m3", 8, 64});
  for (std::string a : {"e4m3", "e5m2", "e2m3", "e3m2", "e2m1"})
    for (std::string b : {"e4m3", "e3m2", "e2m1"}) {
      check({ordered + "m16n8k64.row.col.kind::f8f6f4.f32." + a + "." + b + ".f32", a, b, 8, 64});
      check({"mma.sync.aligned.kind::f8f6f4.sp::ordered_metadata.m16n8k64.row.col.f16." + a + "." +
                 b + ".f16",
             a, b, 8, 64, true, 0, true});
    }
}

TEST(SparseMmaSync, BlockScaled) {
  const std::string ordered = "mma.sp::ordered_metadata.sync.aligned.",
                    ones = ", {%r60}, {%rs1, %rs1}, {%r60}, {%rs1, %rs1}"; // ue8m0 0x7F is 1
  const auto scaled = [&](Case c) {
    c.scales = ones;
    check(c);
  };
  scaled({ordered + "m16n8k128.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", "e2m1",
          "e2m1", 4, 128});
  scaled({ordered + "m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32."
                    "ue8m0",
          "e2m1", "e2m1", 4, 128});
  scaled(
      {"mma.sync.aligned.kind::mxf4nvf4.sp::ordered_metadata.block_scale.scale_vec::2X.m16n8k128."
       "row.col.f32.e2m1.e2m1.f32.ue8m0",
       "e2m1", "e2m1", 4, 128});
  scaled({ordered + "m16n8k64.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e3m2.e2m1.f32."
                    "ue8m0",
          "e3m2", "e2m1", 8, 64});
  scaled({"mma.sync.aligned.kind::mxf8f6f4.sp::ordered_metadata.block_scale.scale_vec::1X.m16n8k64."
          "row.col.f32.e4m3.e5m2.f32.ue8m0",
          "e4m3", "e5m2", 8, 64});
}

TEST(MmaSync, SmallIntegersOfEveryShape) {
  for (std::string a : {"s4", "u4"})
    for (std::string b : {"s4", "u4"}) {
      const std::string tail = ".row.col.satfinite.s32." + a + "." + b + ".s32";
      check({"mma.sync.aligned.m16n8k64" + tail, a, b, 4, 64, false});
      check({"mma.sync.aligned.m16n8k32" + tail, a, b, 4, 32, false});
      check({"mma.sync.aligned.m8n8k32" + tail, a, b, 4, 32, false, 0, false, 8});
    }
  check({"mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32", "s8", "u8", 8, 16, false, 0, false, 8});
}

std::string failure(const std::string &instruction) {
  auto program = Program::parse(kernel(instruction + "\n", 2), "t.ptx");
  return program ? "" : program.error().message;
}

TEST(SparseMmaSync, RefusesWhatDoesNotExist) {
  const std::string operands = " {%r0,%r1,%r2,%r3}, {%r0,%r1,%r2,%r3}, {%r0,%r1,%r2,%r3}, "
                               "{%r0,%r1,%r2,%r3}, %r4, ";
  const std::string half = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32" + operands;
  EXPECT_EQ(failure(half + "1;"), "");
  EXPECT_THAT(failure(half + "2;"),
              HasSubstr("the sparsity selector of .m16n8k32 must be below 2"));
  EXPECT_THAT(failure("mma.sp.sync.aligned.m16n8k64.row.col.f32.f16.f16.f32" + operands + "0;"),
              HasSubstr("there is no shape .m16n8k64 for .f16"));
  EXPECT_THAT(failure("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" + operands + "0;"),
              HasSubstr("A of .m16n8k16 expects 2 registers, but got 4"));
}

TEST(SparseMmaSync, UndefinedMetadataMattersWhereItPlacesSomething) {
  const auto message = [](uint32_t element, uint32_t metadata, const char *variant) {
    Simulator simulator;
    uint64_t out = upload(simulator, std::vector<uint32_t>(4), "out");
    const std::string body =
        fmt::format("mov.b32 %r0, {};\nmov.b32 %r1, {};\n"
                    "mma.{}.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {{%r4,%r5,%r6,%r7}}, "
                    "{{%r0,%r0,%r0,%r0}}, {{%r0,%r0,%r0,%r0}}, {{%r0,%r0,%r0,%r0}}, %r1, 0;\n",
                    element, metadata, variant);
    return messageOf(run(simulator, kernel(body, 1), {out}));
  };
  EXPECT_EQ(message(0, 0, "sp"), "no error");
  EXPECT_THAT(message(0x3C003C00, 0, "sp"), HasSubstr("sparse A has metadata 0b0000"));
  EXPECT_EQ(message(0x3C003C00, 0x44444444, "sp::ordered_metadata"), "no error");
  EXPECT_EQ(message(0x3C003C00, 0x11111111, "sp"), "no error");
  EXPECT_THAT(message(0x3C003C00, 0x11111111, "sp::ordered_metadata"),
              HasSubstr("sparse A has metadata 0b0001 for elements 0..3 of row 0"));
}

TEST(MmaSync, Bits) {
  std::mt19937 random(9);
  std::vector<uint32_t> input(32 * 10);
  for (uint32_t &word : input)
    word = uint32_t(random());
  for (bool exclusive : {false, true}) {
    const std::string body = [&] {
      std::string text = "shl.b64 %rd50, %lane64, 2;\nadd.u64 %rd51, %rd50, %p0;\n"
                         "add.u64 %rd50, %rd50, %p1;\n";
      for (unsigned i = 0; i < 10; ++i)
        text += fmt::format("ld.global.u32 %r{}, [%rd50+{}];\n", i, 128 * i);
      text += fmt::format("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.{}.popc "
                          "{{%r20,%r21,%r22,%r23}}, {{%r0,%r1,%r2,%r3}}, {{%r4,%r5}}, "
                          "{{%r6,%r7,%r8,%r9}};\n",
                          exclusive ? "xor" : "and");
      for (unsigned i = 0; i < 4; ++i)
        text += fmt::format("st.global.u32 [%rd51+{}], %r{};\n", 128 * i, 20 + i);
      return text;
    }();
    Simulator simulator;
    uint64_t out = upload(simulator, std::vector<uint32_t>(128), "out");
    uint64_t in = upload(simulator, input, "in");
    auto stats = run(simulator, kernel(body, 2), {out, in});
    ASSERT_TRUE(stats) << messageOf(stats);
    const auto d = download<uint32_t>(simulator, out, 128);
    const auto word = [&](unsigned reg, unsigned lane) { return input[32 * reg + lane]; };
    for (unsigned row = 0; row < 16; ++row)
      for (unsigned column = 0; column < 8; ++column) {
        const unsigned i = row / 8 * 2 + column % 2, lane = row % 8 * 4 + column / 2;
        uint32_t sum = word(6 + i, lane);
        for (unsigned part = 0; part < 8; ++part) { // 32 bits of k each
          const uint32_t a = word(row / 8 + 2 * (part / 4), row % 8 * 4 + part % 4);
          const uint32_t b = word(4 + part / 4, column * 4 + part % 4);
          sum += uint32_t(std::popcount(exclusive ? a ^ b : a & b));
        }
        ASSERT_EQ(d[32 * i + lane], sum) << row << " " << column;
      }
  }
}

TEST(MmaSync, DoublesAreAChainOfFusedMultiplyAdds) {
  for (unsigned k : {4u, 8u, 16u})
    for (unsigned rows : {8u, 16u}) {
      if (rows == 8 && k != 4)
        continue;
      SCOPED_TRACE(fmt::format("m{}n8k{}", rows, k));
      std::mt19937_64 random(k);
      std::normal_distribution<double> normal;
      std::vector<double> a(rows * k), b(8 * k), c(rows * 8);
      for (auto *values : {&a, &b, &c})
        for (double &x : *values)
          x = normal(random);
      const unsigned tall = rows / 8, na = tall * k / 4, nb = k / 4, nc = 2 * tall;
      std::vector<double> input(32 * (na + nb + nc));
      for (unsigned lane = 0; lane < 32; ++lane) {
        const unsigned group = lane / 4, member = lane % 4;
        for (unsigned i = 0; i < na; ++i)
          input[32 * i + lane] = a[(group + (i % tall ? 8 : 0)) * k + member + i / tall * 4];
        for (unsigned i = 0; i < nb; ++i)
          input[32 * (na + i) + lane] = b[group * k + member + 4 * i];
        for (unsigned i = 0; i < nc; ++i)
          input[32 * (na + nb + i) + lane] = c[(group + i / 2 * 8) * 8 + member * 2 + i % 2];
      }
      std::string body = "shl.b64 %rd50, %lane64, 3;\n"
                         "add.u64 %rd51, %rd50, %p0;\nadd.u64 %rd50, %rd50, %p1;\n";
      const auto names = [](unsigned first, unsigned count) {
        std::string text;
        for (unsigned i = 0; i < count; ++i)
          text += fmt::format("{}%fd{}", i ? "," : "{", first + i);
        return text + "}";
      };
      for (unsigned i = 0; i < na + nb + nc; ++i)
        body += fmt::format("ld.global.f64 %fd{}, [%rd50+{}];\n", i, 256 * i);
      body += fmt::format("mma.sync.aligned.m{}n8k{}.row.col.f64.f64.f64.f64 {}, {}, {}, {};\n",
                          rows, k, names(20, nc), names(0, na), names(na, nb), names(na + nb, nc));
      for (unsigned i = 0; i < nc; ++i)
        body += fmt::format("st.global.f64 [%rd51+{}], %fd{};\n", 256 * i, 20 + i);
      Simulator simulator;
      uint64_t out = upload(simulator, std::vector<double>(128), "out");
      uint64_t in = upload(simulator, input, "in");
      auto stats = run(simulator, kernel(body, 2), {out, in});
      ASSERT_TRUE(stats) << messageOf(stats);
      const auto d = download<double>(simulator, out, 128);
      for (unsigned row = 0; row < rows; ++row)
        for (unsigned column = 0; column < 8; ++column) {
          double sum = c[row * 8 + column];
          for (unsigned i = 0; i < k; ++i)
            sum = std::fma(a[row * k + i], b[column * k + i], sum);
          ASSERT_EQ(d[32 * (row / 8 * 2 + column % 2) + row % 8 * 4 + column / 2], sum);
        }
    }
}

TEST(MmaSync, FourProductsOfVolta) {
  // Lane l of product q = l / 4 % 4 has row (or column) r = l % 4 + 4 (l / 16) of A and B.
  for (std::string aLayout : {"row", "col"})
    for (std::string bLayout : {"row", "col"}) {
      SCOPED_TRACE(aLayout + " " + bLayout);
      int a[4][8][4], b[4][4][8];
      std::mt19937 random(1);
      std::vector<uint32_t> input(4 * 32);
      for (auto &product : a)
        for (auto &row : product)
          for (int &x : row)
            x = int(random() % 5) - 2;
      for (auto &product : b)
        for (auto &row : product)
          for (int &x : row)
            x = int(random() % 5) - 2;
      for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned i = 0; i < 4; ++i) {
          const unsigned q = lane / 4 % 4, high = lane < 16 ? 0 : 4, l = lane % 4;
          const int x = aLayout == "row" ? a[q][l + high][i] : a[q][i + high][l];
          const int y = bLayout == "col" ? b[q][i][l + high] : b[q][l][i + high];
          setBits(input[32 * (i / 2) + lane], 16 * (i % 2), 16, encode("f16", x));
          setBits(input[32 * (2 + i / 2) + lane], 16 * (i % 2), 16, encode("f16", y));
        }
      std::string body = "shl.b64 %rd50, %lane64, 2;\nadd.u64 %rd51, %rd50, %p0;\n"
                         "add.u64 %rd50, %rd50, %p1;\nmov.b32 %r9, 0x3F800000;\n";
      for (unsigned i = 0; i < 4; ++i)
        body += fmt::format("ld.global.u32 %r{}, [%rd50+{}];\n", i, 128 * i);
      body += "mma.sync.aligned.m8n8k4." + aLayout + "." + bLayout + ".f32.f16.f16.f32 " +
              list(20, 8) + ", {%r0,%r1}, {%r2,%r3}, {%r9,%r9,%r9,%r9,%r9,%r9,%r9,%r9};\n";
      for (unsigned i = 0; i < 8; ++i)
        body += fmt::format("st.global.u32 [%rd51+{}], %r{};\n", 128 * i, 20 + i);
      Simulator simulator;
      uint64_t out = upload(simulator, std::vector<uint32_t>(256), "out");
      uint64_t in = upload(simulator, input, "in");
      auto stats = run(simulator, kernel(body, 2), {out, in});
      ASSERT_TRUE(stats) << messageOf(stats);
      const auto d = download<uint32_t>(simulator, out, 256);
      for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned i = 0; i < 8; ++i) {
          const unsigned row = (lane & 1) + (i & 2) + (lane < 16 ? 0 : 4);
          const unsigned column = (i & 4) + (lane & 2) + (i & 1), q = lane / 4 % 4;
          int sum = 1;
          for (unsigned k = 0; k < 4; ++k)
            sum += a[q][row][k] * b[q][k][column];
          ASSERT_EQ(std::bit_cast<float>(d[32 * i + lane]), float(sum)) << lane << " " << i;
        }
    }
}

/// p1: A, B at 1024, C at 2048; the same in D's layout comes back.
std::string wmmaBody(const std::string &shape, const std::string &a, const std::string &b,
                     const std::string &c, const std::string &mma, const std::string &reg,
                     const std::string &stride) {
  return ".reg .b64 %b, %c;\nadd.u64 %b, %p1, 1024;\nadd.u64 %c, %p1, 2048;\n"
         "wmma.load.a.sync.aligned.row." +
         shape + ".global." + a + " {" + reg + "0}, [%p1], " + stride +
         ";\nwmma.load.b.sync.aligned.col." + shape + ".global." + b + " {" + reg + "1}, [%b], " +
         stride + ";\nwmma.load.c.sync.aligned.row." + shape + ".global." + c + " {" + reg + "2, " +
         reg + "3}, [%c];\n" + mma + " {" + reg + "4, " + reg + "5}, {" + reg + "0}, {" + reg +
         "1}, {" + reg + "2, " + reg + "3};\nwmma.store.d.sync.aligned.row." + shape + ".global." +
         c + " [%p0], {" + reg + "4, " + reg + "5}, 8;\n";
}

template <typename T> std::vector<T> wmma(const std::string &body, std::vector<uint8_t> input) {
  Simulator simulator;
  uint64_t out = upload(simulator, std::vector<T>(64), "out");
  uint64_t in = upload(simulator, input, "in");
  auto stats = run(simulator, kernel(body, 2), {out, in});
  EXPECT_TRUE(stats) << messageOf(stats);
  return download<T>(simulator, out, 64);
}

TEST(Wmma, SmallIntegers) {
  std::mt19937 random(4);
  std::vector<uint8_t> input(2304);
  for (uint8_t &byte : input)
    byte = uint8_t(random());
  const auto nibbleAt = [&](unsigned base, unsigned row, unsigned k, bool isSigned) {
    const int code = input[base + 16 * row + k / 2] >> (4 * (k % 2)) & 15;
    return isSigned && code > 7 ? code - 16 : code;
  };
  const auto cAt = [&](unsigned i) {
    uint32_t c;
    std::memcpy(&c, &input[2048 + 4 * i], 4);
    return c;
  };
  const auto d =
      wmma<uint32_t>(wmmaBody("m8n8k32", "s4", "u4", "s32",
                              "wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.u4.s32", "%r", "32"),
                     input);
  const auto bits = wmma<uint32_t>(
      wmmaBody("m8n8k128", "b1", "b1", "s32",
               "wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32", "%r", "128"),
      input);
  for (unsigned i = 0; i < 64; ++i) {
    uint32_t sum = cAt(i), count = cAt(i);
    for (unsigned k = 0; k < 32; ++k)
      sum += uint32_t(nibbleAt(0, i / 8, k, true) * nibbleAt(1024, i % 8, k, false));
    for (unsigned k = 0; k < 16; ++k)
      count += uint32_t(
          std::popcount(uint8_t(input[16 * (i / 8) + k] ^ input[1024 + 16 * (i % 8) + k])));
    EXPECT_EQ(d[i], sum) << i;
    EXPECT_EQ(bits[i], count) << i;
  }
}

TEST(Wmma, Doubles) {
  std::vector<double> values(320);
  std::mt19937_64 random(6);
  std::normal_distribution<double> normal;
  for (double &x : values)
    x = normal(random);
  std::vector<uint8_t> input(8 * values.size());
  std::memcpy(input.data(), values.data(), input.size());
  const auto d =
      wmma<double>(wmmaBody("m8n8k4", "f64", "f64", "f64",
                            "wmma.mma.sync.aligned.row.col.m8n8k4.rn.f64.f64.f64.f64", "%fd", "4"),
                   input);
  for (unsigned i = 0; i < 64; ++i) {
    double sum = values[256 + i];
    for (unsigned k = 0; k < 4; ++k)
      sum = std::fma(values[i / 8 * 4 + k], values[128 + i % 8 * 4 + k], sum);
    EXPECT_EQ(d[i], sum) << i;
  }
}

} // namespace
