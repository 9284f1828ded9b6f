//===- PromotionLoops.cpp - Loops over scale blocks of promoted MMAs ------===//
//
// A loop of few iterations, with the scales of its scale blocks in a tile, becomes its iterations:
// ptxas then computes the barriers and descriptors of a k tile while the sums of the one before are
// added. All iterations have their sums in one fragment, for the same reason as parts of a tile
// (Promotion.cpp).
//
// Between the iterations of the loop around it there is a branch, which ptxas moves nothing across.
// So the last sums of an iteration are added in the next one, while it asks for its stage, and
// those of the last iteration behind the loop. The first iteration adds zeros, times a scale of
// zero.
//
//===----------------------------------------------------------------------===//
#include "Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"

using namespace mlir;
using namespace fp4;

/// Loops over at most as many scale blocks become their iterations.
static constexpr uint64_t kMostIterations = 4;

/// Returns true for sums that an MMA overwrites; other fragments begin as zeros in each turn of a
/// loop.
static bool areOverwritten(OpOperand &use) {
  if (auto product = dyn_cast<pipe::MmaFragmentOp>(use.getOwner()))
    return product.getSums() == use.get();
  auto promote = dyn_cast<pipe::PromoteOp>(use.getOwner());
  return promote && promote.getAccumulator() != use.get();
}

static void hoistSums(scf::ForOp loop) {
  for (auto fragment : llvm::make_early_inc_range(loop.getOps<pipe::FragmentOp>()))
    if (llvm::all_of(fragment->getUses(), areOverwritten))
      fragment->moveBefore(loop);
}

namespace {
/// The last sums of an iteration, which those of the first MMA of the next iteration replace.
struct LastSums {
  pipe::PromoteOp promote;
  pipe::ConsumerWaitOp wait; ///< wait for the stage of the first MMA

  static std::optional<LastSums> of(scf::ForOp loop);
};
} // namespace

std::optional<LastSums> LastSums::of(scf::ForOp loop) {
  auto products = llvm::to_vector(loop.getOps<pipe::MmaFragmentOp>());
  auto promotes = llvm::to_vector(loop.getOps<pipe::PromoteOp>());
  if (products.empty() || promotes.empty())
    return std::nullopt;
  LastSums last = {promotes.back(), products.front().getA().getDefiningOp<pipe::ConsumerWaitOp>()};
  pipe::PromoteOp promote = last.promote;
  bool isLast =
      promote.getSums() == products.back().getSums() && products.back()->isBeforeInBlock(promote);
  bool isReplaced = promote.getSums() == products.front().getSums();
  bool isOutside =
      llvm::all_of(ValueRange{promote.getAccumulator(), promote.getSums(), promote.getColumn()},
                   [&](Value value) { return loop.isDefinedOutsideOfLoop(value); });
  if (!isLast || !isReplaced || !isOutside || !last.wait || last.wait->getBlock() != loop.getBody())
    return std::nullopt;
  return last;
}

static void postponeLastSums(scf::ForOp loop) {
  std::optional<LastSums> last = LastSums::of(loop);
  if (!last)
    return;
  pipe::PromoteOp promote = last->promote;
  IRRewriter rewriter(loop);
  auto type = cast<VectorType>(promote.getScales().getType());
  Value zeros = arith::ConstantOp::create(rewriter, loop.getLoc(), rewriter.getZeroAttr(type));
  Value scales = promote.getScales();
  auto wider = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      rewriter, zeros, /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &, Location, ArrayRef<BlockArgument>) { return SmallVector<Value>{scales}; }));
  auto add = [&](Value ofScales) {
    pipe::PromoteOp::create(rewriter, promote.getLoc(), promote.getAccumulator(), promote.getSums(),
                            ofScales, promote.getColumn());
  };
  rewriter.setInsertionPoint(last->wait);
  add(wider.getRegionIterArgs().back());
  rewriter.setInsertionPointAfter(wider);
  add(wider.getResults().back());
  rewriter.eraseOp(promote);
}

void fp4::unrollPromotion(gpu::GPUFuncOp kernel) {
  SmallVector<scf::ForOp> loops;
  kernel.walk([&](Operation *op) {
    if (!isa<pipe::TilePowersOp, pipe::TileScalesOp>(op))
      return;
    auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
    std::optional<llvm::APInt> count = loop ? loop.getStaticTripCount() : std::nullopt;
    if (count && count->ule(kMostIterations) && !llvm::is_contained(loops, loop))
      loops.push_back(loop);
  });
  for (scf::ForOp loop : loops) {
    auto around = dyn_cast<scf::ForOp>(loop->getParentOp());
    hoistSums(loop);
    (void)loopUnrollFull(loop); // loopUnrollFull succeeds with a known number of iterations
    if (!around || around.getOps<pipe::MmaFragmentOp>().empty())
      continue;
    hoistSums(around);
    postponeLastSums(around);
  }
}
