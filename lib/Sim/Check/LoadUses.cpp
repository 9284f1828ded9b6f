//===- LoadUses.cpp - Uses of the value of a load -------------------------===//
#include "LoadUses.h"

#include "Sim/Decode/OperandRoles.h"

#include <algorithm>
#include <set>

namespace fp4::sim::check {

namespace {

using Registers = std::set<uint32_t>; ///< by offset in bank 0

/// Instructions that compute a register of a lane from registers of that lane,
/// with no other effect.
constexpr std::string_view kArithmetic[] = {
    "abs",      "add",   "and", "bfe",  "bfi",  "bfind", "bmsk",  "brev",  "clz",  "cnot",
    "copysign", "cos",   "cvt", "cvta", "div",  "ex2",   "fma",   "fns",   "lg2",  "lop3",
    "mad",      "mad24", "max", "min",  "mov",  "mul",   "neg",   "mul24", "not",  "or",
    "popc",     "prmt",  "rcp", "rem",  "sad",  "selp",  "set",   "shf",   "setp", "shl",
    "rsqrt",    "shr",   "sin", "slct", "sqrt", "sub",   "szext", "tanh",  "xor",  "testp"};

/// Returns true for arithmetic without a carry: a carry is a result that is no
/// operand.
bool isArithmetic(const Insn &insn) {
  const OpcodeRow &row = rowOf(insn);
  return std::ranges::find(kArithmetic, row.base) != std::end(kArithmetic) &&
         std::ranges::none_of(row.slots,
                              [](const ModifierSlot &slot) { return slot.name == "cc"; });
}

/// Instructions by which the lanes of a warp exchange values.
constexpr std::string_view kExchanges[] = {"match", "redux", "shfl", "vote"};

bool passesOn(const Insn &insn, LoadUses::Within within) {
  return isArithmetic(insn) ||
         (within == LoadUses::Within::Warp &&
          std::ranges::find(kExchanges, rowOf(insn).base) != std::end(kExchanges));
}

/// Calls f(place in Insn::op, offset in bank 0) for the registers that are
/// written, or for those that are read; the guard has the place kMaxOperands.
template <typename F>
void forEachOffset(const Kernel &kernel, const Insn &insn, bool written, F &&f) {
  forEachOperand(kernel, insn, written, [&](size_t at, const Operand &o) { f(at, o.offset); });
  if (!written && insn.guard != kNoGuard)
    f(size_t(kMaxOperands), insn.guard);
}

enum class Use : uint8_t { None, StoredValue, Other };

/// Returns true for a store that is an event of the checker. Stores into local
/// memory are none, and their values come back by loads from there.
bool isHeard(const Kernel &kernel, const Insn &insn) {
  if (rowOf(insn).base != "st")
    return false;
  const auto *store = std::get_if<MemoryModifiers>(&insn.modifiers);
  if (!store)
    return true;
  return store->space == Space::Generic
             ? kernel.info.localBytes == 0
             : store->space != Space::Local && store->space != Space::Param;
}

Use useOf(const Kernel &kernel, const Insn &insn, const Registers &values) {
  Use use = Use::None;
  const bool store = isHeard(kernel, insn);
  forEachOffset(kernel, insn, false, [&](size_t at, uint32_t offset) {
    if (values.contains(offset))
      use = store && at == 1 && use != Use::Other ? Use::StoredValue : Use::Other;
  });
  return use;
}

/// Adds the registers that an instruction writes. Returns true when one of them
/// is new.
bool define(const Kernel &kernel, const Insn &insn, Registers &values) {
  const size_t before = values.size();
  forEachOffset(kernel, insn, true, [&](size_t, uint32_t offset) { values.insert(offset); });
  return values.size() > before;
}

/// Returns true when a call has a register as argument: it is no operand of an instruction. Other
/// arguments are stored into memory, where a store uses the value.
bool passesRegisters(const Kernel &kernel) {
  return std::ranges::any_of(kernel.callSites, [](const CallSite &site) {
    return std::ranges::any_of(site.arguments, [](const ArgumentPlace &argument) {
      return argument.value.kind != OperandKind::None;
    });
  });
}

/// Follows the value of a load through arithmetic (and exchanges), and calls
/// accept(pc, use, values) for every other instruction that uses the value, up
/// to the first that is not accepted. Returns true when all are.
template <typename Accept>
bool follow(const Kernel &kernel, uint32_t load, LoadUses::Within within, const Accept &accept) {
  if (rowOf(kernel.code[load]).base != "ld" || passesRegisters(kernel))
    return false;
  Registers values;
  const auto size = uint32_t(kernel.code.size());
  for (bool more = define(kernel, kernel.code[load], values); more;) {
    more = false;
    for (uint32_t n = 1; n <= size; ++n) { // the next instructions first: they end most searches
      const uint32_t pc = (load + n) % size;
      const Use use = useOf(kernel, kernel.code[pc], values);
      if (use == Use::None)
        continue;
      if (passesOn(kernel.code[pc], within))
        more |= define(kernel, kernel.code[pc], values);
      else if (!accept(pc, use, values))
        return false;
    }
  }
  return true;
}

std::vector<uint32_t> findOnlyStores(const Kernel &kernel, uint32_t load, LoadUses::Within within) {
  std::set<uint32_t> stores;
  const bool only = follow(kernel, load, within, [&](uint32_t pc, Use use, const Registers &) {
    if (use == Use::StoredValue)
      stores.insert(pc);
    return use == Use::StoredValue;
  });
  return only ? std::vector<uint32_t>(stores.begin(), stores.end()) : std::vector<uint32_t>();
}

bool findUse(const Kernel &kernel, uint32_t pc) {
  Registers results;
  forEachOffset(kernel, kernel.code[pc], true,
                [&](size_t, uint32_t offset) { results.insert(offset); });
  return !results.empty() &&
         (passesRegisters(kernel) || std::ranges::any_of(kernel.code, [&](const Insn &insn) {
            return useOf(kernel, insn, results) != Use::None;
          }));
}

bool isAtomic(const Insn &insn) { return rowOf(insn).base == "atom" || rowOf(insn).base == "red"; }

/// Calls f(register) for those with which an atom.cas compares memory.
template <typename F> void forEachCompared(const Kernel &kernel, const Insn &insn, F &&f) {
  constexpr size_t compared = 2; // of d, [a], b, c
  if (std::ranges::any_of(rowOf(insn).slots, [](const auto &slot) { return slot.name == "cas"; }))
    forEachOffset(kernel, insn, false, [&](size_t at, uint32_t offset) {
      if (at == compared)
        f(offset);
    });
}

/// Returns true when the guard of an instruction only decides if atomic
/// operations are made: it guards one, or a branch over some.
bool decides(const Kernel &kernel, uint32_t pc) {
  const Insn &insn = kernel.code[pc];
  if (insn.guard == kNoGuard)
    return false;
  if (insn.flow != Flow::Branch)
    return isAtomic(insn);
  bool atomic = false;
  for (uint32_t at = pc + 1; at < insn.target; ++at) {
    atomic |= isAtomic(kernel.code[at]);
    if (!isAtomic(kernel.code[at]) && !isArithmetic(kernel.code[at]))
      return false;
  }
  return atomic;
}

/// Returns the registers that may hold a guess: atom.cas compares them with
/// memory, they decide if an atomic operation is made, or such a register is
/// computed from them.
Registers findGuessed(const Kernel &kernel) {
  Registers guessed;
  for (uint32_t pc = 0; pc < kernel.code.size(); ++pc) {
    forEachCompared(kernel, kernel.code[pc], [&](uint32_t offset) { guessed.insert(offset); });
    if (decides(kernel, pc))
      guessed.insert(kernel.code[pc].guard);
  }
  for (size_t before = 0; before != guessed.size();) {
    before = guessed.size();
    for (const Insn &insn : kernel.code) {
      bool made = false;
      forEachOffset(kernel, insn, true,
                    [&](size_t, uint32_t offset) { made |= guessed.contains(offset); });
      if (made && isArithmetic(insn))
        forEachOffset(kernel, insn, false,
                      [&](size_t, uint32_t offset) { guessed.insert(offset); });
    }
  }
  return guessed;
}

bool findGuess(const Kernel &kernel, uint32_t load) {
  bool compared = false, other = false;
  const bool all =
      follow(kernel, load, LoadUses::Within::Lane, [&](uint32_t pc, Use, const Registers &values) {
        const Insn &insn = kernel.code[pc];
        forEachCompared(kernel, insn,
                        [&](uint32_t offset) { compared |= values.contains(offset); });
        other |= !decides(kernel, pc) || !values.contains(insn.guard);
        return true;
      });
  return all && (compared || !other);
}

/// Returns true when the value of a load is an operand of `user`, itself or
/// through arithmetic before it.
bool findFlow(const Kernel &kernel, uint32_t load, uint32_t user) {
  Registers values;
  define(kernel, kernel.code[load], values);
  const auto size = uint32_t(kernel.code.size());
  for (uint32_t pc = (load + 1) % size; pc != load; pc = (pc + 1) % size) {
    const bool used = useOf(kernel, kernel.code[pc], values) != Use::None;
    if (pc == user)
      return used;
    if (used && isArithmetic(kernel.code[pc]))
      define(kernel, kernel.code[pc], values);
  }
  return false;
}

} // namespace

bool LoadUses::isUsed(const Kernel &kernel, uint32_t pc) {
  if (used.size() <= pc)
    used.resize(kernel.code.size());
  std::optional<bool> &result = used[pc];
  if (!result)
    result = findUse(kernel, pc);
  return *result;
}

bool LoadUses::isGuess(const Kernel &kernel, uint32_t pc) {
  if (guesses.size() <= pc)
    guesses.resize(kernel.code.size());
  std::optional<bool> &result = guesses[pc];
  if (result)
    return *result;
  if (!guessed)
    guessed = findGuessed(kernel);
  bool candidate = false; // most loads are none
  forEachOffset(kernel, kernel.code[pc], true,
                [&](size_t, uint32_t offset) { candidate |= guessed->contains(offset); });
  result = candidate && findGuess(kernel, pc);
  return *result;
}

bool LoadUses::reaches(const Kernel &kernel, uint32_t load, uint32_t user) {
  const auto [known, isNew] = flows.try_emplace({load, user});
  if (isNew)
    known->second = findFlow(kernel, load, user);
  return known->second;
}

const std::vector<uint32_t> *LoadUses::onlyStores(const Kernel &kernel, uint32_t pc,
                                                  Within within) {
  Stores &stores = within == Within::Lane ? ofLane : ofWarp;
  if (stores.size() <= pc)
    stores.resize(kernel.code.size());
  std::optional<std::vector<uint32_t>> &result = stores[pc];
  if (!result)
    result = findOnlyStores(kernel, pc, within);
  return result->empty() ? nullptr : &*result;
}

} // namespace fp4::sim::check
