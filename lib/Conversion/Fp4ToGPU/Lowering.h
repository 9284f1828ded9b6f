//===- Lowering.h - The lowerings of this conversion ----------------------===//
//
// Each function replaces one operation by a kernel and its launch, or reports at the operation why
// there is no kernel for it. Fp4ToGPU.cpp erases what was replaced.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/ISA/TargetModel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/SymbolTable.h"

namespace fp4 {

struct LoweringContext {
  mlir::SymbolTable &symbols; ///< symbols of the module of the kernels
  const hw::TargetModel &target;
  /// Kernels load and store as they do, and have a sum of the loaded bits in place of their
  /// arithmetic: the twins that benchmarks time beside kernels. Results are garbage.
  bool noArithmetic;
  KernelPlan plan = {};     ///< plan of the lowered operation
  bool isRowKernel = false; ///< the lowered operation is the last one of a row kernel
  /// Buffers of results, and those that kernels of other cases of the same operation write, too.
  llvm::DenseMap<mlir::Value, mlir::Value> buffers = llvm::DenseMap<mlir::Value, mlir::Value>();
  /// Quantizers whose kernel computes their amax too, and what that does with NaN.
  llvm::DenseMap<mlir::Operation *, NanPolicy> withAmax = llvm::DenseMap<mlir::Operation *, NanPolicy>();
};

mlir::LogicalResult lowerAmax(AmaxOp op, LoweringContext &context);

/// The quantizer whose kernel computes `amax` too, as its plan says, where its grid is not too
/// large; null where there is none.
QuantizeOp quantizerOf(AmaxOp amax, const LoweringContext &context);
/// Returns true (i1, on the host) when the grid of that kernel has a CTA and at most kAmaxEighths
/// of the CTAs that fit on the GPU at once.
mlir::Value fitsAtOnce(QuantizeOp quantize, mlir::ImplicitLocOpBuilder &host,
                       const hw::TargetModel &target, mlir::Value rows, mlir::Value columns);
/// Elements of which dynamic columns of the input are a multiple: whole blocks and transforms, and
/// whole units of 16 bytes of codes in a row.
int64_t unitOfColumns(QuantizeOp quantize);

mlir::LogicalResult lowerPrepack(PrepackOp op, LoweringContext &context);
mlir::LogicalResult lowerUnprepack(UnprepackOp op, LoweringContext &context);
/// Tiles for activations of e4m3 (Scales/PrepackBytes.cpp).
mlir::LogicalResult lowerPrepackBytes(PrepackOp op, LoweringContext &context);
mlir::LogicalResult lowerUnprepackBytes(UnprepackOp op, LoweringContext &context);
mlir::LogicalResult lowerMatmulAlpha(MatmulAlphaOp op, LoweringContext &context);
mlir::LogicalResult lowerTileQuantize(QuantizeOp op, LoweringContext &context);
mlir::LogicalResult lowerRowwiseQuantize(QuantizeOp op, LoweringContext &context);
/// Lowers a quantizer of blocks under an f32.
mlir::LogicalResult lowerF32Quantize(QuantizeOp op, LoweringContext &context);
mlir::LogicalResult lowerDequantize(DequantizeOp op, LoweringContext &context);
mlir::LogicalResult lowerSwizzle(SwizzleScalesOp op, LoweringContext &context);
mlir::LogicalResult lowerUnswizzle(UnswizzleScalesOp op, LoweringContext &context);
mlir::LogicalResult lowerStackScales(StackScalesOp op, LoweringContext &context);
mlir::LogicalResult lowerInterleaveShards(InterleaveShardsOp op, LoweringContext &context);
mlir::LogicalResult lowerHadamard(HadamardOp op, LoweringContext &context);
mlir::LogicalResult lowerElementwise(mlir::linalg::GenericOp op, LoweringContext &context);
/// Lowers the last operation of a row kernel, with its prologues (Rows/RowKernel.cpp).
mlir::LogicalResult lowerRows(mlir::Operation *op, LoweringContext &context);
using Lowering = mlir::LogicalResult (*)(mlir::Operation *op, LoweringContext &context);
/// Lowers an operation whose plans depend on its rows to a kernel for each (Rows/RowCases.cpp);
/// `lower` makes one.
mlir::LogicalResult lowerRowCases(mlir::Operation *op, LoweringContext &context, Lowering lower);
/// Lowers an order of tokens to one cluster of CTAs; a twin without arithmetic is the same kernel.
mlir::LogicalResult lowerExpertOrder(ExpertOrderOp op, LoweringContext &context);
/// Lowers attention of plan warp_attention (Attention/WarpAttention.cpp).
mlir::LogicalResult lowerWarpAttention(AttentionOp op, LoweringContext &context);
mlir::LogicalResult lowerGemv(BlockScaledMatmulOp op, LoweringContext &context);
mlir::LogicalResult lowerHadamardAmax(HadamardAmaxOp op, LoweringContext &context);

} // namespace fp4
