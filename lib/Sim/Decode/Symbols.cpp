//===- Symbols.cpp - Variables, parameters, constants and registers -------===//
//
// Names of a module get their places here: module variables a device address, shared and local
// variables an offset per kernel, immediates a slot in the constant bank.
//
//===----------------------------------------------------------------------===//
#include "Sim/Decode/AddressSpace.h"
#include "Sim/Decode/Decoder.h"
#include <algorithm>
#include <atomic>
#include <bit>
#include <charconv>
#include <cstring>
#include <fmt/format.h>

using namespace fp4::sim;

static uint64_t alignUp(uint64_t value, uint64_t align) {
  return (value + align - 1) / align * align;
}

static Type variableType(const ptx::Variable &variable) {
  Type type = typeFromSpelling(variable.type);
  if (type == Type::None || type == Type::Pred)
    throw DecodeError{
        variable.loc,
        fmt::format("variable '{}' has the unknown type '.{}'", variable.name, variable.type), "",
        false};
  return type;
}

uint64_t fp4::sim::variableBytes(const ptx::Variable &variable) {
  if (variable.unsized && variable.initial.empty())
    return 0;
  // More than kernels have, and an image of it fits into the host: what follows may add, multiply
  // and allocate without a thought.
  uint64_t limit = variable.space == "global" ? 1ull << 30 : 1ull << 24;
  uint64_t unit = uint64_t(variable.vector) * bytesOf(variableType(variable));
  if (variable.count > limit / unit)
    throw DecodeError{variable.loc,
                      fmt::format("variable '{}' in .{} must have at most {} bytes", variable.name,
                                  variable.space, limit),
                      "", false};
  return variable.count * unit;
}

uint32_t fp4::sim::variableAlign(const ptx::Variable &variable) {
  uint32_t align =
      variable.align ? variable.align : variable.vector * bytesOf(variableType(variable));
  if (!std::has_single_bit(align))
    throw DecodeError{
        variable.loc,
        fmt::format("alignment of '{}' must be a power of two, but got {}", variable.name, align),
        "", false};
  return align;
}

//===----------------------------------------------------------------------===//
// Module variables
//===----------------------------------------------------------------------===//

/// Device addresses of module variables: above everything GlobalMemory::allocate hands out, never
/// reused, so that one program can be loaded in many simulators.
static uint64_t reserveModuleAddress(uint64_t bytes) {
  static std::atomic<uint64_t> next{0x5000'0000'0000};
  return next.fetch_add(alignUp(bytes, 4096) + 4096);
}

static uint64_t initializerBits(const ptx::Initializer &element, Type type,
                                const ModuleSymbols &symbols) {
  if (!element.symbol.empty()) {
    auto function = symbols.functionAddress.find(element.symbol);
    if (function != symbols.functionAddress.end())
      return function->second;
    auto found = symbols.placed.find(element.symbol);
    if (found == symbols.placed.end())
      throw DecodeError{element.loc,
                        fmt::format("unknown variable '{}' in an initialiser", element.symbol), "",
                        false};
    return found->second.address + element.value;
  }
  if (!element.isFloat)
    return element.value;
  double number = element.floatBits == 32   ? double(std::bit_cast<float>(uint32_t(element.value)))
                  : element.floatBits == 64 ? std::bit_cast<double>(element.value)
                                            : element.number;
  return bitsOf(type) == 64 ? std::bit_cast<uint64_t>(number)
                            : uint64_t(std::bit_cast<uint32_t>(static_cast<float>(number)));
}

/// The most bytes that variables of a module have together: images of them fit into the host.
static constexpr uint64_t kMaxModuleBytes = 1ull << 31;

static void checkModuleBytes(const ptx::Module &module) {
  uint64_t total = 0;
  for (const ptx::Variable &variable : module.variables) {
    total += variable.isExtern ? 0 : variableBytes(variable);
    if (total > kMaxModuleBytes)
      throw DecodeError{variable.loc,
                        fmt::format("variables at module scope must have at most {} bytes together, "
                                    "but have {} up to '{}'",
                                    kMaxModuleBytes, total, variable.name),
                        "", false};
  }
}

static ModuleVariable placeModuleVariable(const ptx::Variable &variable) {
  if (variable.space != "global" && variable.space != "const")
    throw DecodeError{variable.loc,
                      fmt::format("variable '{}' at module scope must be .global, "
                                  ".const or .shared, but got .{}",
                                  variable.name, variable.space),
                      "", false};
  if (variable.isExtern)
    throw DecodeError{
        variable.loc,
        fmt::format(".extern variable '{}' is not defined in this module", variable.name), "",
        false};
  ModuleVariable placed;
  placed.name = variable.name;
  placed.size = variableBytes(variable);
  if (placed.size == 0)
    throw DecodeError{variable.loc,
                      fmt::format("variable '{}' at module scope must have at least one element, "
                                  "but got none",
                                  variable.name),
                      "give it a size or an initialiser; ptxas refuses it too", false};
  placed.readOnly = variable.space == "const";
  placed.address = reserveModuleAddress(placed.size);
  placed.initial.resize(placed.size);
  return placed;
}

static void initialize(ModuleVariable &placed, const ptx::Variable &variable,
                       const ModuleSymbols &symbols) {
  Type type = variableType(variable);
  unsigned bytes = bytesOf(type);
  if (variable.initial.size() * bytes > placed.initial.size())
    throw DecodeError{variable.loc,
                      fmt::format("'{}' has {} elements, but {} initialisers", variable.name,
                                  placed.initial.size() / bytes, variable.initial.size()),
                      "", false};
  for (size_t i = 0; i < variable.initial.size(); ++i) {
    uint64_t bits = initializerBits(variable.initial[i], type, symbols);
    std::memcpy(placed.initial.data() + i * bytes, &bits, std::min(bytes, 8u));
  }
}

ModuleSymbols fp4::sim::placeModuleVariables(const ptx::Module &module, ProgramImpl &program) {
  ModuleSymbols symbols;
  collectFunctions(module, symbols);
  checkModuleBytes(module);
  std::vector<const ptx::Variable *> variables; // in the order of program.variables
  for (const ptx::Variable &variable : module.variables) {
    if (variable.space == "shared")
      continue;
    ModuleVariable placed = placeModuleVariable(variable);
    symbols.placed[variable.name] = {placed.readOnly ? VariableSpace::Const : VariableSpace::Global,
                                     placed.address};
    program.variables.push_back(std::move(placed));
    variables.push_back(&variable);
  }
  for (size_t v = 0; v < variables.size();
       ++v) // after placing: an initialiser may name any of them
    initialize(program.variables[v], *variables[v], symbols);
  return symbols;
}

//===----------------------------------------------------------------------===//
// Constants and registers
//===----------------------------------------------------------------------===//

Operand ConstantPool::get(uint64_t value, uint8_t width, bool rankRelative) {
  Operand operand;
  operand.kind = OperandKind::Reg;
  operand.bank = kConstBank;
  operand.width = width;
  operand.imm = static_cast<int64_t>(value);
  if (width < 8)
    value &= (1ull << (8 * width)) - 1;
  auto [entry, fresh] = known.try_emplace({value, width, rankRelative}, 0);
  if (fresh) {
    uint32_t offset = static_cast<uint32_t>(alignUp(kernel.constants.size(), 64));
    kernel.constants.resize(offset + 32u * width);
    for (unsigned lane = 0; lane < 32; ++lane)
      std::memcpy(kernel.constants.data() + offset + lane * width, &value,
                  std::min<size_t>(width, 8));
    entry->second = offset;
    if (rankRelative)
      kernel.rankFixups.push_back({offset, width});
  }
  operand.offset = entry->second;
  return operand;
}

Operand ConstantPool::predicate(bool value) {
  // One lane of a 4-byte constant is the whole mask.
  Operand operand = get(value ? ~0u : 0u, 4);
  operand.kind = OperandKind::Pred;
  operand.width = 0;
  operand.imm = value;
  return operand;
}

uint32_t RegisterFile::allocate(uint8_t width) {
  uint32_t offset = static_cast<uint32_t>(alignUp(kernel.registerBytes, 64));
  kernel.registerBytes = offset + 32u * width;
  return offset;
}

uint32_t RegisterFile::allocatePredicate() {
  if (predicateNext == predicateEnd) {
    predicateNext = allocate(2); // sixteen masks of 4 bytes
    predicateEnd = predicateNext + 64;
  }
  uint32_t offset = predicateNext;
  predicateNext += 4;
  return offset;
}

uint32_t RegisterFile::sink() {
  if (sinkOffset == ~0u)
    sinkOffset = allocate(16);
  return sinkOffset;
}

uint32_t RegisterFile::predicateSink() {
  if (predicateSinkOffset == ~0u)
    predicateSinkOffset = allocatePredicate();
  return predicateSinkOffset;
}

void RegisterFile::finish() {
  kernel.registerBytes = static_cast<uint32_t>(alignUp(kernel.registerBytes, 64));
}

//===----------------------------------------------------------------------===//
// Variables of a kernel
//===----------------------------------------------------------------------===//

// More than any target has, for all variables together: addresses have 32 bits (PTX ISA, "Kernel
// Function Parameter Attributes"; CUDA Programming Guide, "Compute Capabilities").
static constexpr uint64_t kMaxParamBytes = 32764, kMaxSharedBytes = 1 << 24,
                          kMaxLocalBytes = 512 << 10;

void KernelDecoder::placeParameters() {
  uint64_t offset = 0;
  for (const ptx::Variable &param : function->params) {
    uint32_t align = variableAlign(param);
    offset = alignUp(offset, align);
    auto size = static_cast<uint32_t>(variableBytes(param));
    kernel.info.params.push_back(
        {std::string(param.name), static_cast<uint32_t>(offset), size, align});
    scopes.back().symbols[param.name] = {VariableSpace::Param, offset};
    offset += size;
  }
  if (offset > kMaxParamBytes)
    fail(function->loc, fmt::format("parameters of '{}' must have at most {} bytes, but got {}",
                                    function->name, kMaxParamBytes, offset));
  kernel.info.paramBytes = static_cast<uint32_t>(offset);
}

uint64_t KernelDecoder::allocateLocal(const ptx::Variable &variable) {
  uint64_t align = variableAlign(variable);
  uint64_t offset = (kernel.info.localBytes + align - 1) / align * align;
  const uint64_t end = offset + variableBytes(variable);
  if (end > kMaxLocalBytes)
    fail(variable.loc,
         fmt::format("local variables must have at most {} bytes per thread, but got {} with '{}'",
                     kMaxLocalBytes, end, variable.name));
  kernel.info.localBytes = static_cast<uint32_t>(end);
  return offset;
}

static bool mentions(const ptx::Arg &arg, std::string_view name) {
  if (arg.kind == ptx::ArgKind::Name && arg.text == name)
    return true;
  for (const ptx::Arg &element : arg.elements)
    if (mentions(element, name))
      return true;
  return false;
}

static bool mentions(const ptx::Function &function, std::string_view name) {
  for (const ptx::Instruction &insn : function.instructions)
    for (const ptx::Arg &arg : insn.args)
      if (mentions(arg, name))
        return true;
  return false;
}

/// The name that the source gives a variable: "full" of "_ZZ4gemmILi1EEvPfE4full". Names of
/// templates are too much for the C++ library.
static std::string sourceName(std::string_view symbol) {
  if (!symbol.starts_with("_ZZ"))
    return displayName(symbol);
  for (size_t at = symbol.find('E'); at != symbol.npos; at = symbol.find('E', at + 1)) {
    size_t length = 0;
    const char *end = symbol.data() + symbol.size();
    const auto [name, failed] = std::from_chars(symbol.data() + at + 1, end, length);
    if (failed == std::errc() && length && length <= size_t(end - name) &&
        (name + length == end || name[length] == '_')) // of several in one function
      return std::string(name, length);
  }
  return std::string(symbol);
}

/// Adds the name of a shared variable: that of the source, unless another has it.
void KernelDecoder::nameShared(const ptx::Variable &variable, uint64_t end) {
  std::string name = sourceName(variable.name);
  if (std::ranges::find(kernel.sharedNames, name, &SharedName::name) != kernel.sharedNames.end())
    name = variable.name;
  kernel.sharedNames.push_back({std::move(name), static_cast<uint32_t>(kSharedBase + end)});
}

std::string Kernel::sharedSymbol(uint32_t offset) const {
  const SharedName *found = nullptr;
  for (const SharedName &name : sharedNames)
    if (name.offset <= offset && (!found || name.offset > found->offset))
      found = &name;
  if (!found)
    return "";
  return offset == found->offset ? found->name
                                 : fmt::format("{}+{}", found->name, offset - found->offset);
}

/// Reports of missing fences name the registers of a wgmma, and the debugger names all.
void KernelDecoder::keepRegisterNames() {
  kernel.registerNames = std::move(named);
  std::ranges::sort(kernel.registerNames, {}, &RegisterName::offset);
}

std::string Kernel::registerName(uint32_t offset) const {
  const auto after = std::ranges::upper_bound(registerNames, offset, {}, &RegisterName::offset);
  return after == registerNames.begin() ? "" : std::prev(after)->name;
}

/// The shared variables of the kernel and its callees, and those at module scope that these name.
std::vector<std::pair<const ptx::Variable *, bool>> KernelDecoder::sharedVariables() const {
  std::vector<std::pair<const ptx::Variable *, bool>> found; // variable, at module scope
  std::vector<const ptx::Function *> bodies = callees;
  bodies.insert(bodies.begin(), function);
  for (const ptx::Variable &variable : moduleVariables)
    if (variable.space == "shared" && std::any_of(bodies.begin(), bodies.end(), [&](auto *body) {
          return mentions(*body, variable.name);
        }))
      found.emplace_back(&variable, true);
  for (const ptx::Function *body : bodies)
    for (const ptx::Variable &variable : body->variables)
      if (variable.space == "shared")
        found.emplace_back(&variable, false);
  return found;
}

/// All shared variables, before any instruction: statics in order of declaration, then the dynamic
/// block, which every .extern variable names.
void KernelDecoder::placeShared() {
  uint64_t end = 0;
  uint64_t dynamicAlign = 16;
  const auto found = sharedVariables();
  for (auto [variable, atModule] : found) {
    if (!variable->initial.empty())
      fail(variable->loc,
           fmt::format("shared variable '{}' must not have an initialiser", variable->name));
    if (variable->isExtern || variable->unsized) {
      dynamicAlign = std::max<uint64_t>(dynamicAlign, variableAlign(*variable));
      continue;
    }
    end = alignUp(end, variableAlign(*variable));
    sharedSymbols[variable] = {VariableSpace::Shared, kSharedBase + end};
    nameShared(*variable, end);
    end += variableBytes(*variable);
    if (end > kMaxSharedBytes)
      fail(variable->loc,
           fmt::format("shared variables must have at most {} bytes, but got {} with '{}'",
                       kMaxSharedBytes, end, variable->name));
  }
  kernel.sharedBytes = static_cast<uint32_t>(end);
  kernel.dynamicSharedOffset = static_cast<uint32_t>(alignUp(end, dynamicAlign));
  for (auto [variable, atModule] : found) {
    if (!sharedSymbols.contains(variable))
      nameShared(*variable, kernel.dynamicSharedOffset);
    sharedSymbols.try_emplace(
        variable, Symbol{VariableSpace::Shared, kSharedBase + kernel.dynamicSharedOffset});
    if (atModule)
      moduleShared[variable->name] = sharedSymbols[variable];
  }
  kernel.info.staticSharedBytes = kernel.sharedBytes;
}

void KernelDecoder::declare(const ptx::Variable &variable) {
  Symbol symbol;
  if (variable.space == "shared") {
    symbol = sharedSymbols.at(&variable);
  } else if (variable.space == "local") {
    symbol = {VariableSpace::Local, allocateLocal(variable)};
  } else if (variable.space == "param") {
    symbol = {VariableSpace::Param, kFunctionParams + allocateLocal(variable)};
  } else {
    fail(variable.loc,
         fmt::format("variable '{}' in a function must be .shared, .local or .param, but got .{}",
                     variable.name, variable.space));
  }
  scopes.back().symbols[variable.name] = symbol;
}

void KernelDecoder::declare(const ptx::RegisterDecl &decl) {
  Type type = typeFromSpelling(decl.type);
  if (type == Type::None)
    fail(decl.loc, fmt::format("register '{}' has the unknown type '.{}'", decl.name, decl.type));
  const NameScope &scope = scopes.back(); // the parameters' too
  if (scope.registers.contains(decl.name) || scope.symbols.contains(decl.name))
    fail(decl.loc,
         fmt::format("duplicate definition of '{}': a register must not have the name of a "
                     "parameter, variable or register of its scope",
                     decl.name));
  if (decl.count)
    scopes.back().ranges[decl.name] = {decl.count, type};
  else
    scopes.back().registers[decl.name] = {type, ~0u};
}

/// Innermost scope first; %r12 also matches .reg %r<13>.
Register *KernelDecoder::findRegister(std::string_view name) {
  size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9')
    --digits;
  std::string_view prefix = name.substr(0, digits), number = name.substr(digits);
  bool canonical = !number.empty() && number.size() < 9 && (number.size() == 1 || number[0] != '0');
  for (size_t s = scopes.size(); s-- > 0;) {
    auto exact = scopes[s].registers.find(name);
    if (exact != scopes[s].registers.end())
      return &exact->second;
    if (!canonical)
      continue;
    auto range = scopes[s].ranges.find(prefix);
    if (range == scopes[s].ranges.end())
      continue;
    if (std::stoul(std::string(number)) < range->second.first)
      return &(scopes[s].registers[name] = {range->second.second, ~0u});
  }
  return nullptr;
}

const Symbol *KernelDecoder::findSymbol(std::string_view name) {
  for (size_t s = scopes.size(); s-- > 0;) {
    auto found = scopes[s].symbols.find(name);
    if (found != scopes[s].symbols.end())
      return &found->second;
  }
  auto shared = moduleShared.find(name);
  if (shared != moduleShared.end())
    return &shared->second;
  auto placed = module.placed.find(name);
  return placed == module.placed.end() ? nullptr : &placed->second;
}
