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
  int64_t mostReduced;         ///< sums of a thread that it adds from registers
  bool ofLast = false;         ///< warps finish by themselves, as the last ones of a shared tile
  /// Rows that mma.sync has of a fragment.
  static constexpr int64_t kWarpRows = 16;

  /// A fragment without sums, of the warpgroups of k slice `slice`.
  Value create(int64_t slice = 0);
  /// Calls `body` for the columns of a fragment that are handled at a time.
  void forParts(llvm::function_ref<void(mlir::RankedTensorType type, int64_t first)> body);
  /// The sums of each thread from column `first` of its fragment on.
  using From = llvm::function_ref<Value(mlir::RankedTensorType type, int64_t first)>;
  /// i1: this CTA has the columns of a fragment from `first` on.
  using Guard = llvm::function_ref<Value(int64_t first)>;
  /// Takes the sums of a part of a tile over all of K, and those of the second GEMM of a dual one.
  using Finish = llvm::function_ref<void(size_t part, From sums, From second, Guard isStored)>;
  /// Calls `finish` for each part of a tile where its sums are complete: in the CTA that has all of
  /// them, in every CTA of a cluster for some columns, or in the last CTA of a tile to come.
  void complete(ValueRange accs, const Tile &tile, Finish finish);

private:
  /// The sums of part `number` of a tile, from column `first` on. A part has an accumulator `acc`
  /// of its own, or, where warps multiply, kWarpRows rows of the one that all have.
  Value readPart(Value acc, size_t number, mlir::RankedTensorType type, int64_t first);
  llvm::SmallVector<Value> partsOf(ValueRange accs) const;
  void reduce(ValueRange accs, const Tile &tile, Finish finish);
  void reduceShares(ValueRange accs, const Tile::Share &share, Finish finish);
  void reduceInCluster(ValueRange accs, const Tile &tile, Finish finish);
  llvm::SmallVector<Value> gathered(ValueRange accs);
  Value inRegisters(Value sums);
  void addSlices(ValueRange accs, Finish finish);
  void finishParts(ValueRange accs, Finish finish);
  void leave(Value acc, size_t part, Value row);
  void finishSums(size_t part, llvm::ArrayRef<Value> sums, Finish finish);
  /// Returns the place in a row of the workspace of the sums of part `part` of a tile, from column
  /// `first` on.
  mlir::IntegerAttr placeOfSums(size_t part, int64_t first);
  llvm::SmallVector<Value> fetchAll(size_t number, Value row);
  llvm::SmallVector<Value> readAll(Value acc, size_t number);
  llvm::SmallVector<Value> addAll(ValueRange sums, ValueRange more);
  Value complement(Value part);
  /// Sums of a thread that are in its registers when split-K parts are added: with more, ptxas
  /// spills some, or the loop in front takes up to 1.5 times as long
  /// (notebook/weight-limits.md). Two CTAs of an SM have half of the registers each.
  static constexpr int64_t kMostReduced = 128;
  /// Returns true when a CTA adds its own sums from its registers. With more than two split-K parts
  /// it needs room for all of them, for all `parts` of a tile.
  bool keepsOwnSums(int64_t parts) const {
    int64_t elements = parts * size[1] / 2;
    return gemm.work.ranges == 1 &&
           (gemm.work.splits == 2 || gemm.work.splits * elements <= mostReduced);
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
