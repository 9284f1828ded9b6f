//===- Fp4Ops.cpp - Matmuls: verifiers, types, folds ----------------------===//
//
// QuantizeOps.cpp has the operations of the quantization family, ScaleOps.cpp those that move
// scales and shards. The labels (C1), (C2), ... are those of Fp4Constraints.td and
// test/Dialect/Fp4/invalid-*.mlir.
//
//===----------------------------------------------------------------------===//
#include "Verify.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/ISA/WeightLayout.h"
#include "fp4/Numerics/BlockScaledGemm.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::verify;

#define GET_OP_CLASSES
#include "fp4/Dialect/Fp4/IR/Fp4Ops.cpp.inc"

//===----------------------------------------------------------------------===//
// matmul_alpha, matmul
//===----------------------------------------------------------------------===//

/// The alphas of a matmul whose operands have these amaxes: one, one for each group, a column of
/// one for each row of the lhs, or a row of one for each row of the rhs.
static RankedTensorType alphaType(RankedTensorType lhs, RankedTensorType rhs, bool perGroup) {
  SmallVector<int64_t> shape;
  if (perGroup && lhs.getRank() == 1)
    shape = {lhs.getDimSize(0)};
  else if (lhs.getRank() == 1)
    shape = {lhs.getDimSize(0), 1};
  else if (rhs.getRank() == 1)
    shape = {1, rhs.getDimSize(0)};
  return RankedTensorType::get(shape, Float32Type::get(lhs.getContext()));
}

LogicalResult MatmulAlphaOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                              Adaptor adaptor, SmallVectorImpl<Type> &types) {
  types.push_back(alphaType(rankedType(adaptor.getLhsAmax()), rankedType(adaptor.getRhsAmax()),
                            adaptor.getPerGroup()));
  return success();
}

bool MatmulAlphaOp::isCompatibleReturnTypes(TypeRange, TypeRange) { return true; }

/// The recipe that quantized an operand.
static numerics::Recipe recipeOrDefault(std::optional<RecipeAttr> recipe) {
  return recipe ? recipe->getDecisions() : defaultRecipe(Format::NVFP4);
}

numerics::Recipe MatmulAlphaOp::getLhsDecisions() { return recipeOrDefault(getLhsRecipe()); }
numerics::Recipe MatmulAlphaOp::getRhsDecisions() { return recipeOrDefault(getRhsRecipe()); }

/// matmul_alpha (C3), (C4): operands that have a term in alpha, by one formula.
static LogicalResult verifyAlphaRecipes(MatmulAlphaOp op) {
  for (auto [name, attribute] :
       {std::pair("lhs_recipe", op.getLhsRecipe()), {"rhs_recipe", op.getRhsRecipe()}}) {
    numerics::Recipe recipe = recipeOrDefault(attribute);
    bool isSupplied = numerics::isSupplied(recipe);
    bool isDecode = recipe.global == numerics::GlobalRule::SuppliedDecode;
    if (numerics::hasTensorScale(recipe) &&
        (!isSupplied || recipe.alpha != numerics::AlphaRule::AmaxProduct))
      continue;
    auto diag = op.emitOpError("attribute '") // matmul_alpha (C3)
                << name << "' must be a recipe with a tensor scale that derives from the amax, "
                << "but got " << attribute->getText();
    diag.attachNote() << "an operand of this recipe has no amax to be multiplied"
                      << (isDecode     ? "; alpha = decode_scales takes the supplied scale"
                          : isSupplied ? "; alpha = over_encode_scales takes the supplied scale"
                                       : "");
    return diag;
  }
  numerics::Recipe lhs = op.getLhsDecisions(), rhs = op.getRhsDecisions();
  if (lhs.alpha == rhs.alpha)
    return success();
  auto text = [](const numerics::Recipe &recipe) { return StringRef(stringify(recipe.alpha)); };
  auto diag = op.emitOpError("expects recipes with one decision 'alpha', but got ") // (C4)
              << text(lhs) << " of the lhs and " << text(rhs) << " of the rhs";
  diag.attachNote()
      << "lhs_recipe and rhs_recipe are those that quantized the operands; write alpha = "
      << text(rhs) << " in lhs_recipe, or the other in rhs_recipe";
  return diag;
}

/// matmul_alpha (C1): one amax, or one for each row of the operand.
static LogicalResult verifyAlphaAmax(const Checked &amax) {
  bool isLine =
      amax.type.getRank() == 1 && amax.type.getElementType().isF32() && !amax.type.getEncoding();
  return isLine ? success() : verifyScalar(amax);
}

LogicalResult MatmulAlphaOp::verify() {
  if (failed(verifyAlphaRecipes(*this)))
    return failure();
  Checked lhs = operand(*this, "lhs_amax", getLhsAmax());
  Checked rhs = operand(*this, "rhs_amax", getRhsAmax());
  if (failed(verifyAlphaAmax(lhs)) || failed(verifyAlphaAmax(rhs))) // matmul_alpha (C1)
    return failure();
  if (getPerGroup()) { // matmul_alpha (C6)
    for (const Checked &amax : {lhs, rhs})
      if (amax.type.getRank() != 1 || amax.type.isDynamicDim(0) || amax.type != lhs.type)
        return withNote(
            amax.must("have one number for each group, as the other has, with 'per_group'"),
            "pass the amaxes that fp4.amax or fp4.quantize gives with 'groups', or leave "
            "'per_group' out");
    return verifyType(result(*this, "alpha", getAlpha()), alphaType(lhs.type, rhs.type, true));
  }
  if (lhs.type.getRank() == 1 && rhs.type.getRank() == 1) { // matmul_alpha (C5)
    auto diag = rhs.must("be a scalar where operand 'lhs_amax' has one number for each row");
    diag.attachNote() << "quantize one of the operands, the weights, with one amax";
    return diag;
  }
  return verifyType(result(*this, "alpha", getAlpha()), // matmul_alpha (C2)
                    alphaType(lhs.type, rhs.type, /*perGroup=*/false));
}

int64_t BlockScaledMatmulOp::getNumGroups() {
  if (getOffsets()) {
    RankedTensorType type = rankedType(getOffsets());
    return type.getDimSize(0) - (type.getRank() == 1 ? 1 : 0);
  }
  return getGroups() ? int64_t(getGroups()->size()) : 1;
}

int64_t BlockScaledMatmulOp::getColumns() {
  int64_t rows = rankedType(getRhs()).getDimSize(0);
  if (ShapedType::isDynamic(rows))
    return rows;
  if (!hasPrepackedRhs())
    return rows / getNumGroups();
  if (getResult() && rankedType(getResult()).getRank() == 2) // N ends within the last tiles
    return rankedType(getResult()).getDimSize(1);
  if (getQuantizeRecipe()) // so do columns of codes
    return rankedType(getQuantized().front()).getDimSize(quantizesRows() ? 1 : 0);
  return rows * hw::weightTileRows / getNumGroups();
}

//===----------------------------------------------------------------------===//
// Matmuls
//===----------------------------------------------------------------------===//

/// matmul (C30): threads multiply small M, of one matrix or of equal groups.
static LogicalResult verifyFma(BlockScaledMatmulOp op, const Checked &lhs) {
  if (!op.usesFma())
    return success();
  if (op.getMostSplits() > 1 || op.getOffsets())
    return withNote(
        op.emitOpError("expects neither 'split_k' nor operand 'offsets' with arithmetic fma"),
        "leave 'arithmetic' out: matmuls of the tensor core have both");
  if (op.getGroups() && !llvm::all_equal(*op.getGroups()))
    return withNote(op.emitOpError("expects groups of equal size with arithmetic fma, but got ")
                        << "[" << *op.getGroups() << "]",
                    "leave 'arithmetic' out: matmuls of the tensor core have groups of any size");
  int64_t rows = lhs.type.isDynamicDim(0) ? 0 : lhs.type.getDimSize(0) / op.getNumGroups();
  if (rows >= 1 && rows <= BlockScaledMatmulOp::kMaxFmaRows)
    return success();
  auto diag = op.emitOpError("attribute 'arithmetic' fma must be of 1 to ")
              << BlockScaledMatmulOp::kMaxFmaRows
              << " static rows of 'lhs', or of each group, but got ";
  lhs.type.isDynamicDim(0) ? diag << "dynamic ones" : diag << rows;
  diag.attachNote() << "leave 'arithmetic' out, and the tensor core multiplies";
  return diag;
}

/// matmul (C6): the scales of one side belong to its data.
static LogicalResult verifySide(BlockScaledMatmulOp op, const Checked &data, StringRef name,
                                Value value) {
  Checked scales = operand(op, name, value);
  RankedTensorType expected = scalesOf(data.type, op.getFormat());
  auto quantize = value.getDefiningOp<QuantizeOp>();
  std::string note = "a scale of format " + stringifyFormat(op.getFormat()).str() +
                     " is that of a row and " + std::to_string(blockSize(op.getFormat())) +
                     " elements along K";
  if (quantize && quantize.isGrouped())
    note = "the scales are tiles of several groups; give the matmul the same " +
           std::string(quantize.getGroups() ? "'groups'" : "'offsets'") +
           " too, or leave them out of the quantizer";
  return verifyType(scales, // matmul (C6)
                    withScaleLayout(expected, ScaleLayout::Tiled128x4), note);
}

/// matmul (C323): what codes and an amax are computed of.
static LogicalResult verifyOnlyElements(BlockScaledMatmulOp op, Type element) {
  if (!isa_and_present<Float8E4M3FNType>(element) || op.hasOnlyElements())
    return success();
  auto diag = op.emitOpError( // matmul (C323)
      "expects no other result beside elements of type f8E4M3FN, but got some");
  diag.attachNote() << "codes and an amax are those of elements of type bf16, f16 or f32";
  return diag;
}

/// matmul (C9): element types of a result.
static LogicalResult verifyResultElements(BlockScaledMatmulOp op, const Checked &output) {
  Type element = output.type.getElementType();
  if (!isa<Float8E4M3FNType>(element))
    return verifyRealElements(output, "bf16, f16, f32 or f8E4M3FN"); // matmul (C9)
  return verifyOnlyElements(op, element);
}

/// matmul (C8) to (C10): the result and the tile.
static LogicalResult verifyMatmulResult(BlockScaledMatmulOp op, const Checked &lhs,
                                        const Checked &rhs) {
  if (!op.getResult())
    return success();
  Checked output = result(op, "result", op.getResult());
  if (failed(verifyResultElements(op, output)) ||
      (op.hasPrepackedRhs() && failed(verifyPackedColumns(op, output, rhs))))
    return failure();
  auto expected = RankedTensorType::get({lhs.type.getDimSize(0), op.getColumns()},
                                        output.type.getElementType());
  if (failed(verifyType(output, expected))) // matmul (C10)
    return failure();
  return success();
}

/// matmul (C7): one factor, or one for each row or each column of the result.
static LogicalResult verifyAlpha(BlockScaledMatmulOp op, const Checked &lhs, const Checked &rhs) {
  Checked alpha = operand(op, "alpha", op.getAlpha());
  if (alpha.type.getRank() == 0)
    return verifyScalar(alpha);
  constexpr StringLiteral shapes =
      "a factor for each row of the result is M x 1, one for each column 1 x N";
  if (alpha.type.getRank() != 2) {
    auto diag = alpha.must("be a tensor<f32>, or have two dimensions");
    diag.attachNote() << shapes;
    return diag;
  }
  bool isRow = alpha.type.getDimSize(1) != 1;
  SmallVector<int64_t> shape = {lhs.type.getDimSize(0), 1};
  if (isRow)
    shape = {1, op.getColumns()};
  return verifyType(alpha, RankedTensorType::get(shape, Float32Type::get(op.getContext())), shapes);
}

/// matmul (C13): G x 1 x N has a row, and G x 1 x 1 a number, for each group.
static bool isInputOfGroups(BlockScaledMatmulOp op, RankedTensorType type) {
  if (!op.isGrouped() || type.getRank() != 3)
    return false;
  ArrayRef<int64_t> shape = type.getShape();
  return shape[0] == op.getNumGroups() && shape[1] == 1 &&
         (shape[2] == 1 || shape[2] == op.getColumns());
}

/// matmul (C13): inputs that a thread finds by its row and column.
static LogicalResult verifyEpilogueInputs(BlockScaledMatmulOp op) {
  int64_t sizes[] = {rankedType(op.getLhs()).getDimSize(0), op.getColumns()};
  for (Value input : op.getEpilogueInputs()) {
    RankedTensorType type = rankedType(input);
    auto fits = [&](unsigned dim) {
      return type.getDimSize(dim) == 1 || type.getDimSize(dim) == sizes[dim];
    };
    bool hasShape = type.getRank() == 0 || (type.getRank() == 2 && fits(0) && fits(1)) ||
                    isInputOfGroups(op, type);
    if (!hasShape || type.getEncoding() || !isElementType(type.getElementType()))
      return withNote(
          op.emitOpError("epilogue input must be f32, bf16 or f16, and a scalar, M x 1, ")
              << "1 x N or M x N"
              << (op.isGrouped() ? ", or of G groups G x 1 x N or G x 1 x 1" : "") << ", but got "
              << type,
          op.isGrouped()
              ? "a thread finds its element by row, column and group: expand a vector of columns "
                "to 1 x N, one of rows to M x 1, and rows of groups, G x N, to G x 1 x N"
              : "a thread finds its element by row and column: expand a vector of columns to 1 x "
                "N, "
                "one of rows to M x 1"); // matmul (C13)
  }
  if (op.getEpilogueBody().empty() && !op.getInputs().empty())
    return withNote(op.emitOpError("epilogue inputs must have an epilogue region"),
                    "leave them out, or give the matmul an epilogue region that "
                    "uses them"); // matmul (C13)
  return success();
}

hw::MmaDepth BlockScaledMatmulOp::getMmaDepth() {
  switch (getArithmetic().value_or(MatmulArithmetic::TensorCore)) {
  case MatmulArithmetic::TensorCoreK96:
    return hw::MmaDepth::K96;
  case MatmulArithmetic::TensorCoreDoubleK:
    return hw::MmaDepth::Double;
  default:
    return hw::MmaDepth::Single;
  }
}

/// matmul (C312): companions of instructions of K = 96.
static LogicalResult verifyK96(BlockScaledMatmulOp op) {
  if (!op.usesK96() || op.getMostSplits() <= 1)
    return success();
  return withNote(op.emitOpError("expects no 'split_k' with arithmetic tensor_core_k96"),
                  "leave 'arithmetic' out, and instructions have K = 64");
}

/// Operands with tiled scales, where they have some, but for their elements.
static LogicalResult verifyTiledOperands(BlockScaledMatmulOp op, const Checked &lhs,
                                         const Checked &rhs) {
  if (!lhs.type.isDynamicDim(1) &&
      failed(verifyBlockMultiple(lhs, 1, op.getFormat()))) // matmul (C3)
    return failure();
  if (failed(verifySplit(op, lhs))) // matmul (C14)
    return failure();
  if ((op.isGrouped() && failed(verifyGroupRows(op, lhs))) || failed(verifyFma(op, lhs)))
    return failure(); // matmul (C15), (C30)
  if (failed(verifyMXF8F6F4(op, lhs, rhs)))
    return failure();
  if (op.isGrouped())
    return verifyGroupOperands(op, lhs, rhs);
  if (op.getLhsScales() && failed(verifySide(op, lhs, "lhs_scales", op.getLhsScales())))
    return failure();
  return op.hasPrepackedRhs() ? success() : verifySide(op, rhs, "rhs_scales", op.getRhsScales());
}

LogicalResult BlockScaledMatmulOp::verify() {
  if (failed(verifyBundles(*this))) // matmul (C4)
    return failure();
  Checked lhs = operand(*this, "lhs", getLhs());
  Checked rhs = operand(*this, "rhs", getRhs());
  if (failed(verifyPair(*this)) || failed(verifyUnscaled(*this, lhs)) ||
      failed(verifyFastAccumulation(*this)) || failed(verifyK96(*this)))
    return failure();
  if (failed(verifyData(*this, lhs, rhs))) // matmul (C1)
    return failure();
  int64_t depth = rhs.type.getDimSize(1);
  if (hasPrepackedRhs() && failed(verifyPackedDepth(lhs, rhs)))
    return failure();
  if (!hasPrepackedRhs() && lhs.type.getDimSize(1) != depth) { // matmul (C2)
    auto text = [](int64_t size) {
      return ShapedType::isDynamic(size) ? std::string("?") : std::to_string(size);
    };
    auto diag = emitOpError("expects operands 'lhs' and 'rhs' with equal dimensions 1, but got ")
                << text(lhs.type.getDimSize(1)) << " and " << text(depth);
    diag.attachNote() << "both are contracted along dimension 1: lhs is M x K and rhs is N x K";
    return diag;
  }
  if (failed(verifyDispatch(*this)))
    return failure();
  if (failed(verifyDynamicSizes(*this, lhs, rhs))) // matmul (C8)
    return failure();
  if (failed(hasF32Scales() ? verifyFp8Operands(*this) : verifyTiledOperands(*this, lhs, rhs)) ||
      failed(verifyExpectedRows(*this, lhs)) || // matmul (C353)
      failed(verifyUnspecifiedRows(*this)))     // matmul (C460)
    return failure();
  if (getAlpha() && !isGrouped() && failed(verifyAlpha(*this, lhs, rhs))) // matmul (C7)
    return failure();
  return failure(failed(verifyResultCount(*this)) || failed(verifyMatmulResult(*this, lhs, rhs)) ||
                 failed(verifyEpilogueInputs(*this)));
}

LogicalResult BlockScaledMatmulOp::verifyRegions() {
  return failure(failed(verifyRegion(*this)) || // matmul (C12), (C43), (C44)
                 failed(verifyFusedGemm(*this)));
}

//===----------------------------------------------------------------------===//
// Type inference for all of them
//===----------------------------------------------------------------------===//

LogicalResult fp4::inferResultTypes(Operation *op, ValueRange operands,
                                    SmallVectorImpl<Type> &types) {
  auto reshaped = [&](int64_t rows, int64_t columns) {
    return rankedType(op->getResult(0)).clone({rows, columns});
  };
  if (auto scaled = dyn_cast<ScaledOp>(op)) {
    types.push_back(ScaledType::get(op->getContext(), scaled.getResult().getType().getFormat(),
                                    rankedType(operands[0]), rankedType(operands[1])));
    return success();
  }
  if (auto product = dyn_cast<BlockScaledMatmulOp>(op)) { // lhs, rhs
    if (!product.hasOnlyElements())
      return failure();
    int64_t rows = bundleDataType(operands[1].getType()).getDimSize(0);
    if (product.hasPrepackedRhs())
      rows = product.getColumns();
    else if (!ShapedType::isDynamic(rows))
      rows /= product.getNumGroups();
    types.push_back(reshaped(bundleDataType(operands[0].getType()).getDimSize(0), rows));
    return success();
  }
  if (isa<DequantizeOp>(op)) {
    RankedTensorType data = rankedType(operands[0]);
    types.push_back(reshaped(data.getDimSize(0), data.getDimSize(1)));
    return success();
  }
  auto inferable = dyn_cast<InferTypeOpInterface>(op);
  if (!inferable || failed(inferable.inferReturnTypes(
                        op->getContext(), op->getLoc(), operands, op->getAttrDictionary(),
                        op->getPropertiesStorage(), op->getRegions(), types)))
    return failure();
  if (auto quantize = dyn_cast<QuantizeOp>(op)) // scales are in the layout that their type says
    for (auto [index, type] : llvm::enumerate(types))
      if (scaleLayout(rankedType(op->getResult(index))))
        type = quantize.getTiledType(cast<RankedTensorType>(type),
                                     index >= 2 || !quantize.hasRowwise());
  return success();
}
