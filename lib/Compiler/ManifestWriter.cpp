//===- ManifestWriter.cpp - The description in a compiled library ---------===//

#include "ManifestWriter.h"

#include "OperandIndices.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/RowReduction.h"
#include "fp4/Dialect/Fp4/IR/Strided.h"
#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Dialect/Utils/ConstantBytes.h"
#include "fp4/Dialect/Utils/TensorSizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Support/DebugStringHelper.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
namespace json = llvm::json;

namespace {

json::Object describeType(Type type) {
  json::Object object;
  auto tensor = dyn_cast<RankedTensorType>(type);
  json::Array shape;
  if (tensor)
    for (int64_t size : tensor.getShape())
      shape.push_back(ShapedType::isDynamic(size) ? -1 : size);
  object["shape"] = std::move(shape);
  Type element = tensor ? tensor.getElementType() : type;
  object["type"] = debugString(element);
  auto layout = tensor ? fp4::scaleLayout(tensor) : std::nullopt;
  object["layout"] = layout ? fp4::stringifyScaleLayout(*layout) : "linear";
  if (tensor && fp4::haveRowPowers(tensor))
    object["layout"] = fp4::stringifyWeightLayout(fp4::WeightLayout::WgmmaRows);
  return object;
}

/// Describes the type of a computed value. The reference has conditions as the numbers 1 and 0.
json::Object describeComputed(Type type) {
  json::Object object = describeType(type);
  if (getElementTypeOrSelf(type).isInteger(1))
    object["type"] = "f32";
  return object;
}

/// size,sign mask,arithmetic
std::string spellHadamard(fp4::HadamardAttr attr) {
  return std::to_string(attr.getSize()) + "," + std::to_string(attr.getSignMask()) + "," +
         stringifyHadamardArithmetic(attr.getArithmetic()).str() +
         (attr.getRoundToBF16() ? "" : ",none");
}

/// The keyword or number that an attribute is written with.
std::string spellAttribute(Attribute attribute) {
  return llvm::TypeSwitch<Attribute, std::string>(attribute)
      .Case([](fp4::FormatAttr attr) { return stringifyFormat(attr.getValue()).str(); })
      .Case([](fp4::RecipeAttr attr) { return attr.getText(); })
      .Case([](fp4::EpilogueAttr attr) { return fp4::numerics::spellEpilogue(attr.getSteps()); })
      .Case([](fp4::RoundingAttr attr) { return stringifyRounding(attr.getValue()).str(); })
      .Case([](fp4::OutputsAttr attr) { return stringifyOutputs(attr.getValue()).str(); })
      .Case([](fp4::NanPolicyAttr attr) { return stringifyNanPolicy(attr.getValue()).str(); })
      .Case([](fp4::PhiloxAttr attr) { return stringifyPhilox(attr.getValue()).str(); })
      .Case([](fp4::HadamardArithmeticAttr attr) {
        return stringifyHadamardArithmetic(attr.getValue()).str();
      })
      .Case([](fp4::MatmulArithmeticAttr attr) {
        return stringifyMatmulArithmetic(attr.getValue()).str();
      })
      .Case([](fp4::HadamardAttr attr) { return spellHadamard(attr); })
      .Case([](fp4::KeyOrderAttr attr) { // keys of a block,bits of the growth
        return std::to_string(attr.getInBlocks()) + "," + spellAttribute(attr.getGrowth());
      })
      .Case([](IntegerAttr attr) { return std::to_string(attr.getInt()); })
      .Case([](FloatAttr attr) { // the bits, as of fp32 elements
        return std::to_string(attr.getValue().bitcastToAPInt().getZExtValue());
      })
      .Case([](DenseFPElementsAttr attr) { // the bits of one fp32 number: no digit is lost
        APInt bits = attr.getSplatValue<APFloat>().bitcastToAPInt();
        return std::to_string(bits.getZExtValue());
      })
      .Case([](DenseI64ArrayAttr attr) {
        std::string text;
        llvm::raw_string_ostream stream(text);
        llvm::interleave(attr.asArrayRef(), stream, ",");
        return text;
      })
      .Default([](Attribute attr) {
        std::string text;
        llvm::raw_string_ostream(text) << attr;
        return text;
      });
}

std::string spellNumbers(ArrayRef<int64_t> numbers) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleave(numbers, stream, ",");
  return text;
}

bool isTensor(Value value) { return isa<RankedTensorType>(value.getType()); }

/// "1,0,1": how many values each operand of the operation's definition has.
std::string spellSegments(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleave(cast<DenseI32ArrayAttr>(attribute).asArrayRef(), stream, ",");
  return text;
}

json::Object describeAttributes(Operation *op) {
  json::Object object;
  for (NamedAttribute attribute : op->getAttrs())
    // At an operation without properties, MLIR also calls attributes of a dialect, such as a plan,
    // inherent.
    if (attribute.getNameDialect() || !op->getInherentAttr(attribute.getName()) ||
        attribute.getName() == "resultSegmentSizes")
      continue; // such an attribute does not change the computed values
    else if (attribute.getName() == "operandSegmentSizes")
      object["operand_segments"] = spellSegments(attribute.getValue());
    else
      object[attribute.getName().getValue()] = spellAttribute(attribute.getValue());
  return object;
}

/// Describes a slice; the size -1 is that of the source, where it is known to be that.
json::Object describeSlice(tensor::ExtractSliceOp op) {
  json::Object object = describeAttributes(op);
  SmallVector<int64_t> sizes(op.getStaticSizes());
  for (auto [dim, size] : llvm::enumerate(sizes))
    size = fp4::takesAll(op, int64_t(dim)) ? -1 : size;
  object["static_sizes"] = spellNumbers(sizes);
  return object;
}

/// Returns true when the place of a slice does not depend on numbers of the program.
bool hasKnownPlace(tensor::ExtractSliceOp op) {
  return ShapedType::isStaticShape(op.getStaticOffsets()) &&
         ShapedType::isStaticShape(op.getStaticStrides()) &&
         llvm::all_of(llvm::seq<int64_t>(op.getStaticSizes().size()), [&](int64_t dim) {
           return !ShapedType::isDynamic(op.getStaticSizes()[dim]) || fp4::takesAll(op, dim);
         });
}

/// The name by which manifests call an operation: that of version 1 of the dialect for a matmul.
StringRef nameOf(Operation *op) {
  return isa<fp4::BlockScaledMatmulOp>(op) ? "fp4.blockscaled_matmul"
                                           : op->getName().getStringRef();
}

/// The operands of a matmul, null where there are none, in the order in which manifests have them.
SmallVector<Value> slotsOf(fp4::BlockScaledMatmulOp op) {
  SmallVector<Value> slots = {op.getLhs(), op.getLhsScales(), op.getRhs(), op.getRhsScales(),
                              op.getAlpha()};
  llvm::append_range(slots, op.getEpilogueInputs());
  slots.append(
      {op.getOffsets(), op.getRhs2(), op.getRhs2Scales(), op.getAlpha2(), op.getQuantizeAmax()});
  return slots;
}

/// "1,1,1,1,0,0,0,0,0,0,0": how many values each slot has; the sixth is that of the inputs.
std::string spellSlots(fp4::BlockScaledMatmulOp op) {
  constexpr size_t inputs = 5;
  SmallVector<size_t> counts;
  SmallVector<Value> slots = slotsOf(op);
  for (Value slot : ArrayRef(slots).take_front(inputs))
    counts.push_back(bool(slot));
  counts.push_back(op.getEpilogueInputs().size());
  for (Value slot : ArrayRef(slots).drop_front(inputs + counts.back()))
    counts.push_back(bool(slot));
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleave(counts, stream, ",");
  return text;
}

/// Adds the split-K factors, and the rows up to which each but the last holds.
void addSplits(json::Object &object, fp4::BlockScaledMatmulOp op) {
  if (op.getMostSplits() == 1)
    return;
  SmallVector<int64_t> factors, rows;
  for (auto [most, factor] : op.getSplits()) {
    factors.push_back(factor);
    if (most < INT64_MAX)
      rows.push_back(most);
  }
  object["split_k"] = spellNumbers(factors);
  if (!rows.empty())
    object["split_rows"] = spellNumbers(rows);
}

/// Describes the parts of a matmul one by one.
json::Object describeMatmul(fp4::BlockScaledMatmulOp op) {
  json::Object object{{"operand_segments", spellSlots(op)},
                      {"format", stringifyFormat(op.getFormat())}};
  auto add = [&](StringRef name, std::optional<int64_t> number) {
    if (number)
      object[name] = std::to_string(*number);
  };
  auto list = [&](StringRef name, std::optional<ArrayRef<int64_t>> numbers) {
    if (numbers && !numbers->empty())
      object[name] = spellNumbers(*numbers);
  };
  auto attribute = [&](StringRef name, Attribute value) {
    if (value)
      object[name] = spellAttribute(value);
  };
  if (op.getFormatOfRhs() != op.getFormat())
    object["rhs_format"] = stringifyFormat(op.getFormatOfRhs());
  addSplits(object, op);
  add("expected_rows", op.getExpectedRows());
  list("stream_k", op.getStreamK());
  list("groups", op.getGroups());
  if (op.getUnspecifiedRows())
    object["unspecified_rows"] = "unit";
  attribute("arithmetic", op.getArithmeticAttr());
  attribute("epilogue", op.getEpilogueAttr());
  if (fp4::EpilogueQuantizeOp quantize = op.getEpilogueQuantize()) {
    attribute("quantize_recipe", quantize.getRecipeAttr());
    attribute("quantize_outputs", quantize.getOutputsAttr());
  }
  if (op.getWithAmax())
    object["with_amax"] = "unit";
  return object;
}

bool isNumbers(Value value) {
  Type type = getElementTypeOrSelf(value);
  return isTensor(value) && (fp4::isElementType(type) || fp4::isKernelOnlyType(type));
}

bool isResult(Value value) {
  return isNumbers(value) || (isTensor(value) && fp4::isResultType(getElementTypeOrSelf(value)));
}

/// The elementwise operation of linalg that `op` is, if its name is not known.
linalg::LinalgOp elementwiseOf(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  bool isNamed = isa<linalg::TransposeOp>(op);
  bool isElementwise = linalgOp && !isNamed && llvm::all_of(op->getResults(), isResult) &&
                       fp4::whyNotElementwise(linalgOp).empty();
  return isElementwise ? linalgOp : nullptr;
}

/// The reduction of rows, of matrices or batches, that `op` is; a linalg.reduce may be one too.
linalg::LinalgOp rowReductionOf(Operation *op) {
  if (!isa<linalg::GenericOp, linalg::ReduceOp>(op))
    return nullptr;
  auto linalgOp = cast<linalg::LinalgOp>(op);
  return fp4::whyNotReductionOfRows(linalgOp).empty() ? linalgOp : nullptr;
}

/// The tensors that an operation reads.
SmallVector<Value> operandsOf(Operation *op) {
  if (auto linalgOp = elementwiseOf(op))
    return linalgOp.getDpsInputs();
  if (auto reduction = rowReductionOf(op))
    return reduction.getDpsInputs();
  if (auto scatter = dyn_cast<tensor::ScatterOp>(op)) // its destination is empty
    return {scatter.getSource(), scatter.getIndices()};
  auto product = dyn_cast<fp4::BlockScaledMatmulOp>(op);
  if (!product)
    return op->getOperands();
  SmallVector<Value> operands = slotsOf(product);
  llvm::erase(operands, Value());
  return operands;
}

/// Returns true for an operation of arith or math on tensors of numbers.
bool isElementwiseOnTensors(Operation *op) {
  if (fp4::isKernelOnlySplat(op)) // a program without operands
    return true;
  return op->getNumResults() == 1 && isResult(op->getResult(0)) &&
         llvm::all_of(op->getOperands(), isNumbers) && fp4::elementOpOf(op);
}

/// Describes an elementwise operation for the reference: its program and its indices.
json::Object describeElementwise(Operation *op) {
  std::string dimensions;
  fp4::numerics::ElementProgram program;
  if (linalg::LinalgOp linalgOp = elementwiseOf(op)) {
    dimensions = fp4::spellInputs(linalgOp);
    program = fp4::elementProgramOf(*linalgOp.getBlock(), linalgOp.getNumDpsInputs());
  } else {
    int64_t rank = cast<RankedTensorType>(op->getResult(0).getType()).getRank();
    dimensions = fp4::spellSame(op->getNumOperands(), rank, op->getContext());
    program = fp4::elementProgramOf(op);
  }
  return json::Object{{"program", program.text()}, {"dimensions", dimensions}};
}

/// Describes a row reduction: the program of its elements, their indices, the step that combines
/// them, and the bits of the number that each row begins with.
json::Object describeReduction(linalg::LinalgOp op) {
  const uint32_t initial = fp4::numerics::bitsOf(fp4::initialOf(op));
  return json::Object{
      {"program", fp4::reductionProgramOf(op).text()},
      {"dimensions", fp4::spellInputs(op)},
      {"combination", std::string(fp4::numerics::stringify(fp4::combinationOf(op)))},
      {"initial", "0x" + llvm::utohexstr(initial, /*LowerCase=*/true, /*Width=*/8)}};
}

/// Adds the program of the epilogue region of a grouped matmul, whose inputs are the sums and those
/// of the epilogue.
void describeBody(fp4::BlockScaledMatmulOp product, json::Object &attributes) {
  if (product.getEpilogueBody().empty() || !product.isGrouped())
    return;
  Block &body = product.getEpilogueBody().front();
  attributes["program"] =
      fp4::elementProgramOf(body, body.getNumArguments() - (product.getQuantizeAmax() ? 1 : 0))
          .text();
}

/// The straight-line program of one function, values named as the reference interpreter wants them.
class ProgramWriter {
public:
  ProgramWriter(func::FuncOp function, fp4::ConstantData *data = nullptr)
      : function(function), data(data) {}

  json::Object describe() {
    json::Object object;
    StringRef name = function.getName();
    object["name"] = name;
    object["symbol"] = ("fp4_entry_" + name).str();
    object["arguments"] = describeArguments();
    object["results"] = describeResults();
    if (!isInterpretable())
      return object;
    object["program"] = describeProgram();
    object["returns"] = namesOf(function.getBody().front().getTerminator()->getOperands());
    return object;
  }

  /// Adds the operations alone to the function's object.
  void describeFused(json::Object &object) {
    describeArguments(); // names them
    if (isInterpretable())
      object["fused"] = describeProgram();
  }

private:
  json::Array describeProgram() {
    json::Array program;
    for (Operation &op : function.getBody().front().without_terminator())
      if (llvm::any_of(op.getResults(), isTensor) && !isOnlyWritten(op)) // no fp4.scaled
        program.push_back(describeOp(op));
    return program;
  }

  json::Array describeArguments() {
    json::Array arguments;
    for (BlockArgument argument : function.getArguments()) {
      std::string value = "a" + std::to_string(argument.getArgNumber());
      names[argument] = value;
      auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "fp4.name");
      json::Object object =
          describeOperand(name ? name.getValue().str() : value, argument.getType());
      if (auto dims = function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), "fp4.dims"))
        object["dims"] = json::Array(dims.getAsValueRange<StringAttr>());
      if (function.getArgAttr(argument.getArgNumber(), fp4::kStridedAttr))
        object["strided"] = true;
      arguments.push_back(std::move(object));
    }
    return arguments;
  }

  json::Array describeResults() {
    json::Array results;
    for (auto [number, type] : llvm::enumerate(function.getResultTypes())) {
      auto name = function.getResultAttrOfType<StringAttr>(number, "fp4.name");
      json::Object object =
          describeOperand(name ? name.getValue().str() : "r" + std::to_string(number), type);
      if (function.getResultAttr(number, fp4::kStridedAttr))
        object["strided"] = true;
      results.push_back(std::move(object));
    }
    return results;
  }

  static json::Object describeOperand(std::string name, Type type) {
    json::Object object = describeType(type);
    object["name"] = std::move(name); // json would only refer to a StringRef
    return object;
  }

  /// Returns true for one fp32 number as a tensor, which is written as it is.
  static bool isScalar(arith::ConstantOp op) {
    auto type = cast<RankedTensorType>(op.getType());
    return type.getRank() == 0 && type.getElementType().isF32() &&
           isa<DenseFPElementsAttr>(op.getValue());
  }

  /// Returns true for a tensor that elementwise operations and row reductions only have for their
  /// results: an empty one, or one number for all.
  static bool isOnlyWritten(Operation &op) {
    auto constant = dyn_cast<arith::ConstantOp>(op);
    bool isNumber = constant && isa<SplatElementsAttr>(constant.getValue());
    return (isNumber || isa<tensor::EmptyOp, linalg::FillOp>(op)) &&
           llvm::all_of(op.getUses(), isForResults);
  }

  /// Returns true for a tensor in the place of results of which the reference reads nothing.
  static bool isForResults(OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto scatter = dyn_cast<tensor::ScatterOp>(user))
      return &use == &scatter.getDestMutable();
    auto linalgOp = dyn_cast<linalg::LinalgOp>(user);
    return linalgOp && linalgOp.isDpsInit(&use) &&
           (elementwiseOf(user) || rowReductionOf(user) ||
            (isa<linalg::FillOp>(user) && isOnlyWritten(*user)));
  }

  /// Returns true for operations that lib/Reference has a reference for. Numbers such as sizes are
  /// found by the reference itself.
  bool isKnown(Operation &op) const {
    if (isOnlyWritten(op) || rowReductionOf(&op))
      return true;
    if (auto constant = dyn_cast<arith::ConstantOp>(op);
        constant && isTensor(constant) && !fp4::isKernelOnlySplat(&op))
      return fp4::hasConstantBytes(cast<ElementsAttr>(constant.getValue()));
    if (isa<linalg::TransposeOp>(op))
      return isTensor(op.getOperand(0)) &&
             !isa<Float4E2M1FNType>(getElementTypeOrSelf(op.getOperand(0)));
    if (auto product = dyn_cast<fp4::BlockScaledMatmulOp>(op))
      return !data || product.getEpilogueBody().empty() || product.isGrouped();
    if (elementwiseOf(&op) || isElementwiseOnTensors(&op))
      return true;
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
      return hasKnownPlace(slice);
    if (auto scatter = dyn_cast<tensor::ScatterOp>(op))
      return scatter.getDest().getDefiningOp<tensor::EmptyOp>() != nullptr;
    return isa<fp4::Fp4Dialect>(op.getDialect()) ||
           isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ConcatOp, tensor::EmptyOp,
               tensor::ExpandShapeOp, tensor::GatherOp>(op) ||
           (isMemoryEffectFree(&op) && llvm::none_of(op.getResults(), isTensor));
  }

  /// Returns true when the reference can interpret the function. A fused program is shown and not
  /// interpreted, so epilogue regions may be missing there.
  bool isInterpretable() {
    return function.getBody().hasOneBlock() &&
           llvm::all_of(function.getBody().front().without_terminator(),
                        [&](Operation &op) { return isKnown(op); });
  }

  /// Describes a constant for the reference: a number, or the symbol of its bytes in the layout
  /// that users see.
  json::Object describeConstant(arith::ConstantOp op) {
    if (isScalar(op))
      return describeAttributes(op);
    if (!data) // a fused program is not interpreted
      return {};
    std::vector<uint8_t> bytes =
        fp4::constantBytes(cast<ElementsAttr>(op.getValue()),
                           fp4::userBufferType(cast<RankedTensorType>(op.getType())));
    std::string symbol = fp4::constantSymbol(bytes);
    data->try_emplace(symbol, std::move(bytes));
    return json::Object{{"symbol", symbol}};
  }

  json::Object describeOp(Operation &op) {
    json::Object object;
    linalg::LinalgOp linalgOp = elementwiseOf(&op);
    bool isElementwise = linalgOp || isElementwiseOnTensors(&op);
    linalg::LinalgOp reduction = rowReductionOf(&op);
    object["op"] = isElementwise ? "linalg.generic" : reduction ? "linalg.reduce" : nameOf(&op);
    object["operands"] = namesOf(operandsOf(&op));
    json::Array types;
    for (Value result : op.getResults()) {
      names[result] = "v" + std::to_string(numValues++);
      types.push_back(describeComputed(result.getType()));
    }
    object["results"] = namesOf(op.getResults());
    object["result_types"] = std::move(types);
    auto constant = dyn_cast<arith::ConstantOp>(op);
    auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
    json::Object attributes = isElementwise ? describeElementwise(&op)
                              : reduction   ? describeReduction(reduction)
                              : constant    ? describeConstant(constant)
                              : slice       ? describeSlice(slice)
                                            : describeAttributes(&op);
    if (auto product = dyn_cast<fp4::BlockScaledMatmulOp>(op)) {
      attributes = describeMatmul(product);
      describeBody(product, attributes);
    }
    object["attributes"] = std::move(attributes);
    return object;
  }

  json::Array namesOf(ValueRange values) {
    json::Array array;
    for (Value value : values)
      if (isTensor(value))
        array.push_back(names.lookup(value));
    return array;
  }

  func::FuncOp function;
  fp4::ConstantData *data; ///< gets the bytes that the program refers to
  llvm::DenseMap<Value, std::string> names;
  unsigned numValues = 0;
};

gpu::ObjectAttr findObject(gpu::BinaryOp binary, gpu::CompilationTarget format) {
  for (Attribute attribute : binary.getObjects())
    if (auto object = dyn_cast<gpu::ObjectAttr>(attribute); object && object.getFormat() == format)
      return object;
  return nullptr;
}

json::Object describeKernel(gpu::BinaryOp binary, gpu::KernelMetadataAttr kernel) {
  json::Object object;
  object["module"] = binary.getName();
  object["name"] = kernel.getName().getValue();
  auto copy = [&](StringRef from, StringRef to) {
    if (auto value = kernel.getAttr<IntegerAttr>(from))
      object[to] = value.getInt();
  };
  copy("registers", "registers");
  copy("spill_bytes", "spill_bytes");
  auto dynamicBytes = kernel.getAttr<IntegerAttr>("dynamic_shared_bytes");
  auto staticBytes = kernel.getAttr<IntegerAttr>("shared_bytes");
  object["shared_bytes"] =
      (dynamicBytes ? dynamicBytes.getInt() : 0) + (staticBytes ? staticBytes.getInt() : 0);
  auto size = [&](gpu::CompilationTarget format) -> int64_t {
    gpu::ObjectAttr code = findObject(binary, format);
    return code ? code.getObject().size() : 0;
  };
  object["ptx_bytes"] = size(gpu::CompilationTarget::Assembly);
  object["cubin_bytes"] = size(gpu::CompilationTarget::Binary);
  return object;
}

} // namespace

json::Array fp4::describeFunctions(ModuleOp module, ConstantData &data) {
  json::Array functions;
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic() && !function.isExternal())
      functions.push_back(ProgramWriter(function, &data).describe());
  return functions;
}

void fp4::describeFusion(ModuleOp module, json::Array &functions) {
  SymbolTable symbols(module);
  for (json::Value &value : functions) {
    json::Object &object = *value.getAsObject();
    if (auto function = symbols.lookup<func::FuncOp>(*object.getString("name")))
      ProgramWriter(function).describeFused(object);
  }
}

json::Array fp4::describeKernels(ModuleOp module) {
  json::Array kernels;
  for (auto binary : module.getOps<gpu::BinaryOp>())
    if (gpu::ObjectAttr object = findObject(binary, gpu::CompilationTarget::Assembly))
      if (object.getKernels())
        for (gpu::KernelMetadataAttr kernel : object.getKernels())
          kernels.push_back(describeKernel(binary, kernel));
  return kernels;
}

std::string fp4::writeManifest(StringRef target, json::Array functions, json::Array kernels) {
  json::Object manifest;
  manifest["schema"] = 1;
  manifest["compiler"] = "fp4 " FP4_VERSION;
  manifest["target"] = target;
  manifest["functions"] = std::move(functions);
  manifest["kernels"] = std::move(kernels);
  std::string text;
  llvm::raw_string_ostream(text) << json::Value(std::move(manifest));
  return text;
}
