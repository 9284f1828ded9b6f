//===- Reduction.cpp - Element-wise reductions of bulk copies -------------===//
#include "Reduction.h"
#include "Sim/State/NaN.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>

namespace fp4::sim {
namespace {

template <typename T, typename F>
void apply(std::byte *destination, const std::byte *source, size_t count, F combine) {
  for (size_t i = 0; i < count; ++i) {
    T operand;
    std::memcpy(&operand, source + i * sizeof(T), sizeof(T));
    std::atomic_ref<T> target(*reinterpret_cast<T *>(destination + i * sizeof(T)));
    T old = target.load(std::memory_order_relaxed);
    while (!target.compare_exchange_weak(old, combine(old, operand), std::memory_order_relaxed))
      ;
  }
}

template <typename T, auto F> void reduce(std::byte *d, const std::byte *s, size_t n) {
  apply<T>(d, s, n, [](T a, T b) { return static_cast<T>(F(a, b)); });
}

/// float <-> storage of the 16-bit and 32-bit formats; fp32 flushes subnormals as PTX says.
struct Half {
  using Bits = uint16_t;
  static float widen(Bits bits) { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
  static Bits narrow(float x) {
    return x == x ? std::bit_cast<Bits>(static_cast<_Float16>(x)) : kNaN16;
  }
};
struct BFloat {
  using Bits = uint16_t;
  static float widen(Bits bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }
  static Bits narrow(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    if (std::isnan(x))
      return kNaN16;
    return static_cast<Bits>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
  }
};
struct Single {
  using Bits = uint32_t;
  static float flush(float x) {
    return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
  }
  static float widen(Bits bits) { return flush(std::bit_cast<float>(bits)); }
  static Bits narrow(float x) { return std::bit_cast<Bits>(flush(canonical(x))); }
};

template <typename F> void reduceAdd(std::byte *d, const std::byte *s, size_t n) {
  using Bits = typename F::Bits;
  apply<Bits>(d, s, n, [](Bits a, Bits b) { return F::narrow(F::widen(a) + F::widen(b)); });
}
template <typename F, bool maximum> void reduceExtreme(std::byte *d, const std::byte *s, size_t n) {
  using Bits = typename F::Bits;
  apply<Bits>(d, s, n, [](Bits a, Bits b) {
    const float x = F::widen(a), y = F::widen(b);
    if (x != x || y != y) // a NaN loses against a number
      return F::narrow(x == x ? x : y);
    const bool below = x < y || (x == y && std::signbit(x) > std::signbit(y));
    return F::narrow(below == maximum ? y : x);
  });
}

template <typename T> ReduceFn integer(ReductionOp op) {
  switch (op) {
  case ReductionOp::Add:
    return reduce<T, [](T a, T b) {
      return T(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
    }>;
  case ReductionOp::Min:
    return reduce<T, [](T a, T b) { return std::min(a, b); }>;
  case ReductionOp::Max:
    return reduce<T, [](T a, T b) { return std::max(a, b); }>;
  default:
    return nullptr;
  }
}

template <typename T> ReduceFn bitwise(ReductionOp op) {
  switch (op) {
  case ReductionOp::And:
    return reduce<T, [](T a, T b) { return a & b; }>;
  case ReductionOp::Or:
    return reduce<T, [](T a, T b) { return a | b; }>;
  case ReductionOp::Xor:
    return reduce<T, [](T a, T b) { return a ^ b; }>;
  default:
    return nullptr;
  }
}

template <typename F> ReduceFn floating(ReductionOp op) {
  switch (op) {
  case ReductionOp::Add:
    return reduceAdd<F>;
  case ReductionOp::Min:
    return sizeof(typename F::Bits) == 2 ? reduceExtreme<F, false> : nullptr;
  case ReductionOp::Max:
    return sizeof(typename F::Bits) == 2 ? reduceExtreme<F, true> : nullptr;
  default:
    return nullptr;
  }
}

} // namespace

ReductionOp reductionFromText(std::string_view text) {
  static constexpr std::string_view names[] = {"add", "min", "max", "inc",
                                               "dec", "and", "or",  "xor"};
  return ReductionOp(std::find(std::begin(names), std::end(names), text) - std::begin(names));
}

ReduceFn reduction(ReductionOp op, Type type, bool keepsSubnormals) {
  switch (type) {
  case Type::U32:
    if (op == ReductionOp::Inc)
      return reduce<uint32_t, [](uint32_t a, uint32_t b) { return a >= b ? 0u : a + 1; }>;
    if (op == ReductionOp::Dec)
      return reduce<uint32_t, [](uint32_t a, uint32_t b) { return a == 0 || a > b ? b : a - 1; }>;
    return integer<uint32_t>(op);
  case Type::S32:
    return integer<int32_t>(op);
  case Type::U64:
    return integer<uint64_t>(op);
  case Type::S64:
    return op == ReductionOp::Add ? nullptr : integer<int64_t>(op);
  case Type::B32:
    return bitwise<uint32_t>(op);
  case Type::B64:
    return bitwise<uint64_t>(op);
  case Type::F16:
    return floating<Half>(op);
  case Type::BF16:
    return floating<BFloat>(op);
  case Type::F32:
    if (keepsSubnormals && op == ReductionOp::Add)
      return reduce<float, [](float a, float b) { return canonical(a + b); }>;
    return floating<Single>(op);
  case Type::F64:
    return op == ReductionOp::Add ? reduce<double, add64> : nullptr;
  default:
    return nullptr;
  }
}

} // namespace fp4::sim
