//===- FragmentEpilogue.h - GEMMs whose sums are in registers -------------===//
#pragma once

#include "GemmBuilder.h"

#include "fp4/Numerics/BlockScaledGemm.h"

namespace fp4 {

class FragmentEpilogue : protected GemmBuilder {
protected:
  /// Fragments are those of warpgroups: 64 rows, of the columns of a tile; or, transposed, 64
  /// columns.
  FragmentEpilogue(mlir::gpu::GPUFuncOp func, const Gemm &gemm, const KernelPlan &plan,
                   mlir::Location loc)
      : GemmBuilder(func, gemm, plan, loc),
        fragmentSize{64, gemm.route.transposes() ? gemm.tiling.tileM : gemm.tiling.tileN},
        threads(mlir::cast<pipe::RolePlanAttr>(plan.roles)
                    .getDriver(pipe::Engine::Threads)
                    .getNumThreads()) {
    if (gemm.results.storesTiles)
      partColumns = gemm.storedColumns();
  }

  /// The whole kernel: `body` for every tile of the result, and of every split-K part, that this
  /// CTA works on.
  void buildTiles(TileBuilder::WorkBody body);
  /// A box of `map` from (row, column) on, or as many as `depth` columns take.
  mlir::Value load(mlir::Value map, mlir::Value row, mlir::Value column, int64_t depth = 0);
  /// The scales of a k tile of `rows` rows: the `blocks` scale tiles that exist from (rowBlock,
  /// kBlock) on.
  mlir::Value loadScales(mlir::Value from, mlir::Value rowBlock, mlir::Value kBlock,
                         mlir::Value blocks, int64_t rows);
  /// A k tile as the tensor core takes it from shared memory.
  mlir::Value convert(mlir::Value tile, mlir::Value scales, mlir::Value blocks);
  /// The exponent of what undoes the powers of two that operands have been converted with.
  int restoringExponent() const;

  std::array<int64_t, 2> fragmentSize; ///< rows and columns
  pipe::FragmentKind fragmentKind = pipe::FragmentKind::Wgmma;
  /// A fragment without sums.
  mlir::Value newFragment();

  /// Values that a tile of a group has of its own: the end of its rows, and its alphas; null where
  /// these are the whole matmul's. Further its group, and the distance of its scales behind its
  /// rows in the list of all groups; null without groups.
  struct OfGroup {
    mlir::Value rowLimit, alpha, alpha2, group, scaleShift;
  };
  OfGroup ofGroup(const TileOfGroup &place);
  /// A tile of the result, from (row, column) on, and where it begins in rhs and in the scales.
  struct PlacedTile {
    mlir::Value row, column, rowB, scaleRowA, scaleRowB;
    OfGroup group;
  };
  /// Tile (m, n) of the result. With groups, m counts the tiles along m of all of them.
  PlacedTile placeTile(mlir::Value m, mlir::Value n);
  /// The sums of each thread from column `first` of its fragment on. A dual GEMM has those of the
  /// second one besides.
  using SumsFrom = llvm::function_ref<mlir::Value(mlir::VectorType type, int64_t first)>;
  int64_t partColumns = 32; ///< most columns that are handled at a time
  /// Calls `body` for the columns of a fragment that are handled at a time.
  void forParts(llvm::function_ref<void(mlir::VectorType type, int64_t first)> body);
  /// The place in the result of the part from column `first` of a fragment on, which begins at
  /// (row, column).
  struct Place {
    mlir::Value row, column;
  };
  Place placeOfPart(mlir::Value row, mlir::Value column, int64_t first);
  /// i1: this CTA stores the part from column `first` on.
  using PartGuard = llvm::function_ref<mlir::Value(int64_t first)>;
  /// Factors that turn the results of the tensor core into the sums of the GEMM: 2^exponent, and
  /// powers of two of the rows that a thread has of a fragment, two of each, or null.
  struct Restoring {
    int exponent = 0;
    mlir::Value powers = {};
  };
  /// Converts the sums of the role's warpgroups, times what restores them, and stores them from
  /// (row, column) of the result on: all, or the parts that this CTA stores.
  void storeSums(SumsFrom sums, mlir::Value row, mlir::Value column, Restoring restoring,
                 OfGroup group = {}, PartGuard isStored = {}, SumsFrom second = {});
  void storeSums(mlir::Value acc, mlir::Value row, mlir::Value column, Restoring restoring,
                 OfGroup group = {}, PartGuard isStored = {}, mlir::Value second = {});
  /// The place in a tile where the fragment of a warp begins, as pipe.gather_rows takes it.
  struct InTile {
    mlir::Value row, column;
  };
  /// Makes codes and scales of the elements that storeSums has made since the last call: those of
  /// 128 rows of the result, of as many columns as are gathered at a time, from (row, column) on.
  void quantizeElements(mlir::Value row, mlir::Value column, InTile place, OfGroup group);
  /// Emits the code behind all elements of the tile: their amax.
  void finishTile();
  /// Leaves the sums of CTA `part` of tile `index` of a split-K GEMM in the workspace; each part of
  /// the tile has an accumulator in `accs`. The last CTA of the tile to do so calls `finish` with
  /// the sums over all of K, from the first CTA to the last, of each part.
  void reduceSums(mlir::ValueRange accs, mlir::Value index, mlir::Value part,
                  llvm::function_ref<void(size_t part, SumsFrom sums)> finish);
  /// A work of a GEMM whose workers share tiles, as its table says (StreamTable.cpp).
  struct Share {
    mlir::Value firstSums, part, parts, counter;
  };
  /// Calls `finish` with the sums of each part of a tile, which has an accumulator of `accs`: those
  /// of whoever has all of the tile, or those of all workers, with the last one to come.
  void reductionShares(mlir::ValueRange accs, const Share &share,
                       llvm::function_ref<void(size_t part, SumsFrom sums)> finish);
  /// The sums over the k slices of a CTA that has all of them.
  mlir::Value sumOfRanges(mlir::ValueRange accs, mlir::VectorType type, int64_t first);

  /// i32: the place of this CTA, where split-K parts of a tile are reduced in a cluster.
  mlir::Value placeOfRange();
  /// Adds the sums `accs` of the CTAs of the cluster of a split-K GEMM, in which this CTA has place
  /// `part`, and stores them from (row, column) of the result on. Every CTA adds and stores some
  /// columns of the fragment, equally many if there are enough.
  void reduceInCluster(mlir::ValueRange accs, mlir::Value part, mlir::Value row, mlir::Value column,
                       Restoring restoring);

  /// Returns the place in a row of the workspace of the sums of part `part` of a tile, from column
  /// `first` on.
  mlir::IntegerAttr placeOfSums(size_t part, int64_t first);
  llvm::SmallVector<mlir::Value> fetchAll(size_t number, mlir::Value row);
  llvm::SmallVector<mlir::Value> readAll(mlir::Value acc, size_t number);
  /// The sums of part `number` of a tile, from column `first` on. A part has an accumulator `acc`
  /// of its own, or, where warps multiply, kWarpRows rows of the one that all have.
  mlir::Value readPart(mlir::Value acc, size_t number, mlir::VectorType type, int64_t first);
  /// Rows that mma.sync has of a fragment.
  static constexpr int64_t kWarpRows = 16;
  llvm::SmallVector<mlir::Value> addAll(mlir::ValueRange sums, mlir::ValueRange more);
  mlir::Value complement(mlir::Value part);
  /// Sums of a thread that are in its registers when split-K parts are added: with more, ptxas
  /// spills some, or the loop in front takes up to 1.5 times as long
  /// (notebook/weight-limits.md).
  static constexpr int64_t kMostReduced = 128;
  /// Returns true when a CTA adds its own sums from its registers. With more than two split-K parts
  /// it needs room for all of them, for all `parts` of a tile.
  bool keepsOwnSums(int64_t parts) const {
    int64_t elements = parts * fragmentSize[1] / 2;
    return gemm.work.ranges == 1 &&
           (gemm.work.splits == 2 || gemm.work.splits * elements <= kMostReduced);
  }
  llvm::SmallVector<mlir::Value> sumWithOwn(mlir::Value acc, size_t number, mlir::Value part,
                                            llvm::function_ref<mlir::Value(mlir::Value)> rowOf);
  llvm::SmallVector<mlir::Value> ownOrLeft(mlir::Value acc, size_t number, mlir::Value part,
                                           int64_t range, mlir::Value row);
  llvm::SmallVector<mlir::Value> sumOfLeft(size_t number, mlir::Value row, mlir::Value step);
  llvm::SmallVector<mlir::Value> sumOfRows(size_t number, mlir::Value row, mlir::Value step,
                                           mlir::Value count);
  llvm::SmallVector<mlir::Value> sumOfShared(mlir::Value acc, size_t number, const Share &share);
  /// Returns the values of `sums` where the i1 `condition` holds, and those of `others` elsewhere.
  llvm::SmallVector<mlir::Value>
  chooseSums(mlir::Value condition, llvm::function_ref<llvm::SmallVector<mlir::Value>()> sums,
             llvm::function_ref<llvm::SmallVector<mlir::Value>()> others);

  mlir::Value numM; ///< tiles along m
  /// The one alpha of a matmul where it is read when the kernel begins, so that nobody waits for it
  /// behind the last k tile. A dual GEMM, which has twice as many sums in registers, reads what all
  /// tiles have in common behind it.
  mlir::Value alphaOfAll;
  int64_t threads; ///< threads of the warpgroups that multiply

private:
  mlir::Value countTilesM();
  /// A thread has alphas of many rows, which it asks for before it stores: they wait for memory
  /// once, and take registers that sums had. Beside more columns they would be too many, unless the
  /// tensor core adds all sums, so that a thread has them once.
  bool loadsAlphasAhead() const {
    const int64_t mostColumns = gemm.route.accumulate == Accumulate::Fast ? 256 : 128;
    return gemm.route.transposes() && gemm.takesBytes() && fragmentSize[1] <= mostColumns;
  }
  /// The alphas of each part of a fragment whose columns are rows of the result.
  llvm::SmallVector<mlir::Value> alphasOfPlaces(mlir::Value row, mlir::Value column);
  mlir::Value restored(mlir::Value sums, Restoring restoring);
  mlir::UnitAttr isTransposed() {
    return gemm.route.transposes() ? b.getUnitAttr() : mlir::UnitAttr();
  }
  mlir::Value hold(mlir::Value elements);
  void derive(mlir::Value elements, mlir::Value row, mlir::Value column, OfGroup group);
  /// Factors of a part of a row of sums.
  struct Factors {
    mlir::Value first, second;
  };
  /// Factors that all sums have.
  Factors broadcastAlphas(mlir::VectorType type, OfGroup group);
  void leave(mlir::Value elements, mlir::Value row, mlir::Value column, OfGroup group);
  std::optional<ResultStores> results;      ///< stores of quantized elements
  llvm::SmallVector<mlir::Value> converted; ///< elements that are to be, in the order of storeSums
  mlir::Value amax;                         ///< amax of the tile so far
  /// Elements of a box of the result that are in shared memory.
  struct StagedPart {
    mlir::Value tile, elements, row, column;
  };
  void store(mlir::Value elements, mlir::Value row, mlir::Value column, OfGroup group);
  /// Boxes go through shared memory: all parts of a fragment, which is one fence and one arrival,
  /// before the first is stored.
  void stageTile(mlir::Value elements, mlir::Value row, mlir::Value column);
  void storeStaged(OfGroup group);
  llvm::SmallVector<StagedPart> staged;
};

} // namespace fp4
