//===- ClearRows.cpp - Rows of no group, and rows of groups that do not fit ===//
//
// CTA i of g takes the rows begin + i, begin + i + g and so on. Threads have neighbouring pieces of
// a row, so that a warp writes whole lines. Threads sleep after each row, so that loads of the
// GEMMs do not wait behind zeros.
//
//===----------------------------------------------------------------------===//
#include "Common/Fragments.h"

#include "GroupCheck.h"
#include "SmallBuilders.h"

#include <numeric>

using namespace mlir;
using namespace fp4;

namespace {

/// Bytes of the widest store of a thread.
constexpr int64_t kWidestStore = 16;
/// Zeros that a CTA writes in a nanosecond: all CTAs of an H200 use half of the bandwidth of its
/// memory.
constexpr int64_t kBytesPerNanosecond = 20;

struct LowerClearRows : PipePattern<pipe::ClearRowsOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::ClearRowsOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Int32 block(b, NVVM::BlockIdXOp::create(b, b.getI32Type()));
    Value blocks = NVVM::GridDimXOp::create(b, b.getI32Type());
    int64_t bytes = op.getDest().getType().getRowPitch();
    int64_t piece = std::gcd(bytes, kWidestStore), threads = state.roles.at(op).getNumThreads();
    Int32 thread = threadOfRole(b, op, state);
    forSteps(b, Int32(b, adaptor.getBegin()) + block, adaptor.getEnd(), blocks, [&](Value row) {
      Value line = stridedPointer(b, op.getLoc(), adaptor.getDest(), row, bytes);
      forSteps(b, thread, constantI32(b, op.getLoc(), bytes / piece),
               constantI32(b, op.getLoc(), threads), [&](Value number) {
                 storeZeros(b, stridedPointer(b, op.getLoc(), line, number, piece), piece);
               });
      NVVM::NanosleepOp::create(b, constI32(b, bytes / kBytesPerNanosecond));
    });
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void forSteps(ImplicitLocOpBuilder &b, Value begin, Value end, Value step,
                       llvm::function_ref<void(Value)> body) {
    auto loop = scf::ForOp::create(b, begin, end, step);
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  }

  static void storeZeros(ImplicitLocOpBuilder &b, Value pointer, int64_t bytes) {
    Type type = b.getIntegerType(unsigned(8 * std::min<int64_t>(bytes, 4)));
    if (bytes > 4)
      type = VectorType::get({bytes / 4}, type);
    Value zeros = arith::ConstantOp::create(b, b.getZeroAttr(type));
    LLVM::StoreOp::create(b, zeros, pointer, unsigned(bytes));
  }
};

/// The first thread of the role in the first CTA of the grid checks all groups.
struct LowerCheckGroups : PipePattern<pipe::CheckGroupsOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::CheckGroupsOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    ArrayRef<int64_t> shape = op.getOffsets().getType().getShape();
    int64_t step = shape[1] / 2, groups = shape[0] - (step == 1);
    Int32 number = threadOfRole(b, op, state) |
                   Int32(b, NVVM::BlockIdXOp::create(b, b.getI32Type())) |
                   Int32(b, NVVM::BlockIdYOp::create(b, b.getI32Type()));
    auto first = scf::IfOp::create(b, number < 1);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(first.thenBlock());
      Value limit = arith::ConstantIntOp::create(b, int64_t(op.getLimit()), 64);
      emitGroupCheck(b, {adaptor.getOffsets(), groups, step, limit}, adaptor.getReport());
    }
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void fp4::populateClearRowsPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                    const KernelState &state) {
  patterns.add<LowerClearRows, LowerCheckGroups>(converter, patterns.getContext(), state);
}
