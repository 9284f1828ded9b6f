//===- StaticRuntime.cpp - In place of a runtime that is linked in --------===//
//
// nvcc links the CUDA runtime statically unless it is told otherwise. Such a program names no
// library that we could stand for, but its symbol table names the functions. Before it starts, each
// of them begins with a jump to ours; the runtime that it carries never runs. A program without a
// symbol table is refused.
//
//===----------------------------------------------------------------------===//
#include "EntryPoint.h"
#include "fp4/SimCuda/LinkedRuntime.h"
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace fp4;
using namespace fp4::simcuda;

namespace {

struct NamedFunction {
  uint64_t offset = 0; ///< bytes from the address at which the program was loaded
  std::string name;
};

/// The functions of the program, in order of their places.
std::vector<NamedFunction> functionsOf(const ElfFile &elf) {
  std::vector<NamedFunction> functions;
  const auto symbols = elf.section(".symtab"), names = elf.section(".strtab");
  for (size_t at = 0; symbols && names && at + sizeof(Elf64_Sym) <= symbols->size();
       at += sizeof(Elf64_Sym)) {
    Elf64_Sym symbol;
    std::memcpy(&symbol, symbols->data() + at, sizeof symbol);
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF ||
        symbol.st_name >= names->size())
      continue;
    const auto *name = reinterpret_cast<const char *>(names->data()) + symbol.st_name;
    const size_t length = strnlen(name, names->size() - symbol.st_name);
    functions.push_back({symbol.st_value, std::string(name, length)});
  }
  std::ranges::sort(functions, {}, &NamedFunction::offset);
  return functions;
}

/// jmp *(%rip), and the address behind it.
constexpr unsigned char jump[] = {0xFF, 0x25, 0, 0, 0, 0};
constexpr size_t jumpBytes = sizeof jump + sizeof(void *);

/// The thread sanitizer has no place to note what happens to code.
__attribute__((no_sanitize("thread"))) bool writeJump(std::byte *from, void *to) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t begin = reinterpret_cast<uint64_t>(from) / page * page;
  const size_t bytes = reinterpret_cast<uint64_t>(from) + jumpBytes - begin;
  auto *pages = reinterpret_cast<void *>(begin);
  if (mprotect(pages, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
    return false;
  std::memcpy(from, jump, sizeof jump);
  std::memcpy(from + sizeof jump, &to, sizeof to);
  return mprotect(pages, bytes, PROT_READ | PROT_EXEC) == 0;
}

std::byte *loadAddress() {
  uint64_t address = 0;
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *data) {
        *static_cast<uint64_t *>(data) = info->dlpi_addr;
        return 1; // the program itself comes first
      },
      &address);
  return reinterpret_cast<std::byte *>(address);
}

void *ownFunctions() {
  Dl_info info{};
  const bool found = dladdr(reinterpret_cast<void *>(&ownFunctions), &info) && info.dli_fname;
  return found ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD) : nullptr;
}

/// Redirects what has our names and room for a jump; gives how many that were.
size_t takeOver(const std::vector<NamedFunction> &functions) {
  void *self = ownFunctions();
  std::byte *base = loadAddress();
  size_t taken = 0;
  for (size_t i = 0; self && i < functions.size(); ++i) {
    const NamedFunction &function = functions[i];
    const bool candidate = function.name.starts_with("cuda") || function.name.starts_with("__cuda");
    void *ours = candidate ? dlsym(self, function.name.c_str()) : nullptr;
    auto next = std::find_if(functions.begin() + static_cast<ptrdiff_t>(i), functions.end(),
                             [&](auto &f) { return f.offset != function.offset; });
    const bool room = next == functions.end() || next->offset - function.offset >= jumpBytes;
    if (ours && room)
      taken += writeJump(base + function.offset, ours);
  }
  return taken;
}

/// Runs before the constructors of the program, which register its kernels.
__attribute__((constructor)) void replaceStaticRuntime() {
  const OwnFile file;
  if (!ElfFile::isElf(file.bytes()))
    return;
  const auto elf = ElfFile::open(file.bytes());
  const auto runtime = elf ? linkedRuntime(*elf, file.bytes(), "the program") : std::string();
  if (runtime && *runtime != fmt::format("libcudart.so.{}", FP4_CUDART_MAJOR))
    return;
#ifdef __x86_64__
  if (runtime && takeOver(functionsOf(*elf)) > 0)
    return;
#endif
  const Error error{ErrorKind::Usage, "the CUDA runtime that is linked in cannot be replaced",
                    "link the program with nvcc -cudart=shared"};
  std::fputs(format(error).c_str(), stderr);
  _exit(static_cast<int>(ErrorKind::Usage));
}

} // namespace
