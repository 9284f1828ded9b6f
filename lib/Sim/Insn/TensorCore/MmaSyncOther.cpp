//===- MmaSyncOther.cpp - mma.sync of doubles and of Volta ----------------===//
//
// PTX ISA, "mma" of .f64 and of shape m8n8k4 with .f16 factors.
//
// Doubles: a chain of fused multiply-adds in the order of k, which is what MMA-Sim (arXiv
// 2511.10909) verified on hardware. Register i of lane l:
//   A      row l / 4 + 8 (i % 2), k = l % 4 + 4 (i / 2); of 8 rows: row l / 4, k = l % 4
//   B      k = l % 4 + 4 i, column l / 4
//   C, D   row l / 4 + 8 (i / 2), column 2 (l % 4) + i % 2
//
// m8n8k4: lanes 4 q .. 4 q + 3 and 16 more make product q of four. Element i of a lane with h = 1
// for lanes from 16 on:
//   A      row: row l % 4 + 4 h, k = i; col: row i + 4 h, k = l % 4
//   B      col: k = i, column l % 4 + 4 h; row: k = l % 4, column i + 4 h
//   C, D   16-bit: row l % 4 + 4 h, column i
//          32-bit: row (l & 1) + (i & 2) + 4 h, column (i & 4) + (l & 2) + (i & 1)
// Only Volta and Turing have it in hardware; on all our targets it is a call of what ptxas 13.0
// brings along, whose order of fp32 operations is kept here.
//
//===----------------------------------------------------------------------===//
#include "Sim/Decode/Decode.h"
#include "Sim/Insn/Scalar/Floats.h"
#include "Sim/State/ExecContext.h"
#include "fp4/ISA/SmemDescriptor.h"
#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace fp4::sim {
namespace {

//===----------------------------------------------------------------------===//
// Doubles
//===----------------------------------------------------------------------===//

struct Doubles {
  std::array<double, 16 * 16> a{};
  std::array<double, 16 * 8> b{}, d{};
};

Doubles gatherDoubles(ExecContext &cx, const Insn &insn) {
  Doubles tile;
  const auto &mma = insn.as<DoubleMmaModifiers>();
  const unsigned tall = mma.rows / 8, k = mma.k;
  const auto of = [&](unsigned op, unsigned i, unsigned lane) {
    return cx.src<double>(cx.elements(insn.op[op])[i])[lane];
  };
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned group = lane / 4, member = lane % 4;
    for (unsigned i = 0; i < tall * k / 4; ++i)
      tile.a[(group + 8 * (i % tall)) * 16 + member + 4 * (i / tall)] = of(1, i, lane);
    for (unsigned i = 0; i < k / 4; ++i)
      tile.b[(member + 4 * i) * 8 + group] = of(2, i, lane);
    for (unsigned i = 0; i < 2 * tall; ++i)
      tile.d[(group + 8 * (i / 2)) * 8 + 2 * member + i % 2] = of(3, i, lane);
  }
  return tile;
}

Outcome mmaDoubles(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  const auto &mma = insn.as<DoubleMmaModifiers>();
  Doubles tile = gatherDoubles(cx, insn);
  for (unsigned row = 0; row < mma.rows; ++row)
    for (unsigned column = 0; column < 8; ++column) {
      double &cell = tile.d[row * 8 + column];
      for (unsigned k = 0; k < mma.k; ++k)
        cell = fma64(tile.a[row * 16 + k], tile.b[k * 8 + column], cell);
    }
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < mma.rows / 4u; ++i)
      cx.dst<double>(cx.elements(insn.op[0])[i])[lane] =
          tile.d[(lane / 4 + 8 * (i / 2)) * 8 + 2 * (lane % 4) + i % 2];
  ++cx.cluster().mmas;
  return Outcome::Next;
}

//===----------------------------------------------------------------------===//
// Volta
//===----------------------------------------------------------------------===//

struct Place {
  unsigned row = 0, column = 0;
};

Place resultPlace(bool half, unsigned lane, unsigned i) {
  const unsigned low = 4 * (lane / 16);
  if (half)
    return {lane % 4 + low, i};
  return {(lane & 1) + (i & 2) + low, (i & 4) + (lane & 2) + (i & 1)};
}

/// Half `i` of a fragment in a lane.
uint16_t *halfOf(ExecContext &cx, const Operand &fragment, unsigned lane, unsigned i) {
  return reinterpret_cast<uint16_t *>(cx.dst<uint32_t>(cx.elements(fragment)[i / 2]) + lane) +
         i % 2;
}

/// One of the four products: lanes 4 q + i and 16 + 4 q + i.
struct Quarter {
  std::array<uint8_t, 8 * hw::mmaRowBytes> a{}, b{};
  std::array<uint32_t, 64> d{};
};

void gatherQuarter(ExecContext &cx, const Insn &insn, unsigned q, Quarter &tile) {
  const auto [aByColumn, bByRow, halfC, halfD] = insn.as<QuarterMmaModifiers>();
  for (unsigned l = 0; l < 8; ++l) {
    const unsigned lane = l / 4 * 16 + 4 * q + l % 4, low = 4 * (l / 4);
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = aByColumn ? i + low : l, ak = aByColumn ? l % 4 : i;
      const unsigned column = bByRow ? i + low : l, bk = bByRow ? l % 4 : i;
      std::memcpy(&tile.a[row * hw::mmaRowBytes + 2 * ak], halfOf(cx, insn.op[1], lane, i), 2);
      std::memcpy(&tile.b[column * hw::mmaRowBytes + 2 * bk], halfOf(cx, insn.op[2], lane, i), 2);
    }
    for (unsigned i = 0; i < 8; ++i) {
      const Place at = resultPlace(halfC, lane, i);
      uint32_t &cell = tile.d[at.row * 8 + at.column];
      if (!halfC)
        cell = cx.src<uint32_t>(cx.elements(insn.op[3])[i])[lane];
      else if (const uint16_t c = *halfOf(cx, insn.op[3], lane, i); halfD)
        cell = c;
      else
        cell = std::bit_cast<uint32_t>(f16ToFloat(c));
    }
  }
}

void scatterQuarter(ExecContext &cx, const Insn &insn, unsigned q, const Quarter &tile) {
  const bool half = insn.as<QuarterMmaModifiers>().halfD;
  for (unsigned l = 0; l < 8; ++l)
    for (unsigned i = 0; i < 8; ++i) {
      const unsigned lane = l / 4 * 16 + 4 * q + l % 4;
      const Place at = resultPlace(half, lane, i);
      const uint32_t cell = tile.d[at.row * 8 + at.column];
      if (half)
        *halfOf(cx, insn.op[0], lane, i) = uint16_t(cell);
      else
        cx.dst<uint32_t>(cx.elements(insn.op[0])[i])[lane] = cell;
    }
}

/// One element of D. An fp32 result is C plus a chain of fused multiply-adds from zero; an fp16
/// result gets its products in two pairs.
uint32_t quarterElement(const uint8_t *row, const uint8_t *column, bool half, uint32_t c) {
  float a[4], b[4];
  for (unsigned k = 0; k < 4; ++k) {
    uint16_t x, y;
    std::memcpy(&x, row + 2 * k, 2);
    std::memcpy(&y, column + 2 * k, 2);
    a[k] = f16ToFloat(x);
    b[k] = f16ToFloat(y);
  }
  if (half) {
    const float low = a[0] * b[0], high = a[2] * b[2];
    const float sum = f16ToFloat(uint16_t(c)) + std::fma(a[1], b[1], low);
    return floatToF16(sum + std::fma(a[3], b[3], high));
  }
  float sum = 0;
  for (unsigned k = 0; k < 4; ++k)
    sum = std::fma(a[k], b[k], sum);
  return std::bit_cast<uint32_t>(canonical(std::bit_cast<float>(c) + sum));
}

Outcome mmaQuarters(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  for (unsigned q = 0; q < 4; ++q) {
    Quarter tile;
    gatherQuarter(cx, insn, q, tile);
    for (unsigned i = 0; i < 64; ++i)
      tile.d[i] = quarterElement(&tile.a[i / 8 * hw::mmaRowBytes], &tile.b[i % 8 * hw::mmaRowBytes],
                                 insn.as<QuarterMmaModifiers>().halfD, tile.d[i]);
    scatterQuarter(cx, insn, q, tile);
  }
  ++cx.cluster().mmas;
  return Outcome::Next;
}

Status checkCounts(BindContext &bind, std::array<int64_t, 4> expected) {
  for (unsigned i = 0; i < 4; ++i)
    if (bind.insn.op[i].imm != expected[i])
      return bind.fail(fmt::format("{} of .{} expects {} registers, but got {}", "DABC"[i],
                                   bind.match.text("shape"), expected[i], bind.insn.op[i].imm));
  return {};
}

} // namespace

Status bindMmaDoubles(BindContext &bind) {
  const std::string_view shape = bind.match.text("shape");
  const bool tall = shape.starts_with("m16");
  const int64_t k = std::stol(std::string(shape.substr(shape.find('k') + 1)));
  bind.insn.make<DoubleMmaModifiers>({uint8_t(tall ? 16 : 8), uint8_t(k)});
  FP4_TRY(checkCounts(bind, {tall ? 4 : 2, (tall ? 2 : 1) * k / 4, k / 4, tall ? 4 : 2}));
  return bind.use(mmaDoubles);
}

Status bindMmaQuarters(BindContext &bind) {
  const bool halfC = bind.match.text("ctype") == "f16", halfD = bind.match.text("dtype") == "f16";
  if (halfD && !halfC)
    return bind.fail("expects a D of .f32 where C is .f32");
  bind.insn.make<QuarterMmaModifiers>(
      {bind.match.text("alayout") == "col", bind.match.text("blayout") == "row", halfC, halfD});
  FP4_TRY(checkCounts(bind, {halfD ? 4 : 8, 2, 2, halfC ? 4 : 8}));
  return bind.use(mmaQuarters);
}

} // namespace fp4::sim
