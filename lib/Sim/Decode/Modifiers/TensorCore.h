//===- TensorCore.h - Modifiers of matrix instructions --------------------===//
#pragma once

#include "Sim/Decode/Modifiers/Scalar.h"
#include "fp4/ISA/InstrDescriptor.h"
#include "fp4/Sim/MemoryModel.h"

namespace fp4::hw {
enum class LoadShape : uint8_t;
enum class CopyShape : uint8_t;
} // namespace fp4::hw

namespace fp4::sim {

/// Elements of the factors of a warp: those of hw::MmaType, and three that only warps multiply.
enum class FactorType : uint8_t {
  F16,
  BF16,
  TF32,
  E4M3,
  E5M2,
  E2M3,
  E3M2,
  E2M1,
  U8,
  S8,
  U4,
  S4,
  B1
};
static_assert(FactorType(hw::MmaType::S8) == FactorType::S8);

/// Returns the type as all matrix units have it; not for U4, S4 and B1.
inline hw::MmaType mmaType(FactorType type) { return hw::MmaType(type); }
inline bool isInteger(FactorType type) { return type >= FactorType::U8; }
inline bool isSigned(FactorType type) { return type == FactorType::S4 || type == FactorType::S8; }
/// Bits of containers: fp6 and fp4 as operands of 8 bits.
unsigned containerBits(FactorType type);
FactorType factorType(std::string_view text); ///< "f16", ...; B1 for any other text

/// Positions that the metadata of a chunk of a sparse A may name.
enum class SparseIndices : uint8_t {
  Distinct,  ///< mma.sp, wgmma: any two different ones
  Ascending, ///< mma.sp::ordered_metadata
  Tcgen05,   ///< ascending, or 0b0110
};

/// The scales of an mma.sync: none, or with factors of that many bits.
enum class Scaling : uint8_t { Unscaled, Scaled8, Scaled4 };

/// mma of floats and integers, with or without scales
struct MmaModifiers {
  FactorType aType{}, bType{};
  uint8_t rows = 0;        ///< 16 or 8
  uint8_t halves = 0;      ///< stored K of A in units of 16 bytes
  bool halfResult = false; ///< true when C and D are fp16
  bool saturate = false;
  bool exclusive = false; ///< single bits: XOR
  bool sparse = false;    ///< A is, with the indices below
  SparseIndices indices{};
  Scaling scaling{};
  uint8_t scalesPerRow = 0; ///< 1, 2, 4
  hw::ScaleType scaleType = hw::ScaleType::UE8M0;
};

/// mma of .f64
struct DoubleMmaModifiers {
  uint8_t rows = 0, k = 0;
};

/// mma.m8n8k4 of .f16
struct QuarterMmaModifiers {
  bool aByColumn = false, bByRow = false;
  bool halfC = false, halfD = false; ///< true when C, or D, is fp16
};

/// wmma.load, wmma.store
struct WmmaTransferModifiers {
  uint8_t rows = 0, columns = 0;
  uint8_t bytes = 0;   ///< bytes of an element, or of those that share a byte
  uint8_t perByte = 1; ///< elements that share a byte
  Space space{};
  bool columnMajor = false;
};

/// wmma.mma
struct WmmaModifiers {
  uint8_t m = 0, n = 0, k = 0;
  hw::MmaType aType{}, bType{};
  bool halfC = false, halfD = false; ///< true when C, or D, is fp16
  bool saturate = false;
};

/// wmma.mma of 4 bits and of single bits
struct SmallWmmaModifiers {
  bool singleBits = false;
  bool aSigned = false, bSigned = false;
  bool exclusive = false; ///< single bits: XOR
  bool saturate = false;
};

/// wmma.mma of .f64
struct DoubleWmmaModifiers {
  Round round{};
};

/// wgmma.mma_async
struct WgmmaModifiers {
  uint16_t n = 0;
  FactorType aType{}, bType{};
  bool halfResult = false, saturate = false;
  bool negateA = false, negateB = false, transposeA = false, transposeB = false;
  bool sparse = false; ///< the operands after B are metadata and its selector, then the others
};

/// tcgen05.mma
struct Tcgen05MmaModifiers {
  hw::MmaKind kind{};
  uint8_t ctaGroup = 1;
  bool sparse = false;     ///< operand 3 is the metadata, the others come after it
  bool stationary = false; ///< .ws
  bool shiftA = false;     ///< .ashift
  uint8_t scalesPerRow = 0;
  uint8_t accumulate = 0; ///< place of the predicate that says if D is added to
};

/// The operation of tcgen05.ld.red and the type of its elements.
enum class TmemReduction : uint8_t { None, Min, Max, MinSigned, MaxSigned, MinFloat, MaxFloat };

/// tcgen05.ld, tcgen05.ld.red, tcgen05.st
struct TmemTransferModifiers {
  hw::LoadShape shape{};
  uint8_t repetitions = 1;
  bool packed = false; ///< .pack::16b, .unpack::16b
  TmemReduction reduction{};
  bool abs = false;
  bool nan = false; ///< .NaN: a NaN passes through
};

/// tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit
struct TmemAllocModifiers {
  Space space{};
  uint8_t ctaGroup = 1;
  bool exclusive = false; ///< the only allocation of its CTA
};

/// tcgen05.cp
struct TmemCopyModifiers {
  hw::CopyShape shape{};
  uint8_t ctaGroup = 1;
  uint8_t sourceBits = 0; ///< bits of source elements that become bytes: 4 or 6; 0: no conversion
};

/// tcgen05.shift
struct TmemShiftModifiers {
  uint8_t ctaGroup = 1;
};

/// tcgen05.fence
struct Tcgen05FenceModifiers {
  bool after = false; ///< ::after_thread_sync
};

/// tcgen05.wait
struct Tcgen05WaitModifiers {
  bool stores = false; ///< ::st
};

/// tcgen05.commit
struct Tcgen05CommitModifiers {
  Space space{};
  uint8_t ctaGroup = 1;
  bool multicast = false;
};

} // namespace fp4::sim
