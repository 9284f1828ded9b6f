//===- RowStrip.h - Rows that a CTA takes one after the other -------------===//
//
// A CTA that takes several rows computes once what is the same for all of them, and loads a row
// while it computes the one before. With tiled scales these are four, rows r, r + 32, r + 64 and r
// + 96 of a scale tile, whose scales are 16 bytes that follow each other: they wait in shared
// memory, because a store of four bytes takes the L2 cache as long as one of a sector.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Int32.h"
#include "KernelBuilder.h"

#include "fp4/ISA/ScaleLayout.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace fp4 {

/// A loop over the rows of a CTA.
class RowStrip {
public:
  /// For `hostRows` (an index) rows, of which the last have a CTA each (KernelBuilder::singleRows).
  /// Rows behind those of the matrix, up to a multiple of 128, have turns too.
  RowStrip(KernelBuilder &kernel, bool hasTiledScales, mlir::Value hostRows);

  /// The CTAs (an index) of the launch.
  mlir::Value ctas() const { return numCtas; }

  /// Begins the loop, whose body is the code up to close(). Values are carried from one row to the
  /// next: `carried` to the first, and those that close() is given.
  void begin(mlir::ValueRange carried);
  mlir::ValueRange carried() { return loop.getRegionIterArgs(); }
  void close(mlir::ValueRange carried);
  /// Moves the address of an argument in front of the loop, behind which it is used, too.
  void hoist(mlir::Value argument) { argument.getDefiningOp()->moveBefore(loop); }

  Int32 firstRow() const { return *first; }
  /// The CTA has all rows of a strip (i1), or one; null: always.
  mlir::Value hasAll() const { return isStrip; }
  /// Rows of the CTA.
  Int32 turns() const { return *numTurns; }
  /// The row of the present turn, and the next, or again the last of the CTA.
  Int32 turn() { return {b, loop.getInductionVar()}; }
  Int32 row() { return *first + turn() * step; }
  Int32 nextRow() { return *first + minimum(turn() + 1, turns() - 1) * step; }

private:
  mlir::ImplicitLocOpBuilder &b;
  int64_t step;
  std::optional<Int32> first, numTurns;
  mlir::Value isStrip, numCtas;
  mlir::scf::ForOp loop;
};

/// Tiled scales of the rows of a strip, of `tiles` scale tiles along a row, until it ends.
class StripScales {
public:
  StripScales(KernelBuilder &kernel, int64_t tiles);

  /// Has a thread leave the scale (i8) of a block of a row. All blocks of all tiles must be left.
  void leave(mlir::Value scale, Int32 turn, Int32 block);
  /// Stores the scales of `strip` to `base`, behind the loop. All threads are here.
  void store(mlir::Value base, const RowStrip &strip);

private:
  static constexpr int64_t kWord = hw::scaleBlockColumns, kUnit = hw::scaleUnitBytes;
  mlir::Value unitOf(Int32 tile) { return address(b, shared, tile, kUnit); }
  void forEachTile(llvm::function_ref<void(Int32)> body);
  void storeUnit(mlir::Value unit, mlir::Value to, mlir::Value hasAll);

  KernelBuilder &kernel;
  mlir::ImplicitLocOpBuilder &b;
  int64_t tiles;
  mlir::Value shared;
};

} // namespace fp4
