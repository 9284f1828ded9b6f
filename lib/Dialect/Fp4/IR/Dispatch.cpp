//===- Dispatch.cpp - Plans of a matmul by its sizes ----------------------===//
//
// #fp4.case and the list `dispatch`. The labels (C1), .. are those of Fp4Constraints.td and
// test/Dialect/Fp4/invalid-dispatch.mlir.
//
//===----------------------------------------------------------------------===//
#include "Verify.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Fp4/IR/RowCases.h"
#include "fp4/Support/FormerNames.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace fp4;

//===----------------------------------------------------------------------===//
// The text: m = [17, 64], split_k = 2 : tile_gemm, ...
//===----------------------------------------------------------------------===//

/// The ranges of a guard by their names in the text.
static constexpr std::pair<StringLiteral, SizeRange Guard::*> kRanges[] = {
    {"m", &Guard::m}, {"n", &Guard::n}, {"k", &Guard::k}};

std::string fp4::spellPlan(StringRef text) {
  StringRef word = text.trim().take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
  bool isGuard = llvm::is_contained({"m", "n", "k", "k_unit", "split_k", "any"}, word);
  return ((isGuard ? "#fp4.case<" : "#fp4.plan<") + text + ">").str();
}

static ParseResult parseRange(AsmParser &parser, SizeRange &range) {
  if (parser.parseEqual() || parser.parseLSquare() || parser.parseInteger(range.least) ||
      parser.parseComma())
    return failure();
  if (failed(parser.parseOptionalQuestion()) && parser.parseInteger(range.most.emplace()))
    return failure();
  return parser.parseRSquare();
}

static ParseResult parseMember(AsmParser &parser, Guard &guard, std::optional<int64_t> &splitK,
                               SmallVectorImpl<StringRef> &seen) {
  SMLoc at = parser.getCurrentLocation();
  StringRef name;
  if (parser.parseKeyword(&name))
    return failure();
  if (llvm::is_contained(seen, name)) // case (C1)
    return withNote(parser.emitError(at, "expects each member once, but got '") << name << "' again",
                    "leave one of them out");
  seen.push_back(name);
  if (name == "any")
    return success();
  for (auto [range, member] : kRanges)
    if (name == range)
      return parseRange(parser, guard.*member);
  if (name == "k_unit" || name == "split_k")
    return failure(parser.parseEqual() ||
                   parser.parseInteger((name == "k_unit" ? guard.kUnit : splitK).emplace()));
  return withNote(
      parser.emitError(at, "expects m, n, k, k_unit, split_k or any, but got ") << name, // case (C1)
      renamedNote(name, "write #fp4.case<m = [1, 16] : tile_gemm>, for example"));
}

Attribute CaseAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  KernelPlan plan;
  std::optional<int64_t> splitK;
  SmallVector<StringRef> seen;
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(
          [&] { return parseMember(parser, plan.guard, splitK, seen); }) ||
      parser.parseColon() || parsePlan(parser, plan) || parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), plan, splitK);
}

void CaseAttr::print(AsmPrinter &printer) const {
  const Guard &guard = getPlan().guard;
  llvm::ListSeparator separator;
  auto member = [&](StringRef name) -> raw_ostream & {
    return printer.getStream() << StringRef(separator) << name << " = ";
  };
  printer << '<';
  for (auto [name, range] : kRanges) {
    auto [least, most] = guard.*range;
    if ((guard.*range).isAll())
      continue;
    member(name) << '[' << least << ", ";
    (most ? printer.getStream() << *most : printer.getStream() << '?') << ']';
  }
  if (guard.kUnit)
    member("k_unit") << *guard.kUnit;
  if (getSplitK())
    member("split_k") << *getSplitK();
  if (guard.isAll() && !getSplitK())
    printer << "any";
  printer << " : ";
  printPlan(printer, getPlan());
  printer << '>';
}

LogicalResult CaseAttr::verify(function_ref<InFlightDiagnostic()> emitError, KernelPlan plan,
                               std::optional<int64_t> splitK) {
  for (auto [name, member] : kRanges)
    if (const SizeRange &range = plan.guard.*member;
        range.least < 1 || range.most.value_or(INT64_MAX) < range.least) { // case (C2)
      InFlightDiagnostic diag = emitError() << "range '" << name
                                            << "' must begin at 1 or more and end no earlier than "
                                               "it begins, but begins at "
                                            << range.least;
      diag.attachNote() << "write [1, 16] for 1 to 16, and [17, ?] for 17 and more";
      return diag;
    }
  if (plan.guard.kUnit.value_or(1) < 1) // case (C2)
    return withNote(emitError() << "'k_unit' must be positive, but got " << *plan.guard.kUnit,
                    "leave it out: the case then holds for any K");
  if (splitK.value_or(1) < 1 || splitK.value_or(1) > WorkAttr::kMaxSplits) // case (C2)
    return withNote(emitError() << "'split_k' must be 1 to " << WorkAttr::kMaxSplits << ", but got "
                                << *splitK,
                    "leave 'split_k' out for one part");
  bool isOfRows = hasRowCases(plan.family) && plan.guard.isOfRows() && !splitK;
  if (plan.family != KernelFamily::TileGemm && !isOfRows) // case (C3)
    return withNote(emitError() << "a case must have a plan of family tile_gemm, or for a range of "
                                   "m of reduce_rows, stream_blocks or stream_items, but got "
                                << stringifyKernelFamily(plan.family),
                    "other families have one plan for all sizes: give it as fp4.plan");
  if (plan.guard.kUnit && !plan.waveCost[0]) // case (C3)
    return withNote(emitError() << "expects 'wave_cost' in a plan beside 'k_unit', but got none",
                    "a plan for multiples stands beside one for any K, and the cheaper runs");
  return PlanAttr::verify(emitError, plan);
}

//===----------------------------------------------------------------------===//
// The list
//===----------------------------------------------------------------------===//

SmallVector<CaseAttr> BlockScaledMatmulOp::getCases() {
  SmallVector<CaseAttr> cases;
  if (auto list = getDispatch())
    llvm::append_range(cases, list->getAsRange<CaseAttr>());
  if (llvm::none_of(cases, [](CaseAttr one) { return one.getPlan().waveCost[0] != 0; }))
    llvm::sort(cases, [](CaseAttr x, CaseAttr y) {
      auto placeOf = [](const Guard &g) { return std::tuple(g.m.least, g.n.least, g.k.least); };
      return placeOf(x.getPlan().guard) < placeOf(y.getPlan().guard);
    });
  return cases;
}

SmallVector<BlockScaledMatmulOp::RowSplit> BlockScaledMatmulOp::getSplits() {
  SmallVector<CaseAttr> cases = getCases();
  if (llvm::none_of(cases, [](CaseAttr one) { return one.getSplitK().has_value(); }))
    return {{INT64_MAX, getWork() ? getWork()->getSplitK().value_or(1) : 1}};
  SmallVector<RowSplit> splits;
  for (CaseAttr one : cases) {
    int64_t factor = one.getSplitK().value_or(1);
    if (splits.empty() || splits.back().factor != factor)
      splits.push_back({0, factor});
    splits.back().rows = one.getPlan().guard.m.most.value_or(INT64_MAX);
  }
  return splits;
}

int64_t BlockScaledMatmulOp::splitsOfRows(int64_t rows) {
  SmallVector<RowSplit> splits = getSplits();
  return llvm::find_if(splits, [&](RowSplit split) { return rows <= split.rows; })->factor;
}

int64_t BlockScaledMatmulOp::getMostSplits() {
  int64_t most = 1;
  for (RowSplit split : getSplits())
    most = std::max(most, split.factor);
  return most;
}

int64_t BlockScaledMatmulOp::getMostSplitRows() {
  int64_t most = 0;
  for (RowSplit split : getSplits())
    most = split.factor > 1 ? split.rows : most;
  return most;
}

/// Sizes at which a case begins, or the first one beyond a case.
static SmallVector<int64_t> startsOf(ArrayRef<CaseAttr> cases, SizeRange Guard::*member) {
  SmallVector<int64_t> starts = {1};
  for (CaseAttr one : cases) {
    const SizeRange &range = one.getPlan().guard.*member;
    starts.push_back(range.least);
    if (range.most && *range.most < INT64_MAX)
      starts.push_back(*range.most + 1);
  }
  llvm::sort(starts);
  starts.erase(llvm::unique(starts), starts.end());
  return starts;
}

/// The cases whose range `member` has `size`.
static SmallVector<CaseAttr> having(ArrayRef<CaseAttr> cases, SizeRange Guard::*member,
                                    int64_t size) {
  return llvm::to_vector(llvm::make_filter_range(
      cases, [&](CaseAttr one) { return (one.getPlan().guard.*member).has(size); }));
}

/// Reports sizes for which no case holds, or several whose plans have no cost. Sizes of m and n
/// narrow the cases before those of k are tried, because each range of each of 64 cases may begin
/// at a size of its own.
static LogicalResult verifyCover(BlockScaledMatmulOp op, ArrayRef<CaseAttr> cases, bool haveCost) {
  auto report = [&](size_t holding, int64_t m, int64_t n, int64_t k) -> LogicalResult {
    InFlightDiagnostic diag = op.emitOpError("'dispatch' must have ") // matmul (C640)
                              << (haveCost ? "a" : "one") << " case for all sizes, but got "
                              << holding << " for m = " << m << ", n = " << n << ", k = " << k;
    diag.attachNote() << (holding ? "end one of the guards before the other begins, or give all "
                                    "plans 'wave_cost', and the cheapest runs"
                                  : "let a guard begin where the one before ends: m = [1, 16], then "
                                    "m = [17, ?]");
    return diag;
  };
  SmallVector<CaseAttr> ofAnyK = llvm::to_vector(
      llvm::make_filter_range(cases, [](CaseAttr one) { return !one.getPlan().guard.kUnit; }));
  for (int64_t m : startsOf(cases, &Guard::m)) {
    SmallVector<CaseAttr> ofM = having(ofAnyK, &Guard::m, m);
    for (int64_t n : startsOf(ofM, &Guard::n)) {
      SmallVector<CaseAttr> ofN = having(ofM, &Guard::n, n);
      for (int64_t k : startsOf(ofN, &Guard::k))
        if (size_t holding = having(ofN, &Guard::k, k).size();
            holding == 0 || (holding > 1 && !haveCost))
          return report(holding, m, n, k);
    }
  }
  return success();
}

/// The most cases of a list: each is a kernel.
static constexpr size_t kMostCases = 64;

LogicalResult verify::verifyDispatch(BlockScaledMatmulOp op) {
  if (!op.getDispatch())
    return success();
  SmallVector<CaseAttr> cases = op.getCases();
  if (cases.empty() || cases.size() > kMostCases) // matmul (C641)
    return withNote(op.emitOpError("'dispatch' must have 1 to ")
                        << kMostCases << " cases, but got " << cases.size(),
                    "leave it out, and fp4-plan-kernels decides it");
  if (op->hasAttr(Fp4Dialect::kPlanAttr)) // matmul (C641)
    return withNote(op.emitOpError("expects no fp4.plan beside 'dispatch'"),
                    "give the plan as the one of a case: #fp4.case<m = [17, ?] : tile_gemm>");
  auto hasCost = [](CaseAttr one) { return one.getPlan().waveCost[0] != 0; };
  bool haveCost = llvm::any_of(cases, hasCost);
  if (haveCost && !llvm::all_of(cases, hasCost)) // matmul (C642)
    return withNote(op.emitOpError("'dispatch' must have 'wave_cost' in all plans or in none"),
                    "--emit=mlir --compile-to=planned shows such plans of a matmul with dynamic N "
                    "or K");
  bool splits = llvm::any_of(cases, [](CaseAttr one) { return one.getSplitK().has_value(); });
  bool areOfRows =
      llvm::all_of(cases, [](CaseAttr one) { return one.getPlan().guard.isOfRows(); });
  if (splits && (!areOfRows || haveCost || (op.getWork() && op.getWork()->getSplitK())))
    return withNote(op.emitOpError("expects 'split_k' in 'dispatch' only where all guards are "
                                   "ranges of m, and none in 'work'"), // matmul (C643)
                    "give one 'split_k' for all sizes in 'work'");
  if (splits && op.getWork() &&
      (!op.getWork()->getStreamK().empty() || op.getWork()->getSplitPolicy()))
    return withNote(op.emitOpError("expects neither 'stream_k' nor a policy of 'split_k' in 'work' "
                                   "beside 'split_k' in 'dispatch'"), // matmul (C643)
                    "leave out the 'split_k' of the cases, or 'work'");
  return verifyCover(op, cases, haveCost);
}
