//===- LoadUses.cpp - Where the value of a load goes ----------------------===//
#include "LoadUses.h"

#include "Sim/Decode/OperandRoles.h"

#include <algorithm>
#include <set>

namespace fp4::sim::check {

namespace {

using Registers = std::set<uint32_t>; ///< by offset in bank 0

/// What computes a register of a lane from registers of that lane and does nothing else.
constexpr std::string_view kArithmetic[] = {
    "abs",      "add",   "and", "bfe",  "bfi",  "bfind", "bmsk",  "brev",  "clz",  "cnot",
    "copysign", "cos",   "cvt", "cvta", "div",  "ex2",   "fma",   "fns",   "lg2",  "lop3",
    "mad",      "mad24", "max", "min",  "mov",  "mul",   "neg",   "mul24", "not",  "or",
    "popc",     "prmt",  "rcp", "rem",  "sad",  "selp",  "set",   "shf",   "setp", "shl",
    "rsqrt",    "shr",   "sin", "slct", "sqrt", "sub",   "szext", "tanh",  "xor",  "testp"};

/// Those with a carry have a result that is no operand.
bool isArithmetic(const Insn &insn) {
  const OpcodeRow &row = rowOf(insn);
  return std::ranges::find(kArithmetic, row.base) != std::end(kArithmetic) &&
         std::ranges::none_of(row.slots,
                              [](const ModifierSlot &slot) { return slot.name == "cc"; });
}

/// Calls f(place in Insn::op, offset in bank 0) for the registers that are written, or for those
/// that are read; the guard has the place kMaxOperands.
template <typename F>
void forEachOffset(const Kernel &kernel, const Insn &insn, bool written, F &&f) {
  forEachOperand(kernel, insn, written, [&](size_t at, const Operand &o) { f(at, o.offset); });
  if (!written && insn.guard != kNoGuard)
    f(size_t(kMaxOperands), insn.guard);
}

enum class Use : uint8_t { None, StoredValue, Other };

Use useOf(const Kernel &kernel, const Insn &insn, const Registers &values) {
  Use use = Use::None;
  const bool store = rowOf(insn).base == "st";
  forEachOffset(kernel, insn, false, [&](size_t at, uint32_t offset) {
    if (values.contains(offset))
      use = store && at == 1 && use != Use::Other ? Use::StoredValue : Use::Other;
  });
  return use;
}

std::optional<uint32_t> findOnlyStore(const Kernel &kernel, uint32_t load) {
  if (rowOf(kernel.code[load]).base != "ld" || !kernel.callSites.empty())
    return std::nullopt; // arguments of calls are no operands
  Registers values;
  const auto define = [&](const Insn &insn) {
    const size_t before = values.size();
    forEachOffset(kernel, insn, true, [&](size_t, uint32_t offset) { values.insert(offset); });
    return values.size() > before;
  };
  std::optional<uint32_t> store;
  const auto size = uint32_t(kernel.code.size());
  for (bool more = define(kernel.code[load]); more;) {
    more = false;
    for (uint32_t n = 1; n <= size; ++n) { // what follows first: it ends most searches
      const uint32_t pc = (load + n) % size;
      const Use use = useOf(kernel, kernel.code[pc], values);
      if (use == Use::StoredValue && (!store || *store == pc))
        store = pc;
      else if (use != Use::None && !isArithmetic(kernel.code[pc]))
        return std::nullopt;
      else if (use != Use::None)
        more |= define(kernel.code[pc]);
    }
  }
  return store;
}

bool findUse(const Kernel &kernel, uint32_t pc) {
  Registers results;
  forEachOffset(kernel, kernel.code[pc], true,
                 [&](size_t, uint32_t offset) { results.insert(offset); });
  return !results.empty() && (!kernel.callSites.empty() || // arguments of calls are no operands
                              std::ranges::any_of(kernel.code, [&](const Insn &insn) {
                                return useOf(kernel, insn, results) != Use::None;
                              }));
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

std::optional<uint32_t> LoadUses::onlyStore(const Kernel &kernel, uint32_t pc) {
  if (known.size() <= pc)
    known.resize(kernel.code.size());
  uint32_t &result = known[pc];
  if (result == unknown) {
    const auto store = findOnlyStore(kernel, pc);
    result = store ? *store + 2 : none;
  }
  return result == none ? std::nullopt : std::optional(result - 2);
}

} // namespace fp4::sim::check
