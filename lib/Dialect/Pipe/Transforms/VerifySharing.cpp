//===- VerifySharing.cpp - Channels shared by several CTAs ----------------===//
//
// CTAs of a cluster run the same code. The CTAs stay in step only if their use of a shared channel
// does not depend on their place in the cluster: loops, branches and what they load for each other.
//
//===----------------------------------------------------------------------===//

#include "VerifySharing.h"

#include "ChannelEnds.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Cluster.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

namespace {
/// Finds out whether a value depends on the place of its CTA in the cluster.
class PlaceFinder {
public:
  /// Part of the place along m that counts: all of it, that of a CTA in its pair, or that of its
  /// pair.
  enum class Part { All, InPair, OfPair };

  PlaceFinder(hw::ClusterShape cluster, ArrayRef<Direction> directions, Part part = Part::All)
      : part(part), blocksOfCluster(cluster.m) {
    for (Direction direction : directions)
      if (cluster.along(toHardware(direction)) > 1)
        dimensions.push_back(direction == Direction::N ? gpu::Dimension::y : gpu::Dimension::x);
  }
  bool dependsOnPlace(Value value);

private:
  bool isPlace(Operation *op) const;
  bool isOtherPart(Operation *op) const;
  bool isCluster(Operation *op) const;
  bool anyDepends(ValueRange values) {
    return llvm::any_of(values, [&](Value value) { return dependsOnPlace(value); });
  }

  SmallVector<gpu::Dimension> dimensions;
  Part part;
  int64_t blocksOfCluster;
  llvm::DenseSet<Value> visited;
};
} // namespace

bool PlaceFinder::isPlace(Operation *op) const {
  if (auto place = dyn_cast<gpu::ClusterBlockIdOp>(op))
    return llvm::is_contained(dimensions, place.getDimension());
  if (auto block = dyn_cast<gpu::BlockIdOp>(op))
    return llvm::is_contained(dimensions, block.getDimension());
  return false;
}

/// Half of the place along m, or a smaller part, is the same for both CTAs of a pair; what is left
/// of a division by 2 is the same for all pairs.
bool PlaceFinder::isOtherPart(Operation *op) const {
  APInt divisor;
  if (part == Part::All || !isa<arith::DivUIOp, arith::RemUIOp>(op) ||
      !matchPattern(op->getOperand(1), m_ConstantInt(&divisor)))
    return false;
  bool isOther = part == Part::InPair ? isa<arith::DivUIOp>(op) && !divisor[0]
                                      : isa<arith::RemUIOp>(op) && divisor == 2;
  if (!isOther)
    return false;
  auto cast = op->getOperand(0).getDefiningOp<arith::IndexCastOp>();
  auto place = cast ? cast.getIn().getDefiningOp<gpu::ClusterBlockIdOp>() : gpu::ClusterBlockIdOp();
  return place && place.getDimension() == gpu::Dimension::x;
}

/// The number of the cluster of a CTA is the same for all of its CTAs.
bool PlaceFinder::isCluster(Operation *op) const {
  APInt divisor;
  if (!isa<arith::DivUIOp>(op) || !matchPattern(op->getOperand(1), m_ConstantInt(&divisor)) ||
      divisor.urem(blocksOfCluster) != 0)
    return false;
  auto cast = op->getOperand(0).getDefiningOp<arith::IndexCastOp>();
  auto block = cast ? cast.getIn().getDefiningOp<gpu::BlockIdOp>() : gpu::BlockIdOp();
  return block && block.getDimension() == gpu::Dimension::x;
}

/// A value of a region also depends on what the op around it does, and on what its blocks of code
/// yield.
bool PlaceFinder::dependsOnPlace(Value value) {
  if (!visited.insert(value).second)
    return false;
  Operation *op = value.getDefiningOp();
  if (!op)
    op = cast<BlockArgument>(value).getOwner()->getParentOp();
  if (isa<gpu::GPUFuncOp>(op) || isOtherPart(op) || isCluster(op))
    return false;
  if (isPlace(op) || anyDepends(op->getOperands()))
    return true;
  for (Region &region : op->getRegions())
    for (Block &block : region)
      if (block.mightHaveTerminator() && anyDepends(block.getTerminator()->getOperands()))
        return true;
  return false;
}

/// (C153)
static LogicalResult verifyScope(ChannelOp channel, const ChannelSharing &sharing) {
  if (channel.isCluster() == sharing.isShared())
    return success();
  if (channel.isCluster())
    return withNote(channel.emitOpError()
                        << "scope must be cta, but got cluster: no load multicasts into the "
                           "channel, and no pair is at its ends",
                    "leave 'scope' out");
  InFlightDiagnostic diag = channel.emitOpError() << "scope must be cluster, but got cta";
  diag.attachNote() << (sharing.pairFills || sharing.pairUses
                            ? "the tensor core of a pair is at one of its ends"
                            : "loads that signal it are sent to several CTAs");
  return diag;
}

/// (C132) The full barrier of what a pair uses is the leader's, where nobody else waits.
static LogicalResult verifySingle(ChannelOp channel, const ChannelSharing &sharing) {
  if (!sharing.pairUses || channel.getConsumers().size() == 1 || channel.isCopiedAhead())
    return success();
  return withNote(channel.emitOpError()
                      << "channel that the tensor core of a pair uses must have one "
                         "consumer, but got "
                      << channel.getConsumers().size(),
                  "let one role consume it, and make another channel for the second");
}

/// (C154) Bulk copies signal a barrier of their own CTA.
static LogicalResult verifySignals(ChannelOp channel, const ChannelSharing &sharing) {
  if (!sharing.pairUses || channel.getProducer() != Engine::Tma)
    return success();
  for (Operation *user : channel->getUsers()) {
    auto filler = dyn_cast<StageFillerOpInterface>(user);
    if (!filler || filler.canSignalLeader())
      continue;
    InFlightDiagnostic diag = filler->emitOpError()
                              << "must signal the leader of the pair that uses the stage, but a "
                                 "bulk copy signals its own CTA";
    diag.attachNote() << "load the scales with pipe.load through a tensor map";
    return diag;
  }
  return success();
}

/// (C152) All CTAs that load a tile together load parts of the same one.
static LogicalResult verifyMulticasts(ChannelOp channel, const ChannelSharing &sharing) {
  for (Operation *user : channel->getUsers()) {
    auto filler = dyn_cast<StageFillerOpInterface>(user);
    std::optional<Direction> direction = filler ? filler.getMulticastDirection() : std::nullopt;
    if (!direction)
      continue;
    bool ofPairs = direction == Direction::Pairs;
    PlaceFinder finder(sharing.cluster, *direction,
                       ofPairs ? PlaceFinder::Part::OfPair : PlaceFinder::Part::All);
    for (Value operand : user->getOperands()) {
      if (!operand.getType().isInteger(32) ||
          operand == cast<ChannelOpInterface>(user).getIteration())
        continue;
      if (!finder.dependsOnPlace(operand))
        continue;
      InFlightDiagnostic diag = user->emitOpError()
                                << "coordinates of a tile that " << spellBlocksAlong(*direction)
                                << " load together must not depend on the place of a "
                                << (ofPairs ? "pair" : "CTA");
      diag.attachNote(operand.getLoc()) << "this operand does";
      return diag;
    }
  }
  return success();
}

/// (C449) Threads arrive at a number of CTAs that the code says.
static LogicalResult verifyFallback(ChannelOp channel, const ChannelSharing &sharing) {
  if (!fallbackOf(channel) || sharing.pairUses || !sharing.isMulticast())
    return success();
  return withNote(channel.emitOpError()
                      << "channel that loads with multicast fill must feed the tensor core "
                         "of a pair in a kernel whose clusters have two sizes",
                  "leave 'multicast' out, or the attribute of the second size");
}

/// (C591) The stage of a pair serves both of its CTAs.
static LogicalResult verifyPairs(ChannelOp channel, const ChannelSharing &sharing) {
  if (!sharing.multicastPairs || sharing.pairUses)
    return success();
  return withNote(channel.emitOpError()
                      << "channel that loads with 'multicast pairs' fill must feed the "
                         "tensor core of a pair",
                  "write 'multicast m', which reaches the CTAs of all pairs");
}

/// (C155) Checks that the CTAs pass as many stages. Without multicast, only the CTAs of a pair
/// must.
static LogicalResult verifyControl(ChannelOp channel, const ChannelEnds &ends,
                                   const ChannelSharing &sharing) {
  PlaceFinder finder(sharing.cluster, {Direction::M, Direction::N},
                     sharing.isMulticast() ? PlaceFinder::Part::All : PlaceFinder::Part::InPair);
  SmallVector<ArrayRef<Operation *>> all = {ends.producerTakes};
  for (const ChannelEnds::Consumer &consumer : ends.consumers)
    all.push_back(consumer.takes);
  for (ArrayRef<Operation *> takes : all)
    for (Operation *take : takes)
      for (Operation *around = take->getParentOp(); !isa<RoleRegionOp>(around);
           around = around->getParentOp()) {
        ValueRange control = around->getOperands();
        if (auto loop = dyn_cast<scf::ForOp>(around))
          control = control.take_front(loop.getNumControlOperands());
        if (!llvm::any_of(control, [&](Value v) { return finder.dependsOnPlace(v); }))
          continue;
        InFlightDiagnostic diag = around->emitOpError()
                                  << "must run alike in all CTAs of the cluster, which share a "
                                     "channel, but depends on the place of its CTA";
        diag.attachNote(channel.getLoc()) << "the channel is here";
        return diag;
      }
  return success();
}

LogicalResult fp4::pipe::verifySharing(ChannelOp channel, const ChannelEnds &ends, bool pairs) {
  ChannelSharing sharing = sharingOf(channel, pairs);
  if (failed(verifyScope(channel, sharing)))
    return failure();
  if (!sharing.isShared())
    return success();
  if (failed(verifySingle(channel, sharing)) || failed(verifySignals(channel, sharing)) ||
      failed(verifyPairs(channel, sharing)) || failed(verifyFallback(channel, sharing)) ||
      failed(verifyControl(channel, ends, sharing)))
    return failure();
  return verifyMulticasts(channel, sharing);
}
