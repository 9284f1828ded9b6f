// The arithmetic of cp.reduce.async.bulk, element by element.
#include "Sim/Async/Reduction.h"

#include <bit>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

using namespace fp4;
using namespace fp4::sim;

namespace {

/// Returns the value of memory that has `before` when `operand` is reduced into it.
template <typename T> T reduced(std::string_view op, Type type, T before, T operand) {
  ReduceFn function = reduction(reductionFromText(op), type);
  if (!function) {
    ADD_FAILURE() << "no ." << op;
    return T();
  }
  function(reinterpret_cast<std::byte *>(&before), reinterpret_cast<const std::byte *>(&operand), 1);
  return before;
}

bool exists(std::string_view op, Type type) {
  return reduction(reductionFromText(op), type) != nullptr;
}

TEST(Reduction, UnsignedIntegers) {
  EXPECT_EQ(reduced("add", Type::U32, 0xFFFFFFFFu, 2u), 1u);
  EXPECT_EQ(reduced("min", Type::U32, 0xFFFFFFFFu, 2u), 2u);
  EXPECT_EQ(reduced("max", Type::U32, 0xFFFFFFFFu, 2u), 0xFFFFFFFFu);
  EXPECT_EQ(reduced<uint64_t>("add", Type::U64, ~0ull, 2), 1u);
  EXPECT_EQ(reduced<uint64_t>("max", Type::U64, ~0ull, 2), ~0ull);
}

/// The operand is the limit.
TEST(Reduction, Counters) {
  EXPECT_EQ(reduced("inc", Type::U32, 2u, 3u), 3u);
  EXPECT_EQ(reduced("inc", Type::U32, 3u, 3u), 0u);
  EXPECT_EQ(reduced("inc", Type::U32, 5u, 3u), 0u);
  EXPECT_EQ(reduced("dec", Type::U32, 3u, 3u), 2u);
  EXPECT_EQ(reduced("dec", Type::U32, 0u, 3u), 3u);
  EXPECT_EQ(reduced("dec", Type::U32, 5u, 3u), 3u);
}

TEST(Reduction, SignedIntegers) {
  EXPECT_EQ(reduced("add", Type::S32, -3, 2), -1);
  EXPECT_EQ(reduced("min", Type::S32, -3, 2), -3);
  EXPECT_EQ(reduced("max", Type::S32, -3, 2), 2);
  EXPECT_EQ(reduced<int64_t>("min", Type::S64, -3, 2), -3);
  EXPECT_FALSE(exists("add", Type::S64)) << "PTX has .u64";
}

TEST(Reduction, Bits) {
  EXPECT_EQ(reduced("and", Type::B32, 0b1100u, 0b1010u), 0b1000u);
  EXPECT_EQ(reduced("or", Type::B32, 0b1100u, 0b1010u), 0b1110u);
  EXPECT_EQ(reduced("xor", Type::B32, 0b1100u, 0b1010u), 0b0110u);
  EXPECT_EQ(reduced<uint64_t>("xor", Type::B64, 1ull << 40, 3ull << 40), 2ull << 40);
  EXPECT_FALSE(exists("add", Type::B32));
}

/// Subnormals are flushed on both sides, with their sign.
TEST(Reduction, Fp32) {
  const auto add = [](float before, float operand) {
    return std::bit_cast<uint32_t>(reduced("add", Type::F32, before, operand));
  };
  EXPECT_EQ(add(1.5f, 2.25f), std::bit_cast<uint32_t>(3.75f));
  EXPECT_EQ(add(0x1p-127f, 0x1p-127f), 0u) << "operands";
  EXPECT_EQ(add(-0x1.8p-126f, 0x1p-126f), 0x80000000u) << "the result";
  EXPECT_EQ(add(0x1p-126f, 0x1p-126f), std::bit_cast<uint32_t>(0x1p-125f));
  EXPECT_FALSE(exists("max", Type::F32));
  EXPECT_EQ(reduced("add", Type::F64, 0x1p60, 1.0 + 0x1p-52), 0x1p60);
}

/// NaN and the sign of zero are no host's.
TEST(Reduction, NaNAndZeros) {
  const auto bits = [](float x) { return std::bit_cast<uint32_t>(x); };
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(bits(reduced("add", Type::F32, infinity, -infinity)), 0x7FFFFFFFu);
  EXPECT_EQ(bits(reduced("add", Type::F32, infinity, 1.0f)), bits(infinity));
  EXPECT_EQ(std::bit_cast<uint64_t>(reduced<double>("add", Type::F64, infinity, -infinity)),
            0xFFF8000000000000u);
  const auto f16 = [](std::string_view op, uint16_t before, uint16_t operand) {
    return reduced(op, Type::F16, before, operand);
  };
  constexpr uint16_t zero = 0, minusZero = 0x8000, most = 0x7C00, least = 0xFC00;
  EXPECT_EQ(f16("add", most, least), 0x7FFF);
  for (auto [x, y] : {std::pair(zero, minusZero), {minusZero, zero}}) {
    EXPECT_EQ(f16("max", x, y), zero);
    EXPECT_EQ(f16("min", x, y), minusZero);
  }
}

TEST(Reduction, Fp16) {
  const auto f16 = [](std::string_view op, uint16_t before, uint16_t operand) {
    return reduced(op, Type::F16, before, operand);
  };
  constexpr uint16_t one = 0x3C00, two = 0x4000, nan = 0x7E00;
  EXPECT_EQ(f16("add", one, one), two);
  EXPECT_EQ(f16("add", one, 0x1000), one) << "1 + 2^-11 is a tie";
  EXPECT_EQ(f16("add", 0x3C01, 0x1000), 0x3C02);
  EXPECT_EQ(f16("add", 1, 1), 2) << "subnormals stay";
  EXPECT_EQ(f16("max", one, two), two);
  EXPECT_EQ(f16("min", one, two), one);
  EXPECT_EQ(f16("max", nan, two), two);
  EXPECT_EQ(f16("min", one, nan), one);
}

TEST(Reduction, BFloat16) {
  const auto bf16 = [](std::string_view op, uint16_t before, uint16_t operand) {
    return reduced(op, Type::BF16, before, operand);
  };
  constexpr uint16_t one = 0x3F80, two = 0x4000, minusTwo = 0xC000;
  EXPECT_EQ(bf16("add", one, one), two);
  EXPECT_EQ(bf16("add", one, 0x3B80), one) << "1 + 2^-8 is a tie";
  EXPECT_EQ(bf16("add", 0x3F81, 0x3B80), 0x3F82);
  EXPECT_EQ(bf16("add", 0x7F80, 0xFF80), 0x7FFF) << "infinities cancel";
  EXPECT_EQ(bf16("max", one, minusTwo), one);
  EXPECT_EQ(bf16("min", one, minusTwo), minusTwo);
}

} // namespace
