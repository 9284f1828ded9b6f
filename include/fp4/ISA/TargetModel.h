//===- TargetModel.h - Features and sizes of each GPU target --------------===//
//
// The facts that decide how a kernel is lowered: capacities, instruction families and rates of one
// `sm_XX` target. Passes, the simulator and the tools read them here. No code compares versions of
// architectures; code that needs to know something about a target adds a fact to the row.
// The rows are in Targets.cpp. docs/guides/add-a-target.md says how to add one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/Rates.h"
#include "fp4/Support/Error.h"
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fp4::hw {

struct GpuModel;

/// Capacities that bound a CTA and an SM.
struct TargetLimits {
  uint32_t sharedBytesPerCta;    ///< maximum dynamic shared memory of one CTA
  uint32_t sharedBytesPerSM;     ///< shared memory of one SM, reserved bytes included
  uint32_t sharedReservedPerCta; ///< bytes at the bottom of every CTA's window that are not ours
  uint32_t sharedOversizedBytes; ///< as sharedBytesPerCta, of a CTA that has an SM alone, or 0
  uint32_t tmemColumns;          ///< 32-bit columns of tensor memory; 0 without tcgen05
  uint32_t tmemLanes;            ///< rows of tensor memory; 0 without tcgen05
  uint32_t tmemExclusiveColumns; ///< columns that tcgen05.alloc.exclusive hands out
  unsigned maxThreadsPerCta;
  unsigned maxThreadsPerSM;
  unsigned maxCtasPerSM;
  unsigned registersPerSM; ///< 32-bit registers
  unsigned maxRegistersPerThread;
  unsigned maxClusterSize; ///< portable cluster size

  /// The most shared memory that a CTA can be launched with.
  uint32_t mostSharedBytes() const { return std::max(sharedBytesPerCta, sharedOversizedBytes); }
  /// CTAs with so many bytes of shared memory that an SM has room for.
  uint64_t ctasByShared(uint64_t bytes) const {
    const bool oversized = bytes > sharedBytesPerCta && bytes <= sharedOversizedBytes;
    return oversized ? 1 : sharedBytesPerSM / (bytes + sharedReservedPerCta);
  }
};

/// Instructions that a target has, and habits of its units that kernels must know.
struct TargetFeatures {
  bool hasTcgen05;       ///< tensor memory, tcgen05.mma, tcgen05.cp, tcgen05.ld/st
  bool hasWgmma;         ///< wgmma.mma_async
  bool hasMmaBlockScale; ///< mma.sync with block_scale (fp4 without tensor memory)
  bool hasFp8MmaSync;    ///< mma.sync multiplies fp8 as such, and does not widen it to f16
  bool hasTma;           ///< cp.async.bulk.tensor and mbarrier transactions
  /// Loads of boxes beyond the rows of a tensor take longer than those of whole boxes.
  bool hasSlowPartialBoxes;
  bool hasPackedTensorMaps; ///< tensor maps of 4-bit and 6-bit elements and of 32-byte atoms
  bool hasClusterLaunchControl;
  bool hasCtaPairs;          ///< tcgen05 with cta_group::2: two CTAs of a cluster as one
  bool hasFp4Convert;        ///< cvt.rn.satfinite.e2m1x2 and cvt.ue8m0x2
  bool hasStochasticConvert; ///< cvt.rs
  bool hasMixedFma;          ///< fma.f32.f16: products of f16 that are f32
  bool hasFp4K96;            ///< the K = 96 fp4 MMA (instruction descriptor bit 31)
  bool hasDoubleK;           ///< MMAs of 64 bytes of K
  bool hasUE5M3;             ///< scales of ue5m3; of ue4m3 for 32 elements
  bool hasTcgen05Int8;       ///< tcgen05.mma of kind i8
};

/// A row of the table of targets.
struct TargetModel {
  std::string_view name;               ///< chip as ptxas and NVVM spell it, e.g. "sm_100a"
  std::string_view architecture;       ///< for people, e.g. "Blackwell, B200"
  unsigned computeMajor, computeMinor; ///< compute capability, 10 and 0 for sm_100a
  std::string_view ptxFeature; ///< the PTX version of what we emit, as NVPTX spells it: "+ptx88"
  unsigned sms;                ///< SMs of the product named in `architecture`
  TargetLimits limits;
  TargetFeatures features;
  uint64_t l2Bytes;
  /// CTAs of plain tile quantizers that an SM is to hold without spills.
  unsigned tileQuantizeBlocks;
  const MmaRates *product;          ///< null without tcgen05
  const GpuModel *device = nullptr; ///< the product that plans are for; null: all of the target
};

/// All targets known, the default (sm_100a) first (Targets.cpp).
std::span<const TargetModel> targets();

/// The target called `name`, or null.
const TargetModel *lookupTarget(std::string_view name);

/// The target called `name`; the error lists the known ones.
Expected<const TargetModel *> requireTarget(std::string_view name);

/// "sm_100a, sm_103a": the targets that have a feature.
std::string targetsWith(bool TargetFeatures::*has);

/// Fails with "target 'sm_90a' has no tcgen05" and the targets that have it. `feature` is the word
/// a user knows it by ("tcgen05", "fp4 conversion").
Status requireFeature(const TargetModel &target, bool TargetFeatures::*has,
                      std::string_view feature);

} // namespace fp4::hw
