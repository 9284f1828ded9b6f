// Checks of a GEMM, and its operands in whole steps of K.
#include "GemmOperands.h"
#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/E4M3.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

namespace fp4::numerics {

namespace {
auto fail(std::string message, std::string note = "") {
  return makeError(ErrorKind::Usage, std::move(message), std::move(note));
}
/// Checks that rows have `depth` elements of `bits` bits.
Status checkPitch(const std::string &name, const GemmOperand &operand, uint64_t depth,
                  unsigned bits) {
  if (operand.dataPitch == 0 || operand.dataPitch >= depth * bits / 8)
    return {};
  return fail("row pitch of operand " + name + " must be at least " +
              (bits == 16 ? "2 K" : bits == 8 ? "K" : "K / 2") + " bytes");
}

Status checkRanges(const GemmProblem &p) {
  if (const uint64_t slices = slicesOf(p); p.splits == 0 || p.splits > slices)
    return fail("split-K ranges must be 1 to " + std::to_string(slices) + ", but got " +
                std::to_string(p.splits));
  if (!p.streamK)
    return {};
  const StreamK &stream = *p.streamK;
  const bool isBlockScaled = p.core == TensorCore::BlockScaled && p.mmaDepth != hw::MmaDepth::K96;
  const bool isPrepacked = hasF32Scales(p.format) && p.rowsPerScaleB == 1;
  if (hasF32Scales(p.format) ? !isPrepacked : !isBlockScaled && !p.floatA)
    return fail("shares of workers must be those of one tensor core with block scales and "
                "no instructions of K = 96, or beside floats, or of e4m3 beside prepacked "
                "weights");
  if (p.splits != 1)
    return fail("shares of workers must be those of one split-K range, but got " +
                std::to_string(p.splits));
  if (stream.workers == 0 || stream.rows == 0 || stream.rows % streamUnit || stream.columns == 0 ||
      stream.columns % streamUnit || stream.columns > 256)
    return fail("shares must be those of 1 or more workers, in tiles of multiples of " +
                std::to_string(streamUnit) + ", of up to 256 columns");
  return {};
}

/// Returns true when an operand lacks memory that it needs; an operand without rows needs none.
bool isMissing(const GemmOperand &x, bool needsScales) {
  return x.rows && (!x.data || (needsScales && !x.scales));
}

/// Checks that instructions of another K than the usual one multiply such operands.
Status checkDepth(const GemmProblem &p) {
  const bool isBlockScaled = p.core == TensorCore::BlockScaled;
  const bool packed = isPacked(p.format) && isPacked(formatOfB(p));
  const bool areBytes = elementOf(p.format).bits == 8 && elementOf(formatOfB(p)).bits == 8;
  if (p.mmaDepth == hw::MmaDepth::K96 && (!isBlockScaled || !packed || p.splits != 1))
    return fail(
        "instructions of K = 96 must have elements of 4 bits, a tensor core with block scales "
        "and one split-K range");
  if (p.mmaDepth == hw::MmaDepth::Double && (!isBlockScaled || (!packed && !areBytes)))
    return fail("instructions of the double K must have elements of 4 bits, or of 8 on both sides, "
                "and a tensor core with block scales");
  return {};
}
} // namespace

Status validate(const GemmProblem &p) {
  const unsigned block = blockSizeOf(p.format);
  const bool endsInBlock = hasF32Scales(p.format); // K may end within a scale block
  if (p.depth == 0 || (p.depth % block && !endsInBlock))
    return fail("K must be a positive multiple of " + std::to_string(block) + " for " +
                std::string(stringify(p.format)) + ", but got " + std::to_string(p.depth));
  if (p.floatA &&
      (p.core != TensorCore::Converted || elementOf(p.format).bits == 8 ||
       *p.floatA == FloatType::F32 || (*p.floatA == FloatType::F16 && !isPacked(p.format))))
    return fail("a without scales must be bf16 beside elements of 4 or 6 bits, or f16 beside those "
                "of 4, of a tensor core of 16-bit floats");
  if (p.rhsFormat && *p.rhsFormat != p.format && !(isMX(p.format) && isMX(*p.rhsFormat)))
    return fail("operands of two formats must both have scales of f8E8M0FNU, but got " +
                std::string(stringify(p.format)) + " and " + std::string(stringify(*p.rhsFormat)));
  if (isMXF8F6F4(p) && p.core == TensorCore::None)
    return fail("elements of 8 bits must have a tensor core");
  FP4_TRY(checkDepth(p));
  const bool needsScales = !p.floatA && !(endsInBlock && p.rowsPerScaleB == 1);
  if (isMissing(p.a, needsScales) || isMissing(p.b, /*needsScales=*/true))
    return fail("matmul expects data and scales of both operands");
  const unsigned bitsA = p.floatA ? 16 : isPacked(p.format) ? 4 : 8;
  FP4_TRY(checkPitch("a", p.a, p.depth, bitsA));
  FP4_TRY(checkPitch("b", p.b, p.depth, isPacked(formatOfB(p)) ? 4 : 8));
  FP4_TRY(checkRanges(p));
  if (!p.rowAlpha.empty() && p.rowAlpha.size() != p.a.rows)
    return fail("alphas of rows must be " + std::to_string(p.a.rows) + " numbers, but got " +
                std::to_string(p.rowAlpha.size()));
  if (!p.columnAlpha.empty() && p.columnAlpha.size() != p.b.rows)
    return fail("alphas of columns must be " + std::to_string(p.b.rows) + " numbers, but got " +
                std::to_string(p.columnAlpha.size()));
  return {};
}

bool hasAlpha(const GemmProblem &p) {
  return p.alpha || !p.rowAlpha.empty() || !p.columnAlpha.empty();
}

std::optional<float> alphaAt(const GemmProblem &p, uint64_t row, uint64_t column) {
  if (!p.rowAlpha.empty())
    return p.rowAlpha[row];
  return p.columnAlpha.empty() ? p.alpha : p.columnAlpha[column];
}

uint16_t floatBits(const GemmProblem &p, uint64_t row, uint64_t k) {
  const uint64_t pitch = p.a.dataPitch ? p.a.dataPitch : p.depth * 2;
  uint16_t bits;
  std::memcpy(&bits, p.a.data + row * pitch + k * sizeof(bits), sizeof(bits));
  return bits;
}

ScaledCode scaledCode(const GemmProblem &p, const GemmOperand &operand, BlockFormat format,
                      uint64_t row, uint64_t k) {
  const unsigned perByte = isPacked(format) ? 2 : 1, block = blockSizeOf(format);
  const uint64_t pitch = operand.dataPitch ? operand.dataPitch : p.depth / perByte;
  const uint64_t scalePitch = operand.scalePitch ? operand.scalePitch : p.depth / block;
  const uint8_t byte = operand.data[row * pitch + k / perByte];
  return {isPacked(format) ? uint8_t(byte >> (k % 2 * 4) & 15) : byte,
          operand.scales[row * scalePitch + k / block]};
}

/// Decodes one element. An E5M2 is the upper half of an f16.
/// Decodes elements without infinities and NaN.
static float decodeFinite(const ElementFormat &element, uint8_t code) {
  const unsigned sign = 1u << (element.bits - 1), hidden = 1u << element.mantissa;
  const unsigned fraction = code & (hidden - 1), exponent = (code & (sign - 1)) >> element.mantissa;
  const float magnitude =
      std::ldexp(float(exponent ? hidden | fraction : fraction),
                 int(std::max(exponent, 1u)) - element.bias - int(element.mantissa));
  return code & sign ? -magnitude : magnitude;
}

float decodeElement(BlockFormat format, uint8_t code) {
  if (isPacked(format))
    return decodeE2M1(code);
  if (elementOf(format).bits == 6)
    return decodeFinite(elementOf(format), code);
  return elementOf(format).mantissa == 3 ? decodeE4M3(code) : decodeF16(uint16_t(code << 8));
}

uint64_t slicesOf(const GemmProblem &p) { return (p.depth + splitSlice - 1) / splitSlice; }

Overflow overflowOf(const EpilogueProgram &epilogue, bool mayBeInfinite) {
  if (!mayBeInfinite)
    return CannotOverflow;
  const bool isHidden = epilogue.apply(-std::numeric_limits<float>::infinity(), 1) == 0;
  return isHidden ? MayBeZero : MayBeInfinite;
}

uint64_t stepsOf(const GemmProblem &p) { return (p.depth + fp4MmaK - 1) / fp4MmaK; }

PaddedOperand::PaddedOperand(const GemmProblem &p, const GemmOperand &o)
    : rows(o.rows), steps(stepsOf(p)), scalesPerStep(fp4MmaK / blockSizeOf(p.format)),
      data(rows * steps * fp4MmaRowBytes), scales(rows * steps * scalesPerStep) {
  const uint64_t rowBytes = p.depth / 2, rowScales = p.depth / blockSizeOf(p.format);
  const uint64_t dataPitch = o.dataPitch ? o.dataPitch : rowBytes;
  const uint64_t scalePitch = o.scalePitch ? o.scalePitch : rowScales;
  for (uint64_t r = 0; r < rows; ++r) {
    std::memcpy(&data[r * steps * fp4MmaRowBytes], o.data + r * dataPitch, rowBytes);
    std::memcpy(&scales[r * steps * scalesPerStep], o.scales + r * scalePitch, rowScales);
  }
}

} // namespace fp4::numerics
