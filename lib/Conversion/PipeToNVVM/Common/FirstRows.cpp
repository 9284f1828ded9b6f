//===- FirstRows.cpp - Weights on their way before a kernel may read them -===//
//
// With PDL, a GEMM of prepacked weights begins while the kernel before it ends, and reads nothing
// until that kernel has ended (PdlLaunchesPass.cpp). CTAs start as SMs become free, and memory has
// little to do meanwhile. So one thread of each CTA prefetches the bytes of the first stages into
// the L2 cache alone. A prefetch is no read, and data that is written meanwhile is written to L2.
// PdlLaunchesPass.cpp removes the prefetch from kernels that turn out not to wait.
//
// The place of these rows follows from the loops around the load: its row, with the first value of
// each loop.
//
//===----------------------------------------------------------------------===//
#include "Common/Lowering.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp4;

/// Stages that are prefetched. With all stages, or twice as many, small-M GEMMs take longer than
/// with none (notebook/weight-limits.md).
static constexpr int64_t kStages = 2;

namespace {

/// Computes values of loops' first iterations at the insertion point of `b`.
class FirstValues {
public:
  explicit FirstValues(OpBuilder &b) : b(b) {}

  /// Returns null where the value takes more than arithmetic. The entries of a table are read
  /// behind the wait for the kernel before; a prefetch that needs them would only keep all threads
  /// waiting.
  Value of(Value value) {
    if (Value known = values.lookupOrNull(value))
      return known;
    Value first = compute(value);
    if (first)
      values.map(value, first);
    return first;
  }

private:
  Value compute(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return ofArgument(argument);
    Operation *op = value.getDefiningOp();
    if (op->getBlock() == b.getInsertionBlock() && op->isBeforeInBlock(&*b.getInsertionPoint()))
      return value;
    if (op->getNumRegions() || !isMemoryEffectFree(op) ||
        isa<arith::DivSIOp, arith::RemSIOp, pipe::LoadEntryOp>(op))
      return {};
    for (Value operand : op->getOperands())
      if (!of(operand))
        return {};
    Operation *copy = b.clone(*op, values);
    if (isa<arith::DivUIOp, arith::RemUIOp>(copy))
      divideByOneAtLeast(copy);
    return copy->getResult(cast<OpResult>(value).getResultNumber());
  }

  Value ofArgument(BlockArgument argument) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (isa<gpu::GPUFuncOp>(parent))
      return argument;
    auto loop = dyn_cast<scf::ForOp>(parent);
    if (!loop)
      return {};
    OpOperand *init = loop.getTiedLoopInit(argument);
    return of(init ? init->get() : loop.getLowerBound());
  }

  /// Makes a division safe: a loop without a first iteration may divide by zero.
  void divideByOneAtLeast(Operation *division) {
    Value divisor = division->getOperand(1);
    if (matchPattern(divisor, m_Constant()))
      return;
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPoint(division);
    Value one = arith::ConstantIntOp::create(b, division->getLoc(), divisor.getType(), 1);
    division->setOperand(1, arith::MaxUIOp::create(b, division->getLoc(), divisor, one));
  }

  OpBuilder &b;
  IRMapping values;
};

} // namespace

/// Returns true when weights are at least a third of a stage. GEMMs of 128 rows, whose activations
/// are more, gain nothing.
static bool areManyOf(pipe::LoadOp load) {
  pipe::ChannelType channel = load.getChannel().getType();
  int64_t weights = 0;
  for (Type type : channel.getPayload())
    if (auto tile = dyn_cast<pipe::SharedType>(type); tile && tile.getElementType().isInteger(8))
      weights += tile.getBytes();
  return 3 * weights >= channel.getStageSize();
}

/// The loads of weights that fill stages of `region`.
static SmallVector<pipe::LoadOp> loadsOfWeights(pipe::RoleRegionOp region) {
  SmallVector<pipe::LoadOp> loads;
  region.walk([&](pipe::LoadOp load) {
    bool isStage = load.getChannel() && load.getChannel().getDefiningOp<pipe::ChannelOp>();
    if (isStage && load.loadsRows() && load.getBufferType().getElementType().isInteger(8) &&
        areManyOf(load))
      loads.push_back(load);
  });
  return loads;
}

/// A load of weights with its row, and the rows that exist, in the first iteration of its loops.
/// Without a number of rows, all of a tile exist.
struct FirstLoad {
  pipe::LoadOp load;
  Value row, existing;
};

/// Rows of the first stages, at most those that the buffer has. A buffer of dynamic rows does not
/// tell where the row of tiles ends, so that only those of one stage are sure to exist.
static Value countFirstRows(OpBuilder &b, const FirstLoad &first) {
  pipe::LoadOp load = first.load;
  Location loc = load.getLoc();
  int64_t ofTile = load.getTileType().getShape()[0], all = load.getBufferType().getShape()[0];
  if (ShapedType::isDynamic(all))
    return first.existing ? first.existing : constantI32(b, loc, ofTile);
  auto channel = load.getChannel().getDefiningOp<pipe::ChannelOp>();
  int64_t rows = ofTile * std::min(kStages, int64_t(*channel.getDepth()));
  Value left = arith::SubIOp::create(b, loc, constantI32(b, loc, all), first.row);
  return arith::MinUIOp::create(b, loc, left, constantI32(b, loc, rows));
}

/// Prefetches the rows of the first stages.
static void prefetchRows(OpBuilder &b, const FirstLoad &first) {
  pipe::LoadOp load = first.load;
  Location loc = load.getLoc();
  int64_t pitch = load.getBufferType().getRowPitch();
  Value bytes = arith::MulIOp::create(b, loc, countFirstRows(b, first), constantI32(b, loc, pitch));
  Value base = UnrealizedConversionCastOp::create(
                   b, loc, LLVM::LLVMPointerType::get(b.getContext(), 1), load.getSource())
                   .getResult(0);
  NVVM::CpAsyncBulkPrefetchOp::create(b, loc, stridedPointer(b, loc, base, first.row, pitch), bytes,
                                      /*l2CacheHint=*/Value());
}

void fp4::prefetchFirstRows(OpBuilder &b, gpu::GPUFuncOp kernel, const KernelState &state) {
  for (auto region : kernel.getOps<pipe::RoleRegionOp>()) {
    SmallVector<FirstLoad> found;
    FirstValues values(b);
    for (pipe::LoadOp load : loadsOfWeights(region)) {
      bool needsCount =
          ShapedType::isDynamic(load.getBufferType().getShape()[0]) && load.getExisting();
      Value row = values.of(load.getRow()),
            existing = row && needsCount ? values.of(load.getExisting()) : Value();
      if (row && bool(existing) == needsCount)
        found.push_back({load, row, existing});
    }
    if (found.empty())
      continue;
    Location loc = region.getLoc();
    Value thread = constantI32(b, loc, 32 * int64_t(region.getRole().getFirstWarp()));
    Value isFirst =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, state.threadIndex, thread);
    auto branch = scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPointToStart(branch.thenBlock());
    for (const FirstLoad &first : found)
      prefetchRows(b, first);
  }
}
