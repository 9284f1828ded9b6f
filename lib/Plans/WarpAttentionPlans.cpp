//===- WarpAttentionPlans.cpp - Plans of attention with mma.sync ----------===//
//
// A CTA has some rows of queries and a part of the keys of their sequence, which its warps share.
// Memory limits such kernels, so that all CTAs are to run at a time, and each is to have as many
// keys.
//
//===----------------------------------------------------------------------===//

#include "Families.h"

#include "fp4/Dialect/Fp4/IR/SharedKeys.h"
#include "fp4/Plans/KernelPlans.h"

using namespace mlir;
using namespace fp4;

/// Rows of an instruction, its keys and elements of values, lanes of a warp, and bytes of shared
/// memory.
static constexpr int64_t kInstructionRows = 8, kKeys = 16, kWarp = 32, kMostShared = 48 << 10;
/// Most rows of a CTA, whose queries and sums are in registers, of heads of up to 128 elements.
static constexpr int64_t kMostRows = 16, kMostElementsOfMostRows = 128;
/// Elements of a head that leave registers for more warps.
static constexpr int64_t kSmallHead = 64;

static bool hasHeadsUpTo(AttentionOp op, int64_t elements) {
  return std::max(op.getElements(), op.getValueElements()) <= elements;
}

/// Rows of a sequence: tokens, and the heads that share keys.
static int64_t rowsOfSequence(AttentionOp op) { return op.getQueryTokens() * op.getHeadsOfGroup(); }

int64_t fp4::keysOfWarpStep(AttentionOp op) {
  if (!op.hasValueRows())
    return kKeys;
  constexpr int64_t bitsOfRow = 256; // of an instruction
  return bitsOfRow / op.getValueType().getElementTypeBitWidth();
}

/// Steps that a sequence has.
static int64_t stepsOfKeys(AttentionOp op) {
  return int64_t(llvm::divideCeil(op.getKeyTokens(), keysOfWarpStep(op)));
}

int64_t fp4::rowsOfWarpTile(AttentionOp op) {
  bool hasRoom = hasHeadsUpTo(op, kMostElementsOfMostRows);
  return rowsOfSequence(op) > kInstructionRows && hasRoom ? kMostRows : kInstructionRows;
}

/// Steps that the rows of a CTA see at most. A window may begin and end within a step.
static int64_t stepsSeen(AttentionOp op) {
  int64_t rows = std::min(rowsOfWarpTile(op), rowsOfSequence(op));
  int64_t tokens =
      std::min(op.getQueryTokens(), int64_t(llvm::divideCeil(rows - 1, op.getHeadsOfGroup())) + 1);
  return std::min(stepsOfKeys(op),
                  int64_t(llvm::divideCeil(op.getKeysOfTokens(tokens), keysOfWarpStep(op))) + 1);
}

/// Checks that a lane's chunk of a row is whole blocks, or that blocks are whole chunks. Operands
/// of block_scales have no chunks, or no scales.
static LogicalResult requireHead(AttentionOp op, StringRef name, int64_t elements, int64_t lanes) {
  constexpr int64_t unit = 64, most = 256;
  int64_t chunk = elements / lanes;
  int64_t block = op.isBlockScaled() ? 0 : op.getBlockSize();
  bool hasChunks = !block || block % chunk == 0 ||
                   (chunk % block == 0 && llvm::isPowerOf2_64(uint64_t(chunk / block)));
  if (elements % unit == 0 && elements <= most && hasChunks)
    return success();
  return refuseHead(op, name, elements, block ? "64, 128 or 256" : "64, 128, 192 or 256");
}

LogicalResult fp4::requireValueRows(AttentionOp op) {
  constexpr int64_t unit = 32; // elements of 4 bits in 16 bytes, and a block of MXFP8
  if (!op.hasValueRows() || op.getKeyTokens() % unit == 0)
    return success();
  return withNote(op.emitOpError() << "has kernels for values with scales of a multiple of " << unit
                                   << " keys, but operand 'value' has " << op.getKeyTokens(),
                  "append keys, and write 'lengths'");
}

/// Reports scales of blocks where mma.sync has none.
static LogicalResult requireBlockScales(AttentionOp op, const hw::TargetModel &target) {
  if (!op.isBlockScaled())
    return success();
  if (!route::hasCore(target, route::Core::MmaSync))
    return withNote(op.emitOpError()
                        << "has warps of 'block_scales' with mma.sync of sm_120a, but target "
                        << target.name << " has none",
                    "family tile_attention has 'block_scales' with tcgen05");
  return requireValueRows(op);
}

static LogicalResult requireWarpAttention(Operation *op, const KernelPlan &,
                                          const hw::TargetModel &target) {
  auto attention = cast<AttentionOp>(op);
  if (failed(requireBlockScales(attention, target)))
    return failure();
  if (failed(requireNoOrder(attention)))
    return failure();
  if (attention.isPacked())
    return withNote(op->emitOpError("has kernels of warps without 'query_offsets', but got these"),
                    "family tile_attention takes packed sequences, with wgmma, or with tcgen05 for "
                    "operand 'value' of 64 or 128 elements");
  if (int64_t sharing = getSharingSequences(attention); sharing > 1)
    return withNote(
        op->emitOpError("has kernels of warps for as many sequences of keys as of "
                        "queries, but ")
            << sharing << " share their keys",
        "family tile_attention takes them, with wgmma or tcgen05; else pass their heads "
        "behind tokens");
  if (failed(requireHead(attention, "key", attention.getElements(), /*lanes=*/4)) ||
      failed(requireHead(attention, "value", attention.getValueElements(), /*lanes=*/8)))
    return failure();
  return failure(failed(requirePages(attention, kKeys)) ||
                 failed(requireQuantizer(attention, /*inLanes=*/true)));
}

/// Bytes of the states of half of the warps, of the maxima of all, and of a ticket; none of states
/// where each has a head of its own.
static int64_t sharedBytes(AttentionOp op, int64_t threads, int64_t strip) {
  int64_t rows = rowsOfWarpTile(op), warps = threads / kWarp;
  int64_t numbers = numbersOfWarpState(rows / kInstructionRows, op.getValueElements() / kKeys);
  return warps > strip ? 4 * (warps / 2 * numbers * kWarp + warps * rows + 1) : 0;
}

/// Results that CTAs of their own compute, of `strip` heads of keys each.
static int64_t worksOf(AttentionOp op, int64_t strip = 1) {
  return op.getBatches() * (op.getKeyHeads() / strip) *
         int64_t(llvm::divideCeil(rowsOfSequence(op), rowsOfWarpTile(op)));
}

/// The parts of keys by which the last wave of CTAs ends first. A CTA costs as much as a few steps
/// beside those of its keys.
static int64_t partsOfKeys(AttentionOp op, int64_t warps, int64_t works, int64_t ctas) {
  constexpr int64_t mostParts = 64, keysOfCost = 64;
  int64_t costOfCta = keysOfCost / keysOfWarpStep(op), steps = stepsSeen(op), best = 1;
  auto cost = [&](int64_t parts) {
    int64_t waves = int64_t(llvm::divideCeil(works * parts, ctas));
    return waves * (int64_t(llvm::divideCeil(steps, parts * warps)) + costOfCta);
  };
  for (int64_t parts = 2; parts <= mostParts && parts * warps <= steps; ++parts)
    if (cost(parts) < cost(best))
      best = parts;
  return best;
}

/// Bytes of keys and values whose loads, not launch and merge, limit an H200.
static constexpr int64_t kManyBytes = 128 << 20;

/// Bytes of the keys and values that queries of all sequences see.
static int64_t bytesOfKeys(AttentionOp op) {
  int64_t elements = op.getElements() + op.getValueElements();
  int64_t tokens = op.getKeysOfTokens(op.getQueryTokens());
  int64_t rows = op.getBatches() * tokens * op.getKeyHeads();
  return rows * elements * op.getKeyType().getElementTypeBitWidth() / 8;
}

/// Rows of a sequence up to which tiles of tcgen05 are left mostly empty, and its keys unshared.
static constexpr int64_t kFewLaneRows = 32;

bool fp4::prefersWarps(AttentionOp op, const hw::TargetModel &target) {
  if (getSharingSequences(op) > 1)
    return false;
  constexpr int64_t manyKeys = 16384; // by an H200
  bool hasPages = !op.getPages() || op.getPageTokens() % kKeys == 0;
  bool isFaster =
      hasHeadsUpTo(op, kSmallHead) ||
      (hasHeadsUpTo(op, kMostElementsOfMostRows) &&
       (bytesOfKeys(op) >= kManyBytes || op.getKeysOfTokens(op.getQueryTokens()) >= manyKeys));
  if (!route::hasCore(target, route::Core::Wgmma) && hasPages && !op.isPacked() &&
      rowsOfSequence(op) <= kFewLaneRows)
    return true;
  constexpr int64_t panel = 64; // as requireHead asks
  bool hasPanels = op.getElements() % panel == 0 && op.getValueElements() % panel == 0;
  return !op.isPacked() && rowsOfSequence(op) <= kInstructionRows && hasPages && hasPanels &&
         isFaster;
}

/// Most heads of keys of a CTA: neighbouring heads of a token lie together unless pages have heads
/// first.
static int64_t mostHeadsOfCta(AttentionOp op, int64_t threads) {
  int64_t warps = threads / kWarp;
  auto divisor = int64_t(uint64_t(op.getKeyHeads()) & -uint64_t(op.getKeyHeads()));
  return op.getHeadsFirst() ? 1 : std::min(warps, divisor);
}

/// Returns true if CTAs that have parts of the keys of two heads read NVFP4 faster than CTAs of
/// one. Two heads of up to 128 elements lie in a line of the L2 cache, of which CTAs that drift apart
/// read each half by itself. MXFP4 is limited by its conversion (notebook/attention.md).
static bool isFasterInPairs(AttentionOp op, const hw::TargetModel &target) {
  constexpr int64_t nvfp4Block = 16;
  bool hasParts = 2 * worksOf(op) <= target.sms;
  return hasParts && op.getBlockSize() == nvfp4Block && bytesOfKeys(op) >= kManyBytes;
}

/// Returns true for a number of heads of keys that the warps of a CTA share.
static bool isStrip(AttentionOp op, int64_t threads, int64_t strip) {
  return strip > 0 && llvm::isPowerOf2_64(uint64_t(strip)) && op.getKeyHeads() % strip == 0 &&
         strip <= threads / kWarp;
}

namespace {
struct CtaShape {
  int64_t threads, ctas, strip = 1; ///< threads of a CTA, CTAs per SM, and heads of keys of a CTA
};
} // namespace

/// The fastest predicted for an RTX 5090 (notebook/attention.md). Steps of values with scales have
/// so many keys that few warps read as fast as memory does, and their states are added in the end:
/// CTAs are as large as lets all run at a time.
static CtaShape shapeOfValueRows(AttentionOp op, const hw::TargetModel &target) {
  constexpr int64_t threads = 256, mostCtas = 4;
  int64_t ctas = 1;
  while (ctas < mostCtas && worksOf(op) > ctas * target.sms)
    ctas *= 2;
  return {threads / ctas, ctas};
}

/// The fastest on an H200 (notebook/attention.md). One CTA has all registers of an SM if all run at
/// a time; else the next one begins while one ends. Codes of several heads, which lie together, are
/// read faster than those of one, and CTAs of so many heads run at a time. Bytes with scales in
/// pages spill with 128 registers.
static CtaShape shapeOfCtas(AttentionOp op, const hw::TargetModel &target) {
  if (op.hasValueRows())
    return shapeOfValueRows(op, target);
  if (rowsOfWarpTile(op) > kInstructionRows || !hasHeadsUpTo(op, kMostElementsOfMostRows))
    return {256, 1};
  bool isOneWave = worksOf(op) <= target.sms;
  if (!op.isQuantized())
    return isOneWave ? CtaShape{hasHeadsUpTo(op, kSmallHead) ? 512 : 256, 1} : CtaShape{128, 2};
  bool hasBytes = op.getKeyScales() && op.getKeyType().getElementTypeBitWidth() == 8;
  if (op.getPages() && hasBytes && !hasHeadsUpTo(op, kSmallHead))
    return {256, 1};
  int64_t most = mostHeadsOfCta(op, /*threads=*/512);
  for (int64_t strip = most > 1 && isFasterInPairs(op, target) ? 2 : 1; strip <= most; strip *= 2)
    if (worksOf(op, strip) <= target.sms)
      return {512, 1, strip};
  return {256, 2, mostHeadsOfCta(op, /*threads=*/256)};
}

static KernelPlan proposeWarpAttention(Operation *op, const KernelPlan &partial,
                                       const hw::TargetModel &target) {
  auto attention = cast<AttentionOp>(op);
  KernelPlan plan = planOfFamily(KernelFamily::WarpAttention);
  CtaShape shape = shapeOfCtas(attention, target);
  plan.threads = partial.threads.value_or(shape.threads);
  plan.ctasPerSm = partial.ctasPerSm.value_or(partial.threads ? 1 : shape.ctas);
  int64_t strip = partial.strip.value_or(partial.threads ? 1 : shape.strip);
  if (strip > 1)
    plan.strip = strip;
  if (isStrip(attention, *plan.threads, strip))
    plan.split.kSlices = partsOfKeys(attention, *plan.threads / kWarp / strip,
                                     worksOf(attention, strip), target.sms * *plan.ctasPerSm);
  return plan;
}

static LogicalResult checkWarpAttention(Operation *op, const KernelPlan &plan,
                                        const hw::TargetModel &target) {
  auto attention = cast<AttentionOp>(op);
  if (failed(checkThreads(op, *plan.threads, plan.ctasPerSm.value_or(1), target)))
    return failure();
  if (int64_t strip = plan.strip.value_or(1); !isStrip(attention, *plan.threads, strip))
    return misfit(op, "strip",
                  "is a power of two that divides the " + Twine(attention.getKeyHeads()) +
                      " heads of operand 'key', up to the warps of 'threads'",
                  Twine(strip));
  if (!llvm::isPowerOf2_64(uint64_t(*plan.threads)) ||
      sharedBytes(attention, *plan.threads, plan.strip.value_or(1)) > kMostShared)
    return misfit(op, "threads",
                  "are a power of two whose states fit in " + Twine(kMostShared) +
                      " bytes of shared memory",
                  Twine(*plan.threads));
  return checkAtMost(op, "k_slices", *plan.split.kSlices, stepsOfKeys(attention));
}

constexpr FamilyRules fp4::kWarpAttentionRules = {KernelFamily::WarpAttention, requireWarpAttention,
                                                  proposeWarpAttention, checkWarpAttention};
