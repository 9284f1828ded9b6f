//===- ReferenceRouting.cpp - Choice of experts, on the host --------------===//

#include "Interpreter.h"

#include "fp4/Numerics/ExpertOrder.h"
#include "fp4/Numerics/TopK.h"
#include "fp4/Support/Parallel.h"

#include <fmt/format.h>

namespace fp4::harness {
namespace {

/// The attributes, which fit together.
Expected<numerics::TopK> readTopK(const Step &step, uint64_t columns) {
  FP4_ASSIGN(auto k, step.integer("k", 0));
  FP4_ASSIGN(auto groups, step.integer("num_groups", 1));
  FP4_ASSIGN(auto top, step.integer("top_groups", 1));
  const bool areGroups = groups == 1 || (groups && columns % groups == 0 && columns / groups > 1);
  if (k == 0 || !areGroups || top == 0 || top > groups || k > columns / groups * top)
    return step.wrong(
        fmt::format("has no {} columns in {} of {} groups of {} columns", k, top, groups, columns));
  return numerics::TopK{k, groups, top};
}

template <typename T> Status defineIntegers(Step &step, size_t i, std::span<const T> values) {
  return step.define(i, {reinterpret_cast<const uint8_t *>(values.data()), values.size_bytes()});
}

} // namespace

Status runTopK(Step &step) {
  FP4_TRY(step.expect(1, 2));
  FP4_ASSIGN(auto shape, step.matrix(0));
  const auto [rows, columns] = shape;
  FP4_ASSIGN(auto what, readTopK(step, columns));
  const Tensor &given = *step.operands.back();
  const std::vector<float> scores = floats(*step.operands[0]), weights = floats(given);
  if (scores.size() != rows * columns || weights.size() != scores.size())
    return step.wrong("must have scores and weights of bf16, f16 or f32 of one shape");
  std::vector<float> values(rows * what.k);
  std::vector<int32_t> ids(values.size());
  parallelFor(rows, step.threads, [&](uint64_t row) {
    const auto best = numerics::topK(std::span(scores).subspan(row * columns, columns), what);
    for (size_t i = 0; i < what.k; ++i) {
      ids[row * what.k + i] = best[i];
      values[row * what.k + i] = weights[row * columns + size_t(best[i])];
    }
  });
  FP4_TRY(step.defineFloats(0, values));
  return defineIntegers<int32_t>(step, 1, ids);
}

Status runExpertOrder(Step &step) {
  FP4_TRY(step.expect(1, 3));
  FP4_ASSIGN(auto shape, step.matrix(0));
  FP4_ASSIGN(auto count, step.integer("experts", 0));
  FP4_ASSIGN(auto first, step.integer("first", 0));
  FP4_ASSIGN(auto multiple, step.integer("multiple", 1));
  const Tensor &ids = *step.operands[0];
  if (ids.type.element != ElementType::I32 || shape.second == 0 || count == 0 || multiple == 0)
    return step.wrong(fmt::format("has no {} experts of a multiple of {} rows for ids of type {}",
                                  count, multiple, ids.type.str()));
  const auto order =
      numerics::expertOrder(ids.as<int32_t>(), shape.second, {count, first, multiple});
  FP4_TRY(defineIntegers<int64_t>(step, 0, order.offsets));
  FP4_TRY(defineIntegers<int64_t>(step, 1, order.rows));
  return defineIntegers<int64_t>(step, 2, order.tokens);
}

} // namespace fp4::harness
