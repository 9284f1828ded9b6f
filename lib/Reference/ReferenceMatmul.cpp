//===- ReferenceMatmul.cpp - Products and their scales, on the host -------===//

#include "Interpreter.h"

#include "fp4/ISA/BufferShape.h"
#include "fp4/Numerics/BlockScaledGemm.h"
#include "fp4/Numerics/Quantize.h"
#include "fp4/Support/Progress.h"

#include <fmt/format.h>

namespace fp4::harness {

Expected<std::vector<uint8_t>> linearScales(const Tensor &scales) {
  if (scales.type.layout == Layout::Tiled128x4 && scales.type.shape.size() == 2)
    return numerics::unswizzleScales(bytesOf(scales), uint64_t(scales.type.shape[0]),
                                     uint64_t(scales.type.shape[1]));
  return std::vector<uint8_t>(bytesOf(scales).begin(), bytesOf(scales).end());
}

Status runSwizzle(Step &step) {
  FP4_TRY(step.expect(1, 1));
  FP4_ASSIGN(auto shape, step.matrix(0));
  FP4_ASSIGN(auto tiled,
             numerics::swizzleScales(bytesOf(*step.operands[0]), shape.first, shape.second));
  return step.define(0, tiled);
}

Status runUnswizzle(Step &step) {
  FP4_TRY(step.expect(1, 1));
  FP4_ASSIGN(auto shape, step.matrix(0));
  FP4_ASSIGN(auto linear,
             numerics::unswizzleScales(bytesOf(*step.operands[0]), shape.first, shape.second));
  return step.define(0, linear);
}

Status runAlpha(Step &step) {
  FP4_TRY(step.expect(2, 1));
  FP4_ASSIGN(auto lhs, numerics::parseRecipe(step.attributeOr("lhs_recipe", "transformer_engine")));
  FP4_ASSIGN(auto rhs, numerics::parseRecipe(step.attributeOr("rhs_recipe", "transformer_engine")));
  return step.defineFloats(0, numerics::matmulAlpha(lhs, floats(*step.operands[0]), rhs,
                                                    floats(*step.operands[1])));
}

Status runMatmul(Step &step) {
  FP4_TRY(step.expect(4, 1));
  FP4_ASSIGN(auto formatName, step.attribute("format"));
  auto format = numerics::parseBlockFormat(formatName);
  if (!format)
    return step.wrong(fmt::format("has the unknown format '{}'", formatName));
  FP4_ASSIGN(auto lhs, step.matrix(0));
  FP4_ASSIGN(auto rhs, step.matrix(2));
  if (lhs.second != rhs.second)
    return step.wrong(fmt::format("must have matrices of equal depth, but got {} and {}",
                                  step.operands[0]->type.str(), step.operands[2]->type.str()));
  FP4_ASSIGN(auto scalesA, linearScales(*step.operands[1]));
  FP4_ASSIGN(auto scalesB, linearScales(*step.operands[3]));
  numerics::GemmProblem problem;
  problem.format = *format;
  problem.depth = lhs.second;
  const auto pitch = static_cast<uint64_t>(hw::denseRowBytes(int64_t(problem.depth)));
  problem.a = {bytesOf(*step.operands[0]).data(), scalesA.data(), lhs.first, pitch, 0};
  problem.b = {bytesOf(*step.operands[2]).data(), scalesB.data(), rhs.first, pitch, 0};
  std::vector<float> alphas;
  if (step.operands.size() > 4) {
    alphas = floats(*step.operands[4]);
    const std::vector<int64_t> &shape = step.operands[4]->type.shape;
    if (shape.empty())
      problem.alpha = alphas.front();
    else
      (shape.back() == 1 ? problem.rowAlpha : problem.columnAlpha) = alphas;
  }
  problem.output = floatType(step.types[0].element);
  FP4_ASSIGN(problem.epilogue, numerics::parseEpilogue(step.attributeOr("epilogue", "")));
  problem.threads = step.threads;
  problem.progress = makeProgressLine("verifying", "elements");
  FP4_ASSIGN(auto model, numerics::gemmMmaModel(problem));
  FP4_ASSIGN(auto plain, numerics::gemmReference(problem));
  FP4_TRY(step.defineFloats(0, model));
  ReferenceValue &result = step.results[0];
  result.isProduct = true;
  result.sums = std::move(plain.values);
  result.bounds = std::move(plain.bounds);
  result.mayOverflow = std::move(plain.mayOverflow);
  return {};
}

} // namespace fp4::harness
