//===- GemmPlanner.h - The planners of GEMMs ------------------------------===//
//
// The table of routes says how a GEMM may reach the core of a target, and which kernel's planner
// chooses among those ways (GemmRoutes.cpp). A planner is a record, in the file that is named after
// its kernel: tiles with their costs for sizes that the program does not say, the proposal for
// those that it says, and the check of a plan.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "CostModel.h"
#include "Families.h"

#include "fp4/Dialect/Fp4/IR/DynamicSizes.h"

#include <array>
#include <functional>

namespace fp4 {

//===----------------------------------------------------------------------===//
// A GEMM with a plan
//===----------------------------------------------------------------------===//

/// Returns true when N or K, or both, are sizes that the program gets when it runs.
bool hasDynamicSizes(BlockScaledMatmulOp product);
/// Returns true for two GEMMs of one lhs, and for one that gives more than its elements.
bool isFused(BlockScaledMatmulOp product);
/// The sizes of a GEMM, with assumptions for dynamic ones (GemmPlans.cpp).
MatmulSize sizeOfGemm(BlockScaledMatmulOp product, const KernelPlan &plan);

/// A GEMM on a target with a plan: a partial one, which a planner completes, or a complete one,
/// which a planner checks.
struct PlannedGemm {
  PlannedGemm(BlockScaledMatmulOp op, const KernelPlan &plan, const hw::TargetModel &target)
      : op(op), plan(plan), target(target), size(sizeOfGemm(op, plan)) {}

  mutable BlockScaledMatmulOp op; ///< the operation, mutable because its accessors are not const
  const KernelPlan &plan;
  const hw::TargetModel &target;
  MatmulSize size;

  mlir::MLIRContext *context() const { return op.getContext(); }
  /// Returns this GEMM with another plan.
  PlannedGemm with(const KernelPlan &other) const { return {op, other, target}; }

  /// Returns true when the plan leaves room for a route with `axes`.
  bool mayTake(const route::Route &axes) const;
  /// Returns true when the tile of the plan is one of the transposed result: by its route, or of a
  /// partial plan by all routes that it leaves.
  bool isTransposed() const;
  bool isSwapped() const { return plan.route.orientation == route::Orientation::Swapped; }
  /// Rows of a kernel with the plan at most; ShapedType::kDynamic where nothing is known.
  int64_t mostRows() const { return mostRowsOf(op, plan); }
  bool hasKnownRows() const { return !mlir::ShapedType::isDynamic(mostRows()); }
  bool hasDynamicSizes() const { return fp4::hasDynamicSizes(op); }
  int64_t splits() const { return splitsOf(op, plan); }

  mlir::InFlightDiagnostic misfit(llvm::StringRef field, const llvm::Twine &must,
                                  const llvm::Twine &found) const {
    return fp4::misfit(op, field, must, found);
  }
  llvm::LogicalResult misfitTile(const llvm::Twine &must) const {
    return fp4::misfitTile(op, plan, must);
  }
  llvm::LogicalResult checkTiling(llvm::ArrayRef<pipe::Engine> engines,
                                  const RoleRules &rules) const {
    return fp4::checkTiling(op, plan, target, engines, rules);
  }
};

//===----------------------------------------------------------------------===//
// Planners
//===----------------------------------------------------------------------===//

/// A tile that a GEMM may have, and its cost by the model of its planner, in a unit that all tiles
/// of the GEMM share.
struct SizedTile {
  KernelPlan plan; ///< `tile`, `pair` with its cluster, `route`, and the sizes for which it holds
  std::function<double(const MatmulSize &)> cost;
};
/// A SizedTile of `tile` with cost function `cost`.
SizedTile sizedTile(std::array<int64_t, 3> tile, std::function<double(const MatmulSize &)> cost);

struct GemmPlanner {
  route::Planner name;
  /// Completes a partial plan. The target has a route of the GEMM.
  KernelPlan (*propose)(const PlannedGemm &gemm);
  llvm::LogicalResult (*check)(const PlannedGemm &gemm);
  /// Tiles for dynamic sizes; none where no model gives the cost of a tile beside others.
  std::vector<SizedTile> (*tiles)(const PlannedGemm &gemm);
};
extern const GemmPlanner kBlockScaledPlanner, kPromotedTmemPlanner, kWeightTmemPlanner,
    kConvertedPlanner, kWeightPlanner, kPromotedPlanner, kWarpPlanner, kPromotedWarpPlanner;

/// The planner of a GEMM that the target multiplies.
const GemmPlanner &plannerOf(BlockScaledMatmulOp product, const hw::TargetModel &target);
/// Returns true when the planner of `op`, a matmul, on `target` is this one.
bool isPlannedAs(mlir::Operation *op, const hw::TargetModel &target, route::Planner planner);
/// Returns true when K of so many rows may be cut: of few rows, where operands are converted and no
/// tensor memory has the sums of parts of more.
bool maySplit(BlockScaledMatmulOp product, int64_t rows, const hw::TargetModel &target);
/// Reports why `op` has no kernel on `target` with the axes of `plan.route`.
llvm::LogicalResult requireGemmRoute(mlir::Operation *op, const KernelPlan &plan,
                                     const hw::TargetModel &target);

/// The first of `tiles`, which are not empty, that costs the least.
template <typename Tiles, typename Cost> auto cheapest(const Tiles &tiles, Cost cost) {
  auto best = std::begin(tiles);
  auto least = cost(*best);
  for (auto tile = std::next(best); tile != std::end(tiles); ++tile)
    if (auto other = cost(*tile); other < least) {
      best = tile;
      least = other;
    }
  return *best;
}

//===----------------------------------------------------------------------===//
// Parts of plans
//===----------------------------------------------------------------------===//

/// The field because of which a result cannot leave the kernel in tiles, and the reason; else
/// empty. With `ofGroups` the result of groups can.
std::pair<llvm::StringRef, std::string> whyStoresAreDirect(BlockScaledMatmulOp product,
                                                           bool ofGroups = false);
/// Checks a kernel that has an SM for itself, or at most `resident` CTAs on one.
llvm::LogicalResult checkCtasPerSm(const PlannedGemm &gemm, int64_t resident = 1);
/// Checks that CTAs work by themselves.
llvm::LogicalResult checkNoCluster(const PlannedGemm &gemm);
/// Checks that the kernel of the plan supports dynamic sizes. Some kernels with them may have tiles
/// of the transposed result.
llvm::LogicalResult checkDynamicSizes(const PlannedGemm &gemm, bool mayTranspose = false);
/// The partial plan of a program, with the rows and columns of tiles that workers share as the
/// program gives them; and the check of the plan of such a GEMM (GemmPlans.cpp).
KernelPlan partialOfStream(const PlannedGemm &gemm);
llvm::LogicalResult checkStream(const PlannedGemm &gemm);
/// Returns true when candidates may have the cluster that a partial plan asks for on a target with
/// tcgen05, a larger one being an error of the check; and the check of a cluster there
/// (GemmPlans.cpp).
bool mayHaveCluster(const PlannedGemm &gemm);
llvm::LogicalResult checkGemmCluster(const PlannedGemm &gemm);
/// Reports that shared memory, of which a CTA has `room` bytes, has less than two stages.
llvm::LogicalResult misfitStages(const PlannedGemm &gemm, int64_t room, int64_t stageBytes);

/// The cluster that reduces the split-K ranges of each of `tiles` tiles. There is no such cluster
/// if they are reduced in a workspace, because tiles have more than the `mostRows` rows whose sums
/// fit in shared memory, or clusters find no room (ReductionPlans.cpp).
struct ReducedTile {
  int64_t rows, mostRows;
};
std::array<int64_t, 3> proposeReduction(const PlannedGemm &gemm, ReducedTile tile, int64_t tiles,
                                        int64_t resident = 1);
/// Returns true when clusters of so many CTAs find room for all `ctas` in `places`.
bool haveRoomForClusters(int64_t ctasOfCluster, int64_t ctas, int64_t places);
llvm::LogicalResult checkReductionPlace(const PlannedGemm &gemm, ReducedTile tile);
/// The most rows of reduced tiles of GEMMs whose weights are operand A: rows are columns of
/// fragments.
inline constexpr int64_t kMostReducedRows = 128;
/// Reductions in a cluster on targets with tcgen05: bytes that a CTA needs to reduce tiles of so
/// many columns; candidates whose ranges are reduced in a cluster, of those that fit the memories,
/// which replace `tiles` if they are asked for; and the check of a plan with reduction = cluster.
int64_t reductionBytes(int64_t columns, int64_t splits);
void addReduced(const KernelPlan &partial, const MatmulSize &size, const hw::TargetModel &target,
                llvm::function_ref<bool(const GemmTile &)> fits,
                llvm::SmallVectorImpl<GemmTile> &tiles);
llvm::LogicalResult checkClusterReduction(const PlannedGemm &gemm);

/// Remarks on `tile`, which was chosen for the GEMM, and on the gain of another order of its sums.
/// A cluster that the partial plan does not ask for is no part of that gain.
void remarkOnGemm(const PlannedGemm &gemm, const GemmTile &tile);
/// Remarks on a tile of so many rows and columns, on the CTAs that work on one, on the time of the
/// GEMM, and on its bound where the model says it.
void remarkOnTile(const PlannedGemm &gemm, std::array<int64_t, 2> tile, llvm::StringRef workers,
                  double cycles, llvm::StringRef bound = "");

/// Plans of the planner of converted operands with a pre-dequantized lhs (PreDequantizedPlans.cpp):
/// the proposal, the check, and the tiles, for multiples of their depth.
KernelPlan proposePreDequantized(const PlannedGemm &gemm);
llvm::LogicalResult checkPreDequantized(const PlannedGemm &gemm);
std::vector<SizedTile> preDequantizedTiles(const PlannedGemm &gemm);
/// Microseconds of such a GEMM, its conversion included, by measurements of an H200.
double preDequantizedTime(const PlannedGemm &gemm);
/// Returns true when, in a small-M GEMM, a conversion before the GEMM is faster than warps that
/// convert beside it.
bool isFasterPreDequantizedSmallM(const PlannedGemm &gemm);
/// Microseconds of `waves` of tiles, each of which takes `time` in the unit of tables of tiles.
double timeOfWaves(int64_t waves, int64_t time, const MatmulSize &size);
/// Checks the roles, schedule and memory of a GEMM with a pre-dequantized operand.
llvm::LogicalResult checkPreDequantizedTiling(const PlannedGemm &gemm);

/// GEMMs whose scales are copied to tensor memory by the warp that runs MMAs, or by a second one
/// (MmaWarps.cpp). The functions check a plan that gives the number of warps, check its roles,
/// which are known to drive tensor, and propose a number; a second warp that no plan asks for is
/// proposed only where it pays.
llvm::LogicalResult checkMmaWarps(const PlannedGemm &gemm);
llvm::LogicalResult checkMmaRole(const PlannedGemm &gemm);
std::optional<int64_t> proposeMmaWarps(const PlannedGemm &gemm, const GemmTile &tile);
/// Epilogues of two warpgroups (EpiloguePlans.cpp): the check of a plan with them; candidates with
/// them beside `tiles`, whose plans `planOf` gives, or in their place if they are asked for; and
/// `roles`, whose two warpgroups with the epilogue of a dual GEMM get registers of the others.
llvm::LogicalResult checkEpilogueWarps(const PlannedGemm &gemm);
void addWideEpilogues(const PlannedGemm &gemm,
                      llvm::function_ref<KernelPlan(const GemmTile &)> planOf,
                      llvm::SmallVectorImpl<GemmTile> &tiles);
pipe::RolePlanAttr withEpilogueRegisters(BlockScaledMatmulOp product, const GemmTile &tile,
                                         pipe::RolePlanAttr roles);

//===----------------------------------------------------------------------===//
// Orders of tiles
//===----------------------------------------------------------------------===//

/// Tiles of `rows` rows along m. Groups whose rows are expected end anywhere in a tile, on average
/// in the middle.
int64_t tilesAlongM(const MatmulSize &size, int64_t rows);
/// The order of tiles by which those that run at a time share most of their operands.
pipe::WorkScheduleAttrInterface rasterOfGemm(const PlannedGemm &gemm, const GemmTile &tile);
/// The order of tiles of groups, and of FP8 of any N and K (Rasters.cpp). Tiles that run at a time
/// share rows of their operands. All tiles along m share few rows if there are many tiles: all of A
/// then comes from memory again for each column of tiles. Panels of as many columns as rows read
/// the least; panels of half as many were faster, and of a power of two, by which a division is a
/// shift (notebook/gemm-weights.md).
pipe::WorkScheduleAttrInterface rasterOfTiles(const PlannedGemm &gemm,
                                              const std::array<int64_t, 3> &tile);
/// The tiles of a GEMM, and the bytes that an element of K has in their rows and columns.
struct TileGrid {
  int64_t rows, columns; ///< tiles along m and n
  double bytesOfRow, bytesOfColumn;
};
/// Bytes of an element of K in a row of codes, its scales included.
double bytesOfCodes(Format format);
/// The order in which the tiles of a dense GEMM that run at a time load the fewest bytes.
pipe::WorkScheduleAttrInterface rasterOfOperands(const PlannedGemm &gemm, const TileGrid &grid);

} // namespace fp4
