//===- FindIslands.cpp - Choice of operations for one function ------------===//
//
// An island is convex: its function is called once, when all that it reads is there and before
// anything reads its results. The level of an operation counts how often a chain of values that
// leads to it has left fp4 and come back. Operations of one level cannot need each other through
// foreign code, so connected ones of a level are an island.
//
// Foreign code with side effects stays in its order. Operations behind such an operation have a
// higher level than those that it needs, so that no island needs to move across it.
//
//===----------------------------------------------------------------------===//

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/Transforms/Islands.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace {

/// fp4 operations, and views of tensors whose bytes only fp4 finds.
bool isOurs(Operation *op) {
  if (isa<fp4::Fp4Dialect>(op->getDialect()))
    return true;
  bool isView = isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op);
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    isView = slice->getNumOperands() == 1; // no dynamic offsets or sizes
  return isView && fp4::hasOwnStorage(op->getOperand(0).getType()) &&
         fp4::hasOwnStorage(op->getResult(0).getType());
}

class IslandFinder {
public:
  explicit IslandFinder(Block &block) : block(block) {}

  SmallVector<fp4::Island> find() {
    for (Operation &op : block)
      visit(op);
    llvm::MapVector<Operation *, fp4::Island> islands;
    for (Operation &op : block)
      if (joined.contains(&op))
        islands[joined.getLeaderValue(&op)].push_back(&op);
    auto found = llvm::to_vector(llvm::make_second_range(islands));
    llvm::stable_sort(found, [&](const fp4::Island &a, const fp4::Island &b) {
      return levels[a.front()] < levels[b.front()];
    });
    return found;
  }

private:
  /// The operations of this block that define what `op` reads, inside of its regions too.
  SmallVector<Operation *> producers(Operation &op) {
    SmallVector<Operation *> found;
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *producer = operand.getDefiningOp();
            producer && producer->getBlock() == &block)
          found.push_back(producer);
    });
    return found;
  }

  void visit(Operation &op) {
    bool isBundle = isa<fp4::ScaledOp>(op);
    bool ours = op.getDialect() && isOurs(&op);
    unsigned level = ours ? floor : 0;
    for (Operation *producer : producers(op))
      level = std::max(level, levels[producer] + (!ours && joined.contains(producer)));
    levels[&op] = level;
    if (isBundle)
      return; // belongs to the matmul behind it, which may have a higher level
    if (ours)
      joinWithBundles(&op, level);
    else if (level > 0 && !isMemoryEffectFree(&op))
      floor = std::max(floor, level);
  }

  void joinWithBundles(Operation *op, unsigned level) {
    for (Value operand : op->getOperands())
      if (auto bundle = operand.getDefiningOp<fp4::ScaledOp>()) {
        levels[bundle] = level;
        join(bundle, level);
      }
    join(op, level);
  }

  /// To those of the same level that make what `op` reads, or read the same.
  void join(Operation *op, unsigned level) {
    joined.insert(op);
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (isa_and_present<arith::ConstantOp>(producer))
        continue; // each island has its own
      if (producer && joined.contains(producer) && levels[producer] == level)
        joined.unionSets(producer, op);
      auto [reader, isFirst] = readers.try_emplace({operand, level}, op);
      if (!isFirst)
        joined.unionSets(reader->second, op);
    }
  }

  Block &block;
  unsigned floor = 0; ///< floor of the operations that are still to come
  DenseMap<Operation *, unsigned> levels;
  DenseMap<std::pair<Value, unsigned>, Operation *> readers; ///< the first of a level
  llvm::EquivalenceClasses<Operation *> joined;              ///< ours
};

} // namespace

/// Gives each operation that reads bundles its own, directly before it.
static void separateBundles(Block &block) {
  for (auto bundle : llvm::to_vector(block.getOps<fp4::ScaledOp>()))
    for (OpOperand &use : llvm::make_early_inc_range(bundle->getUses())) {
      OpBuilder builder(use.getOwner());
      use.set(builder.clone(*bundle)->getResult(0));
    }
  for (auto bundle : llvm::make_early_inc_range(block.getOps<fp4::ScaledOp>()))
    if (bundle->use_empty())
      bundle->erase();
}

SmallVector<fp4::Island> fp4::findIslands(Block &block) {
  separateBundles(block);
  return IslandFinder(block).find();
}
