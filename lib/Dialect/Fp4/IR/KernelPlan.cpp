//===- KernelPlan.cpp - The plan of an operation's kernel -----------------===//

#include "fp4/Dialect/Fp4/IR/KernelPlan.h"
#include "fp4/Support/FormerNames.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Fp4/IR/RouteText.h"

#include "mlir/IR/DialectImplementation.h"

#include <variant>

using namespace mlir;
using namespace fp4;

//===----------------------------------------------------------------------===//
// The fields
//===----------------------------------------------------------------------===//

namespace {

using Number = std::optional<int64_t>;
using Dims = std::array<int64_t, 3>;
using Store = std::optional<ResultStore>;
using Order = std::optional<CtaOrder>;
using Amax = std::optional<AmaxKernel>;
using Pdl = std::optional<LaunchDependents>;
using Place = std::optional<ReductionPlace>;
using route::Route;

/// A member of a plan or of one of its parts.
template <typename Value> struct Member {
  Value &(*of)(KernelPlan &);
  const Value &(*ofConst)(const KernelPlan &);

  Value &in(KernelPlan &plan) const { return of(plan); }
  const Value &in(const KernelPlan &plan) const { return ofConst(plan); }
};

template <auto... path> constexpr auto member() {
  using Value = std::remove_reference_t<decltype(memberOf<path...>(std::declval<KernelPlan &>()))>;
  return Member<Value>{
      [](KernelPlan &plan) -> Value & { return memberOf<path...>(plan); },
      [](const KernelPlan &plan) -> const Value & { return memberOf<path...>(plan); }};
}

/// A field by its name in the text.
struct Field {
  StringLiteral name;
  std::variant<Member<Route>, Member<Number>, Member<Dims>, Member<Attribute>, Member<bool>,
               Member<Store>, Member<Order>, Member<Amax>, Member<Pdl>, Member<Place>>
      member;
  unsigned families;       ///< families that have the field
  bool isOptional = false; ///< a complete plan may lack it

  bool isOf(KernelFamily family) const { return families & 1u << unsigned(family); }
};

template <typename... Families> constexpr unsigned of(Families... families) {
  return (0u | ... | (1u << unsigned(families)));
}

using enum KernelFamily;

constexpr Field kFields[] = {
    {"route", member<&KernelPlan::route>(), of(TileGemm, Gemv)},
    {"tile", member<&KernelPlan::tile>(), of(TileGemm, TileTransform, TileAttention)},
    {"cluster", member<&KernelPlan::cluster>(), of(TileGemm, TileAttention, ReduceRows),
     /*isOptional=*/true},
    {"fallback", member<&KernelPlan::fallback>(), of(TileGemm), /*isOptional=*/true},
    {"reduction", member<&KernelPlan::split, &SplitPlan::reduction>(), of(TileGemm),
     /*isOptional=*/true},
    {"k_slices", member<&KernelPlan::split, &SplitPlan::kSlices>(), of(TileGemm, TileAttention),
     /*isOptional=*/true},
    {"k_slices", member<&KernelPlan::split, &SplitPlan::kSlices>(), of(WarpAttention)},
    {"sliced_k", member<&KernelPlan::split, &SplitPlan::slicedK>(), of(TileGemm),
     /*isOptional=*/true},
    {"pair", member<&KernelPlan::pair>(), of(TileGemm), /*isOptional=*/true},
    {"store", member<&KernelPlan::store>(), of(TileGemm), /*isOptional=*/true},
    {"epilogue_warps", member<&KernelPlan::pipeline, &PipelinePlan::epilogueWarps>(), of(TileGemm),
     /*isOptional=*/true},
    {"mma_warps", member<&KernelPlan::pipeline, &PipelinePlan::mmaWarps>(), of(TileGemm),
     /*isOptional=*/true},
    {"strip", member<&KernelPlan::strip>(), of(TileTransform)},
    {"strip", member<&KernelPlan::strip>(), of(ReduceRows, WarpAttention), /*isOptional=*/true},
    {"schedule", member<&KernelPlan::schedule>(), of(TileGemm, TileTransform, TileAttention)},
    {"roles", member<&KernelPlan::roles>(), of(TileGemm, TileTransform, TileAttention)},
    {"stages", member<&KernelPlan::pipeline, &PipelinePlan::stages>(),
     of(TileGemm, TileTransform, TileAttention, ReduceRows),
     /*isOptional=*/true},
    {"accumulators", member<&KernelPlan::pipeline, &PipelinePlan::accumulators>(),
     of(TileGemm, TileTransform),
     /*isOptional=*/true},
    {"threads", member<&KernelPlan::threads>(),
     of(TileQuantize, StreamBlocks, StreamItems, ReduceGrid, ReduceRows, Gemv, WarpAttention)},
    {"blocks_per_thread", member<&KernelPlan::stream, &StreamPlan::blocksPerThread>(),
     of(StreamBlocks)},
    {"lanes_per_block", member<&KernelPlan::stream, &StreamPlan::lanesPerBlock>(), of(StreamBlocks),
     /*isOptional=*/true},
    {"items_per_thread", member<&KernelPlan::stream, &StreamPlan::itemsPerThread>(),
     of(StreamItems, ReduceGrid)},
    {"rows_per_thread", member<&KernelPlan::stream, &StreamPlan::itemsPerThread>(), of(ReduceRows),
     /*isOptional=*/true},
    {"single_rows", member<&KernelPlan::stream, &StreamPlan::singleRows>(), of(ReduceRows),
     /*isOptional=*/true},
    {"ctas_per_sm", member<&KernelPlan::ctasPerSm>(),
     of(TileGemm, TileTransform, TileQuantize, TileAttention)},
    {"ctas_per_sm", member<&KernelPlan::ctasPerSm>(),
     of(StreamBlocks, ReduceRows, Gemv, WarpAttention),
     /*isOptional=*/true},
    {"pdl", member<&KernelPlan::pdl>(), of(TileGemm, StreamBlocks, StreamItems, ReduceRows),
     /*isOptional=*/true},
    {"wave_cost", member<&KernelPlan::waveCost>(), of(TileGemm), /*isOptional=*/true},
    {"grid", member<&KernelPlan::stream, &StreamPlan::grid>(), of(ReduceGrid)},
    {"cache_hints", member<&KernelPlan::stream, &StreamPlan::cacheHints>(), of(StreamBlocks),
     /*isOptional=*/true},
    {"order", member<&KernelPlan::stream, &StreamPlan::order>(), of(StreamBlocks, TileQuantize),
     /*isOptional=*/true},
    {"amax", member<&KernelPlan::stream, &StreamPlan::amax>(), of(StreamBlocks),
     /*isOptional=*/true},
};

const Field *findField(KernelFamily family, StringRef name) {
  const auto *field = llvm::find_if(
      kFields, [&](const Field &field) { return field.name == name && field.isOf(family); });
  return field == std::end(kFields) ? nullptr : field;
}

size_t dimsOf(KernelFamily family) { return family == TileTransform ? 2 : 3; }

/// Calls `body` with the value of `field` in `plan`.
template <typename Plan, typename Body> auto visit(const Field &field, Plan &plan, Body body) {
  return std::visit([&](auto member) { return body(member.in(plan)); }, field.member);
}

bool isSaid(const Route &route) { return !route.isOpen(); }
bool isSaid(const Number &number) { return number.has_value(); }
bool isSaid(const Dims &dims) { return dims != Dims{}; }
bool isSaid(const Attribute &attribute) { return bool(attribute); }
bool isSaid(const bool &flag) { return flag; }
template <typename Word> bool isSaid(const std::optional<Word> &word) { return word.has_value(); }

bool isSaid(const Field &field, const KernelPlan &plan) {
  return visit(field, plan, [](const auto &value) { return isSaid(value); });
}

/// Returns true when nothing of a value is open. A route may have open axes.
bool isComplete(const Route &route) { return route.isComplete(); }
template <typename Value> bool isComplete(const Value &value) { return isSaid(value); }

/// Takes what is open of `value` from `other`.
void complete(Route &route, const Route &other) { route = route.orElse(other); }
template <typename Value> void complete(Value &value, const Value &other) {
  if (!isSaid(value))
    value = other;
}

/// Returns true when two values contradict each other.
bool differ(const Route &route, const Route &other) { return !route.agreesWith(other); }
template <typename Value> bool differ(const Value &value, const Value &other) {
  return value != other;
}

llvm::hash_code hashOf(const Route &route) { return hash_value(route); }
llvm::hash_code hashOf(const Number &number) { return llvm::hash_value(number.value_or(0)); }
llvm::hash_code hashOf(const Dims &dims) { return llvm::hash_combine_range(dims); }
llvm::hash_code hashOf(const Attribute &attribute) { return hash_value(attribute); }
llvm::hash_code hashOf(const bool &flag) { return llvm::hash_value(flag); }
template <typename Word> llvm::hash_code hashOf(const std::optional<Word> &word) {
  return llvm::hash_value(word ? int(*word) : -1);
}

} // namespace

KernelPlan KernelPlan::orElse(const KernelPlan &other) const {
  KernelPlan merged = *this;
  for (const Field &field : kFields)
    std::visit(
        [&](auto member) {
          if (field.isOf(family))
            complete(member.in(merged), member.in(other));
        },
        field.member);
  return merged;
}

SmallVector<StringRef> KernelPlan::fieldsUnlike(const KernelPlan &other) const {
  SmallVector<StringRef> names;
  for (const Field &field : kFields)
    if (field.isOf(family) && isSaid(field, *this) && isSaid(field, other) &&
        std::visit([&](auto member) { return differ(member.in(*this), member.in(other)); },
                   field.member))
      names.push_back(field.name);
  return names;
}

SmallVector<StringRef> KernelPlan::fieldsGiven() const {
  SmallVector<StringRef> names;
  for (const Field &field : kFields)
    if (field.isOf(family) && isSaid(field, *this))
      names.push_back(field.name);
  return names;
}

SmallVector<StringRef> KernelPlan::fieldsOfFamily() const {
  SmallVector<StringRef> names;
  for (const Field &field : kFields)
    if (field.isOf(family))
      names.push_back(field.name);
  return names;
}

StringRef KernelPlan::missingField() const {
  for (const Field &field : kFields)
    if (field.isOf(family) && !field.isOptional &&
        !visit(field, *this, [](const auto &value) { return isComplete(value); }))
      return field.name;
  return {};
}

llvm::hash_code fp4::hash_value(const KernelPlan &plan) {
  llvm::hash_code hash = llvm::hash_value(unsigned(plan.family));
  for (const Field &field : kFields)
    hash = llvm::hash_combine(hash,
                              visit(field, plan, [](const auto &value) { return hashOf(value); }));
  return hash;
}

//===----------------------------------------------------------------------===//
// The text: family, field = value, ...
//===----------------------------------------------------------------------===//

static void printValue(AsmPrinter &printer, const Route &route) { printer << " = " << route.str(); }
static void printValue(AsmPrinter &printer, const Number &number) { printer << " = " << *number; }
static void printValue(AsmPrinter &printer, const Dims &dims) {
  printer << " = [";
  llvm::interleaveComma(llvm::make_filter_range(dims, [](int64_t size) { return size != 0; }),
                        printer);
  printer << ']';
}
static void printValue(AsmPrinter &printer, const Attribute &attribute) {
  printer << " = " << attribute;
}
static void printValue(AsmPrinter &, const bool &) {}
template <typename Word>
static void printValue(AsmPrinter &printer, const std::optional<Word> &word) {
  printer << " = " << stringifyEnum(*word);
}

void fp4::printPlan(AsmPrinter &printer, const KernelPlan &plan) {
  printer << stringifyKernelFamily(plan.family);
  for (const Field &field : kFields)
    if (field.isOf(plan.family) && isSaid(field, plan)) {
      printer << ", " << field.name;
      visit(field, plan, [&](const auto &value) { printValue(printer, value); });
    }
}

void PlanAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printPlan(printer, getPlan());
  printer << '>';
}

/// #fp4.plan (C2)
static ParseResult parsePositive(AsmParser &parser, StringRef field, int64_t &value) {
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseInteger(value))
    return failure();
  if (value < 1)
    return withNote(parser.emitError(loc)
                        << "'" << field << "' of a plan must be positive, but got " << value,
                    "leave the field out, and fp4-plan-kernels decides it");
  return success();
}

static ParseResult parseValue(AsmParser &parser, StringRef, Route &route) {
  return failure(parser.parseEqual() || parseRoute(parser, route));
}
static ParseResult parseValue(AsmParser &parser, StringRef field, Number &number) {
  return failure(parser.parseEqual() || parsePositive(parser, field, number.emplace()));
}
static ParseResult parseValue(AsmParser &parser, StringRef field, Dims &dims) {
  SmallVector<int64_t> sizes;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseEqual() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
        return parsePositive(parser, field, sizes.emplace_back());
      }))
    return failure();
  if (sizes.empty() || sizes.size() > dims.size())
    return withNote(parser.emitError(loc) << "'" << field << "' of a plan must have 1 to "
                                          << dims.size() << " sizes, but got " << sizes.size(),
                    "leave the field out, and fp4-plan-kernels decides it");
  llvm::copy(sizes, dims.begin());
  return success();
}
static ParseResult parseValue(AsmParser &parser, StringRef, Attribute &attribute) {
  return failure(parser.parseEqual() || parser.parseAttribute(attribute));
}
static ParseResult parseValue(AsmParser &, StringRef, bool &flag) {
  flag = true;
  return success();
}

/// The words of an enumeration of the dialect, which numbers them from 0: "x or y".
template <typename Word> static std::string wordsOf() {
  SmallVector<StringRef> words;
  for (uint32_t word = 0; !stringifyEnum(Word(word)).empty(); ++word)
    words.push_back(stringifyEnum(Word(word)));
  return llvm::join(words, " or ");
}

/// #fp4.plan (C2)
template <typename Word>
static ParseResult parseValue(AsmParser &parser, StringRef field, std::optional<Word> &word) {
  StringRef text;
  SMLoc loc;
  if (parser.parseEqual() || parser.getCurrentLocation(&loc) || parser.parseKeyword(&text))
    return failure();
  if ((word = symbolizeEnum<Word>(text)))
    return success();
  return withNote(parser.emitError(loc) << "'" << field << "' of a plan must be " << wordsOf<Word>()
                                        << ", but got " << text,
                  renamedNote((field + " = " + text).str(),
                              "leave the field out, and fp4-plan-kernels decides it"));
}

static std::string familyNames() {
  SmallVector<StringRef> names;
  for (uint32_t family = 0; family <= getMaxEnumValForKernelFamily(); ++family)
    names.push_back(stringifyKernelFamily(KernelFamily(family)));
  return llvm::join(names, ", ");
}

/// #fp4.plan (C1)
static ParseResult parseField(AsmParser &parser, KernelPlan &plan) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef name;
  if (parser.parseKeyword(&name))
    return failure();
  const Field *field = findField(plan.family, name);
  if (!field) {
    InFlightDiagnostic diag = parser.emitError(loc)
                              << "a plan of family " << stringifyKernelFamily(plan.family)
                              << " has no field '" << name << "'";
    diag.attachNote() << renamedNote(name, "fields of the family: " +
                                               llvm::join(plan.fieldsOfFamily(), ", "));
    return diag;
  }
  if (isSaid(*field, plan))
    return withNote(parser.emitError(loc) << "field '" << name << "' of a plan must be given once",
                    "remove all but one of them");
  return visit(*field, plan, [&](auto &value) { return parseValue(parser, name, value); });
}

ParseResult fp4::parsePlan(AsmParser &parser, KernelPlan &plan) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef name;
  if (parser.parseKeyword(&name))
    return failure();
  std::optional<KernelFamily> family = symbolizeKernelFamily(name);
  if (!family) {
    InFlightDiagnostic diag = parser.emitError(loc) << "unknown family of kernels '" << name << "'";
    diag.attachNote() << renamedNote(name, "known: " + familyNames());
    return diag;
  }
  plan.family = *family;
  while (succeeded(parser.parseOptionalComma()))
    if (parseField(parser, plan))
      return failure();
  return success();
}

Attribute PlanAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  KernelPlan plan;
  if (parser.parseLess() || parsePlan(parser, plan) || parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), plan);
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// #fp4.plan (C2)
static LogicalResult verifySizes(function_ref<InFlightDiagnostic()> emitError, KernelFamily family,
                                 StringRef field, const Dims &dims, size_t expected) {
  auto said = llvm::count_if(dims, [](int64_t size) { return size != 0; });
  if (said && size_t(said) != expected)
    return withNote(emitError() << "'" << field << "' of a plan of family "
                                << stringifyKernelFamily(family) << " must have " << expected
                                << " sizes, but got " << said,
                    "leave the field out, and fp4-plan-kernels decides it");
  return success();
}

LogicalResult PlanAttr::verify(function_ref<InFlightDiagnostic()> emitError, KernelPlan plan) {
  if (failed(verifySizes(emitError, plan.family, "tile", plan.tile, dimsOf(plan.family))))
    return failure();
  if (failed(verifySizes(emitError, plan.family, "cluster", plan.cluster, 2)))
    return failure();
  if (failed(verifySizes(emitError, plan.family, "fallback", plan.fallback, 2)))
    return failure();
  return verifySizes(emitError, plan.family, "wave_cost", plan.waveCost, 3);
}
