//===- PipeMma.h - MMAs, and the conversion of their operands -------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

#define GET_OP_CLASSES
#include "fp4/Dialect/Pipe/IR/PipeMmaOps.h.inc"
