//===- Linker.cpp - An object file becomes a shared library ---------------===//

#include "HostCode.h"

#include "fp4/Support/InputFile.h"
#include "fp4/Support/OutputFile.h"
#include "fp4/Support/Process.h"

#include "llvm/Support/Program.h"

#include <cerrno>
#include <csignal>
#include <cstring>

using namespace llvm;

namespace {

struct LinkerCommand {
  std::string path;
  bool isDriver; ///< a compiler driver, to be kept from adding its start files
};

fp4::Expected<LinkerCommand> findLinker() {
  constexpr std::pair<const char *, bool> candidates[] = {
      {"ld.lld-22", false}, {"ld.lld", false}, {"ld", false},
      {"cc", true},         {"clang", true},   {"gcc", true},
  };
  for (auto [name, isDriver] : candidates)
    if (ErrorOr<std::string> path = sys::findProgramByName(name))
      return LinkerCommand{*path, isDriver};
  return fp4::makeError(
      fp4::ErrorKind::Compile,
      "no linker was found: PATH has none of ld.lld-22, ld.lld, ld, cc, clang, gcc",
      "install the package lld-22 or binutils, or run the program without --emit=so");
}

constexpr std::chrono::seconds kLimit{120};

/// Returns true when the temporary folder is on a full disk, which is not the linker's fault.
bool diskIsFull(const fp4::ProcessResult &linker) {
  return linker.code == 128 + SIGXFSZ || linker.code == 128 + SIGBUS ||
         linker.output.find(std::strerror(ENOSPC)) != std::string::npos ||
         linker.output.find(std::strerror(EFBIG)) != std::string::npos;
}

} // namespace

fp4::Status fp4::linkSharedLibrary(ArrayRef<char> object, const std::string &path) {
  FP4_ASSIGN(auto linker, findLinker());
  FP4_TRY(checkDestination(path));
  auto objectFile = TemporaryFile::create("o"), library = TemporaryFile::create("so");
  for (auto *file : {&objectFile, &library})
    if (!*file)
      return tl::unexpected<Error>(file->error());
  FP4_TRY(writeFile((*objectFile)->path(), std::string_view(object.data(), object.size())));
  std::vector<std::string> command = {linker.path, "-shared"};
  if (linker.isDriver)
    command.push_back("-nostdlib");
  command.insert(command.end(), {"-o", (*library)->path(), (*objectFile)->path()});
  FP4_ASSIGN(auto result, runProcess(command, kLimit));
  if (result.code != 0 || result.timedOut)
    return makeError(diskIsFull(result) ? ErrorKind::Usage : ErrorKind::Compile,
                     "linking the library: '" + linker.path + "' " + result.ending(kLimit) + ": " +
                         StringRef(result.output).trim().str(),
                     diskIsFull(result) ? "$TMPDIR must have room for it"
                                        : "set PATH so that another linker is found first");
  FP4_ASSIGN(auto bytes, readBytes((*library)->path()));
  return writeFile(path, bytes);
}
