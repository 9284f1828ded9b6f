//===- Signature.cpp - The signature of a matmul ---------------------------===//

#include "fp4/Dialect/Fp4/IR/Signature.h"

#include "fp4/Dialect/Fp4/IR/Target.h"

using namespace mlir;
using namespace fp4;

static route::Activations activationsOf(BlockScaledMatmulOp op) {
  if (op.getLhsScales())
    return route::Activations::Scaled;
  auto lhs = cast<RankedTensorType>(op.getLhs().getType());
  return isa<Float8E4M3FNType>(lhs.getElementType()) ? route::Activations::E4M3
                                                     : route::Activations::Half;
}

static route::Arithmetic arithmeticOf(BlockScaledMatmulOp op) {
  return static_cast<route::Arithmetic>(op.getArithmetic().value_or(MatmulArithmetic::TensorCore));
}

bool fp4::hasWideBlocks(BlockScaledMatmulOp op, RecipeAttr recipe) {
  return numerics::hasF32Scales(recipe.getDecisions().format) &&
         (op.isDual() || op.getElementType().isF32());
}

route::Signature fp4::signatureOf(BlockScaledMatmulOp op) {
  using enum route::Limit;
  route::Signature signature = {.activations = activationsOf(op),
                                .weights = op.hasPrepackedRhs() ? route::Weights::Prepacked
                                                                : route::Weights::Scaled,
                                .lhs = blockFormat(op.getFormat()),
                                .rhs = blockFormat(op.getFormatOfRhs()),
                                .arithmetic = arithmeticOf(op)};
  return signature.with(Groups, op.isGrouped())
      .with(Dual, op.isDual())
      .with(Derived, !op.hasOnlyElements())
      .with(Shares, bool(op.getStreamK()))
      .with(WideBlocks, op.getQuantizeRecipe() && hasWideBlocks(op, *op.getQuantizeRecipe()));
}

std::string fp4::whyNoRoute(Operation *op, const route::Signature &signature) {
  if (auto pair = route::requirePair(signature); !pair)
    return pair.error().message;
  std::optional<hw::TargetModel> target = findTarget(op);
  if (!target)
    return "";
  auto record = route::requireRoute(signature, *target);
  return record ? "" : record.error().message;
}

bool fp4::isOn(BlockScaledMatmulOp op, const hw::TargetModel &target, route::Core core) {
  return route::coreOf(signatureOf(op), target) == core;
}
