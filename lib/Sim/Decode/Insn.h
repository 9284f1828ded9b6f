//===- Insn.h - Decoded instructions --------------------------------------===//
//
// Program::parse turns every PTX instruction into one Insn: a function pointer, dense register
// slots and the modifiers of its family. Nothing is looked up by name while a kernel runs.
//
// Register storage. A warp's registers are structure-of-arrays: register r of a width of w bytes
// (1, 2, 4, 8, 16) is w*32 contiguous bytes, lane l at l*w. Predicates are one 32-bit lane mask.
// An operand names a *bank* and a byte offset in it. Bank 0 is the warp's registers; bank 1 holds
// the constants of the kernel, already broadcast over 32 lanes, so a handler reads an immediate
// exactly as it reads a register. (Addresses of shared variables are constants that differ by CTA
// rank: each rank has its own bank 1.)
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Decode/Modifiers.h"
#include "Sim/Decode/Types.h"
#include <array>
#include <cassert>
#include <string>
#include <vector>

namespace fp4::sim {

class ExecContext;
struct Insn;

/// The answer of a handler to the warp loop. "The group" is the set of lanes that run together.
enum class Outcome : uint8_t {
  Next,          ///< done: continue with the following instruction
  Jump,          ///< the active lanes continue at cx.target; guarded-off lanes at the next
  Scatter,       ///< each active lane continues at cx.targets[lane]; guarded-off lanes at the next
  Retry,         ///< blocked (cx.block was called), no effect yet: execute again when ready
  NextWhenReady, ///< blocked, effects done: continue with the following instruction when ready
  Yield,         ///< like Next, but let other warps run first (a poll that found nothing)
  Exit,          ///< the active lanes end
  Error,         ///< cx.fail was called
};

/// The ways of lanes behind an instruction, as far as the decoder has none of its own for them:
/// calls, returns and tables of targets have modifiers.
enum class Flow : uint8_t {
  Next,
  Branch, ///< bra: Insn::target
  Exit,   ///< exit, and ret of a kernel
  Sleep,  ///< nanosleep: like Next, later
};

using Handler = Outcome (*)(ExecContext &, const Insn &);

enum class OperandKind : uint8_t {
  None,    ///< an optional operand that is absent
  Reg,     ///< register or immediate: `bank`, `offset`, `width` bytes per lane
  Pred,    ///< predicate mask at `bank`, `offset`; `negated`
  Address, ///< base as for Reg (width 4 or 8), plus `imm` bytes
  Vector,  ///< `imm` elements at Kernel::operandPool[offset...]
};

inline constexpr uint8_t kRegBank = 0;
inline constexpr uint8_t kConstBank = 1;
inline constexpr uint8_t kValueBank = 2; ///< bank of true values, for handlers that run on shadows

struct Operand {
  OperandKind kind = OperandKind::None;
  uint8_t bank = kRegBank;
  uint8_t width = 0;
  bool negated = false;
  uint32_t offset = 0;
  int64_t imm = 0;

  explicit operator bool() const { return kind != OperandKind::None; }
};

/// The effect of poisoned sources on an instruction (State/Poison.h). Decode/PoisonRules.def gives
/// each its rule and the argument of the rule.
enum class PoisonRule : uint8_t {
  Use,     ///< takes none: to have one as a source is an error, and results are clean
  Load,    ///< the handler puts poison of memory into the results; an address is a use
  Store,   ///< the handler puts poison of registers into memory; an address is a use
  Move,    ///< moves bits: its handler, executed on shadows, gives the shadow of the result. The
           ///< argument is a mask of operands that say where to; with poison in them, all is
  Shuffle, ///< like Move, but poison in one of these is a use
  Parts,   ///< each of so many equal parts of the result comes from the same part of all sources
  Pack,    ///< op[1] is the upper half of so many bits, op[2] the lower one
  Fill,    ///< sums and products: a poisoned bit reaches those above it
  Carry,   ///< all of the result, and CC.CF
  Logic,   ///< bit by bit: a table of truth as that of lop3; kLogicOfOperand: op[4] is it
  Select,  ///< op[3] chooses one of op[1] and op[2]
  Compare, ///< setp: CompareTraits
  Vote,    ///< over the members in op[2]: 0 all, 1 any, 2 uni
  Ballot,  ///< over the members in op[2]: a bit for each lane
  Members, ///< all of the result from all lanes of the members in this operand; 0: of the warp
  Mma,     ///< mma.sync: rows of A and columns of B
  Jump,    ///< op[0] says where to, and is used
};
inline constexpr uint16_t kLogicOfOperand = 0x100;
/// Bits of Insn::poisonArgument of PoisonRule::Compare.
enum CompareTraits : uint16_t {
  kCompareEqual = 1, ///< equality of integers: a clean bit that differs decides
  kCompareAnd = 2,   ///< conjunction with op[4]
  kCompareOr = 4,
  kCompareXor = 8,
  kCompareHalves = 16, ///< op[0] is of the lower halves, op[1] of the upper ones
};

inline constexpr uint32_t kNoGuard = ~0u;
inline constexpr unsigned kMaxOperands = 10;

struct Insn {
  Handler handler = nullptr;
  uint32_t guard = kNoGuard; ///< offset of the guard predicate in bank 0
  bool guardNegated = false;
  Type type = Type::None; ///< the main type modifier
  Flow flow = Flow::Next;
  PoisonRule poison = PoisonRule::Use;
  uint16_t poisonArgument = 0;
  uint16_t row = 0;       ///< row of the opcode table
  uint32_t target = 0;    ///< pc of a branch
  uint32_t line = 0;      ///< line of the PTX text, from 1
  uint32_t column = 0;
  uint32_t debugFile = 0; ///< .loc: index of .file, 0 when there is none
  uint32_t debugLine = 0;
  uint32_t debugColumn = 0;
  Modifiers modifiers;
  std::array<Operand, kMaxOperands> op{}; ///< operands in the order of the table's operand pattern

  /// Returns the modifiers of family T, which the bind function of the handler has filled.
  template <typename T> const T &as() const {
    assert(std::holds_alternative<T>(modifiers));
    return *std::get_if<T>(&modifiers);
  }
  /// Returns the modifiers of family T, or null for an instruction of another family.
  template <typename T> const T *get() const { return std::get_if<T>(&modifiers); }
  /// Makes the instruction one of family T.
  template <typename T> T &make(const T &value = {}) { return modifiers.emplace<T>(value); }
};

// One instruction is fetched for each step of a warp.
static_assert(sizeof(Insn) <= 312);

} // namespace fp4::sim
