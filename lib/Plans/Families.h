//===- Families.h - The rules of each family of kernels -------------------===//
//
// A family proposes a plan for an operation and checks one. Each has its functions in the file that
// is named after its kernels; Families.cpp lists them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"
#include "fp4/Plans/KernelPlans.h"

#include <array>
#include <functional>

namespace fp4 {

struct FamilyRules {
  /// Reports why the family has no kernel for `op` on `target` with the route of `plan`.
  llvm::LogicalResult (*require)(mlir::Operation *op, const KernelPlan &plan,
                                 const hw::TargetModel &target);
  /// Proposes a complete plan that agrees with `partial`, a partial plan. The requirements hold.
  KernelPlan (*propose)(mlir::Operation *op, const KernelPlan &partial,
                        const hw::TargetModel &target);
  /// Reports the fields of a complete plan that do not fit. The requirements hold.
  llvm::LogicalResult (*check)(mlir::Operation *op, const KernelPlan &plan,
                               const hw::TargetModel &target);
};

extern const FamilyRules kGemmRules, kTransformRules, kTileQuantizeRules, kStreamBlocksRules,
    kStreamItemsRules, kReduceGridRules, kReduceRowsRules, kGemvRules, kAttentionRules,
    kWarpAttentionRules;

/// Reports heads that no kernel has; `known` are the sizes before 256 that kernels have.
mlir::InFlightDiagnostic refuseHead(AttentionOp op, llvm::StringRef name, int64_t elements,
                                    llvm::StringRef known);
/// Checks that the tokens of a page, if there are pages, are a multiple of `unit`.
llvm::LogicalResult requirePages(AttentionOp op, int64_t unit);
/// Returns true when warp_attention is faster than tile_attention: for few queries, and large
/// caches or small heads.
bool prefersWarps(AttentionOp op);

struct MatmulSize;
struct GemmTile;
/// The field because of which a result cannot leave the kernel in tiles, and the reason; else
/// empty. With `ofGroups` the result of groups can.
std::pair<llvm::StringRef, std::string> whyStoresAreDirect(BlockScaledMatmulOp product,
                                                           bool ofGroups = false);
/// Checks rules that plans of sums in registers share: CTAs by themselves, unless split-K ranges
/// `mayReduce` in clusters, and at most `resident` CTAs per SM.
llvm::LogicalResult checkFragmentPlan(mlir::Operation *op, const KernelPlan &plan,
                                      const hw::TargetModel &target, int64_t resident = 1,
                                      bool mayReduce = false);
/// The cluster that reduces the split-K ranges of each of `tiles` tiles. There is no such cluster
/// if they are reduced in a workspace, because tiles have more than the `mostRows` rows whose sums
/// fit in shared memory, or clusters find no room. The plan of such a GEMM is checked in
/// WeightGemmPlans.cpp.
struct ReducedTile {
  int64_t rows, mostRows;
};
std::array<int64_t, 3> proposeReduction(const KernelPlan &partial, ReducedTile tile, int64_t tiles,
                                        int64_t resident, const MatmulSize &size,
                                        const hw::TargetModel &target);
llvm::LogicalResult checkReductionPlace(mlir::Operation *op, const KernelPlan &plan,
                                        ReducedTile tile, const hw::TargetModel &target);
/// Reductions in a cluster on targets with tcgen05 (ReductionPlans.cpp): bytes that a CTA needs to
/// reduce tiles of so many columns; candidates whose ranges are reduced in a cluster, of those that
/// fit the memories, which replace `tiles` if they are asked for; and the check of a plan with
/// reduction = cluster.
int64_t reductionBytes(int64_t columns, int64_t splits);
void addReduced(const KernelPlan &partial, const MatmulSize &size, const hw::TargetModel &target,
                llvm::function_ref<bool(const GemmTile &)> fits,
                llvm::SmallVectorImpl<GemmTile> &tiles);
llvm::LogicalResult checkClusterReduction(mlir::Operation *op, const KernelPlan &plan,
                                          const hw::TargetModel &target);
/// Remarks on `tile`, which was chosen for the GEMM, and on the gain of another order of its sums.
/// A cluster that `partial` does not ask for is no part of that gain.
void remarkOnGemm(BlockScaledMatmulOp op, const KernelPlan &partial, const MatmulSize &size,
                  const GemmTile &tile, const hw::TargetModel &target);
/// Remarks on a tile of so many rows and columns, on the CTAs that work on one, on the time of the
/// GEMM, and on its bound where the model says it.
void remarkOnTile(mlir::Operation *op, std::array<int64_t, 2> tile, llvm::StringRef workers,
                  double cycles, const hw::TargetModel &target, llvm::StringRef bound = "");
/// The most rows of reduced tiles of GEMMs whose weights are operand A: rows are columns of
/// fragments.
inline constexpr int64_t kMostReducedRows = 128;
/// The partial plan of a program, with the rows and columns of tiles that workers share as the
/// program gives them; and the check of the plan of such a GEMM (GemmPlans.cpp).
KernelPlan partialOfStream(BlockScaledMatmulOp product, const KernelPlan &partial);
llvm::LogicalResult checkStream(mlir::Operation *op, const KernelPlan &plan);
/// Returns true for two GEMMs of one lhs, and for one that gives more than its elements.
bool isFused(BlockScaledMatmulOp product);
/// Proposes plans of kGemmRules on targets without tcgen05 (ConvertedGemmPlans.cpp).
KernelPlan proposeConvertedGemm(mlir::Operation *op, const KernelPlan &partial,
                                const MatmulSize &size, const hw::TargetModel &target);
/// Returns true when a GEMM can have its operands swapped there: one tile has all the rows of a
/// kernel with `plan`.
bool hasSmallM(BlockScaledMatmulOp product, const KernelPlan &plan);
llvm::LogicalResult checkConvertedGemm(mlir::Operation *op, const KernelPlan &plan,
                                       const hw::TargetModel &target);
/// Proposes plans with a pre-dequantized lhs (PreDequantizedPlans.cpp).
KernelPlan proposePreDequantized(mlir::Operation *op, const KernelPlan &partial,
                                 const MatmulSize &size, const hw::TargetModel &target);
/// Microseconds of a GEMM with a pre-dequantized lhs, its conversion included, by measurements of
/// an H200.
double preDequantizedTime(mlir::Operation *op, const MatmulSize &size,
                          const hw::TargetModel &target);
/// Returns true when, in a small-M GEMM, a conversion before the GEMM is faster than warps that
/// convert beside it.
bool isFasterPreDequantizedSmallM(BlockScaledMatmulOp product, const MatmulSize &size,
                                  const hw::TargetModel &target);
/// Microseconds of `waves` of tiles, each of which takes `time` in the unit of tables of tiles.
double timeOfWaves(int64_t waves, int64_t time, const MatmulSize &size);
llvm::LogicalResult checkPreDequantized(mlir::Operation *op, const KernelPlan &plan,
                                        const hw::TargetModel &target);
/// Checks the roles, schedule and memory of a GEMM with a pre-dequantized operand.
llvm::LogicalResult checkPreDequantizedTiling(mlir::Operation *op, const KernelPlan &plan,
                                              const hw::TargetModel &target);
/// Plans of operands of FP8 with f32 scales (PromotedGemmPlans.cpp).
KernelPlan proposePromotedGemm(mlir::Operation *op, const KernelPlan &partial,
                               const MatmulSize &size, const hw::TargetModel &target);
llvm::LogicalResult checkPromotedGemm(mlir::Operation *op, const KernelPlan &plan,
                                      const hw::TargetModel &target);
/// The order of tiles by which those that run at a time share most of their operands, and the check
/// of a cluster on a target with tcgen05 (GemmPlans.cpp).
pipe::WorkScheduleAttrInterface rasterOfGemm(mlir::MLIRContext *context, const MatmulSize &size,
                                             const GemmTile &tile, const hw::TargetModel &target);
llvm::LogicalResult checkGemmCluster(mlir::Operation *op, const KernelPlan &plan,
                                     const hw::TargetModel &target);
/// Tiles of `rows` rows along m. Groups whose rows are expected end anywhere in a tile, on average
/// in the middle.
int64_t tilesAlongM(const MatmulSize &size, int64_t rows);
/// The order of tiles of groups, and of FP8 of any N and K (Rasters.cpp). Tiles that run at a time
/// share rows of their operands. All tiles along m share few rows if there are many tiles: all of A
/// then comes from memory again for each column of tiles. Panels of as many columns as rows read
/// the least; panels of half as many were faster, and of a power of two, by which a division is a
/// shift (notebook/gemm-weights.md).
pipe::WorkScheduleAttrInterface rasterOfTiles(mlir::MLIRContext *context,
                                              const std::array<int64_t, 3> &tile,
                                              const MatmulSize &size,
                                              const hw::TargetModel &target);
/// The tiles of a GEMM, and the bytes that an element of K has in their rows and columns.
struct TileGrid {
  int64_t rows, columns; ///< tiles along m and n
  double bytesOfRow, bytesOfColumn;
};
/// Bytes of an element of K in a row of codes, its scales included.
double bytesOfCodes(Format format);
/// The order in which the tiles of a dense GEMM that run at a time load the fewest bytes.
pipe::WorkScheduleAttrInterface rasterOfOperands(mlir::MLIRContext *context, const TileGrid &grid,
                                                 int64_t k, const hw::TargetModel &target);
/// Proposes plans whose sums are in tensor memory (LaneGemmPlans.cpp).
KernelPlan proposeLaneGemm(mlir::Operation *op, const KernelPlan &partial, const MatmulSize &size,
                           const hw::TargetModel &target);
llvm::LogicalResult checkLaneGemm(mlir::Operation *op, const KernelPlan &plan,
                                  const hw::TargetModel &target);

/// Proposes plans of floats and of weights that tensor memory has as floats (WeightLanePlans.cpp).
KernelPlan proposeWeightLanes(mlir::Operation *op, const KernelPlan &partial,
                              const MatmulSize &size, const hw::TargetModel &target);
llvm::LogicalResult checkWeightLanes(mlir::Operation *op, const KernelPlan &plan,
                                     const hw::TargetModel &target);

/// Proposes plans whose lhs has no scales (WeightGemmPlans.cpp).
KernelPlan proposeWeightGemm(mlir::Operation *op, const KernelPlan &partial, const MatmulSize &size,
                             const hw::TargetModel &target);
/// Returns true when a CTA may have several k slices.
bool mayHaveRanges(mlir::Operation *op, const hw::TargetModel &target);
llvm::LogicalResult checkWeightGemm(mlir::Operation *op, const KernelPlan &plan,
                                    const hw::TargetModel &target);

/// A tile that a GEMM may have, and its cost by the model of its family, in a unit that all tiles
/// of the GEMM share.
struct SizedTile {
  KernelPlan plan; ///< `tile`, `pair` with its cluster, `route`, and the sizes for which it holds
  std::function<double(const MatmulSize &)> cost;
};
/// The tiles of each family that `product` may have.
std::vector<SizedTile> gemmTiles(BlockScaledMatmulOp product, const MatmulSize &size,
                                 const hw::TargetModel &target);
std::vector<SizedTile> laneTiles(BlockScaledMatmulOp product, const hw::TargetModel &target);
std::vector<SizedTile> promotedTiles(BlockScaledMatmulOp product, const hw::TargetModel &target);
std::vector<SizedTile> warpTiles(BlockScaledMatmulOp product, const hw::TargetModel &target);
std::vector<SizedTile> convertedTiles(BlockScaledMatmulOp product, const hw::TargetModel &target);
/// The tiles with a pre-dequantized lhs, for multiples of their depth.
std::vector<SizedTile> preDequantizedTiles(BlockScaledMatmulOp product,
                                           const hw::TargetModel &target);
/// The tiles of a lhs without scales; none if no model gives the cost of a tile beside others.
std::vector<SizedTile> weightTiles(BlockScaledMatmulOp product, const hw::TargetModel &target);
std::vector<SizedTile> weightLaneTiles(BlockScaledMatmulOp product, const hw::TargetModel &target);
/// A SizedTile of `tile` with cost function `cost`.
SizedTile sizedTile(std::array<int64_t, 3> tile, std::function<double(const MatmulSize &)> cost);

/// The sizes of a GEMM, with assumptions for dynamic ones (GemmPlans.cpp).
MatmulSize sizeOfGemm(BlockScaledMatmulOp product, const KernelPlan &plan);

const FamilyRules &rulesOf(KernelFamily family);

/// Roles of two warpgroups that multiply, whose accumulators never leave their registers.
llvm::StringRef fragmentRules(pipe::RolePlanAttr roles);

/// Requires nothing, for families with a kernel on every target.
llvm::LogicalResult requireNothing(mlir::Operation *op, const KernelPlan &plan,
                                   const hw::TargetModel &target);

/// Emits an error at `op`: field 'tile' of its plan must be this, but got that. The note says how
/// to get a plan that fits.
mlir::InFlightDiagnostic misfit(mlir::Operation *op, llvm::StringRef field, const llvm::Twine &must,
                                const llvm::Twine &found);

/// Emits such an error of 'tile', "[m, n, k]".
llvm::LogicalResult misfitTile(mlir::Operation *op, const KernelPlan &plan,
                               const llvm::Twine &must);

/// Checks that `value`, of `field`, is at most `most`.
llvm::LogicalResult checkAtMost(mlir::Operation *op, llvm::StringRef field, int64_t value,
                                int64_t most);

/// Returns the rule that roles which drive all engines of a kernel break, or an empty string.
using RoleRules = llvm::StringRef (*)(pipe::RolePlanAttr roles);
/// Rules of tensor memory: one role issues matrix instructions and the copies of scale factors that
/// they read, in order; another role loads; and four warps together reach all TMEM lanes.
llvm::StringRef tensorMemoryRules(pipe::RolePlanAttr roles);
/// Rules of eight epilogue warps, in two halves of the columns; and the check of a plan with so
/// many (EpiloguePlans.cpp).
llvm::StringRef wideEpilogueRules(pipe::RolePlanAttr roles);
llvm::LogicalResult checkEpilogueWarps(mlir::Operation *op, const KernelPlan &plan);
/// GEMMs whose scales are copied to tensor memory by the warp that runs MMAs, or by a second one
/// (MmaWarps.cpp). The functions check a plan that gives the number of warps, check its roles,
/// which are known to drive tensor, and propose a number; a second warp that no plan asks for is
/// proposed only where it pays.
llvm::LogicalResult checkMmaWarps(mlir::Operation *op, const KernelPlan &plan);
llvm::LogicalResult checkMmaRole(mlir::Operation *op, const KernelPlan &plan);
std::optional<int64_t> proposeMmaWarps(BlockScaledMatmulOp product, const KernelPlan &partial,
                                       const MatmulSize &size, const GemmTile &tile,
                                       const hw::TargetModel &target);
/// Adds candidates with such epilogues beside `tiles`, whose plans `planOf` gives; or replaces
/// `tiles` if such epilogues are asked for.
void addWideEpilogues(BlockScaledMatmulOp product, const KernelPlan &partial,
                      const MatmulSize &size, const hw::TargetModel &target,
                      llvm::function_ref<KernelPlan(const GemmTile &)> planOf,
                      llvm::SmallVectorImpl<GemmTile> &tiles);
/// `roles`, whose two warpgroups with the epilogue of a dual GEMM get registers of the others.
pipe::RolePlanAttr withEpilogueRegisters(BlockScaledMatmulOp product, const GemmTile &tile,
                                         pipe::RolePlanAttr roles);

/// Checks that the plan has a schedule, and that the roles drive all of `engines` and follow
/// `rules`.
llvm::LogicalResult checkTiling(mlir::Operation *op, const KernelPlan &plan,
                                const hw::TargetModel &target, llvm::ArrayRef<pipe::Engine> engines,
                                RoleRules rules = tensorMemoryRules);

/// CTAs of `threads` that an SM can hold.
int64_t mostCtasPerSm(int64_t threads, const hw::TargetModel &target);
/// Checks that a CTA can have `threads`, and that an SM can hold `resident` such CTAs.
llvm::LogicalResult checkThreads(mlir::Operation *op, int64_t threads, int64_t resident,
                                 const hw::TargetModel &target);

/// A plan of `family`, the fields of which the caller fills in.
inline KernelPlan planOfFamily(KernelFamily family) {
  KernelPlan plan;
  plan.family = family;
  return plan;
}

/// The family of the plan on `op`, else the family that is chosen for `op`.
KernelFamily familyOf(mlir::Operation *op);

/// The family that an operation without a plan gets: warps transform on the tensor core where the
/// target has no tcgen05.
KernelFamily chooseFamily(mlir::Operation *op, const hw::TargetModel &target);

/// Reports why warps have no kernel that transforms `op` on the tensor core.
llvm::LogicalResult requireWarpTransform(QuantizeOp op);

/// Reports fields that `plan` lacks, or that do not fit `op`.
llvm::LogicalResult checkComplete(mlir::Operation *op, const KernelPlan &plan,
                                  const hw::TargetModel &target);

/// `plan` completed by what its family proposes, if the result fits; otherwise errors at `op`.
llvm::FailureOr<KernelPlan> completePlan(mlir::Operation *op, const KernelPlan &plan,
                                         const hw::TargetModel &target);

} // namespace fp4
