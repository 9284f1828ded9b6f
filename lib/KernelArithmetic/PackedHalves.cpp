//===- PackedHalves.cpp - Prepacked weights as bf16 or f16 ----------------===//
#include "PackedHalves.h"

#include "InlinePtx.h"

#include "fp4/Numerics/BlockScaledGemm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>

using namespace mlir;
using namespace fp4;

/// Fraction bits that bf16 has fewer than f16.
static constexpr int64_t kFractionShift = 3;

/// Power of two that a code as bf16, value * 2^-126, lacks of value * 2^-4, and the same in the
/// exponents of two.
static_assert(numerics::convertedExponent(numerics::BlockFormat::MXFP4) == -4);
static constexpr double kCodePower = 0x1p122;
static constexpr uint32_t kCodeExponents = 122u << 7 | 122u << 23;

/// Power of two that a code as f16, value * 2^-14, lacks, and that of the scales besides.
static constexpr double kCodePowerOfF16 = 0x1p14;
static constexpr int kScaleExponentOfF16 =
    numerics::convertedExponent(numerics::BlockFormat::MXFP4, numerics::FloatType::F16);

static Value constant(ImplicitLocOpBuilder &b, uint32_t value) {
  return arith::ConstantOp::create(b, b.getI32IntegerAttr(int32_t(value)));
}

static Value splatOf(ImplicitLocOpBuilder &b, Type element, double value) {
  auto type = VectorType::get(2, element);
  return arith::ConstantOp::create(
      b, DenseElementsAttr::get(type, Attribute(b.getFloatAttr(element, value))));
}

Value PackedHalves::splat(double value) { return splatOf(b, element, value); }

Value PackedHalves::asPair(Value word) {
  return LLVM::BitcastOp::create(b, VectorType::get(2, element), word);
}

Value PackedHalves::rotate(Value word, unsigned amount) {
  if (amount == 0)
    return word;
  return LLVM::FshrOp::create(b, word, word, constant(b, amount));
}

Value PackedHalves::masked(Value word, uint32_t mask) {
  return arith::AndIOp::create(b, word, constant(b, mask));
}

Value PackedHalves::inBothLanes(Value pair, int64_t lane) {
  return vector::BroadcastOp::create(b, VectorType::get(2, element),
                                     vector::ExtractOp::create(b, pair, lane));
}

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

/// Two of the four steps are in a register.
PackedHalves::Factors PackedHalves::factorsE4M3(Value scales) {
  Value registers[2];
  for (unsigned odd : {0u, 1u}) {
    Value bits = rotate(scales, 8 * odd);
    if (element.isBF16())
      bits = lop3Select(b, constant(b, hw::weightScaleMask), bits, upperBits);
    else
      bits =
          arith::ShLIOp::create(b, masked(bits, hw::weightScaleMask), constant(b, kFractionShift));
    registers[odd] = asPair(bits);
  }
  Factors result;
  for (int64_t step = 0; step < hw::weightSteps; ++step)
    result.push_back(inBothLanes(registers[step % 2], step / 2));
  return result;
}

/// Two exponents as factors. A byte is the exponent of a bf16, but for 0, a subnormal, and 255, for
/// which the infinity that it gives becomes NaN. Neither is among small scales, to which 122 is
/// added.
Value PackedHalves::powersOf(Value bits, Powers powers) {
  if (powers == Powers::Small)
    return asPair(arith::AddIOp::create(b, bits, constant(b, kCodeExponents)));
  Type bf16 = b.getBF16Type();
  Value pair = LLVM::BitcastOp::create(b, VectorType::get(2, bf16), bits);
  pair = LLVM::MaxNumOp::create(b, pair, splatOf(b, bf16, 0x1p-127));
  pair = LLVM::FMAOp::create(b, pair, splatOf(b, bf16, 0), pair);
  return element.isF16() ? powersAsHalves(pair) : pair;
}

/// Two bf16 times 2^7, as f16. The product is one of bf16: LLVM 22 narrows a product of f32 between
/// both conversions to one of f16, which has no such small powers.
Value PackedHalves::powersAsHalves(Value powers) {
  Value factor = splatOf(b, b.getBF16Type(), std::ldexp(1.0, kScaleExponentOfF16));
  Value none = splatOf(b, b.getBF16Type(), -0.0);
  Value scaled = LLVM::FMAOp::create(b, powers, factor, none);
  Value wide = arith::ExtFOp::create(b, VectorType::get(2, b.getF32Type()), scaled);
  return arith::TruncFOp::create(b, VectorType::get(2, element), wide);
}

/// The four scales of both rows are in one word.
SmallVector<PackedHalves::Factors> PackedHalves::factorsE8M0(Value scales, Powers powers) {
  SmallVector<Factors> rows(2);
  for (unsigned block : {0u, 1u}) {
    Value pair = powersOf(masked(rotate(scales, 8 * block), hw::weightPowerMask), powers);
    for (int64_t lower : {0, 1})
      rows[lower].append(2, inBothLanes(pair, lower));
  }
  return rows;
}

//===----------------------------------------------------------------------===//
// Codes
//===----------------------------------------------------------------------===//

/// `word` as `move` says.
Value PackedHalves::moved(Value word, const hw::WeightMove &move) {
  return move.goesAround ? rotate(word, 32 - move.by)
                         : arith::ShLIOp::create(b, word, constant(b, move.by)).getResult();
}

/// The pairs of two words in their places, beside other bits.
SmallVector<Value> PackedHalves::movePairs(ValueRange words) {
  SmallVector<Value> pairs;
  for (unsigned word : {0u, 1u})
    for (const hw::WeightMove &move : hw::weightMoves[word])
      pairs.push_back(move.by ? moved(words[word], move) : words[word]);
  Value first = pairs[3], second = pairs[7];
  pairs[3] = arith::XOrIOp::create(b, first, second);
  pairs[7] = NVVM::PermuteOp::create(b, b.getI32Type(), first, second,
                                     constant(b, hw::weightLastBytes), NVVM::PermuteMode::DEFAULT);
  return pairs;
}

/// Returns the masked bits of a pair, as two elements.
Value PackedHalves::takePair(Value moved) {
  Value pair = masked(moved, hw::weightPairMask);
  if (element.isBF16())
    return pair;
  constexpr uint32_t signs = 0x80008000;
  Value magnitudes = arith::ShLIOp::create(b, masked(pair, ~signs), constant(b, kFractionShift));
  return arith::OrIOp::create(b, magnitudes, masked(pair, signs));
}

SmallVector<Value> PackedHalves::convertTile(ValueRange codes, ValueRange scales, Powers powers) {
  SmallVector<Factors> rows =
      isE4M3 ? SmallVector<Factors>{factorsE4M3(scales[0]), factorsE4M3(scales[1])}
             : factorsE8M0(scales.front(), powers);
  SmallVector<Value> result;
  for (int64_t step = 0; step < hw::weightSteps; step += 2)
    for (auto [i, moved] : llvm::enumerate(movePairs(codes.slice(step, 2)))) {
      Value pair = asPair(takePair(moved));
      if (!isE4M3 && powers == Powers::Any) // the factor would be infinite for a scale of 64
        pair =
            arith::MulFOp::create(b, pair, splat(element.isF16() ? kCodePowerOfF16 : kCodePower));
      pair = arith::MulFOp::create(b, pair, rows[i % 2][step + int64_t(i) / 4]);
      result.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), pair));
    }
  return result;
}
