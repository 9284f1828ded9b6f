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
  SmallVector<int64_t> streamK, groups;
  std::optional<SplitPolicy> splitPolicy;
  std::optional<int64_t> splitK, expectedRows;
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

constexpr StringLiteral kSplitsByRows =
    "a factor by rows is that of a case: dispatch = [#fp4.case<m = [1, 64], split_k = 3 : "
    "tile_gemm>, #fp4.case<m = [65, ?] : tile_gemm>]";

/// Parses the factor of split-K, or the policy that chooses it.
static ParseResult parseSplit(AsmParser &parser, Members &members) {
  SMLoc at = parser.getCurrentLocation();
  StringRef policy;
  if (failed(parser.parseOptionalKeyword(&policy))) {
    if (succeeded(parser.parseOptionalLSquare()))
      return withNote(parser.emitError(at, "expects split_k to be a number, fastest or fixed, but "
                                           "got a list"), // work (C4)
                      kSplitsByRows);
    return parser.parseInteger(members.splitK.emplace());
  }
  members.splitPolicy = symbolizeSplitPolicy(policy);
  if (members.splitPolicy)
    return success();
  return withNote(parser.emitError(at, "expects split_k to be a number, fastest or fixed, but "
                                       "got ") // work (C1)
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
  if (name == "split_rows") // work (C4)
    return withNote(parser.emitError(at, "expects no member 'split_rows'"), kSplitsByRows);
  bool isKnown = llvm::is_contained({"split_k", "stream_k", "groups", "expected_rows"}, name);
  if (!isKnown)
    return withNote(
        parser.emitError(at,
                         "expects split_k, stream_k, groups, expected_rows or " // work (C1)
                         "unspecified_rows, but got ")
            << name,
        "write #fp4.work<split_k = 4>, for example");
  if (parser.parseEqual())
    return failure();
  if (name == "split_k")
    return parseSplit(parser, members);
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
  return getChecked(report, parser.getContext(), members.splitK, members.splitPolicy,
                    ArrayRef<int64_t>(members.streamK), ArrayRef<int64_t>(members.groups),
                    members.expectedRows, members.unspecifiedRows);
}

void WorkAttr::print(AsmPrinter &printer) const {
  llvm::ListSeparator separator;
  auto member = [&](StringRef name) -> raw_ostream & {
    return printer.getStream() << StringRef(separator) << name << " = ";
  };
  auto numbers = [&](StringRef name, ArrayRef<int64_t> values) {
    if (values.empty())
      return;
    member(name) << '[';
    llvm::interleaveComma(values, printer);
    printer << ']';
  };
  printer << '<';
  if (getSplitPolicy())
    member("split_k") << stringifySplitPolicy(*getSplitPolicy());
  if (getSplitK())
    member("split_k") << *getSplitK();
  numbers("stream_k", getStreamK());
  numbers("groups", getGroups());
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
  if (hasRows && hasGroups) // work (C2)
    return withNote(
        emitError() << "expects no 'expected_rows' or 'unspecified_rows' beside 'groups'",
        "leave them out: 'groups' are the rows of each group, and no row is of none");
  return success();
}

LogicalResult WorkAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               std::optional<int64_t> splitK,
                               std::optional<SplitPolicy> splitPolicy, ArrayRef<int64_t> streamK,
                               ArrayRef<int64_t> groups, std::optional<int64_t> expectedRows,
                               bool unspecifiedRows) {
  if (splitK && (*splitK < 1 || *splitK > kMaxSplits)) // work (C3)
    return withNote(emitError() << "'split_k' must be 1 to " << kMaxSplits << ", but got "
                                << *splitK,
                    "leave 'split_k' out for one part");
  if (expectedRows && *expectedRows < 1) // work (C3)
    return withNote(emitError() << "'expected_rows' must be positive, but got " << *expectedRows,
                    "leave it out where nothing is known of the rows");
  bool splits = splitPolicy || splitK.value_or(1) > 1;
  return verifyCompanions(emitError, splits, !streamK.empty(), !groups.empty(),
                          expectedRows || unspecifiedRows);
}

//===----------------------------------------------------------------------===//
// Members of a matmul's attribute
//===----------------------------------------------------------------------===//

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
