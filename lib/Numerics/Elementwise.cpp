// Elementwise programs: their text, and their evaluation in fp32.
#include "fp4/Numerics/Elementwise.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/PowerOfTwo.h"
#include "fp4/Numerics/Remainder.h"
#include "fp4/Numerics/Transcendentals.h"
#include "fp4/Numerics/Trigonometry.h"
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

namespace fp4::numerics {
namespace {

//===----------------------------------------------------------------------===//
// Transcendentals of a float
//===----------------------------------------------------------------------===//

struct Integer {
  uint32_t bits; ///< value in two's complement; sums wrap
  Integer operator+(int y) const { return {bits + static_cast<uint32_t>(y)}; }
  Integer operator-(int y) const { return {bits - static_cast<uint32_t>(y)}; }
  Integer operator+(Integer y) const { return {bits + y.bits}; }
  Integer operator-(Integer y) const { return {bits - y.bits}; }
  Integer operator*(Integer y) const { return {bits * y.bits}; }
  Integer operator&(int y) const { return {bits & static_cast<uint32_t>(y)}; }
  Integer operator|(Integer y) const { return {bits | y.bits}; }
  Integer operator>>(int y) const {
    return {static_cast<uint32_t>(static_cast<int32_t>(bits) >> y)};
  }
  Integer operator<<(int y) const { return {bits << y}; }
};

float maximumOf(float x, float y) {
  if (std::isnan(x) || std::isnan(y))
    return std::numeric_limits<float>::quiet_NaN();
  return x > y || (x == y && !std::signbit(x)) ? x : y;
}

float minimumOf(float x, float y) { return -maximumOf(-x, -y); }

struct Real {
  float value;
  Real operator+(Real y) const { return {value + y.value}; }
  Real operator-(Real y) const { return {value - y.value}; }
  Real operator*(Real y) const { return {value * y.value}; }
  Real operator/(Real y) const { return {value / y.value}; }
};

Real like(Real, float constant) { return {constant}; }
Real fma(Real x, Real y, Real z) { return {std::fma(x.value, y.value, z.value)}; }
Real minimum(Real x, Real y) { return {minimumOf(x.value, y.value)}; }
Real maximum(Real x, Real y) { return {maximumOf(x.value, y.value)}; }
Integer bitsOf(Real x) { return {std::bit_cast<uint32_t>(x.value)}; }
Real floatOf(Integer x) { return {std::bit_cast<float>(x.bits)}; }
Real selectLess(Real x, Real y, Real then, Real otherwise) {
  return x.value < y.value ? then : otherwise;
}
Integer selectLess(Real x, Real y, Integer then, Integer otherwise) {
  return x.value < y.value ? then : otherwise;
}
Integer like(Integer, uint32_t constant) { return {constant}; }
Integer highProduct(Integer x, Integer y) {
  return {static_cast<uint32_t>(uint64_t(x.bits) * y.bits >> 32)};
}
Integer funnel(Integer high, Integer low, Integer n) {
  const uint64_t both = uint64_t(high.bits) << 32 | low.bits;
  return {static_cast<uint32_t>(both << (n.bits & 31) >> 32)};
}
Real realOf(Integer x) { return {static_cast<float>(static_cast<int32_t>(x.bits))}; }

//===----------------------------------------------------------------------===//
// Integers, which are the bits of a float
//===----------------------------------------------------------------------===//

using numerics::bitsOf; // of floats, beside those of Real and Integer
using numerics::floatOf;
int32_t signedOf(float x) { return std::bit_cast<int32_t>(x); }

/// The integer toward zero, saturated; 0 for NaN.
template <typename Int> Int towardZero(float x) {
  using Limits = std::numeric_limits<Int>;
  constexpr float end = Limits::is_signed ? 0x1p31f : 0x1p32f;
  if (std::isnan(x))
    return 0;
  if (x >= end)
    return Limits::max();
  return x <= static_cast<float>(Limits::min()) ? Limits::min() : static_cast<Int>(x);
}

uint32_t shifted(uint32_t x, uint32_t n) { return n < 32 ? x << n : 0; }
uint32_t shiftedRight(uint32_t x, uint32_t n) { return n < 32 ? x >> n : 0; }
uint32_t shiftedRight(int32_t x, uint32_t n) {
  return static_cast<uint32_t>(x >> std::min(n, 31u));
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

struct OpRow {
  ElementOp op;
  std::string_view name;
  unsigned operands;
  float (*evaluate)(float x, float y, float z);
};

constexpr std::array rows = {
    OpRow{ElementOp::Constant, "constant", 0, nullptr},
    OpRow{ElementOp::Convert, "convert", 1, [](float x, float, float) { return x; }},
    OpRow{ElementOp::Add, "add", 2, [](float x, float y, float) { return x + y; }},
    OpRow{ElementOp::Subtract, "subtract", 2, [](float x, float y, float) { return x - y; }},
    OpRow{ElementOp::Multiply, "multiply", 2, [](float x, float y, float) { return x * y; }},
    OpRow{ElementOp::Divide, "divide", 2, [](float x, float y, float) { return x / y; }},
    OpRow{ElementOp::Negate, "negate", 1, [](float x, float, float) { return -x; }},
    OpRow{ElementOp::Absolute, "absolute", 1, [](float x, float, float) { return std::fabs(x); }},
    OpRow{ElementOp::Maximum, "maximum", 2,
          [](float x, float y, float) { return maximumOf(x, y); }},
    OpRow{ElementOp::Minimum, "minimum", 2,
          [](float x, float y, float) { return minimumOf(x, y); }},
    OpRow{ElementOp::MaximumNumber, "maximum_number", 2,
          [](float x, float y, float) {
            return std::isnan(x) ? y : std::isnan(y) ? x : maximumOf(x, y);
          }},
    OpRow{ElementOp::MinimumNumber, "minimum_number", 2,
          [](float x, float y, float) {
            return std::isnan(x) ? y : std::isnan(y) ? x : minimumOf(x, y);
          }},
    OpRow{ElementOp::Exp, "exp", 1, [](float x, float, float) { return exponential(x); }},
    OpRow{ElementOp::ExpApproximate, "exp_approximate", 1,
          [](float x, float, float) { return approximateExponential(x); }},
    OpRow{ElementOp::Exp2, "exp2", 1, [](float x, float, float) { return exponentialOfTwo(x); }},
    OpRow{ElementOp::ExpMinusOne, "expm1", 1,
          [](float x, float, float) { return exponentialMinusOne(x); }},
    OpRow{ElementOp::Log, "log", 1, [](float x, float, float) { return logarithm(x); }},
    OpRow{ElementOp::Log2, "log2", 1, [](float x, float, float) { return logarithmOfTwo(x); }},
    OpRow{ElementOp::LogOfOnePlus, "log1p", 1,
          [](float x, float, float) { return logarithmOfOnePlus(x); }},
    OpRow{ElementOp::Tanh, "tanh", 1, [](float x, float, float) { return hyperbolicTangent(x); }},
    OpRow{ElementOp::Erf, "erf", 1, [](float x, float, float) { return errorFunction(x); }},
    OpRow{ElementOp::Erfc, "erfc", 1,
          [](float x, float, float) { return complementOfErrorFunction(x); }},
    OpRow{ElementOp::Sin, "sin", 1, [](float x, float, float) { return sine(x); }},
    OpRow{ElementOp::Cos, "cos", 1, [](float x, float, float) { return cosine(x); }},
    OpRow{ElementOp::Atan, "atan", 1, [](float x, float, float) { return arcTangent(x); }},
    OpRow{ElementOp::Power, "power", 2, [](float x, float y, float) { return power(x, y); }},
    OpRow{ElementOp::Remainder, "remainder", 2,
          [](float x, float y, float) { return remainder(x, y); }},
    OpRow{ElementOp::Sqrt, "sqrt", 1, [](float x, float, float) { return std::sqrt(x); }},
    OpRow{ElementOp::ReciprocalSqrt, "rsqrt", 1,
          [](float x, float, float) { return 1 / std::sqrt(x); }},
    OpRow{ElementOp::FusedMultiplyAdd, "fma", 3,
          [](float x, float y, float z) { return std::fma(x, y, z); }},
    OpRow{ElementOp::Floor, "floor", 1, [](float x, float, float) { return std::floor(x); }},
    OpRow{ElementOp::Ceil, "ceil", 1, [](float x, float, float) { return std::ceil(x); }},
    OpRow{ElementOp::RoundEven, "round_even", 1,
          [](float x, float, float) { return std::nearbyint(x); }},
    OpRow{ElementOp::Truncate, "truncate", 1, [](float x, float, float) { return std::trunc(x); }},
    OpRow{ElementOp::CopySign, "copy_sign", 2,
          [](float x, float y, float) { return std::copysign(x, y); }},
    OpRow{ElementOp::Clamp, "clamp", 3,
          [](float x, float y, float z) { return maximumOf(minimumOf(x, z), y); }},
    OpRow{ElementOp::Less, "less", 2, [](float x, float y, float) { return float(x < y); }},
    OpRow{ElementOp::LessEqual, "less_equal", 2,
          [](float x, float y, float) { return float(x <= y); }},
    OpRow{ElementOp::Equal, "equal", 2, [](float x, float y, float) { return float(x == y); }},
    OpRow{ElementOp::Greater, "greater", 2, [](float x, float y, float) { return float(x > y); }},
    OpRow{ElementOp::GreaterEqual, "greater_equal", 2,
          [](float x, float y, float) { return float(x >= y); }},
    OpRow{ElementOp::LessGreater, "less_greater", 2,
          [](float x, float y, float) { return float(x < y || x > y); }},
    OpRow{ElementOp::Ordered, "ordered", 2,
          [](float x, float y, float) { return float(x == x && y == y); }},
    OpRow{ElementOp::LessOrUnordered, "less_unordered", 2,
          [](float x, float y, float) { return float(!(x >= y)); }},
    OpRow{ElementOp::LessEqualOrUnordered, "less_equal_unordered", 2,
          [](float x, float y, float) { return float(!(x > y)); }},
    OpRow{ElementOp::EqualOrUnordered, "equal_unordered", 2,
          [](float x, float y, float) { return float(!(x < y || x > y)); }},
    OpRow{ElementOp::GreaterOrUnordered, "greater_unordered", 2,
          [](float x, float y, float) { return float(!(x <= y)); }},
    OpRow{ElementOp::GreaterEqualOrUnordered, "greater_equal_unordered", 2,
          [](float x, float y, float) { return float(!(x < y)); }},
    OpRow{ElementOp::Unordered, "unordered", 2,
          [](float x, float y, float) { return float(x != x || y != y); }},
    OpRow{ElementOp::NotEqual, "not_equal", 2,
          [](float x, float y, float) { return float(x != y); }},
    OpRow{ElementOp::Select, "select", 3, [](float x, float y, float z) { return x != 0 ? y : z; }},
    OpRow{ElementOp::ToSigned, "to_signed", 1,
          [](float x, float, float) { return floatOf(uint32_t(towardZero<int32_t>(x))); }},
    OpRow{ElementOp::ToUnsigned, "to_unsigned", 1,
          [](float x, float, float) { return floatOf(towardZero<uint32_t>(x)); }},
    OpRow{ElementOp::FromSigned, "from_signed", 1,
          [](float x, float, float) { return float(signedOf(x)); }},
    OpRow{ElementOp::FromUnsigned, "from_unsigned", 1,
          [](float x, float, float) { return float(bitsOf(x)); }},
    OpRow{ElementOp::AddIntegers, "add_integers", 2,
          [](float x, float y, float) { return floatOf(bitsOf(x) + bitsOf(y)); }},
    OpRow{ElementOp::SubtractIntegers, "subtract_integers", 2,
          [](float x, float y, float) { return floatOf(bitsOf(x) - bitsOf(y)); }},
    OpRow{ElementOp::MultiplyIntegers, "multiply_integers", 2,
          [](float x, float y, float) { return floatOf(bitsOf(x) * bitsOf(y)); }},
    OpRow{ElementOp::And, "and", 2,
          [](float x, float y, float) { return floatOf(bitsOf(x) & bitsOf(y)); }},
    OpRow{ElementOp::Or, "or", 2,
          [](float x, float y, float) { return floatOf(bitsOf(x) | bitsOf(y)); }},
    OpRow{ElementOp::Xor, "xor", 2,
          [](float x, float y, float) { return floatOf(bitsOf(x) ^ bitsOf(y)); }},
    OpRow{ElementOp::ShiftLeft, "shift_left", 2,
          [](float x, float y, float) { return floatOf(shifted(bitsOf(x), bitsOf(y))); }},
    OpRow{ElementOp::ShiftRightSigned, "shift_right_signed", 2,
          [](float x, float y, float) { return floatOf(shiftedRight(signedOf(x), bitsOf(y))); }},
    OpRow{ElementOp::ShiftRightUnsigned, "shift_right_unsigned", 2,
          [](float x, float y, float) { return floatOf(shiftedRight(bitsOf(x), bitsOf(y))); }},
    OpRow{ElementOp::MaximumSigned, "maximum_signed", 2,
          [](float x, float y, float) { return signedOf(x) < signedOf(y) ? y : x; }},
    OpRow{ElementOp::MinimumSigned, "minimum_signed", 2,
          [](float x, float y, float) { return signedOf(x) > signedOf(y) ? y : x; }},
    OpRow{ElementOp::MaximumUnsigned, "maximum_unsigned", 2,
          [](float x, float y, float) { return bitsOf(x) < bitsOf(y) ? y : x; }},
    OpRow{ElementOp::MinimumUnsigned, "minimum_unsigned", 2,
          [](float x, float y, float) { return bitsOf(x) > bitsOf(y) ? y : x; }},
    OpRow{ElementOp::EqualIntegers, "equal_integers", 2,
          [](float x, float y, float) { return float(bitsOf(x) == bitsOf(y)); }},
    OpRow{ElementOp::NotEqualIntegers, "not_equal_integers", 2,
          [](float x, float y, float) { return float(bitsOf(x) != bitsOf(y)); }},
    OpRow{ElementOp::LessSigned, "less_signed", 2,
          [](float x, float y, float) { return float(signedOf(x) < signedOf(y)); }},
    OpRow{ElementOp::LessEqualSigned, "less_equal_signed", 2,
          [](float x, float y, float) { return float(signedOf(x) <= signedOf(y)); }},
    OpRow{ElementOp::GreaterSigned, "greater_signed", 2,
          [](float x, float y, float) { return float(signedOf(x) > signedOf(y)); }},
    OpRow{ElementOp::GreaterEqualSigned, "greater_equal_signed", 2,
          [](float x, float y, float) { return float(signedOf(x) >= signedOf(y)); }},
    OpRow{ElementOp::LessUnsigned, "less_unsigned", 2,
          [](float x, float y, float) { return float(bitsOf(x) < bitsOf(y)); }},
    OpRow{ElementOp::LessEqualUnsigned, "less_equal_unsigned", 2,
          [](float x, float y, float) { return float(bitsOf(x) <= bitsOf(y)); }},
    OpRow{ElementOp::GreaterUnsigned, "greater_unsigned", 2,
          [](float x, float y, float) { return float(bitsOf(x) > bitsOf(y)); }},
    OpRow{ElementOp::GreaterEqualUnsigned, "greater_equal_unsigned", 2,
          [](float x, float y, float) { return float(bitsOf(x) >= bitsOf(y)); }},
};

/// Converts without saturation, as arith.truncf does.
float convertTo(FloatType type, float x) {
  return type == FloatType::E4M3 ? decodeE4M3(encodeE4M3NonSaturating(x)) : roundTo(type, x);
}

const OpRow &rowOf(ElementOp op) { return *std::ranges::find(rows, op, &OpRow::op); }

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// Takes words off the front of a text.
class Words {
public:
  explicit Words(std::string_view text) : rest(text) { skip(); }

  bool empty() const { return rest.empty(); }
  std::string_view next() {
    const size_t end = std::min(rest.find(' '), rest.size());
    std::string_view word = rest.substr(0, end);
    rest.remove_prefix(end);
    skip();
    return word;
  }
  bool number(uint32_t &value) {
    std::string_view word = next();
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return !word.empty() && error == std::errc() && end == word.data() + word.size();
  }

private:
  void skip() { rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size())); }
  std::string_view rest;
};

tl::unexpected<Error> notAProgram(std::string_view text) {
  return makeError(ErrorKind::Usage,
                   "expects an elementwise program, but got '" + std::string(text) + "'",
                   "such as '2: add f32 0 1; exp f32 2 -> 3'");
}

std::string_view cut(std::string_view &text, std::string_view separator) {
  const size_t at = text.find(separator);
  std::string_view front = text.substr(0, at);
  text = at == text.npos ? std::string_view() : text.substr(at + separator.size());
  return front;
}

bool parseInstruction(std::string_view text, ElementProgram &program) {
  Words words(text);
  const auto *row = std::ranges::find(rows, words.next(), &OpRow::name);
  const auto type = parseFloatType(words.next());
  if (row == rows.end() || !type)
    return false;
  ElementInstruction instruction{row->op, *type, {}, 0};
  uint32_t value = 0;
  if (row->op == ElementOp::Constant && !words.number(instruction.immediate))
    return false;
  for (unsigned i = 0; i < row->operands; ++i) {
    if (!words.number(value) || value >= program.numValues())
      return false;
    instruction.operands[i] = static_cast<uint16_t>(value);
  }
  program.code.push_back(instruction);
  return words.empty();
}

} // namespace

std::string_view stringify(ElementOp op) { return rowOf(op).name; }
std::optional<ElementOp> parseElementOp(std::string_view name) {
  const auto *row = std::ranges::find(rows, name, &OpRow::name);
  return row == rows.end() ? std::nullopt : std::optional(row->op);
}
unsigned operandCount(ElementOp op) { return rowOf(op).operands; }
float stepOf(ElementOp op, float x, float y) { return rowOf(op).evaluate(x, y, 0); }

float exponential(float x) { return exponential(Real{x}).value; }
float exponentialOfSmall(float x) { return exponentialOfSmall(Real{x}).value; }
float approximateExponential(float x) {
  constexpr float log2e = 0x1.715476p+0f;
  return approximatePowerOfTwo(x * log2e);
}
float exponentialOfTwo(float x) { return exponentialOfTwo(Real{x}).value; }
float exponentialMinusOne(float x) { return exponentialMinusOne(Real{x}).value; }
float logarithm(float x) { return logarithm(Real{x}).value; }
float logarithmOfTwo(float x) { return logarithmOfTwo(Real{x}).value; }
float logarithmOfOnePlus(float x) { return logarithmOfOnePlus(Real{x}).value; }
float hyperbolicTangent(float x) { return hyperbolicTangent(Real{x}).value; }
float errorFunction(float x) { return errorFunction(Real{x}).value; }
float complementOfErrorFunction(float x) { return complementOfErrorFunction(Real{x}).value; }
float sine(float x) { return sine(Real{x}).value; }
float cosine(float x) { return cosine(Real{x}).value; }
float arcTangent(float x) { return arcTangent(Real{x}).value; }
float power(float x, float y) { return power(Real{x}, Real{y}).value; }
float remainder(float x, float y) { return remainder(Real{x}, Real{y}).value; }

std::string ElementProgram::text() const {
  std::string text = std::to_string(inputs) + ":";
  for (size_t i = 0; i < code.size(); ++i) {
    const ElementInstruction &instruction = code[i];
    text += (i ? "; " : " ") + std::string(stringify(instruction.op)) + " " +
            std::string(stringify(instruction.type));
    if (instruction.op == ElementOp::Constant)
      text += " " + std::to_string(instruction.immediate);
    for (unsigned j = 0; j < operandCount(instruction.op); ++j)
      text += " " + std::to_string(instruction.operands[j]);
  }
  text += " ->";
  for (uint16_t result : results)
    text += " " + std::to_string(result);
  return text;
}

Expected<ElementProgram> ElementProgram::parse(std::string_view text) {
  constexpr uint32_t most = 0xFFFF;
  std::string_view rest = text;
  ElementProgram program;
  uint32_t value = 0;
  Words inputs(cut(rest, ":"));
  if (!inputs.number(value) || !inputs.empty() || value > most)
    return notAProgram(text);
  program.inputs = static_cast<uint16_t>(value);
  std::string_view code = cut(rest, "->");
  while (code.find_first_not_of(' ') != code.npos)
    if (!parseInstruction(cut(code, ";"), program) || program.numValues() > most)
      return notAProgram(text);
  for (Words words(rest); !words.empty();) {
    if (!words.number(value) || value >= program.numValues())
      return notAProgram(text);
    program.results.push_back(static_cast<uint16_t>(value));
  }
  if (program.results.empty())
    return notAProgram(text);
  return program;
}

void ElementProgram::evaluate(std::span<float> values) const {
  for (size_t i = 0; i < code.size(); ++i) {
    const ElementInstruction &instruction = code[i];
    auto operand = [&](unsigned number) { return values[instruction.operands[number]]; };
    const float exact = instruction.op == ElementOp::Constant
                            ? floatOf(instruction.immediate)
                            : rowOf(instruction.op).evaluate(operand(0), operand(1), operand(2));
    values[inputs + i] = convertTo(instruction.type, exact);
  }
}

} // namespace fp4::numerics
