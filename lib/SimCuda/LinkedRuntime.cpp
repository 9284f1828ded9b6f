//===- LinkedRuntime.cpp - A CUDA runtime inside of a program -------------===//
#include "fp4/SimCuda/LinkedRuntime.h"
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fp4::simcuda {

Expected<std::string> linkedRuntime(const ElfFile &elf, std::span<const std::byte> file,
                                    const std::string &program) {
  if (!elf.section(".nv_fatbin"))
    return "";
  const std::string_view text(reinterpret_cast<const char *>(file.data()), file.size());
  const auto has = [&](std::string_view name) { // the text may be the end of another name
    return text.find(std::string(name) + '\0') != std::string_view::npos;
  };
  for (const std::string &library : elf.neededLibraries())
    if (library.starts_with("libcudart.so."))
      return "";
  if (!has("cudaLaunchKernel"))
    return "";
  if (!elf.section(".strtab"))
    return makeError(ErrorKind::Usage,
                     fmt::format("'{}' has the CUDA runtime linked in statically, and no names of "
                                 "its functions",
                                 program),
                     "link it without stripping it, or with nvcc -cudart=shared");
  return has("cudaGetDeviceProperties_v2") ? "libcudart.so.12" : "libcudart.so.13";
}

OwnFile::OwnFile() {
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  struct stat state{};
  if (file >= 0 && fstat(file, &state) == 0 && state.st_size > 0) {
    const auto size = static_cast<size_t>(state.st_size);
    if (void *at = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0); at != MAP_FAILED)
      mapped = {static_cast<const std::byte *>(at), size};
  }
  if (file >= 0)
    close(file);
}

OwnFile::~OwnFile() {
  if (!mapped.empty())
    munmap(const_cast<std::byte *>(mapped.data()), mapped.size());
}

} // namespace fp4::simcuda
