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

LogicalResult fp4::checkStrip(Operation *op, const KernelPlan &plan) {
  constexpr int64_t aligned = 8;
  if (!plan.strip)
    return success();
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
  return success();
}
