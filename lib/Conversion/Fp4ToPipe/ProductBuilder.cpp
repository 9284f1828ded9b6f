//===- ProductBuilder.cpp - What the kernels of products share ------------===//

#include "ProductBuilder.h"

#include "ElementwiseEmitter.h"

#include "fp4/Numerics/BlockScaledGemm.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// The arguments of the results that are derived from the elements.
static void takeDerived(const MatmulShape &shape, ResultArguments &derived,
                        llvm::function_ref<Value()> next) {
  if (shape.quantizer && shape.quantizer->hasAmax)
    derived.quantizeAmax = next();
  if (shape.quantizer && shape.quantizer->rows) {
    derived.codes = next();
    derived.scales = next();
  }
  if (shape.quantizer && shape.quantizer->columns) {
    derived.columnCodes = next();
    derived.columnScales = next();
  }
  if (shape.withAmax)
    derived.amax = next();
}

ProductBuilder::ProductBuilder(gpu::GPUFuncOp func, const MatmulShape &shape,
                               const KernelPlan &plan, Location loc)
    : TileBuilder(func, plan, loc), shape(shape) {
  unsigned number = 0;
  auto next = [&] { return func.getArgument(number++); };
  a = next();
  bb = next();
  if (!shape.floatA)
    scalesA = next();
  if (!shape.prepackedB)
    scalesB = next();
  if (shape.alpha != MatmulShape::Alpha::None)
    alpha = next();
  if (shape.dual) {
    b2 = next();
    scalesB2 = next();
    if (alpha)
      alpha2 = next();
  }
  for (size_t i = 0; i < shape.inputs.size(); ++i)
    inputs.push_back(next());
  if (shape.storesElements)
    derived.elements = result = next();
  resultBuffer = shape.storesEnds() ? next() : result;
  takeDerived(shape, derived, next);
  if (shape.dynamicRows())
    rows = next();
  if (shape.hasTable())
    table = next();
  if (shape.hasWorkspace()) {
    workspace = next();
    counters = next();
  }
}

Value ProductBuilder::entry(Value from, Value index, int64_t column) {
  auto type = cast<GlobalType>(from.getType());
  int64_t columns = type.getRank() == 2 ? type.getShape()[1] : 1;
  auto row = VectorType::get({columns}, type.getElementType());
  return vector::ExtractOp::create(b, loc, LoadEntryOp::create(b, loc, row, from, index), column);
}

void ProductBuilder::clearRows() {
  loop(constant(0), constant(shape.gaps()), constant(1), [&](Value gap) {
    Value place = add(gap, constant(shape.gapPlaces()));
    ClearRowsOp::create(b, loc, resultBuffer, entry(table, place, 0), entry(table, place, 1));
  });
}

ProductBuilder::ScaleBlocks ProductBuilder::scaleBlocksOf(Value k) {
  int64_t ofTile = shape.tileK / shape.block / kScaleBlockColumns;
  Value first = mul(k, ofTile);
  return {first,
          existing(first, ofTile, llvm::divideCeil(shape.k / shape.block, kScaleBlockColumns))};
}

Value ProductBuilder::rowBlockOf(Value row) {
  return arith::DivUIOp::create(b, loc, row, constant(kScaleBlockRows));
}

ProductBuilder::Range ProductBuilder::rangeOf(Value part) {
  constexpr auto kSlice = int64_t(numerics::splitSlice);
  int64_t slices = llvm::divideCeil(shape.k, kSlice), tiles = kSlice / shape.tileK;
  auto bound = [&](Value number) -> Value {
    Value slice = arith::DivUIOp::create(b, loc, mul(number, slices), constant(shape.splits));
    return tiles == 1 ? slice : min(mul(slice, tiles), shape.tilesK());
  };
  return {bound(part), bound(add(part, constant(1)))};
}

Value ProductBuilder::loadAlphas(int64_t count, Value alphas, Numbers numbers) {
  auto type = VectorType::get({count}, b.getF32Type());
  return numbers(type, alphas, shape.alpha == MatmulShape::Alpha::Rows ? rows : Value());
}

/// A step on sums; `factor` is their alpha.
Value ProductBuilder::emitStep(numerics::EpilogueOp step, Value sums, Value factor) {
  switch (step) {
  case numerics::EpilogueOp::Scale:
    return arith::MulFOp::create(b, loc, sums, factor);
  case numerics::EpilogueOp::Relu:
    return arith::MaximumFOp::create(
        b, loc, sums, arith::ConstantOp::create(b, loc, b.getZeroAttr(sums.getType())));
  case numerics::EpilogueOp::Round: {
    ImplicitLocOpBuilder at(loc, b);
    return narrowTo(at, sums, shape.resultType);
  }
  }
  llvm_unreachable("every step has its operation");
}

/// What the body reads of an input for `count` sums, in fp32.
Value ProductBuilder::loadInput(Value input, int64_t count, Numbers numbers) {
  ImplicitLocOpBuilder at(loc, b);
  auto global = cast<GlobalType>(input.getType());
  auto type = VectorType::get({count}, global.getElementType());
  if (global.getRank() == 0) {
    Value scalar = LoadScalarOp::create(b, loc, global.getElementType(), input);
    return widenToF32(at, vector::BroadcastOp::create(b, loc, type, scalar));
  }
  Value limit = ShapedType::isDynamic(global.getShape()[0]) ? rows : Value();
  return widenToF32(at, numbers(type, input, limit));
}

Value ProductBuilder::emitBody(ArrayRef<Value> sums, Numbers numbers) {
  int64_t count = cast<VectorType>(sums.front().getType()).getNumElements();
  SmallVector<Value> arguments(sums);
  for (Value input : inputs)
    arguments.push_back(loadInput(input, count, numbers));
  ImplicitLocOpBuilder at(loc, b);
  Value element = emitElementwise(at, shape.body->front(), arguments).front();
  return narrowTo(at, element, shape.resultType);
}

Value ProductBuilder::convertSums(ArrayRef<Sums> products, Numbers numbers) {
  SmallVector<Value> elements;
  for (auto [values, factor] : products) {
    Value element = values;
    for (numerics::EpilogueOp step :
         numerics::epilogueSteps(shape.alpha != MatmulShape::Alpha::None, shape.epilogue))
      if (!shape.body || step != numerics::EpilogueOp::Round) // a body rounds by itself
        element = emitStep(step, element, factor);
    elements.push_back(element);
  }
  return shape.body ? emitBody(elements, numbers) : elements.front();
}
