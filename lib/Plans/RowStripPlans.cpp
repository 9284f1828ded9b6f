//===- RowStripPlans.cpp - Plans of rows that a CTA takes one by one ------===//
#include "RowStripPlans.h"
#include "RowSources.h"

#include "fp4/Dialect/Fp4/IR/Prologue.h"
#include "fp4/Dialect/Fp4/IR/RowNumbers.h"
#include "fp4/Dialect/Fp4/IR/RowReduction.h"
#include "fp4/Plans/RowTeams.h"

using namespace mlir;
using namespace fp4;

namespace {

/// Rows of a strip, and the fewest chunks of a row of a CTA.
constexpr int64_t kRows = 4, kMostRows = 64, kFewest = 128;
/// CTAs of an SM among which some load while others wait for their threads.
constexpr int64_t kManyCtas = 8;
/// Bytes of rows for which a CTA has room.
constexpr int64_t kMostStageBytes = 32768;

bool hasTiledScales(Operation *op) {
  auto quantize = dyn_cast<QuantizeOp>(op);
  return quantize && scaleLayout(cast<RankedTensorType>(quantize.getScales().getType()));
}

/// Returns true when a CTA may take rows of a quantizer of one matrix one after the other: the
/// scales of a tile of rows, or fp32, where threads compute what other targets convert.
bool mayGainFromStrips(Operation *op, const hw::TargetModel &target) {
  auto quantize = dyn_cast<QuantizeOp>(op);
  return quantize && quantizesOneMatrix(op) && !target.features.hasFp4Convert &&
         !quantize.getRng() && !amaxOfRows(quantize) && !readsGather(op) &&
         (quantize.hasF32Scales() || hasTiledScales(op));
}

/// Returns true when nobody asks for other threads, and the row is long enough for a CTA.
bool mayHaveStrip(const KernelPlan &partial, int64_t chunks) {
  bool isOpen = !partial.threads && !partial.ctasPerSm && !partial.stream.itemsPerThread;
  return isOpen && partial.cluster[1] <= 1 && chunks >= kFewest;
}

/// Bytes of the rows that wait in shared memory, one of each matrix.
int64_t bytesOfStage(Operation *op) {
  double bytes = 0;
  for (auto [tensor, row, column] : sourcesOf(op))
    if (auto type = cast<RankedTensorType>(tensor.getType()); type.getRank() == 2)
      bytes += 4 * wordsOfChunk(tensor) / kRowChunk * double(type.getDimSize(1));
  return int64_t(bytes);
}

/// Returns true when threads read other columns than those of their results.
bool readsOtherColumns(Operation *op) {
  int64_t columns = widestMatrixOf(op).getDimSize(1);
  AffineExpr own = getAffineDimExpr(1, op->getContext());
  return llvm::any_of(sourcesOf(op), [&](const RowSource &source) {
    auto type = cast<RankedTensorType>(std::get<Value>(source).getType());
    bool isMatrix = type.getRank() == 2 && type.getDimSize(1) > 1;
    return isMatrix && (type.getDimSize(1) != columns || std::get<2>(source) != own);
  });
}

/// Why no row of `op` may wait in shared memory; empty if it may.
std::string whyNoStage(Operation *op) {
  if (widestMatrixOf(op).getDimSize(1) % kRowChunk != 0)
    return "is left out where rows are no whole chunks";
  if (readsOtherColumns(op))
    return "is left out where results are of other columns";
  return bytesOfStage(op) > kMostStageBytes ? "is left out where rows take more than 32768 bytes"
                                            : "";
}

/// The work of threads on a row that they have together.
struct StripWork {
  bool isOfBytes;    ///< instructions convert elements; without it, integer ones make codes of FP4
  bool hasRowScale;  ///< the results of a row wait for its scale
  int64_t numbers;   ///< sums and maxima of the row for which threads wait
  bool sharesBlocks; ///< threads have the amax of a block together

  bool waitsOften() const { return numbers + sharesBlocks > 1; }
  /// Several sums, or one and no blocks of several threads.
  bool waitsForSums() const { return numbers > sharesBlocks; }
};

StripWork workOf(QuantizeOp op) {
  bool hasRowScale = hasScaleOfRow(op);
  int64_t sums = llvm::count_if(stepsOf(op), isRowReduction);
  return {!hasPackedData(op.getFormat()), hasRowScale, sums + hasRowScale,
          !hasRowScale && op.getBlockSize() > kRowChunk};
}

/// Threads of a row, chunks of each, and CTAs of an SM.
struct StripShape {
  int64_t threads, perThread, ctas;
};

/// Shape of a row of `chunks` beside which the next one waits in registers or, with `hasStage`, in
/// shared memory: four chunks of a thread take 128 registers and 96, and two 80 and 72.
StripShape shapeOf(int64_t chunks, bool hasStage) {
  constexpr int64_t fewest = 64;
  int64_t ofFour = hasStage ? 640 : 512, ofTwo = hasStage ? 896 : 768;
  int64_t four = threadsOfChunks(llvm::divideCeil(chunks, 4));
  if (four >= fewest && 16 * (4 * four - chunks) <= chunks)
    return {four, 4, ofFour / four};
  int64_t two = threadsOfChunks(llvm::divideCeil(chunks, 2));
  return {two, 2, ofTwo / two};
}

/// Shape of a row beside which the next one waits in shared memory. Eight CTAs gain from it, too,
/// unless their threads wait for one sum and for blocks: of 65536 rows of 4096 elements, an H200
/// takes 193 us in place of 200 for LayerNorm to NVFP4, and 179 in place of 185 for RMSNorm, but
/// 182 in place of 179 to MXFP4. Bytes have two chunks of a thread: 197 us in place of 211 for
/// LayerNorm to MXFP8, and 198 with four.
StripShape stagedShapeOf(int64_t chunks, const StripWork &work) {
  constexpr int64_t threads = 1024; // with 64 registers
  StripShape shape = shapeOf(chunks, /*hasStage=*/true);
  if (!work.waitsForSums() || shape.perThread < 4 || shape.ctas < kManyCtas)
    return shape;
  if (!work.isOfBytes)
    return {shape.threads, shape.perThread, kManyCtas};
  return {2 * shape.threads, 2, threads / (2 * shape.threads)};
}

/// Returns true when a thread has registers for its chunks of a row that it took from shared
/// memory: their words, those of their results where these wait for the scale of the row, and
/// others. With fewer, FP8 of rows of 8192 elements takes an H200 104 us in place of 100.
bool hasRegisters(Operation *op, const StripWork &work, const StripShape &shape,
                  const hw::TargetModel &target) {
  constexpr int64_t others = 34, ofNumber = 3, granule = 8;
  int64_t words = shape.perThread * keptWordsOfChunk(op) * (work.hasRowScale ? 2 : 1);
  int64_t room = int64_t(target.limits.registersPerSM) / (shape.threads * shape.ctas);
  return words + others + ofNumber * work.numbers <= room / granule * granule;
}

/// Returns true when the next row of a strip should wait in shared memory. CTAs of many threads are
/// so few on an SM that others hardly load while some wait for their threads; eight CTAs do, unless
/// they wait for sums (stagedShapeOf). But if they wait once for a row, and have four
/// chunks of the next one in registers, the trip through shared memory takes longer: 100 us in
/// place of 98 for RMSNorm to NVFP4 of 16384 rows of 8192 elements. Two chunks take 88 in place of
/// 96 for 7168 elements, because more CTAs fit.
bool gainsFromStage(Operation *op, const StripWork &work, const StripShape &shape,
                    const hw::TargetModel &target) {
  if (!whyNoStage(op).empty() || shape.ctas > kManyCtas ||
      int64_t(target.limits.ctasByShared(bytesOfStage(op))) < shape.ctas ||
      !hasRegisters(op, work, shape, target))
    return false;
  return work.isOfBytes || work.waitsOften() || shape.perThread < 4 || shape.ctas == kManyCtas;
}

/// Rows behind the strips that have a CTA each, one for each CTA that SMs have at a time, or two
/// for five to seven CTAs of an SM: at the end an SM lacks CTAs for the time of a row, not of a
/// strip. An H200 takes 31 us in place of 33 for MXFP4 of 4096 rows of 8192 elements with two, and
/// 27.8 in place of 28.2 for MXFP8 of 7168 elements, four CTAs, with one. Four or eight CTAs of an
/// SM whose rows wait in registers lack less than single rows take that nobody loads before: 98 us,
/// and 99 with them. Twelve gain: 29.8 in place of 30.7 for NVFP4 of 16384 rows of 2048 elements.
int64_t singleRowsOf(const StripShape &shape, bool hasStage, const hw::TargetModel &target) {
  constexpr int64_t tile = 128, few = 4;
  if (!hasStage && shape.ctas >= few && shape.ctas <= kManyCtas)
    return 0;
  int64_t ofCta = shape.ctas > few && shape.ctas < kManyCtas ? 2 : 1;
  return int64_t(target.sms) * shape.ctas * ofCta / tile * tile;
}

/// Proposes a strip where nothing is quantized: for two sums of a row that has four chunks of a
/// thread, and for the sum of exponentials of one with two. An H200 takes 68.5 us in place of 71.4
/// for LayerNorm to bf16 of 4096 rows of 16384 elements, and 256 in place of 265 of 16384 rows,
/// but 131 in place of 128 of rows of 8192; and for cross entropies 250 in place of 258 of 65536
/// rows of 8192 elements and 67.7 in place of 68.1 of 16384 rows of 7168, but 45 in place of 43 of
/// rows of 4096, and 575 in place of 555 of 65536 rows of 16384.
std::optional<KernelPlan> stripOfElements(Operation *op, int64_t chunks,
                                          const hw::TargetModel &target) {
  constexpr int64_t fewestOfLoss = 448, mostOfLoss = 512, fewestOfNorm = 1024;
  bool isLoss = sumsApproximations(op);
  int64_t waits = llvm::count_if(stepsOf(op), isRowReduction);
  if (target.features.hasFp4Convert || waits < 2 || readsGather(op) || !whyNoStage(op).empty() ||
      2 * keptWordsOfChunk(op) > kRowChunk || chunks < (isLoss ? fewestOfLoss : fewestOfNorm) ||
      (isLoss && chunks > mostOfLoss))
    return std::nullopt;
  if (!isLoss && (isRowReduction(op) || takesExponentials(op, Exponentials::Any)))
    return std::nullopt;
  int64_t threads = threadsOfChunks(llvm::divideCeil(chunks, isLoss ? 2 : 4));
  KernelPlan plan = planOfFamily(KernelFamily::ReduceRows);
  plan.threads = threads;
  plan.ctasPerSm = isLoss ? 5 : 2;
  plan.strip = isLoss ? 2 * kRows : kRows;
  plan.pipeline.stages = 1;
  plan.stream.singleRows = int64_t(target.sms) * *plan.ctasPerSm * (isLoss ? 3 : 1);
  return plan;
}

} // namespace

std::optional<KernelPlan> fp4::planWithStrip(Operation *op, const KernelPlan &partial,
                                             int64_t chunks, const hw::TargetModel &target) {
  if (!mayHaveStrip(partial, chunks))
    return std::nullopt;
  if (isa<linalg::GenericOp>(op))
    return topKOf(op) ? std::nullopt : stripOfElements(op, chunks, target);
  if (!mayGainFromStrips(op, target))
    return std::nullopt;
  StripWork work = workOf(cast<QuantizeOp>(op));
  StripShape shape = stagedShapeOf(chunks, work);
  bool hasStage = gainsFromStage(op, work, shape, target);
  if (!hasStage && work.isOfBytes)
    return std::nullopt;
  if (!hasStage)
    shape = shapeOf(chunks, /*hasStage=*/false);
  KernelPlan plan = planOfFamily(KernelFamily::ReduceRows);
  plan.threads = shape.threads;
  plan.ctasPerSm = shape.ctas;
  plan.strip = kRows;
  if (hasStage)
    plan.pipeline.stages = 1;
  if (int64_t rows = singleRowsOf(shape, hasStage, target))
    plan.stream.singleRows = rows;
  return plan;
}

int64_t fp4::fewestOfStrips(const KernelPlan &plan, const hw::TargetModel &target) {
  int64_t wave = int64_t(target.sms) * *plan.ctasPerSm * *plan.strip;
  if (*plan.strip > kRows)
    return 6 * wave;
  return plan.pipeline.stages && *plan.ctasPerSm >= kManyCtas ? wave * 3 / 4 : wave * 3 / 2;
}

/// Fields that only strips have.
static LogicalResult checkNoStrip(Operation *op, const KernelPlan &plan) {
  for (auto [name, value] : {std::pair("stages", plan.pipeline.stages),
                             std::pair("single_rows", plan.stream.singleRows)})
    if (value)
      return misfit(op, name, "is left out without strips", std::to_string(*value));
  return success();
}

LogicalResult fp4::checkStrip(Operation *op, const KernelPlan &plan) {
  constexpr int64_t aligned = 8;
  if (!plan.strip)
    return checkNoStrip(op, plan);
  std::string found = std::to_string(*plan.strip);
  if (!isa<QuantizeOp, linalg::GenericOp>(op) || topKOf(op) || !isRowKernel(op) ||
      !whyNotRowKernel(op).empty())
    return misfit(op, "strip", "is left out for this operation", found);
  if (*plan.strip != kRows && hasTiledScales(op))
    return misfit(op, "strip", "is 4 with tiled scales", found);
  if (*plan.strip < 2 || *plan.strip > kMostRows)
    return misfit(op, "strip", "is 2 to 64", found);
  int64_t chunks = chunksOfRow(widestMatrixOf(op).getDimSize(1)), threads = *plan.threads;
  int64_t perThread = llvm::divideCeil(llvm::alignTo(uint64_t(chunks), aligned), threads);
  if (readsGather(op))
    return misfit(op, "strip", "is left out where rows are gathered", found);
  if (plan.cluster[1] > 1 || plan.stream.itemsPerThread.value_or(1) > 1 ||
      teamOfRow(chunks, threads, 1) < threads ||
      !keepsRow(perThread * keptWordsOfChunk(op), perThread))
    return misfit(op, "strip", "is left out unless all threads of a CTA keep one row", found);
  if (!plan.pipeline.stages)
    return success();
  std::string stages = std::to_string(*plan.pipeline.stages), reason = whyNoStage(op);
  if (*plan.pipeline.stages != 1)
    reason = "is 1";
  if (reason.empty())
    return success();
  return misfit(op, "stages", reason, stages);
}
