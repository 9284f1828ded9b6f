//===- Promotion.cpp - MMAs whose sums are promoted to fp32 ---------------===//
//
// A thread has elements of two rows of a fragment and so two scales of A. The thread has one scale
// of B for each scale block of 128 columns that its tile reaches into. Tiles whose columns are no
// divisor or multiple of 128 begin anywhere in a scale block, so threads select one of two for each
// step of columns that lies in either.
//
//===----------------------------------------------------------------------===//
#include "Common/BufferLines.h"
#include "Common/MmaPattern.h"
#include "Wgmma/Wgmma.h"

#include "InlinePtx.h"
#include "SmallBuilders.h"

#include "fp4/Dialect/Pipe/IR/PromotedColumns.h"
#include "fp4/ISA/FragmentLayout.h"
#include "fp4/ISA/SmemDescriptor.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

#include <numeric>

using namespace mlir;
using namespace fp4;

namespace {

/// Bytes of K of one instruction, and of a row of a tile.
constexpr int64_t kInstructionBytes = 32, kRowBytes = 128;
/// Units of addresses in descriptors.
constexpr int64_t kDescriptorUnit = 16;
/// Rows from one row of a thread to the other.
constexpr int64_t kRowsApart = 8;

struct LowerWgmmaShared : MmaPattern<hw::MmaForm::WgmmaShared> {
  using MmaPattern::MmaPattern;

  LogicalResult lower(pipe::MmaOp op, OpAdaptor adaptor,
                      ConversionPatternRewriter &rewriter) const override {
    if (!route::hasCore(*state.target, route::Core::Wgmma) || isOfFloats(op))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    int64_t count = op.getAccumulatorAs<pipe::FragmentType>().getElementsPerThread();
    if (op.getChain() == pipe::MmaChain::Follows) {
      if (op.getFencing())
        emitProxyFence(b, op.getLoc());
      SmallVector<Value> sums = loadElements(b, adaptor.getAccumulator(), 0, count);
      storeElements(b, adaptor.getAccumulator(), awaitSums(b, sums));
    } else if (op.getChain() == pipe::MmaChain::Leads) {
      multiplyWithNext(b, op, adaptor, mmaLedBy(op), rewriter);
    } else {
      SharedMma product = mmaOf(b, op, adaptor.getA(), adaptor.getB());
      if (op.getChain() == pipe::MmaChain::Replaces)
        product.before = loadElements(b, adaptor.getAccumulator(), 0, count);
      product.fencesReads = op.getFencing();
      storeElements(b, adaptor.getAccumulator(), multiplyShared(b, product));
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  SharedMma mmaOf(ImplicitLocOpBuilder &b, pipe::MmaOp op, Value a, Value tileB) const {
    Value first = offsetPointer(b, b.getLoc(), a, int64_t(op.getARow()) * kRowBytes);
    SharedMma product;
    product.columns = op.getAccumulatorAs<pipe::FragmentType>().getShape()[1];
    product.a = wgmmaDescriptor(b, stridedPointer(b, b.getLoc(), first, groupOfThread(b, op, state),
                                                  kGroupRows * kRowBytes));
    product.b = wgmmaDescriptor(b, tileB);
    for (int64_t byte = 0; byte < kRowBytes; byte += kInstructionBytes)
      product.offsets.push_back(byte / kDescriptorUnit);
    return product;
  }

  void multiplyWithNext(ImplicitLocOpBuilder &b, pipe::MmaOp op, OpAdaptor adaptor,
                        pipe::MmaOp next, ConversionPatternRewriter &rewriter) const {
    SharedMma first = mmaOf(b, op, adaptor.getA(), adaptor.getB());
    SharedMma second = mmaOf(b, next, rewriter.getRemappedValue(next.getA()),
                             rewriter.getRemappedValue(next.getB()));
    auto [sums, running] = multiplyTwo(b, first, second);
    storeElements(b, adaptor.getAccumulator(), sums);
    storeElements(b, rewriter.getRemappedValue(next.getAccumulator()), running);
  }
};

/// Scale blocks whose scales are loaded together: as many as threads have the same rows.
constexpr int64_t kAhead = 4;
/// Scales that a thread has of a scale block.
constexpr int64_t kHeld = KernelState::kHeldScales;
/// Registers of a thread for fragments and scales that leave room for everything else.
constexpr int64_t kMostResidentRegisters = 200;

/// Loads scales. Four threads have the same rows, so each loads the scales of one of four scale
/// blocks in a row, and they exchange them; of B, eight fours load those of as many scale blocks of
/// columns. In a loop over the scale blocks, the scales of four are loaded four scale blocks before
/// their use. If no registers are left for these beside the scales in use, they are loaded when the
/// last of those has been exchanged.
struct LowerBlockScales : PipePattern<pipe::ScalesOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::ScalesOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.isOfFragment() || op.isOfTiles())
      return rewriter.notifyMatchFailure(op, "scales sums of TMEM lanes, or from tiles");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Int32 block(b, adaptor.getBlock());
    Int32 loopBlock = isOfLoop(op) ? Int32(b, loopOf(op).getInductionVar()) : block;
    bool hasRoom = state.registers.fragments + state.registers.scales <= kMostResidentRegisters;
    Value array; // whose elements the next ones replace
    SmallVector<Value> held;
    if (!isOfLoop(op))
      held = loadBlocks(b, op, adaptor, block / kAhead);
    else if (hasRoom)
      held = loadAhead(b, op, adaptor, loopBlock);
    else
      held = loadElements(b, array = loadFirst(b, op, adaptor), 0, kHeld);
    SmallVector<Value> scales;
    Int32 place = block % kAhead;
    for (int64_t half : {0, 1})
      scales.push_back(exchange(b, held[size_t(half)], place));
    for (int64_t i = 0; i < pipe::promotedBlocks(int64_t(*op.getColumns())); ++i)
      scales.push_back(valueOfLane(b, held[2], place + i * kAhead));
    if (array)
      storeElements(b, array, loadNext(b, op, adaptor, loopBlock, held));
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(
        op, cast<VectorType>(op.getResult().getType()), scales);
    return success();
  }

private:
  static scf::ForOp loopOf(pipe::ScalesOp op) { return cast<scf::ForOp>(op->getParentOp()); }

  /// Scale blocks of an iteration of `loop`, one or two; 0 of other loops.
  static int64_t blocksOfIteration(scf::ForOp loop) {
    APInt step;
    if (!matchPattern(loop.getStep(), m_ConstantInt(&step)) || (step != 1 && step != 2))
      return 0;
    return step.getSExtValue();
  }

  /// Returns true when the scale block is that of the iteration of `loop`, or the second one of
  /// two.
  static bool isBlockOf(Value block, scf::ForOp loop) {
    if (auto next = block.getDefiningOp<arith::AddIOp>())
      return blocksOfIteration(loop) == 2 && next.getLhs() == loop.getInductionVar() &&
             matchPattern(next.getRhs(), m_One());
    return block == loop.getInductionVar();
  }

  /// Returns true when the scale blocks are those of the loop around the op, for whose tile it
  /// gives the scales. Two scale blocks of an iteration belong to the same four.
  static bool isOfLoop(pipe::ScalesOp op) {
    auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
    auto isOutside =
        [&](Value value) { // arguments of the kernel are already those of another basic block
          if (!value || isa<BlockArgument>(value))
            return !value || cast<BlockArgument>(value).getOwner() != loop.getBody();
          return !loop->isAncestor(value.getDefiningOp());
        };
    return loop && blocksOfIteration(loop) && isBlockOf(op.getBlock(), loop) &&
           isOutside(op.getRow()) && isOutside(op.getColumn()) && isOutside(op.getRows());
  }

  /// Returns the scales of `block` out of four scale blocks that were loaded early, and replaces
  /// them every four scale blocks by those that were loaded meanwhile.
  SmallVector<Value> loadAhead(ImplicitLocOpBuilder &b, pipe::ScalesOp op, OpAdaptor adaptor,
                               Int32 block) const {
    Value array = frameArray(b, state, kHeld), ahead = frameArray(b, state, kHeld);
    auto loop = cast<scf::ForOp>(op->getParentOp());
    Value first = loop.getLowerBound();
    {
      OpBuilder::InsertionGuard restore(b);
      b.setInsertionPoint(loop);
      storeElements(b, ahead, loadBlocks(b, op, adaptor, Int32(b, first) / kAhead));
      if (hasSmallM(op))
        prefetchBlocks(b, op, adaptor, Int32(b, first));
    }
    Value isNext = equals(b, block % kAhead, constI32(b, 0));
    if (!matchPattern(first, m_Zero()))
      isNext = arith::OrIOp::create(b, isNext, equals(b, block, first));
    SmallVector<Value> held = loadElements(b, array, 0, kHeld),
                       next = loadElements(b, ahead, 0, kHeld);
    SmallVector<Value> pointers = pointersOf(b, op, adaptor, block / kAhead + 1), loads;
    for (int64_t i = 0; i < kHeld; ++i) {
      held[i] = arith::SelectOp::create(b, isNext, next[i], held[i]);
      loads.push_back(loadWhen(b, isNext, pointers[i], next[i]));
    }
    storeElements(b, array, held);
    storeElements(b, ahead, loads);
    return held;
  }

  /// An array with the scales of the first scale block of the loop.
  Value loadFirst(ImplicitLocOpBuilder &b, pipe::ScalesOp op, OpAdaptor adaptor) const {
    Value array = frameArray(b, state, kHeld);
    auto loop = cast<scf::ForOp>(op->getParentOp());
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPoint(loop);
    storeElements(b, array, loadBlocks(b, op, adaptor, Int32(b, loop.getLowerBound()) / kAhead));
    return array;
  }

  /// Returns the scales of the next four scale blocks behind the last one of four, and otherwise
  /// `held`.
  SmallVector<Value> loadNext(ImplicitLocOpBuilder &b, pipe::ScalesOp op, OpAdaptor adaptor,
                              Int32 block, ArrayRef<Value> held) const {
    int64_t last = kAhead - blocksOfIteration(loopOf(op));
    Value isLast = equals(b, block % kAhead, constI32(b, last));
    SmallVector<Value> next;
    for (auto [element, pointer] : llvm::zip(held, pointersOf(b, op, adaptor, block / kAhead + 1)))
      next.push_back(loadWhen(b, isLast, pointer, element));
    return next;
  }

  static Value equals(ImplicitLocOpBuilder &b, Value x, Value y) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, y);
  }

  /// Returns true when CTAs work on one tile or two, so that memory has not loaded the scales for
  /// other CTAs before.
  static bool hasSmallM(pipe::ScalesOp op) {
    constexpr int64_t most = 128;
    int64_t rows = op.getBufferA().getShape()[0];
    return !ShapedType::isDynamic(rows) && rows <= most;
  }

  /// Prefetches all lines of scales of this tile from scale block `first` on, so that no later load
  /// waits for memory.
  void prefetchBlocks(ImplicitLocOpBuilder &b, pipe::ScalesOp op, OpAdaptor adaptor,
                      Int32 first) const {
    constexpr int64_t perLine = 32; // scales of 128 bytes
    int64_t count = op.getBufferA().getShape()[1];
    Int32 thread = threadOfRole(b, op, state);
    for (int64_t line = 1; line * perLine < count; line += kAhead) {
      Int32 block = minimum(first + (thread % kAhead + line) * perLine, Int32(b, count - 1));
      for (Value pointer : pointersAt(b, op, adaptor, block))
        NVVM::PrefetchOp::create(
            b, NVVM::PrefetchCacheLevelAttr::get(b.getContext(), NVVM::PrefetchCacheLevel::L2),
            NVVM::CacheEvictionPriorityAttr(), pointer, /*predicate=*/Value());
    }
  }

  SmallVector<Value> loadBlocks(ImplicitLocOpBuilder &b, pipe::ScalesOp op, OpAdaptor adaptor,
                                Int32 four) const {
    SmallVector<Value> scales;
    for (Value pointer : pointersOf(b, op, adaptor, four))
      scales.push_back(load(b, b.getF32Type(), pointer, 4));
    return scales;
  }

  /// Addresses of the scales that this thread loads for the four scale blocks from 4 * `four` on;
  /// the last scale block stands in for those behind it.
  SmallVector<Value> pointersOf(ImplicitLocOpBuilder &b, pipe::ScalesOp op, OpAdaptor adaptor,
                                Int32 four) const {
    Int32 block = four * kAhead + threadOfRole(b, op, state) % kAhead;
    return pointersAt(b, op, adaptor,
                      minimum(block, Int32(b, columnsOfBuffer(b, op.getLoc(), op.getA())) - 1));
  }

  /// Addresses of the scales of this thread's two rows, and of its scale block of columns, for
  /// `block`.
  SmallVector<Value> pointersAt(ImplicitLocOpBuilder &b, pipe::ScalesOp op, OpAdaptor adaptor,
                                Int32 block) const {
    pipe::GlobalType typeA = op.getBufferA();
    Int32 thread = threadOfRole(b, op, state);
    Int32 row = Int32(b, adaptor.getRow()) + rowOfThread(thread);
    Int32 rows = adaptor.getRows() ? Int32(b, adaptor.getRows()) : Int32(b, typeA.getShape()[0]);
    SmallVector<Value> pointers;
    for (int64_t half : {0, 8})
      pointers.push_back(
          pointerTo(b, op.getA(), adaptor.getA(),
                    hasWholeTiles(op) ? row + half : minimum(row + half, rows - 1), block));
    Int32 rowB = Int32(b, adaptor.getColumn()) / pipe::kPromotedBlock + thread % 32 / kAhead;
    Int32 last = Int32(b, rowsOfBuffer(b, op.getLoc(), op.getB())) - 1;
    pointers.push_back(pointerTo(b, op.getB(), adaptor.getB(), minimum(rowB, last), block));
    return pointers;
  }

  /// The element of thread `place` of this thread's four.
  static Value exchange(ImplicitLocOpBuilder &b, Value element, Value place) {
    constexpr int64_t fours = (32 - kAhead) << 8 | 31; // PTX ISA, shfl.sync: segment mask and clamp
    return NVVM::ShflOp::create(b, b.getF32Type(), constI32(b, -1), element, place,
                                constI32(b, fours), NVVM::ShflKind::idx, UnitAttr());
  }

  /// Returns true when every tile has all of its rows, so that the rows of a thread are at constant
  /// distances. Tiles of groups begin at any row.
  static bool hasWholeTiles(pipe::ScalesOp op) {
    constexpr int64_t mostRows = 256;
    int64_t rows = op.getBufferA().getShape()[0];
    return !ShapedType::isDynamic(rows) && rows % mostRows == 0 &&
           isMultiple(op.getRow(), kGroupRows);
  }

  static Value pointerTo(ImplicitLocOpBuilder &b, Value global, Value base, Int32 row,
                         Value block) {
    Value line = lineOfBuffer(b, b.getLoc(), global, base, row);
    return stridedPointer(b, b.getLoc(), line, block, 4);
  }
};

/// Loads scales when they are needed: four threads have the same rows, and the rows of a warp are
/// in banks of their own.
struct LowerTileScales : PipePattern<pipe::ScalesOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::ScalesOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.isOfFragment() || !op.isOfTiles() || !op.getB())
      return rewriter.notifyMatchFailure(op, "scales sums of TMEM lanes, or from other memory");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    pipe::SharedType tileA = op.getTileA(), tileB = op.getTileB();
    hw::RowSets ofA = pipe::rowSets(tileA.getLayout()), ofB = pipe::rowSets(tileB.getLayout());
    int64_t pitch = tileA.getInnerBytes();
    Int32 row = rowOfThread(threadOfRole(b, op, state)) + int64_t(*op.getFirst());
    Value ofRow =
        stridedPointer(b, b.getLoc(), adaptor.getA(), ofA.place(row, tileA.getRows()), pitch);
    SmallVector<Value> scales;
    auto add = [&](Value line, int64_t index, Int32 word) {
      Value first = offsetPointer(b, b.getLoc(), line, index * pitch);
      Value pointer = stridedPointer(b, b.getLoc(), first, word, 4);
      scales.push_back(LLVM::LoadOp::create(b, b.getF32Type(), pointer, 4));
    };
    Int32 block(b, adaptor.getBlock());
    auto wordOf = [&](hw::RowSets sets, Value first, Int32 row) {
      if (sets.count() == 1)
        return block;
      Int32 shift = sets.shift(Int32(b, first) + row);
      return block + (Int32(b, adaptor.getFromBlock()) + shift) % hw::RowSets::unit;
    };
    Int32 wordOfRow = wordOf(ofA, adaptor.getFromA(), row);
    add(ofRow, 0, wordOfRow);
    add(ofRow, kRowsApart / ofA.count(), wordOfRow); // both rows of a thread belong to one set
    int64_t bands = cast<VectorType>(op.getResult().getType()).getNumElements() - 2;
    for (int64_t i = 0; i < bands; ++i)
      add(adaptor.getB(), ofB.place(i, tileB.getRows()),
          wordOf(ofB, adaptor.getFromB(), Int32(b, i)));
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(
        op, cast<VectorType>(op.getResult().getType()), scales);
    return success();
  }
};

/// Gives the power of a row as its scale. The scale of columns is 1, which costs no multiplication.
struct LowerTilePowers : PipePattern<pipe::ScalesOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::ScalesOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (op.getB())
      return rewriter.notifyMatchFailure(op, "has scales of columns");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Int32 row = rowOfThread(threadOfRole(b, op, state)) + int64_t(*op.getFirst());
    Value first = stridedPointer(b, b.getLoc(), adaptor.getA(), row, 4);
    first = stridedPointer(b, b.getLoc(), first, adaptor.getBlock(), op.getTileA().getInnerBytes());
    SmallVector<Value> scales;
    for (int64_t rows : {0, 8})
      scales.push_back(LLVM::LoadOp::create(b, b.getF32Type(),
                                            offsetPointer(b, b.getLoc(), first, 4 * rows), 4));
    scales.push_back(constF32(b, 1));
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(
        op, cast<VectorType>(op.getResult().getType()), scales);
    return success();
  }
};

struct LowerPromote : PipePattern<pipe::PromoteOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::PromoteOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.isOfFragment())
      return rewriter.notifyMatchFailure(op, "adds sums of TMEM lanes");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    pipe::FragmentType type = op.getAccumulator().getType();
    int64_t columns = type.getShape()[1], count = type.getElementsPerThread();
    Scales scales(b, adaptor.getScales(), adaptor.getColumn(), columns);
    SmallVector<Value> sums = loadElements(b, adaptor.getSums(), 0, count);
    SmallVector<Value> acc = loadElements(b, adaptor.getAccumulator(), 0, count);
    constexpr int64_t perPart = 4; // elements of a thread in 8 columns
    for (int64_t first = 0; first < count; first += perPart)
      for (int64_t half : {0, 1}) {
        Value scale = scales.of(first / perPart, half);
        for (int64_t i = first + 2 * half; i < first + 2 * half + 2; ++i)
          acc[i] = LLVM::FMAOp::create(b, sums[i], scale, acc[i]);
      }
    // LLVM would finish the sums where the next ones are promoted, and keep these until then.
    if (op.getComplete())
      acc = finishHere(b, b.getLoc(), acc);
    storeElements(b, adaptor.getAccumulator(), acc);
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Scales of elements: a row's scale times one of columns.
  struct Scales {
    ImplicitLocOpBuilder &b;
    SmallVector<Value> ofRow[2]; ///< scales by scale block of columns
    llvm::SmallDenseMap<int64_t, std::array<Value, 2>> selected; ///< scales of a step, by column
    Int32 start;                 ///< start of the tile in its scale block
    int64_t columns;

    Scales(ImplicitLocOpBuilder &b, Value scales, Value column, int64_t columns)
        : b(b), start(Int32(b, column) % pipe::kPromotedBlock), columns(columns) {
      for (int64_t half : {0, 1})
        for (int64_t i = 0; i < pipe::promotedBlocks(columns); ++i)
          ofRow[half].push_back(LLVM::FMulOp::create(b, vector::ExtractOp::create(b, scales, half),
                                                     vector::ExtractOp::create(b, scales, 2 + i)));
    }

    /// The scale of row `half` and part `part` of 8 columns, one selection for all parts of a step.
    Value of(int64_t part, int64_t half) {
      int64_t step = pipe::promotedStep(columns),
              offset = part * hw::fragmentTileColumns / step * step;
      auto [least, most] = pipe::promotedBlocksAt(columns, offset);
      if (least == most)
        return ofRow[half][least];
      auto [found, isNew] = selected.try_emplace(offset);
      if (isNew) {
        Value isFormer = start < most * pipe::kPromotedBlock - offset;
        for (int64_t row : {0, 1})
          found->second[row] =
              arith::SelectOp::create(b, isFormer, ofRow[row][least], ofRow[row][most]);
      }
      return found->second[half];
    }
  };
};

} // namespace

void fp4::populatePromotionPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                    const KernelState &state) {
  patterns.add<LowerWgmmaShared, LowerBlockScales, LowerTileScales, LowerTilePowers, LowerPromote>(
      converter, patterns.getContext(), state);
}
