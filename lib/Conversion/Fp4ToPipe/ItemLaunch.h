//===- ItemLaunch.h - Kernels of threads that have an item each -*- C++ -*-===//
//
// Small kernels before a GEMM make what its own kernel needs: a converted or a packed operand, or
// the table of its groups. A small kernel has no roles, and writes one buffer.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Int32.h"
#include "SmallBuilders.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/KernelPlan.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <array>

namespace fp4 {

/// Threads of a CTA of a kernel whose items follow one another in rows.
inline constexpr int64_t kItemThreads = 256;

/// A kernel over items, in a module of its own, and the builder in its body.
class ItemKernel {
public:
  ItemKernel(mlir::RewriterBase &rewriter, mlir::Operation *op, llvm::StringRef kind,
             mlir::TypeRange arguments, int64_t threads = kItemThreads);

  /// The memory of argument `number`.
  mlir::Value pointer(unsigned number);
  /// A size of the buffers: `known`, or where this is dynamic the next number behind them.
  Int32 size(int64_t known);
  /// The next number behind the buffers.
  mlir::Value number() { return func.getArgument(nextNumber++); }
  Int32 cta(), thread();
  /// The item of this thread, of kItemThreads in a CTA.
  Int32 item();
  /// Emits `body` for threads for which `exists` holds.
  void when(mlir::Value exists, llvm::function_ref<void()> body) { emitWhen(b, exists, body); }
  /// Ends the kernel.
  mlir::gpu::GPUFuncOp finish();

private:
  mlir::gpu::GPUFuncOp func;
  unsigned nextNumber; ///< number of the next argument that is a number

public:
  mlir::ImplicitLocOpBuilder b;
};

/// Parts that a lane has for itself and for the other three of its four.
using PartsOfFour = std::array<llvm::SmallVector<mlir::Value>, 4>;
/// Part i of lane j of the four becomes part j of lane i. `place` is that of the lane among them.
PartsOfFour exchangeOfFour(mlir::ImplicitLocOpBuilder &b, PartsOfFour parts, Int32 place);

/// CTAs of kItemThreads for so many items of each row.
mlir::Value blocksOfRows(mlir::RewriterBase &, mlir::Location, mlir::Value rows,
                         mlir::Value itemsPerRow);
mlir::Value blocksOfRows(mlir::RewriterBase &, mlir::Location, mlir::Value rows,
                         int64_t itemsPerRow);

/// Launches `blocks` CTAs of such a kernel. The arguments are views of `inputs` and
/// of a new buffer, and as i32 the dynamic `sizes` of this buffer, its rows and columns, of which
/// those that are null do not count, and other `numbers`. Returns the buffer. With `dependents` the
/// launch has PDL.
mlir::Value launchItems(mlir::RewriterBase &, mlir::Location, mlir::gpu::GPUFuncOp kernel,
                        mlir::ValueRange inputs, mlir::Value blocks,
                        llvm::ArrayRef<mlir::Value> sizes = {},
                        std::optional<LaunchDependents> dependents = {},
                        llvm::ArrayRef<mlir::Value> numbers = {});

/// The place where a conversion before the GEMM of `plan` lets the GEMM begin; none: it has no PDL.
std::optional<LaunchDependents> launchDependentsBefore(const KernelPlan &plan);

/// Gives the launch PDL, if there are `dependents`.
void setPdl(mlir::gpu::LaunchFuncOp launch, std::optional<LaunchDependents> dependents);

} // namespace fp4
