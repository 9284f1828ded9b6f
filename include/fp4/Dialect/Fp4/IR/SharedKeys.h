//===- SharedKeys.h - Sequences of queries that share keys ------*- C++ -*-===//
//
// Heads in front of tokens are sequences of one head. Neighbours share a head of keys, which is one
// sequence.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

namespace fp4 {

/// Sequences of queries in a row whose keys are one sequence.
inline int64_t getSharingSequences(AttentionOp op) {
  bool hasBatches = !op.getPages() && !op.hasPackedKeys();
  return hasBatches ? std::max<int64_t>(1, op.getBatches() / op.getKeyType().getDimSize(0)) : 1;
}

} // namespace fp4
