//===- Elementwise.cpp - Elementwise bodies of upstream operations --------===//

#include "fp4/Dialect/Fp4/IR/Elementwise.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/AffineMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fp4;
using numerics::ElementOp;

bool fp4::isElementType(Type type) { return type.isF32() || type.isBF16() || type.isF16(); }

bool fp4::isConditionType(Type type) { return type.isInteger(1); }

bool fp4::isSameCondition(Operation *op) {
  auto constant = dyn_cast<arith::ConstantOp>(op);
  auto elements = constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
  return elements && isConditionType(elements.getElementType());
}

bool fp4::isResultType(Type type) { return isElementType(type) || isa<Float8E4M3FNType>(type); }

namespace {

constexpr std::pair<ElementOp, StringLiteral> kOperations[] = {
    {ElementOp::Add, "arith.addf"},
    {ElementOp::Subtract, "arith.subf"},
    {ElementOp::Multiply, "arith.mulf"},
    {ElementOp::Divide, "arith.divf"},
    {ElementOp::Remainder, "arith.remf"},
    {ElementOp::Negate, "arith.negf"},
    {ElementOp::Maximum, "arith.maximumf"},
    {ElementOp::Minimum, "arith.minimumf"},
    {ElementOp::MaximumNumber, "arith.maxnumf"},
    {ElementOp::MinimumNumber, "arith.minnumf"},
    {ElementOp::Convert, "arith.extf"},
    {ElementOp::Convert, "arith.truncf"},
    {ElementOp::Convert, "arith.uitofp"},
    {ElementOp::Select, "arith.select"},
    {ElementOp::Absolute, "math.absf"},
    {ElementOp::Exp, "math.exp"},
    {ElementOp::Exp2, "math.exp2"},
    {ElementOp::ExpMinusOne, "math.expm1"},
    {ElementOp::Log, "math.log"},
    {ElementOp::Log2, "math.log2"},
    {ElementOp::LogOfOnePlus, "math.log1p"},
    {ElementOp::Tanh, "math.tanh"},
    {ElementOp::Erf, "math.erf"},
    {ElementOp::Erfc, "math.erfc"},
    {ElementOp::Sin, "math.sin"},
    {ElementOp::Cos, "math.cos"},
    {ElementOp::Atan, "math.atan"},
    {ElementOp::Power, "math.powf"},
    {ElementOp::Sqrt, "math.sqrt"},
    {ElementOp::ReciprocalSqrt, "math.rsqrt"},
    {ElementOp::FusedMultiplyAdd, "math.fma"},
    {ElementOp::Floor, "math.floor"},
    {ElementOp::Ceil, "math.ceil"},
    {ElementOp::RoundEven, "math.roundeven"},
    {ElementOp::Truncate, "math.trunc"},
    {ElementOp::CopySign, "math.copysign"},
    {ElementOp::Clamp, "math.clampf"},
};

/// Of conditions, which are the numbers 1 and 0.
constexpr std::pair<ElementOp, StringLiteral> kConditionOperations[] = {
    {ElementOp::Minimum, "arith.andi"},
    {ElementOp::Maximum, "arith.ori"},
    {ElementOp::NotEqual, "arith.xori"},
};

constexpr std::pair<arith::CmpFPredicate, ElementOp> kComparisons[] = {
    {arith::CmpFPredicate::OEQ, ElementOp::Equal},
    {arith::CmpFPredicate::OGT, ElementOp::Greater},
    {arith::CmpFPredicate::OGE, ElementOp::GreaterEqual},
    {arith::CmpFPredicate::OLT, ElementOp::Less},
    {arith::CmpFPredicate::OLE, ElementOp::LessEqual},
    {arith::CmpFPredicate::ONE, ElementOp::LessGreater},
    {arith::CmpFPredicate::ORD, ElementOp::Ordered},
    {arith::CmpFPredicate::UEQ, ElementOp::EqualOrUnordered},
    {arith::CmpFPredicate::UGT, ElementOp::GreaterOrUnordered},
    {arith::CmpFPredicate::UGE, ElementOp::GreaterEqualOrUnordered},
    {arith::CmpFPredicate::ULT, ElementOp::LessOrUnordered},
    {arith::CmpFPredicate::ULE, ElementOp::LessEqualOrUnordered},
    {arith::CmpFPredicate::UNE, ElementOp::NotEqual},
    {arith::CmpFPredicate::UNO, ElementOp::Unordered},
};

std::optional<ElementOp> comparisonOf(arith::CmpFOp op) {
  for (auto [predicate, step] : kComparisons)
    if (op.getPredicate() == predicate)
      return step;
  return std::nullopt; // canonicalization has made a constant of the others
}

numerics::FloatType floatTypeOf(Type type) {
  type = getElementTypeOrSelf(type);
  return type.isBF16()                 ? numerics::FloatType::BF16
         : type.isF16()                ? numerics::FloatType::F16
         : isa<Float8E4M3FNType>(type) ? numerics::FloatType::E4M3
                                       : numerics::FloatType::F32;
}

std::string nameOf(Operation *op) { return ("'" + op->getName().getStringRef() + "'").str(); }

/// Builds a program and knows the numbers of its values.
class ProgramBuilder {
public:
  explicit ProgramBuilder(unsigned inputs) { program.inputs = static_cast<uint16_t>(inputs); }

  void define(Value value, size_t number) { numbers[value] = static_cast<uint16_t>(number); }

  /// The number of a value, of a constant that is captured too.
  uint16_t numberOf(Value value) {
    auto found = numbers.find(value);
    if (found != numbers.end())
      return found->second;
    return append({ElementOp::Constant, numerics::FloatType::F32, {}, bitsOf(value)}, value);
  }

  void add(Operation &op) {
    if (isa<arith::ConstantOp>(op))
      return;
    Value result = op.getResult(0);
    numerics::ElementInstruction instruction{
        *elementOpOf(&op), floatTypeOf(result.getType()), {}, 0};
    for (auto [i, operand] : llvm::enumerate(op.getOperands()))
      instruction.operands[i] = numberOf(operand);
    append(instruction, result);
  }

  numerics::ElementProgram program;

private:
  /// The bits of a constant in fp32; conditions are 1 and 0.
  static uint32_t bitsOf(Value constant) {
    Attribute attribute = constant.getDefiningOp<arith::ConstantOp>().getValue();
    if (auto splat = dyn_cast<SplatElementsAttr>(attribute))
      attribute = splat.getSplatValue<Attribute>();
    auto condition = dyn_cast<IntegerAttr>(attribute);
    APFloat number = condition ? APFloat(condition.getValue().isZero() ? 0.f : 1.f)
                               : cast<FloatAttr>(attribute).getValue();
    bool inexact; // widening is exact
    number.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &inexact);
    return static_cast<uint32_t>(number.bitcastToAPInt().getZExtValue());
  }

  uint16_t append(const numerics::ElementInstruction &instruction, Value value) {
    define(value, program.numValues());
    program.code.push_back(instruction);
    return numbers[value];
  }

  llvm::DenseMap<Value, uint16_t> numbers;
};

/// Why operand `value` cannot be read in `body`.
std::string whyNotOperand(Value value, Block &body, unsigned inputs) {
  if (auto argument = dyn_cast<BlockArgument>(value); argument && argument.getOwner() == &body)
    return argument.getArgNumber() < inputs ? "" : "its body reads an element of its result";
  Operation *op = value.getDefiningOp();
  if (op && (op->getBlock() == &body || isa<arith::ConstantOp>(op)))
    return "";
  return "its body reads a number from outside that is no constant";
}

/// Why the elements of an operand are not found by the loops in their order.
std::string whyNotIndexed(linalg::LinalgOp op, OpOperand *input) {
  if (!op.getMatchingIndexingMap(input).isProjectedPermutation(/*allowZeroInResults=*/true))
    return "an operand is indexed by more than loops";
  auto type = cast<RankedTensorType>(input->get().getType());
  SmallVector<unsigned> dimensions = dimensionsOf(op, input->getOperandNumber());
  for (auto [dimension, size] : llvm::zip_equal(dimensions, type.getShape()))
    if (dimension == kSameForAll && size != 1)
      return "an operand is read in part";
  llvm::erase(dimensions, kSameForAll);
  return llvm::is_sorted(dimensions) ? "" : "an operand is transposed";
}

std::string whyNotOperation(Operation &op) {
  if (op.getNumResults() != 1 || (!elementOpOf(&op) && !isa<arith::ConstantOp>(op)))
    return nameOf(&op) + " has no elementwise step; these have one: " + elementwiseOperations();
  Type type = op.getResult(0).getType();
  if (isConditionType(type) || isElementType(type))
    return "";
  bool isLast = isa<arith::TruncFOp>(op) && llvm::all_of(op.getUsers(), [](Operation *user) {
                  return user->hasTrait<OpTrait::IsTerminator>();
                });
  if (isLast && isResultType(type))
    return "";
  return nameOf(&op) + " is not of type f32, bf16 or f16, or f8E4M3FN as the last one";
}

} // namespace

std::optional<ElementOp> fp4::elementOpOf(Operation *op) {
  if (auto comparison = dyn_cast<arith::CmpFOp>(op))
    return comparisonOf(comparison);
  bool isCondition = op->getNumResults() == 1 &&
                     isConditionType(getElementTypeOrSelf(op->getResult(0)));
  for (auto [step, name] : kConditionOperations)
    if (isCondition && op->getName().getStringRef() == name)
      return step;
  auto number = dyn_cast<arith::UIToFPOp>(op); // other integers have no steps
  if (number && !isConditionType(getElementTypeOrSelf(number.getIn())))
    return std::nullopt;
  for (auto [step, name] : kOperations)
    if (op->getName().getStringRef() == name)
      return step;
  return std::nullopt;
}

std::string fp4::elementwiseOperations() {
  std::string names;
  for (auto [step, name] : kOperations)
    names += (name + (name == "arith.uitofp" ? " of i1, " : ", ")).str();
  for (auto [step, name] : kConditionOperations)
    names += (name + " of i1, ").str();
  return names + "arith.cmpf (but for true and false)";
}

std::string fp4::whyNotElementwise(Block &body, unsigned inputs) {
  for (BlockArgument argument : body.getArguments().take_front(inputs))
    if (!isElementType(argument.getType()) && !isConditionType(argument.getType()))
      return "its elements are not f32, bf16 or f16";
  for (Operation &op : body) {
    bool isEnd = op.hasTrait<OpTrait::IsTerminator>();
    if (std::string reason = isEnd ? "" : whyNotOperation(op); !reason.empty())
      return reason;
    for (Value operand : op.getOperands())
      if (std::string reason = whyNotOperand(operand, body, inputs); !reason.empty())
        return reason;
  }
  return {};
}

numerics::ElementProgram fp4::elementProgramOf(Block &body, unsigned inputs) {
  ProgramBuilder builder(inputs);
  for (BlockArgument argument : body.getArguments().take_front(inputs))
    builder.define(argument, argument.getArgNumber());
  for (Operation &op : body.without_terminator())
    builder.add(op);
  for (Value result : body.getTerminator()->getOperands())
    builder.program.results.push_back(builder.numberOf(result));
  return builder.program;
}

numerics::ElementProgram fp4::elementProgramOf(Operation *op) {
  ProgramBuilder builder(op->getNumOperands());
  for (auto [number, operand] : llvm::enumerate(op->getOperands()))
    builder.define(operand, number);
  if (!isa<arith::ConstantOp>(op))
    builder.add(*op);
  builder.program.results.push_back(builder.numberOf(op->getResult(0)));
  return builder.program;
}

SmallVector<unsigned> fp4::dimensionsOf(linalg::LinalgOp op, unsigned input) {
  SmallVector<unsigned> dimensions;
  for (AffineExpr expr : op.getIndexingMapsArray()[input].getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    dimensions.push_back(dim ? dim.getPosition() : kSameForAll);
  }
  return dimensions;
}

std::string fp4::whyNotElementwise(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics())
    return "it works on buffers";
  if (op.getNumParallelLoops() != op.getNumLoops())
    return "a loop of it is no parallel one";
  for (OpOperand &init : op.getDpsInitsMutable())
    if (!op.getMatchingIndexingMap(&init).isIdentity())
      return "a result is not indexed by the loops in their order";
  for (OpOperand *input : op.getDpsInputOperands()) {
    if (!isa<RankedTensorType>(input->get().getType()))
      return "an operand is no tensor";
    if (std::string reason = whyNotIndexed(op, input); !reason.empty())
      return reason;
  }
  return whyNotElementwise(*op.getBlock(), op.getNumDpsInputs());
}

std::string fp4::whyNotInMemory(linalg::LinalgOp op) {
  for (Type type : op->getOperandTypes())
    if (isConditionType(getElementTypeOrSelf(type)))
      return "conditions (i1) are not in memory, but go into the operation that reads them";
  for (OpOperand *input : op.getDpsInputOperands())
    if (!isElementType(getElementTypeOrSelf(input->get())))
      return "its elements are not f32, bf16 or f16";
  for (Type type : op->getResultTypes())
    if (!isResultType(getElementTypeOrSelf(type)))
      return "a result is not f32, bf16, f16 or f8E4M3FN";
  return {};
}
