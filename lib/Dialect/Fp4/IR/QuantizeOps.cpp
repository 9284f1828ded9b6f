//===- QuantizeOps.cpp - The quantization family: verifiers and types -----===//
//
// amax, hadamard, hadamard_amax, quantize, dequantize. The labels (C1), (C2), ... are those of
// Fp4Constraints.td and test/Dialect/Fp4/invalid-*.mlir.
//
//===----------------------------------------------------------------------===//
#include "Verify.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::verify;

//===----------------------------------------------------------------------===//
// amax
//===----------------------------------------------------------------------===//

LogicalResult AmaxOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                       Adaptor adaptor, SmallVectorImpl<Type> &types) {
  bool hasLines = adaptor.getPerRow() || adaptor.getPerColumn();
  types.push_back(hasLines ? lineAmaxType(rankedType(adaptor.getInput()), adaptor.getPerColumn())
                           : amaxType(context, countGroups(adaptor.getGroups(), adaptor.getOffsets())));
  return success();
}

bool AmaxOp::isCompatibleReturnTypes(TypeRange, TypeRange) { return true; }

/// Returns the part of `op` that asks for static columns, if it has groups; else empty.
template <typename OpT> static StringRef needOfGroups(OpT op) {
  return op.getGroups() ? "attribute 'groups'" : op.getOffsets() ? "operand 'offsets'" : "";
}

/// amax (C610), quantize (C610): rows of groups that only the device knows.
template <typename OpT> static LogicalResult verifyOffsetsOf(OpT op, const Checked &input) {
  if (!op.getOffsets())
    return success();
  if (op.getGroups())
    return withNote(
        op.emitOpError("expects one of attribute 'groups' and operand 'offsets', but got both"),
        "'groups' are rows that the program knows, 'offsets' those that only the device knows");
  return verifyOffsets(input, op.getOffsets(), "cut so many groups into several operations");
}

LogicalResult AmaxOp::verify() {
  Checked input = operand(*this, "input", getInput());
  if (failed(verifyRealElements(input))) // amax (C1)
    return failure();
  if (failed(verifyMatrix(input, /*takesColumns=*/true))) // amax (C2)
    return failure();
  if (failed(verifyColumnsBeside(input, needOfGroups(*this)))) // amax (C496)
    return failure();
  if (failed(verifyGroups(input, getGroups()))) // amax (C4)
    return failure();
  if (failed(verifyOffsetsOf(*this, input))) // amax (C610)
    return failure();
  StringRef lines = getPerRow() ? "per_row" : "per_column";
  if (hasLines() && isGrouped()) // amax (C5)
    return withNote(emitOpError("expects no ") << needOfGroups(*this) << " beside '" << lines
                                               << "', but got one",
                    Twine("rows and columns have amaxes of their own already: leave '") +
                        (getGroups() ? "groups" : "offsets") + "' out");
  if (getPerRow() && getPerColumn()) // amax (C5)
    return withNote(emitOpError("expects no attribute 'per_column' beside 'per_row', but got one"),
                    "use two operations");
  if (hasLines())
    return verifyType(result(*this, "amax", getAmax()), // amax (C3)
                      lineAmaxType(input.type, getPerColumn()));
  return verifyAmaxType(result(*this, "amax", getAmax()), // amax (C3)
                        countGroups(getGroups(), getOffsets()));
}

//===----------------------------------------------------------------------===//
// hadamard, hadamard_amax
//===----------------------------------------------------------------------===//

/// The transform along `dimension` of `input` meets whole runs of `size` elements only. Dynamic
/// rows are checked when the program runs.
static LogicalResult verifyRuns(const Checked &input, int64_t dimension, int64_t size) {
  if (input.type.isDynamicDim(dimension))
    return success();
  return verifyMultiple(input, dimension, size,
                        "groups do not cross the edge; pad the dimension with zeros");
}

/// Checks the input and the attributes of hadamard and hadamard_amax; each has the labels of
/// hadamard.
template <typename OpT> static LogicalResult verifyTransform(OpT op) {
  Checked input = operand(op, "input", op.getInput());
  if (!input.type.getElementType().isBF16()) // hadamard (C1), hadamard_amax (C1)
    return withNote(input.must("have elements of type bf16"),
                    "convert the tensor to bf16 first: transforms are of bf16");
  if (failed(verifyMatrix(input, /*takesColumns=*/true))) // hadamard (C2), hadamard_amax (C2)
    return failure();
  auto emitError = [&] { return op.emitOpError(); };
  if (failed(HadamardAttr::verify(emitError, op.getSize(), op.getSignMask(), op.getArithmetic(),
                                  /*roundToBF16=*/true)))
    return failure(); // hadamard (C3), (C6), hadamard_amax (C3), hadamard_amax (C6)
  if (op.getDimension() > 1) // hadamard (C4), hadamard_amax (C4)
    return withNote(op.emitOpError("attribute 'dimension' must be 0 or 1, but got ")
                        << static_cast<int64_t>(op.getDimension()),
                    "a matrix has rows, dimension 0, and columns, dimension 1");
  return verifyRuns(input, op.getDimension(), op.getSize()); // hadamard (C5), hadamard_amax (C5)
}

LogicalResult HadamardOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  types.push_back(adaptor.getInput().getType());
  return success();
}

bool HadamardOp::isCompatibleReturnTypes(TypeRange, TypeRange) { return true; }

LogicalResult HadamardOp::verify() {
  if (failed(verifyTransform(*this)))
    return failure();
  return verifyType(result(*this, "result", getResult()), // hadamard (C7)
                    rankedType(getInput()));
}

LogicalResult HadamardAmaxOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                               Adaptor adaptor, SmallVectorImpl<Type> &types) {
  types.assign(2, amaxType(context, countGroups(adaptor.getGroups(), Value())));
  return success();
}

bool HadamardAmaxOp::isCompatibleReturnTypes(TypeRange, TypeRange) { return true; }

LogicalResult HadamardAmaxOp::verify() {
  if (failed(verifyTransform(*this)))
    return failure();
  if (failed(verifyGroups(operand(*this, "input", getInput()), getGroups(), // hadamard_amax (C8)
                          getDimension() == 0 ? getSize() : 1,
                          "the transform of a group does not cross its edge")))
    return failure();
  if (failed(verifyColumnsBeside(operand(*this, "input", getInput()), // hadamard_amax (C496)
                                 getGroups() ? "attribute 'groups'" : "")))
    return failure();
  for (auto [name, value] : {std::pair("before", Value(getBefore())), {"after", getAfter()}})
    if (failed(verifyAmaxType(result(*this, name, value), // hadamard_amax (C7)
                              countGroups(getGroups(), Value()))))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Common part of quantize and dequantize
//===----------------------------------------------------------------------===//

/// quantize (C4), dequantize (C9): the recipe is one of the format's.
static LogicalResult verifyRecipe(Operation *op, const numerics::Recipe &recipe, Format format) {
  if (Status status = numerics::checkRecipe(recipe); !status) // from a builder; the parser checks
    return withNote(op->emitOpError("has a recipe that is none: ") << status.error().message,
                    status.error().note.empty() ? "docs/reference/recipes.md lists the recipes"
                                                : status.error().note);
  if (recipe.format == blockFormat(format))
    return success();
  auto diag = op->emitOpError("expects a recipe of format ")
              << stringifyFormat(format) << ", but got " << StringRef(recipe.name);
  SmallVector<StringRef> names;
  for (const numerics::Recipe &known : numerics::recipes())
    if (known.format == blockFormat(format))
      names.push_back(known.name);
  diag.attachNote() << "the recipes of " << stringifyFormat(format) << " are "
                    << llvm::join(names, ", ");
  return diag;
}

/// Checks that there is an amax exactly if there is a tensor scale. The amax is one number, one per
/// group, or, for an operation with `per_row`, of type `perRow`: one for each row of the output.
static LogicalResult verifyAmax(Operation *op, Value amax, const numerics::Recipe &recipe,
                                std::optional<int64_t> groups = {},
                                RankedTensorType perRow = {}) {
  bool expected = numerics::hasTensorScale(recipe);
  if (expected && amax && perRow)
    return verifyType(operand(op, "amax", amax), perRow);
  if (expected == static_cast<bool>(amax) && !perRow)
    return amax ? verifyAmaxType(operand(op, "amax", amax), groups) : success();
  bool nvfp4 = numerics::hasE4M3Scales(recipe.format);
  std::string what = nvfp4 && !expected ? "recipe " + std::string(recipe.name)
                                        : "format " + std::string(stringify(recipe.format));
  bool isAmax = expected || amax;
  auto diag = op->emitOpError("expects ")
              << (expected ? "" : "no ") << (isAmax ? "operand 'amax'" : "attribute 'per_row'")
              << " for " << what << ", but got " << (expected ? "none" : "one");
  if (expected)
    diag.attachNote() << "compute it with fp4.amax; a constant 2688.0 makes the tensor scale 1";
  else
    diag.attachNote() << what << " has no tensor scale; remove the "
                      << (isAmax ? "operand" : "attribute") << (nvfp4 ? "" : " or use format nvfp4");
  return diag;
}

//===----------------------------------------------------------------------===//
// quantize
//===----------------------------------------------------------------------===//

/// Result types of a quantization, scales row-major: the pair of each orientation.
static void quantizedTypes(RankedTensorType input, Format format, Outputs outputs,
                           SmallVectorImpl<Type> &types,
                           std::optional<ArrayRef<int64_t>> block = {}) {
  for (bool transposed : {false, true}) {
    if (outputs == (transposed ? Outputs::Rowwise : Outputs::Columnwise))
      continue;
    SmallVector<int64_t> shape(input.getShape());
    if (transposed && shape.size() == 2)
      std::swap(shape[0], shape[1]);
    auto data = RankedTensorType::get(shape, dataType(input.getContext(), format));
    types.push_back(data);
    bool isPair = block && block->size() == 2 && block->front() > 0 && block->back() > 0;
    if (numerics::hasF32Scales(blockFormat(format)))
      types.push_back(isPair ? f32ScalesOf(data, block->front(), block->back()) : f32ScalesOf(data, 1));
    else
      types.push_back(scalesOf(data, format));
  }
}

LogicalResult QuantizeOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  quantizedTypes(rankedType(adaptor.getInput()), adaptor.getFormat(), adaptor.getOutputs(), types,
                 adaptor.getBlock());
  return success();
}

bool QuantizeOp::isCompatibleReturnTypes(TypeRange, TypeRange) { return true; }

void QuantizeOp::build(OpBuilder &builder, OperationState &state, Value input, Value amax,
                       Format format, RecipeAttr recipe) {
  SmallVector<Type> types;
  quantizedTypes(rankedType(input), format, Outputs::Rowwise, types);
  state.addTypes(types);
  state.addOperands(input);
  if (amax)
    state.addOperands(amax);
  auto &properties = state.getOrAddProperties<Properties>();
  properties.setFormat(FormatAttr::get(builder.getContext(), format));
  properties.setRecipe(recipe ? recipe
                              : RecipeAttr::get(builder.getContext(), defaultRecipe(format)));
  llvm::copy(ArrayRef<int32_t>{1, amax ? 1 : 0, 0, 0, 0}, properties.operandSegmentSizes.begin());
}

Value QuantizeOp::getColumnwiseData() {
  if (!hasColumnwise())
    return {};
  return hasRowwise() ? Value(getTransposed()[0]) : Value(getData());
}

Value QuantizeOp::getColumnwiseScales() {
  if (!hasColumnwise())
    return {};
  return hasRowwise() ? Value(getTransposed()[1]) : Value(getScales());
}

RankedTensorType QuantizeOp::getTiledType(RankedTensorType scales, bool columnwise) {
  if (getOffsets())
    return tilesOfOffsets(scales, getOffsets());
  if (std::optional<ArrayRef<int64_t>> groups = getGroups()) {
    int64_t tiles = 0;
    for (int64_t extent : *groups) {
      int64_t rows = columnwise ? scales.getDimSize(0) : extent;
      int64_t blocks = columnwise ? extent / getBlockSize() : scales.getDimSize(1);
      tiles += llvm::divideCeil(rows, 128) * llvm::divideCeil(blocks, 4);
    }
    scales = scales.clone({128 * tiles, 4});
  }
  return withScaleLayout(scales, ScaleLayout::Tiled128x4);
}

/// quantize (C6): random numbers where they are needed, and for recipes that can use them.
static LogicalResult verifyRounding(QuantizeOp op, const numerics::Recipe &recipe) {
  bool stochastic = op.getRounding() == Rounding::Stochastic;
  if (stochastic != static_cast<bool>(op.getRng())) { // quantize (C6)
    auto diag = op.emitOpError("expects ")
                << (stochastic ? "operand 'rng'" : "no operand 'rng'") << " for rounding "
                << stringifyRounding(op.getRounding()) << ", but got "
                << (stochastic ? "none" : "one");
    diag.attachNote() << "stochastic rounding takes its seed and offset from a tensor<2xi64>";
    return diag;
  }
  auto i64 = IntegerType::get(op.getContext(), 64);
  if (op.getRng() && failed(verifyType(operand(op, "rng", op.getRng()), // quantize (C6)
                                       RankedTensorType::get({2}, i64))))
    return failure();
  if (stochastic && numerics::roundsToNearestOnly(recipe)) { // quantize (C10)
    auto diag = op.emitOpError("expects rounding nearest_even for recipe ")
                << StringRef(recipe.name) << ", but got stochastic";
    diag.attachNote() << "the recipe chooses scales or codes by their rounding error, or has "
                         "elements of more than 4 bits";
    return diag;
  }
  bool blockwise = stochastic && !numerics::isMX(blockFormat(op.getFormat())) &&
                   !op.hasSquareBlocks() && !op.isGrouped();
  if (op.getPhilox() == Philox::TransformerEngine && !blockwise) { // quantize (C13)
    auto diag = op.emitOpError("attribute 'philox' must be element unless rounding is stochastic "
                               "and blocks are nvfp4's 1 x 16 of one matrix, but got "
                               "transformer_engine");
    diag.attachNote() << "TransformerEngine defines its mapping for that kernel only";
    return diag;
  }
  return success();
}

/// quantize (C7), (C12): a block shape that the format has, and what it goes with.
static LogicalResult verifyBlock(QuantizeOp op) {
  std::optional<ArrayRef<int64_t>> block = op.getBlock();
  bool nvfp4 = numerics::hasE4M3Scales(blockFormat(op.getFormat())), f32 = op.hasF32Scales();
  if (!block || *block == ArrayRef<int64_t>{1, op.getBlockSize()})
    return success();
  int64_t side = f32 ? op.getBlockSize() : 16, columns = rankedType(op.getInput()).getDimSize(1);
  if (f32 && *block == ArrayRef<int64_t>{1, columns})
    return success();
  std::string wholeRow = ShapedType::isDynamic(columns)
                             ? " or [128, 128]"
                             : ", [128, 128] or [1, " + std::to_string(columns) + "]";
  if ((!nvfp4 && !f32) || *block != ArrayRef<int64_t>{side, side}) // quantize (C7)
    return withNote(op.emitOpError("attribute 'block' must be ")
                        << "[1, " << op.getBlockSize() << "]"
                        << (nvfp4 ? StringRef(" or [16, 16]")
                            : f32 ? StringRef(wholeRow)
                                  : StringRef())
                        << " for format " << stringifyFormat(op.getFormat()) << ", but got ["
                        << *block << "]",
                    "leave 'block' out for blocks along a row");
  if (f32)
    return success();
  StringRef surplus = op.getHadamard()             ? "attribute 'hadamard'"
                      : op.getColumnwiseHadamard() ? "attribute 'columnwise_hadamard'"
                      : op.getColumnwiseAmax()     ? "operand 'columnwise_amax'"
                                                   : "";
  if (surplus.empty())
    return success();
  auto diag = op.emitOpError("expects no ") // quantize (C12)
              << surplus << " for block [16, 16], but got one";
  diag.attachNote() << "the outputs of square blocks are each other's transposed";
  return diag;
}

/// quantize (C15): every row of an output has an amax, and one orientation's serve no other's rows.
static LogicalResult verifyPerRow(QuantizeOp op) {
  if (!op.getPerRow())
    return success();
  if (op.hasSquareBlocks() || op.isGrouped()) {
    auto diag = op.emitOpError("expects blocks of one row and no groups beside 'per_row', but got ")
                << (op.isGrouped() ? "groups" : "blocks of 16 x 16");
    diag.attachNote() << "each row has a tensor scale of its own";
    return diag;
  }
  if (op.getOutputs() != Outputs::Both || !op.getAmax() || op.getColumnwiseAmax())
    return success();
  auto diag = op.emitOpError("expects operand 'columnwise_amax' beside 'per_row' for outputs both, "
                             "but got none");
  diag.attachNote() << "a row of the columnwise output is a column of the input: fp4.amax with "
                       "'per_column'";
  return diag;
}

/// quantize (C9): the second amax.
static LogicalResult verifyColumnwiseAmax(QuantizeOp op) {
  if (!op.getColumnwiseAmax())
    return success();
  if (op.getOutputs() == Outputs::Both && op.getAmax()) {
    Checked amax = operand(op, "columnwise_amax", op.getColumnwiseAmax());
    return op.getPerRow() ? verifyType(amax, lineAmaxType(rankedType(op.getInput()), 1))
                          : verifyAmaxType(amax, countGroups(op.getGroups(), op.getOffsets()));
  }
  auto diag = op.emitOpError("expects operand 'columnwise_amax' only beside 'amax' and for outputs "
                             "both, but got outputs ")
              << stringifyOutputs(op.getOutputs());
  diag.attachNote() << "'amax' is that of the only orientation there is";
  return diag;
}

/// quantize (C11): a transform of one side, `along` a dimension of the input.
static LogicalResult verifySideTransform(QuantizeOp op, const Checked &input, StringRef name,
                                         std::optional<HadamardAttr> transform, bool hasSide,
                                         int64_t along) {
  if (!transform)
    return success();
  if (!hasSide)
    return withNote(op.emitOpError("expects no attribute '")
                        << name << "' for outputs " << stringifyOutputs(op.getOutputs())
                        << ", but got one",
                    "leave it out, or let 'outputs' have this orientation");
  if (!input.type.getElementType().isBF16())
    return withNote(input.must("have elements of type bf16, which '" + name + "' transforms"),
                    "convert the tensor to bf16 first, or leave the transform out");
  if (along == 0 && failed(verifyGroups(input, op.getGroups(), transform->getSize(),
                                        "the transform of a group does not cross its edge")))
    return failure();
  return verifyRuns(input, along, transform->getSize());
}

/// quantize (C14): whole blocks of each group where blocks cross rows.
static LogicalResult verifyQuantizeGroups(QuantizeOp op, const Checked &input) {
  bool crossesRows = op.hasColumnwise() || op.hasSquareBlocks();
  return verifyGroups(input, op.getGroups(), crossesRows ? op.getBlockSize() : 1,
                      "blocks do not cross the edge of a group");
}

/// quantize (C611): groups that end anywhere have blocks of one row.
static LogicalResult verifyOffsetBlocks(QuantizeOp op) {
  if (op.getUnspecifiedRows() && !op.getOffsets())
    return withNote(
        op.emitOpError("expects attribute 'unspecified_rows' with operand 'offsets' alone"),
        "without 'offsets' every row is quantized");
  if (!op.getOffsets() || (op.getOutputs() == Outputs::Rowwise && !op.hasSquareBlocks()))
    return success();
  auto diag = op.emitOpError("expects outputs rowwise and blocks of one row beside 'offsets', but "
                             "got ")
              << (op.hasSquareBlocks() ? StringRef("blocks of 16 x 16")
                                       : stringifyOutputs(op.getOutputs()));
  diag.attachNote() << "a block of several rows would cross the edge of a group; 'groups', which "
                       "the program knows, may be whole blocks";
  return diag;
}

/// quantize (C8): one pair of data and scales per orientation, shaped after the input.
static LogicalResult verifyQuantizeResults(QuantizeOp op) {
  SmallVector<Type> expected;
  quantizedTypes(rankedType(op.getInput()), op.getFormat(), op.getOutputs(), expected,
                 op.getBlock());
  if (expected.size() != op->getNumResults()) {
    auto diag = op.emitOpError("expects ")
                << expected.size() << " results for outputs " << stringifyOutputs(op.getOutputs())
                << ", but got " << op->getNumResults();
    diag.attachNote() << "each orientation gives its data and its scales";
    return diag;
  }
  static constexpr StringRef names[] = {"data", "scales", "transposed data", "transposed scales"};
  for (auto [index, type] : llvm::enumerate(expected)) {
    auto plain = cast<RankedTensorType>(type);
    Checked got = result(op, names[index], op->getResult(index));
    bool isTiled = index % 2 == 1 && scaleLayout(got.type) == ScaleLayout::Tiled128x4;
    bool columnwise = index >= 2 || !op.hasRowwise();
    if (failed(verifyType(got, isTiled ? op.getTiledType(plain, columnwise) : plain)))
      return failure();
  }
  return success();
}

/// Returns the part of `op` that asks for static columns; empty if there is none.
static StringRef needOfStaticColumns(QuantizeOp op) {
  if (op.isGrouped())
    return needOfGroups(op);
  if (op.getPhilox() == Philox::TransformerEngine)
    return "philox transformer_engine";
  return "";
}

LogicalResult QuantizeOp::verify() {
  Checked input = operand(*this, "input", getInput());
  if (failed(verifyRealElements(input))) // quantize (C1)
    return failure();
  if (failed(verifyMatrix(input, /*takesColumns=*/true))) // quantize (C2)
    return failure();
  if (failed(verifyColumnsBeside(input, needOfStaticColumns(*this)))) // quantize (C496)
    return failure();
  if (hasRowwise() && failed(verifyBlockAxis(input, 1, getFormat()))) // quantize (C3)
    return failure();
  if (hasColumnwise() && failed(verifyBlockAxis(input, 0, getFormat()))) // quantize (C3)
    return failure();
  numerics::Recipe recipe = getRecipe().getDecisions();
  if (failed(verifyRecipe(*this, recipe, getFormat()))) // quantize (C4)
    return failure();
  if (failed(verifyRounding(*this, recipe)))
    return failure();
  if (hasF32Scales() && failed(verifyFp8Quantize(*this)))
    return failure();
  if (failed(verifyBlock(*this)) || failed(verifyQuantizeGroups(*this, input)))
    return failure();
  if (failed(verifyOffsetsOf(*this, input)) || failed(verifyOffsetBlocks(*this)))
    return failure();
  if (failed(verifyPerRow(*this)))
    return failure();
  if (failed(verifyAmax(*this, getAmax(), recipe, // quantize (C5)
                        countGroups(getGroups(), getOffsets()),
                        getPerRow() ? lineAmaxType(input.type, !hasRowwise())
                                    : RankedTensorType())))
    return failure();
  if (failed(verifyColumnwiseAmax(*this)))
    return failure();
  if (failed(verifySideTransform(*this, input, "hadamard", getHadamard(), hasRowwise(), 1)) ||
      failed(verifySideTransform(*this, input, "columnwise_hadamard", getColumnwiseHadamard(),
                                 hasColumnwise(), 0))) // quantize (C11)
    return failure();
  return verifyQuantizeResults(*this);
}

//===----------------------------------------------------------------------===//
// dequantize
//===----------------------------------------------------------------------===//

void DequantizeOp::build(OpBuilder &builder, OperationState &state, Value data, Value scales,
                         Value amax, Format format, Type elementType) {
  auto result = RankedTensorType::get(rankedType(data).getShape(), elementType);
  build(builder, state, result, data, scales, amax, format, /*recipe=*/RecipeAttr());
}

numerics::Recipe DequantizeOp::resolveRecipe() {
  return getRecipe() ? getRecipe()->getDecisions() : defaultRecipe(getFormat());
}

LogicalResult DequantizeOp::verify() {
  Checked data = operand(*this, "data", getData());
  Checked scales = operand(*this, "scales", getScales());
  if (hasF32Scales(getFormat())) // dequantize (C50)
    return withNote(emitOpError("attribute 'format' must have scales of 8 bits, but got ")
                        << stringifyFormat(getFormat()),
                    "f32 scales are read by fp4.matmul alone");
  if (failed(verifyDataElements(data, getFormat())) ||
      failed(verifyMatrix(data, /*takesColumns=*/true)))
    return failure(); // dequantize (C1)
  if (failed(verifyBlockAxis(data, 1, getFormat()))) // dequantize (C2)
    return failure();
  if (failed(verifyScaleElements(scales, getFormat()))) // dequantize (C3)
    return failure();
  if (failed(verifyRowMajor(scales))) // dequantize (C4)
    return failure();
  if (failed(verifyType(scales, scalesOf(data.type, getFormat())))) // dequantize (C5)
    return failure();
  numerics::Recipe recipe = resolveRecipe();
  if (failed(verifyRecipe(*this, recipe, getFormat()))) // dequantize (C9)
    return failure();
  if (failed(verifyAmax(*this, getAmax(), recipe, {}, // dequantize (C6)
                        getPerRow() ? lineAmaxType(data.type, 0) : RankedTensorType())))
    return failure();
  Checked output = result(*this, "result", getResult());
  if (failed(verifyRealElements(output))) // dequantize (C7)
    return failure();
  return verifyType(output, // dequantize (C8)
                    RankedTensorType::get(data.type.getShape(), output.type.getElementType()));
}
