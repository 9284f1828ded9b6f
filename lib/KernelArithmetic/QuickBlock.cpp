//===- QuickBlock.cpp - Blocks in which nothing is exceptional ------------===//
#include "QuickBlock.h"
#include "E2M1Steps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp4;
using numerics::Stage;

numerics::Value QuickBlock::factorOf(const numerics::RecipeProgram &program) {
  if (program.element == numerics::noValue)
    return numerics::noValue;
  const numerics::Instruction &element = program.code[program.element];
  if (element.op != RecipeOp::Multiply)
    return numerics::noValue;
  for (unsigned i : {0, 1}) {
    numerics::Value factor = element.operands[1 - i];
    if (program.code[element.operands[i]].op == RecipeOp::Element &&
        program.code[factor].stage != Stage::Element)
      return factor;
  }
  return numerics::noValue;
}

/// MXFP4 multiplies by powers of two: ties are everywhere.
bool QuickBlock::applies(const numerics::Recipe &recipe, const numerics::RecipeProgram &program,
                         Type stored, bool stochastic, const hw::TargetModel &target) {
  if (program.candidates.size() > 1 || factorOf(program) == numerics::noValue)
    return false;
  if (stochastic)
    return !target.features.hasStochasticConvert;
  return !target.features.hasFp4Convert && stored.getIntOrFloatBitWidth() == 16 &&
         numerics::hasE4M3Scales(recipe.format);
}

//===----------------------------------------------------------------------===//
// Scale and factor
//===----------------------------------------------------------------------===//

static Value conjunction(ImplicitLocOpBuilder &b, Value x, Value y) {
  return x ? Value(arith::AndIOp::create(b, x, y)) : y;
}

/// A NaN makes a block exceptional, but for a recipe that skips it, if elements are exact then.
QuickBlock::Scale QuickBlock::emitScale(const BlockElements &elements) {
  bool keepNaN = random.empty() || elements.exact ||
                 recipe.program().amaxNaN == numerics::NanPolicy::Propagate;
  Value amax = s.multiply(elements.amax(keepNaN), s.constant(elements.scale));
  recipe.set(RecipeOp::BlockAmax, amax);
  recipe.set(RecipeOp::Stretch, s.constant(recipe.program().candidates.front()));
  Scale scale = table ? lookUpScale(elements, amax) : computeScale(elements, amax);
  scale.byte = arith::TruncIOp::create(b, b.getI8Type(), scale.byte);
  return scale;
}

QuickBlock::Scale QuickBlock::lookUpScale(const BlockElements &elements, Value amax) {
  Scalars::QuickDivisions divisions(s);
  recipe.emitBlockUpTo(recipe.program().scaleByte);
  Value holds = divisions.end(), byte = recipe[recipe.program().scaleByte];
  ScaleTable::Entry entry = table->entry(byte);
  Value isBelow = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, amax, entry.limit);
  return {byte, s.multiply(entry.factor, s.constant(elements.scale)),
          conjunction(b, holds, isBelow)};
}

QuickBlock::Scale QuickBlock::computeScale(const BlockElements &elements, Value amax) {
  Scalars::QuickDivisions divisions(s);
  recipe.emit(Stage::Block);
  Value holds = divisions.end(), factor = recipe[factorOf(recipe.program())];
  auto expect = [&](arith::CmpFPredicate predicate, Value x, float y) {
    holds = conjunction(b, holds, arith::CmpFOp::create(b, predicate, x, s.constant(y)));
  };
  if (random.empty() || elements.exact)
    expect(arith::CmpFPredicate::OLT, s.multiply(amax, factor), 7);
  expect(arith::CmpFPredicate::OGE, factor, e2m1::kLeastFactor / elements.scale);
  if (elements.scale != 1)
    expect(arith::CmpFPredicate::OLE, factor,
           random.empty() ? e2m1::kMostFactorOfScaled : e2m1::kMostFactorOfStochastic);
  return {recipe[recipe.program().scaleByte],
          s.multiply(factor, s.constant(e2m1::kAlign * elements.scale)), holds};
}

//===----------------------------------------------------------------------===//
// Codes
//===----------------------------------------------------------------------===//

static Value expected(ImplicitLocOpBuilder &b, Value condition, bool value) {
  return LLVM::ExpectOp::create(b, condition, arith::ConstantOp::create(b, b.getBoolAttr(value)));
}

/// Returns true when `x` is within kTieMargin last places of a number with `significand` bits.
static Value nearShortNumber(Scalars &s, ImplicitLocOpBuilder &b, Value x, unsigned significand) {
  // The bits behind them, at the top of an i32, so that they wrap around.
  auto atTop = [&](int64_t n) { return s.integer(n << (significand + 8)); };
  Value low = arith::ShLIOp::create(b, s.bits(x), s.integer(significand + 8));
  Value shifted = arith::AddIOp::create(b, low, atTop(e2m1::kTieMargin));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ule, shifted, atTop(2 * e2m1::kTieMargin));
}

Value QuickBlock::mayTie(Scalars &s, ImplicitLocOpBuilder &b, Value inverse, Type stored) {
  unsigned significand = stored.isBF16() ? 8 : 11;
  return arith::OrIOp::create(
      b, nearShortNumber(s, b, inverse, significand),
      nearShortNumber(s, b, s.multiply(inverse, s.constant(1.25f)), significand));
}

/// The powers of two in an aligned factor change nothing.
Value QuickBlock::anyMayTie(ArrayRef<BlockElements> blocks, ArrayRef<Scale> scales) {
  if (table) {
    Value bits = s.bits(scales.front().factor);
    for (const Scale &scale : scales.drop_front())
      bits = arith::OrIOp::create(b, bits, s.bits(scale.factor));
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, bits, s.integer(0));
  }
  Value any;
  for (auto [elements, scale] : llvm::zip_equal(blocks, scales)) {
    Value tie = mayTie(s, b, s.reciprocalApprox(scale.factor), elements.stored);
    any = any ? Value(arith::OrIOp::create(b, any, tie)) : tie;
  }
  return any;
}

SmallVector<Value> QuickBlock::moveTies(Scalars &s, ImplicitLocOpBuilder &b,
                                        ArrayRef<Value> aligned, Value mayTie) {
  auto branch = scf::IfOp::create(b, TypeRange(ValueRange(aligned)), expected(b, mayTie, false),
                                  /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, aligned);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(
      b, llvm::map_to_vector(aligned, [&](Value value) { return s.moveTieE2M1(value); }));
  return SmallVector<Value>(branch.getResults());
}

QuickBlock::Blocks QuickBlock::emitCodes(ArrayRef<BlockElements> blocks, ArrayRef<Scale> scales) {
  SmallVector<Value> values;
  for (auto [elements, scale] : llvm::zip_equal(blocks, scales)) {
    Value factor = table && random.empty() ? s.absolute(scale.factor) : scale.factor;
    for (Value element : elements.values)
      values.push_back(s.multiply(element, factor));
  }
  if (random.empty())
    values = moveTies(s, b, values, anyMayTie(blocks, scales));
  Blocks results;
  size_t count = values.size() / blocks.size();
  for (auto [i, scale] : llvm::enumerate(scales)) {
    results.push_back({{}, scale.byte});
    for (size_t first = i * count; first < (i + 1) * count; first += 8) {
      ArrayRef<Value> eight = ArrayRef(values).slice(first, 8);
      results.back().codes.push_back(
          random.empty() ? s.packAlignedE2M1(eight)
                         : s.packAlignedE2M1Stochastic(eight, random.slice(first / 4, 2),
                                                       /*belowSeven=*/table != nullptr));
    }
  }
  return results;
}

QuickBlock::Blocks QuickBlock::choose(ImplicitLocOpBuilder &b, Value likely, size_t count,
                                      size_t codeWords, llvm::function_ref<Blocks()> quick,
                                      llvm::function_ref<Blocks()> asSpelled) {
  SmallVector<Type> types;
  for (size_t i = 0; i < count; ++i) {
    types.append(codeWords, b.getI32Type());
    types.push_back(b.getI8Type());
  }
  auto branch = scf::IfOp::create(b, types, expected(b, likely, true), /*withElse=*/true);
  auto yield = [&](Block *block, llvm::function_ref<Blocks()> emit) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(block);
    SmallVector<Value> values;
    for (const BlockQuantizer::Block &result : emit()) {
      values.append(result.codes);
      values.push_back(result.scale);
    }
    scf::YieldOp::create(b, values);
  };
  yield(branch.thenBlock(), quick);
  yield(branch.elseBlock(), asSpelled);
  Blocks results;
  ValueRange values = branch.getResults();
  for (; !values.empty(); values = values.drop_front(codeWords + 1))
    results.push_back({SmallVector<Value>(values.take_front(codeWords)), values[codeWords]});
  return results;
}

QuickBlock::Blocks QuickBlock::quantize(ArrayRef<BlockElements> blocks,
                                        llvm::function_ref<Blocks()> asSpelled) {
  SmallVector<Scale> scales;
  Value holds;
  for (const BlockElements &elements : blocks) {
    scales.push_back(emitScale(elements));
    holds = conjunction(b, holds, scales.back().holds);
  }
  return choose(
      b, holds, blocks.size(), blocks.front().values.size() / 8,
      [&] { return emitCodes(blocks, scales); }, asSpelled);
}
