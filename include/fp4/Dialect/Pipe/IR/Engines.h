//===- Engines.h - Parts of the hardware that execute operations ----------===//
// The enumerators of PipeEngines.td, and their words.
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"
#include "fp4/Dialect/Pipe/IR/PipeEngines.h.inc"
