//===- Prepack.cpp - Weights in the order of registers, and back ----------===//
//
// A thread moves the 16 bytes of codes that a thread of a GEMM has of a tile: 32 bytes, of which it
// needs a quarter, of each of two rows. The first of the four threads that share two rows moves
// their scales. fp4/ISA/WeightLayout.h has the layout of a tile. Scales of weights that end within
// a tile are moved byte by byte.
//
//===----------------------------------------------------------------------===//
#include "KernelBuilder.h"
#include "Lowering.h"
#include "PackedPlaces.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

namespace {

constexpr int64_t kThreads = 256; ///< items of a tile
constexpr int64_t kSteps = hw::weightSteps;
/// Step by which the exponent of a normal e4m3 scale grows, in place.
constexpr int64_t kExponents = 15 << 3;
constexpr int64_t kNaN = 0x7F, kWideNaN = 0xFF;

/// Places of the codes and scales of an item, packed and not.
class Item {
public:
  Item(ImplicitLocOpBuilder &b, Value number, const PackedPlaces &places, int64_t block)
      : b(b), places(places), block(block), item(b, number), tile(item / kThreads),
        place(item % kThreads), row(places.firstRow(tile) + place / 32 * 16 + place % 32 / 4),
        column(places.column(tile)) {}

  Int32 lane() const { return place % 4; }
  int64_t scalesPerRow() const { return hw::weightTileColumns / block; }
  /// All weights of all tiles exist.
  bool isWhole() const { return !places.endsInTile(); }
  /// Column `at` of the row `lower` (0 or 1) of the item exists; null where all weights do.
  Value exists(int64_t lower, int64_t at) const {
    return places.exists(b, tile, rowOfTile(), 8 * lower, column, at);
  }
  /// The pair of columns of the item's lane from column `at` on exists; null where all weights do.
  Value hasPair(int64_t lower, int64_t at) const {
    if (!places.endsInTile())
      return {};
    return places.exists(b, tile, rowOfTile(), 8 * lower, column + lane() * 2, at);
  }

  /// The 32 bytes of row 0 or 1 of the item in its tile.
  Value codes(Value data, int64_t lower) const {
    Value line = address(b, data, row + 8 * lower, places.codePitch());
    return address(b, line, column / hw::weightTileColumns, hw::weightTileColumns / 2);
  }
  /// The scales of the row `lower` (0 or 1) of the item.
  Value scales(Value data, int64_t lower) const {
    Value line = address(b, data, row + 8 * lower, places.columns / block);
    return address(b, line, column / hw::weightTileColumns, scalesPerRow());
  }
  Value packedCodes(Value tiles) const {
    return address(b, start(tiles), place, hw::weightThreadBytes);
  }
  Value packedScales(Value tiles) const {
    return address(b, advance(b, start(tiles), hw::weightCodeBytes), place / 4, 2 * scalesPerRow());
  }

private:
  Int32 rowOfTile() const { return place / 32 * 16 + place % 32 / 4; }
  Value start(Value tiles) const { return address(b, tiles, tile, hw::weightTileBytes(block)); }

  ImplicitLocOpBuilder &b;
  PackedPlaces places;
  int64_t block;
  Int32 item, tile, place, row, column;
};

/// Bits of words, as lib/Numerics/PackedWeights.cpp has them.
class Bits {
public:
  /// The words of two instructions, which share bits.
  using TwoWords = std::array<Value, 2>;

  explicit Bits(ImplicitLocOpBuilder &b) : b(b) {}

  Value constant(int64_t value) { return constI32(b, value); }
  Value left(Value x, int64_t by) { return arith::ShLIOp::create(b, x, constant(by)); }
  Value right(Value x, int64_t by) { return arith::ShRUIOp::create(b, x, constant(by)); }
  Value both(Value x, int64_t mask) { return arith::AndIOp::create(b, x, constant(mask)); }
  Value either(Value x, Value y) { return arith::OrIOp::create(b, x, y); }
  Value rotateLeft(Value x, int64_t by) {
    return by ? Value(LLVM::FshlOp::create(b, x, x, constant(by))) : x;
  }
  Value isLess(Value x, int64_t limit) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, x, constant(limit));
  }
  Value is(Value x, int64_t value) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, constant(value));
  }
  Value choose(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, condition, x, y);
  }

  Value spreadPair(Value byte) {
    Value low = either(left(both(byte, 0x07), 6), left(both(byte, 0x08), 12));
    return either(low, either(left(both(byte, 0x70), 18), left(both(byte, 0x80), 24)));
  }
  Value gatherPair(Value pair) {
    Value low = either(both(right(pair, 6), 0x07), both(right(pair, 12), 0x08));
    return either(low, either(both(right(pair, 18), 0x70), both(right(pair, 24), 0x80)));
  }
  /// A word that is still null counts as zero.
  void placePair(TwoWords &words, unsigned word, unsigned j, Value pair) {
    for (const hw::WeightPart &part : hw::weightParts[word][j]) {
      if (part.mask == 0)
        continue;
      Value placed = rotateLeft(both(pair, part.mask), (32 - part.rotation) % 32);
      Value &target = words[part.word];
      target = target ? either(target, placed) : placed;
    }
  }
  Value takePair(const TwoWords &words, unsigned word, unsigned j) {
    Value pair;
    for (const hw::WeightPart &part : hw::weightParts[word][j]) {
      if (part.mask == 0)
        continue;
      Value taken = both(rotateLeft(words[part.word], part.rotation), part.mask);
      pair = pair ? either(pair, taken) : taken;
    }
    return pair;
  }
  /// Mixes two words; the inverse of itself.
  void mix(TwoWords &words) {
    for (const hw::WeightMix &step : hw::weightMixes) {
      Value other = words[1 - step.word];
      other = step.by > 0 ? right(other, step.by) : left(other, -step.by);
      words[step.word] = arith::XOrIOp::create(b, words[step.word], both(other, step.mask));
    }
  }

  Value widenScale(Value byte) {
    Value magnitude = both(byte, 0x7F);
    Value small =
        NVVM::PermuteOp::create(b, b.getI32Type(), constant(0x74706800), constant(0x7E7C7A78),
                                magnitude, NVVM::PermuteMode::DEFAULT);
    Value wide = arith::AddIOp::create(b, magnitude, constant(kExponents));
    wide = choose(isLess(magnitude, 8), both(small, 0xFF), wide);
    return choose(is(magnitude, kNaN), constant(kWideNaN), wide);
  }
  Value narrowScale(Value byte) {
    Value exponent = right(byte, 3);
    Value significand = either(both(byte, 7), constant(8));
    Value distance = arith::SubIOp::create(b, constant(16), exponent);
    Value small = arith::ShRUIOp::create(b, significand, both(distance, 31));
    small = choose(is(exponent, 0), constant(0), small);
    Value normal = arith::SubIOp::create(b, byte, constant(kExponents));
    Value narrow = choose(isLess(exponent, 16), small, normal);
    return choose(is(byte, kWideNaN), constant(kNaN), narrow);
  }

  ImplicitLocOpBuilder &b;
};

/// A word of scales, each of them `convert`ed.
template <typename Convert> Value convertScales(Bits &bits, Value word, const Convert &convert) {
  Value result;
  for (int64_t i = 0; i < kSteps; ++i) {
    Value byte = bits.left(convert(bits.both(bits.right(word, 8 * i), 0xFF)), 8 * i);
    result = result ? bits.either(result, byte) : byte;
  }
  return result;
}

/// `count` words.
SmallVector<Value> loadWords(ImplicitLocOpBuilder &b, Value pointer, int64_t count) {
  SmallVector<Value> words;
  for (int64_t i = 0; i < count; i += 4) {
    Value four = load(b, VectorType::get(4, b.getI32Type()), advance(b, pointer, 4 * i), 16);
    for (int64_t j = 0; j < 4; ++j)
      words.push_back(vector::ExtractOp::create(b, four, j));
  }
  return words;
}

/// The words of a row of a tile, of which those behind the weights are zero.
SmallVector<Value> loadCodes(ImplicitLocOpBuilder &b, const Item &item, Value data, int64_t lower) {
  constexpr int64_t codesOfWord = 8, count = hw::weightTileColumns / codesOfWord;
  if (item.isWhole())
    return loadWords(b, item.codes(data, lower), count);
  SmallVector<Value> words;
  for (int64_t i = 0; i < count; ++i)
    words.push_back(loadExisting(b, b.getI32Type(), item.exists(lower, codesOfWord * i),
                                 advance(b, item.codes(data, lower), 4 * i), data, 4));
  return words;
}

/// Scales of a row of a tile, in the lower bytes of an i32.
Value loadScales(Bits &bits, const Item &item, Value data, int64_t lower) {
  ImplicitLocOpBuilder &b = bits.b;
  Value pointer = item.scales(data, lower), all;
  int64_t count = item.scalesPerRow(), block = hw::weightTileColumns / count;
  if (item.isWhole())
    return count == 4
               ? load(b, b.getI32Type(), pointer, 4)
               : arith::ExtUIOp::create(b, b.getI32Type(), load(b, b.getI16Type(), pointer, 2));
  for (int64_t i = 0; i < count; ++i) {
    Value exists = item.exists(lower, block * i);
    Value byte = loadExisting(b, b.getI8Type(), exists, advance(b, pointer, i), data, 1);
    byte = arith::ExtUIOp::create(b, b.getI32Type(), byte);
    byte = bits.choose(exists, byte, bits.constant(hw::weightPaddingScale(block)));
    all = all ? bits.either(all, bits.left(byte, 8 * i)) : byte;
  }
  return all;
}

void storeScales(Bits &bits, const Item &item, Value word, Value data, int64_t lower) {
  ImplicitLocOpBuilder &b = bits.b;
  Value pointer = item.scales(data, lower);
  int64_t count = item.scalesPerRow(), block = hw::weightTileColumns / count;
  if (item.isWhole()) {
    if (count == 4)
      return store(b, word, pointer, 4);
    return store(b, arith::TruncIOp::create(b, b.getI16Type(), word), pointer, 2);
  }
  for (int64_t i = 0; i < count; ++i)
    storeExisting(b, arith::TruncIOp::create(b, b.getI8Type(), bits.right(word, 8 * i)),
                  item.exists(lower, block * i), advance(b, pointer, i), 1);
}

RankedTensorType rankedType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Calls `move` for each item of `data`, and `moveScales` for those that have scales to move.
void forItems(KernelBuilder &kernel, const PackedPlaces &places, int64_t block,
              function_ref<void(Item &)> move, function_ref<void(Item &)> moveScales) {
  ImplicitLocOpBuilder &b = kernel.body();
  int64_t items = places.tiles() * kThreads;
  kernel.forEachItem(constI32(b, items), {}, [&](Value number, ValueRange) -> SmallVector<Value> {
    Item item(b, number, places, block);
    move(item);
    emitWhen(b, item.lane() < 1, [&] { moveScales(item); });
    return {};
  });
  kernel.launchItems(constIndex(kernel.host(), items));
}

} // namespace

/// The words of `step` and the next, of 32 bytes and the scales of each row; `shift` brings the
/// byte of the item's lane down. Elements whose nvfp4 scale is zero are zero.
static Bits::TwoWords packWords(Bits &bits, ArrayRef<SmallVector<Value>> rows,
                                ArrayRef<Value> scales, int64_t step, Value shift, bool isE4M3) {
  Bits::TwoWords words;
  for (unsigned i = 0; i < 8; ++i) {
    unsigned word = i / 4, j = i % 4;
    Value byte = arith::ShRUIOp::create(bits.b, rows[j % 2][2 * (step + word) + j / 2], shift);
    byte = bits.both(byte, 0xFF);
    if (isE4M3) {
      Value scale = bits.both(bits.right(scales[j % 2], 8 * (step + word)), 0x7F);
      byte = bits.choose(bits.is(scale, 0), bits.constant(0), byte);
    }
    bits.placePair(words, word, j, bits.spreadPair(byte));
  }
  bits.mix(words);
  return words;
}

LogicalResult fp4::lowerPrepack(PrepackOp op, LoweringContext &context) {
  KernelBuilder kernel(op, "prepack", context);
  ImplicitLocOpBuilder &b = kernel.body();
  Bits bits(b);
  int64_t block = blockSize(op.getFormat());
  bool isE4M3 = block == 16;
  Value data = kernel.input(op.getData()), scales = kernel.input(op.getScales());
  Value tiles = kernel.output(op.getResult(), /*rows=*/Value());
  auto moveCodes = [&](Item &item) {
    SmallVector<Value> words[2];
    Value rowScales[2];
    for (int64_t lower : {0, 1}) {
      words[lower] = loadCodes(b, item, data, lower);
      rowScales[lower] = loadScales(bits, item, scales, lower);
    }
    SmallVector<Value> packed;
    for (int64_t step = 0; step < kSteps; step += 2)
      llvm::append_range(packed, packWords(bits, words, rowScales, step, item.lane() * 8, isE4M3));
    Value all = vector::FromElementsOp::create(b, VectorType::get(4, b.getI32Type()), packed);
    store(b, all, item.packedCodes(tiles), 16);
  };
  auto moveScales = [&](Item &item) {
    Value rowScales[2];
    for (int64_t lower : {0, 1})
      rowScales[lower] = loadScales(bits, item, scales, lower);
    auto convert = [&](Value word) {
      if (isE4M3)
        word = convertScales(bits, word, [&](Value byte) { return bits.widenScale(byte); });
      return bits.rotateLeft(word, hw::weightScaleRotation(block));
    };
    if (!isE4M3)
      return store(b, convert(bits.either(rowScales[0], bits.left(rowScales[1], 16))),
                   item.packedScales(tiles), 4);
    for (int64_t lower : {0, 1})
      store(b, convert(rowScales[lower]), advance(b, item.packedScales(tiles), 4 * lower), 4);
  };
  forItems(kernel, {rankedType(op.getData()), hw::weightTileColumns, op.getGroups()}, block,
           moveCodes, moveScales);
  return success();
}

/// Stores what an item has of the words of `step` and the next.
static void unpackWords(Bits &bits, Bits::TwoWords words, const Item &item, int64_t step,
                        Value data) {
  bits.mix(words);
  for (unsigned i = 0; i < 8; ++i) {
    unsigned word = i / 4, j = i % 4;
    Value byte = bits.gatherPair(bits.takePair(words, word, j));
    Value target = advance(bits.b, item.codes(data, j % 2), 8 * (step + word) + j / 2 * 4);
    storeExisting(bits.b, arith::TruncIOp::create(bits.b, bits.b.getI8Type(), byte),
                  item.hasPair(j % 2, 16 * (step + word) + j / 2 * 8),
                  address(bits.b, target, item.lane(), 1), 1);
  }
}

LogicalResult fp4::lowerUnprepack(UnprepackOp op, LoweringContext &context) {
  KernelBuilder kernel(op, "unprepack", context);
  ImplicitLocOpBuilder &b = kernel.body();
  Bits bits(b);
  int64_t block = blockSize(op.getFormat());
  Value tiles = kernel.input(op.getInput());
  Value data = kernel.output(op.getData(), /*rows=*/Value());
  Value scales = kernel.output(op.getScales(), /*rows=*/Value());
  auto moveCodes = [&](Item &item) {
    SmallVector<Value> words = loadWords(b, item.packedCodes(tiles), 4);
    for (int64_t step = 0; step < kSteps; step += 2)
      unpackWords(bits, {words[step], words[step + 1]}, item, step, data);
  };
  auto convert = [&](Value word) {
    word = bits.rotateLeft(word, 32 - hw::weightScaleRotation(block));
    if (block == 32)
      return word;
    return convertScales(bits, word, [&](Value byte) { return bits.narrowScale(byte); });
  };
  auto moveScales = [&](Item &item) {
    Value source = item.packedScales(tiles), word;
    for (int64_t lower : {0, 1}) {
      if (block == 16 || lower == 0)
        word = convert(load(b, b.getI32Type(), advance(b, source, 4 * lower), 4));
      else
        word = bits.right(word, 16);
      storeScales(bits, item, word, scales, lower);
    }
  };
  forItems(kernel, {rankedType(op.getData()), hw::weightTileColumns, op.getGroups()}, block,
           moveCodes, moveScales);
  return success();
}
