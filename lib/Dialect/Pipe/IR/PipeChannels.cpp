//===- PipeChannels.cpp - Roles, channels and the ops on channels ---------===//

#include "VerifyIteration.h"

#include "ScaledTypes.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Cluster.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/Dialect/Pipe/IR/PipeMma.h"
#include "fp4/Dialect/Pipe/IR/Rings.h"
#include "fp4/Dialect/Pipe/IR/Scheduled.h"
#include "fp4/Dialect/Pipe/IR/Turns.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Parses and prints `tma`, `tensor` or `threads(128)`; one arrival is not printed.
static ParseResult parseCompletion(OpAsmParser &parser, EngineAttr &engine, IntegerAttr &arrivals) {
  StringRef word;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  std::optional<Engine> parsed = symbolizeEngine(word);
  if (!parsed)
    return withNote(parser.emitError(loc)
                        << "engine must be tma, tensor, threads or bulk_store, but got " << word,
                    "TMA copies complete by bytes, tensor by commits of the tensor core, "
                    "threads(N) by N arrivals, and bulk_store by what its thread has waited for");
  engine = EngineAttr::get(parser.getContext(), *parsed);
  int32_t count = 1;
  if (succeeded(parser.parseOptionalLParen()) &&
      (parser.parseInteger(count) || parser.parseRParen()))
    return failure();
  arrivals = parser.getBuilder().getI32IntegerAttr(count);
  return success();
}

static void printCompletion(OpAsmPrinter &printer, Operation *, EngineAttr engine,
                            IntegerAttr arrivals) {
  printer << stringifyEngine(engine.getValue());
  if (arrivals.getInt() != 1)
    printer << '(' << arrivals.getInt() << ')';
}

/// Parses and prints one completion, or several in brackets.
static ParseResult parseCompletions(OpAsmParser &parser, ArrayAttr &engines,
                                    DenseI32ArrayAttr &arrivals) {
  SmallVector<Attribute> all;
  SmallVector<int32_t> counts;
  auto parseOne = [&]() -> ParseResult {
    EngineAttr engine;
    IntegerAttr count;
    if (parseCompletion(parser, engine, count))
      return failure();
    all.push_back(engine);
    counts.push_back(count.getInt());
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::OptionalSquare, parseOne) ||
      (all.empty() && parseOne()))
    return failure();
  engines = parser.getBuilder().getArrayAttr(all);
  arrivals = parser.getBuilder().getDenseI32ArrayAttr(counts);
  return success();
}

static void printCompletions(OpAsmPrinter &printer, Operation *op, ArrayAttr engines,
                             DenseI32ArrayAttr arrivals) {
  bool several = engines.size() != 1;
  printer << (several ? "[" : "");
  llvm::interleaveComma(llvm::zip(engines, arrivals.asArrayRef()), printer, [&](auto consumer) {
    auto [engine, count] = consumer;
    printCompletion(printer, op, cast<EngineAttr>(engine),
                    IntegerAttr::get(IntegerType::get(op->getContext(), 32), count));
  });
  printer << (several ? "]" : "");
}

/// Parses and prints `mma warps 4 to 5 drives [tensor, scale_copy]`.
static ParseResult parseRole(OpAsmParser &parser, RoleAttr &role) {
  FailureOr<RoleAttr> parsed = RoleAttr::parseHeader(parser);
  if (failed(parsed))
    return failure();
  role = *parsed;
  return success();
}

static void printRole(OpAsmPrinter &printer, Operation *, RoleAttr role) {
  role.printHeader(printer);
}

#define GET_OP_CLASSES
#include "fp4/Dialect/Pipe/IR/PipeOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Role regions
//===----------------------------------------------------------------------===//

/// (C119)
LogicalResult RoleRegionOp::verify() {
  if (isa<gpu::GPUFuncOp>((*this)->getParentOp()))
    return success();
  return withNote(
      emitOpError() << "must be in the body of a gpu.func, but its parent is "
                    << (*this)->getParentOp()->getName(),
      "roles are the outermost parts of a kernel; put loops and conditions into the role");
}

static bool isTmem(Value value) { return isa<TmemType>(value.getType()); }

/// (C119) The TMEM lane that a thread reaches follows from its warp.
static LogicalResult verifyTmemLanes(EngineOpInterface op, RoleRegionOp region) {
  RoleAttr role = region.getRole();
  bool accesses = op.getEngine() == Engine::Threads && (llvm::any_of(op->getOperands(), isTmem) ||
                                                        llvm::any_of(op->getResults(), isTmem));
  // Warpgroups have columns of their own.
  int64_t most = isa<DequantizeTileOp>(op) ? 16 : 8;
  int64_t warps = role.getNumWarps();
  bool hasAll = llvm::isPowerOf2_64(warps) && warps >= 4 && warps <= most;
  if (!accesses || (hasAll && role.getFirstWarp() % 4 == 0))
    return success();
  InFlightDiagnostic diag = op->emitOpError() << "must be in a role of 4 "
                                              << (most == 16 ? "to 16 " : "or 8 ")
                                              << "warps from a multiple of 4 to access tensor "
                                                 "memory, but is in warps "
                                              << role.getFirstWarp() << " to " << role.getEndWarp();
  diag.attachNote(region.getLoc()) << "the role begins here";
  return diag;
}

/// (C120)
static LogicalResult verifyDriven(EngineOpInterface op, RoleRegionOp region) {
  if (region.getRole().drives(op.getEngine()))
    return success();
  InFlightDiagnostic diag = op->emitOpError()
                            << "must be in a role that drives " << stringifyEngine(op.getEngine())
                            << ", but is in " << region.getRole().getName();
  diag.attachNote(region.getLoc()) << "the role begins here";
  return diag;
}

/// (C149) The peer of a leader skips the role.
static LogicalResult verifyLeaderRole(RoleRegionOp region) {
  RoleAttr role = region.getRole();
  if (!runsOnLeaders(role, usesPairs(region)))
    return success();
  for (Engine engine : role.getEngines())
    if (engine != Engine::Tensor && engine != Engine::ScaleCopy)
      return withNote(
          region.emitOpError()
              << "role " << role.getName()
              << " drives the tensor cores of pairs, so it must drive tensor and scale_copy only, "
                 "but it drives "
              << stringifyEngine(engine),
          "give the other engines to a role of their own, because the second CTA of a pair skips "
          "this one");
  return success();
}

int64_t pipe::stagesOfIteration(ChannelOp channel, RoleRegionOp region) {
  return llvm::count_if(channel->getUsers(), [&](Operation *user) {
    return isa<ProducerAcquireOp, ConsumerWaitOp>(user) && region->isProperAncestor(user);
  });
}

/// (C498) All warpgroups have the same MMAs, whose sums are in registers.
static LogicalResult verifyProductsInTurn(RoleRegionOp region) {
  auto isOfAll = [&](MmaOp mma) {
    Operation *parent = mma->getParentOp();
    while (isa<scf::ForOp, ForEachWorkOp>(parent))
      parent = parent->getParentOp();
    return parent == region;
  };
  WalkResult result = region.getBody().walk([&](MmaOp mma) {
    const hw::MmaAtom *atom = mma.getAtom();
    if (!atom || (atom->form == hw::MmaForm::WgmmaFloat && isOfAll(mma)))
      return WalkResult::advance();
    InFlightDiagnostic diag = mma.emitOpError() // (C498)
                              << "must multiply 16-bit floats by wgmma, and be in loops alone, "
                                 "because the warpgroups of its role have products in turn";
    diag.attachNote(region.getLoc())
        << "the role begins here; leave 'in_turn' out where warpgroups multiply by themselves";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// (C498) Each warpgroup skips the iterations of the others.
static LogicalResult verifyTurns(RoleRegionOp region) {
  Turns turns = region.getRole().getTurns();
  if (turns == Turns::Products)
    return verifyProductsInTurn(region);
  if (turns == Turns::Nothing)
    return success();
  WalkResult result = region.getBody().walk([&](ChannelOpInterface use) {
    auto loop = dyn_cast<scf::ForOp>(use->getParentOp());
    if (loop && matchPattern(loop.getStep(), m_One()))
      return WalkResult::advance();
    InFlightDiagnostic diag =
        use->emitOpError() // (C498)
        << "must be directly in a loop with step 1, because the warpgroups of "
           "its role have its stages in turn";
    diag.attachNote(region.getLoc()) << "the role begins here; leave 'in_turn' out where a role "
                                        "takes stages outside of such a loop";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// (C119) A role without engines only gives registers away.
static LogicalResult verifyIdle(RoleRegionOp region) {
  if (!region.getRole().getEngines().empty())
    return success();
  WalkResult result = region.getBody().walk([&](ChannelOpInterface use) {
    (void)withNote(use->emitOpError()
                       << "must be in a role that drives an engine, but is in " << region.getRole(),
                   "name the engine whose operations use the channel: 'drives [threads]'");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult RoleRegionOp::verifyRegions() {
  if (failed(verifyLeaderRole(*this)) || failed(verifyTurns(*this)) || failed(verifyIdle(*this)))
    return failure();
  WalkResult result = getBody().walk([&](EngineOpInterface op) {
    return failed(verifyDriven(op, *this)) || failed(verifyTmemLanes(op, *this))
               ? WalkResult::interrupt()
               : WalkResult::advance();
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
    return withNote(op.emitOpError() << "must have one place per tile, " << tiles.size()
                                     << ", but got " << places.size(),
                    "'payload' of a channel has a number for each tile");
  for (auto [i, tile] : llvm::enumerate(tiles))
    if (places[i] < 0 || places[i] % placeAlignment(tile))
      return withNote(op.emitOpError() << "place of tile " << i << " must be a multiple of "
                                       << placeAlignment(tile) << ", but got " << places[i],
                      "pipe-pipeline chooses places that are aligned");
  int64_t barriers = *op.getBarriers();
  if (barriers < 0 || barriers % 8)
    return withNote(op.emitOpError()
                        << "barriers must be at a multiple of 8 bytes, but got " << barriers,
                    "leave 8 bytes at a multiple of 8 for each of the two barriers of a stage");
  return success();
}

int64_t ChannelOp::getStageStride(size_t index) {
  if (getStride())
    return (*getStride())[index];
  Type tile = getType().getPayload()[index];
  auto shared = dyn_cast<SharedType>(tile);
  return shared ? int64_t(llvm::alignTo(shared.getBytes(), shared.getAlignment()))
                : cast<TmemType>(tile).getTmemColumns();
}

bool ChannelOp::overlaps() {
  auto tile = dyn_cast<TmemType>(getType().getPayload().front());
  return getStride() && tile && getStageStride(0) < tile.getTmemColumns();
}

std::pair<int64_t, int64_t> ChannelOp::getOwnColumns() {
  int64_t columns = cast<TmemType>(getType().getPayload().front()).getTmemColumns();
  return {columns - getStageStride(0), getStageStride(0)};
}

/// (C159)
static LogicalResult verifyStrides(ChannelOp op) {
  ArrayRef<Type> tiles = op.getType().getPayload();
  if (!op.getDepth() || op.getStride()->size() != tiles.size())
    return withNote(op.emitOpError()
                        << "stride must have one number per tile and come with a depth",
                    "write the distance of two stages for each tile, beside 'depth'");
  for (auto [i, tile] : llvm::enumerate(tiles)) {
    int64_t stride = op.getStageStride(i), alignment = placeAlignment(tile);
    if (stride < 1 || stride % alignment)
      return withNote(op.emitOpError()
                          << "stride of tile " << i << " must be a positive multiple of "
                          << alignment << ", but got " << stride,
                      "a stage begins where the layout of the tile may: round the number up");
    auto shared = dyn_cast<SharedType>(tile);
    int64_t size = shared ? shared.getBytes() : cast<TmemType>(tile).getTmemColumns();
    bool mayOverlap = !shared && tiles.size() == 1 && *op.getDepth() == 2 && 2 * stride > size;
    if (stride >= size || mayOverlap)
      continue;
    InFlightDiagnostic diag = op.emitOpError()
                              << "stride of tile " << i << " must be at least its size, " << size
                              << ", but got " << stride;
    diag.attachNote() << "two stages of one accumulator may overlap in less than half of it";
    return diag;
  }
  return success();
}

bool ChannelOp::isCopiedAhead() {
  return llvm::is_contained(getConsumerEngines(), Engine::ScaleCopy);
}

SmallVector<Engine> ChannelOp::getConsumerEngines() {
  return llvm::map_to_vector(getConsumers(),
                             [](Attribute engine) { return cast<EngineAttr>(engine).getValue(); });
}

bool ChannelOp::feedsTensor() { return llvm::is_contained(getConsumerEngines(), Engine::Tensor); }

int32_t ChannelOp::getNumConsumerArrivals() {
  int32_t sum = 0;
  for (int32_t arrivals : getConsumerArrivals())
    sum += arrivals;
  return sum;
}

std::optional<size_t> ChannelOp::getConsumerNumber(RoleAttr role) {
  if (isCopiedAhead() && role.drives(Engine::ScaleCopy))
    return getConsumerEngines().front() == Engine::ScaleCopy ? 0 : 1;
  auto names = (*this)->getAttrOfType<ArrayAttr>(kConsumerRolesAttr);
  for (auto [i, engine] : llvm::enumerate(getConsumerEngines())) {
    Engine completion =
        role.getCompletion(role.drives(engine) ? engine : role.getEngines().front());
    bool hasName = !names || cast<StringAttr>(names[i]).getValue() == role.getName();
    if (hasName && engine == completion && getConsumerArrivals()[i] == role.getArrivals(completion))
      return i;
  }
  return std::nullopt;
}

int64_t ChannelOp::getReleaseDelay() {
  bool stores = llvm::is_contained(getConsumerEngines(), Engine::BulkStore);
  return stores && getDepth().value_or(1) > 1 ? 1 : 0;
}

/// (C163) Copies to global memory have a channel of their own, which threads fill.
static LogicalResult verifyStored(ChannelOp op) {
  if (op.getConsumers().size() == 1 && op.getNumConsumerArrivals() == 1 &&
      op.getProducer() == Engine::Threads && op.getType().isShared())
    return success();
  return withNote(op.emitOpError()
                      << "bulk_store must be the one consumer, with one arrival, of a shared "
                         "memory payload that threads fill, but got "
                      << op.getConsumers().size() << " consumers with "
                      << op.getNumConsumerArrivals() << " arrivals and producer "
                      << stringifyEngine(op.getProducer()),
                  "give the payload to a channel of its own that threads produce, and its consumer "
                  "one arrival");
}

/// (C122) Each consumer is told apart.
static LogicalResult verifyConsumers(ChannelOp op, ArrayRef<Engine> engines,
                                     ArrayRef<int32_t> arrivals) {
  if (llvm::is_contained(engines, Engine::Tma)) // (C122)
    return withNote(op.emitOpError()
                        << "consumer must be tensor, threads or bulk_store, but got tma",
                    "TMA only fills stages: bulk_store copies out of them");
  auto names = op->getAttrOfType<ArrayAttr>(kConsumerRolesAttr);
  for (size_t i = 0; i < engines.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (engines[i] == engines[j] && arrivals[i] == arrivals[j] &&
          (!names || names[i] == names[j])) // (C122)
        return withNote(op.emitOpError()
                            << "consumers must differ in their engine or arrivals, but two are "
                            << stringifyEngine(engines[i]) << " with " << arrivals[i],
                        "list an engine with the same arrivals once: one operation releases the "
                        "stage for the whole role");
  return success();
}

/// (C620) A warp that copies scales runs ahead of the one that multiplies them.
static LogicalResult verifyCopiedAhead(ChannelOp op) {
  if (op.getConsumers().size() == 2 && op.feedsTensor() && op.getProducer() == Engine::Tma &&
      op.getType().isShared() && !op.getWithoutEmpty())
    return success();
  return withNote(op.emitOpError("with a consumer scale_copy must go from tma to tensor and "
                                 "scale_copy, and have empty barriers"),
                  "scale_copy completes with tensor where one warp multiplies and copies");
}

/// (C122) The engines of the sides, and what each can do.
static LogicalResult verifySides(ChannelOp op) {
  SmallVector<Engine> engines = op.getConsumerEngines();
  if (engines.empty() || engines.size() != op.getConsumerArrivals().size())
    return withNote(
        op.emitOpError() << "consumers must have one number of arrivals each, but got "
                         << engines.size() << " engines and " << op.getConsumerArrivals().size()
                         << " numbers",
        "write an engine with its number of arrivals for each consumer, such as threads(128)");
  SmallVector<int32_t> arrivals(op.getConsumerArrivals());
  if (failed(verifyConsumers(op, engines, arrivals)))
    return failure();
  if (llvm::is_contained(engines, Engine::BulkStore)) // (C163)
    return verifyStored(op);
  if (op.isCopiedAhead()) { // (C620)
    if (failed(verifyCopiedAhead(op)))
      return failure();
    llvm::replace(engines, Engine::ScaleCopy, Engine::Tensor);
  }
  engines.push_back(op.getProducer());
  arrivals.push_back(op.getProducerArrivals());
  for (Engine engine : engines) // (C122)
    if (engine != Engine::Tma && engine != Engine::Tensor && engine != Engine::Threads)
      return withNote(op.emitOpError()
                          << "sides must be completed by tma, tensor or threads, but got "
                          << stringifyEngine(engine),
                      "scale_copy completes with tensor, and work_queue and convert with threads");
  for (auto [engine, count] : llvm::zip_equal(engines, arrivals))
    if (count < 1 || (engine != Engine::Threads && count != 1))
      return withNote(op.emitOpError()
                          << "engine " << stringifyEngine(engine) << " must have "
                          << (engine == Engine::Threads ? "at least one arrival" : "one arrival")
                          << ", but got " << count,
                      "the elected thread of tma and tensor arrives alone; threads(N) takes the "
                      "number that arrives");
  return success();
}

LogicalResult ChannelOp::verify() {
  if (failed(verifySides(*this)))
    return failure();
  if (getStride() && failed(verifyStrides(*this)))
    return failure();
  bool depth = getDepth().has_value(), places = getPayload().has_value();
  if (depth != places || depth != getBarriers().has_value()) // (C121)
    return withNote(emitOpError() << "depth, payload and barriers must come together",
                    "write all three, or none before pipe-pipeline");
  if (depth && int32_t(*getDepth()) < 1)
    return withNote(emitOpError() << "depth must be at least 1, but got " << int32_t(*getDepth()),
                    "a channel with one stage has depth 1");
  if (depth && failed(verifyPlaces(*this)))
    return failure();
  bool shared = getType().isShared();
  if (shared && getProducer() == Engine::Tensor) // (C122)
    return withNote(
        emitOpError() << "a shared memory payload must be produced by tma or threads, but got "
                         "tensor",
        "tensor cores write to tensor memory: make the payload !pipe.tmem");
  if (!shared && getProducer() == Engine::Tma) // (C122)
    return withNote(
        emitOpError() << "a tensor memory payload must be produced by tensor or threads, but got "
                         "tma",
        "TMA writes to shared memory: make the payload !pipe.shared, and copy it with "
        "pipe.copy_scales");
  return success();
}

/// Called by the parser, before the types of operands are verified.
static LogicalResult inferSlots(std::optional<Location> location, Value channel,
                                SmallVectorImpl<Type> &inferred) {
  auto type = dyn_cast<ChannelType>(channel.getType());
  if (!type && location)
    return withNote(emitError(*location)
                        << "channel must be of type !pipe.channel, but got " << channel.getType(),
                    "take the result of pipe.channel");
  if (!type)
    return failure();
  llvm::append_range(inferred, type.getPayload());
  return success();
}

LogicalResult ProducerAcquireOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                                  Adaptor adaptor, SmallVectorImpl<Type> &types) {
  return inferSlots(location, adaptor.getChannel(), types);
}

LogicalResult ConsumerWaitOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                               Adaptor adaptor, SmallVectorImpl<Type> &types) {
  return inferSlots(location, adaptor.getChannel(), types);
}

LogicalResult fp4::pipe::verifyIteration(Operation *op, Value channel, Value iteration) {
  auto def = channel.getDefiningOp<ChannelOp>();
  if (!def)
    return withNote(op->emitOpError()
                        << "channel must be the result of a pipe.channel in this kernel",
                    "move pipe.channel into the kernel that uses it; channels are no arguments");
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
/// (C621) The release has nothing left to arrive for.
static bool followsPartialRelease(ConsumerReleaseOp release) {
  for (Operation *op = release->getPrevNode(); op; op = op->getPrevNode())
    if (auto use = dyn_cast<ChannelOpInterface>(op); use && use.getChannel() == release.getChannel())
      return use.getChannelUse() == ChannelUse::PartialRelease;
  return false;
}

/// (C157) The release of the columns that two stages have in common.
static LogicalResult verifyPartial(ConsumerReleaseOp release) {
  if (release.getBy() != Arrival::Threads || release.getUnfenced())
    return withNote(release.emitOpError("of a part must be by threads and fenced"), // (C157)
                    "leave 'by' and 'unfenced' out: every thread has read columns of its own");
  auto channel = release.getChannel().getDefiningOp<ChannelOp>();
  if (channel.overlaps())
    return success();
  InFlightDiagnostic diag = release.emitOpError() << "stages of the channel must overlap"; // (C157)
  diag.attachNote(channel.getLoc()) << "stages overlap where the stride is smaller than the tile";
  return diag;
}

LogicalResult ConsumerReleaseOp::verify() {
  if (failed(verifyIteration(*this, getChannel(), getIteration())))
    return failure();
  if (getPartial())
    return verifyPartial(*this);
  if (getBy() == Arrival::AlignedWarps && !areReadBy(*this, isSharedMma)) // (C632)
    return withNote(emitOpError("by aligned_warps must be of a stage that MMAs of warpgroups alone "
                                "read from shared memory"),
                    "write 'by warps', so that a warp arrives when all of its threads have read");
  if (getBy() != Arrival::Nobody || followsPartialRelease(*this))
    return success();
  return withNote(emitOpError("by nobody must follow a partial release of its stage"), // (C621)
                  "write 'by threads', so that the producer learns that the stage is empty");
}

LogicalResult AwaitReleaseOp::verify() {
  if (failed(verifyIteration(*this, getChannel(), getIteration())))
    return failure();
  int64_t depth = getChannel().getDefiningOp<ChannelOp>().getDepth().value_or(0);
  if (getDistance() < 1 || int64_t(getDistance()) >= depth) // (C138)
    return withNote(emitOpError() << "distance must be from 1 to below the channel's depth, "
                                  << depth << ", but got " << int64_t(getDistance()),
                    "a channel of depth 1 has no stage to wait for; leave the operation out there");
  auto channel = getChannel().getDefiningOp<ChannelOp>();
  if (!getFolded() || (getDistance() == 2 && channel.getProducer() == Engine::Tma &&
                       channel.getConsumerEngines() == ArrayRef(Engine::Tensor)))
    return success();
  return withNote(emitOpError("that is folded must have distance 2 and a channel from tma to tensor, "
                              "but has distance ") // (C622)
                      << getDistance() << " and a channel from "
                      << stringifyEngine(channel.getProducer()),
                  "leave 'folded' out: the operation then waits by itself");
}

LogicalResult ExpectTxOp::verify() {
  if (failed(verifyIteration(*this, getChannel(), getIteration())))
    return failure();
  auto def = getChannel().getDefiningOp<ChannelOp>();
  if (def.getProducer() != Engine::Tma) // (C124)
    return withNote(emitOpError() << "channel's producer must be tma, but got "
                                  << stringifyEngine(def.getProducer()),
                    "only bytes that TMA copies are expected: leave the operation out");
  return success();
}
