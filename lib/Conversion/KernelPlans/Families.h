//===- Families.h - The rules of each family of kernels -------------------===//
//
// A family proposes a plan for an operation and checks one. Each has its functions in the file that
// is named after its kernels; Families.cpp lists them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Conversion/KernelPlans/KernelPlans.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include <array>
#include <functional>

namespace fp4 {

struct FamilyRules {
  /// Reports why the family has no kernel for `op` on `target`, whatever the plan.
  llvm::LogicalResult (*require)(mlir::Operation *op, const hw::TargetModel &target);
  /// A complete plan that goes with `wish`, which may be partial. The requirements hold.
  KernelPlan (*propose)(mlir::Operation *op, const KernelPlan &wish, const hw::TargetModel &target);
  /// Reports what of a complete plan does not fit. The requirements hold.
  llvm::LogicalResult (*check)(mlir::Operation *op, const KernelPlan &plan,
                               const hw::TargetModel &target);
};

extern const FamilyRules kProductRules, kTransformRules, kTileQuantizeRules, kStreamBlocksRules,
    kStreamItemsRules, kReduceGridRules, kReduceRowsRules, kDotsRules;

struct MatmulSize;
struct ProductTile;
/// Why a result cannot leave the kernel in tiles, and what it has instead; else empty. With
/// `ofGroups` that of groups can.
std::pair<llvm::StringRef, std::string> whyStoresAreDirect(BlockScaledMatmulOp product,
                                                           bool ofGroups = false);
/// What plans of sums in registers have in common: blocks by themselves, unless ranges of K
/// `mayJoin` in clusters, at most `resident` on a multiprocessor, which store directly unless they
/// `mayStage`.
llvm::LogicalResult checkFragmentPlan(mlir::Operation *op, const KernelPlan &plan,
                                      const hw::TargetModel &target, int64_t resident = 1,
                                      bool mayJoin = false, bool mayStage = false);
/// The cluster in which the ranges of K of each of `tiles` tiles join, or none where they join in a
/// workspace because tiles have more than the `mostRows` rows whose sums fit in shared memory, or
/// clusters find no room; and what the plan of such a product must say (WeightProductPlans.cpp).
struct JoinedTile {
  int64_t rows, mostRows;
};
std::array<int64_t, 3> proposeJoin(const KernelPlan &wish, JoinedTile tile, int64_t tiles,
                                   int64_t resident, const MatmulSize &size,
                                   const hw::TargetModel &target);
llvm::LogicalResult checkJoin(mlir::Operation *op, const KernelPlan &plan, JoinedTile tile,
                              const hw::TargetModel &target);
/// The same on targets with tcgen05 (JoinPlans.cpp): bytes that a block needs to join tiles of so many
/// columns; candidates whose ranges join in a cluster, of those that fit the memories, which replace
/// `tiles` where they are asked for; and what a plan with join = cluster must say.
int64_t joinBytes(int64_t columns, int64_t splits);
void addJoined(const KernelPlan &wish, const MatmulSize &size, const hw::TargetModel &target,
               llvm::function_ref<bool(const ProductTile &)> fits,
               llvm::SmallVectorImpl<ProductTile> &tiles);
llvm::LogicalResult checkClusterJoin(mlir::Operation *op, const KernelPlan &plan,
                                     const hw::TargetModel &target);
/// Accumulators in tensor memory have the sums of a range of K.
bool mayJoinLanes(mlir::Operation *op, const hw::TargetModel &target);
/// Remarks on `tile`, which was chosen for the product, and on what another order of its sums would
/// gain. A cluster that `wish` does not ask for is no part of the latter.
void remarkOnProduct(BlockScaledMatmulOp op, const KernelPlan &wish, const MatmulSize &size,
                     const ProductTile &tile, const hw::TargetModel &target);
/// Of tiles of products whose weights are operand A: their rows are columns of fragments.
inline constexpr int64_t kMostJoinedRows = 128;
/// The wish of a program, with the rows and columns that it says of tiles that workers share; and
/// what the plan of such a product must say (ProductPlans.cpp).
KernelPlan wishOfStream(BlockScaledMatmulOp product, const KernelPlan &wish);
llvm::LogicalResult checkStream(mlir::Operation *op, const KernelPlan &plan);
/// Two products of one lhs, or one that gives more than its elements.
bool isFused(BlockScaledMatmulOp product);
/// What kProductRules are on targets without tcgen05 (ConvertedProductPlans.cpp).
KernelPlan proposeConvertedProduct(mlir::Operation *op, const KernelPlan &wish,
                                   const MatmulSize &size, const hw::TargetModel &target);
/// Whether a product can have its operands swapped there: one tile has all the rows of a kernel
/// with `plan`.
bool hasFewRows(BlockScaledMatmulOp product, const KernelPlan &plan);
llvm::LogicalResult checkConvertedProduct(mlir::Operation *op, const KernelPlan &plan,
                                          const hw::TargetModel &target);
/// The same where the lhs is converted before the product (AheadProductPlans.cpp).
KernelPlan proposeAheadProduct(mlir::Operation *op, const KernelPlan &wish, const MatmulSize &size,
                               const hw::TargetModel &target);
/// Microseconds that such a product takes, with its conversion, by measurements of an H200.
double aheadProductTime(mlir::Operation *op, const MatmulSize &size, const hw::TargetModel &target);
/// Of few rows, a conversion before the product is faster than warps that convert beside it.
bool isFasterAheadOfFewRows(BlockScaledMatmulOp product, const MatmulSize &size,
                            const hw::TargetModel &target);
/// The same of `waves` of tiles, each of which takes `time` in the unit of tables of tiles.
double timeOfWaves(int64_t waves, int64_t time, const MatmulSize &size);
llvm::LogicalResult checkAheadProduct(mlir::Operation *op, const KernelPlan &plan,
                                      const hw::TargetModel &target);
/// The roles, schedule and memory of a product whose operand a kernel before it converts.
llvm::LogicalResult checkAheadTiling(mlir::Operation *op, const KernelPlan &plan,
                                     const hw::TargetModel &target);
/// Plans of operands of FP8 with f32 scales (PromotedProductPlans.cpp).
KernelPlan proposePromotedProduct(mlir::Operation *op, const KernelPlan &wish,
                                  const MatmulSize &size, const hw::TargetModel &target);
llvm::LogicalResult checkPromotedProduct(mlir::Operation *op, const KernelPlan &plan,
                                         const hw::TargetModel &target);
/// The order of tiles by which those that run at a time share most of their operands, and what a
/// cluster on a target with tcgen05 must be (ProductPlans.cpp).
pipe::WorkScheduleAttrInterface rasterOfProduct(mlir::MLIRContext *context, const MatmulSize &size,
                                                const ProductTile &tile,
                                                const hw::TargetModel &target);
llvm::LogicalResult checkProductCluster(mlir::Operation *op, const KernelPlan &plan,
                                        const hw::TargetModel &target);
/// Tiles of `rows` rows along m. Groups whose rows are expected end anywhere in a tile, on average
/// in the middle.
int64_t tilesAlongM(const MatmulSize &size, int64_t rows);
/// Tiles that run at a time share rows of their operands. Of all tiles along m they share few,
/// where these are many: then all of A comes from memory again for each column of tiles. In panels
/// of as many columns as rows they read the least; panels of half as many were faster, and of a
/// power of two, by which a division is a shift (notebook/WeightProducts.md). This is the order of
/// groups, and of FP8 of any N and K (Rasters.cpp).
pipe::WorkScheduleAttrInterface rasterOfTiles(mlir::MLIRContext *context,
                                              const std::array<int64_t, 3> &tile,
                                              const MatmulSize &size,
                                              const hw::TargetModel &target);
/// The tiles of a product, and the bytes that an element of K has in their rows and columns.
struct TileGrid {
  int64_t rows, columns; ///< tiles along m and n
  double bytesOfRow, bytesOfColumn;
};
/// Bytes of an element of K in a row of codes, its scales included.
double bytesOfCodes(Format format);
/// The order in which the tiles of a dense product that run at a time load the fewest bytes.
pipe::WorkScheduleAttrInterface rasterOfOperands(mlir::MLIRContext *context, const TileGrid &grid,
                                                 int64_t k, const hw::TargetModel &target);
/// The same where sums are in tensor memory (LaneProductPlans.cpp).
KernelPlan proposeLaneProduct(mlir::Operation *op, const KernelPlan &wish, const MatmulSize &size,
                              const hw::TargetModel &target);
llvm::LogicalResult checkLaneProduct(mlir::Operation *op, const KernelPlan &plan,
                                     const hw::TargetModel &target);

/// The same of floats and of weights that tensor memory has as floats (WeightLanePlans.cpp).
KernelPlan proposeWeightLanes(mlir::Operation *op, const KernelPlan &wish, const MatmulSize &size,
                              const hw::TargetModel &target);
llvm::LogicalResult checkWeightLanes(mlir::Operation *op, const KernelPlan &plan,
                                     const hw::TargetModel &target);

/// The same where the lhs has no scales (WeightProductPlans.cpp).
KernelPlan proposeWeightProduct(mlir::Operation *op, const KernelPlan &wish,
                                const MatmulSize &size, const hw::TargetModel &target);
/// Whether a block may have several ranges of K.
bool mayHaveRanges(mlir::Operation *op, const hw::TargetModel &target);
llvm::LogicalResult checkWeightProduct(mlir::Operation *op, const KernelPlan &plan,
                                       const hw::TargetModel &target);

/// A tile that a product may have, and what it costs by the model of its family, in a unit that all
/// tiles of the product share.
struct SizedTile {
  KernelPlan plan; ///< `tile`, `pair` with its cluster, `swap`, and the sizes that it holds for
  std::function<double(const MatmulSize &)> cost;
};
/// The tiles of each family, those that `product` may have.
std::vector<SizedTile> productTiles(BlockScaledMatmulOp product, const MatmulSize &size,
                                    const hw::TargetModel &target);
std::vector<SizedTile> laneTiles(const hw::TargetModel &target);
std::vector<SizedTile> promotedTiles(BlockScaledMatmulOp product, const hw::TargetModel &target);
std::vector<SizedTile> warpTiles(BlockScaledMatmulOp product, const hw::TargetModel &target);
std::vector<SizedTile> convertedTiles(BlockScaledMatmulOp product, const hw::TargetModel &target);
/// Those whose lhs is converted before the product, for multiples of their depth.
std::vector<SizedTile> aheadTiles(BlockScaledMatmulOp product, const hw::TargetModel &target);
/// Of a lhs without scales, none where no model says what a tile costs beside others.
std::vector<SizedTile> weightTiles(BlockScaledMatmulOp product, const hw::TargetModel &target);
std::vector<SizedTile> weightLaneTiles(BlockScaledMatmulOp product, const hw::TargetModel &target);
/// Such a tile of `tile`.
SizedTile sizedTile(std::array<int64_t, 3> tile, std::function<double(const MatmulSize &)> cost);

/// The sizes of a product, with what is assumed of those that are dynamic (ProductPlans.cpp).
MatmulSize sizeOfProduct(BlockScaledMatmulOp product, const KernelPlan &plan);

/// Completes `fp4.size_plans` of `op`, or decides them, and its `fp4.plan`, where N or K is dynamic
/// (SizePlans.cpp).
llvm::LogicalResult planSizes(BlockScaledMatmulOp op, const hw::TargetModel &target);

const FamilyRules &rulesOf(KernelFamily family);

/// Roles of two warpgroups that multiply, whose accumulators never leave their registers.
llvm::StringRef fragmentRules(pipe::RolePlanAttr roles);

/// For families with a kernel on every target.
llvm::LogicalResult requireNothing(mlir::Operation *op, const hw::TargetModel &target);

/// An error at `op`: field 'tile' of its plan must be this, but got that. Its note says how to get
/// a plan that fits.
mlir::InFlightDiagnostic misfit(mlir::Operation *op, llvm::StringRef field, const llvm::Twine &must,
                                const llvm::Twine &found);

/// `value`, of `field`, is at most `most`.
llvm::LogicalResult checkAtMost(mlir::Operation *op, llvm::StringRef field, int64_t value,
                                int64_t most);

/// What roles that drive all engines of a kernel must do besides; empty if they do.
using RoleRules = llvm::StringRef (*)(pipe::RolePlanAttr roles);
/// One role issues matrix instructions and the copies of scale factors that they read, in order;
/// another loads; and four warps together reach all lanes of tensor memory.
llvm::StringRef tensorMemoryRules(pipe::RolePlanAttr roles);
/// The same of eight warps, in two halves of the columns; and what a plan with so many must say
/// (EpiloguePlans.cpp).
llvm::StringRef wideEpilogueRules(pipe::RolePlanAttr roles);
llvm::LogicalResult checkEpilogueWarps(mlir::Operation *op, const KernelPlan &plan,
                                       const hw::TargetModel &target);
/// What targets without tensor memory refuse (TensorMemoryPlans.cpp): a number of accumulators, and
/// ranges of K where only tensor memory has their sums.
llvm::LogicalResult checkAccumulators(mlir::Operation *op, const KernelPlan &plan,
                                      const hw::TargetModel &target);
Status requireRanges(BlockScaledMatmulOp product, const hw::TargetModel &target);
/// Products whose scales are copied to tensor memory. One warp multiplies and copies them, or two
/// (MmaWarps.cpp): what a plan that says so must be, what its roles must be, which are known to
/// drive tensor, and what is proposed, none for two of which nobody spoke.
bool copiesScales(BlockScaledMatmulOp product, const hw::TargetModel &target);
llvm::LogicalResult checkMmaWarps(mlir::Operation *op, const KernelPlan &plan,
                                  const hw::TargetModel &target);
llvm::LogicalResult checkMmaRole(mlir::Operation *op, const KernelPlan &plan);
std::optional<int64_t> proposeMmaWarps(BlockScaledMatmulOp product, const KernelPlan &wish,
                                       const MatmulSize &size, const ProductTile &tile,
                                       const hw::TargetModel &target);
/// Candidates with such epilogues beside `tiles`, of which `planOf` says the plan; or instead of
/// them, where they are asked for.
void addWideEpilogues(BlockScaledMatmulOp product, const KernelPlan &wish, const MatmulSize &size,
                      const hw::TargetModel &target,
                      llvm::function_ref<KernelPlan(const ProductTile &)> planOf,
                      llvm::SmallVectorImpl<ProductTile> &tiles);
/// `roles`, whose two warpgroups with the epilogue of a dual product get registers of the others.
pipe::RolePlanAttr withEpilogueRegisters(BlockScaledMatmulOp product, const ProductTile &tile,
                                         pipe::RolePlanAttr roles);

/// The schedule is one, and the roles drive all of `engines` and follow `rules`.
llvm::LogicalResult checkTiling(mlir::Operation *op, const KernelPlan &plan,
                                const hw::TargetModel &target,
                                llvm::ArrayRef<pipe::Engine> engines,
                                RoleRules rules = tensorMemoryRules);

/// Blocks of `threads` that a multiprocessor can hold.
int64_t mostBlocksOf(int64_t threads, const hw::TargetModel &target);
/// A thread block can have `threads`, and a multiprocessor can hold `resident` of them.
llvm::LogicalResult checkThreads(mlir::Operation *op, int64_t threads, int64_t resident,
                                 const hw::TargetModel &target);

/// A plan of `family`, the fields of which the caller fills in.
inline KernelPlan planOfFamily(KernelFamily family) {
  KernelPlan plan;
  plan.family = family;
  return plan;
}

/// The family of the plan on `op`, else the one that is chosen for it.
KernelFamily familyOf(mlir::Operation *op);

/// The family that an operation without a plan gets: warps transform on the tensor core where the
/// target has no tcgen05.
KernelFamily chooseFamily(mlir::Operation *op, const hw::TargetModel &target);

/// Reports why warps have no kernel that transforms `op` on the tensor core.
llvm::LogicalResult requireWarpTransform(QuantizeOp op);

/// Whether a plan by the number of rows makes sense: it is dynamic, and that of one matrix.
bool mayHaveRowPlans(BlockScaledMatmulOp op);

/// Decides `fp4.row_plans` of `op`, whose `fp4.plan` is decided: what the program says, then what
/// `given` says, then, where neither this nor `wish`, of `fp4.plan`, says anything, what its family
/// proposes.
llvm::LogicalResult planRows(BlockScaledMatmulOp op, llvm::ArrayRef<KernelPlan> given,
                             const KernelPlan &wish, const hw::TargetModel &target);

/// Reports what `plan` lacks, or what of it does not fit `op`.
llvm::LogicalResult checkComplete(mlir::Operation *op, const KernelPlan &plan,
                                  const hw::TargetModel &target);

/// `plan` completed by what its family proposes, if the result fits; otherwise errors at `op`.
llvm::FailureOr<KernelPlan> completePlan(mlir::Operation *op, const KernelPlan &plan,
                                         const hw::TargetModel &target);

} // namespace fp4
