//===- Mma.cpp - Scale copies, block-scaled and dense MMAs ----------------===//
//
// One thread issues tcgen05.cp and tcgen05.mma; an MMA runs after earlier copies, so that scales
// need no wait before the MMA that reads them. A k tile of 256 fp4 is four MMAs of K = 64; MMA s
// reads the s-th 32-byte slice of every swizzled row (descriptor start + 32 s bytes; a longer tile
// has its rows in several panels) and the scales at
//   nvfp4 (block 16, scale_vec 4X): 512-byte scale tile s, id 0
//   mxfp4 (block 32, scale_vec 2X): 512-byte scale tile s / 2, id 2 (s mod 2)
// Elements of 8 bits, and of 4 bits beside them, take a byte each in shared memory: there MMA s has
// K = 32, and the scales of mxfp8 (block 32, scale_vec 1X) in scale tile s / 4, id s mod 4. With K
// = 96 MMA s reads 48 bytes from byte 48 s on, in this panel and the next, and scales from the 6
// s-th or 3 s-th of the row on (k96Slice, scaleStep): descriptors have the addresses of both lines.
// With the double K it reads 64 bytes, and twice as many scales. pipe.mma of slices reads A as TMA
// wrote it, rows of k with contiguous columns: an MN-major operand in panels of the swizzle's
// width. Slice s of 16 rows starts 16 s lines further. PTX ISA: "Tensorcore 5th generation:
// tcgen05.mma, tcgen05.cp".
//
//===----------------------------------------------------------------------===//
#include "Common/MmaPattern.h"

#include "InlinePtx.h"
#include "Int32.h"

#include "fp4/ISA/InstrDescriptor.h"
#include "fp4/ISA/ScaleLayout.h"
#include "fp4/ISA/SmemDescriptor.h"
#include "fp4/ISA/WeightLayout.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
namespace hw = fp4::hw;

namespace {

/// A shared memory descriptor, in two words: the upper one is constant, and arithmetic on the lower
/// one never carries. The low field counts 16-byte units, and shared memory ends below its range.
struct Descriptor {
  Value low; ///< i32
  uint32_t high;

  /// The i64 of the descriptor, advanced by `bytes`; a leading address is advanced by `leading`.
  Value at(OpBuilder &b, Location loc, int64_t bytes, int64_t leading = 0) const {
    Value word = low;
    if (bytes || leading)
      word = arith::AddIOp::create(b, loc, word,
                                   fp4::constantI32(b, loc, bytes / 16 + (leading / 16 << 16)));
    Value wide = arith::ExtUIOp::create(b, loc, b.getI64Type(), word);
    return arith::OrIOp::create(b, loc, wide, fp4::constantI64(b, loc, int64_t(high) << 32));
  }
};

/// The start field for `tile` (!llvm.ptr<3>). If `tile` is stage s of a channel, the field of stage
/// 0 does not change in the loop: fields add as addresses do, because stages end within shared
/// memory.
Value startOf(ImplicitLocOpBuilder &b, Value tile) {
  auto field = [&](Value address) -> Value { return hw::descriptorStart(fp4::Int32(b, address)); };
  auto pointer = tile.getDefiningOp<LLVM::IntToPtrOp>();
  auto sum = pointer ? pointer.getArg().getDefiningOp<arith::AddIOp>() : arith::AddIOp();
  auto offset = sum ? sum.getRhs().getDefiningOp<arith::MulIOp>() : arith::MulIOp();
  APInt stride;
  if (!offset || !matchPattern(offset.getRhs(), m_ConstantInt(&stride)) || stride.urem(16) != 0)
    return field(LLVM::PtrToIntOp::create(b, b.getI32Type(), tile));
  return fp4::Int32(b, field(sum.getLhs())) +
         fp4::Int32(b, offset.getLhs()) * uint32_t(stride.getZExtValue() / 16);
}

/// The outermost loop around `op` of a whole role: values that do not change are computed in front
/// of that loop. Null where there is none.
Operation *loopsAround(Operation *op, const fp4::KernelState &state) {
  Operation *outermost = nullptr;
  if (!fp4::isOfWholeRole(op, state))
    return nullptr;
  for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp())
    if (isa<LoopLikeOpInterface>(parent))
      outermost = parent;
  return outermost;
}

/// The lower word for stage s of a channel, in loops: constant parts are computed in front of them,
/// where LLVM cannot take them apart again, and s times a constant is added. Null where `tile` is
/// no such stage.
Value lowWordOfStage(OpBuilder &b, Operation *op, const fp4::KernelState &state, Value tile,
                     const hw::SmemDescriptor &form) {
  auto pointer = tile.getDefiningOp<LLVM::IntToPtrOp>();
  auto sum = pointer ? pointer.getArg().getDefiningOp<arith::AddIOp>() : arith::AddIOp();
  auto first = sum ? sum.getLhs().getDefiningOp<arith::AddIOp>() : arith::AddIOp();
  auto offset = sum ? sum.getRhs().getDefiningOp<arith::MulIOp>() : arith::MulIOp();
  Operation *loops = loopsAround(op, state);
  APInt place, stride;
  if (!loops || !first || !offset || !matchPattern(first.getRhs(), m_ConstantInt(&place)) ||
      !matchPattern(offset.getRhs(), m_ConstantInt(&stride)) || stride.urem(16) != 0)
    return {};
  Location loc = op->getLoc();
  int64_t unit = form.lboAbsolute ? 1 << 16 | 1 : 1; // the leading address starts there too
  Value fixed;
  {
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPoint(loops);
    ImplicitLocOpBuilder builder(loc, b);
    Value base = LLVM::PtrToIntOp::create(b, loc, b.getI32Type(), state.sharedBase);
    Value start = hw::descriptorStart(fp4::Int32(builder, base) + uint32_t(place.getZExtValue()));
    Value field = arith::MulIOp::create(b, loc, start, fp4::constantI32(b, loc, unit));
    Value low =
        arith::AddIOp::create(b, loc, field, fp4::constantI32(b, loc, int32_t(form.encode())));
    fixed = fp4::computeHere(b, loc, low).front();
  }
  Value step = fp4::constantI32(b, loc, int64_t(stride.getZExtValue() / 16) * unit);
  Value moved = arith::MulIOp::create(b, loc, offset.getLhs(), step);
  return arith::AddIOp::create(b, loc, fixed, moved);
}

/// `form`, which starts at address 0, made to start at `tile`. A leading address starts there too.
Descriptor descriptorAt(OpBuilder &b, Operation *op, const fp4::KernelState &state, Value tile,
                        const hw::SmemDescriptor &form) {
  Location loc = op->getLoc();
  if (Value low = lowWordOfStage(b, op, state, tile, form))
    return {low, uint32_t(form.encode() >> 32)};
  ImplicitLocOpBuilder builder(loc, b);
  Value field = startOf(builder, tile);
  if (form.lboAbsolute)
    field = arith::MulIOp::create(b, loc, field, fp4::constantI32(b, loc, 1 << 16 | 1));
  uint64_t bits = form.encode();
  Value low = arith::AddIOp::create(b, loc, field, fp4::constantI32(b, loc, int32_t(bits)));
  return {low, uint32_t(bits >> 32)};
}

/// Byte offset in a K-major tile of the slice of matrix step `step`: within a panel slices are side
/// by side, and panel follows panel.
int64_t sliceOffset(fp4::pipe::SharedType tile, int64_t step,
                    hw::MmaDepth depth = hw::MmaDepth::Single) {
  int64_t rowBytes = hw::mmaRowBytesOf(depth), panels = tile.getPanels();
  int64_t steps = tile.getInnerBytes() / rowBytes / panels;
  return step / steps * (tile.getBytes() / panels) + step % steps * rowBytes;
}

Value addColumns(OpBuilder &b, Location loc, Value address, int64_t columns) {
  if (columns == 0)
    return address;
  return arith::AddIOp::create(b, loc, address, fp4::constantI32(b, loc, columns));
}

/// The first column of the set for the iteration that the source of `op`, a tile of scales, is a
/// stage of.
FailureOr<Value> firstColumn(ConversionPatternRewriter &rewriter, fp4::pipe::CopyScalesOp op,
                             const fp4::KernelState &state) {
  Location loc = op.getLoc();
  Value first = addColumns(rewriter, loc, state.tmemBase, op.getTmemColumnAttr().getInt());
  int64_t sets = op.getSets().value_or(1), columns = op.getType().getTmemColumns();
  if (op.getSet())
    return addColumns(rewriter, loc, first, int64_t(*op.getSet()) * columns);
  if (sets == 1)
    return first;
  auto wait = op.getSource().getDefiningOp<fp4::pipe::ConsumerWaitOp>();
  if (!wait || !wait.getIteration())
    return rewriter.notifyMatchFailure(op, "expects a stage of a channel as source of its sets");
  auto channel = wait.getChannel().getDefiningOp<fp4::pipe::ChannelOp>();
  fp4::pipe::StageOfOp known = fp4::pipe::stageOf(wait.getIteration());
  bool isStage = channel && sets == channel.getDepth() && known;
  Value set = isStage ? known.getStage()
                      : arith::RemUIOp::create(rewriter, loc,
                                               fp4::pipe::countedIteration(wait.getIteration()),
                                               fp4::constantI32(rewriter, loc, sets))
                            .getResult();
  Value offset =
      arith::MulIOp::create(rewriter, loc, set, fp4::constantI32(rewriter, loc, columns));
  return arith::AddIOp::create(rewriter, loc, first, offset).getResult();
}

struct LowerCopyScales : fp4::PipePattern<fp4::pipe::CopyScalesOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(fp4::pipe::CopyScalesOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getTmemColumn())
      return rewriter.notifyMatchFailure(op, "expects the pipelined form: a tensor memory column");
    Location loc = op.getLoc();
    fp4::pipe::SharedType tile = op.getSource().getType();
    int64_t rowBlocks = tile.isHalved() ? 1 : tile.getRowBlocks(); // that are copied each
    int64_t columnBlocks = tile.getColumns() / fp4::pipe::kScaleBlockColumns;
    FailureOr<Value> target = firstColumn(rewriter, op, state);
    if (failed(target))
      return failure();
    if (op.getCopied()) { // by another warp: the tile is a place
      rewriter.replaceOp(op, *target);
      return success();
    }
    Descriptor source = descriptorAt(rewriter, op, state, adaptor.getSource(),
                                     hw::SmemDescriptor::scaleFactorBlock());
    for (int64_t k = 0; k < columnBlocks; ++k)
      fp4::emitGuarded(rewriter, loc, k, adaptor.getBlocks(), [&] {
        for (int64_t row = 0; row < rowBlocks; ++row)
          copyBlock(rewriter, op,
                    addColumns(rewriter, loc, *target, hw::scaleTileColumn(row, k, rowBlocks)),
                    source.at(rewriter, loc, indexOf(tile, row, k) * fp4::pipe::kScaleBlockBytes));
      });
    rewriter.replaceOp(op, *target);
    return success();
  }

private:
  /// The index of a scale tile in its shared tile; of the first of two halves.
  static int64_t indexOf(fp4::pipe::SharedType tile, int64_t row, int64_t k) {
    int64_t columnBlocks = tile.getColumns() / fp4::pipe::kScaleBlockColumns;
    return tile.isHalved() ? hw::scaleHalfIndex<int64_t>(0, k)
                           : hw::scaleBlockIndex(row, k, columnBlocks);
  }

  void copyBlock(OpBuilder &b, fp4::pipe::CopyScalesOp op, Value target, Value source) const {
    Value address = fp4::tmemPointer(b, op.getLoc(), target);
    bool isHalved = op.getType().isHalved();
    auto shape =
        isHalved ? NVVM::Tcgen05CpShape::SHAPE_64x128b : NVVM::Tcgen05CpShape::SHAPE_32x128b;
    auto lanes =
        isHalved ? NVVM::Tcgen05CpMulticast::WARPX2_01_23 : NVVM::Tcgen05CpMulticast::WARPX4;
    fp4::emitOnce(b, op.getLoc(), state, op, [&] {
      NVVM::Tcgen05CpOp::create(b, op.getLoc(), shape, state.ctaGroup(), lanes,
                                NVVM::Tcgen05CpSrcFormatAttr(), address, source);
    });
  }
};

struct LowerTcgen05Scaled : fp4::MmaPattern<hw::MmaForm::Tcgen05Scaled> {
  using MmaPattern::MmaPattern;

  LogicalResult lower(fp4::pipe::MmaOp op, OpAdaptor adaptor,
                      ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    hw::BlockScaledInstrDesc form = descriptorOf(op);
    if (fp4::Expected<uint32_t> bits = form.encode(); !bits)
      return rewriter.notifyMatchFailure(op, bits.error().message);

    Operands operands = collect(rewriter, op, adaptor);
    SmallVector<Value> instructions; // before the guards of a residue
    for (int64_t step = 0; step < op.getMaxSteps(); ++step) {
      form.sfaId = form.sfbId = scalesOf(op, step).id;
      instructions.push_back(instruction(rewriter, op, *form.encode()));
    }
    SmallVector<Step> steps;
    for (int64_t step = 0; step < op.getMaxSteps(); ++step)
      fp4::emitGuarded(rewriter, loc, op.getFirstStep() + step, adaptor.getExisting(), [&] {
        steps.push_back(stepOf(rewriter, op, adaptor, operands, step));
        steps.back().descriptor = instructions[step];
        if (adaptor.getExisting())
          multiply(rewriter, op, operands.accumulator, steps.back());
      });
    if (!adaptor.getExisting())
      multiply(rewriter, op, operands.accumulator, inFront(rewriter, op, steps));
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Operands of one instruction.
  struct Step {
    Value a, b, descriptor, accumulate, aScales, bScales;
  };

  /// The operands that all steps share.
  struct Operands {
    Value accumulator, bScales;
    Descriptor a, b;
    Value tmemA; ///< address of A in tensor memory; null: in shared memory
  };

  /// A step without its descriptor.
  static Step stepOf(OpBuilder &b, fp4::pipe::MmaOp op, OpAdaptor adaptor, const Operands &operands,
                     int64_t step) {
    Location loc = op.getLoc();
    auto ofB = op.getBScalesAs<fp4::pipe::TmemType>();
    int64_t ofTile = op.getFirstStep() + step;
    unsigned kBlock = scalesOf(op, step).kBlock;
    Step at;
    at.a = operands.tmemA
               ? fp4::tmemPointer(
                     b, loc, addColumns(b, loc, operands.tmemA, ofTile * (hw::mmaRowBytes / 4)))
               : slice(b, loc, operands.a, op.getAAs<fp4::pipe::SharedType>(), op.getHwDepth(),
                       ofTile);
    at.b = slice(b, loc, operands.b, op.getB().getType(), op.getHwDepth(), ofTile);
    at.aScales = scaleAddress(b, loc, adaptor.getAScales(), kBlock, 1);
    at.bScales =
        scaleAddress(b, loc, operands.bScales, kBlock, ofB.isHalved() ? 1 : ofB.getRowBlocks());
    at.accumulate = step == 0 ? fp4::accumulateOrFalse(b, loc, adaptor.getAccumulate())
                              : arith::ConstantIntOp::create(b, loc, 1, 1).getResult();
    return at;
  }

  /// `steps` with all descriptors computed here, for the whole warp. ptxas drops the election of
  /// the thread that issues the steps if nothing else depends on it.
  SmallVector<Step> inFront(OpBuilder &b, fp4::pipe::MmaOp op, ArrayRef<Step> steps) const {
    SmallVector<Step> all(steps);
    if (!fp4::isOfWholeRole(op, state) || isa<fp4::pipe::TmemType>(op.getA().getType()))
      return all;
    SmallVector<Value> tiles, scales;
    for (const Step &at : steps) {
      llvm::append_range(tiles, ValueRange{at.a, at.b});
      llvm::append_range(scales, ValueRange{at.aScales, at.bScales});
    }
    tiles = fp4::computeHere(b, op.getLoc(), tiles);
    scales = fp4::computeHere(b, op.getLoc(), scales);
    for (auto [i, at] : llvm::enumerate(all)) {
      std::tie(at.a, at.b) = std::tuple(tiles[2 * i], tiles[2 * i + 1]);
      std::tie(at.aScales, at.bScales) = std::tuple(scales[2 * i], scales[2 * i + 1]);
    }
    return all;
  }

  /// Scale tile and id of the scales of a step.
  static hw::ScaleStep scalesOf(fp4::pipe::MmaOp op, int64_t step) {
    return hw::scaleStep(unsigned(op.getStepK() / op.getBlockSize()), unsigned(step));
  }

  /// The descriptor of an instruction. ptxas writes a constant into registers of the warp for each
  /// instruction of a loop, and keeps a value that it cannot know: with bits 30 and 31 of an
  /// address in tensor memory, which are 0, because the constant has the ids of the scales.
  Value instruction(OpBuilder &b, fp4::pipe::MmaOp op, uint32_t bits) const {
    Location loc = op.getLoc();
    Operation *loops = loopsAround(op, state);
    if (!loops || !state.tmemBase)
      return fp4::constantI32(b, loc, bits);
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPoint(loops);
    Value id = arith::ShRUIOp::create(b, loc, state.tmemBase, fp4::constantI32(b, loc, 26));
    id = arith::AndIOp::create(b, loc, id, fp4::constantI32(b, loc, 3 << 4));
    return arith::OrIOp::create(b, loc, id, fp4::constantI32(b, loc, bits));
  }

  /// Issues all `steps` from one thread. If four threads were elected one by one, ptxas would copy
  /// the instruction descriptor, which is half of a pair of registers, for each.
  void multiply(OpBuilder &b, fp4::pipe::MmaOp op, Value accumulator, ArrayRef<Step> steps) const {
    auto group = op.getAccumulatorAs<fp4::pipe::TmemType>().getPair() ? NVVM::CTAGroupKind::CTA_2
                                                                      : NVVM::CTAGroupKind::CTA_1;
    auto kind = op.getAtom()->kind == hw::MmaKind::MXF8F6F4 ? NVVM::MMABlockScaleKind::MXF8F6F4
                                                            : NVVM::MMABlockScaleKind::MXF4NVF4;
    auto block = op.getBlockSize() == 16 ? NVVM::Tcgen05MMABlockScale::BLOCK16
                                         : NVVM::Tcgen05MMABlockScale::BLOCK32;
    fp4::emitOnce(b, op.getLoc(), state, op, [&] {
      for (const Step &at : steps)
        NVVM::Tcgen05MMABlockScaleOp::create(
            b, op.getLoc(), kind, group, block, NVVM::Tcgen05MMACollectorOp::DISCARD, accumulator,
            at.a, at.b, at.descriptor, at.accumulate, fp4::tmemPointer(b, op.getLoc(), at.aScales),
            fp4::tmemPointer(b, op.getLoc(), at.bScales));
    });
  }

  static Value slice(OpBuilder &b, Location loc, const Descriptor &tile, fp4::pipe::SharedType type,
                     hw::MmaDepth depth, int64_t step) {
    if (depth != hw::MmaDepth::K96)
      return tile.at(b, loc, sliceOffset(type, step, depth));
    auto [start, next] =
        hw::SmemDescriptor::k96Slice(uint32_t(step), uint32_t(type.getBytes() / type.getPanels()));
    return tile.at(b, loc, start, next);
  }

  static hw::MmaType typeOf(Type tile) {
    auto shared = dyn_cast<fp4::pipe::SharedType>(tile);
    Type element =
        shared ? shared.getElementType() : cast<fp4::pipe::TmemType>(tile).getElementType();
    return isa<Float8E4M3FNType>(element)   ? hw::MmaType::E4M3
           : isa<Float8E5M2Type>(element)   ? hw::MmaType::E5M2
           : isa<Float6E2M3FNType>(element) ? hw::MmaType::E2M3
           : isa<Float6E3M2FNType>(element) ? hw::MmaType::E3M2
                                            : hw::MmaType::E2M1;
  }

  /// The descriptor without the ids of scales.
  static hw::BlockScaledInstrDesc descriptorOf(fp4::pipe::MmaOp op) {
    hw::BlockScaledInstrDesc form;
    form.kind = op.getAtom()->kind;
    form.aType = typeOf(op.getA().getType());
    form.bType = typeOf(op.getB().getType());
    form.m = op.getAccumulatorAs<fp4::pipe::TmemType>().getRows();
    form.n = op.getAccumulatorAs<fp4::pipe::TmemType>().getColumns();
    form.depth = op.getHwDepth();
    bool isPower = isa<Float8E8M0FNUType>(op.getAScalesAs<fp4::pipe::TmemType>().getElementType());
    form.scaleType = isPower ? hw::ScaleType::UE8M0 : hw::ScaleType::UE4M3;
    return form;
  }

  Operands collect(OpBuilder &b, fp4::pipe::MmaOp op, OpAdaptor adaptor) const {
    Location loc = op.getLoc();
    auto operand = [&](Value tile, fp4::pipe::SharedType type) {
      auto form = hw::SmemDescriptor::kMajorOperand(fp4::pipe::swizzleMode(type.getLayout()));
      if (op.getKDepth() == fp4::pipe::MmaDepth::K96) {
        form.lboAbsolute = true;
        form.leadingByteOffset = 0;
      }
      return descriptorAt(b, op, state, tile, form);
    };
    Operands operands;
    operands.accumulator = fp4::tmemPointer(b, loc, adaptor.getAccumulator());
    if (isa<fp4::pipe::TmemType>(op.getA().getType()))
      operands.tmemA = adaptor.getA();
    else
      operands.a = operand(adaptor.getA(), op.getAAs<fp4::pipe::SharedType>());
    operands.b = operand(adaptor.getB(), op.getB().getType());
    operands.bScales = adaptor.getBScales();
    if (Value row = adaptor.getBScaleRow()) // 32 rows of scales share a tensor memory column
      operands.bScales =
          arith::AddIOp::create(b, loc, operands.bScales,
                                arith::ShRUIOp::create(b, loc, row, fp4::constantI32(b, loc, 5)));
    return operands;
  }

  static Value scaleAddress(OpBuilder &b, Location loc, Value tile, unsigned kBlock,
                            int64_t rowBlocks) {
    return addColumns(b, loc, tile, hw::scaleTileColumn(0, kBlock, rowBlocks));
  }
};

/// The type of 16-bit floats, or of e4m3, in a descriptor.
hw::MmaType denseTypeOf(Type element) {
  if (isa<Float8E4M3FNType>(element))
    return hw::MmaType::E4M3;
  return element.isBF16() ? hw::MmaType::BF16 : hw::MmaType::F16;
}

struct LowerTcgen05Slices : fp4::MmaPattern<hw::MmaForm::Tcgen05Slices> {
  using MmaPattern::MmaPattern;

  LogicalResult lower(fp4::pipe::MmaOp op, OpAdaptor adaptor,
                      ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto a = op.getAAs<fp4::pipe::SharedType>();
    fp4::pipe::SharedType b = op.getB().getType();
    hw::InstrDesc form;
    form.n = b.getRows();
    form.aType = form.bType = denseTypeOf(a.getElementType());
    form.transposeA = true;
    fp4::Expected<uint32_t> bits = form.encode();
    if (!bits)
      return rewriter.notifyMatchFailure(op, bits.error().message);

    hw::SwizzleMode swizzle = fp4::pipe::swizzleMode(a.getLayout());
    int64_t sliceBytes = fp4::pipe::kDenseMmaK * fp4::pipe::swizzleWidth(a.getLayout());
    Descriptor aTile = descriptorAt(rewriter, op, state, adaptor.getA(),
                                    hw::SmemDescriptor::mnMajorOperand(swizzle, a.getRows()));
    Descriptor bTile = descriptorAt(rewriter, op, state, adaptor.getB(),
                                    hw::SmemDescriptor::kMajorOperand(hw::SwizzleMode::B32));
    Value never = arith::ConstantIntOp::create(rewriter, loc, 0, 1);
    for (int64_t slice = 0; slice < a.getRows() / fp4::pipe::kDenseMmaK; ++slice) {
      Value sums = fp4::tmemPointer(
          rewriter, loc, addColumns(rewriter, loc, adaptor.getAccumulator(), slice * form.n));
      Value start = aTile.at(rewriter, loc, slice * sliceBytes);
      Value other = bTile.at(rewriter, loc, 0);
      fp4::emitOnce(rewriter, loc, state, op, [&] {
        NVVM::Tcgen05MMAOp::create(rewriter, loc, NVVM::Tcgen05MMAKind::F16,
                                   NVVM::CTAGroupKind::CTA_1, NVVM::Tcgen05MMACollectorOp::DISCARD,
                                   /*aShift=*/false, sums, start, other,
                                   fp4::constantI32(rewriter, loc, *bits), /*enableInputD=*/never,
                                   /*scaleInputD=*/Value(), /*disableOutputLane=*/Value());
      });
    }
    rewriter.eraseOp(op);
    return success();
  }
};

/// Operands of one instruction without scales.
struct DenseStep {
  Value a, b, accumulate;
};

/// Operands that all instructions of an MMA without scales share.
struct DenseForm {
  NVVM::Tcgen05MMAKind kind;
  NVVM::CTAGroupKind group;
  Value sums, descriptor;
};

/// Issues all `steps` from one thread, which is elected once.
void issueDense(OpBuilder &b, fp4::pipe::MmaOp op, const fp4::KernelState &state,
                const DenseForm &form, ArrayRef<DenseStep> steps) {
  Location loc = op.getLoc();
  fp4::emitOnce(b, loc, state, op, [&] {
    for (const DenseStep &step : steps)
      NVVM::Tcgen05MMAOp::create(b, loc, form.kind, form.group,
                                 NVVM::Tcgen05MMACollectorOp::DISCARD, /*aShift=*/false, form.sums,
                                 step.a, step.b, form.descriptor, step.accumulate,
                                 /*scaleInputD=*/Value(), /*disableOutputLane=*/Value());
  });
}

/// The operand of step `step` that says whether the instruction adds to the accumulator.
Value accumulateOf(OpBuilder &b, Location loc, Value accumulate, int64_t step) {
  return step ? arith::ConstantIntOp::create(b, loc, 1, 1).getResult()
              : fp4::accumulateOrFalse(b, loc, accumulate);
}

/// Lowers an MMA without scales: an instruction has 32 bytes of a row, 32 elements of e4m3 or 16
/// floats of 16 bits; or 64 elements of e4m3 of the double K.
struct LowerTcgen05Dense : fp4::MmaPattern<hw::MmaForm::Tcgen05Dense> {
  using MmaPattern::MmaPattern;

  LogicalResult lower(fp4::pipe::MmaOp op, OpAdaptor adaptor,
                      ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    hw::InstrDesc form;
    auto sums = op.getAccumulatorAs<fp4::pipe::TmemType>();
    auto group = sums.getPair() ? NVVM::CTAGroupKind::CTA_2 : NVVM::CTAGroupKind::CTA_1;
    form.kind = op.getAtom()->kind;
    form.m = sums.getRows();
    form.n = sums.getColumns();
    form.doubleK = op.getKDepth() == fp4::pipe::MmaDepth::Double;
    auto type = op.getAAs<fp4::pipe::SharedType>();
    form.aType = form.bType = denseTypeOf(type.getElementType());
    auto kind =
        form.kind == hw::MmaKind::F16 ? NVVM::Tcgen05MMAKind::F16 : NVVM::Tcgen05MMAKind::F8F6F4;
    fp4::Expected<uint32_t> bits = form.encode();
    if (!bits)
      return rewriter.notifyMatchFailure(op, bits.error().message);
    auto swizzle = fp4::pipe::swizzleMode(type.getLayout());
    auto operand = [&](Value tile) {
      return descriptorAt(rewriter, op, state, tile, hw::SmemDescriptor::kMajorOperand(swizzle));
    };
    Descriptor a = operand(adaptor.getA()), b = operand(adaptor.getB());
    SmallVector<DenseStep> steps;
    hw::MmaDepth depth = op.getHwDepth();
    for (int64_t step = 0; step < type.getInnerBytes() / hw::mmaRowBytesOf(depth); ++step)
      steps.push_back({a.at(rewriter, loc, sliceOffset(type, step, depth)),
                       b.at(rewriter, loc, sliceOffset(op.getB().getType(), step, depth)),
                       accumulateOf(rewriter, loc, adaptor.getAccumulate(), step)});
    DenseForm dense{kind, group, fp4::tmemPointer(rewriter, loc, adaptor.getAccumulator()),
                    fp4::constantI32(rewriter, loc, *bits)};
    issueDense(rewriter, op, state, dense, steps);
    rewriter.eraseOp(op);
    return success();
  }
};

/// Lowers an MMA with A in tensor memory: an instruction has 16 elements of K, or 32 of e4m3, which
/// are 8 columns of A and 32 bytes of a row of B, or transposed 16 rows of B, or 32.
struct LowerTcgen05TmemA : fp4::MmaPattern<hw::MmaForm::Tcgen05TmemA> {
  using MmaPattern::MmaPattern;

  LogicalResult lower(fp4::pipe::MmaOp op, OpAdaptor adaptor,
                      ConversionPatternRewriter &rewriter) const override {
    fp4::pipe::SharedType tile = op.getB().getType();
    auto swizzle = fp4::pipe::swizzleMode(tile.getLayout());
    hw::InstrDesc form;
    form.kind = op.getAtom()->kind;
    form.n = op.getTransposed() ? tile.getColumns() : tile.getRows();
    form.aType = form.bType = denseTypeOf(tile.getElementType());
    form.transposeB = op.getTransposed();
    fp4::Expected<uint32_t> bits = form.encode();
    if (!bits)
      return rewriter.notifyMatchFailure(op, bits.error().message);
    Location loc = op.getLoc();
    bool areHalves = form.kind == hw::MmaKind::F16;
    DenseForm dense{areHalves ? NVVM::Tcgen05MMAKind::F16 : NVVM::Tcgen05MMAKind::F8F6F4,
                    NVVM::CTAGroupKind::CTA_1,
                    fp4::tmemPointer(rewriter, loc, adaptor.getAccumulator()),
                    fp4::constantI32(rewriter, loc, *bits)};
    Descriptor b = descriptorAt(rewriter, op, state, adaptor.getB(),
                                op.getTransposed()
                                    ? hw::SmemDescriptor::mnMajorOperand(swizzle, tile.getRows())
                                    : hw::SmemDescriptor::kMajorOperand(swizzle));
    constexpr int64_t stepsOfTile = hw::weightTileColumns / fp4::pipe::kDenseMmaK;
    static_assert(stepsOfTile == hw::byteTileColumns / hw::byteStepColumns);
    int64_t all = op.getAAs<fp4::pipe::TmemType>().getTmemColumns() / kStepColumns;
    for (int64_t first = 0; first < all; first += stepsOfTile)
      fp4::emitGuarded(rewriter, loc, first / stepsOfTile, adaptor.getExisting(), [&] {
        SmallVector<DenseStep> steps;
        for (int64_t step = first; step < std::min(all, first + stepsOfTile); ++step)
          steps.push_back(stepOf(rewriter, op, adaptor, b, step));
        issueDense(rewriter, op, state, dense, steps);
      });
    rewriter.eraseOp(op);
    return success();
  }

private:
  static constexpr int64_t kStepColumns = hw::mmaRowBytes / 4;

  static DenseStep stepOf(OpBuilder &b, fp4::pipe::MmaOp op, OpAdaptor adaptor,
                          const Descriptor &tile, int64_t step) {
    Location loc = op.getLoc();
    fp4::pipe::SharedType type = op.getB().getType();
    int64_t elements = hw::mmaRowBytes * 8 / type.getElementType().getIntOrFloatBitWidth();
    int64_t rowsBehind = step * elements * fp4::pipe::swizzleWidth(type.getLayout());
    return {fp4::tmemPointer(b, loc, addColumns(b, loc, adaptor.getA(), step * kStepColumns)),
            tile.at(b, loc, op.getTransposed() ? rowsBehind : sliceOffset(type, step)),
            accumulateOf(b, loc, adaptor.getAccumulate(), step)};
  }
};

} // namespace

void fp4::populateMmaPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                              const KernelState &state) {
  patterns.add<LowerCopyScales, LowerTcgen05Scaled, LowerTcgen05Slices, LowerTcgen05Dense,
               LowerTcgen05TmemA>(converter, patterns.getContext(), state);
}
