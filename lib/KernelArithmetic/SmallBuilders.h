//===- SmallBuilders.h - Constants, addresses, loads and stores -----------===//
//
// The few operations that every piece of a kernel is made of.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace fp4 {

mlir::Value constI32(mlir::ImplicitLocOpBuilder &b, int64_t value);
mlir::Value constI64(mlir::ImplicitLocOpBuilder &b, int64_t value);
mlir::Value constF32(mlir::ImplicitLocOpBuilder &b, float value);
mlir::Value constIndex(mlir::ImplicitLocOpBuilder &b, int64_t value);

/// `base + index * stride` bytes; `index` is an unsigned i32.
mlir::Value address(mlir::ImplicitLocOpBuilder &b, mlir::Value base, mlir::Value index,
                    int64_t stride);
/// `base + index * pitch` bytes, for a pitch that is an i64.
mlir::Value address(mlir::ImplicitLocOpBuilder &b, mlir::Value base, mlir::Value index,
                    mlir::Value pitch);
/// `base + bytes`, for a constant.
mlir::Value advance(mlir::ImplicitLocOpBuilder &b, mlir::Value base, int64_t bytes);

/// The elements of a vector, and its bits as i32 words.
llvm::SmallVector<mlir::Value> scalarsOf(mlir::ImplicitLocOpBuilder &b, mlir::Value vector);
llvm::SmallVector<mlir::Value> packedWords(mlir::ImplicitLocOpBuilder &b, mlir::Value vector);

/// Emits `then` for threads for which `condition` (i1) holds, and `otherwise` for the others.
void emitWhen(mlir::ImplicitLocOpBuilder &b, mlir::Value condition, llvm::function_ref<void()> then,
              llvm::function_ref<void()> otherwise = {});
/// The values that `then` gives where `condition` (i1) holds, and `otherwise` elsewhere.
using ValuesBody = llvm::function_ref<llvm::SmallVector<mlir::Value>()>;
llvm::SmallVector<mlir::Value> chooseValues(mlir::ImplicitLocOpBuilder &b, mlir::TypeRange types,
                                            mlir::Value condition, ValuesBody then,
                                            ValuesBody otherwise);
mlir::Value chooseValue(mlir::ImplicitLocOpBuilder &b, mlir::Type type, mlir::Value condition,
                        llvm::function_ref<mlir::Value()> then,
                        llvm::function_ref<mlir::Value()> otherwise);

/// The value (i32 or f32) that another lane of the warp has, all of which execute this: the lane
/// whose number differs from this lane's in the bits of `distance`, or lane `lane` (i32). PTX:
/// shfl.sync.bfly, shfl.sync.idx.
mlir::Value valueOfPartner(mlir::ImplicitLocOpBuilder &b, mlir::Value value, int64_t distance);
mlir::Value valueOfLane(mlir::ImplicitLocOpBuilder &b, mlir::Value value, mlir::Value lane);

/// Loads that may be cached as read-only, and stores; `alignment` in bytes.
mlir::Value load(mlir::ImplicitLocOpBuilder &b, mlir::Type type, mlir::Value pointer,
                 unsigned alignment);
void store(mlir::ImplicitLocOpBuilder &b, mlir::Value value, mlir::Value pointer,
           unsigned alignment);

} // namespace fp4
