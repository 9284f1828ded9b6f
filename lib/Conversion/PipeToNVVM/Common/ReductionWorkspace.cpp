//===- ReductionWorkspace.cpp - Tables and workspaces of a reduction ------===//
//
// A CTA enters a reduction by an atomic increment, which releases what the warp has stored and
// acquires what earlier CTAs have stored. The last increment makes the counter 0 again, for the
// next kernel. Warp q of the four, or eight, counts in column q: threads of a warp exchange data
// with the same threads of other CTAs only, so that no barrier of the CTA is needed.
//
//===----------------------------------------------------------------------===//
#include "Common/Fragments.h"

#include "InlinePtx.h"
#include "SmallBuilders.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

namespace {

/// Loads the value at `pointer`; 16 bytes are read at once where the type has them.
Value loadGlobal(OpBuilder &b, Location loc, Type type, Value pointer, bool isInvariant) {
  auto vector = dyn_cast<VectorType>(type);
  int64_t bytes = 4 * (vector ? vector.getNumElements() : 1);
  return LLVM::LoadOp::create(b, loc, type, pointer, unsigned(std::min<int64_t>(bytes, 16)),
                              /*isVolatile=*/false, /*isNonTemporal=*/false, isInvariant);
}

struct LowerLoadEntry : PipePattern<pipe::LoadEntryOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::LoadEntryOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<VectorType>(op.getType());
    if (!type) {
      rewriter.replaceOpWithNewOp<LLVM::LoadOp>(op, op.getType(), adaptor.getTable(),
                                                /*alignment=*/0, /*isVolatile=*/false,
                                                /*isNonTemporal=*/false, /*isInvariant=*/true);
      return success();
    }
    Value pointer = stridedPointer(rewriter, op.getLoc(), adaptor.getTable(), adaptor.getIndex(),
                                   4 * type.getNumElements());
    // The load is invariant: the NVPTX backend then uses ld.global.nc.
    Value row = loadGlobal(rewriter, op.getLoc(), type, pointer, /*isInvariant=*/true);
    rewriter.replaceOp(op, op.getOfWarp() ? shareNumbers(rewriter, op, row) : row);
    return success();
  }

private:
  /// Returns `row` with those numbers that are needed in registers of the warp.
  Value shareNumbers(OpBuilder &b, pipe::LoadEntryOp op, Value row) const {
    Location loc = op.getLoc();
    llvm::SmallSetVector<int64_t, 4> places;
    for (Operation *user : op->getUsers())
      if (auto extract = dyn_cast<vector::ExtractOp>(user);
          extract && extract.getStaticPosition().size() == 1)
        places.insert(extract.getStaticPosition().front());
    if (!getElementTypeOrSelf(op.getType()).isInteger(32))
      return row; // factors, which threads multiply
    for (int64_t place : places) {
      Value number = vector::ExtractOp::create(b, loc, row, place);
      row = vector::InsertOp::create(b, loc, ofWarp(b, loc, state, number), row, place);
    }
    return row;
  }
};

/// Elements of a thread that follow one another in a workspace.
constexpr int64_t kTogether = 4;

/// The address of elements i to i + 3 of this thread.
Value partPointer(ImplicitLocOpBuilder &b, Operation *op, const KernelState &state,
                  pipe::GlobalType type, Value workspace, Value row, int64_t column, int64_t i) {
  int64_t threads = state.roles.at(op).getNumThreads();
  Value line = stridedPointer(b, op->getLoc(), workspace, row, type.getRowPitch());
  Value first = offsetPointer(b, op->getLoc(), line, 4 * (column + i * threads));
  return stridedPointer(b, op->getLoc(), first, threadOfRole(b, op, state), 4 * kTogether);
}

struct LowerWorkspaceStore : PipePattern<pipe::StoreOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::StoreOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getFirst())
      return rewriter.notifyMatchFailure(op, "stores to a matrix");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    int64_t count = op.getThreadType().getNumElements();
    for (int64_t i = 0; i < count; i += kTogether) {
      Value pointer = partPointer(b, op, state, op.getBufferType(), adaptor.getDest(),
                                  adaptor.getRow(), int64_t(*op.getFirst()), i);
      Value part =
          vector::ExtractStridedSliceOp::create(b, adaptor.getValue(), ArrayRef<int64_t>{i},
                                                ArrayRef<int64_t>{kTogether}, ArrayRef<int64_t>{1});
      LLVM::StoreOp::create(b, part, pointer, 4 * kTogether);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerFetchFragment : PipePattern<pipe::FetchOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::FetchOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getFirst())
      return rewriter.notifyMatchFailure(op, "fetches from a matrix");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    VectorType type = pipe::vectorOfThread(op.getResult().getType());
    auto part = VectorType::get(kTogether, b.getF32Type());
    SmallVector<Value> elements;
    for (int64_t i = 0; i < type.getNumElements(); i += kTogether) {
      Value pointer = partPointer(b, op, state, op.getGlobal().getType(), adaptor.getGlobal(),
                                  adaptor.getRow(), int64_t(*op.getFirst()), i);
      Value four = LLVM::LoadOp::create(b, part, pointer, 4 * kTogether);
      for (int64_t j = 0; j < kTogether; ++j)
        elements.push_back(vector::ExtractOp::create(b, four, j));
    }
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, type, elements);
    return success();
  }
};

struct LowerCountPartial : PipePattern<pipe::CountPartialOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::CountPartialOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto constant = [&](int64_t value) { return constantI32(rewriter, loc, value); };
    Value all = constant(-1), zero = constant(0);
    Value most = op.getParts()
                     ? constant(int64_t(*op.getParts()) - 1)
                     : arith::AddIOp::create(rewriter, loc, adaptor.getDynamicParts(), all);
    int64_t counters = op.getCounters().getType().getShape()[1]; // of a tile, one for each warp
    Value row =
        stridedPointer(rewriter, loc, adaptor.getCounters(), adaptor.getIndex(), 4 * counters);
    Value quadrant = arith::AndIOp::create(rewriter, loc, state.warpIndex, constant(counters - 1));
    Value counter = stridedPointer(rewriter, loc, row, quadrant, 4);
    NVVM::SyncWarpOp::create(rewriter, loc, all); // the stores of the other lanes come before
    Value lane = arith::AndIOp::create(rewriter, loc, state.threadIndex, constant(31));
    Value isFirst = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, lane, zero);
    auto branch = scf::IfOp::create(rewriter, loc, TypeRange(rewriter.getI32Type()), isFirst,
                                    /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(branch.thenBlock());
      Value before = countAndSynchronize(rewriter, loc, counter, most);
      scf::YieldOp::create(rewriter, loc, before);
      rewriter.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(rewriter, loc, zero);
    }
    ImplicitLocOpBuilder b(loc, rewriter);
    Value before = valueOfLane(b, branch.getResult(0), zero);
    NVVM::SyncWarpOp::create(rewriter, loc, all); // all lanes see what lane 0 has acquired
    rewriter.replaceOpWithNewOp<arith::CmpIOp>(op, arith::CmpIPredicate::eq, before, most);
    return success();
  }
};

struct LowerFetch : PipePattern<pipe::FetchOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::FetchOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getWritten())
      return rewriter.notifyMatchFailure(op, "fetches what the kernel does not store");
    Location loc = op.getLoc();
    Value row = arith::AddIOp::create(rewriter, loc, adaptor.getRow(),
                                      accumulatorLane(rewriter, loc, state));
    Value start = stridedPointer(rewriter, loc, adaptor.getGlobal(), row,
                                 op.getGlobal().getType().getRowPitch());
    Value pointer = stridedPointer(rewriter, loc, start, adaptor.getColumn(), 4);
    rewriter.replaceOp(op, loadGlobal(rewriter, loc, pipe::vectorOfThread(op.getResult().getType()),
                                      pointer,
                                      /*isInvariant=*/false));
    return success();
  }
};

} // namespace

void fp4::populateCountPartialPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                       const KernelState &state) {
  patterns
      .add<LowerCountPartial, LowerFetch, LowerFetchFragment, LowerWorkspaceStore, LowerLoadEntry>(
          converter, patterns.getContext(), state);
}
