#include "fp4/ISA/FragmentLayout.h"

#include <fmt/format.h>

namespace fp4::hw {

Status validateFragment(FragmentKind kind, uint32_t rows, uint32_t columns) {
  constexpr uint32_t mostOfWgmma = 256;
  const bool isWgmma = kind == FragmentKind::Wgmma;
  if (rows == 0 || rows % fragmentRows(kind))
    return makeError(ErrorKind::Usage,
                     fmt::format("{} expects a multiple of {} rows, but got {}",
                                 isWgmma ? "wgmma" : "mma.sync", fragmentRows(kind), rows));
  if (columns == 0 || columns % fragmentTileColumns || (isWgmma && columns > mostOfWgmma))
    return makeError(ErrorKind::Usage,
                     fmt::format("{} expects {}, but got {}", isWgmma ? "wgmma" : "mma.sync",
                                 isWgmma ? "8 to 256 columns in steps of 8"
                                         : "a multiple of 8 columns",
                                 columns));
  return {};
}

} // namespace fp4::hw
