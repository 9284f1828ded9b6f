//===- LoadableElf.h - Whether the dynamic loader survives a file ---------===//
#pragma once

#include "fp4/Support/Error.h"
#include <cstddef>
#include <span>

namespace fp4 {

/// dlopen trusts a file: it maps, follows and calls what the headers and the dynamic section say,
/// and a damaged one ends the process. An error says what lies outside of what. A file that dlopen
/// refuses by itself (no 64-bit ELF file, another machine) is not refused here, and damage in the
/// code is not seen.
Status checkLoadable(std::span<const std::byte> file);

} // namespace fp4
