//===- TileBuilder.h - Builder of sequential tile kernels -----------------===//
//
// Counters, coordinates and sizes in a kernel are i32.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "SmallBuilders.h"

#include "fp4/Dialect/Pipe/IR/Cluster.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"
#include "fp4/Plans/KernelPlans.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace fp4 {

/// A builder in the body of a kernel, with i32 arithmetic and loops.
class TileBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using Value = mlir::Value;

  TileBuilder(mlir::gpu::GPUFuncOp func, const KernelPlan &plan, mlir::Location loc)
      : ImplicitLocOpBuilder(loc, func.getBody()),
        schedule(mlir::cast<pipe::WorkScheduleAttrInterface>(plan.schedule)) {}

  Value constant(int64_t value) { return mlir::arith::ConstantIntOp::create(*this, value, 32); }
  Value add(Value x, Value y) { return mlir::arith::AddIOp::create(*this, x, y); }
  /// The value of a number, or the number of which it is one.
  Value valueOf(mlir::OpFoldResult number) {
    std::optional<int64_t> known = mlir::getConstantIntValue(number);
    auto value = llvm::dyn_cast<Value>(number);
    return value ? value : constant(*known);
  }
  /// The sum of a number and `more`, a number where it is one.
  mlir::OpFoldResult plus(mlir::OpFoldResult number, int64_t more) {
    if (auto value = llvm::dyn_cast<Value>(number))
      return add(value, constant(more));
    return getI64IntegerAttr(*mlir::getConstantIntValue(number) + more);
  }
  Value sub(Value x, Value y) { return mlir::arith::SubIOp::create(*this, x, y); }
  Value mul(Value x, Value y) { return mlir::arith::MulIOp::create(*this, x, y); }
  Value mul(Value x, int64_t y) { return mul(x, constant(y)); }
  Value min(Value x, int64_t y) { return mlir::arith::MinSIOp::create(*this, x, constant(y)); }
  Value div(Value x, int64_t y) { return mlir::arith::DivUIOp::create(*this, x, constant(y)); }
  Value rem(Value x, int64_t y) { return mlir::arith::RemUIOp::create(*this, x, constant(y)); }
  /// ceil(x / unit)
  Value quotientUp(Value x, int64_t unit) { return div(add(x, constant(unit - 1)), unit); }
  Value compare(mlir::arith::CmpIPredicate predicate, Value x, Value y) {
    return mlir::arith::CmpIOp::create(*this, predicate, x, y);
  }
  /// The elements that a thread has of `tile`, and the tile of such elements.
  Value toVector(Value tile) {
    return pipe::ElementsOp::create(*this, pipe::vectorOfThread(tile.getType()), tile);
  }
  Value fromVector(mlir::RankedTensorType type, Value vector) {
    return pipe::ElementsOp::create(*this, type, vector);
  }
  /// The tile of `type` all of whose elements are `scalar`.
  Value splat(mlir::RankedTensorType type, Value scalar) {
    return mlir::tensor::SplatOp::create(*this, type, scalar, mlir::ValueRange());
  }
  /// The hyperbolic tangents tanh(x) = 1 - 2 / (1 + 2^y) of a tile, y = `products` * `factors`.
  Value tangentsOf(Value products, Value factors) {
    auto type = mlir::cast<mlir::RankedTensorType>(products.getType());
    auto all = [&](float number) -> Value {
      return mlir::arith::ConstantOp::create(*this, mlir::DenseElementsAttr::get(type, number));
    };
    auto fast = mlir::arith::FastMathFlags::afn;
    Value power = mlir::math::Exp2Op::create(
        *this, mlir::arith::MulFOp::create(*this, products, factors), fast);
    Value inverse = mlir::arith::DivFOp::create(
        *this, all(1), mlir::arith::AddFOp::create(*this, power, all(1)), fast);
    return mlir::math::FmaOp::create(*this, inverse, all(-2), all(1));
  }
  /// The place of this CTA in its cluster.
  Value placeInCluster(mlir::gpu::Dimension dimension) {
    return mlir::arith::IndexCastOp::create(*this, getI32Type(),
                                            mlir::gpu::ClusterBlockIdOp::create(*this, dimension));
  }
  /// Number `column` of row `index` of a table.
  Value entry(Value table, Value index, int64_t column = 0) {
    auto type = mlir::cast<pipe::GlobalType>(table.getType());
    int64_t columns = type.getRank() == 2 ? type.getShape()[1] : 1;
    auto row = mlir::VectorType::get({columns}, type.getElementType());
    return mlir::vector::ExtractOp::create(
        *this, pipe::LoadEntryOp::create(*this, row, table, index), column);
  }
  /// min(unit, total - done): what a tile has of its `unit` parts; null when every tile is whole.
  Value existing(Value done, int64_t unit, int64_t total) {
    return total % unit == 0 ? Value() : min(sub(constant(total), done), unit);
  }

  using Body = llvm::function_ref<void()>;
  using LoopBody = llvm::function_ref<void(Value)>;
  mlir::scf::ForOp loop(Value lower, Value upper, Value step, LoopBody body) {
    auto op = mlir::scf::ForOp::create(*this, lower, upper, step);
    InsertionGuard guard(*this);
    setInsertionPointToStart(op.getBody());
    body(op.getInductionVar());
    return op;
  }
  /// Emits `body` for where `condition` holds, and `otherwise` for where it does not.
  void when(Value condition, Body body, Body otherwise = {}) {
    emitWhen(*this, condition, body, otherwise);
  }
  /// `value`, or where `condition` holds the value that `make` gives in its place.
  Value replaceWhen(Value condition, Value value, llvm::function_ref<Value()> make) {
    return chooseValue(*this, value.getType(), condition, make, [&] { return value; });
  }
  using WorkBody = llvm::function_ref<void(Value m, Value n, Value turn)>;
  /// The tiles of a numM x numN grid that this CTA works on, in the order of its schedule. With
  /// `countsTurns`, `turn` counts the tiles that the CTA worked on before; else it is null.
  void forEachWork(Value numM, Value numN, WorkBody body, bool countsTurns = false) {
    mlir::SmallVector<Value> first;
    if (countsTurns)
      first.push_back(constant(0));
    auto work = pipe::ForEachWorkOp::create(*this, numM, numN, schedule, first);
    InsertionGuard guard(*this);
    setInsertionPointToStart(work.getBody());
    if (schedule.getRingDepth())
      pipe::RequestWorkOp::create(*this, Value());
    Value turn = countsTurns ? Value(work.getRegionIterArgs().front()) : Value();
    body(work.getM(), work.getN(), turn);
    if (countsTurns)
      pipe::YieldOp::create(*this, add(turn, constant(1)));
  }

  /// The tile that comes with `number` in `list`, one of `lists` columns of tiles, the shorter the
  /// later where they are `uneven`. In panels whose rounds are not turned around, every other panel
  /// but for the last one begins with the shortest, `turned`, so that all CTAs have as much work of
  /// each two panels.
  Value inPanels(Value number, Value turned, Value list, int64_t lists, bool uneven) {
    auto panels = mlir::dyn_cast<pipe::StaticPersistentAttr>(schedule);
    int64_t width = panels ? panels.getWidth() : 0;
    if (!uneven || width == 0 || panels.getSerpentine())
      return number;
    auto last = int64_t(llvm::divideCeil(lists, width)) - 1;
    Value panel = add(div(list, width), constant(last % 2));
    Value isTurned = compare(mlir::arith::CmpIPredicate::ne, rem(panel, 2), constant(0));
    return mlir::arith::SelectOp::create(*this, isTurned, turned, number);
  }

private:
  pipe::WorkScheduleAttrInterface schedule;
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
  if (plan.pipeline.stages)
    func->setAttr(pipe::PipeDialect::kMaxStagesAttr,
                  builder.getI64IntegerAttr(*plan.pipeline.stages));
  if (plan.pipeline.accumulators)
    func->setAttr(pipe::PipeDialect::kMaxAccumulatorsAttr,
                  builder.getI64IntegerAttr(*plan.pipeline.accumulators));
  // CTAs of the next launch would take places of this one's, unevenly.
  if (plan.ctasPerSm == 1 && launchDependentsOf(plan))
    func->setAttr(pipe::PipeDialect::kAloneAttr, builder.getUnitAttr());
  return func;
}

/// Registers are to be so few, and as many, that `blocks` CTAs fit on an SM.
inline void declareCtasPerSm(mlir::gpu::GPUFuncOp kernel, int64_t blocks) {
  kernel->setAttr(mlir::NVVM::NVVMDialect::getMinctasmAttrName(),
                  mlir::Builder(kernel.getContext()).getI32IntegerAttr(int32_t(blocks)));
}

} // namespace fp4
