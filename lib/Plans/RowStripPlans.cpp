//===- RowStripPlans.cpp - Plans of rows that a CTA takes one by one ------===//
#include "RowStripPlans.h"
#include "RowSources.h"

#include "fp4/Dialect/Fp4/IR/Prologue.h"
#include "fp4/Dialect/Fp4/IR/RowNumbers.h"
#include "fp4/Plans/RowTeams.h"

using namespace mlir;
using namespace fp4;

namespace {

/// Rows of a strip, and the fewest chunks of a row of a CTA.
constexpr int64_t kRows = 4, kFewest = 128;
/// Bytes of rows for which a CTA has room.
constexpr int64_t kMostStageBytes = 32768;

/// Returns true when rows of a matrix are gathered.
bool readsGather(Operation *op) {
  return llvm::any_of(sourcesOf(op), [](const RowSource &source) {
    return bool(gatherOf(std::get<Value>(source)));
  });
}

/// Returns true when a CTA should take rows one after the other: codes and tiled scales of FP4
/// behind one matrix, where integer instructions make the codes. An H200 takes 97 us in place of
/// 102 for NVFP4 of 16384 rows of 8192 elements.
bool gainsFromStrips(Operation *op, const hw::TargetModel &target) {
  auto quantize = dyn_cast<QuantizeOp>(op);
  return quantize && quantizesOneMatrix(op) && !target.features.hasFp4Convert &&
         hasPackedData(quantize.getFormat()) && !quantize.getRng() && !amaxOfRows(quantize) &&
         scaleLayout(cast<RankedTensorType>(quantize.getScales().getType())) && !readsGather(op);
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

/// Why no row of `op` may wait in shared memory; empty if it may.
std::string whyNoStage(Operation *op) {
  if (widestMatrixOf(op).getDimSize(1) % kRowChunk != 0)
    return "is left out where rows are no whole chunks";
  return bytesOfStage(op) > kMostStageBytes ? "is left out where rows take more than 32768 bytes"
                                            : "";
}

/// Threads and CTAs of a row of `chunks` that are kept beside those of the next one: four chunks of
/// a thread take 128 registers, and two 80.
void planStrip(KernelPlan &plan, int64_t chunks) {
  constexpr int64_t ofFour = 512, ofTwo = 768, fewest = 64;
  int64_t four = threadsOfChunks(llvm::divideCeil(chunks, 4));
  bool hasFour = four >= fewest && 16 * (4 * four - chunks) <= chunks;
  plan.threads = hasFour ? four : threadsOfChunks(llvm::divideCeil(chunks, 2));
  plan.ctasPerSm = (hasFour ? ofFour : ofTwo) / *plan.threads;
  plan.strip = kRows;
}

} // namespace

std::optional<KernelPlan> fp4::planWithStrip(Operation *op, const KernelPlan &partial,
                                             int64_t chunks, const hw::TargetModel &target) {
  if (!mayHaveStrip(partial, chunks) || !gainsFromStrips(op, target))
    return std::nullopt;
  KernelPlan plan = planOfFamily(KernelFamily::ReduceRows);
  planStrip(plan, chunks);
  return plan;
}

int64_t fp4::fewestOfStrips(const KernelPlan &plan, const hw::TargetModel &target) {
  return int64_t(target.sms) * *plan.ctasPerSm * *plan.strip * 3 / 2;
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
  if (!isa<QuantizeOp>(op) || !isRowKernel(op) || !whyNotRowKernel(op).empty())
    return misfit(op, "strip", "is left out for this operation", found);
  if (*plan.strip != kRows)
    return misfit(op, "strip", "is 4", found);
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
