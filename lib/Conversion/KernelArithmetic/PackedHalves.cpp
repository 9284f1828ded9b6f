//===- PackedHalves.cpp - Prepacked weights as bf16 or f16 ----------------===//
#include "PackedHalves.h"

#include "InlinePtx.h"

#include "fp4/ISA/WeightLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

/// Fraction bits that bf16 has fewer than f16.
static constexpr int64_t kFractionShift = 3;

static Value constant(ImplicitLocOpBuilder &b, uint32_t value) {
  return arith::ConstantOp::create(b, b.getI32IntegerAttr(int32_t(value)));
}

static Type scaleOf(ImplicitLocOpBuilder &b, int64_t block) {
  return block == 16 ? Type(Float8E4M3FNType::get(b.getContext()))
                     : Type(Float8E8M0FNUType::get(b.getContext()));
}

PackedHalves::PackedHalves(ImplicitLocOpBuilder &b, const hw::TargetModel &target, int64_t block,
                           Type element)
    : b(b), scaled(b, target, scaleOf(b, block), element), isE4M3(block == 16), element(element) {}

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
    if (element.isBF16()) // the upper exponent bits
      bits = lop3Select(b, constant(b, hw::weightScaleMask), bits, constant(b, 0x70007000));
    else
      bits = arith::ShLIOp::create(b, masked(bits, hw::weightScaleMask),
                                   constant(b, kFractionShift));
    registers[odd] = asPair(bits);
  }
  Factors result;
  for (int64_t step = 0; step < hw::weightSteps; ++step)
    result.push_back(inBothLanes(registers[step % 2], step / 2));
  return result;
}

/// The four scales of both rows in one word: in a register those of the rows, for two steps.
SmallVector<Value> PackedHalves::convertPowers(ValueRange codes, Value scales) {
  Value large = masked(scales, hw::weightLargePowers);
  Value any = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, large, constant(b, 0));
  SmallVector<Type> types(4 * hw::weightSteps, b.getI32Type());
  auto branch = scf::IfOp::create(b, types, any, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard restore(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value bytes = rotate(scales, hw::weightScaleRotation(32));
  SmallVector<Value> two = scaled.factors(increment(bytes));
  Factors upper = {two[0], two[0], two[1], two[1]}, lower = {two[2], two[2], two[3], two[3]};
  scf::YieldOp::create(b, multiply(codes, upper, lower, /*twice=*/true));

  b.setInsertionPointToStart(branch.elseBlock());
  constexpr uint32_t ones = 0x3F803F80; // exponent 127 in both halves
  Factors rows[2];
  for (unsigned block : {0u, 1u}) {
    Value bits = masked(rotate(scales, 8 * block), hw::weightPowerMask);
    Value pair = asPair(arith::AddIOp::create(b, bits, constant(b, ones)));
    for (int64_t lower : {0, 1})
      rows[lower].append(2, inBothLanes(pair, lower));
  }
  scf::YieldOp::create(b, multiply(codes, rows[0], rows[1], /*twice=*/false));
  b.setInsertionPointAfter(branch);
  NVVM::SyncWarpOp::create(b, constant(b, 0xFFFFFFFF)); // the rows of a warp have scales of their own
  return branch.getResults();
}

/// Every byte plus 1, without a carry.
Value PackedHalves::increment(Value bytes) {
  Value low = arith::AddIOp::create(b, masked(bytes, 0x7F7F7F7F), constant(b, 0x01010101));
  return arith::XOrIOp::create(b, low, masked(bytes, 0x80808080));
}

//===----------------------------------------------------------------------===//
// Codes
//===----------------------------------------------------------------------===//

/// The bits of pair j in their place.
Value PackedHalves::takePair(Value word, unsigned j) {
  Value rotated = rotate(word, hw::weightRotation[j]);
  Value pair;
  if (hw::weightRotation[j] == hw::weightRotationOfTop[j]) {
    pair = masked(rotated, hw::weightPairMask);
  } else {
    Value top = masked(rotate(word, hw::weightRotationOfTop[j]), hw::weightTopMask);
    pair = arith::OrIOp::create(b, masked(rotated, hw::weightPairMask & ~hw::weightTopMask), top);
  }
  if (element.isBF16())
    return pair;
  constexpr uint32_t signs = 0x80008000;
  Value moved = arith::ShLIOp::create(b, masked(pair, ~signs), constant(b, kFractionShift));
  return arith::OrIOp::create(b, moved, masked(pair, signs));
}

/// `twice`: factors do not restore what the place of a code divides by.
SmallVector<Value> PackedHalves::multiply(ValueRange codes, const Factors &upper,
                                          const Factors &lower, bool twice) {
  SmallVector<Value> result;
  for (int64_t step = 0; step < hw::weightSteps; ++step)
    for (unsigned j = 0; j < 4; ++j) {
      Value pair = asPair(takePair(codes[step], j));
      if (twice) {
        auto type = VectorType::get(2, element);
        auto power = DenseElementsAttr::get(type, Attribute(b.getFloatAttr(element, 0x1p126)));
        pair = arith::MulFOp::create(b, pair, arith::ConstantOp::create(b, power));
      }
      pair = arith::MulFOp::create(b, pair, (j % 2 ? lower : upper)[step]);
      result.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), pair));
    }
  return result;
}

SmallVector<Value> PackedHalves::convertTile(ValueRange codes, ValueRange scales) {
  if (!isE4M3)
    return convertPowers(codes, scales.front());
  return multiply(codes, factorsE4M3(scales[0]), factorsE4M3(scales[1]), /*twice=*/false);
}
