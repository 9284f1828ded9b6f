//===- Linker.cpp - An object file becomes a shared library ---------------===//

#include "HostCode.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

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

/// A file that is removed, by a signal too, unless it is renamed to its final name.
class PendingFile {
public:
  explicit PendingFile(StringRef model) {
    error = sys::fs::createUniqueFile(model, path);
    if (!error)
      sys::RemoveFileOnSignal(path);
  }
  ~PendingFile() {
    if (path.empty() || error)
      return;
    sys::fs::remove(path);
    sys::DontRemoveFileOnSignal(path);
  }
  StringRef name() const { return path; }
  std::error_code error;
  std::error_code commit(StringRef destination) {
    std::error_code result = sys::fs::rename(path, destination);
    if (!result) {
      sys::DontRemoveFileOnSignal(path);
      path.clear();
    }
    return result;
  }

private:
  SmallString<128> path;
};

tl::unexpected<fp4::Error> cannotWrite(StringRef path, std::error_code error) {
  return fp4::makeError(fp4::ErrorKind::Usage,
                        ("cannot write '" + path + "': " + error.message()).str(),
                        "name a file in a directory that exists and is writable");
}

fp4::Status writeFile(StringRef path, ArrayRef<char> bytes) {
  std::error_code error;
  raw_fd_ostream stream(path, error);
  if (error)
    return cannotWrite(path, error);
  stream.write(bytes.data(), bytes.size());
  stream.close();
  error = stream.error();
  stream.clear_error();
  if (error)
    return cannotWrite(path, error);
  return {};
}

} // namespace

fp4::Status fp4::linkSharedLibrary(ArrayRef<char> object, const std::string &path) {
  auto linker = findLinker();
  if (!linker)
    return tl::unexpected<Error>(linker.error());
  PendingFile objectFile(path + "-%%%%%%.o"), library(path + "-%%%%%%.tmp"),
      log(path + "-%%%%%%.log");
  for (const PendingFile *file : {&objectFile, &library, &log})
    if (file->error)
      return cannotWrite(path, file->error);
  FP4_TRY(writeFile(objectFile.name(), object));
  SmallVector<StringRef> command = {linker->path, "-shared"};
  if (linker->isDriver)
    command.push_back("-nostdlib");
  command.append({"-o", library.name(), objectFile.name()});
  std::optional<StringRef> redirects[] = {StringRef(""), log.name(), log.name()};
  std::string message;
  if (sys::ExecuteAndWait(linker->path, command, std::nullopt, redirects, /*SecondsToWait=*/120,
                          /*MemoryLimit=*/0, &message) != 0) {
    if (auto output = MemoryBuffer::getFile(log.name()); output && message.empty())
      message = (*output)->getBuffer().trim().str();
    return makeError(ErrorKind::Compile,
                     "'" + linker->path + "' cannot link the library: " + message,
                     "set PATH so that another linker is found first");
  }
  if (std::error_code error = library.commit(path))
    return cannotWrite(path, error);
  return {};
}
