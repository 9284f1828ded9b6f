//===- ContextModules.cpp - Fat binaries, kernels and variables -----------===//
#include "Context.h"
#include "fp4/SimCuda/ElfFile.h"
#include "fp4/Support/InputFile.h"
#include "fp4/Support/OutputFile.h"
#include <algorithm>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>

using namespace fp4;
using namespace fp4::simcuda;

Module *Context::addModule(std::span<const std::byte> fatbin, const void *origin) {
  std::lock_guard guard(lock);
  auto module = std::make_unique<Module>();
  module->name = fmt::format("{}.{}.ptx", programName, modulesMade++);
  module->fatbin = fatbin;
  module->origin = origin;
  modules.push_back(std::move(module));
  return modules.back().get();
}

Module *Context::addModule(std::string ptx) {
  Module *module = addModule(std::span<const std::byte>{});
  module->ptx = std::move(ptx);
  return module;
}

Module *Context::addMachineCode() {
  Module *module = addModule(std::span<const std::byte>{});
  module->decoded = true;
  module->error = Error{ErrorKind::Device, "is machine code, not PTX",
                        "the simulator runs PTX: load a fat binary that has some, or name a folder "
                        "that has the PTX of the kernels: --ptx-dir"};
  return module;
}

void Context::removeModule(Module *module) {
  std::lock_guard guard(lock);
  for (auto *table : {&hostFunctions, &handles})
    std::erase_if(*table, [&](const auto &entry) { return entry.second->module == module; });
  std::erase_if(hostVariables, [&](const auto &entry) { return entry.second.module == module; });
  std::erase_if(managedVariables, [&](const auto &entry) { return entry.second.module == module; });
  std::erase_if(modules, [&](const auto &entry) { return entry.get() == module; });
}

bool Context::isLoaded(const Module *module) const {
  std::lock_guard guard(lock);
  return std::ranges::any_of(modules, [&](const auto &entry) { return entry.get() == module; });
}

/// Returns the PTX that nvcc -rdc=true left in the object file that has `origin`: that of each
/// source file, one behind the other. Empty when there is none.
static Expected<std::string> relocatablePtx(const void *origin, std::string_view target) {
  Dl_info object{};
  if (!origin || !dladdr(origin, &object) || !object.dli_fname)
    return std::string();
  auto bytes = readBytes(object.dli_fname);
  if (!bytes)
    bytes = readBytes("/proc/self/exe");
  auto elf = bytes ? ElfFile::open(*bytes) : makeError(ErrorKind::Usage, "no file");
  const auto section = elf ? elf->section("__nv_relfatbin") : std::nullopt;
  if (!section)
    return std::string();
  FP4_ASSIGN(auto containers, readFatbins(*section));
  std::string text;
  for (const auto &entries : containers) {
    auto chosen = choosePtx(entries, target);
    if (!chosen)
      return makeError(ErrorKind::Device,
                       "was linked by nvcc -rdc=true and " + chosen.error().message,
                       fmt::format("compile with nvcc -rdc=true -gencode "
                                   "arch=compute_{0},code=[compute_{0},sm_{0}]",
                                   target.substr(3)));
    text += (*chosen)->ptx + "\n";
  }
  return text;
}

/// The text of a fat binary that a driver for the chip would compile.
Status Context::choose(Module &module) const {
  FP4_ASSIGN(auto entries, readFatbin(module.fatbin));
  auto chosen = choosePtx(entries, currentChip->target);
  if (chosen) {
    module.ptx = (*chosen)->ptx;
    return {};
  }
  FP4_ASSIGN(auto linked, relocatablePtx(module.origin, currentChip->target));
  if (linked.empty())
    return tl::unexpected<Error>(std::move(chosen.error()));
  module.ptx = std::move(linked);
  return {};
}

/// The program runs on where a file for people cannot be written; fp4-sim does not end with 0.
void Context::dump(const Module &module) const {
  const std::filesystem::path name = std::filesystem::path(module.name).filename();
  Status written = writeFile(std::filesystem::path(dumpDirectory) / name, module.ptx);
  if (written)
    return;
  printError("FP4_SIM_DUMP_PTX", written.error());
  reportLine("lost");
}

Expected<std::shared_ptr<const sim::Program>> Context::load(Module &module) {
  if (module.ptx.empty())
    FP4_TRY(choose(module));
  if (!dumpDirectory.empty())
    dump(module);
  auto program = sim::Program::parseAvailable(module.ptx, module.name);
  if (!program)
    return program;
  if (!runsOn((*program)->target(), currentChip->target))
    return makeError(ErrorKind::Device, fmt::format("has PTX for {}, but the device is {}",
                                                    (*program)->target(), currentChip->target));
  FP4_TRY(simulator->load(**program));
  return program;
}

Status Context::decode(Module &module) {
  std::lock_guard guard(lock);
  if (!module.decoded) {
    module.decoded = true;
    auto program = load(module);
    if (program)
      module.program = std::move(*program);
    else
      module.error = std::move(program.error());
  }
  if (!module.program)
    return tl::unexpected<Error>(module.error);
  return {};
}

Expected<Module *> Context::moduleWith(Module &module, std::string_view kernel) {
  std::lock_guard guard(lock);
  Status decoded = decode(module);
  if (decoded)
    return &module;
  Error error = std::move(decoded.error());
  if (!ptxFolder || error.kind != ErrorKind::Device)
    return tl::unexpected<Error>(std::move(error));
  auto file = ptxFolder->fileOf(kernel, currentChip->target);
  if (!file)
    return makeError(ErrorKind::Device, error.message + "; " + file.error().message, error.note);
  Module *&found = folderModules[*file];
  if (!found) {
    FP4_ASSIGN(auto bytes, readBytes(*file));
    found = addModule(std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
    found->name = *file;
  }
  FP4_TRY(decode(*found));
  return found;
}

Function *Context::findFunction(Module &module, std::string_view name) {
  std::lock_guard guard(lock);
  auto found = module.functions.find(name);
  if (found != module.functions.end())
    return found->second.get();
  auto function = std::make_unique<Function>();
  function->module = &module;
  function->name = name;
  Function *result = function.get();
  module.functions.emplace(std::string(name), std::move(function));
  handles[result] = result;
  return result;
}

tl::expected<const sim::KernelInfo *, Code> Context::kernelOf(const char *function,
                                                              Function &kernel) {
  std::lock_guard guard(lock);
  auto found = moduleWith(*kernel.module, kernel.name);
  if (!found) {
    bool device = found.error().kind == ErrorKind::Device;
    Error error = found.error();
    error.message = fmt::format("the module of kernel '{}' {}{}", kernel.name,
                                device ? "" : "cannot be loaded: ", error.message);
    if (!device)
      reportLine("fault");
    return tl::unexpected(fail(function, device ? NoKernelImageForDevice : InvalidPtx, error));
  }
  kernel.code = *found;
  if (const sim::KernelInfo *info = kernel.code->program->findKernel(kernel.name))
    return info;
  for (const sim::RefusedKernel &refused : kernel.code->program->refused())
    if (refused.name == kernel.name) {
      Error first = refused.errors.front();
      if (refused.errors.size() > 1)
        first.note += fmt::format("{}{} more instructions of this kernel are not known; "
                                  "'fp4-sim check' lists them",
                                  first.note.empty() ? "" : "; ", refused.errors.size() - 1);
      reportLine("fault");
      return tl::unexpected(fail(function, NotSupported, first));
    }
  return tl::unexpected(
      fail(function, InvalidDeviceFunction,
           fmt::format("the PTX for {} has no kernel '{}'", currentChip->target, kernel.name)));
}

Expected<sim::VariableInfo> Context::findVariable(Module &module, std::string_view name) {
  std::lock_guard guard(lock);
  FP4_TRY(decode(module));
  for (sim::VariableInfo &variable : module.program->variables())
    if (variable.name == name)
      return std::move(variable);
  return makeError(ErrorKind::Usage, fmt::format("the PTX has no variable '{}'", name));
}

//===----------------------------------------------------------------------===//
// Host shadows
//===----------------------------------------------------------------------===//

void Context::registerFunction(const void *hostFunction, Module *module, std::string_view name) {
  std::lock_guard guard(lock);
  hostFunctions[hostFunction] = findFunction(*module, name);
}

void Context::registerVariable(const void *hostVariable, Module *module, std::string_view name) {
  std::lock_guard guard(lock);
  hostVariables[hostVariable] = {module, std::string(name)};
}

Function *Context::resolve(const void *function) {
  std::lock_guard guard(lock);
  for (const auto *table : {&hostFunctions, &handles}) {
    auto found = table->find(function);
    if (found != table->end())
      return found->second;
  }
  return nullptr;
}

const Symbol *Context::findSymbol(const void *hostVariable) const {
  std::lock_guard guard(lock);
  auto found = hostVariables.find(hostVariable);
  return found == hostVariables.end() ? nullptr : &found->second;
}
