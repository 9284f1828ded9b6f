//===- Check.cpp - fp4-sim check ------------------------------------------===//
#include "Check.h"
#include "fp4/Sim/Foresee.h"
#include "fp4/SimCuda/ElfFile.h"
#include "fp4/SimCuda/Fatbin.h"
#include "fp4/Support/InputFile.h"
#include "fp4/Support/OutputFile.h"
#include <cstdio>
#include <fmt/format.h>
#include <set>

using namespace fp4;
using namespace fp4::simcuda;

/// Prints a line of the list at once: errors that follow on stderr come behind it.
template <typename... Arguments>
static Status say(fmt::format_string<Arguments...> text, Arguments &&...arguments) {
  return writeStandardOutput(fmt::format(text, std::forward<Arguments>(arguments)...), "list");
}

static std::string describe(const sim::KernelInfo &kernel) {
  std::string text =
      fmt::format("  {}: {} instructions, {} bytes of parameters, {} bytes of static shared memory",
                  kernel.name, kernel.instructions, kernel.paramBytes, kernel.staticSharedBytes);
  if (kernel.requiredCta[0])
    text += fmt::format(", CTAs of {}x{}x{}", kernel.requiredCta[0], kernel.requiredCta[1],
                        kernel.requiredCta[2]);
  if (kernel.requiredCluster[0])
    text += fmt::format(", clusters of {}x{}x{}", kernel.requiredCluster[0],
                        kernel.requiredCluster[1], kernel.requiredCluster[2]);
  return text + "\n";
}

/// Prints errors about one kind of instruction once.
static Status printRefusals(const sim::RefusedKernel &refused) {
  FP4_TRY(say("  {}: cannot run, {} instructions are not known\n", refused.name,
              refused.errors.size()));
  std::set<std::string> said;
  for (const Error &error : refused.errors) {
    size_t place = error.message.find(": ");
    if (!said.insert(error.message.substr(std::min(place, error.message.size()))).second)
      continue;
    std::fputs(format(error).c_str(), stderr);
  }
  return {};
}

/// Reports instructions that `chip`, or without one the target of the text, cannot run.
static Status checkTarget(const std::string &ptx, const sim::Program &program,
                          const std::string &chip) {
  if (!chip.empty() && !runsOn(program.target(), chip))
    return makeError(ErrorKind::Device, fmt::format("{}: has PTX for {}, but not for {}",
                                                    program.name(), program.target(), chip));
  const hw::TargetModel *target = hw::lookupTarget(chip.empty() ? program.target() : chip);
  if (!target) // sm_90, sm_100f: no device of fp4
    return {};
  const std::vector<Error> errors = sim::foresee(ptx, program, *target);
  for (const Error &error : errors)
    std::fputs(format(error).c_str(), stderr);
  if (errors.empty())
    return {};
  return makeError(ErrorKind::Simulation,
                   fmt::format("{}: {} cannot run all of it", program.name(), target->name));
}

static Status checkText(const std::string &ptx, const std::string &name, const std::string &chip) {
  FP4_ASSIGN(auto program, sim::Program::parseAvailable(ptx, name));
  const auto &refused = program->refused();
  FP4_TRY(say("{}: PTX {} for {}, {} kernels\n", name, program->ptxVersion(), program->target(),
              program->kernels().size() + refused.size()));
  for (const sim::KernelInfo &kernel : program->kernels())
    FP4_TRY(say("{}", describe(kernel)));
  for (const sim::RefusedKernel &kernel : refused)
    FP4_TRY(printRefusals(kernel));
  if (!refused.empty())
    return makeError(ErrorKind::Simulation,
                     fmt::format("{}: {} of {} kernels cannot run", name, refused.size(),
                                 program->kernels().size() + refused.size()));
  return checkTarget(ptx, *program, chip);
}

/// Checks the texts of one fat binary: that for `chip`, or all.
static Status checkFatbin(const std::vector<FatbinEntry> &entries, const std::string &name,
                          const std::string &chip) {
  if (!chip.empty()) {
    auto chosen = choosePtx(entries, chip);
    if (!chosen)
      return makeError(chosen.error().kind, fmt::format("{}: {}", name, chosen.error().message),
                       chosen.error().note);
    return checkText((*chosen)->ptx, fmt::format("{}.{}.ptx", name, (*chosen)->target), chip);
  }
  Status result;
  for (const FatbinEntry &entry : entries) {
    if (entry.kind == EntryKind::Cubin)
      FP4_TRY(say("{}: machine code for sm_{}, which the simulator does not run\n", name,
                  entry.architecture));
    if (entry.kind != EntryKind::Ptx)
      continue;
    Status checked = checkText(entry.ptx, fmt::format("{}.{}.ptx", name, entry.target), chip);
    if (!checked)
      result = std::move(checked);
  }
  return result;
}

Status fp4::harness::checkFile(const std::string &path, const std::string &chip) {
  FP4_ASSIGN(auto bytes, readBytes(path));
  auto fatbins = readFatbins(bytes);
  if (!fatbins)
    return makeError(fatbins.error().kind, fmt::format("{}: {}", path, fatbins.error().message));
  if (fatbins->empty() && ElfFile::isElf(bytes))
    return makeError(ErrorKind::Usage, fmt::format("{}: an ELF file without a fat binary", path),
                     "expects a program or library that nvcc linked");
  if (fatbins->empty())
    return checkText(std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size()), path,
                     chip);
  Status result;
  for (size_t i = 0; i < fatbins->size(); ++i)
    if (Status checked = checkFatbin((*fatbins)[i], fmt::format("{}.{}", path, i), chip); !checked)
      result = std::move(checked);
  return result;
}
