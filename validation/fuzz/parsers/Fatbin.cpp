//===- Fatbin.cpp - Fat binaries -----------------------------------------===//
#include "../Parsers.h"
#include "fp4/SimCuda/Fatbin.h"

using namespace fp4;

void fp4::fuzz::parseFatbin(Bytes bytes) {
  auto files = simcuda::readFatbins(bytes);
  if (!files)
    return;
  for (const auto &entries : *files)
    for (const char *chip : {"sm_100a", "sm_90a"})
      (void)simcuda::choosePtx(entries, chip);
}
