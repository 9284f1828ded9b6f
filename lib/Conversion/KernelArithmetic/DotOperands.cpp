//===- DotOperands.cpp - Blocks of fp4 codes for integer dot products -----===//
#include "DotOperands.h"

#include "SmallBuilders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fp4;

/// A sum is kept in the fraction of an fp32 number, 1.5 * 2^23 plus the sum.
static constexpr uint32_t kSumBits = 0x4B400000;
static constexpr float kSumStart = 0x1.8p23f;

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

/// The sign of an E4M3 scale is ignored.
SmallVector<Value> DotOperands::factors(Value scales, int64_t first, int64_t count) {
  Value magnitudes = isE4M3 ? arith::AndIOp::create(b, scales, s.integer(0x7F7F7F7F)) : Value();
  SmallVector<Value> result;
  for (int64_t i = first; i < first + count; ++i)
    result.push_back(isE4M3 ? s.fromE4M3(arith::ShRUIOp::create(b, magnitudes, s.integer(8 * i)))
                            : s.fromBits(s.powerBits(scales, i, 23)));
  return result;
}

//===----------------------------------------------------------------------===//
// Codes
//===----------------------------------------------------------------------===//

/// Selectors are the four low nibbles of a word: the sign bit of a code replicates the sign of the
/// byte that the others choose, and no byte of the tables has one.
SmallVector<Value> DotOperands::offsetBytes(Value codes) {
  constexpr int64_t signs = 0x88888888;
  Value inverted = arith::XOrIOp::create(b, codes, s.integer(signs));
  auto lookUp = [&](int64_t low, int64_t high, Value selector) {
    return s.callIntrinsic("llvm.nvvm.prmt", b.getI32Type(),
                           {s.integer(low), s.integer(high), selector});
  };
  SmallVector<Value> result;
  for (int64_t shift : {0, 16}) {
    auto moved = [&](Value word) -> Value {
      return shift ? arith::ShRUIOp::create(b, word, s.integer(shift)).getResult() : word;
    };
    Value positive = lookUp(0x0F0E0D0C, 0x18141210, moved(codes));
    Value negative = lookUp(0x090A0B0C, 0x00040608, moved(inverted));
    result.push_back(arith::OrIOp::create(b, positive, negative));
  }
  return result;
}

/// Bytes from 0 to 24 become 116 to 140 and, with the sign inverted, -12 to 12: nothing is carried.
SmallVector<Value> DotOperands::signedBytes(Value codes) {
  SmallVector<Value> result = offsetBytes(codes);
  for (Value &bytes : result) {
    Value moved = arith::AddIOp::create(b, bytes, s.integer(0x74747474));
    bytes = arith::XOrIOp::create(b, moved, s.integer(0x80808080));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

Value DotOperands::start(ValueRange bytes) {
  constexpr int64_t minusOffset = 0xF4F4F4F4; // -12 in each byte
  Value sum = s.integer(kSumBits);
  for (Value word : bytes)
    sum =
        s.callIntrinsic("llvm.nvvm.idp4a.s.s", b.getI32Type(), {s.integer(minusOffset), word, sum});
  return sum;
}

Value DotOperands::add(Value offset, Value bytes, Value sum) {
  return s.callIntrinsic("llvm.nvvm.idp4a.u.s", b.getI32Type(), {offset, bytes, sum});
}

Value DotOperands::finish(Value sum) { return s.subtract(s.fromBits(sum), s.constant(kSumStart)); }
