//===- RecipeEmitter.h - A recipe's program as kernel operations ----------===//
//
// lib/Numerics describes the arithmetic of a quantizer as a short list of scalar operations, sorted
// by how often they run (RecipeProgram.h). The emitter walks this list and emits one operation, or
// one exact expansion, for each. The kernel therefore computes what the reference interprets.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Scalars.h"

#include "fp4/Numerics/RecipeProgram.h"

namespace fp4 {

/// MLIR has an Op of its own.
using RecipeOp = numerics::Op;

class RecipeEmitter {
public:
  RecipeEmitter(Scalars &scalars, mlir::ImplicitLocOpBuilder &builder,
                numerics::RecipeProgram program);

  const numerics::RecipeProgram &program() const { return code; }

  /// Gives `input` (TensorAmax, BlockAmax, Stretch, ScaleByte, Element, Decoded) the value it has
  /// from here on.
  void set(RecipeOp input, mlir::Value value);
  /// Emits the operations of a stage. Stages may be emitted again, with other inputs.
  void emit(numerics::Stage stage);
  /// A value of a stage that was emitted.
  mlir::Value operator[](numerics::Value value) const { return values[value]; }

private:
  mlir::Value emit(const numerics::Instruction &instruction);
  mlir::Value emitFloat(const numerics::Instruction &instruction, mlir::Value a, mlir::Value b);
  mlir::Value emitInteger(const numerics::Instruction &instruction, mlir::Value a, mlir::Value b);
  mlir::Value emitComparison(const numerics::Instruction &instruction, mlir::Value a,
                             mlir::Value b);

  Scalars &s;
  mlir::ImplicitLocOpBuilder &b;
  numerics::RecipeProgram code;
  llvm::SmallVector<mlir::Value> values;
  llvm::SmallVector<mlir::Value> inputs;
};

} // namespace fp4
