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

/// `convert` makes scales of one layout out of those of another.
static Status runConversion(Step &step, decltype(&numerics::swizzleScales) convert) {
  FP4_TRY(step.expect(1, 1));
  FP4_ASSIGN(auto shape, step.matrix(0));
  FP4_ASSIGN(auto scales, convert(bytesOf(*step.operands[0]), shape.first, shape.second));
  return step.define(0, scales);
}

Status runSwizzle(Step &step) { return runConversion(step, numerics::swizzleScales); }
Status runUnswizzle(Step &step) { return runConversion(step, numerics::unswizzleScales); }

Status runAlpha(Step &step) {
  FP4_TRY(step.expect(2, 1));
  FP4_ASSIGN(auto lhs, numerics::parseRecipe(step.attributeOr("lhs_recipe", "transformer_engine")));
  FP4_ASSIGN(auto rhs, numerics::parseRecipe(step.attributeOr("rhs_recipe", "transformer_engine")));
  return step.defineFloats(0, numerics::matmulAlpha(lhs, floats(*step.operands[0]), rhs,
                                                    floats(*step.operands[1])));
}

namespace {

/// A product whose operands lie in a step, with what of it the step does not own.
struct OwnedProblem {
  numerics::GemmProblem gemm;
  std::vector<uint8_t> scalesA, scalesB;
  std::vector<float> alphas;
};

/// Alpha is the optional operand 4: one number, one for each row, or one for each column.
void setAlpha(OwnedProblem &problem, const Tensor &alpha) {
  problem.alphas = floats(alpha);
  if (alpha.type.shape.empty())
    problem.gemm.alpha = problem.alphas.front();
  else
    (alpha.type.shape.back() == 1 ? problem.gemm.rowAlpha : problem.gemm.columnAlpha) =
        problem.alphas;
}

Status setOperands(OwnedProblem &problem, Step &step) {
  FP4_ASSIGN(auto lhs, step.matrix(0));
  FP4_ASSIGN(auto rhs, step.matrix(2));
  if (lhs.second != rhs.second)
    return step.wrong(fmt::format("must have matrices of equal depth, but got {} and {}",
                                  step.operands[0]->type.str(), step.operands[2]->type.str()));
  FP4_ASSIGN(problem.scalesA, linearScales(*step.operands[1]));
  FP4_ASSIGN(problem.scalesB, linearScales(*step.operands[3]));
  problem.gemm.depth = lhs.second;
  const auto pitch = static_cast<uint64_t>(hw::denseRowBytes(int64_t(lhs.second)));
  problem.gemm.a = {bytesOf(*step.operands[0]).data(), problem.scalesA.data(), lhs.first, pitch, 0};
  problem.gemm.b = {bytesOf(*step.operands[2]).data(), problem.scalesB.data(), rhs.first, pitch, 0};
  if (step.operands.size() > 4)
    setAlpha(problem, *step.operands[4]);
  return {};
}

} // namespace

Status runMatmul(Step &step) {
  FP4_TRY(step.expect(4, 1));
  FP4_ASSIGN(auto formatName, step.attribute("format"));
  auto format = numerics::parseBlockFormat(formatName);
  if (!format)
    return step.wrong(fmt::format("has the unknown format '{}'", formatName));
  OwnedProblem owned;
  FP4_TRY(setOperands(owned, step));
  numerics::GemmProblem &problem = owned.gemm;
  problem.format = *format;
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
