//===- LoadableElf.h - Checks of a file before dlopen ---------------------===//
#pragma once

#include "fp4/Support/Error.h"
#include <cstddef>
#include <span>

namespace fp4 {

/// Checks a file before dlopen, which trusts it: dlopen maps, follows and calls the places that the
/// headers and the dynamic section name, and a damaged file ends the process. An error says which
/// part lies outside of which. A file that dlopen refuses by itself (no 64-bit ELF file, another
/// machine) is not refused here, and damage in the code is not seen.
Status checkLoadable(std::span<const std::byte> file);

} // namespace fp4
