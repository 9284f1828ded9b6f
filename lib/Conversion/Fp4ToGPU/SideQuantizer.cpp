//===- SideQuantizer.cpp - Quantization of one output ---------------------===//
#include "SideQuantizer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fp4;

RandomSide fp4::randomSideOf(QuantizeOp op, bool columnwise, Value groupsPerRow, Value firstGroup) {
  RandomSide side;
  if (op.getPhilox() == Philox::TransformerEngine)
    side.mapping = numerics::PhiloxMapping::TransformerEngineBlockwise;
  side.columnwise = columnwise;
  side.afterRowwise = columnwise && op.hasRowwise();
  side.inputColumns = cast<RankedTensorType>(op.getInput().getType()).getDimSize(1);
  side.groupsPerRow = groupsPerRow;
  side.firstGroup = firstGroup;
  return side;
}

SideQuantizer::SideQuantizer(Scalars &s, ImplicitLocOpBuilder &b, QuantizeOp op, bool columnwise,
                             Value amax, Value rng, Value groupsPerRow, Value firstGroup)
    : s(s), element(cast<RankedTensorType>(op.getInput().getType()).getElementType()),
      blockSize(op.getBlockSize()), quantizer(s, b, op.getRecipe().getDecisions()) {
  if (rng) // loaded beside the amax, behind whose arithmetic it would be waited for once more
    random.emplace(b, rng, randomSideOf(op, columnwise, groupsPerRow, firstGroup));
  if (amax || !op.getPerRow())
    quantizer.setTensorAmax(amax);
  auto transform = columnwise ? op.getColumnwiseHadamard() : op.getHadamard();
  // Other transforms run on the tensor core before this point.
  if (transform && transform->getArithmetic() == HadamardArithmetic::Butterfly)
    butterfly.emplace(s, b, transform->options());
}

SmallVector<Value> SideQuantizer::randomWords(ArrayRef<BlockPlace> places) {
  SmallVector<Value> words;
  if (random)
    for (const BlockPlace &place : places)
      words.append(place.row ? random->words(place.row, place.block, blockSize)
                             : random->words(place.index, blockSize));
  return words;
}

BlockQuantizer::Block SideQuantizer::quantize(BlockElements elements, ArrayRef<BlockPlace> places,
                                              Value blockAmax, BlockQuantizer::FoldErrors fold) {
  if (butterfly)
    elements = butterfly->transformBlock(elements);
  elements.rows = places.size();
  return quantizer.quantize(elements, blockAmax, fold, randomWords(places));
}

BlockQuantizer::Block SideQuantizer::quantize(ArrayRef<Value> words, ArrayRef<BlockPlace> places,
                                              Value blockAmax, BlockQuantizer::FoldErrors fold) {
  return quantize(BlockElements::packed(s, words, element), places, blockAmax, fold);
}

BlockQuantizer::Block SideQuantizer::quantizeColumn(ArrayRef<Value> words, unsigned half,
                                                    const BlockPlace &place, Value blockAmax) {
  return quantize(BlockElements::column(s, words, element, half), place, blockAmax, /*fold=*/{});
}

bool SideQuantizer::isQuick() const { return quantizer.isQuick(element, random.has_value()); }

void SideQuantizer::fillTable(ScaleTable &table, Value amax, Value byte) {
  quantizer.fillTable(table, amax, byte, element, random.has_value());
}

SmallVector<BlockQuantizer::Block>
SideQuantizer::quantizeTogether(MutableArrayRef<BlockElements> blocks, ArrayRef<BlockPlace> places,
                                ScaleTable &table) {
  if (butterfly)
    for (BlockElements &block : blocks)
      block = butterfly->transformBlock(block);
  return quantizer.quantizeTogether(blocks, table, randomWords(places));
}

SmallVector<BlockQuantizer::Block>
SideQuantizer::quantizeTogether(ArrayRef<SmallVector<Value>> words, ArrayRef<BlockPlace> places,
                                ScaleTable &table) {
  SmallVector<BlockElements> blocks;
  for (ArrayRef<Value> block : words)
    blocks.push_back(BlockElements::finite(s, block, element));
  return quantizeTogether(MutableArrayRef(blocks), places, table);
}

SmallVector<BlockQuantizer::Block> SideQuantizer::quantizeColumns(ArrayRef<Value> words,
                                                                  ArrayRef<BlockPlace> places,
                                                                  ScaleTable &table) {
  SmallVector<BlockElements> blocks;
  for (unsigned half : {0, 1})
    blocks.push_back(BlockElements::finiteColumn(s, words, element, half));
  return quantizeTogether(MutableArrayRef(blocks), places, table);
}

BlockQuantizer::Block fp4::mixBits(ImplicitLocOpBuilder &b, ArrayRef<Value> words, Value amax,
                                   int64_t codeWords) {
  BlockQuantizer::Block block;
  for (int64_t i = 0; i < codeWords; ++i) {
    Value mixed = words[i];
    for (size_t w = i + codeWords; w < words.size(); w += codeWords)
      mixed = arith::XOrIOp::create(b, mixed, words[w]);
    block.codes.push_back(mixed);
  }
  Value scale = words.back();
  if (amax)
    scale = arith::XOrIOp::create(b, scale,
                                  arith::BitcastOp::create(b, b.getI32Type(), amax).getResult());
  block.scale = arith::TruncIOp::create(b, b.getI8Type(), scale);
  return block;
}
