//===- WarpOperands.h - What the lanes of a warp have of its operands -----===//
//
// mma.sync.m16n8k64 of fp4 multiplies 16 rows of A with 8 columns of B, which are rows of a K-major
// B. Of each row, an instruction takes 32 bytes. Register i of lane l holds
//
//   A   row l / 4 + 8 (i % 2), bytes 4 (l % 4) + 16 (i / 2) .. + 3
//   B   row l / 4,             bytes 4 (l % 4) + 16 i .. + 3
//
// ldmatrix.x4 fills four such registers: lanes 8 j .. 8 j + 7 name the 8 rows of 16 bytes that become
// register j of all lanes. One of them gives all of A, or B of 16 rows, which are two instructions.
//
// Scales are bytes of a register too: row r of A has those of lane 4 (r % 8) + 2 t + r / 8, row n of B
// those of lane 4 n + t, where t is the "thread id" of the instruction. With every t used, a register
// has the scales of 32 rows, of two instructions along A or of four along B.
//
// These are the only places where the order of lanes is spelled; FragmentLayout.h has that of D. They
// are templates, so that kernels emit them (Int32 of KernelArithmetic).
//
// Sources: PTX ISA, "Matrix Fragments for mma.m16n8k64", "Block Scaling for mma.sync" and "ldmatrix".
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>

namespace fp4::hw {

/// Rows of A and of B of one instruction, and bytes of K of a row.
inline constexpr uint32_t warpRowsA = 16, warpRowsB = 8, warpRowBytes = 32;
/// Rows of A or B that one ldmatrix.x4 reads, 32 bytes of each.
inline constexpr uint32_t matrixRows = 16;
/// Rows whose scales one register of all lanes has.
inline constexpr uint32_t warpScaleRows = 32;

/// What a lane names for ldmatrix.x4: the first of 16 bytes of a row.
template <typename Int> struct MatrixLine {
  Int row, byte;
};
/// Registers 0 to 3 of A.
template <typename Int> constexpr MatrixLine<Int> matrixLineOfA(Int lane) {
  return {lane % 16, lane / 16 * 16};
}
/// Registers 0 and 1 of B for the first 8 rows, then those for the second.
template <typename Int> constexpr MatrixLine<Int> matrixLineOfB(Int lane) {
  return {lane / 16 * 8 + lane % 8, lane / 8 % 2 * 16};
}

/// The row, of 32, whose scales a lane has. The instruction with rows 16 t .. of A takes thread id t.
template <typename Int> constexpr Int scaleRowOfA(Int lane) {
  return lane % 4 / 2 * 16 + lane % 2 * 8 + lane / 4;
}
/// The same where there are 16 rows: thread id 0.
template <typename Int> constexpr Int scaleRowOfShortA(Int lane) {
  return lane % 2 * 8 + lane / 4;
}
/// The instruction with rows 8 t .. of B takes thread id t.
template <typename Int> constexpr Int scaleRowOfB(Int lane) { return lane % 4 * 8 + lane / 4; }

} // namespace fp4::hw
