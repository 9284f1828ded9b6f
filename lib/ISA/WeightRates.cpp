//===- WeightRates.cpp - The rows of the table of rates -------------------===//
#include "fp4/ISA/WeightRates.h"

#include "fp4/ISA/GpuModel.h"

namespace fp4::hw {
namespace {

constexpr std::string_view measured =
    "benchmarks/analysis/fit_tiles.py, kernels of random layers on an H100";

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
    .convert = 455,
    .convertRow = 2.11,
    .multiplyRow = 1.89,
    .wide = 0.918,
    .shared = 1.84,
    .epilogueRow = 11.8,
    .launch = 2040,
    .memoryBytes = 2230,
    .workspace = 3420,
    .workspaceRow = 24.1,
    .cluster = 3660,
    .clusterRow = 8.8,
    .share = 4120,
    .shareRow = 112,
    .mark = Mark::Fitted,
    .source = measured,
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
    .share = 0, // not measured
    .shareRow = 0,
    .mark = Mark::Fitted,
    .source = measured,
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
