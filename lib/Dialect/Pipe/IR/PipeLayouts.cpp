//===- PipeLayouts.cpp - Placements of the bytes of a tile ----------------===//

#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/ISA/Swizzle.h"

using namespace fp4;
using namespace fp4::pipe;

hw::SwizzleMode fp4::pipe::swizzleMode(Layout layout) {
  switch (layout) {
  case Layout::Swizzle32B:
    return hw::SwizzleMode::B32;
  case Layout::Swizzle64B:
    return hw::SwizzleMode::B64;
  case Layout::Swizzle128B:
  case Layout::Swizzle128BPadded:
  case Layout::Swizzle128BPadded6:
    return hw::SwizzleMode::B128;
  case Layout::Linear:
  case Layout::Tiled128x4:
  case Layout::Halves128x4:
  case Layout::Rows1Mod4:
  case Layout::Rows2Mod4:
  case Layout::Rows3Mod4:
    return hw::SwizzleMode::None;
  }
  return hw::SwizzleMode::None;
}

hw::RowSets fp4::pipe::rowSets(Layout layout) {
  switch (layout) {
  case Layout::Rows1Mod4:
    return {1};
  case Layout::Rows2Mod4:
    return {2};
  case Layout::Rows3Mod4:
    return {3};
  default:
    return {0};
  }
}

bool fp4::pipe::isTiledScales(Layout layout) { return layout == Layout::Tiled128x4; }

bool fp4::pipe::isHalvedScales(Layout layout) { return layout == Layout::Halves128x4; }

bool fp4::pipe::isPadded(Layout layout) {
  return layout == Layout::Swizzle128BPadded || layout == Layout::Swizzle128BPadded6;
}

int64_t fp4::pipe::swizzleWidth(Layout layout) {
  hw::SwizzleMode mode = swizzleMode(layout);
  return mode == hw::SwizzleMode::None ? 0 : hw::swizzleWidthBytes(mode);
}
