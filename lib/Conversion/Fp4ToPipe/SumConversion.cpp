//===- SumConversion.cpp - Elements of the result from sums ---------------===//

#include "SumConversion.h"

#include "ElementwiseEmitter.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

Value SumConversion::load(RankedTensorType type, Value global, Value rows, bool ofGroup,
                          const Place &place) {
  return FetchOp::create(b, type, global, ofGroup ? place.group : place.row, place.column,
                               rows, place.transposed, /*one_row=*/ofGroup);
}

Value SumConversion::loadAlphas(RankedTensorType sums, Value alphas, const Place &place) {
  return load(sums.clone(b.getF32Type()), alphas,
              results.alpha == Results::Alpha::Rows ? rows : Value(),
              /*ofGroup=*/false, place);
}

Value SumConversion::timesPower(Value sums, int exponent) {
  if (!exponent)
    return sums;
  auto power = b.getF32FloatAttr(float(std::ldexp(1.0, exponent))).getValue();
  auto powers = DenseElementsAttr::get(cast<RankedTensorType>(sums.getType()), power);
  return arith::MulFOp::create(b, sums, arith::ConstantOp::create(b, powers));
}

/// The elements of the result that `sums` round to.
Value SumConversion::narrow(Value sums) {
  if (results.type.isF32())
    return sums;
  RankedTensorType type = cast<RankedTensorType>(sums.getType()).clone(results.type);
  if (!isa<Float8E4M3FNType>(results.type))
    return arith::TruncFOp::create(b, type, sums);
  return b.fromVector(type, narrowTo(b, b.toVector(sums), results.type));
}

/// A step on sums; `factor` is their alpha.
Value SumConversion::emitStep(numerics::EpilogueOp step, Value sums, Value factor) {
  switch (step) {
  case numerics::EpilogueOp::Scale:
    return arith::MulFOp::create(b, sums, factor);
  case numerics::EpilogueOp::Relu:
    return arith::MaximumFOp::create(b, sums,
                                     arith::ConstantOp::create(b, b.getZeroAttr(sums.getType())));
  case numerics::EpilogueOp::Round:
    return narrow(sums);
  }
  llvm_unreachable("every step has its operation");
}

/// Loads the numbers that the epilogue region reads of an input for `sums`, in fp32.
Value SumConversion::loadInput(Value input, bool isOfGroups, RankedTensorType sums,
                               const Place &place) {
  auto global = cast<GlobalType>(input.getType());
  RankedTensorType type = sums.clone(global.getElementType());
  if (global.getRank() == 0) {
    Value scalar = LoadEntryOp::create(b, global.getElementType(), input);
    return widenToF32(b, b.splat(type, scalar));
  }
  Value limit = ShapedType::isDynamic(global.getShape()[0]) ? rows : Value();
  return widenToF32(b, load(type, input, limit, isOfGroups, place));
}

Value SumConversion::emitRegion(ArrayRef<Value> sums, const Place &place) {
  auto type = cast<RankedTensorType>(sums.front().getType());
  int64_t count = vectorOfThread(type).getNumElements();
  auto arguments = llvm::map_to_vector(sums, [&](Value values) { return b.toVector(values); });
  for (auto [input, given] : llvm::zip_equal(inputs, results.inputs))
    arguments.push_back(b.toVector(loadInput(input, given.isOfGroups, type, place)));
  bool hasParts = count > regionWidth && llvm::isPowerOf2_64(count);
  int64_t width = hasParts ? regionWidth : count;
  SmallVector<Value> elements;
  for (int64_t first = 0; first < count; first += width)
    elements.push_back(emitRegionOf(arguments, first, width));
  return b.fromVector(type.clone(results.type), concatenate(b, elements));
}

/// The elements of `width` sums from `first` on.
Value SumConversion::emitRegionOf(ArrayRef<Value> arguments, int64_t first, int64_t width) {
  auto parts = llvm::map_to_vector(arguments, [&](Value argument) -> Value {
    if (cast<VectorType>(argument.getType()).getNumElements() == width)
      return argument;
    return vector::ExtractStridedSliceOp::create(b, argument, first, width, int64_t(1));
  });
  return emitEpilogue(b, results.region, parts, results.type);
}

Value SumConversion::convertSums(ArrayRef<Sums> products, const Place &place) {
  SmallVector<Value> elements;
  for (auto [values, factor] : products) {
    Value element = values;
    for (numerics::EpilogueOp step :
         numerics::epilogueSteps(results.alpha != Results::Alpha::None, results.steps))
      if (!results.region ||
          step != numerics::EpilogueOp::Round) // an epilogue region rounds by itself
        element = emitStep(step, element, factor);
    elements.push_back(element);
  }
  return results.region ? emitRegion(elements, place) : elements.front();
}
