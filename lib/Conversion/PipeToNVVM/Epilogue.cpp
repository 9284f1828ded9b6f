//===- Epilogue.cpp - Accumulator reads and predicated stores -------------===//
//
// Accumulator lane r belongs to thread r of the four epilogue warps, whose first warp is a multiple
// of four: r = thread index mod 128. A warp addresses the 32 lanes of its quadrant only; the lane
// field of the address is 32 * quadrant << 16 for all its threads.
//
//===----------------------------------------------------------------------===//
#include "InlinePtx.h"
#include "Lowering.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;

namespace {

/// r = threadIndex mod 128.
Value accumulatorLane(OpBuilder &b, Location loc, const fp4::KernelState &state) {
  return arith::AndIOp::create(b, loc, state.threadIndex,
                               fp4::constantI32(b, loc, fp4::pipe::kMmaM - 1));
}

struct LowerRead : fp4::PipePattern<fp4::pipe::ReadOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::ReadOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = cast<VectorType>(op.getResult().getType());
    int64_t count = type.getNumElements();
    Type word = rewriter.getI32Type();
    // tcgen05.ld is aligned, and the guarded stores of an earlier segment may have split the warp.
    NVVM::SyncWarpOp::create(rewriter, loc, fp4::constantI32(rewriter, loc, -1));
    Type loadedType = count == 1 ? word : VectorType::get(count, word);
    Value loaded = NVVM::Tcgen05LdOp::create(
        rewriter, loc, loadedType, /*pack=*/false, NVVM::Tcgen05LdStShape::SHAPE_32X32B,
        fp4::tmemPointer(rewriter, loc, address(rewriter, loc, adaptor)), /*offset=*/Value());
    SmallVector<Value> words;
    for (int64_t i = 0; i < count; ++i)
      words.push_back(count == 1 ? loaded
                                 : LLVM::ExtractElementOp::create(
                                       rewriter, loc, loaded, fp4::constantI32(rewriter, loc, i)));
    for (Value &value : words = fp4::waitForLoaded(rewriter, loc, words))
      value = arith::BitcastOp::create(rewriter, loc, type.getElementType(), value);
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, type, words);
    return success();
  }

private:
  Value address(OpBuilder &b, Location loc, OpAdaptor adaptor) const {
    Value quadrant =
        arith::AndIOp::create(b, loc, state.threadIndex, fp4::constantI32(b, loc, 0x60));
    Value lane = arith::ShLIOp::create(b, loc, quadrant, fp4::constantI32(b, loc, 16));
    Value column = arith::AddIOp::create(b, loc, adaptor.getAccumulator(), adaptor.getColumn());
    return arith::AddIOp::create(b, loc, column, lane);
  }
};

struct LowerStore : fp4::PipePattern<fp4::pipe::StoreOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::StoreOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    fp4::pipe::GlobalType dest = op.getDest().getType();
    int64_t columns = dest.getShape()[1];
    int64_t count = cast<VectorType>(op.getValue().getType()).getNumElements();
    bool ragged = columns % count != 0; // a segment may then straddle the last column
    Value row = arith::AddIOp::create(rewriter, loc, adaptor.getRow(),
                                      accumulatorLane(rewriter, loc, state));
    Value last = fp4::constantI32(rewriter, loc, columns);
    Value exists = arith::AndIOp::create(
        rewriter, loc, isBelow(rewriter, loc, row, rowLimit(rewriter, op, adaptor)),
        isBelow(rewriter, loc, adaptor.getColumn(), last));
    auto guard = scf::IfOp::create(rewriter, loc, exists, /*withElseRegion=*/false);
    rewriter.setInsertionPointToStart(guard.thenBlock());
    Value pointer = segment(rewriter, op, adaptor, row);
    int64_t piece = pieceElements(dest, count);
    for (int64_t first = 0; first < count; first += piece) {
      Value column = adaptor.getColumn();
      if (ragged && first)
        column =
            arith::AddIOp::create(rewriter, loc, column, fp4::constantI32(rewriter, loc, first));
      auto store = [&] { storePiece(rewriter, loc, adaptor.getValue(), pointer, first, piece); };
      if (ragged && first)
        emitIf(rewriter, loc, isBelow(rewriter, loc, column, last), store);
      else
        store();
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  static Value isBelow(OpBuilder &b, Location loc, Value value, Value limit) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, value, limit);
  }

  static Value rowLimit(OpBuilder &b, fp4::pipe::StoreOp op, OpAdaptor adaptor) {
    return adaptor.getRows()
               ? adaptor.getRows()
               : fp4::constantI32(b, op.getLoc(), op.getDest().getType().getShape()[0]);
  }

  static void emitIf(OpBuilder &b, Location loc, Value condition, llvm::function_ref<void()> body) {
    auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPointToStart(branch.thenBlock());
    body();
  }

  /// Elements of one access: as many as every row's start is aligned for, 16 bytes at most. Since
  /// pieces divide the row, each lies inside it or beyond it as a whole.
  static int64_t pieceElements(fp4::pipe::GlobalType dest, int64_t count) {
    int64_t bytes = dest.getElementType().getIntOrFloatBitWidth() / 8;
    return std::min(count, std::gcd<int64_t>(16, dest.getRowPitch()) / bytes);
  }

  /// Address of element (row, column); 64-bit, since the buffer may exceed 4 GiB.
  static Value segment(OpBuilder &b, fp4::pipe::StoreOp op, OpAdaptor adaptor, Value row) {
    Location loc = op.getLoc();
    fp4::pipe::GlobalType dest = op.getDest().getType();
    Value start = fp4::stridedPointer(b, loc, adaptor.getDest(), row, dest.getRowPitch());
    return fp4::stridedPointer(b, loc, start, adaptor.getColumn(),
                               dest.getElementType().getIntOrFloatBitWidth() / 8);
  }

  static void storePiece(OpBuilder &b, Location loc, Value value, Value pointer, int64_t first,
                         int64_t piece) {
    int64_t bytes = cast<VectorType>(value.getType()).getElementTypeBitWidth() / 8;
    SmallVector<int32_t> lanes(piece);
    std::iota(lanes.begin(), lanes.end(), static_cast<int32_t>(first));
    Value part =
        piece == 1 ? LLVM::ExtractElementOp::create(b, loc, value, fp4::constantI32(b, loc, first))
                         .getResult()
                   : LLVM::ShuffleVectorOp::create(b, loc, value, value, lanes).getResult();
    LLVM::StoreOp::create(b, loc, part, fp4::offsetPointer(b, loc, pointer, first * bytes),
                          static_cast<unsigned>(piece * bytes));
  }
};

} // namespace

void fp4::populateEpiloguePatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                   const KernelState &state) {
  patterns.add<LowerRead, LowerStore>(converter, patterns.getContext(), state);
}
