// Facts of each target. A new target is one row here.
#include "fp4/ISA/TargetModel.h"
#include <array>

namespace fp4::hw {
namespace {

constexpr TargetModel sm100a = {
    .name = "sm_100a",
    .architecture = "Blackwell, B200",
    .smVersion = 100,
    .ptxFeature = "+ptx88",
    .multiprocessors = 148,
    .sharedBytesPerCta = 232448,
    .sharedBytesPerSM = 233472,
    .sharedReservedPerCta = 1024,
    .tmemColumns = 512,
    .tmemLanes = 128,
    .maxThreadsPerCta = 1024,
    .maxThreadsPerSM = 2048,
    .maxCtasPerSM = 32,
    .registersPerSM = 65536,
    .maxRegistersPerThread = 255,
    .maxClusterSize = 8,
    .hasTcgen05 = true,
    .hasWgmma = false,
    .hasMmaBlockScale = false,
    .hasTma = true,
    .hasClusterLaunchControl = true,
    .hasFp4Convert = true,
    .hasStochasticConvert = true,
    .hasFp4K96 = false,
    .l2Bytes = 126ull << 20,
    .fp4FlopsPerClockPerSM = 32768,
    .clockGHz = 1.965,
    .dramTBps = 7.26,
};

// Rates of the following three are not measured by anything this project relies on: the roofline
// is left out (0) rather than guessed.
constexpr TargetModel sm103a = [] {
  TargetModel t = sm100a;
  t.name = "sm_103a";
  t.architecture = "Blackwell Ultra, B300";
  t.smVersion = 103;
  t.hasFp4K96 = true;
  t.fp4FlopsPerClockPerSM = 0;
  t.clockGHz = 0;
  t.dramTBps = 0;
  return t;
}();

constexpr TargetModel sm90a = [] {
  TargetModel t = sm100a;
  t.name = "sm_90a";
  t.architecture = "Hopper, H100 and H200";
  t.smVersion = 90;
  t.ptxFeature = "+ptx80";
  t.multiprocessors = 132;
  t.tmemColumns = 0;
  t.tmemLanes = 0;
  t.hasTcgen05 = false;
  t.hasWgmma = true;
  t.hasClusterLaunchControl = false;
  t.hasFp4Convert = false;
  t.hasStochasticConvert = false;
  t.l2Bytes = 50ull << 20;
  t.fp4FlopsPerClockPerSM = 0;
  t.clockGHz = 0;
  t.dramTBps = 0;
  return t;
}();

constexpr TargetModel sm120a = [] {
  TargetModel t = sm100a;
  t.name = "sm_120a";
  t.architecture = "Blackwell, RTX 50 series";
  t.smVersion = 120;
  t.multiprocessors = 170;
  t.sharedBytesPerCta = 101376;
  t.sharedBytesPerSM = 102400;
  t.tmemColumns = 0;
  t.tmemLanes = 0;
  t.maxThreadsPerSM = 1536;
  t.maxCtasPerSM = 24;
  t.hasTcgen05 = false;
  t.hasMmaBlockScale = true;
  t.hasStochasticConvert = false;
  t.l2Bytes = 96ull << 20;
  t.fp4FlopsPerClockPerSM = 0;
  t.clockGHz = 0;
  t.dramTBps = 0;
  return t;
}();

constexpr std::array allTargets = {sm100a, sm103a, sm90a, sm120a};

} // namespace

std::span<const TargetModel> targets() { return allTargets; }

const TargetModel *lookupTarget(std::string_view name) {
  for (const TargetModel &target : allTargets)
    if (target.name == name)
      return &target;
  return nullptr;
}

Expected<const TargetModel *> requireTarget(std::string_view name) {
  if (const TargetModel *target = lookupTarget(name))
    return target;
  std::string known;
  for (const TargetModel &target : allTargets)
    known += (known.empty() ? "" : ", ") + std::string(target.name);
  return makeError(ErrorKind::Usage, "unknown target '" + std::string(name) + "'",
                   "known targets: " + known);
}

std::string targetsWith(bool TargetModel::*feature) {
  std::string names;
  for (const TargetModel &target : allTargets)
    if (target.*feature)
      names += (names.empty() ? "" : ", ") + std::string(target.name);
  return names;
}

Status requireFeature(const TargetModel &target, bool TargetModel::*has, std::string_view feature) {
  if (target.*has)
    return {};
  return makeError(ErrorKind::Compile,
                   "target '" + std::string(target.name) + "' has no " + std::string(feature),
                   "targets with " + std::string(feature) + ": " + targetsWith(has));
}

} // namespace fp4::hw
