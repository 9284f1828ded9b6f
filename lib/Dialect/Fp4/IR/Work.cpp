//===- Work.cpp - Shares of the work of a matmul --------------------------===//
//
// #fp4.work. The labels (C1), .. are those of Fp4Constraints.td and
// test/Dialect/Fp4/invalid-work.mlir.
//
//===----------------------------------------------------------------------===//
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace fp4;

namespace {
/// Members of the attribute while it is parsed.
struct Members {
  std::optional<int64_t> splitK, splitRows, expectedRows;
  SmallVector<int64_t> streamK, groups;
  bool unspecifiedRows = false;
  SmallVector<StringRef> seen;
};
} // namespace

static ParseResult parseNumber(AsmParser &parser, std::optional<int64_t> &number) {
  return failure(parser.parseEqual() || parser.parseInteger(number.emplace()));
}

static ParseResult parseNumbers(AsmParser &parser, SmallVectorImpl<int64_t> &numbers) {
  if (parser.parseEqual())
    return failure();
  SMLoc at = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
        return parser.parseInteger(numbers.emplace_back());
      }))
    return failure();
  if (!numbers.empty())
    return success();
  return withNote(parser.emitError(at, "expects at least one number"), // work (C1)
                  "a group without rows has the number 0");
}

static ParseResult parseMember(AsmParser &parser, Members &members) {
  SMLoc at = parser.getCurrentLocation();
  StringRef name;
  if (parser.parseKeyword(&name))
    return failure();
  if (llvm::is_contained(members.seen, name)) // work (C1)
    return withNote(parser.emitError(at, "expects each member once, but got '")
                        << name << "' again",
                    "leave one of them out");
  members.seen.push_back(name);
  if (name == "split_k")
    return parseNumber(parser, members.splitK);
  if (name == "split_rows")
    return parseNumber(parser, members.splitRows);
  if (name == "expected_rows")
    return parseNumber(parser, members.expectedRows);
  if (name == "stream_k")
    return parseNumbers(parser, members.streamK);
  if (name == "groups")
    return parseNumbers(parser, members.groups);
  members.unspecifiedRows |= name == "unspecified_rows";
  if (name == "unspecified_rows")
    return success();
  return withNote(parser.emitError(at,
                                   "expects split_k, split_rows, stream_k, groups, " // work (C1)
                                   "expected_rows or unspecified_rows, but got ")
                      << name,
                  "write #fp4.work<split_k = 4>, for example");
}

Attribute WorkAttr::parse(AsmParser &parser, Type) {
  Members members;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     [&] { return parseMember(parser, members); }))
    return {};
  auto emitError = [&] { return parser.emitError(loc); };
  function_ref<InFlightDiagnostic()> report = emitError;
  ArrayRef<int64_t> streamK = members.streamK, groups = members.groups;
  return getChecked(report, parser.getContext(), members.splitK, members.splitRows, streamK, groups,
                    members.expectedRows, members.unspecifiedRows);
}

void WorkAttr::print(AsmPrinter &printer) const {
  llvm::ListSeparator separator;
  auto number = [&](StringRef name, std::optional<int64_t> value) {
    if (value)
      printer << StringRef(separator) << name << " = " << *value;
  };
  auto numbers = [&](StringRef name, ArrayRef<int64_t> values) {
    if (values.empty())
      return;
    printer << StringRef(separator) << name << " = [";
    llvm::interleaveComma(values, printer);
    printer << ']';
  };
  printer << '<';
  number("split_k", getSplitK());
  number("split_rows", getSplitRows());
  numbers("stream_k", getStreamK());
  numbers("groups", getGroups());
  number("expected_rows", getExpectedRows());
  if (getUnspecifiedRows())
    printer << StringRef(separator) << "unspecified_rows";
  printer << '>';
}

/// Checks that the members go together.
static LogicalResult verifyCompanions(function_ref<InFlightDiagnostic()> emitError, bool splits,
                                      bool streams, bool hasGroups, bool hasRows) {
  if (streams && (splits || hasGroups)) // work (C2)
    return withNote(emitError() << "expects no " << (splits ? "'split_k'" : "'groups'")
                                << " beside 'stream_k'",
                    "leave 'stream_k' out; 'split_k' cuts K where it is not given");
  if (splits && hasGroups) // work (C2)
    return withNote(emitError() << "expects no 'split_k' beside 'groups'",
                    "leave it out: groups give all SMs work");
  if (hasRows && hasGroups) // work (C2)
    return withNote(
        emitError() << "expects no 'expected_rows' or 'unspecified_rows' beside 'groups'",
        "leave them out: 'groups' are the rows of each group, and no row is of none");
  return success();
}

LogicalResult WorkAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               std::optional<int64_t> splitK, std::optional<int64_t> splitRows,
                               ArrayRef<int64_t> streamK, ArrayRef<int64_t> groups,
                               std::optional<int64_t> expectedRows, bool unspecifiedRows) {
  if (splitK && (*splitK < 1 || *splitK > kMaxSplits)) // work (C3)
    return withNote(emitError() << "'split_k' must be 1 to " << kMaxSplits << ", but got "
                                << *splitK,
                    "leave 'split_k' out for one part");
  if (splitRows && (!splitK || *splitRows < 1)) // work (C4)
    return withNote(emitError() << "'split_rows' must be positive, beside 'split_k', but got "
                                << *splitRows << (splitK ? "" : " without one"),
                    "leave it out: 'split_k' then holds for all rows");
  if (expectedRows && *expectedRows < 1) // work (C3)
    return withNote(emitError() << "'expected_rows' must be positive, but got " << *expectedRows,
                    "leave it out where nothing is known of the rows");
  return verifyCompanions(emitError, splitK.value_or(1) > 1, !streamK.empty(), !groups.empty(),
                          expectedRows || unspecifiedRows);
}

//===----------------------------------------------------------------------===//
// Members of a matmul's attribute
//===----------------------------------------------------------------------===//

std::optional<int64_t> BlockScaledMatmulOp::getSplitK() {
  return getWork() ? getWork()->getSplitK() : std::nullopt;
}

std::optional<int64_t> BlockScaledMatmulOp::getSplitRows() {
  return getWork() ? getWork()->getSplitRows() : std::nullopt;
}

std::optional<int64_t> BlockScaledMatmulOp::getExpectedRows() {
  return getWork() ? getWork()->getExpectedRows() : std::nullopt;
}

std::optional<ArrayRef<int64_t>> BlockScaledMatmulOp::getStreamK() {
  if (!getWork() || getWork()->getStreamK().empty())
    return std::nullopt;
  return getWork()->getStreamK();
}

std::optional<ArrayRef<int64_t>> BlockScaledMatmulOp::getGroups() {
  if (!getWork() || getWork()->getGroups().empty())
    return std::nullopt;
  return getWork()->getGroups();
}

bool BlockScaledMatmulOp::getUnspecifiedRows() {
  return getWork() && getWork()->getUnspecifiedRows();
}
