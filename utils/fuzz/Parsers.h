//===- Parsers.h - What reads files that others wrote ---------------------===//
//
// Each takes bytes and must come back: with an error, or with something. They are the entry points
// of the libFuzzer targets (LibFuzzer.cpp) and of fp4-fuzz.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace fp4::fuzz {

using Bytes = std::span<const std::byte>;

struct Parser {
  const char *name;
  void (*parse)(Bytes bytes);
  std::vector<const char *> endings; ///< of files in a corpus
};

const std::vector<Parser> &parsers();

} // namespace fp4::fuzz
