//===- Fragments.cpp - Fragments in the frame of a thread -----------------===//
#include "Common/Fragments.h"

#include "Common/MmaPattern.h"

#include "SmallBuilders.h"

#include "fp4/ISA/StagedSums.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp4;

namespace {

/// Zeros of a fragment: an MMA that does not accumulate names the registers all the same.
struct LowerFragment : PipePattern<pipe::AccumulatorOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::AccumulatorOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    pipe::FragmentType type = op.getFragmentType();
    if (!type)
      return rewriter.notifyMatchFailure(op, "expects the pipelined form: a stage of a channel");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    int64_t count = type.getElementsPerThread();
    Value array = frameArray(b, state, count);
    storeElements(b, array, SmallVector<Value>(count, constF32(b, 0)));
    rewriter.replaceOp(op, array);
    return success();
  }
};

} // namespace

Int32 fp4::threadOfRole(ImplicitLocOpBuilder &b, Operation *op, const KernelState &state) {
  return Int32(b, state.threadIndex) - 32 * int64_t(state.roles.at(op).getFirstWarp());
}

Int32 fp4::groupOfThread(ImplicitLocOpBuilder &b, Operation *op, const KernelState &state) {
  if (state.roles.at(op).getStageThreads() == kGroupThreads)
    return Int32(b, 0);
  return threadOfRole(b, op, state) / kGroupThreads;
}

Int32 fp4::rowOfThread(Int32 thread) {
  return thread / kGroupThreads * kGroupRows + thread % kGroupThreads / 32 * 16 + thread % 32 / 4;
}

bool fp4::isMultiple(Value value, int64_t of) {
  if (APInt constant; matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue() % of == 0;
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::MulIOp>(op))
    return isMultiple(op->getOperand(0), of) || isMultiple(op->getOperand(1), of);
  return isa_and_nonnull<arith::AddIOp>(op) && isMultiple(op->getOperand(0), of) &&
         isMultiple(op->getOperand(1), of);
}

/// The array is made in the entry block, because a frame is as large as all its arrays.
Value fp4::frameArray(ImplicitLocOpBuilder &b, const KernelState &state, int64_t count) {
  OpBuilder::InsertionGuard restore(b);
  b.setInsertionPointAfterValue(state.threadIndex);
  auto type = LLVM::LLVMArrayType::get(b.getF32Type(), count);
  return LLVM::AllocaOp::create(b, LLVM::LLVMPointerType::get(b.getContext()), type,
                                constantI32(b, b.getLoc(), 1), /*alignment=*/4);
}

static Value elementPointer(ImplicitLocOpBuilder &b, Value fragment, int64_t element) {
  return offsetPointer(b, b.getLoc(), fragment, 4 * element);
}

SmallVector<Value> fp4::loadElements(ImplicitLocOpBuilder &b, Value fragment, int64_t first,
                                     int64_t count) {
  SmallVector<Value> elements;
  for (int64_t i = first; i < first + count; ++i)
    elements.push_back(LLVM::LoadOp::create(b, b.getF32Type(), elementPointer(b, fragment, i), 4));
  return elements;
}

Value fp4::loadVector(ImplicitLocOpBuilder &b, Value fragment, int64_t first, VectorType type) {
  return vector::FromElementsOp::create(b, type,
                                        loadElements(b, fragment, first, type.getNumElements()));
}

void fp4::storeElements(ImplicitLocOpBuilder &b, Value fragment, ValueRange elements) {
  for (auto [i, element] : llvm::enumerate(elements))
    LLVM::StoreOp::create(b, element, elementPointer(b, fragment, int64_t(i)), 4);
}

/// The number of an SM never has bit 31, which ptxas does not know.
Value fp4::keptConstant(ImplicitLocOpBuilder &b, const KernelState &state, uint32_t value) {
  OpBuilder::InsertionGuard restore(b);
  b.setInsertionPointAfterValue(state.threadIndex);
  Value number = NVVM::SmIdOp::create(b, b.getI32Type());
  Value none = arith::ShRUIOp::create(b, number, constantI32(b, b.getLoc(), 31));
  return arith::OrIOp::create(b, none, constantI32(b, b.getLoc(), int32_t(value)));
}

Value fp4::placeOfSums(ImplicitLocOpBuilder &b, Operation *op, const KernelState &state,
                       Value tile) {
  constexpr int64_t bytes = 4 * hw::sumsOfAccess;
  return stridedPointer(b, b.getLoc(), tile, threadOfRole(b, op, state), bytes);
}

SmallVector<Value> fp4::loadSharedWords(ImplicitLocOpBuilder &b, Value pointer, int64_t count) {
  if (count == 1)
    return {LLVM::LoadOp::create(b, b.getI32Type(), pointer, 4)};
  Value words =
      LLVM::LoadOp::create(b, VectorType::get(count, b.getI32Type()), pointer, unsigned(4 * count));
  return scalarsOf(b, words);
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
  auto some = [&] {
    for (int64_t tile = 0; tile + 1 < tiles; ++tile)
      emitWhen(b, Int32(b, tile) < Int32(b, existing), [&] { multiply(tile, 1); });
  };
  emitWhen(b, all, [&] { multiply(0, tiles); }, some);
}

void fp4::countRegisters(gpu::GPUFuncOp kernel, KernelState &state) {
  kernel.walk([&](Operation *op) {
    if (auto sums = dyn_cast<pipe::AccumulatorOp>(op); sums && sums.getFragmentType())
      state.registers.fragments += sums.getFragmentType().getElementsPerThread();
    auto scales = dyn_cast<pipe::ScalesOp>(op);
    if (scales && scales.isOfFragment() && !scales.isOfTiles())
      state.registers.scales += 2 * KernelState::kHeldScales;
  });
}

void fp4::populateFragmentPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                   const KernelState &state) {
  patterns.add<LowerFragment>(converter, patterns.getContext(), state);
}
