//===- DynamicGemms.cpp - Matmuls of any N and K: verifiers ------------===//
//
// Constraints of matmuls whose N or K is dynamic. The label (C8) is that of
// docs/reference/semantics.md and test/Dialect/Fp4/invalid-dynamic.mlir.
//
//===----------------------------------------------------------------------===//
#include "Verify.h"

#include "fp4/Dialect/Fp4/IR/DynamicSizes.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::verify;

/// Returns the part of `op` that asks for static sizes; empty if there is none.
static StringRef needOfStaticSizes(BlockScaledMatmulOp op) {
  if (op.isGrouped())
    return "groups";
  if (op.addsRanges())
    return "split-K";
  if (op.getArithmetic())
    return "attribute 'arithmetic'";
  return "";
}

bool fp4::hasDynamicColumns(BlockScaledMatmulOp product) {
  return ShapedType::isDynamic(product.getColumns());
}

bool fp4::hasDynamicDepth(BlockScaledMatmulOp product) {
  return cast<RankedTensorType>(product.getLhs().getType()).isDynamicDim(1);
}

Value fp4::operandOfColumns(BlockScaledMatmulOp product) {
  for (Value alpha : {Value(product.getAlpha()), Value(product.getAlpha2())})
    if (auto type = alpha ? cast<RankedTensorType>(alpha.getType()) : RankedTensorType();
        type && type.getRank() == 2 && type.getDimSize(1) != 1)
      return alpha;
  return {};
}

LogicalResult verify::verifyDynamicSizes(BlockScaledMatmulOp op, const Checked &lhs,
                                         const Checked &rhs) {
  bool isDynamic = !rhs.type.hasStaticShape() || lhs.type.isDynamicDim(1);
  if (!isDynamic)
    return success();
  StringRef need = needOfStaticSizes(op);
  if (need.empty())
    return success();
  auto diag = op.emitOpError("expects static N and K beside ") // matmul (C8)
              << need << ", but got " << rhs.type;
  diag.attachNote() << "leave it out, or give N and K static sizes and compile a function for "
                       "each; M may be dynamic";
  return diag;
}
