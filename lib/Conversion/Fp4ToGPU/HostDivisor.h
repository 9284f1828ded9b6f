//===- HostDivisor.h - Divisions by a number that the host knows ----------===//
//
// A thread divides by the blocks of a row if the columns of the matrix are dynamic. The host
// computes the reciprocal once, and a quotient takes two multiplications.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Int32.h"
#include "KernelBuilder.h"

namespace fp4 {

class HostDivisor {
public:
  /// `divisor` is an index on the host, 1 to 2^31 - 1. Adds two kernel operands.
  HostDivisor(KernelBuilder &kernel, mlir::Value divisor);

  Int32 divisor() const { return number; }
  /// n / divisor, for n below 2^31.
  Int32 quotient(Int32 n) const;

private:
  Int32 number;
  mlir::Value reciprocal; ///< i64, ceil(2^63 / divisor)
};

} // namespace fp4
