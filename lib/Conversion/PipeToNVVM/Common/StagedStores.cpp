//===- StagedStores.cpp - Results through shared memory to TMA stores -----===//
//
// Threads write rows of a swizzled tile, 16 bytes at a time, or matrices of a fragment, and hand
// the tile over in a channel. One thread copies the tile with a tensor map, which clips elements
// outside of the matrix. PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy":
// the copies of a thread form bulk groups, and cp.async.bulk.wait_group.read returns when those of
// all but the latest groups have read their source.
//
//===----------------------------------------------------------------------===//
#include "Common/TileLines.h"

#include "InlinePtx.h"
#include "SmallBuilders.h"

#include "fp4/ISA/FragmentLayout.h"
#include "fp4/ISA/ScaleLayout.h"
#include "fp4/ISA/StagedSums.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace {

/// Bytes of one access to shared memory.
constexpr int64_t kAccessBytes = 16;

struct LowerStage : fp4::PipePattern<fp4::pipe::StageOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::StageOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getDest() || op.isOfFragment() || op.getDest().getType().isScales())
      return rewriter.notifyMatchFailure(op, "expects a destination of rows of threads");
    Location loc = op.getLoc();
    fp4::pipe::SharedType tile = op.getDest().getType();
    auto type = cast<VectorType>(adaptor.getValue().getType());
    int64_t units = kAccessBytes * 8 / type.getElementTypeBitWidth();
    ImplicitLocOpBuilder b(loc, rewriter);
    bool isOfOne = tile.getRows() == fp4::pipe::kMmaM;
    fp4::Int32 row = isOfOne ? fp4::Int32(b, fp4::accumulatorLane(rewriter, loc, state))
                             : fp4::threadOfRole(b, op, state);
    fp4::hw::SwizzleMode mode = fp4::pipe::swizzleMode(tile.getLayout());
    for (int64_t byte = 0; byte < tile.getInnerBytes(); byte += kAccessBytes) {
      fp4::Int32 place = fp4::hw::swizzle(mode, row * tile.getInnerBytes() + byte);
      fp4::storePiece(rewriter, loc, adaptor.getValue(), byte / kAccessBytes * units, units,
                      fp4::stridedPointer(rewriter, loc, adaptor.getDest(), place, 1));
    }
    rewriter.eraseOp(op);
    return success();
  }
};

/// Stages scales of the rows of lanes, as tcgen05.cp takes them: four of a row are a word of each
/// scale tile.
struct LowerStageScales : fp4::PipePattern<fp4::pipe::StageOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::StageOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getDest() || !op.getDest().getType().isScales())
      return rewriter.notifyMatchFailure(op, "expects a destination of scales");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    int64_t words = op.getDest().getType().getColumns() / fp4::pipe::kScaleBlockColumns;
    Value scales =
        LLVM::BitcastOp::create(b, VectorType::get(words, b.getI32Type()), adaptor.getValue());
    fp4::Int32 row(b, fp4::accumulatorLane(rewriter, op.getLoc(), state));
    fp4::Int32 first = fp4::hw::scaleWordInBlock(row);
    for (int64_t word = 0; word < words; ++word)
      fp4::storePiece(rewriter, op.getLoc(), scales, word, 1,
                      fp4::stridedPointer(rewriter, op.getLoc(), adaptor.getDest(),
                                          first + word * fp4::pipe::kScaleBlockBytes, 1));
    rewriter.eraseOp(op);
    return success();
  }
};

/// Stages a fragment. A warp has 16 rows, and four matrices of two neighbouring parts of 16 bytes:
/// lane l names row l % 16 of part l / 16. Rounded to 8 bits, words are those of operand A.
struct LowerStageFragment : fp4::PipePattern<fp4::pipe::StageOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::StageOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getDest() || !op.isOfFragment() || op.isOfSums())
      return rewriter.notifyMatchFailure(op, "expects a destination of a fragment");
    constexpr int64_t warpRows = 16, warpThreads = 32, wordsOfStore = 4;
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto given = cast<VectorType>(adaptor.getValue().getType());
    int64_t count = given.getNumElements() * given.getElementTypeBitWidth() / 32;
    Value words = adaptor.getValue();
    if (!given.getElementType().isInteger(32))
      words = LLVM::BitcastOp::create(b, VectorType::get(count, b.getI32Type()), words);
    fp4::Int32 thread = fp4::threadOfRole(b, op, state);
    if (state.facts
            .hasSizes) // LLVM would keep the place of each store while the tile is multiplied
      thread = fp4::Int32(b, fp4::computeHere(b, op.getLoc(), Value(thread)).front());
    fp4::Int32 lane = thread % warpThreads;
    fp4::Int32 row = thread / warpThreads * warpRows + lane % warpRows;
    fp4::TileLine line(adaptor.getDest(), op.getDest().getType().getLayout(), row);
    auto shape = NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
    for (int64_t first = 0; first < count; first += wordsOfStore) {
      SmallVector<Value> sources;
      for (int64_t i = first; i < first + wordsOfStore; ++i)
        sources.push_back(vector::ExtractOp::create(b, words, i));
      fp4::Int32 byte = lane / warpRows * kAccessBytes ^ fp4::Int32(b, first / 2 * kAccessBytes);
      NVVM::StMatrixOp::create(b, line.at(byte), sources, NVVM::MMALayout::row, shape,
                               NVVM::LdStMatrixEltType::B16);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

/// Stages the sums of a thread, four side by side, for the thread of the same place in another
/// role.
struct LowerStageSums : fp4::PipePattern<fp4::pipe::StageOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::StageOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getDest() || !op.isOfSums())
      return rewriter.notifyMatchFailure(op, "expects a destination of sums");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    fp4::pipe::SharedType tile = op.getDest().getType();
    Value own = fp4::placeOfSums(b, op, state, adaptor.getDest());
    for (int64_t row = 0; row < tile.getRows(); ++row)
      fp4::storePiece(rewriter, op.getLoc(), adaptor.getValue(), row * fp4::hw::sumsOfAccess,
                      fp4::hw::sumsOfAccess,
                      fp4::offsetPointer(b, op.getLoc(), own, row * tile.getInnerBytes()));
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerStoreTile : fp4::PipePattern<fp4::pipe::StoreOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::StoreOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getTileType())
      return rewriter.notifyMatchFailure(op, "stores elements of threads");
    storeBox(rewriter, op, adaptor, adaptor.getValue(), adaptor.getColumn());
    if (std::optional<int64_t> halves = op.getHalves()) {
      Location loc = op.getLoc();
      Value second =
          fp4::offsetPointer(rewriter, loc, adaptor.getValue(), op.getTileType().getBytes() / 2);
      storeBox(rewriter, op, adaptor, second,
               arith::AddIOp::create(rewriter, loc, adaptor.getColumn(),
                                     fp4::constantI32(rewriter, loc, *halves)));
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void storeBox(OpBuilder &b, fp4::pipe::StoreOp op, OpAdaptor adaptor, Value source,
                       Value column) {
    Location loc = op.getLoc();
    if (op.getTileType().getElementType().getIntOrFloatBitWidth() == 4) // the map counts bytes
      column = arith::ShRUIOp::create(b, loc, column, fp4::constantI32(b, loc, 1));
    NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(
        b, loc, adaptor.getDest(), source, ValueRange{column, adaptor.getRow()},
        /*l2CacheHint=*/Value(), NVVM::TMAStoreMode::TILE, /*predicate=*/Value());
  }
};

} // namespace

void fp4::releaseStored(OpBuilder &b, Location loc, const KernelState &state,
                        pipe::ChannelOp channel, Value barriers, Value iteration) {
  int64_t delay = channel.getReleaseDelay();
  NVVM::CpAsyncBulkWaitGroupOp::create(b, loc, static_cast<uint32_t>(delay), b.getUnitAttr());
  auto arrive = [&](Value released) {
    Value empty = channelStage(b, loc, state, channel, barriers, released).empty;
    NVVM::MBarrierArriveOp::create(b, loc, b.getI64Type(), empty, /*count=*/Value());
  };
  if (delay == 0)
    return arrive(iteration);
  Value before = constantI32(b, loc, delay);
  Value any = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, iteration, before);
  auto guard = scf::IfOp::create(b, loc, any, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard restore(b);
  b.setInsertionPointToStart(guard.thenBlock());
  arrive(arith::SubIOp::create(b, loc, iteration, before));
}

void fp4::populateStagedStorePatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                      const KernelState &state) {
  patterns.add<LowerStage, LowerStageScales, LowerStageFragment, LowerStageSums, LowerStoreTile>(
      converter, patterns.getContext(), state);
}
