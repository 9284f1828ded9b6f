//===- PipeJoin.cpp - Tables of tiles, and parts of a tile ----------------===//

#include "fp4/Dialect/Pipe/IR/Pipe.h"

using namespace mlir;
using namespace fp4::pipe;

LogicalResult LoadEntryOp::verify() { // (C170)
  GlobalType table = getTable().getType();
  VectorType entry = getResult().getType();
  int64_t columns = table.getRank() == 2 ? table.getShape()[1] : 1;
  if (table.getRank() < 1 || table.getElementType() != entry.getElementType() ||
      columns != entry.getNumElements() || !llvm::is_contained({1, 2, 4}, columns))
    return emitOpError() << "table must have rows of 1, 2 or 4 elements like " << entry
                         << ", but got " << table;
  return success();
}

LogicalResult JoinOp::verify() { // (C171)
  GlobalType counters = getCounters().getType();
  if (counters.getRank() != 2 || !llvm::is_contained({4, 8}, counters.getShape()[1]) ||
      !counters.getElementType().isInteger(32))
    return emitOpError() << "counters must be a buffer of i32 with 4 or 8 columns, but got "
                         << counters;
  if (int64_t(getParts()) < 2)
    return emitOpError() << "parts must be at least 2, but got " << int64_t(getParts());
  return success();
}

LogicalResult FetchOp::verify() { // (C172)
  GlobalType source = getSource().getType();
  VectorType segment = getResult().getType();
  if (source.getRank() != 2 || source.getElementType() != segment.getElementType() ||
      source.hasDynamicColumns() || source.getShape()[1] % segment.getNumElements())
    return emitOpError() << "buffer must have 2 dimensions with whole segments of " << segment
                         << " in a row, but got " << source;
  return success();
}
