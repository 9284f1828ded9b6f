//===- RecognizeAttention.cpp - Attention in plain linalg ------------------===//
//
// Two contractions with a softmax between them are fp4.attention: products of queries and keys in
// f32, maybe times a number and with a causal mask; linalg.softmax, or the maximum, exponentials,
// sum and quotients that it decomposes to; powers rounded to the type of queries; products of these
// and values in f32, and their rounding. Sums and roundings of the kernel have another order, and
// lie within the bound of attention (include/fp4/Numerics/Attention.h).
//
//===----------------------------------------------------------------------===//
#include "Fusions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"

#include <cmath>

using namespace mlir;
using namespace fp4;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Returns true where every element of `value` is a number for which `isIt` holds.
bool isAll(Value value, llvm::function_ref<bool(const APFloat &)> isIt) {
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    value = fill.getInputs()[0];
  FloatAttr number;
  if (matchPattern(value, m_Constant(&number)))
    return isIt(number.getValue());
  DenseFPElementsAttr all;
  return matchPattern(value, m_Constant(&all)) && all.isSplat() &&
         isIt(all.getSplatValue<APFloat>());
}
bool isZero(const APFloat &number) { return number.isZero(); }
/// Minus infinity, or the least finite number, with which reductions begin, too.
bool isLeast(const APFloat &number) {
  return number.isNegative() && (number.isInfinity() || number.isLargest());
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

/// A contraction of f32 from zero, and which loops its dimensions are.
struct Product {
  linalg::LinalgOp op;
  linalg::ContractionDimensions loops;

  /// The loops of the dimensions of an operand; that of the result is the last.
  SmallVector<unsigned> loopsOf(unsigned operand) {
    return llvm::map_to_vector(op.getIndexingMapsArray()[operand].getResults(),
                               [](AffineExpr e) { return cast<AffineDimExpr>(e).getPosition(); });
  }
};

std::optional<Product> productOf(Value value) {
  auto op = value.getDefiningOp<linalg::LinalgOp>();
  if (!op || op.getNumDpsInputs() != 2 || !linalg::isaContractionOpInterface(op) ||
      !typeOf(value).getElementType().isF32() || !isAll(op.getDpsInits()[0], isZero))
    return std::nullopt;
  FailureOr<linalg::ContractionDimensions> loops = linalg::inferContractionDims(op);
  if (failed(loops) || loops->m.size() != 1 || loops->n.size() != 1 || loops->k.size() != 1)
    return std::nullopt;
  return Product{op, *loops};
}

//===----------------------------------------------------------------------===//
// Elementwise operations
//===----------------------------------------------------------------------===//

/// An operation whose elements are those at the same place of operands, or of their rows.
linalg::GenericOp parallel(Value value, unsigned inputs) {
  auto op = value.getDefiningOp<linalg::GenericOp>();
  if (!op || op.getNumDpsInputs() != inputs || op->getNumResults() != 1 ||
      op.getNumParallelLoops() != op.getNumLoops() ||
      !op.getIndexingMapsArray().back().isIdentity())
    return {};
  return op;
}

/// Returns true for the map of rows: all dimensions but the last.
bool isOfRows(AffineMap map) {
  unsigned rank = map.getNumDims();
  return map.getNumResults() + 1 == rank &&
         map == AffineMap::getMultiDimIdentityMap(rank, map.getContext()).getMajorSubMap(rank - 1);
}

Value yielded(linalg::GenericOp op) { return op.getBody()->getTerminator()->getOperand(0); }

/// The input of an operation that only rounds it; else `value`.
Value beforeRounding(Value value) {
  auto op = parallel(value, 1);
  auto rounding = op ? yielded(op).getDefiningOp<arith::TruncFOp>() : arith::TruncFOp();
  bool isIt = rounding && rounding.getIn() == op.getBody()->getArgument(0) &&
              op.getIndexingMapsArray()[0].isIdentity();
  return isIt ? op.getDpsInputs()[0] : value;
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

/// The operand of a reduction of the last dimension by `Op`, from a number for which `begin` holds.
template <typename... Ops>
Value reducedRows(Value value, llvm::function_ref<bool(const APFloat &)> begin) {
  auto op = value.getDefiningOp<linalg::LinalgOp>();
  if (!op || op.getNumDpsInputs() != 1 || op.getNumReductionLoops() != 1 ||
      !isOfRows(op.getIndexingMapsArray().back()) || !op.getIndexingMapsArray()[0].isIdentity() ||
      !isAll(op.getDpsInits()[0], begin))
    return {};
  Operation *last = op.getBlock()->getTerminator()->getOperand(0).getDefiningOp();
  bool combines =
      last && isa<Ops...>(last) &&
      llvm::all_of(last->getOperands(), [](Value x) { return isa<BlockArgument>(x); }) &&
      last->getOperand(0) != last->getOperand(1);
  return combines ? op.getDpsInputs()[0] : Value();
}

/// The operands of an operation of `value` with a number of each row: Op(element, number).
template <typename Op> std::pair<Value, Value> withRows(Value value, bool isExponential) {
  auto op = parallel(value, 2);
  if (!op || !op.getIndexingMapsArray()[0].isIdentity() || !isOfRows(op.getIndexingMapsArray()[1]))
    return {};
  Value element = yielded(op);
  if (isExponential) {
    auto power = element.getDefiningOp<math::ExpOp>();
    element = power ? power.getOperand() : Value();
  } else if (auto rounding = element.getDefiningOp<arith::TruncFOp>()) {
    element = rounding.getIn();
  }
  auto combined = element ? element.getDefiningOp<Op>() : Op();
  if (!combined || combined.getLhs() != op.getBody()->getArgument(0) ||
      combined.getRhs() != op.getBody()->getArgument(1))
    return {};
  return {op.getDpsInputs()[0], op.getDpsInputs()[1]};
}

/// The scores whose softmax `value` is; null where it is none.
Value scoresOf(Value value) {
  if (auto softmax = value.getDefiningOp<linalg::SoftmaxOp>())
    return int64_t(softmax.getDimension()) + 1 == typeOf(value).getRank() ? softmax.getInput()
                                                                          : Value();
  auto [powers, sum] = withRows<arith::DivFOp>(value, /*isExponential=*/false);
  if (!powers || reducedRows<arith::AddFOp>(sum, isZero) != powers)
    return {};
  auto [scores, maximum] = withRows<arith::SubFOp>(powers, /*isExponential=*/true);
  bool isShifted =
      scores && reducedRows<arith::MaximumFOp, arith::MaxNumFOp>(maximum, isLeast) == scores;
  return isShifted ? scores : Value();
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

/// Loop `loop` plus a number.
struct Place {
  unsigned loop;
  int64_t more;
};

std::optional<Place> placeOf(Value value) {
  if (auto index = value.getDefiningOp<linalg::IndexOp>())
    return Place{unsigned(index.getDim()), 0};
  if (auto cast = value.getDefiningOp<arith::IndexCastOp>())
    return placeOf(cast.getIn());
  auto sum = value.getDefiningOp<arith::AddIOp>();
  APInt number;
  if (!sum || !matchPattern(sum.getRhs(), m_ConstantInt(&number)))
    return std::nullopt;
  std::optional<Place> place = placeOf(sum.getLhs());
  if (place)
    place->more += number.getSExtValue();
  return place;
}

/// Scores behind products: times `scale`, and with a causal mask.
struct Scores {
  Value products;
  double scale = 1;
  bool causal = false;
};

/// Returns true for the condition of keys that query i sees: key j up to i + keys - queries.
bool isCausal(Value condition, RankedTensorType type, bool isHidden) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  std::optional<Place> x = compare ? placeOf(compare.getLhs()) : std::nullopt,
                       y = compare ? placeOf(compare.getRhs()) : std::nullopt;
  if (!x || !y)
    return false;
  using enum arith::CmpIPredicate;
  arith::CmpIPredicate predicate = compare.getPredicate();
  if (x->loop < y->loop) { // keys on the left
    std::swap(x, y);
    predicate = predicate == sge ? sle : predicate == sgt ? slt : predicate == sle ? sge : sgt;
  }
  if (isHidden)
    predicate = predicate == sgt ? sle : predicate == sge ? slt : eq;
  unsigned rank = unsigned(type.getRank());
  int64_t keys = type.getShape().back(), queries = type.getShape()[rank - 2];
  int64_t distance = y->more - x->more - (predicate == slt ? 1 : 0);
  return (predicate == sle || predicate == slt) && x->loop == rank - 1 && y->loop == rank - 2 &&
         distance == keys - queries;
}

/// Takes the step that `value` of a body is of its argument; returns false where it is none.
bool takeStep(Value value, Value argument, RankedTensorType type, Scores &scores) {
  if (value == argument)
    return true;
  FloatAttr number;
  if (auto product = value.getDefiningOp<arith::MulFOp>()) {
    if (!matchPattern(product.getRhs(), m_Constant(&number)))
      return false;
    scores.scale *= number.getValueAsDouble();
    return takeStep(product.getLhs(), argument, type, scores);
  }
  if (auto quotient = value.getDefiningOp<arith::DivFOp>()) {
    if (!matchPattern(quotient.getRhs(), m_Constant(&number)) || number.getValue().isZero())
      return false;
    scores.scale /= number.getValueAsDouble();
    return takeStep(quotient.getLhs(), argument, type, scores);
  }
  auto select = value.getDefiningOp<arith::SelectOp>();
  if (!select)
    return false;
  bool isHidden = isAll(select.getTrueValue(), isLeast);
  Value kept = isHidden ? select.getFalseValue() : select.getTrueValue(),
        other = isHidden ? select.getTrueValue() : select.getFalseValue();
  if (!isAll(other, isLeast) || !isCausal(select.getCondition(), type, isHidden))
    return false;
  scores.causal = true;
  return takeStep(kept, argument, type, scores);
}

/// Passes over operations between the products and the softmax.
std::optional<Scores> scoresFrom(Value value) {
  Scores scores{value};
  while (auto op = parallel(scores.products, 1)) {
    if (!op.getIndexingMapsArray()[0].isIdentity() ||
        !takeStep(yielded(op), op.getBody()->getArgument(0), typeOf(value), scores))
      return std::nullopt;
    scores.products = op.getDpsInputs()[0];
  }
  return scores;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// An order of dimensions: of batches, in front or around tokens.
enum class Order { BatchesFirst, TokensBeforeHeads };

/// The order in which an operand has batches, then `rows` and `columns`; none of two.
std::optional<Order> orderOf(ArrayRef<unsigned> loops, ArrayRef<unsigned> batches, unsigned rows,
                             unsigned columns) {
  SmallVector<unsigned> first(batches);
  first.append({rows, columns});
  if (loops == ArrayRef(first))
    return Order::BatchesFirst;
  if (batches.size() == 2 && loops == ArrayRef<unsigned>{batches[0], rows, batches[1], columns})
    return Order::TokensBeforeHeads;
  return std::nullopt;
}

/// Groups of the dimensions of a tensor of `batches` batches and two more: all batches together.
SmallVector<ReassociationIndices> groupsOf(int64_t batches) {
  SmallVector<ReassociationIndices> groups(3);
  for (int64_t i = 0; i < batches; ++i)
    groups[0].push_back(i);
  groups[1] = {batches};
  groups[2] = {batches + 1};
  return groups;
}

const SmallVector<ReassociationIndices> kOneHead = {{0}, {1, 2}, {3}};

/// An operand as batches x tokens x heads x elements: batches in front have one head each.
Value withHeads(OpBuilder &b, Location loc, Value value, Order order) {
  if (order == Order::TokensBeforeHeads)
    return value;
  int64_t batches = typeOf(value).getRank() - 2;
  if (batches > 1)
    value = tensor::CollapseShapeOp::create(b, loc, value, groupsOf(batches));
  RankedTensorType type = typeOf(value);
  ArrayRef<int64_t> shape = type.getShape();
  return tensor::ExpandShapeOp::create(b, loc, type.clone({shape[0], shape[1], 1, shape[2]}), value,
                                       kOneHead);
}

/// Attention that was found, and what its result replaces.
struct Found {
  Value query, key, value, result;
  Order order;
  Scores scores;
};

/// Why the contractions around a softmax are no attention; empty where `found` is one.
std::string match(Product &ofValues, Value softmaxed, Found &found) {
  Value before = scoresOf(beforeRounding(softmaxed));
  std::optional<Scores> scores = scoresFrom(before);
  if (!scores)
    return "scores are no products of a number, or with a causal mask that ends with the last key";
  std::optional<Product> ofKeys = productOf(scores->products);
  if (!ofKeys)
    return "scores are no contraction to f32 of two operands and one axis, from zero";
  Value result = ofValues.op->getResult(0);
  Operation *user = result.hasOneUse() ? *result.user_begin() : nullptr;
  Value rounded = user && user->getNumResults() == 1 ? user->getResult(0) : Value();
  if (!rounded || beforeRounding(rounded) != result)
    return "nothing but a rounding reads the products of values in f32";
  found = {ofKeys->op->getOperand(0),  ofKeys->op->getOperand(1),
           ofValues.op->getOperand(1), rounded,
           Order::BatchesFirst,        *scores};
  Type element = typeOf(found.query).getElementType();
  for (Value x : {found.query, found.key, found.value, softmaxed, rounded})
    if (!typeOf(x).hasStaticShape() || typeOf(x).getElementType() != element ||
        !(element.isBF16() || element.isF16()))
      return "queries, keys, values, powers and results are not all static, and all bf16 or f16";
  auto &k = ofKeys->loops, &v = ofValues.loops;
  auto of = [&](Product &product, unsigned operand, unsigned rows, unsigned columns) {
    return orderOf(product.loopsOf(operand), product.loops.batch, rows, columns);
  };
  std::optional<Order> order = of(*ofKeys, 0, k.m[0], k.k[0]);
  bool haveOrder = order && of(*ofKeys, 1, k.n[0], k.k[0]) == order &&
                   of(ofValues, 1, v.k[0], v.n[0]) == order &&
                   of(ofValues, 2, v.m[0], v.n[0]) == order;
  bool areRows = of(*ofKeys, 2, k.m[0], k.n[0]) == Order::BatchesFirst &&
                 of(ofValues, 0, v.m[0], v.k[0]) == Order::BatchesFirst;
  if (!haveOrder || !areRows)
    return "operands are not all batches x tokens x elements, or all batches x tokens x heads x "
           "elements: transpose them";
  found.order = *order;
  double scale = scores->scale;
  return scale > 0 && std::isfinite(scale) ? "" : "scores are multiplied by no positive number";
}

void replace(RewriterBase &b, const Found &found) {
  Location loc = found.result.getLoc();
  b.setInsertionPoint(found.result.getDefiningOp());
  SmallVector<Value> operands;
  for (Value operand : {found.query, found.key, found.value})
    operands.push_back(withHeads(b, loc, operand, found.order));
  SmallVector<int64_t> shape(typeOf(operands[0]).getShape());
  shape.back() = typeOf(operands[2]).getShape().back();
  Value none;
  auto attention = AttentionOp::create(
      b, loc, typeOf(operands[0]).clone(shape), /*lse=*/Type(), /*quantized=*/TypeRange(),
      operands[0], operands[1], operands[2], none, none, none, none, none, none, none, none, none,
      none, none, /*inputs=*/ValueRange(), APFloat(float(found.scores.scale)), FloatAttr(),
      found.scores.causal, IntegerAttr(), /*heads_first=*/false, KeyOrderAttr(), IntegerAttr());
  Value result = attention.getResult();
  RankedTensorType type = typeOf(found.result);
  if (found.order == Order::BatchesFirst) {
    result = tensor::CollapseShapeOp::create(b, loc, result, kOneHead);
    if (type.getRank() > 3)
      result = tensor::ExpandShapeOp::create(b, loc, type, result, groupsOf(type.getRank() - 2));
  }
  b.replaceOp(found.result.getDefiningOp(), result);
}

} // namespace

bool fp4::recognizeAttention(linalg::LinalgOp op, RewriterBase &rewriter) {
  constexpr StringLiteral name = "matmul+softmax+matmul";
  auto named = remark::RemarkOpts::name(name).category("fp4-fuse");
  if (op->getNumResults() != 1 || !isa<RankedTensorType>(op->getResult(0).getType()))
    return false;
  std::optional<Product> product = productOf(op->getResult(0));
  if (!product || !scoresOf(beforeRounding(op->getOperand(0))))
    return false;
  Found found;
  if (std::string reason = match(*product, op->getOperand(0), found); !reason.empty()) {
    remark::missed(op->getLoc(), named) << remark::reason("{0}", reason);
    return false;
  }
  replace(rewriter, found);
  remark::passed(op->getLoc(), named) << "two contractions and a softmax are one attention";
  return true;
}
