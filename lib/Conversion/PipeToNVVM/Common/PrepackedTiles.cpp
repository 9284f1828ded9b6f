//===- PrepackedTiles.cpp - Reads of prepacked weights by a thread --------===//
#include "Common/PrepackedTiles.h"

#include "InlinePtx.h"
#include "PackedBytes.h"

using namespace mlir;
using namespace fp4;

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

RowsOfThread fp4::rowsOfThread(ImplicitLocOpBuilder &b, Int32 thread, Value weights, Value first,
                               Value next) {
  constexpr int64_t threadsOfTile = hw::weightTileRows / kGroupRows * kGroupThreads;
  if (!next)
    return {weights, thread};
  thread = thread + Int32(b, first) * (kGroupThreads / kGroupRows);
  return {arith::SelectOp::create(b, thread < threadsOfTile, weights, next),
          thread % threadsOfTile};
}

PrepackedWords fp4::loadPrepackedTile(ImplicitLocOpBuilder &b, Value weights, pipe::SharedType type,
                                      Int32 thread, int64_t number) {
  Value tile = offsetPointer(b, b.getLoc(), weights, number * type.getInnerBytes());
  return {loadSharedWords(b, stridedPointer(b, b.getLoc(), tile, thread, hw::weightThreadBytes), 4),
          loadPairScales(b, weights, type, thread / 4, number)};
}

PrepackedWords fp4::loadByteTile(ImplicitLocOpBuilder &b, Value weights, Int32 thread,
                                 int64_t number) {
  Value tile = offsetPointer(b, b.getLoc(), weights, number * hw::byteTileBytes);
  Int32 group = thread / kGroupThreads;
  Value codes = stridedPointer(b, b.getLoc(), tile, group, hw::byteGroupBytes);
  codes = stridedPointer(b, b.getLoc(), codes, thread % kGroupThreads, hw::byteThreadBytes);
  PrepackedWords words;
  for (int64_t half : {0, 1})
    llvm::append_range(
        words.codes,
        loadSharedWords(b, offsetPointer(b, b.getLoc(), codes, half * hw::byteHalfBytes),
                        PackedBytes::numCodeWords / 2));
  Value rows = offsetPointer(b, b.getLoc(), tile, hw::byteCodeBytes);
  words.scales = loadSharedWords(
      b, stridedPointer(b, b.getLoc(), rows, thread / 4, 4 * PackedBytes::numRowWords),
      PackedBytes::numRowWords);
  return words;
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
  body(PackedHalves::Powers::Small, thread);
  b.setInsertionPointToStart(branch.elseBlock());
  body(PackedHalves::Powers::Any, Int32(b, computeHere(b, b.getLoc(), Value(thread)).front()));
}
