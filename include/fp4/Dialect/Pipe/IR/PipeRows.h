//===- PipeRows.h - Ops on the rows of tiles in registers -----------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

#define GET_OP_CLASSES
#include "fp4/Dialect/Pipe/IR/PipeRowOps.h.inc"
