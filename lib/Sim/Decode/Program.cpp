//===- Program.cpp - Program::parse ---------------------------------------===//
#include "fp4/Sim/Program.h"
#include "Sim/Decode/Decoder.h"
#include "Sim/PTX/Parser.h"
#include <algorithm>
#include <fmt/format.h>

using namespace fp4;
using namespace fp4::sim;

Program::Program() : implementation(std::make_unique<ProgramImpl>()) {}
Program::~Program() = default;

/// The qualified name at the start of a mangled one: "a::b" of "_ZN1a1bIfE...". Names as long as
/// CUTLASS' are too much for the C++ library.
static std::string qualifiedName(std::string_view mangled) {
  std::string name;
  bool nested = mangled.substr(0, 3) == "_ZN";
  size_t at = nested ? 3 : 2;
  while (at < mangled.size() && mangled[at] >= '1' && mangled[at] <= '9') {
    size_t length = 0;
    for (; at < mangled.size() && mangled[at] >= '0' && mangled[at] <= '9' && length < 1000; ++at)
      length = length * 10 + static_cast<size_t>(mangled[at] - '0');
    if (length > mangled.size() - at)
      return "";
    name += (name.empty() ? "" : "::") + std::string(mangled.substr(at, length));
    at += length;
    if (!nested)
      break;
  }
  return name.empty() || at == mangled.size() ? "" : mangled[at] == 'I' ? name + "<...>" : name;
}

/// The ends of a name that generators make hundreds of characters long.
static std::string shortened(std::string name) {
  constexpr size_t longest = 100, kept = 80, keptEnd = 16;
  if (name.size() > longest)
    name.replace(kept, name.size() - kept - keptEnd, "...");
  return name;
}

std::string fp4::sim::displayName(std::string_view kernel) {
  std::string name(kernel);
  if (kernel.substr(0, 2) != "_Z")
    return shortened(std::move(name));
  std::string qualified = qualifiedName(kernel);
  return shortened(qualified.empty() ? name : qualified);
}

const std::string &Program::name() const { return implementation->name; }
const std::vector<KernelInfo> &Program::kernels() const { return implementation->infos; }
const std::string &Program::ptxVersion() const { return implementation->version; }
const std::string &Program::target() const { return implementation->target; }

const std::vector<RefusedKernel> &Program::refused() const { return implementation->refused; }

std::vector<VariableInfo> Program::variables() const {
  std::vector<VariableInfo> result;
  for (const ModuleVariable &v : implementation->variables)
    result.push_back({v.name, v.address, v.size, v.readOnly});
  return result;
}

const KernelInfo *Program::findKernel(std::string_view name) const {
  const Kernel *kernel = implementation->find(name);
  return kernel ? &kernel->info : nullptr;
}

const Kernel *ProgramImpl::find(std::string_view kernel) const {
  for (const auto &candidate : kernels)
    if (candidate->info.name == kernel)
      return candidate.get();
  return nullptr;
}

std::string_view ProgramImpl::sourceLine(uint32_t line) const {
  std::string_view rest = text;
  for (uint32_t i = 1; i < line && !rest.empty(); ++i) {
    size_t end = rest.find('\n');
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  rest = rest.substr(0, rest.find('\n'));
  while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\t'))
    rest.remove_prefix(1);
  while (!rest.empty() && (rest.back() == ' ' || rest.back() == '\t' || rest.back() == '\r'))
    rest.remove_suffix(1);
  return rest;
}

std::string ProgramImpl::shownLine(uint32_t line) const {
  constexpr ptrdiff_t manyCommas = 8;
  std::string shown(sourceLine(line));
  for (size_t open = shown.find('{'); open != std::string::npos; open = shown.find('{', open + 1)) {
    const size_t close = shown.find('}', open);
    if (close == std::string::npos)
      break;
    const auto begin = shown.begin() + ptrdiff_t(open), end = shown.begin() + ptrdiff_t(close);
    if (std::count(begin, end, ',') <= manyCommas)
      continue;
    const size_t second = shown.find(',', open) + 1, last = shown.rfind(',', close) + 1;
    shown.replace(second, last - second, " ...,");
  }
  return shown;
}

static Error located(const ProgramImpl &program, DecodeError error) {
  return Error{
      ErrorKind::Simulation,
      fmt::format("{}:{}:{}: {}", program.name, error.loc.line, error.loc.column, error.message),
      std::move(error.note)};
}

/// Throws the first error, unless `errors` collects them: then a kernel with errors is left out.
static void decodeKernel(const ptx::Function &function, const ptx::Module &module,
                         const ModuleSymbols &symbols, ProgramImpl &program,
                         std::vector<DecodeError> *errors) {
  auto kernel = std::make_unique<Kernel>();
  kernel->info.name = function.name;
  kernel->info.line = function.loc.line;
  std::copy(std::begin(function.requiredCta), std::end(function.requiredCta),
            kernel->info.requiredCta.begin());
  std::copy(std::begin(function.maximumCta), std::end(function.maximumCta),
            kernel->info.maximumCta.begin());
  std::copy(std::begin(function.requiredCluster), std::end(function.requiredCluster),
            kernel->info.requiredCluster.begin());
  kernel->info.blocksAreClusters = function.blocksAreClusters;
  kernel->info.maximumCluster = function.maximumCluster;
  kernel->info.maximumRegisters = function.maximumRegisters;
  kernel->info.minimumCtasPerSm = function.minimumCtasPerSm;
  KernelDecoder(function, module.variables, symbols, *kernel).run(errors);
  if (errors && !errors->empty())
    return;
  program.infos.push_back(kernel->info);
  program.kernels.push_back(std::move(kernel));
}

/// A kernel that may fail on its own.
static void tryKernel(const ptx::Function &function, const ptx::Module &module,
                      const ModuleSymbols &symbols, ProgramImpl &program) {
  std::vector<DecodeError> errors;
  try {
    decodeKernel(function, module, symbols, program, &errors);
  } catch (DecodeError &error) {
    errors.push_back(std::move(error));
  }
  if (errors.empty())
    return;
  RefusedKernel refused{std::string(function.name), {}};
  for (DecodeError &error : errors)
    refused.errors.push_back(located(program, std::move(error)));
  program.refused.push_back(std::move(refused));
}

Expected<std::shared_ptr<const Program>> Program::parseAs(std::string_view ptx, std::string name,
                                                          bool partly) {
  std::shared_ptr<Program> program(new Program());
  ProgramImpl &impl = *program->implementation;
  impl.name = std::move(name);
  impl.text = ptx;
  FP4_ASSIGN(auto module, ptx::parse(impl.text, impl.name));
  ptx::link(module);
  impl.version = module.version;
  impl.target = module.target;
  impl.files = module.files;
  try {
    ModuleSymbols symbols = placeModuleVariables(module, impl);
    for (const ptx::Function &function : module.functions) {
      if (!function.isEntry || !function.hasBody)
        continue;
      if (partly)
        tryKernel(function, module, symbols, impl);
      else
        decodeKernel(function, module, symbols, impl, nullptr);
    }
  } catch (DecodeError &error) {
    return tl::unexpected<Error>(located(impl, std::move(error)));
  }
  return program;
}

Expected<std::shared_ptr<const Program>> Program::parse(std::string_view ptx, std::string name) {
  return parseAs(ptx, std::move(name), false);
}

Expected<std::shared_ptr<const Program>> Program::parseAvailable(std::string_view ptx,
                                                                 std::string name) {
  return parseAs(ptx, std::move(name), true);
}
