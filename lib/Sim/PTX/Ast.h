//===- Ast.h - Parsed PTX -------------------------------------------------===//
//
// The parser's result, before any name is resolved. Every string_view points into the module's
// text, which outlives the AST, or into Module::made. A function body is one flat list of items:
// nested { } scopes are begin and end items, so that the decoder walks it once with a scope stack.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace fp4::sim::ptx {

struct Loc {
  uint32_t line = 0;
  uint32_t column = 0;
};

enum class ArgKind : uint8_t {
  Name,    ///< register, variable, label, or one of several with its component (%tid.x)
  Int,     ///< `value`
  Float,   ///< `number`; for 0fXXXXXXXX and 0dX...X also `value` = the bits
  Vector,  ///< {elements}
  Address, ///< [elements[0] + value] or [elements[0] + value, elements[1]]
  Parens,  ///< (elements), of call
};

struct Arg {
  ArgKind kind = ArgKind::Name;
  Loc loc;
  std::string_view text; ///< Name: the name
  bool negated = false;  ///< !p
  uint64_t value = 0;    ///< Int: the bits; Address: the displacement (two's complement)
  double number = 0;
  uint8_t floatBits = 0; ///< 32 or 64 for hexadecimal floats, 0 for decimal
  std::vector<Arg> elements;
  bool paired = false; ///< true when '|' follows this argument and the next one is its partner
};

struct Instruction {
  Loc loc;
  std::string_view guard; ///< predicate name; empty when unguarded
  bool guardNegated = false;
  std::string_view opcode;                 ///< first word
  std::vector<std::string_view> modifiers; ///< modifiers without dots, in order
  std::vector<Arg> args;
  uint32_t debugFile = 0, debugLine = 0, debugColumn = 0; ///< place that the last .loc names
};

/// .reg .b32 %r<8> has count 8; .reg .b32 x has count 0. A vector is one declaration for each of
/// its elements, "v.x" and so on.
struct RegisterDecl {
  Loc loc;
  std::string_view type;
  std::string_view name;
  uint32_t count = 0;
};

/// One element of an initialiser; nested braces are flattened.
struct Initializer {
  Loc loc;
  bool isFloat = false;
  uint64_t value = 0;
  double number = 0;
  uint8_t floatBits = 0;
  std::string_view symbol; ///< address of this variable plus value
};

struct Variable {
  Loc loc;
  std::string_view space; ///< global, const, shared, local, param; reg: of a device function
  std::string_view type;
  std::string_view name;
  bool isExtern = false;
  bool unsized = false; ///< name[]
  uint32_t align = 0;   ///< 0: natural
  uint32_t vector = 1;
  uint64_t count = 1; ///< product of the dimensions
  std::vector<Initializer> initial;
};

enum class ItemKind : uint8_t { Instruction, Label, Register, Variable, ScopeBegin, ScopeEnd };

struct Item {
  ItemKind kind;
  uint32_t index = 0; ///< into the Function's list of that kind
};

struct Label {
  Loc loc;
  std::string_view name;
};

/// NAME: .branchtargets L0, L1;
struct TargetList {
  Loc loc;
  std::string_view name;
  std::vector<std::string_view> labels;
};

struct Function {
  Loc loc;
  std::string_view name;
  bool isEntry = false;
  bool hasBody = false;
  std::vector<Variable> params;
  std::vector<Variable> results; ///< results of a device function
  uint32_t requiredCta[3] = {0, 0, 0};
  uint32_t maximumCta[3] = {0, 0, 0};
  uint32_t requiredCluster[3] = {0, 0, 0};
  bool blocksAreClusters = false; ///< .blocksareclusters
  uint32_t maximumCluster = 0;    ///< .maxclusterrank
  uint32_t maximumRegisters = 0;  ///< .maxnreg
  uint32_t minimumCtasPerSm = 0;  ///< .minnctapersm
  std::vector<Item> items;
  std::vector<Instruction> instructions;
  std::vector<Label> labels;
  std::vector<RegisterDecl> registers;
  std::vector<Variable> variables;
  std::vector<TargetList> targetLists;
};

struct Module {
  std::string version;
  std::string target;
  std::vector<std::string> files; ///< index as in .loc
  std::vector<Variable> variables;
  std::vector<Function> functions; ///< entries and device functions
  std::deque<std::string> made;    ///< names that the text does not have
};

} // namespace fp4::sim::ptx
