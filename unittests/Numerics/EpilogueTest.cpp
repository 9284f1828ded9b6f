// Epilogues: elements bit by bit, and bounds that hold for every perturbation within them.
#include "fp4/Numerics/Epilogue.h"
#include "fp4/Numerics/BlockScaledGemm.h"
#include "fp4/Numerics/Compare.h"
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace fp4;
using namespace fp4::numerics;

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

float evaluate(const EpilogueProgram &program, float x) { return program.apply(x, 1.f); }

const std::vector<EpilogueOp> kRelu = {EpilogueOp::Relu};

} // namespace

TEST(Epilogue, StepsInTheirOrder) {
  EXPECT_EQ(epilogueSteps(false, {}), std::vector{EpilogueOp::Round});
  EXPECT_EQ(epilogueSteps(true, kRelu),
            (std::vector{EpilogueOp::Scale, EpilogueOp::Relu, EpilogueOp::Round}));
}

TEST(Epilogue, ReluOfEveryKindOfNumber) {
  const EpilogueProgram relu(false, kRelu, FloatType::F32);
  EXPECT_EQ(evaluate(relu, 1.5f), 1.5f);
  EXPECT_EQ(evaluate(relu, -1.5f), 0.f);
  EXPECT_FALSE(std::signbit(evaluate(relu, -0.f)));
  EXPECT_EQ(evaluate(relu, kInfinity), kInfinity);
  EXPECT_EQ(evaluate(relu, -kInfinity), 0.f);
  EXPECT_TRUE(std::isnan(evaluate(relu, kNaN)));
  EXPECT_EQ(evaluate(relu, 0x1p-149f), 0x1p-149f);
}

TEST(Epilogue, AlphaComesFirst) { // a negative alpha keeps what was negative
  const EpilogueProgram scaled(true, kRelu, FloatType::F32);
  EXPECT_EQ(scaled.apply(-3.f, -2.f), 6.f);
  EXPECT_EQ(scaled.apply(3.f, -2.f), 0.f);
}

TEST(Epilogue, RoundsLast) {
  const EpilogueProgram program(true, kRelu, FloatType::BF16);
  EXPECT_EQ(evaluate(program, 1.001f), 1.f);
  EXPECT_EQ(evaluate(EpilogueProgram(true, {}, FloatType::F32), 1.001f), 1.001f);
}

/// The element of a sum within its bound is within the bound of the element.
TEST(Epilogue, BoundsHold) {
  for (FloatType type : {FloatType::F32, FloatType::BF16, FloatType::F16, FloatType::E4M3})
    for (bool relu : {false, true})
      for (float alpha : {0.3f, -1.7f, 1e-30f})
        for (double sum : {-3.25, -1e-7, 0.0, 1e-7, 0.7, 1234.5}) {
          const double error = 1e-3 * std::fabs(sum) + 1e-9;
          const EpilogueProgram program(true, relu ? kRelu : std::vector<EpilogueOp>{}, type);
          const BoundedValue element = program.bound({sum, error}, alpha);
          for (double at : {-1.0, -0.5, 0.0, 0.5, 1.0}) {
            const float x = program.apply(static_cast<float>(sum + at * error), alpha);
            // The cast to float of the sum is the test's own: half a unit of fp32, doubled.
            const double own = std::fabs(alpha) * std::fabs(sum) * 0x1p-22;
            EXPECT_LE(std::fabs(x - element.value), element.error + own)
                << stringify(type) << " relu " << relu << " alpha " << alpha << " sum " << sum;
          }
        }
}

TEST(Epilogue, E4M3Saturates) {
  const EpilogueProgram program(false, {}, FloatType::E4M3);
  EXPECT_EQ(evaluate(program, 1.05f), 1.f);
  EXPECT_EQ(evaluate(program, 465.f), 448.f);
  EXPECT_EQ(evaluate(program, -kInfinity), -448.f);
  EXPECT_TRUE(std::isnan(evaluate(program, kNaN)));
  const BoundedValue far = program.bound({1e6, 1}, 1);
  EXPECT_EQ(far.value, 448);
  EXPECT_FALSE(program.mayOverflow(far, 1));
  const std::vector<std::byte> bytes = encodeFloats(FloatType::E4M3, std::vector{1.f, -0.f, 1e9f});
  EXPECT_EQ(bytes, (std::vector{std::byte(0x38), std::byte(0x80), std::byte(0x7E)}));
  EXPECT_EQ(decodeFloats(FloatType::E4M3, bytes), (std::vector{1.f, -0.f, 448.f}));
}

TEST(Epilogue, SaysWhatMayOverflow) {
  const EpilogueProgram half(false, {}, FloatType::F16);
  EXPECT_TRUE(half.mayOverflow({65500, 10}, 1));
  EXPECT_FALSE(half.mayOverflow({65000, 10}, 1));
  EXPECT_TRUE(EpilogueProgram(true, {}, FloatType::F32).mayOverflow({0, 0}, kInfinity));
}

TEST(Epilogue, SaysWhatOverflowGives) {
  const EpilogueProgram plain(false, {}, FloatType::F32), relu(false, kRelu, FloatType::F32);
  EXPECT_EQ(overflowOf(plain, true), MayBeInfinite);
  EXPECT_EQ(overflowOf(relu, true), MayBeZero); // of -infinity
  EXPECT_EQ(overflowOf(relu, false), CannotOverflow);
  const std::vector<double> sum = {1e38}, bound = {1e36};
  for (const auto [may, right] : {std::pair(MayBeZero, true), std::pair(MayBeInfinite, false)}) {
    EXPECT_EQ(compareWithin(std::vector{0.f}, sum, bound, std::vector{may}, {}).ok(), right);
    EXPECT_TRUE(compareWithin(std::vector{kInfinity}, sum, bound, std::vector{may}, {}).ok());
    EXPECT_FALSE(compareWithin(std::vector{1.f}, sum, bound, std::vector{may}, {}).ok());
  }
}

TEST(Epilogue, TextGoesAndReturns) {
  for (const std::vector<EpilogueOp> &steps :
       {std::vector<EpilogueOp>{}, kRelu, std::vector{EpilogueOp::Relu, EpilogueOp::Relu}}) {
    auto parsed = parseEpilogue(spellEpilogue(steps));
    ASSERT_TRUE(parsed);
    EXPECT_EQ(*parsed, steps);
  }
  const auto unknown = parseEpilogue("relu,gelu");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "unknown epilogue step 'gelu'");
  EXPECT_EQ(unknown.error().note, "known epilogue steps: relu");
  EXPECT_FALSE(parseEpilogue("scale")); // follows from alpha; nobody writes it
}

TEST(Epilogue, AGemmAppliesIt) {
  // One row of A against two columns of B: sums of 16 and of -16.
  std::vector<uint8_t> a(8, 0x22), scales = {0x38, 0x38}; // ones, scales of 1
  std::vector<uint8_t> b(16, 0x22);
  std::fill(b.begin() + 8, b.end(), 0xAA); // minus ones
  GemmProblem p{.a = {a.data(), scales.data(), 1, 0, 0},
                .b = {b.data(), scales.data(), 2, 0, 0},
                .depth = 16,
                .alpha = 0.5f,
                .epilogue = kRelu};
  auto model = gemmMmaModel(p);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(*model, (std::vector<float>{8, 0}));
  auto reference = gemmReference(p);
  ASSERT_TRUE(reference);
  EXPECT_EQ(reference->values, (std::vector<double>{8, 0}));
  p.epilogue = {};
  EXPECT_EQ(*gemmMmaModel(p), (std::vector<float>{8, -8}));
}
