//===- ElementwiseEmitter.h - The region of an elementwise operation ------===//
//
// Emits the operations of a region (fp4/Dialect/Fp4/IR/Elementwise.h) on vectors of elements in a
// kernel. All numbers are fp32 vectors; the result of an operation of type bf16 or f16 is rounded
// to it, and is fp32 again. The steps are those of numerics::ElementProgram.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Block.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace fp4 {

/// Emits `body` with `arguments`, vectors of f32 of one length, one for each argument, which have
/// the bits of those that are i32, and returns the values that its terminator yields. Results are
/// exactly representable in the types that are yielded. `atOnce` is the number of lanes that are
/// computed together: the steps of a lane follow each other closely, so that few numbers are in
/// registers at a time. `loops` are vectors of i32, the values of the loops that linalg.index may
/// read.
llvm::SmallVector<mlir::Value> emitElementwise(mlir::ImplicitLocOpBuilder &builder,
                                               mlir::Block &body, mlir::ValueRange arguments,
                                               int64_t atOnce = 8, mlir::ValueRange loops = {});

/// Emits the same for a kernel that has little else to do: exponentials, and quotients with them,
/// by steps that are quick for most numbers (QuickElements.h), and all steps in a branch that
/// others take. The branch comes before the quick steps: ptxas moves loads behind arithmetic, but
/// not behind a branch.
llvm::SmallVector<mlir::Value> emitQuickElementwise(mlir::ImplicitLocOpBuilder &builder,
                                                    mlir::Block &body, mlir::ValueRange arguments,
                                                    int64_t atOnce, mlir::ValueRange loops = {});

/// Emits the operations of `body` before `end`, likewise, and returns what stands for `results`,
/// values of the body. The branch comes behind the quick steps: the rows of a thread are loaded
/// before, and an H200 takes 107 us in place of 116 for cross entropies of 16384 x 8192.
llvm::SmallVector<mlir::Value> emitQuickElementwise(mlir::ImplicitLocOpBuilder &builder,
                                                    mlir::Block &body, mlir::ValueRange arguments,
                                                    mlir::ValueRange results, mlir::Operation *end,
                                                    int64_t atOnce, mlir::ValueRange loops = {});

/// The elements, of type `element`, that an epilogue region gives of vectors of f32; or the first
/// of these, rounded, without a region.
mlir::Value emitEpilogue(mlir::ImplicitLocOpBuilder &builder, mlir::Region *region,
                         mlir::ValueRange arguments, mlir::Type element);
/// The scalar inputs of an epilogue region, of which `pointers` point to those of `types`, each as
/// a vector of `count` f32.
llvm::SmallVector<mlir::Value> loadScalars(mlir::ImplicitLocOpBuilder &builder,
                                           mlir::ValueRange pointers, mlir::TypeRange types,
                                           int64_t count);

/// `value`, a vector or tensor of f32, bf16 or f16, as f32.
mlir::Value widenToF32(mlir::ImplicitLocOpBuilder &builder, mlir::Value value);
/// `value` as f32 by arith.extf alone, which a later rounding folds.
mlir::Value extendToF32(mlir::ImplicitLocOpBuilder &builder, mlir::Value value);
/// `value`, a vector of f32, as bf16, f16 or f8E4M3FN.
mlir::Value narrowTo(mlir::ImplicitLocOpBuilder &builder, mlir::Value value, mlir::Type element);

} // namespace fp4
