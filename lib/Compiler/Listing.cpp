//===- Listing.cpp - Listings of a program for the explorer ---------------===//
#include "Listing.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Support/DebugStringHelper.h"
#include "mlir/Transforms/LocationSnapshot.h"
#include "llvm/Support/JSON.h"

#include <set>

using namespace mlir;
using namespace fp4;
namespace json = llvm::json;

namespace {

/// Describes bytes of shared memory or columns of tensor memory, `stages` times.
json::Object extent(bool shared, std::string what, int64_t first, int64_t size, int64_t stages,
                    int64_t stride) {
  return json::Object{{"space", shared ? "shared" : "tensor"}, {"what", std::move(what)},
                      {"first", first},                        {"size", size},
                      {"stages", stages},                      {"stride", stride}};
}

json::Object describeChannel(pipe::ChannelOp channel, int64_t number, json::Array &extents) {
  json::Array consumers;
  for (pipe::Engine engine : channel.getConsumerEngines())
    consumers.push_back(stringifyEngine(engine));
  const std::string name = "channel " + std::to_string(number);
  if (channel.isPipelined()) {
    for (auto [i, type] : llvm::enumerate(channel.getType().getPayload())) {
      auto shared = dyn_cast<pipe::SharedType>(type);
      int64_t size = shared ? shared.getBytes() : cast<pipe::TmemType>(type).getTmemColumns();
      extents.push_back(extent(bool(shared), name + ": " + debugString(type), (*channel.getPayload())[i],
                               size, *channel.getDepth(), channel.getStageStride(i)));
    }
    extents.push_back(extent(true, name + ": barriers", *channel.getBarriers(),
                             16 * *channel.getDepth(), 1, 16 * *channel.getDepth()));
  }
  return json::Object{{"name", name},
                      {"from", stringifyEngine(channel.getProducer())},
                      {"to", std::move(consumers)},
                      {"depth", int64_t(channel.getDepth().value_or(0))}};
}

json::Object describeRole(pipe::RoleRegionOp role) {
  json::Array engines;
  for (pipe::Engine engine : role.getRole().getEngines())
    engines.push_back(stringifyEngine(engine));
  return json::Object{{"name", role.getRole().getName()},
                      {"first", int64_t(role.getRole().getFirstWarp())},
                      {"end", int64_t(role.getRole().getEndWarp())},
                      {"drives", std::move(engines)}};
}

json::Object describeKernel(gpu::GPUFuncOp kernel) {
  json::Array roles, channels, extents;
  kernel.walk([&](Operation *op) {
    if (auto role = dyn_cast<pipe::RoleRegionOp>(op))
      roles.push_back(describeRole(role));
    else if (auto channel = dyn_cast<pipe::ChannelOp>(op))
      channels.push_back(describeChannel(channel, int64_t(channels.size()), extents));
    else if (auto tile = dyn_cast<pipe::TmemTileOpInterface>(op);
             tile && tile.fillsTile() && tile.getFirstColumn()) {
      auto type = cast<pipe::TmemType>(tile.getTmemTile().getType());
      extents.push_back(extent(false, debugString(type), *tile.getFirstColumn(), type.getTmemColumns(),
                               tile.getNumSets(), type.getTmemColumns()));
    }
  });
  auto number = [&](StringRef name) {
    auto value = kernel->getAttrOfType<IntegerAttr>(name);
    return value ? value.getInt() : 0;
  };
  return json::Object{{"module", kernel->getParentOfType<gpu::GPUModuleOp>().getName()},
                      {"roles", std::move(roles)},
                      {"channels", std::move(channels)},
                      {"extents", std::move(extents)},
                      {"shared_bytes", number(pipe::PipeDialect::kSharedBytesAttr)},
                      {"tensor_columns", number(pipe::PipeDialect::kTmemColumnsAttr)}};
}

} // namespace

Listing fp4::listModule(ModuleOp module, StringRef file) {
  Listing listing;
  AsmState::LocationMap places;
  AsmState state(module, OpPrintingFlags(), &places);
  llvm::raw_string_ostream stream(listing.text);
  module->print(stream, state);
  stream << "\n";
  std::map<unsigned, std::set<unsigned>> origins;
  for (auto [op, place] : places) {
    op->getLoc()->walk([&, line = place.first](Location location) {
      if (auto found = dyn_cast<FileLineColLoc>(location); found && found.getFilename() == file)
        origins[line].insert(found.getLine());
      return WalkResult::advance();
    });
  }
  listing.origins.resize(llvm::count(listing.text, '\n'));
  for (const auto &[line, lines] : origins)
    if (line >= 1 && line <= listing.origins.size())
      listing.origins[line - 1].assign(lines.begin(), lines.end());
  return listing;
}

void fp4::placeInOwnText(ModuleOp module, StringRef file) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  generateLocationsFromIR(stream, file, module, OpPrintingFlags());
}

std::string fp4::describeMemory(ModuleOp module) {
  json::Array kernels;
  module.walk([&](gpu::GPUFuncOp kernel) { kernels.push_back(describeKernel(kernel)); });
  std::string text;
  llvm::raw_string_ostream(text) << json::Value(std::move(kernels));
  return text;
}
