//===- FusedGemm.cpp - Dual GEMMs and quantized results ----------------===//
//
// Operands and results of the epilogue of fp4.blockscaled_matmul besides one GEMM and its elements:
// a second GEMM of the same lhs, the largest magnitude of the elements, and their codes and scales.
//
//===----------------------------------------------------------------------===//
#include "Verify.h"

#include "fp4/Dialect/Fp4/IR/DynamicSizes.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::verify;

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

static Outputs outputsOf(BlockScaledMatmulOp op) {
  return op.getQuantizeOutputs().value_or(Outputs::Rowwise);
}

bool BlockScaledMatmulOp::quantizesRows() {
  return getQuantizeRecipe() && outputsOf(*this) != Outputs::Columnwise;
}

bool BlockScaledMatmulOp::quantizesColumns() {
  return getQuantizeRecipe() && outputsOf(*this) != Outputs::Rowwise;
}

/// Results that attributes ask for.
static unsigned numDerived(BlockScaledMatmulOp op) {
  return 2 * (op.quantizesRows() + op.quantizesColumns()) + op.getWithAmax();
}

TypedValue<RankedTensorType> BlockScaledMatmulOp::getResult() {
  if (getNumResults() <= numDerived(*this))
    return {};
  return cast<TypedValue<RankedTensorType>>(getOperation()->getResult(0));
}

ResultRange BlockScaledMatmulOp::getQuantized() {
  return getResults().slice(getResult() ? 1 : 0, numDerived(*this) - getWithAmax());
}

Value BlockScaledMatmulOp::getAmax() { return getWithAmax() ? getResults().back() : Value(); }

Type BlockScaledMatmulOp::getElementType() {
  if (Value result = getResult())
    return rankedType(result).getElementType();
  return cast<YieldOp>(getEpilogueBody().front().getTerminator()).getValue().getType();
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

/// blockscaled_matmul (C40): a second GEMM of one lhs.
static LogicalResult verifyDual(BlockScaledMatmulOp op) {
  bool isPrepacked = op.getRhs2() && op.hasPrepackedRhs();
  if (static_cast<bool>(op.getRhs2()) != (isPrepacked || op.getRhs2Scales()))
    return withNote(op.emitOpError("expects operands 'rhs2' and 'rhs2_scales' together"),
                    "pass both, or neither for a matmul of one rhs");
  if (isPrepacked && op.getRhs2Scales())
    return withNote(op.emitOpError("expects no operand 'rhs2_scales' beside prepacked weights"),
                    "leave it out: tiles of fp4.prepack contain their scales");
  if (op.getAlpha2() && !op.getRhs2())
    return withNote(op.emitOpError("expects operand 'alpha2' only beside 'rhs2', but got one"),
                    "leave it out; 'alpha' is the factor of the one matmul");
  if (!op.getRhs2())
    return success();
  if (failed(verifyType(operand(op, "rhs2", op.getRhs2()), rankedType(op.getRhs()),
                        "both matmuls have the shape of the result")) ||
      (!isPrepacked && failed(verifyType(operand(op, "rhs2_scales", op.getRhs2Scales()),
                                         rankedType(op.getRhsScales())))))
    return failure();
  if (static_cast<bool>(op.getAlpha()) != static_cast<bool>(op.getAlpha2()))
    return withNote(op.emitOpError("expects operands 'alpha' and 'alpha2' of a dual GEMM together"),
                    "pass a constant 1.0 for the matmul that needs no factor");
  if (op.getAlpha2() &&
      failed(verifyType(operand(op, "alpha2", op.getAlpha2()), rankedType(op.getAlpha()))))
    return failure();
  if (op.getEpilogue())
    return withNote(op.emitOpError("expects no attribute 'epilogue' in a dual GEMM, but got one"),
                    "write its steps in the epilogue region");
  return success();
}

/// blockscaled_matmul (C41): companions of an epilogue region, and of a matmul that is one and
/// whole.
static LogicalResult verifyNeeds(BlockScaledMatmulOp op) {
  if (op.getQuantizeOutputs() && !op.getQuantizeRecipe())
    return withNote(
        op.emitOpError("expects attribute 'quantize_outputs' only beside 'quantize_recipe'"),
        "leave it out, or say the recipe that quantizes the result");
  StringRef what = op.isDual()              ? "operand 'rhs2'"
                   : op.getQuantizeRecipe() ? "attribute 'quantize_recipe'"
                   : op.getWithAmax()       ? "attribute 'with_amax'"
                                            : "";
  if (what.empty())
    return success();
  if (op.getEpilogueBody().empty()) {
    auto diag = op.emitOpError("expects an epilogue region beside ") << what << ", but got none";
    diag.attachNote() << "the epilogue region says what becomes of the sums, and in which type";
    return diag;
  }
  if (op.addsRanges())
    return withNote(op.emitOpError("expects no split-K beside ") << what,
                    "leave it out, or compute it with an operation of its own behind the matmul");
  if (op.isGrouped() && (op.getWithAmax() || op.quantizesColumns()))
    return withNote(op.emitOpError("expects no groups beside ")
                        << (op.getWithAmax() ? "attribute 'with_amax'" : "columnwise outputs"),
                    "compute it with an operation of its own behind the matmul");
  return success();
}

/// blockscaled_matmul (C42): the recipe, its amax, and whole blocks.
static LogicalResult verifyResultRecipe(BlockScaledMatmulOp op) {
  if (!op.getQuantizeRecipe()) {
    if (op.getQuantizeAmax())
      return withNote(
          op.emitOpError("expects operand 'quantize_amax' only beside 'quantize_recipe'"),
          "leave it out, or say the recipe that quantizes the result");
    return success();
  }
  numerics::Recipe recipe = op.getQuantizeRecipe()->getDecisions();
  if (!numerics::isPacked(recipe.format))
    return withNote(
        op.emitOpError("attribute 'quantize_recipe' must have elements of 4 bits, but got ")
            << StringRef(recipe.name),
        "quantize the result with fp4.quantize");
  if (numerics::hasTensorScale(recipe) != static_cast<bool>(op.getQuantizeAmax()))
    return withNote(op.emitOpError("expects ")
                        << (op.getQuantizeAmax() ? "no operand" : "operand")
                        << " 'quantize_amax' for recipe " << StringRef(recipe.name) << ", but got "
                        << (op.getQuantizeAmax() ? "one" : "none"),
                    "the recipe says whether there is a scale of the tensor "
                    "(docs/reference/recipes.md)");
  if (op.getQuantizeAmax() &&
      failed(verifyScalar(operand(op, "quantize_amax", op.getQuantizeAmax()))))
    return failure();
  int64_t block = numerics::blockSizeOf(recipe.format);
  if (op.quantizesRows() && !hasDynamicColumns(op) && op.getColumns() % block) // or when it runs
    return withNote(op.emitOpError("expects N a multiple of ")
                        << block << " beside 'quantize_recipe', but got " << op.getColumns(),
                    "pad rhs with rows of zeros, or quantize the result with fp4.quantize");
  int64_t rows = rankedType(op.getLhs()).getDimSize(0);
  if (op.quantizesColumns() && (ShapedType::isDynamic(rows) || rows % block))
    return withNote(op.emitOpError("expects M static and a multiple of ")
                        << block << " beside columnwise outputs",
                    "leave columnwise outputs to fp4.quantize, or pad lhs with rows of zeros");
  return success();
}

/// The data and the scales of one orientation of a matrix.
static LogicalResult verifySideResults(BlockScaledMatmulOp op, unsigned first, int64_t rows,
                                       int64_t columns) {
  Format format = formatOf(op.getQuantizeRecipe()->getDecisions().format);
  auto data = RankedTensorType::get({rows, columns}, Float4E2M1FNType::get(op.getContext()));
  Checked codes = result(op, "data", op.getQuantized()[first]);
  Checked scales = result(op, "scales", op.getQuantized()[first + 1]);
  RankedTensorType plain = scalesOf(data, format);
  bool isTiled = scaleLayout(scales.type) == ScaleLayout::Tiled128x4;
  if (failed(verifyType(codes, data)))
    return failure();
  if (isTiled && op.isGrouped())
    return verifyType(scales, scaleListOfGroups(op, plain),
                      "tiled scales are a list of the tiles of all groups, each padded to 128 rows "
                      "and 4 blocks, as a matmul of these groups takes them");
  return verifyType(scales, isTiled ? withScaleLayout(plain, ScaleLayout::Tiled128x4) : plain);
}

/// blockscaled_matmul (C43): as many results as attributes ask for, and the elements or not.
LogicalResult verify::verifyResultCount(BlockScaledMatmulOp op) {
  unsigned derived = numDerived(op);
  if (op->getNumResults() == derived + 1 || (derived > 0 && op->getNumResults() == derived))
    return success();
  auto diag = op.emitOpError("expects ")
              << derived << " results of its attributes, and at most one "
              << "of its elements, but got " << op->getNumResults();
  diag.attachNote() << "'quantize_recipe' gives data and scales of each orientation, and "
                       "'with_amax' an amax; without them the elements are the result";
  return diag;
}

/// blockscaled_matmul (C43): the types of what is derived from the elements.
static LogicalResult verifyDerived(BlockScaledMatmulOp op) {
  int64_t rows = rankedType(op.getLhs()).getDimSize(0), columns = op.getColumns();
  if (op.quantizesRows() && failed(verifySideResults(op, 0, rows, columns)))
    return failure();
  if (op.quantizesColumns() &&
      failed(verifySideResults(op, op.quantizesRows() ? 2 : 0, columns, rows)))
    return failure();
  return op.getAmax() ? verifyScalar(result(op, "amax", op.getAmax())) : success();
}

LogicalResult verify::verifyFusedGemm(BlockScaledMatmulOp op) {
  return failure(failed(verifyDual(op)) || failed(verifyNeeds(op)) ||
                 failed(verifyResultRecipe(op)) || failed(verifyDerived(op)));
}
