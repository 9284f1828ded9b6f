//===- Decoder.h - AST to decoded kernels ---------------------------------===//
#pragma once

#include "Sim/Decode/OpcodeTable.h"
#include "Sim/Decode/ProgramImpl.h"
#include "Sim/PTX/Ast.h"
#include <map>
#include <stdexcept>
#include <unordered_map>

namespace fp4::sim {

/// Unwinds the decoder; does not leave lib/Sim/Decode/{Decoder,Symbols,Program}.cpp.
struct DecodeError {
  ptx::Loc loc;
  std::string message;
  std::string note;
  bool operandsFit = false; ///< the opcode row accepted modifiers and operands
};

/// Bank 1 while it is built: every distinct constant once, broadcast over 32 lanes.
class ConstantPool {
public:
  explicit ConstantPool(Kernel &kernel) : kernel(kernel) {}
  /// `rankRelative`: the address of a shared variable.
  Operand get(uint64_t value, uint8_t width, bool rankRelative = false);
  Operand predicate(bool value);

private:
  Kernel &kernel;
  std::map<std::tuple<uint64_t, uint8_t, bool>, uint32_t> known;
};

/// Bank 0 while it is built.
class RegisterFile {
public:
  explicit RegisterFile(Kernel &kernel) : kernel(kernel) {}
  uint32_t allocate(uint8_t width); ///< 1, 2, 4, 8, 16 bytes per lane
  uint32_t allocatePredicate();
  uint32_t sink(); ///< 16 bytes per lane that nobody reads
  uint32_t predicateSink();
  void finish(); ///< rounds registerBytes

private:
  Kernel &kernel;
  uint32_t predicateNext = 0, predicateEnd = 0;
  uint32_t sinkOffset = ~0u, predicateSinkOffset = ~0u;
};

enum class VariableSpace : uint8_t { Global, Const, Shared, Local, Param };

/// A variable or a kernel parameter; `address` is relative to its space's window (for shared: the
/// shared::cta address of rank 0).
struct Symbol {
  VariableSpace space{};
  uint64_t address = 0;
};

struct Register {
  Type type = Type::None;
  uint32_t offset = ~0u; ///< allocated at the first use
};

/// The names of one { } scope.
struct NameScope {
  std::unordered_map<std::string_view, Register> registers;
  /// Parameterized names: prefix -> (count, type).
  std::unordered_map<std::string_view, std::pair<uint32_t, Type>> ranges;
  std::unordered_map<std::string_view, Symbol> symbols;
  std::unordered_map<std::string_view, uint32_t> labels; ///< -> pc
};

/// Module-scope .global and .const variables (.shared ones are placed per kernel).
struct ModuleSymbols {
  std::unordered_map<std::string_view, Symbol> placed;
  /// Device functions with a body, and what a pointer to each holds.
  std::unordered_map<std::string_view, const ptx::Function *> functions;
  std::unordered_map<std::string_view, uint64_t> functionAddress;
  /// Functions that pointers may name: all that occur in other places than after a call.
  std::vector<const ptx::Function *> addressTaken;
};

/// Fills the maps of functions.
void collectFunctions(const ptx::Module &module, ModuleSymbols &symbols);
/// The name after a call: its first argument that is not a list.
const ptx::Arg *calleeOf(const ptx::Instruction &insn);

/// Size of a variable in bytes, and its alignment.
uint64_t variableBytes(const ptx::Variable &variable);
uint32_t variableAlign(const ptx::Variable &variable);

/// Places .global and .const variables and evaluates their initialisers. Throws DecodeError.
ModuleSymbols placeModuleVariables(const ptx::Module &module, ProgramImpl &program);

class KernelDecoder {
public:
  KernelDecoder(const ptx::Function &function, const std::vector<ptx::Variable> &moduleVariables,
                const ModuleSymbols &module, Kernel &kernel)
      : function(&function), moduleVariables(moduleVariables), module(module), kernel(kernel),
        constants(kernel), registers(kernel) {}

  /// Throws DecodeError. With `errors` those of single instructions are put there instead.
  void run(std::vector<DecodeError> *errors = nullptr);

private:
  [[noreturn]] void fail(ptx::Loc loc, std::string message, std::string note = "") const {
    throw DecodeError{loc, std::move(message), std::move(note), false};
  }
  void decodeBody(const ptx::Function &body, std::vector<DecodeError> *errors);
  void placeParameters();
  std::vector<std::pair<const ptx::Variable *, bool>> sharedVariables() const;
  void nameShared(const ptx::Variable &variable, uint64_t end);
  void placeShared();
  void collectLabels();
  void enterScope();
  void declare(const ptx::RegisterDecl &decl);
  void declare(const ptx::Variable &variable);

  void decode(const ptx::Instruction &insn);
  void decode(const ptx::Instruction &insn, std::vector<DecodeError> *errors);
  void appendExit();

  // Device functions (Functions.cpp).
  void collectCallees();
  void addCallee(const ptx::Function &callee);
  void placeFormals();
  ArgumentPlace placeFormal(const ptx::Variable &variable);
  uint64_t allocateLocal(const ptx::Variable &variable);
  void decodeCall(const ptx::Instruction &insn, Insn &out);
  void decodeBranchTable(const ptx::Instruction &insn, Insn &out);
  void decodeReturn(const ptx::Instruction &insn, Insn &out);
  std::vector<ArgumentPlace> actuals(const ptx::Arg *list,
                                     const std::vector<ArgumentPlace> *formals, bool results);
  ArgumentPlace actual(const ptx::Arg &arg, const ArgumentPlace *formal, bool result);
  Insn header(const ptx::Instruction &insn);
  /// Decodes by the first row of the table that takes the instruction; `out` has the fields that
  /// all rows share.
  Insn decodeByTable(const ptx::Instruction &insn, const Insn &out);
  void decodeOperands(const ptx::Instruction &insn, const RowMatch &row, Insn &out);
  unsigned decodeItem(const ptx::Instruction &insn, size_t argument, const PatternItem &item,
                      const RowMatch &row, Insn &out, unsigned op);
  unsigned decodePair(const ptx::Instruction &insn, size_t argument, const PatternItem &item,
                      const RowMatch &row, Insn &out, unsigned op);
  void decodeAddress(const ptx::Instruction &insn, const ptx::Arg &arg, const PatternItem &item,
                     Insn &out, unsigned op);
  Operand decodeScalar(const ptx::Instruction &insn, const ptx::Arg &arg, const PatternItem &item,
                       Type type, uint8_t width);
  Operand decodeVector(const ptx::Instruction &insn, const ptx::Arg &arg, const PatternItem &item,
                       const RowMatch &row, Type type, uint8_t width);
  Type patternType(const ptx::Instruction &insn, const PatternItem &item, const RowMatch &row,
                   uint8_t &width) const;

  Operand destination(const ptx::Arg &arg, Type type, uint8_t width, bool wider);
  Operand destinationPredicate(const ptx::Arg &arg);
  Operand source(const ptx::Arg &arg, Type type, uint8_t width, bool wider);
  Operand sourcePredicate(const ptx::Arg &arg);
  Operand immediate(const ptx::Arg &arg, Type type, uint8_t width);
  Operand addressOperand(const ptx::Arg &arg);
  Operand vectorOperand(const ptx::Arg &arg, Type type, uint8_t width, const PatternItem &item);
  Operand symbolOperand(const Symbol &symbol, uint64_t displacement, uint8_t width);
  uint32_t labelOperand(const ptx::Arg &arg);

  void keepRegisterNames();

  Operand registerOperand(Register &reg, const ptx::Arg &arg, uint8_t width, bool wider);
  Register *findRegister(std::string_view name);
  const Symbol *findSymbol(std::string_view name);
  Operand specialOperand(const ptx::Arg &arg, uint8_t width);

  const ptx::Function *function;     ///< function whose body is decoded
  DeviceFunction *current = nullptr; ///< null in the kernel itself
  const std::vector<ptx::Variable> &moduleVariables;
  const ModuleSymbols &module;
  Kernel &kernel;
  ConstantPool constants;
  RegisterFile registers;
  std::vector<NameScope> scopes;                                             ///< innermost last
  std::vector<std::unordered_map<std::string_view, uint32_t>> labelsOfScope; ///< labels, by scope
  size_t nextScope = 0;
  std::vector<RegisterName> named; ///< registers that have a place
  std::unordered_map<const ptx::Variable *, Symbol> sharedSymbols;
  std::unordered_map<std::string_view, Symbol> moduleShared; ///< .shared at module scope
  std::vector<const ptx::Function *> callees; ///< callees in the order of Kernel::functions
  std::unordered_map<std::string_view, int32_t> calleeIndex;
  std::unordered_map<uint8_t, uint32_t> specials;
};

} // namespace fp4::sim
