//===- Routes.cpp - Queries of the table of routes ------------------------===//

#include "fp4/Routes/Routes.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>

namespace fp4::route {
namespace {

constexpr std::string_view coreWords[] = {
#define FP4_CORE(Enumerator, word, ptx, needs) word,
#include "fp4/Routes/Axes.def"
};
constexpr std::string_view operandWords[] = {
#define FP4_OPERAND(Enumerator, word, meaning) word,
#include "fp4/Routes/Axes.def"
};
constexpr std::string_view accumulateWords[] = {
#define FP4_ACCUMULATE(Enumerator, word, meaning) word,
#include "fp4/Routes/Axes.def"
};
constexpr std::string_view orientationWords[] = {
#define FP4_ORIENTATION(Enumerator, word, meaning) word,
#include "fp4/Routes/Axes.def"
};
constexpr std::string_view ptxNames[] = {
#define FP4_CORE(Enumerator, word, ptx, needs) ptx,
#include "fp4/Routes/Axes.def"
};
constexpr bool hw::TargetFeatures::*needs[] = {
#define FP4_CORE(Enumerator, word, ptx, needs) needs,
#include "fp4/Routes/Axes.def"
};

constexpr std::string_view limitWords[] = {
#define FP4_LIMIT(Enumerator, word, words) word,
#include "fp4/Routes/Routes.def"
};
constexpr std::string_view limitPhrases[] = {
#define FP4_LIMIT(Enumerator, word, words) words,
#include "fp4/Routes/Routes.def"
};

constexpr std::string_view fieldWords[] = {
#define FP4_FIELD(Enumerator, word) word,
#include "fp4/Routes/Routes.def"
};
enum class Field : uint8_t {
#define FP4_FIELD(Enumerator, word) Enumerator,
#include "fp4/Routes/Routes.def"
};

/// Bits of the names of pairs, formats, limits and fields, so that `Fp4 | Mx8` is a set.
namespace bits {
using enum numerics::BlockFormat;
constexpr uint32_t bit(auto enumerator) { return 1u << static_cast<unsigned>(enumerator); }
namespace sets {
#define FP4_PAIR(Enumerator, words, Lhs, Rhs, How, formats, limits, Other, remedy)                 \
  constexpr uint32_t Enumerator = bit(Pair::Enumerator);
#define FP4_FORMATS(Enumerator, word, formats) constexpr uint32_t Enumerator = formats;
#define FP4_LIMIT(Enumerator, word, words) constexpr uint32_t Enumerator = bit(Limit::Enumerator);
#define FP4_FIELD(Enumerator, word) constexpr uint32_t Enumerator = bit(Field::Enumerator);
#include "fp4/Routes/Routes.def"

#define FP4_ROUTE(pairs, Core_, A, B, Sums, Orientation_, Planner_, limits, fields, Tile_, Unit)   \
  pairs,
constexpr uint32_t pairsOfRows[] = {
#include "fp4/Routes/Routes.def"
};
#define FP4_ROUTE(pairs, Core_, A, B, Sums, Orientation_, Planner_, limits, fields, Tile_, Unit)   \
  limits,
constexpr uint32_t limitsOfRows[] = {
#include "fp4/Routes/Routes.def"
};
#define FP4_ROUTE(pairs, Core_, A, B, Sums, Orientation_, Planner_, limits, fields, Tile_, Unit)   \
  fields,
constexpr uint32_t fieldsOfRows[] = {
#include "fp4/Routes/Routes.def"
};
#define FP4_PAIR(Enumerator, words, Lhs, Rhs, How, formats, limits, Other, remedy) formats,
constexpr uint32_t formatsOfPairs[] = {
#include "fp4/Routes/Routes.def"
};
#define FP4_PAIR(Enumerator, words, Lhs, Rhs, How, formats, limits, Other, remedy) limits,
constexpr uint32_t limitsOfPairs[] = {
#include "fp4/Routes/Routes.def"
};
#define FP4_LACK(pairs, Core_, limits, reason) pairs,
constexpr uint32_t pairsOfLacks[] = {
#include "fp4/Routes/Routes.def"
};
#define FP4_LACK(pairs, Core_, limits, reason) limits,
constexpr uint32_t limitsOfLacks[] = {
#include "fp4/Routes/Routes.def"
};
} // namespace sets
} // namespace bits

/// Formats with one name in the table.
struct Formats {
  std::string_view word;
  uint32_t set;
};
constexpr Formats formatNames[] = {
#define FP4_FORMATS(Enumerator, word, formats) {word, bits::sets::Enumerator},
#include "fp4/Routes/Routes.def"
};

/// A row of FP4_PAIR.
struct PairFacts {
  std::string_view words;
  Activations activations;
  Weights weights;
  Arithmetic arithmetic;
  Pair other; ///< a pair that a GEMM of this one can become
  std::string_view remedy;
  uint32_t formats = 0, limits = 0;

  bool hasFormats(numerics::BlockFormat lhs, numerics::BlockFormat rhs) const {
    const bool isOne = lhs == rhs || (numerics::isMX(lhs) && numerics::isMX(rhs));
    return isOne && !((bits::bit(lhs) | bits::bit(rhs)) & ~formats);
  }
  /// The number of the axes that `signature` does not share; 0 where it has this pair.
  int distanceTo(const Signature &signature) const {
    return (activations != signature.activations) + (weights != signature.weights) +
           (arithmetic != signature.arithmetic) + !hasFormats(signature.lhs, signature.rhs);
  }
};
constexpr auto pairs = [] {
  std::array pairs = std::to_array<PairFacts>({
#define FP4_PAIR(Enumerator, words, Lhs, Rhs, How, formats, limits, Other, remedy)                 \
  {words, Activations::Lhs, Weights::Rhs, Arithmetic::How, Pair::Other, remedy},
#include "fp4/Routes/Routes.def"
  });
  for (size_t pair = 0; pair < pairs.size(); ++pair) {
    pairs[pair].formats = bits::sets::formatsOfPairs[pair];
    pairs[pair].limits = bits::sets::limitsOfPairs[pair];
  }
  return pairs;
}();

constexpr auto rows = [] {
  std::array rows = std::to_array<Record>({
#define FP4_ROUTE(pairs, Core_, A, B, Sums, Orientation_, Planner_, limits, fields, Tile_, Unit)   \
  {{Core::Core_, Operand::A, Operand::B, Accumulate::Sums, Orientation::Orientation_},             \
   0,                                                                                              \
   0,                                                                                              \
   0,                                                                                              \
   Planner::Planner_,                                                                              \
   Tile::Tile_,                                                                                    \
   numerics::TensorCore::Unit},
#include "fp4/Routes/Routes.def"
  });
  for (size_t row = 0; row < rows.size(); ++row) {
    rows[row].pairs = bits::sets::pairsOfRows[row];
    rows[row].limits = bits::sets::limitsOfRows[row];
    rows[row].fields = bits::sets::fieldsOfRows[row];
  }
  return rows;
}();

/// A reason why targets with a core have no route of some pairs, or none for some GEMMs of them.
struct Lack {
  Core core;
  std::string_view reason;
  uint32_t pairs = 0, limits = 0;
};
constexpr auto lacks = [] {
  std::array lacks = std::to_array<Lack>({
#define FP4_LACK(pairs, Core_, limits, reason) {Core::Core_, reason},
#include "fp4/Routes/Routes.def"
  });
  for (size_t lack = 0; lack < lacks.size(); ++lack) {
    lacks[lack].pairs = bits::sets::pairsOfLacks[lack];
    lacks[lack].limits = bits::sets::limitsOfLacks[lack];
  }
  return lacks;
}();

const PairFacts &factsOf(Pair pair) { return pairs[static_cast<size_t>(pair)]; }

/// Returns true when `target` has the route for `pair`. Instructions of another K are facts of
/// their own.
bool hasRoute(const hw::TargetModel &target, const Record &record, Pair pair) {
  const Arithmetic arithmetic = pairs[static_cast<size_t>(pair)].arithmetic;
  return record.isOf(pair) && hasCore(target, *record.route.core) &&
         (arithmetic != Arithmetic::K96 || target.features.hasFp4K96) &&
         (arithmetic != Arithmetic::DoubleK || target.features.hasDoubleK);
}

bool hasPair(const hw::TargetModel &target, Pair pair) {
  return std::ranges::any_of(rows, [&](const Record &r) { return hasRoute(target, r, pair); });
}

/// Appends `item` to a list behind `separator`.
void append(std::string &list, std::string_view item, std::string_view separator = ", ") {
  list.append(list.empty() ? "" : separator).append(item);
}

/// The `words` of the limits in `set`, by their numbers.
std::string namesOf(uint32_t set, std::span<const std::string_view> words) {
  std::string names;
  for (size_t limit = 0; limit < words.size(); ++limit)
    if (set >> limit & 1)
      append(names, words[limit]);
  return names;
}

template <typename Predicate> std::string targetsThat(Predicate has) {
  std::string names;
  for (const hw::TargetModel &target : hw::targets())
    if (has(target))
      append(names, target.name);
  return names;
}

/// "elements of 4 bits with scales, with groups".
std::string describe(const Signature &signature) {
  std::string text(wordsOf(pairOf(signature)));
  const std::string traits = namesOf(signature.traits, limitPhrases);
  return text + (traits.empty() ? "" : ", with ") + traits;
}

/// "a lhs of 16-bit floats and a prepacked rhs of mxfp4".
std::string describeOperands(const Signature &signature) {
  constexpr std::string_view arithmetics[] = {
      "", " with arithmetic fma", " with arithmetic tensor_core_k96",
      " with arithmetic fast_accumulation", " with arithmetic tensor_core_double_k"};
  const std::string_view lhs = signature.activations == Activations::Half ? "16-bit floats"
                               : signature.activations == Activations::E4M3
                                   ? "f8E4M3FN without scales"
                                   : numerics::stringify(signature.lhs);
  return fmt::format("a lhs of {} and a {}rhs of {}{}", lhs,
                     signature.weights == Weights::Prepacked ? "prepacked " : "",
                     numerics::stringify(signature.rhs),
                     arithmetics[static_cast<size_t>(signature.arithmetic)]);
}

/// "elements of 4 bits with scales (nvfp4, mxfp4); ..." of the pairs that `has` accepts.
template <typename Predicate> std::string pairsThat(Predicate has) {
  std::string list;
  for (const PairFacts &facts : pairs) {
    if (!has(facts))
      continue;
    std::string formats;
    for (const Formats &named : formatNames)
      if (facts.formats & named.set)
        append(formats, named.word);
    append(list, fmt::format("{} ({})", facts.words, formats), "; ");
  }
  return list;
}

/// The error of operands that are no pair.
tl::unexpected<Error> makeNoPair(const Signature &signature) {
  int least = std::numeric_limits<int>::max();
  for (const PairFacts &facts : pairs)
    least = std::min(least, facts.distanceTo(signature));
  return makeError(
      ErrorKind::Compile, "no route multiplies " + describeOperands(signature),
      "nearest operands that routes multiply, of one format or of two of OCP MX: " +
          pairsThat([&](const PairFacts &facts) { return facts.distanceTo(signature) == least; }));
}

/// The error of GEMMs that `target` does not have, of a pair or of a kind.
tl::unexpected<Error> makeLack(const hw::TargetModel &target, const Signature &signature) {
  const Pair pair = pairOf(signature);
  const PairFacts &facts = factsOf(pair);
  std::string note = "targets that have them: " + targetsThat([&](const hw::TargetModel &any) {
                       return findRoute(signature, any) != nullptr;
                     });
  if (hasPair(target, pair))
    note += fmt::format("; or leave {} out", namesOf(signature.traits, limitPhrases));
  else if (facts.other != pair && hasPair(target, facts.other))
    note += fmt::format("; or {}", facts.remedy);
  if (const std::string_view reason = reasonOfLack(pair, target); !reason.empty())
    note += fmt::format("; there {}", reason);
  for (const Lack &lack : lacks)
    if (const uint32_t limits = lack.limits & signature.traits;
        limits && lack.pairs & bits::bit(pair) && hasCore(target, lack.core))
      note += fmt::format("; {}: {}", namesOf(limits, limitWords), lack.reason);
  return makeError(ErrorKind::Compile,
                   fmt::format("target '{}' has no GEMMs of {}", target.name, describe(signature)),
                   note);
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

std::string_view wordsOf(Pair pair) { return factsOf(pair).words; }

Signature Signature::with(Limit limit, bool holds) const {
  Signature other = *this;
  other.traits = (traits & ~bits::bit(limit)) | (holds ? bits::bit(limit) : 0);
  return other;
}

Expected<Pair> requirePair(const Signature &signature) {
  const auto *found = std::ranges::find_if(
      pairs, [&](const PairFacts &facts) { return facts.distanceTo(signature) == 0; });
  if (found == pairs.end())
    return makeNoPair(signature);
  const uint32_t lacks = found->limits & signature.traits;
  if (!lacks)
    return static_cast<Pair>(found - pairs.begin());
  return makeError(
      ErrorKind::Compile,
      fmt::format("no route has {} for {}", namesOf(lacks, limitPhrases), found->words),
      "routes have that for: " +
          pairsThat([&](const PairFacts &other) { return !(other.limits & lacks); }));
}

Pair pairOf(const Signature &signature) {
  Signature plain = signature;
  plain.traits = 0;
  return *requirePair(plain);
}

bool Record::reads(std::string_view field) const {
  const auto *found = std::ranges::find(fieldWords, field);
  return found == std::end(fieldWords) || (fields >> (found - fieldWords) & 1);
}

std::span<const Record> table() { return rows; }

std::vector<const Record *> routesOf(const Signature &signature, const hw::TargetModel &target) {
  std::vector<const Record *> found;
  const Expected<Pair> pair = requirePair(signature);
  for (const Record &record : rows)
    if (pair && hasRoute(target, record, *pair) && !(record.limits & signature.traits))
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
  FP4_ASSIGN(const Pair pair, requirePair(signature));
  if (!hasPair(target, pair) || !findRoute(signature, target))
    return makeLack(target, signature);
  if (const Record *record = findRoute(signature, target, said))
    return record;
  std::string known;
  for (const Record *record : routesOf(signature, target))
    append(known, record->route.str());
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
  return !need || target.features.*need;
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

std::string_view reasonOfLack(Pair pair, const hw::TargetModel &target) {
  if (hasPair(target, pair))
    return {};
  const auto *found = std::ranges::find_if(lacks, [&](const Lack &lack) {
    return lack.pairs & bits::bit(pair) && !lack.limits && hasCore(target, lack.core);
  });
  return found == lacks.end() ? std::string_view() : found->reason;
}

std::string_view reasonOfLack(Pair pair, Core core, Limit limit) {
  const auto *found = std::ranges::find_if(lacks, [&](const Lack &lack) {
    return lack.pairs & bits::bit(pair) && lack.limits & bits::bit(limit) && lack.core == core;
  });
  return found == lacks.end() ? std::string_view() : found->reason;
}

std::string listRoutes(const hw::TargetModel &target) {
  constexpr auto line = "{:<10}{:<13}{:<13}{:<14}{:<13}{:<46}{}\n";
  std::string text =
      fmt::format(line, "core", "a", "b", "accumulate", "orientation", "not for", "operands");
  for (const Record &record : rows)
    for (size_t pair = 0; pair < std::size(pairs); ++pair) {
      if (!hasRoute(target, record, static_cast<Pair>(pair)))
        continue;
      const Route &route = record.route;
      text +=
          fmt::format(line, wordOf(*route.core), wordOf(*route.a), wordOf(*route.b),
                      wordOf(*route.accumulate), wordOf(*route.orientation),
                      namesOf(record.limits | pairs[pair].limits, limitWords), pairs[pair].words);
    }
  for (size_t pair = 0; pair < std::size(pairs); ++pair)
    if (const std::string_view reason = reasonOfLack(static_cast<Pair>(pair), target);
        !reason.empty())
      text += fmt::format("no route for {}: {}\n", pairs[pair].words, reason);
  return text;
}

} // namespace fp4::route
