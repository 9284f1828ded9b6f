//===- FragmentEpilogue.h - Results of GEMMs with sums in registers -------===//
#pragma once

#include "Epilogue.h"
#include "FragmentSums.h"
#include "SumConversion.h"

namespace fp4 {

class FragmentEpilogue : public Epilogue {
public:
  using Value = mlir::Value;
  using ValueRange = mlir::ValueRange;
  FragmentEpilogue(GemmKernel &kernel, FragmentSums &fragments);

  void begin() override;
  void finish(ValueRange accs, const Tile &tile) override;

private:
  using OfGroup = Tile::OfGroup;
  /// Factors that turn the results of the tensor core into the sums of the GEMM: 2^exponent, and
  /// powers of two of the rows that a thread has of a fragment, two of each, or null.
  struct Restoring {
    int exponent = 0;
    Value powers = {};
  };
  /// A place in the result, or of the fragment of a warp in a tile.
  struct Place {
    Value row, column;
  };
  /// Converts the sums of part `part` of a tile, and stores them: all, or those that this CTA
  /// stores. A dual GEMM has those of the second one besides.
  void storePart(const Tile &tile, size_t part, FragmentSums::From sums, FragmentSums::From second,
                 FragmentSums::Guard isStored);
  /// Makes codes and scales of the elements that storePart has made since the last call: those of
  /// 128 rows of the result, of as many columns as are gathered at a time, from `place` on.
  void quantizeElements(Place place, OfGroup group);
  /// Segments of one row that a thread quantizes together, and the column of the first.
  struct Segments {
    llvm::SmallVector<Value> parts;
    Value first;
  };
  void emitSegments(const Segments &segments, Place place, OfGroup group);
  Value rowOfStores(Value row, OfGroup group);
  void foldAmax();
  Place placeOf(const Tile &tile, size_t part);
  /// The place of columns from `first` on of a fragment.
  Place behind(Place place, int64_t first);
  /// A thread has alphas of many rows, which it asks for before it stores: they wait for memory
  /// once, and take registers that sums had. Beside more columns, or the sums of a second GEMM,
  /// they would be too many, unless the tensor core adds all sums, so that a thread has them once.
  bool loadsAlphasAhead() const {
    const int64_t mostColumns = gemm.route().accumulate == route::Accumulate::Fast ? 256 : 128;
    return gemm.transposes() && gemm.takesBytes() && !gemm.problem.dual &&
           fragments.size[1] <= mostColumns;
  }
  /// The alphas of each part of a fragment whose columns are rows of the result.
  llvm::SmallVector<Value> alphasOfPart(Place place);
  Value restored(Value sums, Restoring restoring);
  mlir::UnitAttr isTransposed() { return gemm.transposes() ? b.getUnitAttr() : mlir::UnitAttr(); }
  Value hold(Value elements);
  void derive(Value elements, Place place, OfGroup group);
  /// Factors of a part of a row of sums.
  struct Factors {
    Value first, second;
  };
  /// Factors that all sums have.
  Factors broadcastAlphas(mlir::RankedTensorType type, OfGroup group);
  void leave(Value elements, Place place, OfGroup group);
  /// Elements of a box of the result that are in shared memory.
  struct StagedPart {
    Value tile, elements;
    Place place;
  };
  void store(Value elements, Place place, OfGroup group);
  /// Boxes go through shared memory: all parts of a fragment, which is one fence and one arrival,
  /// before the first is stored.
  void stageTile(Value elements, Place place);
  void storeStaged(OfGroup group);

  TileBuilder &b;
  const Gemm &gemm;
  const KernelArguments &args;
  FragmentSums &fragments;
  SumConversion conversion;
  /// The place of a warp's fragment in its tile, and in the result; null for warpgroups.
  Place ofWarp, firstOfWarp;
  Value rowOfThread; ///< rows from the lane's row to the thread's gathered row
  /// The one alpha of a matmul where it is read when the kernel begins, so that nobody waits for it
  /// behind the last k tile. A dual GEMM, which has twice as many sums in registers, reads what all
  /// tiles have in common behind it.
  Value alphaOfAll;
  std::optional<ResultStores> results; ///< stores of quantized elements
  llvm::SmallVector<Value> converted;  ///< elements that are to be, in the order of storePart
  Value amax;                          ///< amax of the tile so far
  llvm::SmallVector<StagedPart> staged;
};

} // namespace fp4
