//===- VerifyCluster.cpp - Clusters and pairs of a kernel -----------------===//

#include "VerifyCluster.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Cluster.h"
#include "fp4/ISA/ClusterLimit.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// (C147) The target runs clusters of this size.
static LogicalResult verifySize(gpu::GPUFuncOp kernel, ArrayRef<int32_t> size,
                                const hw::TargetModel &target) {
  if (llvm::any_of(size, [](int32_t blocks) { return blocks < 1; }) || size[2] != 1)
    return withNote(kernel.emitOpError()
                        << "cluster must have at least one CTA along m and n, and one "
                           "along z, but got "
                        << size[0] << "x" << size[1] << "x" << size[2],
                    "write known_cluster_size = array<i32: M, N, 1>");
  int64_t blocks = int64_t(size[0]) * size[1];
  if (int64_t most = hw::mostClusterCtas(target); blocks > most)
    return withNote(kernel.emitOpError() << "cluster must have at most " << most << " CTAs on "
                                         << StringRef(target.name) << ", but got " << blocks,
                    "take a smaller cluster");
  return success();
}

/// (C147) A grid consists of whole clusters; `extents` has the dimensions that are known.
static LogicalResult verifyGrid(Operation *op, ArrayRef<std::optional<int64_t>> extents,
                                ArrayRef<int32_t> size) {
  for (auto [extent, blocks] : llvm::zip_equal(extents, size))
    if (extent && *extent % blocks)
      return withNote(op->emitOpError()
                          << "grid must be a multiple of the cluster, " << size[0] << "x" << size[1]
                          << "x" << size[2] << ", but one dimension has " << *extent << " CTAs",
                      "round the grid up to whole clusters, and let CTAs without work do nothing");
  return success();
}

static std::optional<int64_t> constantOf(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}

/// (C147) The grids that are known: of the kernel, and of its launches.
static LogicalResult verifyGrids(gpu::GPUFuncOp kernel, ArrayRef<int32_t> size) {
  if (std::optional<ArrayRef<int32_t>> grid = kernel.getKnownGridSize()) {
    SmallVector<std::optional<int64_t>> extents(grid->begin(), grid->end());
    if (failed(verifyGrid(kernel, extents, size)))
      return failure();
  }
  auto kernels = kernel->getParentOfType<gpu::GPUModuleOp>();
  auto module = kernels ? kernels->getParentOfType<ModuleOp>() : ModuleOp();
  if (!module)
    return success();
  WalkResult result = module.walk([&](gpu::LaunchFuncOp launch) {
    if (launch.getKernelModuleName() != kernels.getName() ||
        launch.getKernelName() != kernel.getName())
      return WalkResult::advance();
    SmallVector<std::optional<int64_t>> extents = {constantOf(launch.getGridSizeX()),
                                                   constantOf(launch.getGridSizeY()),
                                                   constantOf(launch.getGridSizeZ())};
    return failed(verifyGrid(launch, extents, size)) ? WalkResult::interrupt()
                                                     : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// (C148) A kernel works in pairs, or it does not: PTX has one cta_group per kernel.
static LogicalResult verifyTiles(gpu::GPUFuncOp kernel) {
  WalkResult result = kernel.walk([&](Operation *op) {
    for (Type type : op->getResultTypes()) {
      auto tile = dyn_cast<TmemType>(type);
      if (!tile || tile.getPair())
        continue;
      withNote(op->emitOpError()
                   << "tiles in tensor memory of a kernel with pairs must belong to a pair, but "
                      "got "
                   << tile,
               "add ', pair' to the type of each tile");
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// (C148)
static LogicalResult verifyPairs(gpu::GPUFuncOp kernel, const hw::TargetModel &target) {
  if (Status status = hw::requireFeature(target, &hw::TargetFeatures::hasCtaPairs, "pairs of CTAs");
      !status)
    return withNote(kernel.emitOpError() << "a tile of a pair must be on a target with pairs: "
                                         << status.error().message,
                    "pairs are of sm_100a, sm_103a, sm_107a and sm_110a: leave ', pair' out for "
                    "others");
  if (uint32_t blocks = clusterOf(kernel).m; blocks % 2)
    return withNote(kernel.emitOpError()
                        << "cluster of a kernel with pairs must have an even number of CTAs "
                           "along m, but got "
                        << blocks,
                    "write known_cluster_size = array<i32: 2, 1, 1>, or a multiple along m");
  return verifyTiles(kernel);
}

/// (C445) Smaller clusters of which a cluster is several.
static LogicalResult verifyFallbackSize(gpu::GPUFuncOp kernel, DenseI32ArrayAttr size) {
  StringRef name = kFallbackClusterAttr;
  hw::ClusterShape cluster = clusterOf(kernel);
  if (size.size() != 2 || size[0] < 1 || size[1] < 1)
    return withNote(kernel.emitOpError()
                        << "'" << name << "' must have the CTAs along m and n of a cluster, "
                        << "but got " << size,
                    "write array<i32: M, N>");
  if (cluster.m % size[0] || cluster.n % size[1])
    return withNote(kernel.emitOpError()
                        << "'" << name << "' must divide the cluster, " << cluster.m << "x"
                        << cluster.n << ", but got " << size[0] << "x" << size[1],
                    "write divisors of the sizes of known_cluster_size");
  return success();
}

/// (C446) A pair is in one cluster, and what it does not do for the CTAs of other clusters is
/// known.
static LogicalResult verifyFallbackPairs(gpu::GPUFuncOp kernel, DenseI32ArrayAttr size) {
  if (!usesPairs(kernel) || size[0] % 2)
    return withNote(kernel.emitOpError()
                        << "'" << kFallbackClusterAttr
                        << "' must have an even number of CTAs along m, and the kernel "
                           "pairs, but got "
                        << size[0] << (usesPairs(kernel) ? "" : " and none"),
                    "leave the attribute out where there are no pairs, or write array<i32: 2, N>");
  return success();
}

/// (C447) A request for work takes over a cluster of an unknown size, and CTAs of several clusters
/// cannot reduce their sums.
static LogicalResult verifyFallbackOps(gpu::GPUFuncOp kernel) {
  WalkResult result = kernel.walk([](Operation *op) {
    if (!isa<RequestWorkOp, NextWorkOp, ClusterReductionOpInterface>(op))
      return WalkResult::advance();
    InFlightDiagnostic diag = op->emitOpError()
                              << "must be in a kernel whose clusters have one size";
    diag.attachNote() << "the kernel has '" << kFallbackClusterAttr << "'";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// (C448)
static LogicalResult verifyFallback(gpu::GPUFuncOp kernel, const hw::TargetModel &target) {
  auto size = kernel->getAttrOfType<DenseI32ArrayAttr>(kFallbackClusterAttr);
  if (!size)
    return success();
  if (Status status = hw::requirePreferredClusters(target); !status)
    return withNote(kernel.emitOpError() << "'" << kFallbackClusterAttr
                                         << "' must be on a target with preferred clusters: "
                                         << status.error().message,
                    "leave the attribute out: the launch has clusters of one size there");
  if (failed(verifyFallbackSize(kernel, size)) || failed(verifyFallbackPairs(kernel, size)))
    return failure();
  return verifyFallbackOps(kernel);
}

LogicalResult fp4::pipe::verifyCluster(gpu::GPUFuncOp kernel, const hw::TargetModel &target) {
  if (std::optional<ArrayRef<int32_t>> size = kernel.getKnownClusterSize())
    if (failed(verifySize(kernel, *size, target)) || failed(verifyGrids(kernel, *size)))
      return failure();
  if (usesPairs(kernel) && failed(verifyPairs(kernel, target)))
    return failure();
  return verifyFallback(kernel, target);
}
