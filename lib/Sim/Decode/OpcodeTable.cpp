//===- OpcodeTable.cpp - Opcodes.def, parsed, and matching of modifiers ---===//
#include "Sim/Decode/OpcodeTable.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <unordered_map>

using namespace fp4;
using namespace fp4::sim;

namespace fp4::sim {
#define FP4_OP(bind, base, slots, operands) Status bind(BindContext &);
#include "Sim/Decode/Opcodes.def"
#include "Sim/Decode/OpcodesAsync.def"
#undef FP4_OP
} // namespace fp4::sim

std::vector<std::string_view> fp4::sim::split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    size_t end = text.find(separator);
    if (end != 0)
      parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos)
      break;
    text.remove_prefix(end + separator.size());
  }
  return parts;
}

static const std::map<std::string_view, std::string_view> &modifierClasses() {
  static const std::map<std::string_view, std::string_view> classes = {
#define FP4_CLASS(name, alternatives) {name, alternatives},
#include "Sim/Decode/ModifierClasses.def"
#undef FP4_CLASS
  };
  return classes;
}

static ModifierSlot parseSlot(std::string_view text) {
  ModifierSlot slot;
  if (text.back() == '?') {
    slot.optional = true;
    text.remove_suffix(1);
  }
  // "name:spec", but "shared::cta" is a literal.
  size_t colon = text.find(':');
  bool named = colon != std::string_view::npos && text.substr(colon, 2) != "::";
  std::string_view spec = named ? text.substr(colon + 1) : text;
  slot.name = named ? text.substr(0, colon) : text;
  slot.isType = spec == "type";
  auto known = modifierClasses().find(spec);
  slot.alternatives = split(known != modifierClasses().end() ? known->second : spec, "|");
  return slot;
}

/// The text between the brackets or after them up to ':' does not matter; its shape does.
static PatternItem parsePattern(std::string_view text) {
  PatternItem item;
  if (text.back() == '?') {
    item.optional = true;
    text.remove_suffix(1);
  }
  if (text.size() > 2 && text.substr(text.size() - 2) == "~V") {
    item.scalarOk = item.wider = true;
    text.remove_suffix(2);
  } else if (text.back() == '~') {
    item.wider = true;
    text.remove_suffix(1);
  }
  bool vector = text.find('{') != std::string_view::npos && text[0] != '[';
  if (text[0] != '[')
    if (size_t colon = text.find(':'); colon != std::string_view::npos) {
      item.typeSpec = text.substr(colon + 1);
      if (vector)
        item.typeSpec.remove_suffix(1);
      text = text.substr(0, colon);
    }
  static const std::map<std::string_view, PatternKind> shapes = {
      {"=d", PatternKind::Dst},           {"=p", PatternKind::DstPred},
      {"=p|q", PatternKind::DstPredPair}, {"=d|p", PatternKind::DstRegPred},
      {"?p", PatternKind::SrcPred},       {"label", PatternKind::Label},
      {"clock", PatternKind::Clock},      {"#", PatternKind::Imm}};
  if (vector)
    item.kind = text[0] == '=' ? PatternKind::VecDst : PatternKind::VecSrc;
  else if (text[0] == '[')
    item.kind =
        text.find('{') != std::string_view::npos ? PatternKind::TensorAddr : PatternKind::Addr;
  else if (auto shape = shapes.find(text); shape != shapes.end())
    item.kind = shape->second;
  return item;
}

/// Splits at ", " only: "[a,{c}]" has no space.
static std::vector<PatternItem> parsePatterns(std::string_view text) {
  std::vector<PatternItem> items;
  for (std::string_view part : split(text, ", "))
    items.push_back(parsePattern(part));
  return items;
}

static OpcodeRow makeRow(BindFn bind, std::string_view base, std::string_view slots,
                         std::string_view operands) {
  OpcodeRow row;
  row.bind = bind;
  row.base = base;
  row.slotText = slots;
  row.words = split(base, ".");
  if (slots.starts_with("~ ")) {
    row.anyOrder = true;
    slots.remove_prefix(2);
    row.slotText = slots;
  }
  for (std::string_view slot : split(slots, " "))
    row.slots.push_back(parseSlot(slot));
  row.pattern = parsePatterns(operands);
  return row;
}

bool OpcodeRow::hasSlot(std::string_view name, std::string_view alternative) const {
  return std::ranges::any_of(slots, [&](const ModifierSlot &slot) {
    return slot.name == name &&
           std::ranges::find(slot.alternatives, alternative) != slot.alternatives.end();
  });
}

const std::vector<OpcodeRow> &fp4::sim::opcodeTable() {
  static const std::vector<OpcodeRow> table = {
#define FP4_OP(bind, base, slots, operands) makeRow(bind, base, slots, operands),
#include "Sim/Decode/Opcodes.def"
#include "Sim/Decode/OpcodesAsync.def"
#undef FP4_OP
  };
  return table;
}

static const std::unordered_multimap<std::string_view, size_t> &rowsByFirstWord() {
  static const auto index = [] {
    std::unordered_multimap<std::string_view, size_t> map;
    const auto &table = opcodeTable();
    for (size_t i = table.size(); i-- > 0;)
      map.emplace(table[i].words[0], i);
    return map;
  }();
  return index;
}

std::string fp4::sim::spellOpcode(const ptx::Instruction &insn) {
  std::string text(insn.opcode);
  for (std::string_view modifier : insn.modifiers)
    text.append(".").append(modifier);
  return text;
}

/// `pattern` may hold one '*', which stands for a number.
static bool matchesAlternative(std::string_view pattern, std::string_view modifier) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos)
    return pattern == modifier;
  const std::string_view head = pattern.substr(0, star), tail = pattern.substr(star + 1);
  if (modifier.size() <= head.size() + tail.size() || !modifier.starts_with(head) ||
      !modifier.ends_with(tail))
    return false;
  modifier = modifier.substr(head.size(), modifier.size() - head.size() - tail.size());
  return modifier.find_first_not_of("0123456789") == std::string_view::npos;
}

static int slotChoice(const ModifierSlot &slot, std::string_view modifier) {
  if (slot.isType) {
    Type type = typeFromSpelling(modifier);
    return type == Type::None ? -1 : static_cast<int>(type);
  }
  for (size_t i = 0; i < slot.alternatives.size(); ++i)
    if (matchesAlternative(slot.alternatives[i], modifier))
      return static_cast<int>(i);
  return -1;
}

namespace {
/// The match of a row so far: the number of modifiers it accepted, and the required slot that is
/// missing.
struct Progress {
  size_t accepted = 0;
  const ModifierSlot *missing = nullptr;
  bool matched = false;
};
} // namespace

/// Every modifier but the words of the base goes to the first slot that is free and accepts it.
static Progress fillInAnyOrder(const OpcodeRow &row, const ptx::Instruction &insn, Match &match) {
  Progress progress;
  std::vector<std::string_view> modifiers(insn.modifiers.begin(), insn.modifiers.end());
  for (size_t i = 1; i < row.words.size(); ++i) {
    const auto word = std::ranges::find(modifiers, row.words[i]);
    if (word == modifiers.end())
      return progress;
    modifiers.erase(word);
  }
  for (const ModifierSlot &slot : row.slots)
    match.slots.push_back({slot.name, {}, -1});
  for (std::string_view modifier : modifiers) {
    size_t i = 0;
    while (i < row.slots.size() &&
           (match.slots[i].choice >= 0 || slotChoice(row.slots[i], modifier) < 0))
      ++i;
    if (i == row.slots.size())
      break;
    match.slots[i].choice = slotChoice(row.slots[i], modifier);
    match.slots[i].text = modifier;
    ++progress.accepted;
  }
  for (size_t i = 0; i < row.slots.size() && !progress.missing; ++i)
    if (match.slots[i].choice < 0 && !row.slots[i].optional)
      progress.missing = &row.slots[i];
  progress.matched = progress.accepted == modifiers.size() && !progress.missing;
  return progress;
}

static Progress tryRow(const OpcodeRow &row, const ptx::Instruction &insn, Match &match) {
  if (row.anyOrder)
    return fillInAnyOrder(row, insn, match);
  Progress progress;
  size_t next = 0;
  for (size_t i = 1; i < row.words.size(); ++i, ++next)
    if (next >= insn.modifiers.size() || insn.modifiers[next] != row.words[i])
      return progress;
  for (const ModifierSlot &slot : row.slots) {
    Match::Slot result{slot.name, {}, -1};
    if (next < insn.modifiers.size())
      result.choice = slotChoice(slot, insn.modifiers[next]);
    if (result.choice >= 0)
      result.text = insn.modifiers[next++];
    else if (!slot.optional) {
      progress.accepted = next;
      progress.missing = &slot;
      return progress;
    }
    match.slots.push_back(result);
  }
  progress.accepted = next;
  progress.matched = next == insn.modifiers.size();
  return progress;
}

static std::string listAlternatives(const ModifierSlot &slot) {
  if (slot.isType)
    return "a type";
  std::string text;
  for (std::string_view alternative : slot.alternatives)
    text += fmt::format("{}.{}", text.empty() ? "" : ", ", alternative);
  return text;
}

/// The error about an instruction that no row accepts, by the row that got furthest.
static tl::unexpected<Error> refuse(const ptx::Instruction &insn, const OpcodeRow &row,
                                    const Progress &best) {
  std::string text = spellOpcode(insn);
  std::string note = fmt::format("the simulator knows '{}' with the modifiers{}: {}", row.base,
                                 row.anyOrder ? ", in any order" : "",
                                 row.slotText.empty() ? "none" : row.slotText);
  if (best.accepted < insn.modifiers.size())
    return makeError(ErrorKind::Simulation,
                     fmt::format("'{}' does not accept the modifier '.{}'{}", text,
                                 insn.modifiers[best.accepted],
                                 best.missing ? fmt::format(" where it expects {}",
                                                            listAlternatives(*best.missing))
                                              : ""),
                     note);
  return makeError(ErrorKind::Simulation,
                   fmt::format("'{}' expects {}, but the opcode ends", text,
                               best.missing ? listAlternatives(*best.missing) : "more modifiers"),
                   note);
}

Expected<RowMatch> fp4::sim::matchOpcode(const ptx::Instruction &insn, size_t minimumRow) {
  std::vector<size_t> rows;
  auto range = rowsByFirstWord().equal_range(insn.opcode);
  for (auto it = range.first; it != range.second; ++it)
    if (it->second >= minimumRow)
      rows.push_back(it->second);
  std::sort(rows.begin(), rows.end());
  Progress best;
  const OpcodeRow *bestRow = nullptr;
  for (size_t index : rows) {
    const OpcodeRow &row = opcodeTable()[index];
    RowMatch result{&row, static_cast<uint16_t>(index), {}};
    Progress progress = tryRow(row, insn, result.match);
    if (progress.matched)
      return result;
    bool further = progress.accepted > best.accepted ||
                   (progress.accepted == best.accepted && !best.missing && progress.missing);
    if (!bestRow || further) {
      best = progress;
      bestRow = &row;
    }
  }
  // ptxas takes the modifiers of many more instructions in any order: vote.ballot.sync of CUB.
  for (size_t index : rows)
    if (RowMatch result{&opcodeTable()[index], static_cast<uint16_t>(index), {}};
        fillInAnyOrder(*result.row, insn, result.match).matched)
      return result;
  if (!bestRow)
    return makeError(ErrorKind::Simulation,
                     fmt::format("unknown instruction '{}'", spellOpcode(insn)));
  return refuse(insn, *bestRow, best);
}

const Match::Slot *Match::find(std::string_view name) const {
  for (const Slot &slot : slots)
    if (slot.name == name)
      return &slot;
  return nullptr;
}

int Match::choice(std::string_view name) const {
  const Slot *slot = find(name);
  return slot ? slot->choice : -1;
}

std::string_view Match::text(std::string_view name) const {
  const Slot *slot = find(name);
  return slot ? slot->text : std::string_view();
}

Type Match::type(std::string_view name) const {
  return has(name) ? typeFromSpelling(text(name)) : Type::None;
}

unsigned Match::vectorSize() const {
  int value = choice("vec");
  return value < 0 ? 1 : 2u << value;
}

Space Match::space(std::string_view name) const {
  static constexpr Space spaces[] = {Space::Global,        Space::SharedCta, Space::SharedCta,
                                     Space::SharedCluster, Space::Local,     Space::Param,
                                     Space::Const,         Space::Param,     Space::Param};
  int value = choice(name);
  return value < 0 ? Space::Generic : spaces[value];
}

Scope Match::scope(std::string_view name) const {
  static constexpr Scope scopes[] = {Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys};
  int value = choice(name);
  return value < 0 ? Scope::None : scopes[value];
}

MemOrder Match::order(std::string_view name, MemOrder absent) const {
  static constexpr MemOrder orders[] = {MemOrder::Weak,     MemOrder::Relaxed, MemOrder::Acquire,
                                        MemOrder::Release,  MemOrder::AcqRel,  MemOrder::SeqCst,
                                        MemOrder::Volatile, MemOrder::Mmio};
  int value = choice(name);
  return value < 0 ? absent : orders[value];
}
