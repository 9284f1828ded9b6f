//===- RowKernelPlans.cpp - Plans of kernels in which threads have rows ---===//
//
// A row of up to 16384 elements has the threads that were fastest on an H200, and LongRowPlans.cpp
// plans a longer one.
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "IndexedRowPlans.h"
#include "LongRowPlans.h"
#include "RowSources.h"
#include "RowStripPlans.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/IndexExpressions.h"
#include "fp4/Dialect/Fp4/IR/Prologue.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Fp4/IR/RowCases.h"
#include "fp4/Dialect/Fp4/IR/RowNumbers.h"
#include "fp4/Dialect/Fp4/IR/RowReduction.h"
#include "fp4/ISA/ClusterLimit.h"
#include "fp4/Plans/RowTeams.h"

using namespace mlir;
using namespace fp4;

namespace {

/// Threads of a CTA: the most, those from which on threads have two chunks, and the fewest.
constexpr int64_t kMost = kMostThreadsOfRow, kSome = 256, kFew = kThreadsOfIndexed;
/// Threads of an SM that sum approximate exponentials, for which it has 42 registers each.
constexpr int64_t kThreadsOfLoss = 1536;

/// The most rows of `op` that `plan` is for; none where there may be any number.
std::optional<int64_t> mostRowsOf(Operation *op, const KernelPlan &plan) {
  RankedTensorType matrix = matrixOf(op);
  return matrix.isDynamicDim(0) ? plan.guard.m.most : std::optional(matrix.getDimSize(0));
}

/// Returns true when no SM has several rows: a short row then takes as many threads as have a
/// chunk.
bool hasFewRows(Operation *op, const KernelPlan &plan, const hw::TargetModel &target) {
  std::optional<int64_t> rows = mostRowsOf(op, plan);
  return rows && *rows <= target.sms;
}

/// Threads of a CTA: each warp has a count for each expert in shared memory.
int64_t mostThreads(ExpertOrderOp op) {
  constexpr int64_t counts = 8192, most = 1024, warp = 32;
  return std::min<int64_t>(most, counts / int64_t(llvm::PowerOf2Ceil(op.getExperts())) * warp);
}

//===----------------------------------------------------------------------===//
// The family
//===----------------------------------------------------------------------===//

/// Returns true when the threads of several CTAs may have a row together.
bool mayHaveCluster(Operation *op) {
  return isRowKernel(op) && !isa<TopKOp, ExpertOrderOp>(op) && !topKOf(op);
}

/// Returns true when codes of FP4 are of rows that are gathered.
bool quantizesGather(Operation *op) {
  auto quantize = dyn_cast<QuantizeOp>(op);
  return quantize && hasPackedData(quantize.getFormat()) && readsGather(op);
}

/// Chunks of a thread of a row where there are many rows: codes and scales take so many
/// instructions that four of them should share what a thread computes once, if registers keep the
/// row. An H200 takes 246 us for FP8 of 16384 rows of 8192 elements behind a residual with four,
/// and 226 with two. Threads that wait for several numbers of a row should be few: LayerNorm of
/// 65536 rows of 4096 elements to FP8 of rows takes 193 us in place of 205 with four, and to bf16
/// of 16384 rows of 16384 elements 264 in place of 270, but a cross entropy 70 in place of 68.5. A
/// long row that is gathered has two: NVFP4 of 4096 rows of 16384 elements takes 54.7 us in place
/// of 59 with two.
int64_t chunksOfThread(Operation *op, int64_t chunks) {
  bool waitsOften = llvm::count_if(stepsOf(op), isRowReduction) > 1;
  if (waitsOften && isa<linalg::GenericOp>(op))
    return chunks >= 2 * kMost && 2 * keptWordsOfChunk(op) <= kRowChunk &&
                   !takesExponentials(op, Exponentials::Any)
               ? 4
               : 2;
  if (!waitsOften && chunks > kMost && quantizesGather(op))
    return 2;
  int64_t fewest = waitsOften && hasScaleOfRow(op) ? kSome : kMost;
  return quantizesOneMatrix(op) && chunks >= fewest ? 4 : 2;
}

/// Returns true when rows that nobody combines are scattered as bytes.
bool scattersBytes(Operation *op) {
  constexpr unsigned byte = 8;
  SmallVector<Operation *> steps = stepsOf(op);
  return isa<linalg::GenericOp>(op) && llvm::any_of(steps, isScattered) &&
         llvm::none_of(steps, isRowReduction) &&
         getElementTypeOrSelf(op->getResult(0)).getIntOrFloatBitWidth() <= byte;
}

/// The most chunks of a row that have a thread each where there are many rows. An H200 takes 99 us
/// for FP8 of 65536 rows of 2048 elements with two chunks of a thread, and 110 with one, and 148 in
/// place of 174 for the gradient of a cross entropy. Caches of FP8 take 2.07 in place of 2.43 for
/// 64 rows of 7168 elements with one, and 28.9 in place of 29.6 for 4096 of 8192.
int64_t mostSingleChunks(Operation *op, int64_t cluster) {
  if (scattersBytes(op))
    return kMost;
  if (quantizesOneMatrix(op) || takesExponentials(op, Exponentials::Exact))
    return kFew - 1;
  return cluster > 1 ? kSome : kSome - 1;
}

/// Returns true when a quantizer reads the words of two matrices of bf16.
bool isOfTwoMatrices(Operation *op) {
  return isa<QuantizeOp>(op) && keptWordsOfChunk(op) == kRowChunk;
}

/// CTAs of so many threads for which an SM has registers, where a thread has four chunks.
int64_t ctasOfFourChunks(int64_t threads) {
  constexpr int64_t ofSm = 640; // an H200: 5 CTAs of 128 threads, and 2 of 256
  return std::max<int64_t>(1, ofSm / threads);
}

/// CTAs of so many threads for which an SM has registers, two at most. ptxas spills what does not
/// fit: an H200 takes 32 us for gradients of 100 rows of 16384 elements in two CTAs, and 24 in one.
int64_t ctasOfRow(Operation *op, int64_t chunks, int64_t threads, const hw::TargetModel &target) {
  int64_t perThread = llvm::divideCeil(chunks, threads), words = perThread * keptWordsOfChunk(op);
  if (!keepsRow(words, perThread))
    return 2;
  int64_t registers = registersOf(words + perThread * sharedWordsOfChunk(op));
  return 2 * threads * registers > int64_t(target.limits.registersPerSM) ? 1 : 2;
}

/// CTAs of a row on an SM, for which ptxas is to save registers; none where it needs no limit. An
/// H200 takes 101 us in place of 105 for FP8 of rows of 8192 columns, 65 in place of 98 for 16384
/// columns, 220 in place of 244 for NVFP4 of two matrices. Cross entropies, whose threads wait for
/// two numbers, take 73.9 in place of 85.8 for 16384 x 8192, 132 in place of 139 for 65536 x 4096
/// and 150 in place of 188 for 16384 x 16384. Rows that are gathered to FP4 have three of them:
/// NVFP4 of 65536 rows of 16384 elements takes 690 us in place of 753.
std::optional<int64_t> ctasOfTeam(Operation *op, int64_t chunks, int64_t perThread, int64_t threads,
                                  const KernelPlan &partial, const hw::TargetModel &target) {
  if (perThread == 4)
    return ctasOfFourChunks(partial.threads.value_or(threads));
  if (sumsApproximations(op) && (perThread == 2 || threads == kSome))
    return kThreadsOfLoss / partial.threads.value_or(threads);
  if (threads > kSome && quantizesGather(op))
    return 3;
  if (threads > kSome)
    return ctasOfRow(op, chunks, partial.threads.value_or(threads), target);
  if (threads == kSome && isOfTwoMatrices(op))
    return 3;
  return std::nullopt;
}

/// Plans elements of other columns or gathered rows, for which no thread waits: an H200 rotates
/// 4096 columns in 74 us instead of 92.
void planIndexed(Operation *op, KernelPlan &plan, const KernelPlan &partial,
                 const hw::TargetModel &target) {
  int64_t chunks = chunksOfRow(widestMatrixOf(op).getDimSize(1));
  int64_t perThread = llvm::divideCeil(chunks, kMost);
  plan.threads = addsSomeLongRows(op, chunks) ? kMost : kThreadsOfIndexed;
  if (hasFewRows(op, partial, target))
    plan.threads = std::max(kFew, threadsOfChunks(llvm::divideCeil(chunks, perThread)));
  else if (addsManyShortRows(op, chunks))
    plan.ctasPerSm = kCtasOfManyRows;
  planRotation(op, plan, partial, mostRowsOf(op, partial), target);
}

/// Proposes one chunk of a row to each thread, and two or four from 256 chunks on where there are
/// many rows: they share what a thread computes once, and CTAs of more threads are so few on an SM
/// that all may wait for their sums while none loads. Rows of few chunks share a CTA, and long ones
/// may have several.
KernelPlan proposeAnyRows(Operation *op, const KernelPlan &partial, const hw::TargetModel &target) {
  KernelPlan plan = planOfFamily(KernelFamily::ReduceRows);
  if (auto order = dyn_cast<ExpertOrderOp>(op)) {
    plan.threads = mostThreads(order);
    return plan;
  }
  plan.threads = kSome;
  if (!isRowKernel(op) || !whyNotRowKernel(op).empty())
    return plan;
  int64_t chunks = chunksOfRow(widestMatrixOf(op).getDimSize(1)), cluster = partial.cluster[1];
  if (readsOtherColumnsAlone(op)) {
    planIndexed(op, plan, partial, target);
    return plan;
  }
  if (chunks > 2 * kMost && mayHaveCluster(op)) {
    bool isFew = hasFewRows(op, partial, target);
    planLongRows(op, plan, partial, {isFew ? mostRowsOf(op, partial) : std::nullopt, needsRow(op)},
                 target);
    return plan;
  }
  std::optional<KernelPlan> strips = planWithStrip(op, partial, chunks, target);
  if (strips && mostRowsOf(op, partial).value_or(INT64_MAX) >= fewestOfStrips(*strips, target))
    return *strips;
  chunks = llvm::divideCeil(chunks, std::max<int64_t>(1, cluster));
  int64_t perThread = llvm::divideCeil(chunks, kMost);
  if (chunks > mostSingleChunks(op, cluster) && !hasFewRows(op, partial, target))
    perThread = std::max<int64_t>(perThread, chunksOfThread(op, chunks));
  int64_t threads = threadsOfChunks(llvm::divideCeil(chunks, perThread));
  bool isAlone = perThread > 1 || threads >= kFew;
  plan.threads = isAlone ? threads : kFew / threads * threads;
  plan.ctasPerSm = ctasOfTeam(op, chunks, perThread, *plan.threads, partial, target);
  planRotation(op, plan, partial, mostRowsOf(op, partial), target);
  return plan;
}

/// Rows up to which the launches of rotations overlap: 32 heads for each SM.
int64_t mostOfRotations(const hw::TargetModel &target) { return 32 * int64_t(target.sms); }

/// Launches of few rows overlap: an H200 takes 2.35 us for RMSNorm of 64 x 7168 bf16 in place of
/// 2.76, and 2.77 in place of 3.19 to NVFP4; a rotation takes 2.29 in place of 2.85, with CTAs of
/// 64 threads, and a norm of heads with a rotation to NVFP4 2.50 in place of 2.71 with those of
/// 128. Rows that are scattered, whatever their number, wait for the kernel before them in their
/// CTAs.
KernelPlan proposeRows(Operation *op, const KernelPlan &partial, const hw::TargetModel &target) {
  KernelPlan plan = proposeAnyRows(op, partial, target);
  if (!mayHaveCluster(op))
    return plan;
  if (llvm::any_of(stepsOf(op), isScattered))
    plan.pdl = LaunchDependents::AtEnd;
  if (!partial.guard.m.most)
    return plan;
  bool areFewHeads = isOfHeads(op) && *partial.guard.m.most <= mostOfRotations(target);
  if (areFewHeads) {
    plan.threads = kFew / 2;
    plan.ctasPerSm = std::nullopt;
  }
  if (areFewHeads || hasFewRows(op, partial, target))
    plan.pdl = LaunchDependents::InTurn;
  return plan;
}

/// Returns true when a thread may have several rows: they are in its registers, and it has no
/// other work beside them.
bool mayHaveRows(Operation *op) { return mayHaveCluster(op) && whyNotRowKernel(op).empty(); }

/// Checks the rows of a thread. A row of the lanes of a warp is folded as registers have it, so
/// that those of a thread must all be kept (keepsRow).
LogicalResult checkRowsOfThread(Operation *op, const KernelPlan &plan) {
  constexpr int64_t most = 8;
  int64_t rows = plan.stream.itemsPerThread.value_or(1);
  if (rows == 1)
    return success();
  if (!mayHaveRows(op) || plan.cluster[1] > 1)
    return misfit(op, "rows_per_thread",
                  mayHaveRows(op) ? "is 1 in clusters" : "is 1 for this operation", Twine(rows));
  constexpr int64_t warp = 32;
  if (chunksOfRow(widestMatrixOf(op).getDimSize(1)) > warp)
    return checkAtMost(op, "rows_per_thread", rows, most);
  int64_t kept = std::min(rows, most);
  while (kept > 1 && keptWordsOfChunk(op, kept) > kMostRowWords)
    --kept;
  return checkAtMost(op, "rows_per_thread", rows, kept);
}

LogicalResult checkCluster(Operation *op, const KernelPlan &plan, const hw::TargetModel &target) {
  auto [rows, columns, none] = plan.cluster;
  if (!rows || (rows == 1 && columns == 1))
    return success();
  std::string found = spell(plan.cluster);
  if (!mayHaveCluster(op))
    return misfit(op, "cluster", "is [1, 1] for this operation", found);
  int64_t most = int64_t(hw::mostClusterCtas(target));
  if (rows != 1 || columns > most)
    return misfit(op, "cluster",
                  "is [1, n] with n up to " + Twine(most) + " on " + StringRef(target.name), found);
  return success();
}

/// Bytes of static shared memory that a kernel may have, but for what other reductions take.
constexpr int64_t kMostSegmentBytes = 48 * 1024 - 256;

/// Bytes of shared memory for the segments of a row: each reduction has places of its own
/// (RowTeam). Loops that load several chunks together visit up to an eighth more chunks than there
/// are.
int64_t bytesOfSegments(Operation *op, const KernelPlan &plan) {
  constexpr int64_t word = 4, warp = 32, eighth = 8;
  int64_t chunks = chunksOfRow(widestMatrixOf(op).getDimSize(1));
  int64_t team = teamOfRow(chunks, *plan.threads, std::max<int64_t>(plan.cluster[1], 1));
  int64_t reductions = llvm::count_if(stepsOf(op), [](Operation *step) {
    return isRowReduction(step) && !selectedColumnOf(cast<linalg::LinalgOp>(step));
  });
  int64_t visited = int64_t(llvm::alignTo(chunks, team));
  visited += visited / eighth;
  int64_t rows = plan.stream.itemsPerThread.value_or(1);
  return rows * (reductions + needsRow(op)) * word * int64_t(llvm::divideCeil(visited, warp));
}

LogicalResult checkSegments(Operation *op, const KernelPlan &plan) {
  int64_t bytes = bytesOfSegments(op, plan);
  if (bytes <= kMostSegmentBytes)
    return success();
  return withNote(op->emitOpError("must have rows whose reductions take up to ")
                      << kMostSegmentBytes << " bytes of shared memory, but got "
                      << widestMatrixOf(op).getDimSize(1) << " columns, which take " << bytes,
                  "reduce parts of a row as rows of their own, and their results afterwards");
}

/// Checks the threads of an amax of rows as those of other reductions. Threads of a row kernel meet
/// through shared memory, whatever their number.
LogicalResult checkRows(Operation *op, const KernelPlan &plan, const hw::TargetModel &target) {
  auto order = dyn_cast<ExpertOrderOp>(op);
  if (failed(checkCluster(op, plan, target)) || failed(checkRowsOfThread(op, plan)) ||
      failed(checkStrip(op, plan)) ||
      (order && failed(checkAtMost(op, "threads", *plan.threads, mostThreads(order)))))
    return failure();
  if (!isRowKernel(op))
    return checkReduction(op, plan, target);
  if (whyNotRowKernel(op).empty() && failed(checkSegments(op, plan)))
    return failure();
  return checkThreads(op, *plan.threads, plan.ctasPerSm.value_or(1), target);
}

} // namespace

/// Why plans of `op` may not depend on its rows; empty where they are dynamic, and the kernel
/// writes each of them in its own place and nothing beside them.
static std::string whyNoCases(Operation *op) {
  if (!mayHaveRows(op) || isa<AmaxOp>(op))
    return "its kernel has other work beside its rows";
  return whyOnePlan(op, matrixOf(op));
}

/// The plan that is proposed for a range of rows.
static KernelPlan proposeFor(Operation *op, SizeRange rows, const hw::TargetModel &target) {
  KernelPlan plan = planOfFamily(KernelFamily::ReduceRows);
  plan.guard.m = rows;
  return plan.orElse(proposeRows(op, plan, target));
}

/// The last rows of cases beside few rows: those without strips, or with which threads of several
/// heads do not fill all SMs, and those of which threads have fewer heads than in `last`.
static SmallVector<int64_t> endsOfCases(Operation *op, const KernelPlan &last,
                                        const hw::TargetModel &target) {
  if (last.strip)
    return {fewestOfStrips(last, target) - 1};
  if (last.stream.itemsPerThread.value_or(1) == 1)
    return {};
  int64_t most = mostOfSomeHeads(op, last, target);
  KernelPlan some = most ? proposeFor(op, {1, most}, target) : last;
  return {fewestOfHeads(op, some, target) - 1, most};
}

/// Proposes no cases for long rows: of the plans that the estimate chooses for few of them, some
/// took longer on an H200.
static SmallVector<Attribute> proposeCases(Operation *op, const KernelPlan &last,
                                           const hw::TargetModel &target) {
  if (chunksOfRow(widestMatrixOf(op).getDimSize(1)) > 2 * kMost)
    return {};
  SmallVector<int64_t> ends = endsOfCases(op, last, target);
  int64_t most = isOfHeads(op) ? mostOfRotations(target) : int64_t(target.sms);
  if (!ends.empty() && !last.strip)
    most = std::min(most, ends.front());
  KernelPlan few = proposeFor(op, {1, most}, target), apart = few;
  apart.pdl = last.pdl; // launches that overlap are not worth another kernel
  if (apart.fieldsUnlike(last).empty() || failed(checkRows(op, few, target)))
    return {};
  SmallVector<Attribute> cases = {CaseAttr::get(op->getContext(), few, std::nullopt)};
  for (int64_t end : ends) {
    if (end <= most)
      continue;
    KernelPlan some = proposeFor(op, {most + 1, end}, target);
    if (failed(checkRows(op, some, target)))
      continue;
    cases.push_back(CaseAttr::get(op->getContext(), some, std::nullopt));
    most = end;
  }
  return cases;
}

constexpr FamilyRules fp4::kReduceRowsRules = {
    KernelFamily::ReduceRows, requireNothing, proposeRows, checkRows, whyNoCases, proposeCases};
