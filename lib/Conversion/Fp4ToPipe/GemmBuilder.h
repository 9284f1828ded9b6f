//===- GemmBuilder.h - Common part of GEMM kernels ---------------------===//
//
// The arguments of every matmul, and its epilogue, which does not depend on the place of the sums:
// alpha, named steps, an epilogue region.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Gemm.h"
#include "ResultStores.h"
#include "TileBuilder.h"

namespace fp4 {

class GemmBuilder {
protected:
  GemmBuilder(mlir::gpu::GPUFuncOp func, const Gemm &gemm, const KernelPlan &plan,
              mlir::Location loc);

  /// The numbers of `global` that go with the sums; `rows` is their limit or null. With `ofGroup`
  /// they are those of the row that their group has.
  using Numbers = llvm::function_ref<mlir::Value(mlir::VectorType type, mlir::Value global,
                                                 mlir::Value rows, bool ofGroup)>;
  /// The factors of sums whose `alphas` are those of rows or columns.
  mlir::Value loadAlphas(int64_t count, mlir::Value alphas, Numbers numbers);
  /// Sums of one GEMM, and their alpha, if there is one.
  struct Sums {
    mlir::Value values, factor;
  };
  /// Elements of the result from a vector of sums of each GEMM.
  mlir::Value convertSums(llvm::ArrayRef<Sums> products, Numbers numbers);

  /// The scale tiles of k tile `k`: the first, and how many exist, null where every tile is whole.
  struct ScaleBlocks {
    mlir::Value first, count;
  };
  ScaleBlocks scaleBlocksOf(mlir::Value k);
  /// Returns the existing rows of a box of `map` from `row` of the result on; null where the map
  /// has no residue. The count is computed where `row` is.
  mlir::Value existingRows(mlir::Value map, mlir::Value row);
  /// The row of scale tiles that has `row`.
  mlir::Value rowBlockOf(mlir::Value row);
  /// The k tiles of part `part` of split-K (numerics::splitRange).
  struct Range {
    mlir::Value begin, end;
  };
  Range rangeOf(mlir::Value part);
  /// Reports searched groups that do not fit.
  void checkGroups();
  /// The rows between groups, which are of none, become zero.
  void clearRows();
  /// The first row of tile `m`, the end of the rows of its group, and the group.
  struct TileOfGroup {
    mlir::Value row, rowLimit, group;
  };
  TileOfGroup tileOfGroup(mlir::Value m);
  /// Returns the element of `alphas`, those of one of the GEMMs, for a group; null where a group
  /// has none of its own.
  mlir::Value alphaOfGroup(mlir::Value alphas, mlir::Value group);
  mlir::Value lastPlace();
  /// Counts the tiles along m of groups. Called before any of them is asked for.
  mlir::Value countTilesOfGroups();
  /// Number `column` of row `index` of a table.
  mlir::Value entry(mlir::Value from, mlir::Value index, int64_t column);
  /// Works along n, and k tiles.
  mlir::Value countWorksN();
  mlir::Value countTilesK();
  /// Returns how many of the `count` parts of `unit` elements of a k tile exist; `done` parts come
  /// before.
  mlir::Value existingOfK(mlir::Value done, int64_t count, int64_t unit);
  /// A vector of sums times 2^exponent.
  mlir::Value timesPower(mlir::Value sums, int exponent);

  TileBuilder b;
  Gemm gemm;
  mlir::Value a, bb, scalesA, scalesB, alpha, result, rows;
  mlir::Value columns, depth;            ///< N and K, where they are dynamic; else null
  mlir::Value resultBuffer;              ///< `result`, or its elements if that is a map
  mlir::Value b2, scalesB2, alpha2;      ///< operands of a dual GEMM
  ResultArguments derived;               ///< the results, where there are others than elements
  llvm::SmallVector<mlir::Value> inputs; ///< inputs of the epilogue region
  mlir::Value report;                    ///< report on searched groups
  /// Most sums that an epilogue region takes at a time.
  int64_t bodyWidth = std::numeric_limits<int64_t>::max();
  mlir::Value table, workspace, counters; ///< null without groups, or without split-K

private:
  struct Rows {
    mlir::Value begin, end;
  };
  void takeSizes(mlir::Value pitch, llvm::function_ref<mlir::Value()> next);
  /// Gives a buffer the sizes of its type and those that are numbers: its rows and columns.
  using TakeSized = llvm::function_ref<void(mlir::Value &, mlir::Type, mlir::Value, mlir::Value)>;
  void takeQuantized(TakeSized take);
  mlir::Value sized(mlir::Value global, mlir::Type type, mlir::Value rows, mlir::Value columns,
                    mlir::Value pitch);
  Rows rowsOfGroup(mlir::Value group, mlir::Value before);
  mlir::Value rowAt(mlir::Value words, int64_t number);
  void clearSearched();
  mlir::Value emitStep(numerics::EpilogueOp step, mlir::Value sums, mlir::Value factor);
  mlir::Value emitBody(llvm::ArrayRef<mlir::Value> sums, Numbers numbers);
  mlir::Value emitBodyOf(llvm::ArrayRef<mlir::Value> arguments, int64_t first, int64_t width);
  mlir::Value loadInput(mlir::Value input, bool isOfGroups, int64_t count, Numbers numbers);

  struct Group {
    Rows rows;
    mlir::Value tilesBefore; ///< tiles along m of the groups before
  };
  /// By row and box.
  llvm::SmallDenseMap<std::pair<mlir::Value, int64_t>, mlir::Value> existingOfBoxes;
  llvm::SmallVector<Group> groups; ///< searched groups, once their tiles are counted
};

} // namespace fp4
