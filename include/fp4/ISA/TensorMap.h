//===- TensorMap.h - TMA tensor maps --------------------------------------===//
//
// The description of a global tensor and its box that a TMA copy takes, and the 128 bytes that
// cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col make of it. Programs copy, edit and even build
// these bytes themselves. Our bytes therefore equal those of the driver, bit for bit, and
// validate() refuses what the driver refuses.
//
// Sources: cuda.h (CUtensorMap enums and the rules at cuTensorMapEncodeTiled); PTX ISA, "Tensors";
// the bits and the rules from 40,000 calls of an H200's driver (580.159) with random arguments, and
// 9,082 tensormap.replace on that device (unittests/ISA/data/tensormaps_h200.txt has some of each).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/Swizzle.h"
#include "fp4/ISA/TargetModel.h"
#include "fp4/Support/Error.h"
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace fp4::hw {

/// CUtensorMapDataType; the values are cuda.h's.
enum class TensorMapType : uint32_t {
  UInt8 = 0,
  UInt16 = 1,
  UInt32 = 2,
  Int32 = 3,
  UInt64 = 4,
  Int64 = 5,
  Float16 = 6,
  Float32 = 7,
  Float64 = 8,
  BFloat16 = 9,
  Float32Ftz = 10,
  TFloat32 = 11,
  TFloat32Ftz = 12,
  U4Align8 = 13,  ///< 16 packed 4-bit elements in 8 bytes, no gaps
  U4Align16 = 14, ///< 8 bytes of data and 8 of padding in shared memory
  U6Align16 = 15  ///< 12 bytes of data and 4 of padding in shared memory
};

enum class TensorMapInterleave : uint32_t { None = 0, B16 = 1, B32 = 2 };
enum class TensorMapOobFill : uint32_t { Zeros = 0, NanRequestZeroFma = 1 };
enum class TensorMapL2Promotion : uint32_t { None = 0, B64 = 1, B128 = 2, B256 = 3 };

/// Fields that tensormap.replace edits.
enum class TensorMapField : uint8_t {
  GlobalAddress,
  Rank,
  BoxDim,
  GlobalDim,
  GlobalStride,
  ElementStride,
  ElementType,
  InterleaveLayout,
  SwizzleMode,
  SwizzleAtomicity,
  FillMode
};

/// Bits of one element in global memory; 0 for a value that is no type.
unsigned tensorMapTypeBits(TensorMapType type);
std::string_view stringify(TensorMapType type);

struct TensorMap {
  static constexpr unsigned maxRank = 5;
  static constexpr size_t encodedBytes = 128;
  /// The bytes that copies read; the rest is the driver's. Published kernels keep only this many.
  static constexpr size_t usedBytes = 64;
  using Encoded = std::array<std::byte, encodedBytes>;

  TensorMapType elementType = TensorMapType::UInt8;
  uint32_t rank = 2;
  uint64_t address = 0;                        ///< global address of element 0
  std::array<uint64_t, maxRank> dims{};        ///< extents in elements, dimension 0 fastest
  std::array<uint64_t, maxRank - 1> strides{}; ///< strides of dimensions 1 .. rank-1 in bytes
  std::array<uint32_t, maxRank> box{};         ///< extents of the box in elements
  std::array<uint32_t, maxRank> elementStrides{1, 1, 1, 1, 1};
  SwizzleMode swizzle = SwizzleMode::None;
  TensorMapInterleave interleave = TensorMapInterleave::None;
  TensorMapOobFill oobFill = TensorMapOobFill::Zeros;
  TensorMapL2Promotion promotion = TensorMapL2Promotion::None;

  /// Im2col mode: where the filter's corner may be, in dimensions 1 .. rank-2. `lower` is the first
  /// place, `upper` is added to the tensor's size for the last. box[0] are then the channels of a
  /// pixel, box[1] the pixels of a column; elementStrides are steps between pixels.
  struct PixelBox {
    std::array<int32_t, 3> lower{}, upper{};
    bool operator==(const PixelBox &) const = default;
  };
  std::optional<PixelBox> pixels;

  bool operator==(const TensorMap &) const = default;

  /// The rules of cuTensorMapEncodeTiled or ...Im2col. The error names the parameter, the value and
  /// the rule.
  Status validate() const;
  /// Checks the rules of validate(), and the features of the target
  /// (TargetFeatures::hasPackedTensorMaps).
  Status validateFor(const TargetModel &target) const;

  /// Bytes one element row of the box takes in shared memory (padding of the Align16 types
  /// included).
  uint64_t boxRowBytes() const;
  /// Elements of the box, element strides applied.
  uint64_t boxElements() const;
  /// Bytes the box takes in shared memory.
  uint64_t boxSharedBytes() const;
  /// Bytes a load counts on its mbarrier: always the full box, packed bits of the Align16 types.
  uint64_t transactionBytes() const;

  /// The bytes of the box that the driver counts: element strides divide every dimension and round
  /// down.
  uint64_t driverBoxBytes() const;

  /// The driver's 128 bytes. encode() validates first.
  Expected<Encoded> encode() const;
  Encoded pack() const;

  /// Reads a map back; bits that no argument of the driver sets are ignored. decode() validates
  /// what it finds; unpack() fails only where a field has a value without meaning.
  static Expected<TensorMap> decode(std::span<const std::byte, usedBytes> bytes);
  static Expected<TensorMap> unpack(std::span<const std::byte, usedBytes> bytes);

  /// tensormap.replace: gives one field of an encoded map a value of that instruction's operands.
  /// False where the field has no such value.
  static bool replace(std::span<std::byte, usedBytes> map, TensorMapField field, unsigned ordinal,
                      uint64_t value);
};

} // namespace fp4::hw
