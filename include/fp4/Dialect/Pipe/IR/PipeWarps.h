//===- PipeWarps.h - Ops on the fragments of warps ------------------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

#define GET_OP_CLASSES
#include "fp4/Dialect/Pipe/IR/PipeWarpOps.h.inc"
