//===- Wgmma.h - Descriptors and turns of warpgroups ----------------------===//
#pragma once

#include "Common/PrepackedTiles.h"

#include "fp4/ISA/SmemDescriptor.h"

namespace fp4 {

/// The i64 by which wgmma knows a tile of `form`, which starts at address 0.
mlir::Value wgmmaDescriptor(mlir::ImplicitLocOpBuilder &b, mlir::Value tile,
                            const hw::SmemDescriptor &form);
/// The descriptor of a K-major tile whose rows have 128 bytes under a swizzle of 128.
mlir::Value wgmmaDescriptor(mlir::ImplicitLocOpBuilder &b, mlir::Value tile);
/// The descriptor of a K-major tile of `type`.
mlir::Value wgmmaDescriptor(mlir::ImplicitLocOpBuilder &b, mlir::Value tile, pipe::SharedType type);
/// The descriptor of `tile` from one lane, so that ptxas sees that it is uniform.
mlir::Value uniformDescriptor(mlir::ImplicitLocOpBuilder &b, mlir::Value tile);
/// Addends of either descriptor for `count` instructions of 32 bytes of K each, from number `first`
/// on.
llvm::SmallVector<int64_t> instructionOffsets(pipe::SharedType tile, int64_t first, int64_t count);

/// Returns true for an MMA that FloatMma.cpp lowers: of 16-bit floats, or of bytes that a k tile of
/// a GEMM does not have.
bool isOfFloats(pipe::MmaOp op);

/// The next MMA of the block, which begins with `op`, one that leads (C625).
pipe::MmaOp mmaLedBy(pipe::MmaOp op);

/// Completes the sums behind the loop over a `product` that the next iteration awaits; does nothing
/// for others.
void finishMmaLoop(mlir::ImplicitLocOpBuilder &b, pipe::MmaOp product, mlir::Value fragment);

/// Parts of the weights of a k tile, one behind the other along K, each of `steps` instructions.
struct WeightParts {
  int64_t first, count, steps;
};
/// Adds the matmul of parts of the weights to the accumulator. A part is converted, to the
/// registers (i32) of its instructions, while the tensor core multiplies those before.
void multiplyParts(mlir::ImplicitLocOpBuilder &b, pipe::MmaOp op, pipe::MmaOp::Adaptor adaptor,
                   const KernelState &state, WeightParts parts,
                   llvm::function_ref<llvm::SmallVector<mlir::Value>(int64_t part)> convert);

/// Adds sums of e4m3 times the powers that the words of a thread's two `rows` have. A thread has,
/// of every 8 columns, two elements of its upper row and two of its lower one.
void promoteBytes(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange sums,
                  llvm::ArrayRef<mlir::Value> rows, llvm::MutableArrayRef<mlir::Value> acc);

} // namespace fp4
