//===- Fp4Dialect.cpp - Registration, format facts, function attributes ---===//
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/Fp4Upgrade.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Fp4/IR/Strided.h"

#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/Bytecode/Encoding.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/InliningUtils.h"

using namespace mlir;
using namespace fp4;

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.cpp.inc"

namespace {
/// fp4 operations have value semantics and mean the same in every function.
struct Fp4Inliner : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const override { return true; }
};

/// Types of bundles are long: text names them after their format, !nvfp4 and !nvfp4_1.
struct Fp4Aliases : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Type type, raw_ostream &os) const override {
    auto scaled = dyn_cast<ScaledType>(type);
    if (!scaled)
      return AliasResult::NoAlias;
    os << stringifyFormat(scaled.getFormat());
    return AliasResult::FinalAlias;
  }
};

/// The version that bytecode of this dialect carries. The number grows when a program that was
/// valid would mean something else or nothing; upgradeFromVersion then mends the older ones.
struct Fp4Version : DialectVersion {
  explicit Fp4Version(uint64_t number) : number(number) {}
  uint64_t number;
};
/// Version 2 has fp4.matmul in place of fp4.blockscaled_matmul, and of fp4.attention version 3 the
/// order of keys, version 4 latent values, version 5 scales of queries, and version 6 epilogue
/// regions with results of their own.
constexpr uint64_t kVersion = 6, kOrderOfKeys = 3, kLatentValues = 4, kEpilogues = 6;

/// Attributes and types are written in their textual form, which MLIR does by itself.
struct Fp4Bytecode : BytecodeDialectInterface {
  explicit Fp4Bytecode(Dialect *dialect) : BytecodeDialectInterface(dialect) {}

  void writeVersion(DialectBytecodeWriter &writer) const override { writer.writeVarInt(kVersion); }

  std::unique_ptr<DialectVersion> readVersion(DialectBytecodeReader &reader) const override {
    uint64_t number;
    if (failed(reader.readVarInt(number)))
      return nullptr;
    if (number == 0 || number > kVersion) {
      InFlightDiagnostic diag = reader.emitError()
                                << "bytecode must have version 1 to " << kVersion
                                << " of the fp4 dialect, but has version " << number;
      diag.attachNote() << "a newer compiler wrote it: update this one, or write text there";
      return nullptr;
    }
    return std::make_unique<Fp4Version>(number);
  }

  LogicalResult upgradeFromVersion(Operation *root, const DialectVersion &version) const override {
    uint64_t number = static_cast<const Fp4Version &>(version).number;
    if (number < kEpilogues)
      upgradeAttention(root);
    return number < kVersion ? upgradeLegacyOps(root) : success();
  }
};
} // namespace

static LogicalResult readResultSizes(DialectBytecodeReader &reader, AttentionOp::Properties &prop) {
  DenseI32ArrayAttr results;
  if (failed(reader.readAttribute(results)))
    return failure();
  if (results.size() != int64_t(prop.resultSegmentSizes.size()))
    return withNote(reader.emitError()
                        << "fp4.attention must have " << prop.resultSegmentSizes.size()
                        << " sizes of results, but has " << results.size(),
                    "the file is damaged: write it again");
  llvm::copy(results.asArrayRef(), prop.resultSegmentSizes.begin());
  return success();
}

/// The attributes of version 2 in their order, then those that later versions have added.
LogicalResult AttentionOp::readProperties(DialectBytecodeReader &reader, OperationState &state) {
  auto &prop = state.getOrAddProperties<Properties>();
  const bool hasSparseSizes =
      reader.getBytecodeVersion() >= bytecode::kNativePropertiesODSSegmentSize;
  auto &sizes = prop.operandSegmentSizes;
  DenseI32ArrayAttr dense;
  if (failed(reader.readOptionalAttribute(prop.causal)) ||
      failed(reader.readOptionalAttribute(prop.heads_first)) ||
      (!hasSparseSizes && failed(reader.readAttribute(dense))) ||
      failed(reader.readAttribute(prop.scale)) ||
      failed(reader.readOptionalAttribute(prop.softcap)) ||
      failed(reader.readOptionalAttribute(prop.window)) ||
      (hasSparseSizes && failed(reader.readSparseArray(MutableArrayRef(sizes)))))
    return failure();
  if (dense && dense.size() > int64_t(sizes.size())) // earlier versions have fewer
    return withNote(reader.emitError() << "fp4.attention must have at most " << sizes.size()
                                       << " sizes of operands, but has " << dense.size(),
                    "the file is damaged: write it again");
  if (dense)
    llvm::copy(dense.asArrayRef(), sizes.begin());
  FailureOr<const DialectVersion *> version = reader.getDialectVersion<Fp4Dialect>();
  auto isBefore = [&](uint64_t number) {
    return succeeded(version) && static_cast<const Fp4Version *>(*version)->number < number;
  };
  if (isBefore(kOrderOfKeys))
    return success();
  if (failed(reader.readOptionalAttribute(prop.order)))
    return failure();
  if (!isBefore(kLatentValues) && failed(reader.readOptionalAttribute(prop.latent)))
    return failure();
  if (isBefore(kEpilogues))
    return success(); // upgradeFromVersion knows the results
  return readResultSizes(reader, prop);
}

void AttentionOp::writeProperties(DialectBytecodeWriter &writer) {
  auto &prop = getProperties();
  const bool hasSparseSizes =
      writer.getBytecodeVersion() >= bytecode::kNativePropertiesODSSegmentSize;
  writer.writeOptionalAttribute(prop.causal);
  writer.writeOptionalAttribute(prop.heads_first);
  if (!hasSparseSizes)
    writer.writeAttribute(DenseI32ArrayAttr::get(getContext(), prop.operandSegmentSizes));
  writer.writeAttribute(prop.scale);
  writer.writeOptionalAttribute(prop.softcap);
  writer.writeOptionalAttribute(prop.window);
  if (hasSparseSizes)
    writer.writeSparseArray(ArrayRef(prop.operandSegmentSizes));
  writer.writeOptionalAttribute(prop.order);
  writer.writeOptionalAttribute(prop.latent);
  writer.writeAttribute(DenseI32ArrayAttr::get(getContext(), prop.resultSegmentSizes));
}

void Fp4Dialect::initialize() {
  addInterfaces<Fp4Aliases, Fp4Inliner, Fp4Bytecode>();
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "fp4/Dialect/Fp4/IR/Fp4Ops.cpp.inc"
      >();
}

Operation *Fp4Dialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                           Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

#define FP4_FORMAT(Enumerator, name, Element, block, Scale)                                        \
  static_assert(formatOf(numerics::BlockFormat::Enumerator) == Format::Enumerator); // law: lists
#include "fp4/Numerics/Formats.def"

FloatType fp4::dataType(MLIRContext *context, Format format) {
  switch (format) {
#define FP4_FORMAT(Enumerator, name, Element, block, Scale)                                        \
  case Format::Enumerator:                                                                         \
    return Float##Element##Type::get(context);
#include "fp4/Numerics/Formats.def"
  }
  llvm_unreachable("a format without elements");
}

FloatType fp4::scaleType(MLIRContext *context, Format format) {
  switch (format) {
#define FP4_FORMAT(Enumerator, name, Element, block, Scale)                                        \
  case Format::Enumerator:                                                                         \
    return Float##Scale##Type::get(context);
#include "fp4/Numerics/Formats.def"
  }
  llvm_unreachable("a format without scales");
}

const numerics::Recipe &fp4::defaultRecipe(Format format) {
  return numerics::defaultRecipe(blockFormat(format));
}

numerics::NanPolicy fp4::nanPolicy(NanPolicy policy) {
  return policy == NanPolicy::Drop ? numerics::NanPolicy::Drop : numerics::NanPolicy::Propagate;
}

bool fp4::isByteElementType(Type type) {
  return isa_and_present<Float6E2M3FNType, Float6E3M2FNType, Float8E4M3FNType, Float8E5M2Type>(
      type);
}

bool fp4::isSixBitElementType(Type type) {
  return isa_and_present<Float6E2M3FNType, Float6E3M2FNType>(type);
}

bool fp4::isScaleElementType(Type type) {
  return isa_and_present<Float8E4M3FNType, Float8E8M0FNUType>(type);
}

std::optional<ScaleLayout> fp4::scaleLayout(RankedTensorType type) {
  if (auto layout = dyn_cast_or_null<ScaleLayoutAttr>(type.getEncoding()))
    return layout.getValue();
  return std::nullopt;
}

RankedTensorType fp4::withScaleLayout(RankedTensorType type, std::optional<ScaleLayout> layout) {
  Attribute encoding;
  if (layout)
    encoding = ScaleLayoutAttr::get(type.getContext(), *layout);
  return RankedTensorType::get(type.getShape(), type.getElementType(), encoding);
}

/// Rows of contiguous elements, that begin where a byte does. A function that was lowered has
/// buffers.
static bool mayBeStrided(Type type, bool isResult) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return isa<MemRefType>(type);
  Type element = tensor.getElementType();
  bool isKnown = element.isBF16() || element.isF16() || element.isF32() ||
                 isa<Float4E2M1FNType>(element) || fp4::isByteElementType(element);
  bool hasRank = tensor.getRank() == 2 || tensor.getRank() == 3;
  // Packed rows of dynamic length have strides already, which say nothing of the caller's.
  bool hasColumns = isResult && tensor.getRank() == 2 && !isa<Float4E2M1FNType>(element);
  return hasRank && isKnown && !tensor.getEncoding() &&
         (hasColumns || !ShapedType::isDynamic(tensor.getShape().back()));
}

/// function (C476), (C477), (C493): the caller places the rows of an argument or result.
static LogicalResult verifyStrided(Operation *op, NamedAttribute attribute, Type type,
                                   const Twine &what, bool isResult) {
  if (!isa<UnitAttr>(attribute.getValue())) // function (C476)
    return withNote(op->emitError()
                        << "attribute 'fp4.strided' of " << what
                        << " must be a unit attribute, but got " << attribute.getValue(),
                    "write {fp4.strided}");
  auto tensor = dyn_cast_or_null<RankedTensorType>(type);
  if (isResult && tensor && tensor.getRank() == 3) { // function (C493)
    InFlightDiagnostic diag = op->emitError() << "attribute 'fp4.strided' of " << what
                                              << " must be on a matrix, but got " << type;
    diag.attachNote() << "return each matrix of a batch as a result of its own";
    return diag;
  }
  if (!type || mayBeStrided(type, isResult)) // function (C477)
    return success();
  StringRef length =
      isResult ? "rows, of static length where they are packed" : "rows of static length";
  return withNote(
      op->emitError() << "attribute 'fp4.strided' of " << what << " must be on " << length
                      << ", in two or three dimensions, of floats or codes and without an "
                         "encoding, but got "
                      << type,
      "leave 'fp4.strided' out, and the caller's buffer is dense");
}

/// function (C1), (C2): what tools call an argument or result, and its dimensions.
static LogicalResult verifyBoundaryAttribute(Operation *op, NamedAttribute attribute, Type type,
                                             const Twine &what, bool isResult = false) {
  if (attribute.getName() == "fp4.name") {
    if (isa<StringAttr>(attribute.getValue())) // function (C1)
      return success();
    return withNote(op->emitError() << "attribute 'fp4.name' of " << what
                                    << " must be a string, but got " << attribute.getValue(),
                    "write {fp4.name = \"x\"}");
  }
  if (attribute.getName() == fp4::kStridedAttr)
    return verifyStrided(op, attribute, type, what, isResult);
  if (attribute.getName() != "fp4.dims") {
    InFlightDiagnostic diag = op->emitError() << what << " has the unknown attribute '"
                                              << attribute.getName().getValue() << "'";
    diag.attachNote() << "known are fp4.name, fp4.dims and fp4.strided";
    return diag;
  }
  auto names = dyn_cast<ArrayAttr>(attribute.getValue()); // function (C2)
  auto tensor = dyn_cast<RankedTensorType>(type);
  bool areStrings = names && llvm::all_of(names, llvm::IsaPred<StringAttr>);
  // A function that was lowered has buffers for tensors and keeps the names.
  if (areStrings && (!tensor || static_cast<int64_t>(names.size()) == tensor.getRank()))
    return success();
  return withNote(op->emitError() << "attribute 'fp4.dims' of " << what
                                  << " must be one string for each dimension of " << type
                                  << ", but got " << attribute.getValue(),
                  "an empty string is a dimension without a name");
}

/// function (C3): no other argument (or result) is called `name`. Arguments without a name are
/// called `letter` and their number.
static LogicalResult verifyDistinct(Operation *op, StringAttr name, unsigned index, unsigned count,
                                    char letter, StringRef what,
                                    function_ref<StringAttr(unsigned)> nameOf) {
  for (unsigned other = 0; other < count; ++other) {
    StringAttr given = nameOf(other);
    bool same = given ? other < index && given == name
                      : name.getValue() == (Twine(letter) + Twine(other)).str();
    if (other != index && same)
      return withNote(op->emitError() << what << " " << index << " and " << other
                                      << " must have different names, but both are called " << name,
                      "rename one of them with fp4.name");
  }
  return success();
}

LogicalResult Fp4Dialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index,
                                                   NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  Type type = function ? function.getArgumentTypes()[index] : Type();
  if (failed(verifyBoundaryAttribute(op, attribute, type, "argument " + Twine(index))))
    return failure();
  auto name = dyn_cast<StringAttr>(attribute.getValue());
  if (!function || !name)
    return success();
  return verifyDistinct(
      op, name, index, function.getNumArguments(), 'a', "arguments",
      [&](unsigned i) { return function.getArgAttrOfType<StringAttr>(i, "fp4.name"); });
}

LogicalResult Fp4Dialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned index,
                                                      NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  Type type = function ? function.getResultTypes()[index] : Type();
  if (failed(verifyBoundaryAttribute(op, attribute, type, "result " + Twine(index),
                                     /*isResult=*/true)))
    return failure();
  auto name = dyn_cast<StringAttr>(attribute.getValue());
  if (!function || !name)
    return success();
  return verifyDistinct(op, name, index, function.getNumResults(), 'r', "results", [&](unsigned i) {
    return function.getResultAttrOfType<StringAttr>(i, "fp4.name");
  });
}
