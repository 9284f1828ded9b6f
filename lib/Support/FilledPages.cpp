//===- FilledPages.cpp - Pages that cost nothing until they are written ----===//
//
// Private mappings of one file of 0xCD bytes.
//
//===----------------------------------------------------------------------===//
#include "fp4/Support/FilledPages.h"
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace fp4;

/// The file; negative where the host has none.
static int filledFile() {
  static const int file = [] {
    const int made = memfd_create("fp4-sim-fresh", MFD_CLOEXEC);
    if (made < 0 || ftruncate(made, kPagesPart) != 0)
      return -1;
    void *bytes = mmap(nullptr, kPagesPart, PROT_READ | PROT_WRITE, MAP_SHARED, made, 0);
    if (bytes == MAP_FAILED)
      return -1;
    std::memset(bytes, 0xCD, kPagesPart);
    munmap(bytes, kPagesPart);
    return made;
  }();
  return file;
}

static bool mapAt(std::byte *at, uint64_t bytes, int file) {
  const int kind = MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED | (file < 0 ? MAP_ANONYMOUS : 0);
  return mmap(at, bytes, PROT_READ | PROT_WRITE, kind, file, 0) != MAP_FAILED;
}

std::byte *fp4::mapFilledPages(uint64_t bytes) {
  if (filledFile() < 0)
    return nullptr;
  void *place = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED)
    return nullptr;
  auto *pages = static_cast<std::byte *>(place);
  for (uint64_t at = 0; at < bytes; at += kPagesPart)
    if (!mapAt(pages + at, kPagesPart, filledFile())) {
      munmap(pages, bytes);
      return nullptr;
    }
  return pages;
}

bool fp4::zeroPages(std::byte *at, uint64_t bytes) { return mapAt(at, bytes, -1); }

void fp4::unmapPages(std::byte *at, uint64_t bytes) { munmap(at, bytes); }
