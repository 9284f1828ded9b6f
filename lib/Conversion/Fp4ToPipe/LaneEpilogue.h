//===- LaneEpilogue.h - Results of GEMMs with sums in tensor memory -------===//
//
// A thread has a TMEM lane: a row of the tile, or with swapped operands a column. The epilogue
// reads the accumulator in chunks of columns, converts and stores them. Partial sums of split-K are
// reduced before (LaneReduction.cpp).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "LaneWorks.h"
#include "SumConversion.h"

namespace fp4 {

class LaneEpilogue {
public:
  using Value = mlir::Value;
  using ValueRange = mlir::ValueRange;
  LaneEpilogue(GemmKernel &kernel, LaneWorks &works)
      : b(kernel.b), gemm(kernel.gemm), args(kernel.args), works(works), conversion(kernel) {}

  /// Emits what all tiles have in common.
  void begin();
  /// Sets the order of columns of turn `turn`, where that is not null: even and odd turns begin at
  /// different ends.
  void setTurn(Value turn);
  using Conversion = llvm::function_ref<Value(ValueRange chunks, Value column)>;
  using Storing = llvm::function_ref<void(Value chunk, Value column)>;
  /// Reads sums of a tile, converts and stores them.
  using Drain = llvm::function_ref<void(Conversion convert, Storing store)>;
  /// Stores a tile whose sums are in tensor memory.
  void finish(ValueRange accs, const LaneTile &tile);
  /// Stores a tile that `drain` reads: threads have the sums of `acc` in their registers.
  void finish(Value acc, const LaneTile &tile, Drain drain);
  /// Columns that do not exist take what goes with the last that do. Rows of groups are clamped
  /// where their numbers are loaded.
  Value orLast(Value column);

private:
  /// The part of a tile that a thread has.
  struct Part : LaneTile {
    Value laneRow;    ///< base of the row of a thread, to which its lane is added
    Value laneColumn; ///< offset of the columns of a thread; null where all have the same
    /// Alphas in every lane; null where there are none for the whole tile.
    Value factor, factor2;
  };
  void finish(ValueRange accs, const Part &tile, Drain drain);
  Part partOfThread(const LaneTile &tile, Value acc);
  Value ofThread(const Part &part, Value column);
  Value ofThreadOrLast(const Part &part, Value column);
  void drain(ValueRange accs, const Part &tile, Conversion convert, Storing store);
  Value broadcast(Value scalar);
  llvm::SmallVector<Value> read(ValueRange accs, Value column);
  llvm::SmallVector<Value> registersOf(Value chunk);
  Value chunkOf(ValueRange registers, mlir::Type element);
  Value hold(Value chunk);
  Value inTurn(int64_t column);
  void forColumns(const Part &tile, int64_t most, TileBuilder::LoopBody body);
  Value convert(ValueRange chunks, const Part &tile, Value column);
  void store(Value chunk, const Part &tile, Value column);
  Value numbers(const Part &tile, Value column, mlir::VectorType type, Value global, Value limit,
                bool ofGroup);
  Value factors(const Part &tile, Value alphas, Value column);

  void buildReduction(const Part &tile, Drain drain);
  Value rowOfSums(const Part &tile, Value part);
  void leaveShare(Value chunk, Value row, Value column);
  Value fetchShare(Value row, Value column);
  Value sumOfShares(const Part &tile, Value column);
  void finishShared(const Part &tile);
  void buildShare(const Part &tile, Drain drain);
  Value counterIndex(const Part &tile);
  /// Rows of the workspace for a thread: of the first part, of each, and behind the last.
  struct RowsOfSums {
    Value first, ofPart, end;
  };
  RowsOfSums rowsOfSums(const Part &tile);
  Value columnOfSums(const Part &tile, Value column);
  Value sumOfParts(const Part &tile, Value column);
  void reduceInCluster(Value acc, const Part &tile);

  TileBuilder &b;
  const Gemm &gemm;
  const KernelArguments &args;
  LaneWorks &works;
  SumConversion conversion;
  Value columnOfGroup;             ///< the first of this warpgroup; null where there is one
  Value flip;                      ///< reversal of the order of columns; null for a constant order
  Value alphaVector, alpha2Vector; ///< alpha in every lane; null where there is none or not one
  std::optional<ResultStores> results; ///< results besides the elements
};

/// The loop over the works of a kernel, with the epilogue of its tiles.
class LaneLoop {
public:
  explicit LaneLoop(GemmKernel &kernel)
      : b(kernel.b), gemm(kernel.gemm), works(kernel), epilogue(kernel, works) {}

  /// Emits the whole kernel: `body` for every tile.
  void forEachTile(llvm::function_ref<void(const LaneTile &tile)> body);
  /// Emits the whole kernel: for every tile `body` multiplies each k tile, to accumulators of each
  /// GEMM, and the epilogue stores them.
  void accumulate(
      llvm::function_ref<void(mlir::ValueRange accs, const LaneTile &tile, mlir::Value k)> body);
  mlir::Type accumulatorType();

private:
  TileBuilder &b;
  const Gemm &gemm;
  LaneWorks works;

public:
  LaneEpilogue epilogue;
};

} // namespace fp4
