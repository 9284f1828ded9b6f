//===- Ptxas.cpp - NVIDIA's assembler as a subprocess ---------------------===//
//
// LLVM's own NVPTX target embeds ptxas too, but hides its report and treats a wrong toolkit path as
// success. Every failure of this subprocess is an Error with a next step.
//
//===----------------------------------------------------------------------===//
#include "fp4/Target/Ptxas.h"

#include "fp4/Support/Host.h"
#include "fp4/Support/InputFile.h"
#include "fp4/Support/OutputFile.h"
#include "fp4/Support/Process.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

#include <algorithm>
#include <optional>

using llvm::StringRef;

namespace fp4 {
namespace {

constexpr char kInstall[] =
    "install ptxas (CUDA 12.9 or newer) with 'pip install fp4[ptxas]', or name one with $FP4_PTXAS "
    "or the ptxas option, or ask for PTX: the simulator and the CUDA driver need no ptxas";

/// Places of ptxas in the wheels of NVIDIA, beside the wheels of fp4, whose libraries lie in
/// fp4/lib.
constexpr const char *kWheels[] = {"../../nvidia/cu13/bin/ptxas",
                                   "../../nvidia/cuda_nvcc/bin/ptxas"};

/// The error of `result`, to return from a function with another value type.
template <typename T> tl::unexpected<Error> failureOf(const Expected<T> &result) {
  return tl::unexpected<Error>(result.error());
}

/// Seconds that ptxas may take: $FP4_PTXAS_TIMEOUT, or five minutes.
Expected<std::chrono::milliseconds> timeLimit() {
  auto text = llvm::sys::Process::GetEnv("FP4_PTXAS_TIMEOUT");
  double seconds = 300;
  if (text && !text->empty() &&
      (StringRef(*text).getAsDouble(seconds) || !(seconds > 0 && seconds < 1e6)))
    return makeError(ErrorKind::Usage,
                     "$FP4_PTXAS_TIMEOUT must be a number of seconds, but got '" + *text + "'");
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

/// Runs `command` and collects what it prints; a program that does not run, or not end, is an
/// Error.
Expected<ProcessResult> execute(const std::vector<std::string> &command,
                                std::chrono::milliseconds most = std::chrono::hours(24)) {
  auto limit = timeLimit();
  if (!limit)
    return failureOf(limit);
  Expected<ProcessResult> result = runProcess(command, std::min(*limit, most));
  if (!result)
    return makeError(ErrorKind::Compile, result.error().message, kInstall);
  if (result->timedOut)
    return makeError(ErrorKind::Compile,
                     "ptxas ('" + command.front() + "') " + result->ending(std::min(*limit, most)) +
                         " and was killed",
                     "$FP4_PTXAS_TIMEOUT gives it more seconds, $FP4_PTXAS names another");
  return result;
}

/// The value in place of a path with which nothing is assembled.
constexpr const char *kNoPtxas = "none";

/// The path that the user named; no other path is tried then.
std::optional<std::string> named(std::string_view explicitPath) {
  if (!explicitPath.empty())
    return std::string(explicitPath);
  if (auto named = llvm::sys::Process::GetEnv("FP4_PTXAS"); named && !named->empty())
    return *named;
  return std::nullopt;
}

/// Tries the candidates in order if no path was named.
Expected<std::string> locate() {
  if (auto onPath = llvm::sys::findProgramByName("ptxas"))
    return *onPath;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"}) {
    auto root = llvm::sys::Process::GetEnv(variable);
    if (!root)
      continue;
    llvm::SmallString<128> candidate(*root);
    llvm::sys::path::append(candidate, "bin", "ptxas");
    if (llvm::sys::fs::can_execute(candidate))
      return candidate.str().str();
  }
  const std::string folder = codeFolder();
  for (const char *wheel : kWheels) {
    llvm::SmallString<128> candidate(folder);
    llvm::sys::path::append(candidate, wheel);
    if (!folder.empty() && llvm::sys::fs::can_execute(candidate))
      return candidate.str().str();
  }
  return makeError(ErrorKind::Compile,
                   "ptxas was not found in $FP4_PTXAS, PATH, $CUDA_HOME, $CUDA_PATH, $CUDA_ROOT or "
                   "the wheel nvidia-cuda-nvcc",
                   kInstall);
}

} // namespace

bool Ptxas::isNamed(std::string_view explicitPath) {
  return named(explicitPath).value_or(kNoPtxas) != kNoPtxas;
}

Expected<Ptxas> Ptxas::find(std::string_view explicitPath) {
  const std::optional<std::string> given = named(explicitPath);
  if (given == kNoPtxas)
    return makeError(ErrorKind::Compile, "ptxas is 'none', but cubins expect one",
                     "name one with $FP4_PTXAS or the ptxas option, or ask for PTX");
  Expected<std::string> path = given ? Expected<std::string>(*given) : locate();
  if (!path)
    return failureOf(path);
  if (!llvm::sys::fs::can_execute(*path))
    return makeError(given ? ErrorKind::Usage : ErrorKind::Compile,
                     "ptxas must be an executable file, but got '" + *path + "'", kInstall);
  Expected<ProcessResult> outcome = execute({*path, "--version"}, std::chrono::seconds(30));
  if (!outcome)
    return failureOf(outcome);
  Expected<CudaVersion> version = parsePtxasVersion(outcome->output);
  if (!version)
    return makeError(version.error().kind, version.error().message, kInstall);
  return Ptxas(std::move(*path), *version);
}

Status Ptxas::supports(std::string_view chip, std::string_view features) const {
  CudaVersion needed = requiredCuda(features);
  if (version_ >= needed)
    return {};
  return makeError(ErrorKind::Compile,
                   "target " + std::string(chip) + " needs ptxas of CUDA " + needed.str() +
                       " or newer, but got " + version_.str() + " ('" + path_ + "')",
                   kInstall);
}

/// The error of an assembly. Mistakes that ptxas found in the PTX are fp4's; otherwise ptxas could
/// not work at all.
static tl::unexpected<Error> refusal(const ProcessResult &outcome, const std::string &path,
                                     std::string_view chip, std::string_view ptx) {
  if (outcome.output.find("; error") != std::string::npos)
    return makeError(ErrorKind::Compile,
                     "ptxas rejects the kernel for " + std::string(chip) + ": " +
                         explainPtxasErrors(outcome.output, ptx),
                     "this is a mistake of the compiler; keep the PTX with dump-dir and report it");
  const std::string said = explainPtxasErrors(outcome.output, ptx);
  return makeError(ErrorKind::Compile,
                   "ptxas ('" + path + "') " + outcome.ending({}) + (said.empty() ? "" : ": ") +
                       said,
                   "check that it runs and that $TMPDIR has room; or ask for PTX");
}

Expected<Assembly> Ptxas::assemble(std::string_view ptx, std::string_view chip) const {
  auto source = TemporaryFile::create("ptx");
  if (!source)
    return failureOf(source);
  auto cubin = TemporaryFile::create("cubin");
  if (!cubin)
    return failureOf(cubin);
  FP4_TRY(writeFile((*source)->path(), ptx));
  std::vector<std::string> command = {path_,           "-v", "-arch=" + std::string(chip),
                                      (*source)->path(), "-o", (*cubin)->path()};
  if (ptx.find("\t.loc\t") != ptx.npos) // lines that the explorer asked for; they change no code
    command.push_back("-lineinfo");
  Expected<ProcessResult> outcome = execute(command);
  if (!outcome)
    return failureOf(outcome);
  if (outcome->code != 0)
    return refusal(*outcome, path_, chip, ptx);
  auto bytes = readText((*cubin)->path());
  if (!bytes)
    return failureOf(bytes);
  Assembly assembly;
  assembly.cubin = std::move(*bytes);
  assembly.kernels = parsePtxasReport(outcome->output);
  assembly.warnings = parsePtxasWarnings(outcome->output);
  if (assembly.cubin.empty())
    return makeError(ErrorKind::Compile, "ptxas succeeded, but left no cubin: " + outcome->output);
  return assembly;
}

} // namespace fp4
