//===- WarpOperands.h - Operands in the lanes of a warp -------------------===//
//
// mma.sync.m16n8k64 of fp4 multiplies 16 rows of A with 8 columns of B, which are rows of a K-major
// B. An instruction takes 32 bytes of each row. Register i of lane l holds
//
//   A   row l / 4 + 8 (i % 2), bytes 4 (l % 4) + 16 (i / 2) .. + 3
//   B   row l / 4,             bytes 4 (l % 4) + 16 i .. + 3
//
// ldmatrix.x4 fills four such registers: lanes 8 j .. 8 j + 7 name the 8 rows of 16 bytes that
// become register j of all lanes. One of them gives all of A, or B of 16 rows, which are two
// instructions.
//
// Beside elements of 6 or 8 bits, which take a byte each, an instruction has 32 elements of 4 bits.
// Elements of 4 bits are two to a byte in memory: a register of ldmatrix has eight of one row,
// which become two registers of bytes. The elements of either operand therefore take another order
// of k, in which register i of a row has
//
//   elements 8 (l % 4) + i, + 2 + i, + 4 + i, + 6 + i
//
// The order changes no bit of the sum. All of the other operand comes from two words of the row.
//
// Scales are bytes of a register too: row r of A has those of lane 4 (r % 8) + 2 t + r / 8, row n
// of B those of lane 4 n + t, where t is the "thread id" of the instruction. With every t used, a
// register has the scales of 32 rows, of two instructions along A or of four along B.
//
// The functions below are the only places where the order of lanes is spelled; FragmentLayout.h has
// the order of D. The functions are templates, so that kernels emit them (Int32 of
// KernelArithmetic).
//
// Sources: PTX ISA, "Matrix Fragments for mma.m16n8k64", "Block Scaling for mma.sync" and
// "ldmatrix".
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
/// Elements of K in a tile where elements have 8 bits, or become as wide.
inline constexpr uint32_t warpByteTileK = 128;

/// The line that a lane names for ldmatrix.x4: the first of 16 bytes of a row.
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

/// Rows of 32 whose 16 bytes, 32 elements of 4 bits, a lane names beside elements of a byte each,
/// so that register j has the elements of rows 8 j .. 8 j + 7.
template <typename Int> constexpr MatrixLine<Int> matrixLineOfCodes(Int lane) {
  return {lane % 32, lane - lane};
}
/// The eight bytes of row l / 4, of 8, that a lane has of the other operand.
template <typename Int> constexpr MatrixLine<Int> lineBesideCodes(Int lane) {
  return {lane / 4, lane % 4 * 8};
}
/// Selector of prmt that takes elements 0, 2, 4, 6, or 1, 3, 5, 7, from eight bytes.
constexpr uint32_t besideCodes(unsigned i) { return i ? 0x7531 : 0x6420; }
/// Shift (to the left where positive) and mask that take half of the eight 4-bit elements of a word
/// into bits 5 to 2 of bytes, where instructions have E2M1.
constexpr int codeShift(unsigned i) { return i ? -2 : 2; }
inline constexpr uint32_t codeMask = 0x3C3C3C3C;

/// The row, of 32, whose scales a lane has. The instruction with rows 16 t .. of A takes thread id
/// t.
template <typename Int> constexpr Int scaleRowOfA(Int lane) {
  return lane % 4 / 2 * 16 + lane % 2 * 8 + lane / 4;
}
/// The row, of 16, whose scales a lane has: thread id 0.
template <typename Int> constexpr Int scaleRowOfShortA(Int lane) {
  return lane % 2 * 8 + lane / 4;
}
/// The instruction with rows 8 t .. of B takes thread id t.
template <typename Int> constexpr Int scaleRowOfB(Int lane) { return lane % 4 * 8 + lane / 4; }

} // namespace fp4::hw
