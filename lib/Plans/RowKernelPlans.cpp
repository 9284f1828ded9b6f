//===- RowKernelPlans.cpp - Plans of kernels in which threads have rows ---===//
//
// A row of up to 16384 elements has the threads that were fastest on an H200. For a longer one the
// planner compares one CTA with the CTAs of a cluster by one estimate of clocks. Both may keep the
// row in registers, or read it again for each number of it.
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "RowSources.h"
#include "RowStripPlans.h"

#include "fp4/Dialect/Fp4/IR/IndexExpressions.h"
#include "fp4/Dialect/Fp4/IR/Prologue.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Fp4/IR/RowCases.h"
#include "fp4/Dialect/Fp4/IR/RowNumbers.h"
#include "fp4/Dialect/Fp4/IR/RowReduction.h"
#include "fp4/ISA/ClusterLimit.h"
#include "fp4/Plans/RowTeams.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace fp4;

namespace {

/// Threads of a CTA: the most, those from which on threads have two chunks, and the fewest.
constexpr int64_t kMost = 512, kSome = 256, kFew = 128;

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

/// Returns true when a quantizer needs a number of the whole row.
bool needsRow(Operation *op) {
  auto quantize = dyn_cast<QuantizeOp>(op);
  return isa<AmaxOp>(op) || (quantize && (amaxOfRows(quantize) || quantize.hasF32Scales()));
}

/// Returns true when an element is computed of other columns than its own.
bool readsOtherColumns(Operation *op) {
  return llvm::any_of(stepsOf(op), [](Operation *step) {
    auto generic = dyn_cast<linalg::LinalgOp>(step);
    return generic && llvm::any_of(generic.getDpsInputOperands(), [&](OpOperand *input) {
             return isIndexedByExpressions(generic, input);
           });
  });
}

/// Returns true when a thread waits for no other thread: nothing is combined along rows.
bool readsOtherColumnsAlone(Operation *op) {
  return !llvm::any_of(stepsOf(op), isRowReduction) && !needsRow(op) && readsOtherColumns(op);
}

/// Returns true when a thread of a long row should have one chunk, so that no loop parts the loads
/// of the rows that it adds. An H200 takes 317 us in place of 401 for sums of four rows of 8192
/// elements, and 676 in place of 576 for eight, which fill its registers.
bool addsSomeLongRows(Operation *op, int64_t chunks) {
  constexpr double fewest = 24, most = 32; // words of a chunk
  double words = 0;
  for (const RowSource &source : sourcesOf(op))
    if (gatherOf(std::get<Value>(source)))
      words += wordsOfChunk(std::get<Value>(source));
  return isa<linalg::GenericOp>(op) && chunks >= kMost && words >= fewest && words <= most;
}

/// Heads of a thread that rotates many of them: they have the angles of their token together. An
/// H200 takes 104 us in place of 117 for NVFP4 of 16384 rows of 8192 elements with four, 106 in
/// place of 123 for FP8, and behind a norm of heads 134 in place of 147 with two; bf16 takes as
/// long with one.
int64_t headsOfThread(Operation *op) {
  int64_t heads = readsOtherColumnsAlone(op) ? (isa<QuantizeOp>(op) ? 4 : 1) : 2;
  bool haveToken = llvm::any_of(sourcesOf(op), [&](const RowSource &source) {
    return sharesRows(std::get<1>(source), heads);
  });
  return haveToken && keptWordsOfChunk(op, heads) <= kMostRowWords ? heads : 1;
}

/// CTAs on an SM for the registers of a thread with several heads.
constexpr int64_t kCtasOfHeads = 3;

/// The fewest heads with which threads that have several of them fill all SMs.
int64_t fewestOfHeads(Operation *op, const KernelPlan &plan, const hw::TargetModel &target) {
  int64_t chunks = chunksOfRow(widestMatrixOf(op).getDimSize(1));
  int64_t together = 2 * *plan.threads / std::max<int64_t>(2, threadsOfChunks(chunks));
  return int64_t(target.sms) * kCtasOfHeads * together * *plan.stream.itemsPerThread;
}

/// Proposes heads of a thread and CTAs on an SM for a rotation, which ptxas gives more registers
/// than it needs.
void planRotation(Operation *op, KernelPlan &plan, const KernelPlan &partial,
                  const hw::TargetModel &target) {
  if (*plan.threads != kFew || partial.threads || !readsOtherColumns(op))
    return;
  KernelPlan several = plan;
  several.stream.itemsPerThread = headsOfThread(op);
  several.ctasPerSm = kCtasOfHeads;
  bool gains = *several.stream.itemsPerThread > 1 && !partial.stream.itemsPerThread;
  if (gains && mostRowsOf(op, partial).value_or(INT64_MAX) >= fewestOfHeads(op, several, target)) {
    plan = several;
    return;
  }
  if (gains)
    plan.stream.itemsPerThread = 1;
  if (isa<QuantizeOp>(op))
    plan.ctasPerSm = 5;
}

/// Threads of a CTA: each warp has a count for each expert in shared memory.
int64_t mostThreads(ExpertOrderOp op) {
  constexpr int64_t counts = 8192, most = 1024, warp = 32;
  return std::min<int64_t>(most, counts / int64_t(llvm::PowerOf2Ceil(op.getExperts())) * warp);
}

//===----------------------------------------------------------------------===//
// Long rows
//===----------------------------------------------------------------------===//

/// The work on one row.
struct RowWork {
  int64_t chunks = 0;
  int64_t words = 0;       ///< words of a chunk in memory
  int64_t numbers = 0;     ///< numbers for which threads wait, one after the other
  int64_t passes = 0;      ///< passes over memory, where no registers keep the row
  double stored = 0;       ///< words of a chunk that are written
  double instructions = 0; ///< instructions of a thread for an element
};

/// CTAs of a row with their threads, and the chunks of each.
struct RowShape {
  int64_t ctas = 1, threads = kMost, perThread = 1;
};

/// Instructions of a step for an element: a function takes about 26, others with their conversions
/// one and a half. A thread computes once what is the same for all elements of a row.
double instructionsOf(Operation *step) {
  constexpr double function = 26, other = 1.5, codes = 12;
  auto generic = dyn_cast<linalg::GenericOp>(step);
  if (!generic)
    return codes;
  auto linalgOp = cast<linalg::LinalgOp>(step);
  llvm::DenseSet<Value> ofElements;
  for (OpOperand *operand : linalgOp.getOpOperandsMatchingBBargs())
    if (!linalgOp.isDpsInput(operand) || indexPairOf(linalgOp, operand).column)
      ofElements.insert(linalgOp.getMatchingBlockArgument(operand));
  double sum = 0;
  for (Operation &inner : generic.getBody()->without_terminator()) {
    bool isOfElement =
        isa<linalg::IndexOp>(inner) ||
        llvm::any_of(inner.getOperands(), [&](Value value) { return ofElements.contains(value); });
    if (!isOfElement)
      continue;
    ofElements.insert(inner.getResults().begin(), inner.getResults().end());
    sum += isa<math::MathDialect>(inner.getDialect()) ? function : other;
  }
  return sum;
}

bool isMatrix(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getRank() == 2 && !isNumbersOfRows(tensor);
}

RowWork workOf(Operation *op) {
  RowWork work{.chunks = chunksOfRow(widestMatrixOf(op).getDimSize(1))};
  SmallVector<Operation *> steps = stepsOf(op);
  for (Operation *step : steps) {
    auto generic = dyn_cast<linalg::GenericOp>(step);
    bool isSum = isRowReduction(step), isOfOneColumn = isSum && selectedColumnOf(generic);
    work.numbers += isSum;
    work.passes += isSum && !isOfOneColumn;
    bool isWritten = step == op || (generic && isStored(generic));
    for (Value result : step->getResults())
      if (isWritten && isMatrix(result.getType()))
        work.stored += wordsOfChunk(result);
    if (!generic || isMatrix(step->getResult(0).getType()) || (isSum && !isOfOneColumn))
      work.instructions += instructionsOf(step);
  }
  llvm::SetVector<Value> tensors;
  for (auto [tensor, row, column] : sourcesOf(op))
    if (isMatrix(tensor.getType()) && tensors.insert(tensor))
      work.words += int64_t(wordsOfChunk(tensor));
  work.numbers += needsRow(op);
  work.passes = std::max<int64_t>(1, work.passes + needsRow(op) + (work.stored > 0));
  work.words = std::max<int64_t>(1, work.words);
  return work;
}

/// Returns true when registers keep the row.
bool isKept(const RowWork &work, const RowShape &shape) {
  return keepsRow(work.words * shape.perThread, shape.perThread);
}

/// Registers of a thread that keeps so many words: these and about 32 others.
int64_t registersOf(int64_t words) {
  constexpr int64_t others = 32, granule = 8;
  return int64_t(llvm::alignTo(uint64_t(words + others), granule));
}

/// CTAs of a shape for which an SM has registers and threads: of a row that is not kept, those of
/// two CTAs on an SM.
int64_t fitting(const RowWork &work, const RowShape &shape, const hw::TargetModel &target) {
  int64_t registers = isKept(work, shape) ? registersOf(work.words * shape.perThread) : 64;
  int64_t fit = int64_t(target.limits.registersPerSM) / (shape.threads * registers);
  return std::min(fit, mostCtasPerSm(shape.threads, target));
}

/// CTAs of a shape that an SM has at a time.
int64_t residents(const RowWork &work, const RowShape &shape, const hw::TargetModel &target) {
  constexpr int64_t most = 4;
  return std::clamp<int64_t>(fitting(work, shape, target), 1, most);
}

/// Clocks of an SM in which loads and stores of one row are moved, by all CTAs of the row. Another
/// pass over a row finds it in the L2 cache where that has room for the rows of all CTAs.
double clocksOfMemory(const RowWork &work, const RowShape &shape, int64_t together,
                      const hw::TargetModel &target) {
  constexpr double memory = 20, cache = 42, room = 0.8;
  double bytes = 4 * double(work.chunks * work.words);
  double rows = double(target.sms) * double(together) / double(shape.ctas);
  bool isCached = rows * bytes <= room * double(target.l2Bytes);
  double more = isKept(work, shape) ? 0 : double(work.passes - 1) * bytes;
  return (bytes + 4 * double(work.chunks) * work.stored) / memory +
         more / (isCached ? cache : memory);
}

/// SMs on which the CTAs of a shape find room at a time: at least those of one cluster.
int64_t smsOf(const RowWork &work, const RowShape &shape, const hw::TargetModel &target) {
  if (!work.numbers || shape.ctas == 1)
    return int64_t(target.sms);
  return std::max<int64_t>(hw::clustersAtATime(target, shape.ctas), 1) * shape.ctas;
}

/// Clocks in which a CTA keeps its SM busy, and in which it waits.
struct CtaClocks {
  double busy = 0, idle = 0;

  double all() const { return busy + idle; }
};

/// Clocks in which an SM issues the instructions for the elements of so many chunks.
double clocksOfChunks(const RowWork &work, double chunks) {
  constexpr double issue = 128;
  return chunks * kRowChunk * work.instructions / issue;
}

/// Clocks of a CTA of which `loads` and `arithmetic` are those of its memory and instructions. CTAs
/// beside each other hide what one of them waits for, but for a quarter of its loads or its
/// instructions. The constants agree with what fp4-run --time predicts for norms and losses of
/// 16384 to 151936 columns on an H200, and for one CTA with measured losses.
CtaClocks clocksOfCta(const RowWork &work, const RowShape &shape, double loads, double arithmetic) {
  constexpr double hidden = 0.75, first = 1500, barrier = 200, ofCluster = 800, ofCta = 350;
  bool isCluster = work.numbers && shape.ctas > 1;
  double shorter = std::min(loads, arithmetic);
  CtaClocks clocks{.busy = std::max(loads, arithmetic) + (1 - hidden) * shorter,
                   .idle = hidden * shorter + first +
                           double(work.numbers) * (isCluster ? ofCluster : barrier)};
  if (isCluster)
    clocks.idle += double(shape.ctas) * ofCta;
  return clocks;
}

/// Clocks of an SM for one row, where there are many (first), and of the CTAs of one row alone.
/// Fewer than 32 warps do not issue an instruction in each clock, and some SMs have no cluster.
std::pair<double, double> clocksOf(const RowWork &work, const RowShape &shape,
                                   const hw::TargetModel &target) {
  constexpr double threads = 1024, lastCtas = 1. / 64;
  int64_t together = residents(work, shape, target);
  double ctas = double(shape.ctas);
  double arithmetic = clocksOfChunks(work, double(work.chunks) / ctas) *
                      std::max(1.0, threads / double(shape.threads * together)) *
                      double(target.sms) / double(smsOf(work, shape, target));
  double loads = clocksOfMemory(work, shape, together, target) / ctas;
  CtaClocks cta = clocksOfCta(work, shape, loads, arithmetic);
  double many = ctas * std::max(cta.busy, cta.all() / double(together));
  return {many * (1 + ctas * lastCtas), cta.all()};
}

/// Clocks until the fullest SM has ended its CTAs of `rows` rows. Threads without a chunk compute,
/// too, and each warp has instructions for the kernel and for each number. Memory gives twice as
/// much to an SM where half of them have no CTA. The constants agree with what fp4-run --time
/// predicts for norms and softmaxes of 8 to 132 rows on an H200.
double clocksOfFew(const RowWork &work, const RowShape &shape, int64_t rows,
                   const hw::TargetModel &target) {
  constexpr double warp = 32, schedulers = 4, ofWarp = 200, ofNumber = 150, faster = 2;
  int64_t ofSm = llvm::divideCeil(rows * shape.ctas, smsOf(work, shape, target));
  int64_t together = std::min(ofSm, residents(work, shape, target));
  double warps = double(shape.threads) / warp;
  double arithmetic = clocksOfChunks(work, double(shape.threads * shape.perThread)) +
                      warps / schedulers * (ofWarp + ofNumber * double(work.numbers));
  double rate = std::clamp(double(target.sms) / double(rows * shape.ctas), 1.0, faster);
  double loads = clocksOfMemory(work, shape, together, target) / double(shape.ctas) / rate;
  CtaClocks cta = clocksOfCta(work, shape, loads, arithmetic);
  return std::max(double(ofSm) * cta.busy, double(llvm::divideCeil(ofSm, together)) * cta.all());
}

/// The shapes with `ctas` CTAs that keep a row.
void addKept(SmallVectorImpl<RowShape> &shapes, const RowWork &work, int64_t ctas,
             const hw::TargetModel &target) {
  constexpr int64_t most = 768;
  for (int64_t perThread = 1; keepsRow(perThread * work.words, perThread); ++perThread) {
    int64_t threads = threadsOfChunks(llvm::divideCeil(work.chunks, ctas * perThread));
    RowShape shape{ctas, threads, perThread};
    if (threads >= kFew && threads <= most && fitting(work, shape, target) > 0)
      shapes.push_back(shape);
  }
}

/// All shapes, or those with the CTAs of `cluster` if it has some. Clusters of four CTAs and more
/// are proposed where the SMs on which they find room are known.
SmallVector<RowShape> shapesOf(const RowWork &work, int64_t cluster,
                               const hw::TargetModel &target) {
  SmallVector<RowShape> shapes;
  int64_t most = cluster                          ? cluster
                 : hw::knowsSmsOfClusters(target) ? int64_t(target.limits.maxClusterSize)
                                                  : 2;
  for (int64_t ctas = std::max<int64_t>(1, cluster); ctas <= most; ctas *= 2) {
    shapes.push_back({ctas, kMost, int64_t(llvm::divideCeil(work.chunks, ctas * kMost))});
    addKept(shapes, work, ctas, target);
  }
  return shapes;
}

/// The shape of fewest clocks for many rows, and among those within 10 % that with the fewest
/// clocks for one row alone.
RowShape shapeOfMany(const RowWork &work, ArrayRef<RowShape> shapes,
                     const hw::TargetModel &target) {
  constexpr double close = 1.1;
  auto clocks = llvm::map_to_vector(
      shapes, [&](const RowShape &shape) { return clocksOf(work, shape, target); });
  double most = close * llvm::min_element(clocks)->first;
  size_t best = 0;
  for (size_t i = 1; i < shapes.size(); ++i) {
    bool isBetter = clocks[best].first > most ? clocks[i].first <= most
                                              : clocks[i].second < clocks[best].second;
    if (clocks[i].first <= most && isBetter)
      best = i;
  }
  return shapes[best];
}

/// The shape of fewest clocks for few rows. Their CTAs have kMost threads, because fewer would have
/// few loads in flight.
RowShape shapeOfFew(const RowWork &work, ArrayRef<RowShape> shapes, int64_t rows,
                    const hw::TargetModel &target) {
  auto full =
      llvm::filter_to_vector(shapes, [](const RowShape &shape) { return shape.threads == kMost; });
  auto clocks = llvm::map_to_vector(
      full, [&](const RowShape &shape) { return clocksOfFew(work, shape, rows, target); });
  return full[llvm::min_element(clocks) - clocks.begin()];
}

void planLongRows(Operation *op, KernelPlan &plan, const KernelPlan &partial,
                  const hw::TargetModel &target) {
  RowWork work = workOf(op);
  SmallVector<RowShape> shapes = shapesOf(work, partial.cluster[1], target);
  RowShape best =
      hasFewRows(op, partial, target)
          ? shapeOfFew(work, shapes, std::max<int64_t>(*mostRowsOf(op, partial), 1), target)
          : shapeOfMany(work, shapes, target);
  plan.threads = best.threads;
  plan.ctasPerSm = residents(work, best, target);
  if (best.ctas > 1)
    plan.cluster = {1, best.ctas};
}

//===----------------------------------------------------------------------===//
// The family
//===----------------------------------------------------------------------===//

/// Returns true when the threads of several CTAs may have a row together.
bool mayHaveCluster(Operation *op) {
  return isRowKernel(op) && !isa<TopKOp, ExpertOrderOp>(op) && !topKOf(op);
}

/// Chunks of a thread of a row where there are many rows: codes and scales take so many
/// instructions that four of them should share what a thread computes once, if registers keep the
/// row. An H200 takes 246 us for FP8 of 16384 rows of 8192 elements behind a residual with four,
/// and 226 with two.
int64_t chunksOfThread(Operation *op, int64_t chunks) {
  return quantizesOneMatrix(op) && chunks >= kMost ? 4 : 2;
}

/// The most chunks of a row that have a thread each where there are many rows. An H200 takes 99 us
/// for FP8 of 65536 rows of 2048 elements with two chunks of a thread, and 110 with one.
int64_t mostSingleChunks(Operation *op, int64_t cluster) {
  return quantizesOneMatrix(op) ? kFew - 1 : cluster > 1 ? kSome : kSome - 1;
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

/// Proposes one chunk of a row to each thread, and two or four from 256 chunks on where there are
/// many rows: they share what a thread computes once, and CTAs of more threads are so few on an SM
/// that all may wait for their sums while none loads. Rows of few chunks share a CTA, and long ones
/// may have several.
KernelPlan proposeRows(Operation *op, const KernelPlan &partial, const hw::TargetModel &target) {
  KernelPlan plan = planOfFamily(KernelFamily::ReduceRows);
  if (auto order = dyn_cast<ExpertOrderOp>(op)) {
    plan.threads = mostThreads(order);
    return plan;
  }
  plan.threads = kSome;
  if (!isRowKernel(op) || !whyNotRowKernel(op).empty())
    return plan;
  int64_t chunks = chunksOfRow(widestMatrixOf(op).getDimSize(1)), cluster = partial.cluster[1];
  if (readsOtherColumnsAlone(op)) { // an H200: rotations of 4096 columns in 74 us instead of 92
    plan.threads = addsSomeLongRows(op, chunks) ? kMost : kFew;
    if (hasFewRows(op, partial, target))
      plan.threads = std::clamp(threadsOfChunks(chunks), kFew, kMost);
    planRotation(op, plan, partial, target);
    return plan;
  }
  if (chunks > 2 * kMost && mayHaveCluster(op)) {
    planLongRows(op, plan, partial, target);
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
  if (perThread == 4) // an H200: FP8 of rows of 8192 columns in 101 us instead of 105
    plan.ctasPerSm = ctasOfFourChunks(partial.threads.value_or(*plan.threads));
  else if (*plan.threads > kSome) // and of 16384 columns in 65 us instead of 98
    plan.ctasPerSm = ctasOfRow(op, chunks, partial.threads.value_or(*plan.threads), target);
  else if (*plan.threads == kSome && isOfTwoMatrices(op)) // NVFP4 of 8192 columns in 220 and 244
    plan.ctasPerSm = 3;
  planRotation(op, plan, partial, target);
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
static std::string whyNoRowCases(Operation *op) {
  if (!mayHaveRows(op) || isa<AmaxOp>(op))
    return "its kernel has other work beside its rows";
  if (!matrixOf(op).isDynamicDim(0))
    return "its rows are static";
  return llvm::any_of(stepsOf(op), isScattered) ? "its rows are scattered" : "";
}

LogicalResult fp4::requireRowCases(Operation *op, KernelFamily family) {
  if (rowCasesOf(op).empty())
    return success();
  std::string reason = family == KernelFamily::ReduceRows
                           ? whyNoRowCases(op)
                           : ("its kernel is of family " + stringifyKernelFamily(family)).str();
  if (reason.empty())
    return success();
  return withNote(op->emitOpError("must have one plan for all rows, because ")
                      << reason << ", but got " << op->getAttr(kRowCasesAttr),
                  Twine("remove the attribute ") + kRowCasesAttr);
}

/// Proposes no cases for long rows: of the plans that the estimate chooses for few of them, some
/// took longer on an H200.
SmallVector<Attribute> fp4::proposeRowCases(Operation *op, const KernelPlan &last,
                                            const hw::TargetModel &target) {
  if (!whyNoRowCases(op).empty() || chunksOfRow(widestMatrixOf(op).getDimSize(1)) > 2 * kMost)
    return {};
  bool hasHeads = !last.strip && last.stream.itemsPerThread.value_or(1) > 1;
  KernelPlan few = planOfFamily(KernelFamily::ReduceRows);
  few.guard.m.most = hasHeads ? fewestOfHeads(op, last, target) - 1 : int64_t(target.sms);
  few = few.orElse(proposeRows(op, few, target));
  if (few.fieldsUnlike(last).empty() || failed(checkRows(op, few, target)))
    return {};
  SmallVector<Attribute> cases = {CaseAttr::get(op->getContext(), few, std::nullopt)};
  if (!last.strip)
    return cases;
  KernelPlan some = planOfFamily(KernelFamily::ReduceRows);
  some.guard.m.least = *few.guard.m.most + 1;
  some.guard.m.most = fewestOfStrips(last, target) - 1;
  some = some.orElse(proposeRows(op, some, target));
  if (succeeded(checkRows(op, some, target)))
    cases.push_back(CaseAttr::get(op->getContext(), some, std::nullopt));
  return cases;
}

constexpr FamilyRules fp4::kReduceRowsRules = {KernelFamily::ReduceRows, requireNothing,
                                               proposeRows, checkRows};
