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

/// The one operation of a kind in an epilogue region; null where there is none.
template <typename OpT> static OpT findInRegion(Region &region) {
  if (region.empty())
    return {};
  auto found = region.front().getOps<OpT>();
  return found.empty() ? OpT() : *found.begin();
}

EpilogueQuantizeOp BlockScaledMatmulOp::getEpilogueQuantize() {
  return findInRegion<EpilogueQuantizeOp>(getEpilogueBody());
}

EpilogueAmaxOp BlockScaledMatmulOp::getEpilogueAmax() {
  return findInRegion<EpilogueAmaxOp>(getEpilogueBody());
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

/// The value of an epilogue region that is the element; null without a region.
static Value yieldedElement(Region &region) {
  if (region.empty())
    return {};
  SmallVector<Value> elements = elementwiseResults(region.front());
  return elements.empty() ? Value() : elements.front();
}

Value BlockScaledMatmulOp::getYieldedElement() { return yieldedElement(getEpilogueBody()); }

Type BlockScaledMatmulOp::getElementType() {
  if (Value result = getResult())
    return rankedType(result).getElementType();
  return getYieldedElement().getType();
}

EpilogueQuantizeOp AttentionOp::getEpilogueQuantize() {
  return findInRegion<EpilogueQuantizeOp>(getEpilogueBody());
}

OperandRange AttentionOp::getEpilogueInputs() {
  EpilogueQuantizeOp quantize = getEpilogueQuantize();
  return getInputs().drop_back(quantize && quantize.getAmax() ? 1 : 0);
}

Type AttentionOp::getPlainElementType() {
  return isOfBytes() ? BFloat16Type::get(getContext()) : getQueryType().getElementType();
}

Type AttentionOp::getElementType() {
  if (getResult())
    return rankedType(getResult()).getElementType();
  return yieldedElement(getEpilogueBody()).getType();
}

//===----------------------------------------------------------------------===//
// The region
//===----------------------------------------------------------------------===//

namespace {
/// An epilogue region, and what of its operation it belongs to.
struct Epilogue {
  explicit Epilogue(BlockScaledMatmulOp op)
      : op(op), region(op.getEpilogueBody()), inputs(op.getInputs()), sums(op.isDual() ? 2 : 1),
        result(op.getResult()) {}
  explicit Epilogue(AttentionOp op)
      : op(op), region(op.getEpilogueBody()), inputs(op.getInputs()), sums(1),
        result(op.getResult()) {}

  Operation *op;
  Region &region;
  OperandRange inputs;
  size_t sums;  ///< arguments in front of the inputs
  Value result; ///< the elements; null where they are no result

  Block &body() const { return region.front(); }
  Value element() const { return yieldedElement(region); }
  EpilogueQuantizeOp quantize() const { return findInRegion<EpilogueQuantizeOp>(region); }
  EpilogueAmaxOp amax() const { return findInRegion<EpilogueAmaxOp>(region); }
  bool hasAmaxInput() const { return quantize() && quantize().getAmax(); }
};
} // namespace

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
static LogicalResult verifyEpilogueOps(const Epilogue &epilogue) {
  Block &body = epilogue.body();
  EpilogueQuantizeOp quantize = epilogue.quantize();
  for (Operation &inner : body) {
    if (!isEpilogueOp(&inner))
      continue;
    bool isFirst = &inner == quantize || &inner == epilogue.amax();
    if (!isFirst || inner.getOperand(0) != epilogue.element())
      return withNote(epilogue.op->emitOpError("expects one ")
                          << inner.getName() << ", of the element that the region yields, but got "
                          << (isFirst ? "one of another value" : "several"),
                      "all results are of one value, which fp4.yield names first where the "
                      "elements are a result");
  }
  if (!epilogue.hasAmaxInput())
    return success();
  bool isLast = body.getNumArguments() > 0 && quantize.getAmax() == body.getArguments().back() &&
                quantize.getAmax().hasOneUse() && !epilogue.inputs.empty();
  if (!isLast)
    return withNote(
        epilogue.op->emitOpError("expects the amax of fp4.epilogue_quantize as the last argument "
                                 "of the epilogue region, which nothing else reads"),
        "pass the amax, a tensor<f32>, as the last epilogue input");
  return verifyScalar(operand(epilogue.op, "inputs", epilogue.inputs.back()));
}

/// Values that the region must yield: the element where it is a result, codes and scales, amax.
static SmallVector<Value> expectedYields(const Epilogue &epilogue) {
  SmallVector<Value> values;
  if (epilogue.result)
    values.push_back(epilogue.element());
  if (EpilogueQuantizeOp quantize = epilogue.quantize())
    llvm::append_range(values, quantize.getResults());
  if (EpilogueAmaxOp amax = epilogue.amax())
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

/// Checks operands and results of an epilogue region.
static LogicalResult verifyBody(const Epilogue &epilogue) {
  Operation *op = epilogue.op;
  Block &body = epilogue.body();
  SmallVector<Type> types(epilogue.sums, Float32Type::get(op->getContext()));
  for (Value input : epilogue.inputs)
    types.push_back(rankedType(input).getElementType());
  auto yield = dyn_cast_or_null<YieldOp>(body.empty() ? nullptr : &body.back());
  Value value = yield ? epilogue.element() : Value();
  Type yielded = value ? value.getType() : Type(), element = yielded;
  if (epilogue.result)
    element = rankedType(epilogue.result).getElementType();
  if (isa_and_present<Float8E4M3FNType>(element) && yielded && yielded.isF32())
    element = yielded; // the operation rounds what the epilogue region yields
  bool fits = epilogue.region.hasOneBlock() &&
              TypeRange(body.getArgumentTypes()) == TypeRange(types) && yield &&
              yielded == element && isResultType(element);
  if (!fits) // matmul (C12)
    return withNote(op->emitOpError("epilogue region must take ")
                        << types << " and yield " << element
                        << " in one block with fp4.yield, but got "
                        << foundOf(body, yielded ? TypeRange(yielded) : TypeRange()),
                    "the region takes the sum, in f32, that of 'rhs2' if there is one, and the "
                    "elements of the epilogue inputs");
  if (failed(verifyEpilogueOps(epilogue))) // matmul (C44)
    return failure();
  if (!llvm::equal(yield.getValues(), expectedYields(epilogue)))
    return withNote(op->emitOpError( // matmul (C43)
                        "epilogue region must yield the element where it is a result, then the "
                        "results of fp4.epilogue_quantize and of fp4.epilogue_amax, but yields ")
                        << yield.getValues().getTypes(),
                    "give the operation a result for each, in this order");
  unsigned inputs = body.getNumArguments() - epilogue.hasAmaxInput();
  std::string reason = whyNotElementwise(body, inputs);
  if (reason.empty())
    return success();
  return withNote(op->emitOpError("epilogue region must be elementwise, but ") << reason, // (C12)
                  "compute the rest outside of the operation; fp4-fuse puts into the region what "
                  "it can");
}

/// matmul (C12): operands and results of the epilogue region.
LogicalResult verify::verifyRegion(BlockScaledMatmulOp op) {
  return op.getEpilogueBody().empty() ? success() : verifyBody(Epilogue(op));
}

/// attention (C20): what comes with an epilogue region, and what it does not have.
static LogicalResult verifyNeeds(AttentionOp op, const Epilogue &epilogue) {
  for (Value input : op.getInputs())
    if (rankedType(input).getRank() != 0)
      return withNote(operand(op, "inputs", input).must("be scalars"), // attention (C20)
                      "compute the rest behind the attention with an operation of its own");
  if (epilogue.region.empty()) {
    if (op.getInputs().empty() && op.getResult() && op.getQuantized().empty())
      return success();
    return withNote(op.emitOpError("expects an epilogue region beside 'inputs', 'quantized' or no "
                                   "result, but got none"), // attention (C20)
                    "the region says what becomes of the elements, and in which type");
  }
  EpilogueQuantizeOp quantize = epilogue.quantize();
  if (epilogue.amax() || (quantize && quantize.quantizesColumns()))
    return withNote(op.emitOpError("expects no ") // attention (C20)
                        << (epilogue.amax() ? "fp4.epilogue_amax" : "columnwise outputs")
                        << " in its epilogue region, but got one",
                    "compute it behind the attention with an operation of its own");
  size_t results = quantize ? quantize->getNumResults() : 0;
  if (op.getQuantized().size() == results)
    return success();
  return withNote(op.emitOpError("expects ") // attention (C20)
                      << results << " results 'quantized', those of fp4.epilogue_quantize, but got "
                      << op.getQuantized().size(),
                  "codes and scales are of one operation of the epilogue region");
}

/// attention (C20), (C21): the epilogue region, and the types of codes and scales.
LogicalResult verify::verifyRegion(AttentionOp op) {
  Epilogue epilogue(op);
  if (failed(verifyNeeds(op, epilogue)) ||
      (!epilogue.region.empty() && failed(verifyBody(epilogue))))
    return failure();
  EpilogueQuantizeOp quantize = epilogue.quantize();
  if (!quantize)
    return success();
  const numerics::Recipe &recipe = quantize.getRecipe().getDecisions();
  int64_t block = numerics::blockSizeOf(recipe.format), columns = op.getResultColumns();
  if (columns % block) // attention (C21)
    return withNote(op.emitOpError("expects a multiple of ")
                        << block << " elements of all heads beside fp4.epilogue_quantize, but got "
                        << columns,
                    "quantize the result with fp4.quantize");
  return verifyQuantizedSide(result(op, "data", op.getQuantized()[0]),
                             result(op, "scales", op.getQuantized()[1]), formatOf(recipe.format),
                             {op.getResultRows(), columns});
}
