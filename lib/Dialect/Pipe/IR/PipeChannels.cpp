//===- PipeChannels.cpp - Roles, channels and the ops on channels ---------===//

#include "VerifyIteration.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace fp4::pipe;

/// Parses and prints `tma`, `mma` or `threads(128)`; one arrival is not printed.
static ParseResult parseAgent(OpAsmParser &parser, AgentAttr &agent, IntegerAttr &arrivals) {
  StringRef word;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  std::optional<Agent> parsed = symbolizeAgent(word);
  if (!parsed)
    return parser.emitError(loc) << "agent must be tma, mma or threads, but got " << word;
  agent = AgentAttr::get(parser.getContext(), *parsed);
  int32_t count = 1;
  if (succeeded(parser.parseOptionalLParen()) &&
      (parser.parseInteger(count) || parser.parseRParen()))
    return failure();
  arrivals = parser.getBuilder().getI32IntegerAttr(count);
  return success();
}

static void printAgent(OpAsmPrinter &printer, Operation *, AgentAttr agent, IntegerAttr arrivals) {
  printer << stringifyAgent(agent.getValue());
  if (arrivals.getInt() != 1)
    printer << '(' << arrivals.getInt() << ')';
}

#define GET_OP_CLASSES
#include "fp4/Dialect/Pipe/IR/PipeOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Role regions
//===----------------------------------------------------------------------===//

LogicalResult RoleRegionOp::verify() {
  if (!isa<gpu::GPUFuncOp>((*this)->getParentOp())) // (C119)
    return emitOpError() << "must be in the body of a gpu.func, but its parent is "
                         << (*this)->getParentOp()->getName();
  int32_t first = getFirstWarp(), warps = int32_t(getEndWarp()) - first;
  bool epilogue = getRole() == Role::Epilogue;
  if (warps != (epilogue ? 4 : 1))
    return emitOpError() << "role " << stringifyRole(getRole()) << " must have "
                         << (epilogue ? "4 warps" : "1 warp") << ", but got " << warps;
  if (epilogue && first % 4) // (C119)
    return emitOpError() << "first warp of the epilogue must be a multiple of 4, but got " << first;
  return success();
}

LogicalResult RoleRegionOp::verifyRegions() {
  WalkResult result = getBody().walk([&](RoleOpInterface op) { // (C120)
    if (op.getRole() == getRole())
      return WalkResult::advance();
    InFlightDiagnostic diag = op->emitOpError() << "must be in a " << stringifyRole(op.getRole())
                                                << " role, but is in " << stringifyRole(getRole());
    diag.attachNote(getLoc()) << "the role begins here";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

/// Alignment of a place: bytes in shared memory; columns in tensor memory, where an
/// accumulator or scale tile may start at any multiple of 4.
static int64_t placeAlignment(Type tile) {
  auto shared = dyn_cast<SharedType>(tile);
  return shared ? shared.getAlignment() : 4;
}

/// (C121)
static LogicalResult verifyPlaces(ChannelOp op) {
  ArrayRef<Type> tiles = op.getType().getPayload();
  ArrayRef<int64_t> places = *op.getPayload();
  if (places.size() != tiles.size())
    return op.emitOpError() << "must have one place per tile, " << tiles.size() << ", but got "
                            << places.size();
  for (auto [i, tile] : llvm::enumerate(tiles))
    if (places[i] < 0 || places[i] % placeAlignment(tile))
      return op.emitOpError() << "place of tile " << i << " must be a multiple of "
                              << placeAlignment(tile) << ", but got " << places[i];
  int64_t barriers = *op.getBarriers();
  if (barriers < 0 || barriers % 8)
    return op.emitOpError() << "barriers must be at a multiple of 8 bytes, but got " << barriers;
  return success();
}

LogicalResult ChannelOp::verify() {
  bool depth = getDepth().has_value(), places = getPayload().has_value();
  if (depth != places || depth != getBarriers().has_value()) // (C121)
    return emitOpError() << "depth, payload and barriers must come together";
  if (depth && int32_t(*getDepth()) < 1)
    return emitOpError() << "depth must be at least 1, but got " << int32_t(*getDepth());
  if (depth && failed(verifyPlaces(*this)))
    return failure();
  bool shared = getType().isShared();
  if (shared && getProducer() == Agent::Mma) // (C122)
    return emitOpError() << "a shared memory payload must be produced by tma or threads, but got "
                            "mma";
  if (!shared && getProducer() == Agent::Tma) // (C122)
    return emitOpError() << "a tensor memory payload must be produced by mma or threads, but got "
                            "tma";
  if (getConsumer() == Agent::Tma) // (C122)
    return emitOpError() << "consumer must be mma or threads, but got tma";
  for (auto [agent, arrivals] : {std::pair(getProducer(), int32_t(getProducerArrivals())),
                                 std::pair(getConsumer(), int32_t(getConsumerArrivals()))})
    if (arrivals < 1 || (agent != Agent::Threads && arrivals != 1))
      return emitOpError() << "agent " << stringifyAgent(agent) << " must have "
                           << (agent == Agent::Threads ? "at least one arrival" : "one arrival")
                           << ", but got " << arrivals;
  return success();
}

template <typename Adaptor>
static LogicalResult inferSlots(Adaptor adaptor, SmallVectorImpl<Type> &inferred) {
  llvm::append_range(inferred, cast<ChannelType>(adaptor.getChannel().getType()).getPayload());
  return success();
}

LogicalResult ProducerAcquireOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                                  Adaptor adaptor, SmallVectorImpl<Type> &types) {
  return inferSlots(adaptor, types);
}

LogicalResult ConsumerWaitOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                               Adaptor adaptor, SmallVectorImpl<Type> &types) {
  return inferSlots(adaptor, types);
}

LogicalResult fp4::pipe::verifyIteration(Operation *op, Value channel, Value iteration) {
  auto def = channel.getDefiningOp<ChannelOp>();
  if (!def)
    return op->emitOpError() << "channel must be the result of a pipe.channel in this kernel";
  // (C123)
  if (def.isPipelined() && !iteration) {
    InFlightDiagnostic diag = op->emitOpError() << "must give the iteration of a channel with a "
                                                   "depth";
    diag.attachNote(def.getLoc()) << "the channel has depth " << *def.getDepth();
    return diag;
  }
  if (!def.isPipelined() && iteration) {
    InFlightDiagnostic diag = op->emitOpError() << "must not give an iteration before the channel "
                                                   "has a depth";
    diag.attachNote(def.getLoc()) << "run pipe-pipeline, or give this channel a depth";
    return diag;
  }
  return success();
}

LogicalResult ProducerAcquireOp::verify() {
  return verifyIteration(*this, getChannel(), getIteration());
}
LogicalResult ProducerCommitOp::verify() {
  return verifyIteration(*this, getChannel(), getIteration());
}
LogicalResult ConsumerWaitOp::verify() {
  return verifyIteration(*this, getChannel(), getIteration());
}
LogicalResult ConsumerReleaseOp::verify() {
  return verifyIteration(*this, getChannel(), getIteration());
}

LogicalResult AwaitReleaseOp::verify() {
  if (failed(verifyIteration(*this, getChannel(), getIteration())))
    return failure();
  int64_t depth = getChannel().getDefiningOp<ChannelOp>().getDepth().value_or(0);
  if (getDistance() < 1 || int64_t(getDistance()) >= depth) // (C138)
    return emitOpError() << "distance must be from 1 to below the channel's depth, " << depth
                         << ", but got " << int64_t(getDistance());
  return success();
}

LogicalResult ExpectTxOp::verify() {
  if (failed(verifyIteration(*this, getChannel(), getIteration())))
    return failure();
  auto def = getChannel().getDefiningOp<ChannelOp>();
  if (def.getProducer() != Agent::Tma) // (C124)
    return emitOpError() << "channel's producer must be tma, but got "
                         << stringifyAgent(def.getProducer());
  return success();
}
