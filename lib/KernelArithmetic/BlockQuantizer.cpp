//===- BlockQuantizer.cpp - The elements of one block scale, in registers -===//
#include "BlockQuantizer.h"
#include "AdaptiveBlock.h"
#include "InlinePtx.h"
#include "QuickBlock.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;
using numerics::Stage;

BlockElements BlockElements::packed(Scalars &s, ArrayRef<Value> words, Type type) {
  BlockElements elements;
  elements.values = s.widen(words, type);
  elements.stored = type;
  elements.amax = [&s, type, words = SmallVector<Value>(words)](bool keepNaN) {
    return s.amax(words, type, keepNaN);
  };
  return elements;
}

BlockElements BlockElements::column(Scalars &s, ArrayRef<Value> words, Type type, unsigned half) {
  BlockElements elements;
  elements.stored = type;
  for (Value word : words)
    elements.values.push_back(s.widenHalf(word, type, half));
  // The quantizers of the two columns ask for the same maxima.
  elements.amax = [&s, type, half, words = SmallVector<Value>(words)](bool keepNaN) {
    return s.laneAmax(s.reducePacked(words, type, keepNaN), type, half, keepNaN);
  };
  return elements;
}

BlockElements BlockElements::finite(Scalars &s, ArrayRef<Value> words, Type type) {
  if (!type.isBF16())
    return packed(s, words, type);
  BlockElements elements = packed(s, words, type);
  for (auto [i, word] : llvm::enumerate(words))
    elements.values[2 * i + 1] = s.widenHighOfFinite(word);
  elements.exact = [&s, type, words = SmallVector<Value>(words)] { return packed(s, words, type); };
  return elements;
}

BlockElements BlockElements::finiteColumn(Scalars &s, ArrayRef<Value> words, Type type,
                                          unsigned half) {
  BlockElements elements = column(s, words, type, half);
  if (!type.isBF16() || half == 0)
    return elements;
  for (auto [value, word] : llvm::zip_equal(elements.values, words))
    value = s.widenHighOfFinite(word);
  elements.exact = [&s, type, half, words = SmallVector<Value>(words)] {
    return column(s, words, type, half);
  };
  return elements;
}

static BlockElements exactly(const BlockElements &elements) {
  return elements.exact ? elements.exact() : elements;
}

BlockQuantizer::BlockQuantizer(Scalars &scalars, ImplicitLocOpBuilder &builder,
                               const numerics::Recipe &recipe)
    : s(scalars), b(builder), description(recipe),
      recipe(scalars, builder, numerics::makeProgram(recipe)) {}

void BlockQuantizer::setTensorAmax(Value amax) {
  tensorAmax = amax;
  recipe.set(RecipeOp::TensorAmax, amax);
  recipe.emit(Stage::Tensor);
}

bool BlockQuantizer::keepsNaN() const {
  return recipe.program().amaxNaN == numerics::NanPolicy::Propagate;
}

Value BlockQuantizer::amax(ArrayRef<Value> words, Type type) {
  return s.amax(words, type, keepsNaN());
}

Value BlockQuantizer::combineErrors(Value x, Value y) {
  return recipe.program().errorIsLargest ? s.maximumOrNaN(x, y) : s.add(x, y);
}

/// In element order, as lib/Numerics adds them.
Value BlockQuantizer::errorOf(ArrayRef<Value> elements, ArrayRef<Value> codes) {
  SmallVector<Value> decoded;
  for (Value word : codes)
    decoded.append(s.unpackE2M1(word));
  if (errorDivisions)
    errorDivisions->trustDividends(true);
  Value total;
  for (auto [element, value] : llvm::zip_equal(elements, decoded)) {
    recipe.set(RecipeOp::Element, element);
    recipe.set(RecipeOp::Decoded, value);
    recipe.emit(Stage::Element); // the distance is from this element
    recipe.emit(Stage::Error);
    Value error = recipe[recipe.program().error];
    total = total ? combineErrors(total, error) : error;
  }
  if (errorDivisions)
    errorDivisions->trustDividends(false);
  return total;
}

BlockQuantizer::Candidate BlockQuantizer::encode(const BlockElements &elements, float stretch,
                                                 FoldErrors fold, ArrayRef<Value> random) {
  recipe.set(RecipeOp::Stretch, s.constant(stretch));
  recipe.emit(Stage::Block);
  SmallVector<Value> scaled;
  for (Value element : elements.values) {
    recipe.set(RecipeOp::Element, element);
    recipe.emit(Stage::Element);
    scaled.push_back(recipe[recipe.program().element]);
  }
  Candidate result;
  for (size_t first = 0; first < scaled.size(); first += 8) {
    ArrayRef<Value> eight = ArrayRef(scaled).slice(first, 8);
    result.block.codes.push_back(random.empty()
                                     ? s.packE2M1(eight)
                                     : s.packE2M1Stochastic(eight, random.slice(first / 4, 2)));
  }
  Value byte = recipe[recipe.program().scaleByte];
  result.block.scale = arith::TruncIOp::create(b, b.getI8Type(), byte);
  if (recipe.program().error == numerics::noValue)
    return result;
  SmallVector<Value> errors;
  size_t perRow = elements.values.size() / elements.rows;
  for (size_t first = 0; first < elements.values.size(); first += perRow)
    errors.push_back(errorOf(ArrayRef(elements.values).slice(first, perRow),
                             ArrayRef(result.block.codes).slice(first / 8, perRow / 8)));
  result.error = fold ? fold(errors) : errors.front();
  return result;
}

/// Replaces `best` where the error of `candidate` is smaller; a NaN is not.
void BlockQuantizer::keepSmaller(const Candidate &candidate, Candidate &best) {
  Value wins = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, candidate.error, best.error);
  auto choose = [&](Value x, Value y) { return arith::SelectOp::create(b, wins, x, y); };
  for (auto [mine, other] : llvm::zip_equal(best.block.codes, candidate.block.codes))
    mine = choose(other, mine);
  best.block.scale = choose(candidate.block.scale, best.block.scale);
  best.error = choose(candidate.error, best.error);
}

/// A value of stage Element of an element.
Value BlockQuantizer::valueOf(Value element, numerics::Value value) {
  recipe.set(RecipeOp::Element, element);
  recipe.emit(Stage::Element);
  return recipe[value];
}

/// The codes of four elements, of a byte each. Two elements take one conversion to E4M3.
Value BlockQuantizer::encodeFour(ArrayRef<Value> elements) {
  numerics::Value code = recipe.program().elementCode;
  const numerics::Instruction &last = recipe.program().code[code];
  if (last.op == RecipeOp::ToE4M3) {
    SmallVector<Value> pairs;
    for (size_t i = 0; i < 4; i += 2)
      pairs.push_back(packE4M3(b, valueOf(elements[i], last.operands[0]),
                               valueOf(elements[i + 1], last.operands[0])));
    auto halves = VectorType::get(2, b.getI16Type()), word = VectorType::get(1, b.getI32Type());
    Value packed = vector::FromElementsOp::create(b, halves, pairs);
    return vector::ExtractOp::create(b, vector::BitCastOp::create(b, word, packed), 0);
  }
  Value word = valueOf(elements[0], code);
  for (size_t i = 1; i < 4; ++i) {
    Value shifted = arith::ShLIOp::create(b, valueOf(elements[i], code),
                                          s.integer(static_cast<int64_t>(8 * i)));
    word = arith::OrIOp::create(b, word, shifted);
  }
  return word;
}

/// Elements of more than 4 bits, whose codes the recipe computes itself.
BlockQuantizer::Block BlockQuantizer::encodeWide(const BlockElements &elements) {
  recipe.emit(Stage::Block);
  Block block;
  for (size_t first = 0; first < elements.values.size(); first += 4)
    block.codes.push_back(encodeFour(ArrayRef(elements.values).slice(first, 4)));
  block.scale = recipe[recipe.program().scaleByte];
  if (!numerics::hasF32Scales(description.format))
    block.scale = arith::TruncIOp::create(b, b.getI8Type(), block.scale);
  return block;
}

BlockQuantizer::Block BlockQuantizer::quantizeAsSpelled(const BlockElements &elements,
                                                        Value blockAmax, FoldErrors fold,
                                                        ArrayRef<Value> random) {
  recipe.set(RecipeOp::BlockAmax, blockAmax ? blockAmax : elements.amax(keepsNaN()));
  if (recipe.program().elementCode != numerics::noValue)
    return encodeWide(elements);
  Candidate best;
  for (float stretch : recipe.program().candidates) {
    Candidate candidate = encode(elements, stretch, fold, random);
    if (best.block.scale)
      keepSmaller(candidate, best);
    else
      best = std::move(candidate);
  }
  return best.block;
}

/// Candidate scales by quick divisions. The distances are those of (code * scale) * amax, zero or
/// the amax times 2^-10 to 2688.
BlockQuantizer::Block BlockQuantizer::quantizeAdaptively(const BlockElements &elements) {
  Scalars::QuickDivisions divisions(s);
  divisions.expectBetween(tensorAmax, 0x1p-40f, 0x1p40f);
  errorDivisions = &divisions;
  Block quick = quantizeAsSpelled(elements, {}, {}, {});
  errorDivisions = nullptr;
  Value holds = divisions.end();
  using Blocks = QuickBlock::Blocks;
  return QuickBlock::choose(
             b, holds, 1, quick.codes.size(), [&] { return Blocks{quick}; },
             [&] { return Blocks{quantizeAsSpelled(elements, {}, {}, {})}; })
      .front();
}

bool BlockQuantizer::isQuick(Type stored, bool stochastic) const {
  return QuickBlock::applies(description, recipe.program(), stored, stochastic, s.targetModel()) &&
         ScaleTable::applies(description, recipe.program());
}

/// Quantizes blocks by quick divisions. Exceptional blocks emit the stage of the tensor themselves,
/// because nothing else needs it.
SmallVector<BlockQuantizer::Block> BlockQuantizer::quantizeTogether(ArrayRef<BlockElements> blocks,
                                                                    ScaleTable &table,
                                                                    ArrayRef<Value> random) {
  size_t perBlock = random.size() / blocks.size();
  auto asSpelled = [&] {
    SmallVector<Value> emitted = recipe.emitted();
    recipe.emit(Stage::Tensor);
    QuickBlock::Blocks results;
    for (auto [i, elements] : llvm::enumerate(blocks))
      results.push_back(
          quantizeAsSpelled(exactly(elements), {}, {}, random.slice(i * perBlock, perBlock)));
    recipe.restore(emitted);
    return results;
  };
  return QuickBlock(s, b, recipe, random, &table).quantize(blocks, asSpelled);
}

void BlockQuantizer::fillTable(ScaleTable &table, Value tensorAmax, Value byte, Type stored,
                               bool stochastic) {
  RecipeEmitter own(s, b, recipe.program());
  own.set(RecipeOp::TensorAmax, tensorAmax);
  own.emit(Stage::Tensor);
  table.fill(own, byte, stored, stochastic);
}

BlockQuantizer::Block BlockQuantizer::quantize(const BlockElements &elements, Value blockAmax,
                                               FoldErrors fold, ArrayRef<Value> random) {
  auto asSpelled = [&] { return quantizeAsSpelled(exactly(elements), blockAmax, fold, random); };
  bool isOwn = !blockAmax && !fold;
  if (isOwn && QuickBlock::applies(description, recipe.program(), elements.stored, !random.empty(),
                                   s.targetModel()))
    return QuickBlock(s, b, recipe, random, /*table=*/nullptr)
        .quantize(elements, [&] { return QuickBlock::Blocks{asSpelled()}; })
        .front();
  if (isOwn &&
      AdaptiveBlock::applies(description, recipe.program(), elements.stored, s.targetModel()))
    return AdaptiveBlock(s, b, description, recipe, tensorAmax)
        .quantize(exactly(elements), asSpelled);
  if (isOwn && recipe.program().candidates.size() > 1)
    return quantizeAdaptively(exactly(elements));
  return asSpelled();
}
