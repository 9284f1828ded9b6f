//===- Promotion.cpp - Products whose sums are promoted to fp32 -----------===//
//
// A thread has elements of two rows of a fragment and so two scales of A; of B it has one for each
// block of 128 columns that its tile reaches into. Tiles whose columns are no divisor or multiple of
// 128 begin anywhere in a block, so each part of 8 columns selects between two.
//
//===----------------------------------------------------------------------===//
#include "Fragments.h"

#include "InlinePtx.h"
#include "SmallBuilders.h"

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

struct LowerMmaFragment : PipePattern<pipe::MmaFragmentOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::MmaFragmentOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    constexpr int64_t groupRows = hw::fragmentRows(hw::FragmentKind::Wgmma);
    constexpr int64_t groupThreads = hw::fragmentThreads(hw::FragmentKind::Wgmma);
    Int32 group = threadOfRole(b, op, state) / groupThreads;
    Value first = offsetPointer(b, b.getLoc(), adaptor.getA(), int64_t(op.getRow()) * kRowBytes);
    SharedProduct product;
    product.columns = op.getSums().getType().getShape()[1];
    product.a = wgmmaDescriptor(b, stridedPointer(b, b.getLoc(), first, group, groupRows * kRowBytes));
    product.b = wgmmaDescriptor(b, adaptor.getB());
    for (int64_t byte = 0; byte < kRowBytes; byte += kInstructionBytes)
      product.offsets.push_back(byte / kDescriptorUnit);
    storeElements(b, adaptor.getSums(), multiplyShared(b, product));
    rewriter.eraseOp(op);
    return success();
  }
};

/// In a loop over the blocks, a thread asks for the scales of the next block before it uses those of
/// this one: the tensor core does not wait for memory. One warpgroup alone waits for its tiles anyway
/// and does not gain from it (docs/Performance.md).
struct LowerBlockScales : PipePattern<pipe::BlockScalesOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::BlockScalesOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    bool hasOthers = state.roles.at(op).getNumThreads() > kGroupThreads;
    SmallVector<Value> scales = hasOthers && countsBlocks(op)
                                    ? loadAhead(b, op, adaptor)
                                    : loadScales(b, op, adaptor, Int32(b, adaptor.getBlock()));
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, op.getResult().getType(), scales);
    return success();
  }

private:
  /// The block is the number of an iteration of the loop around the op.
  static bool countsBlocks(pipe::BlockScalesOp op) {
    auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
    APInt first, step;
    return loop && loop.getInductionVar() == op.getBlock() &&
           matchPattern(loop.getLowerBound(), m_ConstantInt(&first)) && first.isZero() &&
           matchPattern(loop.getStep(), m_ConstantInt(&step)) && step.isOne();
  }

  /// Those of the last block are asked for twice.
  SmallVector<Value> loadAhead(ImplicitLocOpBuilder &b, pipe::BlockScalesOp op,
                               OpAdaptor adaptor) const {
    int64_t count = op.getResult().getType().getNumElements();
    Value array = frameArray(b, state, count);
    Int32 block(b, adaptor.getBlock()), last(b, op.getA().getType().getShape()[1] - 1);
    Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, block, Int32(b, int64_t(0)));
    auto branch = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
    {
      OpBuilder::InsertionGuard restore(b);
      b.setInsertionPointToStart(branch.thenBlock());
      storeElements(b, array, loadScales(b, op, adaptor, block));
    }
    SmallVector<Value> scales = loadElements(b, array, 0, count);
    storeElements(b, array, loadScales(b, op, adaptor, minimum(block + 1, last)));
    return scales;
  }

  SmallVector<Value> loadScales(ImplicitLocOpBuilder &b, pipe::BlockScalesOp op, OpAdaptor adaptor,
                                Int32 ofBlock) const {
    pipe::GlobalType typeA = op.getA().getType(), typeB = op.getB().getType();
    Int32 row = Int32(b, adaptor.getRow()) + rowOfThread(threadOfRole(b, op, state));
    Int32 rows = adaptor.getRows() ? Int32(b, adaptor.getRows()) : Int32(b, typeA.getShape()[0]);
    Int32 block = Int32(b, adaptor.getColumn()) / pipe::kPromotedBlock;
    SmallVector<Value> scales;
    for (int64_t half : {0, 8})
      scales.push_back(loadScale(b, adaptor.getA(), typeA,
                                 hasWholeTiles(typeA) ? row + half : minimum(row + half, rows - 1),
                                 ofBlock));
    int64_t blocks = pipe::promotedBlocks(int64_t(op.getColumns()));
    Int32 last(b, typeB.getShape()[0] - 1);
    for (int64_t i = 0; i < blocks; ++i)
      scales.push_back(
          loadScale(b, adaptor.getB(), typeB, i ? minimum(block + i, last) : block, ofBlock));
    return scales;
  }

  /// Every tile has all of its rows, so that the rows of a thread are at constant distances.
  static bool hasWholeTiles(pipe::GlobalType type) {
    constexpr int64_t mostRows = 256;
    return !ShapedType::isDynamic(type.getShape()[0]) && type.getShape()[0] % mostRows == 0;
  }

  static Value loadScale(ImplicitLocOpBuilder &b, Value buffer, pipe::GlobalType type, Int32 row,
                         Value block) {
    Value line = stridedPointer(b, b.getLoc(), buffer, row, type.getRowPitch());
    return load(b, b.getF32Type(), stridedPointer(b, b.getLoc(), line, block, 4), 4);
  }
};

struct LowerPromote : PipePattern<pipe::PromoteOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::PromoteOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    pipe::FragmentType type = op.getSums().getType();
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
    storeElements(b, adaptor.getAccumulator(), acc);
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Products of a row's scale and one of columns.
  struct Scales {
    ImplicitLocOpBuilder &b;
    SmallVector<Value> ofRow[2]; ///< by block of columns
    Int32 start;                 ///< of the tile in its block
    int64_t lastStart;

    Scales(ImplicitLocOpBuilder &b, Value scales, Value column, int64_t columns)
        : b(b), start(Int32(b, column) % pipe::kPromotedBlock),
          lastStart(pipe::kPromotedBlock - std::gcd(columns, pipe::kPromotedBlock)) {
      for (int64_t half : {0, 1})
        for (int64_t i = 0; i < pipe::promotedBlocks(columns); ++i)
          ofRow[half].push_back(LLVM::FMulOp::create(b, vector::ExtractOp::create(b, scales, half),
                                                     vector::ExtractOp::create(b, scales, 2 + i)));
    }

    /// That of row `half` and part `part` of 8 columns.
    Value of(int64_t part, int64_t half) const {
      int64_t offset = part * hw::fragmentTileColumns;
      int64_t least = offset / pipe::kPromotedBlock;
      int64_t most = (lastStart + offset) / pipe::kPromotedBlock;
      if (least == most)
        return ofRow[half][least];
      Value isFormer = start < most * pipe::kPromotedBlock - offset;
      return arith::SelectOp::create(b, isFormer, ofRow[half][least], ofRow[half][most]);
    }
  };
};

} // namespace

void fp4::populatePromotionPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                    const KernelState &state) {
  patterns.add<LowerMmaFragment, LowerBlockScales, LowerPromote>(converter, patterns.getContext(),
                                                                 state);
}
