//===- RowCases.cpp - Kernels by the number of rows -----------------------===//
//
// An operation with cases (fp4/Dialect/Fp4/IR/RowCases.h) and its prologues are copied for each
// case before they are lowered. The kernel of `fp4.plan` allocates the results. Kernels of the
// cases write the same buffers, in branches of the host in front of its launch:
//
//   if (rows <= 16) launch case 0
//   else if (rows <= 132) launch case 1
//   else launch the kernel of fp4.plan
//
//===----------------------------------------------------------------------===//
#include "KernelBuilder.h"
#include "Lowering.h"

#include "fp4/Dialect/Fp4/IR/Prologue.h"
#include "fp4/Dialect/Fp4/IR/RowCases.h"
#include "fp4/Dialect/Fp4/IR/RowNumbers.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace fp4;

namespace {

/// The operations that a kernel computes, in their order.
SmallVector<Operation *> chainOf(Operation *op) {
  SmallVector<Operation *> chain;
  llvm::append_range(chain, prologuesOf(op));
  auto quantize = dyn_cast<QuantizeOp>(op);
  if (AmaxOp amax = quantize ? amaxOfRows(quantize) : AmaxOp())
    chain.push_back(amax);
  chain.push_back(op);
  return chain;
}

/// A copy of the operations of a kernel, and the branch of the host that has it.
struct CaseCopy {
  scf::IfOp branch;
  SmallVector<Operation *> chain;
};

/// Copies `chain` into a branch for the rows of `one`, at the place of `b`.
CaseCopy copyFor(CaseAttr one, ArrayRef<Operation *> chain, Value rows, ImplicitLocOpBuilder &b) {
  Value most = constIndex(b, *one.getPlan().guard.m.most);
  Value holds = arith::CmpIOp::create(b, arith::CmpIPredicate::ule, rows, most);
  CaseCopy copy{scf::IfOp::create(b, holds, /*withElseRegion=*/true), {}};
  OpBuilder inside = copy.branch.getThenBodyBuilder();
  IRMapping mapping;
  for (Operation *op : chain)
    copy.chain.push_back(inside.clone(*op, mapping));
  copy.chain.back()->removeAttr(kRowCasesAttr);
  return copy;
}

/// Lowers the copy of a case: its results are in the buffers of those of `chain`. The branch keeps
/// the launch alone; buffers and sizes are in front of `first`, the branch of the first case.
LogicalResult lowerCopy(CaseCopy copy, ArrayRef<Operation *> chain, const KernelPlan &plan,
                        Operation *first, LoweringContext &context, Lowering lower) {
  for (auto [mine, original] : llvm::zip_equal(copy.chain, chain))
    for (auto [result, of] : llvm::zip_equal(mine->getResults(), original->getResults()))
      if (Value buffer = context.buffers.lookup(of))
        context.buffers[result] = buffer;
  KernelPlan whole = std::exchange(context.plan, plan);
  LogicalResult lowered = lower(copy.chain.back(), context);
  context.plan = whole;
  for (Operation *op : llvm::reverse(copy.chain)) {
    for (Value result : op->getResults())
      context.buffers.erase(result);
    op->erase();
  }
  for (Operation &op : llvm::make_early_inc_range(copy.branch.thenBlock()->without_terminator()))
    if (isa<UnrealizedConversionCastOp>(op) && op.use_empty())
      op.erase(); // the buffer as a result of the copy
    else if (!isa<gpu::LaunchFuncOp>(op))
      op.moveBefore(first);
  return lowered;
}

} // namespace

LogicalResult fp4::lowerRowCases(Operation *op, LoweringContext &context, Lowering lower) {
  SmallVector<Operation *> chain = chainOf(op);
  ImplicitLocOpBuilder b(op->getLoc(), op);
  auto generic = dyn_cast<linalg::GenericOp>(op);
  Value rows = hostRows(b, generic ? rowsInputOf(generic) : op->getOperand(0));
  SmallVector<CaseAttr> cases = rowCasesOf(op);
  SmallVector<CaseCopy> copies;
  for (CaseAttr one : cases)
    copies.push_back(copyFor(one, chain, rows, b));
  if (failed(lower(op, context)))
    return failure();
  Operation *launch = op->getPrevNode();
  for (auto [one, copy] : llvm::zip_equal(cases, copies)) {
    copy.branch->moveBefore(launch);
    launch->moveBefore(copy.branch.elseBlock()->getTerminator());
    if (failed(lowerCopy(copy, chain, one.getPlan(), copies.front().branch, context, lower)))
      return failure();
  }
  return success();
}
