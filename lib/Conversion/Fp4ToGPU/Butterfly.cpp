//===- Butterfly.cpp - Hadamard transform inside a kernel -----------------===//
#include "Butterfly.h"
#include "GridMax.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace fp4;

void Butterfly::stageInThread(MutableArrayRef<Value> values, size_t stride) {
  for (size_t base = 0; base < values.size(); base += 2 * stride)
    for (size_t i = base; i < base + stride; ++i) {
      Value x = values[i], y = values[i + stride];
      values[i] = s.add(x, y);
      values[i + stride] = s.subtract(x, y);
    }
}

/// The lane whose bit is clear holds the first operand: it keeps theirs + mine, the other one
/// theirs - mine. A product with +-1 is exact, so the fused operation rounds once, as they do.
void Butterfly::stageAcrossLanes(MutableArrayRef<Value> values, unsigned laneStride) {
  Type i32 = b.getI32Type();
  Value lane = NVVM::LaneIdOp::create(b, i32);
  Value bit = arith::AndIOp::create(b, lane, s.integer(laneStride));
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, bit, s.integer(0));
  Value sign = arith::SelectOp::create(b, isFirst, s.constant(1), s.constant(-1));
  for (Value &mine : values) {
    Value theirs =
        NVVM::ShflOp::create(b, mine.getType(), s.integer(-1), mine, s.integer(laneStride),
                             s.integer(31), NVVM::ShflKind::bfly, /*return_value_and_is_valid=*/{});
    mine = LLVM::FMAOp::create(b, mine.getType(), mine, sign, theirs);
  }
}

SmallVector<Value> Butterfly::sums(ArrayRef<Value> elements) {
  SmallVector<Value> values(elements);
  for (auto [i, value] : llvm::enumerate(values))
    if (options.signMask >> (i % 16) & 1)
      value = arith::NegFOp::create(b, value);
  const unsigned stages = llvm::Log2_32(options.blockSize);
  for (unsigned stage = 0; stage < stages; ++stage) {
    bool ascending = options.order == numerics::ButterflyOrder::Ascending;
    size_t stride = size_t(1) << (ascending ? stage : stages - 1 - stage);
    if (stride < values.size())
      stageInThread(values, stride);
    else
      stageAcrossLanes(values, static_cast<unsigned>(stride / values.size()));
  }
  return values;
}

Value Butterfly::scale() {
  return s.constant(static_cast<float>(1.0 / std::sqrt(static_cast<double>(options.blockSize))));
}

SmallVector<Value> Butterfly::transform(ArrayRef<Value> elements) {
  SmallVector<Value> values = sums(elements);
  for (Value &value : values)
    value = s.multiply(value, scale());
  return values;
}

SmallVector<Value> Butterfly::transformPacked(ArrayRef<Value> words) {
  SmallVector<Value> values = transform(s.widen(words, b.getBF16Type())), packed;
  for (size_t i = 0; i < values.size(); i += 2)
    packed.push_back(s.packBF16(values[i], values[i + 1]));
  return packed;
}

static constexpr int64_t kWarp = 32;

Value WholeWarps::bound() {
  if (lanes == 1)
    return items;
  Value up = arith::AddIOp::create(b, items, constI32(b, kWarp - 1));
  return arith::AndIOp::create(b, up, constI32(b, -kWarp));
}

Value WholeWarps::isOwn(Value item) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, item, items);
}

/// All lanes of a group must hold the blocks of one group: a maximum sees what they repeat.
Value WholeWarps::clamped(Value item) {
  Value last = arith::SubIOp::create(b, items, constI32(b, lanes));
  if (lanes > 1) {
    Value lane = arith::AndIOp::create(b, item, constI32(b, lanes - 1));
    last = arith::AddIOp::create(b, last, lane);
  }
  return arith::SelectOp::create(b, isOwn(item), item, last);
}

void WholeWarps::ifOwn(Value item, llvm::function_ref<void()> store) {
  emitWhen(b, isOwn(item), store);
}
