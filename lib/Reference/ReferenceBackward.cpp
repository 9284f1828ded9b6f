//===- ReferenceBackward.cpp - Gradients of attention, on the host --------===//

#include "Interpreter.h"

#include "fp4/Numerics/AttentionBackward.h"
#include "fp4/Routes/Routes.h"

#include <bit>

namespace fp4::harness {
namespace {

/// The sizes, and what becomes of scores.
Expected<numerics::AttentionShape> shapeOf(const Step &step) {
  const bool isPacked = step.operands.size() > 6;
  for (size_t i = 0; i < 3; ++i)
    if (step.operands[i]->type.shape.size() != (isPacked ? 3 : 4))
      return step.wrong("must have operands of four dimensions, or packed ones of three");
  const std::vector<int64_t> &query = step.operands[0]->type.shape,
                             &key = step.operands[1]->type.shape;
  const size_t tokens = isPacked ? 0 : 1;
  numerics::AttentionShape shape;
  shape.batches = uint64_t(query[0]);
  if (isPacked) {
    shape.batches = uint64_t(step.operands[6]->type.shape[0] - 1);
    shape.queryOffsets = step.operands[6]->as<int32_t>();
    shape.keyOffsets = step.operands[7]->as<int32_t>();
  }
  shape.queryTokens = uint64_t(query[tokens]);
  shape.heads = uint64_t(query[tokens + 1]);
  shape.queryElements = uint64_t(query.back());
  shape.keyTokens = uint64_t(key[tokens]);
  shape.keyHeads = uint64_t(key[tokens + 1]);
  shape.valueElements = uint64_t(step.operands[2]->type.shape.back());
  FP4_ASSIGN(auto scale, step.integer("scale", std::bit_cast<uint32_t>(1.0f)));
  FP4_ASSIGN(auto softcap, step.integer("softcap", 0));
  FP4_ASSIGN(shape.window, step.integer("window", 0));
  shape.scale = std::bit_cast<float>(uint32_t(scale));
  shape.softcap = std::bit_cast<float>(uint32_t(softcap));
  shape.causal = step.op.attributes.contains("causal");
  return shape;
}

/// Defines a result by the bits of the model, and by exact numbers with bounds.
Status defineGradient(Step &step, size_t result, std::span<const float> bits,
                      numerics::BoundedNumbers exact) {
  FP4_TRY(step.defineFloats(result, bits));
  step.results[result].sums = std::move(exact.values);
  step.results[result].bounds = std::move(exact.bounds);
  step.results[result].model = route::ptxName(route::Core::Wgmma);
  return {};
}

} // namespace

/// Gradients of attention in fp64, with the bounds of kernels and their bits.
Status runAttentionBackward(Step &step) {
  FP4_TRY(step.expect(step.operands.size() == 8 ? 8 : 6, 3)); // with offsets of packed sequences
  FP4_ASSIGN(auto shape, shapeOf(step));
  std::vector<std::vector<float>> all;
  for (const Tensor *operand : std::span(step.operands).first(6))
    all.push_back(floats(*operand));
  const numerics::BackwardOperands operands = {all[0], all[1], all[2], all[3], all[4], all[5]};
  const numerics::FloatType type = floatType(step.operands[0]->type.element);
  FP4_ASSIGN(auto exact, numerics::referenceAttentionBackward(shape, type, operands, step.threads));
  FP4_ASSIGN(auto bits, numerics::modelAttentionBackward(shape, type, operands, step.threads));
  FP4_TRY(defineGradient(step, 0, bits.query, std::move(exact.query)));
  FP4_TRY(defineGradient(step, 1, bits.key, std::move(exact.key)));
  return defineGradient(step, 2, bits.value, std::move(exact.value));
}

} // namespace fp4::harness
