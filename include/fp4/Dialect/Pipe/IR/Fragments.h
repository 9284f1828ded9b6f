//===- Fragments.h - Threads that have elements in their registers --------===//
// The enumerators of PipeFragments.td, and their words.
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"
#include "fp4/Dialect/Pipe/IR/PipeFragments.h.inc"
