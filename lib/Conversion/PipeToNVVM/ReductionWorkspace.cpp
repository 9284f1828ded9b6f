//===- ReductionWorkspace.cpp - Tables and workspaces of a reduction ------===//
//
// A CTA enters a reduction by an atomic increment, which releases what the warp has stored and
// acquires what earlier CTAs have stored. The last increment makes the counter 0 again, for the
// next kernel. Warp q of the four, or eight, counts in column q: threads of a warp exchange data
// with the same threads of other CTAs only, so that no barrier of the CTA is needed.
//
//===----------------------------------------------------------------------===//
#include "InlinePtx.h"
#include "Lowering.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace {

/// Loads the value at `pointer`; 16 bytes are read at once where the type has them.
Value loadGlobal(OpBuilder &b, Location loc, Type type, Value pointer, bool isInvariant) {
  auto vector = dyn_cast<VectorType>(type);
  int64_t bytes = 4 * (vector ? vector.getNumElements() : 1);
  return LLVM::LoadOp::create(b, loc, type, pointer, unsigned(std::min<int64_t>(bytes, 16)),
                              /*isVolatile=*/false, /*isNonTemporal=*/false, isInvariant);
}

struct LowerLoadEntry : fp4::PipePattern<fp4::pipe::LoadEntryOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::LoadEntryOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    VectorType type = op.getResult().getType();
    Value pointer = fp4::stridedPointer(rewriter, op.getLoc(), adaptor.getTable(),
                                        adaptor.getIndex(), 4 * type.getNumElements());
    // The load is invariant: the NVPTX backend then uses ld.global.nc.
    Value row = loadGlobal(rewriter, op.getLoc(), type, pointer, /*isInvariant=*/true);
    rewriter.replaceOp(op, op.getOfWarp() ? shareNumbers(rewriter, op, row) : row);
    return success();
  }

private:
  /// Returns `row` with those numbers that are needed in registers of the warp.
  Value shareNumbers(OpBuilder &b, fp4::pipe::LoadEntryOp op, Value row) const {
    Location loc = op.getLoc();
    llvm::SmallSetVector<int64_t, 4> places;
    for (Operation *user : op->getUsers())
      if (auto extract = dyn_cast<vector::ExtractOp>(user);
          extract && extract.getStaticPosition().size() == 1)
        places.insert(extract.getStaticPosition().front());
    if (!op.getResult().getType().getElementType().isInteger(32))
      return row; // factors, which threads multiply
    for (int64_t place : places) {
      Value number = vector::ExtractOp::create(b, loc, row, place);
      row = vector::InsertOp::create(b, loc, fp4::ofWarp(b, loc, state, number), row, place);
    }
    return row;
  }
};

struct LowerCountPartial : fp4::PipePattern<fp4::pipe::CountPartialOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::CountPartialOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto constant = [&](int64_t value) { return fp4::constantI32(rewriter, loc, value); };
    Value all = constant(-1), zero = constant(0);
    Value most = op.getParts()
                     ? constant(int64_t(*op.getParts()) - 1)
                     : arith::AddIOp::create(rewriter, loc, adaptor.getDynamicParts(), all);
    int64_t counters = op.getCounters().getType().getShape()[1]; // of a tile, one for each warp
    Value row =
        fp4::stridedPointer(rewriter, loc, adaptor.getCounters(), adaptor.getIndex(), 4 * counters);
    Value quadrant = arith::AndIOp::create(rewriter, loc, state.warpIndex, constant(counters - 1));
    Value counter = fp4::stridedPointer(rewriter, loc, row, quadrant, 4);
    NVVM::SyncWarpOp::create(rewriter, loc, all); // the stores of the other lanes come before
    Value lane = arith::AndIOp::create(rewriter, loc, state.threadIndex, constant(31));
    Value isFirst = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, lane, zero);
    auto branch = scf::IfOp::create(rewriter, loc, TypeRange(rewriter.getI32Type()), isFirst,
                                    /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(branch.thenBlock());
      Value before = fp4::countAndSynchronize(rewriter, loc, counter, most);
      scf::YieldOp::create(rewriter, loc, before);
      rewriter.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(rewriter, loc, zero);
    }
    Value before =
        NVVM::ShflOp::create(rewriter, loc, rewriter.getI32Type(), all, branch.getResult(0), zero,
                             constant(31), NVVM::ShflKind::idx, UnitAttr());
    NVVM::SyncWarpOp::create(rewriter, loc, all); // all lanes see what lane 0 has acquired
    rewriter.replaceOpWithNewOp<arith::CmpIOp>(op, arith::CmpIPredicate::eq, before, most);
    return success();
  }
};

struct LowerFetch : fp4::PipePattern<fp4::pipe::FetchOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::FetchOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getColumn())
      return rewriter.notifyMatchFailure(op, "fetches a part of a fragment");
    Location loc = op.getLoc();
    Value row = arith::AddIOp::create(rewriter, loc, adaptor.getRow(),
                                      fp4::accumulatorLane(rewriter, loc, state));
    Value start = fp4::stridedPointer(rewriter, loc, adaptor.getSource(), row,
                                      op.getSource().getType().getRowPitch());
    Value pointer = fp4::stridedPointer(rewriter, loc, start, adaptor.getColumn(), 4);
    rewriter.replaceOp(op, loadGlobal(rewriter, loc,
                                      fp4::pipe::vectorOfThread(op.getResult().getType()), pointer,
                                      /*isInvariant=*/false));
    return success();
  }
};

} // namespace

void fp4::populateCountPartialPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                       const KernelState &state) {
  patterns.add<LowerCountPartial, LowerFetch, LowerLoadEntry>(converter, patterns.getContext(),
                                                              state);
}
