//===- FloatMma.cpp - MMAs of floats as they are --------------------------===//
//
// A warpgroup multiplies 64 rows of A, in shared memory or in its registers, by B in shared memory.
// The fragment of an accumulator, rounded to 16 bits, is operand A: elements 8 i to 8 i + 7 of a
// thread, columns 16 i to 16 i + 15, are the four registers of instruction i.
//
// Rounded to 8 bits, a register of A has four elements of a row, and a thread pairs of them in
// every 8 columns: those of two tiles of 8 columns make a register (Registers.cpp), and columns are
// elements of K in the order that pipe.transpose_tile gives B. PTX ISA, "Register Fragments and
// Shared Memory Matrix Layouts" of wgmma.mma_async.
//
//===----------------------------------------------------------------------===//
#include "Common/MmaPattern.h"
#include "Wgmma/Wgmma.h"

#include "InlinePtx.h"

using namespace mlir;
using namespace fp4;

namespace {

/// Bytes of one unit of a descriptor.
constexpr int64_t kUnitBytes = 16;

struct LowerWgmmaFloat : PipePattern<pipe::MmaOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::MmaOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!isOfFloats(op) || !route::hasCore(*state.target, route::Core::Wgmma))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto remapped = [&](Value value) { return value ? rewriter.getRemappedValue(value) : Value(); };
    auto operandsOf = [&](pipe::MmaOp mma) {
      return Operands{remapped(mma.getAccumulator()), remapped(mma.getA()), remapped(mma.getB()),
                      remapped(mma.getAccumulate()), remapped(mma.getFactors())};
    };
    if (op.getChain() == pipe::MmaChain::Follows) {
      finish(b, op, operandsOf(op));
    } else {
      SmallVector<pipe::MmaOp> together = {op};
      if (op.getChain() == pipe::MmaChain::Leads)
        together.push_back(mmaLedBy(op));
      SmallVector<FloatMma, 2> products;
      for (pipe::MmaOp mma : together) {
        products.push_back(productOf(b, mma, operandsOf(mma)));
        takeWait(b, mma, rewriter, products.back());
      }
      for (auto [mma, sums] :
           llvm::zip_equal(together, multiplyFloats(b, products, turnOf(b, op, state))))
        storeElements(b, remapped(mma.getAccumulator()), sums);
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Operands of an MMA, lowered.
  struct Operands {
    Value accumulator, a, b, accumulate, factors;
  };

  FloatMma productOf(ImplicitLocOpBuilder &b, pipe::MmaOp op, const Operands &operands) const {
    pipe::SharedType tile = op.getB().getType();
    FloatMma product;
    product.element = tile.getElementType();
    product.columns = op.getAccumulatorAs<pipe::FragmentType>().getShape()[1];
    product.accumulate = operands.accumulate;
    product.transposed = op.getTransposed();
    int64_t k = int64_t(hw::mmaRowBytes) * 8 / product.element.getIntOrFloatBitWidth();
    int64_t instructions = tile.getShape()[op.getTransposed() ? 0 : 1] / k;
    takeA(b, op, operands.a, instructions, product);
    if (op.getTransposed()) {
      int64_t width = pipe::swizzleWidth(tile.getLayout());
      auto form = hw::SmemDescriptor::mnMajorOperand(pipe::swizzleMode(tile.getLayout()),
                                                     uint32_t(tile.getRows()));
      int64_t panel = int64_t(op.getBColumn()) * 2 / width;
      Value first = offsetPointer(b, b.getLoc(), operands.b, panel * tile.getRows() * width);
      product.b = wgmmaDescriptor(b, first, form);
      product.bOffsets = rowOffsets(instructions, width);
    } else {
      product.b = wgmmaDescriptor(b, operands.b, tile);
      product.bOffsets = instructionOffsets(tile, 0, instructions);
    }
    if (product.accumulate)
      product.sums = loadElements(b, operands.accumulator, 0, product.columns / 2);
    if (operands.factors)
      product.factors = scalarsOf(b, operands.factors);
    return product;
  }

  /// The wait for B that the MMA does by itself, once the one before it runs.
  void takeWait(ImplicitLocOpBuilder &b, pipe::MmaOp op, ConversionPatternRewriter &rewriter,
                FloatMma &product) const {
    auto wait = op.getB().getDefiningOp<pipe::ConsumerWaitOp>();
    if (!wait || !wait->hasAttr(pipe::kAwaitedByMmaAttr) ||
        op.getChain() != pipe::MmaChain::Follows)
      return;
    auto channel = wait.getChannel().getDefiningOp<pipe::ChannelOp>();
    ChannelStage at =
        channelStage(b, b.getLoc(), state, channel, rewriter.getRemappedValue(wait.getChannel()),
                     rewriter.getRemappedValue(wait.getIteration()));
    product.barrier = LLVM::PtrToIntOp::create(b, b.getI64Type(), at.full);
    product.parity = at.fullParity(b, b.getLoc());
  }

  /// Columns of sums that are awaited behind what threads compute meanwhile. An H200 is 3 to 5 %
  /// faster so with 256 columns, and up to 10 % slower with 64 or 128.
  static constexpr int64_t kLateColumns = 256;

  /// Awaits an MMA that began with the one before. A in registers is theirs until then.
  static void finish(ImplicitLocOpBuilder &b, pipe::MmaOp op, const Operands &operands) {
    int64_t count = op.getAccumulatorAs<pipe::FragmentType>().getElementsPerThread();
    SmallVector<Value> kept = loadElements(b, operands.accumulator, 0, count);
    if (!isa<pipe::SharedType>(op.getA().getType()))
      for (Value word : wordsOf(b, operands.a))
        kept.push_back(LLVM::BitcastOp::create(b, b.getF32Type(), word));
    bool isLate = op.getAccumulatorAs<pipe::FragmentType>().getShape()[1] >= kLateColumns;
    SmallVector<Value> done = isLate ? awaitSumsHere(b, kept) : awaitSums(b, kept);
    storeElements(b, operands.accumulator, ArrayRef(done).take_front(size_t(count)));
  }

  /// The registers of a tile of 16-bit elements, or of rounded bytes.
  static SmallVector<Value> wordsOf(ImplicitLocOpBuilder &b, Value elements) {
    auto type = cast<VectorType>(elements.getType());
    int64_t count = type.getNumElements() * type.getElementTypeBitWidth() / 32;
    Value all = elements;
    if (!type.getElementType().isInteger(32))
      all = LLVM::BitcastOp::create(b, VectorType::get(count, b.getI32Type()), elements);
    return scalarsOf(b, all);
  }

  /// The registers of A, or the descriptor of the rows of this warpgroup.
  void takeA(ImplicitLocOpBuilder &b, pipe::MmaOp op, Value a, int64_t instructions,
             FloatMma &product) const {
    auto tile = dyn_cast<pipe::SharedType>(op.getA().getType());
    if (!tile) {
      product.a = wordsOf(b, a);
      return;
    }
    int64_t width = pipe::swizzleWidth(tile.getLayout());
    Value first = offsetPointer(b, b.getLoc(), a, int64_t(op.getARow()) * width);
    Value rows =
        stridedPointer(b, b.getLoc(), first, groupOfThread(b, op, state), kGroupRows * width);
    product.a = {wgmmaDescriptor(b, rows, tile)};
    product.aOffsets = instructionOffsets(tile, 0, instructions);
  }

  /// Instructions take 16 rows each of a B whose rows are elements of K, in panels of `width`
  /// bytes.
  static SmallVector<int64_t> rowOffsets(int64_t instructions, int64_t width) {
    SmallVector<int64_t> offsets;
    for (int64_t i = 0; i < instructions; ++i)
      offsets.push_back(i * pipe::kDenseMmaK * width / kUnitBytes);
    return offsets;
  }
};

} // namespace

void fp4::populateFloatMmaPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                   const KernelState &state) {
  patterns.add<LowerWgmmaFloat>(converter, patterns.getContext(), state);
}
