//===- MmaAtoms.h - Ways to multiply: instructions and places of operands --===//
//
// An atom is an instruction that multiplies matrices, together with the memories in which its
// accumulator and operands live and the elements that they have there. The table has a row for each
// atom that kernels use. pipe.mma takes the first atom that its types fit, and has no other field
// than those that this atom reads.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/InstrDescriptor.h"

namespace fp4::hw {

/// Memory of an operand. The registers of a warpgroup hold a fragment of wgmma, and those of a warp
/// one of mma.sync.
enum class MmaPlace : uint8_t { None, Shared, Tmem, Warpgroup, Warp };

/// Elements of an operand, as a set. Tiles are those of prepacked weights (WeightLayout.h), for
/// 16-bit floats or for e4m3 beside them.
enum class MmaElements : uint16_t {
  None = 0,
  Codes4 = 1, ///< e2m1
  Codes6 = 2, ///< e2m3, e3m2
  E4M3 = 4,
  E5M2 = 8,
  Half = 16, ///< f16, bf16
  HalfTiles = 32,
  ByteTiles = 64,
  HalfSteps = 128, ///< f16, bf16, in rows of the K of one instruction
  Rounded8 = 256,  ///< e4m3, each where a fragment of f32 has it
  Float8 = E4M3 | E5M2,
  Codes = Codes4 | Codes6 | Float8,
};

constexpr MmaElements operator|(MmaElements x, MmaElements y) {
  return MmaElements(uint16_t(x) | uint16_t(y));
}
/// Returns true when the sets have a member in common.
constexpr bool intersect(MmaElements x, MmaElements y) { return uint16_t(x) & uint16_t(y); }

/// The lowering of an atom.
enum class MmaForm : uint8_t {
  Tcgen05Scaled,    ///< operands and their scales as memory has them
  Tcgen05Dense,     ///< operands in shared memory, without scales
  Tcgen05TmemA,     ///< A in tensor memory
  Tcgen05Slices,    ///< every 16 rows of A, transposed, by all of B
  WgmmaShared,      ///< operands in shared memory
  WgmmaFloat,       ///< floats as they are, A in shared memory or rounded in registers
  WgmmaDequantized, ///< A from shared memory, dequantized in registers
  WgmmaPrepacked,   ///< A from prepacked weights, dequantized in registers
  WgmmaResident,    ///< A in registers, as pipe.dequantize leaves it there
  MmaSync,          ///< operands from shared memory
};

/// Fields of pipe.mma that not every atom reads, as a set.
enum class MmaFields : uint16_t {
  None = 0,
  Accumulate = 1,
  AScaleRow = 2,
  BScaleRow = 4,
  Existing = 8, ///< instructions, blocks of four scales, or tiles of prepacked weights
  Next = 16,
  ARow = 32,
  Depth = 64, ///< instructions of another K, and a part of them
  InOrder = 128,
  WithoutPowers = 256,
  Chain = 512,   ///< begins with a neighbour, or behind reads of its sums
  GoesOn = 1024, ///< is complete with a later MMA
  Fencing = 2048,
  Transposed = 4096, ///< B with a row for each element of K
  BColumn = 8192,    ///< and more columns than the accumulator
  Factors = 16384,   ///< of the rows of the accumulator
};
constexpr MmaFields operator|(MmaFields x, MmaFields y) {
  return MmaFields(uint16_t(x) | uint16_t(y));
}
constexpr bool intersect(MmaFields x, MmaFields y) { return uint16_t(x) & uint16_t(y); }

/// An operand of an atom.
struct MmaOperand {
  MmaPlace place;
  MmaElements elements;
  MmaPlace scales = MmaPlace::None;
};

struct MmaAtom {
  std::string_view name; ///< name for messages
  MmaForm form;
  MmaKind kind; ///< arithmetic of the instruction, and its K (mmaK)
  MmaPlace accumulator;
  MmaOperand a, b;
  MmaFields fields;
};

/// All atoms. A type that fits several takes the first.
inline constexpr MmaAtom mmaAtoms[] = {
    {"tcgen05 mxf4nvf4",
     MmaForm::Tcgen05Scaled,
     MmaKind::MXF4NVF4,
     MmaPlace::Tmem,
     {MmaPlace::Shared, MmaElements::Codes4, MmaPlace::Tmem},
     {MmaPlace::Shared, MmaElements::Codes4, MmaPlace::Tmem},
     MmaFields::Accumulate | MmaFields::BScaleRow | MmaFields::Existing | MmaFields::Depth},
    {"tcgen05 mxf4nvf4 with A in tensor memory",
     MmaForm::Tcgen05Scaled,
     MmaKind::MXF4NVF4,
     MmaPlace::Tmem,
     {MmaPlace::Tmem, MmaElements::Codes4, MmaPlace::Tmem},
     {MmaPlace::Shared, MmaElements::Codes4, MmaPlace::Tmem},
     MmaFields::Accumulate},
    {"tcgen05 mxf8f6f4",
     MmaForm::Tcgen05Scaled,
     MmaKind::MXF8F6F4,
     MmaPlace::Tmem,
     {MmaPlace::Shared, MmaElements::Codes, MmaPlace::Tmem},
     {MmaPlace::Shared, MmaElements::Codes, MmaPlace::Tmem},
     MmaFields::Accumulate | MmaFields::BScaleRow | MmaFields::Existing | MmaFields::Depth},
    {"tcgen05 mxf8f6f4 with A in tensor memory",
     MmaForm::Tcgen05Scaled,
     MmaKind::MXF8F6F4,
     MmaPlace::Tmem,
     {MmaPlace::Tmem, MmaElements::E4M3, MmaPlace::Tmem},
     {MmaPlace::Shared, MmaElements::E4M3, MmaPlace::Tmem},
     MmaFields::Accumulate},
    {"tcgen05 f8f6f4",
     MmaForm::Tcgen05Dense,
     MmaKind::F8F6F4,
     MmaPlace::Tmem,
     {MmaPlace::Shared, MmaElements::E4M3},
     {MmaPlace::Shared, MmaElements::E4M3},
     MmaFields::Accumulate | MmaFields::Depth},
    {"tcgen05 f16",
     MmaForm::Tcgen05Dense,
     MmaKind::F16,
     MmaPlace::Tmem,
     {MmaPlace::Shared, MmaElements::Half},
     {MmaPlace::Shared, MmaElements::Half},
     MmaFields::Accumulate},
    {"tcgen05 f16 with A in tensor memory",
     MmaForm::Tcgen05TmemA,
     MmaKind::F16,
     MmaPlace::Tmem,
     {MmaPlace::Tmem, MmaElements::Half},
     {MmaPlace::Shared, MmaElements::Half},
     MmaFields::Accumulate | MmaFields::Existing | MmaFields::Transposed},
    {"tcgen05 f8f6f4 with A in tensor memory",
     MmaForm::Tcgen05TmemA,
     MmaKind::F8F6F4,
     MmaPlace::Tmem,
     {MmaPlace::Tmem, MmaElements::E4M3},
     {MmaPlace::Shared, MmaElements::E4M3},
     MmaFields::Accumulate | MmaFields::Existing | MmaFields::Transposed},
    {"tcgen05 f16 of slices",
     MmaForm::Tcgen05Slices,
     MmaKind::F16,
     MmaPlace::Tmem,
     {MmaPlace::Shared, MmaElements::Half},
     {MmaPlace::Shared, MmaElements::HalfSteps},
     MmaFields::None},
    {"wgmma e4m3",
     MmaForm::WgmmaShared,
     MmaKind::F8F6F4,
     MmaPlace::Warpgroup,
     {MmaPlace::Shared, MmaElements::E4M3},
     {MmaPlace::Shared, MmaElements::E4M3},
     MmaFields::ARow | MmaFields::Chain | MmaFields::Fencing},
    {"wgmma f16",
     MmaForm::WgmmaFloat,
     MmaKind::F16,
     MmaPlace::Warpgroup,
     {MmaPlace::Shared, MmaElements::Half},
     {MmaPlace::Shared, MmaElements::Half},
     MmaFields::Accumulate | MmaFields::ARow | MmaFields::Transposed | MmaFields::BColumn |
         MmaFields::Chain},
    {"wgmma f16 with A in registers",
     MmaForm::WgmmaFloat,
     MmaKind::F16,
     MmaPlace::Warpgroup,
     {MmaPlace::Warpgroup, MmaElements::Half},
     {MmaPlace::Shared, MmaElements::Half},
     MmaFields::Accumulate | MmaFields::Transposed | MmaFields::BColumn | MmaFields::Chain |
         MmaFields::Factors},
    {"wgmma e4m3 with rounded A",
     MmaForm::WgmmaFloat,
     MmaKind::F8F6F4,
     MmaPlace::Warpgroup,
     {MmaPlace::Warpgroup, MmaElements::Rounded8},
     {MmaPlace::Shared, MmaElements::E4M3},
     MmaFields::Accumulate | MmaFields::Chain},
    {"wgmma f16 with A from scaled elements",
     MmaForm::WgmmaDequantized,
     MmaKind::F16,
     MmaPlace::Warpgroup,
     {MmaPlace::Shared, MmaElements::Codes, MmaPlace::Shared},
     {MmaPlace::Shared, MmaElements::Half},
     MmaFields::Accumulate | MmaFields::Existing | MmaFields::InOrder | MmaFields::GoesOn},
    {"wgmma f16 with A from prepacked weights",
     MmaForm::WgmmaPrepacked,
     MmaKind::F16,
     MmaPlace::Warpgroup,
     {MmaPlace::Shared, MmaElements::HalfTiles},
     {MmaPlace::Shared, MmaElements::Half},
     MmaFields::Accumulate | MmaFields::AScaleRow | MmaFields::Existing | MmaFields::Next |
         MmaFields::GoesOn},
    {"wgmma e4m3 with A from prepacked weights",
     MmaForm::WgmmaPrepacked,
     MmaKind::F8F6F4,
     MmaPlace::Warpgroup,
     {MmaPlace::Shared, MmaElements::ByteTiles},
     {MmaPlace::Shared, MmaElements::E4M3},
     MmaFields::Accumulate | MmaFields::AScaleRow | MmaFields::Existing | MmaFields::Next |
         MmaFields::WithoutPowers | MmaFields::GoesOn},
    {"wgmma e4m3 with A in registers",
     MmaForm::WgmmaResident,
     MmaKind::F8F6F4,
     MmaPlace::Warpgroup,
     {MmaPlace::Warpgroup, MmaElements::E4M3},
     {MmaPlace::Shared, MmaElements::E4M3},
     MmaFields::Accumulate | MmaFields::Next},
    {"mma.sync mxf4nvf4",
     MmaForm::MmaSync,
     MmaKind::MXF4NVF4,
     MmaPlace::Warp,
     {MmaPlace::Shared, MmaElements::Codes4, MmaPlace::Shared},
     {MmaPlace::Shared, MmaElements::Codes4, MmaPlace::Shared},
     MmaFields::Accumulate | MmaFields::AScaleRow | MmaFields::BScaleRow | MmaFields::Existing},
    {"mma.sync mxf8f6f4",
     MmaForm::MmaSync,
     MmaKind::MXF8F6F4,
     MmaPlace::Warp,
     {MmaPlace::Shared, MmaElements::Codes, MmaPlace::Shared},
     {MmaPlace::Shared, MmaElements::Codes, MmaPlace::Shared},
     MmaFields::Accumulate | MmaFields::AScaleRow | MmaFields::BScaleRow | MmaFields::Existing},
    {"mma.sync mxf8f6f4 with unit scales of A",
     MmaForm::MmaSync,
     MmaKind::MXF8F6F4,
     MmaPlace::Warp,
     {MmaPlace::Shared, MmaElements::E4M3},
     {MmaPlace::Shared, MmaElements::Codes4, MmaPlace::Shared},
     MmaFields::Accumulate | MmaFields::BScaleRow | MmaFields::Existing},
};

} // namespace fp4::hw
