//===- Scalar.h - Modifiers of instructions on single lanes ---------------===//
#pragma once

#include "Sim/Decode/Types.h"
#include "fp4/Sim/MemoryModel.h"

namespace fp4::sim {

enum class Round : uint8_t { Nearest, Zero, Down, Up, NearestAway };

enum class FloatOp : uint8_t {
  Add,
  Sub,
  Mul,
  Fma,
  Div,
  DivApprox,
  Rcp,
  Sqrt,
  Rsqrt,
  Ex2,
  Lg2,
  Sin,
  Cos,
  SinTurns, ///< sine of an angle in whole turns
  CosTurns,
  Tanh,
  Min,
  Max
};

/// Floating-point arithmetic, half and mixed precision.
struct FloatModifiers {
  FloatOp op{};
  Round round{};
  bool ftz = false, sat = false;
  bool nan = false; ///< .NaN: a NaN passes through min and max
  bool xorsign = false, relu = false;
};

/// Arithmetic on operands of different types.
struct MixedModifiers {
  FloatModifiers how;
  Type result{};
  Type operands[3]{};
  bool saturatesFinite = false;
};

/// The order of the table's list for testp.
enum class FloatTest : uint8_t { Finite, Infinite, Number, NotANumber, Normal, Subnormal };

/// testp
struct TestModifiers {
  FloatTest test{};
};

/// cvt
struct ConvertModifiers {
  Type source{}, destination{};
  Round round{};
  bool integral = false; ///< `round` is a rounding to integers (.rni, ...)
  bool ftz = false, sat = false, relu = false;
  bool positiveZero = false;  ///< .pzo: -0 becomes +0
  bool scaledByPairs = false; ///< .scaled::n2: each element has a scale of its own
  uint8_t scale = 0;          ///< place of the scale, 0 where it is absent
};

/// cvt.pack: two integers become fields of so many bits.
struct PackModifiers {
  uint8_t bits = 0;
  bool isSigned = false;
};

/// The order of class cmp in ModifierClasses.def.
enum class Comparison : uint8_t {
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  Lo,
  Ls,
  Hi,
  Hs,
  Equ,
  Neu,
  Ltu,
  Leu,
  Gtu,
  Geu,
  Num,
  Nan
};

/// The operation with the predicate of setp and set: none, or in the order of class bool.
enum class Combine : uint8_t { None, And, Or, Xor };

/// setp, set
struct CompareModifiers {
  Comparison comparison{};
  Combine combine{};
  bool ftz = false;
  uint8_t elements = 1;    ///< elements of the result of set
  uint8_t elementBits = 0; ///< bits of each element
  uint32_t trueValue = 0;  ///< bits of a true element: all ones, or 1.0
};

/// add, sub and mad that read or set the carry of each lane.
struct CarryModifiers {
  bool sets = false, uses = false;
};

/// Generic, or the order of the table's list for prmt.
enum class PermuteMode : uint8_t { Generic, F4e, B4e, Rc8, Ecl, Ecr, Rc16 };

/// prmt
struct PermuteModifiers {
  PermuteMode mode{};
};

/// lop3
struct LogicModifiers {
  uint8_t table = 0; ///< truth table
};

/// Special registers that change while a warp runs.
enum class Clock : uint8_t { Low, High, Wide, Nanoseconds, NanosecondsHigh };

/// mov from a Clock
struct ClockModifiers {
  Clock which{};
};

/// cvta
struct WindowModifiers {
  uint64_t base = 0;    ///< generic address of the space
  bool toSpace = false; ///< .to: from generic
};

/// isspacep, st.bulk, prefetch of a tensor map: a space and nothing else.
struct SpaceModifiers {
  Space space{};
};

} // namespace fp4::sim
