//===- WeightRates.cpp - The rows of the table of rates -------------------===//
#include "fp4/ISA/WeightRates.h"

#include "fp4/ISA/GpuModel.h"

namespace fp4::hw {
namespace {

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
    .three = 0.88,
    .shared = 1.73,
    .ahead = 0.92,
    .slice = 0.605,
    .epilogueRow = 19.9,
    .launch = 2150,
    .overlapped = 905,
    .memoryBytes = 2150,
    .workspace = {2260, 22.2},
    .cluster = {583, 24},
    .clusterRange = 322,
    .share = {7580, 75},
    .mark = Mark::Fitted,
    .source = measuredOnBoth,
};

constexpr WeightRates bytes = {
    .convert = 402,
    .convertRow = 1.65,
    .multiplyRow = 4.1,
    .wide = 0.935,
    .three = 0.96,
    .shared = 1.92,
    .ahead = 0.97,
    .slice = 0.95,
    .epilogueRow = 19,
    .launch = 2740,
    .overlapped = 1230,
    .memoryBytes = 2160,
    .workspace = {1540, 24.8},
    .cluster = {1050, 22},
    .clusterRange = 122,
    .share = {6720, 103},
    .mark = Mark::Fitted,
    .source = measuredOnBoth,
};

constexpr WeightRates promotedBytes = {
    .convert = 464,
    .convertRow = 2.01,
    .multiplyRow = 5.5,
    .wide = 0.943,
    .three = 1, // 48 rows of 24576 x 4096: 0.79 of the time of 256 columns
    .shared = 1.87,
    .ahead = 0,
    .slice = 0.905,
    .epilogueRow = 41.5,
    .launch = 984,
    .overlapped = 610,
    .memoryBytes = 2370,
    .workspace = {3160, 19.2},
    .cluster = {2300, 14.5},
    .clusterRange = 122,
    .share = {4740, 119},
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
  rates.kind = kind;
  rates.memoryBytes *= memoryOfDevice(target, shareOfTarget * terabytesOfFit);
  return rates;
}

} // namespace fp4::hw
