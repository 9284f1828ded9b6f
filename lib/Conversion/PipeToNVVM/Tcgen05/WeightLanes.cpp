//===- WeightLanes.cpp - Weights that become 16-bit floats in tensor memory ===//
//
// dequantize of elements and scales: thread r of a warpgroup has TMEM lane r, so it converts row r
// of the tile. The thread loads 16 bytes of codes at a time, and stores 32 elements, which are 16
// columns of its TMEM lane. In the layout of the codes neighbouring rows have neighbouring pieces
// in other banks, so that eight threads load 128 bytes of all banks. Two or four warpgroups have a
// part of the row each, unless they are in turn.
//
// dequantize of prepacked weights: a fragment of wgmma, 16 rows of 64 columns, is one of
// tcgen05.st.16x128b.x8, with the same place for each thread and register. Warp w of the warpgroup
// reaches 32 of the 128 rows of a tile, which are two fragments; the fragments of a tile lie one
// behind the other (WeightLayout.h). Tiles for e4m3 have fragments of 128 columns, a byte each.
//
// fetch: a thread reads the word of its row, in the prepacked tile of its TMEM lanes, from device
// memory.
//
// PTX ISA, "Tensorcore 5th generation: tcgen05.st".
//
//===----------------------------------------------------------------------===//

#include "Common/PrepackedTiles.h"
#include "Common/TileLines.h"
#include "Tcgen05/Lanes.h"

#include "HalfOperands.h"
#include "InlinePtx.h"
#include "PackedBytes.h"
#include "SmallBuilders.h"

#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/PipeMma.h"
#include "fp4/ISA/FragmentLayout.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

namespace {

/// Words of a load, and elements of a store.
constexpr int64_t kWords = 4, kElements = 32;
/// The address of a column in the TMEM lanes of this warp.
Value placeInLanes(ImplicitLocOpBuilder &b, const KernelState &state, Value tile, Int32 column) {
  Int32 lanes = lanesOfWarp(b, state);
  return tmemPointer(b, b.getLoc(), Int32(b, tile) + lanes + column);
}

void storeWords(ImplicitLocOpBuilder &b, NVVM::Tcgen05LdStShape shape, ArrayRef<Value> words,
                Value place) {
  auto type = VectorType::get(int64_t(words.size()), b.getI32Type());
  Value all = vector::FromElementsOp::create(b, type, words);
  NVVM::Tcgen05StOp::create(b, /*unpack=*/false, shape, place, all, /*offset=*/Value());
}

struct LowerDequantizeTmem : PipePattern<pipe::DequantizeTileOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::DequantizeTileOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.fillsTmem() || op.isPrepacked())
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    pipe::SharedType source = op.getSource().getType();
    HalfOperands halves(b, *state.target, op.getScalesType().getElementType(),
                        cast<pipe::TmemType>(op.getFilledType()).getElementType(),
                        source.getElementType());
    // Words of eight elements: one, or two of 6 bits.
    int64_t ofEight = isByteElementType(source.getElementType()) ? 2 : 1;
    int64_t groups = state.roles.at(op).getStageThreads() / int64_t(pipe::kMmaM);
    int64_t elements = source.getColumns() / groups;
    Int32 lane(b, accumulatorLane(b, b.getLoc(), state)), group = groupOfThread(b, op, state);
    SmallVector<Value> factors = factorsOf(b, op, adaptor, halves, {lane, group, elements});
    TileLine line(adaptor.getSource(), source.getLayout(), lane);
    SmallVector<Value> words; // all on their way before the first is converted
    int64_t bytes = elements / 2 * ofEight;
    for (int64_t first = 0; first < bytes; first += 4 * kWords)
      llvm::append_range(words,
                         loadSharedWords(b, line.at(group * bytes ^ Int32(b, first)), kWords));
    for (int64_t first = 0; first < elements; first += kElements) {
      SmallVector<Value> pairs;
      for (int64_t i = first; i < first + kElements; i += hw::codesPerWord) {
        Value factor = factors[i / halves.blockSize()];
        auto eight = ArrayRef(words).slice(size_t(i / hw::codesPerWord * ofEight), size_t(ofEight));
        llvm::append_range(pairs, halves.convertInOrder(eight, factor, factor));
      }
      store(b, pairs,
            placeInLanes(b, state, adaptor.getDest(), group * (elements / 2) + first / 2));
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// The part that a thread converts: a row, and the elements of that row which its warpgroup
  /// takes.
  struct Part {
    Int32 row, group;
    int64_t elements;
  };

  /// The factors of the scale blocks of a part. Warpgroups that share a word of scales have a part
  /// of it each.
  static SmallVector<Value> factorsOf(ImplicitLocOpBuilder &b, pipe::DequantizeTileOp op,
                                      OpAdaptor adaptor, HalfOperands &halves, const Part &part) {
    constexpr int64_t ofWord = pipe::kScaleBlockColumns;
    int64_t blocks = part.elements / halves.blockSize();
    SmallVector<Value> factors;
    for (int64_t first = 0; first < blocks; first += ofWord) {
      Int32 place = part.group * blocks + first;
      Int32 column = existingBlock(adaptor.getExisting(), place / ofWord);
      Value word = loadScaleWord(b, adaptor.getScales(), op.getScalesType(), part.row, column);
      if (blocks < ofWord)
        word = arith::ShRUIOp::create(b, word, place % ofWord * 8);
      llvm::append_range(factors, halves.factors(word, std::min(blocks, ofWord)));
    }
    return factors;
  }

  static void store(ImplicitLocOpBuilder &b, ArrayRef<Value> pairs, Value place) {
    SmallVector<Value> words;
    for (Value pair : pairs)
      words.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), pair));
    storeWords(b, NVVM::Tcgen05LdStShape::SHAPE_32X32B, words, place);
  }
};

/// TMEM lanes of a fragment of wgmma, and columns of tensor memory that one has of a tile.
constexpr int64_t kFragmentLanes = 16, kFragmentColumns = hw::weightTileColumns / 2;

struct LowerUnpackTmem : PipePattern<pipe::DequantizeTileOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::DequantizeTileOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.fillsTmem() || !op.isPrepacked())
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    pipe::SharedType source = op.getSource().getType();
    bool isForBytes = source.getInnerBytes() == hw::byteTileBytes;
    Int32 thread = Int32(b, accumulatorLane(b, b.getLoc(), state));
    // Threads of wgmma that have the fragments of this warp.
    Int32 first = thread / kWarp * (kFragments * kWarp) + thread % kWarp;
    SmallVector<PrepackedWords> words;
    for (int64_t i = 0; i < source.getRows() * kFragments; ++i) {
      Value tile = tileOrFirst(b, op, adaptor, i / kFragments);
      Int32 ofFragment = first + i % kFragments * kWarp;
      words.push_back(isForBytes ? loadByteTile(b, tile, ofFragment, /*number=*/0)
                                 : loadPrepackedTile(b, tile, source, ofFragment, /*number=*/0));
    }
    Type element = cast<pipe::TmemType>(op.getFilledType()).getElementType();
    auto convert = [&](const PrepackedWords &tile) {
      return isForBytes ? PackedBytes(b).convertTile(tile.codes, tile.scales)
                        : halvesOf(b, source, element, state).convertTile(tile.codes, tile.scales);
    };
    for (auto [i, ofFragment] : llvm::enumerate(words)) {
      Int32 column(b, int64_t(i) / kFragments * kFragmentColumns);
      Int32 lanes(b, int64_t(i) % kFragments * kFragmentLanes << kLaneShift);
      storeWords(b, NVVM::Tcgen05LdStShape::SHAPE_16X128B, convert(ofFragment),
                 placeInLanes(b, state, adaptor.getDest(), column + lanes));
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Threads of a warp, and fragments in the TMEM lanes that it reaches.
  static constexpr int64_t kWarp = 32, kFragments = kWarp / kFragmentLanes;

  /// Tile `number`, or the first one if that tile does not exist: its columns then have no meaning,
  /// and a branch around them would cost registers.
  static Value tileOrFirst(ImplicitLocOpBuilder &b, pipe::DequantizeTileOp op, OpAdaptor adaptor,
                           int64_t number) {
    Value first = adaptor.getSource(), tiles = adaptor.getExisting();
    Value tile =
        offsetPointer(b, b.getLoc(), first, number * op.getSource().getType().getInnerBytes());
    if (!tiles || number == 0)
      return tile;
    Value exists = Int32(b, number) < Int32(b, tiles);
    return arith::SelectOp::create(b, exists, tile, first);
  }
};

struct LowerLanePowers : PipePattern<pipe::FetchOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::FetchOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto distribution = pipe::distributionOf(op.getResult().getType());
    if (op.getColumn() || op.getFirst() || distribution.getKind() != pipe::FragmentKind::Lanes)
      return rewriter.notifyMatchFailure(op, "loads the factors of elements, or of fragments");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Int32 row(b, accumulatorLane(b, b.getLoc(), state));
    Value tile =
        stridedPointer(b, b.getLoc(), adaptor.getGlobal(), adaptor.getRow(), hw::byteTileBytes);
    Value place = stridedPointer(b, b.getLoc(), tile, hw::byteRowWord(row), /*stride=*/1);
    Value word = load(b, b.getI32Type(), place, 4);
    rewriter.replaceOpWithNewOp<vector::BroadcastOp>(
        op, pipe::vectorOfThread(op.getResult().getType()), PackedBytes(b).powerOf(word));
    return success();
  }
};

} // namespace

void fp4::populateWeightLanePatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                     const KernelState &state) {
  patterns.add<LowerDequantizeTmem, LowerUnpackTmem, LowerLanePowers>(converter,
                                                                      patterns.getContext(), state);
}
