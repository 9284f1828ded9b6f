//===- Loads.cpp - TMA loads and bulk copies of scales --------------------===//
//
// Both kinds of copies write shared memory through the async proxy and complete bytes on the full
// barrier of their stage; the loading thread has announced the sum with pipe.expect_tx. A TMA load
// always completes the bytes of its whole box, also where it fills zeros. Through the residue of a
// map (ResiduePatterns.cpp) the box has fewer rows.
//
//===----------------------------------------------------------------------===//
#include "Common/BufferLines.h"
#include "Common/Lowering.h"

#include "Int32.h"

#include "fp4/ISA/ScaleLayout.h"
#include "fp4/ISA/TensorMap.h"

using namespace mlir;
namespace hw = fp4::hw;

namespace {

/// `shared` in shared::cluster, which copies name if other CTAs take part. The window of the
/// cluster contains the CTA's own, so the address is the same. A cast of address spaces goes
/// through generic addresses.
Value inCluster(OpBuilder &b, Location loc, Value shared, const fp4::hw::TargetModel &target) {
  Type cluster = LLVM::LLVMPointerType::get(b.getContext(), fp4::kClusterSpace);
  if (!fp4::pipe::namesTiles(target))
    return LLVM::AddrSpaceCastOp::create(b, loc, cluster, shared);
  Value address = LLVM::PtrToIntOp::create(b, loc, b.getI32Type(), shared);
  return LLVM::IntToPtrOp::create(b, loc, cluster, address);
}

/// The full barrier that `op` signals.
template <typename OpT, typename AdaptorT>
FailureOr<Value> signalledBarrier(OpT op, AdaptorT adaptor, const fp4::KernelState &state,
                                  ConversionPatternRewriter &rewriter) {
  if (!op.getDest() || !op.getIteration())
    return rewriter.notifyMatchFailure(op, "expects the pipelined form: a destination, a channel "
                                           "and an iteration");
  FailureOr<fp4::pipe::ChannelOp> channel = fp4::definingChannel(rewriter, op, op.getChannel());
  if (failed(channel))
    return failure();
  return fp4::channelStage(rewriter, op.getLoc(), state, *channel, adaptor.getChannel(),
                           adaptor.getIteration())
      .full;
}

/// Emits a bulk copy of `bytes` from `source`, which complete on `barrier`.
void emitBulkCopy(OpBuilder &b, Location loc, Value shared, Value source, Value barrier,
                  Value bytes) {
  NVVM::CpAsyncBulkGlobalToSharedClusterOp::create(b, loc, shared, source, barrier, bytes,
                                                   /*multicastMask=*/Value(),
                                                   /*l2CacheHint=*/Value());
}

/// Loads a box of a map.
struct LowerLoadOfBox : fp4::PipePattern<fp4::pipe::LoadOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::LoadOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getMapType())
      return failure();
    FailureOr<Value> barrier = signalledBarrier(op, adaptor, state, rewriter);
    if (failed(barrier))
      return failure();
    Location loc = op.getLoc();
    Box box;
    box.barrier = *barrier;
    auto channel = op.getChannel().getDefiningOp<fp4::pipe::ChannelOp>();
    if (state.sharing.lookup(channel).pairUses) {
      box.barrier = fp4::leaderBarrier(rewriter, loc, state, box.barrier);
      box.group = NVVM::CTAGroupKindAttr::get(getContext(), NVVM::CTAGroupKind::CTA_2);
    }
    box.row = adaptor.getRow();
    box.column = adaptor.getColumn();
    box.plane = adaptor.getPlane();
    if (op.getMulticast())
      loadTogether(rewriter, op, adaptor, box);
    else
      loadBoxes(rewriter, op, adaptor, box);
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// The operands that the boxes of a load share.
  struct Box {
    Value barrier, row, column, plane;
    /// This CTA's part of the tile, and the CTAs that get it; null without multicast.
    Value part, mask;
    int64_t parts = 1;
    NVVM::CTAGroupKindAttr group;
  };

  /// The target and the source of one box: see coordinates.
  struct Copy {
    Value target;
    SmallVector<Value> place;
  };

  /// Loads this CTA's part of a tile, which it sends to all. In the smaller of two cluster sizes a
  /// CTA has several parts.
  void loadTogether(OpBuilder &b, fp4::pipe::LoadOp op, OpAdaptor adaptor, Box box) const {
    Location loc = op.getLoc();
    auto direction = fp4::pipe::toHardware(*op.getMulticast());
    Value place = fp4::placeInCluster(b, loc, state, direction);
    box.mask = fp4::multicastMask(b, loc, state, direction);
    box.parts = state.cluster.shape.along(direction);
    int64_t apart = state.cluster.fallback ? state.cluster.fallback->along(direction) : box.parts;
    for (int64_t part = 0; part < box.parts; part += apart) {
      OpBuilder::InsertionGuard restore(b);
      if (part)
        b.setInsertionPointToStart(
            scf::IfOp::create(b, loc, state.cluster.inFallback, /*withElseRegion=*/false)
                .thenBlock());
      box.part =
          part ? arith::AddIOp::create(b, loc, place, fp4::constantI32(b, loc, part)).getResult()
               : place;
      loadBoxes(b, op, adaptor, boxOfPart(b, op, box));
    }
  }

  /// The place of `box.part` in the tile: parts of one row are side by side.
  static Box boxOfPart(OpBuilder &builder, fp4::pipe::LoadOp op, Box box) {
    ImplicitLocOpBuilder b(op.getLoc(), builder);
    fp4::pipe::SharedType tile = op.getDest().getType();
    uint32_t rowParts = op.getRowParts(box.parts), columnParts = box.parts / rowParts;
    fp4::Int32 part(b, box.part), row(b, box.row), column(b, box.column);
    if (rowParts > 1)
      box.row = row + (columnParts > 1 ? part / columnParts : part) * (tile.getRows() / rowParts);
    if (columnParts > 1)
      box.column =
          column + (rowParts > 1 ? part % columnParts : part) * (tile.getColumns() / columnParts);
    return box;
  }

  void loadBoxes(OpBuilder &b, fp4::pipe::LoadOp op, OpAdaptor adaptor, const Box &box) const {
    if (op.getDest().getType().isHalved())
      return loadHalves(b, op, adaptor, box);
    if (op.getMapType().getMaps() > 1 && !op.getMapType().getResidue())
      return loadSets(b, op, adaptor, box);
    SmallVector<Copy> copies;
    for (int64_t panel = 0, panels = op.getDest().getType().getPanels(); panel < panels; ++panel) {
      copies.push_back(copyOfPanel(b, op, adaptor, box, panel));
      for (Value row : adaptor.getBelow())
        copies.push_back(copyBelow(b, op, copies.back(), row));
    }
    if (box.mask)
      return loadAll(b, op, adaptor, box, copies);
    for (const Copy &copy : copies)
      loadAll(b, op, adaptor, box, copy);
  }

  Copy copyOfPanel(OpBuilder &b, fp4::pipe::LoadOp op, OpAdaptor adaptor, const Box &box,
                   int64_t panel) const {
    Location loc = op.getLoc();
    fp4::pipe::SharedType tile = op.getDest().getType();
    int64_t bytes = tile.getBytes() / tile.getPanels();
    Value target = fp4::offsetPointer(b, loc, adaptor.getDest(), panel * bytes);
    if (box.part)
      target = fp4::stridedPointer(b, loc, target, box.part, bytes / box.parts);
    SmallVector<Value> place = coordinates(b, loc, tile, box.row, box.column, panel);
    if (box.plane)
      place.push_back(box.plane);
    return {target, place};
  }

  /// The copy of the box at `row`, whose rows lie below those of the copy `before`.
  static Copy copyBelow(OpBuilder &b, fp4::pipe::LoadOp op, const Copy &before, Value row) {
    fp4::pipe::SharedType tile = op.getDest().getType();
    int64_t boxes = int64_t(op.getBelow().size()) + 1;
    Copy copy = before;
    copy.target = fp4::offsetPointer(b, op.getLoc(), before.target,
                                     tile.getBytes() / tile.getPanels() / boxes);
    copy.place[1] = row;
    return copy;
  }

  /// Loads both halves of the rows, or this CTA's half, with a box for each scale tile of the
  /// columns.
  void loadHalves(OpBuilder &b, fp4::pipe::LoadOp op, OpAdaptor adaptor, const Box &box) const {
    Location loc = op.getLoc();
    fp4::pipe::SharedType tile = op.getDest().getType();
    int64_t columns = tile.getColumns() / fp4::pipe::kScaleBlockColumns;
    for (int64_t half = 0, halves = box.part ? 1 : 2; half < halves; ++half)
      for (int64_t k = 0; k < columns; ++k) {
        auto shifted = [&](Value value, int64_t by) -> Value {
          return by ? arith::AddIOp::create(b, loc, value, fp4::constantI32(b, loc, by)) : value;
        };
        Box ofHalf = box;
        ofHalf.row = shifted(box.row, half * (tile.getRows() / 2));
        Value column = shifted(box.column, k * fp4::pipe::kScaleBlockColumns);
        Value target = fp4::offsetPointer(
            b, loc, adaptor.getDest(), hw::scaleHalfIndex(half, k) * fp4::pipe::kScaleBlockBytes);
        if (box.part)
          target = fp4::stridedPointer(b, loc, target, box.part, fp4::pipe::kScaleBlockBytes);
        loadAll(b, op, adaptor, ofHalf,
                Copy{target, coordinates(b, loc, tile, ofHalf.row, column, /*panel=*/0)});
      }
  }

  /// Loads the sets of rows of a tile, whose first row may belong to any set: of each row the unit
  /// that contains the word of the column.
  void loadSets(OpBuilder &builder, fp4::pipe::LoadOp op, OpAdaptor adaptor, const Box &box) const {
    Location loc = op.getLoc();
    ImplicitLocOpBuilder b(loc, builder);
    fp4::pipe::SharedType tile = op.getDest().getType();
    hw::RowSets sets = fp4::pipe::rowSets(tile.getLayout());
    int64_t count = sets.count(), bytes = tile.getBytes() / count;
    bool beginsWithFirst = fp4::isMultiple(op.getRow(), count);
    for (int64_t i = 0; i < count; ++i) {
      fp4::Int32 row = fp4::Int32(b, box.row) + i;
      fp4::Int32 set = beginsWithFirst ? fp4::Int32(b, i) : row % count;
      Value map = fp4::stridedPointer(b, loc, adaptor.getSource(), set,
                                      int64_t(hw::TensorMap::encodedBytes));
      Value target = fp4::offsetPointer(b, loc, adaptor.getDest(), i * bytes);
      fp4::Int32 word = fp4::Int32(b, box.column) + sets.shift(set);
      loadFrom(b, op, map, box, Copy{target, {word & -hw::RowSets::unit, row / count}});
    }
  }

  /// Issues all copies from one thread. Copies with a mask come together, because ptxas moves the
  /// mask from a register of a thread for every election.
  void loadAll(OpBuilder &b, fp4::pipe::LoadOp op, OpAdaptor adaptor, const Box &box,
               ArrayRef<Copy> copies) const {
    loadFrom(b, op, fp4::mapOfLoad(b, op, adaptor.getSource(), adaptor.getExisting()), box, copies);
  }

  void loadFrom(OpBuilder &b, fp4::pipe::LoadOp op, Value map, const Box &box,
                ArrayRef<Copy> copies) const {
    Location loc = op.getLoc();
    bool toCta = !box.mask && !box.group;
    SmallVector<Value> targets;
    for (const Copy &copy : copies)
      targets.push_back(toCta ? copy.target : inCluster(b, loc, copy.target, *state.target));
    fp4::emitOnce(b, loc, state, op, [&] {
      for (auto [copy, target] : llvm::zip_equal(copies, targets))
        NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
            b, loc, target, map, copy.place, box.barrier, /*im2colOffsets=*/ValueRange(), box.mask,
            /*l2CacheHint=*/Value(), NVVM::TMALoadMode::TILE, /*isCTAOnly=*/toCta, box.group,
            /*predicate=*/Value());
    });
  }

  /// Coordinates of the box in a map, fastest first: bytes or elements and rows; or, for scales,
  /// words of a scale tile, scale tiles and rows of scale tiles.
  static SmallVector<Value> coordinates(OpBuilder &b, Location loc, fp4::pipe::SharedType tile,
                                        Value row, Value column, int64_t panel) {
    auto shifted = [&](Value value, int64_t bits) -> Value {
      return arith::ShRUIOp::create(b, loc, value, fp4::constantI32(b, loc, bits));
    };
    if (tile.isScales()) {
      int64_t rows = tile.isHalved() ? tile.getRows() / 2 // that have a scale tile
                                     : std::min(tile.getRows(), fp4::pipe::kScaleBlockRows);
      Value block =
          llvm::isPowerOf2_64(rows)
              ? shifted(row, llvm::Log2_64(rows))
              : Value(arith::DivUIOp::create(b, loc, row, fp4::constantI32(b, loc, rows)));
      return {fp4::constantI32(b, loc, 0),
              shifted(column, llvm::Log2_64(fp4::pipe::kScaleBlockColumns)), block};
    }
    if (panel)
      column = arith::AddIOp::create(
          b, loc, column, fp4::constantI32(b, loc, panel * tile.getColumns() / tile.getPanels()));
    bool countsBytes = tile.getElementType().getIntOrFloatBitWidth() == 4 &&
                       !fp4::pipe::isPadded(tile.getLayout());
    if (countsBytes)
      column = shifted(column, 1);
    return {column, row};
  }
};

/// Loads scale tiles of a buffer of scales.
struct LowerLoadOfScales : fp4::PipePattern<fp4::pipe::LoadOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::LoadOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (op.getMapType() || op.loadsRows())
      return failure();
    FailureOr<Value> barrier = signalledBarrier(op, adaptor, state, rewriter);
    if (failed(barrier))
      return failure();
    Location loc = op.getLoc();
    fp4::pipe::SharedType tile = op.getTileType();
    int64_t rowBlocks = tile.getRows() / fp4::pipe::kScaleBlockRows;
    int64_t columnBlocks = tile.getColumns() / fp4::pipe::kScaleBlockColumns;
    Value block = fp4::constantI32(rewriter, loc, fp4::pipe::kScaleBlockBytes);
    Value count = adaptor.getExisting() ? adaptor.getExisting()
                                        : fp4::constantI32(rewriter, loc, columnBlocks);
    Value bytes = arith::MulIOp::create(rewriter, loc, count, block);
    for (int64_t i = 0; i < rowBlocks; ++i) {
      Value source = sourceBlock(rewriter, op, adaptor, i);
      Value target = fp4::offsetPointer(rewriter, loc, adaptor.getDest(),
                                        i * columnBlocks * fp4::pipe::kScaleBlockBytes);
      fp4::emitOnce(rewriter, loc, state, op,
                    [&] { emitBulkCopy(rewriter, loc, target, source, *barrier, bytes); });
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  static Value lastRowBlock(OpBuilder &b, fp4::pipe::LoadOp op) {
    Location loc = op.getLoc();
    fp4::pipe::GlobalType source = op.getBufferType();
    if (!ShapedType::isDynamic(source.getShape()[0]))
      return fp4::constantI32(b, loc, source.getScaleBlockRows() - 1);
    Value last = arith::SubIOp::create(b, loc, fp4::rowsOfBuffer(b, loc, op.getSource()),
                                       fp4::constantI32(b, loc, 1));
    return arith::DivUIOp::create(b, loc, last,
                                  fp4::constantI32(b, loc, fp4::pipe::kScaleBlockRows));
  }

  /// First scale tile of the `i`-th row of scale tiles; the buffer's last row stands in for those
  /// behind it.
  static Value sourceBlock(OpBuilder &b, fp4::pipe::LoadOp op, OpAdaptor adaptor, int64_t i) {
    Location loc = op.getLoc();
    fp4::pipe::GlobalType source = op.getBufferType();
    Value row = adaptor.getRow();
    if (i > 0) {
      row = arith::AddIOp::create(b, loc, row, fp4::constantI32(b, loc, i));
      if (!op.getInBounds())
        row = arith::MinSIOp::create(b, loc, row, lastRowBlock(b, op));
    }
    ImplicitLocOpBuilder builder(loc, b);
    fp4::Int32 rowBlock(builder, row), columnBlock(builder, adaptor.getColumn());
    if (source.hasDynamicColumns()) {
      // Rows of scale tiles are dense, and 32 bits hold the number of a tile: ptxas multiplies 64
      // bits in several instructions, which it puts in front of the first load.
      Value columns = fp4::scaleBlockColumnsOfBuffer(b, loc, op.getSource());
      fp4::Int32 index = rowBlock * fp4::Int32(builder, columns) + columnBlock;
      return fp4::stridedPointer(b, loc, adaptor.getSource(), index, fp4::pipe::kScaleBlockBytes);
    }
    fp4::Int32 index =
        fp4::hw::scaleBlockIndex(rowBlock, columnBlock, source.getScaleBlockColumns());
    return fp4::stridedPointer(b, loc, adaptor.getSource(), index, fp4::pipe::kScaleBlockBytes);
  }
};

/// Loads rows of a linear buffer.
struct LowerLoadOfRows : fp4::PipePattern<fp4::pipe::LoadOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::LoadOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.loadsRows())
      return failure();
    FailureOr<Value> barrier = signalledBarrier(op, adaptor, state, rewriter);
    if (failed(barrier))
      return failure();
    Location loc = op.getLoc();
    fp4::pipe::SharedType tile = op.getTileType();
    Value bytes = fp4::constantI32(rewriter, loc, tile.getBytes());
    if (adaptor.getExisting())
      bytes = arith::MulIOp::create(rewriter, loc, adaptor.getExisting(),
                                    fp4::constantI32(rewriter, loc, tile.getInnerBytes()));
    Value source = fp4::stridedPointer(rewriter, loc, adaptor.getSource(), adaptor.getRow(),
                                       op.getBufferType().getRowPitch());
    fp4::emitOnce(rewriter, loc, state, op,
                  [&] { emitBulkCopy(rewriter, loc, adaptor.getDest(), source, *barrier, bytes); });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void fp4::populateLoadPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                               const KernelState &state) {
  patterns.add<LowerLoadOfBox, LowerLoadOfScales, LowerLoadOfRows>(converter, patterns.getContext(),
                                                                   state);
}
