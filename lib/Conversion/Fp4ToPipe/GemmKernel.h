//===- GemmKernel.h - The kernel of a GEMM --------------------------------===//
//
// A kernel is composed of parts, which take it by reference: the walk over its works (WorkLoop.h),
// the loop over k tiles (KLoop.h), the ways of its operands to the tensor core (OperandPath.h), its
// sums (Accumulator.h), and their epilogue (Epilogue.h).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Gemm.h"
#include "ResultStores.h"
#include "TileBuilder.h"

namespace fp4 {

/// Arguments of the kernel, in the order of `forEach`; null where it has none.
struct KernelArguments {
  KernelArguments() = default;
  KernelArguments(TileBuilder &b, mlir::gpu::GPUFuncOp func, const Gemm &gemm);

  /// Visits the arguments that the kernel of `gemm` has, with their types.
  using Visitor = llvm::function_ref<void(mlir::Value &argument, mlir::Type type)>;
  void forEach(const Gemm &gemm, Visitor visit);
  static llvm::SmallVector<mlir::Type> types(const Gemm &gemm);
  llvm::SmallVector<mlir::Value> values(const Gemm &gemm);

  mlir::Value a, bb, scalesA, scalesB, alpha; ///< maps, and of scales a map or a buffer
  mlir::Value b2, scalesB2, alpha2;           ///< operands of a dual GEMM
  llvm::SmallVector<mlir::Value> inputs;      ///< inputs of the epilogue region
  mlir::Value result, pitch;
  mlir::Value resultBuffer;         ///< `result`, or its elements if that is a map
  ResultArguments derived;          ///< the results, where there are others than elements
  mlir::Value rows, columns, depth; ///< M, N and K, where they are dynamic; else null
  mlir::Value table, report;        ///< works, and what is wrong with searched groups
  mlir::Value workspace, counters;  ///< null without split-K

private:
  void forEachResult(const Gemm &gemm, Visitor visit);
  void takeSizes(TileBuilder &b, const Gemm &gemm);
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

/// Adds `gpu.func @kernel` of the sequential form to `module`. The plan says which roles execute it
/// and which schedule shares out its tiles.
mlir::gpu::GPUFuncOp buildGemmKernel(mlir::gpu::GPUModuleOp module, const Gemm &gemm,
                                     const KernelPlan &plan, mlir::Location loc);

} // namespace fp4
