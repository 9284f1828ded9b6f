//===- PromotedRates.cpp - The row of the table of rates -------------------===//
#include "fp4/ISA/PromotedRates.h"

#include "fp4/ISA/GpuModel.h"

namespace fp4::hw {
namespace {

// The rate of the target is that of an H200, by which the rates are fitted.
constexpr double terabytesOfTarget = *timingRate("sm_90a", TimingRate::MemoryTerabytes);

constexpr PromotedRates fp8 = {
    .alone = {175, 1.81},
    .deep = {124, 1.1},
    .beside = {134, 4.04},
    .tall = {66, 9},
    .many = {159, 2.65},
    .manyTall = {35.6, 8.17},
    .select = 10.7,
    .manySelect = 9.95,
    .feedBytes = 65.7,
    .memory = {2430, 0.167, 24000},
    .tile = {58.1, 4.33},
    .manyTile = 1580,
    .launch = 5000,
    .overlapped = 4010,
    .cluster = {34.9, 16},
    .workspace = {3630, 9.22},
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
