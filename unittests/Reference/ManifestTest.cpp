//===- ManifestTest.cpp - The manifest's fields, right and wrong ----------===//

#include "fp4/Reference/Manifest.h"

#include <gmock/gmock.h>

namespace fp4::harness {
namespace {

using testing::HasSubstr;

const std::string kManifest = R"({"schema":1,"compiler":"fp4 0.1.0","target":"sm_100a","functions":[
  {"name":"f","symbol":"fp4_entry_f",
   "arguments":[{"name":"x","shape":[-1,64],"type":"bf16","layout":"linear","dims":["M","K/16"]}],
   "results":[{"name":"r0","shape":[],"type":"f32","layout":"linear"}],
   "program":[{"op":"fp4.amax","operands":["a0"],"results":["v0"],
               "result_types":[{"shape":[],"type":"f32","layout":"linear"}],
               "attributes":{"groups":128,"format":"nvfp4"}}],
   "fused":[{"op":"fp4.hadamard_amax","operands":["a0"],"results":[],"result_types":[]}],
   "returns":["v0"]}],
  "kernels":[{"module":"m","name":"k","registers":40,"shared_bytes":1024}]})";

std::string replaced(const std::string &from, const std::string &to) {
  std::string text = kManifest;
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string errorOf(const std::string &text) {
  auto manifest = Manifest::parse(text);
  if (manifest)
    return "parsed";
  EXPECT_EQ(manifest.error().kind, ErrorKind::Usage);
  return manifest.error().message;
}

TEST(Manifest, EveryFieldArrives) {
  auto manifest = Manifest::parse(kManifest);
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_EQ(manifest->target, "sm_100a");
  ASSERT_EQ(manifest->functions.size(), 1u);
  const Function &function = manifest->functions[0];
  EXPECT_EQ(function.symbol, "fp4_entry_f");
  EXPECT_EQ(function.arguments[0].type.str(), "?x64xbf16");
  EXPECT_EQ(function.arguments[0].dims, (std::vector<std::string>{"M", "K/16"}));
  EXPECT_EQ(function.fused.at(0).op, "fp4.hadamard_amax");
  EXPECT_TRUE(function.hasProgram);
  EXPECT_EQ(function.program[0].attributes.at("groups"), "128");
  EXPECT_EQ(function.program[0].attributes.at("format"), "nvfp4");
  EXPECT_EQ(manifest->kernels[0].registers, 40u);
  EXPECT_EQ(manifest->kernels[0].cubinBytes, 0u);
}

TEST(Manifest, WrongFieldsAreNamedByTheirPath) {
  EXPECT_THAT(errorOf("{"), HasSubstr("must be JSON"));
  EXPECT_THAT(errorOf("[]"), HasSubstr("'schema' is missing"));
  EXPECT_THAT(errorOf(replaced("\"schema\":1", "\"schema\":2")),
              HasSubstr("'schema' must be 1, but got 2"));
  EXPECT_THAT(errorOf(replaced("[-1,64]", "[-2,64]")),
              HasSubstr("'functions[0].arguments[0].shape[0]' must be a positive size"));
  EXPECT_THAT(errorOf(replaced("[-1,64]", "[0,64]")),
              HasSubstr("'functions[0].arguments[0].shape[0]' must be a positive size"));
  EXPECT_THAT(errorOf(replaced("\"bf16\"", "\"f8\"")),
              HasSubstr("'functions[0].arguments[0].type' must be one of bf16, f16, f32"));
  EXPECT_THAT(errorOf(replaced("\"linear\"", "\"blocked\"")),
              HasSubstr("layout' must be linear, tiled_128x4 or wgmma_rows, but got \"blocked\""));
  EXPECT_THAT(errorOf(replaced("\"M\",", "")),
              HasSubstr("'functions[0].arguments[0].dims' must be as long as 'shape'"));
  EXPECT_THAT(errorOf(replaced("\"returns\":[\"v0\"]", "\"returns\":[]")),
              HasSubstr("'functions[0].returns' must be as long as 'results'"));
  EXPECT_THAT(errorOf(replaced("\"operands\":[\"a0\"]", "\"operands\":\"a0\"")),
              HasSubstr("'functions[0].program[0].operands' must be an array"));
}

TEST(Manifest, NestingIsBounded) {
  auto nested = [](size_t depth) {
    return replaced("{\"groups\":128", "{\"deep\":" + std::string(depth, '[') +
                                           std::string(depth, ']') + ",\"groups\":128");
  };
  EXPECT_EQ(errorOf(nested(20)), "parsed");
  EXPECT_THAT(errorOf(nested(100000)), HasSubstr("values must nest at most 32 deep"));
  EXPECT_THAT(errorOf(std::string(100000, '[')), HasSubstr("must nest at most 32 deep"));
}

TEST(Type, BuffersAreDense) {
  Type codes{{3, 48}, ElementType::F4E2M1FN, Layout::Linear};
  EXPECT_EQ(codes.bufferShape(), (std::vector<int64_t>{3, 24}));
  EXPECT_EQ(codes.bufferBytes(), 72u);
  codes.shape = {-1, -1};
  EXPECT_EQ(codes.bufferShape(), (std::vector<int64_t>{-1, -1}));
  EXPECT_EQ((Type{{2}, ElementType::I64, Layout::Linear}).bufferBytes(), 16u);
  Type tiled{{129, 5}, ElementType::F8E4M3FN, Layout::Tiled128x4};
  EXPECT_EQ(tiled.bufferShape(), (std::vector<int64_t>{2, 2, 512}));
  EXPECT_EQ(tiled.str(), "129x5xf8E4M3FN, tiled_128x4");
  Type scalar{{}, ElementType::F32, Layout::Linear};
  EXPECT_EQ(scalar.bufferBytes(), 4u);
  EXPECT_EQ(scalar.str(), "f32");
  Type huge{{INT64_MAX, INT64_MAX}, ElementType::F32, Layout::Linear};
  EXPECT_EQ(huge.bufferBytes(), UINT64_MAX);
  Type rows{{INT64_MAX, 4}, ElementType::F8E4M3FN, Layout::Tiled128x4};
  EXPECT_EQ(rows.bufferShape(), (std::vector<int64_t>{INT64_MAX / 128 + 1, 1, 512}));
}

} // namespace
} // namespace fp4::harness
