//===- VerifySync.cpp - Channels protect every tile that crosses roles ----===//
//
// Three walks over a kernel with roles:
//  - tiles (C130): walk operands, look at where each tile comes from;
//  - pairs (C131): walk blocks; a stage is taken and handed over in one block, so that every path
//    has both, in this order, and its tiles are used in between;
//  - channels: compare both ends of each (C132), (C133); count iterations through the loops (C134);
//    compare announced with loaded bytes (C135); run the channel ops of all roles (C136);
//  - work: all roles take the responses to requests for work (C303), or go over the same numbers
//    (C630);
//  - sets: a set of tensor memory columns is not filled while an MMA may read it (C137).
//
//===----------------------------------------------------------------------===//

#include "ChannelEnds.h"
#include "Deadlock.h"
#include "StageBytes.h"
#include "VerifyOverlap.h"
#include "VerifySharing.h"
#include "VerifyWork.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Cluster.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/KernelForm.h"
#include "fp4/Dialect/Pipe/IR/Scheduled.h"
#include "fp4/Dialect/Pipe/Transforms/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace fp4::pipe {
#define GEN_PASS_DEF_VERIFYSYNC
#include "fp4/Dialect/Pipe/Transforms/Passes.h.inc"
} // namespace fp4::pipe

using namespace mlir;
using namespace fp4::pipe;

//===----------------------------------------------------------------------===//
// Tiles (C130)
//===----------------------------------------------------------------------===//

static LogicalResult verifyTile(Operation *user, Value tile) {
  auto role = user->getParentOfType<RoleRegionOp>();
  Operation *def = tile.getDefiningOp();
  bool taken = def && isTake(def);
  bool made = isa_and_nonnull<EngineOpInterface>(def);
  if (def && role && role->isAncestor(def) && (taken || made))
    return success();
  InFlightDiagnostic diag = user->emitOpError()
                            << "tile " << tile.getType()
                            << " must come from an acquire or wait of this role";
  diag.attachNote(tile.getLoc()) << "the tile is defined here; hand it over in a channel";
  return diag;
}

static LogicalResult verifyTiles(gpu::GPUFuncOp kernel) {
  if (failed(verifyInRoles(kernel)))
    return failure();
  WalkResult result = kernel.walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (isa<SharedType, TmemType>(operand.getType()) && failed(verifyTile(op, operand)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// Pairs (C131)
//===----------------------------------------------------------------------===//

namespace {
/// Checks that stages are taken and handed over in pairs, block by block.
class PairChecker {
public:
  LogicalResult check(Block *block);

private:
  LogicalResult take(Operation *op);
  LogicalResult handOver(Operation *op);
  LogicalResult checkFill(StageFillerOpInterface filler);
  LogicalResult checkOpen(Block *block);

  llvm::MapVector<Value, Operation *> open; ///< channel -> op that took its current stage
};
} // namespace

LogicalResult PairChecker::take(Operation *op) {
  Value channel = channelOf(op);
  if (Operation *holder = open.lookup(channel)) {
    InFlightDiagnostic diag = op->emitOpError() << "takes a stage while one of the channel is held";
    diag.attachNote(holder->getLoc())
        << "taken here; hand it over with " << handOverName(holder) << " first";
    return diag;
  }
  open[channel] = op;
  return success();
}

LogicalResult PairChecker::handOver(Operation *op) {
  Value channel = channelOf(op);
  Operation *holder = open.lookup(channel);
  if (!holder || !isEndOf(op, holder)) {
    InFlightDiagnostic diag = op->emitOpError() << "hands over a stage that is not held";
    diag.attachNote() << "take it in the same block before, with " << takeName(op);
    return diag;
  }
  if (holder->getBlock() != op->getBlock()) {
    InFlightDiagnostic diag = op->emitOpError()
                              << "must be in the block that took the stage, so that every path "
                                 "hands it over once";
    diag.attachNote(holder->getLoc()) << "the stage is taken here";
    return diag;
  }
  for (Value slot : holder->getResults())
    for (Operation *user : slot.getUsers()) {
      Operation *ancestor = op->getBlock()->findAncestorOpInBlock(*user);
      if (ancestor && ancestor->isBeforeInBlock(op))
        continue;
      InFlightDiagnostic diag = user->emitOpError() << "uses a tile after it was handed over";
      diag.attachNote(op->getLoc()) << "handed over here; move this behind the last use";
      return diag;
    }
  open.erase(channel);
  return success();
}

LogicalResult PairChecker::checkFill(StageFillerOpInterface filler) {
  Value slot = filler.getSlot(), signalled = channelOf(filler);
  if (!slot && filler.getUnitBytes() == 0)
    return success(); // a tile that this role makes for itself
  auto acquire = slot ? slot.getDefiningOp<ProducerAcquireOp>() : ProducerAcquireOp();
  if (acquire && open.lookup(acquire.getChannel()) == acquire &&
      (!signalled || signalled == acquire.getChannel()))
    return success();
  InFlightDiagnostic diag = filler->emitOpError()
                            << "must fill a tile of a stage that is held"
                            << (signalled ? ", of the channel it signals" : "");
  diag.attachNote() << "acquire the stage before, and use its tile as destination";
  return diag;
}

LogicalResult PairChecker::checkOpen(Block *block) {
  for (auto [channel, holder] : open)
    if (holder->getBlock() == block) {
      InFlightDiagnostic diag = holder->emitOpError() << "stage must be handed over in this block";
      diag.attachNote() << "add " << handOverName(holder) << " behind the last use of its tiles";
      return diag;
    }
  return success();
}

LogicalResult PairChecker::check(Block *block) {
  for (Operation &op : *block) {
    LogicalResult result = success();
    if (isTake(&op))
      result = take(&op);
    else if (isHandOver(&op))
      result = handOver(&op);
    else if (auto filler = dyn_cast<StageFillerOpInterface>(op))
      result = checkFill(filler);
    else if (auto release = dyn_cast<ConsumerReleaseOp>(op)) // of a part
      result = verifyOverlap(release);
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        if (succeeded(result))
          result = check(&inner);
    if (failed(result))
      return failure();
  }
  return checkOpen(block);
}

//===----------------------------------------------------------------------===//
// Bytes (C135)
//===----------------------------------------------------------------------===//

static LogicalResult verifyBytes(ProducerAcquireOp acquire) {
  LinearForm loaded;
  ExpectTxOp announced;
  Operation *early = nullptr, *end = nullptr;
  for (Operation *op = acquire->getNextNode(); op && !end; op = op->getNextNode()) {
    if (channelOf(op) != acquire.getChannel())
      continue;
    if (auto expect = dyn_cast<ExpectTxOp>(op)) {
      if (announced)
        return expect.emitOpError("must announce the bytes of a stage once")
                   .attachNote(announced.getLoc())
               << "announced here";
      announced = expect;
    } else if (auto filler = dyn_cast<StageFillerOpInterface>(op)) {
      early = announced ? early : op;
      addFilledBytes(loaded, filler);
    } else {
      end = op;
    }
  }
  loaded = arrivingBytes(loaded, acquire.getChannel().getDefiningOp<ChannelOp>());
  if (!announced)
    return fp4::withNote(acquire.emitOpError() << "bytes of the stage must be announced",
                         "add pipe.expect_tx of " + loaded.str() + " bytes");
  if (early)
    return fp4::withNote(early->emitOpError("must come after the pipe.expect_tx of its stage"),
                         "move the load behind it, so that the barrier counts its bytes");
  LinearForm expected = linearForm(announced.getBytes());
  if (expected == loaded)
    return success();
  InFlightDiagnostic diag = announced.emitOpError()
                            << "must announce the " << loaded.str()
                            << " bytes that the loads of the stage complete, but got "
                            << expected.str();
  diag.attachNote() << (expected.factors.empty() && expected.constant > loaded.constant
                            ? "the consumer would wait forever"
                            : "the barrier's count would not return to zero");
  return diag;
}

//===----------------------------------------------------------------------===//
// Sets of tensor memory columns (C137)
//===----------------------------------------------------------------------===//

/// The pipe.await_release between `wait` and `copy` that is for the set which `copy` fills.
static AwaitReleaseOp findAwait(ConsumerWaitOp wait, Operation *copy, int64_t sets) {
  for (Operation *op = wait->getNextNode(); op && op != copy; op = op->getNextNode()) {
    auto await = dyn_cast<AwaitReleaseOp>(op);
    if (await && await.getChannel() == wait.getChannel() &&
        countedIteration(await.getIteration()) == countedIteration(wait.getIteration()) &&
        int64_t(await.getDistance()) <= sets)
      return await;
  }
  return {};
}

/// MMAs that read the tile are issued before the stage is released, whose commit covers them.
static LogicalResult verifyReaders(TmemTileOpInterface tile, ConsumerWaitOp wait) {
  for (Operation *op = wait->getNextNode(); op; op = op->getNextNode()) {
    if (!isHandOver(op) || channelOf(op) != wait.getChannel())
      continue;
    for (Operation *user : tile.getTmemTile().getUsers()) {
      Operation *ancestor = op->getBlock()->findAncestorOpInBlock(*user);
      if (ancestor && ancestor->isBeforeInBlock(op))
        continue;
      InFlightDiagnostic diag =
          user->emitOpError()
          << "uses a scale tile after the stage it was copied from was released";
      diag.attachNote(op->getLoc()) << "released here; move this behind the last use";
      return diag;
    }
    return success();
  }
  return success(); // (C131) is violated
}

static LogicalResult verifySets(TmemTileOpInterface tile) {
  auto wait = tile.getStageTile().getDefiningOp<ConsumerWaitOp>();
  auto channel = wait ? wait.getChannel().getDefiningOp<ChannelOp>() : ChannelOp();
  if (!channel || !channel.isPipelined())
    return success();
  if (failed(verifyReaders(tile, wait)))
    return failure();
  int64_t sets = tile.getNumSets(), depth = *channel.getDepth();
  Operation *ancestor = wait->getBlock()->findAncestorOpInBlock(*tile);
  if (sets >= depth || findAwait(wait, ancestor, sets))
    return success();
  InFlightDiagnostic diag = tile->emitOpError()
                            << "fills one of " << sets << " sets for the " << depth
                            << " stages of a channel while an earlier MMA may still read it";
  diag.attachNote(wait.getLoc()) << "give it " << depth
                                 << " sets, or put a pipe.await_release of distance " << sets
                                 << " between this and the copy";
  return diag;
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

/// Channels are declared before the roles, where both ends see them once.
static LogicalResult verifyDeclarations(gpu::GPUFuncOp kernel) {
  WalkResult result = kernel.walk([&](ChannelOp channel) {
    if (channel->getParentOp() == kernel)
      return WalkResult::advance();
    fp4::withNote(
        channel.emitOpError("must be in the body of the kernel, before its roles, but is in ")
            << channel->getParentOp()->getName(),
        "channels are shared by roles: move it in front of the first one");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// (C133), (C134) by the form of the loops. In the scheduled form the run of all roles shows it.
static LogicalResult verifyForm(ChannelOp channel, const ChannelEnds &ends) {
  if (failed(verifyLoopsAgree(ends)))
    return failure();
  if (!channel.isPipelined())
    return success();
  if (failed(verifyIterations(channel, ends.producer)))
    return failure();
  for (const ChannelEnds::Consumer &consumer : ends.consumers)
    if (failed(verifyIterations(channel, consumer.role)))
      return failure();
  return success();
}

static LogicalResult verifyChannel(ChannelOp channel, bool pairs, bool isScheduled) {
  FailureOr<ChannelEnds> ends = findEnds(channel);
  if (failed(ends) || (!isScheduled && failed(verifyForm(channel, *ends))) ||
      failed(verifySharing(channel, *ends, pairs)))
    return failure();
  if (!channel.isPipelined())
    return success();
  for (Operation *take : ends->producerTakes)
    if (channel.getProducer() == Engine::Tma && failed(verifyBytes(cast<ProducerAcquireOp>(take))))
      return failure();
  return success();
}

/// (C626) Warps are whole where all lanes may execute the code, and share what a whole warp loads.
static LogicalResult verifyWhole(RoleRegionOp region) {
  RoleAttr role = region.getRole();
  Operation *ofOne = role.getWhole() ? findOfOneThread(region) : nullptr;
  if (ofOne)
    return fp4::withNote(ofOne->emitOpError() << "must be executed by one thread, but the warp of "
                                                 "role "
                                              << role.getName() << " is whole",
                         "leave 'whole' out of the role, and one thread executes all of it");
  WalkResult result = region.walk([&](LoadEntryOp entry) {
    if (!entry.getOfWarp() || role.getWhole())
      return WalkResult::advance();
    fp4::withNote(entry.emitOpError() << "with of_warp must be in a role that is whole, but role "
                                      << role.getName() << " is not",
                  "leave 'of_warp' out where threads load for themselves");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

static LogicalResult verifyKernel(gpu::GPUFuncOp kernel) {
  if (failed(verifyDeclarations(kernel)) || failed(verifyTiles(kernel)) ||
      failed(verifyWork(kernel)))
    return failure();
  bool isScheduled = kernel->hasAttr(PipeDialect::kScheduledAttr);
  if (isScheduled && failed(verifyScheduledWork(kernel)))
    return failure();
  for (RoleRegionOp role : kernel.getBody().getOps<RoleRegionOp>())
    if (failed(isScheduled ? verifyWhole(role) : PairChecker().check(&role.getBody().front())))
      return failure();
  auto channels = kernel.getBody().getOps<ChannelOp>();
  bool pairs = usesPairs(kernel);
  for (ChannelOp channel : channels)
    if (failed(verifyChannel(channel, pairs, isScheduled)))
      return failure();
  WalkResult sets = kernel.walk([](TmemTileOpInterface tile) {
    return tile.fillsTile() && failed(verifySets(tile)) ? WalkResult::interrupt()
                                                        : WalkResult::advance();
  });
  if (sets.wasInterrupted())
    return failure();
  bool pipelined = llvm::all_of(channels, [](ChannelOp c) { return c.isPipelined(); });
  return pipelined ? verifyProgress(kernel) : success();
}

namespace {
struct VerifySyncPass : fp4::pipe::impl::VerifySyncBase<VerifySyncPass> {
  void runOnOperation() override {
    getOperation().walk([&](gpu::GPUFuncOp kernel) {
      bool hasRoles = !kernel.getBody().getOps<RoleRegionOp>().empty();
      if (hasRoles && failed(verifyKernel(kernel)))
        signalPassFailure();
    });
    markAllAnalysesPreserved();
  }
};
} // namespace
