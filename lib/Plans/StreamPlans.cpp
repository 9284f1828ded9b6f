//===- StreamPlans.cpp - Plans of kernels without roles -------------------===//
//
// The numbers of stream_blocks are those of hand-written kernels, which were fastest on an H200
// with 16 elements per thread, or with two scale blocks if each is transformed. With two scale
// blocks the tensor's scale costs half per element: 16.3 instead of 17.4 instructions. Scale blocks
// with two candidate scales are also faster in this way, on an H200. notebook/quantizers.md has
// measurements of the compiler's own kernels.
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "RowSources.h"

#include "fp4/Dialect/Fp4/IR/Prologue.h"
#include "fp4/ISA/ScaleLayout.h"
#include "fp4/Plans/BlockLanes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp4;
using enum KernelFamily;

/// Limits of a thread: its scale blocks are in registers, and its items are counted with 32 bits.
static constexpr int64_t kMostBlocks = 16, kMostItems = 65536;
/// CTAs of a grid for each SM: more than ever run at a time gain nothing.
static constexpr int64_t kMostGrid = 1024;

//===----------------------------------------------------------------------===//
// Lanes of a block
//===----------------------------------------------------------------------===//

/// Elements that each lane of a block has at least: those of a word of codes of FP4. Blocks under
/// an f32 have chunks.
static constexpr int64_t kFewestOfLane = 8, kElementsOfChunk = 16;

/// Returns true when lanes may have a block together, which exchange their maxima: rows have whole
/// tiles of scales, and nothing else than a scale depends on a whole block.
static bool mayShareBlocks(QuantizeOp op) {
  int64_t columns = cast<RankedTensorType>(op.getInput().getType()).getDimSize(1);
  bool isWhole =
      ShapedType::isDynamic(columns) || columns % (op.getBlockSize() * hw::scaleBlockColumns) == 0;
  return isWhole && !op.hasF32Scales() && !op.getHadamard() && !op.getRng() &&
         op.getRecipe().getDecisions().adaptive == numerics::Adaptive::Off;
}

/// If a thread had 32 codes of a byte, each of its two stores would write half of every sector that
/// it touches; 16 codes are one store, and those of a warp are whole sectors.
int64_t fp4::lanesOfBlock(QuantizeOp op, const KernelPlan &plan) {
  constexpr int64_t bytes = 32;
  bool isOfBytes = !hasPackedData(op.getFormat()) && op.getBlockSize() == bytes;
  return plan.stream.lanesPerBlock.value_or(isOfBytes && mayShareBlocks(op) ? 2 : 1);
}

/// Checks the lanes of a block, or the threads of a row that is one: a part of a warp, or warps.
static LogicalResult checkLanes(Operation *op, const KernelPlan &plan) {
  constexpr int64_t warp = 32;
  int64_t lanes = plan.stream.lanesPerBlock.value_or(1);
  auto quantize = dyn_cast<QuantizeOp>(op);
  if (lanes == 1)
    return success();
  if (quantize && hasScaleOfRow(op)) {
    bool isTeam = lanes % warp == 0 || (lanes < warp && llvm::isPowerOf2_64(lanes));
    if (isTeam && *plan.threads % lanes == 0)
      return success();
    return misfit(op, "lanes_per_block", "are whole warps, or a part of one, and divide threads",
                  Twine(lanes));
  }
  if (!quantize || !mayShareBlocks(quantize))
    return misfit(op, "lanes_per_block", "is 1 for this operation", Twine(lanes));
  int64_t most = quantize.getBlockSize() / kFewestOfLane;
  if (lanes > most || !llvm::isPowerOf2_64(lanes))
    return misfit(op, "lanes_per_block", "is a power of two up to " + Twine(most), Twine(lanes));
  return success();
}

//===----------------------------------------------------------------------===//
// Few rows
//===----------------------------------------------------------------------===//

/// The elements that a stream of `op` computes.
static RankedTensorType elementsOf(Operation *op) {
  auto quantize = dyn_cast<QuantizeOp>(op);
  return cast<RankedTensorType>(quantize ? quantize.getInput().getType()
                                         : op->getResult(0).getType());
}

/// Proposes for few rows of a stream other fields than for many. Lanes have a block together, each
/// 8 elements of it, and rows that are a block have a thread for each chunk, because latencies of a
/// thread add up where few threads wait beside each other: an H200 takes 2.1 us in place of 3.0 for
/// silu of 64 x 7168 to MXFP4 and to MXFP8, 2.25 in place of 2.43 for the gate of gpt-oss to NVFP4,
/// and 2.3 in place of 5.2 to FP8 of rows. Blocks that are rounded stochastically take 2.44 in CTAs
/// of 256 threads and 2.77 in those of 64.
static KernelPlan planOfFew(Operation *op) {
  constexpr int64_t warp = 32, most = 1024;
  KernelPlan plan = planOfFamily(familyOf(op));
  auto quantize = dyn_cast<QuantizeOp>(op);
  if (!quantize || !prologueOf(quantize.getInput()))
    return plan;
  if (quantize.getRng()) {
    plan.threads = 256;
  } else if (mayShareBlocks(quantize)) {
    plan.stream.lanesPerBlock = quantize.getBlockSize() / kFewestOfLane;
    plan.threads = 128;
  } else if (hasScaleOfRow(op)) {
    int64_t chunks = llvm::divideCeil(elementsOf(op).getDimSize(1), kElementsOfChunk);
    int64_t threads = int64_t(llvm::alignTo(chunks, warp));
    if (threads <= most)
      plan.stream.lanesPerBlock = plan.threads = threads;
  }
  return plan;
}

/// Elements of a row; none where they are dynamic.
static std::optional<int64_t> elementsOfRow(RankedTensorType type) {
  ArrayRef<int64_t> ofRow = type.getShape().drop_front(type.getRank() ? 1 : 0);
  if (!ShapedType::isStaticShape(ofRow))
    return std::nullopt;
  return std::max<int64_t>(ShapedType::getNumElements(ofRow), 1);
}

/// Elements that a thread of a stream has: a block, or its part of one that lanes have together, or
/// 32 bytes of the narrowest tensor.
static int64_t elementsOfThread(Operation *op, const KernelPlan &plan) {
  constexpr int64_t run = 32;
  if (auto quantize = dyn_cast<QuantizeOp>(op))
    return quantize.hasF32Scales() ? kElementsOfChunk
                                   : quantize.getBlockSize() / lanesOfBlock(quantize, plan);
  unsigned bits = 32;
  for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
    bits = std::min(bits, getElementTypeOrSelf(type).getIntOrFloatBitWidth());
  return run * 8 / bits;
}

/// Rows up to which launches of a stream take turns: a quarter of the CTAs that the GPU holds at
/// once have them. For a gate of 7168 bf16 an H200 takes 2.13 us in place of 2.27 with 64 rows, but
/// 3.13 in place of 3.00 with 128, and 18 in place of 12 with 1024 (few_row_launches).
static int64_t mostOfTurns(Operation *op, const KernelPlan &plan, const hw::TargetModel &target) {
  int64_t threads = *plan.threads;
  int64_t ctas = int64_t(target.sms) * mostCtasPerSm(threads, target) / 4;
  return ctas * threads * elementsOfThread(op, plan) /
         elementsOfRow(elementsOf(op)).value_or(INT64_MAX);
}

/// The place where a kernel of few rows lets the next one begin: behind its loads, an H200 takes
/// 2.60 us for a gate to NVFP4 in place of 2.79. Work items have no such kernels.
static LaunchDependents placeOfTurns(KernelFamily family) {
  return family == KernelFamily::StreamBlocks ? LaunchDependents::BehindLoads
                                              : LaunchDependents::InTurn;
}

/// Gives the plan of a stream whose launches overlap its PDL: its CTAs begin while the kernel
/// before it ends. The next launch begins beside few rows, and else when this one has ended.
static void planTurns(Operation *op, KernelPlan &plan, const KernelPlan &partial,
                      const hw::TargetModel &target) {
  RankedTensorType type = elementsOf(op);
  bool isDynamic = type.getRank() && type.isDynamicDim(0);
  std::optional<int64_t> rows = partial.guard.m.most;
  if (!isDynamic)
    rows = type.getRank() ? type.getDimSize(0) : 1;
  plan.pdl = LaunchDependents::AtEnd;
  KernelPlan few = partial.orElse(planOfFew(op).orElse(plan));
  few.guard = plan.guard;
  if (!rows || *rows > mostOfTurns(op, few, target))
    return;
  plan = few;
  plan.pdl = placeOfTurns(plan.family);
}

/// Why plans of a stream may not depend on its rows; empty where they are dynamic, and one launch
/// writes each of them in its own place.
static std::string whyNoCases(Operation *op) {
  auto quantize = dyn_cast<QuantizeOp>(op);
  if (!isa<QuantizeOp, linalg::GenericOp>(op) || (quantize && amaxOfKernel(quantize)))
    return "its kernel has other work beside its rows";
  RankedTensorType type = elementsOf(op);
  return type.getRank() == 2 ? whyOnePlan(op, type) : "its result is no matrix";
}

/// Proposes a case for few rows where launches take turns.
static SmallVector<Attribute> proposeCases(Operation *op, const KernelPlan &last,
                                           const hw::TargetModel &target) {
  KernelPlan few = planOfFew(op).orElse(last);
  few.guard.m.most = mostOfTurns(op, few, target);
  if (last.pdl != LaunchDependents::AtEnd || few.guard.m.most < 1)
    return {};
  few.pdl = placeOfTurns(few.family);
  return {CaseAttr::get(op->getContext(), few, std::nullopt)};
}

//===----------------------------------------------------------------------===//
// stream_blocks
//===----------------------------------------------------------------------===//

/// Returns true when each thread transforms its scale blocks by itself.
static bool transformsInThread(Operation *op) {
  auto quantize = dyn_cast<QuantizeOp>(op);
  return quantize && quantize.getHadamard() &&
         quantize.getHadamard()->options().blockSize <= quantize.getBlockSize();
}

/// Returns true when a thread tries two scales without an instruction for E2M1.
static bool comparesScales(Operation *op, const hw::TargetModel &target) {
  auto quantize = dyn_cast<QuantizeOp>(op);
  return quantize && !target.features.hasFp4Convert &&
         quantize.getRecipe().getDecisions().adaptive != numerics::Adaptive::Off;
}

/// Returns true when an operation before `op` reads `value`; views of its buffer do not read.
static bool isReadBefore(Value value, Operation *op) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (user == op || (user->getBlock() == op->getBlock() && op->isBeforeInBlock(user)))
      return false;
    bool isView =
        isa<UnrealizedConversionCastOp>(user) || isa<pipe::PipeDialect>(user->getDialect());
    return !isView ||
           llvm::any_of(user->getResults(), [&](Value view) { return isReadBefore(view, op); });
  });
}

int64_t fp4::amaxCtasPerSm(const hw::TargetModel &target) {
  return std::min<int64_t>(4, mostCtasPerSm(kAmaxThreads, target));
}

AmaxOp fp4::amaxOfKernel(QuantizeOp quantize) {
  auto amax = quantize.getAmax() ? quantize.getAmax().getDefiningOp<AmaxOp>() : AmaxOp();
  if (!amax || amax.getInput() != quantize.getInput() || amax.isGrouped() || amax.hasLines() ||
      quantize.getHadamard() || quantize.isGrouped() || quantize.hasF32Scales() ||
      isRowKernel(amax))
    return {};
  bool isFirst =
      amax->getBlock() == quantize->getBlock() && !isReadBefore(amax.getAmax(), quantize);
  return isFirst ? amax : AmaxOp();
}

/// Returns true when a kernel has read the same tensor for an amax of this quantizer, so that the
/// L2 cache may have the end of the tensor alone.
static bool endsInCache(QuantizeOp op, const hw::TargetModel &target) {
  auto type = cast<RankedTensorType>(op.getInput().getType());
  if (type.hasStaticShape() &&
      uint64_t(type.getNumElements()) * type.getElementTypeBitWidth() / 8 <= target.l2Bytes / 2)
    return false;
  Value amaxes[] = {op.getAmax(), op.getColumnwiseAmax()};
  return llvm::any_of(amaxes, [&](Value amax) {
    Operation *before = amax ? amax.getDefiningOp() : nullptr;
    return isa_and_present<AmaxOp, HadamardAmaxOp>(before) &&
           before->getOperand(0) == op.getInput();
  });
}

/// Returns true when the kernel also computes the amax if its grid is not too large: the tensor is
/// known there. Host code asks the device and, with dynamic rows, the tensor. Two candidate scales
/// take more registers than so many threads have.
static bool keepsItsAmax(QuantizeOp op, const hw::TargetModel &target) {
  if (!amaxOfKernel(op) || op.getRecipe().getDecisions().adaptive != numerics::Adaptive::Off)
    return false;
  auto type = cast<RankedTensorType>(op.getInput().getType());
  int64_t grid = target.sms * amaxCtasPerSm(target) * kAmaxEighths / 8;
  int64_t most = grid * kAmaxThreads * kAmaxBlocksPerThread;
  return !type.hasStaticShape() || type.getNumElements() <= most * op.getBlockSize();
}

/// Returns true when a thread computes the elements of its blocks.
static bool computesBlocks(Operation *op) {
  auto quantize = dyn_cast<QuantizeOp>(op);
  return quantize && prologueOf(quantize.getInput()) && !amaxOfKernel(quantize);
}

/// Returns true when threads compute the elements of rows of so many that 128 of them have no
/// registers for a row: an H200 takes 95 us in place of 119 for gates of 4096 x 16384 elements to
/// FP8 of rows with 256.
static bool keepsLongRows(QuantizeOp op) {
  constexpr int64_t most = 8192;
  int64_t columns = cast<RankedTensorType>(op.getInput().getType()).getDimSize(1);
  return hasScaleOfRow(op) && (ShapedType::isDynamic(columns) || columns > most);
}

/// Plans blocks whose elements a thread computes: CTAs of 128 threads take turns sooner than those
/// of 256, and few rows have twice as many. An H200 takes 646 us in place of 667 for gpt-oss gates
/// of 65536 x 8192 elements to MXFP8, and 172 in place of 179 for silu of 16384 x 8192 to FP8 of
/// rows. 32 codes of FP4 of a thread take 82 registers for GELU unless six CTAs are to fit: 163.5
/// us in place of 188 with two CTAs of 256 threads. Blocks of 16 have 64 threads: 129 us for
/// 16384 x 7168 to NVFP4, 137 with 128 and 142 with 256. Other threads of the program have as many
/// CTAs as fit.
static void planComputed(QuantizeOp op, KernelPlan &plan, const KernelPlan &partial) {
  constexpr int64_t codes = 32;
  if (keepsLongRows(op))
    return;
  plan.threads = op.getBlockSize() == 16 ? 64 : 128;
  if (hasPackedData(op.getFormat()) && op.getBlockSize() == codes && !op.getRng() &&
      partial.threads.value_or(*plan.threads) == *plan.threads)
    plan.ctasPerSm = 6;
}

static KernelPlan proposeBlocks(Operation *op, const KernelPlan &partial,
                                const hw::TargetModel &target) {
  KernelPlan plan = planOfFamily(StreamBlocks);
  if (auto quantize = dyn_cast<QuantizeOp>(op)) {
    if (endsInCache(quantize, target))
      plan.stream.order = CtaOrder::Descending;
    if (keepsItsAmax(quantize, target))
      plan.stream.amax = AmaxKernel::Same;
  }
  bool hasMoreToDo = transformsInThread(op) || comparesScales(op, target);
  plan.threads = hasMoreToDo ? 128 : 256;
  plan.stream.blocksPerThread = hasMoreToDo ? 2 : 1;
  if (computesBlocks(op) && !hasMoreToDo) {
    planComputed(cast<QuantizeOp>(op), plan, partial);
    planTurns(op, plan, partial, target);
  }
  return plan;
}

static LogicalResult checkBlocks(Operation *op, const KernelPlan &plan,
                                 const hw::TargetModel &target) {
  if (failed(checkAtMost(op, "blocks_per_thread", *plan.stream.blocksPerThread, kMostBlocks)))
    return failure();
  auto quantize = dyn_cast<QuantizeOp>(op);
  if (plan.stream.amax == AmaxKernel::Same && (!quantize || !amaxOfKernel(quantize)))
    return withNote(misfit(op, "amax", "is separate", "same"),
                    "a quantizer along rows computes the amax of its input where it is the first "
                    "to need it, without groups, transforms or f32 scales");
  if (failed(checkLanes(op, plan)))
    return failure();
  return checkThreads(op, *plan.threads, plan.ctasPerSm.value_or(1), target);
}

constexpr FamilyRules fp4::kStreamBlocksRules = {KernelFamily::StreamBlocks,
                                                 requireNothing,
                                                 proposeBlocks,
                                                 checkBlocks,
                                                 whyNoCases,
                                                 proposeCases};

//===----------------------------------------------------------------------===//
// tile_quantize
//===----------------------------------------------------------------------===//

static LogicalResult requireTiles(Operation *op, const KernelPlan &, const hw::TargetModel &) {
  auto quantize = cast<QuantizeOp>(op);
  return transformsOnTensorCore(quantize) ? requireWarpTransform(quantize) : success();
}

/// Proposes tiles. The target says how many CTAs fit if they are plain. Transforms, scale blocks of
/// 32, square blocks, whose rows wait for each other, and stochastic rounding take up to 80
/// registers. 128 registers are needed if each candidate scale keeps its codes, if 32 elements are
/// rounded stochastically in steps, or if the kernel computes the values that it quantizes. Without
/// a limit, ptxas spills to have 80.
static KernelPlan proposeTiles(Operation *operation, const KernelPlan &,
                               const hw::TargetModel &target) {
  auto op = cast<QuantizeOp>(operation);
  bool squareBlocks = op.hasSquareBlocks();
  bool adaptive = op.getRecipe().getDecisions().adaptive != numerics::Adaptive::Off;
  bool longSteps = op.getRng() && op.getBlockSize() == 32 && !target.features.hasStochasticConvert;
  bool isPlain = op.getBlockSize() == 16 && !squareBlocks && !op.getRng() && !op.getPerRow() &&
                 !op.getHadamard() && !op.getColumnwiseHadamard();
  bool isBF16 = cast<RankedTensorType>(op.getInput().getType()).getElementType().isBF16();
  KernelPlan plan = planOfFamily(TileQuantize);
  plan.threads = kTileQuantizeThreads;
  if (endsInCache(op, target))
    plan.stream.order = CtaOrder::Descending;
  if (adaptive || longSteps || prologueOf(op.getInput()))
    plan.ctasPerSm = 2;
  else
    plan.ctasPerSm = isPlain && isBF16 ? target.tileQuantizeBlocks : 3;
  return plan;
}

static LogicalResult checkTiles(Operation *op, const KernelPlan &plan,
                                const hw::TargetModel &target) {
  if (*plan.threads != kTileQuantizeThreads)
    return misfit(op, "threads", "are 256", Twine(*plan.threads));
  return checkThreads(op, *plan.threads, *plan.ctasPerSm, target);
}

constexpr FamilyRules fp4::kTileQuantizeRules = {KernelFamily::TileQuantize, requireTiles,
                                                 proposeTiles, checkTiles};

//===----------------------------------------------------------------------===//
// stream_items, reduce_grid
//===----------------------------------------------------------------------===//

/// Returns true when each element takes a function of several steps, or a division.
static bool hasFunctions(linalg::GenericOp op) {
  return llvm::any_of(*op.getBody(), [](Operation &inner) {
    bool isStep = isa<math::AbsFOp, math::CopySignOp, math::FmaOp, math::FloorOp, math::CeilOp,
                      math::RoundEvenOp, math::TruncOp, math::ClampFOp>(inner);
    return isa<arith::DivFOp>(inner) || (isa<math::MathDialect>(inner.getDialect()) && !isStep);
  });
}

/// Bytes of all operands, if they are known.
static std::optional<int64_t> movedBytes(linalg::GenericOp op) {
  int64_t bits = 0;
  for (Value operand : op->getOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (type && !type.hasStaticShape())
      return std::nullopt;
    bits += type ? type.getNumElements() * type.getElementTypeBitWidth() : 0;
  }
  return bits / 8;
}

/// Threads of a CTA. CTAs of fewer threads take turns sooner: with functions an H200 takes 185.6 us
/// for the gate of gpt-oss of 16384 x 8192 elements with one warp, if so many CTAs as keep the
/// memory busy fit, and 192.1 with 128 threads. The last CTAs of a small tensor end earlier; large
/// tensors without functions are faster by CTAs of 256 (notebook/quantizers.md).
static int64_t threadsOfElements(linalg::GenericOp op, const hw::TargetModel &target) {
  constexpr int64_t warp = 32, busy = 1024;
  constexpr int64_t few = 24 << 20; // an H200: 16 MiB 5 % faster by 128, 32 MiB 1 % slower
  if (hasFunctions(op))
    return warp * int64_t(target.limits.maxCtasPerSM) >= busy ? warp : 128;
  return movedBytes(op).value_or(few) < few ? 128 : 256;
}

/// Proposes several items to a thread, so that common values are computed once. A thread that
/// transforms has one item, because its lanes wait for each other. A thread that computes element
/// by element has one too: its loads are in flight with those of other threads. Launches of
/// functions overlap.
static KernelPlan proposeItems(Operation *op, const KernelPlan &partial,
                               const hw::TargetModel &target) {
  KernelPlan plan = planOfFamily(StreamItems);
  auto elements = dyn_cast<linalg::GenericOp>(op);
  plan.threads = elements ? threadsOfElements(elements, target) : 256;
  plan.stream.itemsPerThread = isa<HadamardOp, linalg::GenericOp>(op) ? 1 : 4;
  if (elements && hasFunctions(elements))
    planTurns(op, plan, partial, target);
  return plan;
}

static LogicalResult checkItems(Operation *op, const KernelPlan &plan,
                                const hw::TargetModel &target) {
  if (isa<HadamardOp>(op) && *plan.stream.itemsPerThread != 1)
    return misfit(op, "items_per_thread", "is 1", Twine(*plan.stream.itemsPerThread));
  if (failed(checkAtMost(op, "items_per_thread", *plan.stream.itemsPerThread, kMostItems)))
    return failure();
  return checkThreads(op, *plan.threads, /*resident=*/1, target);
}

constexpr FamilyRules fp4::kStreamItemsRules = {
    KernelFamily::StreamItems, requireNothing, proposeItems, checkItems, whyNoCases, proposeCases};

/// Proposes a grid: one item for each thread of a small tensor, so that all SMs load, and for a
/// large one as many CTAs as run at once, because the first one waits for all. A thread that
/// transforms rows has 50 registers, and one that transforms columns 150.
static KernelPlan proposeGrid(Operation *op, const KernelPlan &, const hw::TargetModel &target) {
  auto transform = dyn_cast<HadamardAmaxOp>(op);
  bool columns = transform && transform.getDimension() == 0;
  KernelPlan plan = planOfFamily(ReduceGrid);
  plan.threads = columns ? 256 : 512;
  plan.stream.itemsPerThread = 1;
  plan.stream.grid = columns ? 1 : std::min<int64_t>(transform ? 2 : 4, mostCtasPerSm(512, target));
  return plan;
}

LogicalResult fp4::checkReduction(Operation *op, const KernelPlan &plan,
                                  const hw::TargetModel &target) {
  if (!llvm::isPowerOf2_64(*plan.threads))
    return misfit(op, "threads", "are a power of two", Twine(*plan.threads));
  if (failed(checkAtMost(op, "items_per_thread", plan.stream.itemsPerThread.value_or(1),
                         kMostItems)) ||
      failed(checkAtMost(op, "grid", plan.stream.grid.value_or(1), kMostGrid)))
    return failure();
  return checkThreads(op, *plan.threads, /*resident=*/1, target);
}

constexpr FamilyRules fp4::kReduceGridRules = {KernelFamily::ReduceGrid, requireNothing,
                                               proposeGrid, checkReduction};
