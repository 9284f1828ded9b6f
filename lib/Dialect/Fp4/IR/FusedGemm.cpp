//===- FusedGemm.cpp - Dual GEMMs and quantized results ----------------===//
//
// Operands and results of the epilogue of fp4.matmul besides one GEMM and its elements:
// a second GEMM of the same lhs, the largest magnitude of the elements, and their codes and scales.
//
//===----------------------------------------------------------------------===//
#include "Verify.h"

#include "fp4/Dialect/Fp4/IR/DynamicSizes.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::verify;

/// matmul (C40): a second GEMM of one lhs.
static LogicalResult verifyDual(BlockScaledMatmulOp op) {
  if (op.getAlpha2() && !op.getRhs2())
    return withNote(op.emitOpError("expects operand 'alpha2' only beside 'rhs2', but got one"),
                    "leave it out; 'alpha' is the factor of the one matmul");
  if (!op.getRhs2())
    return success();
  if (op.getRhs2Operand().getType() != op.getRhsOperand().getType())
    return withNote(op.emitOpError("operand 'rhs2' must have the type of 'rhs', ")
                        << op.getRhsOperand().getType() << ", but got "
                        << op.getRhs2Operand().getType(),
                    "both matmuls have the shape of the result, and one format");
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

/// matmul (C41): companions of an epilogue region, and of a matmul that is one and whole.
static LogicalResult verifyNeeds(BlockScaledMatmulOp op) {
  StringRef what = op.isDual()              ? "operand 'rhs2'"
                   : op.getQuantizeRecipe() ? "fp4.epilogue_quantize"
                   : op.getWithAmax()       ? "fp4.epilogue_amax"
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
                        << (op.getWithAmax() ? "fp4.epilogue_amax" : "columnwise outputs"),
                    "compute it with an operation of its own behind the matmul");
  return success();
}

/// matmul (C42): whole blocks.
static LogicalResult verifyWholeBlocks(BlockScaledMatmulOp op) {
  if (!op.getQuantizeRecipe())
    return success();
  numerics::Recipe recipe = op.getQuantizeRecipe()->getDecisions();
  int64_t block = numerics::blockSizeOf(recipe.format);
  if (op.quantizesRows() && !hasDynamicColumns(op) && op.getColumns() % block) // or when it runs
    return withNote(op.emitOpError("expects N a multiple of ")
                        << block << " beside fp4.epilogue_quantize, but got " << op.getColumns(),
                    "pad rhs with rows of zeros, or quantize the result with fp4.quantize");
  int64_t rows = rankedType(op.getLhs()).getDimSize(0);
  if (op.quantizesColumns() && (ShapedType::isDynamic(rows) || rows % block))
    return withNote(op.emitOpError("expects M static and a multiple of ")
                        << block << " beside columnwise outputs",
                    "leave columnwise outputs to fp4.quantize, or pad lhs with rows of zeros");
  return success();
}

LogicalResult verify::verifyQuantizedSide(const Checked &codes, const Checked &scales,
                                          Format format, ArrayRef<int64_t> shape,
                                          RankedTensorType list) {
  auto data = RankedTensorType::get(shape, dataType(codes.type.getContext(), format));
  RankedTensorType plain = scalesOf(data, format);
  bool isTiled = scaleLayout(scales.type) == ScaleLayout::Tiled128x4;
  if (failed(verifyType(codes, data)))
    return failure();
  if (isTiled && list)
    return verifyType(scales, list,
                      "tiled scales are a list of the tiles of all groups, each padded to 128 rows "
                      "and 4 blocks, as a matmul of these groups takes them");
  return verifyType(scales, isTiled ? withScaleLayout(plain, ScaleLayout::Tiled128x4) : plain);
}

/// The data and the scales of one orientation of a matrix.
static LogicalResult verifySideResults(BlockScaledMatmulOp op, unsigned first, int64_t rows,
                                       int64_t columns) {
  Format format = formatOf(op.getQuantizeRecipe()->getDecisions().format);
  auto data = RankedTensorType::get({rows, columns}, dataType(op.getContext(), format));
  return verifyQuantizedSide(
      result(op, "data", op.getQuantized()[first]),
      result(op, "scales", op.getQuantized()[first + 1]), format, {rows, columns},
      op.isGrouped() ? scaleListOfGroups(op, scalesOf(data, format)) : RankedTensorType());
}

/// matmul (C43): the types of what is derived from the elements.
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
                 failed(verifyWholeBlocks(op)) || failed(verifyDerived(op)));
}
