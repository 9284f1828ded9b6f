//===- Elementwise.h - Elementwise functions, bit by bit ------------------===//
//
// The program of an elementwise operation: straight-line code in SSA form on floating-point
// numbers. The compiler writes the region of a linalg.generic, or one arith or math operation on
// tensors, as such a program into the manifest, and the reference evaluates it. Kernels emit the
// same steps from the operations themselves (ElementwiseEmitter.h).
//
// Numbers are held in fp32. An instruction of type bf16 or f16 rounds its result to that type,
// once: sums, products and quotients of 16-bit numbers round as if computed in their own type,
// because fp32 has more than twice as many bits. An integer of 32 bits stands for the number that
// has its bits; instructions on integers have type f32, which leaves all bits as they are.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Numerics/Float16.h"
#include "fp4/Support/Error.h"
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fp4::numerics {

enum class ElementOp : uint8_t {
  Constant, ///< the f32 with bits `immediate`
  Convert,  ///< conversion to the instruction's type; f8E4M3FN above 464 is NaN, as in arith.truncf
  Add,
  Subtract,
  Multiply,
  Divide,
  Negate,
  Absolute,
  Maximum, ///< NaN if an operand is one; +0 is above -0
  Minimum,
  MaximumNumber, ///< the number if one operand is NaN
  MinimumNumber,
  Exp,
  ExpApproximate, ///< e^x as 2^(x * log2(e)), by the instruction (PowerOfTwo.h)
  Exp2,
  ExpMinusOne,
  Log,
  Log2,
  LogOfOnePlus,
  Tanh,
  Erf,
  Erfc,
  Sin,
  Cos,
  Atan,
  Power,     ///< operand 0 to the power of operand 1, with the special cases of IEEE 754
  Remainder, ///< remainder of operand 0 by operand 1, exact, with the sign of operand 0
  Sqrt,
  ReciprocalSqrt, ///< 1 / sqrt, which rounds twice
  FusedMultiplyAdd,
  Floor,
  Ceil,
  RoundEven,
  Truncate,
  CopySign, ///< the sign of operand 1 on the magnitude of operand 0
  Clamp,    ///< operand 0 from operand 1 to operand 2; NaN if an operand is one
  // Comparisons give 1 or 0, ordered: 0 where an operand is NaN.
  Less,
  LessEqual,
  Equal,
  Greater,
  GreaterEqual,
  LessGreater,
  Ordered,
  // Results are 1 where an operand is NaN.
  NotEqual,
  LessOrUnordered,
  LessEqualOrUnordered,
  EqualOrUnordered,
  GreaterOrUnordered,
  GreaterEqualOrUnordered,
  Unordered,
  Select, ///< operand 0 not 0 ? operand 1 : operand 2
  // Integers of 32 bits, in two's complement; sums and products wrap.
  ToSigned, ///< conversion toward zero: saturates, and NaN gives 0, as PTX's cvt.rzi does
  ToUnsigned,
  FromSigned, ///< conversion to fp32, to nearest even
  FromUnsigned,
  AddIntegers,
  SubtractIntegers,
  MultiplyIntegers,
  And,
  Or,
  Xor,
  ShiftLeft, ///< shifts by operand 1; 32 and more leave 0, or copies of the sign, as in PTX
  ShiftRightSigned,
  ShiftRightUnsigned,
  MaximumSigned,
  MinimumSigned,
  MaximumUnsigned,
  MinimumUnsigned,
  EqualIntegers, ///< 1 or 0, as other comparisons
  NotEqualIntegers,
  LessSigned,
  LessEqualSigned,
  GreaterSigned,
  GreaterEqualSigned,
  LessUnsigned,
  LessEqualUnsigned,
  GreaterUnsigned,
  GreaterEqualUnsigned,
};

struct ElementInstruction {
  ElementOp op;
  FloatType type = FloatType::F32;
  std::array<uint16_t, 3> operands = {};
  uint32_t immediate = 0;
  bool operator==(const ElementInstruction &) const = default;
};

/// Values 0 to inputs - 1 are the inputs, and instruction i defines value inputs + i.
struct ElementProgram {
  uint16_t inputs = 0;
  std::vector<ElementInstruction> code;
  std::vector<uint16_t> results;

  /// "2: add f32 0 1; exp bf16 2 -> 3": the number of inputs, instructions, results.
  std::string text() const;
  /// Fails (Usage) where the text is no program, or an operand is not defined before it is used.
  static Expected<ElementProgram> parse(std::string_view text);

  /// `values` holds the inputs and has room for all values; returns nothing, results are in it.
  void evaluate(std::span<float> values) const;
  size_t numValues() const { return inputs + code.size(); }
  bool operator==(const ElementProgram &) const = default;
};

std::string_view stringify(ElementOp op); ///< "add", "maximum_number", ...
std::optional<ElementOp> parseElementOp(std::string_view name); ///< none for an unknown name
unsigned operandCount(ElementOp op);
/// The result in fp32 of a step of two operands.
float stepOf(ElementOp op, float x, float y);

float exponential(float x); ///< Transcendentals.h
float exponentialOfSmall(float x); ///< of |x| up to 86
float approximateExponential(float x);
float exponentialOfTwo(float x);
float exponentialMinusOne(float x);
float logarithm(float x);
float logarithmOfTwo(float x);
float logarithmOfOnePlus(float x);
float hyperbolicTangent(float x);
float errorFunction(float x);
float complementOfErrorFunction(float x);
float sine(float x); ///< Trigonometry.h
float cosine(float x);
float arcTangent(float x);
float power(float x, float y);
float remainder(float x, float y); ///< Remainder.h

} // namespace fp4::numerics
