//===- Contraction.cpp - Block-scaled operations in linalg.generic --------===//
//
// A contraction is recognized in three steps, each of which can reject it with a reason:
//
//   1. inputs    by their maps: data has all loops of K, scales have the outer one, or the only one
//                by the elements of a scale block
//   2. loops     those of both sides are batches, those of one side its rows, in the order of the
//                result
//   3. body      acc + one number of each input, multiplied
//
//===----------------------------------------------------------------------===//
#include "Contraction.h"

#include "fp4/Conversion/Ingress.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fp4;
using utils::IteratorType;

/// The remedy for operations of another form.
static constexpr const char *kForm =
    "write it as linalg.generic over (B.., M.., N.., Ko, Kb) with the sides (b, m, ko, kb) and (b, n, "
    "ko, kb) and their scales (b, m, ko) and (b, n, ko), or over a flat K with scales (b, m, k floordiv "
    "32); one side may be bf16 or f16 without scales; the result (b, m, n) begins with zero";

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

/// The loops that `map` indexes its operand by, each once; nothing if it computes more than the
/// number of a scale block at its end.
static std::optional<LoopedInput> loopsOf(AffineMap map, unsigned number) {
  LoopedInput input{number, {}};
  for (auto [i, expression] : llvm::enumerate(map.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(expression);
    auto binary = dyn_cast<AffineBinaryOpExpr>(expression);
    if (!dim && binary && binary.getKind() == AffineExprKind::FloorDiv &&
        i + 1 == map.getNumResults()) {
      auto divisor = dyn_cast<AffineConstantExpr>(binary.getRHS());
      dim = dyn_cast<AffineDimExpr>(binary.getLHS());
      input.block = divisor ? divisor.getValue() : 0;
    }
    if (!dim || input.block < 1 || llvm::is_contained(input.loops, dim.getPosition()))
      return std::nullopt;
    input.loops.push_back(dim.getPosition());
  }
  return input;
}

/// All inputs; nothing if one is indexed in another way.
static std::optional<SmallVector<LoopedInput>> inputsOf(linalg::GenericOp op) {
  SmallVector<LoopedInput> inputs;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    auto input = loopsOf(op.getMatchingIndexingMap(operand), operand->getOperandNumber());
    if (!input || !isa<RankedTensorType>(operand->get().getType()))
      return std::nullopt;
    inputs.push_back(*input);
  }
  return inputs;
}

/// The sides that inputs form, by the loops of K that data has last: one (K is flat) or two.
/// Nothing if an input is neither data nor the scales of data.
static std::optional<SmallVector<LoopedSide>> pairUp(ArrayRef<LoopedInput> inputs,
                                                     ArrayRef<unsigned> depth) {
  auto endsIn = [](const LoopedInput &input, ArrayRef<unsigned> loops) {
    return ArrayRef(input.loops).take_back(loops.size()) == loops;
  };
  SmallVector<LoopedSide> sides;
  for (const LoopedInput &input : inputs)
    if (input.block == 1 && input.loops.size() >= depth.size() && endsIn(input, depth))
      sides.push_back({input, std::nullopt});
  for (const LoopedInput &input : inputs) {
    bool isScales = depth.size() == 1 ? input.block > 1 && endsIn(input, depth)
                                      : input.block == 1 && endsIn(input, depth.take_front());
    auto isTheirs = [&](const LoopedSide &side) {
      return isScales && !side.scales && side.data.before(depth.size()) == input.before(1);
    };
    auto side = llvm::find_if(sides, isTheirs);
    bool isData = llvm::any_of(
        sides, [&](const LoopedSide &known) { return known.data.number == input.number; });
    if (!isData && side == sides.end())
      return std::nullopt;
    if (!isData)
      side->scales = input;
  }
  return sides;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// The loops of K, outer first, in the orders that are possible.
static SmallVector<SmallVector<unsigned>> depthsOf(linalg::GenericOp op) {
  SmallVector<unsigned> depth;
  for (auto [loop, type] : llvm::enumerate(op.getIteratorTypesArray()))
    if (type == IteratorType::reduction)
      depth.push_back(loop);
  SmallVector<SmallVector<unsigned>> orders = {depth};
  if (depth.size() == 2)
    orders.push_back({depth[1], depth[0]});
  return orders;
}

/// Returns the number of batch loops, which both sides have first. Returns nothing unless `rows`
/// are these loops, those of `x` alone and those of `y` alone, in this order.
static std::optional<unsigned> batchesOf(ArrayRef<unsigned> rows, ArrayRef<unsigned> x,
                                         ArrayRef<unsigned> y) {
  unsigned batches = 0;
  while (batches < x.size() && batches < y.size() && x[batches] == y[batches])
    ++batches;
  SmallVector<unsigned> expected(x);
  llvm::append_range(expected, y.drop_front(batches));
  bool hasRows = batches < x.size() && batches < y.size();
  return hasRows && ArrayRef<unsigned>(expected) == rows ? std::optional(batches) : std::nullopt;
}

/// The contraction whose loops of K are `depth`.
static std::optional<Contraction> matchLoops(ArrayRef<LoopedInput> inputs,
                                             ArrayRef<unsigned> result, ArrayRef<unsigned> depth) {
  auto sides = pairUp(inputs, depth);
  if (!sides || sides->size() != 2 || !((*sides)[0].scales || (*sides)[1].scales))
    return std::nullopt;
  for (unsigned left : {0, 1}) {
    Contraction found{(*sides)[left], (*sides)[1 - left]};
    ArrayRef<unsigned> x = found.lhs.data.before(depth.size());
    ArrayRef<unsigned> y = found.rhs.data.before(depth.size());
    std::optional<unsigned> batches = batchesOf(result, x, y);
    if (!batches)
      continue;
    found.batchLoops = *batches;
    found.depthLoops = depth.size();
    found.lhs.ownLoops = x.size() - *batches;
    found.rhs.ownLoops = y.size() - *batches;
    return found;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

namespace {

/// Collects the arguments of the MLIR block whose product a value is. Each number is exact in f32,
/// and 4-bit numbers times their scale are exact in bf16 too: the association has no meaning.
class Factors {
public:
  Factors(Block *body, ArrayRef<const LoopedSide *> sides) : body(body), sides(sides) {}

  SmallVector<unsigned> found;

  bool collect(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return false;
    if (auto scaled = dyn_cast<arith::ScalingExtFOp>(op))
      return isExact(value) && collectPair(scaled.getIn(), scaled.getScale());
    if (auto product = dyn_cast<arith::MulFOp>(op)) {
      size_t before = found.size();
      bool both = isExact(value) && collect(product.getLhs()) && collect(product.getRhs());
      return both && (value.getType().isF32() || isPair(ArrayRef(found).drop_front(before)));
    }
    auto extended = dyn_cast<arith::ExtFOp>(op);
    if (!extended || !isExact(value))
      return false;
    std::optional<unsigned> number = argument(extended.getIn());
    if (!number)
      return collect(extended.getIn());
    found.push_back(*number);
    return true;
  }

private:
  static bool isExact(Value value) { return value.getType().isF32() || value.getType().isBF16(); }

  std::optional<unsigned> argument(Value value) {
    auto of = dyn_cast<BlockArgument>(value);
    return of && of.getOwner() == body ? std::optional(of.getArgNumber()) : std::nullopt;
  }

  bool isPair(ArrayRef<unsigned> numbers) {
    return numbers.size() == 2 && llvm::any_of(sides, [&](const LoopedSide *side) {
             return side->scales && llvm::is_contained(numbers, side->data.number) &&
                    llvm::is_contained(numbers, side->scales->number);
           });
  }

  bool collectPair(Value data, Value scale) {
    std::optional<unsigned> x = argument(data), s = argument(scale);
    if (!x || !s || !isPair({*x, *s}))
      return false;
    found.append({*x, *s});
    return true;
  }

  Block *body;
  ArrayRef<const LoopedSide *> sides;
};

} // namespace

static LogicalResult matchBody(linalg::GenericOp op, const Contraction &contraction) {
  auto refuse = [&] {
    return ingress::refuse(
        op,
        "the body must be acc + product, where product has each side and each scale once, in f32",
        "use arith.extf and arith.mulf, or arith.scaling_extf of a side and its scale, to f32, and "
        "one arith.addf; other arithmetic goes into an operation behind the contraction");
  };
  Block *body = op.getBody();
  auto sum = body->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!sum || !sum.getType().isF32())
    return refuse();
  Value acc = body->getArguments().back(), product = sum.getRhs();
  if (sum.getRhs() == acc)
    product = sum.getLhs();
  else if (sum.getLhs() != acc)
    return refuse();
  const LoopedSide *sides[] = {&contraction.lhs, &contraction.rhs};
  Factors factors(body, sides);
  if (!product.getType().isF32() || !factors.collect(product))
    return refuse();
  llvm::sort(factors.found);
  auto all = llvm::to_vector(llvm::seq<unsigned>(0, op.getNumDpsInputs()));
  return factors.found == all ? success() : refuse();
}

//===----------------------------------------------------------------------===//
// Contractions and dequantizations
//===----------------------------------------------------------------------===//

FailureOr<Contraction> fp4::matchContraction(linalg::GenericOp op) {
  auto loops = op.getIteratorTypesArray();
  const auto reductions = llvm::count(loops, IteratorType::reduction);
  if (op.getNumDpsInits() != 1 || op->getNumResults() != 1 ||
      (op.getNumDpsInputs() != 4 && op.getNumDpsInputs() != 3))
    return ingress::refuse(op,
                           "a contraction reads two sides and their scales, of which bf16 and f16 "
                           "have none, and has one result",
                           kForm);
  if (reductions < 1 || reductions > 2 ||
      reductions + llvm::count(loops, IteratorType::parallel) != static_cast<int>(loops.size()))
    return ingress::refuse(op, "its loops must be parallel but for one or two of K", kForm);
  auto result = loopsOf(op.getMatchingIndexingMap(op.getDpsInitOperand(0)), 0);
  auto inputs = inputsOf(op);
  if (!result || result->block != 1 || !inputs)
    return ingress::refuse(op, "an operand is indexed by more than loops and the number of a block",
                           kForm);
  for (ArrayRef<unsigned> depth : depthsOf(op))
    if (auto found = matchLoops(*inputs, result->loops, depth)) {
      if (failed(matchBody(op, *found)))
        return failure();
      return *found;
    }
  return ingress::refuse(op, "its operands are not two sides in blocks with a scale for each block",
                         kForm);
}

bool fp4::isElementwise(linalg::GenericOp op) {
  return op.getNumParallelLoops() == op.getNumLoops();
}

FailureOr<LoopedSide> fp4::matchDequantization(linalg::GenericOp op) {
  auto refuse = [&](const Twine &reason) {
    return ingress::refuse(
        op, reason,
        "write a dequantization as linalg.generic over (m, ko, kb) with data (m, ko, kb) and scales "
        "(m, ko), or over (m, k) with scales (m, k floordiv 32), whose body is the product of both "
        "in f32, maybe rounded; or use fp4.dequantize");
  };
  auto inputs = inputsOf(op);
  if (op.getNumDpsInputs() != 2 || op->getNumResults() != 1 || !inputs ||
      !op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity())
    return refuse("an elementwise operation reads numbers and the scales of their blocks, in the order "
                  "of its loops, and has one result");
  auto loops = llvm::to_vector(llvm::seq<unsigned>(0, op.getNumLoops()));
  for (unsigned depth : {1, 2}) {
    if (loops.size() <= depth)
      continue;
    auto sides = pairUp(*inputs, ArrayRef<unsigned>(loops).take_back(depth));
    if (!sides || sides->size() != 1 || !sides->front().scales ||
        sides->front().data.loops != loops)
      continue;
    LoopedSide side = sides->front();
    side.ownLoops = loops.size() - depth;
    Value yielded = op.getBody()->getTerminator()->getOperand(0);
    auto rounded = yielded.getDefiningOp<arith::TruncFOp>();
    Value product = rounded ? rounded.getIn() : yielded;
    const LoopedSide *only[] = {&side};
    Factors factors(op.getBody(), only);
    if (!(rounded ? product.getType().isF32() : true) || !factors.collect(product) ||
        factors.found.size() != 2)
      return refuse("the body must be the product of a number and its scale");
    return side;
  }
  return refuse("its operands are not numbers and a scale for each block of them");
}
