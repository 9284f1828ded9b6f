//===- LowerNeighbours.cpp - Elementwise operations of tosa beside fp4 ----===//
//
// Operations behind a matmul or before a quantizer go into its kernel, once they are linalg. The
// patterns of upstream are applied to operations that are connected with an fp4 operation through
// elementwise operations and reshapes.
//
//===----------------------------------------------------------------------===//
#include "LowerNeighbours.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include "mlir/Conversion/TosaToArith/TosaToArith.h"
#include "mlir/Conversion/TosaToLinalg/TosaToLinalg.h"
#include "mlir/Conversion/TosaToTensor/TosaToTensor.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tosa/IR/TosaOps.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;

namespace {

bool isView(Operation *op) { return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op); }

bool isLowered(Operation *op) {
  return op->hasTrait<OpTrait::tosa::TosaElementwiseOperator>() ||
         isa<tosa::CastOp, tosa::ClampOp, tosa::ErfOp, tosa::MulOp, tosa::NegateOp,
             tosa::ReshapeOp, tosa::SigmoidOp, tosa::TanhOp>(op);
}

bool isConstant(Operation *op) { return isa<tosa::ConstOp, tosa::ConstShapeOp>(op); }

/// The operations of tosa to lower.
SetVector<Operation *> neighboursOf(ModuleOp module) {
  SetVector<Operation *> found;
  module.walk([&](Operation *op) {
    if (isa<fp4::Fp4Dialect>(op->getDialect()))
      found.insert(op);
  });
  auto add = [&](Operation *op) {
    if (op && (isLowered(op) || isView(op)))
      found.insert(op);
  };
  for (size_t i = 0; i < found.size(); ++i) {
    Operation *op = found[i];
    llvm::for_each(op->getUsers(), add);
    for (Value operand : op->getOperands())
      add(operand.getDefiningOp());
  }
  SetVector<Operation *> constants;
  for (Operation *op : found)
    for (Value operand : op->getOperands())
      if (Operation *constant = operand.getDefiningOp(); constant && isConstant(constant))
        constants.insert(constant);
  found.insert(constants.begin(), constants.end());
  found.remove_if([](Operation *op) { return !isa<tosa::TosaDialect>(op->getDialect()); });
  return found;
}

} // namespace

LogicalResult fp4::lowerNeighbours(ModuleOp module) {
  SetVector<Operation *> lowered = neighboursOf(module);
  if (lowered.empty())
    return success();
  MLIRContext *context = module.getContext();
  llvm::DenseSet<Operation *> kept;
  module.walk([&](Operation *op) {
    if (!lowered.contains(op))
      kept.insert(op);
  });
  TypeConverter converter;
  tosa::populateTosaTypeConversion(converter);
  RewritePatternSet patterns(context);
  tosa::populateTosaToLinalgConversionPatterns(converter, &patterns);
  tosa::populateTosaToTensorConversionPatterns(converter, &patterns);
  tosa::populateTosaToArithConversionPatterns(&patterns);
  ConversionTarget target(*context);
  target.addLegalDialect<arith::ArithDialect, linalg::LinalgDialect, math::MathDialect,
                         tensor::TensorDialect>();
  target.addDynamicallyLegalDialect<tosa::TosaDialect>(
      [&](Operation *op) { return kept.contains(op) || isa<tosa::ConstShapeOp>(op); });
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  if (failed(applyPartialConversion(module, target, std::move(patterns))))
    return failure();
  module.walk([](tosa::ConstShapeOp op) { // the shape that a reshape read
    if (op->use_empty())
      op.erase();
  });
  return success();
}
