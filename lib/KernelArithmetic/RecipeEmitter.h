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
  /// Emits the operations of stage Block up to `last`.
  void emitBlockUpTo(numerics::Value last);
  /// Emits those operations of stage Block that follow from `given`, whose value this is, and from
  /// the tensor, in an emitter whose block inputs were not set.
  void emitBlockFrom(numerics::Value given, mlir::Value value);
  /// A value of a stage that was emitted.
  mlir::Value operator[](numerics::Value value) const { return values[value]; }

  /// The values of stage Tensor, no constants, that the operations of stage Block up to `last` use.
  llvm::SmallVector<numerics::Value> tensorValuesUpTo(numerics::Value last) const;
  /// Makes this the value of an operation that need not be emitted.
  void replace(numerics::Value value, mlir::Value by) { values[value] = by; }

  /// The emitted values, so that a branch can emit stages for itself.
  llvm::SmallVector<mlir::Value> emitted() const { return values; }
  void restore(llvm::SmallVector<mlir::Value> emitted) { values = std::move(emitted); }

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
