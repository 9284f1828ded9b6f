//===- TileBuilder.h - Small builders of sequential tile kernels ----------===//
//
// Counters, coordinates and sizes in a kernel are i32.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/KernelPlan.h"
#include "fp4/Dialect/Pipe/IR/Cluster.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace fp4 {

class TileBuilder {
protected:
  TileBuilder(mlir::gpu::GPUFuncOp func, const KernelPlan &plan, mlir::Location loc)
      : schedule(mlir::cast<pipe::WorkScheduleAttrInterface>(plan.schedule)), loc(loc),
        b(func.getBody()) {}

  mlir::Value constant(int64_t value) {
    return mlir::arith::ConstantIntOp::create(b, loc, value, 32);
  }
  mlir::Value add(mlir::Value x, mlir::Value y) {
    return mlir::arith::AddIOp::create(b, loc, x, y);
  }
  mlir::Value mul(mlir::Value x, int64_t y) {
    return mlir::arith::MulIOp::create(b, loc, x, constant(y));
  }
  mlir::Value min(mlir::Value x, int64_t y) {
    return mlir::arith::MinSIOp::create(b, loc, x, constant(y));
  }
  /// min(unit, total - done): what a tile has of its `unit` parts; null when every tile is whole.
  mlir::Value existing(mlir::Value done, int64_t unit, int64_t total) {
    if (total % unit == 0)
      return {};
    return min(mlir::arith::SubIOp::create(b, loc, constant(total), done), unit);
  }

  using LoopBody = llvm::function_ref<void(mlir::Value)>;
  mlir::scf::ForOp loop(mlir::Value lower, mlir::Value upper, mlir::Value step, LoopBody body) {
    auto op = mlir::scf::ForOp::create(b, loc, lower, upper, step);
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(op.getBody());
    body(op.getInductionVar());
    return op;
  }
  using WorkBody = llvm::function_ref<void(mlir::Value m, mlir::Value n)>;
  /// The tiles of a numM x numN grid that this CTA works on, in the order of its schedule.
  void forEachWork(mlir::Value numM, mlir::Value numN, WorkBody body) {
    auto work = pipe::ForEachWorkOp::create(b, loc, numM, numN, schedule);
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(work.getBody());
    if (schedule.getRingDepth())
      pipe::RequestWorkOp::create(b, loc, mlir::Value());
    body(work.getM(), work.getN());
  }
  using TurnBody = llvm::function_ref<void(mlir::Value m, mlir::Value n, mlir::Value turn)>;
  /// Works on the tiles as forEachWork does; `turn` counts the tiles that this CTA worked on
  /// before.
  void forEachTurn(mlir::Value numM, mlir::Value numN, TurnBody body) {
    auto work = pipe::ForEachWorkOp::create(b, loc, numM, numN, schedule, constant(0));
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(work.getBody());
    if (schedule.getRingDepth())
      pipe::RequestWorkOp::create(b, loc, mlir::Value());
    mlir::Value turn = work.getRegionIterArgs().front();
    body(work.getM(), work.getN(), turn);
    pipe::YieldOp::create(b, loc, add(turn, constant(1)));
  }

  pipe::WorkScheduleAttrInterface schedule;
  mlir::Location loc;
  mlir::OpBuilder b;
};

/// An empty `gpu.func @kernel` in `module`, with what of its plan later passes read.
inline mlir::gpu::GPUFuncOp createKernel(mlir::gpu::GPUModuleOp module, mlir::TypeRange arguments,
                                         const KernelPlan &plan, mlir::Location loc) {
  mlir::OpBuilder builder = mlir::OpBuilder::atBlockBegin(module.getBody());
  auto func =
      mlir::gpu::GPUFuncOp::create(builder, loc, "kernel", builder.getFunctionType(arguments, {}));
  func->setAttr(mlir::gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  func->setAttr(pipe::PipeDialect::kRolePlanAttr, plan.roles);
  if (plan.cluster[0])
    func.setKnownClusterSizeAttr(builder.getDenseI32ArrayAttr(
        {static_cast<int32_t>(plan.cluster[0]), static_cast<int32_t>(plan.cluster[1]), 1}));
  if (plan.fallback[0])
    func->setAttr(pipe::kFallbackClusterAttr,
                  builder.getDenseI32ArrayAttr({static_cast<int32_t>(plan.fallback[0]),
                                                static_cast<int32_t>(plan.fallback[1])}));
  if (plan.stages)
    func->setAttr(pipe::PipeDialect::kMaxStagesAttr, builder.getI64IntegerAttr(*plan.stages));
  if (plan.accumulators)
    func->setAttr(pipe::PipeDialect::kMaxAccumulatorsAttr,
                  builder.getI64IntegerAttr(*plan.accumulators));
  // CTAs of the next launch would take places of this one's, unevenly.
  if (plan.ctasPerSm == 1 && plan.pdl.value_or(PdlMode::None) != PdlMode::None)
    func->setAttr(pipe::PipeDialect::kAloneAttr, builder.getUnitAttr());
  return func;
}

/// Registers are to be so few, and as many, that `blocks` CTAs fit on an SM.
inline void declareCtasPerSm(mlir::gpu::GPUFuncOp kernel, int64_t blocks) {
  kernel->setAttr(mlir::NVVM::NVVMDialect::getMinctasmAttrName(),
                  mlir::Builder(kernel.getContext()).getI32IntegerAttr(int32_t(blocks)));
}

} // namespace fp4
