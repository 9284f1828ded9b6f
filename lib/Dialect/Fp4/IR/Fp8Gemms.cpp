//===- Fp8Gemms.cpp - FP8 with f32 scales: verifiers -------------------===//
//
// Constraints of format fp8_block128 on matmul, in place of those of tiled 8-bit
// scales, and on quantize. The labels (C50), .. are those of docs/reference/semantics.md and
// test/Dialect/Fp4/invalid-fp8.mlir.
//
//===----------------------------------------------------------------------===//
#include "Verify.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::verify;

/// Elements of a row of data that 16 bytes have, the unit of pitch of TMA.
static constexpr int64_t kPitchElements = 16;

RankedTensorType verify::f32ScalesOf(RankedTensorType data, int64_t rows, int64_t columns) {
  int64_t sizes[] = {rows, columns};
  SmallVector<int64_t> blocks;
  for (auto [extent, size] : llvm::zip(data.getShape(), sizes))
    blocks.push_back(ShapedType::isDynamic(extent) ? extent
                                                   : int64_t(llvm::divideCeil(extent, size)));
  return RankedTensorType::get(blocks, Float32Type::get(data.getContext()));
}

/// Returns the type of the scales of rhs; rows of scales begin anew with each group.
static RankedTensorType f32ScalesOfGroups(BlockScaledMatmulOp op, RankedTensorType rhs) {
  RankedTensorType scales = f32ScalesOf(rhs, blockSize(op.getFormat()));
  if (!op.isGrouped())
    return scales;
  int64_t groups = op.getNumGroups(), rows = rhs.getDimSize(0) / groups;
  int64_t blocks = llvm::divideCeil(rows, blockSize(op.getFormat()));
  return scales.clone({groups * blocks, scales.getDimSize(1)});
}

LogicalResult verify::verifyFp8Operands(BlockScaledMatmulOp op) {
  Checked lhs = operand(op, "lhs", op.getLhs()), rhs = operand(op, "rhs", op.getRhs());
  bool isKnown = !lhs.type.isDynamicDim(1); // else the program checks it when it runs
  if ((isKnown &&
       failed(verifyMultiple(lhs, 1, kPitchElements, // matmul (C50)
                             "rows of operands begin at multiples of 16 bytes; pad the contraction "
                             "axis with zeros"))) ||
      failed(verifySplit(op, lhs)))
    return failure();
  if (op.isGrouped() && (failed(verifyGroupRows(op, lhs)) || failed(verifyGroupColumns(op, rhs)) ||
                         failed(verifyGroupAlpha(op))))
    return failure();
  if (failed(verifyType(operand(op, "lhs_scales", op.getLhsScales()), // matmul (C51)
                        f32ScalesOf(lhs.type, 1),
                        "lhs has a row-major f32 scale for each 1 x 128 elements")))
    return failure();
  return verifyType(operand(op, "rhs_scales", op.getRhsScales()), // matmul (C51)
                    f32ScalesOfGroups(op, rhs.type),
                    op.isGrouped()
                        ? "each group of rhs has a row-major f32 scale for each 128 x 128 "
                          "elements"
                        : "rhs has a row-major f32 scale for each 128 x 128 elements");
}

LogicalResult verify::verifyFp8Quantize(QuantizeOp op) {
  Checked input = operand(op, "input", op.getInput());
  if (!input.type.isDynamicDim(1) &&
      failed(verifyMultiple(input, 1, kPitchElements, // quantize (C50)
                            "rows of data begin at multiples of 16 bytes; pad them with zeros")))
    return failure();
  StringRef surplus = op.getOutputs() != Outputs::Rowwise ? "columnwise outputs"
                      : op.getHadamard()                  ? "attribute 'hadamard'"
                      : op.getGroups()                    ? "attribute 'groups'"
                      : op.getOffsets()                   ? "operand 'offsets'"
                      : op.getPerRow()                    ? "attribute 'per_row'"
                                                          : "";
  if (surplus.empty())
    return success();
  return withNote(op.emitOpError("expects no ") // quantize (C51)
                      << surplus << " for format fp8_block128",
                  "leave it out");
}
