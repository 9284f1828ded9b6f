//===- ReduceTmem.cpp - Sums of the tensor memories of a cluster -----------===//
//
// reduce of tensor memory: a thread reads the columns of its TMEM lane that another CTA adds, and
// stores them to the shared memory of that CTA, behind those of the CTAs before. The thread begins
// with the CTA behind its own, so that no CTA is sent to by all at a time. The columns of the next
// CTA are on their way from tensor memory while it stores. The columns that the thread adds itself
// are read last.
//
//===----------------------------------------------------------------------===//
#include "Common/ReductionExchange.h"
#include "Tcgen05/Lanes.h"

#include "InlinePtx.h"
#include "SmallBuilders.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace fp4;

namespace {

class TmemReduction : ReductionExchange {
public:
  TmemReduction(ImplicitLocOpBuilder &b, pipe::ReduceOp op, const KernelState &state, Value acc)
      : ReductionExchange(b, op, state), op(op), blocks(state.cluster.shape.m / (isPair() ? 2 : 1)),
        width(op.getWidth()), groupColumns(op.getTmemType().getColumns() * kGroupThreads / threads),
        place(isPair() ? mine / 2 : mine), columns(firstColumn(acc)),
        slot(stridedPointer(b, b.getLoc(), received, thread, 4 * kTogether)) {}

  /// Emits the reduction and returns the sums of this thread. `phase` is the parity of this
  /// reduction, an i32.
  Value emit(Value phase) {
    awaitAdded(phase);
    sendAll();
    SmallVector<Value> own = readOwn();
    if (sizes.adding == blocks)
      return add(own, phase);
    VectorType type = pipe::vectorOfThread(op.getSums().getType());
    return chooseValue(
        b, type, place < sizes.adding, [&] { return add(own, phase); },
        [&]() -> Value { return LLVM::PoisonOp::create(b, type); });
  }

private:
  /// Columns from `column` on of those that the CTA at `other` adds.
  struct Part {
    Int32 other;
    int64_t column;
  };

  bool isPair() { return op.getTmemType().getPair(); }

  /// The rank of the CTA that takes part at `other`.
  Int32 rankAt(Int32 other) { return isPair() ? first + other * 2 + mine % 2 : first + other; }

  void whenAdding(Int32 other, llvm::function_ref<void()> body) {
    sizes.adding == blocks ? body() : when(other < sizes.adding, body);
  }

  /// The TMEM lanes of this warp, and the first column of its warpgroup.
  Int32 firstColumn(Value acc) {
    Int32 lanes = lanesOfWarp(b, state);
    return Int32(b, acc) + lanes + groupOfThread(b, op, state) * groupColumns;
  }

  /// Columns that an instruction reads, which divide those of a CTA and those of all.
  int64_t columnsOfRead() {
    constexpr int64_t most = 32;
    return std::gcd(std::gcd(width, groupColumns), most);
  }

  /// Reads columns; the last column stands in for those that do not exist.
  SmallVector<Value> read(Part part) {
    int64_t together = columnsOfRead();
    if (state.facts
            .splitsWarps) // tcgen05.ld is aligned, and guarded stores may have split the warp
      NVVM::SyncWarpOp::create(b, constI32(b, -1));
    Int32 begin = part.other * width + part.column;
    if (blocks * width > groupColumns)
      begin = minimum(begin, Int32(b, groupColumns - together));
    Value loaded = NVVM::Tcgen05LdOp::create(b, VectorType::get(together, b.getI32Type()),
                                             /*pack=*/false, NVVM::Tcgen05LdStShape::SHAPE_32X32B,
                                             tmemPointer(b, b.getLoc(), columns + begin),
                                             /*offset=*/Value());
    SmallVector<Value> words;
    for (int64_t i = 0; i < together; ++i)
      words.push_back(LLVM::ExtractElementOp::create(b, loaded, constI32(b, i)));
    return words;
  }

  void sendAll() {
    SmallVector<Part> parts;
    for (int64_t i = 1; i < blocks; ++i)
      for (int64_t column = 0; column < width; column += columnsOfRead())
        parts.push_back({(place + i) % blocks, column});
    SmallVector<Value> next = read(parts.front());
    for (auto [i, part] : llvm::enumerate(parts)) {
      SmallVector<Value> elements = waitForLoaded(b, b.getLoc(), next);
      if (i + 1 < parts.size())
        next = read(parts[i + 1]);
      whenAdding(part.other, [&, part = part] { sendTo(part, elements); });
    }
  }

  /// Reads the columns that this CTA adds, all on their way together.
  SmallVector<Value> readOwn() {
    SmallVector<SmallVector<Value>> parts;
    for (int64_t column = 0; column < width; column += columnsOfRead())
      parts.push_back(read({place, column}));
    SmallVector<Value> own;
    for (ArrayRef<Value> part : parts)
      llvm::append_range(own, waitForLoaded(b, b.getLoc(), part));
    return own;
  }

  SmallVector<Value> asFloats(ValueRange words) {
    return llvm::map_to_vector(words, [&](Value word) -> Value {
      return arith::BitcastOp::create(b, b.getF32Type(), word);
    });
  }

  /// CTAs behind the one that adds come a place earlier.
  void sendTo(Part part, ValueRange words) {
    Int32 isBehind(b, arith::ExtUIOp::create(b, b.getI32Type(), part.other < place));
    Value ofBlock = stridedPointer(b, b.getLoc(), slot, place - isBehind, sizes.pieceBytes);
    send(asFloats(words), offsetPointer(b, b.getLoc(), ofBlock, 4 * part.column * threads),
         rankAt(part.other));
  }

  /// Four elements from `i` on of the CTA at `range`.
  Value elementsOf(int64_t range, ArrayRef<Value> own, int64_t i) {
    auto type = VectorType::get(kTogether, b.getF32Type());
    Value isOwn = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, place, Int32(b, range));
    // A CTA sends nothing to itself: in its own place it reads the elements of another CTA.
    Int32 isBefore(b, arith::ExtUIOp::create(b, b.getI32Type(), place < range));
    Int32 slotOfRange = minimum(Int32(b, range) - isBefore, Int32(b, blocks - 2));
    Value from = stridedPointer(b, b.getLoc(), slot, slotOfRange, sizes.pieceBytes);
    Value sent =
        LLVM::LoadOp::create(b, type, offsetPointer(b, b.getLoc(), from, 4 * i * threads), 16);
    Value kept = vector::FromElementsOp::create(b, type, own.slice(size_t(i), kTogether));
    return arith::SelectOp::create(b, isOwn, kept, sent);
  }

  Value add(ValueRange words, Value phase) {
    SmallVector<Value> own = asFloats(words), sums;
    awaitArrived(Int32(b, (blocks - 1) * sizes.pieceBytes / (threads / kWarp)), phase);
    for (int64_t i = 0; i < width; i += kTogether) {
      Value sum = elementsOf(0, own, i);
      for (int64_t range = 1; range < blocks; ++range)
        sum = arith::AddFOp::create(b, sum, elementsOf(range, own, i));
      for (int64_t j = 0; j < kTogether; ++j)
        sums.push_back(vector::ExtractOp::create(b, sum, j));
    }
    arriveAdded(blocks, [&](Int32 block) { return rankAt(block); });
    return vector::FromElementsOp::create(b, pipe::vectorOfThread(op.getSums().getType()), sums);
  }

  pipe::ReduceOp op;
  int64_t blocks;       ///< CTAs that take part
  int64_t width;        ///< columns that a CTA adds
  int64_t groupColumns; ///< columns of a warpgroup
  Int32 place;          ///< place of this CTA among those that take part
  Int32 columns;        ///< columns of tensor memory, the first of this warpgroup
  Value slot;           ///< place of this thread's part of the first CTA
};

struct LowerReduceTmem : PipePattern<pipe::ReduceOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::ReduceOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.isOfTmem())
      return rewriter.notifyMatchFailure(op, "reduces fragments");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value sums;
    ReductionExchange::emitInTurn(b, state, [&](Value phase) {
      sums = TmemReduction(b, op, state, adaptor.getAccumulators().front()).emit(phase);
    });
    rewriter.replaceOp(op, sums);
    return success();
  }
};

} // namespace

void fp4::populateReduceTmemPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                     const KernelState &state) {
  patterns.add<LowerReduceTmem>(converter, patterns.getContext(), state);
}
