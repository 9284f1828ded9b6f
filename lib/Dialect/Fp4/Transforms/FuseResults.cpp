//===- FuseResults.cpp - Results derived from a matmul --------------------===//
//
// fp4.quantize and fp4.amax of the elements of a matmul become results of the matmul, whose kernel
// has the elements in registers. Elements that nothing else reads are no result any more and never
// in memory. The epilogue region says in which type they are quantized, so that no bit changes.
//
//===----------------------------------------------------------------------===//
#include "Fusions.h"

#include "fp4/Dialect/Fp4/IR/DynamicSizes.h"
#include "fp4/Dialect/Fp4/IR/Signature.h"
#include "fp4/Dialect/Fp4/IR/Target.h"
#include "fp4/ISA/WeightLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace fp4;

namespace {

constexpr StringLiteral kQuantize = "matmul+quantize";
constexpr StringLiteral kAmax = "matmul+amax";

/// `product` with results of types `derived` more than it has; elements that only `reader` reads
/// are no result. The new results are the last.
BlockScaledMatmulOp addResults(RewriterBase &b, BlockScaledMatmulOp product, Operation *reader,
                               TypeRange derived, const AddedResults &added) {
  Value elements = product.getResult();
  Type element = product.getElementType();
  bool isRead = llvm::any_of(elements.getUsers(), [&](Operation *user) { return user != reader; });
  SmallVector<Type> types(product->getResultTypes());
  if (!isRead)
    types.erase(types.begin());
  llvm::append_range(types, derived);
  b.setInsertionPoint(product);
  SmallVector<Value> inputs(product.getInputs());
  if (added.quantizeAmax)
    inputs.push_back(added.quantizeAmax);
  Location loc = b.getFusedLoc({product.getLoc(), reader->getLoc()});
  auto fused = BlockScaledMatmulOp::create(
      b, loc, types, product.getLhsOperand(), product.getRhsOperand(), product.getRhs2Operand(),
      product.getAlpha(), product.getAlpha2(), product.getOffsets(), inputs, product.getWorkAttr(),
      product.getDispatchAttr(), product.getArithmeticAttr(), product.getEpilogueAttr());
  fused->setDiscardableAttrs(product->getDiscardableAttrDictionary());
  if (product.getEpilogueBody().empty())
    buildRounding(b, fused.getLoc(), element, fused.getEpilogueBody());
  else
    fused.getEpilogueBody().takeBody(product.getEpilogueBody());
  yieldAdded(b, fused.getEpilogueBody(), added, isRead, reader->getLoc());
  b.replaceOp(reader, fused->getResults().take_back(derived.size()));
  SmallVector<Value> old;
  if (!isRead)
    old.push_back(Value());
  llvm::append_range(old, fused->getResults().drop_back(derived.size()));
  for (auto [before, after] : llvm::zip_equal(product->getResults(), old))
    if (after)
      b.replaceAllUsesWith(before, after);
  b.eraseOp(product);
  return fused;
}

/// Why nothing can be derived from the elements of `product` for `op`.
std::string whyNotDerived(Operation *op, BlockScaledMatmulOp product, bool hasWide = false) {
  if (op->hasAttr(Fp4Dialect::kPlanAttr))
    return ownKernel(op);
  if (op->getBlock() != product->getBlock())
    return "the matmul is in another block";
  if (product.addsRanges())
    return "the matmul has partial sums of split-K";
  route::Signature signature =
      signatureOf(product).with(route::Limit::Derived).with(route::Limit::WideBlocks, hasWide);
  return whyNoRoute(op, signature);
}

/// Row-major scales are those of all rows, and tiled ones of the same groups are the same list.
std::string whyNotGroups(QuantizeOp op, BlockScaledMatmulOp product) {
  if (!product.isGrouped())
    return op.isGrouped() ? "the quantizer has an amax for each group or row" : "";
  if (product.getOffsets() != op.getOffsets())
    return "rows of no group are zero, and their codes and scales may be not";
  if (product.getUnspecifiedRows())
    return "the matmul leaves tiles of scales that the quantizer clears";
  if (op.hasColumnwise())
    return "blocks of columns span groups";
  bool isTiled = scaleLayout(op.getScales().getType()).has_value();
  bool haveSame =
      op.isGrouped() ? op.getGroups() == product.getGroups() && !op.getAmax() : !isTiled;
  return haveSame ? "" : "the quantizer has other groups than the matmul, or an amax for each";
}

std::string whyNotQuantizer(QuantizeOp op, BlockScaledMatmulOp product) {
  int64_t block = op.getBlockSize();
  int64_t rows = cast<RankedTensorType>(product.getLhs().getType()).getDimSize(0);
  if (product.getQuantizeRecipe() || product.getWithAmax())
    return "the matmul quantizes its elements, or has their amax, already";
  if (std::string reason = whyNotGroups(op, product); !reason.empty())
    return reason;
  if (std::string reason = whyNotOfBlocks(op); !reason.empty())
    return reason;
  if (op.getColumnwiseAmax() && op.getColumnwiseAmax() != op.getAmax())
    return "the orientations have different amaxes";
  bool isKnown = !hasDynamicColumns(product); // else a call has whole blocks of 16 or 32
  if (op.hasRowwise() && (isKnown ? product.getColumns() % block != 0 : op.hasF32Scales()))
    return isKnown ? "rows end in a shorter block"
                   : "rows of dynamic size may end in a shorter block";
  if (op.hasColumnwise() && (ShapedType::isDynamic(rows) || rows % block))
    return "columns are of dynamic size or end in a shorter block";
  return whyNotDerived(op, product, hasWideBlocks(product, op.getRecipe()));
}

} // namespace

void fp4::buildRounding(RewriterBase &b, Location loc, Type element, Region &region) {
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&region, {}, {b.getF32Type()}, {loc});
  Value value = body->getArgument(0);
  if (!element.isF32())
    value = arith::TruncFOp::create(b, loc, element, value);
  YieldOp::create(b, loc, value);
}

void fp4::yieldAdded(RewriterBase &b, Region &region, const AddedResults &added,
                     bool storesElements, Location loc) {
  OpBuilder::InsertionGuard guard(b);
  Block &body = region.front();
  auto yield = cast<YieldOp>(body.getTerminator());
  SmallVector<Value> values(yield.getValues());
  Value element = values.front();
  if (!storesElements)
    values.erase(values.begin());
  b.setInsertionPoint(yield);
  if (added.recipe) {
    Value amax = added.quantizeAmax ? body.addArgument(b.getF32Type(), loc) : Value();
    auto quantize = EpilogueQuantizeOp::create(b, loc, element, amax, added.recipe, added.outputs);
    llvm::append_range(values, quantize.getResults());
  }
  if (added.amax)
    values.push_back(EpilogueAmaxOp::create(b, loc, b.getF32Type(), element));
  YieldOp::create(b, yield.getLoc(), values);
  b.eraseOp(yield);
}

std::string fp4::whyNotOfBlocks(QuantizeOp op) {
  if (op.getPerRow())
    return "the quantizer has an amax for each group or row";
  if (op.getHadamard() || op.getColumnwiseHadamard())
    return "the quantizer transforms its input";
  if (op.hasSquareBlocks())
    return "square blocks span rows of several threads";
  if (op.getBlock() && op.getBlock()->back() != int64_t(op.getBlockSize()))
    return "blocks are whole rows, of which a tile has some columns";
  return op.getRounding() == Rounding::Stochastic ? "the quantizer rounds stochastically" : "";
}

bool fp4::fuseResult(QuantizeOp op, RewriterBase &rewriter) {
  auto product = op.getInput().getDefiningOp<BlockScaledMatmulOp>();
  if (!product)
    return false;
  if (std::string reason = whyNotQuantizer(op, product); !reason.empty())
    return missed(op, kQuantize, reason);
  if (op.getAmax() && failed(moveValueDefinitions(rewriter, {op.getAmax()}, product)))
    return missed(op, kQuantize, "the amax is computed from the matmul, or cannot move before it");
  AddedResults added{op.getAmax(), op.getRecipe(), {}};
  if (op.getOutputs() != Outputs::Rowwise)
    added.outputs = OutputsAttr::get(op.getContext(), op.getOutputs());
  auto fused = addResults(rewriter, product, op, op->getResultTypes(), added);
  return passed(fused, kQuantize,
                fused.getResult()
                    ? "the matmul gives its elements and their codes and scales"
                    : "the matmul gives codes and scales, and its elements are not stored");
}

/// Returns true when nothing but the elements says where the columns of prepacked weights end.
static bool hidesColumns(AmaxOp op, BlockScaledMatmulOp product) {
  bool endsInTile = product.hasPrepackedRhs() && product.getColumns() % hw::weightTileRows;
  return endsInTile && !product.getQuantizeRecipe() && product.getResult().hasOneUse();
}

bool fp4::fuseResult(AmaxOp op, RewriterBase &rewriter) {
  auto product = op.getInput().getDefiningOp<BlockScaledMatmulOp>();
  if (!product)
    return false;
  std::string reason;
  if (product.getWithAmax())
    reason = "the matmul gives an amax already";
  else if (op.isGrouped() || op.hasLines())
    reason = "the amax is not one of the whole";
  else if (product.isGrouped())
    reason = "the matmul is grouped";
  else if (op.getNan() != NanPolicy::Drop)
    reason = "a NaN makes the amax NaN";
  else if (hidesColumns(op, product))
    reason = "the columns end within a tile of prepacked weights, and the elements are no result";
  else
    reason = whyNotDerived(op, product);
  if (!reason.empty())
    return missed(op, kAmax, reason);
  auto fused = addResults(rewriter, product, op, op->getResultTypes(), {{}, {}, {}, true});
  return passed(fused, kAmax, "the matmul gives the amax of its elements");
}
