//===- Cluster.cpp - CTAs of a cluster that share channels ----------------===//

#include "fp4/Dialect/Pipe/IR/Cluster.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

hw::ClusterShape fp4::pipe::clusterOf(Operation *op) {
  auto kernel = dyn_cast<gpu::GPUFuncOp>(op);
  if (!kernel)
    kernel = op->getParentOfType<gpu::GPUFuncOp>();
  std::optional<ArrayRef<int32_t>> size = kernel ? kernel.getKnownClusterSize() : std::nullopt;
  auto isLegal = [](int32_t blocks) { return blocks > 0 && blocks <= int32_t(hw::maxClusterCtas); };
  if (!size || !isLegal((*size)[0]) || !isLegal((*size)[1]) ||
      (*size)[0] * (*size)[1] > int32_t(hw::maxClusterCtas)) // (C147) is violated
    return {};
  return {uint32_t((*size)[0]), uint32_t((*size)[1])};
}

std::optional<hw::ClusterShape> fp4::pipe::fallbackOf(Operation *op) {
  auto kernel = dyn_cast<gpu::GPUFuncOp>(op);
  if (!kernel)
    kernel = op->getParentOfType<gpu::GPUFuncOp>();
  auto size =
      kernel ? kernel->getAttrOfType<DenseI32ArrayAttr>(kFallbackClusterAttr) : DenseI32ArrayAttr();
  if (!size || size.size() != 2 || size[0] < 1 || size[1] < 1) // (C445) is violated
    return std::nullopt;
  return hw::ClusterShape{uint32_t(size[0]), uint32_t(size[1])};
}

bool fp4::pipe::makesTileOfPair(Operation *op) {
  return llvm::any_of(op->getResultTypes(), [](Type type) {
    auto tile = dyn_cast<TmemType>(type);
    return tile && tile.getPair();
  });
}

bool fp4::pipe::usesPairs(Operation *kernel) {
  return kernel
      ->walk([](Operation *op) {
        return makesTileOfPair(op) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool fp4::pipe::runsOnLeaders(RoleAttr role, bool pairs) {
  return pairs && (role.drives(Engine::Tensor) || role.drives(Engine::ScaleCopy));
}

hw::ClusterDirection fp4::pipe::toHardware(Direction direction) {
  switch (direction) {
  case Direction::M:
    return hw::ClusterDirection::M;
  case Direction::N:
    return hw::ClusterDirection::N;
  case Direction::Pairs:
    return hw::ClusterDirection::Pairs;
  }
  llvm_unreachable("every direction has its hardware's");
}

StringRef fp4::pipe::spellBlocksAlong(Direction direction) {
  return direction == Direction::M   ? "CTAs along m"
         : direction == Direction::N ? "CTAs along n"
                                     : "pairs along m";
}

int32_t ChannelSharing::getNumReleasing() const {
  int32_t count = 0;
  for (uint32_t rank = 0; rank < cluster.size(); ++rank)
    count += consumes(rank) && (producersOf(rank) & 1); // CTA 0 leads its pair
  return count;
}

ChannelSharing fp4::pipe::sharingOf(ChannelOp channel, bool pairs) {
  ChannelSharing sharing;
  sharing.cluster = clusterOf(channel);
  sharing.pairFills = pairs && channel.getProducer() == Engine::Tensor;
  sharing.pairUses = pairs && channel.feedsTensor();
  for (Operation *user : channel->getUsers())
    if (auto filler = dyn_cast<StageFillerOpInterface>(user))
      if (std::optional<Direction> direction = filler.getMulticastDirection())
        (*direction == Direction::M   ? sharing.multicastM
         : *direction == Direction::N ? sharing.multicastN
                                      : sharing.multicastPairs) = true;
  return sharing;
}
