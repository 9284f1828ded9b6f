//===- Unsupported.cpp - Unsupported.def, parsed, and its matching --------===//
#include "Sim/Decode/Unsupported.h"
#include "Sim/Decode/OpcodeTable.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <span>

using namespace fp4;
using namespace fp4::sim;

namespace {

#define FP4_REASON(Name, reason) constexpr std::string_view k##Name = reason;
#include "Sim/Decode/Unsupported.def"

using Words = std::vector<std::string_view>;

/// One instruction of a row, or a special register.
struct Row {
  Words words;                  ///< words with which the opcode begins
  std::vector<Words> modifiers; ///< alternatives of each modifier
  std::string_view version, targets, reason;
};

bool fits(std::string_view alternative, std::string_view text) {
  return alternative.ends_with('*')
             ? text.starts_with(alternative.substr(0, alternative.size() - 1))
             : text == alternative;
}

using Texts = std::span<const std::string_view>;

/// Returns what follows the first of `left` that is one of the alternatives; nothing if none is.
std::optional<Texts> behind(const Words &alternatives, Texts left) {
  for (size_t i = 0; i < left.size(); ++i)
    for (std::string_view alternative : alternatives)
      if (fits(alternative, left[i]))
        return left.subspan(i + 1);
  return std::nullopt;
}

bool matches(const Row &row, const ptx::Instruction &insn) {
  Texts left(insn.modifiers.data(), insn.modifiers.size());
  if (left.size() + 1 < row.words.size() ||
      !std::equal(row.words.begin() + 1, row.words.end(), left.begin()))
    return false;
  for (const Words &alternatives : row.modifiers) {
    if (alternatives[0].starts_with('!')) {
      if (std::ranges::find(left, alternatives[0].substr(1)) != left.end())
        return false;
      continue;
    }
    const auto rest = behind(alternatives, left);
    if (!rest)
      return false;
    left = *rest;
  }
  return true;
}

using Rows = std::multimap<std::string_view, Row>;

/// The rows by the first word of their opcode. Special registers have the key "%".
const Rows &rows() {
  static const Rows table = [] {
    Rows rows;
    const auto add = [&](std::string_view instructions, std::string_view modifiers,
                         std::string_view version, std::string_view targets,
                         std::string_view reason) {
      std::vector<Words> all;
      for (std::string_view alternatives : split(modifiers, " "))
        all.push_back(split(alternatives, "|"));
      for (std::string_view instruction : split(instructions, "|")) {
        const bool isRegister = instruction.starts_with('%');
        Row row{isRegister ? Words{instruction} : split(instruction, "."), all, version, targets,
                reason};
        rows.emplace(isRegister ? "%" : row.words[0], row);
      }
    };
#define FP4_UNSUPPORTED(instructions, modifiers, version, targets, reason)                         \
  add(instructions, modifiers, version, targets, k##reason);
#include "Sim/Decode/Unsupported.def"
    return rows;
  }();
  return table;
}

Error errorOf(std::string_view what, const Row &row) {
  std::string where;
  for (std::string_view target : split(row.targets, " "))
    where += fmt::format("{} sm_{}", where.empty() ? " on" : ",", target);
  return Error{ErrorKind::Simulation, fmt::format("'{}' is not simulated: {}", what, row.reason),
               fmt::format("PTX ISA {} has it{}; docs/reference/instructions.md lists what is not "
                           "simulated",
                           row.version, where)};
}

} // namespace

std::optional<Error> fp4::sim::refusalOf(const ptx::Instruction &insn) {
  const auto [begin, end] = rows().equal_range(insn.opcode);
  const auto found =
      std::find_if(begin, end, [&](const auto &e) { return matches(e.second, insn); });
  return found == end ? std::nullopt : std::optional(errorOf(spellOpcode(insn), found->second));
}

std::optional<Error> fp4::sim::refusalOf(std::string_view specialRegister) {
  const auto [begin, end] = rows().equal_range("%");
  const auto found = std::find_if(
      begin, end, [&](const auto &e) { return fits(e.second.words[0], specialRegister); });
  return found == end ? std::nullopt : std::optional(errorOf(specialRegister, found->second));
}
