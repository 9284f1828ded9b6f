//===- Elf.cpp - ELF files -----------------------------------------------===//
#include "../Parsers.h"
#include "../../../lib/Program/LoadableElf.h"
#include "fp4/SimCuda/ElfFile.h"

using namespace fp4;

void fp4::fuzz::parseElf(Bytes bytes) {
  (void)checkLoadable(bytes);
  auto file = simcuda::ElfFile::open(bytes);
  if (!file)
    return;
  (void)file->section(".nv_fatbin");
  (void)file->neededLibraries();
}
