//===- RecipeEmitter.cpp - A recipe's program as kernel operations --------===//
#include "RecipeEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fp4;

static constexpr size_t kInputs = static_cast<size_t>(RecipeOp::Decoded) + 1;

RecipeEmitter::RecipeEmitter(Scalars &scalars, ImplicitLocOpBuilder &builder,
                             numerics::RecipeProgram program)
    : s(scalars), b(builder), code(std::move(program)), values(code.code.size()), inputs(kInputs) {}

void RecipeEmitter::set(RecipeOp input, mlir::Value value) {
  inputs[static_cast<size_t>(input)] = value;
}

void RecipeEmitter::emit(numerics::Stage stage) {
  auto [first, last] = code.range(stage);
  for (numerics::Value value = first; value < last; ++value)
    values[value] = emit(code.code[value]);
}

void RecipeEmitter::emitBlockUpTo(numerics::Value last) {
  for (numerics::Value value = code.range(numerics::Stage::Block).first; value <= last; ++value)
    values[value] = emit(code.code[value]);
}

SmallVector<numerics::Value> RecipeEmitter::tensorValuesUpTo(numerics::Value last) const {
  SmallVector<numerics::Value> found;
  for (numerics::Value user = code.range(numerics::Stage::Block).first; user <= last; ++user) {
    ArrayRef operands(code.code[user].operands);
    for (numerics::Value used : operands.take_front(numerics::operandCount(code.code[user].op))) {
      const numerics::Instruction &instruction = code.code[used];
      if (instruction.stage == numerics::Stage::Tensor && !llvm::is_contained(found, used) &&
          instruction.op != RecipeOp::FloatConstant && instruction.op != RecipeOp::IntConstant)
        found.push_back(used);
    }
  }
  return found;
}

void RecipeEmitter::emitBlockFrom(numerics::Value given, mlir::Value value) {
  auto [first, last] = code.range(numerics::Stage::Block);
  auto isKnown = [&](numerics::Value next) {
    const numerics::Instruction &instruction = code.code[next];
    ArrayRef operands(instruction.operands);
    return llvm::all_of(operands.take_front(numerics::operandCount(instruction.op)),
                        [&](numerics::Value operand) { return bool(values[operand]); });
  };
  for (numerics::Value next = first; next < last; ++next)
    values[next] = next == given ? value : isKnown(next) ? emit(code.code[next]) : mlir::Value();
}

mlir::Value RecipeEmitter::emit(const numerics::Instruction &instruction) {
  RecipeOp op = instruction.op;
  if (static_cast<size_t>(op) < kInputs)
    return inputs[static_cast<size_t>(op)];
  if (op == RecipeOp::FloatConstant)
    return s.constantBits(instruction.immediate);
  if (op == RecipeOp::IntConstant)
    return s.integer(instruction.immediate);
  std::array<mlir::Value, 3> operands;
  for (unsigned i = 0; i < numerics::operandCount(op); ++i)
    operands[i] = values[instruction.operands[i]];
  auto [x, y, z] = operands;
  if (op == RecipeOp::Select)
    return arith::SelectOp::create(b, x, y, z);
  if (mlir::Value result = emitFloat(instruction, x, y))
    return result;
  if (mlir::Value result = emitComparison(instruction, x, y))
    return result;
  return emitInteger(instruction, x, y);
}

mlir::Value RecipeEmitter::emitFloat(const numerics::Instruction &instruction, mlir::Value x,
                                     mlir::Value y) {
  switch (instruction.op) {
  case RecipeOp::Multiply:
    return s.multiply(x, y);
  case RecipeOp::Divide:
    return s.divide(x, y);
  case RecipeOp::Subtract:
    return s.subtract(x, y);
  case RecipeOp::ReciprocalApprox:
    return s.reciprocalApprox(x);
  case RecipeOp::Absolute:
    return s.absolute(x);
  case RecipeOp::MinDropNaN:
    return s.minimumNumber(x, y);
  case RecipeOp::MinKeepNaN:
    return s.minimumOrNaN(x, y);
  case RecipeOp::MaxKeepNaN:
    return s.maximumOrNaN(x, y);
  case RecipeOp::RoundBF16:
    return s.roundToBF16(x);
  case RecipeOp::Truncate:
    return arith::FPToSIOp::create(b, b.getI32Type(), x);
  case RecipeOp::BitsOf:
    return s.bits(x);
  case RecipeOp::FloatOf:
    return s.fromBits(x);
  case RecipeOp::ToE4M3:
    return s.toE4M3(x);
  case RecipeOp::FromE4M3:
    return s.fromE4M3(x);
  case RecipeOp::ToUE8M0Up:
    return s.toUE8M0Up(x);
  default:
    return {};
  }
}

mlir::Value RecipeEmitter::emitComparison(const numerics::Instruction &instruction, mlir::Value x,
                                          mlir::Value y) {
  switch (instruction.op) {
  case RecipeOp::FloatEqual:
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, x, y);
  case RecipeOp::FloatGreater:
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x, y);
  case RecipeOp::IsNaN:
    return arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x);
  case RecipeOp::IntEqual:
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, y);
  case RecipeOp::IntAtLeast:
    return arith::CmpIOp::create(b, arith::CmpIPredicate::uge, x, y);
  default:
    return {};
  }
}

mlir::Value RecipeEmitter::emitInteger(const numerics::Instruction &instruction, mlir::Value x,
                                       mlir::Value y) {
  switch (instruction.op) {
  case RecipeOp::Add:
    return arith::AddIOp::create(b, x, y);
  case RecipeOp::SubtractInt:
    return arith::SubIOp::create(b, x, y);
  case RecipeOp::ShiftLeft:
    return arith::ShLIOp::create(b, x, y);
  case RecipeOp::ShiftRight:
    return arith::ShRUIOp::create(b, x, y);
  case RecipeOp::MinSigned:
    return arith::MinSIOp::create(b, x, y);
  case RecipeOp::MaxSigned:
    return arith::MaxSIOp::create(b, x, y);
  default:
    llvm_unreachable("an operation of a recipe program without an emission");
  }
}
