//===- Decode.h - Context of a bind function ------------------------------===//
//
// Decoding an instruction: match its modifiers against the rows of Opcodes.def, resolve its
// operands by the row's pattern, then call the row's bind function, which chooses the handler.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Decode/Insn.h"
#include "fp4/Sim/MemoryModel.h"
#include "fp4/Support/Error.h"

namespace fp4::sim {

struct Kernel;

/// The modifiers of one instruction, by slot name.
class Match {
public:
  struct Slot {
    std::string_view name;
    std::string_view text; ///< modifier as written, without the dot; empty when absent
    int choice = -1;       ///< index of the alternative (literals) or in the class; -1: absent
  };
  std::vector<Slot> slots;

  const Slot *find(std::string_view name) const;
  bool has(std::string_view name) const { return choice(name) >= 0; }
  int choice(std::string_view name) const;
  /// The choice of a slot whose alternatives have the order of the enumerators.
  template <typename E> E pick(std::string_view name) const { return E(choice(name)); }
  std::string_view text(std::string_view name) const;
  /// The type in slot `name`, None when absent.
  Type type(std::string_view name = "type") const;
  /// vec: 1, 2, 4, 8.
  unsigned vectorSize() const;
  /// Slots of class "space", "scope", "sem".
  Space space(std::string_view name = "space") const;
  Scope scope(std::string_view name = "scope") const;
  MemOrder order(std::string_view name, MemOrder absent) const;
};

class BindContext {
public:
  BindContext(Insn &insn, const Match &match, Kernel &kernel)
      : insn(insn), match(match), kernel(kernel) {}
  Insn &insn;
  const Match &match;
  Kernel &kernel;

  /// Shorthands for the last line of most bind functions.
  Status use(Handler handler) {
    insn.handler = handler;
    return {};
  }
  /// A located decoding error about this instruction.
  Status fail(std::string message, std::string note = "") const;
  /// The elements of a vector operand.
  const Operand *elements(const Operand &vector) const;
};

using BindFn = Status (*)(BindContext &);

} // namespace fp4::sim
