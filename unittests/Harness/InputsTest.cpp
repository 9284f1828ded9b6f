//===- InputsTest.cpp - Seeded inputs and the reference interpreter -------===//

#include "fp4/Harness/Inputs.h"
#include "../../lib/Harness/AdversarialBlocks.h"
#include "../../lib/Harness/Arguments.h"
#include "fp4/Harness/Verdict.h"
#include "fp4/ISA/WeightLayout.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/Float16.h"
#include "fp4/Numerics/PackedWeights.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace fp4::harness {
namespace {

Type bf16(int64_t rows, int64_t columns) {
  return {{rows, columns}, ElementType::BF16, Layout::Linear};
}

Tensor input(const Type &type, const char *distribution, uint64_t seed = 1, unsigned index = 0) {
  auto tensor = makeInput(type, distribution, seed, index);
  EXPECT_TRUE(tensor) << tensor.error().message;
  return tensor ? *tensor : Tensor();
}

TEST(Inputs, TheSameSeedGivesTheSameBytes) {
  for (const std::string &distribution : kDistributions) {
    Tensor a = input(bf16(8, 64), distribution.c_str(), 7),
           b = input(bf16(8, 64), distribution.c_str(), 7);
    EXPECT_EQ(a.bytes, b.bytes) << distribution;
  }
  Tensor base = input(bf16(8, 64), "gaussian", 7, 0);
  EXPECT_NE(base.bytes, input(bf16(8, 64), "gaussian", 8, 0).bytes);
  EXPECT_NE(base.bytes, input(bf16(8, 64), "gaussian", 7, 1).bytes);
}

// The bytes of one seed, written down: a change of the generator would change every published run.
TEST(Inputs, TheGeneratorIsPinned) {
  Tensor tensor = input({{1, 4}, ElementType::F32, Layout::Linear}, "uniform", 1, 0);
  auto values = tensor.as<float>();
  for (float value : values)
    EXPECT_LT(std::fabs(value), 1);
  Tensor again = input({{1, 4}, ElementType::F32, Layout::Linear}, "arange");
  EXPECT_THAT(again.as<float>(), testing::ElementsAre(0, 1, 2, 3));
}

TEST(Inputs, GaussianHasItsMoments) {
  Tensor tensor = input({{256, 256}, ElementType::F32, Layout::Linear}, "gaussian");
  double sum = 0, squares = 0;
  for (float value : tensor.as<float>()) {
    sum += value;
    squares += double(value) * value;
  }
  EXPECT_NEAR(sum / 65536, 0, 0.02);
  EXPECT_NEAR(squares / 65536, 1, 0.02);
}

TEST(Inputs, ExactHasASixInEveryBlock) {
  Tensor tensor = input(bf16(5, 40), "exact");
  std::vector<float> values = numerics::decodeFloats(numerics::FloatType::BF16, tensor.bytes);
  for (size_t row = 0; row < 5; ++row)
    for (size_t block = 0; block < 40; block += 16) {
      float amax = 0;
      for (size_t column = block; column < std::min<size_t>(block + 16, 40); ++column) {
        float value = values[row * 40 + column];
        amax = std::max(amax, std::fabs(value));
        EXPECT_EQ(numerics::decodeE2M1(numerics::encodeE2M1(value)), value);
      }
      EXPECT_EQ(amax, 6);
    }
}

// Inputs tell recipes apart: few significant bits under an amax that is no power of two.
TEST(Inputs, Bf16HasEightBitsAndAnAmaxThatIsNoPowerOfTwo) {
  for (uint64_t seed = 0; seed < 70; ++seed) {
    Tensor tensor = input({{4, 64}, ElementType::F32, Layout::Linear}, "bf16", seed);
    auto values = tensor.as<float>();
    int exponent = 0;
    EXPECT_NE(std::frexp(values[0], &exponent), 0.5f) << seed;
    for (float value : values) {
      EXPECT_EQ(value, numerics::roundTo(numerics::FloatType::BF16, value));
      EXPECT_LE(std::fabs(value), values[0]);
    }
  }
}

TEST(Inputs, AdversarialBlocksStandInEveryPlaceUnderTheSeedsPeak) {
  const float peaks[] = {2688.f, 1.f};
  for (uint64_t seed : {0, 1}) {
    Tensor tensor = input({{70, 100}, ElementType::F32, Layout::Linear}, "adversarial", seed);
    auto values = tensor.as<float>();
    EXPECT_EQ(values[0], peaks[seed]);
    size_t others = 0;
    for (float value : values) {
      EXPECT_LE(std::fabs(value), peaks[seed]);
      others += value != 0;
    }
    EXPECT_GT(others, values.size() / 10);
  }
  EXPECT_EQ(input(bf16(40, 40), "adversarial", 9).as<uint16_t>()[0], 0x7F80);
  EXPECT_EQ(input(bf16(40, 40), "adversarial", 10).as<uint16_t>()[0], 0x7FFF);
}

// The table is that of the golden vectors, block for block.
TEST(Inputs, AdversarialBlocksAreTheVectors) {
  std::ifstream file(FP4_SOURCE_DIR "/unittests/Numerics/data/numerics_vectors.json");
  const auto vectors = nlohmann::json::parse(file);
  auto check = [](const AdversarialBlock &block, const nlohmann::json &hex) {
    for (size_t i = 0; i < hex.size(); ++i)
      ASSERT_EQ(block.bits[std::min(i, block.bits.size() - 1)],
                std::stoul(hex[i].get<std::string>(), nullptr, 16))
          << block.vector;
  };
  std::set<nlohmann::json> seen; // the carriers of the amax are the same in many
  size_t next = 0;
  for (const auto &vector : vectors["nv"])
    for (const auto &hex : vector["x_fp32_hex"])
      if (seen.insert(hex).second)
        check(kNvfp4Blocks.at(next++), hex);
  EXPECT_EQ(next, kNvfp4Blocks.size());
  next = 0;
  for (const auto &vector : vectors["mx"])
    check(kMxfp4Blocks.at(next++), vector["x_fp32_hex"]);
  EXPECT_EQ(next, kMxfp4Blocks.size());
}

TEST(Inputs, GeneratorStatesAreTheSeedAndTheArgument) {
  Tensor tensor = input({{2}, ElementType::I64, Layout::Linear}, "gaussian", 42, 3);
  EXPECT_THAT(tensor.as<uint64_t>(), testing::ElementsAre(42, 3));
}

TEST(Inputs, OffsetsAscendAndStayAmongTheRows) {
  for (const std::vector<int64_t> &shape : {std::vector<int64_t>{9}, {4, 2}}) {
    const Tensor tensor = makeOffsets({shape, ElementType::I64, Layout::Linear}, 70, 3, 1);
    const std::span<const int64_t> offsets = tensor.as<int64_t>();
    EXPECT_TRUE(std::ranges::is_sorted(offsets));
    EXPECT_GE(offsets.front(), 0);
    EXPECT_LE(offsets.back(), 70);
    EXPECT_LT(offsets.front(), offsets.back());
  }
}

TEST(Inputs, TiledScalePaddingIsZero) {
  Tensor tensor = input({{1, 1}, ElementType::F8E4M3FN, Layout::Tiled128x4}, "ones");
  ASSERT_EQ(tensor.bytes.size(), 512u);
  EXPECT_EQ(tensor.bytes[0], std::byte(0x38));
  for (size_t i = 1; i < 512; ++i)
    EXPECT_EQ(tensor.bytes[i], std::byte(0));
}

TEST(Inputs, PrepackedWeightsHaveRankThree) {
  EXPECT_EQ(input({{1, 2, hw::weightTileBytes(16)}, ElementType::I8}, "ones").bytes.size(),
            uint64_t(2 * hw::weightTileBytes(16)));
  for (const std::vector<int64_t> &shape :
       {std::vector<int64_t>{}, std::vector<int64_t>{hw::weightTileBytes(16)}}) {
    auto tensor = makeInput({shape, ElementType::I8}, "ones", 1, 0);
    ASSERT_FALSE(tensor);
    EXPECT_EQ(tensor.error().note, "tensors of i8 are prepacked weights, N/128 x K/64 tiles");
  }
}

TEST(Inputs, LargeHasScalesUpTo256) {
  EXPECT_EQ(input(bf16(8, 64), "large").bytes, input(bf16(8, 64), "gaussian").bytes);
  for (const auto &[element, least, most] : {std::tuple(ElementType::F8E8M0FNU, 129, 135),
                                             std::tuple(ElementType::F8E4M3FN, 0x48, 0x78)}) {
    const Tensor tensor = input({{8, 64}, element}, "large");
    EXPECT_EQ(std::ranges::min(tensor.as<uint8_t>()), least); // 2^2
    EXPECT_EQ(std::ranges::max(tensor.as<uint8_t>()), most);  // 2^8
  }
}

TEST(Inputs, WeightsOfALayerAreSmallAndItsActivationsAreNot) {
  EXPECT_EQ(input(bf16(8, 64), "layer").bytes, input(bf16(8, 64), "gaussian").bytes);
  for (const auto &[format, block] :
       {std::pair(numerics::BlockFormat::NVFP4, 16), std::pair(numerics::BlockFormat::MXFP4, 32)}) {
    const Type type{{1, 2, hw::weightTileBytes(block)}, ElementType::I8};
    const uint64_t rows = hw::weightTileRows, columns = 2 * hw::weightColumnsOf(type.shape[2]);
    const auto scalesOf = [&](const char *distribution) {
      Tensor tensor = input(type, distribution);
      auto weights = numerics::unpackWeights(format, tensor.as<uint8_t>(), rows, columns);
      EXPECT_TRUE(weights);
      return weights ? weights->scales : std::vector<uint8_t>();
    };
    const auto usual = scalesOf("gaussian"), small = scalesOf("layer");
    const bool isNV = format == numerics::BlockFormat::NVFP4;
    EXPECT_EQ(std::ranges::min(usual), isNV ? 0x20 : 124); // 2^-3
    EXPECT_EQ(std::ranges::max(usual), isNV ? 0x50 : 130); // 2^3
    EXPECT_EQ(std::ranges::min(small), isNV ? 0x01 : 118); // 2^-9
    EXPECT_EQ(std::ranges::max(small), isNV ? 0x20 : 124); // 2^-3
  }
}

TEST(Inputs, AnUnknownDistributionListsTheKnown) {
  auto tensor = makeInput(bf16(1, 16), "normal", 1, 0);
  ASSERT_FALSE(tensor);
  EXPECT_EQ(tensor.error().note,
            "choose one of gaussian, layer, large, uniform, bf16, adversarial, exact, ones, zeros, "
            "arange");
}

//===----------------------------------------------------------------------===//
// The reference
//===----------------------------------------------------------------------===//

ProgramOp op(std::string name, std::vector<std::string> operands, std::vector<std::string> results,
             std::vector<Type> types, std::map<std::string, std::string> attributes = {}) {
  return {std::move(name), std::move(operands), std::move(results), std::move(types),
          std::move(attributes)};
}

const Type kScalar{{}, ElementType::F32, Layout::Linear};

/// y = x w^T in NVFP4, the program of the first example.
Function linear(int64_t n, int64_t k, Type output) {
  Function f;
  f.arguments = {{"x", bf16(-1, k)}, {"w", bf16(n, k)}};
  auto codes = [&](int64_t rows) { return Type{{rows, k}, ElementType::F4E2M1FN, Layout::Linear}; };
  auto scales = [&](int64_t rows, Layout layout) {
    return Type{{rows, k / 16}, ElementType::F8E4M3FN, layout};
  };
  std::map<std::string, std::string> quantize = {{"format", "nvfp4"},
                                                 {"recipe", "transformer_engine"},
                                                 {"rounding", "nearest_even"},
                                                 {"outputs", "rowwise"}};
  f.program = {op("fp4.amax", {"a0"}, {"v0"}, {kScalar}),
               op("fp4.quantize", {"a0", "v0"}, {"v1", "v2"},
                  {codes(-1), scales(-1, Layout::Linear)}, quantize),
               op("fp4.swizzle_scales", {"v2"}, {"v3"}, {scales(-1, Layout::Tiled128x4)}),
               op("fp4.amax", {"a1"}, {"v4"}, {kScalar}),
               op("fp4.quantize", {"a1", "v4"}, {"v5", "v6"}, {codes(n), scales(n, Layout::Linear)},
                  quantize),
               op("fp4.swizzle_scales", {"v6"}, {"v7"}, {scales(n, Layout::Tiled128x4)}),
               op("fp4.matmul_alpha", {"v0", "v4"}, {"v8"}, {kScalar}),
               op("fp4.blockscaled_matmul", {"v1", "v3", "v5", "v7", "v8"}, {"v9"}, {output},
                  {{"format", "nvfp4"}})};
  f.returns = {"v9"};
  f.results = {{"y", output}};
  return f;
}

// Exact inputs: quantization changes nothing, so y is x w^T up to the rounding of alpha.
TEST(Reference, ExactInputsGiveTheirGemm) {
  Function f = linear(24, 64, {{-1, 24}, ElementType::F32, Layout::Linear});
  std::vector<Tensor> arguments = {input(bf16(5, 64), "exact", 1, 0),
                                   input(bf16(24, 64), "exact", 1, 1)};
  auto results = runReference(f, arguments, 1);
  ASSERT_TRUE(results) << results.error().message;
  const ReferenceValue &y = (*results)[0];
  EXPECT_EQ(y.value.type.str(), "5x24xf32");
  auto x = numerics::decodeFloats(numerics::FloatType::BF16, arguments[0].bytes);
  auto w = numerics::decodeFloats(numerics::FloatType::BF16, arguments[1].bytes);
  for (size_t m = 0; m < 5; ++m)
    for (size_t n = 0; n < 24; ++n) {
      double sum = 0;
      for (size_t k = 0; k < 64; ++k)
        sum += double(x[m * 64 + k]) * w[n * 64 + k];
      EXPECT_NEAR(y.value.as<float>()[m * 24 + n], sum, std::fabs(sum) * 1e-6 + 1e-6);
    }
}

TEST(Reference, GemmsAreJudgedByModelAndBound) {
  Function f = linear(16, 64, {{-1, 16}, ElementType::BF16, Layout::Linear});
  std::vector<Tensor> arguments = {input(bf16(3, 64), "gaussian", 1, 0),
                                   input(bf16(16, 64), "gaussian", 1, 1)};
  auto results = runReference(f, arguments, 1);
  ASSERT_TRUE(results) << results.error().message;
  Tensor got = (*results)[0].value;
  Verdict good = judge("y", got, (*results)[0]);
  EXPECT_TRUE(good.passed) << good.details;
  EXPECT_TRUE(good.hasBound);
  EXPECT_LE(good.maxErrorOfBound, 1);
  // One unit in the last place is within the bound, but not what the tensor core computes.
  got.as<uint16_t>()[17] ^= 1;
  Verdict bad = judge("y", got, (*results)[0]);
  EXPECT_FALSE(bad.passed);
  EXPECT_EQ(bad.mismatches, 1u);
  EXPECT_THAT(bad.details, testing::HasSubstr("1"));
}

TEST(Arguments, AssignmentsHaveTwoSides) {
  EXPECT_EQ(splitAssignment("x=y=z", "--input")->second, "y=z");
  for (const char *text : {"x", "=y", "x="})
    EXPECT_EQ(splitAssignment(text, "--input").error().message,
              "--input expects NAME=VALUE, but got '" + std::string(text) + "'");
}

// A size that was fixed at compile time is neither made larger nor smaller.
TEST(Arguments, FixedSizesStay) {
  Function f;
  f.arguments = {{"x", bf16(4, 64), {"M", "K"}}};
  auto errorOf = [&](int64_t rows) {
    RunOptions options;
    options.shape = {rows};
    auto bound = bindArguments(f, options);
    return bound ? "no error" : bound.error().message;
  };
  EXPECT_EQ(errorOf(4), "no error");
  for (int64_t rows : {2, 8})
    EXPECT_EQ(errorOf(rows), "--shape has M = " + std::to_string(rows) +
                                 ", but argument 'x' is 4x64xbf16");
}

// The byte of 1 in either type, and powers of two from 1/8 to 8 where scales vary.
TEST(Inputs, ScalesArePowersOfTwo) {
  for (auto [element, one, step] : {std::tuple(ElementType::F8E8M0FNU, 127, 1),
                                    {ElementType::F8E4M3FN, 0x38, 8}}) {
    const Tensor exact = input({{16, 16}, element, Layout::Linear}, "exact"),
                 varied = input({{16, 16}, element, Layout::Linear}, "gaussian");
    std::set<int> bytes;
    for (uint8_t byte : exact.as<uint8_t>())
      EXPECT_EQ(byte, one);
    for (uint8_t byte : varied.as<uint8_t>())
      bytes.insert((byte - one) / step);
    EXPECT_EQ(bytes, (std::set<int>{-3, -2, -1, 0, 1, 2, 3}));
  }
}

TEST(Reference, OperationsThatAreCutOffAreErrors) {
  auto errorOf = [](ProgramOp operation) {
    Function f;
    f.arguments = {{"x", bf16(1, 16)}};
    f.program = {std::move(operation)};
    std::vector<Tensor> arguments = {input(bf16(1, 16), "ones")};
    auto results = runReference(f, arguments, 1);
    return results ? "no error" : results.error().message;
  };
  EXPECT_EQ(errorOf(op("fp4.amax", {"a0"}, {"v0"}, {kScalar})), "no error");
  EXPECT_THAT(errorOf(op("fp4.amax", {"a0"}, {}, {})),
              testing::HasSubstr("must have 1 result, but has 0"));
  const Type same = bf16(1, 16);
  EXPECT_EQ(errorOf(op("fp4.hadamard", {"a0"}, {"v0"}, {same},
                       {{"dimension", "1"}, {"size", "16"}})),
            "no error");
  EXPECT_THAT(errorOf(op("fp4.hadamard", {"a0"}, {"v0"}, {same},
                         {{"dimension", "1"}, {"size", "16x"}})),
              testing::HasSubstr("expects a number as 'size', but got '16x'"));
}

// Each judgement alone is enough to fail: here the value equals the model, and the bound is missed.
TEST(Reference, WhatLiesOutsideTheBoundFails) {
  ReferenceValue expected;
  expected.value = input({{1, 2}, ElementType::F32, Layout::Linear}, "ones");
  expected.model = "tcgen05";
  expected.sums = {1, 1.25};
  expected.bounds = {0, 0.25};
  Verdict inside = judge("y", expected.value, expected);
  EXPECT_TRUE(inside.passed) << inside.details;
  EXPECT_EQ(inside.maxErrorOfBound, 1);
  expected.bounds[1] = 0.125;
  Verdict outside = judge("y", expected.value, expected);
  EXPECT_FALSE(outside.passed);
  EXPECT_EQ(outside.mismatches, 0u);
  EXPECT_THAT(outside.details, testing::HasSubstr("of the plain sum: 1 of 2 elements lie beyond their bound"));
}

// A result without bits of its own is judged by its bound alone.
TEST(Reference, BoundsJudgeWhereNoModelHasBits) {
  ReferenceValue expected;
  expected.value = input({{1, 2}, ElementType::F32, Layout::Linear}, "ones");
  expected.sums = {1, 1.25};
  expected.bounds = {0, 0.25};
  Tensor got = expected.value;
  expected.value.bytes[4] ^= std::byte(1);
  const Verdict inside = judge("y", got, expected);
  EXPECT_TRUE(inside.passed) << inside.details;
  EXPECT_EQ(inside.method, "the fp64 value within its bound");
  expected.bounds[1] = 0.125;
  const Verdict outside = judge("y", got, expected);
  EXPECT_FALSE(outside.passed);
  EXPECT_EQ(outside.mismatches, 1u);
}

// Anything may be where nobody said what is, and nothing else where somebody did.
TEST(Reference, UnspecifiedBytesAreNotCompared) {
  ReferenceValue expected;
  expected.value = input({{2, 2}, ElementType::F32, Layout::Linear}, "ones");
  Tensor got = expected.value;
  got.bytes[3] ^= std::byte(1);
  EXPECT_FALSE(judge("y", got, expected).passed);
  expected.unspecified = {{0, 8}};
  clearUnspecified(expected.value, expected.unspecified);
  const Verdict first = judge("y", got, expected);
  EXPECT_TRUE(first.passed) << first.details;
  EXPECT_THAT(first.method, testing::HasSubstr("where it is specified"));
  got.bytes[8] ^= std::byte(1);
  EXPECT_EQ(judge("y", got, expected).mismatches, 1u);
}

/// Rows before, between and behind the groups, of 4 columns of f32; a group without rows has none.
TEST(Reference, RowsOfNoGroupAreUnspecified) {
  const Type a = {{9, 128}, ElementType::F8E4M3FN, Layout::Linear},
             sa = {{9, 1}, ElementType::F32, Layout::Linear},
             b = {{12, 128}, ElementType::F8E4M3FN, Layout::Linear},
             sb = {{3, 1}, ElementType::F32, Layout::Linear},
             rows = {{3, 2}, ElementType::I64, Layout::Linear},
             y = {{9, 4}, ElementType::F32, Layout::Linear};
  Function f;
  f.name = "groups";
  f.hasProgram = true;
  f.arguments = {{"a0", a}, {"a1", sa}, {"a2", b}, {"a3", sb}, {"a4", rows}};
  f.program = {op("fp4.blockscaled_matmul", {"a0", "a1", "a2", "a3", "a4"}, {"v0"}, {y},
                  {{"format", "fp8_block128"},
                   {"operand_segments", "1,1,1,1,0,0,1,0,0,0,0"},
                   {"unspecified_rows", "unit"}})};
  f.returns = {"v0"};
  f.results = {{"y", y}};
  const int64_t ranges[] = {1, 3, 4, 4, 5, 8};
  Tensor offsets(rows);
  std::memcpy(offsets.bytes.data(), ranges, sizeof ranges);
  const std::vector<Tensor> arguments = {input(a, "ones"), input(sa, "ones"), input(b, "ones"),
                                         input(sb, "ones"), offsets};
  auto results = runReference(f, arguments, 1);
  ASSERT_TRUE(results) << results.error().message;
  std::vector<std::pair<uint64_t, uint64_t>> found;
  for (const ByteRange &range : (*results)[0].unspecified)
    found.push_back({range.begin / 16, range.size / 16});
  EXPECT_THAT(found, testing::ElementsAre(std::pair(0, 1), std::pair(3, 1), std::pair(4, 1),
                                          std::pair(8, 1)));
}

TEST(Reference, OperationsItDoesNotKnowAreErrors) {
  Function f;
  f.arguments = {{"x", bf16(1, 16)}};
  f.program = {op("fp4.transmogrify", {"a0"}, {"v0"}, {kScalar})};
  f.returns = {"v0"};
  std::vector<Tensor> arguments = {input(bf16(1, 16), "ones")};
  auto results = runReference(f, arguments, 1);
  ASSERT_FALSE(results);
  EXPECT_EQ(results.error().message,
            "manifest: operation 'fp4.transmogrify' is not known to the reference");
  f.program = {op("fp4.amax", {"a7"}, {"v0"}, {kScalar})};
  results = runReference(f, arguments, 1);
  ASSERT_FALSE(results);
  EXPECT_EQ(results.error().message,
            "manifest: operation 'fp4.amax' uses 'a7', which is not defined");
}

TEST(Reference, ConstantsAreTheBitsOfOneNumber) {
  Function f;
  f.program = {op("arith.constant", {}, {"v0"}, {kScalar})};
  f.program[0].attributes["value"] = "1069547520"; // 0x3FC00000
  f.returns = {"v0"};
  auto results = runReference(f, {}, 1);
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_EQ((*results)[0].value.as<float>()[0], 1.5f);

  f.program[0].attributes["value"] = "1.5";
  results = runReference(f, {}, 1);
  ASSERT_FALSE(results);
  EXPECT_EQ(results.error().message,
            "manifest: operation 'arith.constant' must have the bits of one fp32 number, but got "
            "'1.5'");
}

TEST(Reference, ATypeThatDiffersIsSaid) {
  ReferenceValue expected;
  expected.value = input(bf16(2, 16), "ones");
  Verdict verdict = judge("y", input(bf16(3, 16), "ones"), expected);
  EXPECT_FALSE(verdict.passed);
  EXPECT_EQ(verdict.details, "expected 2x16xbf16, but got 3x16xbf16");
  // Bytes in another type are another value.
  Tensor halves = expected.value;
  halves.type.element = ElementType::F16;
  verdict = judge("y", halves, expected);
  EXPECT_FALSE(verdict.passed);
  EXPECT_EQ(verdict.details, "expected 2x16xbf16, but got 2x16xf16");
  Tensor turned = expected.value;
  turned.type.shape = {16, 2};
  EXPECT_FALSE(judge("y", turned, expected).passed);
  const Verdict same = judge("y", expected.value, expected);
  EXPECT_TRUE(same.passed);
  EXPECT_EQ(same.elements, 32u); // numbers, not bytes
}

} // namespace
} // namespace fp4::harness
