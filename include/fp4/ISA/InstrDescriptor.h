//===- InstrDescriptor.h - tcgen05.mma instruction descriptors ------------===//
//
// The 32-bit operand of tcgen05.mma that holds shape and element types, in its two forms: one for
// the kinds f16, tf32, f8f6f4 and i8 (InstrDesc), one for the block-scaled kinds mxf8f6f4, mxf4 and
// mxf4nvf4 (BlockScaledInstrDesc). The bit tables stand at the encoders in InstrDescriptor.cpp.
//
// M and N are the sizes of the whole MMA: for cta_group::2 those of the pair.
//
// Sources: PTX ISA, "Instruction descriptor" and "Matrix shape"; CUTLASS
// cute/arch/mma_sm100_desc.hpp and mma_sm107_desc.hpp; MMA-Sim's test kernels.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"
#include <cstdint>
#include <optional>
#include <string_view>

namespace fp4::hw {

enum class MmaKind : uint8_t { F16, TF32, F8F6F4, I8, MXF8F6F4, MXF4, MXF4NVF4 };

/// Element types of A and B.
enum class MmaType : uint8_t { F16, BF16, TF32, E4M3, E5M2, E2M3, E3M2, E2M1, U8, S8 };

/// Element types of D; the values are the descriptor's.
enum class AccumulatorType : uint8_t { F16 = 0, F32 = 1, S32 = 2 };

/// Type of both scale-factor operands; the values are the descriptor's.
enum class ScaleType : uint8_t { UE4M3 = 0, UE8M0 = 1, UE5M3 = 2 };

/// scale_vec::NX: scale factors per row that one MMA of MmaDepth::Single reads.
enum class ScaleVector : uint8_t { X1 = 1, X2 = 2, X4 = 4 };

/// Bytes of K that one dense MMA reads of each row: 32; 48 for fp4 (sm_103a, sm_107a); 64 for
/// elements of 4 and 8 bits (sm_107a).
enum class MmaDepth : uint8_t { Single, K96, Double };

std::string_view stringify(MmaKind kind);   ///< "mxf4nvf4", as PTX spells it after .kind::
std::string_view stringify(MmaType type);   ///< "e2m1"
std::string_view stringify(ScaleType type); ///< "ue4m3"
std::optional<MmaKind> parseMmaKind(std::string_view text);
bool isBlockScaled(MmaKind kind);

/// K of one MMA in elements: 8, 16, 32 or 64; doubled if sparse, or of MmaDepth::Double; 96 of K96.
unsigned mmaK(MmaKind kind, bool sparse = false, MmaDepth depth = MmaDepth::Single);

/// The code of `type` in a descriptor of `kind`, or nothing where the kind has no such type.
std::optional<unsigned> mmaTypeCode(MmaKind kind, MmaType type);
std::optional<MmaType> mmaTypeFromCode(MmaKind kind, unsigned code);

/// .sp and .ws of tcgen05.mma, and the depth that its descriptor says.
struct MmaVariant {
  bool sparse = false, weightStationary = false;
  MmaDepth depth = MmaDepth::Single;
};

/// Checks M and N against PTX ISA's shape table. `ctaGroup` is 1 or 2.
Status validateMmaShape(MmaKind kind, unsigned ctaGroup, unsigned m, unsigned n,
                        MmaVariant variant = {});

/// Returns true when `kind` accepts `vector` with scales of `type` (PTX ISA, scale_vec table).
bool isLegalScaleVector(MmaKind kind, ScaleType type, ScaleVector vector);

struct InstrDesc {
  MmaKind kind = MmaKind::F16;
  unsigned m = 128, n = 128;
  AccumulatorType dType = AccumulatorType::F32;
  MmaType aType = MmaType::F16, bType = MmaType::F16;
  bool sparse = false;
  unsigned sparsitySelector = 0; ///< 0..3
  bool saturate = false;         ///< integer kinds only
  bool negateA = false, negateB = false;
  bool transposeA = false, transposeB = false; ///< MN-major operand
  unsigned maxShift = 0;                       ///< .ws only
  bool doubleK = false;                        ///< MmaDepth::Double, of f8f6f4

  bool operator==(const InstrDesc &) const = default;

  /// Fails where a type does not exist in the kind or M, N do not fit their fields.
  Expected<uint32_t> encode() const;
  /// The kind is not part of the bits: it comes from the instruction.
  static Expected<InstrDesc> decode(MmaKind kind, uint32_t bits);
};

struct BlockScaledInstrDesc {
  MmaKind kind = MmaKind::MXF4NVF4;
  unsigned m = 128, n = 128;
  MmaType aType = MmaType::E2M1, bType = MmaType::E2M1;
  ScaleType scaleType = ScaleType::UE4M3;
  unsigned sfaId = 0, sfbId = 0; ///< byte of the TMEM word where this MMA's scales begin
  bool sparse = false;
  bool negateA = false, negateB = false;
  bool transposeA = false, transposeB = false; ///< 8-bit types of mxf8f6f4 only
  MmaDepth depth = MmaDepth::Single;
  bool scalesInLanes = false;   ///< scales of A of row r in TMEM lane r, without copies; sm_107a
  bool sparsityVersion = false; ///< bit 12 of the fp4 kinds: nothing on sm_100; CuTe DSL sets it

  bool operator==(const BlockScaledInstrDesc &) const = default;

  Expected<uint32_t> encode() const;
  static Expected<BlockScaledInstrDesc> decode(MmaKind kind, uint32_t bits);
};

} // namespace fp4::hw
