//===- PromotedRates.cpp - The row of the table of rates -------------------===//
#include "fp4/ISA/PromotedRates.h"

#include "fp4/ISA/GpuModel.h"

namespace fp4::hw {
namespace {

// The rate of the target is that of an H200, by which the rates are fitted.
constexpr double terabytesOfTarget = *timingRate("sm_90a", TimingRate::MemoryTerabytes);

constexpr PromotedRates fp8 = {
    .alone = {150, 2.41},
    .deep = {53.5, 2.55},
    .beside = {135, 4.11},
    .tall = {118, 8.42},
    .many = {192, 2.86},
    .manyTall = {24.6, 8.36},
    .select = 1.23,
    .manySelect = 1.1,
    .feedBytes = 62.2,
    .memoryBytes = 2380,
    .tile = 65.7,
    .tileColumn = 1.09,
    .manyTile = 1560,
    .launch = 5530,
    .cluster = 123,
    .clusterColumn = 19.7,
    .workspace = 3410,
    .workspaceColumn = 11.1,
    .mark = Mark::Fitted,
    .source = "benchmarks/analysis/fit_tiles.py, kernels of random layers on an H200",
};

} // namespace

std::optional<PromotedRates> promotedRates(const TargetModel &target) {
  if (!target.features.hasWgmma)
    return std::nullopt;
  PromotedRates rates = fp8;
  rates.memoryBytes *= memoryOfDevice(target, terabytesOfTarget);
  return rates;
}

} // namespace fp4::hw
