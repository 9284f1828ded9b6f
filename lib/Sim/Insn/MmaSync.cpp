//===- MmaSync.cpp - mma.sync: matrix multiply of one warp ----------------===//
//
// PTX ISA, "mma": D = A * B + C, A of 16 (or 8) rows, B of 8 columns, both K-major with 32 bytes
// (or 16) of K in registers. Fragments, register i of lane l:
//
//   A      row l / 4 + 8 (i % 2), bytes 4 (l % 4) + 16 (i / 2) .. + 3 of the row
//   B      column l / 4, bytes 4 (l % 4) + 16 i .. + 3 of the column
//   C, D   row l / 4 + 8 (i / 2), column 2 (l % 4) + i % 2; 16-bit: two columns in one register
//
// (with 8 rows or 16 bytes the registers of the missing half are not there). kind::f8f6f4 and
// mxf8f6f4 hold every element in a byte, kinds mxf4 and mxf4nvf4 two in one. Scales: row r of A has
// those of lane 4 (r % 8) + 2 tid + r / 8, column n of B those of lane 4 n + tid.
//
// Arithmetic: that of the other matrix units, Async/DenseMma.h and BlockScaledMma.h. It is exact
// where the sums are; the rounding of others is known for wgmma and tcgen05.mma and assumed here.
// Not simulated: sparse A, double precision, 4-bit and 1-bit integers, the shapes of Volta.
//
//===----------------------------------------------------------------------===//
#include "Sim/Async/BlockScaledMma.h"
#include "Sim/Async/DenseRow.h"
#include "Sim/Insn/Decode.h"
#include "Sim/Insn/ExecContext.h"
#include "fp4/ISA/SmemDescriptor.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace fp4::sim {
namespace {

using hw::MmaType;

/// Insn::m of an mma.
enum Field : uint8_t {
  kTypeA,      ///< MmaType
  kTypeB,      ///< MmaType
  kRows,       ///< 16 or 8
  kRowBytes,   ///< of K: 32 or 16
  kHalfResult, ///< C and D of fp16
  kSaturate,
  kScaling, ///< Scaling
  kVector,  ///< scales per row: 1, 2, 4
  kUE4M3,   ///< type of the scales
};
enum Scaling : uint8_t { Unscaled, Scaled8, Scaled4 };

constexpr unsigned columns = 8;
constexpr unsigned maxRows = 16;
constexpr unsigned rowBytes = hw::mmaRowBytes;

bool isInteger(MmaType type) { return type == MmaType::S8 || type == MmaType::U8; }

/// The operands of one warp, gathered from the lanes.
struct Tile {
  std::vector<uint8_t> a, b;             ///< rows of 32 bytes; missing ones are zero
  std::vector<uint32_t> d;               ///< C, then D
  std::vector<uint8_t> scalesA, scalesB; ///< four bytes per row
};

/// Copies the registers of A (`perHalf` 2) or B (1) into rows of 32 bytes.
std::vector<uint8_t> gather(ExecContext &cx, const Operand &fragment, unsigned rows,
                            unsigned perHalf) {
  std::vector<uint8_t> out(rows * rowBytes);
  const Operand *o = cx.elements(fragment);
  for (unsigned i = 0; i < cx.elementCount(fragment); ++i) {
    const uint32_t *reg = cx.src<uint32_t>(o[i]);
    for (unsigned lane = 0; lane < 32; ++lane)
      std::memcpy(
          &out[(lane / 4 + 8 * (i % perHalf)) * rowBytes + 4 * (lane % 4) + 16 * (i / perHalf)],
          &reg[lane], 4);
  }
  return out;
}

/// Calls f(register, byte in it, lane, row, column) for every element of C or D.
template <typename F> void forEachResult(const Insn &insn, F &&f) {
  const bool half = insn.m[kHalfResult];
  for (unsigned row = 0; row < insn.m[kRows]; ++row)
    for (unsigned column = 0; column < columns; ++column) {
      const unsigned i = row / 8 * 2 + column % 2, lane = row % 8 * 4 + column / 2;
      f(half ? i / 2 : i, half ? 2 * (i % 2) : 0, lane, row * columns + column);
    }
}

std::vector<uint32_t> gatherC(ExecContext &cx, const Insn &insn) {
  std::vector<uint32_t> cells(maxRows * columns);
  const Operand *o = cx.elements(insn.op[3]);
  forEachResult(insn, [&](unsigned i, unsigned byte, unsigned lane, unsigned cell) {
    const auto *bytes = reinterpret_cast<const std::byte *>(cx.src<uint32_t>(o[i]) + lane);
    std::memcpy(&cells[cell], bytes + byte, insn.m[kHalfResult] ? 2 : 4);
  });
  return cells;
}

void scatterD(ExecContext &cx, const Insn &insn, const std::vector<uint32_t> &cells) {
  const Operand *o = cx.elements(insn.op[0]);
  forEachResult(insn, [&](unsigned i, unsigned byte, unsigned lane, unsigned cell) {
    auto *bytes = reinterpret_cast<std::byte *>(cx.dst<uint32_t>(o[i]) + lane);
    std::memcpy(bytes + byte, &cells[cell], insn.m[kHalfResult] ? 2 : 4);
  });
}

/// The four scale bytes of each row, repeated where there are fewer. op: data, {byte id, thread
/// id}.
bool gatherScales(ExecContext &cx, const Insn &insn, unsigned op, unsigned rows,
                  std::vector<uint8_t> &out) {
  const bool ofA = op == 4;
  const Operand *selectors = cx.elements(insn.op[op + 1]);
  const auto byte = unsigned(cx.scalar(selectors[0])), thread = unsigned(cx.scalar(selectors[1]));
  const unsigned vector = insn.m[kVector], threads = ofA ? 2 : 4;
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

std::vector<FactorRow> factors(MmaType type, const std::vector<uint8_t> &bytes) {
  std::vector<FactorRow> rows(bytes.size() / rowBytes);
  for (size_t i = 0; i < rows.size(); ++i)
    decodeFactors(type, &bytes[i * rowBytes], true, false, rows[i]);
  return rows;
}

unsigned depthOf(MmaType type) {
  switch (type) {
  case MmaType::F16:
  case MmaType::BF16:
    return 16;
  case MmaType::TF32:
    return 8;
  default:
    return 32;
  }
}

constexpr uint8_t kNaNScale = 0xFF; ///< ue8m0

void multiplyFloats(ExecContext &cx, const Insn &insn, Tile &tile) {
  const auto aType = MmaType(insn.m[kTypeA]), bType = MmaType(insn.m[kTypeB]);
  const auto a = factors(aType, tile.a);
  const DenseColumns b(factors(bType, tile.b), depthOf(aType));
  const bool hopper = depthOf(aType) == 32 && cx.launch().options->target == "sm_90a";
  const DenseRowOptions options{fractionBits(aType) + fractionBits(bType),
                                insn.m[kHalfResult] ? hw::AccumulatorType::F16
                                                    : hw::AccumulatorType::F32,
                                hopper ? hopperFP8 : DensePrecision{}};
  std::vector<int32_t> scales(columns);
  for (unsigned row = 0; row < insn.m[kRows]; ++row) {
    const std::span<uint32_t> cells(&tile.d[row * columns], columns);
    bool invalid[columns] = {};
    for (unsigned column = 0; insn.m[kScaling] && column < columns; ++column) {
      const uint8_t ofA = tile.scalesA[4 * row], ofB = tile.scalesB[4 * column];
      invalid[column] = ofA == kNaNScale || ofB == kNaNScale;
      scales[column] = invalid[column] ? 0 : int(ofA) + int(ofB) - 2 * 127;
    }
    denseRow(a[row], b, scales, cells, options);
    for (unsigned column = 0; column < columns; ++column)
      if (invalid[column])
        cells[column] = denseNaN;
  }
}

void multiplyIntegers(const Insn &insn, Tile &tile) {
  const bool aSigned = MmaType(insn.m[kTypeA]) == MmaType::S8;
  const bool bSigned = MmaType(insn.m[kTypeB]) == MmaType::S8;
  for (unsigned row = 0; row < insn.m[kRows]; ++row)
    for (unsigned column = 0; column < columns; ++column) {
      uint32_t &cell = tile.d[row * columns + column];
      cell = integerElement(&tile.a[row * rowBytes], &tile.b[column * rowBytes], aSigned, bSigned,
                            insn.m[kSaturate], cell);
    }
}

void multiplyFp4(const Insn &insn, Tile &tile) {
  BlockScaledOperands operands;
  operands.rows = int(maxRows);
  operands.columns = int(columns);
  operands.a = tile.a.data();
  operands.b = tile.b.data();
  operands.scalesA = tile.scalesA.data();
  operands.scalesB = tile.scalesB.data();
  operands.format = insn.m[kUE4M3] ? ScaleFormat::UE4M3 : ScaleFormat::UE8M0;
  operands.d = reinterpret_cast<float *>(tile.d.data());
  operands.pitch = columns;
  blockScaledMma(operands);
}

Outcome mmaSync(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  Tile tile;
  tile.a = gather(cx, insn.op[1], maxRows, insn.m[kRows] / 8);
  tile.b = gather(cx, insn.op[2], columns, 1);
  tile.d = gatherC(cx, insn);
  if (insn.m[kScaling] && (!gatherScales(cx, insn, 4, maxRows, tile.scalesA) ||
                           !gatherScales(cx, insn, 6, columns, tile.scalesB)))
    return Outcome::Error;
  if (insn.m[kScaling] == Scaled4)
    multiplyFp4(insn, tile);
  else if (isInteger(MmaType(insn.m[kTypeA])))
    multiplyIntegers(insn, tile);
  else
    multiplyFloats(cx, insn, tile);
  scatterD(cx, insn, tile.d);
  ++cx.cluster().mmas;
  return Outcome::Next;
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

MmaType typeOf(std::string_view text) {
  for (MmaType known : {MmaType::F16, MmaType::BF16, MmaType::TF32, MmaType::E4M3, MmaType::E5M2,
                        MmaType::E2M3, MmaType::E3M2, MmaType::E2M1, MmaType::U8, MmaType::S8})
    if (text == hw::stringify(known))
      return known;
  return MmaType::F16;
}

/// Rows and K of "m16n8k32": fails for combinations that do not exist or are not simulated.
Status decodeShape(BindContext &bind) {
  const std::string_view shape = bind.match.text("shape");
  const bool wide = shape.substr(0, 3) == "m16";
  const unsigned k = unsigned(std::stoul(std::string(shape.substr(shape.find('k') + 1))));
  bind.insn.m[kRows] = wide ? 16 : 8;
  // Two 4-bit elements lie in a byte where K is 64 alone.
  const unsigned full = k == 64 ? 64 : depthOf(MmaType(bind.insn.m[kTypeA]));
  const bool packed = bind.insn.m[kScaling] == Scaled4;
  const bool good = packed == (k == 64) && (k == full || 2 * k == full) &&
                    (wide || (isInteger(MmaType(bind.insn.m[kTypeA])) && 2 * k == full));
  if (!good)
    return bind.fail(fmt::format("there is no shape .{} for .{}", shape, bind.match.text("atype")));
  bind.insn.m[kRowBytes] = k == full ? 32 : 16;
  return {};
}

Status checkVectors(BindContext &bind) {
  const Insn &insn = bind.insn;
  const int64_t halves = insn.m[kRowBytes] / 16, tall = insn.m[kRows] / 8;
  const int64_t results = insn.m[kHalfResult] ? tall : 2 * tall;
  const int64_t expected[] = {results, tall * halves, halves, results};
  for (unsigned i = 0; i < 4; ++i)
    if (insn.op[i].imm != expected[i])
      return bind.fail(fmt::format("{} of .{} expects {} registers, but got {}", "DABC"[i],
                                   bind.match.text("shape"), expected[i], insn.op[i].imm));
  return {};
}

Status checkTypes(BindContext &bind) {
  const std::string_view a = bind.match.text("atype"), b = bind.match.text("btype");
  const std::string_view c = bind.match.text("ctype"), d = bind.match.text("dtype");
  if (c != d)
    return bind.fail(fmt::format("expects C and D of one type, but got .{} and .{}", c, d));
  const auto aType = MmaType(bind.insn.m[kTypeA]);
  const bool integer = isInteger(aType);
  if (depthOf(aType) != depthOf(typeOf(b)) || integer != isInteger(typeOf(b)) ||
      (depthOf(aType) < 32 && a != b))
    return bind.fail(fmt::format("does not multiply .{} by .{}", a, b));
  const bool fits = integer ? d == "s32" : d == "f32" || (d == "f16" && a != "bf16" && a != "tf32");
  if (!fits)
    return bind.fail(fmt::format("a product of .{} has no result of .{}", a, d));
  return {};
}

} // namespace

Status bindMmaSync(BindContext &bind) {
  Insn &insn = bind.insn;
  insn.m[kTypeA] = uint8_t(typeOf(bind.match.text("atype")));
  insn.m[kTypeB] = uint8_t(typeOf(bind.match.text("btype")));
  insn.m[kHalfResult] = bind.match.text("dtype") == "f16";
  insn.m[kSaturate] = bind.match.has("satfinite");
  FP4_TRY(checkTypes(bind));
  FP4_TRY(decodeShape(bind));
  FP4_TRY(checkVectors(bind));
  return bind.use(mmaSync);
}

/// mma with .block_scale: the scale vector size may be left to the kind.
Status bindMmaSyncScaled(BindContext &bind) {
  Insn &insn = bind.insn;
  const std::string_view kind = bind.match.text("kind"), vector = bind.match.text("vector");
  const bool eight = kind == "kind::mxf8f6f4";
  insn.m[kScaling] = eight ? Scaled8 : Scaled4;
  insn.m[kVector] = eight ? 1 : 2;
  if (!vector.empty())
    insn.m[kVector] = uint8_t(vector[11] - '0');
  insn.m[kUE4M3] = bind.match.text("stype") == "ue4m3";
  const bool fits = eight ? insn.m[kVector] == 1 && !insn.m[kUE4M3]
                    : kind == "kind::mxf4"
                        ? insn.m[kVector] == 2 && !insn.m[kUE4M3]
                        : insn.m[kVector] == 4 || (insn.m[kVector] == 2 && !insn.m[kUE4M3]);
  if (!fits)
    return bind.fail(fmt::format("there is no .{} with .{} and scales of .{}", kind, vector,
                                 bind.match.text("stype")));
  for (unsigned scales : {4u, 6u})
    if (insn.op[scales].imm != 1 || insn.op[scales + 1].imm != 2)
      return bind.fail("scales expect one register and {byte id, thread id}");
  if (!eight && (bind.match.text("atype") != "e2m1" || bind.match.text("btype") != "e2m1"))
    return bind.fail(fmt::format(".{} multiplies .e2m1 alone", kind));
  return bindMmaSync(bind);
}

} // namespace fp4::sim
