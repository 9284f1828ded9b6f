//===- MatmulFormats.cpp - Pairs of formats of a matmul ------------------===//
//
// Kind mxf4nvf4 of the tensor core's block-scaled instructions multiplies elements of 4 bits, kind
// mxf8f6f4 elements of every width under scales of f8E8M0FNU. The labels (C11), (C190), .. are
// those of docs/reference/semantics.md and test/Dialect/Fp4/invalid-formats.mlir.
//
//===----------------------------------------------------------------------===//
#include "Verify.h"

#include "fp4/Dialect/Fp4/IR/DynamicSizes.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::verify;

/// Elements of 4 bits that TMA spreads over shared memory at a time, beside an operand of 8 bits.
static constexpr int64_t kSpreadElements = 128;

static unsigned bitsOf(Format format) { return numerics::elementOf(blockFormat(format)).bits; }

bool verify::hasByteLhs(BlockScaledMatmulOp op) {
  return op.hasFloatLhs() && isa<Float8E4M3FNType>(rankedType(op.getLhs()).getElementType());
}

bool BlockScaledMatmulOp::hasUnitScales() { return hasByteLhs(*this) && !hasPrepackedRhs(); }

bool BlockScaledMatmulOp::isMXF8F6F4() {
  bool isPacked = hasPackedData(getFormat()) && hasPackedData(getFormatOfRhs());
  return hasUnitScales() || (!hasF32Scales() && !hasFloatLhs() && !isPacked);
}

/// blockscaled_matmul (C11): elements that a matrix instruction has. Beside floats weights have 4
/// bits.
static LogicalResult verifyWidth(BlockScaledMatmulOp op, StringRef name, Format format) {
  if (bitsOf(format) == 4 || !op.hasFloatLhs() || hasF32Scales(format))
    return success();
  auto diag = op.emitOpError("attribute '")
              << name << "' must have elements of 4 bits, but got " << stringifyFormat(format);
  diag.attachNote() << "weights beside activations without scales are nvfp4 or mxfp4";
  return diag;
}

/// blockscaled_matmul (C190): formats of one instruction.
static LogicalResult verifyPair(BlockScaledMatmulOp op) {
  if (!op.getRhsFormat())
    return success();
  if (op.hasFloatLhs())
    return withNote(op.emitOpError("expects no attribute 'rhs_format' beside a lhs without scales"),
                    "leave it out: 'format' is that of rhs");
  Format lhs = op.getFormat(), rhs = *op.getRhsFormat();
  bool isPair = numerics::isMX(blockFormat(lhs)) && numerics::isMX(blockFormat(rhs));
  if (lhs == rhs || isPair)
    return success();
  auto diag = op.emitOpError("attribute 'rhs_format' must be a format that goes with ")
              << stringifyFormat(lhs) << ", but got " << stringifyFormat(rhs);
  diag.attachNote() << "an instruction has one type of scales, and one block, for both operands: "
                       "quantize both to formats of f8E8M0FNU (mxfp4, mxfp8), or to one format";
  return diag;
}

/// blockscaled_matmul (C191): rows of 4-bit elements that TMA can spread.
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

LogicalResult verify::verifyFormats(BlockScaledMatmulOp op) {
  if (failed(verifyWidth(op, "format", op.getFormat())) || // blockscaled_matmul (C11)
      failed(verifyWidth(op, "rhs_format", op.getFormatOfRhs())))
    return failure();
  return verifyPair(op);
}

LogicalResult verify::verifyMXF8F6F4(BlockScaledMatmulOp op, const Checked &lhs,
                                     const Checked &rhs) {
  if (!op.isMXF8F6F4())
    return success();
  if (op.usesFma()) { // blockscaled_matmul (C192)
    auto diag = op.emitOpError("expects no arithmetic fma for elements of 8 bits, but got it");
    diag.attachNote() << "leave 'arithmetic' out, and the tensor core multiplies; or quantize both "
                         "operands to 4 bits";
    return diag;
  }
  return verifySpread(op, lhs, rhs);
}
