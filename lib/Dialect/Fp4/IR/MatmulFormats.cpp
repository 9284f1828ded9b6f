//===- MatmulFormats.cpp - Pairs of operands of a matmul -----------------===//
//
// The table of routes says which pairs of operands there are. Kind mxf4nvf4 of the tensor core's
// block-scaled instructions multiplies elements of 4 bits, kind mxf8f6f4 elements of every width
// under scales of f8E8M0FNU. The labels (C11), (C190), .. are those of docs/reference/semantics.md
// and test/Dialect/Fp4/invalid-formats.mlir.
//
//===----------------------------------------------------------------------===//
#include "Verify.h"

#include "fp4/Dialect/Fp4/IR/DynamicSizes.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Fp4/IR/Signature.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::verify;

/// Elements of 4 bits that TMA spreads over shared memory at a time, beside an operand of 8 bits.
static constexpr int64_t kSpreadElements = 128;

bool BlockScaledMatmulOp::hasUnitScales() {
  return route::pairOf(signatureOf(*this)) == route::Pair::ByteScaled;
}

bool BlockScaledMatmulOp::isMXF8F6F4() {
  using enum route::Pair;
  route::Pair pair = route::pairOf(signatureOf(*this));
  return pair == Mx8 || pair == Mx8DoubleK || pair == Mx6 || pair == ByteScaled;
}

LogicalResult verify::verifyPair(BlockScaledMatmulOp op) {
  auto pair = route::requirePair(signatureOf(op));
  if (pair)
    return success();
  auto diag = op.emitOpError("expects a GEMM that a route has, but ") // matmul (C190)
              << pair.error().message;
  diag.attachNote() << pair.error().note;
  return diag;
}

/// matmul (C191): rows of 4-bit elements that TMA can spread.
static LogicalResult verifySpread(BlockScaledMatmulOp op, const Checked &lhs, const Checked &rhs) {
  StringRef why =
      "beside an operand of 8 bits, elements of 4 bits are loaded 128 at a time; pad the "
      "contraction axis of both operands with zeros, or quantize both to one format";
  if (hasDynamicDepth(op)) // the program checks it when it runs
    return success();
  if (hasPackedData(op.getFormat()) && failed(verifyMultiple(lhs, 1, kSpreadElements, why)))
    return failure();
  if (hasPackedData(op.getFormatOfRhs()) && failed(verifyMultiple(rhs, 1, kSpreadElements, why)))
    return failure();
  return success();
}

LogicalResult verify::verifyMXF8F6F4(BlockScaledMatmulOp op, const Checked &lhs,
                                     const Checked &rhs) {
  return op.isMXF8F6F4() ? verifySpread(op, lhs, rhs) : success();
}
