//===- DeferReleases.cpp - Releases behind the MMAs that follow -----------===//
//
// The tensor core goes on between the iterations of a loop over the stages of a channel that is as
// deep as three: an iteration releases the stage of the one before, whose MMAs its own have waited
// for, and the last stage is released behind the loop.
//
//   for k                                   for k
//     consumer_wait ab[it]                    consumer_wait ab[it]
//     mma                              ->     mma chain until_iteration
//     consumer_release ab[it]                 if k is not the first: consumer_release ab[it - 1]
//     yield it + 1                            yield it + 1
//                                           if there was one: consumer_release ab[last]
//
//===----------------------------------------------------------------------===//
#include "Schedule.h"

#include "fp4/Dialect/Pipe/IR/KernelForm.h"
#include "fp4/Dialect/Pipe/Schedule/Passes.h"
#include "fp4/Routes/Route.h"

#include "mlir/IR/IRMapping.h"

namespace fp4::pipe {
#define GEN_PASS_DEF_DEFERRELEASES
#include "fp4/Dialect/Pipe/Schedule/Passes.h.inc"
} // namespace fp4::pipe

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// The MMAs of a loop over the stages of a channel, and the release of a stage behind them.
struct MmaLoop {
  scf::ForOp loop;
  SmallVector<MmaOp> products;
  ConsumerReleaseOp release;
  int64_t parts = 0;   ///< parts of all MMAs, each converted by itself
  int64_t columns = 0; ///< columns of the MMAs

  bool add(Operation &op);
};

/// Adds `op`; returns false if it is no MMA that may go on.
bool MmaLoop::add(Operation &op) {
  auto product = dyn_cast<MmaOp>(op);
  if (!product || product.getExisting() || product.getInOrder())
    return false;
  SharedType b = product.getB().getType();
  if (product.getForm() == hw::MmaForm::WgmmaPrepacked) {
    bool hasBytes = product.hasByteTiles();
    if (takesWarpMmas(product) || (hasBytes && !product.getWithoutPowers()))
      return false;
    parts += product.getAAs<SharedType>().getRows() * (hasBytes ? kBytePartsOfTile : 1);
  } else if (product.getForm() == hw::MmaForm::WgmmaDequantized) {
    parts += b.getColumns() / hw::weightTileColumns;
  } else {
    return false;
  }
  columns = b.getRows();
  products.push_back(product);
  return true;
}

/// Finds the MMAs of a loop that may go on between iterations; MMAs of other kinds, or of tiles
/// that may not exist, never do. An iteration has several parts: the registers with the weights of
/// one are written again while the tensor core reads those of another. GEMMs of 32 columns and more
/// are faster that way, and those of 16 if there are many stages; not those of 32 columns that
/// share an SM, whose two CTAs hide each other's waits (notebook/gemm-weights.md).
static std::optional<MmaLoop> findMmaLoop(scf::ForOp loop, bool sharesSm) {
  constexpr int64_t fewestStages = 3, fewestParts = 2, mostOfFew = 16, fewestStagesOfFew = 6;
  int64_t fewestOfMany = sharesSm ? 40 : 32;
  MmaLoop found;
  found.loop = loop;
  for (Operation &op : *loop.getBody()) {
    if (found.add(op))
      continue;
    if (auto release = dyn_cast<ConsumerReleaseOp>(op)) {
      if (std::exchange(found.release, release))
        return std::nullopt;
    } else if (!isa<ConsumerWaitOp, scf::YieldOp>(op) && !isPure(&op))
      return std::nullopt;
  }
  if (found.products.empty() || !found.release)
    return std::nullopt;
  bool isSingle = found.products.size() == 1, isFew = found.columns <= mostOfFew;
  if (found.parts < fewestParts || (isSingle && !isFew && found.columns < fewestOfMany))
    return std::nullopt;
  auto channel = found.release.getChannel().getDefiningOp<ChannelOp>();
  int64_t fewest = isSingle && isFew ? fewestStagesOfFew : fewestStages;
  return channel && *channel.getDepth() >= fewest ? std::optional(found) : std::nullopt;
}

/// Returns `before`, the iteration before that of `release`, with the stage before the one that
/// `release` names.
static Value stageBefore(OpBuilder &b, ConsumerReleaseOp release, Value before) {
  StageOfOp known = stageOf(release.getIteration());
  if (!known)
    return before;
  Location loc = release.getLoc();
  auto depth = int64_t(known.getDepth());
  Value isFirst =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, known.getStage(), number(b, loc, 0));
  Value less = arith::SubIOp::create(b, loc, known.getStage(), number(b, loc, 1));
  Value stage = arith::SelectOp::create(b, loc, isFirst, number(b, loc, depth - 1), less);
  Value turn = arith::ExtUIOp::create(b, loc, b.getI32Type(), isFirst);
  Value phase = arith::XOrIOp::create(b, loc, known.getPhase(), turn);
  return StageOfOp::create(b, loc, before, stage, phase, depth, /*ahead=*/0, known.getOpposite());
}

/// Releases the stage before `next`, if `exists`.
static void releaseBefore(OpBuilder &b, ConsumerReleaseOp release, Value next, Value exists,
                          bool inLoop) {
  Location loc = release.getLoc();
  auto branch = scf::IfOp::create(b, loc, exists, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard restore(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value before = arith::SubIOp::create(b, loc, next, number(b, loc, 1));
  IRMapping mapping;
  mapping.map(release.getIteration(), inLoop ? stageBefore(b, release, before) : before);
  b.clone(*release, mapping);
}

static void deferReleases(gpu::GPUFuncOp kernel, const hw::TargetModel &target) {
  if (!route::hasCore(target, route::Core::Wgmma))
    return; // MMAs are complete when their instructions are
  kernel.walk([&](scf::ForOp loop) {
    std::optional<MmaLoop> found = findMmaLoop(loop, ctasPerSm(kernel) > 1);
    auto counter = found ? dyn_cast<BlockArgument>(countedIteration(found->release.getIteration()))
                         : BlockArgument();
    if (!counter || counter.getOwner() != loop.getBody() || counter.getArgNumber() == 0)
      return;
    ConsumerReleaseOp release = found->release;
    OpBuilder b(release);
    Location loc = release.getLoc();
    b.setInsertionPointAfter(found->products.front());
    auto isAbove = [&](Value a, Value low) -> Value {
      return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, a, low);
    };
    releaseBefore(b, release, counter, isAbove(loop.getInductionVar(), loop.getLowerBound()),
                  /*inLoop=*/true);
    b.setInsertionPointAfter(loop);
    releaseBefore(b, release, loop.getResult(counter.getArgNumber() - 1),
                  isAbove(loop.getUpperBound(), loop.getLowerBound()), /*inLoop=*/false);
    release.erase();
    for (MmaOp product : found->products)
      product.setChain(MmaChain::UntilIteration);
  });
}

namespace {
struct DeferReleases : fp4::pipe::impl::DeferReleasesBase<DeferReleases> {
  void runOnOperation() override {
    if (failed(forEachKernel(getOperation(), deferReleases)))
      signalPassFailure();
  }
};
} // namespace
