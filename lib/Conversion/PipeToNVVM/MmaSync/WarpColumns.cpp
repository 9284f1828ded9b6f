//===- WarpColumns.cpp - Converted weights times the rows of a tile -------===//
#include "MmaSync/WarpColumns.h"

using namespace mlir;
using namespace fp4;

/// Bytes of K that an ldmatrix.x4 reads of 8 rows, for two instructions.
static constexpr int64_t kMatrixBytes = 64;

WarpColumns::WarpColumns(ImplicitLocOpBuilder &b, Value tile, pipe::SharedType type)
    : b(b), element(type.getElementType()), rows(type.getRows()),
      lane(b, NVVM::LaneIdOp::create(b, b.getI32Type())),
      line(tile, type.getLayout(), lane % kWarpColumns) {}

/// Loads the registers of 8 columns. Lines of a panel have 128 bytes of K.
SmallVector<Value> WarpColumns::load(int64_t i, int64_t pair) const {
  int64_t byte = pair * kMatrixBytes, panel = byte / kLineBytes;
  Value first = line.at(lane / kWarpColumns * 16 ^ Int32(b, byte % kLineBytes));
  int64_t row = panel * rows + i * kWarpColumns;
  return loadMatrices(b, offsetPointer(b, b.getLoc(), first, row * kLineBytes));
}

/// Multiplies all columns. Two steps of a column follow one another, between those of other
/// columns.
void WarpColumns::multiplyAll(ArrayRef<Value> weights, int64_t first,
                              MutableArrayRef<Value> sums) const {
  int64_t steps = int64_t(weights.size()) / kWarpRegistersA;
  for (int64_t step = 0; step < steps; step += 2)
    for (int64_t i = 0; i < rows / kWarpColumns; ++i) {
      SmallVector<Value> columns = load(i, (first + step) / 2);
      for (int64_t j : {0, 1})
        multiplyWarp(b, element, weights.slice((step + j) * kWarpRegistersA, kWarpRegistersA),
                     ArrayRef(columns).slice(j * kWarpRegistersB, kWarpRegistersB),
                     sums.slice(i * kWarpSums, kWarpSums));
    }
}
