//===- FoldColumns.cpp - Slices and concatenations of columns -------------===//
//
// Programs write a rotation of halves as slices of columns and a concatenation of what they compute
// from these. Both are views that no kernel wants in memory:
//
//   concat(f(x[:, :n], x[:, n:]), g(...))  ->  one operation that reads x at c and (c + n) mod 2n,
//                                              and yields f or g by the index of its column
//   f(x[:, o:o+n])                         ->  f of x at c + o
//
// An operation on tokens, heads and columns that has such indices, or reads what all heads of a
// token share, becomes one on a matrix. The rows are heads if a neighbour has such rows, else
// tokens: a thread then has several chunks, whose loads overlap.
//
//===----------------------------------------------------------------------===//
#include "FoldColumns.h"

#include "Collect.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/IndexExpressions.h"
#include "fp4/Dialect/Utils/TensorSizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// A slice of consecutive columns of a tensor with several rows, which no buffer holds in order.
struct ColumnSlice {
  Value source;
  int64_t offset;
};

std::optional<ColumnSlice> columnSliceOf(Value value) {
  auto slice = value.getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice || slice.getSourceType().getRank() != slice.getType().getRank() ||
      slice.getType().getRank() < 2 ||
      ShapedType::isDynamic(slice.getSourceType().getShape().back()))
    return std::nullopt;
  ArrayRef<int64_t> sizes = slice.getType().getShape();
  int64_t last = int64_t(sizes.size()) - 1, offset = slice.getStaticOffsets()[last];
  bool hasRows = llvm::any_of(sizes.drop_back(), [](int64_t size) { return size != 1; });
  bool isOfColumns =
      hasRows && !ShapedType::isDynamic(offset) && !ShapedType::isDynamic(sizes[last]) &&
      slice.getStaticStrides()[last] == 1 &&
      sizes[last] != slice.getSourceType().getDimSize(last) &&
      llvm::all_of(llvm::seq(last), [&](int64_t dim) { return fp4::takesAll(slice, dim); });
  return isOfColumns ? std::optional<ColumnSlice>({slice.getSource(), offset}) : std::nullopt;
}

/// Returns true for an elementwise operation with one result and without a plan.
bool isElementwise(linalg::GenericOp op) {
  return op && op->getNumResults() == 1 && !op->hasAttr(fp4::Fp4Dialect::kPlanAttr) &&
         op.getNumParallelLoops() == op.getNumLoops() && op.hasPureTensorSemantics() &&
         op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity() &&
         fp4::whyNotElementwise(*op.getBody(), op.getNumDpsInputs()).empty();
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

/// Replaces the last dimension of a map, which is the loop of columns, by an expression of it.
AffineMap withColumn(AffineMap map, AffineExpr column) {
  SmallVector<AffineExpr> results(map.getResults());
  results.back() = column;
  return AffineMap::get(map.getNumDims(), 0, results, map.getContext());
}

bool readsColumnsInOrder(AffineMap map) {
  return map.getNumResults() &&
         map.getResults().back() == getAffineDimExpr(map.getNumDims() - 1, map.getContext());
}

/// Reads the sources of slices in place of the slices.
void foldSlices(linalg::GenericOp op, RewriterBase &rewriter) {
  if (!isElementwise(op))
    return;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  bool any = false;
  rewriter.startOpModification(op);
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap &map = maps[input->getOperandNumber()];
    std::optional<ColumnSlice> slice = columnSliceOf(input->get());
    if (!slice || !map.getResults().back().isFunctionOfDim(map.getNumDims() - 1))
      continue;
    AffineExpr column = map.getResults().back() + slice->offset;
    if (isa<AffineDimExpr>(column)) // a loop alone stands for all columns
      column = column % typeOf(slice->source).getShape().back();
    map = withColumn(map, column);
    input->set(slice->source);
    any = true;
  }
  if (!any)
    return rewriter.cancelOpModification(op);
  op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
  rewriter.finalizeOpModification(op);
}

//===----------------------------------------------------------------------===//
// Concatenations
//===----------------------------------------------------------------------===//

/// One operation for a concatenation of columns.
class Concatenation {
public:
  Concatenation(tensor::ConcatOp op, RewriterBase &rewriter) : op(op), rewriter(rewriter) {}

  void fold() {
    if (!isOfColumns())
      return;
    int64_t start = 0;
    for (Value part : partsOf(op)) {
      if (!addPart(part, start))
        return;
      start += typeOf(part).getShape().back();
    }
    build();
  }

private:
  /// Columns from `start` on: the operation that computes them, or none where they are read.
  struct Part {
    int64_t start;
    linalg::GenericOp computed;
    SmallVector<unsigned> inputs; ///< number of the new operation's input for each of `computed`
  };

  /// The parts of a concatenation, in place of those that are one themselves.
  static SmallVector<Value> partsOf(tensor::ConcatOp concat) {
    SmallVector<Value> parts;
    for (Value part : concat.getInputs()) {
      auto inner = part.getDefiningOp<tensor::ConcatOp>();
      if (inner && inner.getDim() == concat.getDim())
        llvm::append_range(parts, partsOf(inner));
      else
        parts.push_back(part);
    }
    return parts;
  }

  bool isOfColumns() {
    auto type = op.getType();
    return type.hasRank() && (type.getRank() == 2 || type.getRank() == 3) &&
           int64_t(op.getDim()) == type.getRank() - 1 && !type.isDynamicDim(type.getRank() - 1) &&
           fp4::isElementType(type.getElementType()) && llvm::all_of(partsOf(op), [](Value part) {
             return !ShapedType::isDynamic(typeOf(part).getShape().back());
           });
  }

  /// The column of the result minus `shift`, of an operand with `width` columns. Other parts find
  /// some column, too.
  AffineExpr columnOf(int64_t shift, int64_t width) {
    int64_t total = op.getType().getShape().back(), rank = op.getType().getRank();
    int64_t forward = ((-shift) % width + width) % width;
    AffineExpr column = getAffineDimExpr(rank - 1, op.getContext());
    return forward == 0 && width == total ? column : (column + forward) % width;
  }

  /// The number of the new input that reads `value` at `map`, but by columns of the result.
  std::optional<unsigned> addInput(Value value, AffineMap map, int64_t start) {
    auto isOfColumn = [&](AffineExpr index) { return index.isFunctionOfDim(map.getNumDims() - 1); };
    if (map.isFunctionOfDim(map.getNumDims() - 1)) {
      if (!readsColumnsInOrder(map) || llvm::any_of(map.getResults().drop_back(), isOfColumn))
        return std::nullopt;
      std::optional<ColumnSlice> slice = columnSliceOf(value);
      int64_t shift = start - (slice ? slice->offset : 0);
      value = slice ? slice->source : value;
      if (ShapedType::isDynamic(typeOf(value).getShape().back()))
        return std::nullopt;
      map = withColumn(map, columnOf(shift, typeOf(value).getShape().back()));
    }
    for (unsigned i = 0; i < inputs.size(); ++i)
      if (inputs[i] == value && maps[i] == map)
        return i;
    inputs.push_back(value);
    maps.push_back(map);
    return inputs.size() - 1;
  }

  bool addPart(Value value, int64_t start) {
    Part part{start, value.getDefiningOp<linalg::GenericOp>(), {}};
    auto add = [&](Value input, AffineMap map) {
      std::optional<unsigned> number = addInput(input, map, start);
      part.inputs.push_back(number.value_or(0));
      return number.has_value();
    };
    bool isAdded = true;
    if (isElementwise(part.computed)) {
      for (OpOperand *input : part.computed.getDpsInputOperands())
        isAdded &= add(input->get(), part.computed.getMatchingIndexingMap(input));
    } else {
      part.computed = {};
      isAdded = add(value, rewriter.getMultiDimIdentityMap(op.getType().getRank()));
    }
    parts.push_back(part);
    return isAdded;
  }

  /// The value of a part, from arguments of the new body.
  Value emitPart(OpBuilder &b, Part &part, Value column, ValueRange arguments) {
    if (!part.computed)
      return arguments[part.inputs.front()];
    Block &body = *part.computed.getBody();
    IRMapping values;
    for (auto [argument, input] : llvm::zip(body.getArguments(), part.inputs))
      values.map(argument, arguments[input]);
    for (Operation &step : body.without_terminator()) {
      std::optional<unsigned> loop = fp4::loopOf(step.getResult(0));
      if (loop && *loop + 1 == op.getType().getRank()) // counts from the first column of the part
        values.map(step.getResult(0), arith::SubIOp::create(b, step.getLoc(), column,
                                                            startOf(b, step.getLoc(), part)));
      else
        b.clone(step, values);
    }
    return values.lookupOrDefault(body.getTerminator()->getOperand(0));
  }

  static Value startOf(OpBuilder &b, Location loc, const Part &part) {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(int32_t(part.start)));
  }

  void emitBody(OpBuilder &b, Location loc, ValueRange arguments) {
    Value column = linalg::IndexOp::create(b, loc, op.getType().getRank() - 1);
    column = arith::IndexCastOp::create(b, loc, b.getI32Type(), column);
    Value result = emitPart(b, parts.front(), column, arguments);
    for (Part &part : MutableArrayRef(parts).drop_front()) {
      Value isBefore =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, column, startOf(b, loc, part));
      Value here = emitPart(b, part, column, arguments);
      result = arith::SelectOp::create(b, loc, isBefore, result, here);
    }
    linalg::YieldOp::create(b, loc, result);
  }

  void build() {
    rewriter.setInsertionPoint(op);
    RankedTensorType type = op.getType();
    SmallVector<Value> sizes;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (type.isDynamicDim(dim))
        sizes.push_back(tensor::DimOp::create(rewriter, op.getLoc(), op.getInputs().front(), dim));
    Value init = tensor::EmptyOp::create(rewriter, op.getLoc(), type, sizes);
    maps.push_back(rewriter.getMultiDimIdentityMap(type.getRank()));
    SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
    auto generic = linalg::GenericOp::create(
        rewriter, op.getLoc(), type, inputs, init, maps, loops,
        [&](OpBuilder &b, Location loc, ValueRange arguments) { emitBody(b, loc, arguments); });
    rewriter.replaceOp(op, generic->getResults());
  }

  tensor::ConcatOp op;
  RewriterBase &rewriter;
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  SmallVector<Part> parts;
};

//===----------------------------------------------------------------------===//
// Heads
//===----------------------------------------------------------------------===//

/// An operation on tokens, heads and columns as one on a matrix.
class Heads {
public:
  Heads(linalg::GenericOp op, RewriterBase &rewriter) : op(op), rewriter(rewriter) {}

  /// Returns true where it is one.
  bool collapse() {
    if (!isOfHeads())
      return false;
    heads = resultType().getDimSize(1);
    columns = resultType().getDimSize(2);
    bool readsColumn = !fp4::loopsReadBy(*op.getBody()).empty();
    isOfTokens = !hasHeadsBeside() && !readsTableOfHeads() &&
                 (!readsColumn || llvm::isPowerOf2_64(uint64_t(columns)));
    SmallVector<AffineMap> maps;
    for (OpOperand *input : op.getDpsInputOperands()) {
      std::optional<AffineMap> map = collapsedMap(input);
      if (!map)
        return false;
      maps.push_back(*map);
    }
    build(maps);
    return true;
  }

private:
  RankedTensorType resultType() { return typeOf(op.getResult(0)); }

  bool isOfHeads() {
    if (op.getNumLoops() != 3 || !isElementwise(op))
      return false;
    RankedTensorType type = resultType();
    bool readsOtherLoops =
        llvm::any_of(fp4::loopsReadBy(*op.getBody()), [](unsigned loop) { return loop != 2; });
    bool needsIt = llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *input) {
      AffineMap map = op.getMatchingIndexingMap(input);
      bool isOfToken = map.isFunctionOfDim(0) && !map.isFunctionOfDim(1) && map.isFunctionOfDim(2);
      return isOfToken || !map.isProjectedPermutation(/*allowZeroInResults=*/true);
    });
    return needsIt && !readsOtherLoops && !type.isDynamicDim(1) && !type.isDynamicDim(2);
  }

  SmallVector<ReassociationIndices> groups() {
    if (isOfTokens)
      return {{0}, {1, 2}};
    return {{0, 1}, {2}};
  }

  /// Returns true when a neighbour has heads as its rows: a view of such a matrix, or an operation
  /// on the same three dimensions, which may be a norm of each head.
  bool hasHeadsBeside() {
    SmallVector<ReassociationIndices> ofHeads = {{0, 1}, {2}};
    auto isOfRows = [&](Operation *neighbour) {
      auto collapse = dyn_cast_if_present<tensor::CollapseShapeOp>(neighbour);
      auto expand = dyn_cast_if_present<tensor::ExpandShapeOp>(neighbour);
      return isa_and_present<linalg::LinalgOp>(neighbour) ||
             (collapse && collapse.getReassociationIndices() == ofHeads) ||
             (expand && expand.getReassociationIndices() == ofHeads);
    };
    return llvm::any_of(op.getResult(0).getUsers(), isOfRows) ||
           llvm::any_of(op.getInputs(),
                        [&](Value input) { return isOfRows(input.getDefiningOp()); });
  }

  /// Returns true for an operand with rows that are heads of every token.
  bool readsTableOfHeads() {
    return llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *input) {
      AffineMap map = op.getMatchingIndexingMap(input);
      return map.getNumResults() != 3 && map.isFunctionOfDim(1) && !map.isFunctionOfDim(0);
    });
  }

  /// The map of an operand of the matrix operation, whose leading two dimensions of three are one;
  /// none where there is none.
  std::optional<AffineMap> collapsedMap(OpOperand *input) {
    MLIRContext *context = op.getContext();
    AffineExpr r = getAffineDimExpr(0, context), c = getAffineDimExpr(1, context);
    AffineExpr token = isOfTokens ? r : r.floorDiv(heads);
    AffineExpr head = isOfTokens ? c.floorDiv(columns) : r % heads;
    AffineExpr column = isOfTokens ? c % columns : c;
    AffineMap map = op.getMatchingIndexingMap(input);
    SmallVector<AffineExpr> results;
    for (AffineExpr index : map.getResults()) {
      if (!index.isFunctionOfDim(2) && !isa<AffineDimExpr, AffineConstantExpr>(index))
        return std::nullopt;
      results.push_back(index.replaceDims({token, head, column}));
    }
    if (results.size() != 3)
      return AffineMap::get(2, 0, results, context);
    bool hasTokens = map.isFunctionOfDim(0), hasHeads = map.isFunctionOfDim(1);
    AffineExpr row = results[0], last = results[2];
    if (!isOfTokens)
      row = hasTokens && hasHeads ? r : hasHeads ? head : row;
    else if (hasHeads) // one head after the other
      last = map.getResult(2) == getAffineDimExpr(2, context)
                 ? c
                 : head * typeOf(input->get()).getShape().back() + last;
    return AffineMap::get(2, 0, {row, last}, context);
  }

  /// A tensor with tokens, heads and columns as that of the matrix operation; another one as it is.
  Value collapsed(Value value) {
    if (typeOf(value).getRank() != 3)
      return value;
    return tensor::CollapseShapeOp::create(rewriter, op.getLoc(), value, groups());
  }

  void build(SmallVector<AffineMap> maps) {
    rewriter.setInsertionPoint(op);
    SmallVector<Value> inputs =
        llvm::map_to_vector(op.getInputs(), [&](Value input) { return collapsed(input); });
    Value init = op.getDpsInits().front(), matrix = collapsed(init);
    maps.push_back(rewriter.getMultiDimIdentityMap(2));
    SmallVector<utils::IteratorType> loops(2, utils::IteratorType::parallel);
    auto generic = linalg::GenericOp::create(rewriter, op.getLoc(), matrix.getType(), inputs,
                                             matrix, maps, loops);
    rewriter.cloneRegionBefore(op.getRegion(), generic.getRegion(), generic.getRegion().begin());
    for (auto index : llvm::to_vector(generic.getBody()->getOps<linalg::IndexOp>()))
      replaceColumn(index);
    rewriter.setInsertionPoint(op);
    rewriter.replaceOpWithNewOp<tensor::ExpandShapeOp>(
        op, resultType(), generic.getResult(0), groups(),
        tensor::getMixedSizes(rewriter, op.getLoc(), init));
  }

  /// The column of a head is that of the matrix, or its remainder by a power of two.
  void replaceColumn(linalg::IndexOp index) {
    rewriter.setInsertionPoint(index);
    Value column = linalg::IndexOp::create(rewriter, index.getLoc(), 1);
    column = arith::IndexCastOp::create(rewriter, index.getLoc(), rewriter.getI32Type(), column);
    if (isOfTokens) {
      Value mask = arith::ConstantOp::create(rewriter, index.getLoc(),
                                             rewriter.getI32IntegerAttr(int32_t(columns - 1)));
      column = arith::AndIOp::create(rewriter, index.getLoc(), column, mask);
    }
    for (Operation *user : llvm::to_vector(index->getUsers()))
      rewriter.replaceOp(user, column);
    rewriter.eraseOp(index);
  }

  linalg::GenericOp op;
  RewriterBase &rewriter;
  bool isOfTokens = false;
  int64_t heads = 0, columns = 0;
};

} // namespace

/// Removes views of views, which then leave a slice for its reader.
static LogicalResult foldViews(Operation *root) {
  RewritePatternSet patterns(root->getContext());
  tensor::populateFoldTensorEmptyPatterns(patterns);
  tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns, root->getContext());
  tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, root->getContext());
  return applyPatternsGreedily(root, std::move(patterns));
}

LogicalResult fp4::foldColumns(Operation *root) {
  IRRewriter rewriter(root->getContext());
  // A concatenation that only another one reads is a part of it.
  auto concatenations = collect<tensor::ConcatOp>(root);
  for (tensor::ConcatOp op : llvm::reverse(concatenations))
    op->use_empty() ? rewriter.eraseOp(op) : Concatenation(op, rewriter).fold();
  for (auto op : collect<linalg::GenericOp>(root))
    foldSlices(op, rewriter);
  bool anyHeads = false;
  for (auto op : collect<linalg::GenericOp>(root))
    anyHeads |= Heads(op, rewriter).collapse();
  if (!anyHeads)
    return success();
  if (failed(foldViews(root)))
    return failure();
  for (auto op : collect<linalg::GenericOp>(root)) // slices of all heads of a token
    foldSlices(op, rewriter);
  return success();
}
