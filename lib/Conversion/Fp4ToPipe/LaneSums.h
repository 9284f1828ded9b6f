//===- LaneSums.h - Sums in tensor memory ---------------------------------===//
//
// The accumulators of tcgen05, of which a thread has a TMEM lane: a row of the tile, or with
// swapped operands a column. A thread reads sums in chunks of columns. Partial sums of split-K are
// reduced through a workspace or in a cluster.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "WorkLoop.h"
#include "fp4/Dialect/Pipe/IR/Fragments.h"

namespace fp4 {

class LaneSums {
public:
  using Value = mlir::Value;
  using ValueRange = mlir::ValueRange;
  LaneSums(GemmKernel &kernel, const WorkLoop &works)
      : b(kernel.b), gemm(kernel.gemm), args(kernel.args), works(works) {}

  /// Takes the accumulators of a tile, and finds the part of it that a thread has.
  void take(ValueRange accumulators, const Tile &ofCta);
  /// Calls `convert` with each chunk of sums over all of K, one of each GEMM, and `store` with what
  /// becomes of chunks. Columns are those of the first TMEM lane in the result, and those that
  /// `convert` gets exist.
  using Conversion = llvm::function_ref<Value(ValueRange chunks, Value column)>;
  using Storing = llvm::function_ref<void(Value chunk, Value column)>;
  void complete(Conversion convert, Storing store);

  /// The type of a chunk of sums.
  mlir::RankedTensorType chunkType() const { return lanesType(gemm.chunk()); }
  /// A chunk of the sums of each GEMM, from `column` of the tile on, a number for registers.
  llvm::SmallVector<Value> read(mlir::OpFoldResult column);
  /// Elements that are computed where this is called.
  Value hold(Value chunk);
  /// The column of a thread that goes with `column` of the first TMEM lane.
  Value ofThread(Value column);
  /// The column of ofThread, or the last that exists: a half of the columns may end behind the
  /// result.
  Value ofThreadOrLast(Value column);
  Value orLast(Value column);

  Tile tile;     ///< tile with the first column of this warpgroup, if each has sums in registers
  Value laneRow; ///< base of the row of a thread, to which its lane is added

private:
  mlir::RankedTensorType lanesType(int64_t columns) const {
    return pipe::DistributionAttr::tensorOf(pipe::FragmentKind::Lanes, columns, b.getF32Type());
  }
  void readTile(Conversion convert, Storing store);
  void readAccumulators(Conversion convert, Storing store);
  void readRegisters(Conversion convert, Storing store);
  void forColumns(int64_t most, TileBuilder::LoopBody body);
  llvm::SmallVector<Value> registersOf(Value chunk);
  Value chunkOf(ValueRange registers, mlir::Type element);
  Value inTurn(int64_t column);

  void reduce(Conversion convert, Storing store);
  void reduceInCluster(Conversion convert, Storing store);
  void share(Conversion convert, Storing store);
  void finishShared(Conversion convert, Storing store);
  Value rowOfSums(Value part);
  void leaveShare(Value chunk, Value row, Value column);
  Value fetchShare(Value row, Value column);
  Value sumOfShares(Value column);
  Value counterIndex();
  /// Rows of the workspace for a thread: of the first part, of each, and behind the last.
  struct RowsOfSums {
    Value first, ofPart, end;
  };
  RowsOfSums rowsOfSums();
  Value columnOfSums(Value column);
  Value sumOfParts(Value column);

  TileBuilder &b;
  const Gemm &gemm;
  const KernelArguments &args;
  const WorkLoop &works;
  llvm::SmallVector<Value> accs;
  Value laneColumn;    ///< offset of the columns of a thread; null where all have the same
  Value columnOfGroup; ///< the first of this warpgroup; null where there is one
};

} // namespace fp4
