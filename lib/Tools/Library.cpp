//===- Library.cpp - An emitted library as an engine ----------------------===//

#include "fp4/Tools/Library.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <fstream>
#include <unistd.h>

namespace fp4::tools {

/// Whether the file has all bytes that its program headers name. dlopen maps them unseen, and dies
/// by a signal where the file has been cut. What is no 64-bit ELF file is left to dlopen to refuse.
static bool isWhole(const std::string &path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  uint64_t size = file ? static_cast<uint64_t>(file.tellg()) : 0;
  Elf64_Ehdr header;
  auto read = [&](uint64_t offset, auto &into) {
    return offset <= size && sizeof(into) <= size - offset &&
           file.seekg(static_cast<std::streamoff>(offset)) &&
           file.read(reinterpret_cast<char *>(&into), sizeof(into));
  };
  if (!read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr))
    return true;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read(header.e_phoff + i * sizeof(segment), segment))
      return false;
    if (segment.p_type == PT_LOAD &&
        (segment.p_offset > size || segment.p_filesz > size - segment.p_offset))
      return false;
  }
  return true;
}

Expected<Engine> openLibrary(const std::string &path) {
  if (access(path.c_str(), R_OK) != 0)
    return makeError(ErrorKind::Usage,
                     fmt::format("cannot open library '{}': {}", path, std::strerror(errno)));
  if (!isWhole(path))
    return makeError(ErrorKind::Usage,
                     fmt::format("library '{}' must be whole, but it is cut", path),
                     "copy or emit it again");
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
  return Engine::create(manifest, resolve);
}

} // namespace fp4::tools
