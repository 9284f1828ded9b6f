//===- ReferenceShards.cpp - Gathering shards, on the host ----------------===//

#include "Interpreter.h"

#include "fp4/Numerics/ScaleMatrix.h"

namespace fp4::harness {

Status runStackScales(Step &step) {
  FP4_TRY(step.expect(1, 1));
  std::vector<numerics::ScaleShard> shards;
  uint64_t blocks = 0;
  for (size_t i = 0; i < step.operands.size(); ++i) {
    FP4_ASSIGN(auto shape, step.matrix(i));
    shards.push_back({bytesOf(*step.operands[i]), shape.first});
    blocks = shape.second;
  }
  const auto layout = step.types[0].layout == Layout::Linear ? numerics::ScaleLayout::Linear
                                                             : numerics::ScaleLayout::Tiled128x4;
  FP4_ASSIGN(auto stacked, numerics::stackScales(shards, blocks, layout));
  return step.define(0, stacked);
}

Status runInterleaveShards(Step &step) {
  FP4_TRY(step.expect(1, 1));
  FP4_ASSIGN(auto shards, step.integer("shards", 1));
  FP4_ASSIGN(auto shape, step.matrix(0));
  const auto [rows, columns] = shape;
  if (shards == 0 || rows % shards)
    return step.wrong("has rows that are no multiple of its shards");
  const bool packed = step.operands[0]->type.element == ElementType::F4E2M1FN;
  FP4_ASSIGN(auto interleaved,
             numerics::interleaveShards(bytesOf(*step.operands[0]), shards, rows / shards,
                                        packed ? columns / 2 : columns));
  return step.define(0, interleaved);
}

} // namespace fp4::harness
