//===- Decoder.cpp - AST to decoded kernels -------------------------------===//
//
// One pass over the items of a kernel. Labels are collected first (a branch may go forward); names
// are resolved with a stack of scopes; each operand is decoded by the pattern of its opcode row;
// then the row's bind function chooses the handler.
//
//===----------------------------------------------------------------------===//
#include "Sim/Decode/Decoder.h"
#include "Sim/Decode/Handlers.h"
#include "Sim/Decode/LaneOrder.h"
#include "Sim/Decode/Neighbours.h"
#include "Sim/Decode/PoisonRules.h"
#include "Sim/Decode/Unsupported.h"
#include "fp4/Numerics/Float16.h"
#include <bit>
#include <fmt/format.h>
#include <optional>

using namespace fp4;
using namespace fp4::sim;
using ptx::ArgKind;
using ptx::ItemKind;

//===----------------------------------------------------------------------===//
// Decode.h
//===----------------------------------------------------------------------===//

Status BindContext::fail(std::string message, std::string note) const {
  return makeError(ErrorKind::Simulation, std::move(message), std::move(note));
}

const Operand *BindContext::elements(const Operand &vector) const {
  return kernel.operandPool.data() + vector.offset;
}

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

void KernelDecoder::collectLabels() {
  auto pc = static_cast<uint32_t>(kernel.code.size());
  std::vector<size_t> open{0};
  labelsOfScope.resize(1);
  for (const ptx::Item &item : function->items) {
    if (item.kind == ItemKind::ScopeBegin) {
      open.push_back(labelsOfScope.size());
      labelsOfScope.emplace_back();
    } else if (item.kind == ItemKind::ScopeEnd) {
      open.pop_back();
    } else if (item.kind == ItemKind::Instruction) {
      ++pc;
    } else if (item.kind == ItemKind::Label) {
      const ptx::Label &label = function->labels[item.index];
      if (!labelsOfScope[open.back()].try_emplace(label.name, pc).second)
        fail(label.loc, fmt::format("label '{}' is defined twice in one scope", label.name));
    }
  }
}

void KernelDecoder::enterScope() {
  scopes.emplace_back();
  scopes.back().labels = labelsOfScope[nextScope++];
}

void KernelDecoder::run(std::vector<DecodeError> *errors) {
  collectCallees();
  placeShared();
  const ptx::Function *entry = function;
  decodeBody(*entry, errors);
  for (size_t i = 0; i < callees.size(); ++i) {
    current = &kernel.functions[i];
    current->entry = static_cast<uint32_t>(kernel.code.size());
    decodeBody(*callees[i], errors);
  }
  keepRegisterNames();
  registers.finish();
  kernel.info.instructions = static_cast<uint32_t>(kernel.code.size() - 1 - callees.size());
  if (!errors || errors->empty()) {
    orderLanes(kernel);
    findNeighbours(kernel);
  }
}

void KernelDecoder::decodeBody(const ptx::Function &body, std::vector<DecodeError> *errors) {
  function = &body;
  scopes.clear();
  labelsOfScope.clear();
  nextScope = 0;
  collectLabels();
  enterScope();
  if (current)
    placeFormals();
  else
    placeParameters();
  for (const ptx::Item &item : function->items) {
    switch (item.kind) {
    case ItemKind::ScopeBegin:
      enterScope();
      break;
    case ItemKind::ScopeEnd:
      scopes.pop_back();
      break;
    case ItemKind::Register:
      declare(function->registers[item.index]);
      break;
    case ItemKind::Variable:
      declare(function->variables[item.index]);
      break;
    case ItemKind::Instruction:
      decode(function->instructions[item.index], errors);
      break;
    case ItemKind::Label:
      break;
    }
  }
  appendExit();
}

/// A body may end without ret.
void KernelDecoder::appendExit() {
  Insn insn;
  insn.line = kernel.code.empty() ? kernel.info.line : kernel.code.back().line;
  insn.handler = exitHandler();
  insn.flow = Flow::Exit;
  if (current)
    decodeReturn({}, insn);
  kernel.code.push_back(insn);
}

void KernelDecoder::decode(const ptx::Instruction &insn, std::vector<DecodeError> *errors) {
  try {
    decode(insn);
  } catch (DecodeError &error) {
    if (!errors)
      throw;
    errors->push_back(std::move(error));
  }
}

/// Places and guard: what every instruction has.
Insn KernelDecoder::header(const ptx::Instruction &insn) {
  Insn out;
  out.line = insn.loc.line;
  out.column = insn.loc.column;
  out.debugFile = insn.debugFile;
  out.debugLine = insn.debugLine;
  out.debugColumn = insn.debugColumn;
  if (!insn.guard.empty()) {
    ptx::Arg guard;
    guard.loc = insn.loc;
    guard.text = insn.guard;
    Operand predicate = sourcePredicate(guard);
    out.guard = predicate.offset;
    out.guardNegated = insn.guardNegated;
  }
  return out;
}

void KernelDecoder::decode(const ptx::Instruction &insn) {
  Insn out = header(insn);
  if (insn.opcode == "call")
    decodeCall(insn, out);
  else if (insn.opcode == "brx")
    decodeBranchTable(insn, out);
  else if (insn.opcode == "ret" && current)
    decodeReturn(insn, out);
  else
    out = decodeByTable(insn, out);
  kernel.code.push_back(out);
}

Insn KernelDecoder::decodeByTable(const ptx::Instruction &insn, const Insn &out) {
  if (const auto refusal = refusalOf(insn))
    fail(insn.loc, refusal->message, refusal->note);
  // Rows of one base may differ in their operands only: try the next one when the operands or the
  // bind function refuse. The best refusal to report is a bind function's, which accepted the
  // operands; else the one that lies furthest to the right.
  std::optional<DecodeError> best;
  for (size_t from = 0;;) {
    Expected<RowMatch> row = matchOpcode(insn, from);
    if (!row) {
      if (best)
        throw *best;
      fail(insn.loc, row.error().message, row.error().note);
    }
    Insn attempt = out;
    attempt.row = row->index;
    attempt.type = row->match.type();
    try {
      decodeOperands(insn, *row, attempt);
      BindContext context(attempt, row->match, kernel);
      if (Status bound = row->row->bind(context); !bound)
        throw DecodeError{insn.loc,
                          fmt::format("'{}': {}", spellOpcode(insn), bound.error().message),
                          bound.error().note, true};
      setPoisonRule(*row->row, row->match, attempt);
      return attempt;
    } catch (DecodeError &error) {
      auto merit = [](const DecodeError &e) {
        return std::tuple(e.operandsFit, e.loc.line, e.loc.column);
      };
      if (!best || merit(error) > merit(*best))
        best = std::move(error);
    }
    from = row->index + 1u;
  }
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

void KernelDecoder::decodeOperands(const ptx::Instruction &insn, const RowMatch &row, Insn &out) {
  size_t argument = 0;
  unsigned op = 0;
  for (const PatternItem &item : row.row->pattern) {
    if (op + item.operands() > kMaxOperands)
      fail(insn.loc, fmt::format("'{}' has too many operands", spellOpcode(insn)));
    if (argument >= insn.args.size()) {
      if (!item.optional)
        fail(insn.loc, fmt::format("'{}' expects more operands, but got {}", spellOpcode(insn),
                                   insn.args.size()));
      op += item.operands();
      continue;
    }
    argument += decodeItem(insn, argument, item, row, out, op);
    op += item.operands();
  }
  if (argument < insn.args.size())
    fail(insn.args[argument].loc, fmt::format("'{}' expects {} operands, but got {}",
                                              spellOpcode(insn), argument, insn.args.size()));
}

Type KernelDecoder::patternType(const ptx::Instruction &insn, const PatternItem &item,
                                const RowMatch &row, uint8_t &width) const {
  const Match &match = row.match;
  Type type = typeFromSpelling(item.typeSpec);
  if (type == Type::None)
    type = item.typeSpec == "wide" || item.typeSpec == "part" ? match.type()
                                                              : match.type(item.typeSpec);
  if (type == Type::None)
    fail(insn.loc, fmt::format("'{}' expects a type modifier", spellOpcode(insn)));
  width = static_cast<uint8_t>(type == Type::Pred ? 0 : bytesOf(type));
  if (item.typeSpec == "wide")
    width = static_cast<uint8_t>(2 * width);
  return type;
}

/// Returns true when the pattern of an operand of this kind names a type.
static bool hasType(PatternKind kind) {
  return kind == PatternKind::Dst || kind == PatternKind::Src || kind == PatternKind::VecSrc ||
         kind == PatternKind::VecDst;
}

/// A vector in braces; of ld and st also a scalar, which compilers put into braces too: {%r1}.
Operand KernelDecoder::decodeVector(const ptx::Instruction &insn, const ptx::Arg &arg,
                                    const PatternItem &item, const RowMatch &row, Type type,
                                    uint8_t width) {
  if (!item.scalarOk)
    return vectorOperand(arg, type, width, item);
  unsigned expected = row.match.vectorSize();
  bool vector = arg.kind == ArgKind::Vector;
  if (expected == 1 && (!vector || arg.elements.size() == 1)) {
    const ptx::Arg &scalar = vector ? arg.elements[0] : arg;
    return item.kind == PatternKind::VecDst ? destination(scalar, type, width, true)
                                            : source(scalar, type, width, true);
  }
  if (!vector || expected == 1) {
    fail(arg.loc,
         fmt::format("'{}' expects a {} operand", spellOpcode(insn), vector ? "scalar" : "vector"));
    return {};
  }
  Operand elements = vectorOperand(arg, type, width, item);
  if (elements.imm != expected)
    fail(arg.loc, fmt::format("'{}' expects {} elements, but got {}", spellOpcode(insn), expected,
                              elements.imm));
  return elements;
}

/// A plain address, or that of a tensor: its map, and its coordinates as the next operand.
void KernelDecoder::decodeAddress(const ptx::Instruction &insn, const ptx::Arg &arg,
                                  const PatternItem &item, Insn &out, unsigned op) {
  const bool tensor = item.kind == PatternKind::TensorAddr;
  out.op[op] = addressOperand(arg);
  if (tensor != (arg.elements.size() == 2))
    fail(arg.loc, fmt::format("'{}' expects {} address", spellOpcode(insn),
                              tensor ? "a tensor" : "a plain"));
  else if (tensor) {
    PatternItem coordinates;
    coordinates.kind = PatternKind::VecSrc;
    out.op[op + 1] = vectorOperand(arg.elements[1], Type::B32, 4, coordinates);
  }
}

/// Decodes one pattern item; returns the number of arguments it took.
unsigned KernelDecoder::decodeItem(const ptx::Instruction &insn, size_t argument,
                                   const PatternItem &item, const RowMatch &row, Insn &out,
                                   unsigned op) {
  if (item.kind == PatternKind::DstPredPair || item.kind == PatternKind::DstRegPred)
    return decodePair(insn, argument, item, row, out, op);
  const ptx::Arg &arg = insn.args[argument];
  uint8_t width = 0;
  const Type type = hasType(item.kind) ? patternType(insn, item, row, width) : Type::None;
  if (arg.paired)
    fail(arg.loc, fmt::format("'{}' does not accept a pair with '|' here", spellOpcode(insn)));
  if (item.kind == PatternKind::Label)
    out.target = labelOperand(arg);
  else if (item.kind == PatternKind::Addr || item.kind == PatternKind::TensorAddr)
    decodeAddress(insn, arg, item, out, op);
  else if (item.kind == PatternKind::VecSrc || item.kind == PatternKind::VecDst)
    out.op[op] = decodeVector(insn, arg, item, row, type, width);
  else
    out.op[op] = decodeScalar(insn, arg, item, type, width);
  return 1;
}

/// Returns the special register of a name that changes while a warp runs.
static std::optional<Clock> clockOf(std::string_view name) {
  static constexpr std::pair<std::string_view, Clock> clocks[] = {
      {"%clock", Clock::Low},
      {"%clock_hi", Clock::High},
      {"%clock64", Clock::Wide},
      {"%globaltimer", Clock::Nanoseconds},
      {"%globaltimer_lo", Clock::Nanoseconds},
      {"%globaltimer_hi", Clock::NanosecondsHigh}};
  for (const auto &[text, clock] : clocks)
    if (text == name)
      return clock;
  return std::nullopt;
}

Operand KernelDecoder::decodeScalar(const ptx::Instruction &insn, const ptx::Arg &arg,
                                    const PatternItem &item, Type type, uint8_t width) {
  switch (item.kind) {
  case PatternKind::Dst:
    return type == Type::Pred ? destinationPredicate(arg)
                              : destination(arg, type, width, item.wider);
  case PatternKind::DstPred:
    return destinationPredicate(arg);
  case PatternKind::Src:
    return type == Type::Pred ? sourcePredicate(arg) : source(arg, type, width, item.wider);
  case PatternKind::SrcPred:
    return sourcePredicate(arg);
  case PatternKind::Clock: {
    Operand clock;
    clock.kind = OperandKind::Reg;
    const auto which = clockOf(arg.text);
    if (!which)
      fail(arg.loc, fmt::format("unknown register or variable '{}'", arg.text));
    clock.imm = static_cast<int64_t>(*which);
    return clock;
  }
  default: // PatternKind::Imm
    if (arg.kind != ArgKind::Int)
      fail(arg.loc, fmt::format("'{}' expects an integer constant here", spellOpcode(insn)));
    return immediate(arg, Type::B64, 8);
  }
}

unsigned KernelDecoder::decodePair(const ptx::Instruction &insn, size_t argument,
                                   const PatternItem &item, const RowMatch &row, Insn &out,
                                   unsigned op) {
  const ptx::Arg &first = insn.args[argument];
  if (item.kind == PatternKind::DstPredPair) {
    out.op[op] = destinationPredicate(first);
  } else {
    uint8_t width = 0;
    Type type = patternType(insn, item, row, width);
    out.op[op] = destination(first, type, width, item.wider);
  }
  if (!first.paired)
    return 1;
  out.op[op + 1] = destinationPredicate(insn.args[argument + 1]);
  return 2;
}

Operand KernelDecoder::registerOperand(Register &reg, const ptx::Arg &arg, uint8_t width,
                                       bool wider) {
  auto have = static_cast<uint8_t>(bytesOf(reg.type));
  if (reg.type == Type::Pred)
    fail(arg.loc, fmt::format("'{}' is a predicate, but a register of {} bits is expected",
                              arg.text, 8 * width));
  if (wider ? have < width : have != width)
    fail(arg.loc, fmt::format("register '{}' must have {} bits, but got .{}", arg.text, 8 * width,
                              spelling(reg.type)));
  if (reg.offset == ~0u)
    named.push_back({std::string(arg.text), reg.offset = registers.allocate(have), reg.type});
  Operand operand;
  operand.kind = OperandKind::Reg;
  operand.width = have;
  operand.offset = reg.offset;
  return operand;
}

Operand KernelDecoder::destination(const ptx::Arg &arg, Type type, uint8_t width, bool wider) {
  if (arg.kind != ArgKind::Name || arg.negated)
    fail(arg.loc, "the destination must be a register");
  if (arg.text == "_") {
    Operand operand;
    operand.kind = OperandKind::Reg;
    operand.width = width;
    operand.offset = registers.sink();
    return operand;
  }
  Register *reg = findRegister(arg.text);
  if (!reg)
    fail(arg.loc, fmt::format("unknown register '{}'", arg.text));
  return registerOperand(*reg, arg, width, wider);
}

Operand KernelDecoder::destinationPredicate(const ptx::Arg &arg) {
  Operand operand;
  operand.kind = OperandKind::Pred;
  if (arg.kind != ArgKind::Name || arg.negated)
    fail(arg.loc, "the destination must be a predicate");
  if (arg.text == "_") {
    operand.offset = registers.predicateSink();
    return operand;
  }
  return sourcePredicate(arg);
}

Operand KernelDecoder::sourcePredicate(const ptx::Arg &arg) {
  if (arg.kind == ArgKind::Int)
    return constants.predicate(arg.value != 0);
  Register *reg = arg.kind == ArgKind::Name ? findRegister(arg.text) : nullptr;
  Operand operand;
  operand.kind = OperandKind::Pred;
  operand.negated = arg.negated;
  if (!reg && arg.kind == ArgKind::Name && !arg.text.empty() && arg.text[0] == '%') {
    operand.offset = specialOperand(arg, 0).offset;
    return operand;
  }
  if (!reg)
    fail(arg.loc, fmt::format("unknown predicate '{}'", arg.text));
  if (reg->type != Type::Pred)
    fail(arg.loc,
         fmt::format("'{}' must be a predicate, but got .{}", arg.text, spelling(reg->type)));
  if (reg->offset == ~0u)
    named.push_back(
        {std::string(arg.text), reg->offset = registers.allocatePredicate(), reg->type});
  operand.offset = reg->offset;
  return operand;
}

Operand KernelDecoder::source(const ptx::Arg &arg, Type type, uint8_t width, bool wider) {
  if (arg.kind == ArgKind::Int || arg.kind == ArgKind::Float)
    return immediate(arg, type, width);
  if (arg.kind != ArgKind::Name || arg.negated)
    fail(arg.loc, "the operand must be a register, a constant or a variable");
  if (Register *reg = findRegister(arg.text))
    return registerOperand(*reg, arg, width, wider);
  if (const Symbol *symbol = findSymbol(arg.text))
    return symbolOperand(*symbol, arg.value, width);
  if (auto code = module.functionAddress.find(arg.text); code != module.functionAddress.end())
    return constants.get(code->second, width);
  if (arg.text == "WARP_SZ")
    return constants.get(32, width);
  if (arg.text[0] == '%')
    return specialOperand(arg, width);
  fail(arg.loc, fmt::format("unknown register or variable '{}'", arg.text));
}

Operand KernelDecoder::symbolOperand(const Symbol &symbol, uint64_t displacement, uint8_t width) {
  return constants.get(symbol.address + displacement, width, symbol.space == VariableSpace::Shared);
}

Operand KernelDecoder::immediate(const ptx::Arg &arg, Type type, uint8_t width) {
  if (arg.kind == ArgKind::Int) {
    if ((type == Type::F32 || type == Type::F64) && arg.value != 0)
      fail(arg.loc, fmt::format("a .{} constant must be a floating-point number, but got {}",
                                spelling(type), arg.text));
    return constants.get(arg.value, width);
  }
  if (arg.floatBits == 8 * width && (!isFloat(type) || width >= 4))
    return constants.get(arg.value, width);
  double number = arg.floatBits == 32   ? double(std::bit_cast<float>(uint32_t(arg.value)))
                  : arg.floatBits == 64 ? std::bit_cast<double>(arg.value)
                                        : arg.number;
  if (width == 8 && (type == Type::F64 || type == Type::B64))
    return constants.get(std::bit_cast<uint64_t>(number), width);
  if (width == 4 && (type == Type::F32 || type == Type::B32))
    return constants.get(std::bit_cast<uint32_t>(static_cast<float>(number)), width);
  const float once = numerics::stickyFloat(number);
  if (type == Type::F16 || type == Type::BF16)
    return constants.get(type == Type::F16 ? numerics::encodeF16(once) : numerics::encodeBF16(once),
                         width);
  fail(arg.loc,
       fmt::format("a .{} constant must be an integer, but got {}", spelling(type), arg.text));
}

Operand KernelDecoder::addressOperand(const ptx::Arg &arg) {
  if (arg.kind != ArgKind::Address)
    fail(arg.loc, "the operand must be an address in [ ]");
  const ptx::Arg &base = arg.elements[0];
  Operand operand;
  if (base.kind == ArgKind::Int) {
    operand = constants.get(base.value, 8);
  } else if (Register *reg = findRegister(base.text)) {
    if (bytesOf(reg->type) != 4 && bytesOf(reg->type) != 8)
      fail(base.loc, fmt::format("address register '{}' must have 32 or 64 bits, but got .{}",
                                 base.text, spelling(reg->type)));
    operand = registerOperand(*reg, base, static_cast<uint8_t>(bytesOf(reg->type)), false);
  } else if (const Symbol *symbol = findSymbol(base.text)) {
    operand = symbolOperand(*symbol, 0, 8);
  } else {
    fail(base.loc, fmt::format("unknown register or variable '{}'", base.text));
  }
  operand.kind = OperandKind::Address;
  operand.imm = static_cast<int64_t>(arg.value);
  return operand;
}

/// A bare operand is a vector of one.
Operand KernelDecoder::vectorOperand(const ptx::Arg &arg, Type type, uint8_t width,
                                     const PatternItem &item) {
  std::vector<Operand> elements;
  const ptx::Arg *begin = arg.kind == ArgKind::Vector ? arg.elements.data() : &arg;
  size_t count = arg.kind == ArgKind::Vector ? arg.elements.size() : 1;
  if (item.typeSpec == "part") {
    if (arg.kind != ArgKind::Vector || count < 2 || width % count != 0)
      fail(arg.loc, fmt::format("expects a vector that divides {} bits", 8 * width));
    width = static_cast<uint8_t>(width / count);
    type = Type::B8;
  }
  for (size_t i = 0; i < count; ++i) {
    if (type == Type::Pred)
      elements.push_back(sourcePredicate(begin[i]));
    else
      elements.push_back(item.kind == PatternKind::VecDst
                             ? destination(begin[i], type, width, item.wider)
                             : source(begin[i], type, width, item.wider));
  }
  Operand operand;
  operand.kind = OperandKind::Vector;
  operand.offset = static_cast<uint32_t>(kernel.operandPool.size());
  operand.imm = static_cast<int64_t>(count);
  kernel.operandPool.insert(kernel.operandPool.end(), elements.begin(), elements.end());
  return operand;
}

uint32_t KernelDecoder::labelOperand(const ptx::Arg &arg) {
  if (arg.kind == ArgKind::Name)
    for (size_t s = scopes.size(); s-- > 0;) {
      auto found = scopes[s].labels.find(arg.text);
      if (found != scopes[s].labels.end())
        return found->second;
    }
  fail(arg.loc, fmt::format("unknown label '{}'", arg.text));
}

Operand KernelDecoder::specialOperand(const ptx::Arg &arg, uint8_t width) {
  struct Entry {
    std::string_view name;
    uint8_t bytes;
  };
  static constexpr Entry entries[] = {
#define FP4_SPECIAL(Name, text, bytes) {text, bytes},
#include "Sim/Decode/Special.def"
#undef FP4_SPECIAL
  };
  for (uint8_t i = 0; i < std::size(entries); ++i) {
    if (entries[i].name != arg.text)
      continue;
    uint8_t bytes = entries[i].bytes;
    // Extended, or %gridid as it was before it had 64 bits.
    if (bytes != width && !(width == 8 && bytes == 4) && !(width == 4 && bytes == 8))
      fail(arg.loc, fmt::format("special register '{}' has {} bits, but {} are expected", arg.text,
                                8 * bytes, 8 * width));
    auto [use, fresh] = specials.try_emplace(static_cast<uint8_t>(i * 2 + (width == 8)), 0);
    if (fresh) {
      use->second = width ? registers.allocate(width) : registers.allocatePredicate();
      kernel.specials.push_back({static_cast<Special>(i), width, use->second});
    }
    Operand operand;
    operand.kind = width ? OperandKind::Reg : OperandKind::Pred;
    operand.width = width;
    operand.offset = use->second;
    return operand;
  }
  if (const auto refusal = refusalOf(arg.text))
    fail(arg.loc, refusal->message, refusal->note);
  fail(arg.loc, fmt::format("unknown register '{}'", arg.text));
}
