//===- Verify.h - Common checks of the fp4 dialect ------------------------===//
//
// One function per condition, so that its message exists once. Each reports at the operation and
// names the operand or result; callers carry the label of the constraint.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

namespace fp4::verify {

/// One operand or result under verification: `what` is its kind and name, "operand 'input'".
struct Checked {
  mlir::Operation *op;
  std::string what;
  mlir::RankedTensorType type;

  mlir::InFlightDiagnostic must(const llvm::Twine &condition) const;
};

Checked operand(mlir::Operation *op, llvm::StringRef name, mlir::Value value);
Checked result(mlir::Operation *op, llvm::StringRef name, mlir::Value value);

/// operation (C200): sizes that verifiers can add and multiply.
mlir::LogicalResult verifyExtents(const Checked &value);
/// Checks such extents, and two dimensions in a layout that has a buffer. Columns are static,
/// unless the operation `takesColumns` of any number.
mlir::LogicalResult verifyMatrix(const Checked &value, bool takesColumns = false);
/// Dynamic columns go with no `need`, where that is not empty.
mlir::LogicalResult verifyColumnsBeside(const Checked &input, llvm::StringRef need);
/// bf16, f16 or f32; `known` is what the message says is allowed.
mlir::LogicalResult verifyRealElements(const Checked &value,
                                       llvm::StringRef known = "bf16, f16 or f32");
mlir::LogicalResult verifyDataElements(const Checked &value, Format format);
mlir::LogicalResult verifyScaleElements(const Checked &value, Format format);
/// tensor<f32>.
mlir::LogicalResult verifyScalar(const Checked &value);
mlir::LogicalResult verifyType(const Checked &value, mlir::RankedTensorType expected,
                               llvm::StringRef note = "");
mlir::LogicalResult verifyRowMajor(const Checked &scales);
mlir::LogicalResult verifyTiled(const Checked &scales);

/// matmul (C4): operands with scales are results of fp4.scaled (MatmulOperands.cpp).
mlir::LogicalResult verifyBundles(BlockScaledMatmulOp op);
/// matmul (C17), (C321): sides that have no scales.
mlir::LogicalResult verifyUnscaled(BlockScaledMatmulOp op, const Checked &lhs);
/// matmul (C11), (C190): the operands of a matmul are a pair of the table of routes,
/// which has such GEMMs (MatmulFormats.cpp).
mlir::LogicalResult verifyPair(BlockScaledMatmulOp op);
/// (C191): what elements of 8 bits go with.
mlir::LogicalResult verifyMXF8F6F4(BlockScaledMatmulOp op, const Checked &lhs, const Checked &rhs);
/// matmul (C8): companions of dynamic N or K (DynamicGemms.cpp).
mlir::LogicalResult verifyDynamicSizes(BlockScaledMatmulOp op, const Checked &lhs,
                                       const Checked &rhs);
/// The data of both sides of a matmul.
mlir::LogicalResult verifyData(BlockScaledMatmulOp op, const Checked &lhs, const Checked &rhs);
/// Weights of `format` as fp4.prepack gives them.
mlir::LogicalResult verifyPrepacked(const Checked &weights, Format format);
/// matmul (C2), (C10): K and N end within the last tiles of a prepacked rhs (PrepackOps.cpp).
mlir::LogicalResult verifyPackedDepth(const Checked &lhs, const Checked &rhs);
mlir::LogicalResult verifyPackedColumns(BlockScaledMatmulOp op, const Checked &output,
                                        const Checked &rhs);

/// The extent of `dimension` is static and a multiple of `multiple`; `why` is the note.
mlir::LogicalResult verifyMultiple(const Checked &value, int64_t dimension, int64_t multiple,
                                   const llvm::Twine &why);
/// Checks whole blocks of `format` along `dimension`.
mlir::LogicalResult verifyBlockMultiple(const Checked &value, int64_t dimension, Format format);
/// `dimension` is a contraction axis that quantizers can cut: whole blocks for mxfp4, whose blocks
/// have no remainder.
mlir::LogicalResult verifyBlockAxis(const Checked &value, int64_t dimension, Format format);

/// `groups`, where there are any, are the rows of matrices stacked in `input`: at least one, none
/// negative, all together the rows there are, and each a multiple of `multiple` for `why`.
mlir::LogicalResult verifyGroups(const Checked &input,
                                 std::optional<llvm::ArrayRef<int64_t>> groups,
                                 int64_t multiple = 1, const llvm::Twine &why = "");
/// Groups of rows: those of attribute 'groups', or of `offsets`, that are no null; none of neither.
std::optional<int64_t> countGroups(std::optional<llvm::ArrayRef<int64_t>> groups,
                                   mlir::Value offsets);
/// The numbers of rows of groups that only the device knows, of the operation of `rows`, to which
/// they belong. `remedy` is for too many of them.
mlir::LogicalResult verifyOffsets(const Checked &rows, mlir::Value offsets, llvm::StringRef remedy);
/// The tiles of the scales of groups, where row-major ones of all rows have type `scales`: with
/// offsets, as many as any groups may have.
mlir::RankedTensorType tilesOfOffsets(mlir::RankedTensorType scales, mlir::Value offsets);
/// The type of an amax: tensor<f32>, or one number for each of some groups.
mlir::RankedTensorType amaxType(mlir::MLIRContext *context, std::optional<int64_t> groups);
/// Returns the type of one amax per row (dimension 0) or column (1) of `matrix`.
mlir::RankedTensorType lineAmaxType(mlir::RankedTensorType matrix, unsigned dimension);
mlir::LogicalResult verifyAmaxType(const Checked &value, std::optional<int64_t> groups);

/// matmul: its number of results, and its epilogue region (EpilogueRegion.cpp).
mlir::LogicalResult verifyResultCount(BlockScaledMatmulOp op);
mlir::LogicalResult verifyRegion(BlockScaledMatmulOp op);
/// attention (C20), (C21): its epilogue region, and the results of it (EpilogueRegion.cpp).
mlir::LogicalResult verifyRegion(AttentionOp op);
/// The data and the scales of a matrix of `shape`; tiled scales of groups are `list`.
mlir::LogicalResult verifyQuantizedSide(const Checked &codes, const Checked &scales, Format format,
                                        llvm::ArrayRef<int64_t> shape,
                                        mlir::RankedTensorType list = {});
/// A second GEMM, and the results that are not the elements (FusedGemm.cpp).
mlir::LogicalResult verifyFusedGemm(BlockScaledMatmulOp op);
/// matmul (C14): split-K.
mlir::LogicalResult verifySplit(BlockScaledMatmulOp op, const Checked &lhs);
/// matmul (C606): sums that stay in the accumulator of the tensor core.
mlir::LogicalResult verifyFastAccumulation(BlockScaledMatmulOp op);
/// The list of tiles that `scales`, row-major ones of all rows, are of the groups of `op`.
mlir::RankedTensorType scaleListOfGroups(BlockScaledMatmulOp op, mlir::RankedTensorType scales);
/// matmul (C15): the rows of groups.
mlir::LogicalResult verifyGroupRows(BlockScaledMatmulOp op, const Checked &lhs);
/// matmul (C640) to (C643): plans by size.
mlir::LogicalResult verifyDispatch(BlockScaledMatmulOp op);
/// matmul (C353): what plans are told of groups.
mlir::LogicalResult verifyExpectedRows(BlockScaledMatmulOp op, const Checked &lhs);
/// matmul (C460): rows that the matmul does not write.
mlir::LogicalResult verifyUnspecifiedRows(BlockScaledMatmulOp op);
/// matmul (C16): the rows of rhs, the alpha, and all operands of groups of 4 bits.
mlir::LogicalResult verifyGroupColumns(BlockScaledMatmulOp op, const Checked &rhs);
mlir::LogicalResult verifyGroupAlpha(BlockScaledMatmulOp op);
mlir::LogicalResult verifyGroupOperands(BlockScaledMatmulOp op, const Checked &lhs,
                                        const Checked &rhs);
/// matmul (C50), (C51): operands of format fp8_block128, but for their elements.
mlir::LogicalResult verifyFp8Operands(BlockScaledMatmulOp op);
/// quantize (C50), (C51): what format fp8_block128 goes with.
mlir::LogicalResult verifyFp8Quantize(QuantizeOp op);
/// The row-major f32 scales of `data`, of blocks of `rows` x `columns`.
mlir::RankedTensorType f32ScalesOf(mlir::RankedTensorType data, int64_t rows,
                                   int64_t columns = blockSize(Format::FP8Block128));

mlir::RankedTensorType rankedType(mlir::Value value);
/// The row-major scales of a matrix of type `data`, blocks along dimension 1.
mlir::RankedTensorType scalesOf(mlir::RankedTensorType data, Format format);

} // namespace fp4::verify
