//===- RouteText.cpp - The text of a route in MLIR ------------------------===//

#include "fp4/Dialect/Fp4/IR/RouteText.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace fp4;

llvm::hash_code fp4::route::hash_value(const Route &route) {
  llvm::hash_code hash = 0;
  forEachAxis(route, [&](std::string_view, const auto &value) {
    hash = llvm::hash_combine(hash, value ? int(*value) : -1);
  });
  return hash;
}

/// Parses a word of an axis, which may have a number: "promote(128)".
static ParseResult parseWord(AsmParser &parser, std::string &word) {
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  word = keyword.str();
  if (failed(parser.parseOptionalLParen()))
    return success();
  int64_t number = 0;
  if (parser.parseInteger(number) || parser.parseRParen())
    return failure();
  word += "(" + std::to_string(number) + ")";
  return success();
}

/// #fp4.route (C1)
template <typename Word>
static ParseResult parseAxis(AsmParser &parser, StringRef axis, std::optional<Word> &value) {
  SMLoc loc = parser.getCurrentLocation();
  if (value)
    return withNote(parser.emitError(loc) << "axis '" << axis << "' of a route must be given once",
                    "remove all but one of them");
  std::string text;
  if (parser.parseEqual() || parser.getCurrentLocation(&loc) || parseWord(parser, text))
    return failure();
  auto words = route::wordsOf<Word>();
  auto found = llvm::find(words, text);
  if (found == words.end())
    return withNote(parser.emitError(loc) << "axis '" << axis << "' of a route must be "
                                          << llvm::join(words, " or ") << ", but got " << text,
                    "leave the axis out, and fp4-plan-kernels decides it");
  value = Word(found - words.begin());
  return success();
}

/// #fp4.route (C1)
static ParseResult parseAxis(AsmParser &parser, route::Route &route) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef axis;
  if (parser.parseKeyword(&axis))
    return failure();
  std::optional<ParseResult> parsed;
  SmallVector<StringRef> axes;
  forEachAxis(route, [&](std::string_view name, auto &value) {
    axes.push_back(name);
    if (axis == StringRef(name))
      parsed = parseAxis(parser, axis, value);
  });
  if (parsed)
    return *parsed;
  return withNote(parser.emitError(loc) << "a route has no axis '" << axis << "'",
                  "axes: " + llvm::join(axes, ", "));
}

ParseResult fp4::parseRoute(AsmParser &parser, route::Route &route) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                        [&] { return parseAxis(parser, route); });
}

Attribute RouteAttr::parse(AsmParser &parser, Type) {
  route::Route route;
  if (parseRoute(parser, route))
    return {};
  return get(parser.getContext(), route);
}

void RouteAttr::print(AsmPrinter &printer) const { printer << getRoute().str(); }
