//===- PlanSpace.cpp - The plans that an operation may have ---------------===//
//
// The plans that a tuner may choose from. No rule is written here: values of each field are tried
// over a wide range, and the checks of the family say which fit (Families.h).
//
//===----------------------------------------------------------------------===//

#include "GemmPlanner.h"

#include "fp4/Dialect/Fp4/IR/Signature.h"
#include "fp4/Dialect/Pipe/IR/Schedules.h"
#include "fp4/Plans/PlanSpace.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace fp4;

namespace {

/// Collects the plans around one, each once.
class Neighbours {
public:
  Neighbours(Operation *op, const KernelPlan &plan, const hw::TargetModel &target)
      : op(op), plan(plan), target(target) {
    seen.insert(spell(plan));
  }

  std::vector<PlanNeighbour> collect();

private:
  using Change = llvm::function_ref<void(KernelPlan &)>;
  /// Adds the plan with a change. Roles and routes follow from other fields, so they are proposed
  /// anew; other fields are proposed anew too if they do not agree with the change.
  void add(StringRef field, Change change);
  template <auto... path> void addAll(StringRef field, ArrayRef<int64_t> list);
  void addTiles();
  void addRoutes();
  void addClusters();
  void addReductions();
  void addSlices();
  void addSchedules();
  void addStreams();
  std::string spell(const KernelPlan &other) const;

  Operation *op;
  const KernelPlan &plan;
  const hw::TargetModel &target;
  llvm::StringSet<> seen;
  std::vector<PlanNeighbour> found;
};

/// Powers of two up to `most`.
SmallVector<int64_t> powers(int64_t most, int64_t first = 1) {
  SmallVector<int64_t> list;
  for (int64_t value = first; value <= most; value *= 2)
    list.push_back(value);
  return list;
}

SmallVector<int64_t> numbers(int64_t first, int64_t last, int64_t step = 1) {
  SmallVector<int64_t> list;
  for (int64_t value = first; value <= last; value += step)
    list.push_back(value);
  return list;
}

} // namespace

/// The text of a plan, which is also its identity: fields that are not of its family are not
/// printed.
std::string Neighbours::spell(const KernelPlan &other) const {
  return fp4::spell(PlanAttr::get(op->getContext(), other));
}

void Neighbours::add(StringRef field, Change change) {
  KernelPlan moved = plan;
  moved.roles = {};
  moved.route = {};
  change(moved);
  KernelPlan alone;
  alone.family = plan.family;
  change(alone);
  ScopedDiagnosticHandler silent(op->getContext(), [](Diagnostic &) { return success(); });
  for (const KernelPlan &partial : {moved, alone}) {
    FailureOr<KernelPlan> complete = completePlan(op, partial, target);
    if (failed(complete))
      continue;
    if (std::string text = spell(*complete); seen.insert(text).second)
      found.push_back({field.str(), *complete});
    return;
  }
}

template <auto... path> void Neighbours::addAll(StringRef field, ArrayRef<int64_t> list) {
  for (int64_t value : list)
    add(field, [&](KernelPlan &other) { memberOf<path...>(other) = value; });
}

void Neighbours::addTiles() {
  // Routes whose tiles are of another matrix have other shapes of tiles.
  SmallVector<const route::Record *> otherTiles;
  if (auto product = dyn_cast<BlockScaledMatmulOp>(op))
    for (const route::Record *record : route::routesOf(signatureOf(product), target))
      if ((record->tile == route::Tile::Transpose) !=
          PlannedGemm(product, plan, target).isTransposed())
        otherTiles.push_back(record);
  constexpr int64_t mostRows = 256, columns = 8, mostColumns = 256, depth = 64, mostDepth = 512;
  for (int64_t m : powers(mostRows, /*first=*/8))
    for (int64_t n : numbers(columns, mostColumns, columns))
      for (int64_t k : powers(mostDepth, depth)) {
        add("tile", [&](KernelPlan &other) { other.tile = {m, n, k}; });
        for (const route::Record *record : otherTiles)
          add("route", [&](KernelPlan &other) {
            other.tile = {m, n, k};
            other.route = record->route;
          });
        add("pair", [&](KernelPlan &other) {
          other.tile = {m, n, k};
          other.pair = !plan.pair;
          other.cluster = {};
        });
      }
}

/// Adds each route that the table has for the operation on the target.
void Neighbours::addRoutes() {
  auto product = dyn_cast<BlockScaledMatmulOp>(op);
  if (!product)
    return;
  for (const route::Record *record : route::routesOf(signatureOf(product), target))
    add("route", [&](KernelPlan &other) { other.route = record->route; });
}

void Neighbours::addClusters() {
  add("cluster", [](KernelPlan &other) { other.cluster = {}; });
  for (int64_t m : powers(target.limits.maxClusterSize))
    for (int64_t n : powers(target.limits.maxClusterSize))
      add("cluster", [&](KernelPlan &other) { other.cluster = {m, n}; });
}

/// Adds both kinds of reduction: a cluster that reduces split-K ranges has a CTA for each, and a
/// workspace needs none.
void Neighbours::addReductions() {
  for (ReductionPlace place : {ReductionPlace::Workspace, ReductionPlace::Cluster})
    add("reduction", [&](KernelPlan &other) {
      other.split.reduction = place;
      other.cluster = {};
    });
}

/// Adds the k slices of a CTA, of all warps and with warpgroups of their own.
void Neighbours::addSlices() {
  constexpr int64_t most = 4;
  for (int64_t slices : numbers(1, most))
    for (bool haveWarpgroups : {false, true})
      add("k_slices", [&](KernelPlan &other) {
        other.split.kSlices = slices;
        other.split.slicedK = haveWarpgroups;
        other.cluster = {};
      });
}

void Neighbours::addSchedules() {
  constexpr int64_t widest = 32;
  MLIRContext *context = op->getContext();
  for (pipe::Raster raster : pipe::allRasters())
    for (int64_t width : pipe::hasWidth(raster) ? powers(widest) : SmallVector<int64_t>{0})
      add("schedule", [&](KernelPlan &other) {
        other.schedule = pipe::StaticPersistentAttr::get(context, raster, width);
      });
  constexpr int64_t responses = 3; // the default of the attribute
  add("schedule", [&](KernelPlan &other) {
    other.schedule =
        pipe::ClusterLaunchAttr::get(context, pipe::Raster::AlongM, /*width=*/0, responses);
  });
}

void Neighbours::addStreams() {
  addAll<&KernelPlan::stream, &StreamPlan::grid>("grid", powers(64));
  add("cache_hints", [&](KernelPlan &other) { other.stream.cacheHints = !plan.stream.cacheHints; });
  for (CtaOrder order : {CtaOrder::Ascending, CtaOrder::Descending})
    add("order", [&](KernelPlan &other) { other.stream.order = order; });
  for (AmaxKernel amax : {AmaxKernel::Separate, AmaxKernel::Same})
    add("amax", [&](KernelPlan &other) { other.stream.amax = amax; });
}

std::vector<PlanNeighbour> Neighbours::collect() {
  if (plan.tile[2]) { // tile_transform has one stage
    addTiles();
    add("pair", [&](KernelPlan &other) {
      other.pair = !plan.pair;
      other.tile = other.cluster = {};
    });
    addClusters();
    add("store", [](KernelPlan &other) { other.store = ResultStore::Direct; });
    add("store", [](KernelPlan &other) { other.store = ResultStore::Tma; });
  }
  if (plan.schedule) {
    addSchedules();
    addAll<&KernelPlan::pipeline, &PipelinePlan::stages>("stages", numbers(2, 8));
    addAll<&KernelPlan::pipeline, &PipelinePlan::accumulators>("accumulators", numbers(1, 2));
  }
  addReductions();
  addSlices();
  addAll<&KernelPlan::pipeline, &PipelinePlan::epilogueWarps>("epilogue_warps",
                                                              powers(8, /*first=*/4));
  addAll<&KernelPlan::pipeline, &PipelinePlan::mmaWarps>("mma_warps", numbers(1, 2));
  addAll<&KernelPlan::threads>("threads", powers(target.limits.maxThreadsPerCta, /*first=*/32));
  addAll<&KernelPlan::stream, &StreamPlan::blocksPerThread>("blocks_per_thread", powers(16));
  addAll<&KernelPlan::stream, &StreamPlan::lanesPerBlock>("lanes_per_block", powers(64));
  addAll<&KernelPlan::stream, &StreamPlan::itemsPerThread>("items_per_thread", powers(64));
  addAll<&KernelPlan::strip>("strip", powers(64));
  addAll<&KernelPlan::ctasPerSm>("ctas_per_sm", numbers(1, 8));
  addStreams();
  addRoutes();
  for (KernelFamily family : familiesOf(op))
    add("family", [&](KernelPlan &other) {
      other = KernelPlan();
      other.family = family;
    });
  return std::move(found);
}

std::vector<PlanNeighbour> fp4::neighboursOf(Operation *op, const KernelPlan &plan,
                                             const hw::TargetModel &target) {
  return Neighbours(op, plan, target).collect();
}
