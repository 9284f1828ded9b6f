//===- Fp4Attrs.cpp - Attributes of the fp4 dialect -----------------------===//
//
// Recipes and transforms are defined by lib/Numerics, and the attributes carry them. The text of a
// recipe is that of numerics::spell and numerics::parseRecipe.
//
//===----------------------------------------------------------------------===//
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Support/FormerNames.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace fp4;

#include "fp4/Dialect/Fp4/IR/Fp4Enums.cpp.inc"
/// Parses and prints the number of #fp4.key_order, which is an f32, without its type.
static ParseResult parseGrowth(AsmParser &parser, FloatAttr &growth) {
  double exponents;
  if (parser.parseFloat(exponents))
    return failure();
  growth = parser.getBuilder().getF32FloatAttr(float(exponents));
  return success();
}
static void printGrowth(AsmPrinter &printer, FloatAttr growth) { printer << growth.getValue(); }

#define GET_ATTRDEF_CLASSES
#include "fp4/Dialect/Fp4/IR/Fp4Attrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "fp4/Dialect/Fp4/IR/Fp4Types.cpp.inc"

void Fp4Dialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "fp4/Dialect/Fp4/IR/Fp4Types.cpp.inc"
      >();
}

Attribute Fp4Dialect::parseAttribute(DialectAsmParser &parser, Type type) const {
  SMLoc loc = parser.getCurrentLocation();
  StringRef name;
  Attribute attribute;
  if (generatedAttributeParser(parser, &name, type, attribute).has_value())
    return attribute;
  InFlightDiagnostic diag = parser.emitError(loc)
                            << "unknown attribute `" << name << "` in dialect `fp4`";
  if (std::string note = renamedNote(name); !note.empty())
    diag.attachNote() << note;
  return {};
}

void Fp4Dialect::printAttribute(Attribute attribute, DialectAsmPrinter &printer) const {
  (void)generatedAttributePrinter(attribute, printer);
}

void Fp4Dialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "fp4/Dialect/Fp4/IR/Fp4Attrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// recipe
//===----------------------------------------------------------------------===//

/// The text of a number or keyword.
static ParseResult parseDecisionValue(AsmParser &parser, std::string &value) {
  // Not parseOptionalInteger: it would take the sign of a number with a fraction.
  bool isNegative = succeeded(parser.parseOptionalMinus());
  int64_t integer = 0;
  OptionalParseResult parsed = parser.parseOptionalInteger(integer);
  if (parsed.has_value()) {
    value = (isNegative ? "-" : "") + std::to_string(integer);
    return *parsed;
  }
  if (!isNegative && succeeded(parser.parseOptionalKeywordOrString(&value)))
    return success();
  double number = 0;
  if (parser.parseFloat(number))
    return failure();
  value = isNegative ? "-" : "";
  llvm::raw_string_ostream(value) << llvm::format("%.17g", number);
  return success();
}

static Attribute reportAt(AsmParser &parser, SMLoc loc, const Error &error) {
  InFlightDiagnostic diag = parser.emitError(loc) << error.message;
  if (!error.note.empty())
    diag.attachNote() << error.note;
  return {};
}

Attribute RecipeAttr::parse(AsmParser &parser, Type) {
  std::string name, value;
  StringRef decision;
  if (parser.parseLess())
    return {};
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeywordOrString(&name))
    return {};
  auto named = numerics::requireRecipe(name); // recipe (C1)
  if (!named)
    return reportAt(parser, loc, named.error());
  numerics::Recipe recipe = **named;
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc at = parser.getCurrentLocation();
    if (parser.parseKeyword(&decision) || parser.parseEqual() || parseDecisionValue(parser, value))
      return {};
    if (auto status = numerics::setDecision(recipe, decision, value); !status) // recipe (C2)
      return reportAt(parser, at, status.error());
  }
  if (parser.parseGreater())
    return {};
  if (auto status = numerics::checkRecipe(recipe); !status) // recipe (C3)
    return reportAt(parser, loc, status.error());
  return get(parser.getContext(), recipe);
}

void RecipeAttr::print(AsmPrinter &printer) const { printer << '<' << getText() << '>'; }

/// The parser has checked it with a location inside of the attribute; builders have not.
LogicalResult RecipeAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 numerics::Recipe recipe) {
  if (auto status = numerics::checkRecipe(recipe); !status) // recipe (C3)
    return withNote(emitError() << status.error().message,
                    status.error().note.empty() ? "docs/reference/recipes.md lists the recipes"
                                                : status.error().note);
  return success();
}

//===----------------------------------------------------------------------===//
// epilogue
//===----------------------------------------------------------------------===//

Attribute EpilogueAttr::parse(AsmParser &parser, Type) {
  SmallVector<numerics::EpilogueOp> steps;
  auto parseStep = [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    StringRef name;
    if (parser.parseKeyword(&name))
      return failure();
    auto step = numerics::parseEpilogueOp(name); // epilogue (C1)
    if (!step) {
      reportAt(parser, loc, step.error());
      return failure();
    }
    steps.push_back(*step);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseStep))
    return {};
  return get(parser.getContext(), steps);
}

void EpilogueAttr::print(AsmPrinter &printer) const {
  printer << '<';
  llvm::interleaveComma(getSteps(), printer,
                        [&](numerics::EpilogueOp step) { printer << numerics::stringify(step); });
  printer << '>';
}

llvm::hash_code fp4::numerics::hash_value(const Recipe &recipe) {
  return llvm::hash_value(spell(recipe));
}

//===----------------------------------------------------------------------===//
// hadamard
//===----------------------------------------------------------------------===//

static ParseResult parseRounding(AsmParser &parser, bool &roundToBF16) {
  StringRef text;
  SMLoc at = parser.getCurrentLocation();
  if (parser.parseKeyword(&text))
    return failure();
  roundToBF16 = text == "bf16";
  if (!roundToBF16 && text != "none")
    return withNote(
        parser.emitError(at, "rounding must be bf16 or none, but got ") << text,
        "transformer_engine rounds what the transform gives to bf16, and none keeps its f32");
  return success();
}

Attribute HadamardAttr::parse(AsmParser &parser, Type) {
  int64_t size = 16;
  uint64_t signMask = 0xD7E8;
  auto arithmetic = HadamardArithmetic::Butterfly;
  bool roundToBF16 = true;
  SMLoc loc = parser.getCurrentLocation();
  auto parseField = [&]() -> ParseResult {
    StringRef field;
    SMLoc at = parser.getCurrentLocation();
    if (parser.parseKeyword(&field) || parser.parseEqual())
      return failure();
    if (field == "size")
      return parser.parseInteger(size);
    if (field == "sign_mask")
      return parser.parseInteger(signMask);
    if (field == "rounding")
      return parseRounding(parser, roundToBF16);
    if (field != "arithmetic")
      return withNote(
          parser.emitError(at, "expects size, sign_mask, arithmetic or rounding, but got ")
              << field,
          "write #fp4.hadamard<size = 16, sign_mask = 55272>, for example");
    FailureOr<HadamardArithmetic> parsed = FieldParser<HadamardArithmetic>::parse(parser);
    if (succeeded(parsed))
      arithmetic = *parsed;
    return failure(failed(parsed));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseField))
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), size, signMask,
                    arithmetic, roundToBF16);
}

void HadamardAttr::print(AsmPrinter &printer) const {
  printer << "<size = " << getSize() << ", sign_mask = 0x" << llvm::utohexstr(getSignMask());
  if (getArithmetic() != HadamardArithmetic::Butterfly)
    printer << ", arithmetic = " << stringifyHadamardArithmetic(getArithmetic());
  if (!getRoundToBF16())
    printer << ", rounding = none";
  printer << '>';
}

LogicalResult KeyOrderAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t inBlocks,
                                   FloatAttr growth) {
  constexpr int64_t unit = 16;
  constexpr int64_t mostGrowth = 64;
  double exponents = growth.getValueAsDouble();
  if (inBlocks > 0 && inBlocks % unit == 0 && exponents >= 0 && exponents <= mostGrowth)
    return success();
  return withNote(emitError() << "in_blocks must be a positive multiple of "
                              << unit // key_order (C1)
                              << ", and growth from 0 to " << mostGrowth << ", but got " << inBlocks
                              << " and " << exponents,
                  "write 'order <in_blocks = 128, growth = 8.0>', or leave the order out");
}

LogicalResult HadamardAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t size,
                                   uint64_t signMask, HadamardArithmetic arithmetic,
                                   bool roundToBF16) {
  if (!llvm::is_contained({16, 32, 64, 128}, size)) // hadamard (C3)
    return withNote(emitError() << "attribute 'size' must be 16, 32, 64 or 128, but got " << size,
                    "the transforms of TransformerEngine have 16");
  if (!roundToBF16 && arithmetic != HadamardArithmetic::Butterfly) // hadamard (C8)
    return withNote(emitError() << "rounding none expects arithmetic butterfly, but got "
                                << stringifyHadamardArithmetic(arithmetic),
                    "leave 'rounding' out: the tensor core gets bf16");
  if (signMask <= 0xFFFF)
    return success();
  auto diag = emitError(); // hadamard (C6)
  diag << "attribute 'sign_mask' must have no bit set at or above 16, but got "
       << static_cast<int64_t>(signMask);
  diag.attachNote() << "bit i negates elements i, i + 16, ... of each group";
  return diag;
}

numerics::HadamardOptions HadamardAttr::options() const {
  bool butterfly = getArithmetic() == HadamardArithmetic::Butterfly;
  return {.blockSize = static_cast<unsigned>(getSize()),
          .signMask = static_cast<uint16_t>(getSignMask()),
          .roundToBF16 = getRoundToBF16(),
          .arithmetic = butterfly ? numerics::HadamardArithmetic::Butterfly
                                  : numerics::HadamardArithmetic::ExactSum};
}

//===----------------------------------------------------------------------===//
// scale_layout
//===----------------------------------------------------------------------===//

LogicalResult ScaleLayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                              function_ref<InFlightDiagnostic()> emitError) const {
  if (!elementType) // the parser asks even after it has reported that it found none
    return failure();
  if (!isScaleElementType(elementType)) // scale_layout (C1)
    return withNote(emitError() << "scale layout " << *this
                                << " expects elements of type f8E4M3FN or f8E8M0FNU, but got "
                                << elementType,
                    "layouts of scales are of scale factors only: leave the encoding out");
  if (shape.size() != 2) // scale_layout (C2)
    return withNote(emitError() << "scale layout " << *this << " expects 2 dimensions, but got "
                                << shape.size(),
                    "scales of several matrices are several tensors: tensor.extract_slice and "
                    "tensor.collapse_shape take one out");
  return success();
}
