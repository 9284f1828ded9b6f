//===- TosaToFp4.cpp - Block-scaled operations of tosa to fp4 -------------===//
//
// Each operation is described in the terms of Ingress.h, or reported.
//
//===----------------------------------------------------------------------===//

#include "LowerNeighbours.h"

#include "fp4/Conversion/Ingress.h"
#include "fp4/Conversion/TosaToFp4/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tosa/IR/TosaOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace fp4 {
#define GEN_PASS_DEF_CONVERTTOSATOFP4
#include "fp4/Conversion/TosaToFp4/Passes.h.inc"
} // namespace fp4

using namespace mlir;
using namespace fp4;

namespace {

/// Elements that share a scale: tosa has scale blocks of 32 only.
constexpr int64_t kBlock = 32;

/// Checks the tensors of a cast; only rows may be dynamic, and only those of matrices.
LogicalResult checkCast(Operation *op, Type value, Type data) {
  auto type = dyn_cast<RankedTensorType>(value), elements = dyn_cast<RankedTensorType>(data);
  if (!type || !elements)
    return ingress::refuse(op, "its tensors must be ranked", "run tosa-infer-shapes before");
  if (!isa<Float32Type, BFloat16Type, Float16Type>(type.getElementType()))
    return ingress::refuse(op, "values must be f32, bf16 or f16", "cast to one of these types");
  for (RankedTensorType tensor : {type, elements})
    if (!tensor.hasStaticShape() && (tensor.getRank() != 2 || tensor.isDynamicDim(1)))
      return ingress::refuse(op, "only the rows of a matrix may be dynamic",
                             "collapse the dimensions in front of the last to rows");
  return success();
}

std::string recipesOf(Format format) {
  std::string names;
  for (const numerics::Recipe &recipe : numerics::recipes())
    if (recipe.format == blockFormat(format))
      names += (names.empty() ? "" : ", ") + std::string(recipe.name);
  return names;
}

/// quantize{recipe}
LogicalResult convert(tosa::CastToBlockScaledOp op, StringRef text) {
  if (failed(checkCast(op, op.getInputData().getType(), op.getOutputData().getType())))
    return failure();
  auto data = cast<RankedTensorType>(op.getOutputData().getType());
  auto scales = cast<RankedTensorType>(op.getOutputScale().getType());
  std::optional<Format> format =
      ingress::findFormat(data.getElementType(), scales.getElementType(), kBlock);
  if (!format)
    return ingress::refuse(op, "no block format has its elements",
                           "use f4E2M1FN, f6E2M3FN, f6E3M2FN, f8E4M3FN or f8E5M2");
  if (text.empty())
    return ingress::refuse(
        op, "TOSA does not say how a scale derives from its block",
        "say it with the option recipe, such as --convert-tosa-to-fp4=recipe=ocp_ceil; "
        "docs/reference/recipes.md has the recipes");
  auto recipe = numerics::parseRecipe(text.str());
  if (!recipe)
    return ingress::refuse(op, recipe.error().message, recipe.error().note);
  if (recipe->format != blockFormat(*format))
    return ingress::refuse(op,
                           "the recipe must be one of " + stringifyFormat(*format) + ", but got '" +
                               text + "'",
                           "its recipes are " + recipesOf(*format));
  OpBuilder b(op);
  auto quantized = QuantizeOp::create(b, op.getLoc(), ingress::asMatrix(b, op.getLoc(), op.getInputData()),
                                      /*amax=*/Value(), *format,
                                      RecipeAttr::get(op.getContext(), *recipe));
  op.getOutputData().replaceAllUsesWith(
      ingress::reshapeTo(b, op.getLoc(), quantized.getData(), data));
  op.getOutputScale().replaceAllUsesWith(
      ingress::reshapeTo(b, op.getLoc(), quantized.getScales(), scales));
  return success();
}

/// dequantize
LogicalResult convert(tosa::CastFromBlockScaledOp op, StringRef) {
  if (failed(checkCast(op, op.getOutputData().getType(), op.getInputData().getType())))
    return failure();
  auto data = cast<RankedTensorType>(op.getInputData().getType());
  auto scales = dyn_cast<RankedTensorType>(op.getInputScale().getType());
  auto result = cast<RankedTensorType>(op.getOutputData().getType());
  std::optional<Format> format =
      scales ? ingress::findFormat(data.getElementType(), scales.getElementType(), kBlock)
             : std::nullopt;
  if (!format)
    return ingress::refuse(op, "no block format has its elements",
                           "use f4E2M1FN, f6E2M3FN, f6E3M2FN, f8E4M3FN or f8E5M2");
  OpBuilder b(op);
  Value matrix = DequantizeOp::create(
      b, op.getLoc(), ingress::asMatrix(b, op.getLoc(), op.getInputData()),
      ingress::asMatrix(b, op.getLoc(), op.getInputScale()), /*amax=*/Value(), *format,
      result.getElementType());
  op.getOutputData().replaceAllUsesWith(ingress::reshapeTo(b, op.getLoc(), matrix, result));
  return success();
}

/// Converts to swizzle_scales and matmuls.
LogicalResult convert(tosa::MatmulTBlockScaledOp op, StringRef) {
  auto result = dyn_cast<RankedTensorType>(op.getOutputData().getType());
  if (!result)
    return ingress::refuse(op, "its result must be ranked", "run tosa-infer-shapes before");
  OpBuilder b(op);
  FailureOr<Value> product = ingress::convertMatmul(b, op,
                                                    {{op.getAData(), op.getAScale()},
                                                     {op.getBData(), op.getBScale()},
                                                     /*alpha=*/Value(),
                                                     result});
  if (failed(product))
    return failure();
  op.getOutputData().replaceAllUsesWith(*product);
  return success();
}

struct ConvertTosaToFp4 : fp4::impl::ConvertTosaToFp4Base<ConvertTosaToFp4> {
  using ConvertTosaToFp4Base::ConvertTosaToFp4Base;

  void runOnOperation() override {
    SmallVector<Operation *> operations;
    getOperation().walk([&](Operation *op) {
      if (isa<tosa::CastToBlockScaledOp, tosa::CastFromBlockScaledOp, tosa::MatmulTBlockScaledOp>(op))
        operations.push_back(op);
    });
    bool complete = true;
    for (Operation *op : operations) {
      LogicalResult converted =
          TypeSwitch<Operation *, LogicalResult>(op)
              .Case<tosa::CastToBlockScaledOp, tosa::CastFromBlockScaledOp,
                    tosa::MatmulTBlockScaledOp>(
                  [&](auto concrete) { return convert(concrete, recipe); });
      if (failed(converted)) {
        complete = false; // the remaining operations are reported too
        continue;
      }
      op->erase();
      ++numConverted;
    }
    if (!complete || failed(lowerNeighbours(getOperation())))
      signalPassFailure();
  }
};

} // namespace
