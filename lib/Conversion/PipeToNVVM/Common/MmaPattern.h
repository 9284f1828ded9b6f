//===- MmaPattern.h - Lowering of MMAs by the form of their atom ----------===//
#pragma once

#include "Common/Lowering.h"

namespace fp4 {

/// A pattern for the MMAs whose atom has the form `form`.
template <hw::MmaForm form> struct MmaPattern : PipePattern<pipe::MmaOp> {
  using PipePattern::PipePattern;

  llvm::LogicalResult matchAndRewrite(pipe::MmaOp op, OpAdaptor adaptor,
                                      mlir::ConversionPatternRewriter &rewriter) const final {
    return op.getForm() == form ? lower(op, adaptor, rewriter) : mlir::failure();
  }

  virtual llvm::LogicalResult lower(pipe::MmaOp op, OpAdaptor adaptor,
                                    mlir::ConversionPatternRewriter &rewriter) const = 0;
};

/// Returns `accumulate` (i1), or false where an MMA has no such operand.
inline mlir::Value accumulateOrFalse(mlir::OpBuilder &b, mlir::Location loc,
                                     mlir::Value accumulate) {
  return accumulate ? accumulate : mlir::arith::ConstantIntOp::create(b, loc, 0, 1).getResult();
}

} // namespace fp4
