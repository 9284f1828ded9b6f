//===- Ptxas.cpp - NVIDIA's assembler as a subprocess ---------------------===//
//
// LLVM's own NVPTX target embeds ptxas too, but hides its report and treats a wrong toolkit path as
// success; hence this subprocess, whose every failure is an Error with the next thing to try.
//
//===----------------------------------------------------------------------===//
#include "fp4/Target/Ptxas.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <memory>
#include <optional>

using llvm::StringRef;

namespace fp4 {
namespace {

constexpr char kInstall[] =
    "install ptxas (CUDA 12.9 or newer) and name it with $FP4_PTXAS or the ptxas option, or ask "
    "for PTX: the simulator and the CUDA driver need no ptxas";

/// The error of `result`, to return from a function with another value type.
template <typename T> tl::unexpected<Error> failureOf(const Expected<T> &result) {
  return tl::unexpected<Error>(result.error());
}

/// A file name below the system's temporary directory, removed with this object or when a signal
/// ends the process.
class TemporaryFile {
public:
  static Expected<std::unique_ptr<TemporaryFile>> create(StringRef suffix) {
    llvm::SmallString<128> path;
    if (std::error_code ec = llvm::sys::fs::createTemporaryFile("fp4", suffix, path))
      return makeError(ErrorKind::Compile, "cannot create a temporary file: " + ec.message(),
                       "check that $TMPDIR is writable");
    return std::unique_ptr<TemporaryFile>(new TemporaryFile(path));
  }
  ~TemporaryFile() { llvm::sys::DontRemoveFileOnSignal(path_); }
  StringRef path() const { return path_; }
  Status write(std::string_view text) const {
    std::error_code ec;
    llvm::raw_fd_ostream stream(path_, ec);
    if (!ec) {
      stream << text;
      stream.close();
      ec = stream.error();
      stream.clear_error();
    }
    if (ec)
      return makeError(ErrorKind::Compile,
                       "cannot write '" + path_.str().str() + "': " + ec.message());
    return {};
  }

  std::string read() const {
    auto buffer = llvm::MemoryBuffer::getFile(path_);
    return buffer ? (*buffer)->getBuffer().str() : std::string();
  }

private:
  explicit TemporaryFile(const llvm::SmallString<128> &path) : path_(path), remover_(path) {
    llvm::sys::RemoveFileOnSignal(path_);
  }
  llvm::SmallString<128> path_;
  llvm::FileRemover remover_;
};

struct Outcome {
  int status = 0;     ///< exit status; negative when the program did not run
  std::string output; ///< stdout and stderr together
};

/// Runs `program` and collects what it prints.
Expected<Outcome> execute(const std::string &program, llvm::ArrayRef<StringRef> arguments) {
  auto log = TemporaryFile::create("log");
  if (!log)
    return failureOf(log);
  llvm::SmallVector<StringRef> line = {program};
  line.append(arguments.begin(), arguments.end());
  std::optional<StringRef> redirects[] = {StringRef(""), (*log)->path(), (*log)->path()};
  std::string message;
  Outcome outcome;
  outcome.status = llvm::sys::ExecuteAndWait(program, line, std::nullopt, redirects,
                                             /*SecondsToWait=*/600, /*MemoryLimit=*/0, &message);
  outcome.output = (*log)->read();
  if (outcome.status < 0)
    return makeError(ErrorKind::Compile, "cannot run '" + program + "': " + message, kInstall);
  return outcome;
}

/// The candidates in order; a path that the user named stands alone.
Expected<std::string> locate(std::string_view explicitPath) {
  if (!explicitPath.empty())
    return std::string(explicitPath);
  if (auto named = llvm::sys::Process::GetEnv("FP4_PTXAS"); named && !named->empty())
    return *named;
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
  return makeError(ErrorKind::Compile,
                   "ptxas was not found in $FP4_PTXAS, PATH, $CUDA_HOME, $CUDA_PATH or $CUDA_ROOT",
                   kInstall);
}

} // namespace

Expected<Ptxas> Ptxas::find(std::string_view explicitPath) {
  Expected<std::string> path = locate(explicitPath);
  if (!path)
    return failureOf(path);
  if (!llvm::sys::fs::can_execute(*path))
    return makeError(ErrorKind::Compile,
                     "ptxas must be an executable file, but got '" + *path + "'", kInstall);
  Expected<Outcome> outcome = execute(*path, {"--version"});
  if (!outcome)
    return failureOf(outcome);
  Expected<CudaVersion> version = parsePtxasVersion(outcome->output);
  if (!version)
    return failureOf(version);
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

Expected<Assembly> Ptxas::assemble(std::string_view ptx, std::string_view chip) const {
  auto source = TemporaryFile::create("ptx");
  if (!source)
    return failureOf(source);
  auto cubin = TemporaryFile::create("cubin");
  if (!cubin)
    return failureOf(cubin);
  FP4_TRY((*source)->write(ptx));
  std::string arch = "-arch=" + std::string(chip);
  Expected<Outcome> outcome =
      execute(path_, {"-v", arch, (*source)->path(), "-o", (*cubin)->path()});
  if (!outcome)
    return failureOf(outcome);
  if (outcome->status != 0)
    return makeError(ErrorKind::Compile,
                     "ptxas rejects the kernel for " + std::string(chip) + ": " +
                         explainPtxasErrors(outcome->output, ptx),
                     "this is a mistake of the compiler; keep the PTX with dump-dir and report it");
  Assembly assembly;
  assembly.cubin = (*cubin)->read();
  assembly.kernels = parsePtxasReport(outcome->output);
  assembly.warnings = parsePtxasWarnings(outcome->output);
  if (assembly.cubin.empty())
    return makeError(ErrorKind::Compile, "ptxas succeeded, but left no cubin: " + outcome->output);
  return assembly;
}

} // namespace fp4
