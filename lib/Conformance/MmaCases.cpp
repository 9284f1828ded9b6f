//===- MmaCases.cpp - mma.sync and mma.sp in all types and shapes ---------===//
//
// Each warp of a launch multiplies matrices of its own out of registers and writes D. The place of
// an element is computed here from the PTX ISA's formulas by row, column and k. The sets of data
// are those of Elements.h.
//
//===----------------------------------------------------------------------===//

#include "Elements.h"

namespace fp4::cts {
namespace {

constexpr unsigned kColumns = 8, kLanes = 32, kTiles = 4; ///< tiles of each set of data

struct Case {
  Element a, b, c, d;
  unsigned rows, k;
  bool saturate = false;
  std::string bitwise = {}; ///< operation on single bits: and, xor
  int selector = -1; ///< selector of the lanes that hold the metadata of a sparse A; -1: A is dense
  bool ordered = false; ///< ::ordered_metadata
  std::string layouts = "row.col";

  bool sparse() const { return selector >= 0; }
  unsigned stored() const { return sparse() ? k / 2 : k; } ///< K of A
  /// MMAs of an instruction: m8n8k4 of f16 is four, of eight lanes each.
  unsigned products() const { return a.bits == 16 && k == 4 ? 4 : 1; }
  unsigned wordBits() const { return a.bits == 64 ? 64 : 32; } ///< bits of a register
  std::string shape() const { return "m" + std::to_string(rows) + "n8k" + std::to_string(k); }

  std::string opcode() const {
    return std::string("mma") +
           (ordered    ? ".sp::ordered_metadata"
            : sparse() ? ".sp"
                       : "") +
           ".sync.aligned." + shape() + "." + layouts + (saturate ? ".satfinite" : "") + "." +
           d.name + "." + a.name + "." + b.name + "." + c.name +
           (bitwise.empty() ? "" : "." + bitwise + ".popc");
  }
  std::string name() const {
    std::string text = shape() + "_" + a.name + "_" + b.name + "_" + c.name + "_" + d.name;
    if (products() > 1)
      text += "_" + layouts.substr(0, 3) + "_" + layouts.substr(4);
    if (sparse())
      text += (ordered ? "_ordered" : "_sparse") + std::to_string(selector);
    return text + (bitwise.empty() ? "" : "_" + bitwise) + (saturate ? "_saturate" : "");
  }
};

//===----------------------------------------------------------------------===//
// Places of elements
//===----------------------------------------------------------------------===//

struct Place {
  unsigned reg, lane, bit;
};

/// The registers of one operand in all lanes, register by register.
struct Fragment {
  Fragment(const Case &c, size_t elements, unsigned bits)
      : elementBits(bits), wordBits(c.wordBits()),
        bytes(std::max(elements * bits, size_t(kLanes) * wordBits) / 8) {}

  unsigned registers() const { return unsigned(bytes.size() * 8 / (kLanes * wordBits)); }
  size_t bitOf(const Place &p) const { return (p.reg * kLanes + p.lane) * wordBits + p.bit; }
  uint64_t get(const Place &p) const { return getBits(bytes, bitOf(p), elementBits); }
  void set(const Place &p, uint64_t code) { setBits(bytes, bitOf(p), elementBits, code); }

  unsigned elementBits, wordBits;
  Bytes bytes;
};

/// The place of element i of a lane's halves; the lanes of MMA q are 4 q to 4 q + 3 and 16 more.
Place half(unsigned q, unsigned upper, unsigned lane, unsigned i) {
  return {i / 2, 16 * upper + 4 * q + lane, 16 * (i % 2)};
}

/// The place of element `k` of a row of A (`tall`: of 16 rows, not 8) or of a column of B.
Place placeOfFactor(const Case &c, unsigned q, bool ofB, unsigned row, unsigned k) {
  if (c.products() > 1) {
    const bool contiguous = ofB ? c.layouts.ends_with("col") : c.layouts.starts_with("row");
    return contiguous ? half(q, row / 4, row % 4, k) : half(q, row / 4, k, row % 4);
  }
  const unsigned perWord = c.wordBits() / c.a.bits, tall = ofB ? 1 : c.rows / 8;
  return {row / 8 + tall * (k / (4 * perWord)), row % 8 * 4 + k % (4 * perWord) / perWord,
          k % perWord * c.a.bits};
}

Place placeOfResult(const Case &c, const Element &e, unsigned q, unsigned row, unsigned column) {
  if (c.products() > 1 && e.bits == 16)
    return half(q, row / 4, row % 4, column);
  if (c.products() > 1)
    return {(column & 4) | (row & 2) | (column & 1),
            16 * (row / 4) + 4 * q + ((row & 1) | (column & 2)), 0};
  const unsigned i = row / 8 * 2 + column % 2, lane = row % 8 * 4 + column / 2;
  return e.bits == 16 ? Place{i / 2, lane, 16 * (i % 2)} : Place{i, lane, 0};
}

//===----------------------------------------------------------------------===//
// Metadata of a sparse A: four bits for a chunk of 4 elements of K (2 of 32 bits, 8 of 4 bits)
//===----------------------------------------------------------------------===//

unsigned chunkOf(const Case &c) { return c.a.bits == 32 ? 2 : c.a.bits == 4 ? 8 : 4; }

/// The meaning of every chunk, row by row: the places of stored elements.
std::vector<uint8_t> makeMetadata(const Case &c, uint32_t seed) {
  static constexpr uint8_t kPairs[] = {0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110,
                                       0b0001, 0b0010, 0b0011, 0b0110, 0b0111, 0b1011};
  static constexpr uint8_t kSingle[] = {0b0100, 0b1110};
  if (!c.sparse())
    return {};
  std::vector<uint8_t> nibbles;
  for (std::byte x : patternBytes(c.rows * c.k / chunkOf(c), seed))
    nibbles.push_back(c.a.bits == 32 ? kSingle[uint8_t(x) % 2]
                                     : kPairs[uint8_t(x) % (c.ordered ? 6 : 12)]);
  return nibbles;
}

/// The place of the metadata of the chunk with element k. Shapes with half as much K have one more
/// bit of selector.
Place placeOfMetadata(const Case &c, unsigned row, unsigned k) {
  const bool wide = c.a.bits >= 16, full = c.stored() * c.a.bits == 256;
  const unsigned perLane = 256 / c.a.bits, selector = unsigned(c.selector);
  const unsigned lane = wide ? (full ? k / perLane + 2 * selector : selector)
                             : row / 8 + 2 * (full ? k / perLane : selector);
  return {0, row % 8 * 4 + lane, (wide ? 16 * (row / 8) : 0) + k % perLane / chunkOf(c) * 4};
}

/// The k that stored element `i` of a row stands for.
unsigned placeOf(const Case &c, const std::vector<uint8_t> &nibbles, unsigned row, unsigned i) {
  if (!c.sparse())
    return i;
  const unsigned perChunk = chunkOf(c) / 2, chunk = i / perChunk, j = i % perChunk;
  const unsigned nibble = nibbles[row * c.k / chunkOf(c) + chunk];
  if (c.a.bits == 32)
    return 2 * chunk + (nibble == 0b1110);
  const unsigned unit = c.a.bits == 4 ? 2 : 1; // elements that one index places
  return chunk * chunkOf(c) + (nibble >> (2 * (j / unit)) & 3) * unit + j % unit;
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

/// The input of a warp: A, B, C, metadata; D has as many elements as C.
struct Tile {
  explicit Tile(const Case &c)
      : a(c, size_t(c.products()) * c.rows * c.stored(), c.a.bits),
        b(c, size_t(c.products()) * kColumns * c.k, c.b.bits),
        c(c, size_t(c.products()) * c.rows * kColumns, c.c.bits),
        d(c, size_t(c.products()) * c.rows * kColumns, c.d.bits), metadata(c, 0, 4) {}

  Fragment a, b, c, d, metadata;
  std::vector<uint64_t> aCodes, bCodes, cCodes;
  std::vector<uint8_t> nibbles;
};

std::string kernelText(const Case &c) {
  const Tile tile(c);
  const unsigned step = kLanes * c.wordBits() / 8;
  const std::string type = c.wordBits() == 64 ? "f64" : "b32";
  const std::string in = std::to_string(step * (tile.a.registers() + tile.b.registers() +
                                                tile.c.registers() + tile.metadata.registers()));
  std::string text =
      ".version 8.7\n.target sm_90a\n.address_size 64\n"
      ".visible .entry mma(.param .u64 in, .param .u64 out) {\n  .reg ." +
      type + " %a<8>, %b<8>, %c<8>, %d<8>, %meta<1>;\n" + R"(  .reg .b32 %t;
  .reg .b64 %in, %out, %o;
  ld.param.u64 %in, [in]; ld.param.u64 %out, [out];
  mov.u32 %t, %ctaid.x;
  mul.wide.u32 %o, %t, )" +
      in + ";\n  add.u64 %in, %in, %o;\n  mul.wide.u32 %o, %t, " +
      std::to_string(tile.d.bytes.size()) +
      ";\n  add.u64 %out, %out, %o;\n  mov.u32 %t, %tid.x;\n  mul.wide.u32 %o, %t, " +
      std::to_string(c.wordBits() / 8) + ";\n  add.u64 %in, %in, %o;\n  add.u64 %out, %out, %o;\n";
  unsigned offset = 0;
  const auto load = [&](const char *prefix, unsigned count) {
    for (unsigned i = 0; i < count; ++i, offset += step)
      text += "  ld.global." + type + " " + prefix + std::to_string(i) + ", [%in+" +
              std::to_string(offset) + "];\n";
  };
  load("%a", tile.a.registers());
  load("%b", tile.b.registers());
  load("%c", tile.c.registers());
  load("%meta", c.sparse() ? 1 : 0);
  text += "  " + c.opcode() + " " + registerList("%d", tile.d.registers()) + ", " +
          registerList("%a", tile.a.registers()) + ", " + registerList("%b", tile.b.registers()) +
          ", " + registerList("%c", tile.c.registers()) +
          (c.sparse() ? ", %meta0, " + std::to_string(c.selector) : "") + ";\n";
  for (unsigned i = 0; i < tile.d.registers(); ++i)
    text += "  st.global." + type + " [%out+" + std::to_string(i * step) + "], %d" +
            std::to_string(i) + ";\n";
  return text + "  ret;\n}\n";
}

//===----------------------------------------------------------------------===//
// Operands and results
//===----------------------------------------------------------------------===//

/// Puts rows of `k` elements of every MMA where the lanes hold them.
void placeFactors(const Case &c, Fragment &to, bool ofB, unsigned rows, unsigned k,
                  const std::vector<uint64_t> &codes) {
  for (unsigned i = 0; i < codes.size(); ++i)
    to.set(placeOfFactor(c, i / (rows * k), ofB, i / k % rows, i % k), codes[i]);
}

Tile makeTile(const Case &c, Data data, uint32_t seed) {
  Tile tile(c);
  const unsigned products = c.products();
  tile.aCodes = makeCodes(c.a, size_t(products) * c.rows * c.stored(), data, seed);
  tile.bCodes = makeCodes(c.b, size_t(products) * kColumns * c.k, data, seed + 1);
  tile.cCodes = makeCodes(c.c, size_t(products) * c.rows * kColumns, data, seed + 2);
  tile.nibbles = makeMetadata(c, seed + 3);
  placeFactors(c, tile.a, false, c.rows, c.stored(), tile.aCodes);
  placeFactors(c, tile.b, true, kColumns, c.k, tile.bCodes);
  for (unsigned i = 0; i < tile.cCodes.size(); ++i)
    tile.c.set(placeOfResult(c, c.c, i / (c.rows * kColumns), i / kColumns % c.rows, i % kColumns),
               tile.cCodes[i]);
  const unsigned chunks = c.k / chunkOf(c);
  std::fill(tile.metadata.bytes.begin(), tile.metadata.bytes.end(), std::byte(0xFF));
  for (unsigned i = 0; i < tile.nibbles.size(); ++i)
    tile.metadata.set(placeOfMetadata(c, i / chunks, i % chunks * chunkOf(c)), tile.nibbles[i]);
  return tile;
}

int expected(const Case &c, const Tile &tile, unsigned q, unsigned row, unsigned column) {
  int sum = c.c.valueOf(tile.cCodes[(q * c.rows + row) * kColumns + column]);
  for (unsigned i = 0; i < c.stored(); ++i) {
    const int x = c.a.valueOf(tile.aCodes[(q * c.rows + row) * c.stored() + i]);
    const int y =
        c.b.valueOf(tile.bCodes[(q * kColumns + column) * c.k + placeOf(c, tile.nibbles, row, i)]);
    sum += c.bitwise == "xor" ? x ^ y : x * y;
  }
  return sum;
}

void check(const Case &c, Tile &tile, std::span<const std::byte> out) {
  tile.d.bytes.assign(out.begin(), out.end());
  for (unsigned q = 0; q < c.products(); ++q)
    for (unsigned row = 0; row < c.rows; ++row)
      for (unsigned column = 0; column < kColumns; ++column)
        ASSERT_EQ(c.d.decode(tile.d.get(placeOfResult(c, c.d, q, row, column))),
                  expected(c, tile, q, row, column))
            << "MMA " << q << " row " << row << " column " << column;
}

class CtsMma : public testing::TestWithParam<Case> {};

TEST_P(CtsMma, Product) {
  const Case &c = GetParam();
  std::vector<Tile> tiles;
  Bytes in;
  for (const auto &[data, suffix] : kAllData)
    for (unsigned i = 0; i < kTiles; ++i) {
      const Tile &tile = tiles.emplace_back(makeTile(c, data, 10 * uint32_t(tiles.size())));
      for (const Fragment *f : {&tile.a, &tile.b, &tile.c, &tile.metadata})
        in.insert(in.end(), f->bytes.begin(), f->bytes.end());
    }
  const size_t bytes = tiles[0].d.bytes.size();
  Buffer inBuffer(in), out(tiles.size() * bytes, 0xcc);
  Params params;
  params.add(inBuffer.address()).add(out.address());
  rt::LaunchShape shape;
  shape.grid = {unsigned(tiles.size()), 1, 1};
  shape.block = {kLanes, 1, 1};
  ASSERT_TRUE(runKernel(kernelText(c), "mma", shape, params));
  const Bytes d = out.read();
  for (const auto &[data, suffix] : kAllData)
    saveImage("mma_" + c.name() + suffix,
              std::span(d).subspan(size_t(data) * kTiles * bytes, kTiles * bytes));
  for (unsigned i = 0; i < kTiles; ++i)
    check(c, tiles[i], std::span(d).subspan(i * bytes, bytes));
}

//===----------------------------------------------------------------------===//
// Cases
//===----------------------------------------------------------------------===//

void addDenseFloats(std::vector<Case> &all) {
  for (unsigned k : {8, 16}) {
    all.push_back({kF16, kF16, kF32, kF32, 16, k});
    all.push_back({kF16, kF16, kF16, kF16, 16, k});
    all.push_back({kBF16, kBF16, kF32, kF32, 16, k});
    all.push_back({kTF32, kTF32, kF32, kF32, 16, k / 2});
  }
  for (const Element &a : {kE4M3, kE5M2})
    for (const Element &b : {kE4M3, kE5M2})
      for (const Element &c : {kF32, kF16})
        for (unsigned k : {16, 32})
          all.push_back({a, b, c, c, 16, k});
  all.push_back({kF64, kF64, kF64, kF64, 8, 4});
  for (unsigned k : {4, 8, 16})
    all.push_back({kF64, kF64, kF64, kF64, 16, k});
  const std::pair<Element, Element> results[] = {{kF32, kF32}, {kF16, kF16}, {kF16, kF32}};
  for (const char *layouts : {"row.row", "row.col", "col.row", "col.col"})
    for (const auto &[c, d] : results) {
      Case volta{kF16, kF16, c, d, 8, 4};
      volta.layouts = layouts;
      all.push_back(volta);
    }
}

void addDenseIntegers(std::vector<Case> &all) {
  const std::pair<Element, Element> signs[] = {{kS8, kU8}, {kS4, kU4}};
  for (const auto &[s, u] : signs)
    for (const Element &a : {s, u})
      for (const Element &b : {s, u}) {
        const unsigned k = 128 / a.bits; // of 16 bytes
        for (bool saturate : {false, true}) {
          all.push_back({a, b, kS32, kS32, 8, k, saturate});
          all.push_back({a, b, kS32, kS32, 16, k, saturate});
          all.push_back({a, b, kS32, kS32, 16, 2 * k, saturate});
        }
      }
  for (const char *bitwise : {"and", "xor"}) {
    all.push_back({kB1, kB1, kS32, kS32, 8, 128, false, bitwise});
    all.push_back({kB1, kB1, kS32, kS32, 16, 128, false, bitwise});
    all.push_back({kB1, kB1, kS32, kS32, 16, 256, false, bitwise});
  }
}

/// Adds both shapes with all selectors and both kinds of metadata.
void addSparse(std::vector<Case> &all) {
  const auto add = [&](const Element &a, const Element &b, const Element &c, bool saturate) {
    for (bool full : {false, true}) {
      if (!full && (a.is("e4m3") || a.is("e5m2")))
        continue;
      const int selectors = (a.bits >= 16 ? 4 : 2) / (full ? 2 : 1);
      for (int selector = 0; selector < selectors; ++selector)
        for (bool ordered : {false, true})
          all.push_back(
              {a, b, c, c, 16, (full ? 512u : 256u) / a.bits, saturate, "", selector, ordered});
    }
  };
  add(kF16, kF16, kF32, false);
  add(kF16, kF16, kF16, false);
  add(kBF16, kBF16, kF32, false);
  add(kTF32, kTF32, kF32, false);
  for (const Element &a : {kE4M3, kE5M2})
    for (const Element &b : {kE4M3, kE5M2})
      add(a, b, kF32, false);
  const std::pair<Element, Element> signs[] = {{kS8, kU8}, {kS4, kU4}};
  for (const auto &[s, u] : signs)
    for (const Element &a : {s, u})
      for (const Element &b : {s, u})
        add(a, b, kS32, a.name[0] == b.name[0]);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  addDenseFloats(all);
  addDenseIntegers(all);
  addSparse(all);
  return all;
}

INSTANTIATE_TEST_SUITE_P(, CtsMma, testing::ValuesIn(cases()),
                         [](const auto &info) { return info.param.name(); });

} // namespace
} // namespace fp4::cts
