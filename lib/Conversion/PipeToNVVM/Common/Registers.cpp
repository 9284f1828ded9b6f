//===- Registers.cpp - Tiles in registers become vectors of a thread ------===//
//
// Ops of the dialect keep their tensors, whose distribution says how they are lowered. Arithmetic
// and control flow between them have the elements of one thread from here on. pipe.elements stands
// where tensors and vectors meet, and becomes nothing.
//
//===----------------------------------------------------------------------===//
#include "Common/Lowering.h"

#include "InlinePtx.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Fragments.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

static bool isTile(Value value) { return bool(pipe::distributionOf(value.getType())); }

static bool isOfDialect(Operation *op) {
  return isa_and_present<pipe::PipeDialect>(op->getDialect());
}

/// Returns true when a tensor stays the type of `value`: a result of the dialect, or an argument of
/// the kernel.
static bool keepsTensor(Value value) {
  if (Operation *op = value.getDefiningOp())
    return isOfDialect(op);
  return isa<gpu::GPUFuncOp>(cast<BlockArgument>(value).getOwner()->getParentOp());
}

/// Checks that `op`, of another dialect, does the same to the elements of each thread.
static LogicalResult checkElementwise(Operation *op) {
  if (llvm::none_of(op->getOperands(), isTile) && llvm::none_of(op->getResults(), isTile))
    return success();
  if (auto constant = dyn_cast<arith::ConstantOp>(op);
      constant && !isa<SplatElementsAttr>(constant.getValue()))
    return withNote(op->emitOpError("of a tile in registers must have one number for all elements"),
                    "write dense<NUMBER>, or load numbers with pipe.fetch");
  if (OpTrait::hasElementwiseMappableTraits(op) ||
      isa<arith::ConstantOp, tensor::SplatOp, scf::ForOp, scf::IfOp, scf::YieldOp>(op))
    return success();
  return withNote(op->emitOpError("must be elementwise to take or give a tile in registers"),
                  "take the elements of a thread with pipe.elements");
}

/// The registers that a thread has of a tile: words of operand A, or elements.
static VectorType registersOf(Type tile) {
  return pipe::isRoundedA(tile) ? pipe::wordsOfThread(tile) : pipe::vectorOfThread(tile);
}

/// Gives ops of other dialects the vector of `value`.
static void leaveDialect(Value value) {
  if (!isTile(value) || llvm::all_of(value.getUsers(), isOfDialect))
    return;
  OpBuilder b(value.getContext());
  b.setInsertionPointAfterValue(value);
  Value vector = pipe::ElementsOp::create(b, value.getLoc(), registersOf(value.getType()), value);
  value.replaceUsesWithIf(vector, [](OpOperand &use) { return !isOfDialect(use.getOwner()); });
}

/// Gives `op`, of the dialect, tiles of the vectors that ops of other dialects will have.
static void enterDialect(Operation *op) {
  OpBuilder b(op);
  for (OpOperand &operand : op->getOpOperands())
    if (isTile(operand.get()) && !keepsTensor(operand.get()))
      operand.set(
          pipe::ElementsOp::create(b, op->getLoc(), operand.get().getType(), operand.get()));
}

static void takeVector(Value value) {
  if (isTile(value))
    value.setType(registersOf(value.getType()));
}

/// Rounds `elements` (f32) of a tile to the words of operand A. A thread has two neighbours of a
/// row of a fragment in each 8 columns, and a word those of two; it has columns of lanes in their
/// order.
static Value roundToWords(ImplicitLocOpBuilder &b, Value elements, pipe::FragmentKind kind) {
  using Places = std::array<int64_t, 4>;
  bool isLanes = kind == pipe::FragmentKind::Lanes;
  std::array<Places, 2> places = isLanes ? std::array<Places, 2>{{{0, 1, 2, 3}, {4, 5, 6, 7}}}
                                         : std::array<Places, 2>{{{0, 1, 4, 5}, {2, 3, 6, 7}}};
  SmallVector<Value> words;
  for (int64_t first = 0; first < cast<VectorType>(elements.getType()).getNumElements(); first += 8)
    for (const Places &ofWord : places) {
      SmallVector<Value> four;
      for (int64_t i : ofWord)
        four.push_back(vector::ExtractOp::create(b, elements, first + i));
      words.push_back(packE4M3(b, four));
    }
  auto type = VectorType::get(int64_t(words.size()), b.getI32Type());
  return vector::FromElementsOp::create(b, type, words);
}

/// Gives the results and block arguments of `op`, of another dialect, the elements of a thread.
static void takeVectors(Operation *op) {
  if (auto splat = dyn_cast<tensor::SplatOp>(op); splat && isTile(splat)) {
    OpBuilder b(op);
    splat.replaceAllUsesWith(vector::BroadcastOp::create(b, op->getLoc(),
                                                         pipe::vectorOfThread(splat.getType()),
                                                         splat.getInput())
                                 .getResult());
    return splat.erase();
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op); constant && isTile(constant)) {
    auto value = cast<DenseElementsAttr>(constant.getValue());
    Attribute ofThread = value.resizeSplat(pipe::vectorOfThread(constant.getType()));
    constant.setValueAttr(cast<TypedAttr>(ofThread));
  }
  if (auto round = dyn_cast<arith::TruncFOp>(op); round && pipe::isRoundedA(round.getType())) {
    ImplicitLocOpBuilder b(op->getLoc(), op);
    round.replaceAllUsesWith(
        roundToWords(b, round.getIn(), pipe::distributionOf(round.getType()).getKind()));
    return round.erase();
  }
  llvm::for_each(op->getResults(), takeVector);
  for (Region &region : op->getRegions())
    for (Block &block : region)
      llvm::for_each(block.getArguments(), takeVector);
}

/// The words that have the elements of a vector of 16-bit floats; null of another type.
static VectorType wordsOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  bool arePairs = vector && isa<FloatType>(vector.getElementType()) &&
                  vector.getElementTypeBitWidth() == 16 && vector.getNumElements() % 2 == 0;
  return arePairs
             ? VectorType::get(vector.getNumElements() / 2, IntegerType::get(type.getContext(), 32))
             : VectorType();
}

/// Carries 16-bit floats from iteration to iteration in words of two. LLVM splits a vector of 72 or
/// 80, no power of two, into its elements, which threads would join again for each MMA.
static void carryWords(scf::ForOp loop) {
  OpBuilder b(loop);
  auto casted = [&](Value value, Type type) -> Value {
    return vector::BitCastOp::create(b, value.getLoc(), type, value);
  };
  auto carry = [&](Value value, Type elements, VectorType words) {
    value.setType(words);
    Value again = casted(value, elements);
    value.replaceAllUsesExcept(again, again.getDefiningOp());
  };
  for (auto [number, init] : llvm::enumerate(loop.getInitArgsMutable())) {
    Type elements = init.get().getType();
    VectorType words = wordsOf(elements);
    if (!words)
      continue;
    b.setInsertionPoint(loop);
    init.set(casted(init.get(), words));
    b.setInsertionPointToStart(loop.getBody());
    carry(loop.getRegionIterArg(unsigned(number)), elements, words);
    Operation *yield = loop.getBody()->getTerminator();
    b.setInsertionPoint(yield);
    yield->setOperand(unsigned(number), casted(yield->getOperand(unsigned(number)), words));
    b.setInsertionPointAfter(loop);
    carry(loop.getResult(unsigned(number)), elements, words);
  }
}

LogicalResult fp4::takeVectors(gpu::GPUFuncOp kernel) {
  SmallVector<Operation *> ofDialect, others;
  kernel.getBody().walk(
      [&](Operation *op) { (isOfDialect(op) ? ofDialect : others).push_back(op); });
  for (Operation *op : others)
    if (failed(checkElementwise(op)))
      return failure();
  llvm::for_each(kernel.getArguments(), leaveDialect);
  for (Operation *op : ofDialect)
    llvm::for_each(op->getResults(), leaveDialect);
  llvm::for_each(ofDialect, enterDialect);
  for (Operation *op : others)
    ::takeVectors(op);
  kernel.walk(carryWords);
  return success();
}

namespace {

/// The elements of a thread, or the words that have them, are the lowered form of a tile.
struct LowerElements : OpConversionPattern<pipe::ElementsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(pipe::ElementsOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Value elements = adaptor.getSource();
    Type type = getTypeConverter()->convertType(op.getType());
    if (elements.getType() != type) { // words of operand A, for an MMA that may begin earlier
      rewriter.setInsertionPointAfterValue(elements);
      elements = LLVM::BitcastOp::create(rewriter, op.getLoc(), type, elements);
    }
    rewriter.replaceOp(op, elements);
    return success();
  }
};

} // namespace

void fp4::populateRegisterPatterns(const TypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<LowerElements>(converter, patterns.getContext());
}
