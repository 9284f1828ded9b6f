//===- LibFuzzer.cpp - The entry point of a libFuzzer target -------------===//
//
// FP4_PARSE is one of the functions of Parsers.h. Built by the preset fuzz.
//
//===----------------------------------------------------------------------===//
#include "Parsers.h"
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fp4::fuzz::FP4_PARSE({reinterpret_cast<const std::byte *>(data), size});
  return 0;
}
