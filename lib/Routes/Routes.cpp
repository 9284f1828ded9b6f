//===- Routes.cpp - Queries of the table of routes ------------------------===//

#include "fp4/Routes/Routes.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace fp4::route {
namespace {

constexpr std::string_view coreWords[] = {
#define FP4_CORE(Enumerator, word, ptx, needs) word,
#include "fp4/Routes/Routes.def"
};
constexpr std::string_view operandWords[] = {
#define FP4_OPERAND(Enumerator, word, meaning) word,
#include "fp4/Routes/Routes.def"
};
constexpr std::string_view accumulateWords[] = {
#define FP4_ACCUMULATE(Enumerator, word, meaning) word,
#include "fp4/Routes/Routes.def"
};
constexpr std::string_view orientationWords[] = {
#define FP4_ORIENTATION(Enumerator, word, meaning) word,
#include "fp4/Routes/Routes.def"
};
constexpr std::string_view ptxNames[] = {
#define FP4_CORE(Enumerator, word, ptx, needs) ptx,
#include "fp4/Routes/Routes.def"
};
constexpr bool hw::TargetModel::*needs[] = {
#define FP4_CORE(Enumerator, word, ptx, needs) needs,
#include "fp4/Routes/Routes.def"
};

struct PairFacts {
  std::string_view words;
  Pair other; ///< a pair that a GEMM of this one can become
  std::string_view remedy;
};
constexpr PairFacts pairs[] = {
#define FP4_PAIR(Enumerator, words, Other, remedy) {words, Pair::Other, remedy},
#include "fp4/Routes/Routes.def"
};

/// Bits of Record::limits.
constexpr uint32_t kGroups = 1, kDual = 2, kDerived = 4;

/// Bits of Record::pairs, by the names of the pairs.
namespace bits {
#define FP4_PAIR(Enumerator, words, Other, remedy)                                                 \
  constexpr uint32_t Enumerator = 1u << static_cast<unsigned>(Pair::Enumerator);
#include "fp4/Routes/Routes.def"
/// The bits of an expression such as `Fp4 | Mx8`.
#define FP4_ROUTE(pairs, Core_, A, B, Sums, Orientation_, Planner, Kernel_, limits, Tile_, Unit)   \
  pairs,
constexpr uint32_t ofRows[] = {
#include "fp4/Routes/Routes.def"
};
} // namespace bits

constexpr auto rows = [] {
  std::array rows = std::to_array<Record>({
#define FP4_ROUTE(pairs, Core_, A, B, Sums, Orientation_, Planner, Kernel_, limits, Tile_, Unit)   \
  {{Core::Core_, Operand::A, Operand::B, Accumulate::Sums, Orientation::Orientation_},             \
   0,                                                                                              \
   limits,                                                                                         \
   Kernel::Planner,                                                                                \
   Kernel::Kernel_,                                                                                \
   Tile::Tile_,                                                                                    \
   numerics::TensorCore::Unit},
#include "fp4/Routes/Routes.def"
  });
  for (size_t row = 0; row < rows.size(); ++row)
    rows[row].pairs = bits::ofRows[row];
  return rows;
}();

/// Returns true when `target` has the route for `pair`. Instructions of K = 96 are a fact of their
/// own.
bool hasRoute(const hw::TargetModel &target, const Record &record, Pair pair) {
  return record.isOf(pair) && hasCore(target, *record.route.core) &&
         (pair != Pair::Fp4K96 || target.hasFp4K96);
}

bool hasPair(const hw::TargetModel &target, Pair pair) {
  return std::ranges::any_of(rows, [&](const Record &r) { return hasRoute(target, r, pair); });
}

/// The limits that a GEMM of `signature` meets.
uint32_t limitsOf(const Signature &signature) {
  return (signature.hasGroups ? kGroups : 0) | (signature.isDual ? kDual : 0) |
         (signature.derivesResults ? kDerived : 0);
}

template <typename Predicate> std::string targetsThat(Predicate has) {
  std::string names;
  for (const hw::TargetModel &target : hw::targets())
    if (has(target))
      names += (names.empty() ? "" : ", ") + std::string(target.name);
  return names;
}

/// "elements of 4 bits with scales, of groups".
std::string describe(const Signature &signature) {
  std::string text(wordsOf(pairOf(signature)));
  for (auto [holds, words] :
       {std::pair(signature.hasGroups, ", of groups"), std::pair(signature.isDual, ", of two rhs"),
        std::pair(signature.derivesResults, ", with derived results")})
    text += holds ? words : "";
  return text;
}

/// The error of a pair that `target` does not multiply.
tl::unexpected<Error> makeLack(const hw::TargetModel &target, Pair pair) {
  const PairFacts &facts = pairs[static_cast<size_t>(pair)];
  std::string note = "targets that have them: " +
                     targetsThat([&](const hw::TargetModel &any) { return hasPair(any, pair); });
  if (facts.other != pair && hasPair(target, facts.other))
    note += fmt::format("; or {}", facts.remedy);
  return makeError(ErrorKind::Compile,
                   fmt::format("target '{}' has no GEMMs of {}", target.name, facts.words), note);
}

} // namespace

template <> std::span<const std::string_view> wordsOf<Core>() { return coreWords; }
template <> std::span<const std::string_view> wordsOf<Operand>() { return operandWords; }
template <> std::span<const std::string_view> wordsOf<Accumulate>() { return accumulateWords; }
template <> std::span<const std::string_view> wordsOf<Orientation>() { return orientationWords; }

std::string_view ptxName(Core core) { return ptxNames[static_cast<size_t>(core)]; }

Route Route::orElse(const Route &other) const {
  return {core ? core : other.core, a ? a : other.a, b ? b : other.b,
          accumulate ? accumulate : other.accumulate,
          orientation ? orientation : other.orientation};
}

std::string Route::str() const {
  std::string text;
  forEachAxis(*this, [&](std::string_view name, const auto &value) {
    if (value)
      text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, wordOf(*value));
  });
  return "<" + text + ">";
}

std::string_view wordsOf(Pair pair) { return pairs[static_cast<size_t>(pair)].words; }

Pair pairOf(const Signature &signature) {
  const bool isPrepacked = signature.weights == Weights::Prepacked;
  if (signature.arithmetic == Arithmetic::Fma)
    return Pair::Fma;
  if (signature.activations == Activations::Half)
    return isPrepacked ? Pair::HalfPrepacked : Pair::HalfScaled;
  if (signature.activations == Activations::E4M3)
    return !isPrepacked                               ? Pair::ByteScaled
           : signature.arithmetic == Arithmetic::Fast ? Pair::BytePrepackedFast
                                                      : Pair::BytePrepacked;
  if (isPrepacked)
    return Pair::Fp4Prepacked;
  if (numerics::hasF32Scales(signature.lhs))
    return Pair::F32Scaled;
  const unsigned bitsOfLhs = numerics::elementOf(signature.lhs).bits,
                 bitsOfRhs = numerics::elementOf(signature.rhs).bits;
  if (bitsOfLhs == 6 || bitsOfRhs == 6)
    return Pair::Mx6;
  if (bitsOfLhs == 8 || bitsOfRhs == 8)
    return Pair::Mx8;
  return signature.arithmetic == Arithmetic::K96 ? Pair::Fp4K96 : Pair::Fp4;
}

std::span<const Record> table() { return rows; }

std::vector<const Record *> routesOf(const Signature &signature, const hw::TargetModel &target) {
  std::vector<const Record *> found;
  for (const Record &record : rows)
    if (hasRoute(target, record, pairOf(signature)) && !(record.limits & limitsOf(signature)))
      found.push_back(&record);
  return found;
}

const Record *findRoute(const Signature &signature, const hw::TargetModel &target,
                        const Route &said) {
  for (const Record *record : routesOf(signature, target))
    if (said.agreesWith(record->route))
      return record;
  return nullptr;
}

Expected<const Record *> requireRoute(const Signature &signature, const hw::TargetModel &target,
                                      const Route &said) {
  const Pair pair = pairOf(signature);
  if (!hasPair(target, pair))
    return makeLack(target, pair);
  if (const Record *record = findRoute(signature, target, said))
    return record;
  std::string known;
  for (const Record *record : routesOf(signature, target))
    known += (known.empty() ? "" : ", ") + record->route.str();
  std::string others = targetsThat(
      [&](const hw::TargetModel &any) { return findRoute(signature, any, said) != nullptr; });
  return makeError(ErrorKind::Compile,
                   fmt::format("route {} is none of target '{}' for GEMMs of {}", said.str(),
                               target.name, describe(signature)),
                   fmt::format("routes there: {}; {}", known,
                               others.empty()
                                   ? "no target has the one that is asked for"
                                   : "targets with the one that is asked for: " + others));
}

std::optional<Core> coreOf(const Signature &signature, const hw::TargetModel &target) {
  const Record *record = findRoute(signature, target);
  return record ? record->route.core : std::nullopt;
}

bool hasCore(const hw::TargetModel &target, Core core) {
  const auto need = needs[static_cast<size_t>(core)];
  return !need || target.*need;
}

Status requireCore(const hw::TargetModel &target, Core core) {
  if (hasCore(target, core))
    return {};
  const std::string others =
      targetsThat([&](const hw::TargetModel &any) { return hasCore(any, core); });
  return makeError(ErrorKind::Compile,
                   fmt::format("target '{}' has no {}", target.name, ptxName(core)),
                   fmt::format("targets with {}: {}", ptxName(core), others));
}

const Record &modelOf(const Signature &signature, const hw::TargetModel &target) {
  const Pair pair = pairOf(signature);
  const auto *found =
      std::ranges::find_if(rows, [&](const Record &r) { return hasRoute(target, r, pair); });
  if (found == rows.end())
    found = std::ranges::find_if(rows, [&](const Record &record) { return record.isOf(pair); });
  return *found;
}

std::string listRoutes(const hw::TargetModel &target) {
  constexpr auto line = "{:<10}{:<13}{:<13}{:<14}{:<13}{:<34}{}\n";
  std::string text =
      fmt::format(line, "core", "a", "b", "accumulate", "orientation", "not for", "operands");
  const auto limits = [](const Record &record) {
    std::string words;
    for (auto [limit, name] : {std::pair(kGroups, "groups"), std::pair(kDual, "dual GEMMs"),
                               std::pair(kDerived, "derived results")})
      if (record.limits & limit)
        words += (words.empty() ? "" : ", ") + std::string(name);
    return words;
  };
  for (const Record &record : rows)
    for (size_t pair = 0; pair < std::size(pairs); ++pair) {
      if (!hasRoute(target, record, static_cast<Pair>(pair)))
        continue;
      const Route &route = record.route;
      text += fmt::format(line, wordOf(*route.core), wordOf(*route.a), wordOf(*route.b),
                          wordOf(*route.accumulate), wordOf(*route.orientation), limits(record),
                          pairs[pair].words);
    }
  return text;
}

} // namespace fp4::route
