//===- WeightRates.cpp - The rows of the table of rates -------------------===//
#include "fp4/ISA/WeightRates.h"

#include "fp4/ISA/GpuModel.h"

namespace fp4::hw {
namespace {

constexpr std::string_view measured =
    "benchmarks/analysis/fit_tiles.py, kernels of random layers on an H100";

// Rates of e4m3 whose sums stay in the tensor core: a row of 128 columns takes at least the 4
// cycles that the MMAs of a k tile need.
constexpr std::string_view measuredOnBoth =
    "benchmarks/analysis/fit_tiles.py, kernels of random layers on an H100 and an H200";

// The bytes of memory are a fifth more than the fit to an H100 has, because a target without a
// device is also that of an H200, whose memory delivers 1.43 times as many. A device has the bytes
// of its own memory.
constexpr double shareOfTarget = 1.2;
constexpr double terabytesOfFit = *timingRate("h100", TimingRate::MemoryTerabytes);

constexpr WeightRates halves = {
    .convert = 485,
    .convertRow = 4.86,
    .multiplyRow = 8.33,
    .wide = 0.932,
    .shared = 2.07,
    .epilogueRow = 19.9,
    .launch = 2150,
    .memoryBytes = 1900,
    .workspace = 1990,
    .workspaceRow = 29.3,
    .cluster = 1060,
    .clusterRow = 16,
    .share = 7580,
    .shareRow = 75,
    .mark = Mark::Fitted,
    .source = measured,
};

constexpr WeightRates bytes = {
    .convert = 436,
    .convertRow = 1.65,
    .multiplyRow = 4.1,
    .wide = 0.935,
    .shared = 1.95,
    .epilogueRow = 19,
    .launch = 3100,
    .memoryBytes = 2220,
    .workspace = 2790,
    .workspaceRow = 17.1,
    .cluster = 2590,
    .clusterRow = 4.08,
    .share = 6720,
    .shareRow = 103,
    .mark = Mark::Fitted,
    .source = measuredOnBoth,
};

constexpr WeightRates promotedBytes = {
    .convert = 521,
    .convertRow = 2.04,
    .multiplyRow = 5.56,
    .wide = 0.912,
    .shared = 1.68,
    .epilogueRow = 40.8,
    .launch = 400,
    .memoryBytes = 2150,
    .workspace = 4160,
    .workspaceRow = 18.2,
    .cluster = 3530,
    .clusterRow = 9.8,
    .share = 6730,
    .shareRow = 109,
    .mark = Mark::Fitted,
    .source = measuredOnBoth,
};

const WeightRates &ratesOf(WeightGemm kind) {
  switch (kind) {
  case WeightGemm::Halves:
    return halves;
  case WeightGemm::Bytes:
    return bytes;
  case WeightGemm::PromotedBytes:
    break;
  }
  return promotedBytes;
}

} // namespace

std::optional<WeightRates> weightRates(const TargetModel &target, WeightGemm kind) {
  if (!target.features.hasWgmma)
    return std::nullopt;
  WeightRates rates = ratesOf(kind);
  rates.memoryBytes *= memoryOfDevice(target, shareOfTarget * terabytesOfFit);
  return rates;
}

} // namespace fp4::hw
