//===- ChainMmas.cpp - MMAs that follow each other without a gap ----------===//
//
// If the parts of a tile have their sums in one fragment, the MMA of a part waits until the sums of
// the part before are read: the tensor core works for the other warpgroup. Otherwise ptxas begins
// the MMA early, in 44 registers more, and spills accumulators. If a stage has two k tiles, both
// MMAs begin together, and the first sums are added while the second MMA runs.
//
//===----------------------------------------------------------------------===//
#include "Schedule.h"

#include "fp4/Dialect/Pipe/Schedule/Passes.h"

namespace fp4::pipe {
#define GEN_PASS_DEF_CHAINMMAS
#include "fp4/Dialect/Pipe/Schedule/Passes.h.inc"
} // namespace fp4::pipe

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Marks MMAs behind which another MMA of the same B follows in the block of code: that one waits
/// for both.
template <typename OpT> static void markContinued(OpT op) {
  op.setContinued(llvm::any_of(op.getB().getUsers(), [&](Operation *user) {
    return isa<OpT>(user) && user->getBlock() == op->getBlock() && op->isBeforeInBlock(user);
  }));
}

/// The MMA before `product` with sums of its own, if the tiles of `product` are there too by then;
/// else null.
static MmaFragmentOp mmaBefore(MmaFragmentOp product) {
  for (Operation *op = product->getPrevNode(); op; op = op->getPrevNode()) {
    auto before = dyn_cast<MmaFragmentOp>(op);
    if (!before)
      continue;
    auto isThere = [&](Value value) {
      Operation *origin = value.getDefiningOp();
      return !origin || origin->getBlock() != op->getBlock() || origin->isBeforeInBlock(op);
    };
    bool begins = before.getSums() != product.getSums() &&
                  before.getSums().getType() == product.getSums().getType() &&
                  isThere(product.getSums()) && isThere(product.getA()) && isThere(product.getB());
    return begins ? before : MmaFragmentOp();
  }
  return {};
}

/// Returns true when `promote` is behind the loop over K and the last one of its accumulator.
static bool completesTile(PromoteOp promote) {
  return promote.getAccumulator().getParentBlock() == promote->getBlock() &&
         llvm::none_of(promote.getAccumulator().getUsers(), [&](Operation *user) {
           return isa<PromoteOp>(user) && user->getBlock() == promote->getBlock() &&
                  promote->isBeforeInBlock(user);
         });
}

/// Finishes the sums of a tile behind its loop. LLVM would add the last sums where each part of the
/// tile is stored, and keep them beside the accumulators until then. The sums are added once stages
/// that nobody reads any more are released.
static void completeTiles(ArrayRef<PromoteOp> promotions) {
  for (PromoteOp promote : promotions) {
    while (isa_and_nonnull<ConsumerReleaseOp>(promote->getNextNode()))
      promote->moveAfter(promote->getNextNode());
    promote.setComplete(true);
  }
}

/// Says what `product` waits for: sums in its registers that somebody reads, and its tiles.
static void chain(MmaFragmentOp product) {
  for (Operation *user : product.getSums().getUsers()) {
    bool isBefore = user->getBlock() == product->getBlock() && user->isBeforeInBlock(product);
    if (isBefore && isa<MmaFragmentOp, PromoteOp>(user))
      product.setReplacing(true);
    if (auto promote = dyn_cast<PromoteOp>(user); isBefore && promote)
      promote.setComplete(true);
  }
  if (MmaFragmentOp before = mmaBefore(product); before && !before.getBegun()) {
    before.setNext(true);
    product.setBegun(true);
  }
}

static void chainMmas(gpu::GPUFuncOp kernel, const hw::TargetModel &) {
  SmallVector<PromoteOp> complete;
  kernel.walk([&](Operation *op) {
    if (auto product = dyn_cast<MmaConvertedOp>(op))
      markContinued(product);
    else if (auto prepacked = dyn_cast<MmaPrepackedOp>(op))
      markContinued(prepacked);
    else if (auto fragment = dyn_cast<MmaFragmentOp>(op))
      chain(fragment);
    else if (auto promote = dyn_cast<PromoteOp>(op); promote && completesTile(promote))
      complete.push_back(promote);
  });
  completeTiles(complete);
}

namespace {
struct ChainMmas : fp4::pipe::impl::ChainMmasBase<ChainMmas> {
  void runOnOperation() override {
    if (failed(forEachKernel(getOperation(), chainMmas)))
      signalPassFailure();
  }
};
} // namespace
