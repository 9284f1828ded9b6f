//===- EpilogueRegion.cpp - Epilogue regions of a matmul ------------------===//
//
// The operations that give codes, scales and an amax, the values that the region yields, and the
// accessors by which kernels find them. The labels are those of Fp4Constraints.td and
// test/Dialect/Fp4/invalid-epilogue-ops.mlir.
//
//===----------------------------------------------------------------------===//
#include "Verify.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::verify;

//===----------------------------------------------------------------------===//
// epilogue_quantize, epilogue_amax
//===----------------------------------------------------------------------===//

/// The code and the scale of each orientation.
static SmallVector<Type> quantizedTypes(MLIRContext *context, numerics::BlockFormat format,
                                        Outputs outputs) {
  SmallVector<Type> types;
  for (int64_t side = 0; side < (outputs == Outputs::Both ? 2 : 1); ++side)
    types.append(
        {dataType(context, fp4::formatOf(format)), scaleType(context, fp4::formatOf(format))});
  return types;
}

void EpilogueQuantizeOp::build(OpBuilder &builder, OperationState &state, Value value, Value amax,
                               RecipeAttr recipe, OutputsAttr outputs) {
  build(builder, state,
        quantizedTypes(builder.getContext(), recipe.getDecisions().format,
                       outputs ? outputs.getValue() : Outputs::Rowwise),
        value, amax, recipe, outputs);
}

LogicalResult EpilogueQuantizeOp::verify() {
  const numerics::Recipe &recipe = getRecipe().getDecisions();
  if (numerics::hasF32Scales(recipe.format) && quantizesColumns()) // epilogue_quantize (C1)
    return withNote(emitOpError("attribute 'outputs' must be rowwise for recipe ")
                        << StringRef(recipe.name) << ", but got "
                        << stringifyOutputs(*getOutputs()),
                    "leave 'outputs' out: fp8_block128 has blocks of rows");
  if (numerics::hasTensorScale(recipe) != static_cast<bool>(getAmax())) // epilogue_quantize (C2)
    return withNote(emitOpError("expects ")
                        << (getAmax() ? "no operand" : "operand") << " 'amax' for recipe "
                        << StringRef(recipe.name) << ", but got " << (getAmax() ? "one" : "none"),
                    "the recipe says whether there is a scale of the tensor "
                    "(docs/reference/recipes.md)");
  SmallVector<Type> types =
      quantizedTypes(getContext(), recipe.format, getOutputs().value_or(Outputs::Rowwise));
  if (TypeRange(getResultTypes()) != TypeRange(types)) // epilogue_quantize (C3)
    return withNote(emitOpError("must give ") << types << ", but gives " << getResultTypes(),
                    "a code and a scale of the recipe's format for each orientation of 'outputs'");
  if (isElementType(getValue().getType()))
    return success();
  return withNote(emitOpError( // epilogue_quantize (C4)
                      "must read f32, bf16 or f16, but reads ")
                      << getValue().getType(),
                  "quantize the element before it is rounded to 8 bits");
}

LogicalResult EpilogueAmaxOp::verify() {
  if (isElementType(getValue().getType()))
    return success();
  return withNote(emitOpError( // epilogue_amax (C1)
                      "must read f32, bf16 or f16, but reads ")
                      << getValue().getType(),
                  "take the amax of the element before it is rounded to 8 bits");
}

bool fp4::isEpilogueOp(Operation *op) { return isa<EpilogueQuantizeOp, EpilogueAmaxOp>(op); }

SmallVector<Value> fp4::elementwiseResults(Block &body) {
  Operation *end = body.getTerminator();
  if (!isa<YieldOp>(end))
    return llvm::to_vector(end->getOperands());
  if (end->getNumOperands() == 0)
    return {};
  Value first = end->getOperand(0);
  Operation *op = first.getDefiningOp();
  return {op && isEpilogueOp(op) ? op->getOperand(0) : first};
}

//===----------------------------------------------------------------------===//
// Accessors
//===----------------------------------------------------------------------===//

/// The one operation of a kind in the region of `op`; null where there is none.
template <typename OpT> static OpT findInRegion(BlockScaledMatmulOp op) {
  Region &region = op.getEpilogueBody();
  if (region.empty())
    return {};
  auto found = region.front().getOps<OpT>();
  return found.empty() ? OpT() : *found.begin();
}

EpilogueQuantizeOp BlockScaledMatmulOp::getEpilogueQuantize() {
  return findInRegion<EpilogueQuantizeOp>(*this);
}

EpilogueAmaxOp BlockScaledMatmulOp::getEpilogueAmax() {
  return findInRegion<EpilogueAmaxOp>(*this);
}

std::optional<RecipeAttr> BlockScaledMatmulOp::getQuantizeRecipe() {
  EpilogueQuantizeOp quantize = getEpilogueQuantize();
  return quantize ? std::optional(quantize.getRecipe()) : std::nullopt;
}

std::optional<Outputs> BlockScaledMatmulOp::getQuantizeOutputs() {
  EpilogueQuantizeOp quantize = getEpilogueQuantize();
  return quantize ? quantize.getOutputs() : std::nullopt;
}

Value BlockScaledMatmulOp::getQuantizeAmax() {
  EpilogueQuantizeOp quantize = getEpilogueQuantize();
  return quantize && quantize.getAmax() ? Value(getInputs().back()) : Value();
}

bool BlockScaledMatmulOp::getWithAmax() { return bool(getEpilogueAmax()); }

OperandRange BlockScaledMatmulOp::getEpilogueInputs() {
  return getInputs().drop_back(getQuantizeAmax() ? 1 : 0);
}

bool BlockScaledMatmulOp::quantizesRows() {
  EpilogueQuantizeOp quantize = getEpilogueQuantize();
  return quantize && quantize.quantizesRows();
}

bool BlockScaledMatmulOp::quantizesColumns() {
  EpilogueQuantizeOp quantize = getEpilogueQuantize();
  return quantize && quantize.quantizesColumns();
}

/// Results that are not the elements.
static unsigned numDerived(BlockScaledMatmulOp op) {
  EpilogueQuantizeOp quantize = op.getEpilogueQuantize();
  return (quantize ? quantize->getNumResults() : 0) + op.getWithAmax();
}

TypedValue<RankedTensorType> BlockScaledMatmulOp::getResult() {
  if (getNumResults() <= numDerived(*this))
    return {};
  return cast<TypedValue<RankedTensorType>>(getOperation()->getResult(0));
}

ResultRange BlockScaledMatmulOp::getQuantized() {
  return getResults().slice(getResult() ? 1 : 0, numDerived(*this) - getWithAmax());
}

Value BlockScaledMatmulOp::getAmax() { return getWithAmax() ? getResults().back() : Value(); }

Value BlockScaledMatmulOp::getYieldedElement() {
  if (getEpilogueBody().empty())
    return {};
  SmallVector<Value> elements = elementwiseResults(getEpilogueBody().front());
  return elements.empty() ? Value() : elements.front();
}

Type BlockScaledMatmulOp::getElementType() {
  if (Value result = getResult())
    return rankedType(result).getElementType();
  return getYieldedElement().getType();
}

//===----------------------------------------------------------------------===//
// The region
//===----------------------------------------------------------------------===//

/// Describes the arguments and results of an epilogue region, for an error.
static std::string foundOf(Block &body, TypeRange yielded) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  auto print = [&](Type type) { stream << "'" << type << "'"; };
  llvm::interleaveComma(body.getArgumentTypes(), stream, print);
  stream << (body.getNumArguments() ? " and " : "no arguments and ");
  if (yielded.empty())
    stream << "nothing";
  else
    llvm::interleaveComma(yielded, stream, print);
  return text;
}

/// matmul (C44): at most one operation of each kind, of the element, whose amax is the last
/// argument and read by nothing else.
static LogicalResult verifyEpilogueOps(BlockScaledMatmulOp op, Block &body) {
  Value element = op.getYieldedElement();
  for (Operation &inner : body) {
    if (!isEpilogueOp(&inner))
      continue;
    bool isFirst = &inner == op.getEpilogueQuantize() || &inner == op.getEpilogueAmax();
    if (!isFirst || inner.getOperand(0) != element)
      return withNote(op.emitOpError("expects one ")
                          << inner.getName() << ", of the element that the region yields, but got "
                          << (isFirst ? "one of another value" : "several"),
                      "all results of the matmul are of one value, which fp4.yield names first "
                      "where the elements are a result");
  }
  EpilogueQuantizeOp quantize = op.getEpilogueQuantize();
  if (!quantize || !quantize.getAmax())
    return success();
  bool isLast = body.getNumArguments() > 0 && quantize.getAmax() == body.getArguments().back() &&
                quantize.getAmax().hasOneUse() && !op.getInputs().empty();
  if (!isLast)
    return withNote(op.emitOpError("expects the amax of fp4.epilogue_quantize as the last argument "
                                   "of the epilogue region, which nothing else reads"),
                    "pass the amax, a tensor<f32>, as the last epilogue input");
  return verifyScalar(operand(op, "inputs", op.getInputs().back()));
}

/// Values that the region must yield: the element where it is a result, codes and scales, amax.
static SmallVector<Value> expectedYields(BlockScaledMatmulOp op) {
  SmallVector<Value> values;
  if (op.getResult())
    values.push_back(op.getYieldedElement());
  if (EpilogueQuantizeOp quantize = op.getEpilogueQuantize())
    llvm::append_range(values, quantize.getResults());
  if (EpilogueAmaxOp amax = op.getEpilogueAmax())
    values.push_back(amax.getAmax());
  return values;
}

/// matmul (C43): a value of the region for each result.
LogicalResult verify::verifyResultCount(BlockScaledMatmulOp op) {
  unsigned yielded = 1;
  if (!op.getEpilogueBody().empty() && !op.getEpilogueBody().front().empty())
    if (auto yield = dyn_cast<YieldOp>(op.getEpilogueBody().front().back()))
      yielded = yield.getValues().size();
  if (op->getNumResults() == yielded)
    return success();
  auto diag = op.emitOpError("expects ")
              << yielded << " results, one for each value of its epilogue region, but got "
              << op->getNumResults();
  diag.attachNote() << "fp4.yield gives the element, then codes and scales, then the amax; without "
                       "a region the elements are the result";
  return diag;
}

/// matmul (C12): operands and results of the epilogue region.
LogicalResult verify::verifyRegion(BlockScaledMatmulOp op) {
  if (op.getEpilogueBody().empty())
    return success();
  Block &body = op.getEpilogueBody().front();
  SmallVector<Type> types(op.isDual() ? 2 : 1, Float32Type::get(op.getContext()));
  for (Value input : op.getInputs())
    types.push_back(rankedType(input).getElementType());
  auto yield = dyn_cast_or_null<YieldOp>(body.empty() ? nullptr : &body.back());
  Value value = yield ? op.getYieldedElement() : Value();
  Type yielded = value ? value.getType() : Type(), element = yielded;
  if (op.getResult())
    element = rankedType(op.getResult()).getElementType();
  if (isa_and_present<Float8E4M3FNType>(element) && yielded && yielded.isF32())
    element = yielded; // the matmul rounds what the epilogue region yields
  bool fits = op.getEpilogueBody().hasOneBlock() &&
              TypeRange(body.getArgumentTypes()) == TypeRange(types) && yield &&
              yielded == element && isResultType(element);
  if (!fits) // matmul (C12)
    return withNote(op.emitOpError("epilogue region must take ")
                        << types << " and yield " << element
                        << " in one block with fp4.yield, but got "
                        << foundOf(body, yielded ? TypeRange(yielded) : TypeRange()),
                    "the region takes the sum, in f32, that of 'rhs2' if there is one, and the "
                    "elements of the epilogue inputs");
  if (failed(verifyEpilogueOps(op, body))) // matmul (C44)
    return failure();
  if (!llvm::equal(yield.getValues(), expectedYields(op)))
    return withNote(op.emitOpError( // matmul (C43)
                        "epilogue region must yield the element where it is a result, then the "
                        "results of fp4.epilogue_quantize and of fp4.epilogue_amax, but yields ")
                        << yield.getValues().getTypes(),
                    "give the matmul a result for each, in this order");
  unsigned inputs = body.getNumArguments() - (op.getQuantizeAmax() ? 1 : 0);
  std::string reason = whyNotElementwise(body, inputs);
  if (reason.empty())
    return success();
  return withNote(op.emitOpError("epilogue region must be elementwise, but ") << reason, // (C12)
                  "compute the rest outside of the matmul; fp4-fuse puts into the region what it "
                  "can");
}
