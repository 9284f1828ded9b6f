//===- LaneWorks.h - The works of kernels with sums in tensor memory ------===//
//
// CTAs of a cluster share the loads of a tile, are a pair, or have split-K parts of a tile. With
// swapped operands m goes over columns of the result, and n over its rows.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "WorkLoop.h"

namespace fp4 {

/// The part of a tile that a CTA has.
struct LaneTile {
  using Value = mlir::Value;
  Value row, column;          ///< first row and first column of Y
  Value rowLimit;             ///< end of the rows of a group in the result; else null
  Value rowA, rowB;           ///< first row of A and of B
  Value scaleRowA, scaleRowB; ///< first row of the scales of A and of B
  Value blockA, blockB;       ///< the scale tiles of 128 rows where these are
  Value bScaleRow;            ///< row of `column` within its scale tile; null when always 0
  WorkLoop::Range k;          ///< k tiles
  Value part;                 ///< the part of K with split-K; null without
  WorkLoop::Share share;      ///< share of a tile that workers share
  Value group;                ///< null where there is one GEMM
  Value alpha, alpha2;        ///< the alphas of the group; null where it has none of its own
};

class LaneWorks {
public:
  using Value = mlir::Value;
  explicit LaneWorks(GemmKernel &kernel)
      : b(kernel.b), gemm(kernel.gemm), args(kernel.args), works(kernel) {}

  /// Counts tiles along m, and clears rows of no group before. Called first.
  void countTilesM();
  /// Finds the places of this CTA, and counts tiles along n. Called second.
  void countTilesN();
  /// The rest of the kernel: `body` for every work of this CTA. `turn` counts the tiles that the
  /// CTA worked on before, where accumulators alternate, and is null elsewhere.
  void forEachTile(TileBuilder::TurnBody body);
  LaneTile findTile(Value m, Value n);

  /// Columns of the accumulators of all tiles, where they are dynamic; else null.
  Value givenN() const { return gemm.swapsOperands() ? args.rows : args.columns; }
  Value endOfColumns(const LaneTile &tile) {
    return gemm.swapsOperands() && tile.rowLimit ? tile.rowLimit
           : givenN()                            ? givenN()
                                                 : b.constant(gemm.n());
  }

  Value numM, numTilesN;
  /// Places of this CTA among those that share loads, or are a pair; null where it is alone.
  Value placeM, placeN;

private:
  void findGroup(LaneTile &tile, Value work);
  void findRange(LaneTile &tile, Value &n);
  void moveToGroup(LaneTile &tile);
  void findPlaces();
  Value place(mlir::gpu::Dimension dimension, int64_t blocks);

  TileBuilder &b;
  const Gemm &gemm;
  const KernelArguments &args;
  WorkLoop works;
  Value placeOfRange; ///< place of its split-K part in the cluster
};

} // namespace fp4
