//===- CarriedValues.cpp - Values that loops carry -------------------------===//
//
// A value that a loop carries, and what the next one is computed from, use each other: such a cycle
// is dead though every operation in it has uses. Live is what operations with effects use, and from
// there what that is computed from, through loops.
//
//===----------------------------------------------------------------------===//
#include "CarriedValues.h"

#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace fp4::pipe;

namespace {
class Liveness {
public:
  Liveness(Operation *root, function_ref<bool(Operation *)> isGone) {
    root->walk([&](Operation *op) {
      if (!isGone(op))
        addRoots(op);
    });
    while (!work.empty())
      propagate(work.pop_back_val());
  }
  bool contains(Value value) const { return live.contains(value); }

private:
  void add(Value value) {
    if (value && live.insert(value).second) // operations that are gone have dropped their operands
      work.push_back(value);
  }
  void add(ValueRange values) {
    for (Value value : values)
      add(value);
  }

  /// Adds what `op` needs though nothing uses its results.
  void addRoots(Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return add({loop.getLowerBound(), loop.getUpperBound(), loop.getStep()});
    bool isCarry = isa<scf::YieldOp>(op) && isa<scf::ForOp>(op->getParentOp());
    bool isComputed = op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
                      !op->hasTrait<OpTrait::IsTerminator>() && !isa<EngineOpInterface>(op);
    if (!isCarry && !isComputed)
      add(op->getOperands());
  }

  void propagate(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (loop && argument.getArgNumber() > 0)
        addCarried(loop, argument.getArgNumber() - 1);
      return;
    }
    if (auto loop = value.getDefiningOp<scf::ForOp>())
      return addCarried(loop, cast<OpResult>(value).getResultNumber());
    add(value.getDefiningOp()->getOperands());
  }

  void addCarried(scf::ForOp loop, unsigned number) {
    add(loop.getRegionIterArg(number));
    add(loop.getInitArgs()[number]);
    add(loop.getYieldedValues()[number]);
  }

  DenseSet<Value> live;
  SmallVector<Value> work;
};
} // namespace

/// Replaces `loop` by one that does not carry the values `dead`. Their users are dead too, and get
/// the first values.
static void dropCarried(scf::ForOp loop, const llvm::BitVector &dead) {
  Block &body = *loop.getBody();
  SmallVector<Value> operands = {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()}, kept;
  SmallVector<Type> types;
  for (unsigned i = 0; i < dead.size(); ++i) {
    if (dead[i]) {
      loop.getRegionIterArg(i).replaceAllUsesWith(loop.getInitArgs()[i]);
      loop.getResult(i).replaceAllUsesWith(loop.getInitArgs()[i]);
      continue;
    }
    operands.push_back(loop.getInitArgs()[i]);
    types.push_back(loop.getResult(i).getType());
    kept.push_back(loop.getResult(i));
  }
  for (unsigned i = dead.size(); i-- > 0;)
    if (dead[i]) {
      body.eraseArgument(i + 1);
      body.getTerminator()->eraseOperand(i);
    }
  OpBuilder b(loop);
  OperationState state(loop.getLoc(), loop->getName(), operands, types);
  state.propertiesAttr = loop->getPropertiesAsAttribute();
  state.addAttributes(llvm::to_vector(loop->getDiscardableAttrs()));
  state.addRegion()->takeBody(loop.getRegion());
  Operation *made = b.create(state);
  for (auto [before, after] : llvm::zip_equal(kept, made->getResults()))
    before.replaceAllUsesWith(after);
  loop.erase();
}

void fp4::pipe::freeCarriedValues(Operation *root, function_ref<bool(Operation *)> isGone) {
  Liveness liveness(root, isGone);
  SmallVector<scf::ForOp> loops;
  root->walk([&](scf::ForOp loop) { loops.push_back(loop); });
  for (scf::ForOp loop : loops) {
    llvm::BitVector dead(loop.getNumRegionIterArgs());
    for (auto [number, argument] : llvm::enumerate(loop.getRegionIterArgs()))
      dead[unsigned(number)] = !liveness.contains(argument);
    if (dead.any())
      dropCarried(loop, dead);
  }
}
