//===- RowTurns.cpp - A CTA's turns on the rows of a strip ----------------===//
#include "Rows/RowTurns.h"

#include "Reduce/GridMax.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace fp4;

void RowTurns::begin(const Rows &rows, llvm::function_ref<bool()> before) {
  if (!kernel.hasStrips())
    return;
  copiedRows = rows.copied;
  strip.emplace(kernel, rows.haveTiledScales, rows.onHost);
  if (kernel.hasStages()) {
    row.beginCopies();
    copyRow(strip->firstRow(), {});
    row.shareColumns();
  }
  if (before() || kernel.hasStages())
    NVVM::Barrier0Op::create(b);
  if (kernel.hasStages())
    strip->begin({});
  else
    loadRows();
  row.team().take(strip->row(), strip->turn());
}

/// Has the next row wait in registers.
void RowTurns::loadRows() {
  RowTeam &team = row.team();
  team.take(strip->firstRow(), Int32(b, 0));
  row.shareColumns();
  strip->begin(row.loadRow());
  team.take(strip->nextRow(), strip->turn());
  nextWords = row.loadRow();
  row.keep(strip->carried());
}

void RowTurns::take() {
  if (!kernel.hasStages())
    return;
  row.keep(row.copiedRow(strip->turn()));
  row.team().atBarrier([this] { copyRow(strip->nextRow(), strip->turn() + 1 < strip->turns()); });
}

void RowTurns::copyNext() { row.team().expectBarrier(); }

void RowTurns::end() {
  if (strip)
    strip->close(nextWords);
}

/// Begins the copy of a row to shared memory, unless it is behind those that are copied: nobody
/// waits for such a row.
void RowTurns::copyRow(Int32 number, Value isTurn) {
  Value begins = isTurn;
  if (copiedRows) {
    Value isRow = number < Int32(b, copiedRows);
    begins = isTurn ? arith::AndIOp::create(b, isTurn, isRow).getResult() : isRow;
  }
  row.team().withRow(number, [&] {
    if (begins)
      emitWhen(b, begins, [&] { row.copyRow(); });
    else
      row.copyRow();
  });
}
