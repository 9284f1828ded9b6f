//===- IndexedRowPlans.cpp - Plans of rows that read others ---------------===//
#include "IndexedRowPlans.h"
#include "RowSources.h"

#include "fp4/Dialect/Fp4/IR/IndexExpressions.h"
#include "fp4/Dialect/Fp4/IR/Prologue.h"
#include "fp4/Dialect/Fp4/IR/RowNumbers.h"
#include "fp4/Dialect/Fp4/IR/RowReduction.h"
#include "fp4/Plans/RowTeams.h"

using namespace mlir;
using namespace fp4;

/// Returns true when an element is computed of other columns than its own.
static bool readsOtherColumns(Operation *op) {
  return llvm::any_of(stepsOf(op), [](Operation *step) {
    auto generic = dyn_cast<linalg::LinalgOp>(step);
    return generic && llvm::any_of(generic.getDpsInputOperands(), [&](OpOperand *input) {
             return isIndexedByExpressions(generic, input);
           });
  });
}

/// Returns true when a thread waits for no other thread: nothing is combined along rows.
bool fp4::readsOtherColumnsAlone(Operation *op) {
  return !llvm::any_of(stepsOf(op), isRowReduction) && !needsRow(op) && readsOtherColumns(op);
}

bool fp4::isOfHeads(Operation *op) {
  constexpr int64_t most = kThreadsOfIndexed / 2;
  return readsOtherColumns(op) && chunksOfRow(widestMatrixOf(op).getDimSize(1)) <= most;
}

/// Words of a chunk of some rows that are gathered: 32 are in registers beside what they take.
static constexpr double kSomeGathered = 32;

static double gatheredWordsOf(Operation *op) {
  double words = 0;
  for (const RowSource &source : sourcesOf(op))
    if (gatherOf(std::get<Value>(source)))
      words += wordsOfChunk(std::get<Value>(source));
  return words;
}

/// Returns true when a thread of a long row should have one chunk, so that no loop parts the loads
/// of the rows that it adds. An H200 takes 317 us in place of 401 for sums of four rows of 8192
/// elements, and 676 in place of 576 for eight, which fill its registers.
bool fp4::addsSomeLongRows(Operation *op, int64_t chunks) {
  constexpr double fewest = 24;
  double words = gatheredWordsOf(op);
  return isa<linalg::GenericOp>(op) && chunks >= kThreadsOfLongSums && words >= fewest &&
         words <= kSomeGathered;
}

/// Returns true when a thread adds one chunk of so many rows that ptxas begins their loads one
/// after the other, to have more CTAs, unless it knows that six are enough: an H200 takes 568 us in
/// place of 812 for sums of eight rows of 65536 of 2048 elements.
bool fp4::addsManyShortRows(Operation *op, int64_t chunks) {
  return isa<linalg::GenericOp>(op) && chunks <= kThreadsOfIndexed &&
         gatheredWordsOf(op) > kSomeGathered;
}

/// Returns true when results of a rotation are bytes that no quantizer makes: FP8 under one scale.
static bool rotatesToBytes(Operation *op) {
  constexpr unsigned byte = 8;
  return isa<linalg::GenericOp>(op) && readsOtherColumnsAlone(op) &&
         getElementTypeOrSelf(op->getResult(0)).getIntOrFloatBitWidth() <= byte;
}

/// Heads of a thread, where there are not many.
static constexpr int64_t kSomeHeads = 2;

/// Heads of a thread that rotates many of them: they have the angles of their token together. An
/// H200 takes 104 us in place of 117 for NVFP4 of 16384 rows of 8192 elements with four, and behind
/// a norm of heads 134 in place of 147 with two; bf16 takes as long with one. Two are enough for
/// FP8 under one scale: 13.1 us in place of 14.4 of 4096 rows of 2048 elements, 13.7 with four.
static int64_t headsOfThread(Operation *op) {
  int64_t heads = readsOtherColumnsAlone(op) && isa<QuantizeOp>(op) ? 4 : kSomeHeads;
  bool haveToken = llvm::any_of(sourcesOf(op), [&](const RowSource &source) {
    return sharesRows(std::get<1>(source), heads);
  });
  bool gains = isa<QuantizeOp>(op) || rotatesToBytes(op) || !readsOtherColumnsAlone(op);
  return gains && haveToken && keptWordsOfChunk(op, heads) <= kMostRowWords ? heads : 1;
}

/// Threads of a CTA whose threads have several heads. CTAs of four warps take 144 us in place of
/// 140.5 for NVFP4 behind a norm of heads, and 150.5 in place of 147 for bf16.
static constexpr int64_t kThreadsOfHeads = 64;

/// CTAs on an SM for the registers of a thread with several heads: an H200 takes 32.6 us in place
/// of 34.8 for FP8 of 16384 rows of 2048 elements with ten, not six.
static int64_t ctasOfHeads(Operation *op) { return rotatesToBytes(op) ? 10 : 6; }

/// The fewest heads with which threads that have several of them fill all SMs.
int64_t fp4::fewestOfHeads(Operation *op, const KernelPlan &plan, const hw::TargetModel &target) {
  int64_t chunks = chunksOfRow(widestMatrixOf(op).getDimSize(1));
  int64_t together = 2 * *plan.threads / std::max<int64_t>(2, threadsOfChunks(chunks));
  return int64_t(target.sms) * *plan.ctasPerSm * together * *plan.stream.itemsPerThread;
}

/// Codes have instructions enough for two heads of a thread up to ten waves of such threads, whose
/// CTAs take turns sooner: an H200 takes 13.1 us in place of 14.7 for NVFP4 of 4096 rows of 2048
/// elements and 33.9 in place of 34.9 of 16384, but 108 in place of 106 of 65536.
int64_t fp4::mostOfSomeHeads(Operation *op, const KernelPlan &plan, const hw::TargetModel &target) {
  constexpr int64_t waves = 10;
  bool hasMany = plan.stream.itemsPerThread.value_or(1) > kSomeHeads;
  return hasMany ? waves * fewestOfHeads(op, plan, target) : 0;
}

/// Proposes heads of a thread and CTAs on an SM for a rotation, which ptxas gives more registers
/// than it needs.
void fp4::planRotation(Operation *op, KernelPlan &plan, const KernelPlan &partial,
                       std::optional<int64_t> mostRows, const hw::TargetModel &target) {
  if (*plan.threads != kThreadsOfIndexed || partial.threads || !readsOtherColumns(op))
    return;
  KernelPlan several = plan;
  several.stream.itemsPerThread = headsOfThread(op);
  several.threads = kThreadsOfHeads;
  several.ctasPerSm = ctasOfHeads(op);
  bool gains = *several.stream.itemsPerThread > 1 && !partial.stream.itemsPerThread;
  if (mostRows && *mostRows <= mostOfSomeHeads(op, several, target))
    several.stream.itemsPerThread = kSomeHeads;
  if (gains && mostRows.value_or(INT64_MAX) >= fewestOfHeads(op, several, target)) {
    plan = several;
    return;
  }
  if (gains)
    plan.stream.itemsPerThread = 1;
  if (isa<QuantizeOp>(op))
    plan.ctasPerSm = 5;
}
