//===- Parsers.h - Readers of files that others wrote ---------------------===//
//
// Each takes bytes and must come back: with an error, or with something. One file of parsers/ has
// one of them; they are the entry points of the libFuzzer targets (LibFuzzer.cpp) and of fp4-fuzz.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace fp4::fuzz {

using Bytes = std::span<const std::byte>;

void parsePtx(Bytes bytes);
void parseFatbin(Bytes bytes);
void parseNpy(Bytes bytes);
void parseManifest(Bytes bytes);
void parseRecipe(Bytes bytes);
void parseElf(Bytes bytes);

struct Parser {
  const char *name;
  void (*parse)(Bytes bytes);
  std::vector<const char *> endings; ///< of files in a corpus
};

inline std::string_view textOf(Bytes bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

} // namespace fp4::fuzz
