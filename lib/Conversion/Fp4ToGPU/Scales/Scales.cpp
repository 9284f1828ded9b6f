//===- Scales.cpp - Kernels that move block scales ------------------------===//
//
// 16 consecutive bytes of a tiled buffer hold blocks 4t to 4t+3 of the four rows r, r+32, r+64 and
// r+96 (fp4/ISA/ScaleLayout.h); a thread of swizzle_scales writes these. A thread of
// unswizzle_scales writes four blocks of one row. If B is not a multiple of 4, rows are neither
// aligned nor whole words and are moved byte by byte; where B is dynamic, all threads ask. With
// offsets, a row of tiles has rows of one group, which a table says (GroupBands.h). A thread of
// stack_scales writes like one of swizzle_scales, or four row-major blocks, and finds each row
// among the shards.
//
//===----------------------------------------------------------------------===//
#include "GroupBands.h"
#include "Int32.h"
#include "KernelBuilder.h"
#include "Lowering.h"

#include "fp4/ISA/ScaleLayout.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

namespace {

constexpr int64_t kTileRows = hw::scaleBlockRows, kTileBlocks = hw::scaleBlockColumns;
constexpr int64_t kRowStep = hw::scaleUnitRowStep;

/// A row-major scale matrix of B columns, accessed as words of four blocks.
class LinearScales {
public:
  /// `given` (i32) are the columns where they are dynamic.
  LinearScales(ImplicitLocOpBuilder &b, Value base, int64_t columns, Value given = {})
      : b(b), base(base), columns(columns), given(given) {}

  /// The word of blocks 4*tile to 4*tile+3 of `row`; blocks that do not exist are zero.
  Value word(Value row, Value tile) {
    Value start = at(row, tile);
    if (given)
      return wordOrBytes(start, tile);
    if (columns % kTileBlocks == 0)
      return load(b, b.getI32Type(), start, kTileBlocks);
    return bytes(start, tile);
  }

  void setWord(Value row, Value tile, Value word) {
    Value start = at(row, tile);
    if (columns % kTileBlocks == 0)
      return store(b, word, start, kTileBlocks);
    for (int64_t block = 0; block < kTileBlocks; ++block) {
      emitWhen(b, isBlock(tile, block), [&] {
        Value byte = arith::ShRUIOp::create(b, word, constI32(b, 8 * block));
        store(b, arith::TruncIOp::create(b, b.getI8Type(), byte), advance(b, start, block), 1);
      });
    }
  }

private:
  Value at(Value row, Value tile) {
    if (!given)
      return address(b, address(b, base, row, columns), tile, kTileBlocks);
    auto wide = [&](Value x) -> Value { return arith::ExtUIOp::create(b, b.getI64Type(), x); };
    Value offset = arith::MulIOp::create(b, wide(row), wide(given));
    Value start = LLVM::GEPOp::create(b, base.getType(), b.getI8Type(), base, offset);
    return address(b, start, tile, kTileBlocks);
  }

  Value bytes(Value start, Value tile) {
    Value result = constI32(b, 0);
    for (int64_t block = 0; block < kTileBlocks; ++block)
      result = appendByte(result, start, tile, block);
    return result;
  }

  /// Rows of whole words are aligned.
  Value wordOrBytes(Value start, Value tile) {
    Value isWhole = Int32(b, given) % kTileBlocks < 1;
    return chooseValue(
        b, b.getI32Type(), isWhole, [&] { return load(b, b.getI32Type(), start, kTileBlocks); },
        [&] { return bytes(start, tile); });
  }

  /// `word` with byte number `block` taken from memory, where that block exists.
  Value appendByte(Value word, Value start, Value tile, int64_t block) {
    auto appended = [&]() -> Value {
      Value byte = load(b, b.getI8Type(), advance(b, start, block), 1);
      byte = arith::ExtUIOp::create(b, b.getI32Type(), byte);
      byte = arith::ShLIOp::create(b, byte, constI32(b, 8 * block));
      return arith::OrIOp::create(b, word, byte);
    };
    return chooseValue(b, b.getI32Type(), isBlock(tile, block), appended, [&] { return word; });
  }

  /// Returns true when block number `block` of the tile exists.
  Value isBlock(Value tile, int64_t block) {
    if (given)
      return Int32(b, tile) * kTileBlocks + block < Int32(b, given);
    Value last = constI32(b, (columns - 1 - block) / kTileBlocks);
    auto predicate = block < columns ? arith::CmpIPredicate::ule : arith::CmpIPredicate::ult;
    return arith::CmpIOp::create(b, predicate, tile, block < columns ? last : constI32(b, 0));
  }

  ImplicitLocOpBuilder &b;
  Value base;
  int64_t columns;
  Value given;
};

RankedTensorType rankedType(Value value) { return cast<RankedTensorType>(value.getType()); }

int64_t tilesPerRow(int64_t columns) { return llvm::divideCeil(columns, kTileBlocks); }

} // namespace

/// The words that lie together in the tiled buffer: blocks of a tile of rows `row`, `row` + 32,
/// ..., which `wordOf` gives. Zero for rows that do not exist.
static Value gatherRows(ImplicitLocOpBuilder &b, Value row, Value rows,
                        function_ref<Value(Value)> wordOf) {
  auto type = VectorType::get(kTileRows / kRowStep, b.getI32Type());
  SmallVector<Value> words;
  for (int64_t step = 0; step < type.getNumElements(); ++step) {
    Value current = arith::AddIOp::create(b, row, constI32(b, step * kRowStep));
    Value isRow = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, current, rows);
    words.push_back(chooseValue(
        b, b.getI32Type(), isRow, [&] { return wordOf(current); }, [&] { return constI32(b, 0); }));
  }
  return vector::FromElementsOp::create(b, type, words);
}

/// Bytes of the tiled buffer that a thread writes.
static constexpr int64_t kItemBytes = hw::scaleUnitBytes;

/// Each row of tiles is that of a band of rows of one group.
static LogicalResult lowerSwizzleOfGroups(SwizzleScalesOp op, LoweringContext &context) {
  RankedTensorType type = rankedType(op.getInput());
  GroupBands bands(op, op.getOffsets(), type.getDimSize(0), context);
  KernelBuilder kernel(op, "swizzle_scales", context);
  ImplicitLocOpBuilder &b = kernel.body();
  LinearScales input(b, kernel.input(op.getInput()), type.getDimSize(1));
  Value output = kernel.output(op.getResult(), /*rows=*/Value());
  bands.enter(kernel);
  int64_t tiles = tilesPerRow(type.getDimSize(1)), items = bands.count() * tiles * kRowStep;
  kernel.forEachItem(constI32(b, items), {}, [&](Value item, ValueRange) -> SmallVector<Value> {
    auto [row, tile] = hw::scaleUnit(Int32(b, item), tiles);
    GroupBands::Band band = bands.find(row / kTileRows);
    Value words = gatherRows(
        b, band.firstRow + row % kTileRows, band.endRow,
        [&, tile = tile](Value current) { return input.word(current, tile); });
    store(b, words, address(b, output, item, kItemBytes), kItemBytes);
    return {};
  });
  kernel.launchItems(constIndex(kernel.host(), items));
  return success();
}

LogicalResult fp4::lowerSwizzle(SwizzleScalesOp op, LoweringContext &context) {
  if (op.getOffsets())
    return lowerSwizzleOfGroups(op, context);
  KernelBuilder kernel(op, "swizzle_scales", context);
  ImplicitLocOpBuilder &b = kernel.body(), &host = kernel.host();
  int64_t columns = rankedType(op.getInput()).getDimSize(1), tiles = tilesPerRow(columns);

  Value hostRows = kernel.hostRows(op.getInput()), hostColumns = kernel.hostColumns(op.getInput());
  Value tileRows = arith::CeilDivUIOp::create(host, hostRows, constIndex(host, kTileRows));
  Value perTileRow = constIndex(host, tiles * kRowStep), given;
  if (hostColumns) {
    Value hostTiles = arith::CeilDivUIOp::create(host, hostColumns, constIndex(host, kTileBlocks));
    perTileRow = arith::MulIOp::create(host, hostTiles, constIndex(host, kRowStep));
    given = kernel.scalar(hostColumns);
  }
  Value hostItems = arith::MulIOp::create(host, tileRows, perTileRow);
  LinearScales input(b, kernel.input(op.getInput()), columns, given);
  Value output = kernel.output(op.getResult(), hostRows, hostColumns);
  Value rows = kernel.scalar(hostRows), items = kernel.scalar(hostItems);

  kernel.forEachItem(items, {}, [&](Value item, ValueRange) -> SmallVector<Value> {
    Int32 number(b, item);
    auto [row, tile] =
        given ? hw::scaleUnit(number, (Int32(b, given) + (kTileBlocks - 1)) / kTileBlocks)
              : hw::scaleUnit(number, tiles);
    Value words = gatherRows(
        b, row, rows, [&, tile = tile](Value current) { return input.word(current, tile); });
    store(b, words, address(b, output, item, kItemBytes), kItemBytes);
    return {};
  });
  kernel.launchItems(hostItems);
  return success();
}

/// Address of the word of `row` in tile column `tileColumn` of a tiled buffer.
static Value tiledWord(ImplicitLocOpBuilder &b, Value base, Value row, Value tileColumn,
                       int64_t tiles) {
  Int32 matrixRow(b, row);
  Int32 tile = hw::scaleBlockIndex(matrixRow / kTileRows, Int32(b, tileColumn), tiles);
  return address(b, address(b, base, tile, hw::scaleBlockBytes), hw::scaleWordInBlock(matrixRow),
                 1);
}

LogicalResult fp4::lowerUnswizzle(UnswizzleScalesOp op, LoweringContext &context) {
  RankedTensorType type = rankedType(op.getInput());
  if (type.isDynamicDim(0)) {
    InFlightDiagnostic diag = op.emitOpError("has a kernel for a static number of rows, but got ")
                              << type;
    diag.attachNote() << "a tiled buffer holds its rows rounded up to 128, so their number is "
                         "lost; keep the scales from before fp4.swizzle_scales";
    return diag;
  }
  KernelBuilder kernel(op, "unswizzle_scales", context);
  ImplicitLocOpBuilder &b = kernel.body(), &host = kernel.host();
  int64_t columns = type.getDimSize(1), tiles = tilesPerRow(columns);
  Value hostItems = constIndex(host, type.getDimSize(0) * tiles);
  Value input = kernel.input(op.getInput());
  LinearScales output(b, kernel.output(op.getResult(), /*rows=*/Value()), columns);
  Value items = kernel.scalar(hostItems);

  kernel.forEachItem(items, {}, [&](Value item, ValueRange) -> SmallVector<Value> {
    Value row = arith::DivUIOp::create(b, item, constI32(b, tiles));
    Value tileColumn = arith::RemUIOp::create(b, item, constI32(b, tiles));
    Value word = load(b, b.getI32Type(), tiledWord(b, input, row, tileColumn, tiles), kTileBlocks);
    output.setWord(row, tileColumn, word);
    return {};
  });
  kernel.launchItems(hostItems);
  return success();
}

namespace {

/// The rows of several scale matrices, one after the other.
class StackedScales {
public:
  StackedScales(KernelBuilder &kernel, StackScalesOp op)
      : b(kernel.body()), columns(rankedType(op.getResult()).getDimSize(1)),
        isTiled(scaleLayout(rankedType(op.getResult())).has_value()) {
    for (Value shard : op.getShards()) {
      shards.push_back({kernel.input(shard), rows});
      rows += rankedType(shard).getDimSize(0);
    }
  }

  /// The word of blocks 4*tile to 4*tile+3 of `row`, which exists; blocks that do not are zero.
  Value word(Int32 row, Int32 tile) {
    Value base = shards.front().base;
    Int32 first(b, 0);
    for (const Shard &shard : llvm::drop_begin(shards)) {
      Value isBefore = row < shard.firstRow;
      base = arith::SelectOp::create(b, isBefore, base, shard.base);
      first = select(isBefore, first, Int32(b, shard.firstRow));
    }
    Int32 inShard = row - first;
    if (!isTiled)
      return LinearScales(b, base, columns).word(inShard, tile);
    int64_t tiles = tilesPerRow(columns), used = columns - (tiles - 1) * kTileBlocks;
    Int32 word(b, load(b, b.getI32Type(), tiledWord(b, base, inShard, tile, tiles), kTileBlocks));
    if (used == kTileBlocks)
      return word;
    return select(tile < tiles - 1, word, word & ((int64_t(1) << (8 * used)) - 1));
  }

private:
  struct Shard {
    Value base;
    int64_t firstRow; ///< first row in the result
  };
  ImplicitLocOpBuilder &b;
  SmallVector<Shard> shards;
  int64_t rows = 0, columns;
  bool isTiled;
};

} // namespace

LogicalResult fp4::lowerStackScales(StackScalesOp op, LoweringContext &context) {
  RankedTensorType type = rankedType(op.getResult());
  int64_t rows = type.getDimSize(0), tiles = tilesPerRow(type.getDimSize(1));
  bool isTiled = scaleLayout(type).has_value();
  KernelBuilder kernel(op, "stack_scales", context);
  ImplicitLocOpBuilder &b = kernel.body();
  StackedScales input(kernel, op);
  Value output = kernel.output(op.getResult(), /*rows=*/Value());
  int64_t items = tiles * (isTiled ? llvm::divideCeil(rows, kTileRows) * kRowStep : rows);
  kernel.forEachItem(constI32(b, items), {}, [&](Value item, ValueRange) -> SmallVector<Value> {
    if (!isTiled) {
      Int32 row = Int32(b, item) / tiles, tile = Int32(b, item) % tiles;
      LinearScales(b, output, type.getDimSize(1)).setWord(row, tile, input.word(row, tile));
      return {};
    }
    auto [row, tile] = hw::scaleUnit(Int32(b, item), tiles);
    Value words = gatherRows(b, row, constI32(b, rows), [&, tile = tile](Value current) {
      return input.word(Int32(b, current), tile);
    });
    store(b, words, address(b, output, item, kItemBytes), kItemBytes);
    return {};
  });
  kernel.launchItems(constIndex(kernel.host(), items));
  return success();
}
