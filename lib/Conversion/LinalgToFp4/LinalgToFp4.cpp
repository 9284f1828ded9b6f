//===- LinalgToFp4.cpp - Block-scaled contractions of linalg to fp4 -------===//
//
// A contraction is recognized in three steps, and each can say why it is none:
//
//   1. loops     M and N are the dimensions of the result, Ko those of the scales behind the rows,
//                and Kb what is left
//   2. operands  by their maps: two sides and their scales, in any order
//   3. body      acc + the product of one number of each operand
//
// Then the scaling by one number that may follow becomes alpha.
//
//===----------------------------------------------------------------------===//

#include "fp4/Conversion/Ingress.h"
#include "fp4/Conversion/LinalgToFp4/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

namespace fp4 {
#define GEN_PASS_DEF_CONVERTLINALGTOFP4
#include "fp4/Conversion/LinalgToFp4/Passes.h.inc"
} // namespace fp4

using namespace mlir;
using namespace fp4;

namespace {

/// Whether somebody meant a block-scaled operation: fp4 numbers are read, or scaled.
bool looksBlockScaled(linalg::LinalgOp op) {
  auto isFp4 = [](Type type) { return isa<Float4E2M1FNType>(getElementTypeOrSelf(type)); };
  if (llvm::any_of(op->getOperandTypes(), isFp4) || llvm::any_of(op->getResultTypes(), isFp4))
    return true;
  return op.getBlock()
      ->walk([](Operation *inner) {
        return isa<arith::ScalingExtFOp, arith::ScalingTruncFOp>(inner) ? WalkResult::interrupt()
                                                                        : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The remedy of what has another form.
constexpr const char *kForm =
    "write it as linalg.generic over (M, N, Ko, Kb) with the sides (m, ko, kb) and (n, ko, kb), "
    "their scales (m, ko) and (n, ko), and a result (m, n) that begins with zero";

/// The operands of a contraction by what they are.
struct Contraction {
  unsigned m, n, outer, inner;           ///< loops
  unsigned lhs, rhs, lhsScales, rhsScales; ///< inputs
};

//===----------------------------------------------------------------------===//
// Loops and operands
//===----------------------------------------------------------------------===//

/// The loops that `map` indexes its operand by; nothing if it computes.
std::optional<SmallVector<unsigned>> loopsOf(AffineMap map) {
  SmallVector<unsigned> loops;
  for (AffineExpr expression : map.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expression);
    if (!dim)
      return std::nullopt;
    loops.push_back(dim.getPosition());
  }
  return loops;
}

/// The number of the input whose map has exactly these loops.
std::optional<unsigned> inputWith(linalg::GenericOp op, ArrayRef<unsigned> loops) {
  std::optional<unsigned> found;
  for (OpOperand *input : op.getDpsInputOperands()) {
    std::optional<SmallVector<unsigned>> its = loopsOf(op.getMatchingIndexingMap(input));
    if (!its || ArrayRef<unsigned>(*its) != loops)
      continue;
    if (found)
      return std::nullopt;
    found = input->getOperandNumber();
  }
  return found;
}

FailureOr<Contraction> matchLoops(linalg::GenericOp op) {
  auto loops = op.getIteratorTypesArray();
  using utils::IteratorType;
  if (op.getNumDpsInputs() != 4 || op.getNumDpsInits() != 1 || op->getNumResults() != 1)
    return ingress::refuse(op, "a contraction reads two sides and their scales, and has one result",
                           kForm);
  if (loops.size() != 4 || llvm::count(loops, IteratorType::parallel) != 2 ||
      llvm::count(loops, IteratorType::reduction) != 2)
    return ingress::refuse(op, "it must have two parallel loops and two reductions",
                           std::string(kForm) + "; take batches apart with tensor.extract_slice");
  std::optional<SmallVector<unsigned>> result =
      loopsOf(op.getMatchingIndexingMap(op.getDpsInitOperand(0)));
  if (!result || result->size() != 2 || loops[(*result)[0]] != IteratorType::parallel ||
      loops[(*result)[1]] != IteratorType::parallel || (*result)[0] == (*result)[1])
    return ingress::refuse(op, "the result must be indexed by (m, n)", kForm);
  Contraction found = {(*result)[0], (*result)[1], 0, 0, 0, 0, 0, 0};
  for (unsigned outer = 0; outer < 4; ++outer)
    for (unsigned inner = 0; inner < 4; ++inner) {
      if (outer == inner || loops[outer] != IteratorType::reduction ||
          loops[inner] != IteratorType::reduction)
        continue;
      auto lhs = inputWith(op, {found.m, outer, inner}), rhs = inputWith(op, {found.n, outer, inner});
      auto lhsScales = inputWith(op, {found.m, outer}), rhsScales = inputWith(op, {found.n, outer});
      if (lhs && rhs && lhsScales && rhsScales)
        return Contraction{found.m, found.n, outer, inner, *lhs, *rhs, *lhsScales, *rhsScales};
    }
  return ingress::refuse(op, "its operands are not two sides in blocks with a scale for each block",
                         kForm);
}

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

/// Adds to `factors` the block arguments whose product `value` is. Each number is exact in f32: the
/// association has no meaning.
bool collectFactors(Value value, const Contraction &contraction, Block *body,
                    SmallVectorImpl<unsigned> &factors) {
  auto argument = [&](Value of) -> std::optional<unsigned> {
    auto found = dyn_cast<BlockArgument>(of);
    return found && found.getOwner() == body ? std::optional(found.getArgNumber()) : std::nullopt;
  };
  Operation *op = value.getDefiningOp();
  if (!op || !value.getType().isF32())
    return false;
  if (auto product = dyn_cast<arith::MulFOp>(op))
    return collectFactors(product.getLhs(), contraction, body, factors) &&
           collectFactors(product.getRhs(), contraction, body, factors);
  if (auto extended = dyn_cast<arith::ExtFOp>(op)) {
    std::optional<unsigned> number = argument(extended.getIn());
    if (number)
      factors.push_back(*number);
    return number.has_value();
  }
  auto scaled = dyn_cast<arith::ScalingExtFOp>(op);
  if (!scaled)
    return false;
  std::optional<unsigned> data = argument(scaled.getIn()), scale = argument(scaled.getScale());
  bool pairs = (data == contraction.lhs && scale == contraction.lhsScales) ||
               (data == contraction.rhs && scale == contraction.rhsScales);
  if (pairs)
    factors.append({*data, *scale});
  return pairs;
}

LogicalResult matchBody(linalg::GenericOp op, const Contraction &contraction) {
  constexpr const char *form = "the body must be acc + product, where product has each side and each "
                               "scale once, in f32";
  constexpr const char *remedy =
      "use arith.extf and arith.mulf, or arith.scaling_extf of a side and its scale, to f32, and "
      "one arith.addf; other arithmetic goes into an operation behind the contraction";
  Block *body = op.getBody();
  auto sum = body->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!sum || !sum.getType().isF32())
    return ingress::refuse(op, form, remedy);
  Value acc = body->getArgument(4), product = sum.getRhs();
  if (sum.getRhs() == acc)
    product = sum.getLhs();
  else if (sum.getLhs() != acc)
    return ingress::refuse(op, form, remedy);
  SmallVector<unsigned> factors;
  if (!collectFactors(product, contraction, body, factors))
    return ingress::refuse(op, form, remedy);
  llvm::sort(factors);
  return factors == SmallVector<unsigned>{0, 1, 2, 3} ? success()
                                                      : ingress::refuse(op, form, remedy);
}

/// Whether every element of `value` is zero before the contraction adds to it.
bool isZero(Value value) {
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    return matchPattern(fill.getInputs()[0], m_AnyZeroFloat());
  return matchPattern(value, m_AnyZeroFloat());
}

//===----------------------------------------------------------------------===//
// Alpha
//===----------------------------------------------------------------------===//

/// An operation that multiplies each element of a contraction with one number.
struct Scaling {
  linalg::GenericOp op;
  Value alpha;
};

/// The operation that alone reads `result`, if it is `result * alpha`, maybe rounded.
std::optional<Scaling> matchScaling(Value result) {
  if (!result.hasOneUse())
    return std::nullopt;
  auto op = dyn_cast<linalg::GenericOp>(*result.user_begin());
  if (!op || op.getNumDpsInputs() != 2 || op->getNumResults() != 1 ||
      op.getNumParallelLoops() != 2 || op.getNumLoops() != 2)
    return std::nullopt;
  unsigned own = result.use_begin()->getOperandNumber();
  if (own > 1)
    return std::nullopt;
  Value alpha = op.getDpsInputs()[1 - own];
  auto type = dyn_cast<RankedTensorType>(alpha.getType());
  bool maps = op.getIndexingMapsArray()[own].isIdentity() &&
              op.getIndexingMapsArray()[2].isIdentity() && type && type.getRank() == 0 &&
              type.getElementType().isF32();
  Value yielded = op.getBody()->getTerminator()->getOperand(0);
  if (auto rounded = yielded.getDefiningOp<arith::TruncFOp>())
    yielded = rounded.getIn();
  auto product = yielded.getDefiningOp<arith::MulFOp>();
  if (!maps || !product)
    return std::nullopt;
  Value element = op.getBody()->getArgument(own), factor = op.getBody()->getArgument(1 - own);
  if ((product.getLhs() == element && product.getRhs() == factor) ||
      (product.getLhs() == factor && product.getRhs() == element))
    return Scaling{op, alpha};
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// [R, Ko, Kb] as [R, Ko * Kb].
FailureOr<Value> withoutBlocks(OpBuilder &b, linalg::GenericOp op, Value side) {
  auto type = dyn_cast<RankedTensorType>(side.getType());
  if (!type || type.isDynamicDim(1) || type.isDynamicDim(2))
    return ingress::refuse(op, "blocks must have static sizes", "only the rows may be dynamic");
  if (type.getDimSize(2) % 32 != 0 && !side.getDefiningOp<tensor::ExpandShapeOp>())
    return ingress::refuse(op, "a side in blocks of 16 has no buffer: two elements share a byte, and "
                               "rows of 8 bytes are not aligned",
                           "pass the side as a matrix, and make blocks of it with "
                           "tensor.expand_shape");
  return Value(tensor::CollapseShapeOp::create(b, op.getLoc(), side,
                                               SmallVector<ReassociationIndices>{{0}, {1, 2}}));
}

LogicalResult convert(linalg::LinalgOp linalgOp) {
  auto op = dyn_cast<linalg::GenericOp>(linalgOp.getOperation());
  if (!op || !op.hasPureTensorSemantics())
    return ingress::refuse(linalgOp, "it reads or makes numbers of 4 bits and is no contraction "
                                     "on tensors",
                           kForm);
  FailureOr<Contraction> contraction = matchLoops(op);
  if (failed(contraction) || failed(matchBody(op, *contraction)))
    return failure();
  if (!isZero(op.getDpsInits()[0]))
    return ingress::refuse(op, "the result must begin with zero, because a product adds to nothing",
                           "begin with a linalg.fill of 0.0, and add the other tensor behind the "
                           "contraction");
  std::optional<Scaling> scaling = matchScaling(op->getResult(0));
  linalg::GenericOp last = scaling ? scaling->op : op;
  OpBuilder b(last);
  SmallVector<Value> inputs = op.getDpsInputs();
  FailureOr<Value> lhs = withoutBlocks(b, op, inputs[contraction->lhs]);
  FailureOr<Value> rhs = failed(lhs) ? lhs : withoutBlocks(b, op, inputs[contraction->rhs]);
  if (failed(rhs))
    return failure();
  FailureOr<Value> product = ingress::convertProduct(
      b, op,
      {{*lhs, inputs[contraction->lhsScales]},
       {*rhs, inputs[contraction->rhsScales]},
       scaling ? scaling->alpha : Value(),
       cast<RankedTensorType>(last->getResult(0).getType())});
  if (failed(product))
    return failure();
  last->getResult(0).replaceAllUsesWith(*product);
  last->erase();
  if (scaling)
    op->erase();
  return success();
}

struct ConvertLinalgToFp4 : fp4::impl::ConvertLinalgToFp4Base<ConvertLinalgToFp4> {
  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> operations;
    getOperation().walk([&](linalg::LinalgOp op) {
      // A transposition may be read through (docs/Spec.md), and what has a meaning of its own later
      // is judged there.
      if (!isa<linalg::TransposeOp>(op) && looksBlockScaled(op))
        operations.push_back(op);
    });
    bool complete = true;
    for (linalg::LinalgOp op : operations) {
      if (succeeded(convert(op)))
        ++numConverted;
      else
        complete = false; // the others are reported too
    }
    if (!complete)
      signalPassFailure();
  }
};

} // namespace
