//===- LaneEpilogue.h - Results of GEMMs with sums in tensor memory -------===//
//
// A thread has a TMEM lane: a row of the tile, or with swapped operands a column. The epilogue
// reads the accumulator in chunks of columns, converts and stores them. Partial sums of split-K are
// reduced before (LaneReduction.cpp).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Epilogue.h"
#include "SumConversion.h"

namespace fp4 {

class LaneEpilogue : public Epilogue {
public:
  using Value = mlir::Value;
  using ValueRange = mlir::ValueRange;
  LaneEpilogue(GemmKernel &kernel, const WorkLoop &works)
      : b(kernel.b), gemm(kernel.gemm), args(kernel.args), works(works), conversion(kernel) {}

  void begin() override;
  void finish(ValueRange accs, const Tile &tile) override;

private:
  using Conversion = llvm::function_ref<Value(ValueRange chunks, Value column)>;
  using Storing = llvm::function_ref<void(Value chunk, Value column)>;
  /// Reads sums of a tile, converts and stores them.
  using Drain = llvm::function_ref<void(Conversion convert, Storing store)>;
  /// The part of a tile that a thread has.
  struct Part : Tile {
    Value laneRow;    ///< base of the row of a thread, to which its lane is added
    Value laneColumn; ///< offset of the columns of a thread; null where all have the same
    /// Alphas in every lane; null where there are none for the whole tile.
    Value factor, factor2;
  };
  void finish(ValueRange accs, const Part &tile, Drain drain);
  Part partOfThread(const Tile &tile, Value acc);
  Value ofThread(const Part &part, Value column);
  Value ofThreadOrLast(const Part &part, Value column);
  Value orLast(Value column);
  void drain(ValueRange accs, const Part &tile, Conversion convert, Storing store);
  void drainRegisters(Value acc, const Part &tile, Conversion convert, Storing store);
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
  const WorkLoop &works;
  SumConversion conversion;
  Value columnOfGroup;             ///< the first of this warpgroup; null where there is one
  Value flip;                      ///< reversal of the order of columns; null for a constant order
  Value alphaVector, alpha2Vector; ///< alpha in every lane; null where there is none or not one
  std::optional<ResultStores> results; ///< results besides the elements
};

} // namespace fp4
