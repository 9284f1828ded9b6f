//===- Functions.cpp - Decoding device functions and calls ----------------===//
//
// The functions that a kernel may call are known before its body is decoded: those that its calls
// name, and for a call by pointer all functions whose address the module takes.
//
//===----------------------------------------------------------------------===//
#include "Sim/Decode/AddressSpace.h"
#include "Sim/Decode/Decoder.h"
#include "Sim/Decode/Handlers.h"
#include <algorithm>
#include <fmt/format.h>
#include <set>

using namespace fp4::sim;
using ptx::ArgKind;

const ptx::Arg *fp4::sim::calleeOf(const ptx::Instruction &insn) {
  for (const ptx::Arg &arg : insn.args)
    if (arg.kind != ArgKind::Parens)
      return arg.kind == ArgKind::Name ? &arg : nullptr;
  return nullptr;
}

/// Every function named in `arg` but `called`.
static void addNames(const ptx::Arg &arg, const ptx::Arg *called,
                     std::set<std::string_view> &names) {
  if (arg.kind == ArgKind::Name && &arg != called)
    names.insert(arg.text);
  for (const ptx::Arg &element : arg.elements)
    addNames(element, called, names);
}

void fp4::sim::collectFunctions(const ptx::Module &module, ModuleSymbols &symbols) {
  std::set<std::string_view> names;
  for (const ptx::Function &function : module.functions) {
    for (const ptx::Instruction &insn : function.instructions)
      for (const ptx::Arg &arg : insn.args)
        addNames(arg, insn.opcode == "call" ? calleeOf(insn) : nullptr, names);
    if (function.isEntry || !function.hasBody)
      continue;
    symbols.functionAddress[function.name] = kCodeWindow + 16 * (symbols.functions.size() + 1);
    symbols.functions[function.name] = &function;
  }
  for (const ptx::Variable &variable : module.variables)
    for (const ptx::Initializer &element : variable.initial)
      if (!element.symbol.empty())
        names.insert(element.symbol);
  for (const ptx::Function &function : module.functions)
    if (symbols.functions.contains(function.name) && function.hasBody &&
        names.contains(function.name))
      symbols.addressTaken.push_back(&function);
}

//===----------------------------------------------------------------------===//
// Functions of a kernel and places of their variables
//===----------------------------------------------------------------------===//

void KernelDecoder::addCallee(const ptx::Function &callee) {
  auto [entry, fresh] = calleeIndex.try_emplace(callee.name, static_cast<int32_t>(callees.size()));
  if (!fresh)
    return;
  callees.push_back(&callee);
  DeviceFunction placed;
  placed.name = callee.name;
  placed.address = module.functionAddress.at(callee.name);
  placed.returnTo = registers.allocate(4);
  placed.inside = registers.allocatePredicate();
  for (const ptx::Variable &param : callee.params)
    placed.params.push_back(placeFormal(param));
  for (const ptx::Variable &result : callee.results)
    placed.results.push_back(placeFormal(result));
  kernel.functions.push_back(std::move(placed));
}

void KernelDecoder::collectCallees() {
  auto add = [&](const ptx::Function &body) {
    for (const ptx::Instruction &insn : body.instructions) {
      const ptx::Arg *callee = insn.opcode == "call" ? calleeOf(insn) : nullptr;
      if (!callee)
        continue;
      auto known = module.functions.find(callee->text);
      if (known != module.functions.end())
        addCallee(*known->second);
      else if (!findBuiltin(callee->text))
        for (const ptx::Function *candidate : module.addressTaken)
          addCallee(*candidate);
    }
  };
  add(*function);
  for (size_t i = 0; i < callees.size(); ++i)
    add(*callees[i]);
}

ArgumentPlace KernelDecoder::placeFormal(const ptx::Variable &variable) {
  ArgumentPlace place;
  place.bytes = static_cast<uint32_t>(variableBytes(variable));
  if (variable.space == "param") {
    place.offset = static_cast<uint32_t>(allocateLocal(variable));
    return place;
  }
  if (variable.count * variable.vector != 1)
    fail(variable.loc,
         fmt::format("'{}' in .reg must be one register, but is an array", variable.name));
  place.value.kind = OperandKind::Reg;
  place.value.width = static_cast<uint8_t>(place.bytes);
  place.value.offset = registers.allocate(place.value.width);
  return place;
}

/// The names of the parameters of the function whose body begins.
void KernelDecoder::placeFormals() {
  auto name = [&](const std::vector<ptx::Variable> &variables,
                  const std::vector<ArgumentPlace> &places) {
    for (size_t i = 0; i < variables.size(); ++i) {
      const ptx::Variable &variable = variables[i];
      if (variable.space == "param")
        scopes.back().symbols[variable.name] = {VariableSpace::Param,
                                                kFunctionParams + places[i].offset};
      else
        scopes.back().registers[variable.name] = {typeFromSpelling(variable.type),
                                                  places[i].value.offset};
    }
  };
  name(function->params, current->params);
  name(function->results, current->results);
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

/// A .param variable of the caller, a register or a constant.
ArgumentPlace KernelDecoder::actual(const ptx::Arg &arg, const ArgumentPlace *formal, bool result) {
  ArgumentPlace place;
  place.bytes = formal ? formal->bytes : 8;
  const Symbol *symbol = arg.kind == ArgKind::Name ? findSymbol(arg.text) : nullptr;
  if (symbol && symbol->space == VariableSpace::Param && symbol->address >= kFunctionParams) {
    place.offset = static_cast<uint32_t>(symbol->address - kFunctionParams);
    place.bytes = kernel.info.localBytes - place.offset;
    if (formal)
      place.bytes = std::min(place.bytes, formal->bytes);
    return place;
  }
  Register *reg = arg.kind == ArgKind::Name ? findRegister(arg.text) : nullptr;
  if (!reg && (result || arg.kind != ArgKind::Int))
    fail(arg.loc, "an argument of a call must be a .param variable or a register");
  auto width = static_cast<uint8_t>(reg ? bytesOf(reg->type) : std::min(place.bytes, 8u));
  place.value = reg ? registerOperand(*reg, arg, width, false) : constants.get(arg.value, width);
  place.bytes = width;
  return place;
}

std::vector<ArgumentPlace> KernelDecoder::actuals(const ptx::Arg *list,
                                                  const std::vector<ArgumentPlace> *formals,
                                                  bool results) {
  std::vector<ArgumentPlace> places;
  for (size_t i = 0; list && i < list->elements.size(); ++i)
    places.push_back(actual(list->elements[i],
                            formals && i < formals->size() ? &(*formals)[i] : nullptr, results));
  return places;
}

/// call[.uni] [(results),] function [, (arguments)] [, prototype]
void KernelDecoder::decodeCall(const ptx::Instruction &insn, Insn &out) {
  if (insn.modifiers.size() > 1 || (insn.modifiers.size() == 1 && insn.modifiers[0] != "uni"))
    fail(insn.loc, fmt::format("'{}' expects no modifier but .uni", spellOpcode(insn)));
  const ptx::Arg *callee = calleeOf(insn);
  if (!callee)
    fail(insn.loc, "'call' expects a function");
  const ptx::Arg *results = nullptr, *arguments = nullptr;
  for (const ptx::Arg &arg : insn.args)
    if (arg.kind == ArgKind::Parens)
      (&arg < callee ? results : arguments) = &arg;
  CallSite site;
  const DeviceFunction *known = nullptr;
  if (auto found = calleeIndex.find(callee->text);
      found != calleeIndex.end() && module.functions.contains(callee->text)) {
    site.function = found->second;
    known = &kernel.functions[static_cast<size_t>(found->second)];
    out.handler = callFunction;
  } else if (Register *pointer = findRegister(callee->text)) {
    site.pointer = registerOperand(*pointer, *callee, 8, false);
    out.handler = callPointer;
  } else if (Builtin builtin = findBuiltin(callee->text)) {
    site.builtin = builtin;
    out.handler = callBuiltin;
  } else {
    fail(callee->loc, fmt::format("function '{}' is not defined in this module", callee->text),
         fmt::format("the simulator provides {}", builtinNames()));
  }
  site.results = actuals(results, known ? &known->results : nullptr, true);
  site.arguments = actuals(arguments, known ? &known->params : nullptr, false);
  if (known && (site.arguments.size() != known->params.size() ||
                site.results.size() != known->results.size()))
    fail(insn.loc, fmt::format("'{}' expects {} arguments and {} results, but got {} and {}",
                               known->name, known->params.size(), known->results.size(),
                               site.arguments.size(), site.results.size()));
  out.make<CallModifiers>({static_cast<uint32_t>(kernel.callSites.size())});
  kernel.callSites.push_back(std::move(site));
}

void KernelDecoder::decodeReturn(const ptx::Instruction &, Insn &out) {
  out.handler = returnFromFunction;
  out.flow = Flow::Next;
  out.make<ReturnModifiers>({static_cast<uint32_t>(current - kernel.functions.data())});
}

/// brx.idx[.uni] index, targets;
void KernelDecoder::decodeBranchTable(const ptx::Instruction &insn, Insn &out) {
  if (insn.modifiers.empty() || insn.modifiers[0] != "idx" || insn.args.size() != 2)
    fail(insn.loc, "expects 'brx.idx index, targets'");
  auto list = std::find_if(function->targetLists.begin(), function->targetLists.end(),
                           [&](const auto &l) { return l.name == insn.args[1].text; });
  if (list == function->targetLists.end())
    fail(insn.args[1].loc, fmt::format("unknown list of branch targets '{}'", insn.args[1].text));
  out.handler = branchByIndex;
  out.poison = PoisonRule::Jump;
  out.op[0] = source(insn.args[0], Type::U32, 4, false);
  out.op[1].imm = static_cast<int64_t>(list->labels.size());
  out.make<BranchTableModifiers>({static_cast<uint32_t>(kernel.branchTargets.size())});
  for (std::string_view label : list->labels) {
    ptx::Arg name;
    name.loc = list->loc;
    name.text = label;
    kernel.branchTargets.push_back(labelOperand(name));
  }
}
