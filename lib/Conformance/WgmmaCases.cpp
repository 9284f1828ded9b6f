//===- WgmmaCases.cpp - wgmma.mma_async in all types and operand layouts --===//
//
// A warpgroup accumulates two GEMMs of 64 x K by K x N into registers and writes them out. Operands
// with small integers have exact sums, which are checked here; operands with random bits (moderate
// exponents, or any: NaN and infinities included) give images that must be the same on every
// device. A sparse A is stored as half of its K, which random metadata chooses.
//
//===----------------------------------------------------------------------===//

#include "Elements.h"
#include "fp4/ISA/SmemDescriptor.h"

#include <bit>

namespace fp4::cts {
namespace {

using hw::SwizzleMode;

const Element kBits{"b1", 8, {0, 1, 3, 7, 15}, 0xFF, 0}; ///< eight of them

struct Case {
  Element a, b;
  const char *result = "f32";
  unsigned n = 64;
  SwizzleMode swizzle = SwizzleMode::B128;
  bool aFromRegisters = false, transposeA = false, transposeB = false;
  int scaleA = 1, scaleB = 1;
  bool saturate = false;
  int selector = -1; ///< selector of the lanes that hold the metadata of a sparse A; -1: A is dense

  bool sparse() const { return selector >= 0; }
  unsigned kOfB() const { return sparse() ? 2 * k() : k(); }
  bool halfResult() const { return std::string_view(result) == "f16"; }
  bool integer() const { return std::string_view(result) == "s32"; }
  bool halves() const { return a.bytes() == 2; }
  unsigned k() const { return hw::mmaRowBytes / a.bytes(); } ///< single bits count as bytes here
  unsigned registers() const { return n / (halfResult() ? 4 : 2); }
  std::string name() const {
    std::string text = std::string(a.name) + "_" + b.name + "_" + result + "_n" + std::to_string(n);
    text += "_" + std::string(hw::stringify(swizzle));
    text += aFromRegisters ? "_registers" : transposeA ? "_ta" : "";
    text += transposeB ? "_tb" : "";
    text += sparse() ? "_sparse" + std::to_string(selector) : "";
    text += scaleA < 0 || scaleB < 0 ? "_negative" : "";
    return text + (saturate ? "_saturate" : "");
  }
};

constexpr unsigned kRows = 64, kThreads = 128;
constexpr unsigned kRegionBytes = 40960; ///< bytes of shared memory
constexpr unsigned kRegionOfB = 8192;    ///< place of B in shared memory

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

std::string multiply(const Case &c) {
  const unsigned k = std::string_view(c.a.name) == "b1" ? 256 : c.kOfB();
  std::string text = "wgmma.mma_async" + std::string(c.sparse() ? ".sp" : "") +
                     ".sync.aligned.m64n" + std::to_string(c.n) + "k" + std::to_string(k) +
                     (c.saturate ? ".satfinite" : "") + "." + c.result + "." + c.a.name + "." +
                     c.b.name + (k == 256 ? ".and.popc " : " ");
  text += registerList("%d", c.registers()) + ", " +
          (c.aFromRegisters ? registerList("%a", 4) : "%da") + ", %db";
  text += c.sparse() ? ", %meta, " + std::to_string(c.selector) + ", %p" : ", %p";
  if (!c.integer())
    text += ", " + std::to_string(c.scaleA) + ", " + std::to_string(c.scaleB);
  if (c.halves())
    text += (c.aFromRegisters ? ""
             : c.transposeA   ? ", 1"
                              : ", 0") +
            std::string(c.transposeB ? ", 1" : ", 0");
  return text + ";\n";
}

/// The head of the kernel; it ends before the size of the image.
constexpr const char *kCopyImage = R"(.version 8.4
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 dynamic[];
.visible .entry wgmma(.param .u64 image, .param .u64 a, .param .u64 c, .param .u64 out,
    .param .u64 descA, .param .u64 descB, .param .u32 accumulate) {
  .reg .b32 %t, %v, %i, %base, %at, %meta, %a<4>, %d<128>;
  .reg .b64 %image, %pa, %pc, %out, %o, %w, %da, %db; .reg .pred %p, %more;
  ld.param.u64 %image, [image]; ld.param.u64 %pa, [a]; ld.param.u64 %pc, [c];
  ld.param.u64 %out, [out]; ld.param.u64 %da, [descA]; ld.param.u64 %db, [descB];
  ld.param.u32 %v, [accumulate];
  setp.ne.u32 %p, %v, 0;
  mov.u32 %t, %tid.x;
  mov.u32 %base, dynamic;
  shl.b32 %i, %t, 2;
COPY:
  cvt.u64.u32 %o, %i;
  add.u64 %o, %image, %o;
  ld.global.u32 %v, [%o];
  add.u32 %at, %base, %i;
  st.shared.u32 [%at], %v;
  add.u32 %i, %i, 512;
  setp.lt.u32 %more, %i, )";
/// The text behind this size; it ends before the distance of the threads in C and D.
constexpr const char *kLoadOperands = R"(;
  @%more bra COPY;
  fence.proxy.async;
  bar.sync 0;
  shr.u32 %v, %base, 4;
  cvt.u64.u32 %w, %v;
  add.u64 %da, %da, %w;
  add.u64 %db, %db, %w;
  mul.wide.u32 %o, %t, 4;
  add.u64 %o, %pa, %o;
  ld.global.u32 %meta, [%o+2048];
  mul.wide.u32 %o, %t, 16;
  add.u64 %pa, %pa, %o;
  ld.global.v4.u32 {%a0, %a1, %a2, %a3}, [%pa];
  mul.wide.u32 %o, %t, )";

/// Thread t loads its registers of C at c + t * R words, of A at a + 4 t words and the metadata
/// after A of all threads; copies the image of shared memory; multiplies twice (the first time with
/// scale-d = `accumulate`); stores D.
std::string kernelText(const Case &c) {
  const std::string threadBytes = std::to_string(4 * c.registers());
  std::string text = kCopyImage + std::to_string(kRegionBytes) + kLoadOperands + threadBytes +
                     ";\n  add.u64 %pc, %pc, %o;\n  add.u64 %out, %out, %o;\n";
  for (unsigned i = 0; i < c.registers(); ++i)
    text += "  ld.global.u32 %d" + std::to_string(i) + ", [%pc+" + std::to_string(4 * i) + "];\n";
  text += "  wgmma.fence.sync.aligned;\n  " + multiply(c) + "  setp.eq.u32 %p, %t, %t;\n  " +
          multiply(c) + "  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;\n";
  for (unsigned i = 0; i < c.registers(); ++i)
    text += "  st.global.u32 [%out+" + std::to_string(4 * i) + "], %d" + std::to_string(i) + ";\n";
  return text + "  ret;\n}\n";
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

hw::SmemDescriptor descriptorOf(const Case &c, bool ofB) {
  const unsigned start = ofB ? kRegionOfB : 0;
  if (ofB ? c.transposeB : c.transposeA)
    return hw::SmemDescriptor::mnMajorOperand(c.swizzle, ofB ? c.kOfB() : c.k(), start);
  auto d = hw::SmemDescriptor::kMajorOperand(c.swizzle, start);
  if (ofB && c.sparse() && c.swizzle == SwizzleMode::None)
    d.strideByteOffset = 512; // four columns of 16 bytes in eight rows
  return d;
}

void place(const Case &c, const Element &e, const std::vector<uint64_t> &codes, bool ofB,
           Bytes &image) {
  const hw::SmemDescriptor d = descriptorOf(c, ofB);
  const unsigned k = ofB ? c.kOfB() : c.k();
  const bool transposed = ofB ? c.transposeB : c.transposeA;
  for (unsigned i = 0; i < codes.size(); ++i) {
    const unsigned at = transposed ? d.transposedAddress(i / k, i % k, e.bytes())
                                   : d.operandAddress(i / k, i % k * e.bytes());
    ASSERT_LE(at + e.bytes(), image.size());
    std::memcpy(&image[at], &codes[i], e.bytes());
  }
}

/// A as the registers of the 128 threads hold it (PTX ISA, wgmma register fragments).
std::vector<uint32_t> fragments(const Case &c, const std::vector<uint64_t> &codes) {
  std::vector<uint32_t> words(kThreads * 4);
  for (unsigned t = 0; t < kThreads; ++t)
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = t / 32 * 16 + t % 32 / 4 + i % 2 * 8;
      const unsigned first = (4 * (t % 4) + 16 * (i / 2)) / c.a.bytes();
      for (unsigned j = 0; j < 4 / c.a.bytes(); ++j)
        words[4 * t + i] |= uint32_t(codes[row * c.k() + first + j]) << (8 * c.a.bytes() * j);
    }
  return words;
}

//===----------------------------------------------------------------------===//
// Metadata of a sparse A: four bits for a chunk of 4 elements of K (of 2 with 32 bits)
//===----------------------------------------------------------------------===//

unsigned chunksOf(const Case &c) { return c.kOfB() / (c.a.bytes() == 4 ? 2 : 4); }

/// The meaning of every chunk, row by row.
std::vector<uint8_t> makeMetadata(const Case &c) {
  static constexpr uint8_t kPairs[] = {0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110};
  static constexpr uint8_t kSingle[] = {0b0100, 0b1110};
  if (!c.sparse())
    return {};
  const Bytes random = patternBytes(size_t(kRows) * chunksOf(c), 7);
  std::vector<uint8_t> nibbles;
  for (std::byte x : random)
    nibbles.push_back(c.a.bytes() == 4 ? kSingle[uint8_t(x) % 2] : kPairs[uint8_t(x) % 6]);
  return nibbles;
}

/// The registers of the 128 threads (PTX ISA, sparse wgmma metadata layout).
std::vector<uint32_t> metadataWords(const Case &c, const std::vector<uint8_t> &nibbles) {
  std::vector<uint32_t> words(kThreads, ~0u);
  const auto nibbleAt = [&](unsigned row, unsigned chunk) {
    return uint32_t(nibbles[row * chunksOf(c) + chunk]);
  };
  for (unsigned t = 0; t < kThreads && c.sparse(); ++t) {
    const unsigned member = t % 4, row = t / 32 * 16 + t % 32 / 4;
    if (c.a.bytes() > 1 && member / 2 != unsigned(c.selector))
      continue; // no test looks at these
    words[t] = 0;
    for (unsigned i = 0; i < 8; ++i)
      words[t] |= (c.a.bytes() > 1 ? nibbleAt(row + 8 * (i / 4), 4 * (member % 2) + i % 4)
                                   : nibbleAt(row + 8 * (member % 2), 8 * (member / 2) + i))
                  << (4 * i);
  }
  return words;
}

/// The k that stored element `i` of a row stands for.
unsigned placeOf(const Case &c, const std::vector<uint8_t> &nibbles, unsigned row, unsigned i) {
  if (!c.sparse())
    return i;
  if (c.a.bytes() == 4)
    return 2 * i + (nibbles[row * chunksOf(c) + i] == 0b1110);
  return i / 2 * 4 + (nibbles[row * chunksOf(c) + i / 2] >> (2 * (i % 2)) & 3);
}

/// Twice the product, plus C unless it is left out; single bits count common ones.
int expected(const Case &c, const std::vector<uint64_t> &a, const std::vector<uint64_t> &b,
             const std::vector<uint8_t> &metadata, unsigned row, unsigned column) {
  int sum = 0;
  for (unsigned i = 0; i < c.k(); ++i) {
    const uint64_t x = a[row * c.k() + i];
    const uint64_t y = b[column * c.kOfB() + placeOf(c, metadata, row, i)];
    sum +=
        std::string_view(c.a.name) == "b1" ? std::popcount(x & y) : c.a.valueOf(x) * c.b.valueOf(y);
  }
  return 2 * sum * c.scaleA * c.scaleB;
}

int16_t halfOf(uint32_t word, unsigned index) { return int16_t(word >> (16 * index)); }

/// Element (row, column) of D as an integer; -9999 when it is none.
int resultAt(const Case &c, std::span<const uint32_t> d, unsigned row, unsigned column) {
  const unsigned t = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
  const unsigned element = column / 8 * 4 + row % 16 / 8 * 2 + column % 2;
  const uint32_t word = d[t * c.registers() + (c.halfResult() ? element / 2 : element)];
  if (c.integer())
    return int(word);
  const float value = c.halfResult() ? float(std::bit_cast<_Float16>(halfOf(word, element % 2)))
                                     : std::bit_cast<float>(word);
  return value == float(int(value)) ? int(value) : -9999;
}

/// C of random accumulators: moderate floats, any integers.
std::vector<uint32_t> makeC(const Case &c, Data data, uint32_t seed) {
  const Bytes random = patternBytes(size_t(kThreads) * c.registers() * 4, seed);
  std::vector<uint32_t> words(kThreads * c.registers());
  std::memcpy(words.data(), random.data(), random.size());
  for (uint32_t &word : words)
    if (data == Data::Moderate && !c.integer())
      word = c.halfResult() ? (word & 0x8FFF8FFF) | 0x30003000 : (word & 0x83FFFFFF) | 0x3C000000;
  return words;
}

void run(const Case &c, Data data, const char *suffix) {
  const auto a = makeCodes(c.a, kRows * c.k(), data, 1),
             b = makeCodes(c.b, c.n * c.kOfB(), data, 2);
  Bytes image(kRegionBytes, std::byte{0});
  place(c, c.a, a, false, image);
  place(c, c.b, b, true, image);
  const auto metadata = makeMetadata(c);
  auto words = fragments(c, a);
  const auto lanes = metadataWords(c, metadata);
  words.insert(words.end(), lanes.begin(), lanes.end());
  Buffer imageBuffer(image), aBuffer(bytesOf(words));
  Buffer cBuffer(bytesOf(makeC(c, data, 3))), out(size_t(kThreads) * c.registers() * 4, 0xcc);
  Params params;
  params.add(imageBuffer.address()).add(aBuffer.address()).add(cBuffer.address());
  params.add(out.address());
  params.add(descriptorOf(c, false).encodeWgmma());
  params.add(descriptorOf(c, true).encodeWgmma());
  params.add(uint32_t(data != Data::Exact));
  rt::LaunchShape shape;
  shape.block = {kThreads, 1, 1};
  shape.dynamicSharedBytes = kRegionBytes;
  ASSERT_TRUE(runKernel(kernelText(c), "wgmma", shape, params));
  const Bytes d = out.read();
  saveImage("wgmma_" + c.name() + suffix, d);
  if (data != Data::Exact)
    return;
  for (unsigned row = 0; row < kRows; ++row)
    for (unsigned column = 0; column < c.n; ++column)
      ASSERT_EQ(resultAt(c, view<uint32_t>(d), row, column),
                expected(c, a, b, metadata, row, column))
          << "row " << row << " column " << column;
}

class CtsWgmma : public testing::TestWithParam<Case> {};

TEST_P(CtsWgmma, Exact) { run(GetParam(), Data::Exact, "_exact"); }
TEST_P(CtsWgmma, Moderate) { run(GetParam(), Data::Moderate, "_moderate"); }
TEST_P(CtsWgmma, Bits) { run(GetParam(), Data::Bits, "_bits"); }

/// Adds every type, both selectors if there are two, swizzles and majors that hold 64 bytes of K.
void addSparse(std::vector<Case> &all) {
  const std::pair<Element, Element> pairs[] = {{kF16, kF16},   {kBF16, kBF16}, {kTF32, kTF32},
                                               {kE4M3, kE5M2}, {kE5M2, kE4M3}, {kS8, kU8},
                                               {kU8, kS8}};
  for (const auto &[a, b] : pairs)
    for (int selector = 0; selector < (a.bytes() > 1 ? 2 : 1); ++selector) {
      Case c{a, b, a.codes[1] == 1 ? "s32" : "f32"};
      c.selector = selector;
      c.aFromRegisters = selector == 0;
      all.push_back(c);
    }
  for (SwizzleMode swizzle : {SwizzleMode::None, SwizzleMode::B64, SwizzleMode::B128}) {
    Case c{kF16, kF16, "f16"};
    c.swizzle = swizzle;
    c.selector = 1;
    all.push_back(c);
    c.transposeA = c.transposeB = true;
    all.push_back(c);
  }
}

/// Adds every pair of types, A from shared memory and from registers, with the results that it has.
void addTypes(std::vector<Case> &all) {
  const std::pair<Element, Element> pairs[] = {{kF16, kF16},   {kBF16, kBF16}, {kTF32, kTF32},
                                               {kE4M3, kE4M3}, {kE4M3, kE5M2}, {kE5M2, kE4M3},
                                               {kE5M2, kE5M2}, {kS8, kS8},     {kS8, kU8},
                                               {kU8, kS8},     {kU8, kU8},     {kBits, kBits}};
  for (const auto &[a, b] : pairs)
    for (bool fromRegisters : {false, true}) {
      const bool integer = a.codes[1] == 1;
      Case c{a, b, integer ? "s32" : "f32"};
      c.aFromRegisters = fromRegisters;
      all.push_back(c);
      const std::string_view name = a.name;
      if (name == "f16" || name == "e4m3" || name == "e5m2") {
        c.result = "f16";
        all.push_back(c);
      }
      if (integer && name != "b1") {
        c.saturate = true;
        all.push_back(c);
      }
    }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  addSparse(all);
  addTypes(all);
  for (SwizzleMode swizzle :
       {SwizzleMode::None, SwizzleMode::B32, SwizzleMode::B64, SwizzleMode::B128})
    for (int major = 0; major < 4; ++major) {
      Case c{kBF16, kBF16};
      c.swizzle = swizzle;
      c.transposeA = major & 1;
      c.transposeB = major & 2;
      if (swizzle != SwizzleMode::B128 || major)
        all.push_back(c);
    }
  for (unsigned n : {8, 24, 128, 256}) {
    Case c{kF16, kF16};
    c.n = n;
    c.scaleA = n == 8 || n == 128 ? -1 : 1;
    c.scaleB = n == 24 ? -1 : 1;
    all.push_back(c);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(, CtsWgmma, testing::ValuesIn(cases()),
                         [](const auto &info) { return info.param.name(); });

} // namespace
} // namespace fp4::cts
