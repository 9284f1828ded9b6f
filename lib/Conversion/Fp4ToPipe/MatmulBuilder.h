//===- MatmulBuilder.h - The sequential kernel of a GEMM ------------------===//
#pragma once

#include "OperandPath.h"
#include "SumConversion.h"
#include "WorkLoop.h"

namespace fp4 {

/// Emits the body of the kernel; one method per part, in the order of the code.
class MatmulBuilder {
public:
  explicit MatmulBuilder(GemmKernel &kernel)
      : b(kernel.b), gemm(kernel.gemm), args(kernel.args), works(kernel), operands(kernel),
        conversion(kernel) {}
  virtual ~MatmulBuilder() = default;
  void build();

protected:
  using Value = mlir::Value;
  using ValueRange = mlir::ValueRange;

  /// The part of a tile that this CTA has.
  struct Tile {
    Value row, column;          ///< first row and first column of Y
    Value rowLimit;             ///< end of the rows of a group in the result; else null
    Value rowA, rowB;           ///< first row of A and of B
    Value scaleRowA, scaleRowB; ///< first row of the scales of A and of B
    Value blockA, blockB;       ///< the scale tiles of 128 rows where these are
    Value bScaleRow;            ///< row of `column` within its scale tile; null when always 0
    WorkLoop::Range k;          ///< k tiles
    Value part;                 ///< the part of K with split-K; null without
    WorkLoop::Share share;      ///< share of a tile that workers share
    Value alpha, alpha2;        ///< in every lane; null where there is none for the whole tile
    Value group;                ///< null where there is one GEMM
    Value laneRow;              ///< base of the row of a thread, to which its lane is added
    Value laneColumn;           ///< offset of the columns of a thread; null where all have the same
  };

  virtual void buildTile(Value m, Value n);
  Tile findTile(Value m, Value n);
  Value load(Value map, Value row, Value column, int64_t parts, pipe::Direction direction);
  Value loadScales(Value from, Value row, Value rowBlock, Value kBlock, Value blocks);
  virtual void buildKTile(ValueRange accs, const Tile &tile, Value k);
  void buildEpilogue(ValueRange accs, const Tile &tile);
  using Conversion = llvm::function_ref<Value(ValueRange chunks, Value column)>;
  using Storing = llvm::function_ref<void(Value chunk, Value column)>;
  virtual void drain(ValueRange accs, const Tile &tile, Conversion convert, Storing store);
  Value orLast(Value column);
  Tile partOfThread(Tile tile, Value acc);
  Value ofThread(const Tile &part, Value column);
  Value ofThreadOrLast(const Tile &part, Value column);

  TileBuilder &b;
  const Gemm &gemm;
  const KernelArguments &args;
  WorkLoop works;
  OperandPath operands;
  SumConversion conversion;

private:
  void findGroup(Tile &tile, Value work);
  void findRange(Tile &tile, Value &n);
  void moveToGroup(Tile &tile);
  Value broadcast(Value scalar);
  void findPlaces();
  Value place(mlir::gpu::Dimension dimension, int64_t blocks);
  bool areUnitScales(Value from);
  Value copyScales(Value from, Value blocks);
  /// The common values of the MMAs of a k tile.
  struct Product {
    Value accumulator, a, b, accumulate, steps;
  };
  void multiplyParts(const Product &product, const Tile &tile, Value kBlock);
  void buildAccumulation(ValueRange accs, const Tile &tile);
  void buildReduction(ValueRange accs, const Tile &tile);
  Value rowOfSums(const Tile &tile, Value part);
  void leaveShare(Value chunk, Value row, Value column);
  Value fetchShare(Value row, Value column);
  Value sumOfShares(const Tile &tile, Value column);
  void finishShared(const Tile &tile);
  void buildShare(ValueRange accs, const Tile &tile);
  llvm::SmallVector<Value> read(ValueRange accs, Value column);
  llvm::SmallVector<Value> registersOf(Value chunk);
  Value chunkOf(ValueRange registers, mlir::Type element);
  Value hold(Value chunk);
  Value flipOf(Value turn);
  Value inTurn(int64_t column);
  /// Columns of the accumulators of all tiles, where they are dynamic; else null.
  Value givenN() { return gemm.route.swapsOperands() ? args.rows : args.columns; }
  Value endOfColumns(const Tile &tile) {
    return gemm.route.swapsOperands() && tile.rowLimit ? tile.rowLimit
           : givenN()                                  ? givenN()
                                                       : b.constant(gemm.n());
  }
  void forColumns(const Tile &tile, int64_t most, TileBuilder::LoopBody body);
  Value convert(ValueRange chunks, const Tile &tile, Value column);
  void store(Value chunk, const Tile &tile, Value column);
  Value counterIndex(const Tile &tile);
  /// Rows of the workspace for a thread: of the first part, of each, and behind the last.
  struct RowsOfSums {
    Value first, ofPart, end;
  };
  RowsOfSums rowsOfSums(const Tile &tile);
  Value columnOfSums(const Tile &tile, Value column);
  Value sumOfParts(const Tile &tile, Value column);
  void reduceInCluster(Value acc, const Tile &tile);
  Value numbers(const Tile &tile, Value column, mlir::VectorType type, Value global, Value limit,
                bool ofGroup);
  Value factors(const Tile &tile, Value alphas, Value column);

  Value numM, numTilesN;
  Value columnOfGroup; ///< the first of this warpgroup; null where there is one
  Value flip;          ///< reversal of the order of columns; null for a constant order
  /// Places of this CTA among those that share loads, or are a pair; null where it is alone.
  Value placeM, placeN;
  Value placeOfRange;                  ///< place of its split-K part in the cluster
  Value alphaVector, alpha2Vector;     ///< alpha in every lane; null where there is none or not one
  std::optional<ResultStores> results; ///< results besides the elements
};

} // namespace fp4
