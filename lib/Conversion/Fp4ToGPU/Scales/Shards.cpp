//===- Shards.cpp - Matrices stacked by an all-gather, side by side -------===//
//
// A thread moves the widest unit of at most 16 bytes that divides the row of a shard. Threads
// follow the result, so that stores are contiguous, and loads are along a shard.
//
//===----------------------------------------------------------------------===//
#include "Int32.h"
#include "KernelBuilder.h"
#include "Lowering.h"

#include "fp4/ISA/BufferShape.h"

#include <numeric>

using namespace mlir;
using namespace fp4;

static RankedTensorType rankedType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Kernels number their work items with i32.
static LogicalResult checkItems(Operation *op, int64_t items) {
  if (items <= INT32_MAX)
    return success();
  InFlightDiagnostic diag = op->emitOpError("has a kernel for up to 2147483647 units, but got ")
                            << items;
  diag.attachNote() << "pad the shards so that their rows are multiples of 16 bytes";
  return diag;
}

/// Bytes of a row, and from one row to the next.
static std::pair<int64_t, int64_t> rowBytes(RankedTensorType type) {
  int64_t columns = type.getDimSize(1);
  if (isa<Float4E2M1FNType>(type.getElementType()))
    return {hw::denseRowBytes(columns), hw::paddedRowBytes(columns)};
  return {columns, columns};
}

LogicalResult fp4::lowerInterleaveShards(InterleaveShardsOp op, LoweringContext &context) {
  auto [bytes, pitch] = rowBytes(rankedType(op.getInput()));
  int64_t resultPitch = rowBytes(rankedType(op.getResult())).second;
  int64_t rows = rankedType(op.getResult()).getDimSize(0), shards = op.getShards();
  int64_t unit = std::gcd(bytes, int64_t(16));
  int64_t perShard = bytes / unit, perRow = perShard * shards;
  if (failed(checkItems(op, rows * perRow)))
    return failure();
  KernelBuilder kernel(op, "interleave_shards", context);
  ImplicitLocOpBuilder &b = kernel.body();
  Value input = kernel.input(op.getInput());
  Value output = kernel.output(op.getResult(), /*rows=*/Value());
  Type type =
      unit < 4 ? Type(b.getIntegerType(8 * unit)) : VectorType::get(unit / 4, b.getI32Type());
  kernel.forEachItem(
      constI32(b, rows * perRow), {}, [&](Value item, ValueRange) -> SmallVector<Value> {
        Int32 row = Int32(b, item) / perRow, inRow = Int32(b, item) % perRow;
        Int32 source = inRow / perShard * rows + row;
        Value from = address(b, address(b, input, source, pitch), inRow % perShard, unit);
        Value to = address(b, address(b, output, row, resultPitch), inRow, unit);
        store(b, load(b, type, from, unit), to, unit);
        return {};
      });
  kernel.launchItems(constIndex(kernel.host(), rows * perRow));
  return success();
}
