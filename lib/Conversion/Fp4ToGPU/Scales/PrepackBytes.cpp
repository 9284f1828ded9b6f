//===- PrepackBytes.cpp - Weights for activations of e4m3, and back -------===//
//
// A thread moves what a thread of a GEMM has of one row and 64 columns of a tile, two words of
// codes: of each 32 columns, two bytes and the two that are 8 bytes behind. The first of each eight
// threads with the same row moves the word of the row. fp4/ISA/WeightLayout.h says where a tile has
// what, and fp4/Numerics/ByteWeights.h what the word of a row is.
//
// With powers of rows the first thread of the first tile moves the words of its row in all tiles,
// once it has read all of its scales. Weights that end within a tile have scales that are moved
// byte by byte.
//
//===----------------------------------------------------------------------===//
#include "KernelBuilder.h"
#include "Lowering.h"
#include "PackedPlaces.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp4;

namespace {

constexpr int64_t kBlock = 32, kBlocks = hw::byteTileColumns / kBlock;
/// Items of a tile: of each row, two halves of four threads.
constexpr int64_t kItemsOfRow = 8, kItems = hw::weightTileRows * kItemsOfRow;
constexpr int64_t kStepBytes = kBlock / 2, kHalfSteps = hw::byteSteps / 2;
constexpr int64_t kNaNScale = 0xFF, kExponentShift = 23;
/// Exponents of blocks are relative to this one of the largest scale.
constexpr int64_t kTopExponent = hw::byteMostExponent - hw::byteExponentBias;
constexpr int64_t kMagnitudes = 0x77777777;

/// Places of an item's codes, and of its row's scales and word.
class Item {
public:
  Item(ImplicitLocOpBuilder &b, Value number, const PackedPlaces &places)
      : b(b), places(places), item(b, number), tile(item / kItems),
        row(item % kItems / kItemsOfRow), part(item % kItemsOfRow) {}

  Int32 number() const { return part; }
  /// Tiles in a row of tiles, and the place of this one among them.
  int64_t tilesPerRow() const { return places.tilesPerRow(); }
  Int32 tileColumn() const { return tile % tilesPerRow(); }
  /// All weights of all tiles exist.
  bool isWhole() const { return !places.endsInTile(); }
  /// Scale block `block` of the row exists, `ahead` tiles behind its own; not for whole tiles.
  Value hasBlock(Int32 ahead, int64_t block) const {
    return places.exists(b, tile, row, 0, (tileColumn() + ahead) * hw::byteTileColumns,
                         block * kBlock);
  }
  /// The scale block of step 0 or 1 of the item's half exists; null where all weights do.
  Value hasStep(int64_t step) const {
    if (isWhole())
      return {};
    Int32 column = places.column(tile) + part / 4 * (kHalfSteps * kBlock);
    return places.exists(b, tile, row, 0, column, step * kBlock);
  }
  /// The bytes of the row in its tile.
  Value rowCodes(Value data) const {
    return address(b, address(b, data, matrixRow(), places.codePitch()), tileColumn(),
                   hw::byteTileColumns / 2);
  }
  Value rowScales(Value scales) const {
    return address(b, address(b, scales, matrixRow(), places.columns / kBlock), tileColumn(),
                   kBlocks);
  }
  /// The first of the two bytes of elements 0 to 3 of step 0 or 1 of its half.
  Value codes(Value data, int64_t step) const {
    Value half = address(b, rowCodes(data), part / 4, kHalfSteps * kStepBytes);
    return address(b, advance(b, half, step * kStepBytes), part % 4, 2);
  }
  Value packedCodes(Value tiles, int64_t step) const {
    Int32 thread = row % 64 / 16 * 32 + row % 8 * 4 + part % 4;
    Value group = address(b, start(tiles), row / 64, hw::byteGroupBytes);
    Value half = address(b, group, part / 4, hw::byteHalfBytes);
    Value words = address(b, half, thread, hw::byteThreadBytes);
    return address(b, advance(b, words, step * 8), row / 8 % 2, 4);
  }
  Value packedRow(Value tiles) const {
    Int32 word = row / 16 * 16 + row % 8 * 2 + row / 8 % 2;
    return address(b, advance(b, start(tiles), hw::byteCodeBytes), word, 4);
  }

private:
  Int32 matrixRow() const { return places.firstRow(tile) + row; }
  Value start(Value tiles) const { return address(b, tiles, tile, hw::byteTileBytes); }

  ImplicitLocOpBuilder &b;
  PackedPlaces places;
  Int32 item, tile, row, part;
};

/// The signs of `from` bits 3, 7, 11, 15 at 7, 15, 23, 31, and back.
Int32 spreadSigns(Int32 half) {
  return (half & 0x8) * 0x10 | (half & 0x80) * 0x100 | (half & 0x800) * 0x1000 |
         (half & 0x8000) * 0x10000;
}
Int32 gatherSigns(Int32 word) {
  return ((word >> 4) & 0x8) | ((word >> 8) & 0x80) | ((word >> 12) & 0x800) |
         ((word >> 16) & 0x8000);
}

/// Places codes as lib/Numerics/ByteWeights.cpp does.
Int32 placeCodes(Int32 low, Int32 high) {
  return ((low | high * 0x10000) & kMagnitudes) | spreadSigns(low) | (spreadSigns(high) >> 4);
}
Int32 takeCodes(Int32 word) {
  return (word & kMagnitudes) | gatherSigns(word) | gatherSigns(word * 0x10) * 0x10000;
}

Int32 loadHalf(ImplicitLocOpBuilder &b, Value exists, Value pointer, Value base) {
  Value half = loadExisting(b, b.getI16Type(), exists, pointer, base, 2);
  return {b, arith::ExtUIOp::create(b, b.getI32Type(), half)};
}
void storeHalf(ImplicitLocOpBuilder &b, Value half, Value exists, Value pointer) {
  storeExisting(b, arith::TruncIOp::create(b, b.getI16Type(), half), exists, pointer, 2);
}

Int32 maximum(Int32 x, Int32 y) { return {x.builder(), arith::MaxSIOp::create(x.builder(), x, y)}; }
Value isEqual(ImplicitLocOpBuilder &b, Int32 x, int64_t y) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, Int32(b, y));
}
Value isBelowZero(ImplicitLocOpBuilder &b, Int32 x) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, Int32(b, int64_t(0)));
}

/// The scales of what shares a power of two: the largest and the least byte of blocks that are not
/// zero, and whether one is NaN (i1).
struct SharedPower {
  Int32 largest, least;
  Value isNaN;

  explicit SharedPower(ImplicitLocOpBuilder &b)
      : largest(b, int64_t(0)), least(b, kNaNScale),
        isNaN(arith::ConstantOp::create(b, b.getBoolAttr(false))) {}
  SharedPower(ImplicitLocOpBuilder &b, ValueRange values)
      : largest(b, values[0]), least(b, values[1]), isNaN(values[2]) {}
  SmallVector<Value> values() const { return {largest, least, isNaN}; }

  /// The exponent, with a bias of 127.
  Int32 power() const {
    return maximum(largest - kTopExponent, Int32(largest.builder(), int64_t(1)));
  }
};

/// The four blocks of a row of a tile. A block that does not exist is zero.
class RowBlocks {
public:
  RowBlocks(ImplicitLocOpBuilder &b, Value codes, Value data, Int32 scales, ArrayRef<Value> exist)
      : b(b) {
    for (int64_t j = 0; j < kBlocks; ++j) {
      Int32 magnitudes(b, int64_t(0));
      for (int64_t i = 0; i < kStepBytes; i += 4)
        magnitudes =
            magnitudes | Int32(b, loadExisting(b, b.getI32Type(), exist[size_t(j)],
                                               advance(b, codes, j * kStepBytes + i), data, 4));
      isZero.push_back(isEqual(b, magnitudes & kMagnitudes, 0));
      bytes.push_back((scales >> 8 * j) & 0xFF);
    }
  }

  void addTo(SharedPower &power) const {
    for (int64_t j = 0; j < kBlocks; ++j) {
      power.largest = maximum(power.largest, select(isZero[j], Int32(b, int64_t(0)), bytes[j]));
      power.least = minimum(power.least, select(isZero[j], Int32(b, kNaNScale), bytes[j]));
      power.isNaN = arith::OrIOp::create(b, power.isNaN, isEqual(b, bytes[j], kNaNScale));
    }
  }

  /// The word of the row: its power of two and the exponents of its blocks, or NaN.
  Int32 wordOf(const SharedPower &shared) const {
    Int32 power = shared.power(), word = power * (int64_t(1) << kExponentShift);
    Value isNaN = shared.isNaN;
    for (int64_t j = 0; j < kBlocks; ++j) {
      Int32 exponent = bytes[j] + hw::byteExponentBias - power;
      exponent = select(isZero[j], Int32(b, int64_t(0)), exponent);
      isNaN = arith::OrIOp::create(b, isNaN, isBelowZero(b, exponent));
      word = word | exponent * (int64_t(1) << 4 * j);
    }
    return select(isNaN, Int32(b, int64_t(hw::byteNaN)), word);
  }

private:
  ImplicitLocOpBuilder &b;
  SmallVector<Int32> bytes;
  SmallVector<Value> isZero;
};

/// Maker of the words of a row: the source of the values, and the place of the tiles.
struct WordsOfRow {
  ImplicitLocOpBuilder &b;
  Value data, scales, tiles;

  /// The blocks of the row of `item`, `ahead` tiles behind its own, and where their word is.
  RowBlocks blocks(const Item &item, Value ahead) const {
    Value ofTile = address(b, item.rowScales(scales), ahead, kBlocks);
    SmallVector<Value> exist(kBlocks);
    for (int64_t block = 0; block < kBlocks && !item.isWhole(); ++block)
      exist[size_t(block)] = item.hasBlock(Int32(b, ahead), block);
    Int32 word = loadScales(ofTile, exist);
    return {b, address(b, item.rowCodes(data), ahead, hw::byteTileColumns / 2), data, word, exist};
  }
  Int32 loadScales(Value ofTile, ArrayRef<Value> exist) const {
    if (!exist.front())
      return {b, load(b, b.getI32Type(), ofTile, 4)};
    Int32 word(b, int64_t(0));
    for (auto [i, exists] : llvm::enumerate(exist)) {
      Value byte =
          loadExisting(b, b.getI8Type(), exists, advance(b, ofTile, int64_t(i)), scales, 1);
      word =
          word | Int32(b, arith::ExtUIOp::create(b, b.getI32Type(), byte)) * (int64_t(1) << 8 * i);
    }
    return word;
  }
  void store(const Item &item, Value ahead, Int32 word) const {
    fp4::store(b, word, address(b, item.packedRow(tiles), ahead, hw::byteTileBytes), 4);
  }

  void moveWord(const Item &item) const {
    Value own = constI32(b, 0);
    RowBlocks blocks = this->blocks(item, own);
    SharedPower power(b);
    blocks.addTo(power);
    store(item, own, blocks.wordOf(power));
  }

  /// A row with a block that is too far from the others is NaN in all tiles.
  void moveWords(const Item &item) const {
    Value first = constI32(b, 0), count = constI32(b, item.tilesPerRow()), one = constI32(b, 1);
    auto read = scf::ForOp::create(b, first, count, one, SharedPower(b).values());
    {
      OpBuilder::InsertionGuard restore(b);
      b.setInsertionPointToStart(read.getBody());
      SharedPower power(b, read.getRegionIterArgs());
      blocks(item, read.getInductionVar()).addTo(power);
      scf::YieldOp::create(b, power.values());
    }
    SharedPower power(b, read.getResults());
    Int32 smallest = minimum(power.least, power.largest);
    power.isNaN = arith::OrIOp::create(
        b, power.isNaN, isBelowZero(b, smallest + hw::byteExponentBias - power.power()));
    auto write = scf::ForOp::create(b, first, count, one);
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPointToStart(write.getBody());
    Value ahead = write.getInductionVar();
    store(item, ahead, blocks(item, ahead).wordOf(power));
  }
};

/// The scales of a row of a tile.
Int32 scalesOfRow(ImplicitLocOpBuilder &b, Int32 word) {
  Int32 power = (word >> kExponentShift) & 0xFF, scales(b, int64_t(0));
  for (int64_t j = 0; j < kBlocks; ++j) {
    Int32 scale = ((word >> 4 * j) & 15) - hw::byteExponentBias + power;
    scales = scales | maximum(scale, Int32(b, int64_t(0))) * (int64_t(1) << 8 * j);
  }
  return select(isEqual(b, word & int64_t(hw::bytePowerMask), int64_t(hw::byteNaN)),
                Int32(b, int64_t(-1)), scales);
}

RankedTensorType rankedType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// The item is the first of its row: of that in its tile, or in all tiles.
Value isFirst(ImplicitLocOpBuilder &b, const Item &item, bool ofAllTiles) {
  Value first = item.number() < 1;
  return ofAllTiles ? arith::AndIOp::create(b, first, item.tileColumn() < 1).getResult() : first;
}

/// Calls `move` for each item of `data`, and `moveRow` for the first of each row of a tile, or of
/// all tiles.
void forItems(KernelBuilder &kernel, const PackedPlaces &places, bool ofAllTiles,
              function_ref<void(Item &)> move, function_ref<void(Item &)> moveRow) {
  ImplicitLocOpBuilder &b = kernel.body();
  int64_t items = places.tiles() * kItems;
  kernel.forEachItem(constI32(b, items), {}, [&](Value number, ValueRange) -> SmallVector<Value> {
    Item item(b, number, places);
    move(item);
    emitWhen(b, isFirst(b, item, ofAllTiles), [&] { moveRow(item); });
    return {};
  });
  kernel.launchItems(constIndex(kernel.host(), items));
}

} // namespace

LogicalResult fp4::lowerPrepackBytes(PrepackOp op, LoweringContext &context) {
  KernelBuilder kernel(op, "prepack", context);
  ImplicitLocOpBuilder &b = kernel.body();
  Value data = kernel.input(op.getData()), scales = kernel.input(op.getScales());
  Value tiles = kernel.output(op.getResult(), /*rows=*/Value());
  auto moveCodes = [&](Item &item) {
    for (int64_t step = 0; step < kHalfSteps; ++step) {
      Value codes = item.codes(data, step), exists = item.hasStep(step);
      Int32 low = loadHalf(b, exists, codes, data),
            high = loadHalf(b, exists, advance(b, codes, kStepBytes / 2), data);
      store(b, placeCodes(low, high), item.packedCodes(tiles, step), 4);
    }
  };
  WordsOfRow words{b, data, scales, tiles};
  bool ofAllTiles = haveRowPowers(rankedType(op.getResult()));
  PackedPlaces places(rankedType(op.getData()), hw::byteTileColumns, op.getGroups());
  forItems(kernel, places, ofAllTiles, moveCodes, [&](Item &item) {
    if (ofAllTiles)
      words.moveWords(item);
    else
      words.moveWord(item);
  });
  return success();
}

LogicalResult fp4::lowerUnprepackBytes(UnprepackOp op, LoweringContext &context) {
  KernelBuilder kernel(op, "unprepack", context);
  ImplicitLocOpBuilder &b = kernel.body();
  Value tiles = kernel.input(op.getInput());
  Value data = kernel.output(op.getData(), /*rows=*/Value());
  Value scales = kernel.output(op.getScales(), /*rows=*/Value());
  auto moveCodes = [&](Item &item) {
    for (int64_t step = 0; step < kHalfSteps; ++step) {
      Int32 both = takeCodes({b, load(b, b.getI32Type(), item.packedCodes(tiles, step), 4)});
      Value codes = item.codes(data, step), exists = item.hasStep(step);
      storeHalf(b, both, exists, codes);
      storeHalf(b, both >> 16, exists, advance(b, codes, kStepBytes / 2));
    }
  };
  auto moveRow = [&](Item &item) {
    Int32 word(b, load(b, b.getI32Type(), item.packedRow(tiles), 4));
    Int32 ofRow = scalesOfRow(b, word);
    Value dest = item.rowScales(scales);
    if (item.isWhole())
      return store(b, ofRow, dest, 4);
    for (int64_t block = 0; block < kBlocks; ++block)
      storeExisting(b, arith::TruncIOp::create(b, b.getI8Type(), ofRow >> 8 * block),
                    item.hasBlock(Int32(b, int64_t(0)), block), advance(b, dest, block), 1);
  };
  PackedPlaces places(rankedType(op.getData()), hw::byteTileColumns, op.getGroups());
  forItems(kernel, places, /*ofAllTiles=*/false, moveCodes, moveRow);
  return success();
}
