//===- FragmentEpilogue.h - Results of GEMMs with sums in registers -------===//
#pragma once

#include "FragmentSums.h"
#include "SumConversion.h"

namespace fp4 {

class FragmentEpilogue {
public:
  using Value = mlir::Value;
  using OfGroup = WorkLoop::OfGroup;
  FragmentEpilogue(GemmKernel &kernel, FragmentSums &fragments)
      : conversion(kernel), b(kernel.b), gemm(kernel.gemm), args(kernel.args),
        fragments(fragments) {}

  /// Emits what all tiles have in common.
  void begin();
  /// Factors that turn the results of the tensor core into the sums of the GEMM: 2^exponent, and
  /// powers of two of the rows that a thread has of a fragment, two of each, or null.
  struct Restoring {
    int exponent = 0;
    Value powers = {};
  };
  /// i1: this CTA stores the part from column `first` on.
  using PartGuard = llvm::function_ref<Value(int64_t first)>;
  /// Converts the sums of the role's warpgroups, times what restores them, and stores them from
  /// (row, column) of the result on: all, or the parts that this CTA stores. A dual GEMM has those
  /// of the second one besides.
  void storeSums(FragmentSums::From sums, Value row, Value column, Restoring restoring,
                 OfGroup group = {}, PartGuard isStored = {}, FragmentSums::From second = {});
  void storeSums(Value acc, Value row, Value column, Restoring restoring, OfGroup group = {},
                 PartGuard isStored = {}, Value second = {});
  /// The place in a tile where the fragment of a warp begins, as pipe.gather_rows takes it.
  struct InTile {
    Value row, column;
  };
  /// Makes codes and scales of the elements that storeSums has made since the last call: those of
  /// 128 rows of the result, of as many columns as are gathered at a time, from (row, column) on.
  void quantizeElements(Value row, Value column, InTile place, OfGroup group);
  /// Emits the code behind all elements of the tile: their amax.
  void finishTile();

  SumConversion conversion;

private:
  /// The place in the result of the part from column `first` of a fragment on, which begins at
  /// (row, column).
  struct Place {
    Value row, column;
  };
  Place placeOfPart(Value row, Value column, int64_t first);
  /// A thread has alphas of many rows, which it asks for before it stores: they wait for memory
  /// once, and take registers that sums had. Beside more columns they would be too many, unless the
  /// tensor core adds all sums, so that a thread has them once.
  bool loadsAlphasAhead() const {
    const int64_t mostColumns = gemm.route().accumulate == route::Accumulate::Fast ? 256 : 128;
    return gemm.transposes() && gemm.takesBytes() && fragments.size[1] <= mostColumns;
  }
  /// The alphas of each part of a fragment whose columns are rows of the result.
  llvm::SmallVector<Value> alphasOfPlaces(Value row, Value column);
  Value restored(Value sums, Restoring restoring);
  mlir::UnitAttr isTransposed() { return gemm.transposes() ? b.getUnitAttr() : mlir::UnitAttr(); }
  Value hold(Value elements);
  void derive(Value elements, Value row, Value column, OfGroup group);
  /// Factors of a part of a row of sums.
  struct Factors {
    Value first, second;
  };
  /// Factors that all sums have.
  Factors broadcastAlphas(mlir::VectorType type, OfGroup group);
  void leave(Value elements, Value row, Value column, OfGroup group);
  /// Elements of a box of the result that are in shared memory.
  struct StagedPart {
    Value tile, elements, row, column;
  };
  void store(Value elements, Value row, Value column, OfGroup group);
  /// Boxes go through shared memory: all parts of a fragment, which is one fence and one arrival,
  /// before the first is stored.
  void stageTile(Value elements, Value row, Value column);
  void storeStaged(OfGroup group);

  TileBuilder &b;
  const Gemm &gemm;
  const KernelArguments &args;
  FragmentSums &fragments;
  /// The one alpha of a matmul where it is read when the kernel begins, so that nobody waits for it
  /// behind the last k tile. A dual GEMM, which has twice as many sums in registers, reads what all
  /// tiles have in common behind it.
  Value alphaOfAll;
  std::optional<ResultStores> results; ///< stores of quantized elements
  llvm::SmallVector<Value> converted;  ///< elements that are to be, in the order of storeSums
  Value amax;                          ///< amax of the tile so far
  llvm::SmallVector<StagedPart> staged;
};

/// The loop over the works of a kernel with sums in registers, with the parts of its tiles.
struct FragmentLoop {
  FragmentLoop(GemmKernel &kernel, const KernelPlan &plan)
      : works(kernel), fragments(kernel, works, plan), epilogue(kernel, fragments) {}

  /// Emits `body` for every tile.
  void forEachTile(TileBuilder::WorkBody body) {
    works.countTiles();
    epilogue.begin();
    works.forEachTile(body);
  }

  WorkLoop works;
  FragmentSums fragments;
  FragmentEpilogue epilogue;
};

} // namespace fp4
