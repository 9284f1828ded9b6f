//===- SideQuantizer.cpp - What becomes of the blocks of one output -------===//
#include "SideQuantizer.h"

using namespace mlir;
using namespace fp4;

static RandomSide randomSide(QuantizeOp op, bool columnwise, Value groupsPerRow) {
  RandomSide side;
  if (op.getPhilox() == Philox::TransformerEngine)
    side.mapping = numerics::PhiloxMapping::TransformerEngineBlockwise;
  side.columnwise = columnwise;
  side.afterRowwise = columnwise && op.hasRowwise();
  side.inputColumns = cast<RankedTensorType>(op.getInput().getType()).getDimSize(1);
  side.groupsPerRow = groupsPerRow;
  return side;
}

SideQuantizer::SideQuantizer(Scalars &s, ImplicitLocOpBuilder &b, QuantizeOp op, bool columnwise,
                             Value amax, Value rng, Value groupsPerRow)
    : element(cast<RankedTensorType>(op.getInput().getType()).getElementType()),
      blockSize(op.getBlockSize()), quantizer(s, b, op.getRecipe().resolve()) {
  quantizer.setTensorAmax(amax);
  if (auto transform = columnwise ? op.getColumnwiseHadamard() : op.getHadamard())
    butterfly.emplace(s, b, transform->options());
  if (rng)
    random.emplace(b, rng, randomSide(op, columnwise, groupsPerRow));
}

SmallVector<Value> SideQuantizer::randomWords(const BlockPlace &place) {
  if (!random)
    return {};
  return place.row ? random->words(place.row, place.block, blockSize)
                   : random->words(place.index, blockSize);
}

BlockQuantizer::Block SideQuantizer::quantize(ArrayRef<Value> words, const BlockPlace &place,
                                              Value blockAmax, BlockQuantizer::FoldErrors fold) {
  SmallVector<Value> transformed;
  if (butterfly)
    words = transformed = butterfly->transformPacked(words);
  return quantizer.quantize(words, element, blockAmax, fold, randomWords(place));
}
