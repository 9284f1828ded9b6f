//===- RowReduction.cpp - Operations that reduce rows to numbers ----------===//

#include "fp4/Dialect/Fp4/IR/RowReduction.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/IndexExpressions.h"
#include "fp4/Numerics/RowReduction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp4;

namespace {

/// The loop that reduces, of two.
unsigned reductionLoopOf(linalg::LinalgOp op) {
  return op.getIteratorTypesArray().front() == utils::IteratorType::reduction ? 0 : 1;
}

/// Returns true when the loop that reduces runs along the rows of an operand.
bool reducesColumns(linalg::LinalgOp op) {
  const unsigned reduction = reductionLoopOf(op);
  return llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *input) {
    SmallVector<unsigned> dimensions = dimensionsOf(op, input->getOperandNumber());
    return dimensions.size() == 2 && dimensions.front() == reduction &&
           dimensions.back() == 1 - reduction;
  });
}

std::string whyNotLoops(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics())
    return "the operation works on buffers";
  if (op.getNumReductionLoops() == 0)
    return "no loop of it is a reduction";
  if (op.getNumParallelLoops() == 0)
    return "no loop of it is a parallel one";
  if (op.getNumReductionLoops() > 1 || op.getNumParallelLoops() + 1 != op.getNumLoops())
    return "several loops of it are reductions";
  if (op.getNumLoops() == 2 && reducesColumns(op))
    return "it reduces the rows of each column, and a kernel reduces the columns of each row";
  return op.getIteratorTypesArray().back() == utils::IteratorType::reduction
             ? ""
             : "the loop of the columns is not inside that of the rows";
}

/// The number that a tensor is all of, in fp32; none where it is not known.
std::optional<float> splatOf(Value tensor) {
  while (isa_and_present<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(tensor.getDefiningOp()))
    tensor = tensor.getDefiningOp()->getOperand(0);
  Value number = tensor;
  if (auto fill = tensor.getDefiningOp<linalg::FillOp>())
    number = fill.getInputs().front();
  APFloat value(0.f);
  if (!getElementTypeOrSelf(number).isF32() || !number.getDefiningOp<arith::ConstantOp>() ||
      !matchPattern(number, m_ConstantFloat(&value)))
    return std::nullopt;
  return value.convertToFloat();
}

std::string whyNotResult(linalg::LinalgOp op) {
  if (op.getNumDpsInits() != 1 || op->getNumResults() != 1)
    return "it has several results";
  OpOperand *init = op.getDpsInitOperand(0);
  auto type = dyn_cast<RankedTensorType>(init->get().getType());
  if (!type || !type.getElementType().isF32())
    return "the result is not f32";
  SmallVector<unsigned> dimensions = dimensionsOf(op, init->getOperandNumber());
  auto rows = llvm::to_vector(llvm::seq<unsigned>(0, op.getNumLoops() - 1));
  const bool isVector = dimensions == rows;
  rows.push_back(kSameForAll);
  const bool isColumn = dimensions == rows && type.getShape().back() == 1;
  if (!op.getMatchingIndexingMap(init).isProjectedPermutation(/*allowZeroInResults=*/true) ||
      (!isVector && !isColumn))
    return "the result is not indexed by the row alone";
  if (!splatOf(init->get()))
    return "the result does not begin as a constant number: expects a linalg.fill, or a dense "
           "constant, of f32";
  return "";
}

/// Why the sizes of the result do not follow from those of the inputs, or inputs are not read along
/// rows.
std::string whyNotInputs(linalg::LinalgOp op) {
  auto result = cast<ShapedType>(op->getResult(0).getType());
  SmallVector<bool> isKnown;
  for (unsigned loop = 0; loop + 1 < op.getNumLoops(); ++loop)
    isKnown.push_back(!result.isDynamicDim(loop));
  isKnown.push_back(true); // the columns
  for (OpOperand *input : op.getDpsInputOperands()) {
    if (std::string reason = whyNotIndexed(op, input); !reason.empty())
      return reason;
    for (unsigned loop : dimensionsOf(op, input->getOperandNumber()))
      if (loop != kSameForAll)
        isKnown[loop] = true;
  }
  return llvm::all_of(isKnown, [](bool known) { return known; })
             ? ""
             : "no operand tells the number of rows";
}

std::string whyNotBody(linalg::LinalgOp op) {
  Block &body = *op.getBlock();
  const auto inputs = static_cast<unsigned>(op.getNumDpsInputs());
  BlockArgument result = body.getArgument(inputs);
  Operation *combining = combiningOpOf(op);
  if (!combining || combining->getBlock() != &body || !combining->hasOneUse() ||
      !result.hasOneUse() || *result.user_begin() != combining)
    return "the body does not yield the result so far combined with an element";
  std::optional<numerics::ElementOp> step = elementOpOf(combining);
  if (!step || !numerics::isCombination(*step))
    return ("'" + combining->getName().getStringRef() +
            "' does not combine elements; these do: arith.addf, mulf, maximumf, minimumf, maxnumf, "
            "minnumf")
        .str();
  if (op.getNumLoops() != 2 && !loopsReadBy(body).empty())
    return "'linalg.index' is in an operation that is on no matrix";
  return whyNotElementwise(body, inputs, combining);
}

} // namespace

std::string fp4::whyNotRowReduction(linalg::LinalgOp op) {
  std::string reason = whyNotReductionOfRows(op);
  return reason.empty() && op.getNumLoops() != 2
             ? "an operand has some of the dimensions that rows have, but not all"
             : reason;
}

std::string fp4::whyNotReductionOfRows(linalg::LinalgOp op) {
  for (auto *why : {&whyNotLoops, &whyNotResult, &whyNotInputs, &whyNotBody})
    if (std::string reason = why(op); !reason.empty())
      return reason;
  return {};
}

bool fp4::isRowReduction(Operation *op) {
  auto generic = dyn_cast_if_present<linalg::GenericOp>(op);
  return generic && whyNotRowReduction(generic).empty();
}

Operation *fp4::combiningOpOf(linalg::LinalgOp op) {
  return op.getBlock()->getTerminator()->getOperand(0).getDefiningOp();
}

Value fp4::combinedElementOf(linalg::LinalgOp op) {
  Operation *combining = combiningOpOf(op);
  BlockArgument result = op.getBlock()->getArgument(op.getNumDpsInputs());
  return combining->getOperand(combining->getOperand(0) == result ? 1 : 0);
}

numerics::ElementOp fp4::combinationOf(linalg::LinalgOp op) {
  return *elementOpOf(combiningOpOf(op));
}

float fp4::initialOf(linalg::LinalgOp op) { return *splatOf(op.getDpsInitOperand(0)->get()); }

/// Returns true for the number of the column as linalg.index gives it, of any integer type.
static bool isColumnIndex(Value value) {
  if (auto cast = value.getDefiningOp<arith::IndexCastOp>())
    value = cast.getIn();
  auto index = value.getDefiningOp<linalg::IndexOp>();
  return index && index.getDim() == 1;
}

OpOperand *fp4::selectedColumnOf(linalg::LinalgOp op) {
  auto select = combinedElementOf(op).getDefiningOp<arith::SelectOp>();
  if (!select || combinationOf(op) != numerics::ElementOp::Add ||
      !APFloat(initialOf(op)).isPosZero() ||
      !matchPattern(select.getFalseValue(), m_PosZeroFloat()))
    return nullptr;
  auto compare = select.getCondition().getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq)
    return nullptr;
  bool isFirst = isColumnIndex(compare.getLhs());
  if (!isFirst && !isColumnIndex(compare.getRhs()))
    return nullptr;
  auto number = dyn_cast<BlockArgument>(isFirst ? compare.getRhs() : compare.getLhs());
  if (!number || number.getOwner() != op.getBlock() || !number.getType().isInteger(32))
    return nullptr;
  return dimensionsOf(op, number.getArgNumber()) == ArrayRef<unsigned>{0}
             ? op.getDpsInputOperand(number.getArgNumber())
             : nullptr;
}

numerics::ElementProgram fp4::reductionProgramOf(linalg::LinalgOp op) {
  Value element = combinedElementOf(op);
  return elementProgramOf(*op.getBlock(), op.getNumDpsInputs(), element);
}
