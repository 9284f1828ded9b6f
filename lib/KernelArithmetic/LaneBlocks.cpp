//===- LaneBlocks.cpp - Codes and scales of a row that lanes share ---------===//
#include "LaneBlocks.h"

#include "InlinePtx.h"
#include "SmallBuilders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fp4;

namespace {
class LaneQuantizer {
public:
  LaneQuantizer(ImplicitLocOpBuilder &b, Scalars &s, const QuantizedRows &rows, Type type,
                int64_t count, int64_t distance)
      : b(b), s(s), quantizer(s, b, rows.recipe), type(type), distance(distance),
        lanes(std::max<int64_t>(1, numerics::blockSizeOf(rows.recipe.format) / count)) {
    quantizer.setTensorAmax(rows.amax);
  }

  BlockQuantizer::Block quantize(ArrayRef<Value> words) {
    if (lanes == 1)
      return quantizer.quantize(words, type);
    Value amax = ofLanes(quantizer.amax(words, type), [&](Value x, Value y) {
      return quantizer.keepsNaN() ? s.maximumOrNaN(x, y) : s.maximumNumber(x, y);
    });
    return quantizer.quantize(words, type, amax, [&](ArrayRef<Value> errors) {
      return ofLanes(errors.front(),
                     [&](Value x, Value y) { return quantizer.combineErrors(x, y); });
    });
  }

  int64_t lanesOfBlock() const { return lanes; }

private:
  Value ofLanes(Value number, function_ref<Value(Value, Value)> combine) {
    for (int64_t apart = distance; apart < distance * lanes; apart *= 2)
      number = combine(number, valueOfPartner(b, number, apart));
    return number;
  }

  ImplicitLocOpBuilder &b;
  Scalars &s;
  BlockQuantizer quantizer;
  Type type;
  int64_t distance, lanes; ///< of neighbours, and of a block
};
} // namespace

void fp4::storeLaneBlocks(ImplicitLocOpBuilder &b, Scalars &s, const QuantizedRows &rows,
                          Value elements, Int32 place, Int32 lane, int64_t distance, Value exists) {
  auto vector = cast<VectorType>(elements.getType());
  int64_t count = vector.getNumElements(), size = numerics::blockSizeOf(rows.recipe.format);
  int64_t perBlock = std::min(count, size), bits = vector.getElementTypeBitWidth();
  SmallVector<Value> words = packedWords(b, elements);
  LaneQuantizer quantizer(b, s, rows, vector.getElementType(), count, distance);
  SmallVector<BlockQuantizer::Block> blocks;
  for (int64_t first = 0; first < count; first += perBlock) {
    blocks.push_back(quantizer.quantize(
        ArrayRef(words).slice(size_t(first * bits / 32), size_t(perBlock * bits / 32))));
  }
  int64_t codeBits = numerics::isPacked(rows.recipe.format) ? 4 : 8;
  emitWhen(b, exists, [&] {
    int64_t behind = 0;
    Value first = address(b, rows.codes, place / (8 / codeBits), 1);
    for (const BlockQuantizer::Block &block : blocks)
      for (Value word : block.codes) {
        fp4::store(b, word, advance(b, first, behind), 4);
        behind += 4;
      }
  });
  Value isFirst = arith::AndIOp::create(b, exists, lane / distance % quantizer.lanesOfBlock() < 1);
  int64_t bytes = numerics::hasF32Scales(rows.recipe.format) ? 4 : 1;
  emitWhen(b, isFirst, [&] {
    for (auto [number, block] : llvm::enumerate(blocks))
      fp4::store(b, block.scale, address(b, rows.scales, place / size + int64_t(number), bytes),
                 unsigned(bytes));
  });
}
