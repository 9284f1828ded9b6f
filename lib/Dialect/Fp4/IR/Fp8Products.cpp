//===- Fp8Products.cpp - FP8 with f32 scales: verifiers -------------------===//
//
// What format fp8_block128 asks of blockscaled_matmul in place of tiled 8-bit scales, and of quantize.
// The labels (C50), .. are those of docs/Spec.md and test/Dialect/Fp4/invalid-fp8.mlir.
//
//===----------------------------------------------------------------------===//
#include "Verify.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::verify;

/// Elements of a row of data that 16 bytes have, the unit of pitch of TMA.
static constexpr int64_t kPitchElements = 16;

RankedTensorType verify::f32ScalesOf(RankedTensorType data, int64_t rows) {
  int64_t sizes[] = {rows, blockSize(Format::FP8Block128)};
  SmallVector<int64_t> blocks;
  for (auto [extent, size] : llvm::zip(data.getShape(), sizes))
    blocks.push_back(ShapedType::isDynamic(extent) ? extent
                                                   : int64_t(llvm::divideCeil(extent, size)));
  return RankedTensorType::get(blocks, Float32Type::get(data.getContext()));
}

LogicalResult verify::verifyFp8Operands(BlockScaledMatmulOp op) {
  Checked lhs = operand(op, "lhs", op.getLhs()), rhs = operand(op, "rhs", op.getRhs());
  bool isFused = op.isDual() || !op.hasOnlyElements();
  if (op.isGrouped() || op.getSplitK() || op.usesFma() || isFused) { // blockscaled_matmul (C52)
    auto diag = op.emitOpError("expects no ")
                << (isFused           ? "other product or result"
                    : op.getSplitK()  ? "attribute 'split_k'"
                    : op.usesFma()    ? "arithmetic fma"
                    : op.getOffsets() ? "operand 'offsets'"
                                      : "attribute 'groups'")
                << " for format fp8_block128, but got it";
    diag.attachNote() << "these products are of two whole matrices, on the tensor core";
    return diag;
  }
  if (failed(verifyMultiple(lhs, 1, kPitchElements, // blockscaled_matmul (C50)
                            "rows of operands begin at multiples of 16 bytes; pad the contraction "
                            "axis with zeros")))
    return failure();
  if (failed(verifyType(operand(op, "lhs_scales", op.getLhsScales()), // blockscaled_matmul (C51)
                        f32ScalesOf(lhs.type, 1),
                        "lhs has a row-major f32 scale for each 1 x 128 elements")))
    return failure();
  int64_t block = blockSize(op.getFormat());
  return verifyType(operand(op, "rhs_scales", op.getRhsScales()), // blockscaled_matmul (C51)
                    f32ScalesOf(rhs.type, block),
                    "rhs has a row-major f32 scale for each 128 x 128 elements");
}

LogicalResult verify::verifyFp8Quantize(QuantizeOp op) {
  Checked input = operand(op, "input", op.getInput());
  if (failed(verifyMultiple(input, 1, kPitchElements, // quantize (C50)
                            "rows of data begin at multiples of 16 bytes; pad them with zeros")))
    return failure();
  StringRef surplus = op.getOutputs() != Outputs::Rowwise ? "columnwise outputs"
                      : op.getHadamard()                  ? "attribute 'hadamard'"
                      : op.getGroups()                    ? "attribute 'groups'"
                      : op.getPerRow()                    ? "attribute 'per_row'"
                                                          : "";
  if (surplus.empty())
    return success();
  return op.emitOpError("expects no ") // quantize (C51)
         << surplus << " for format fp8_block128";
}
