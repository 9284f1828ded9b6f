// Bit tables of the tcgen05.mma instruction descriptors.
//
// f16, tf32, f8f6f4, i8            mxf8f6f4                     mxf4, mxf4nvf4
//  0-1   sparsity selector          0-1   0                      0-1   0
//  2     sparse                     2     sparse                 2     sparse
//  3     saturate (integers)        3     0                      3     double K
//  4-5   D type                     4-5   SFB data id            4-5   SFB data id
//  7-9   A type                     7-9   A type                 7-9   A type
//  10-12 B type                     10-12 B type                 10-11 B type, 12 any
//  13,14 negate A, B                13,14 negate A, B            13,14 negate A, B
//  15,16 transpose A, B             15,16 transpose A, B         15,16 0
//  17-22 N >> 3                     17-22 N >> 3                 17-22 N >> 3
//  23    0                          23-24 scale type             23-24 scale type
//                                   26    scales of A in lanes   26    scales of A in lanes
//  24-28 M >> 4                     27-28 M >> 7                 27-28 M >> 7
//  29    double K (f8f6f4)          29-30 SFA data id            29-30 SFA data id
//  30-31 max shift (.ws)            31    double K               31    K = 96
//
// Double K, scale type 2 and scales in lanes are of sm_107a. [uncertain] Earlier targets that find
// them set compute something else without an error.
#include "fp4/ISA/InstrDescriptor.h"
#include <array>
#include <fmt/format.h>

namespace fp4::hw {
namespace {

constexpr std::array<std::string_view, 7> kindNames = {"f16",      "tf32", "f8f6f4",  "i8",
                                                       "mxf8f6f4", "mxf4", "mxf4nvf4"};
constexpr std::array<std::string_view, 10> typeNames = {"f16",  "bf16", "tf32", "e4m3", "e5m2",
                                                        "e2m3", "e3m2", "e2m1", "u8",   "s8"};

uint32_t get(uint32_t bits, unsigned lo, unsigned width) {
  return (bits >> lo) & ((1u << width) - 1);
}

auto fail(std::string message, std::string note = "") {
  return makeError(ErrorKind::Compile, std::move(message), std::move(note));
}

auto decodeFail(uint32_t bits, std::string_view what) {
  return makeError(ErrorKind::Simulation,
                   fmt::format("instruction descriptor 0x{:08x} {}", bits, what),
                   "see PTX ISA, tcgen05 instruction descriptor, for the fields of this kind");
}

Expected<uint32_t> typeBits(MmaKind kind, MmaType a, MmaType b) {
  const auto ca = mmaTypeCode(kind, a), cb = mmaTypeCode(kind, b);
  if (!ca || !cb)
    return fail(
        fmt::format("kind::{} has no operand type {}", stringify(kind), stringify(ca ? b : a)));
  return *ca << 7 | *cb << 10;
}

Status checkFields(unsigned m, unsigned mStep, unsigned n) {
  if (m == 0 || m % mStep || m > 256)
    return fail(fmt::format("M must be a multiple of {} up to 256, but got {}", mStep, m));
  if (n == 0 || n % 8 || n > 256)
    return fail(fmt::format("N must be a multiple of 8 up to 256, but got {}", n));
  return {};
}

// Returns true for an N of PTX ISA's shape table; `group` is the cta_group.
bool isLegalN(MmaKind kind, unsigned group, unsigned m, unsigned n) {
  if (n == 0 || n > 256)
    return false;
  if (group == 2)
    return n % (kind == MmaKind::I8 ? 32 : 16) == 0;
  if (kind == MmaKind::I8)
    return n == 8 || n == 24 || n % 16 == 0;
  return n % 8 == 0;
}

} // namespace

std::string_view stringify(MmaKind kind) { return kindNames[static_cast<unsigned>(kind)]; }
std::string_view stringify(MmaType type) { return typeNames[static_cast<unsigned>(type)]; }
std::string_view stringify(ScaleType type) {
  constexpr std::array<std::string_view, 3> names = {"ue4m3", "ue8m0", "ue5m3"};
  return names[static_cast<unsigned>(type)];
}

std::optional<MmaKind> parseMmaKind(std::string_view text) {
  for (unsigned i = 0; i < kindNames.size(); ++i)
    if (kindNames[i] == text)
      return static_cast<MmaKind>(i);
  return std::nullopt;
}

bool isBlockScaled(MmaKind kind) { return kind >= MmaKind::MXF8F6F4; }

unsigned mmaK(MmaKind kind, bool sparse, MmaDepth depth) {
  if (depth == MmaDepth::K96)
    return 96;
  constexpr std::array<unsigned, 7> dense = {16, 8, 32, 32, 32, 64, 64};
  return dense[static_cast<unsigned>(kind)] * (sparse || depth == MmaDepth::Double ? 2 : 1);
}

std::optional<unsigned> mmaTypeCode(MmaKind kind, MmaType type) {
  for (unsigned code = 0; code < 8; ++code)
    if (mmaTypeFromCode(kind, code) == type)
      return code;
  return std::nullopt;
}

std::optional<MmaType> mmaTypeFromCode(MmaKind kind, unsigned code) {
  using T = MmaType;
  switch (kind) {
  case MmaKind::F16:
    return code == 0 ? std::optional(T::F16) : code == 1 ? std::optional(T::BF16) : std::nullopt;
  case MmaKind::TF32:
    return code == 2 ? std::optional(T::TF32) : std::nullopt;
  case MmaKind::I8:
    return code == 0 ? std::optional(T::U8) : code == 1 ? std::optional(T::S8) : std::nullopt;
  case MmaKind::MXF4:
  case MmaKind::MXF4NVF4:
    return code == 1 ? std::optional(T::E2M1) : std::nullopt;
  case MmaKind::F8F6F4:
  case MmaKind::MXF8F6F4:
    constexpr std::array<std::optional<T>, 8> types = {
        T::E4M3, T::E5M2, std::nullopt, T::E2M3, T::E3M2, T::E2M1, std::nullopt, std::nullopt};
    return code < types.size() ? types[code] : std::nullopt;
  }
  return std::nullopt;
}

/// Checks K = 96, which PTX ISA lists for dense fp4 MMAs of pairs alone.
static Status validateK96(MmaKind kind, unsigned ctaGroup, unsigned m, unsigned n,
                          MmaVariant variant) {
  const bool fp4Kind = kind == MmaKind::MXF4 || kind == MmaKind::MXF4NVF4;
  if (!fp4Kind || variant.sparse || ctaGroup != 2)
    return fail(fmt::format("K = 96 expects kind::mxf4 or kind::mxf4nvf4 with cta_group::2, dense, "
                            "but got {}kind::{} with cta_group::{}",
                            variant.sparse ? ".sp " : "", stringify(kind), ctaGroup));
  if (m != 256 || !isLegalN(kind, ctaGroup, m, n))
    return fail(fmt::format("K = 96 expects M = 256 and N in 16, 32, ..., 256, but got {} and {}", m,
                            n));
  return {};
}

/// Checks the double K. PTX ISA lists it for pairs alone where elements have 4 bits; CUTLASS has it
/// for one CTA too.
static Status validateDoubleK(MmaKind kind, unsigned ctaGroup, unsigned m, unsigned n,
                              MmaVariant variant) {
  const bool hasBytes = kind == MmaKind::F8F6F4 || kind == MmaKind::MXF8F6F4;
  const bool hasIt = hasBytes || kind == MmaKind::MXF4 || kind == MmaKind::MXF4NVF4;
  if (!hasIt || variant.sparse || variant.weightStationary)
    return fail(fmt::format("the double K expects a dense kind of elements of 4 or 8 bits, but got "
                            "{}{}kind::{}",
                            variant.weightStationary ? ".ws " : "", variant.sparse ? ".sp " : "",
                            stringify(kind)));
  const unsigned step = hasBytes || ctaGroup == 2 ? 16 : 8;
  if (m != 128 * ctaGroup || n == 0 || n > 256 || n % step)
    return fail(fmt::format("the double K of kind::{} with cta_group::{} expects M = {} and N in "
                            "{}, {}, ..., 256, but got {} and {}",
                            stringify(kind), ctaGroup, 128 * ctaGroup, step, 2 * step, m, n));
  return {};
}

static Status validateWeightStationary(const std::string &where, unsigned m, unsigned n,
                                       bool sparse) {
  if (m != 32 && m != 64 && m != 128)
    return fail(fmt::format("{} expects M = 32, 64 or 128, but got {}", where, m));
  if (n != 64 && n != 128 && (n != 256 || sparse))
    return fail(fmt::format("{} expects N = {}, but got {}", where,
                            sparse ? "64 or 128" : "64, 128 or 256", n));
  return {};
}

Status validateMmaShape(MmaKind kind, unsigned ctaGroup, unsigned m, unsigned n,
                        MmaVariant variant) {
  if (variant.depth == MmaDepth::K96)
    return validateK96(kind, ctaGroup, m, n, variant);
  if (variant.depth == MmaDepth::Double)
    return validateDoubleK(kind, ctaGroup, m, n, variant);
  const bool scaled = isBlockScaled(kind), pairOf256 = scaled && variant.sparse;
  const std::string where =
      fmt::format("{}{}kind::{} with cta_group::{}", variant.weightStationary ? ".ws " : "",
                  variant.sparse ? ".sp " : "", stringify(kind), ctaGroup);
  if (variant.weightStationary && (ctaGroup == 2 || scaled))
    return fail(fmt::format("there is no {}", where));
  if (variant.weightStationary)
    return validateWeightStationary(where, m, n, variant.sparse);
  const bool legalM =
      ctaGroup == 2 ? (m == 256 || (m == 128 && !pairOf256)) : (m == 128 || (m == 64 && !scaled));
  if (!legalM)
    return fail(fmt::format("{} expects M = {}, but got {}", where,
                            ctaGroup == 2 ? (pairOf256 ? "256" : "128 or 256")
                            : scaled      ? "128"
                                          : "64 or 128",
                            m));
  if (!isLegalN(kind, ctaGroup, m, n)) {
    const unsigned step = ctaGroup == 2 ? (kind == MmaKind::I8 ? 32 : 16) : 8;
    return fail(
        fmt::format("{} expects N in {}, {}, ..., 256, but got {}", where, step, 2 * step, n),
        kind == MmaKind::I8 && ctaGroup == 1 ? "kind::i8 has N = 8 and 24, and multiples of 16"
                                             : "");
  }
  return {};
}

bool isLegalScaleVector(MmaKind kind, ScaleType type, ScaleVector vector) {
  switch (kind) {
  case MmaKind::MXF8F6F4:
    return type == ScaleType::UE8M0 && vector == ScaleVector::X1;
  case MmaKind::MXF4:
    return type == ScaleType::UE8M0 && vector == ScaleVector::X2;
  case MmaKind::MXF4NVF4:
    return vector == ScaleVector::X4 || vector == ScaleVector::X2;
  default:
    return false;
  }
}

Expected<uint32_t> InstrDesc::encode() const {
  if (isBlockScaled(kind))
    return fail(
        fmt::format("kind::{} expects a block-scaled instruction descriptor", stringify(kind)));
  const Expected<uint32_t> types = typeBits(kind, aType, bType);
  if (!types)
    return types;
  FP4_TRY(checkFields(m, 16, n));
  return *types | (sparsitySelector & 3) | uint32_t(sparse) << 2 | uint32_t(saturate) << 3 |
         uint32_t(dType) << 4 | uint32_t(negateA) << 13 | uint32_t(negateB) << 14 |
         uint32_t(transposeA) << 15 | uint32_t(transposeB) << 16 | (n >> 3) << 17 | (m >> 4) << 24 |
         uint32_t(doubleK) << 29 | (maxShift & 3) << 30;
}

/// The fields that every descriptor has in the same bits.
template <typename Descriptor> static void decodeCommonFields(uint32_t bits, Descriptor &d) {
  d.sparse = get(bits, 2, 1);
  d.negateA = get(bits, 13, 1);
  d.negateB = get(bits, 14, 1);
  d.transposeA = get(bits, 15, 1);
  d.transposeB = get(bits, 16, 1);
  d.n = get(bits, 17, 6) << 3;
}

Expected<InstrDesc> InstrDesc::decode(MmaKind kind, uint32_t bits) {
  const auto a = mmaTypeFromCode(kind, get(bits, 7, 3)),
             b = mmaTypeFromCode(kind, get(bits, 10, 3));
  if (isBlockScaled(kind))
    return decodeFail(bits, "decoded as non-block-scaled for a block-scaled kind");
  if (!a || !b)
    return decodeFail(bits, fmt::format("has no A or B type of kind::{}", stringify(kind)));
  if (get(bits, 4, 2) > 2)
    return decodeFail(bits, "expects D type 0, 1 or 2, but got 3");
  if (get(bits, 6, 1) | get(bits, 23, 1) | (kind == MmaKind::F8F6F4 ? 0 : get(bits, 29, 1)))
    return decodeFail(bits,
                      "must be zero in bits 6, 23 and 29, of which kind::f8f6f4 has the last");
  InstrDesc d;
  d.kind = kind;
  decodeCommonFields(bits, d);
  d.m = get(bits, 24, 5) << 4;
  d.dType = static_cast<AccumulatorType>(get(bits, 4, 2));
  d.aType = *a;
  d.bType = *b;
  d.sparsitySelector = get(bits, 0, 2);
  d.saturate = get(bits, 3, 1);
  d.maxShift = get(bits, 30, 2);
  d.doubleK = get(bits, 29, 1);
  if (const Status sizes = checkFields(d.m, 16, d.n); !sizes)
    return decodeFail(bits, "holds an impossible shape: " + sizes.error().message);
  return d;
}

/// Bit 31 says K = 96 of fp4 kinds, and the double K of mxf8f6f4; bit 3, the double K of fp4 kinds.
static uint32_t depthBits(bool hasBytes, MmaDepth depth) {
  if (depth == MmaDepth::Single)
    return 0;
  return depth == MmaDepth::K96 || hasBytes ? 1u << 31 : 1u << 3;
}

Expected<uint32_t> BlockScaledInstrDesc::encode() const {
  if (!isBlockScaled(kind))
    return fail(fmt::format("kind::{} is not block scaled", stringify(kind)));
  const Expected<uint32_t> types = typeBits(kind, aType, bType);
  if (!types)
    return types;
  FP4_TRY(checkFields(m, 128, n));
  if (sfaId > 3 || sfbId > 3)
    return fail(fmt::format("scale-factor ids must be 0..3, but got {} and {}", sfaId, sfbId));
  return *types | uint32_t(sparse) << 2 | sfbId << 4 | uint32_t(negateA) << 13 |
         uint32_t(negateB) << 14 | uint32_t(transposeA) << 15 | uint32_t(transposeB) << 16 |
         (n >> 3) << 17 | uint32_t(scaleType) << 23 | (m >> 7) << 27 | sfaId << 29 |
         uint32_t(sparsityVersion) << 12 | uint32_t(scalesInLanes) << 26 |
         depthBits(kind == MmaKind::MXF8F6F4, depth);
}

Expected<BlockScaledInstrDesc> BlockScaledInstrDesc::decode(MmaKind kind, uint32_t bits) {
  if (!isBlockScaled(kind))
    return decodeFail(bits, "decoded as block-scaled for a kind without scales");
  const bool fp4Kind = kind != MmaKind::MXF8F6F4;
  const auto a = mmaTypeFromCode(kind, get(bits, 7, 3)),
             b = mmaTypeFromCode(kind, get(bits, 10, fp4Kind ? 2 : 3));
  if (!a || !b)
    return decodeFail(bits, fmt::format("has no A or B type of kind::{}", stringify(kind)));
  if (get(bits, 0, 2) | get(bits, 6, 1) | get(bits, 25, 1))
    return decodeFail(bits, "must be zero in bits 0-1, 6 and 25");
  if (fp4Kind && get(bits, 15, 2))
    return decodeFail(bits, "must be zero in bits 15-16: fp4 operands are K-major");
  if (!fp4Kind && (get(bits, 3, 1) || get(bits, 23, 2) != 1))
    return decodeFail(bits, "must have ue8m0 (1) in bits 23-24 and bit 3 clear for kind::mxf8f6f4");
  if (get(bits, 23, 2) == 3 || (get(bits, 3, 1) && get(bits, 31, 1)))
    return decodeFail(bits,
                      "must not have both bits of the scale type (23-24) or of K (3, 31) set");
  BlockScaledInstrDesc d;
  d.kind = kind;
  decodeCommonFields(bits, d);
  d.m = get(bits, 27, 2) << 7;
  d.aType = *a;
  d.bType = *b;
  d.scaleType = static_cast<ScaleType>(get(bits, 23, 2));
  d.sfaId = get(bits, 29, 2);
  d.sfbId = get(bits, 4, 2);
  const bool isDouble = get(bits, fp4Kind ? 3 : 31, 1);
  d.depth = isDouble                      ? MmaDepth::Double
            : fp4Kind && get(bits, 31, 1) ? MmaDepth::K96
                                          : MmaDepth::Single;
  d.scalesInLanes = get(bits, 26, 1);
  d.sparsityVersion = fp4Kind && get(bits, 12, 1);
  if (const Status sizes = checkFields(d.m, 128, d.n); !sizes)
    return decodeFail(bits, "holds an impossible shape: " + sizes.error().message);
  return d;
}

} // namespace fp4::hw
