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
  if (failed(loops) || loops->m.empty() || loops->m.size() > 2 || loops->n.size() != 1 ||
      loops->k.size() != 1)
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

/// The order in which an operand has batches, then `rows` and `columns`; none of two. Rows are
/// tokens, maybe behind the heads that share keys.
std::optional<Order> orderOf(ArrayRef<unsigned> loops, ArrayRef<unsigned> batches,
                             ArrayRef<unsigned> rows, unsigned columns) {
  SmallVector<unsigned> heads(batches.drop_front());
  llvm::append_range(heads, rows.drop_back());
  SmallVector<unsigned> first = {batches[0]}, tokens = {batches[0], rows.back()};
  llvm::append_range(first, heads);
  first.append({rows.back(), columns});
  llvm::append_range(tokens, heads);
  tokens.push_back(columns);
  if (loops == ArrayRef(first))
    return Order::BatchesFirst;
  bool isOrder = loops == ArrayRef(tokens) && batches.size() <= 2 && !heads.empty();
  return isOrder ? std::optional(Order::TokensBeforeHeads) : std::nullopt;
}

/// The operand whose heads `value` has several times each, side by side: the broadcast that
/// tensor.collapse_shape merges with heads, of which `behind` dimensions are behind. Null where it
/// is none.
Value beforeSharing(Value value, int64_t behind) {
  auto collapse = value.getDefiningOp<tensor::CollapseShapeOp>();
  auto op = collapse ? collapse.getSrc().getDefiningOp<linalg::LinalgOp>() : linalg::LinalgOp();
  if (!op || op.getNumDpsInputs() != 1 || op.getNumParallelLoops() != op.getNumLoops() ||
      op.getBlock()->getTerminator()->getOperand(0) != op.getBlock()->getArgument(0))
    return {};
  unsigned rank = op.getNumLoops(), shared = rank - unsigned(behind) - 1;
  AffineMap all = AffineMap::getMultiDimIdentityMap(rank, value.getContext());
  SmallVector<ReassociationIndices> groups = collapse.getReassociationIndices();
  bool isOfHeads = op.getIndexingMapsArray()[1].isIdentity() &&
                   op.getIndexingMapsArray()[0] == all.dropResult(shared) &&
                   int64_t(groups.size()) > behind &&
                   llvm::all_of(ArrayRef(groups).take_back(size_t(behind)),
                                [](const ReassociationIndices &group) { return group.size() == 1; }) &&
                   groups[groups.size() - size_t(behind) - 1].size() >= 2;
  return isOfHeads ? op.getDpsInputs()[0] : Value();
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
/// Heads of queries, and those of groups that share one of keys.
const SmallVector<ReassociationIndices> kAllHeads = {{0}, {1}, {2, 3}, {4}};

/// A tensor as `type`, whose last dimension is its own.
Value withRows(OpBuilder &b, Location loc, Value value, RankedTensorType type) {
  SmallVector<ReassociationIndices> from(2), to(2);
  auto group = [](int64_t rank, SmallVector<ReassociationIndices> &groups) {
    for (int64_t i = 0; i < rank; ++i)
      groups[i + 1 == rank].push_back(i);
  };
  group(typeOf(value).getRank(), from);
  group(type.getRank(), to);
  return tensor::ExpandShapeOp::create(
      b, loc, type, tensor::CollapseShapeOp::create(b, loc, value, from), to);
}

/// An operand as batches x tokens x heads x elements: batches in front have one head each, of
/// `lists` heads of keys where others share these, as tokens.
Value withHeads(OpBuilder &b, Location loc, Value value, Order order, int64_t lists) {
  int64_t rank = typeOf(value).getRank();
  if (order == Order::TokensBeforeHeads && rank == 5)
    return tensor::CollapseShapeOp::create(b, loc, value, kAllHeads);
  if (order == Order::TokensBeforeHeads && rank == 4)
    return value;
  if (lists && order == Order::BatchesFirst) {
    int64_t elements = typeOf(value).getShape().back();
    int64_t tokens = typeOf(value).getNumElements() / lists / elements;
    return withRows(b, loc, value, typeOf(value).clone({lists, tokens, 1, elements}));
  }
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
  int64_t lists = 0; ///< heads of keys of all batches where several of queries share each; 0: none
};

/// The order of all operands of both products; none where they have several.
std::optional<Order> orderOf(Product &ofKeys, Product &ofValues) {
  auto &k = ofKeys.loops, &v = ofValues.loops;
  // Rows of `product` in the order of scores, of which powers have the loops.
  auto rowsOf = [](Product &product, unsigned ofScores) {
    SmallVector<unsigned> rows, loops = product.loopsOf(ofScores);
    llvm::copy_if(loops, std::back_inserter(rows),
                  [&](unsigned loop) { return llvm::is_contained(product.loops.m, loop); });
    return rows;
  };
  SmallVector<unsigned> rows = rowsOf(ofKeys, 2), powers = rowsOf(ofValues, 0);
  auto of = [](Product &product, unsigned operand, ArrayRef<unsigned> rows, unsigned columns) {
    return orderOf(product.loopsOf(operand), product.loops.batch, rows, columns);
  };
  if (k.batch.empty() || rows.size() != powers.size() || k.batch.size() != v.batch.size())
    return std::nullopt;
  std::optional<Order> order = of(ofKeys, 0, rows, k.k[0]);
  auto isIt = [&](std::optional<Order> other) { // one head of keys is in any order
    return other == order || (k.batch.size() == 1 && other == Order::BatchesFirst);
  };
  bool haveOrder = order && isIt(of(ofKeys, 1, k.n[0], k.k[0])) &&
                   isIt(of(ofValues, 1, v.k[0], v.n[0])) &&
                   of(ofValues, 2, powers, v.n[0]) == order;
  bool areRows = of(ofKeys, 2, rows, k.n[0]) == Order::BatchesFirst &&
                 of(ofValues, 0, powers, v.k[0]) == Order::BatchesFirst;
  return haveOrder && areRows ? order : std::nullopt;
}

/// Finds heads of keys that several of queries share: those of a loop of their own, or what is
/// broadcast to all heads. Heads in front of tokens are tokens of one head, which see the same keys
/// without a causal mask. Returns why this is no attention, or nothing.
std::string findSharing(Found &found, bool hasLoop) {
  bool isFirst = found.order == Order::BatchesFirst, isHidden = isFirst && found.scores.causal;
  auto listsOf = [](Value key) {
    RankedTensorType type = typeOf(key);
    return ShapedType::getNumElements(type.getShape().drop_back(2));
  };
  if (hasLoop && isHidden)
    return "heads that share keys are in front of tokens behind a causal mask: transpose them";
  if (hasLoop)
    found.lists = listsOf(found.key);
  if (hasLoop || isHidden)
    return "";
  Value key = beforeSharing(found.key, isFirst ? 2 : 1),
        value = beforeSharing(found.value, isFirst ? 2 : 1);
  bool areShared = key && value && typeOf(key).getShape().drop_back() ==
                                       typeOf(value).getShape().drop_back();
  if (areShared && (isFirst || typeOf(key).getRank() == 4)) {
    found.key = key;
    found.value = value;
    found.lists = listsOf(key);
  }
  return "";
}

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
  std::optional<Order> order = orderOf(*ofKeys, ofValues);
  if (!order)
    return "operands are not all batches x tokens x elements, or all batches x tokens x heads x "
           "elements: transpose them";
  found.order = *order;
  double scale = scores->scale;
  if (!(scale > 0 && std::isfinite(scale)))
    return "scores are multiplied by no positive number";
  return findSharing(found, ofKeys->loops.m.size() > 1);
}

void replace(RewriterBase &b, const Found &found) {
  Location loc = found.result.getLoc();
  b.setInsertionPoint(found.result.getDefiningOp());
  SmallVector<Value> operands;
  for (Value operand : {found.query, found.key, found.value})
    operands.push_back(withHeads(b, loc, operand, found.order, found.lists));
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
  if (found.lists && found.order == Order::BatchesFirst) {
    result = withRows(b, loc, result, type);
  } else if (found.order == Order::TokensBeforeHeads && type.getRank() == 5) {
    result = tensor::ExpandShapeOp::create(b, loc, type, result, kAllHeads);
  } else if (found.order == Order::BatchesFirst) {
    result = tensor::CollapseShapeOp::create(b, loc, result, kOneHead);
    if (type.getRank() > 3)
      result = tensor::ExpandShapeOp::create(b, loc, type, result, groupsOf(type.getRank() - 2));
  }
  b.replaceOp(found.result.getDefiningOp(), result);
}

} // namespace

bool fp4::recognizeAttention(linalg::LinalgOp op, RewriterBase &rewriter) {
  constexpr StringLiteral name = "matmul+softmax+matmul";
  if (op->getNumResults() != 1 || !isa<RankedTensorType>(op->getResult(0).getType()))
    return false;
  std::optional<Product> product = productOf(op->getResult(0));
  if (!product || !scoresOf(beforeRounding(op->getOperand(0))))
    return false;
  Found found;
  if (std::string reason = match(*product, op->getOperand(0), found); !reason.empty())
    return missed(op, name, reason);
  replace(rewriter, found);
  return passed(op, name, "two contractions and a softmax are one attention");
}
