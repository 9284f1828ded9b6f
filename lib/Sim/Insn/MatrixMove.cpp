//===- MatrixMove.cpp - ldmatrix, stmatrix, movmatrix ---------------------===//
//
// PTX ISA, "Warp-level matrix load and store": 8x8 matrices of 16 bits. Lane 8 i + r has the
// address of row r of matrix i; lane l holds elements 2 (l % 4) and the next of row l / 4 of each
// matrix in one register, or with .trans of column l / 4.
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/MemoryAccess.h"
#include <cstring>
#include <fmt/format.h>

using namespace fp4;
using namespace fp4::sim;

namespace {

constexpr unsigned kSide = 8;
constexpr uint32_t kRowBytes = 16;
using Matrix = std::array<std::array<uint16_t, kSide>, kSide>;

/// Insn::m: 0 space, 1 .trans.
uint32_t fragmentOf(const Matrix &matrix, unsigned lane, bool transposed) {
  unsigned row = lane / 4, column = lane % 4 * 2;
  uint16_t low = transposed ? matrix[column][row] : matrix[row][column];
  uint16_t high = transposed ? matrix[column + 1][row] : matrix[row][column + 1];
  return low | uint32_t(high) << 16;
}

void setFragment(Matrix &matrix, unsigned lane, bool transposed, uint32_t value) {
  unsigned row = lane / 4, column = lane % 4 * 2;
  (transposed ? matrix[column][row] : matrix[row][column]) = static_cast<uint16_t>(value);
  (transposed ? matrix[column + 1][row] : matrix[row][column + 1]) =
      static_cast<uint16_t>(value >> 16);
}

/// Calls f(bytes of the row, row) for each row of `count` matrices; false after an error.
template <bool Write, typename F>
bool forEachRow(ExecContext &cx, const Insn &insn, const Operand &address, unsigned count, F &&f) {
  auto space = static_cast<Space>(insn.m[0]);
  const uint32_t all = cx.mask;
  if (cx.observer) { // the lanes that give addresses
    cx.mask = kSide * count == 32 ? kAllLanes : (1u << (kSide * count)) - 1;
    reportAccess(cx, LaneAddresses(cx, address, kRowBytes),
                 Write ? AccessKind::Write : AccessKind::Read,
                 {space, MemOrder::Weak, Scope::None, kRowBytes});
    cx.mask = all;
  }
  for (unsigned row = 0; row < kSide * count; ++row) {
    int lane = static_cast<int>(row);
    auto place = cx.place(space, cx.address(address, lane));
    if (place.space != Space::SharedCluster) {
      cx.fail(fmt::format("expects an address in shared memory, but got {:#x}",
                          cx.address(address, lane)),
              "", lane);
      return false;
    }
    Space resolved = space == Space::SharedCta ? space : place.space;
    auto *bytes = Write ? cx.writable(resolved, place.address, kRowBytes, kRowBytes, lane)
                        : const_cast<std::byte *>(
                              cx.readable(resolved, place.address, kRowBytes, kRowBytes, lane));
    if (!bytes)
      return false;
    f(bytes, row);
  }
  return true;
}

Outcome loadMatrix(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  unsigned count = cx.elementCount(insn.op[0]);
  std::array<Matrix, 4> matrices{};
  if (!forEachRow<false>(cx, insn, insn.op[1], count, [&](const std::byte *bytes, unsigned row) {
        std::memcpy(matrices[row / kSide][row % kSide].data(), bytes, kRowBytes);
      }))
    return Outcome::Error;
  for (unsigned i = 0; i < count; ++i)
    cx.store<uint32_t>(cx.elements(insn.op[0])[i], [&](int lane) {
      return fragmentOf(matrices[i], static_cast<unsigned>(lane), insn.m[1]);
    });
  return Outcome::Next;
}

Outcome storeMatrix(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  unsigned count = cx.elementCount(insn.op[1]);
  std::array<Matrix, 4> matrices{};
  for (unsigned i = 0; i < count; ++i) {
    const uint32_t *reg = cx.src<uint32_t>(cx.elements(insn.op[1])[i]);
    for (unsigned lane = 0; lane < 32; ++lane)
      setFragment(matrices[i], lane, insn.m[1], reg[lane]);
  }
  bool done = forEachRow<true>(cx, insn, insn.op[0], count, [&](std::byte *bytes, unsigned row) {
    std::memcpy(bytes, matrices[row / kSide][row % kSide].data(), kRowBytes);
  });
  return done ? Outcome::Next : Outcome::Error;
}

/// The transpose of one matrix held in registers.
Outcome moveMatrix(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  Matrix matrix{};
  const uint32_t *reg = cx.src<uint32_t>(insn.op[1]);
  for (unsigned lane = 0; lane < 32; ++lane)
    setFragment(matrix, lane, false, reg[lane]);
  cx.store<uint32_t>(
      insn.op[0], [&](int lane) { return fragmentOf(matrix, static_cast<unsigned>(lane), true); });
  return Outcome::Next;
}

Status describe(BindContext &cx, const Operand &data) {
  Space space = cx.match.space();
  if (space != Space::Generic && space != Space::SharedCta)
    return cx.fail("works on .shared only");
  if (cx.insn.type != Type::B16)
    return useFor(cx, nullptr);
  int64_t count = cx.match.text("num")[1] - '0';
  if (data.imm != count)
    return cx.fail(fmt::format("expects {} registers, but got {}", count, data.imm));
  cx.insn.m[0] = static_cast<uint8_t>(space);
  cx.insn.m[1] = cx.match.has("trans");
  return {};
}

} // namespace

namespace fp4::sim {

Status bindLdmatrix(BindContext &cx) {
  FP4_TRY(describe(cx, cx.insn.op[0]));
  return cx.use(loadMatrix);
}
Status bindStmatrix(BindContext &cx) {
  FP4_TRY(describe(cx, cx.insn.op[1]));
  return cx.use(storeMatrix);
}
Status bindMovmatrix(BindContext &cx) {
  return useFor(cx, cx.insn.type == Type::B16 ? moveMatrix : nullptr);
}

} // namespace fp4::sim
