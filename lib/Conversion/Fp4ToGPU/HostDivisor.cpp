//===- HostDivisor.cpp - Divisions by a number that the host knows --------===//
//
// With m = ceil(2^63 / d), n * m / 2^63 exceeds n / d by less than n / 2^63, for n < 2^31 less than
// 2^-32, and n / d is at least 1 / d > 2^-32 below the next integer: the integers below both are
// equal. The product has 94 bits, of which the lowest 32 decide nothing.
//
//===----------------------------------------------------------------------===//
#include "HostDivisor.h"

using namespace mlir;
using namespace fp4;

/// Reciprocal of `divisor`, or of one where that is zero: the host goes on behind an error.
static Value hostReciprocal(KernelBuilder &kernel, Value divisor) {
  ImplicitLocOpBuilder &host = kernel.host();
  divisor = arith::MaxUIOp::create(host, divisor, constIndex(host, 1));
  Value wide = arith::IndexCastOp::create(host, host.getI64Type(), divisor);
  Value below = arith::DivUIOp::create(host, constI64(host, INT64_MAX), wide);
  return kernel.scalar(arith::AddIOp::create(host, below, constI64(host, 1)));
}

HostDivisor::HostDivisor(KernelBuilder &kernel, Value divisor)
    : number(kernel.body(), kernel.scalar(divisor)), reciprocal(hostReciprocal(kernel, divisor)) {}

Int32 HostDivisor::quotient(Int32 n) const {
  ImplicitLocOpBuilder &b = n.builder();
  auto wide = [&](Value word) -> Value { return arith::ExtUIOp::create(b, b.getI64Type(), word); };
  auto high = [&](Value value, int64_t bits) -> Value {
    return arith::ShRUIOp::create(b, value, constI64(b, bits));
  };
  Value low = wide(arith::TruncIOp::create(b, b.getI32Type(), reciprocal));
  Value ofLow = high(arith::MulIOp::create(b, wide(n), low), 32);
  Value ofHigh = arith::MulIOp::create(b, wide(n), high(reciprocal, 32));
  Value sum = arith::AddIOp::create(b, ofHigh, ofLow);
  return {b, arith::TruncIOp::create(b, b.getI32Type(), high(sum, 31))};
}
