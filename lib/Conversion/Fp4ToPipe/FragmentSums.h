//===- FragmentSums.h - Sums in the registers of threads ------------------===//
//
// The accumulators of wgmma and mma.sync: new ones, the sums of a thread, and the reduction of
// partial sums of split-K, through a workspace or in a cluster.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "GemmKernel.h"
#include "WorkLoop.h"

namespace fp4 {

class FragmentSums {
public:
  using Value = mlir::Value;
  using ValueRange = mlir::ValueRange;
  /// Fragments are those of warpgroups: 64 rows, of the columns of a tile; or, transposed, 64
  /// columns. Or they are those of warps that multiply a part of a tile each.
  FragmentSums(GemmKernel &kernel, const WorkLoop &works, const KernelPlan &plan);

  pipe::FragmentKind kind;
  std::array<int64_t, 2> size; ///< rows and columns
  int64_t threads;             ///< threads of the warpgroups that multiply
  int64_t partColumns = 32;    ///< most columns that are handled at a time
  /// Rows that mma.sync has of a fragment.
  static constexpr int64_t kWarpRows = 16;

  /// A fragment without sums.
  Value create();
  /// Calls `body` for the columns of a fragment that are handled at a time.
  void forParts(llvm::function_ref<void(mlir::VectorType type, int64_t first)> body);
  /// The sums of each thread from column `first` of its fragment on.
  using From = llvm::function_ref<Value(mlir::VectorType type, int64_t first)>;
  /// The accumulator of each part of a tile: warps have several parts in one.
  llvm::SmallVector<Value> partsOf(ValueRange accs) const;
  /// The sums of part `number` of a tile, from column `first` on. A part has an accumulator `acc`
  /// of its own, or, where warps multiply, kWarpRows rows of the one that all have.
  Value readPart(Value acc, size_t number, mlir::VectorType type, int64_t first);
  /// The sums over the k slices of a CTA that has all of them.
  Value sumOfRanges(ValueRange accs, mlir::VectorType type, int64_t first);

  /// Takes the sums of a part of a tile.
  using Finish = llvm::function_ref<void(size_t part, From sums)>;
  /// Leaves the sums of CTA `part` of tile `index` of a split-K GEMM in the workspace; each part of
  /// the tile has an accumulator in `accs`. The last CTA of the tile to do so calls `finish` with
  /// the sums over all of K, from the first CTA to the last, of each part.
  void reduce(ValueRange accs, Value index, Value part, Finish finish);
  /// Calls `finish` with the sums of each part of a tile, which has an accumulator of `accs`: those
  /// of whoever has all of the tile, or those of all workers, with the last one to come.
  void reduceShares(ValueRange accs, const Tile::Share &share, Finish finish);
  /// Adds the sums `accs` of the CTAs of the cluster of a split-K GEMM. Every CTA has the sums of
  /// some columns of the first fragment, equally many if there are enough.
  void reduceInCluster(ValueRange accs);
  /// i1: the CTA of place `part` in the cluster has the sums from column `first` on.
  Value hasColumns(Value part, int64_t first);

private:
  /// Returns the place in a row of the workspace of the sums of part `part` of a tile, from column
  /// `first` on.
  mlir::IntegerAttr placeOfSums(size_t part, int64_t first);
  llvm::SmallVector<Value> fetchAll(size_t number, Value row);
  llvm::SmallVector<Value> readAll(Value acc, size_t number);
  llvm::SmallVector<Value> addAll(ValueRange sums, ValueRange more);
  Value complement(Value part);
  /// Sums of a thread that are in its registers when split-K parts are added: with more, ptxas
  /// spills some, or the loop in front takes up to 1.5 times as long
  /// (notebook/weight-limits.md).
  static constexpr int64_t kMostReduced = 128;
  /// Returns true when a CTA adds its own sums from its registers. With more than two split-K parts
  /// it needs room for all of them, for all `parts` of a tile.
  bool keepsOwnSums(int64_t parts) const {
    int64_t elements = parts * size[1] / 2;
    return gemm.work.ranges == 1 &&
           (gemm.work.splits == 2 || gemm.work.splits * elements <= kMostReduced);
  }
  llvm::SmallVector<Value> sumWithOwn(Value acc, size_t number, Value part,
                                      llvm::function_ref<Value(Value)> rowOf);
  llvm::SmallVector<Value> ownOrLeft(Value acc, size_t number, Value part, int64_t range,
                                     Value row);
  llvm::SmallVector<Value> sumOfLeft(size_t number, Value row, Value step);
  llvm::SmallVector<Value> sumOfRows(size_t number, Value row, Value step, Value count);
  llvm::SmallVector<Value> sumOfShared(Value acc, size_t number, const Tile::Share &share);
  /// Returns the values of `sums` where the i1 `condition` holds, and those of `others` elsewhere.
  llvm::SmallVector<Value> chooseSums(Value condition,
                                      llvm::function_ref<llvm::SmallVector<Value>()> sums,
                                      llvm::function_ref<llvm::SmallVector<Value>()> others);

  TileBuilder &b;
  const Gemm &gemm;
  const KernelArguments &args;
  const WorkLoop &works;
};

} // namespace fp4
