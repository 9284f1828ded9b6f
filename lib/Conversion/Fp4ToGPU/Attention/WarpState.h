//===- WarpState.h - Maxima, sums and results of a warp's keys ------------===//
//
// A warp has passed over some keys. For each of its rows of queries it has the largest score (an
// exponent of 2), the sum of the powers of two of distances from that, and the sums of these powers
// times values. Two such states become one of all their keys.
//
// Lane 4 g + t has columns 2t and 2t + 1 of each eight rows, and of values the elements of its
// places in the accumulators of mma.sync (WarpMma.h), where rows are columns.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "KernelBuilder.h"
#include "Scalars.h"
#include "WarpMma.h"

#include "fp4/Plans/KernelPlans.h"

namespace fp4 {

/// Rows of a lane in each eight.
inline constexpr int64_t kRowsOfLane = 2;

/// The state of `tiles` times eight rows, and heads of `valueTiles` times 16 elements.
class WarpState {
public:
  using Values = llvm::SmallVector<mlir::Value>;

  /// Powers are 2^`exponent` times too large, and so are all sums of them.
  WarpState(Scalars &s, mlir::ImplicitLocOpBuilder &b, int64_t tiles, int64_t valueTiles,
            float exponent)
      : tiles(tiles), valueTiles(valueTiles), exponent(exponent), s(s), b(b) {}

  /// Makes the state of no keys.
  void clear();
  /// All numbers (f32), and the state that has such numbers.
  Values flat() const;
  void assign(mlir::ValueRange numbers);
  int64_t size() const { return numbersOfWarpState(tiles, valueTiles); }

  /// Scales the sums as if the largest scores were `maxima`, which are no less than those of
  /// before.
  void raise(const Values &maxima);
  /// The factor of sums whose maximum was `before` and is `maximum` now.
  mlir::Value shrinkOf(mlir::Value before, mlir::Value maximum);
  /// The distance of a score from the maximum of row `row` of the lane, whose power of two counts.
  mlir::Value distanceOf(mlir::Value score, int64_t row);
  /// Adds the sums of `other`, whose maxima are the same.
  void add(const WarpState &other);
  /// Adds up the sums of lanes that have the same rows.
  void addLanes();
  /// Takes in a key without a value, of row `row` of the lane, whose score is `sink`. Powers are
  /// then those of distances from the larger of maximum and sink, which none exceeds.
  void addSink(int64_t row, mlir::Value sink);
  /// The natural logarithm of the sum of powers of row `row`, from 0 on.
  mlir::Value logSumOf(int64_t row);

  int64_t tiles, valueTiles;
  float exponent;
  Values maxima, sums; ///< maxima and sums of the lane's rows: tile j has rows 2 j and 2 j + 1
  Values results;      ///< accumulators by tile, tile of values, and place in an accumulator

private:
  mlir::Value originOf(mlir::Value maximum);
  void raiseRow(int64_t row, mlir::Value maximum);

  Scalars &s;
  mlir::ImplicitLocOpBuilder &b;
};

/// Combines `value` of the lanes that have the same rows, 4, 8 and 16 apart.
mlir::Value combineRows(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                        llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);

} // namespace fp4
