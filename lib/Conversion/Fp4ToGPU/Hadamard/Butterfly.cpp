//===- Butterfly.cpp - Hadamard transform inside a kernel -----------------===//
#include "Hadamard/Butterfly.h"
#include "Reduce/GridMax.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <limits>

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
  auto type = cast<FloatType>(values.front().getType());
  auto one = [&](double value) -> Value {
    return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
  };
  Value sign = arith::SelectOp::create(b, isFirst, one(1), one(-1));
  for (Value &mine : values)
    mine = LLVM::FMAOp::create(b, type, mine, sign, shuffle(mine, laneStride));
}

/// The value of the lane whose number differs in this bit, word by word.
Value Butterfly::shuffle(Value mine, unsigned laneStride) {
  auto exchange = [&](Value word) { return valueOfPartner(b, word, laneStride); };
  if (mine.getType().isF32())
    return exchange(mine);
  auto pair = VectorType::get(2, b.getI32Type());
  Value words = LLVM::BitcastOp::create(b, pair, mine);
  SmallVector<Value> theirs;
  for (int64_t word : {0, 1})
    theirs.push_back(exchange(vector::ExtractOp::create(b, words, word)));
  Value both = vector::FromElementsOp::create(b, pair, theirs);
  return LLVM::BitcastOp::create(b, mine.getType(), both);
}

float Butterfly::norm() const {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(options.blockSize)));
}

/// An exact sum, scaled and rounded. Adding +0 leaves all sums but -0.
Value Butterfly::toFp32(Value sum) {
  auto constant = [&](double value) -> Value {
    return arith::ConstantOp::create(b, b.getF64FloatAttr(value));
  };
  Value scaled = s.multiply(s.add(sum, constant(0)), constant(norm()));
  return arith::TruncFOp::create(b, b.getF32Type(), scaled);
}

/// Elements with their signs over a power of two, which is exact for bf16; exact sums in fp64.
SmallVector<Value> Butterfly::prepared(ArrayRef<Value> elements, float divisor) {
  SmallVector<Value> values(elements);
  for (auto [i, value] : llvm::enumerate(values)) {
    bool negated = options.signMask >> (i % 16) & 1;
    if (divisor != 1)
      value = s.multiply(value, s.constant((negated ? -1 : 1) / divisor));
    else if (negated)
      value = arith::NegFOp::create(b, value);
    if (isExact())
      value = arith::ExtFOp::create(b, b.getF64Type(), value);
  }
  return values;
}

SmallVector<Value> Butterfly::sums(ArrayRef<Value> elements, float divisor) {
  SmallVector<Value> values = prepared(elements, divisor);
  const unsigned stages = llvm::Log2_32(options.blockSize);
  for (unsigned stage = 0; stage < stages; ++stage) {
    bool ascending = options.order == numerics::ButterflyOrder::Ascending;
    size_t stride = size_t(1) << (ascending ? stage : stages - 1 - stage);
    if (stride < values.size())
      stageInThread(values, stride);
    else
      stageAcrossLanes(values, static_cast<unsigned>(stride / values.size()));
  }
  if (isExact())
    for (Value &value : values)
      value = toFp32(value);
  return values;
}

float Butterfly::factor() const { return isExact() ? 1.0f : norm() * divisor(); }

/// An overflowing sum stays infinite in one element to the end: the other of its pair may be NaN,
/// which a maximum of numbers drops.
Value Butterfly::amax(ArrayRef<Value> elements, bool keepNaN) {
  auto divided = [&] { return s.amax(sums(elements), keepNaN); };
  if (divisor() == 1 || lanes(elements.size()) > 1) // no shuffle may stand in a branch
    return divided();
  Value whole = s.amax(sums(elements, 1), keepNaN);
  Value quick = s.multiply(whole, s.constant(1 / divisor()));
  Value infinity = s.constant(std::numeric_limits<float>::infinity());
  Value isFinite = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, quick, infinity);
  return chooseValue(b, b.getF32Type(), isFinite, [&] { return quick; }, divided);
}

Value Butterfly::scale() { return s.constant(factor()); }

SmallVector<Value> Butterfly::scaled(ArrayRef<Value> sums) {
  return llvm::map_to_vector(sums, [&](Value sum) { return s.multiply(sum, scale()); });
}

SmallVector<Value> Butterfly::transform(ArrayRef<Value> elements) { return scaled(sums(elements)); }

BlockElements Butterfly::packed(ArrayRef<Value> values, bool finite) {
  SmallVector<Value> words;
  for (size_t i = 0; i < values.size(); i += 2)
    words.push_back(s.packBF16(values[i], values[i + 1]));
  return finite ? BlockElements::finite(s, words, b.getBF16Type())
                : BlockElements::packed(s, words, b.getBF16Type());
}

BlockElements Butterfly::unrounded(ArrayRef<Value> values) {
  BlockElements elements;
  elements.values = SmallVector<Value>(values);
  elements.stored = b.getF32Type();
  elements.amax = [this, values = elements.values](bool keepNaN) {
    return s.amax(values, keepNaN);
  };
  return elements;
}

/// Every sum has every element: where one is not finite, no sum is, and the block is exceptional.
BlockElements Butterfly::transformBlock(const BlockElements &elements) {
  auto exactValues = [elements] {
    return elements.exact ? elements.exact().values : elements.values;
  };
  if (!options.roundToBF16)
    return unrounded(transform(exactValues()));
  // No shuffle may stand in a branch.
  const bool inThread = lanes(elements.values.size()) == 1, undivided = divisor() != 1 && inThread;
  const float scale = undivided ? norm() : factor();
  int exponent;
  if (std::frexp(scale, &exponent) != 0.5f)
    return packed(transform(exactValues()));
  SmallVector<Value> values =
      sums(undivided ? elements.values : exactValues(), undivided ? 1 : divisor());
  BlockElements block = packed(values, /*finite=*/undivided);
  block.scale = scale;
  if (undivided)
    block.exact = [this, exactValues] { return packed(transform(exactValues())); };
  else
    block.exact = [this, values] { return packed(scaled(values)); };
  return block;
}

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
