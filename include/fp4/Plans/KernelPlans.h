//===- KernelPlans.h - The plan that a lowering obeys ---------------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/ISA/TargetModel.h"
#include "fp4/Routes/Routes.h"

#include <vector>

namespace fp4 {

/// Rows and columns of a tile of the input, and elements along the transform, of a tile_transform
/// kernel.
inline constexpr int64_t kTransformTileM = 64, kTransformTileK = 128, kTransformSize = 16;
/// Threads of a CTA of a tile_quantize kernel.
inline constexpr int64_t kTileQuantizeThreads = 256;

/// A stream_blocks kernel that computes the amax of its input too: threads of a CTA, blocks of a
/// thread, which keeps their elements in registers until it knows the amax, and CTAs that an SM of
/// the target holds.
inline constexpr int64_t kAmaxThreads = 512, kAmaxBlocksPerThread = 1;
int64_t amaxCtasPerSm(const hw::TargetModel &target);
/// The largest grid of such a kernel, in eighths of the CTAs that fit on the GPU at once: 924 rows
/// of 4096 elements on an H200. With more rows two launches that overlap take less time. No GPU
/// holds more than kAmaxMostCtas of its CTAs.
inline constexpr int64_t kAmaxEighths = 7, kAmaxMostCtas = 1024;
/// The amax that such a kernel of `quantize` can compute: of the same tensor, and no operation
/// needs it before. Null where there is none.
AmaxOp amaxOfKernel(QuantizeOp quantize);

/// Rows of queries, tokens and the heads that share keys, of a CTA of a warp_attention kernel: a
/// multiple of 8.
int64_t rowsOfWarpTile(AttentionOp op);
/// Keys of a step of a warp: 16, or those of an instruction that scales blocks of keys.
int64_t keysOfWarpStep(AttentionOp op);
/// Numbers (f32) of a lane for `tiles` times eight rows and `valueTiles` times 16 elements of a
/// head: of each eight rows two maxima, two sums, and four results for 16 elements.
constexpr int64_t numbersOfWarpState(int64_t tiles, int64_t valueTiles) {
  return tiles * (2 + 2 + 4 * valueTiles);
}

/// A transform of the quantizer runs on the tensor core.
bool transformsOnTensorCore(QuantizeOp op);

/// The families that have a kernel for what `op` computes, the one that is chosen first; none where
/// `op` is no operation of the fp4 dialect.
llvm::SmallVector<KernelFamily, 2> familiesOf(mlir::Operation *op);

/// Returns true when convert-fp4-to-pipe, and not convert-fp4-to-gpu, makes the kernel of `op`, an
/// operation of the fp4 dialect.
bool hasTileKernel(mlir::Operation *op);

/// The operations below `root` that become kernels, in program order; with `wanted` those for which
/// it is true.
llvm::SmallVector<mlir::Operation *>
kernelOperations(mlir::Operation *root, llvm::function_ref<bool(mlir::Operation *)> wanted = {});

/// The plan on `op`. Fails, with an error at `op`, where there is none, where it is not complete,
/// or where it does not fit the operation or the target.
llvm::FailureOr<KernelPlan> planOf(mlir::Operation *op, const hw::TargetModel &target);

/// The plans of a matmul: those of `dispatch`, in the order of their rows, or the one of
/// `fp4.plan`. Fails as planOf does.
llvm::FailureOr<std::vector<KernelPlan>> plansOf(BlockScaledMatmulOp op,
                                                 const hw::TargetModel &target);

/// The place where the kernel of `plan` lets the next one begin, the value of kPdlAttr at its
/// launch; std::nullopt where the plan asks for no PDL.
std::optional<LaunchDependents> launchDependentsOf(const KernelPlan &plan);

/// Names of the roles that have the parts of a tile of attention with TMEM lanes, but for the first
/// part, which the role that drives threads has: they are auxiliary, each a warpgroup.
llvm::SmallVector<llvm::StringRef> partRoles(const KernelPlan &plan);
/// Name of the role that transposes values of attention of bytes.
inline constexpr llvm::StringLiteral kTransposeRole = "transpose";
/// Name of the role that has the second half of the columns of latent values.
inline constexpr llvm::StringLiteral kValuesRole = "values";

/// Rows of lhs that a kernel with `plan` has at most; ShapedType::kDynamic where nothing is known.
int64_t mostRowsOf(BlockScaledMatmulOp op, const KernelPlan &plan);
/// Elements of which K of a matmul with `plan` is known to be a multiple: K where it is static.
int64_t knownUnitOfDepth(BlockScaledMatmulOp op, const KernelPlan &plan);
/// Parts into which split-K cuts K in a kernel with `plan`.
int64_t splitsOf(BlockScaledMatmulOp op, const KernelPlan &plan);

/// Returns the most columns that each CTA adds when `blocks` CTAs (or pairs) of a cluster reduce
/// accumulators of `columns` columns in tensor memory. The columns are dealt out in equal whole
/// units.
int64_t reducedColumns(int64_t columns, int64_t blocks);

/// The route of `plan`, a complete plan that fits `product`.
const route::Record &recordOf(BlockScaledMatmulOp product, const KernelPlan &plan,
                              const hw::TargetModel &target);

} // namespace fp4
