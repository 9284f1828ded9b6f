//===- VerifyCluster.cpp - Clusters and pairs of a kernel -----------------===//

#include "VerifyCluster.h"

#include "fp4/Dialect/Pipe/IR/Cluster.h"
#include "fp4/ISA/TargetModel.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// (C147) The target runs clusters of this size.
static LogicalResult verifySize(gpu::GPUFuncOp kernel, ArrayRef<int32_t> size,
                                const hw::TargetModel &target) {
  if (llvm::any_of(size, [](int32_t blocks) { return blocks < 1; }) || size[2] != 1)
    return kernel.emitOpError() << "cluster must have at least one block along m and n, and one "
                                   "along z, but got "
                                << size[0] << "x" << size[1] << "x" << size[2];
  int64_t blocks = int64_t(size[0]) * size[1];
  if (blocks > target.maxClusterSize)
    return kernel.emitOpError() << "cluster must have at most " << target.maxClusterSize
                                << " blocks on " << StringRef(target.name) << ", but got "
                                << blocks;
  return success();
}

/// (C147) A grid consists of whole clusters; `extents` has the dimensions that are known.
static LogicalResult verifyGrid(Operation *op, ArrayRef<std::optional<int64_t>> extents,
                                ArrayRef<int32_t> size) {
  for (auto [extent, blocks] : llvm::zip_equal(extents, size))
    if (extent && *extent % blocks)
      return op->emitOpError() << "grid must be a multiple of the cluster, " << size[0] << "x"
                               << size[1] << "x" << size[2] << ", but one dimension has " << *extent
                               << " blocks";
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
      op->emitOpError()
          << "tiles in tensor memory of a kernel with pairs must belong to a pair, but "
             "got "
          << tile;
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// (C148)
static LogicalResult verifyPairs(gpu::GPUFuncOp kernel, const hw::TargetModel &target) {
  if (Status status = hw::requireFeature(target, &hw::TargetModel::hasCtaPairs, "pairs of blocks");
      !status)
    return kernel.emitOpError() << "a tile of a pair must be on a target with pairs: "
                                << status.error().message;
  if (uint32_t blocks = clusterOf(kernel).m; blocks % 2)
    return kernel.emitOpError()
           << "cluster of a kernel with pairs must have an even number of blocks "
              "along m, but got "
           << blocks;
  return verifyTiles(kernel);
}

LogicalResult fp4::pipe::verifyCluster(gpu::GPUFuncOp kernel, const hw::TargetModel &target) {
  if (std::optional<ArrayRef<int32_t>> size = kernel.getKnownClusterSize())
    if (failed(verifySize(kernel, *size, target)) || failed(verifyGrids(kernel, *size)))
      return failure();
  return usesPairs(kernel) ? verifyPairs(kernel, target) : success();
}
