//===- PipeLanes.h - Ops on sums of TMEM lanes ----------------------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

#define GET_OP_CLASSES
#include "fp4/Dialect/Pipe/IR/PipeLaneOps.h.inc"
