//===- WeightLanes.cpp - Weights that become 16-bit floats in tensor memory ===//
//
// convert_lanes: thread r of a warpgroup has lane r of tensor memory, so it converts row r of the
// tile. It loads 16 bytes of codes at a time, 32 elements, which are 16 columns of its lane. In the
// layout of the codes neighbouring rows have neighbouring pieces in other banks, so that eight
// threads load 128 bytes of all banks. Two or four
// warpgroups have a part of the row each.
//
// PTX ISA, "Tensorcore 5th generation: tcgen05.st".
//
//===----------------------------------------------------------------------===//
#include "LanePromotion.h"

#include "Fragments.h"
#include "HalfOperands.h"
#include "SmallBuilders.h"
#include "TileLines.h"

#include "fp4/Dialect/Pipe/IR/PipeLanes.h"
#include "fp4/ISA/FragmentLayout.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

namespace {

/// Words of codes of a load, the elements that they have, and their columns of tensor memory.
constexpr int64_t kWords = 4, kElements = kWords * hw::codesPerWord, kColumns = kElements / 2;

struct LowerConvertLanes : PipePattern<pipe::ConvertLanesOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::ConvertLanesOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    pipe::SharedType source = op.getSource().getType();
    HalfOperands halves(b, *state.target, op.getScales().getType().getElementType(),
                        op.getTileType().getElementType());
    int64_t groups = state.roles.at(op).getNumThreads() / int64_t(pipe::kMmaM);
    int64_t elements = source.getColumns() / groups;
    Int32 lane(b, accumulatorLane(b, b.getLoc(), state)), group = groupOfThread(b, op, state);
    SmallVector<Value> factors = factorsOf(b, op, adaptor, halves, {lane, group, elements});
    TileLine line(adaptor.getSource(), source.getLayout(), lane);
    for (int64_t first = 0; first < elements; first += kElements) {
      Int32 byte = group * (elements / 2) ^ Int32(b, first / 2);
      SmallVector<Value> pairs;
      for (auto [i, word] : llvm::enumerate(loadSharedWords(b, line.at(byte), kWords))) {
        Value factor = factors[(first + int64_t(i) * hw::codesPerWord) / halves.blockSize()];
        llvm::append_range(pairs, halves.convertInOrder(word, factor, factor));
      }
      store(b, pairs, placeOf(b, adaptor.getDest(), group * (elements / 2) + first / 2));
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// What a thread converts: a row, and of it the elements of its warpgroup.
  struct Part {
    Int32 row, group;
    int64_t elements;
  };

  /// The factors of the blocks of a part. Where warpgroups share a word of scales, each has
  /// a part of it.
  static SmallVector<Value> factorsOf(ImplicitLocOpBuilder &b, pipe::ConvertLanesOp op,
                                      OpAdaptor adaptor, HalfOperands &halves, const Part &part) {
    constexpr int64_t ofWord = pipe::kScaleBlockColumns;
    int64_t blocks = part.elements / halves.blockSize();
    SmallVector<Value> factors;
    for (int64_t first = 0; first < blocks; first += ofWord) {
      Int32 place = part.group * blocks + first;
      Int32 column = existingBlock(adaptor.getBlocks(), place / ofWord);
      Value word =
          loadScaleWord(b, adaptor.getScales(), op.getScales().getType(), part.row, column);
      if (blocks < ofWord)
        word = arith::ShRUIOp::create(b, word, place % ofWord * 8);
      llvm::append_range(factors, halves.factors(word, std::min(blocks, ofWord)));
    }
    return factors;
  }

  /// The address of a column in the lanes of this warp.
  Value placeOf(ImplicitLocOpBuilder &b, Value tile, Int32 column) const {
    constexpr int64_t lanesOfWarps = 0x60, laneShift = 16;
    Value quadrant =
        arith::AndIOp::create(b, state.threadIndex, constantI32(b, b.getLoc(), lanesOfWarps));
    Value lane = arith::ShLIOp::create(b, quadrant, constantI32(b, b.getLoc(), laneShift));
    return tmemPointer(b, b.getLoc(), Int32(b, tile) + Int32(b, lane) + column);
  }

  static void store(ImplicitLocOpBuilder &b, ArrayRef<Value> pairs, Value place) {
    SmallVector<Value> words;
    for (Value pair : pairs)
      words.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), pair));
    Value all = vector::FromElementsOp::create(b, VectorType::get(kColumns, b.getI32Type()), words);
    NVVM::Tcgen05StOp::create(b, /*unpack=*/false, NVVM::Tcgen05LdStShape::SHAPE_32X32B, place, all,
                              /*offset=*/Value());
  }
};

} // namespace

void fp4::populateWeightLanePatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                     const KernelState &state) {
  patterns.add<LowerConvertLanes>(converter, patterns.getContext(), state);
}
