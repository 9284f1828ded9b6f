//===- MatrixMove.cpp - ldmatrix, stmatrix, movmatrix ---------------------===//
//
// PTX ISA, "Warp-level matrix load and store". A matrix is 8 rows (.m16n16: 16) of 16 bytes, whose
// addresses the lanes give in order: lane 8 i + r that of row r of matrix i. Lane l holds these
// elements of each matrix, by arrangement:
//
//   Rows        bytes 4 (l % 4) .. + 3 of row l / 4: .m8n8, .m8n16
//   Halves      column l / 4 of halves 2 (l % 4) and the next row's: .m8n8.trans
//   Columns16   two registers: bytes l / 4 and l / 4 + 8 of rows 4 (l % 4) .. + 3: .m16n16.trans
//   Columns8    bytes l / 4 and l / 4 + 8, each of rows 2 (l % 4) and the next: .m16n8.trans
//
// [uncertain] The last two are in figures; here as in CUTLASS' copy traits for sm_100. Elements of
// 6 and 4 bits come into the low bits of a byte. [uncertain] For 4 bits this is inferred from
// CUTLASS, which shifts them up before it multiplies.
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/Memory/MemoryAccess.h"
#include "Sim/Insn/Poison/Uses.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>

using namespace fp4;
using namespace fp4::sim;

namespace {

constexpr uint32_t kRowBytes = 16;
using Matrix = std::array<std::array<uint8_t, kRowBytes>, 16>;

Arrangement arrangementOf(const Insn &insn) { return insn.as<MatrixModifiers>().arrangement; }
unsigned rowsOf(const Insn &insn) { return arrangementOf(insn) == Arrangement::Columns16 ? 16 : 8; }
unsigned registersOf(const Insn &insn) {
  return arrangementOf(insn) == Arrangement::Columns16 ? 2 : 1;
}

/// Byte `b` of register `i` of a lane.
template <typename M>
auto &byteOf(M &matrix, Arrangement arrangement, unsigned lane, unsigned i, unsigned b) {
  const unsigned group = lane / 4, member = lane % 4;
  switch (arrangement) {
  case Arrangement::Rows:
    return matrix[group][4 * member + b];
  case Arrangement::Halves:
    return matrix[2 * member + b / 2][2 * group + b % 2];
  case Arrangement::Columns16:
    return matrix[4 * member + b][group + 8 * i];
  default:
    return matrix[2 * member + b % 2][group + 8 * (b / 2)];
  }
}

uint32_t fragmentOf(const Matrix &matrix, Arrangement arrangement, unsigned lane, unsigned i) {
  uint32_t value = 0;
  if (arrangement == Arrangement::Rows)
    std::memcpy(&value, &matrix[lane / 4][4 * (lane % 4)], 4);
  for (unsigned b = 0; arrangement != Arrangement::Rows && b < 4; ++b)
    value |= uint32_t(byteOf(matrix, arrangement, lane, i, b)) << (8 * b);
  return value;
}

void setFragment(Matrix &matrix, Arrangement arrangement, unsigned lane, uint32_t value) {
  for (unsigned b = 0; b < 4; ++b)
    byteOf(matrix, arrangement, lane, 0, b) = uint8_t(value >> (8 * b));
}

/// A row of 16 elements of `bits` bits, one after the other, as bytes.
void unpackRow(const std::byte *from, unsigned bits, bool isSigned,
               std::array<uint8_t, kRowBytes> &row) {
  const unsigned sign = isSigned ? 1u << (bits - 1) : 0;
  for (unsigned i = 0; i < kRowBytes; ++i) {
    const unsigned at = i * bits / 8;
    unsigned pair = unsigned(from[at]);
    if (at + 1 < kRowBytes * bits / 8)
      pair |= unsigned(from[at + 1]) << 8;
    const unsigned element = pair >> (i * bits % 8) & ((1u << bits) - 1);
    row[i] = uint8_t((element ^ sign) - sign);
  }
}

/// Bytes of a row in memory; padding may follow, which may be unset.
uint32_t rowBytes(const Insn &insn) {
  return kRowBytes * insn.as<MatrixModifiers>().sourceBits / 8;
}

/// Tells the observer of `rows` rows, of whose addresses each comes from one lane. `written` are
/// the matrices of a store, or null.
void reportRows(ExecContext &cx, const Insn &insn, const Operand &address, unsigned rows,
                const Matrix *written) {
  if (!cx.observer)
    return;
  const Space space = insn.as<MatrixModifiers>().space;
  const uint32_t bytes = rowBytes(insn), all = cx.mask;
  cx.mask = rows == 32 ? kAllLanes : (1u << rows) - 1;
  const LaneAddresses lanes(cx, address, bytes);
  uint32_t unchanged = 0;
  if (written)
    unchanged = unchangedLanes(cx, space, lanes, bytes, [&](unsigned row, const std::byte *there) {
      return std::memcmp(there, written[row / rowsOf(insn)][row % rowsOf(insn)].data(), bytes) == 0;
    });
  reportAccess(cx, lanes, written ? AccessKind::Write : AccessKind::Read,
               {space, MemOrder::Weak, Scope::None, bytes, unchanged});
  cx.mask = all;
}

/// Calls f(bytes of the row, row) for each of `rows` rows; false after an error.
template <bool Write, typename F>
bool forEachRow(ExecContext &cx, const Insn &insn, const Operand &address, unsigned rows, F &&f) {
  const Space space = insn.as<MatrixModifiers>().space;
  const uint32_t bytes = rowBytes(insn);
  for (unsigned row = 0; row < rows; ++row) {
    int lane = static_cast<int>(row);
    auto place = cx.place(space, cx.address(address, lane));
    if (place.space != Space::SharedCluster) {
      cx.fail(fmt::format("expects an address in shared memory, but got {:#x}",
                          cx.address(address, lane)),
              "", lane);
      return false;
    }
    Space resolved = space == Space::SharedCta ? space : place.space;
    auto *at =
        Write
            ? cx.writable(resolved, place.address, bytes, kRowBytes, lane)
            : const_cast<std::byte *>(cx.loadable(resolved, place.address, bytes, kRowBytes, lane));
    if (!at)
      return false;
    f(at, row);
  }
  return true;
}

/// A row as it lies in memory becomes one of a matrix.
void takeRow(const Insn &insn, const std::byte *from, std::array<uint8_t, kRowBytes> &row) {
  const unsigned bits = insn.as<MatrixModifiers>().sourceBits;
  if (bits == 8)
    std::memcpy(row.data(), from, kRowBytes);
  else
    unpackRow(from, bits, insn.as<MatrixModifiers>().isSigned, row);
}

void setFragments(ExecContext &cx, const Insn &insn, const std::array<Matrix, 4> &matrices) {
  const unsigned perMatrix = registersOf(insn), count = cx.elementCount(insn.op[0]);
  for (unsigned i = 0; i < count; ++i)
    cx.store<uint32_t>(cx.elements(insn.op[0])[i], [&](int lane) {
      return fragmentOf(matrices[i / perMatrix], arrangementOf(insn), unsigned(lane),
                        i % perMatrix);
    });
}

std::array<Matrix, 4> fragmentsOf(ExecContext &cx, const Insn &insn) {
  std::array<Matrix, 4> matrices;
  for (unsigned i = 0; i < cx.elementCount(insn.op[1]); ++i) {
    const uint32_t *reg = cx.src<uint32_t>(cx.elements(insn.op[1])[i]);
    for (unsigned lane = 0; lane < 32; ++lane)
      setFragment(matrices[i], arrangementOf(insn), lane, reg[lane]);
  }
  return matrices;
}

/// Rows had bytes that nobody wrote: their poison goes the way of the bytes.
void loadShadows(ExecContext &cx, const Insn &insn) {
  std::array<Matrix, 4> shadows{};
  Poison::Origins origins;
  origins.fill(cx.loaded.front().origin);
  for (const ExecContext::Loaded &found : cx.loaded) {
    const auto row = unsigned(found.lane); // a poisoned sign is that of all bits above
    takeRow(insn, found.bits.data(), shadows[row / rowsOf(insn)][row % rowsOf(insn)]);
  }
  cx.loaded.clear();
  {
    ShadowRegisters registers(cx);
    setFragments(cx, insn, shadows);
  }
  for (unsigned i = 0; i < cx.elementCount(insn.op[0]); ++i)
    cx.poison().update(cx.elements(insn.op[0])[i], cx.mask, origins);
}

/// The rows that were stored get the poison of the registers.
bool storeShadows(ExecContext &cx, const Insn &insn) {
  const Poison &poison = cx.poison();
  const unsigned count = cx.elementCount(insn.op[1]), rows = rowsOf(insn);
  const Operand *o = cx.elements(insn.op[1]);
  const Operand *first =
      std::find_if(o, o + count, [&](const Operand &e) { return poison.has(e); });
  if (first == o + count)
    return true;
  const PoisonOrigin origin =
      poison.origin(first->offset, std::countr_zero(poison.lanesOf(*first)));
  std::array<Matrix, 4> shadows;
  {
    ShadowRegisters registers(cx);
    shadows = fragmentsOf(cx, insn);
  }
  for (unsigned row = 0; row < rows * count; ++row) {
    const auto *bits = reinterpret_cast<const std::byte *>(shadows[row / rows][row % rows].data());
    const auto place = cx.place(insn.as<MatrixModifiers>().space, cx.address(insn.op[0], int(row)));
    if (!storePoison(cx, place.space, place.address, std::span(bits, kRowBytes), origin, int(row)))
      return false;
  }
  return true;
}

Outcome loadMatrix(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  const unsigned perMatrix = registersOf(insn), count = cx.elementCount(insn.op[0]);
  const unsigned rows = rowsOf(insn);
  std::array<Matrix, 4> matrices;
  reportRows(cx, insn, insn.op[1], rows * count / perMatrix, nullptr);
  if (!forEachRow<false>(cx, insn, insn.op[1], rows * count / perMatrix,
                         [&](const std::byte *from, unsigned row) {
                           takeRow(insn, from, matrices[row / rows][row % rows]);
                         }))
    return Outcome::Error;
  setFragments(cx, insn, matrices);
  if (!cx.loaded.empty())
    loadShadows(cx, insn);
  return Outcome::Next;
}

Outcome storeMatrix(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  const unsigned count = cx.elementCount(insn.op[1]), rows = rowsOf(insn);
  const std::array<Matrix, 4> matrices = fragmentsOf(cx, insn);
  reportRows(cx, insn, insn.op[0], rows * count, matrices.data());
  bool done =
      forEachRow<true>(cx, insn, insn.op[0], rows * count, [&](std::byte *to, unsigned row) {
        std::memcpy(to, matrices[row / rows][row % rows].data(), kRowBytes);
      });
  if (done && cx.warp().poison)
    done = storeShadows(cx, insn);
  return done ? Outcome::Next : Outcome::Error;
}

/// The transpose of one matrix held in registers.
Outcome moveMatrix(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  Matrix matrix;
  const uint32_t *reg = cx.src<uint32_t>(insn.op[1]);
  for (unsigned lane = 0; lane < 32; ++lane)
    setFragment(matrix, Arrangement::Rows, lane, reg[lane]);
  cx.store<uint32_t>(insn.op[0], [&](int lane) {
    return fragmentOf(matrix, Arrangement::Halves, unsigned(lane), 0);
  });
  return Outcome::Next;
}

Status describe(BindContext &cx, const Operand &data, Arrangement arrangement,
                uint8_t sourceBits = 8) {
  Space space = cx.match.space();
  if (space != Space::Generic && space != Space::SharedCta)
    return cx.fail("works on .shared only");
  cx.insn.make<MatrixModifiers>({space, arrangement, sourceBits});
  const int64_t count = (cx.match.text("num")[1] - '0') * int64_t(registersOf(cx.insn));
  if (data.imm != count)
    return cx.fail(fmt::format("expects {} registers, but got {}", count, data.imm));
  return {};
}

/// .m8n8 of .b16.
Status describeHalves(BindContext &cx, const Operand &data) {
  if (cx.insn.type != Type::B16)
    return useFor(cx, nullptr);
  return describe(cx, data, cx.match.has("trans") ? Arrangement::Halves : Arrangement::Rows);
}

} // namespace

namespace fp4::sim {

Status bindLdmatrix(BindContext &cx) {
  FP4_TRY(describeHalves(cx, cx.insn.op[0]));
  return cx.use(loadMatrix);
}
Status bindStmatrix(BindContext &cx) {
  FP4_TRY(describeHalves(cx, cx.insn.op[1]));
  return cx.use(storeMatrix);
}
/// .b8, and .b8x16 of narrower elements.
Status bindLdmatrixBytes(BindContext &cx) {
  const bool isSigned = cx.match.text("source") == "s4";
  const uint8_t sourceBits = !cx.match.has("source")                  ? 8
                             : cx.match.text("source") == "b6x16_p32" ? 6
                                                                      : 4;
  FP4_TRY(describe(cx, cx.insn.op[0],
                   cx.match.has("m16n16") ? Arrangement::Columns16 : Arrangement::Rows,
                   sourceBits));
  auto matrix = cx.insn.as<MatrixModifiers>();
  matrix.isSigned = isSigned;
  cx.insn.make(matrix);
  return cx.use(loadMatrix);
}
Status bindStmatrixBytes(BindContext &cx) {
  FP4_TRY(describe(cx, cx.insn.op[1], Arrangement::Columns8));
  return cx.use(storeMatrix);
}
Status bindMovmatrix(BindContext &cx) {
  return useFor(cx, cx.insn.type == Type::B16 ? moveMatrix : nullptr);
}

} // namespace fp4::sim
