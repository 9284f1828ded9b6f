//===- LongRowPlans.cpp - Plans of rows of more than 16384 elements -------===//
#include "LongRowPlans.h"

#include "RowSources.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/IndexExpressions.h"
#include "fp4/Dialect/Fp4/IR/Prologue.h"
#include "fp4/Dialect/Fp4/IR/RowNumbers.h"
#include "fp4/Dialect/Fp4/IR/RowReduction.h"
#include "fp4/ISA/ClusterLimit.h"
#include "fp4/Plans/RowTeams.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace fp4;

int64_t fp4::registersOf(int64_t words) {
  constexpr int64_t others = 32, granule = 8;
  return int64_t(llvm::alignTo(uint64_t(words + others), granule));
}

namespace {

/// Threads of a CTA: the most, and the fewest.
constexpr int64_t kMost = kMostThreadsOfRow, kFew = 128;

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
    sum +=
        isa<math::MathDialect>(inner.getDialect()) && !isApproximateExp(&inner) ? function : other;
  }
  return sum;
}

bool isMatrix(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getRank() == 2 && !isNumbersOfRows(tensor);
}

RowWork workOf(Operation *op, bool needsRow) {
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
  work.numbers += needsRow;
  work.passes = std::max<int64_t>(1, work.passes + needsRow + (work.stored > 0));
  work.words = std::max<int64_t>(1, work.words);
  return work;
}

/// Returns true when registers keep the row.
bool isKept(const RowWork &work, const RowShape &shape) {
  return keepsRow(work.words * shape.perThread, shape.perThread);
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

} // namespace

void fp4::planLongRows(Operation *op, KernelPlan &plan, const KernelPlan &partial,
                       const LongRows &rows, const hw::TargetModel &target) {
  RowWork work = workOf(op, rows.needWhole);
  SmallVector<RowShape> shapes = shapesOf(work, partial.cluster[1], target);
  RowShape best = rows.few ? shapeOfFew(work, shapes, std::max<int64_t>(*rows.few, 1), target)
                           : shapeOfMany(work, shapes, target);
  plan.threads = best.threads;
  plan.ctasPerSm = residents(work, best, target);
  if (best.ctas > 1)
    plan.cluster = {1, best.ctas};
}
