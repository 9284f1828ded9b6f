//===- ElementwiseEmitter.cpp - The region of an elementwise operation ----===//
#include "ElementwiseEmitter.h"

#include "Float32.h"
#include "InlinePtx.h"
#include "QuickElements.h"
#include "SmallBuilders.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/IndexExpressions.h"
#include "fp4/Numerics/Remainder.h"
#include "fp4/Numerics/Transcendentals.h"
#include "fp4/Numerics/Trigonometry.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

#include <type_traits>

using namespace mlir;
using namespace fp4;

namespace {

/// When quick steps are right.
struct Condition {
  Value holds;    ///< an i1; null without a condition
  Value divisors; ///< the sum (f32) of the divisors of quotients that bounds stand for, or null

  void add(ImplicitLocOpBuilder &b, Value other) {
    holds = holds ? arith::AndIOp::create(b, holds, other).getResult() : other;
  }

  /// Returns the whole condition.
  Value close(ImplicitLocOpBuilder &b) {
    if (!divisors)
      return holds;
    Value most = arith::ConstantOp::create(b, b.getF32FloatAttr(QuickElements::kMostDivisor));
    add(b, arith::CmpFOp::create(b, arith::CmpFPredicate::OLE, divisors, most));
    divisors = {};
    return holds;
  }
};

class Emitter {
public:
  /// With `quick`, what is emitted is right where `condition` is.
  Emitter(ImplicitLocOpBuilder &b, VectorType type, const QuickElements *quick)
      : b(b), type(type), quick(quick) {}

  IRMapping values;
  Condition condition;

  void emit(Operation &op) {
    if (quick && quick->isInBounded(&op))
      return;
    if (Operation *exponential = quick ? quick->exponentialOfBounded(&op) : nullptr)
      return emitBounds(op, *exponential);
    if (isBounded(op))
      return emitBoth(op);
    values.map(op.getResult(0), emitRounded(op));
  }

  /// Adds to the condition that both bounds of `result` are the same bf16.
  void expectSame(Value result) {
    Value upper = uppers.lookupOrNull(result);
    if (!upper)
      return;
    int64_t lanes = type.getNumElements();
    auto words = lanes % 2 ? VectorType::get(lanes, b.getI16Type())
                           : VectorType::get(lanes / 2, b.getI32Type());
    auto wordsOf = [&](Value value) {
      return vector::BitCastOp::create(b, words, narrowTo(b, value, b.getBF16Type())).getResult();
    };
    Value lower = wordsOf(lookup(result));
    upper = wordsOf(upper);
    expectAll(arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lower, upper));
  }

  /// Returns the emitted value that stands for a value of the region, also for a constant that the
  /// region captures.
  Value lookup(Value value) {
    if (Value found = values.lookupOrNull(value))
      return found;
    return emitConstant(value.getDefiningOp<arith::ConstantOp>());
  }

private:
  IRMapping uppers; ///< the other bounds of numbers of which `values` has one

  Value emitRounded(Operation &op) {
    Value exact = emitExact(op);
    Type element = op.getResult(0).getType();
    if (element.isBF16() || element.isF16())
      exact = extendToF32(b, narrowTo(b, exact, element)); // which a later rounding folds
    else if (isa<Float8E4M3FNType>(element) && !isWithin464(op.getOperand(0)))
      exact = orNaN({b, exact}); // the yielding op rounds
    return exact;
  }

  bool isBounded(Operation &op) {
    return llvm::any_of(op.getOperands(), [&](Value value) { return uppers.contains(value); });
  }

  /// Emits a step of a number that has two bounds.
  void emitBoth(Operation &op) {
    Value lower = emitRounded(op);
    SmallVector<std::pair<Value, Value>> lowers;
    for (Value operand : op.getOperands())
      if (Value upper = uppers.lookupOrNull(operand)) {
        lowers.push_back({operand, lookup(operand)});
        values.map(operand, upper);
      }
    uppers.map(op.getResult(0), emitRounded(op));
    for (auto [operand, value] : lowers)
      values.map(operand, value);
    values.map(op.getResult(0), lower);
  }

  /// Emits both bounds of a quotient. The sum of all divisors says whether one is too large: it
  /// takes another pipe than comparisons do.
  void emitBounds(Operation &op, Operation &exponential) {
    Float32 x = operand(op, 0), y = operand(exponential, 0);
    Float32 power = approximateExp(y);
    Float32 above = like(y, 1 + QuickElements::kBoundMargin);
    Float32 divisor = fma(power, above, above);
    for (int64_t lane = 0; lane < type.getNumElements(); ++lane) {
      Value one = vector::ExtractOp::create(b, divisor, lane);
      condition.divisors =
          condition.divisors ? arith::AddFOp::create(b, condition.divisors, one).getResult() : one;
    }
    Float32 inverse = approximate("llvm.nvvm.rcp.approx.ftz.f", divisor);
    values.map(op.getResult(0), Value(x * inverse));
    uppers.map(op.getResult(0), Value(x * (inverse * like(y, QuickElements::kBoundFactor))));
  }

  /// Adds all lanes of `conditions` to the condition.
  void expectAll(Value conditions) {
    for (int64_t lane = 0; lane < cast<VectorType>(conditions.getType()).getNumElements(); ++lane) {
      Value one = vector::ExtractOp::create(b, conditions, lane);
      condition.add(b, one);
    }
  }

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
        .Case([&](math::ExpOp) { return emitExp(op); })
        .Case([&](arith::DivFOp) {
          bool isQuick = quick && quick->isQuickQuotient(&op);
          return isQuick ? emitQuickQuotient(op) : emitSame(op);
        })
        .Case([&](math::TanhOp) { return Value(numerics::hyperbolicTangent(x())); })
        .Case([&](math::ErfOp) { return Value(numerics::errorFunction(x())); })
        .Case([&](math::AbsFOp) { return Value(numerics::magnitude(x())); })
        .Default([&](Operation *) { return emitMath(op); });
  }

  Value emitExp(Operation &op) {
    if (isApproximateExp(&op))
      return approximateExp(operand(op, 0));
    return quick ? emitQuickExp(op) : Value(numerics::exponential(operand(op, 0)));
  }

  /// e^x as numerics::approximateExponential computes it.
  Float32 approximateExp(Float32 x) {
    constexpr float log2e = 0x1.715476p+0f;
    return approximate("llvm.nvvm.ex2.approx.ftz.f", x * like(x, log2e));
  }

  Value emitQuickExp(Operation &op) {
    Float32 x = operand(op, 0);
    Value magnitude = LLVM::FAbsOp::create(b, type, x);
    Value isSmall = arith::CmpFOp::create(b, arith::CmpFPredicate::OLE, magnitude,
                                          constant(quick->limitOf(&op)));
    expectAll(isSmall);
    return numerics::exponentialOfSmall(x);
  }

  /// The steps of QuickDivisions.cpp, whose remainder has the other sign: the quotient of -0 is -0.
  Value emitQuickQuotient(Operation &op) {
    Float32 x = operand(op, 0), y = operand(op, 1), one = like(x, 1.f);
    Float32 reciprocal = approximate("llvm.nvvm.rcp.approx.ftz.f", y);
    Float32 rest = fma(minus(y), reciprocal, one);
    Float32 inverse = fma(reciprocal, rest, reciprocal);
    if (matchPattern(op.getOperand(0), m_OneFloat()))
      return inverse;
    Float32 quotient = x * inverse;
    return fma(minus(inverse), fma(y, quotient, minus(x)), quotient);
  }

  Float32 minus(Float32 x) { return {b, arith::NegFOp::create(b, x)}; }

  /// An instruction that approximates, for each lane.
  Float32 approximate(StringRef intrinsic, Float32 x) {
    StringAttr name = b.getStringAttr(intrinsic);
    SmallVector<Value> lanes;
    for (int64_t lane = 0; lane < type.getNumElements(); ++lane) {
      Value one = vector::ExtractOp::create(b, x, lane);
      lanes.push_back(LLVM::CallIntrinsicOp::create(b, b.getF32Type(), name, one).getResult(0));
    }
    return {b, vector::FromElementsOp::create(b, type, lanes)};
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
  const QuickElements *quick;
};

/// `count` lanes of `value` from `first` on.
Value sliceOf(ImplicitLocOpBuilder &b, Value value, int64_t first, int64_t count) {
  auto lanes = llvm::to_vector(llvm::seq<int32_t>(first, first + count));
  return LLVM::ShuffleVectorOp::create(b, value, value, lanes);
}

/// A region, or the part of it before `end`, and the values that it is emitted for, `atOnce` lanes
/// at a time.
struct Program {
  Block &body;
  ValueRange results;
  Operation *end;
  int64_t atOnce;
};

/// Arguments and loops for which a program is emitted.
struct Inputs {
  ValueRange arguments, loops;
};

SmallVector<Value> emitPiece(ImplicitLocOpBuilder &b, const Program &program, const Inputs &inputs,
                             const QuickElements *quick, Condition &condition) {
  Emitter emitter(b, cast<VectorType>(inputs.arguments.front().getType()), quick);
  emitter.condition = condition;
  for (auto [argument, value] : llvm::zip(program.body.getArguments(), inputs.arguments))
    emitter.values.map(argument,
                       argument.getType().isInteger(32) ? Value(bitsOf({b, value})) : value);
  for (Operation &op : program.body) {
    if (&op == program.end)
      break;
    if (isEpilogueOp(&op) || isa<linalg::IndexOp>(op)) // kernels quantize many elements at a time
      continue;
    if (std::optional<unsigned> loop = loopOf(op.getResult(0)))
      emitter.values.map(op.getResult(0), inputs.loops[*loop]);
    else
      emitter.emit(op);
  }
  for (Value result : program.results)
    emitter.expectSame(result);
  condition = emitter.condition;
  return llvm::map_to_vector(program.results, [&](Value v) { return emitter.lookup(v); });
}

/// The inputs of `count` lanes from `first` on.
struct Lanes {
  SmallVector<Value> arguments, loops;

  Lanes(ImplicitLocOpBuilder &b, const Inputs &inputs, int64_t first, int64_t count) {
    for (Value value : inputs.arguments)
      arguments.push_back(sliceOf(b, value, first, count));
    for (Value value : inputs.loops)
      loops.push_back(sliceOf(b, value, first, count));
  }
};

int64_t lanesOf(const Inputs &inputs) {
  return cast<VectorType>(inputs.arguments.front().getType()).getNumElements();
}

/// Joins vectors of one element type.
Value joined(ImplicitLocOpBuilder &b, ArrayRef<Value> parts) {
  if (parts.size() == 1)
    return parts.front();
  SmallVector<Value> elements;
  for (Value part : parts)
    llvm::append_range(elements, scalarsOf(b, part));
  auto type = VectorType::get(int64_t(elements.size()), elements.front().getType());
  return vector::FromElementsOp::create(b, type, elements);
}

/// Emits up to `most` lanes at a time by `emitSome`, and joins their results.
SmallVector<Value> emitInGroups(ImplicitLocOpBuilder &b, const Inputs &inputs, int64_t most,
                                llvm::function_ref<SmallVector<Value>(const Inputs &)> emitSome) {
  int64_t lanes = lanesOf(inputs);
  if (lanes <= most)
    return emitSome(inputs);
  SmallVector<SmallVector<Value>> parts;
  for (int64_t first = 0; first < lanes; first += most) {
    Lanes some(b, inputs, first, std::min(most, lanes - first));
    SmallVector<Value> results = emitSome({some.arguments, some.loops});
    parts.resize(results.size());
    for (auto [part, result] : llvm::zip_equal(parts, results))
      part.push_back(result);
  }
  return llvm::map_to_vector(parts, [&](ArrayRef<Value> part) { return joined(b, part); });
}

/// Returns true when a word has two lanes of `result`: it then takes one register behind a branch.
bool hasPairs(Value result, int64_t lanes) {
  return lanes % 2 == 0 && (result.getType().isBF16() || result.getType().isF16());
}

/// Values that a branch yields: words where they have two lanes.
SmallVector<Value> packPairs(ImplicitLocOpBuilder &b, ValueRange results,
                             SmallVector<Value> values) {
  for (auto [value, result] : llvm::zip_equal(values, results)) {
    int64_t lanes = cast<VectorType>(value.getType()).getNumElements();
    if (!hasPairs(result, lanes))
      continue;
    auto wide = value.getDefiningOp<arith::ExtFOp>();
    Value narrow = wide && getElementTypeOrSelf(wide.getIn()) == result.getType()
                       ? wide.getIn()
                       : narrowTo(b, value, result.getType());
    value = vector::BitCastOp::create(b, VectorType::get(lanes / 2, b.getI32Type()), narrow);
  }
  return values;
}

SmallVector<Value> unpackPairs(ImplicitLocOpBuilder &b, ValueRange results,
                               SmallVector<Value> values) {
  for (auto [value, result] : llvm::zip_equal(values, results)) {
    auto type = cast<VectorType>(value.getType());
    if (type.getElementType().isInteger())
      value = extendToF32(
          b, vector::BitCastOp::create(
                 b, VectorType::get(2 * type.getNumElements(), result.getType()), value));
  }
  return values;
}

/// Emits all lanes, whose results are packed; `holds` becomes the condition under which quick steps
/// are right.
SmallVector<Value> emitPacked(ImplicitLocOpBuilder &b, const Program &program, const Inputs &inputs,
                              const QuickElements *quick, Value &holds) {
  Condition condition;
  SmallVector<Value> values = emitInGroups(b, inputs, program.atOnce, [&](const Inputs &piece) {
    return packPairs(b, program.results, emitPiece(b, program, piece, quick, condition));
  });
  holds = condition.close(b);
  return values;
}

/// Moves operations behind `last` up to `end` to `block`, but for those that `condition` needs.
void moveBehind(Value condition, Operation *last, Operation *end, Block &block) {
  llvm::DenseSet<Operation *> needed = {condition.getDefiningOp()};
  for (Operation *op = end; op != last;) {
    Operation *before = op->getPrevNode();
    if (!needed.contains(op))
      op->moveBefore(&block, block.begin());
    else
      op->walk([&](Operation *inner) { // regions read what is around them
        for (Value operand : inner->getOperands())
          needed.insert(operand.getDefiningOp());
      });
    op = before;
  }
}

/// The place of the branch between quick steps and all steps.
enum class BranchPlace { BeforeSteps, BehindSteps };

/// Emits quick steps and a branch in which all of them are taken where those are wrong; results are
/// packed. Quick steps without bounds come between for lanes whose bounds differ.
SmallVector<Value> emitBranch(ImplicitLocOpBuilder &b, const Program &program, const Inputs &inputs,
                              const QuickElements &quick, BranchPlace place) {
  Value holds, none;
  auto lastOp = [&] {
    bool isFirst = b.getInsertionPoint() == b.getInsertionBlock()->begin();
    return isFirst ? nullptr : &*std::prev(b.getInsertionPoint());
  };
  Operation *before = lastOp();
  SmallVector<Value> values = emitPacked(b, program, inputs, &quick, holds);
  Operation *end = lastOp();
  Value isLikely = arith::ConstantOp::create(b, b.getBoolAttr(true));
  Value expected = LLVM::ExpectOp::create(b, holds, isLikely);
  auto branch =
      scf::IfOp::create(b, TypeRange(ValueRange(values)), expected, /*withElseRegion=*/true);
  if (place == BranchPlace::BeforeSteps)
    moveBehind(holds, before, end, *branch.thenBlock());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(branch.thenBlock());
  scf::YieldOp::create(b, values);
  b.setInsertionPointToStart(branch.elseBlock());
  if (quick.hasBounds()) {
    QuickElements withoutBounds(program.body, program.end, /*results=*/{});
    scf::YieldOp::create(b, emitBranch(b, program, inputs, withoutBounds, place));
  } else {
    scf::YieldOp::create(b, emitPacked(b, program, inputs, /*quick=*/nullptr, none));
  }
  return SmallVector<Value>(branch.getResults());
}

/// Lanes that branch together: more would take registers for their arguments.
constexpr int64_t kLanesOfBranch = 8;

SmallVector<Value> emitQuick(ImplicitLocOpBuilder &b, const Program &program, const Inputs &inputs,
                             BranchPlace place) {
  QuickElements quick(program.body, program.end, program.results);
  Value none;
  if (quick.empty())
    return unpackPairs(b, program.results, emitPacked(b, program, inputs, /*quick=*/nullptr, none));
  return unpackPairs(b, program.results,
                     emitInGroups(b, inputs, kLanesOfBranch, [&](const Inputs &some) {
                       return emitBranch(b, program, some, quick, place);
                     }));
}

} // namespace

SmallVector<Value> fp4::emitElementwise(ImplicitLocOpBuilder &b, Block &body, ValueRange arguments,
                                        int64_t atOnce, ValueRange loops) {
  SmallVector<Value> results = elementwiseResults(body);
  Program program{body, results, body.getTerminator(), atOnce};
  Condition none;
  return emitInGroups(b, {arguments, loops}, atOnce, [&](const Inputs &piece) {
    return emitPiece(b, program, piece, /*quick=*/nullptr, none);
  });
}

Value fp4::emitEpilogue(ImplicitLocOpBuilder &b, Region *region, ValueRange arguments,
                        Type element) {
  Value value = region ? emitElementwise(b, region->front(), arguments).front() : arguments.front();
  return element.isF32() ? value : narrowTo(b, value, element);
}

SmallVector<Value> fp4::emitQuickElementwise(ImplicitLocOpBuilder &b, Block &body,
                                             ValueRange arguments, int64_t atOnce,
                                             ValueRange loops) {
  SmallVector<Value> results = elementwiseResults(body);
  return emitQuick(b, {body, results, body.getTerminator(), atOnce}, {arguments, loops},
                   BranchPlace::BeforeSteps);
}

SmallVector<Value> fp4::emitQuickElementwise(ImplicitLocOpBuilder &b, Block &body,
                                             ValueRange arguments, ValueRange results,
                                             Operation *end, int64_t atOnce, ValueRange loops) {
  return emitQuick(b, {body, results, end, atOnce}, {arguments, loops}, BranchPlace::BehindSteps);
}
