//===- Chip.cpp - The GPU that a program finds ----------------------------===//
//
// Source: CUDA C++ Programming Guide, compute capabilities 9.0 to 12.0.
//
//===----------------------------------------------------------------------===//
#include "Chip.h"
#include <map>

using namespace fp4;
using namespace fp4::simcuda;

/// The numbers of attributes that every GPU here has: gpuOverlap, canMapHostMemory,
/// concurrentKernels, unifiedAddressing, streamPriorities, L1 caches, managedMemory,
/// concurrentManagedAccess, computePreemption, canUseHostPointerForRegisteredMem,
/// cooperativeLaunch, hostRegister, memoryPools.
static constexpr int kPresent[] = {15, 19, 31, 41, 78, 79, 80, 83, 89, 90, 91, 95, 99, 115};

/// Adds what an SM has room for.
static void addRoomOfSm(const hw::TargetLimits &limits, std::map<int, int> &table) {
  table[81] = static_cast<int>(limits.sharedBytesPerSM);
  table[82] = static_cast<int>(limits.registersPerSM);
  table[97] = static_cast<int>(limits.sharedBytesPerCta);
  table[106] = static_cast<int>(limits.maxCtasPerSM);
  table[111] = static_cast<int>(limits.sharedReservedPerCta);
  table[150] = static_cast<int>(limits.mostSharedBytes()); // oversized, of CUDA 13.4
}

/// Returns the values that are not 0, by the numbers of cudaDeviceAttr: textures have no sizes
/// here.
static std::map<int, int> attributesOf(const Chip &chip) {
  const hw::TargetModel &m = chip.model();
  auto of = [](auto value) { return static_cast<int>(value); };
  std::map<int, int> table = {
      {1, of(m.limits.maxThreadsPerCta)},
      {2, of(m.limits.maxThreadsPerCta)}, // maxBlockDim
      {3, of(m.limits.maxThreadsPerCta)},
      {4, 64},
      {5, 0x7FFFFFFF}, // maxGridDim
      {6, 65535},
      {7, 65535},
      {8, of(kDefaultSharedBytes)},
      {9, of(kConstantBytes)},
      {10, 32},         // warpSize
      {11, 0x7FFFFFFF}, // maxPitch
      {12, of(m.limits.registersPerSM)},
      {13, 1'800'000}, // clockRate in kHz: a round number, nothing here has a clock
      {14, 512},       // textureAlignment
      {16, of(m.sms)},
      {30, 512},       // surfaceAlignment
      {36, 3'200'000}, // memoryClockRate
      {37, of(chip.memoryBusBits)},
      {38, of(m.l2Bytes)},
      {39, of(m.limits.maxThreadsPerSM)},
      {40, 3},  // asyncEngineCount
      {51, 32}, // texturePitchAlignment
      {75, chip.major()},
      {76, chip.minor()},
      {120, chip.major() >= 9}, // clusterLaunch
      {126, 4},                 // memSyncDomainCount
  };
  addRoomOfSm(m.limits, table);
  for (int present : kPresent)
    table[present] = 1;
  return table;
}

std::optional<int> fp4::simcuda::deviceAttribute(const Chip &chip, int attribute) {
  constexpr int last = 150; // of CUDA 13.4
  if (attribute < 1 || attribute > last)
    return std::nullopt;
  std::map<int, int> table = attributesOf(chip);
  auto found = table.find(attribute);
  return found == table.end() ? 0 : found->second;
}
