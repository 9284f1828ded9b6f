//===- Layouts.h - Placements of the bytes of a tile ----------------------===//
// The enumerators of PipeLayouts.td, and their words.
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"
#include "fp4/Dialect/Pipe/IR/PipeLayouts.h.inc"

static_assert(fp4::pipe::kLinear == fp4::pipe::Layout::Linear);
