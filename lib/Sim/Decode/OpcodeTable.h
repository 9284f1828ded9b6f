//===- OpcodeTable.h - Opcodes.def, parsed --------------------------------===//
#pragma once

#include "Sim/Decode/Decode.h"
#include "Sim/PTX/Ast.h"
#include <string>

namespace fp4::sim {

struct ModifierSlot {
  std::string_view name;
  std::vector<std::string_view> alternatives;
  bool isType = false;
  bool optional = false;
};

enum class PatternKind : uint8_t {
  Dst,
  DstPred,
  DstPredPair,
  DstRegPred,
  Src,
  SrcPred,
  Addr,
  TensorAddr,
  VecSrc,
  VecDst,
  Label,
  Clock,
  Imm,
};

struct PatternItem {
  PatternKind kind = PatternKind::Src;
  std::string_view typeSpec = "type"; ///< slot name, type spelling, or "wide"
  bool wider = false;                 ///< a register wider than the type is fine
  bool scalarOk = false;              ///< V: scalar unless the slot "vec" is present
  bool optional = false;
  unsigned operands() const {
    return kind == PatternKind::DstPredPair || kind == PatternKind::DstRegPred ||
                   kind == PatternKind::TensorAddr
               ? 2
               : 1;
  }
};

struct OpcodeRow {
  BindFn bind = nullptr;
  std::string_view base;
  std::string_view slotText;
  std::vector<std::string_view> words; ///< words of `base`
  std::vector<ModifierSlot> slots;
  std::vector<PatternItem> pattern;
  bool anyOrder = false; ///< '~': modifiers fill the slots in whatever order they come

  /// Returns true when slot `name` may be `alternative`.
  bool hasSlot(std::string_view name, std::string_view alternative) const;
};

const std::vector<OpcodeRow> &opcodeTable();

struct RowMatch {
  const OpcodeRow *row = nullptr;
  uint16_t index = 0;
  Match match;
};

/// Finds the row whose modifiers accept `insn`. The error is not located.
Expected<RowMatch> matchOpcode(const ptx::Instruction &insn, size_t minimumRow = 0);

/// Returns the parts of a text of a table that are not empty.
std::vector<std::string_view> split(std::string_view text, std::string_view separator);

/// "ld.global.b32": the opcode as written.
std::string spellOpcode(const ptx::Instruction &insn);

} // namespace fp4::sim
