//===- StageColumns.h - Columns of an accumulator, by turn ----------------===//
//
// Two accumulators of one channel may have columns in common: the last of stage 0 are the first of
// stage 1. A role may read the ends of a tile in an order that follows from the parity of its turn,
// which is that of the stage. The pass that places accumulators and the verifier ask here for the
// columns that a read reads in either stage.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include <optional>

namespace fp4::pipe {

/// Columns of a tile, the end excluded.
struct ColumnRange {
  int64_t first, end;
};

/// The columns that `read` reads in the stages of parity `stage` of the channel that `wait` takes
/// its accumulator from; nothing where they are not known.
std::optional<ColumnRange> columnsRead(ReadOp read, ConsumerWaitOp wait, int64_t stage);

/// The columns that a stage alone has, where `common` columns of a tile of `columns` are in both.
ColumnRange ownColumns(int64_t columns, int64_t common, int64_t stage);

/// The accumulator of `wait` is read by what is beside it alone: these reads in their order, else
/// none.
llvm::SmallVector<ReadOp> readsOf(ConsumerWaitOp wait);

/// The last of `reads` that reads columns which both stages have; null where that is not known.
ReadOp lastCommonRead(llvm::ArrayRef<ReadOp> reads, ConsumerWaitOp wait, int64_t columns,
                      int64_t common);

} // namespace fp4::pipe
