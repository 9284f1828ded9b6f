//===- fp4-fuzz.cpp - The fuzzers that need no compiler -------------------===//
//
//   fp4-fuzz ptx [options] CORPUS...                 tokens of PTX change; what loads runs
//   fp4-fuzz PARSER [options] CORPUS...              bytes change: fatbin, npy, manifest, recipe, elf
//   fp4-fuzz TARGET --reproduce FILE                 one case again
//   fp4-fuzz --version
//
// Options: --cases N, --seed N, --first N, --jobs N, --timeout SECONDS, --memory MIB, --out FOLDER.
// The exit code is 1 when a case failed.
//
//===----------------------------------------------------------------------===//
#include "ByteTarget.h"
#include "PtxTarget.h"
#include "fp4/Support/Version.h"
#include <cstdio>
#include <cstring>

using namespace fp4::fuzz;

static const std::vector<Parser> parsers = {{"ptx-bytes", parsePtx, {".ptx"}},
                                            {"fatbin", parseFatbin, {".fatbin", ".so"}},
                                            {"npy", parseNpy, {".npy"}},
                                            {"manifest", parseManifest, {".json"}},
                                            {"recipe", parseRecipe, {".recipe"}},
                                            {"elf", parseElf, {".so"}}};

int main(int argc, char **argv) {
  const std::string which = argc > 1 ? argv[1] : "";
  if (which == "--version") {
    std::puts(fp4::versionText("fp4-fuzz").c_str());
    return 0;
  }
  if (which == "ptx") {
    PtxTarget target;
    return fuzzMain(argc - 1, argv + 1, target);
  }
  for (const Parser &parser : parsers)
    if (which == parser.name) {
      ByteTarget target(parser);
      return fuzzMain(argc - 1, argv + 1, target);
    }
  std::string names = "ptx";
  for (const Parser &parser : parsers)
    names += std::string(", ") + parser.name;
  std::fprintf(stderr, "error: expects a target, one of %s, but got '%s'\n", names.c_str(),
               which.c_str());
  return 2;
}
