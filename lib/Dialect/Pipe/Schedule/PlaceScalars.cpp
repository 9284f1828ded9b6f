//===- PlaceScalars.cpp - Scalars that several roles compute --------------===//
//
// Numbers that follow from the sizes of a call, from a table of groups, or from the place of a CTA,
// stand in front of all roles, such as the numbers of tiles. ptxas keeps them in memory, for all
// roles, if one role has no register for them. So each role that sets its registers computes its
// own numbers behind that:
//
//   m = (rows + 255) / 256             role load { m' = (rows' + 255) / 256; for .. m' .. }
//   role load { for .. m .. }     ->   role math { m' = (rows' + 255) / 256; for .. m' .. }
//   role math { for .. m .. }
//
// The sizes are hidden from LLVM in each role, because it would compute once what two roles have in
// common. ptxas may then keep the results in registers of the warp.
//
//===----------------------------------------------------------------------===//
#include "Schedule.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/Schedule/Passes.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

namespace fp4::pipe {
#define GEN_PASS_DEF_PLACESCALARS
#include "fp4/Dialect/Pipe/Schedule/Passes.h.inc"
} // namespace fp4::pipe

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Returns true when a role has no room for copies. ptxas keeps values from before all roles in
/// registers of the warp, in which the code of an elected thread cannot compute; a role that is a
/// whole warp can.
static bool hasFewRegisters(RoleRegionOp region, const hw::TargetModel &target) {
  int32_t count = region.getRole().getRegisters();
  return count && count <= (namesTiles(target) ? 24 : 40);
}

/// Returns true when a role may compute `op` itself. An entry of a table tells how many tiles there
/// are.
static bool isScalar(Operation *op) {
  if (auto entry = dyn_cast_or_null<LoadEntryOp>(op); entry && !entry.getIndex())
    return false;
  return op && isa<gpu::GPUFuncOp>(op->getParentOp()) && op->getNumResults() == 1 &&
         (isa<arith::ArithDialect>(op->getDialect()) ||
          isa<gpu::BlockIdOp, gpu::GridDimOp, LoadEntryOp, vector::ExtractOp>(op)) &&
         !op->hasTrait<OpTrait::ConstantLike>();
}

namespace {
/// The scalars that one role computes itself, where `b` inserts.
class OwnScalars {
public:
  explicit OwnScalars(OpBuilder b) : b(b) {}

  /// The role's own copy of `value`, which comes before all roles.
  Value of(Value value) {
    if (Value found = own.lookupOrNull(value))
      return found;
    if (isa<BlockArgument>(value) && value.getType().isInteger(32))
      return hide(value, value);
    Operation *op = value.getDefiningOp();
    if (!isScalar(op))
      return value;
    for (Value operand : op->getOperands())
      of(operand);
    Value index;
    if (auto entry = dyn_cast<LoadEntryOp>(op))
      index = OpaqueOp::create(b, op->getLoc(), own.lookupOrDefault(entry.getIndex()));
    Operation *copy = b.clone(*op, own);
    if (index)
      cast<LoadEntryOp>(copy).getIndexMutable().assign(index);
    bool isSize = isa<arith::IndexCastOp>(op) && op->getOperand(0).getDefiningOp<gpu::GridDimOp>();
    return isSize ? hide(value, copy->getResult(0)) : copy->getResult(0);
  }

private:
  Value hide(Value value, Value copy) {
    Value hidden = OpaqueOp::create(b, value.getLoc(), copy);
    own.map(value, hidden);
    return hidden;
  }

  OpBuilder b;
  IRMapping own;
};
} // namespace

static void placeScalars(gpu::GPUFuncOp kernel, const hw::TargetModel &target) {
  auto setsRegisters = [](RoleRegionOp region) { return region.getRole().getRegisters() != 0; };
  auto isFull = [&](RoleRegionOp region) { return hasFewRegisters(region, target); };
  if (llvm::none_of(kernel.getOps<RoleRegionOp>(), setsRegisters) ||
      llvm::any_of(kernel.getOps<RoleRegionOp>(), isFull))
    return;
  for (auto region : kernel.getOps<RoleRegionOp>()) {
    OwnScalars own(OpBuilder::atBlockBegin(&region.getBody().front()));
    region.walk([&](Operation *op) {
      for (OpOperand &operand : op->getOpOperands())
        if (isScalar(operand.get().getDefiningOp()))
          operand.set(own.of(operand.get()));
    });
  }
}

namespace {
struct PlaceScalars : fp4::pipe::impl::PlaceScalarsBase<PlaceScalars> {
  void runOnOperation() override {
    WalkResult found = getOperation()->walk([](ForEachWorkOp loop) {
      (void)withNote(loop.emitOpError("must be expanded before scalars are placed"),
                     "run pipe-expand-work before pipe-place-scalars: roles have no copies of what "
                     "their loop of work computes");
      return WalkResult::interrupt();
    });
    if (found.wasInterrupted() || failed(forEachKernel(getOperation(), placeScalars)))
      signalPassFailure();
  }
};
} // namespace
