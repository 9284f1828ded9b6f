//===- RecipeProgram.h - A recipe as scalar operations --------------------===//
//
// Describes the arithmetic of a quantizer. A RecipeProgram is a short list of scalar operations in
// SSA form: instruction i defines value i, and its operands are earlier values. lib/Numerics
// interprets it, and a code generator walks it and emits one operation (or one exact expansion) per
// instruction. A kernel and its reference can therefore not differ in the order of operations, a
// guard or a constant.
//
// Instructions are sorted by how often they run:
//
//   Tensor   once per tensor (per row or group where amaxes are): the encode and decode scale
//   Block    once per block, and per candidate scale: the stored scale byte, the element factor
//   Element  once per element: the value that is then converted to E2M1
//   Error    once per element, only where a program has several candidates: the distance between
//            the element and its code's value; lib/Numerics folds it in element order
//
// A quantizer runs as follows, the program deciding everything in quotes:
//
//   tensor stage; for each block: amax of its elements ("amaxNaN"); for each of "candidates":
//   block stage, element stage, E2M1 conversion (nearest even, or stochastic), and, if there are
//   several, the sum of errors; the first candidate with the smallest sum is stored: "scaleByte"
//   and the codes.
//
// All f32 operations are IEEE, nearest even, subnormals kept, never contracted.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Numerics/Recipe.h"
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fp4::numerics {

enum class ValueType : uint8_t { F32, I32, I1 };

/// a, b, c: operands. f32 results unless a suffix or the comment says otherwise.
enum class Op : uint8_t {
  // Inputs
  TensorAmax, ///< Tensor: amax of the tensor, row or group
  BlockAmax,  ///< Block: amax of the block
  Stretch,    ///< Block: the candidate's factor
  ScaleByte,  ///< Block: i32, the stored byte, or the bits of an f32 (dequantizer only)
  Element,    ///< Element: x, widened to f32; in the dequantizer the value of the E2M1 code
  Code,       ///< Element: i32, the code of more than 4 bits (dequantizer only)
  Decoded,    ///< Error: the value of the element's code
  // Constants
  FloatConstant, ///< the f32 with bits `immediate`
  IntConstant,   ///< i32 `immediate`
  // f32 arithmetic
  Multiply,
  Divide,
  Subtract,
  ReciprocalApprox, ///< rcp.approx.ftz.f32
  Absolute,
  MinDropNaN, ///< the number if one of a, b is NaN (fminf, PTX min)
  MinKeepNaN, ///< NaN if one of a, b is (PTX min.NaN)
  MaxKeepNaN,
  RoundBF16, ///< rounding to bf16 (nearest even) and back
  Truncate,  ///< i32, toward zero, of an f32 from 0 to 2^31 - 128
  // Comparisons, i1; false where a NaN is compared
  FloatEqual,
  FloatGreater,
  IsNaN,
  IntEqual,
  IntAtLeast, ///< a >= b, unsigned
  // i32
  BitsOf,  ///< i32 pattern of an f32
  FloatOf, ///< f32 of a pattern
  Add,
  SubtractInt,
  ShiftLeft,
  ShiftRight, ///< logical
  MinSigned,
  MaxSigned,
  // Either type
  Select, ///< a ? b : c
  // Conversions; bytes are i32 0..255
  ToE4M3,    ///< cvt.rn.satfinite.e4m3: NaN gives 0x7F
  FromE4M3,  ///< NaN for 0x7F and 0xFF
  ToUE8M0Up, ///< cvt.rp.satfinite.ue8m0: NaN gives 255
};

std::string_view stringify(Op op); ///< "multiply", "to_e4m3", ...
unsigned operandCount(Op op);

enum class Stage : uint8_t { Tensor, Block, Element, Error };
inline constexpr unsigned stageCount = 4;

/// Index of the instruction that defines the value.
using Value = uint16_t;
inline constexpr Value noValue = 0xFFFF;

struct Instruction {
  Op op;
  Stage stage; ///< the latest of its operands', or the input's
  std::array<Value, 3> operands = {noValue, noValue, noValue};
  uint32_t immediate = 0;
  bool operator==(const Instruction &) const = default;
};

struct RecipeProgram {
  std::vector<Instruction> code; ///< sorted by stage, no two alike
  NanPolicy amaxNaN = NanPolicy::Drop;

  Value encodeScale = noValue; ///< Tensor: g; none where the recipe has none
  Value decodeScale = noValue; ///< Tensor: d
  Value scaleByte = noValue;   ///< Block; of f32 scales their bits
  Value element = noValue;     ///< Element: converted to E2M1 (the dequantizer: the result)
  Value elementCode = noValue; ///< Element: i32, the code itself, of more than 4 bits; else none
  Value error = noValue;       ///< Error

  /// Values of Stretch. Later ones are taken where their error is strictly smaller.
  std::vector<float> candidates = {1.f};
  /// Reduction of the errors of a block, in element order, starting from 0: the largest, else the
  /// sum.
  bool errorIsLargest = false;

  /// First and one past the last instruction of a stage.
  std::pair<Value, Value> range(Stage stage) const;
  ValueType typeOf(Value value) const;
  /// One line per instruction, "%3 = divide %1, %2", under a line for each stage.
  std::string text() const;
};

/// The quantizer that the decisions of a recipe define.
RecipeProgram makeProgram(const Recipe &recipe);

/// The dequantizer of a recipe: each code's value times the factor that its DequantizeRule or
/// ScaleDecode makes of the scale byte. Inputs: TensorAmax, ScaleByte, Element.
RecipeProgram makeDequantizer(const Recipe &recipe);

/// The number (`element`, of stage Tensor) that an operand has in alpha: its amax, d or g, as its
/// AlphaRule says; for recipes with a tensor scale. Input: TensorAmax.
RecipeProgram makeAlphaTerm(const Recipe &recipe);

} // namespace fp4::numerics
