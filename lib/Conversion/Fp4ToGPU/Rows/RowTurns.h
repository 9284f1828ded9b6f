//===- RowTurns.h - A CTA's turns on the rows of a strip ------------------===//
//
// CTAs of a row kernel whose plan has a strip take rows one after the other (RowStrip.h):
//
//   RowTurns turns(kernel, row);
//   turns.begin({hostRows}, [] { return false; });
//   turns.take();                        // the words of the row
//   row.begin(hostRows);
//   turns.copyNext();                    // the next row, if no barrier came before
//   ...
//   turns.end();
//   row.team().launch(turns.ctas(hostRows));
//
// The next row waits in registers, or in shared memory. A bulk copy brings it there, behind the
// first barrier of the CTA at which all threads have taken the words of the row before, because a
// copy that begins behind the last one has less time: threads of LayerNorm meet twice.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Rows/RowElements.h"
#include "Rows/RowStrip.h"

namespace fp4 {

class RowTurns {
public:
  RowTurns(KernelBuilder &kernel, RowElements &row) : kernel(kernel), b(kernel.body()), row(row) {}

  /// Rows of a matrix: an index on the host, and i32 where a CTA copies none behind them, or null.
  struct Rows {
    mlir::Value onHost;
    bool haveTiledScales = false;
    mlir::Value copied = {};
  };
  /// Begins the loop over rows. `before` emits what is the same for all of them, and returns true
  /// when threads read what others have written there.
  void begin(const Rows &rows, llvm::function_ref<bool()> before);
  void take();
  void copyNext();
  void end();
  /// The CTAs (an index) of the launch, of which `all` have a row each without a strip.
  mlir::Value ctas(mlir::Value all) const { return strip ? strip->ctas() : all; }
  /// The loop; none without a strip.
  std::optional<RowStrip> strip;

private:
  void loadRows();
  void copyRow(Int32 number, mlir::Value isTurn);

  KernelBuilder &kernel;
  mlir::ImplicitLocOpBuilder &b;
  RowElements &row;
  mlir::Value copiedRows;
  llvm::SmallVector<mlir::Value> nextWords;
};

} // namespace fp4
