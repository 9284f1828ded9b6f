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
  SmallVector<int64_t> splitK, splitRows, streamK, groups;
  std::optional<SplitPolicy> splitPolicy;
  std::optional<int64_t> expectedRows;
  bool unspecifiedRows = false;
  SmallVector<StringRef> seen;
};
} // namespace

static ParseResult parseNumbers(AsmParser &parser, SmallVectorImpl<int64_t> &numbers,
                                StringRef remedy) {
  SMLoc at = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
        return parser.parseInteger(numbers.emplace_back());
      }))
    return failure();
  if (!numbers.empty())
    return success();
  return withNote(parser.emitError(at, "expects at least one number"), // work (C1)
                  remedy);
}

/// Parses a number, or a list of them.
static ParseResult parseNumberOrList(AsmParser &parser, SmallVectorImpl<int64_t> &numbers) {
  int64_t number;
  OptionalParseResult single = parser.parseOptionalInteger(number);
  if (!single.has_value())
    return parseNumbers(parser, numbers, "leave the member out, and K is not cut");
  numbers.push_back(number);
  return *single;
}

/// Parses the factors of split-K, or the policy that chooses them.
static ParseResult parseSplit(AsmParser &parser, Members &members) {
  SMLoc at = parser.getCurrentLocation();
  StringRef policy;
  if (failed(parser.parseOptionalKeyword(&policy)))
    return parseNumberOrList(parser, members.splitK);
  members.splitPolicy = symbolizeSplitPolicy(policy);
  if (members.splitPolicy)
    return success();
  return withNote(parser.emitError(at, "expects split_k to be a number, a list of numbers, fastest "
                                       "or fixed, but got ") // work (C1)
                      << policy,
                  "write split_k = 4, for example");
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
  members.unspecifiedRows |= name == "unspecified_rows";
  if (name == "unspecified_rows")
    return success();
  bool isKnown =
      llvm::is_contained({"split_k", "split_rows", "stream_k", "groups", "expected_rows"}, name);
  if (!isKnown)
    return withNote(parser.emitError(at,
                                     "expects split_k, split_rows, stream_k, groups, " // work (C1)
                                     "expected_rows or unspecified_rows, but got ")
                        << name,
                    "write #fp4.work<split_k = 4>, for example");
  if (parser.parseEqual())
    return failure();
  if (name == "split_k")
    return parseSplit(parser, members);
  if (name == "split_rows")
    return parseNumberOrList(parser, members.splitRows);
  if (name == "expected_rows")
    return parser.parseInteger(members.expectedRows.emplace());
  if (name == "stream_k")
    return parseNumbers(parser, members.streamK, "such as stream_k = [132, 128, 128]");
  return parseNumbers(parser, members.groups, "a group without rows has the number 0");
}

Attribute WorkAttr::parse(AsmParser &parser, Type) {
  Members members;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     [&] { return parseMember(parser, members); }))
    return {};
  auto emitError = [&] { return parser.emitError(loc); };
  function_ref<InFlightDiagnostic()> report = emitError;
  return getChecked(report, parser.getContext(), ArrayRef<int64_t>(members.splitK),
                    ArrayRef<int64_t>(members.splitRows), members.splitPolicy,
                    ArrayRef<int64_t>(members.streamK), ArrayRef<int64_t>(members.groups),
                    members.expectedRows, members.unspecifiedRows);
}

void WorkAttr::print(AsmPrinter &printer) const {
  llvm::ListSeparator separator;
  auto member = [&](StringRef name) -> raw_ostream & {
    return printer.getStream() << StringRef(separator) << name << " = ";
  };
  auto numbers = [&](StringRef name, ArrayRef<int64_t> values, bool isList) {
    if (values.empty())
      return;
    isList |= values.size() > 1;
    member(name) << (isList ? "[" : "");
    llvm::interleaveComma(values, printer);
    printer << (isList ? "]" : "");
  };
  printer << '<';
  if (getSplitPolicy())
    member("split_k") << stringifySplitPolicy(*getSplitPolicy());
  numbers("split_k", getSplitK(), /*isList=*/false);
  numbers("split_rows", getSplitRows(), /*isList=*/false);
  numbers("stream_k", getStreamK(), /*isList=*/true);
  numbers("groups", getGroups(), /*isList=*/true);
  if (getExpectedRows())
    member("expected_rows") << *getExpectedRows();
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

/// Checks the factors of split-K and the rows for which they hold.
static LogicalResult verifyFactors(function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<int64_t> splitK, ArrayRef<int64_t> splitRows) {
  for (int64_t factor : splitK)
    if (factor < 1 || factor > WorkAttr::kMaxSplits) // work (C3)
      return withNote(emitError() << "'split_k' must be 1 to " << WorkAttr::kMaxSplits
                                  << ", but got " << factor,
                      "leave 'split_k' out for one part");
  bool ascends = splitRows.empty() || splitRows.front() >= 1;
  for (size_t i = 1; i < splitRows.size(); ++i)
    ascends &= splitRows[i - 1] < splitRows[i];
  bool isOfFactors = splitRows.size() == splitK.size() || splitRows.size() + 1 == splitK.size();
  if (ascends && isOfFactors)
    return success();
  InFlightDiagnostic diag =
      emitError() << "'split_rows' must be positive, ascend, and have a number for each factor of "
                     "'split_k', or for all but the last, but got "; // work (C4)
  diag << "[" << splitRows << "] beside the factors [" << splitK << "]";
  diag.attachNote() << (splitK.size() > 1
                            ? "such as split_k = [3, 2], split_rows = 64: 3 up to 64 rows, else 2"
                            : "leave it out: one factor of 'split_k' then holds for all rows");
  return diag;
}

LogicalResult WorkAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<int64_t> splitK, ArrayRef<int64_t> splitRows,
                               std::optional<SplitPolicy> splitPolicy, ArrayRef<int64_t> streamK,
                               ArrayRef<int64_t> groups, std::optional<int64_t> expectedRows,
                               bool unspecifiedRows) {
  if (splitPolicy && !splitRows.empty()) // work (C4)
    return withNote(emitError() << "expects no 'split_rows' beside 'split_k' = "
                                << stringifySplitPolicy(*splitPolicy),
                    "leave it out: the policy chooses rows too");
  if (failed(verifyFactors(emitError, splitK, splitRows)))
    return failure();
  if (expectedRows && *expectedRows < 1) // work (C3)
    return withNote(emitError() << "'expected_rows' must be positive, but got " << *expectedRows,
                    "leave it out where nothing is known of the rows");
  bool splits = splitPolicy || llvm::any_of(splitK, [](int64_t factor) { return factor > 1; });
  return verifyCompanions(emitError, splits, !streamK.empty(), !groups.empty(),
                          expectedRows || unspecifiedRows);
}

int64_t WorkAttr::splitsOfRows(int64_t rows) const {
  for (auto [factor, most] : llvm::zip(getSplitK(), getSplitRows()))
    if (rows <= most)
      return factor;
  return getSplitRows().size() < getSplitK().size() ? getSplitK().back() : 1;
}

int64_t WorkAttr::getMostSplits() const {
  return getSplitK().empty() ? 1 : *llvm::max_element(getSplitK());
}

int64_t WorkAttr::getMostSplitRows() const {
  if (getSplitRows().size() < getSplitK().size() && getSplitK().back() > 1)
    return INT64_MAX;
  int64_t most = 0;
  for (auto [factor, rows] : llvm::zip(getSplitK(), getSplitRows()))
    most = factor > 1 ? rows : most;
  return most;
}

//===----------------------------------------------------------------------===//
// Members of a matmul's attribute
//===----------------------------------------------------------------------===//

ArrayRef<int64_t> BlockScaledMatmulOp::getSplitRows() {
  return getWork() ? getWork()->getSplitRows() : ArrayRef<int64_t>();
}

std::optional<SplitPolicy> BlockScaledMatmulOp::getSplitPolicy() {
  return getWork() ? getWork()->getSplitPolicy() : std::nullopt;
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
