//===- BlockQuantizer.cpp - The elements of one block scale, in registers -===//
#include "BlockQuantizer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fp4;
using numerics::Stage;

BlockQuantizer::BlockQuantizer(Scalars &scalars, ImplicitLocOpBuilder &builder,
                               const numerics::Recipe &recipe)
    : s(scalars), b(builder), recipe(scalars, builder, numerics::makeProgram(recipe)) {}

void BlockQuantizer::setTensorAmax(Value amax) {
  recipe.set(RecipeOp::TensorAmax, amax);
  recipe.emit(Stage::Tensor);
}

bool BlockQuantizer::keepsNaN() const {
  return recipe.program().amaxNaN == numerics::NanPolicy::Propagate;
}

Value BlockQuantizer::amax(ArrayRef<Value> elements) { return s.amax(elements, keepsNaN()); }

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
  Value total;
  for (auto [element, value] : llvm::zip_equal(elements, decoded)) {
    recipe.set(RecipeOp::Element, element);
    recipe.set(RecipeOp::Decoded, value);
    recipe.emit(Stage::Element); // the distance is from this element
    recipe.emit(Stage::Error);
    Value error = recipe[recipe.program().error];
    total = total ? combineErrors(total, error) : error;
  }
  return total;
}

BlockQuantizer::Candidate BlockQuantizer::encode(ArrayRef<Value> elements, float stretch,
                                                 ArrayRef<Value> random) {
  recipe.set(RecipeOp::Stretch, s.constant(stretch));
  recipe.emit(Stage::Block);
  SmallVector<Value> scaled;
  for (Value element : elements) {
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
  if (recipe.program().error != numerics::noValue)
    result.error = errorOf(elements, result.block.codes);
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

BlockQuantizer::Block BlockQuantizer::quantize(ArrayRef<Value> elements, Value blockAmax,
                                               FoldErrors fold, ArrayRef<Value> random) {
  recipe.set(RecipeOp::BlockAmax, blockAmax ? blockAmax : amax(elements));
  Candidate best;
  for (float stretch : recipe.program().candidates) {
    Candidate candidate = encode(elements, stretch, random);
    if (candidate.error && fold)
      candidate.error = fold(candidate.error);
    if (best.block.scale)
      keepSmaller(candidate, best);
    else
      best = std::move(candidate);
  }
  return best.block;
}

BlockQuantizer::Block BlockQuantizer::quantize(ArrayRef<Value> words, Type type, Value blockAmax,
                                               FoldErrors fold, ArrayRef<Value> random) {
  return quantize(s.widen(words, type), blockAmax ? blockAmax : amax(words, type), fold, random);
}
