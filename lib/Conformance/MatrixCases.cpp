//===- MatrixCases.cpp - wmma, ldmatrix, stmatrix, movmatrix --------------===//
//
// wmma loads matrices from memory, multiplies and stores D: every type and shape, rows and columns
// contiguous, with gaps between them. The moves of 8x8 matrices take their rows from all over a
// tile of shared memory. Sets of data: Elements.h.
//
//===----------------------------------------------------------------------===//

#include "Elements.h"

namespace fp4::cts {
namespace {

constexpr unsigned kLanes = 32, kTiles = 2; ///< tiles of each set of data

//===----------------------------------------------------------------------===//
// wmma
//===----------------------------------------------------------------------===//

struct Shape {
  unsigned m, n, k;
};

struct Case {
  Element a, b, c, d;
  Shape shape;
  bool aByRow = true, bByRow = false, cByRow = true; ///< operands that lie contiguously
  bool saturate = false;
  std::string bitwise = {}, rounding = {};

  std::string shapeName() const {
    return "m" + std::to_string(shape.m) + "n" + std::to_string(shape.n) + "k" +
           std::to_string(shape.k);
  }
  std::string name() const {
    std::string text = shapeName() + "_" + a.name + "_" + b.name + "_" + c.name + "_" + d.name;
    for (bool byRow : {aByRow, bByRow, cByRow})
      text += byRow ? "_row" : "_col";
    text += rounding.empty() ? "" : "_" + rounding;
    return text + (bitwise.empty() ? "" : "_" + bitwise) + (saturate ? "_saturate" : "");
  }
};

const char *layoutName(bool byRow) { return byRow ? "row" : "col"; }

/// A matrix in memory: rows (or columns) of contiguous elements, 16 bytes more apart than they
/// need.
struct Matrix {
  Element element;
  unsigned rows, columns;
  bool byRow;

  unsigned stride() const { return (byRow ? columns : rows) + 128 / element.bits; }
  size_t bytes() const {
    const size_t used = size_t(stride()) * (byRow ? rows : columns) * element.bits / 8;
    return (used + 255) / 256 * 256;
  }
  size_t bitOf(unsigned row, unsigned column) const {
    return size_t(byRow ? row * stride() + column : column * stride() + row) * element.bits;
  }
};

enum Operand { A, B, C, D };

Matrix matrixOf(const Case &c, Operand operand) {
  const auto &[m, n, k] = c.shape;
  switch (operand) {
  case A:
    return {c.a, m, k, c.aByRow};
  case B:
    return {c.b, k, n, c.bByRow};
  case C:
    return {c.c, m, n, c.cByRow};
  case D:
    return {c.d, m, n, c.cByRow};
  }
  return {};
}

/// Registers of a fragment: each element once, but always eight for f16 factors.
unsigned registersOf(const Case &c, Operand operand) {
  const Matrix matrix = matrixOf(c, operand);
  if (matrix.element.is("f16") && operand < C)
    return 8;
  const unsigned wordBits = matrix.element.bits == 64 ? 64 : 32;
  return matrix.rows * matrix.columns * matrix.element.bits / (kLanes * wordBits);
}

std::string multiply(const Case &c) {
  std::string text = "wmma.mma" + (c.bitwise.empty() ? "" : "." + c.bitwise + ".popc");
  text += std::string(".sync.aligned.") + layoutName(c.aByRow) + "." + layoutName(c.bByRow) + "." +
          c.shapeName() + (c.rounding.empty() ? "" : "." + c.rounding) + "." + c.d.name;
  if (!c.a.is("f16"))
    text += std::string(".") + c.a.name + "." + c.b.name;
  return text + "." + c.c.name + (c.saturate ? ".satfinite " : " ") +
         registerList("%d", registersOf(c, D)) + ", " + registerList("%a", registersOf(c, A)) +
         ", " + registerList("%b", registersOf(c, B)) + ", " +
         registerList("%c", registersOf(c, C)) + ";\n";
}

/// A load or store at `at` bytes from %in or %out.
std::string transfer(const Case &c, Operand operand, size_t at) {
  static constexpr char kNames[] = "abcd";
  const Matrix matrix = matrixOf(c, operand);
  const std::string letter(1, kNames[operand]),
      fragment = registerList(("%" + letter).c_str(), registersOf(c, operand)),
      address = (operand == D ? "[%out+" : "[%in+") + std::to_string(at) + "]";
  return std::string("  wmma.") + (operand == D ? "store." : "load.") + letter + ".sync.aligned." +
         layoutName(matrix.byRow) + "." + c.shapeName() + ".global." + matrix.element.name + " " +
         (operand == D ? address + ", " + fragment : fragment + ", " + address) + ", " +
         std::to_string(matrix.stride()) + ";\n";
}

std::string kernelText(const Case &c) {
  const std::string type = c.a.bits == 64 ? "f64" : "b32";
  size_t in = 0;
  std::string loads;
  for (Operand operand : {A, B, C}) {
    loads += transfer(c, operand, in);
    in += matrixOf(c, operand).bytes();
  }
  return ".version 8.4\n.target sm_90a\n.address_size 64\n"
         ".visible .entry wmma(.param .u64 in, .param .u64 out) {\n  .reg ." +
         type + " %a<8>, %b<8>, %c<8>, %d<8>;" + R"(
  .reg .b32 %t;
  .reg .b64 %in, %out, %o;
  ld.param.u64 %in, [in]; ld.param.u64 %out, [out];
  mov.u32 %t, %ctaid.x;
  mul.wide.u32 %o, %t, )" +
         std::to_string(in) + ";\n  add.u64 %in, %in, %o;\n  mul.wide.u32 %o, %t, " +
         std::to_string(matrixOf(c, D).bytes()) + ";\n  add.u64 %out, %out, %o;\n" + loads + "  " +
         multiply(c) + transfer(c, D, 0) + "  ret;\n}\n";
}

void fillMatrix(const Matrix &matrix, Bytes &bytes, size_t at, Data data, uint32_t seed) {
  const auto codes = makeCodes(matrix.element, size_t(matrix.rows) * matrix.columns, data, seed);
  for (unsigned i = 0; i < codes.size(); ++i)
    setBits(bytes, 8 * at + matrix.bitOf(i / matrix.columns, i % matrix.columns),
            matrix.element.bits, codes[i]);
}

/// A, B and C of all tiles, one after the other.
Bytes makeOperands(const Case &c) {
  Bytes in;
  uint32_t seed = 0;
  for (const auto &[data, suffix] : kAllData)
    for (unsigned tile = 0; tile < kTiles; ++tile)
      for (Operand operand : {A, B, C}) {
        const Matrix matrix = matrixOf(c, operand);
        in.resize(in.size() + matrix.bytes());
        fillMatrix(matrix, in, in.size() - matrix.bytes(), data, seed++);
      }
  return in;
}

/// Checks the first tile of all.
void checkGemm(const Case &c, const Bytes &in, const Bytes &out) {
  const Matrix a = matrixOf(c, A), b = matrixOf(c, B), addend = matrixOf(c, C), d = matrixOf(c, D);
  const auto valueAt = [&](const Matrix &matrix, size_t at, unsigned row, unsigned column) {
    return matrix.element.valueOf(
        getBits(in, 8 * at + matrix.bitOf(row, column), matrix.element.bits));
  };
  for (unsigned row = 0; row < c.shape.m; ++row)
    for (unsigned column = 0; column < c.shape.n; ++column) {
      int sum = valueAt(addend, a.bytes() + b.bytes(), row, column);
      for (unsigned k = 0; k < c.shape.k; ++k) {
        const int x = valueAt(a, 0, row, k), y = valueAt(b, a.bytes(), k, column);
        sum += c.bitwise == "xor" ? x ^ y : x * y;
      }
      ASSERT_EQ(d.element.decode(getBits(out, d.bitOf(row, column), d.element.bits)), sum)
          << "row " << row << " column " << column;
    }
}

class CtsWmma : public testing::TestWithParam<Case> {};

TEST_P(CtsWmma, Product) {
  const Case &c = GetParam();
  const Bytes in = makeOperands(c);
  const size_t part = kTiles * matrixOf(c, D).bytes();
  Buffer inBuffer(in), out(std::size(kAllData) * part, 0xcc);
  Params params;
  params.add(inBuffer.address()).add(out.address());
  rt::LaunchShape shape;
  shape.grid = {unsigned(std::size(kAllData)) * kTiles, 1, 1};
  shape.block = {kLanes, 1, 1};
  ASSERT_TRUE(runKernel(kernelText(c), "wmma", shape, params));
  const Bytes d = out.read();
  for (const auto &[data, suffix] : kAllData)
    saveImage("wmma_" + c.name() + suffix, std::span(d).subspan(size_t(data) * part, part));
  checkGemm(c, in, d);
}

void addFloats(std::vector<Case> &all) {
  const std::pair<Element, Element> results[] = {
      {kF32, kF32}, {kF16, kF16}, {kF16, kF32}, {kF32, kF16}};
  for (const auto &[c, d] : results)
    for (const Shape shape : {Shape{16, 16, 16}, Shape{8, 32, 16}, Shape{32, 8, 16}})
      all.push_back({kF16, kF16, c, d, shape});
  for (unsigned layouts = 0; layouts < 8; ++layouts)
    if (layouts != 5) // layout 5 is above
      all.push_back({kF16,
                     kF16,
                     kF32,
                     kF32,
                     {16, 16, 16},
                     bool(layouts & 1),
                     bool(layouts & 2),
                     bool(layouts & 4)});
  for (const Shape shape : {Shape{16, 16, 16}, Shape{8, 32, 16}, Shape{32, 8, 16}})
    all.push_back({kBF16, kBF16, kF32, kF32, shape, false, true});
  for (bool row : {false, true})
    all.push_back({kTF32, kTF32, kF32, kF32, {16, 16, 8}, row, row});
  for (const char *rounding : {"", "rn", "rz", "rm", "rp"})
    all.push_back({kF64, kF64, kF64, kF64, {8, 8, 4}, true, false, true, false, "", rounding});
}

void addIntegers(std::vector<Case> &all) {
  for (const auto &[a, b] : {std::pair(kS8, kS8), std::pair(kU8, kU8)})
    for (const Shape shape : {Shape{16, 16, 16}, Shape{8, 32, 16}, Shape{32, 8, 16}})
      for (bool saturate : {false, true})
        all.push_back({a, b, kS32, kS32, shape, saturate, saturate, true, saturate});
  for (const auto &[a, b] : {std::pair(kS4, kS4), std::pair(kU4, kU4)})
    for (bool saturate : {false, true})
      all.push_back({a, b, kS32, kS32, {8, 8, 32}, true, false, !saturate, saturate});
  for (const char *bitwise : {"and", "xor"})
    all.push_back({kB1, kB1, kS32, kS32, {8, 8, 128}, true, false, true, false, bitwise});
}

std::vector<Case> cases() {
  std::vector<Case> all;
  addFloats(all);
  addIntegers(all);
  return all;
}

INSTANTIATE_TEST_SUITE_P(, CtsWmma, testing::ValuesIn(cases()),
                         [](const auto &info) { return info.param.name(); });

//===----------------------------------------------------------------------===//
// Moves of 8x8 matrices
//===----------------------------------------------------------------------===//

constexpr unsigned kSharedBytes = 2048, kRowBytes = 16;

/// The input of a kernel: shared memory, and for every lane the place of a row in it and four
/// registers.
struct MoveInput {
  uint8_t shared[kSharedBytes];
  uint32_t rows[kLanes];
  uint32_t registers[4][kLanes];
};
/// The output of a kernel.
struct MoveOutput {
  uint32_t registers[4][kLanes];
  uint8_t shared[kSharedBytes];
};

MoveInput makeInput() {
  MoveInput input;
  const Bytes random = patternBytes(sizeof(input), 5);
  std::memcpy(&input, random.data(), random.size());
  for (unsigned lane = 0; lane < kLanes; ++lane) // each row once
    input.rows[lane] = (lane * 37 + 11) % (kSharedBytes / kRowBytes) * kRowBytes;
  return input;
}

const char *const kLoadAll = R"(.version 8.4
.target sm_90a
.address_size 64
.visible .entry move(.param .u64 in, .param .u64 out) {
  .shared .align 128 .b8 tile[2048];
  .reg .b32 %t, %base, %at, %row, %i, %v, %r<4>;
  .reg .b64 %in, %out, %o;
  .reg .pred %more;
  ld.param.u64 %in, [in]; ld.param.u64 %out, [out];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %o, %t, 4;
  add.u64 %in, %in, %o;
  add.u64 %out, %out, %o;
  mov.u32 %base, tile;
  ld.global.u32 %row, [%in+2048];
  add.u32 %row, %row, %base;
  mad.lo.u32 %at, %t, 4, %base;
  mov.u32 %i, 0;
FILL:
  ld.global.u32 %v, [%in];
  st.shared.u32 [%at], %v;
  add.u64 %in, %in, 128;
  add.u32 %at, %at, 128;
  add.u32 %i, %i, 1;
  setp.lt.u32 %more, %i, 16;
  @%more bra FILL;
  ld.global.u32 %r0, [%in+128];
  ld.global.u32 %r1, [%in+256];
  ld.global.u32 %r2, [%in+384];
  ld.global.u32 %r3, [%in+512];
  bar.sync 0;
  )";

const char *const kStoreAll = R"(
  bar.sync 0;
  st.global.u32 [%out], %r0;
  st.global.u32 [%out+128], %r1;
  st.global.u32 [%out+256], %r2;
  st.global.u32 [%out+384], %r3;
  mad.lo.u32 %at, %t, 4, %base;
READ:
  ld.shared.u32 %v, [%at];
  st.global.u32 [%out+512], %v;
  add.u64 %out, %out, 128;
  add.u32 %at, %at, 128;
  sub.u32 %i, %i, 1;
  setp.gt.u32 %more, %i, 0;
  @%more bra READ;
  ret;
}
)";

/// A kernel whose `instruction` works on %r0 to %r3, and on rows at %row.
std::string moveKernel(const std::string &instruction) {
  return kLoadAll + instruction + kStoreAll;
}

void runMove(const std::string &name, const std::string &instruction, const MoveOutput &expected) {
  const std::vector<MoveInput> input{makeInput()};
  Buffer in(bytesOf(input)), out(sizeof(MoveOutput), 0xcc);
  Params params;
  params.add(in.address()).add(out.address());
  rt::LaunchShape shape;
  shape.block = {kLanes, 1, 1};
  ASSERT_TRUE(runKernel(moveKernel(instruction), "move", shape, params));
  const Bytes result = out.read();
  saveImage(name, result);
  EXPECT_EQ(0, std::memcmp(result.data(), &expected, sizeof(expected)));
}

/// The output without any change by an instruction.
MoveOutput unchanged(const MoveInput &input) {
  MoveOutput output;
  std::memcpy(output.registers, input.registers, sizeof(output.registers));
  std::memcpy(output.shared, input.shared, sizeof(output.shared));
  return output;
}

/// The bytes of matrix `i` in shared memory that half `h` of lane `lane` holds.
uint8_t *halfOf(uint8_t *shared, const MoveInput &input, unsigned i, unsigned lane, unsigned h,
                bool transposed) {
  const unsigned major = lane / 4, minor = lane % 4 * 2 + h;
  const unsigned row = transposed ? minor : major, column = transposed ? major : minor;
  return shared + input.rows[8 * i + row] + 2 * column;
}

/// Tests ldmatrix or stmatrix of 1, 2 and 4 matrices, as they are and transposed.
void moveRows(bool load) {
  for (unsigned count : {1u, 2u, 4u})
    for (bool transposed : {false, true}) {
      const MoveInput input = makeInput();
      MoveOutput expected = unchanged(input);
      for (unsigned i = 0; i < count; ++i)
        for (unsigned lane = 0; lane < kLanes; ++lane)
          for (unsigned h = 0; h < 2; ++h) {
            auto *held = reinterpret_cast<uint8_t *>(&expected.registers[i][lane]) + 2 * h;
            uint8_t *cell = halfOf(expected.shared, input, i, lane, h, transposed);
            std::memcpy(load ? held : cell, load ? cell : held, 2);
          }
      const std::string move = load ? "ldmatrix" : "stmatrix", n = std::to_string(count);
      const std::string list = registerList("%r", count);
      runMove(move + "_x" + n + (transposed ? "_trans" : ""),
              move + ".sync.aligned.m8n8.x" + n + (transposed ? ".trans" : "") + ".shared.b16 " +
                  (load ? list + ", [%row];" : "[%row], " + list + ";"),
              expected);
    }
}

TEST(CtsLdmatrix, LoadsEightRowsOfEachMatrix) { moveRows(true); }
TEST(CtsStmatrix, StoresEightRowsOfEachMatrix) { moveRows(false); }

TEST(CtsMovmatrix, Transposes) {
  const MoveInput input = makeInput();
  MoveOutput expected = unchanged(input);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    uint32_t halves[2]; // of rows 2 (lane % 4) and the next, column lane / 4
    for (unsigned h = 0; h < 2; ++h)
      halves[h] =
          input.registers[1][(lane % 4 * 2 + h) * 4 + lane / 8] >> (16 * (lane / 4 % 2)) & 0xFFFF;
    expected.registers[0][lane] = halves[0] | halves[1] << 16;
  }
  runMove("movmatrix_trans", "movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1;", expected);
}

} // namespace
} // namespace fp4::cts
