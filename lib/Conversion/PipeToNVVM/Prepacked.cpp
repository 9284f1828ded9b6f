//===- Prepacked.cpp - MMAs of prepacked weights --------------------------===//
//
// An MMA of prepacked weights: a thread reads its 16 bytes of a tile, the codes of four
// instructions, and the scales of its two rows, 8 bytes for nvfp4 and 4 for mxfp4
// (fp4/ISA/WeightLayout.h). The reads have no bank conflicts. All tiles of a step are read first;
// then each is converted while the tensor core multiplies those before.
//
// MXFP4 weights whose scales are small are converted with half of the multiplications. A step is
// there twice, with either conversion: wgmma must be the same for all warps of a warpgroup, so each
// warp looks at the scales of all 64 rows.
//
// leave_fragment, fetch: parts of a tile that CTAs exchange, in the order of the threads.
//
//===----------------------------------------------------------------------===//
#include "PrepackedTiles.h"

#include "InlinePtx.h"
#include "MmaPattern.h"
#include "SmallBuilders.h"
#include "WarpColumns.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp4;

namespace {

/// Instructions of K in a tile.
constexpr int64_t kSteps = hw::weightSteps;

using Powers = PackedHalves::Powers;

struct LowerMmaPrepacked : MmaPattern<hw::MmaForm::WgmmaPrepacked> {
  using MmaPattern::MmaPattern;

  LogicalResult lower(pipe::MmaOp op, OpAdaptor adaptor,
                      ConversionPatternRewriter &rewriter) const override {
    if (op.hasByteTiles() || pipe::takesWarpMmas(op))
      return failure(); // PrepackedBytes.cpp, PrepackedFew.cpp
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    forExistingTiles(b, adaptor.getExisting(), op.getAAs<pipe::SharedType>().getRows(),
                     [&](int64_t first, int64_t count) { multiply(b, op, adaptor, first, count); });
    rewriter.eraseOp(op);
    return success();
  }

private:
  void multiply(ImplicitLocOpBuilder &b, pipe::MmaOp op, OpAdaptor adaptor, int64_t first,
                int64_t count) const {
    SmallVector<PrepackedWords> inFront;
    auto loadUpTo = [&](SmallVector<PrepackedWords> &words, int64_t number, Int32 thread) {
      for (auto tile = int64_t(words.size()); tile < number; ++tile)
        words.push_back(loadPrepackedTile(b, adaptor.getA(), op.getAAs<pipe::SharedType>(), thread,
                                          first + tile));
    };
    auto multiplyBy = [&](Powers powers, Int32 thread) {
      SmallVector<PrepackedWords> words = inFront;
      loadUpTo(words, count, thread);
      if (multipliesByWarps(*state.target))
        multiplyByWarps(b, op, adaptor, words, first);
      else
        multiplyByGroups(b, op, adaptor, words, first, powers);
    };
    Int32 thread = threadOfRole(b, op, state);
    if (convertsByPowers(op, state, count)) {
      SmallVector<Value> scales = scalesOfGroup(b, op, adaptor, thread);
      loadUpTo(inFront, std::min(count, tilesInFront(op)), thread);
      branchByPowers(b, areSmall(b, scales), thread, multiplyBy);
    } else {
      multiplyBy(Powers::Any, thread);
    }
    finishMmaLoop(b, op, adaptor.getAccumulator());
  }

  /// Tiles that are read before their conversion is chosen, so that loads do not wait behind the
  /// choice. GEMMs of 128 columns have no registers for them (notebook/weight-limits.md).
  static int64_t tilesInFront(pipe::MmaOp op) {
    constexpr int64_t fewColumns = 32, manyColumns = 128;
    int64_t columns = op.getB().getType().getRows();
    return columns <= fewColumns ? 1 : columns < manyColumns ? 2 : 0;
  }

  /// The scales of all rows of this warpgroup, and of all tiles: each lane has those of a pair of
  /// rows.
  static SmallVector<Value> scalesOfGroup(ImplicitLocOpBuilder &b, pipe::MmaOp op,
                                          OpAdaptor adaptor, Int32 thread) {
    pipe::SharedType type = op.getAAs<pipe::SharedType>();
    Int32 pair = thread / kGroupThreads * (kGroupRows / 2) + thread % 32;
    SmallVector<Value> words;
    for (int64_t tile = 0; tile < type.getRows(); ++tile)
      llvm::append_range(words, loadPairScales(b, adaptor.getA(), type, pair, tile));
    return words;
  }

  /// Multiplies the tiles from `first` on, which have `words`. A tile is converted while the tensor
  /// core multiplies the tiles before.
  void multiplyByGroups(ImplicitLocOpBuilder &b, pipe::MmaOp op, OpAdaptor adaptor,
                        ArrayRef<PrepackedWords> words, int64_t first, Powers powers) const {
    PackedHalves halves = halvesOf(b, op, state);
    multiplyParts(b, op, adaptor, state, {first, int64_t(words.size()), kSteps}, [&](int64_t i) {
      return halves.convertTile(words[size_t(i)].codes, words[size_t(i)].scales, powers);
    });
  }

  /// Multiplies the tiles from `first` on with mma.sync.
  void multiplyByWarps(ImplicitLocOpBuilder &b, pipe::MmaOp op, OpAdaptor adaptor,
                       ArrayRef<PrepackedWords> words, int64_t first) const {
    WarpColumns columns(b, adaptor.getB(), op.getB().getType());
    PackedHalves halves = halvesOf(b, op, state);
    SmallVector<Value> sums =
        loadAccumulator(b, op.getAccumulatorAs<pipe::FragmentType>(), adaptor.getAccumulator(),
                        adaptor.getAccumulate(), first == 0);
    for (auto [i, ofTile] : llvm::enumerate(words))
      columns.multiplyAll(halves.convertTile(ofTile.codes, ofTile.scales),
                          (first + int64_t(i)) * kSteps, sums);
    emitProxyFence(b, op.getLoc()); // earlier reads, before loads that follow
    storeElements(b, adaptor.getAccumulator(), sums);
  }
};

//===----------------------------------------------------------------------===//
// Parts of a fragment
//===----------------------------------------------------------------------===//

constexpr int64_t kTogether = 4;

/// The address of elements i to i + 3 of this thread.
Value partPointer(ImplicitLocOpBuilder &b, Operation *op, const KernelState &state,
                  pipe::GlobalType type, Value workspace, Value row, int64_t column, int64_t i) {
  int64_t threads = state.roles.at(op).getNumThreads();
  Value line = stridedPointer(b, op->getLoc(), workspace, row, type.getRowPitch());
  Value first = offsetPointer(b, op->getLoc(), line, 4 * (column + i * threads));
  return stridedPointer(b, op->getLoc(), first, threadOfRole(b, op, state), 4 * kTogether);
}

struct LowerLeaveFragment : PipePattern<pipe::LeaveFragmentOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::LeaveFragmentOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    int64_t count = pipe::vectorOfThread(op.getValue().getType()).getNumElements();
    for (int64_t i = 0; i < count; i += kTogether) {
      Value pointer = partPointer(b, op, state, op.getDest().getType(), adaptor.getDest(),
                                  adaptor.getRow(), op.getColumn(), i);
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
    if (op.getColumn())
      return rewriter.notifyMatchFailure(op, "fetches rows of threads");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    VectorType type = pipe::vectorOfThread(op.getResult().getType());
    auto part = VectorType::get(kTogether, b.getF32Type());
    SmallVector<Value> elements;
    for (int64_t i = 0; i < type.getNumElements(); i += kTogether) {
      Value pointer = partPointer(b, op, state, op.getSource().getType(), adaptor.getSource(),
                                  adaptor.getRow(), int64_t(*op.getFirst()), i);
      Value four = LLVM::LoadOp::create(b, part, pointer, 4 * kTogether);
      for (int64_t j = 0; j < kTogether; ++j)
        elements.push_back(vector::ExtractOp::create(b, four, j));
    }
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, type, elements);
    return success();
  }
};

} // namespace

/// Parts that the tensor core multiplies while the next one is converted. Each part has registers
/// of its own, which an iteration of a loop writes again: two parts may run on if the iteration has
/// four. With 16-bit floats, running on was slower (notebook/gemm-weights.md).
static int64_t partsAhead(pipe::MmaOp op, int64_t count) {
  constexpr int64_t fewest = 4;
  return op.getWithoutPowers() && count >= fewest ? 2 : 1;
}

void fp4::multiplyParts(ImplicitLocOpBuilder &b, pipe::MmaOp op, pipe::MmaOp::Adaptor adaptor,
                        const KernelState &state, WeightParts parts,
                        llvm::function_ref<SmallVector<Value>(int64_t)> convert) {
  pipe::SharedType type = op.getB().getType();
  WarpgroupMma product;
  product.element = type.getElementType();
  product.columns = type.getRows();
  product.accumulate = accumulateOrFalse(b, b.getLoc(), adaptor.getAccumulate());
  product.b = uniformDescriptor(b, adaptor.getB());
  product.isUniform = true;
  Value fragment = adaptor.getAccumulator();
  SmallVector<Value> sums = loadElements(
      b, fragment, 0, op.getAccumulatorAs<pipe::FragmentType>().getElementsPerThread());
  for (int64_t i = 0; i < parts.count; ++i) {
    if (parts.first + i > 0)
      product.accumulate = arith::ConstantOp::create(b, b.getBoolAttr(true));
    product.a = convert(i);
    product.bOffsets = instructionOffsets(type, (parts.first + i) * parts.steps, parts.steps);
    bool goesOn = i + 1 < parts.count || op.goesOn();
    product.pending = goesOn ? partsAhead(op, parts.count) : 0;
    sums = multiplyWarpgroup(b, sums, product);
    if (i == 0) // the reads of weights before loads that follow, while the tensor core is busy
      emitProxyFence(b, op.getLoc());
  }
  storeElements(b, fragment, sums);
}

PackedHalves fp4::halvesOf(ImplicitLocOpBuilder &b, pipe::MmaOp op, const KernelState &state) {
  return halvesOf(b, op.getAAs<pipe::SharedType>(), op.getB().getType().getElementType(), state);
}

PackedHalves fp4::halvesOf(ImplicitLocOpBuilder &b, pipe::SharedType weights, Type element,
                           const KernelState &state) {
  int64_t block = blockOfWeights(weights);
  Value upperBits;
  if (PackedHalves::needsUpperBits(block, element))
    upperBits = keptConstant(b, state, PackedHalves::kUpperBits);
  return {b, block, element, upperBits};
}

PrepackedWords fp4::loadPrepackedTile(ImplicitLocOpBuilder &b, Value weights, pipe::SharedType type,
                                      Int32 thread, int64_t number) {
  Value tile = offsetPointer(b, b.getLoc(), weights, number * type.getInnerBytes());
  return {loadSharedWords(b, stridedPointer(b, b.getLoc(), tile, thread, hw::weightThreadBytes), 4),
          loadPairScales(b, weights, type, thread / 4, number)};
}

SmallVector<Value> fp4::loadPairScales(ImplicitLocOpBuilder &b, Value weights,
                                       pipe::SharedType type, Int32 pair, int64_t number) {
  int64_t offset = number * type.getInnerBytes() + hw::weightCodeBytes;
  int64_t count = PackedHalves::numScaleWords(blockOfWeights(type));
  Value scales = offsetPointer(b, b.getLoc(), weights, offset);
  return loadSharedWords(b, stridedPointer(b, b.getLoc(), scales, pair, 4 * count), count);
}

bool fp4::convertsByPowers(pipe::MmaOp op, const KernelState &state, int64_t count) {
  pipe::SharedType weights = op.getAAs<pipe::SharedType>();
  return blockOfWeights(weights) == 32 && op.getB().getType().getElementType().isBF16() &&
         count == weights.getRows() && !multipliesByWarps(*state.target);
}

Value fp4::areSmall(ImplicitLocOpBuilder &b, ValueRange words) {
  Int32 others(b, 0);
  for (Value word : words)
    others = others | hw::powersThatAreNotSmall(Int32(b, word));
  Value none = others < 1;
  return NVVM::VoteSyncOp::create(b, b.getI1Type(), Int32(b, -1), none, NVVM::VoteSyncKind::all);
}

/// Branches between the two conversions. LLVM would move loads and shifts that both ways have in
/// front of the branch, where they take registers; a thread number hidden from LLVM makes them
/// different.
void fp4::branchByPowers(ImplicitLocOpBuilder &b, Value areSmall, Int32 thread,
                         llvm::function_ref<void(PackedHalves::Powers, Int32 thread)> body) {
  auto branch = scf::IfOp::create(b, areSmall, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard restore(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body(Powers::Small, thread);
  b.setInsertionPointToStart(branch.elseBlock());
  body(Powers::Any, Int32(b, computeHere(b, b.getLoc(), Value(thread)).front()));
}

SmallVector<Value> fp4::loadAccumulator(ImplicitLocOpBuilder &b, pipe::FragmentType type,
                                        Value fragment, Value accumulate, bool isFirst) {
  SmallVector<Value> sums = loadElements(b, fragment, 0, type.getElementsPerThread());
  return isFirst ? orZeros(b, accumulate, sums) : sums;
}

SmallVector<Value> fp4::orZeros(ImplicitLocOpBuilder &b, Value accumulate,
                                SmallVector<Value> elements) {
  if (accumulate && matchPattern(accumulate, m_One()))
    return elements;
  Value isKept = accumulateOrFalse(b, b.getLoc(), accumulate);
  for (Value &element : elements)
    element = arith::SelectOp::create(b, isKept, element, constF32(b, 0));
  return elements;
}

void fp4::forExistingTiles(ImplicitLocOpBuilder &b, Value existing, int64_t tiles,
                           llvm::function_ref<void(int64_t first, int64_t count)> multiply) {
  if (!existing)
    return multiply(0, tiles);
  Value all = arith::CmpIOp::create(b, arith::CmpIPredicate::uge, existing, Int32(b, tiles));
  auto branch = scf::IfOp::create(b, all, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard restore(b);
  b.setInsertionPointToStart(branch.thenBlock());
  multiply(0, tiles);
  b.setInsertionPointToStart(branch.elseBlock());
  for (int64_t tile = 0; tile + 1 < tiles; ++tile) {
    Value exists = Int32(b, tile) < Int32(b, existing);
    auto one = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(one.thenBlock());
    multiply(tile, 1);
  }
}

//===----------------------------------------------------------------------===//
// MMAs that go on between iterations
//===----------------------------------------------------------------------===//

void fp4::finishMmaLoop(ImplicitLocOpBuilder &b, pipe::MmaOp product, Value fragment) {
  if (product.getChain() != pipe::MmaChain::UntilIteration)
    return;
  OpBuilder::InsertionGuard restore(b);
  b.setInsertionPointAfter(product->getParentOfType<scf::ForOp>());
  int64_t count = product.getAccumulatorAs<pipe::FragmentType>().getElementsPerThread();
  storeElements(b, fragment, waitForGemms(b, loadElements(b, fragment, 0, count)));
}

void fp4::populatePrepackedPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                    const KernelState &state) {
  patterns.add<LowerMmaPrepacked, LowerLeaveFragment, LowerFetchFragment>(
      converter, patterns.getContext(), state);
}
