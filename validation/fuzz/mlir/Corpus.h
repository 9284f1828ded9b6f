//===- Corpus.h - The parts of .mlir files --------------------------------===//
#pragma once

#include "Driver.h"

namespace fp4::fuzz {

/// One text for each part of -split-input-file and of split-file.
std::vector<std::string> partsOf(const std::vector<std::filesystem::path> &corpus);

} // namespace fp4::fuzz
