//===- Scalars.h - fp32 arithmetic and casts inside a kernel --------------===//
//
// The operations that recipes consist of. Each function emits one IEEE operation, or one cast of
// the target; nothing here reassociates. Casts that the target lacks are emitted as integer code
// with the same result.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/TargetModel.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace fp4 {

class Scalars {
public:
  Scalars(mlir::ImplicitLocOpBuilder &builder, const hw::TargetModel &target)
      : b(builder), target(target) {}

  const hw::TargetModel &targetModel() const { return target; }

  mlir::Value constant(float value);
  mlir::Value constantBits(uint32_t bits); ///< fp32 with these bits
  mlir::Value integer(int64_t value);      ///< i32

  mlir::Value multiply(mlir::Value x, mlir::Value y); ///< mul.rn
  mlir::Value divide(mlir::Value x, mlir::Value y);   ///< div.rn; see QuickDivisions
  mlir::Value add(mlir::Value x, mlir::Value y);      ///< add.rn
  mlir::Value subtract(mlir::Value x, mlir::Value y); ///< sub.rn
  mlir::Value absolute(mlir::Value x);
  mlir::Value reciprocalApprox(mlir::Value x); ///< rcp.approx.ftz: within a last place

  /// Until end(), quotients are correct only where that says so. Quotients are the steps that ptxas
  /// emits for div.rn and rcp.rn, without its tests and detours.
  class QuickDivisions {
  public:
    explicit QuickDivisions(Scalars &scalars) : s(scalars) { s.quick = this; }
    ~QuickDivisions() { end(); }
    QuickDivisions(const QuickDivisions &) = delete;
    /// An i1, null for no divisions.
    mlir::Value end();
    /// Makes it a condition that `x` is in [least, most], positive numbers.
    void expectBetween(mlir::Value x, float least, float most);
    /// With `trust`, dividends need no condition: they are zero, or 2^-60 to 2^60 where the other
    /// conditions hold.
    void trustDividends(bool trust) { trusted = trust; }

  private:
    friend class Scalars;
    Scalars &s;
    mlir::Value holds;
    bool trusted = false;
  };

  /// The smaller operand; the other one where one is NaN.
  mlir::Value minimumNumber(mlir::Value x, mlir::Value y);
  /// The smaller operand; NaN where one is NaN.
  mlir::Value minimumOrNaN(mlir::Value x, mlir::Value y);
  /// The larger operand; the other one where one is NaN.
  mlir::Value maximumNumber(mlir::Value x, mlir::Value y);
  /// The larger operand; NaN where one is NaN.
  mlir::Value maximumOrNaN(mlir::Value x, mlir::Value y);
  mlir::Value roundToBF16(mlir::Value x); ///< rounding to bf16, nearest even, and back
  /// Two fp32 to bf16, nearest even, in one i32; `low` in the low half.
  mlir::Value packBF16(mlir::Value low, mlir::Value high);
  mlir::Value bits(mlir::Value x);     ///< f32 -> i32
  mlir::Value fromBits(mlir::Value x); ///< i32 -> f32

  /// Bytes of two i32, one for each nibble of `selector`, the lowest first; bytes of `high` are 4
  /// to 7.
  mlir::Value permute(mlir::Value low, mlir::Value high, uint32_t selector);
  /// The bits of `ones` where `mask` has ones, elsewhere those of `zeros`.
  mlir::Value bitSelect(uint32_t mask, mlir::Value ones, mlir::Value zeros);
  /// x << count. A multiplication where E2M1 takes integer operations, because these limit
  /// quantizers and the pipe that multiplies integers has time.
  mlir::Value shiftLeft(mlir::Value x, unsigned count);
  /// For a kernel that gains nothing or has no registers for the factors of these multiplications:
  /// it shifts, and clamps what packAlignedE2M1Stochastic rounds.
  void saveRegisters() { savesRegisters = clampsRandom = true; }
  /// For a kernel that only clamps.
  void clampRandom() { clampsRandom = true; }
  /// A call of an LLVM intrinsic without side effects.
  mlir::Value callIntrinsic(llvm::StringRef name, mlir::Type result, mlir::ValueRange operands);

  /// max |x|, zero for no elements. `keepNaN`: NaN elements win; otherwise they are skipped.
  mlir::Value amax(llvm::ArrayRef<mlir::Value> elements, bool keepNaN);

  /// Returns the amaxes of packed elements of type bf16, f16 or f32 in i32 words.
  mlir::Value amax(llvm::ArrayRef<mlir::Value> words, mlir::Type element, bool keepNaN);

  /// The two lanes of an i32 of packed maxima, as amaxes (f32).
  mlir::Value laneAmax(mlir::Value packed, mlir::Type element, unsigned lane, bool keepNaN);
  /// max |x| of the low and of the high halves of words, with any signs.
  mlir::Value reducePacked(llvm::ArrayRef<mlir::Value> words, mlir::Type element, bool keepNaN);
  /// The fp32 value of the low (0) or high (1) half of a word, of type bf16 or f16.
  mlir::Value widenHalf(mlir::Value word, mlir::Type element, unsigned half);
  /// Returns the fp32 value of the high half of two bf16; any value where the low half is infinite
  /// or NaN. The integer pipe, which limits quantizers, has no part in the computation.
  mlir::Value widenHighOfFinite(mlir::Value word);
  /// The fp32 values of packed elements of type bf16, f16 or f32 in i32 words, in element order.
  llvm::SmallVector<mlir::Value> widen(llvm::ArrayRef<mlir::Value> words, mlir::Type element);

  /// E2M1 codes of 8 values in one i32, the first in the low nibble; nearest even, saturating, NaN
  /// to code 7.
  mlir::Value packE2M1(llvm::ArrayRef<mlir::Value> values);
  /// Packs values times 2^-14 as packE2M1 does. None may be 7 * 2^-14 or more, or halfway between
  /// codes of which the even one is below; moveTieE2M1 changes such a value, and no code of others.
  mlir::Value packAlignedE2M1(llvm::ArrayRef<mlir::Value> values);
  mlir::Value moveTieE2M1(mlir::Value aligned);
  /// Packs as packE2M1 does, rounded stochastically: away from zero with the bits of `random`, one
  /// i32 for the first four values and one for the others, as cvt.rs.satfinite.e2m1x4 uses them
  /// (Stochastic.cpp).
  mlir::Value packE2M1Stochastic(llvm::ArrayRef<mlir::Value> values,
                                 llvm::ArrayRef<mlir::Value> random);
  /// Packs values times 2^-14 as packE2M1Stochastic does, where the target has no cvt.rs.
  /// `belowSeven`: none is 7 * 2^-14 or more.
  mlir::Value packAlignedE2M1Stochastic(llvm::ArrayRef<mlir::Value> values,
                                        llvm::ArrayRef<mlir::Value> random, bool belowSeven);
  /// The fp32 values of 8 E2M1 codes in an i32.
  llvm::SmallVector<mlir::Value> unpackE2M1(mlir::Value word);

  /// E4M3 byte (i32) of an fp32; nearest even, saturating to 448, NaN to 0x7F.
  mlir::Value toE4M3(mlir::Value x);
  /// fp32 value of an E4M3 byte (i32).
  mlir::Value fromE4M3(mlir::Value byte);
  /// fp32 values of the two low E4M3 bytes of an i32.
  llvm::SmallVector<mlir::Value, 2> pairFromE4M3(mlir::Value bytes);
  /// Byte `number` of the E8M0 codes in `scales` (i32), as the bits of a float (i32) of 8 exponent
  /// bits and `fractionBits`: 7 for bf16, 23 for fp32. 0 gives a subnormal, 255 NaN.
  mlir::Value powerBits(mlir::Value scales, int64_t number, unsigned fractionBits);
  /// E8M0 byte (i32) of |x| rounded up to a power of two, at most 254; NaN to 255.
  mlir::Value toUE8M0Up(mlir::Value x);

  /// The fp32 value of a lane of a vector of f16 or bf16.
  mlir::Value extend(mlir::Value vector, int64_t lane);

private:
  mlir::Value reduce(llvm::ArrayRef<mlir::Value> values, bool keepNaN);
  mlir::Value pairE2M1(mlir::Value high, mlir::Value low);
  mlir::Value quickDivide(mlir::Value x, mlir::Value y);
  mlir::Value halvesE2M1(mlir::Value high, mlir::Value low);
  mlir::Value nibblesE2M1(mlir::Value low, mlir::Value high);
  mlir::Value mergeNibbles(mlir::Value even, mlir::Value odd);
  mlir::Value valueE2M1(mlir::Value code);
  mlir::Value toFP8(mlir::Value x, mlir::Type type, mlir::NVVM::FPRoundingMode rounding);

  mlir::ImplicitLocOpBuilder &b;
  const hw::TargetModel &target;
  QuickDivisions *quick = nullptr;
  bool savesRegisters = false, clampsRandom = false;
};

} // namespace fp4
