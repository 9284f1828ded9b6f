//===- Program.cpp - Host code and what it says about itself --------------===//

#include "fp4/Program/Program.h"

#include "LoadableElf.h"
#include "fp4/Support/InputFile.h"
#include "fp4/Support/SharedLibrary.h"

#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <string_view>

namespace fp4 {
namespace {

/// Reads a library before dlopen maps it, and returns a hash of its contents.
Expected<size_t> checkLibrary(const std::string &path) {
  FP4_ASSIGN(auto bytes, readBytes(path));
  Status checked = checkLoadable(bytes);
  if (!checked)
    return makeError(ErrorKind::Usage,
                     fmt::format("library '{}' is damaged: {}", path, checked.error().message),
                     "copy or emit it again");
  return std::hash<std::string_view>()(
      {reinterpret_cast<const char *>(bytes.data()), bytes.size()});
}

/// Maps a library. dlopen finds what it mapped before by the name alone, so a file that has changed
/// since then is refused: its functions would be those of the old one.
Expected<SharedLibrary> openLibrary(const std::string &path, size_t contents) {
  static std::mutex mutex;
  static auto &mapped = *new std::map<std::string, size_t>; // contents by absolute names
  std::error_code failed;
  // A name without a slash would make dlopen search the system's folders, and a relative one is
  // another file in another working directory.
  std::string name = std::filesystem::canonical(path, failed).string();
  if (failed)
    return makeError(ErrorKind::Usage,
                     fmt::format("cannot load library '{}': {}", path, failed.message()));
  std::scoped_lock lock(mutex);
  auto before = mapped.find(name);
  if (before != mapped.end() && before->second != contents)
    return makeError(ErrorKind::Usage,
                     fmt::format("library '{}' was loaded before with other contents", path),
                     "a library stays loaded until the process ends: save this one under another "
                     "name");
  SharedLibrary library(name);
  if (!library)
    return makeError(ErrorKind::Usage,
                     fmt::format("cannot load library '{}': {}", path, library.error()),
                     "it must be a library that fp4-runner --emit=so wrote, for this machine");
  mapped.emplace(std::move(name), contents);
  return library;
}

/// Binds a library. Libraries without `fp4_bind`, which can be written by hand, use the functions
/// that this process exports.
Status bindRuntime(const SharedLibrary &library, const std::string &path) {
  auto bindLibrary = reinterpret_cast<fp4_bind_function>(library.find("fp4_bind"));
  if (!bindLibrary || bindLibrary(fp4rt_get_api()) == 0)
    return {};
  return makeError(
      ErrorKind::Usage,
      fmt::format("library '{}' calls functions that this runtime does not have", path),
      "use the fp4 version that emitted it, or a later one");
}

} // namespace

Expected<std::shared_ptr<const Program>> Program::load(const std::string &path) {
  FP4_ASSIGN(auto contents, checkLibrary(path));
  FP4_ASSIGN(auto library, openLibrary(path, contents));
  FP4_TRY(bindRuntime(library, path));
  auto *manifest = static_cast<const char *>(library.find("fp4_manifest"));
  if (!manifest)
    return makeError(ErrorKind::Usage,
                     fmt::format("library '{}' has no symbol 'fp4_manifest'", path),
                     "it must be a library that fp4-runner --emit=so wrote");
  return create(manifest, [library, path](const std::string &symbol) -> Expected<void *> {
    if (void *address = library.find(symbol.c_str()))
      return address;
    return makeError(ErrorKind::Usage, fmt::format("library '{}' has no symbol '{}'", path, symbol),
                     "its manifest names a function that it does not contain");
  });
}

Expected<std::shared_ptr<const Program>> Program::create(std::string manifest, Resolver resolver) {
  std::shared_ptr<Program> program(new Program);
  FP4_ASSIGN(program->manifest_, harness::Manifest::parse(manifest));
  program->text_ = std::move(manifest);
  program->resolver_ = std::move(resolver);
  return std::shared_ptr<const Program>(std::move(program));
}

} // namespace fp4
