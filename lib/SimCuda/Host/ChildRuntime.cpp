//===- ChildRuntime.cpp - Programs that a program starts ------------------===//
//
// A script, a make or a test driver starts programs into which nvcc has linked the CUDA runtime.
// fp4-sim run has not seen them, and they name no library. This small library is preloaded into
// each of them, and loads ours beside a linked runtime, whose place ours takes (StaticRuntime.cpp).
//
//===----------------------------------------------------------------------===//
#include "fp4/SimCuda/LinkedRuntime.h"
#include <cstdio>
#include <dlfcn.h>
#include <string>
#include <unistd.h>

using namespace fp4;
using namespace fp4::simcuda;

namespace {

std::string ownFolder() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<void *>(&ownFolder), &info) || !info.dli_fname)
    return "";
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

__attribute__((constructor)) void loadRuntime() {
  const OwnFile file;
  if (!ElfFile::isElf(file.bytes()))
    return;
  const auto elf = ElfFile::open(file.bytes());
  if (!elf)
    return;
  const auto runtime = linkedRuntime(*elf, file.bytes(), program_invocation_name);
  if (!runtime) {
    std::fputs(format(runtime.error()).c_str(), stderr);
    _exit(static_cast<int>(ErrorKind::Usage));
  }
  if (runtime->empty())
    return;
  for (const std::string &library : {std::string("libcuda.so.1"), *runtime})
    if (!dlopen((ownFolder() + library).c_str(), RTLD_NOW | RTLD_GLOBAL))
      std::fprintf(stderr, "fp4-sim: %s\n", dlerror());
}

} // namespace
