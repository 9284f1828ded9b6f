//===- GemmKernel.h - A GEMM's kernel that is being built -----------------===//
//
// The parts of a kernel take it by reference: the walk over its works (WorkLoop.h), the loads of
// its operands (OperandPath.h), and what becomes of its sums (SumConversion.h, FragmentEpilogue.h,
// LaneEpilogue.h).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Gemm.h"
#include "ResultStores.h"
#include "TileBuilder.h"

namespace fp4 {

/// Arguments of the kernel, in their order; null where it has none (Gemm::argumentTypes).
struct KernelArguments {
  KernelArguments(TileBuilder &b, mlir::gpu::GPUFuncOp func, const Gemm &gemm);

  mlir::Value a, bb, scalesA, scalesB, alpha;
  mlir::Value b2, scalesB2, alpha2;      ///< operands of a dual GEMM
  llvm::SmallVector<mlir::Value> inputs; ///< inputs of the epilogue region
  mlir::Value result;
  mlir::Value resultBuffer;         ///< `result`, or its elements if that is a map
  ResultArguments derived;          ///< the results, where there are others than elements
  mlir::Value rows, columns, depth; ///< M, N and K, where they are dynamic; else null
  mlir::Value table, report;        ///< works, and what is wrong with searched groups
  mlir::Value workspace, counters;  ///< null without split-K

private:
  void takeSizes(TileBuilder &b, const Gemm &gemm, mlir::Value pitch);
  /// Gives a buffer the sizes of its type and those that are numbers: its rows and columns.
  using TakeSized = llvm::function_ref<void(mlir::Value &, mlir::Type, mlir::Value, mlir::Value)>;
  void takeQuantized(TileBuilder &b, const Gemm &gemm, TakeSized take);
};

/// A GEMM, the builder in the body of its kernel, and its arguments.
struct GemmKernel {
  GemmKernel(mlir::gpu::GPUFuncOp func, const Gemm &gemm, const KernelPlan &plan,
             mlir::Location loc)
      : gemm(gemm), b(func, plan, loc), args(b, func, gemm) {}

  Gemm gemm;
  TileBuilder b;
  KernelArguments args;
};

} // namespace fp4
