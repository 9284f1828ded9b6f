//===- Library.cpp - An emitted library as a runner -----------------------===//

#include "fp4/Harness/Library.h"

#include "LoadableElf.h"
#include "fp4/Support/InputFile.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace fp4::harness {

/// dlopen maps what it loads; this reads it first.
static Status checkLibrary(const std::string &path) {
  FP4_ASSIGN(auto bytes, readBytes(path));
  Status checked = checkLoadable(bytes);
  if (!checked)
    return makeError(ErrorKind::Usage,
                     fmt::format("library '{}' is damaged: {}", path, checked.error().message),
                     "copy or emit it again");
  return checked;
}

Expected<Runner> openLibrary(const std::string &path) {
  FP4_TRY(checkLibrary(path));
  // Without a slash dlopen would search the system's folders instead of this one.
  std::string name = path.find('/') == std::string::npos ? "./" + path : path;
  void *handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return makeError(ErrorKind::Usage, fmt::format("cannot load library '{}': {}", path, dlerror()),
                     "it must be a library that fp4-runner --emit=so wrote, for this machine");
  auto *manifest = static_cast<const char *>(dlsym(handle, "fp4_manifest"));
  if (!manifest)
    return makeError(ErrorKind::Usage,
                     fmt::format("library '{}' has no symbol 'fp4_manifest'", path),
                     "it must be a library that fp4-runner --emit=so wrote");
  auto resolve = [handle, path](const std::string &symbol) -> Expected<EntryFunction> {
    if (void *address = dlsym(handle, symbol.c_str()))
      return reinterpret_cast<EntryFunction>(address);
    return makeError(ErrorKind::Usage, fmt::format("library '{}' has no symbol '{}'", path, symbol),
                     "its manifest names a function that it does not contain");
  };
  return Runner::create(manifest, resolve);
}

} // namespace fp4::harness
