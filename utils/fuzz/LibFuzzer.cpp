//===- LibFuzzer.cpp - The entry point of a libFuzzer target --------------===//
//
// FP4_PARSER is the name of one of Parsers.cpp. Built by the preset fuzz.
//
//===----------------------------------------------------------------------===//
#include "Parsers.h"
#include <cstdint>
#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  for (const fp4::fuzz::Parser &parser : fp4::fuzz::parsers())
    if (std::strcmp(parser.name, FP4_PARSER) == 0)
      parser.parse({reinterpret_cast<const std::byte *>(data), size});
  return 0;
}
