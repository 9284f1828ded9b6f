//===- AdaptiveBlock.cpp - Blocks with candidate scales, unexceptional ----===//
#include "AdaptiveBlock.h"
#include "E2M1Steps.h"
#include "QuickBlock.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>

using namespace mlir;
using namespace fp4;
using numerics::Stage;

/// Mask of the low bits that an amax with at most 18 significant ones leaves free.
static constexpr int64_t kFreeBits = 0x3F;

bool AdaptiveBlock::applies(const numerics::Recipe &recipe, const numerics::RecipeProgram &program,
                            Type stored, const hw::TargetModel &target) {
  return !target.features.hasFp4Convert && program.candidates.size() == 2 &&
         recipe.candidateValue == numerics::CandidateValue::AmaxOverRange &&
         numerics::hasE4M3Scales(recipe.format) && stored.getIntOrFloatBitWidth() == 16 &&
         QuickBlock::factorOf(program) != numerics::noValue;
}

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

AdaptiveBlock::Scale AdaptiveBlock::emitScale(float stretch, Value amax,
                                              Scalars::QuickDivisions &divisions) {
  recipe.set(RecipeOp::BlockAmax, amax);
  recipe.set(RecipeOp::Stretch, s.constant(stretch));
  recipe.emit(Stage::Block);
  Value byte = recipe[recipe.program().scaleByte];
  Scale scale{arith::TruncIOp::create(b, b.getI8Type(), byte),
              recipe[QuickBlock::factorOf(recipe.program())],
              {},
              {}};
  Value product = s.multiply(s.fromE4M3(byte), tensorAmax); // exact
  divisions.trustDividends(true); // 0, or 2^-9 to 448 times what tensorAmax may be
  Value quotient = s.divide(product, s.constant(range()));
  divisions.trustDividends(false);
  Value up = s.constant(1 / e2m1::kAlign);
  scale.high = s.multiply(quotient, up);
  int exponent;
  if (std::frexp(range(), &exponent) == 0.75f) // 3 times a power of two
    return scale;
  Value rest = LLVM::FMAOp::create(b, s.constant(-range()), quotient, product); // exact
  scale.low = s.multiply(s.multiply(rest, s.constant(1 / range())), up);
  return scale;
}

Value AdaptiveBlock::emitConditions(Value holds, Value amax, ArrayRef<Scale> scales) {
  auto expect = [&](Value condition) { holds = arith::AndIOp::create(b, holds, condition); };
  Value freeBits = arith::AndIOp::create(b, s.bits(tensorAmax), s.integer(kFreeBits));
  expect(arith::CmpIOp::create(b, arith::CmpIPredicate::eq, freeBits, s.integer(0)));
  for (const Scale &scale : scales) {
    expect(arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, s.multiply(amax, scale.factor),
                                 s.constant(7)));
    expect(arith::CmpFOp::create(b, arith::CmpFPredicate::OGE, scale.factor,
                                 s.constant(e2m1::kLeastFactor)));
  }
  return holds;
}

//===----------------------------------------------------------------------===//
// Codes and errors
//===----------------------------------------------------------------------===//

/// Pairs of elements 2 apart, so that four bytes of codes are those of every other element:
/// (0, 2), (1, 3), (4, 6), (5, 7), ...
static size_t lowOf(size_t pair) { return pair / 2 * 4 + pair % 2; }

/// Two values, aligned, as f16 rounded to E2M1: cut, plus half, cut.
static Value roundPair(Scalars &s, ImplicitLocOpBuilder &b, Value low, Value high) {
  Value pair =
      NVVM::ConvertF32x2ToF16x2Op::create(b, VectorType::get(2, b.getF16Type()), high, low,
                                          /*random_bits=*/Value(), NVVM::FPRoundingMode::RZ);
  Value pattern = LLVM::BitcastOp::create(b, b.getI32Type(), pair);
  Value more = arith::AddIOp::create(b, pattern, s.integer(0x01000100));
  return arith::AndIOp::create(b, more, s.integer(0xFE00FE00));
}

static SmallVector<Value> roundPairs(Scalars &s, ImplicitLocOpBuilder &b, ArrayRef<Value> values) {
  SmallVector<Value> halves;
  for (size_t pair = 0; pair < values.size() / 2; ++pair)
    halves.push_back(roundPair(s, b, values[lowOf(pair)], values[lowOf(pair) + 2]));
  return halves;
}

/// In element order, as lib/Numerics adds them.
Value AdaptiveBlock::errorOf(ArrayRef<Value> elements, ArrayRef<Value> halves, const Scale &scale) {
  auto type = VectorType::get(2, b.getF16Type());
  Value total;
  for (auto [i, element] : llvm::enumerate(elements)) {
    Value pair = LLVM::BitcastOp::create(b, type, halves[i / 4 * 2 + i % 2]);
    Value half = vector::ExtractOp::create(b, pair, static_cast<int64_t>(i % 4 / 2));
    Value code = arith::ExtFOp::create(b, b.getF32Type(), half);
    Value back = scale.low ? LLVM::FMAOp::create(b, code, scale.high, s.multiply(code, scale.low))
                           : s.multiply(code, scale.high);
    Value error = s.absolute(s.subtract(back, element));
    if (description.adaptive == numerics::Adaptive::FourOverSixSquared)
      error = s.multiply(error, error);
    if (!total)
      total = error;
    else
      total = recipe.program().errorIsLargest ? s.maximumNumber(total, error) : s.add(total, error);
  }
  return total;
}

/// Codes of rounded halves, of the second candidate where its error is smaller.
BlockQuantizer::Block AdaptiveBlock::better(const Candidate &first, const Candidate &second) {
  Value wins = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, second.error, first.error);
  auto choose = [&](Value x, Value y) { return arith::SelectOp::create(b, wins, y, x); };
  SmallVector<Value> nibbles;
  for (size_t i = 0; i < first.halves.size(); ++i)
    nibbles.push_back(choose(first.halves[i], second.halves[i]));
  BlockQuantizer::Block block{{}, choose(first.scale, second.scale)};
  for (size_t i = 0; i < nibbles.size(); i += 4) {
    auto high = [&](size_t parity) { // nibbles of every other of eight elements
      Value bytes = s.permute(nibbles[i + parity], nibbles[i + parity + 2], e2m1::kHighBytes);
      return s.bitSelect(e2m1::kSigns, bytes, s.shiftLeft(bytes, 3));
    };
    Value even = high(0), odd = high(1);
    block.codes.push_back(
        s.bitSelect(e2m1::kHighNibbles, odd, arith::ShRUIOp::create(b, even, s.integer(4))));
  }
  return block;
}

BlockQuantizer::Block AdaptiveBlock::emitQuick(const BlockElements &elements,
                                               ArrayRef<Scale> scales) {
  Value mayTie;
  SmallVector<Value> values; // values of both candidates
  for (const Scale &scale : scales) {
    Value tie = QuickBlock::mayTie(s, b, s.reciprocalApprox(scale.factor), elements.stored);
    mayTie = mayTie ? Value(arith::OrIOp::create(b, mayTie, tie)) : tie;
    Value aligned = s.multiply(scale.factor, s.constant(e2m1::kAlign));
    for (Value element : elements.values)
      values.push_back(s.multiply(element, aligned));
  }
  values = QuickBlock::moveTies(s, b, values, mayTie);
  auto candidate = [&](size_t i) {
    size_t count = elements.values.size();
    Candidate result{
        roundPairs(s, b, ArrayRef(values).slice(i * count, count)), scales[i].byte, {}};
    result.error = errorOf(elements.values, result.halves, scales[i]);
    return result;
  };
  return better(candidate(0), candidate(1));
}

BlockQuantizer::Block
AdaptiveBlock::quantize(const BlockElements &elements,
                        llvm::function_ref<BlockQuantizer::Block()> asSpelled) {
  Scalars::QuickDivisions divisions(s);
  divisions.expectBetween(tensorAmax, 0x1p-40f, 0x1p40f);
  Value amax = elements.amax(/*keepNaN=*/true);
  SmallVector<Scale> scales;
  for (float stretch : recipe.program().candidates)
    scales.push_back(emitScale(stretch, amax, divisions));
  Value holds = emitConditions(divisions.end(), amax, scales);
  using Blocks = QuickBlock::Blocks;
  return QuickBlock::choose(
             b, holds, 1, elements.values.size() / 8,
             [&] { return Blocks{emitQuick(elements, scales)}; },
             [&] { return Blocks{asSpelled()}; })
      .front();
}
