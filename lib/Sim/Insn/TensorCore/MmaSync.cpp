//===- MmaSync.cpp - mma.sync: matrix multiply of one warp ----------------===//
//
// PTX ISA, "mma": D = A * B + C, A of 16 (or 8) rows, B of 8 columns, both K-major with 32 bytes
// (or 16) of K in registers. Fragments, register i of lane l:
//
//   A      row l / 4 + 8 (i % 2), bytes 4 (l % 4) + 16 (i / 2) .. + 3 of the row
//   B      column l / 4, bytes 4 (l % 4) + 16 i .. + 3 of the column
//   C, D   row l / 4 + 8 (i / 2), column 2 (l % 4) + i % 2; 16-bit: two columns in one register
//
// (with 8 rows or 16 bytes the registers of the missing half are not there; of a sparse A the
// stored half of K lies like this, and B has twice the registers). kind::f8f6f4 and mxf8f6f4 hold
// every element in a byte, kinds mxf4 and mxf4nvf4 two in one. Scales: row r of A has those of lane
// 4 (r % 8) + 2 tid + r / 8, column n of B those of lane 4 n + tid.
//
// The arithmetic is that of the other matrix units (fp4/Numerics/DenseMma.h, BlockScaledMma.h and
// SparseMma.h), except for fp8 on Hopper and B200: their mma.sync has no fp8, so ptxas converts the
// elements to f16 and makes two MMAs of one (multiplyAsHalves). Doubles and m8n8k4 are in
// MmaSyncOther.cpp.
//
//===----------------------------------------------------------------------===//
#include "Sim/Async/BlockScaledMma.h"
#include "Sim/Async/SparseMma.h"
#include "Sim/Decode/Decode.h"
#include "Sim/Insn/Poison/Propagate.h"
#include "Sim/Insn/Scalar/Floats.h"
#include "Sim/State/ExecContext.h"
#include "fp4/ISA/SmemDescriptor.h"
#include "fp4/ISA/TargetModel.h"
#include "fp4/Numerics/WarpGemm.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace fp4::sim {
using namespace numerics;
namespace {

using hw::MmaType;

constexpr unsigned columns = 8;
constexpr unsigned maxRows = 16;
constexpr unsigned rowBytes = hw::mmaRowBytes;

unsigned elementBits(const MmaModifiers &mma) {
  return mma.scaling == Scaling::Scaled4 ? 4 : containerBits(mma.aType);
}

SparseFormat sparseFormat(const MmaModifiers &mma) { return {elementBits(mma), mma.indices}; }

unsigned columnBytes(const MmaModifiers &mma) { return mma.sparse ? 2 * rowBytes : rowBytes; }

/// The operands of one warp, gathered from the lanes.
struct Tile {
  std::vector<uint8_t> a, b;             ///< rows of 32 (columns of 32 or 64) bytes; rest zero
  std::vector<uint32_t> d;               ///< C, then D
  std::vector<uint8_t> scalesA, scalesB; ///< four bytes per row
  std::vector<SparseRow> selections;     ///< selections of the rows of a sparse A
};

/// Copies the registers of A (`perHalf` 2) or B (1) into rows.
std::vector<uint8_t> gather(ExecContext &cx, const Operand &fragment, unsigned rows,
                            unsigned perHalf, unsigned bytes) {
  std::vector<uint8_t> out(rows * bytes);
  const Operand *o = cx.elements(fragment);
  for (unsigned i = 0; i < cx.elementCount(fragment); ++i) {
    const uint32_t *reg = cx.src<uint32_t>(o[i]);
    for (unsigned lane = 0; lane < 32; ++lane)
      std::memcpy(
          &out[(lane / 4 + 8 * (i % perHalf)) * bytes + 4 * (lane % 4) + 16 * (i / perHalf)],
          &reg[lane], 4);
  }
  return out;
}

/// Calls f(bytes of a lane's element, its cell) for every element of C or D; `bytesOf(i)` are those
/// of register i.
template <typename Bytes, typename F>
void forEachResult(const MmaModifiers &mma, Bytes &&bytesOf, F &&f) {
  const unsigned perRegister = mma.halfResult ? 2 : 1;
  for (unsigned i = 0; i < mma.rows / 8 * 2; ++i) {
    std::byte *bytes = bytesOf(i / perRegister) + 4 / perRegister * (i % perRegister);
    for (unsigned lane = 0; lane < 32; ++lane)
      f(bytes + 4 * lane, (i / 2 * 8 + lane / 4) * columns + 2 * (lane % 4) + i % 2);
  }
}

std::vector<uint32_t> gatherC(ExecContext &cx, const Insn &insn) {
  std::vector<uint32_t> cells(maxRows * columns);
  const auto &mma = insn.as<MmaModifiers>();
  const Operand *o = cx.elements(insn.op[3]);
  const size_t size = mma.halfResult ? 2 : 4;
  forEachResult(
      mma,
      [&](unsigned i) {
        return reinterpret_cast<std::byte *>(const_cast<uint32_t *>(cx.src<uint32_t>(o[i])));
      },
      [&](const std::byte *from, unsigned cell) { std::memcpy(&cells[cell], from, size); });
  return cells;
}

void scatterD(ExecContext &cx, const Insn &insn, const std::vector<uint32_t> &cells) {
  const auto &mma = insn.as<MmaModifiers>();
  const Operand *o = cx.elements(insn.op[0]);
  const size_t size = mma.halfResult ? 2 : 4;
  forEachResult(
      mma, [&](unsigned i) { return reinterpret_cast<std::byte *>(cx.dst<uint32_t>(o[i])); },
      [&](std::byte *to, unsigned cell) { std::memcpy(to, &cells[cell], size); });
}

/// The operand with the scales of A.
unsigned firstScale(const Insn &insn) { return insn.as<MmaModifiers>().sparse ? 6 : 4; }

/// A register that says where operands are, also while those of `cx` are shadows.
unsigned selectorOf(ExecContext &cx, const Operand &o) {
  const std::byte *bank = o.bank == kConstBank ? cx.warp().constants : cx.warp().registers;
  uint32_t value = 0;
  std::memcpy(&value, bank + o.offset + size_t(cx.firstLane()) * o.width,
              std::min<size_t>(o.width, 4));
  return value;
}

/// The four scale bytes of each row, repeated where there are fewer. op: data, {byte id, thread
/// id}.
bool gatherScales(ExecContext &cx, const Insn &insn, unsigned op, unsigned rows,
                  std::vector<uint8_t> &out) {
  const bool ofA = op == firstScale(insn);
  const Operand *selectors = cx.elements(insn.op[op + 1]);
  const unsigned byte = selectorOf(cx, selectors[0]), thread = selectorOf(cx, selectors[1]);
  const unsigned vector = insn.as<MmaModifiers>().scalesPerRow, threads = ofA ? 2 : 4;
  if (byte % vector || byte > 4 - vector || thread >= threads) {
    cx.fail(fmt::format("the selector of the scales of {} must have a byte id of 0 to {} in steps "
                        "of {} and a thread id below {}, but got {} and {}",
                        ofA ? "A" : "B", 4 - vector, vector, threads, byte, thread));
    return false;
  }
  const uint32_t *data = cx.src<uint32_t>(cx.elements(insn.op[op])[0]);
  out.resize(4 * rows);
  for (unsigned row = 0; row < rows; ++row) {
    const unsigned lane = ofA ? row % 8 * 4 + 2 * thread + row / 8 : row * 4 + thread;
    for (unsigned block = 0; block < 4; ++block)
      out[4 * row + block] = uint8_t(data[lane] >> (8 * (byte + block * vector / 4)));
  }
  return true;
}

/// Operands of a sparse A: metadata, and the selector of the lanes that hold it.
bool gatherSelections(ExecContext &cx, const Insn &insn, Tile &tile) {
  const uint32_t *metadata = cx.src<uint32_t>(cx.elements(insn.op[4])[0]);
  const auto &mma = insn.as<MmaModifiers>();
  const SparseFormat format = sparseFormat(mma);
  const bool full = mma.halves == 2;
  tile.selections.resize(maxRows);
  for (unsigned row = 0; row < maxRows; ++row) {
    const uint64_t nonZero =
        nonZeroElements(std::span(tile.a).subspan(row * rowBytes, rowBytes), format.elementBits);
    const uint64_t bits = warpMetadata(metadata, format, full, unsigned(insn.op[5].imm), row);
    if (Status ok = decodeSparseRow(format, bits, nonZero, row, tile.selections[row]); !ok) {
      cx.fail(ok.error().message, ok.error().note);
      return false;
    }
  }
  return true;
}

constexpr uint8_t kNaNScale = 0xFF; ///< ue8m0

hw::AccumulatorType resultType(const MmaModifiers &mma) {
  return mma.halfResult ? hw::AccumulatorType::F16 : hw::AccumulatorType::F32;
}

uint32_t addFloats(uint32_t a, uint32_t b) {
  return std::bit_cast<uint32_t>(canonical(std::bit_cast<float>(a) + std::bit_cast<float>(b)));
}

uint32_t addHalves(uint32_t a, uint32_t b) {
  const double sum = double(f16ToFloat(uint16_t(a))) + double(f16ToFloat(uint16_t(b)));
  return std::isnan(sum) ? kNaN16 : encodeHalf(sum);
}

/// Returns true when the unit multiplies f16, not the fp8 that the instruction names.
bool goesByHalves(ExecContext &cx, const MmaModifiers &mma) {
  return containerBits(mma.aType) == 8 && mma.scaling == Scaling::Unscaled &&
         !cx.launch().target->features.hasFp8MmaSync;
}

void multiplyFloats(const MmaModifiers &mma, Tile &tile) {
  const MmaType aType = mmaType(mma.aType), bType = mmaType(mma.bType);
  const DenseRows a(aType, tile.a, true, false);
  const DenseColumns b(bType, tile.b, columnBytes(mma), true, false);
  const DenseRowOptions options{fractionBits(aType) + fractionBits(bType), resultType(mma), {}};
  std::vector<int32_t> scales(mma.scaling != Scaling::Unscaled ? maxRows * columns : 0);
  std::vector<size_t> invalid;
  for (size_t i = 0; i < scales.size(); ++i) {
    const uint8_t ofA = tile.scalesA[4 * (i / columns)], ofB = tile.scalesB[4 * (i % columns)];
    if (ofA == kNaNScale || ofB == kNaNScale)
      invalid.push_back(i);
    else
      scales[i] = int(ofA) + int(ofB) - 2 * 127;
  }
  std::array<DenseRow, maxRows> rows;
  for (unsigned row = 0; row < mma.rows; ++row)
    rows[row] = {&tile.d[row * columns], scales.empty() ? nullptr : &scales[row * columns],
                 tile.selections.empty() ? nullptr : tile.selections[row].data()};
  denseRows(a, b, std::span(rows).first(mma.rows), options);
  for (size_t element : invalid)
    tile.d[element] = denseNaN;
}

//===----------------------------------------------------------------------===//
// fp8 by way of f16
//===----------------------------------------------------------------------===//

/// A narrow factor as f16 has it: ten fraction bits, normal where f16 can be.
Factor widen(Factor factor, unsigned fraction) {
  factor.significand *= 1 << (10 - fraction);
  while (factor.significand && std::abs(factor.significand) < 1 << 10 && factor.exponent > -14) {
    factor.significand *= 2;
    --factor.exponent;
  }
  return factor;
}

/// Returns the first `run` of every 2 `run` elements of rows of `rowLength` bytes (part 0), or the
/// last.
std::vector<FactorRow> halvesOf(MmaType type, const std::vector<uint8_t> &bytes, unsigned rowLength,
                                unsigned run, unsigned part) {
  std::vector<FactorRow> rows(bytes.size() / rowLength);
  FactorRow all;
  for (unsigned at = 0; at < bytes.size(); at += rowBytes) {
    decodeFactors(type, &bytes[at], true, false, all);
    for (unsigned i = 0; i < rowBytes; ++i)
      if (i / run % 2 == part)
        rows[at / rowLength][at % rowLength / 2 + i / (2 * run) * run + i % run] =
            widen(all[i], fractionBits(type));
  }
  return rows;
}

/// The selections among the columns' elements of `part`, of rows of A's.
SparseRow selectionOf(const SparseRow &row, unsigned part) {
  SparseRow out{};
  for (unsigned i = 0; i < rowBytes / 2; ++i) {
    const unsigned k = row[i / 2 * 4 + 2 * part + i % 2];
    out[i] = uint8_t(k / 8 * 4 + k % 4);
  }
  return out;
}

/// Multiplies fp8 as ptxas 13.0 does: the two low bytes of all registers first, from zero, then the
/// high ones on top of this sum. The sum of both is added to C, rounded to nearest.
void multiplyAsHalves(const MmaModifiers &mma, Tile &tile) {
  const MmaType aType = mmaType(mma.aType), bType = mmaType(mma.bType);
  std::vector<uint32_t> sums(tile.d.size());
  for (unsigned part = 0; part < 2; ++part) {
    const DenseRows a(halvesOf(aType, tile.a, rowBytes, 2, part), rowBytes / 2);
    const DenseColumns b(halvesOf(bType, tile.b, columnBytes(mma), mma.sparse ? 4 : 2, part),
                         columnBytes(mma) / 2);
    std::array<SparseRow, maxRows> selections;
    std::array<DenseRow, maxRows> rows;
    for (unsigned row = 0; row < maxRows; ++row) {
      rows[row] = {&sums[row * columns]};
      if (mma.sparse) {
        selections[row] = selectionOf(tile.selections[row], part);
        rows[row].selection = selections[row].data();
      }
    }
    denseRows(a, b, rows, {20, resultType(mma), {}});
  }
  for (size_t i = 0; i < sums.size(); ++i)
    tile.d[i] = mma.halfResult ? addHalves(tile.d[i], sums[i]) : addFloats(tile.d[i], sums[i]);
}

/// The columns of B as row `row` of A multiplies them, 32 bytes each, of elements up to 8 bits.
std::vector<uint8_t> columnsFor(const MmaModifiers &mma, const Tile &tile, unsigned row) {
  if (!mma.sparse)
    return tile.b;
  std::vector<uint8_t> chosen(columns * rowBytes);
  for (unsigned column = 0; column < columns; ++column)
    selectElements(tile.selections[row], elementBits(mma), &tile.b[column * columnBytes(mma)],
                   &chosen[column * rowBytes]);
  return chosen;
}

uint32_t integerSum(const MmaModifiers &mma, const uint8_t *a, const uint8_t *b, uint32_t c) {
  const bool aSigned = isSigned(mma.aType), bSigned = isSigned(mma.bType);
  switch (elementBits(mma)) {
  case 1:
    return bitElement(a, b, mma.exclusive, c);
  case 4:
    return nibbleElement(a, b, aSigned, bSigned, mma.saturate, c);
  default:
    return integerElement(a, b, aSigned, bSigned, mma.saturate, c);
  }
}

void multiplyIntegers(const MmaModifiers &mma, Tile &tile) {
  for (unsigned row = 0; row < mma.rows; ++row) {
    const std::vector<uint8_t> b = columnsFor(mma, tile, row);
    for (unsigned column = 0; column < columns; ++column) {
      uint32_t &cell = tile.d[row * columns + column];
      cell = integerSum(mma, &tile.a[row * rowBytes], &b[column * rowBytes], cell);
    }
  }
}

void multiplyFp4(const MmaModifiers &mma, Tile &tile) {
  BlockScaledOperands operands;
  operands.columns = int(columns);
  operands.scalesB = tile.scalesB.data();
  operands.format = mma.scaleType;
  operands.pitch = columns;
  operands.rows = mma.sparse ? 1 : int(maxRows);
  for (unsigned row = 0; row < maxRows; row += unsigned(operands.rows)) {
    const std::vector<uint8_t> b = columnsFor(mma, tile, row);
    operands.a = &tile.a[row * rowBytes];
    operands.b = b.data();
    operands.scalesA = &tile.scalesA[4 * row];
    operands.d = reinterpret_cast<float *>(&tile.d[row * columns]);
    blockScaledMma(operands);
  }
}

/// The common shapes, from register to register (fp4/Numerics/WarpGemm.h).
bool multiplyAtOnce(ExecContext &cx, const Insn &insn) {
  const auto &mma = insn.as<MmaModifiers>();
  using enum FactorType;
  const auto isHalf = [](FactorType type) { return type == F16 || type == BF16; };
  const auto isFp8 = [](FactorType type) { return type == E4M3 || type == E5M2; };
  const bool fp8 = isFp8(mma.aType) && isFp8(mma.bType);
  if (mma.halfResult || mma.scaling != Scaling::Unscaled || mma.sparse ||
      !(isHalf(mma.aType) || (fp8 && goesByHalves(cx, mma))))
    return false;
  WarpGemm product{
      mmaType(mma.aType), mmaType(mma.bType), (fp8 ? 16u : 8u) * mma.halves, {}, {}, {}, {}};
  for (unsigned i = 0; i < cx.elementCount(insn.op[1]); ++i)
    product.a[i] = cx.src<uint32_t>(cx.elements(insn.op[1])[i]);
  for (unsigned i = 0; i < cx.elementCount(insn.op[2]); ++i)
    product.b[i] = cx.src<uint32_t>(cx.elements(insn.op[2])[i]);
  for (unsigned i = 0; i < product.c.size(); ++i) {
    product.c[i] = cx.src<uint32_t>(cx.elements(insn.op[3])[i]);
    product.d[i] = cx.dst<uint32_t>(cx.elements(insn.op[0])[i]);
  }
  return multiplyWarp(product);
}

Outcome mmaSync(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  if (multiplyAtOnce(cx, insn)) {
    ++cx.cluster().mmas;
    return Outcome::Next;
  }
  const auto &mma = insn.as<MmaModifiers>();
  const bool scaled = mma.scaling != Scaling::Unscaled;
  Tile tile;
  tile.a = gather(cx, insn.op[1], maxRows, mma.rows / 8, rowBytes);
  tile.b = gather(cx, insn.op[2], columns, 1, columnBytes(mma));
  tile.d = gatherC(cx, insn);
  const unsigned scales = firstScale(insn);
  if (scaled && (!gatherScales(cx, insn, scales, maxRows, tile.scalesA) ||
                 !gatherScales(cx, insn, scales + 2, columns, tile.scalesB)))
    return Outcome::Error;
  if (mma.sparse && !gatherSelections(cx, insn, tile))
    return Outcome::Error;
  if (mma.scaling == Scaling::Scaled4)
    multiplyFp4(mma, tile);
  else if (isInteger(mma.aType))
    multiplyIntegers(mma, tile);
  else if (goesByHalves(cx, mma))
    multiplyAsHalves(mma, tile);
  else
    multiplyFloats(mma, tile);
  scatterD(cx, insn, tile.d);
  ++cx.cluster().mmas;
  return Outcome::Next;
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

/// Rows and K of "m16n8k32": fails for combinations that do not exist.
Status decodeShape(BindContext &bind, MmaModifiers &mma) {
  const std::string_view shape = bind.match.text("shape");
  const bool tall = shape.substr(0, 3) == "m16";
  const unsigned k = unsigned(std::stoul(std::string(shape.substr(shape.find('k') + 1))));
  mma.rows = tall ? 16 : 8;
  const unsigned full = 8 * columnBytes(mma) / elementBits(mma);
  const bool good = (k == full || (2 * k == full && mma.scaling == Scaling::Unscaled)) &&
                    (tall || (isInteger(mma.aType) && 2 * k == full && !mma.sparse));
  if (!good)
    return bind.fail(fmt::format("there is no shape .{} for .{}", shape, bind.match.text("atype")));
  mma.halves = k == full ? 2 : 1;
  return {};
}

Status checkVectors(BindContext &bind, const MmaModifiers &mma) {
  const Insn &insn = bind.insn;
  const int64_t halves = mma.halves, tall = mma.rows / 8;
  const int64_t results = mma.halfResult ? tall : 2 * tall;
  const int64_t expected[] = {results, tall * halves, mma.sparse ? 2 * halves : halves, results};
  for (unsigned i = 0; i < 4; ++i)
    if (insn.op[i].imm != expected[i])
      return bind.fail(fmt::format("{} of .{} expects {} registers, but got {}", "DABC"[i],
                                   bind.match.text("shape"), expected[i], insn.op[i].imm));
  return {};
}

Status checkTypes(BindContext &bind, const MmaModifiers &mma) {
  const std::string_view a = bind.match.text("atype"), b = bind.match.text("btype");
  const std::string_view c = bind.match.text("ctype"), d = bind.match.text("dtype");
  if (c != d)
    return bind.fail(fmt::format("expects C and D of one type, but got .{} and .{}", c, d));
  const unsigned bits = containerBits(mma.aType);
  const bool integer = isInteger(mma.aType);
  if (bits != containerBits(mma.bType) || integer != isInteger(mma.bType) || (bits > 8 && a != b))
    return bind.fail(fmt::format("does not multiply .{} by .{}", a, b));
  const bool fits = integer ? d == "s32" : d == "f32" || (d == "f16" && a != "bf16" && a != "tf32");
  if (!fits)
    return bind.fail(fmt::format("a product of .{} has no result of .{}", a, d));
  return {};
}

Status decodeSparse(BindContext &bind, MmaModifiers &mma) {
  const Insn &insn = bind.insn;
  mma.sparse = true;
  mma.indices =
      bind.match.text("sparse") == "sp" ? SparseIndices::Distinct : SparseIndices::Ascending;
  FP4_TRY(decodeShape(bind, mma));
  if (insn.op[4].imm != 1)
    return bind.fail(fmt::format("metadata expects one register, but got {}", insn.op[4].imm));
  const unsigned selectors = warpSelectors(sparseFormat(mma), mma.halves == 2);
  if (uint64_t(insn.op[5].imm) >= selectors)
    return bind.fail(fmt::format("the sparsity selector of .{} must be below {}, but got {}",
                                 bind.match.text("shape"), selectors, insn.op[5].imm));
  return {};
}

bool any(std::span<const uint8_t> bits) {
  return std::ranges::any_of(bits, [](uint8_t b) { return b != 0; });
}

} // namespace

void multiplyPoison(ExecContext &cx, const Insn &insn) {
  const auto &mma = insn.as<MmaModifiers>();
  const bool scaled = mma.scaling != Scaling::Unscaled;
  Tile tile;
  tile.a = gather(cx, insn.op[1], maxRows, mma.rows / 8, rowBytes);
  tile.b = gather(cx, insn.op[2], columns, 1, columnBytes(mma));
  tile.d = gatherC(cx, insn);
  tile.scalesA.resize(4 * maxRows);
  tile.scalesB.resize(4 * columns);
  const unsigned scales = firstScale(insn);
  if (scaled) {
    gatherScales(cx, insn, scales, maxRows, tile.scalesA);
    gatherScales(cx, insn, scales + 2, columns, tile.scalesB);
  }
  bool all = false; // metadata place what they meet
  for (unsigned lane = 0; lane < 32 && mma.sparse; ++lane)
    all |= cx.src<uint32_t>(cx.elements(insn.op[4])[0])[lane] != 0;
  for (unsigned row = 0; row < mma.rows; ++row)
    for (unsigned column = 0; column < columns; ++column) {
      uint32_t &cell = tile.d[row * columns + column];
      const std::span a(tile.a), b(tile.b), ofA(tile.scalesA), ofB(tile.scalesB);
      const bool bad = all || cell || any(a.subspan(row * rowBytes, rowBytes)) ||
                       any(b.subspan(column * columnBytes(mma), columnBytes(mma))) ||
                       any(ofA.subspan(4 * row, 4)) || any(ofB.subspan(4 * column, 4));
      cell = bad ? ~0u : 0;
    }
  scatterD(cx, insn, tile.d);
}

static Status bindProduct(BindContext &bind, const MmaModifiers &scales) {
  auto &mma = bind.insn.make(scales);
  mma.aType = factorType(bind.match.text("atype"));
  mma.bType = factorType(bind.match.text("btype"));
  mma.halfResult = bind.match.text("dtype") == "f16";
  mma.saturate = bind.match.has("satfinite");
  mma.exclusive = bind.match.text("bit") == "xor";
  FP4_TRY(checkTypes(bind, mma));
  FP4_TRY(bind.match.has("sparse") ? decodeSparse(bind, mma) : decodeShape(bind, mma));
  FP4_TRY(checkVectors(bind, mma));
  return bind.use(mmaSync);
}

Status bindMmaSync(BindContext &bind) { return bindProduct(bind, {}); }

/// mma with .block_scale: the scale vector size may be left to the kind.
Status bindMmaSyncScaled(BindContext &bind) {
  const Insn &insn = bind.insn;
  const std::string_view kind = bind.match.text("kind"), vector = bind.match.text("vector");
  const bool eight = kind == "kind::mxf8f6f4";
  MmaModifiers mma;
  mma.scaling = eight ? Scaling::Scaled8 : Scaling::Scaled4;
  mma.scalesPerRow = eight ? 1 : 2;
  if (!vector.empty())
    mma.scalesPerRow = uint8_t(vector[11] - '0');
  const bool ue4m3 = bind.match.text("stype") == "ue4m3";
  mma.scaleType = ue4m3 ? hw::ScaleType::UE4M3 : hw::ScaleType::UE8M0;
  const bool fits = eight ? mma.scalesPerRow == 1 && !ue4m3
                    : kind == "kind::mxf4"
                        ? mma.scalesPerRow == 2 && !ue4m3
                        : mma.scalesPerRow == 4 || (mma.scalesPerRow == 2 && !ue4m3);
  if (!fits)
    return bind.fail(fmt::format("there is no .{} with .{} and scales of .{}", kind, vector,
                                 bind.match.text("stype")));
  const unsigned first = bind.match.has("sparse") ? 6 : 4;
  for (unsigned scales : {first, first + 2})
    if (insn.op[scales].imm != 1 || insn.op[scales + 1].imm != 2)
      return bind.fail("scales expect one register and {byte id, thread id}");
  if (!eight && (bind.match.text("atype") != "e2m1" || bind.match.text("btype") != "e2m1"))
    return bind.fail(fmt::format(".{} multiplies .e2m1 alone", kind));
  return bindProduct(bind, mma);
}

} // namespace fp4::sim
