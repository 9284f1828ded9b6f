//===- StageBytes.h - Bytes that the loads of a stage complete ------------===//
//
// Byte counts as linear forms over counts of scale blocks: constant + sum of factor * value.
// pipe-pipeline announces the form of the loads, and pipe-verify-sync compares with it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include "llvm/ADT/MapVector.h"

#include <string>

namespace fp4::pipe {

struct LinearForm {
  int64_t constant = 0;
  llvm::MapVector<mlir::Value, int64_t> factors; ///< no zero factors

  void add(mlir::Value value, int64_t factor);
  void scale(int64_t factor);
  bool operator==(const LinearForm &other) const;
  /// "32768 + 1024 * (1 value)", for messages.
  std::string str() const;
};

/// Adds the bytes that `filler` completes on the barrier of its stage.
void addFilledBytes(LinearForm &bytes, StageFillerOpInterface filler);

/// The bytes that arrive at one barrier of `channel` where each CTA that signals it fills `bytes`.
LinearForm arrivingBytes(LinearForm bytes, ChannelOp channel);

/// The form of an i32 made of arith.constant, addi and muli by a constant; other values are atoms.
LinearForm linearForm(mlir::Value value);

} // namespace fp4::pipe
