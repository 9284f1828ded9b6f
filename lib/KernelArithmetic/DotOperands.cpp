//===- DotOperands.cpp - Blocks of fp4 codes for dot products of threads --===//
#include "DotOperands.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fp4;

std::unique_ptr<DotOperands> DotOperands::create(ImplicitLocOpBuilder &builder, Scalars &scalars,
                                                 bool isE4M3) {
  return scalars.targetModel().features.hasFp4Convert ? createHalfDots(builder, scalars, isE4M3)
                                                      : createIntegerDots(builder, scalars, isE4M3);
}

/// The sign of an E4M3 scale is ignored.
SmallVector<Value> DotOperands::factors(Value scales, int64_t count) {
  SmallVector<Value> result;
  if (!isE4M3) {
    for (int64_t i = 0; i < count; ++i)
      result.push_back(s.fromBits(s.powerBits(scales, i, 23)));
    return result;
  }
  Value magnitudes = arith::AndIOp::create(b, scales, s.integer(0x7F7F7F7F));
  for (int64_t i = 0; i < count; i += 2)
    llvm::append_range(result,
                       s.pairFromE4M3(arith::ShRUIOp::create(b, magnitudes, s.integer(8 * i))));
  return result;
}
