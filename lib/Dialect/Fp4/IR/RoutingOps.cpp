//===- RoutingOps.cpp - Choice of experts: verifiers, types ---------------===//
//
// The labels (C1), (C2), ... are those of Fp4Constraints.td and
// test/Dialect/Fp4/invalid-routing.mlir.
//
//===----------------------------------------------------------------------===//
#include "Verify.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Numerics/ExpertOrder.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::verify;

/// The most columns and results of a row, which one warp has, and the most groups.
static constexpr int64_t kMostColumns = 512, kMostResults = 16, kMostGroups = 32;
/// The most rows to which experts are padded.
static constexpr int64_t kMostMultiple = 1024;

//===----------------------------------------------------------------------===//
// top_k
//===----------------------------------------------------------------------===//

/// M x k of `scores`, where it is a matrix.
static RankedTensorType bestOfRows(RankedTensorType scores, int64_t k, Type element) {
  int64_t rows = scores.getRank() ? scores.getDimSize(0) : ShapedType::kDynamic;
  return RankedTensorType::get({rows, std::max<int64_t>(k, 0)}, element);
}

LogicalResult TopKOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                       Adaptor adaptor, SmallVectorImpl<Type> &types) {
  RankedTensorType scores = rankedType(adaptor.getScores());
  types.push_back(bestOfRows(scores, adaptor.getK(), Float32Type::get(context)));
  types.push_back(bestOfRows(scores, adaptor.getK(), IntegerType::get(context, 32)));
  return success();
}

bool TopKOp::isCompatibleReturnTypes(TypeRange, TypeRange) { return true; }

/// Checks an integer attribute. A range that is empty has been reported before.
static LogicalResult verifyRange(Operation *op, StringRef name, int64_t value, int64_t least,
                                 int64_t most, StringRef note) {
  if (least <= value && value <= most)
    return success();
  return withNote(op->emitOpError("attribute '")
                      << name << "' must be " << least << " to " << most << ", but got " << value,
                  note);
}

static LogicalResult verifyGroupsOfColumns(TopKOp op, int64_t columns) {
  int64_t groups = op.getNumGroups();
  if (failed(verifyRange(op, "num_groups", groups, 1, kMostGroups, // top_k (C4)
                         "leave it out where scores have no groups")))
    return failure();
  int64_t size = columns / groups;
  if (groups > 1 && (columns % groups || size < 2 || !llvm::isPowerOf2_64(uint64_t(size))))
    return withNote(op.emitOpError("attribute 'num_groups' must make groups of a power of two of "
                                   "columns, at least 2, but got ") // top_k (C4)
                        << groups << " of " << columns << " columns",
                    "choose groups by operations before, and set scores of others to -inf");
  if (failed(verifyRange(op, "top_groups", op.getTopGroups(), 1, groups, // top_k (C5)
                         "it counts the groups that are chosen")))
    return failure();
  if (op.getK() <= op.getTopGroups() * size)
    return success();
  return withNote(op.emitOpError("attribute 'top_groups' must be of so many groups that they have "
                                 "'k' columns, but got ") // top_k (C5)
                      << op.getTopGroups() << " of " << size << " columns for " << op.getK(),
                  "choose more groups, or fewer columns");
}

LogicalResult TopKOp::verify() {
  Checked scores = operand(*this, "scores", getScores());
  if (failed(verifyRealElements(scores)) || failed(verifyMatrix(scores))) // top_k (C1) (C2)
    return failure();
  int64_t columns = scores.type.getDimSize(1);
  if (columns < 1 || columns > kMostColumns) // top_k (C2)
    return withNote(scores.must("have 1 to 512 columns"),
                    "take the best of parts of a row, and then the best of these");
  if (getWeights()) {
    Checked weights = operand(*this, "weights", getWeights());
    if (failed(verifyRealElements(weights)) ||                                       // top_k (C1)
        failed(verifyType(weights, scores.type.clone(weights.type.getElementType()), // top_k (C2)
                          "each score has a weight")))
      return failure();
  }
  if (failed(verifyRange(*this, "k", getK(), 1, std::min(columns, kMostResults), // top_k (C3)
                         "a thread has the results of a row, up to 16 columns")) ||
      failed(verifyGroupsOfColumns(*this, columns)))
    return failure();
  Builder b(getContext());
  if (failed(verifyType(result(*this, "values", getValues()), // top_k (C6)
                        bestOfRows(scores.type, getK(), b.getF32Type()))))
    return failure();
  return verifyType(result(*this, "ids", getIds()), // top_k (C6)
                    bestOfRows(scores.type, getK(), b.getI32Type()));
}

//===----------------------------------------------------------------------===//
// expert_order
//===----------------------------------------------------------------------===//

/// The rows that the ids of `type` have at most; dynamic, or not a number, where these are.
static int64_t rowsOfExperts(RankedTensorType ids, int64_t experts, int64_t multiple) {
  int64_t pairs = 0;
  bool isKnown = ids.getRank() == 2 && ids.hasStaticShape() &&
                 !llvm::MulOverflow(ids.getDimSize(0), ids.getDimSize(1), pairs);
  int64_t padding = 0, rows = 0;
  bool fits = isKnown && !llvm::MulOverflow(experts, multiple - 1, padding) &&
              !llvm::AddOverflow(pairs, padding, rows);
  return fits && rows >= 0 ? rows : ShapedType::kDynamic;
}

LogicalResult ExpertOrderOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                              Adaptor adaptor, SmallVectorImpl<Type> &types) {
  RankedTensorType ids = rankedType(adaptor.getIds());
  Type element = IntegerType::get(context, 64);
  int64_t experts = std::clamp<int64_t>(adaptor.getExperts(), 0, kMostColumns);
  types.push_back(RankedTensorType::get({experts + 1}, element));
  types.push_back(ids.clone(element));
  types.push_back(
      RankedTensorType::get({rowsOfExperts(ids, experts, adaptor.getMultiple())}, element));
  return success();
}

bool ExpertOrderOp::isCompatibleReturnTypes(TypeRange, TypeRange) { return true; }

LogicalResult ExpertOrderOp::verify() {
  Checked ids = operand(*this, "ids", getIds());
  if (!ids.type.getElementType().isSignlessInteger(32)) // expert_order (C1)
    return withNote(ids.must("have elements of type i32"), "fp4.top_k gives such ids");
  if (failed(verifyMatrix(ids))) // expert_order (C1)
    return failure();
  if (ids.type.getDimSize(1) < 1) // expert_order (C1)
    return withNote(ids.must("have a column"), "each token has an expert or more");
  if (failed(verifyRange(*this, "experts", getExperts(), 1, kMostColumns, // expert_order (C2)
                         "a device has so many of them")) ||
      failed(verifyRange(*this, "first", getFirst(), 0, INT32_MAX, // expert_order (C2)
                         "it is the id of the first expert of this device")) ||
      failed(verifyRange(*this, "multiple", getMultiple(), 1, kMostMultiple, // expert_order (C2)
                         "it is the unit in which experts have rows")))
    return failure();
  if (ids.type.hasStaticShape() &&
      ids.type.getNumElements() > numerics::mostOrderedIds) // expert_order (C3)
    return withNote(ids.must("have at most 1048576 elements"), "order parts of the tokens");
  Type element = IntegerType::get(getContext(), 64);
  int64_t most = rowsOfExperts(ids.type, getExperts(), getMultiple());
  RankedTensorType expected[] = {RankedTensorType::get({int64_t(getExperts()) + 1}, element),
                                 ids.type.clone(element), RankedTensorType::get({most}, element)};
  StringRef names[] = {"offsets", "rows", "tokens"};
  for (auto [name, found, type] : llvm::zip_equal(names, getResults(), expected))
    if (failed(verifyType(result(*this, name, found), type))) // expert_order (C4)
      return failure();
  return success();
}
