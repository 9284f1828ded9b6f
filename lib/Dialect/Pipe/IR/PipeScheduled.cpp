//===- PipeScheduled.cpp - Ops of the scheduled form ----------------------===//

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"
#include "fp4/Dialect/Pipe/IR/PipeMma.h"
#include "fp4/Dialect/Pipe/IR/PipeWarps.h"
#include "fp4/Dialect/Pipe/IR/Scheduled.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

LogicalResult CopyScalesOp::verify() { // (C113)
  SharedType source = getSource().getType();
  TmemType tile = getType();
  if (!source.isScales() || source.getShape() != tile.getShape() ||
      source.getElementType() != tile.getElementType() || source.getLayout() != tile.getLayout())
    return withNote(emitOpError() << "tensor memory tile must be the scale tile of its source "
                                  << source << ", but got " << tile,
                    "write the shape, element type and layout of the source");
  int64_t sets = getSets().value_or(1);
  if (getSet() && (int64_t(*getSet()) < 0 || int64_t(*getSet()) >= sets))
    return withNote(emitOpError() << "set must be one of " << sets << ", counted from 0, but got "
                                  << *getSet(),
                    "leave 'set' out: it follows from the iteration");
  if (getCopied() && (!getTmemColumn() || getBlocks()))
    return withNote(emitOpError() << "copied must have a first column and no blocks, but got "
                                  << (getBlocks() ? "blocks" : "no column"),
                    "write 'at COLUMN', that of the warp that copies");
  if (getSets() && (sets < 1 || !getTmemColumn()))
    return withNote(emitOpError() << "sets must be positive and have a first column, but got "
                                  << *getSets() << (getTmemColumn() ? "" : " without 'at'"),
                    "write 'at COLUMN sets N' with an N of at least 1");
  return success();
}

LogicalResult StageOfOp::verify() { // (C623)
  if (int64_t(getDepth()) >= 1 && int64_t(getAhead()) >= 0 && getAhead() < getDepth())
    return success();
  return withNote(emitOpError() << "depth must be positive and more than 'ahead', but got depth "
                                << int64_t(getDepth()) << " and ahead " << int64_t(getAhead()),
                  "write the depth of the channel whose operation takes the iteration");
}

//===----------------------------------------------------------------------===//
// Scheduled.h
//===----------------------------------------------------------------------===//

StageAndPhase fp4::pipe::nextStage(OpBuilder &b, Location loc, const StageAndPhase &at,
                                   int64_t depth) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, loc, value, 32);
  };
  Value next = arith::AddIOp::create(b, loc, at.stage, constant(1));
  Value wraps = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, next, constant(depth));
  Value stage = arith::SelectOp::create(b, loc, wraps, constant(0), next);
  Value turn = arith::ExtUIOp::create(b, loc, b.getI32Type(), wraps);
  return {stage, arith::XOrIOp::create(b, loc, at.phase, turn), at.opposite};
}

/// Returns true when all lanes of a warp may execute `op`.
static bool isOfAllLanes(Operation *op) {
  if (isa<ProducerAcquireOp, ConsumerWaitOp, AwaitReleaseOp, ExpectTxOp, LoadOp, CopyScalesOp,
          ProducerCommitOp, ConsumerReleaseOp, RoleRegionOp>(op))
    return true;
  if (auto mma = dyn_cast<MmaOp>(op))
    return isa<TmemType>(mma.getAccumulator().getType());
  if (isa<PipeDialect>(op->getDialect()))
    return isa<LoadEntryOp, OpaqueOp, StageOfOp>(op);
  if (auto effects = dyn_cast<MemoryEffectOpInterface>(op))
    return !effects.hasEffect<MemoryEffects::Write>();
  return op->hasTrait<OpTrait::HasRecursiveMemoryEffects>();
}

Operation *fp4::pipe::findOfOneThread(RoleRegionOp region) {
  Operation *found = nullptr;
  region->getParentOfType<gpu::GPUFuncOp>().walk([&](Operation *op) {
    auto role = op->getParentOfType<RoleRegionOp>();
    bool asks =
        isa<gpu::ThreadIdOp, gpu::LaneIdOp, NVVM::ThreadIdXOp, NVVM::LaneIdOp, NVVM::ElectSyncOp>(
            op);
    bool isOfRole = role == region, isInFront = !role;
    if ((isOfRole && !isOfAllLanes(op)) || (asks && (isOfRole || isInFront)))
      found = op;
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

Engine fp4::pipe::consumerEngine(ChannelOp channel, RoleAttr role) {
  std::optional<size_t> number = role ? channel.getConsumerNumber(role) : std::nullopt;
  Engine engine = channel.getConsumerEngines()[number.value_or(0)];
  return engine == Engine::ScaleCopy ? Engine::Tensor : engine;
}

bool fp4::pipe::ordersTensorCore(Operation *op, RoleAttr role) {
  if (auto await = dyn_cast<AwaitReleaseOp>(op))
    return !await.getFolded();
  if (!isa<ProducerAcquireOp, ConsumerWaitOp>(op))
    return false;
  auto channel = op->getOperand(0).getDefiningOp<ChannelOp>();
  bool produces = isa<ProducerAcquireOp>(op);
  if (!channel || (produces && channel.getWithoutEmpty()))
    return false;
  Engine engine = produces ? channel.getProducer() : consumerEngine(channel, role);
  return engine == Engine::Tensor || !channel.getType().isShared();
}

bool fp4::pipe::usesTensorCore(Operation *op) {
  auto engineOp = dyn_cast<EngineOpInterface>(op);
  auto tile = dyn_cast<TmemTileOpInterface>(op);
  if (!engineOp || (tile && !tile.fillsTile()))
    return false;
  Engine engine = engineOp.getEngine();
  bool tmem = llvm::any_of(op->getOperandTypes(), llvm::IsaPred<TmemType>);
  return engine == Engine::Tensor || engine == Engine::ScaleCopy ||
         (engine == Engine::Threads && tmem);
}

bool fp4::pipe::isThereBy(Operation *op, Value value) {
  Operation *origin = value.getDefiningOp();
  return !origin || origin->getBlock() != op->getBlock() || origin->isBeforeInBlock(op);
}

bool fp4::pipe::isSharedMma(Operation *op) { return bool(mmaOfForm(op, hw::MmaForm::WgmmaShared)); }

bool fp4::pipe::areReadBy(ConsumerReleaseOp release,
                          llvm::function_ref<bool(Operation *)> isReader) {
  bool all = true;
  if (auto region = release->getParentOfType<RoleRegionOp>())
    region.walk([&](ConsumerWaitOp wait) {
      if (wait.getChannel() == release.getChannel())
        all &= llvm::all_of(wait->getUsers(), isReader);
    });
  return all;
}

bool fp4::pipe::fencesItsReads(Operation *op) {
  if (auto dequantize = dyn_cast<DequantizeTileOp>(op))
    return dequantize.fillsRegisters();
  auto mma = dyn_cast<MmaOp>(op);
  return mma && isa<FragmentType>(mma.getAccumulator().getType());
}
