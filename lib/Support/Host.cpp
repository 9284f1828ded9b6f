//===- Host.cpp - Facts about this machine and this program ---------------===//
#include "fp4/Support/Host.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <unistd.h>
#ifdef __aarch64__
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace fp4 {

std::string codeFolder() {
  Dl_info found = {};
  if (!dladdr(reinterpret_cast<void *>(&codeFolder), &found) || !found.dli_fname)
    return {};
  const std::filesystem::path file(found.dli_fname);
  return file.is_absolute() ? file.parent_path().string() : std::string();
}

std::vector<std::string> toolkitFolders() {
  std::vector<std::string> folders;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"})
    if (const char *root = std::getenv(variable); root && *root)
      folders.push_back(std::string(root) + "/bin");
  std::error_code failed;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
  for (const std::string &base : {codeFolder(), program.parent_path().string()})
    for (const char *place :
         {"/../toolchain", "/../../nvidia/cu13/bin", "/../../nvidia/cuda_nvcc/bin"})
      if (!base.empty())
        folders.push_back(base + place);
  return folders;
}

uint64_t hostMemoryBytes() {
  return uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGE_SIZE));
}

bool hasArmByteDots() {
#ifdef __aarch64__
  return getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
#else
  return false;
#endif
}

} // namespace fp4
