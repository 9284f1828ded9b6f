//===- Parsers.cpp - What reads files that others wrote -------------------===//
#include "Parsers.h"
#include "../../lib/Tools/LoadableElf.h"
#include "fp4/Numerics/Recipe.h"
#include "fp4/Sim/Program.h"
#include "fp4/SimCuda/ElfFile.h"
#include "fp4/SimCuda/Fatbin.h"
#include "fp4/Tools/Manifest.h"
#include "fp4/Tools/Npy.h"
#include <string>

using namespace fp4;
using namespace fp4::fuzz;

namespace {

std::string_view text(Bytes bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

void parsePtx(Bytes bytes) { (void)sim::Program::parseAvailable(text(bytes), "fuzz.ptx"); }

void parseFatbin(Bytes bytes) {
  auto files = simcuda::readFatbins(bytes);
  if (!files)
    return;
  for (const auto &entries : *files)
    for (const char *chip : {"sm_100a", "sm_90a"})
      (void)simcuda::choosePtx(entries, chip);
}

void parseNpy(Bytes bytes) { (void)tools::parseNpy(bytes, "fuzz.npy"); }

void parseManifest(Bytes bytes) {
  auto manifest = tools::Manifest::parse(text(bytes));
  if (!manifest)
    return;
  for (const tools::Function &function : manifest->functions)
    for (const tools::Operand &operand : function.arguments) {
      (void)operand.type.bufferBytes();
      (void)operand.type.str();
    }
}

void parseRecipe(Bytes bytes) {
  auto recipe = numerics::parseRecipe(text(bytes));
  if (recipe && !numerics::parseRecipe(numerics::spell(*recipe)))
    __builtin_trap(); // what is spelled must parse
}

void parseElf(Bytes bytes) {
  (void)tools::checkLoadable(bytes);
  auto file = simcuda::ElfFile::open(bytes);
  if (!file)
    return;
  (void)file->section(".nv_fatbin");
  (void)file->neededLibraries();
}

} // namespace

const std::vector<Parser> &fp4::fuzz::parsers() {
  static const std::vector<Parser> all = {{"ptx-bytes", parsePtx, {".ptx"}},
                                          {"fatbin", parseFatbin, {".fatbin", ".so", ".seed"}},
                                          {"npy", parseNpy, {".npy", ".seed"}},
                                          {"manifest", parseManifest, {".json", ".seed"}},
                                          {"recipe", parseRecipe, {".recipe", ".seed"}},
                                          {"elf", parseElf, {".so"}}};
  return all;
}
