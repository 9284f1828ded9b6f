//===- ElementwiseEmitter.cpp - The region of an elementwise operation ----===//
#include "ElementwiseEmitter.h"

#include "Float32.h"
#include "InlinePtx.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/IndexExpressions.h"
#include "fp4/Numerics/Remainder.h"
#include "fp4/Numerics/Transcendentals.h"
#include "fp4/Numerics/Trigonometry.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

#include <type_traits>

using namespace mlir;
using namespace fp4;

static Value extendToF32(ImplicitLocOpBuilder &b, Value value) {
  return arith::ExtFOp::create(b, cast<ShapedType>(value.getType()).clone(b.getF32Type()), value);
}

/// The floats of words of two elements of bf16: a bf16 is the high half of its float. ptxas makes
/// two instructions of a conversion of the high half, and one of a mask.
static Value widenBF16(ImplicitLocOpBuilder &b, Value value) {
  auto type = cast<VectorType>(value.getType());
  auto words = VectorType::get(type.getNumElements() / 2, b.getI32Type());
  Value pairs = vector::BitCastOp::create(b, words, value);
  auto all = [&](int64_t bits) -> Value {
    return arith::ConstantOp::create(b, DenseElementsAttr::get(words, APInt(32, bits)));
  };
  Value low = arith::ShLIOp::create(b, pairs, all(16));
  Value high = arith::AndIOp::create(b, pairs, all(0xffff0000));
  return vector::BitCastOp::create(b, type.clone(b.getF32Type()),
                                   vector::InterleaveOp::create(b, low, high));
}

Value fp4::widenToF32(ImplicitLocOpBuilder &b, Value value) {
  auto type = cast<ShapedType>(value.getType());
  if (type.getElementType().isF32())
    return value;
  auto vector = dyn_cast<VectorType>(type);
  if (vector && vector.getRank() == 1 && type.getElementType().isBF16() &&
      vector.getNumElements() % 2 == 0)
    return widenBF16(b, value);
  return extendToF32(b, value);
}

/// To nearest even, saturating: two elements of fp32 to a conversion.
static Value narrowToE4M3(ImplicitLocOpBuilder &b, Value value) {
  auto e4m3 = Float8E4M3FNType::get(b.getContext());
  int64_t count = cast<VectorType>(value.getType()).getNumElements();
  SmallVector<Value> bytes;
  for (int64_t i = 0; i < count; i += 2) {
    Value low = vector::ExtractOp::create(b, value, i);
    Value high = i + 1 < count ? vector::ExtractOp::create(b, value, i + 1).getResult() : low;
    bytes.push_back(packE4M3(b, low, high));
  }
  auto pairs = VectorType::get({int64_t(bytes.size())}, b.getI16Type());
  Value packed = vector::FromElementsOp::create(b, pairs, bytes);
  auto all = VectorType::get({2 * int64_t(bytes.size())}, b.getI8Type());
  packed = vector::BitCastOp::create(b, all, packed);
  if (count % 2)
    packed = vector::ExtractStridedSliceOp::create(b, packed, ArrayRef<int64_t>{0},
                                                   ArrayRef<int64_t>{count}, ArrayRef<int64_t>{1});
  return vector::BitCastOp::create(b, VectorType::get(count, e4m3), packed);
}

Value fp4::narrowTo(ImplicitLocOpBuilder &b, Value value, Type element) {
  if (element.isF32())
    return value;
  if (isa<Float8E4M3FNType>(element))
    return narrowToE4M3(b, value);
  return arith::TruncFOp::create(b, cast<VectorType>(value.getType()).clone(element), value);
}

namespace {

class Emitter {
public:
  Emitter(ImplicitLocOpBuilder &b, VectorType type) : b(b), type(type) {}

  IRMapping values;

  void emit(Operation &op) {
    Value exact = emitExact(op);
    Type element = op.getResult(0).getType();
    if (element.isBF16() || element.isF16())
      exact = extendToF32(b, narrowTo(b, exact, element)); // which a later rounding folds
    else if (isa<Float8E4M3FNType>(element) && !isWithin464(op.getOperand(0)))
      exact = orNaN({b, exact}); // the yielding op rounds
    values.map(op.getResult(0), exact);
  }

  /// Returns the emitted value that stands for a value of the region, also for a constant that the
  /// region captures.
  Value lookup(Value value) {
    if (Value found = values.lookupOrNull(value))
      return found;
    return emitConstant(value.getDefiningOp<arith::ConstantOp>());
  }

private:
  /// Returns true when a clamp to 464 is behind `value`, so that its conversion to e4m3 is the one
  /// that saturates.
  static bool isWithin464(Value value) {
    auto bound = [](Value limit) {
      auto constant = limit.getDefiningOp<arith::ConstantOp>();
      auto number = constant ? dyn_cast<FloatAttr>(constant.getValue()) : FloatAttr();
      return number ? number.getValueAsDouble() : std::numeric_limits<double>::infinity();
    };
    auto below = value.getDefiningOp<arith::MinimumFOp>();
    auto above = below ? below.getLhs().getDefiningOp<arith::MaximumFOp>() : arith::MaximumFOp();
    return above && std::abs(bound(below.getRhs())) <= 464 &&
           std::abs(bound(above.getRhs())) <= 464;
  }

  /// NaN where e4m3 has no number near `x`.
  Value orNaN(Float32 x) {
    Float32 nan(b, constant(std::numeric_limits<float>::quiet_NaN()));
    Value exists =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OLE, numerics::magnitude(x), constant(464));
    return arith::SelectOp::create(b, exists, x, nan);
  }

  Value constant(float number) {
    return arith::ConstantOp::create(
        b, cast<TypedAttr>(Attribute(DenseElementsAttr::get(type, number))));
  }

  Float32 operand(Operation &op, unsigned number) { return {b, lookup(op.getOperand(number))}; }

  /// Emits `op` in fp32, before the rounding to another type; an i1 vector for comparisons.
  Value emitExact(Operation &op) {
    auto x = [&] { return operand(op, 0); };
    // Operations of arith and math that have a case would become calls of libdevice, or nothing
    // here.
    return TypeSwitch<Operation *, Value>(&op)
        .Case([&](arith::ConstantOp constant) { return emitConstant(constant); })
        .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) { return Value(x()); })
        .Case([&](arith::MaxNumFOp) { return x().apply<LLVM::MaxNumOp>(operand(op, 1)); })
        .Case([&](arith::MinNumFOp) { return x().apply<LLVM::MinNumOp>(operand(op, 1)); })
        .Case([&](math::ExpOp) { return Value(numerics::exponential(x())); })
        .Case([&](math::TanhOp) { return Value(numerics::hyperbolicTangent(x())); })
        .Case([&](math::ErfOp) { return Value(numerics::errorFunction(x())); })
        .Case([&](math::AbsFOp) { return Value(numerics::magnitude(x())); })
        .Default([&](Operation *) { return emitMath(op); });
  }

  /// Functions of several steps that activations seldom have.
  Value emitSeldom(Operation &op) {
    auto x = [&] { return operand(op, 0); };
    auto y = [&] { return operand(op, 1); };
    return TypeSwitch<Operation *, Value>(&op)
        .Case([&](math::ErfcOp) { return Value(numerics::complementOfErrorFunction(x())); })
        .Case([&](math::SinOp) { return Value(numerics::sine(x())); })
        .Case([&](math::CosOp) { return Value(numerics::cosine(x())); })
        .Case([&](math::AtanOp) { return Value(numerics::arcTangent(x())); })
        .Case([&](math::PowFOp) { return Value(numerics::power(x(), y())); })
        .Case([&](arith::RemFOp) { return Value(numerics::remainder(x(), y())); })
        .Default([&](Operation *) { return emitInteger(op); });
  }

  /// Emits operations on integers, also for the operands that LLVM leaves undefined.
  Value emitInteger(Operation &op) {
    auto value = [&](unsigned number) { return lookup(op.getOperand(number)); };
    auto shift = [&](Shift kind) {
      APInt amount;
      bool isSmall = matchPattern(op.getOperand(1), m_ConstantInt(&amount)) && amount.ult(32);
      return isSmall ? emitSame(op) : shiftLanes(b, kind, value(0), value(1));
    };
    return TypeSwitch<Operation *, Value>(&op)
        .Case([&](arith::FPToSIOp) { return toIntegers(b, value(0), /*isSigned=*/true); })
        .Case([&](arith::FPToUIOp) { return toIntegers(b, value(0), /*isSigned=*/false); })
        .Case([&](arith::SIToFPOp) { return toNumbers(b, value(0), /*isSigned=*/true); })
        .Case([&](arith::UIToFPOp op) {
          bool isCondition = op.getIn().getType().isInteger(1);
          return isCondition ? emitSame(*op) : toNumbers(b, value(0), /*isSigned=*/false);
        })
        .Case([&](arith::ShLIOp) { return shift(Shift::Left); })
        .Case([&](arith::ShRSIOp) { return shift(Shift::RightSigned); })
        .Case([&](arith::ShRUIOp) { return shift(Shift::RightUnsigned); })
        .Default([&](Operation *) { return emitSame(op); });
  }

  /// Functions of math that are several steps, or an operation of llvm.
  Value emitMath(Operation &op) {
    auto x = [&] { return operand(op, 0); };
    auto apply = [&]<typename OpT>(std::type_identity<OpT>) -> Value {
      return OpT::create(b, type, ValueRange{x()});
    };
    return TypeSwitch<Operation *, Value>(&op)
        .Case([&](math::Exp2Op) { return Value(numerics::exponentialOfTwo(x())); })
        .Case([&](math::ExpM1Op) { return Value(numerics::exponentialMinusOne(x())); })
        .Case([&](math::LogOp) { return Value(numerics::logarithm(x())); })
        .Case([&](math::Log2Op) { return Value(numerics::logarithmOfTwo(x())); })
        .Case([&](math::Log1pOp) { return Value(numerics::logarithmOfOnePlus(x())); })
        .Case([&](math::SqrtOp) { return apply(std::type_identity<LLVM::SqrtOp>()); })
        .Case([&](math::RsqrtOp) {
          Float32 root(b, apply(std::type_identity<LLVM::SqrtOp>()));
          return Value(like(root, 1.f) / root);
        })
        .Case([&](math::FmaOp) { return Value(fma(x(), operand(op, 1), operand(op, 2))); })
        .Case([&](math::FloorOp) { return apply(std::type_identity<LLVM::FFloorOp>()); })
        .Case([&](math::CeilOp) { return apply(std::type_identity<LLVM::FCeilOp>()); })
        .Case([&](math::RoundEvenOp) { return apply(std::type_identity<LLVM::RoundEvenOp>()); })
        .Case([&](math::TruncOp) { return apply(std::type_identity<LLVM::FTruncOp>()); })
        .Case([&](math::CopySignOp) { return Value(numerics::withSignOf(x(), operand(op, 1))); })
        .Case([&](math::ClampFOp) {
          return Value(maximum(minimum(x(), operand(op, 2)), operand(op, 1)));
        })
        .Default([&](Operation *) { return emitSeldom(op); });
  }

  Value emitConstant(arith::ConstantOp op) {
    if (auto integer = dyn_cast<IntegerAttr>(op.getValue()))
      return arith::ConstantOp::create(
          b, cast<TypedAttr>(
                 Attribute(DenseElementsAttr::get(type.clone(op.getType()), integer.getValue()))));
    APFloat number = cast<FloatAttr>(op.getValue()).getValue();
    bool inexact; // widening is exact
    number.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &inexact);
    auto attr = DenseElementsAttr::get(type, number);
    return arith::ConstantOp::create(b, cast<TypedAttr>(attr));
  }

  /// Emits the operation on vectors.
  Value emitSame(Operation &op) {
    SmallVector<Value> operands =
        llvm::map_to_vector(op.getOperands(), [&](Value v) { return lookup(v); });
    Type element = op.getResult(0).getType();
    Type result = type.clone(isa<IntegerType>(element) ? element : b.getF32Type());
    OperationState state(b.getLoc(), op.getName(), operands, result);
    if (auto comparison = dyn_cast<arith::CmpFOp>(op)) // no flag may change the arithmetic
      state.addAttribute(comparison.getPredicateAttrName(), comparison.getPredicateAttr());
    if (auto comparison = dyn_cast<arith::CmpIOp>(op))
      state.addAttribute(comparison.getPredicateAttrName(), comparison.getPredicateAttr());
    return static_cast<OpBuilder &>(b).create(state)->getResult(0);
  }

  ImplicitLocOpBuilder &b;
  VectorType type;
};

/// `count` lanes of `value` from `first` on.
Value sliceOf(ImplicitLocOpBuilder &b, Value value, int64_t first, int64_t count) {
  auto lanes = llvm::to_vector(llvm::seq<int32_t>(first, first + count));
  return LLVM::ShuffleVectorOp::create(b, value, value, lanes);
}

/// A region, or the part of it before `end`, and the values that it is emitted for.
struct Program {
  Block &body;
  ValueRange results;
  Operation *end;
};

SmallVector<Value> emitPiece(ImplicitLocOpBuilder &b, const Program &program, ValueRange arguments,
                             ValueRange loops) {
  Emitter emitter(b, cast<VectorType>(arguments.front().getType()));
  for (auto [argument, value] : llvm::zip(program.body.getArguments(), arguments))
    emitter.values.map(argument,
                       argument.getType().isInteger(32) ? Value(bitsOf({b, value})) : value);
  for (Operation &op : program.body) {
    if (&op == program.end)
      break;
    if (isEpilogueOp(&op) || isa<linalg::IndexOp>(op)) // kernels quantize many elements at a time
      continue;
    if (std::optional<unsigned> loop = loopOf(op.getResult(0)))
      emitter.values.map(op.getResult(0), loops[*loop]);
    else
      emitter.emit(op);
  }
  return llvm::map_to_vector(program.results, [&](Value v) { return emitter.lookup(v); });
}

} // namespace

SmallVector<Value> fp4::emitElementwise(ImplicitLocOpBuilder &b, Block &body, ValueRange arguments,
                                        int64_t atOnce, ValueRange loops) {
  SmallVector<Value> results = elementwiseResults(body);
  return emitElementwise(b, body, arguments, results, body.getTerminator(), atOnce, loops);
}

SmallVector<Value> fp4::emitElementwise(ImplicitLocOpBuilder &b, Block &body, ValueRange arguments,
                                        ValueRange results, Operation *end, int64_t atOnce,
                                        ValueRange loops) {
  Program program{body, results, end};
  auto type = cast<VectorType>(arguments.front().getType());
  int64_t lanes = type.getNumElements();
  if (lanes <= atOnce)
    return emitPiece(b, program, arguments, loops);
  SmallVector<SmallVector<Value>> elements(results.size());
  for (int64_t first = 0; first < lanes; first += atOnce) {
    int64_t count = std::min(atOnce, lanes - first);
    auto slices = [&](ValueRange values) {
      return llvm::map_to_vector(
          values, [&](Value value) -> Value { return sliceOf(b, value, first, count); });
    };
    SmallVector<Value> piece = emitPiece(b, program, slices(arguments), slices(loops));
    for (auto [results, value] : llvm::zip_equal(elements, piece))
      for (int64_t lane = 0; lane < count; ++lane)
        results.push_back(vector::ExtractOp::create(b, value, lane));
  }
  return llvm::map_to_vector(elements, [&](ArrayRef<Value> results) -> Value {
    return vector::FromElementsOp::create(b, type, results);
  });
}
