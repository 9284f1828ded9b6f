//===- ReferenceAttention.cpp - Attention, on the host --------------------===//

#include "Interpreter.h"

#include "fp4/Numerics/Attention.h"

#include <bit>

namespace fp4::harness {

/// Attention in fp64, with the bound of its kernels: the order of their sums is not that of the
/// operation, so that results have no bits of their own.
Status runAttention(Step &step) {
  if (step.operands.size() < 3)
    return step.wrong("must have queries, keys and values");
  FP4_ASSIGN(auto lengths, step.optional(3));
  FP4_ASSIGN(auto pages, step.optional(4));
  FP4_TRY(step.expect(3 + size_t(lengths != nullptr) + size_t(pages != nullptr), 1));
  for (size_t i = 0; i < 3; ++i)
    if (step.operands[i]->type.shape.size() != 4)
      return step.wrong("must have operands of four dimensions");
  const std::vector<int64_t> &query = step.operands[0]->type.shape,
                             &key = step.operands[1]->type.shape,
                             &value = step.operands[2]->type.shape;
  FP4_ASSIGN(auto scale, step.integer("scale", std::bit_cast<uint32_t>(1.0f)));
  numerics::AttentionShape shape;
  shape.batches = uint64_t(query[0]);
  shape.queryTokens = uint64_t(query[1]);
  shape.heads = uint64_t(query[2]);
  shape.queryElements = uint64_t(query[3]);
  shape.keyTokens = uint64_t(key[1]);
  shape.keyHeads = uint64_t(key[2]);
  shape.valueElements = uint64_t(value[3]);
  shape.scale = std::bit_cast<float>(uint32_t(scale));
  shape.causal = step.op.attributes.contains("causal");
  if (lengths)
    shape.lengths = lengths->as<int32_t>();
  if (pages) {
    shape.pages = pages->as<int32_t>();
    shape.pageTokens = uint64_t(key[1]);
    shape.keyTokens = shape.pages.size() / shape.batches * shape.pageTokens;
  }
  const numerics::FloatType type = floatType(step.operands[0]->type.element);
  FP4_ASSIGN(auto reference, numerics::referenceAttention(shape, type, floats(*step.operands[0]),
                                                          floats(*step.operands[1]),
                                                          floats(*step.operands[2]), step.threads));
  FP4_TRY(
      step.defineFloats(0, std::vector<float>(reference.values.begin(), reference.values.end())));
  step.results[0].sums = std::move(reference.values);
  step.results[0].bounds = std::move(reference.bounds);
  return {};
}

} // namespace fp4::harness
