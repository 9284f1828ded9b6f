//===- QuickBlock.cpp - Blocks in which nothing is exceptional ------------===//
#include "QuickBlock.h"
#include "E2M1Steps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp4;
using numerics::Stage;

/// The operand of the element stage, where that is a product, that is no element.
static numerics::Value factorOf(const numerics::RecipeProgram &program) {
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
    return !target.hasStochasticConvert;
  return !target.hasFp4Convert && stored.getIntOrFloatBitWidth() == 16 &&
         numerics::hasE4M3Scales(recipe.format);
}

Value QuickBlock::factor() { return recipe[factorOf(recipe.program())]; }

/// Emits the scale and the factor; returns whether they, and the quick codes, are right.
Value QuickBlock::emitScale(const BlockElements &elements) {
  // A NaN element fails the test below; rounded stochastically, it is skipped as the recipe says.
  bool keepNaN = random.empty() || recipe.program().amaxNaN == numerics::NanPolicy::Propagate;
  Value amax = s.multiply(elements.amax(keepNaN), s.constant(elements.scale));
  recipe.set(RecipeOp::BlockAmax, amax);
  recipe.set(RecipeOp::Stretch, s.constant(recipe.program().candidates.front()));
  Scalars::QuickDivisions divisions(s);
  recipe.emit(Stage::Block);
  Value holds = divisions.end();
  auto expect = [&](arith::CmpFPredicate predicate, Value x, float y) {
    Value condition = arith::CmpFOp::create(b, predicate, x, s.constant(y));
    holds = holds ? Value(arith::AndIOp::create(b, holds, condition)) : condition;
  };
  if (random.empty())
    expect(arith::CmpFPredicate::OLT, s.multiply(amax, factor()), 7);
  expect(arith::CmpFPredicate::OGE, factor(), e2m1::kLeastFactor / elements.scale);
  if (elements.scale != 1)
    expect(arith::CmpFPredicate::OLE, factor(), e2m1::kMostFactorOfScaled);
  return holds;
}

static Value expected(ImplicitLocOpBuilder &b, Value condition, bool value) {
  return LLVM::ExpectOp::create(b, condition, arith::ConstantOp::create(b, b.getBoolAttr(value)));
}

/// Whether `x` is within kTieMargin last places of a number with `significand` bits.
Value QuickBlock::nearShortNumber(Value x, unsigned significand) {
  // The bits behind them, at the top of an i32, so that they wrap around.
  auto atTop = [&](int64_t n) { return s.integer(n << (significand + 8)); };
  Value low = arith::ShLIOp::create(b, s.bits(x), s.integer(significand + 8));
  Value shifted = arith::AddIOp::create(b, low, atTop(e2m1::kTieMargin));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ule, shifted, atTop(2 * e2m1::kTieMargin));
}

SmallVector<Value> QuickBlock::moveTies(ArrayRef<Value> aligned, Type stored) {
  unsigned significand = stored.isBF16() ? 8 : 11;
  Value inverse = s.reciprocalApprox(factor());
  Value mayTie =
      arith::OrIOp::create(b, nearShortNumber(inverse, significand),
                           nearShortNumber(s.multiply(inverse, s.constant(1.25f)), significand));
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

SmallVector<Value> QuickBlock::emitCodes(const BlockElements &elements) {
  Value aligned = s.multiply(factor(), s.constant(e2m1::kAlign * elements.scale));
  SmallVector<Value> values =
      llvm::map_to_vector(elements.values, [&](Value x) { return s.multiply(x, aligned); });
  if (random.empty())
    values = moveTies(values, elements.stored);
  SmallVector<Value> codes;
  for (size_t first = 0; first < values.size(); first += 8) {
    ArrayRef<Value> eight = ArrayRef(values).slice(first, 8);
    codes.push_back(random.empty()
                        ? s.packAlignedE2M1(eight)
                        : s.packAlignedE2M1Stochastic(eight, random.slice(first / 4, 2)));
  }
  return codes;
}

BlockQuantizer::Block QuickBlock::choose(ImplicitLocOpBuilder &b, Value likely, size_t codeWords,
                                         llvm::function_ref<BlockQuantizer::Block()> quick,
                                         llvm::function_ref<BlockQuantizer::Block()> asSpelled) {
  SmallVector<Type> types(codeWords, b.getI32Type());
  types.push_back(b.getI8Type());
  auto branch = scf::IfOp::create(b, types, expected(b, likely, true), /*withElse=*/true);
  auto yield = [&](Block *block, llvm::function_ref<BlockQuantizer::Block()> emit) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(block);
    BlockQuantizer::Block result = emit();
    result.codes.push_back(result.scale);
    scf::YieldOp::create(b, result.codes);
  };
  yield(branch.thenBlock(), quick);
  yield(branch.elseBlock(), asSpelled);
  BlockQuantizer::Block result{SmallVector<Value>(branch.getResults()), {}};
  result.scale = result.codes.pop_back_val();
  return result;
}

BlockQuantizer::Block QuickBlock::quantize(const BlockElements &elements,
                                           llvm::function_ref<BlockQuantizer::Block()> asSpelled) {
  Value holds = emitScale(elements);
  Value scale = arith::TruncIOp::create(b, b.getI8Type(), recipe[recipe.program().scaleByte]);
  return choose(
      b, holds, elements.values.size() / 8,
      [&] { return BlockQuantizer::Block{emitCodes(elements), scale}; }, asSpelled);
}
