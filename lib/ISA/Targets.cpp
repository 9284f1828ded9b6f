//===- Targets.cpp - The rows of the table of targets ---------------------===//
//
// A new target is one row here and one in unittests/ISA/TargetModelTest.cpp
// (docs/guides/add-a-target.md). Every row says every fact: the compiler rejects a row that
// leaves one out.
//
// Sources:
//   sm_107a        CUTLASS 4.8 (shared and tensor memory), PTX ISA 9.4, and ptxas 13.5.37, which
//                  refuses what is not there; [uncertain] 212 SMs, of test mocks of TensorRT-LLM
//                  and FlashInfer, and the L2 of B200, as nobody has published Rubin's
//   capacities     CUDA Blackwell and Hopper tuning guides; CUDA C++ Programming Guide, technical
//                  specifications by compute capability; ptxas 13.0.88, which rejects a kernel with
//                  more shared memory, threads or CTAs than an SM has
//   instructions   those that ptxas 13.0.88 assembles (TargetsTest asks it again)
//   GEMMs          data sheets, and for sm_110a the driver's report on a Jetson AGX Thor
//                  (forums.developer.nvidia.com, topic 356355: 20 SMs, 32 MiB of L2)
//   tile quantizer four CTAs with 64 registers were fastest on an H200; elsewhere the kernels need
//                  more registers, and three fit without spills (ptxas)
//
//===----------------------------------------------------------------------===//
#include "fp4/ISA/TargetModel.h"
#include "fp4/ISA/TimingRates.h"
#include <array>

#ifdef __clang__
#pragma clang diagnostic error "-Wmissing-designated-field-initializers"
#endif

namespace fp4::hw {
namespace {

constexpr std::string_view fit =
    "320 published NVFP4 GEMMs on B200 (hbarclay/gemm-model), error "
    "4.7 % in 5-fold validation";

/// Quotes a rate that the simulator has too, so that both say the same of a kernel.
constexpr Rate quote(TimingRate which, double factor = 1) {
  Rate rate = *timingRate("sm_100a", which);
  rate.value *= factor;
  return rate;
}
constexpr double clock = *timingRate("sm_100a", TimingRate::Gigahertz);

constexpr MmaRates b200 = {
    .flopsPerCycle = quote(TimingRate::Fp4Flops),
    .sharedBytesPerCycle = quote(TimingRate::SharedBytes),
    .l2BytesPerCycle = {80, Mark::Fitted, fit}, // at most, whatever other SMs ask for
    .fillCycles = {137, Mark::Fitted, fit},
    .epilogueCyclesPerColumn = {15, Mark::Fitted, fit},
    .serialShare = {0.314, Mark::Fitted, fit},
    .tailCycles = {2000, Mark::Fitted, fit},
    .launchCycles = quote(TimingRate::LaunchMicroseconds, 1000 * clock),
    .memoryBytesPerCycle = quote(TimingRate::MemoryTerabytes, 1000 / clock),
    .clusteredShare = quote(TimingRate::ClustersOfFour, 1.0 / 148),
    .gigahertz = quote(TimingRate::Gigahertz),
};

/// Rates for targets of which nobody published measurements.
constexpr MmaRates asOnB200 = [] {
  MmaRates rates = b200;
  for (Rate *rate : {&rates.flopsPerCycle, &rates.sharedBytesPerCycle, &rates.l2BytesPerCycle,
                     &rates.fillCycles, &rates.epilogueCyclesPerColumn, &rates.serialShare,
                     &rates.tailCycles, &rates.launchCycles, &rates.memoryBytesPerCycle,
                     &rates.clusteredShare, &rates.gigahertz}) {
    rate->mark = Mark::Assumed;
    rate->source = "the rate of B200";
  }
  return rates;
}();

/// Rubin's clock and memory; the rest is assumed.
constexpr MmaRates rubin = [] {
  MmaRates rates = asOnB200;
  const auto quoteOwn = [](TimingRate which, double factor = 1) {
    Rate rate = *timingRate("sm_107a", which);
    rate.value *= factor;
    return rate;
  };
  const double ghz = *timingRate("sm_107a", TimingRate::Gigahertz);
  rates.flopsPerCycle = quoteOwn(TimingRate::Fp4Flops);
  rates.memoryBytesPerCycle = quoteOwn(TimingRate::MemoryTerabytes, 1000 / ghz);
  rates.launchCycles = quoteOwn(TimingRate::LaunchMicroseconds, 1000 * ghz);
  rates.gigahertz = quoteOwn(TimingRate::Gigahertz);
  return rates;
}();

constexpr TargetModel rows[] = {
    {
        .name = "sm_100a",
        .architecture = "Blackwell, B200",
        .computeMajor = 10,
        .computeMinor = 0,
        .ptxFeature = "+ptx88",
        .sms = 148,
        .limits =
            {
                .sharedBytesPerCta = 232448,
                .sharedBytesPerSM = 233472,
                .sharedReservedPerCta = 1024,
                .sharedOversizedBytes = 0,
                .tmemColumns = 512,
                .tmemLanes = 128,
                .tmemExclusiveColumns = 512,
                .maxThreadsPerCta = 1024,
                .maxThreadsPerSM = 2048,
                .maxCtasPerSM = 32,
                .registersPerSM = 65536,
                .maxRegistersPerThread = 255,
                .maxClusterSize = 8,
            },
        .features =
            {
                .hasTcgen05 = true,
                .hasWgmma = false,
                .hasMmaBlockScale = false,
                .hasFp8MmaSync = false,
                .hasTma = true,
                .hasSlowPartialBoxes = true,
                .hasPackedTensorMaps = true,
                .hasClusterLaunchControl = true,
                .hasCtaPairs = true,
                .hasFp4Convert = true,
                .hasStochasticConvert = true,
                .hasMixedFma = true,
                .hasFp4K96 = false,
                .hasDoubleK = false,
                .hasUE5M3 = false,
                .hasTcgen05Int8 = true,
            },
        .l2Bytes = 126ull << 20,
        .tileQuantizeBlocks = 3,
        .product = &b200,
    },
    {
        .name = "sm_103a",
        .architecture = "Blackwell Ultra, B300",
        .computeMajor = 10,
        .computeMinor = 3,
        .ptxFeature = "+ptx88",
        .sms = 148,
        .limits =
            {
                .sharedBytesPerCta = 232448,
                .sharedBytesPerSM = 233472,
                .sharedReservedPerCta = 1024,
                .sharedOversizedBytes = 0,
                .tmemColumns = 512,
                .tmemLanes = 128,
                .tmemExclusiveColumns = 512,
                .maxThreadsPerCta = 1024,
                .maxThreadsPerSM = 2048,
                .maxCtasPerSM = 32,
                .registersPerSM = 65536,
                .maxRegistersPerThread = 255,
                .maxClusterSize = 8,
            },
        .features =
            {
                .hasTcgen05 = true,
                .hasWgmma = false,
                .hasMmaBlockScale = false,
                .hasFp8MmaSync = false,
                .hasTma = true,
                .hasSlowPartialBoxes = true,
                .hasPackedTensorMaps = true,
                .hasClusterLaunchControl = true,
                .hasCtaPairs = true,
                .hasFp4Convert = true,
                .hasStochasticConvert = true,
                .hasMixedFma = true,
                .hasFp4K96 = true,
                .hasDoubleK = false,
                .hasUE5M3 = false,
                .hasTcgen05Int8 = false,
            },
        .l2Bytes = 126ull << 20,
        .tileQuantizeBlocks = 3,
        .product = &asOnB200,
    },
    {
        .name = "sm_107a",
        .architecture = "Rubin, VR200",
        .computeMajor = 10,
        .computeMinor = 7,
        .ptxFeature = "+ptx94",
        .sms = 212,
        .limits =
            {
                .sharedBytesPerCta = 232448,
                .sharedBytesPerSM = 233472,
                .sharedReservedPerCta = 1024,
                .sharedOversizedBytes = 334848,
                .tmemColumns = 512,
                .tmemLanes = 128,
                .tmemExclusiveColumns = 576,
                .maxThreadsPerCta = 1024,
                .maxThreadsPerSM = 1024,
                .maxCtasPerSM = 16,
                .registersPerSM = 65536,
                .maxRegistersPerThread = 255,
                .maxClusterSize = 8,
            },
        .features =
            {
                .hasTcgen05 = true,
                .hasWgmma = false,
                .hasMmaBlockScale = false,
                .hasFp8MmaSync = false,
                .hasTma = true,
                .hasSlowPartialBoxes = true,
                .hasPackedTensorMaps = true,
                .hasClusterLaunchControl = true,
                .hasCtaPairs = true,
                .hasFp4Convert = true,
                .hasStochasticConvert = true,
                .hasMixedFma = true,
                .hasFp4K96 = true,
                .hasDoubleK = true,
                .hasUE5M3 = true,
                .hasTcgen05Int8 = false,
            },
        .l2Bytes = 126ull << 20,
        .tileQuantizeBlocks = 3,
        .product = &rubin,
    },
    {
        .name = "sm_90a",
        .architecture = "Hopper, H100 and H200",
        .computeMajor = 9,
        .computeMinor = 0,
        .ptxFeature = "+ptx86",
        .sms = 132,
        .limits =
            {
                .sharedBytesPerCta = 232448,
                .sharedBytesPerSM = 233472,
                .sharedReservedPerCta = 1024,
                .sharedOversizedBytes = 0,
                .tmemColumns = 0,
                .tmemLanes = 0,
                .tmemExclusiveColumns = 0,
                .maxThreadsPerCta = 1024,
                .maxThreadsPerSM = 2048,
                .maxCtasPerSM = 32,
                .registersPerSM = 65536,
                .maxRegistersPerThread = 255,
                .maxClusterSize = 8,
            },
        .features =
            {
                .hasTcgen05 = false,
                .hasWgmma = true,
                .hasMmaBlockScale = false,
                .hasFp8MmaSync = false,
                .hasTma = true,
                .hasSlowPartialBoxes = true,
                .hasPackedTensorMaps = false,
                .hasClusterLaunchControl = false,
                .hasCtaPairs = false,
                .hasFp4Convert = false,
                .hasStochasticConvert = false,
                .hasMixedFma = false,
                .hasFp4K96 = false,
                .hasDoubleK = false,
                .hasUE5M3 = false,
                .hasTcgen05Int8 = false,
            },
        .l2Bytes = 50ull << 20,
        .tileQuantizeBlocks = 4,
        .product = nullptr,
    },
    {
        .name = "sm_120a",
        .architecture = "Blackwell, RTX 50 series",
        .computeMajor = 12,
        .computeMinor = 0,
        .ptxFeature = "+ptx88",
        .sms = 170,
        .limits =
            {
                .sharedBytesPerCta = 101376,
                .sharedBytesPerSM = 102400,
                .sharedReservedPerCta = 1024,
                .sharedOversizedBytes = 0,
                .tmemColumns = 0,
                .tmemLanes = 0,
                .tmemExclusiveColumns = 0,
                .maxThreadsPerCta = 1024,
                .maxThreadsPerSM = 1536,
                .maxCtasPerSM = 24,
                .registersPerSM = 65536,
                .maxRegistersPerThread = 255,
                .maxClusterSize = 8,
            },
        .features =
            {
                .hasTcgen05 = false,
                .hasWgmma = false,
                .hasMmaBlockScale = true,
                .hasFp8MmaSync = true,
                .hasTma = true,
                .hasSlowPartialBoxes = false,
                .hasPackedTensorMaps = true,
                .hasClusterLaunchControl = true,
                .hasCtaPairs = false,
                .hasFp4Convert = true,
                .hasStochasticConvert = false,
                .hasMixedFma = true,
                .hasFp4K96 = false,
                .hasDoubleK = false,
                .hasUE5M3 = false,
                .hasTcgen05Int8 = false,
            },
        .l2Bytes = 96ull << 20,
        .tileQuantizeBlocks = 3,
        .product = nullptr,
    },
    {
        .name = "sm_121a",
        .architecture = "Blackwell, GB10 of DGX Spark",
        .computeMajor = 12,
        .computeMinor = 1,
        .ptxFeature = "+ptx88",
        .sms = 48,
        .limits =
            {
                .sharedBytesPerCta = 101376,
                .sharedBytesPerSM = 102400,
                .sharedReservedPerCta = 1024,
                .sharedOversizedBytes = 0,
                .tmemColumns = 0,
                .tmemLanes = 0,
                .tmemExclusiveColumns = 0,
                .maxThreadsPerCta = 1024,
                .maxThreadsPerSM = 1536,
                .maxCtasPerSM = 24,
                .registersPerSM = 65536,
                .maxRegistersPerThread = 255,
                .maxClusterSize = 8,
            },
        .features =
            {
                .hasTcgen05 = false,
                .hasWgmma = false,
                .hasMmaBlockScale = true,
                .hasFp8MmaSync = true,
                .hasTma = true,
                .hasSlowPartialBoxes = false,
                .hasPackedTensorMaps = true,
                .hasClusterLaunchControl = true,
                .hasCtaPairs = false,
                .hasFp4Convert = true,
                .hasStochasticConvert = false,
                .hasMixedFma = true,
                .hasFp4K96 = false,
                .hasDoubleK = false,
                .hasUE5M3 = false,
                .hasTcgen05Int8 = false,
            },
        .l2Bytes = 24ull << 20,
        .tileQuantizeBlocks = 3,
        .product = nullptr,
    },
    {
        .name = "sm_110a",
        .architecture = "Blackwell, Jetson Thor",
        .computeMajor = 11,
        .computeMinor = 0,
        .ptxFeature = "+ptx90",
        .sms = 20,
        .limits =
            {
                .sharedBytesPerCta = 232448,
                .sharedBytesPerSM = 233472,
                .sharedReservedPerCta = 1024,
                .sharedOversizedBytes = 0,
                .tmemColumns = 512,
                .tmemLanes = 128,
                .tmemExclusiveColumns = 512,
                .maxThreadsPerCta = 1024,
                .maxThreadsPerSM = 1536,
                .maxCtasPerSM = 24,
                .registersPerSM = 65536,
                .maxRegistersPerThread = 255,
                .maxClusterSize = 8,
            },
        .features =
            {
                .hasTcgen05 = true,
                .hasWgmma = false,
                .hasMmaBlockScale = false,
                .hasFp8MmaSync = false,
                .hasTma = true,
                .hasSlowPartialBoxes = false,
                .hasPackedTensorMaps = true,
                .hasClusterLaunchControl = true,
                .hasCtaPairs = true,
                .hasFp4Convert = true,
                .hasStochasticConvert = false,
                .hasMixedFma = true,
                .hasFp4K96 = false,
                .hasDoubleK = false,
                .hasUE5M3 = false,
                .hasTcgen05Int8 = true,
            },
        .l2Bytes = 32ull << 20,
        .tileQuantizeBlocks = 3,
        .product = &asOnB200,
    },
};

} // namespace

std::span<const TargetModel> targets() { return rows; }

} // namespace fp4::hw
