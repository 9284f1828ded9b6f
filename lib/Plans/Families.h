//===- Families.h - The rules of each family of kernels -------------------===//
//
// A family proposes a plan for an operation and checks one. Each has its functions in the file that
// is named after its kernels; Families.cpp lists them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"
#include "fp4/Plans/KernelPlans.h"

#include <array>

namespace fp4 {

struct FamilyRules {
  KernelFamily family;
  /// Reports why the family has no kernel for `op` on `target` with the route of `plan`.
  llvm::LogicalResult (*require)(mlir::Operation *op, const KernelPlan &plan,
                                 const hw::TargetModel &target);
  /// Proposes a complete plan that agrees with `partial`, a partial plan. The requirements hold.
  KernelPlan (*propose)(mlir::Operation *op, const KernelPlan &partial,
                        const hw::TargetModel &target);
  /// Reports the fields of a complete plan that do not fit. The requirements hold.
  llvm::LogicalResult (*check)(mlir::Operation *op, const KernelPlan &plan,
                               const hw::TargetModel &target);
  /// Why plans of `op` may not depend on its rows; empty where they may. Null: no plans of the
  /// family do.
  std::string (*whyNoCases)(mlir::Operation *op) = nullptr;
  /// Proposes cases for few rows, whose plans differ from `last`; none where one plan is for all.
  llvm::SmallVector<mlir::Attribute> (*proposeCases)(mlir::Operation *op, const KernelPlan &last,
                                                     const hw::TargetModel &target) = nullptr;
};

extern const FamilyRules kGemmRules, kTransformRules, kTileQuantizeRules, kStreamBlocksRules,
    kStreamItemsRules, kReduceGridRules, kReduceRowsRules, kGemvRules, kAttentionRules,
    kWarpAttentionRules;
/// Rules of family tile_attention for gradients, and for values that are columns of keys.
extern const FamilyRules kBackwardRules, kLatentRules;

/// Reports heads that no kernel has; `known` are the sizes that kernels have.
mlir::InFlightDiagnostic refuseHead(AttentionOp op, llvm::StringRef name, int64_t elements,
                                    llvm::StringRef known);
/// Checks that the operation leaves the order of keys to its kernel.
llvm::LogicalResult requireNoOrder(AttentionOp op);
/// Checks that rows of values that have scales, of all keys, are whole blocks and loads.
llvm::LogicalResult requireValueRows(AttentionOp op);
/// Checks that the tokens of a page, if there are pages, are a multiple of `unit`.
llvm::LogicalResult requirePages(AttentionOp op, int64_t unit);
/// Checks that a kernel of lanes, or of tiles, quantizes the elements if the epilogue region does.
llvm::LogicalResult requireQuantizer(AttentionOp op, bool inLanes);
/// Returns true when the target has a kernel of family tile_attention for the heads of `op`.
bool hasTiles(AttentionOp op, const hw::TargetModel &target);
/// Returns true when warp_attention is faster than tile_attention: for few queries, and large
/// caches or small heads.
bool prefersWarps(AttentionOp op, const hw::TargetModel &target);

const FamilyRules &rulesOf(KernelFamily family);

/// Requires nothing, for families with a kernel on every target.
llvm::LogicalResult requireNothing(mlir::Operation *op, const KernelPlan &plan,
                                   const hw::TargetModel &target);

/// Reports at `op` what a table of facts says is wrong.
mlir::InFlightDiagnostic report(mlir::Operation *op, const Error &error);
/// Emits an error at `op`: field 'tile' of its plan must be this, but got that. The note says how
/// to get a plan that fits.
mlir::InFlightDiagnostic misfit(mlir::Operation *op, llvm::StringRef field, const llvm::Twine &must,
                                const llvm::Twine &found);

/// The text of an attribute, and of sizes, "[128, 64, 256]", without zeros.
std::string spell(mlir::Attribute attribute);
std::string spell(const std::array<int64_t, 3> &sizes);
/// Emits such an error of 'tile'.
llvm::LogicalResult misfitTile(mlir::Operation *op, const KernelPlan &plan,
                               const llvm::Twine &must);

/// Checks that `value`, of `field`, is at most `most`.
llvm::LogicalResult checkAtMost(mlir::Operation *op, llvm::StringRef field, int64_t value,
                                int64_t most);

/// Requirements of roles that drive all engines of a kernel. One role loads, and another one drives
/// the tensor core.
struct RoleRules {
  bool areOneRole = false; ///< one role drives the tensor core and threads
  /// Warps that drive threads, from a multiple of `unit` on; none: any. `why` follows in the error.
  llvm::SmallVector<int64_t, 2> warps = {};
  int64_t unit = 4;
  llvm::StringRef why = {};
  /// Warps of an auxiliary role that converts, from a multiple of 4 on; none: any.
  std::optional<llvm::SmallVector<int64_t, 3>> converting = {};

  /// One warpgroup, which reaches all TMEM lanes.
  static RoleRules ofLanes() { return {.warps = {4}}; }
  /// Warpgroups whose accumulators never leave their registers.
  static RoleRules ofFragments(int64_t groups = 2) {
    return {.areOneRole = true, .warps = {4 * groups}, .unit = 8};
  }
};

/// "64, 128 or 256".
std::string spellChoice(llvm::ArrayRef<int64_t> numbers);

/// Checks that the plan has a schedule, and that the roles drive all of `engines` and follow
/// `rules`.
llvm::LogicalResult checkTiling(mlir::Operation *op, const KernelPlan &plan,
                                const hw::TargetModel &target, llvm::ArrayRef<pipe::Engine> engines,
                                const RoleRules &rules = RoleRules::ofLanes());

/// CTAs of `threads` that an SM can hold.
int64_t mostCtasPerSm(int64_t threads, const hw::TargetModel &target);
/// Checks that a CTA can have `threads`, and that an SM can hold `resident` such CTAs.
llvm::LogicalResult checkThreads(mlir::Operation *op, int64_t threads, int64_t resident,
                                 const hw::TargetModel &target);

/// Checks a reduction: the warps of a CTA leave their maxima to the lanes of one warp, which are
/// numbered by a mask.
llvm::LogicalResult checkReduction(mlir::Operation *op, const KernelPlan &plan,
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

/// Reports cases of `op` for few rows where its plan is for all rows. That plan is of `family`.
llvm::LogicalResult requireRowCases(mlir::Operation *op, KernelFamily family);

/// Cases for few rows of an operation whose rows are dynamic, where their plans differ from `last`
/// (RowCases.h); none elsewhere.
llvm::SmallVector<mlir::Attribute> proposeRowCases(mlir::Operation *op, const KernelPlan &last,
                                                   const hw::TargetModel &target);

} // namespace fp4
