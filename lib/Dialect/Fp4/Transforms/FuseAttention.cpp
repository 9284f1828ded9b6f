//===- FuseAttention.cpp - Elementwise operations and quantizers of results -===//
//
// The epilogue of an attention computes, like that of a matmul, elementwise operations with numbers
// of the whole tensor, and codes and scales for the next GEMM. The matrix of elements that these
// read has rows of tokens, and the elements of all heads as columns.
//
//===----------------------------------------------------------------------===//
#include "Fusions.h"

#include "fp4/Dialect/Fp4/IR/AttentionEpilogue.h"
#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/IndexExpressions.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"

#include <array>

using namespace mlir;
using namespace fp4;

namespace {

constexpr StringLiteral kElementwise = "attention+elementwise", kQuantize = "attention+quantize";

/// The elements of an attention that an operation reads, and their matrix, if it reads that.
struct Read {
  AttentionOp attention;
  tensor::CollapseShapeOp matrix; ///< null: the elements as they are
  Value value;                    ///< the operand
};

/// Tokens of all sequences are rows, and the elements of all heads columns.
bool isMatrixOfTokens(tensor::CollapseShapeOp op, AttentionOp attention) {
  SmallVector<ReassociationIndices> rows = op.getReassociationIndices();
  return rows.size() == 2 && rows[0].size() == (attention.isPacked() ? 1 : 2) &&
         rows[1].size() == 2;
}

std::optional<Read> readOf(Value value) {
  auto matrix = value.getDefiningOp<tensor::CollapseShapeOp>();
  Value elements = matrix ? matrix.getSrc() : value;
  auto attention = elements.getDefiningOp<AttentionOp>();
  if (!attention || attention.getResult() != elements ||
      (matrix && !isMatrixOfTokens(matrix, attention)))
    return std::nullopt;
  return Read{attention, matrix, value};
}

/// The elements of an attention in any dimensions.
bool isOfAttention(Value tensor) {
  while (isa_and_present<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(tensor.getDefiningOp()))
    tensor = tensor.getDefiningOp()->getOperand(0);
  return tensor.getDefiningOp<AttentionOp>() != nullptr;
}

std::string whyNotOwn(Operation *op, Read read) {
  if (op->hasAttr(Fp4Dialect::kPlanAttr))
    return ownKernel(op);
  if (op->getBlock() != read.attention->getBlock())
    return "the attention is in another block";
  Value result = read.attention->getResult(0);
  if (!result.hasOneUse() || !read.value.hasOneUse())
    return "another operation reads the attention too";
  return "";
}

/// `op` with other types of results. The body of its region goes to the new one.
AttentionOp withTypes(RewriterBase &b, AttentionOp op, Location loc, Type result,
                      TypeRange quantized) {
  OperationState state(loc, AttentionOp::getOperationName());
  state.addOperands(op->getOperands());
  auto &properties = state.getOrAddProperties<AttentionOp::Properties>();
  properties = op.getProperties();
  std::array<int32_t, 3> counts = {result ? 1 : 0, op.getLse() ? 1 : 0, int32_t(quantized.size())};
  llvm::copy(counts, properties.resultSegmentSizes.begin());
  if (result)
    state.addTypes(result);
  if (op.getLse())
    state.addTypes(op.getLse().getType());
  state.addTypes(quantized);
  state.addRegion()->takeBody(op.getEpilogueBody());
  auto fused = cast<AttentionOp>(b.create(state));
  fused->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  if (op.getLse())
    b.replaceAllUsesWith(op.getLse(), fused.getLse());
  return fused;
}

std::string whyNot(linalg::GenericOp op, Read read) {
  auto linalgOp = cast<linalg::LinalgOp>(op.getOperation());
  if (std::string reason = whyNotOwn(op, read); !reason.empty())
    return reason;
  if (!read.attention.getEpilogueBody().empty())
    return "the attention has an epilogue region already";
  if (op->getNumResults() != 1)
    return "the operation has several results";
  if (std::string reason = whyNotElementwise(linalgOp); !reason.empty())
    return reason;
  if (std::string reason = whyNotInMemory(linalgOp); !reason.empty())
    return reason;
  if (hasIndexExpressions(linalgOp))
    return "the operation reads other rows and columns than its own";
  for (OpOperand *input : op.getDpsInputOperands())
    if (input->get() == read.value ? !op.getMatchingIndexingMap(input).isIdentity()
                                   : cast<RankedTensorType>(input->get().getType()).getRank() != 0)
      return input->get() == read.value ? "the operation reads the attention in another order"
                                        : "an input is not one number for the whole tensor";
  return "";
}

std::string whyNot(QuantizeOp op, Read read) {
  if (!read.matrix)
    return "the quantizer reads no matrix of tokens";
  if (std::string reason = whyNotOwn(op, read); !reason.empty())
    return reason;
  if (!read.attention.getQuantized().empty())
    return "the attention quantizes its elements already";
  if (op.getOutputs() != Outputs::Rowwise)
    return "blocks of columns span tokens of several tiles";
  if (op.isGrouped())
    return "the quantizer has groups";
  if (std::string reason = whyNotOfBlocks(op); !reason.empty())
    return reason;
  return whyNotQuantized(read.attention, op.getRecipe(),
                         cast<RankedTensorType>(op.getScales().getType()));
}

} // namespace

bool fp4::fuseAttention(linalg::GenericOp op, RewriterBase &rewriter) {
  std::optional<Read> read;
  for (Value input : op.getInputs())
    if (!read)
      read = readOf(input);
  if (!read)
    return false;
  if (std::string reason = whyNot(op, *read); !reason.empty())
    return missed(op, kElementwise, reason);
  SmallVector<Value> inputs;
  for (Value input : op.getInputs())
    if (input != read->value)
      inputs.push_back(input);
  if (failed(moveValueDefinitions(rewriter, inputs, read->attention)))
    return missed(op, kElementwise, "an input is computed behind the attention");
  AttentionOp attention = read->attention;
  auto type = cast<RankedTensorType>(attention.getResult().getType());
  rewriter.setInsertionPoint(attention);
  AttentionOp fused =
      withTypes(rewriter, attention, rewriter.getFusedLoc({attention.getLoc(), op.getLoc()}),
                type.clone(getElementTypeOrSelf(op.getResult(0))), /*quantized=*/{});
  fused.getInputsMutable().assign(inputs);
  buildEpilogue(rewriter, op, read->value, inputs, fused.getEpilogueBody());
  rewriter.setInsertionPoint(op);
  Value result = fused.getResult();
  if (tensor::CollapseShapeOp matrix = read->matrix)
    result = tensor::CollapseShapeOp::create(rewriter, matrix.getLoc(), result,
                                             matrix.getReassociationIndices());
  rewriter.replaceOp(op, result);
  if (read->matrix)
    rewriter.eraseOp(read->matrix);
  rewriter.eraseOp(attention);
  return passed(fused, kElementwise, "the attention's epilogue computes what follows it");
}

bool fp4::fuseAttention(QuantizeOp op, RewriterBase &rewriter) {
  std::optional<Read> read = readOf(op.getInput());
  if (!read)
    return isOfAttention(op.getInput()) &&
           missed(op, kQuantize, "the quantizer reads no matrix of tokens");
  if (std::string reason = whyNot(op, *read); !reason.empty())
    return missed(op, kQuantize, reason);
  AttentionOp attention = read->attention;
  if (op.getAmax() && failed(moveValueDefinitions(rewriter, {op.getAmax()}, attention)))
    return missed(op, kQuantize,
                  "the amax is computed from the attention, or cannot move before it");
  Type element = getElementTypeOrSelf(attention.getResult().getType());
  rewriter.setInsertionPoint(attention);
  AttentionOp fused =
      withTypes(rewriter, attention, rewriter.getFusedLoc({attention.getLoc(), op.getLoc()}),
                /*result=*/Type(), op->getResultTypes());
  if (op.getAmax())
    fused.getInputsMutable().append(op.getAmax());
  if (fused.getEpilogueBody().empty())
    buildRounding(rewriter, fused.getLoc(), element, fused.getEpilogueBody());
  AddedResults added{op.getAmax(), op.getRecipe(), {}};
  yieldAdded(rewriter, fused.getEpilogueBody(), added, /*storesElements=*/false, op.getLoc());
  rewriter.replaceOp(op, fused.getQuantized());
  rewriter.eraseOp(read->matrix);
  rewriter.eraseOp(attention);
  return passed(fused, kQuantize,
                "the attention gives codes and scales, and its elements are not stored");
}
