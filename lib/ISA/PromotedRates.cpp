//===- PromotedRates.cpp - The row of the table of rates -------------------===//
#include "fp4/ISA/PromotedRates.h"

#include "fp4/ISA/GpuModel.h"

namespace fp4::hw {
namespace {

// The rate of the target is that of an H200, by which the rates are fitted.
constexpr double terabytesOfTarget = *timingRate("sm_90a", TimingRate::MemoryTerabytes);

constexpr PromotedRates fp8 = {
    .alone = {188, 2.02},
    .deep = {62.7, 2.21},
    .beside = {166, 4.12},
    .tall = {133, 8.8},
    .many = {234, 2.55},
    .manyTall = {43.8, 8.31},
    .select = 9.5,
    .manySelect = 7.5,
    .feedBytes = 61.8,
    .memory = {2380, 0.125, 16100},
    .tile = {117, 2.15},
    .manyTile = 1500,
    .launch = 5350,
    .overlapped = 4490,
    .cluster = {70.3, 14.8},
    .workspace = {3330, 9.8},
    .mark = Mark::Fitted,
    .source = "benchmarks/analysis/fit_tiles.py, kernels of random layers on an H200",
};

} // namespace

std::optional<PromotedRates> promotedRates(const TargetModel &target) {
  if (!target.features.hasWgmma)
    return std::nullopt;
  PromotedRates rates = fp8;
  rates.memory.bytes *= memoryOfDevice(target, terabytesOfTarget);
  return rates;
}

} // namespace fp4::hw
