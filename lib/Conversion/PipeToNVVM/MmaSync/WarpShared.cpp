//===- WarpShared.cpp - MMAs of e4m3 by the warps of a warpgroup ----------===//
//
// An MMA whose sums threads promote, on targets without wgmma: each warp multiplies its 16 rows of
// the warpgroup's 64 by all columns, so that scales, promotion and epilogue see the fragments of
// wgmma. mma.sync of kind mxf8f6f4 has unit scales (WarpMma.h). All of A is in registers before the
// first instruction, and 8 columns of B at a time.
//
//===----------------------------------------------------------------------===//
#include "Common/MmaPattern.h"
#include "MmaSync/WarpColumns.h"

#include "SmallBuilders.h"

#include "fp4/ISA/WarpOperands.h"

using namespace mlir;
using namespace fp4;

namespace {

/// Bytes of K of a tile, and of an instruction.
constexpr int64_t kTileBytes = 128, kStepBytes = 32, kSteps = kTileBytes / kStepBytes;

struct LowerWarpShared : MmaPattern<hw::MmaForm::WgmmaShared> {
  using MmaPattern::MmaPattern;

  LogicalResult lower(pipe::MmaOp op, OpAdaptor adaptor,
                      ConversionPatternRewriter &rewriter) const override {
    if (route::hasCore(*state.target, route::Core::Wgmma))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto fragment = op.getAccumulatorAs<pipe::FragmentType>();
    SmallVector<Value> rows = loadRows(b, op, adaptor);
    WarpColumns columns(b, adaptor.getB(), op.getB().getType());
    SmallVector<Value> sums(size_t(fragment.getElementsPerThread()), constF32(b, 0));
    for (int64_t pair = 0; pair < kSteps / 2; ++pair)
      for (int64_t i = 0; i < fragment.getShape()[1] / kWarpColumns; ++i) {
        SmallVector<Value> words = columns.load(i, pair);
        for (int64_t j : {0, 1})
          multiplyWarp(b, op.getB().getType().getElementType(),
                       ArrayRef(rows).slice((2 * pair + j) * kWarpRegistersA, kWarpRegistersA),
                       ArrayRef(words).slice(j * kWarpRegistersB, kWarpRegistersB),
                       MutableArrayRef(sums).slice(i * kWarpSums, kWarpSums));
      }
    emitProxyFence(b, op.getLoc()); // orders the reads before loads that follow
    storeElements(b, adaptor.getAccumulator(), sums);
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// The registers of a warp's 16 rows, of one step after the other.
  SmallVector<Value> loadRows(ImplicitLocOpBuilder &b, pipe::MmaOp op, OpAdaptor adaptor) const {
    Int32 lane(b, NVVM::LaneIdOp::create(b, b.getI32Type()));
    hw::MatrixLine<Int32> named = hw::matrixLineOfA(lane);
    Int32 warp = threadOfRole(b, op, state) / 32;
    Int32 row = warp * int64_t(hw::warpRowsA) + int64_t(op.getARow()) + named.row;
    TileLine line(adaptor.getA(), op.getAAs<pipe::SharedType>().getLayout(), row);
    SmallVector<Value> registers;
    for (int64_t step = 0; step < kSteps; ++step)
      llvm::append_range(registers,
                         loadMatrices(b, line.at(named.byte ^ Int32(b, step * kStepBytes))));
    return registers;
  }
};

} // namespace

void fp4::populateWarpSharedPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                     const KernelState &state) {
  patterns.add<LowerWarpShared>(converter, patterns.getContext(), state);
}
