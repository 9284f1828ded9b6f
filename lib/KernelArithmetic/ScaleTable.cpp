//===- ScaleTable.cpp - Element factors by scale byte, in shared memory ---===//
#include "ScaleTable.h"
#include "E2M1Steps.h"
#include "QuickBlock.h"
#include "SmallBuilders.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

/// Returns the values that the table keeps: none if they are not f32, or too many.
static SmallVector<numerics::Value> keptTensorValues(const RecipeEmitter &recipe) {
  SmallVector<numerics::Value> values = recipe.tensorValuesUpTo(recipe.program().scaleByte);
  bool areFloats = llvm::all_of(values, [&](numerics::Value value) {
    return recipe.program().typeOf(value) == numerics::ValueType::F32;
  });
  if (!areFloats || values.size() > static_cast<size_t>(ScaleTable::kTensorValues))
    values.clear();
  return values;
}

bool ScaleTable::applies(const numerics::Recipe &recipe, const numerics::RecipeProgram &program) {
  if (!numerics::hasE4M3Scales(recipe.format))
    return false;
  auto [first, last] = program.range(numerics::Stage::Block);
  numerics::Value factor = QuickBlock::factorOf(program);
  if (factor == numerics::noValue || program.scaleByte == numerics::noValue ||
      factor < program.scaleByte)
    return false;
  std::vector<bool> follows(last, true); // from the byte and the tensor; values of the tensor do
  for (numerics::Value value = first; value < last; ++value) {
    const numerics::Instruction &instruction = program.code[value];
    ArrayRef operands(instruction.operands);
    bool isInput = instruction.op <= RecipeOp::Decoded;
    follows[value] =
        value == program.scaleByte ||
        (!isInput && llvm::all_of(operands.take_front(numerics::operandCount(instruction.op)),
                                  [&](numerics::Value operand) { return follows[operand]; }));
  }
  return follows[factor];
}

void ScaleTable::fill(RecipeEmitter &recipe, Value byte, Type stored, bool stochastic) {
  auto branch =
      scf::IfOp::create(b, arith::CmpIOp::create(b, arith::CmpIPredicate::eq, byte, s.integer(0)));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    for (auto [i, value] : llvm::enumerate(keptTensorValues(recipe)))
      store(b, recipe[value], tensorValue(i), 4);
  }
  recipe.emitBlockFrom(recipe.program().scaleByte, byte);
  Value factor = recipe[QuickBlock::factorOf(recipe.program())];
  auto compare = [&](arith::CmpFPredicate predicate, float bound) -> Value {
    return arith::CmpFOp::create(b, predicate, factor, s.constant(bound));
  };
  Value inRange =
      arith::AndIOp::create(b, compare(arith::CmpFPredicate::OGE, e2m1::kLeastFactorOfTable),
                            compare(arith::CmpFPredicate::OLE, e2m1::kMostFactorOfTable));
  Value inverse = s.reciprocalApprox(factor);
  Value limit = arith::SelectOp::create(
      b, inRange, s.multiply(inverse, s.constant(e2m1::kBelowSeven)), s.constant(0));
  Value aligned = s.multiply(factor, s.constant(e2m1::kAlign));
  if (!stochastic)
    aligned = arith::SelectOp::create(b, QuickBlock::mayTie(s, b, inverse, stored),
                                      arith::NegFOp::create(b, aligned), aligned);
  auto type = VectorType::get(2, b.getF32Type());
  store(b, vector::FromElementsOp::create(b, type, ValueRange{aligned, limit}),
        address(b, shared, byte, 8), 8);
}

Value ScaleTable::tensorValue(size_t i) {
  return advance(b, shared, 8 * kEntries + 4 * static_cast<int64_t>(i));
}

void ScaleTable::loadTensorValues(RecipeEmitter &recipe) {
  for (auto [i, value] : llvm::enumerate(keptTensorValues(recipe)))
    recipe.replace(value, LLVM::LoadOp::create(b, b.getF32Type(), tensorValue(i), /*alignment=*/4));
}

ScaleTable::Entry ScaleTable::entry(Value byte) {
  auto type = VectorType::get(2, b.getF32Type());
  Value number = arith::AndIOp::create(b, byte, s.integer(kEntries - 1));
  Value both = LLVM::LoadOp::create(b, type, address(b, shared, number, 8), /*alignment=*/8);
  return {vector::ExtractOp::create(b, both, 0), vector::ExtractOp::create(b, both, 1)};
}
