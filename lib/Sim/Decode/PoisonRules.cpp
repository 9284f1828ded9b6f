//===- PoisonRules.cpp - Effects of poisoned sources ----------------------===//
#include "Sim/Decode/PoisonRules.h"
#include <algorithm>

using namespace fp4::sim;

namespace {

struct Entry {
  std::string_view base;
  PoisonRule rule;
  uint16_t argument;
};
constexpr Entry kEntries[] = {
#define FP4_POISON(base, rule, argument) {base, PoisonRule::rule, argument},
#include "Sim/Decode/PoisonRules.def"
#undef FP4_POISON
};

void set(Insn &insn, PoisonRule rule, unsigned argument) {
  insn.poison = rule;
  insn.poisonArgument = uint16_t(argument);
}

/// Sums and products: only those of plain integers carry upwards alone.
void refineFill(const Match &match, Insn &insn) {
  const unsigned parts = partsOf(insn.type);
  if (match.has("cc"))
    set(insn, PoisonRule::Carry, 0);
  else if (isFloat(insn.type) || parts > 1 || match.has("sat") || match.text("part") == "hi")
    set(insn, PoisonRule::Parts, parts);
}

void refineCvt(const Match &match, Insn &insn) {
  const Type to = match.type("dtype"), from = insn.type;
  const bool integers = !isFloat(to) && !isFloat(from) && !match.has("sat");
  const bool two = insn.op[2] && insn.op[1].kind != OperandKind::Vector && !match.has("rs");
  if (match.has("scale"))
    set(insn, PoisonRule::Parts, 1);
  else if (two)
    set(insn, PoisonRule::Pack, bitsOf(to));
  else if (integers)
    set(insn, PoisonRule::Move, 0);
  else if (partsOf(to) == partsOf(from))
    insn.poisonArgument = uint16_t(partsOf(to));
}

void refineCompare(const Match &match, Insn &insn) {
  constexpr std::string_view names[] = {"and", "or", "xor"};
  const std::string_view cmp = match.text("cmp");
  unsigned traits = 0;
  if (!isFloat(insn.type) && (cmp == "eq" || cmp == "ne"))
    traits |= kCompareEqual;
  for (unsigned i = 0; i < 3; ++i)
    if (match.text("bool") == names[i])
      traits |= unsigned(kCompareAnd) << i;
  if (partsOf(insn.type) == 2)
    traits |= kCompareHalves;
  insn.poisonArgument = uint16_t(traits);
}

} // namespace

void fp4::sim::setPoisonRule(const OpcodeRow &row, const Match &match, Insn &insn) {
  const auto *entry = std::ranges::find(kEntries, row.base, &Entry::base);
  if (entry == std::end(kEntries))
    return;
  const auto isClock = [](const PatternItem &item) { return item.kind == PatternKind::Clock; };
  if (std::ranges::any_of(row.pattern, isClock))
    return;
  set(insn, entry->rule, entry->argument);
  if (insn.poison == PoisonRule::Fill)
    refineFill(match, insn);
  else if (row.base == "cvt")
    refineCvt(match, insn);
  else if (insn.poison == PoisonRule::Compare)
    refineCompare(match, insn);
  else if (insn.poison == PoisonRule::Vote && match.has("ballot"))
    set(insn, PoisonRule::Ballot, 0);
  else if (insn.poison == PoisonRule::Vote)
    insn.poisonArgument = uint16_t(match.choice("mode"));
  else if (insn.poison == PoisonRule::Members && match.has("all"))
    insn.poisonArgument = 3; // behind the predicate
  else if (insn.poison == PoisonRule::Mma && (match.text("dtype") == "f64" || match.has("alayout")))
    set(insn, PoisonRule::Members, 0);
  else if (insn.poison == PoisonRule::Logic && match.has("bool")) // a predicate of all bits besides
    set(insn, PoisonRule::Parts, 1);
  else if (insn.poison == PoisonRule::Parts && insn.type != Type::None)
    insn.poisonArgument = uint16_t(partsOf(insn.type));
}
