//===- ScaleWarps.cpp - Roles whose second warp copies scales --------------===//

#include "fp4/Dialect/Pipe/IR/ScaleWarps.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"

using namespace mlir;
using namespace fp4::pipe;

bool fp4::pipe::hasScaleWarp(RoleAttr role) {
  return role.drives(Engine::ScaleCopy) && role.getNumWarps() == 2;
}

bool fp4::pipe::hasOnlyScales(ChannelOp channel) {
  bool all = false;
  for (Operation *user : channel->getUsers())
    if (auto wait = dyn_cast<ConsumerWaitOp>(user)) {
      all = llvm::all_of(wait->getUsers(), llvm::IsaPred<CopyScalesOp>);
      if (!all)
        return false;
    }
  return all;
}

bool fp4::pipe::feedsScaleWarp(ChannelOp channel) {
  if (channel.isCopiedAhead())
    return true;
  return llvm::any_of(channel->getUsers(), [](Operation *user) {
    auto wait = dyn_cast<ConsumerWaitOp>(user);
    auto region = wait ? wait->getParentOfType<RoleRegionOp>() : RoleRegionOp();
    return region && hasScaleWarp(region.getRole()) &&
           llvm::any_of(wait->getUsers(), llvm::IsaPred<CopyScalesOp>);
  });
}

int64_t fp4::pipe::barrierBytes(ChannelOp channel, int64_t depth) {
  constexpr int64_t bytes = 8;
  return bytes * (feedsScaleWarp(channel) ? 3 * depth + 1 : 2 * depth);
}
