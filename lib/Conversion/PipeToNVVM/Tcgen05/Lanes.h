//===- Lanes.h - TMEM lanes of a warp -------------------------------------===//
#pragma once

#include "Common/Fragments.h"

namespace fp4 {

/// The bit at which an address of tensor memory has the TMEM lane.
inline constexpr int64_t kLaneShift = 16;

/// The 32 TMEM lanes that this warp reaches, as a part of an address: those of its place among
/// four warps.
inline Int32 lanesOfWarp(mlir::ImplicitLocOpBuilder &b, const KernelState &state) {
  constexpr int64_t lanes = 0x60;
  mlir::Location loc = b.getLoc();
  mlir::Value quadrant =
      mlir::arith::AndIOp::create(b, state.threadIndex, constantI32(b, loc, lanes));
  return Int32(b, mlir::arith::ShLIOp::create(b, quadrant, constantI32(b, loc, kLaneShift)));
}

} // namespace fp4
