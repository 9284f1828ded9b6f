//===- Elementwise.cpp - Elementwise bodies of upstream operations --------===//

#include "fp4/Dialect/Fp4/IR/Elementwise.h"

#include "fp4/Dialect/Fp4/IR/IndexExpressions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/AffineMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fp4;
using numerics::ElementOp;

bool fp4::isElementType(Type type) { return type.isF32() || type.isBF16() || type.isF16(); }

static bool isF32(Type type) { return type.isF32(); }
static bool isI32(Type type) { return type.isSignlessInteger(32); }
static bool isI1(Type type) { return type.isSignlessInteger(1); }

bool fp4::isKernelOnlyType(Type type) { return isI1(type) || isI32(type); }

bool fp4::isKernelOnlySplat(Operation *op) {
  auto constant = dyn_cast<arith::ConstantOp>(op);
  auto elements = constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
  return elements && isKernelOnlyType(elements.getElementType());
}

bool fp4::isApproximateExp(Operation *op) {
  auto exponential = dyn_cast<math::ExpOp>(op);
  return exponential &&
         arith::bitEnumContainsAll(exponential.getFastmath(), arith::FastMathFlags::afn);
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

/// Operations on conditions, which are the numbers 1 and 0.
constexpr std::pair<ElementOp, StringLiteral> kConditionOperations[] = {
    {ElementOp::Minimum, "arith.andi"},
    {ElementOp::Maximum, "arith.ori"},
    {ElementOp::NotEqual, "arith.xori"},
};

/// Operations on integers of 32 bits.
constexpr std::pair<ElementOp, StringLiteral> kIntegerOperations[] = {
    {ElementOp::AddIntegers, "arith.addi"},
    {ElementOp::SubtractIntegers, "arith.subi"},
    {ElementOp::MultiplyIntegers, "arith.muli"},
    {ElementOp::And, "arith.andi"},
    {ElementOp::Or, "arith.ori"},
    {ElementOp::Xor, "arith.xori"},
    {ElementOp::ShiftLeft, "arith.shli"},
    {ElementOp::ShiftRightSigned, "arith.shrsi"},
    {ElementOp::ShiftRightUnsigned, "arith.shrui"},
    {ElementOp::MaximumSigned, "arith.maxsi"},
    {ElementOp::MinimumSigned, "arith.minsi"},
    {ElementOp::MaximumUnsigned, "arith.maxui"},
    {ElementOp::MinimumUnsigned, "arith.minui"},
};

/// From or to an integer.
struct Conversion {
  StringLiteral name;
  bool (*from)(Type);
  bool (*to)(Type);
  ElementOp step;
};

constexpr Conversion kConversions[] = {
    {"arith.fptosi", isElementType, isI32, ElementOp::ToSigned},
    {"arith.fptoui", isElementType, isI32, ElementOp::ToUnsigned},
    {"arith.sitofp", isI32, isResultType, ElementOp::FromSigned},
    {"arith.uitofp", isI32, isResultType, ElementOp::FromUnsigned},
    {"arith.bitcast", isF32, isI32, ElementOp::Convert},
    {"arith.bitcast", isI32, isF32, ElementOp::Convert},
    {"arith.uitofp", isI1, isElementType, ElementOp::Convert}, // conditions are the numbers 1 and 0
    {"arith.extui", isI1, isI32, ElementOp::ToUnsigned},
};

constexpr std::pair<arith::CmpIPredicate, ElementOp> kIntegerComparisons[] = {
    {arith::CmpIPredicate::eq, ElementOp::EqualIntegers},
    {arith::CmpIPredicate::ne, ElementOp::NotEqualIntegers},
    {arith::CmpIPredicate::slt, ElementOp::LessSigned},
    {arith::CmpIPredicate::sle, ElementOp::LessEqualSigned},
    {arith::CmpIPredicate::sgt, ElementOp::GreaterSigned},
    {arith::CmpIPredicate::sge, ElementOp::GreaterEqualSigned},
    {arith::CmpIPredicate::ult, ElementOp::LessUnsigned},
    {arith::CmpIPredicate::ule, ElementOp::LessEqualUnsigned},
    {arith::CmpIPredicate::ugt, ElementOp::GreaterUnsigned},
    {arith::CmpIPredicate::uge, ElementOp::GreaterEqualUnsigned},
};

/// Comparisons of conditions, in which true is -1 where they are signed.
constexpr std::pair<arith::CmpIPredicate, ElementOp> kConditionComparisons[] = {
    {arith::CmpIPredicate::eq, ElementOp::Equal},
    {arith::CmpIPredicate::ne, ElementOp::NotEqual},
    {arith::CmpIPredicate::slt, ElementOp::Greater},
    {arith::CmpIPredicate::sle, ElementOp::GreaterEqual},
    {arith::CmpIPredicate::sgt, ElementOp::Less},
    {arith::CmpIPredicate::sge, ElementOp::LessEqual},
    {arith::CmpIPredicate::ult, ElementOp::Less},
    {arith::CmpIPredicate::ule, ElementOp::LessEqual},
    {arith::CmpIPredicate::ugt, ElementOp::Greater},
    {arith::CmpIPredicate::uge, ElementOp::GreaterEqual},
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

/// Returns the step of a comparison; canonicalization has made a constant of those that are not
/// there.
template <typename OpT, typename Rows>
std::optional<ElementOp> comparisonOf(OpT op, const Rows &rows) {
  for (auto [predicate, step] : rows)
    if (op.getPredicate() == predicate)
      return step;
  return std::nullopt;
}

template <typename Rows> std::optional<ElementOp> stepNamed(Operation *op, const Rows &rows) {
  for (auto [step, name] : rows)
    if (op->getName().getStringRef() == name)
      return step;
  return std::nullopt;
}

Type operandElement(Operation *op) { return getElementTypeOrSelf(op->getOperand(0)); }
Type resultElement(Operation *op) { return getElementTypeOrSelf(op->getResult(0)); }

/// A conversion from or to an integer; none where it is none that has a step.
std::optional<ElementOp> conversionOf(Operation *op) {
  for (const Conversion &row : kConversions)
    if (op->getName().getStringRef() == row.name && row.from(operandElement(op)) &&
        row.to(resultElement(op)))
      return row.step;
  return std::nullopt;
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

  /// The loops that a body reads are inputs behind its arguments.
  ProgramBuilder(Block &body, unsigned arguments)
      : ProgramBuilder(static_cast<unsigned>(arguments + loopsReadBy(body).size())) {
    for (BlockArgument argument : body.getArguments().take_front(arguments))
      define(argument, argument.getArgNumber());
    SmallVector<unsigned> loops = loopsReadBy(body);
    for (Operation &op : body)
      if (std::optional<unsigned> loop =
              op.getNumResults() ? loopOf(op.getResult(0)) : std::nullopt)
        define(op.getResult(0), arguments + size_t(llvm::find(loops, *loop) - loops.begin()));
  }

  void define(Value value, size_t number) { numbers[value] = static_cast<uint16_t>(number); }

  /// The number of a value, of a constant that is captured too.
  uint16_t numberOf(Value value) {
    auto found = numbers.find(value);
    if (found != numbers.end())
      return found->second;
    return append({ElementOp::Constant, numerics::FloatType::F32, {}, bitsOf(value)}, value);
  }

  void add(Operation &op) {
    if (isa<arith::ConstantOp, linalg::IndexOp>(op) || loopOf(op.getResult(0)))
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
  /// The bits of a constant in fp32, or of an integer; conditions are 1 and 0.
  static uint32_t bitsOf(Value constant) {
    Attribute attribute = constant.getDefiningOp<arith::ConstantOp>().getValue();
    if (auto splat = dyn_cast<SplatElementsAttr>(attribute))
      attribute = splat.getSplatValue<Attribute>();
    auto integer = dyn_cast<IntegerAttr>(attribute);
    if (integer && !integer.getType().isInteger(1))
      return static_cast<uint32_t>(integer.getValue().getZExtValue());
    APFloat number = integer ? APFloat(integer.getValue().isZero() ? 0.f : 1.f)
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
    return argument.getArgNumber() < inputs ? "" : "the region reads an element of its result";
  Operation *op = value.getDefiningOp();
  if (op && (op->getBlock() == &body || isa<arith::ConstantOp>(op)))
    return "";
  return "the region reads a number from outside that is no constant";
}

/// Returns true for a loop that the body reads, or its cast to i32, which alone reads it.
bool isLoopRead(Operation &op) {
  return isa<linalg::IndexOp>(op)
             ? llvm::all_of(op.getUsers(),
                            [](Operation *user) { return loopOf(user->getResult(0)); })
             : op.getNumResults() == 1 && loopOf(op.getResult(0)).has_value();
}

std::string whyNotOperation(Operation &op) {
  if (isLoopRead(op))
    return "";
  if (isa<linalg::IndexOp>(op))
    return "'linalg.index' is read by more than arith.index_cast to i32";
  if (op.getNumResults() != 1 || (!elementOpOf(&op) && !isa<arith::ConstantOp>(op)))
    return nameOf(&op) + " has no elementwise step; these have one: " + elementwiseOperations();
  Type type = op.getResult(0).getType();
  if (isKernelOnlyType(type) || isElementType(type))
    return "";
  bool isLast = isa<arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp>(op) &&
                llvm::all_of(op.getUsers(), [](Operation *user) {
                  return user->hasTrait<OpTrait::IsTerminator>() || isEpilogueOp(user);
                });
  if (isLast && isResultType(type))
    return "";
  return nameOf(&op) + " is not of type f32, bf16, f16, i32 or i1, or f8E4M3FN as the last one";
}

} // namespace

std::optional<ElementOp> fp4::elementOpOf(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumOperands() == 0)
    return std::nullopt;
  if (auto comparison = dyn_cast<arith::CmpFOp>(op))
    return comparisonOf(comparison, kComparisons);
  Type operand = operandElement(op);
  if (auto comparison = dyn_cast<arith::CmpIOp>(op))
    return isI32(operand)  ? comparisonOf(comparison, kIntegerComparisons)
           : isI1(operand) ? comparisonOf(comparison, kConditionComparisons)
                           : std::nullopt;
  if (std::optional<ElementOp> step = conversionOf(op))
    return step;
  if (isApproximateExp(op))
    return ElementOp::ExpApproximate;
  if (isa<arith::SelectOp>(op) || isElementType(operand))
    return stepNamed(op, kOperations);
  if (isI32(operand) && operand == resultElement(op))
    return stepNamed(op, kIntegerOperations);
  return isI1(operand) ? stepNamed(op, kConditionOperations) : std::nullopt;
}

std::string fp4::elementwiseOperations() {
  std::string names;
  for (auto [step, name] : kOperations)
    names += (name + ", ").str();
  for (auto [step, name] : kConditionOperations)
    names += (name + " of i1 and i32, ").str();
  for (auto [step, name] : kIntegerOperations)
    if (!llvm::is_contained(llvm::make_second_range(kConditionOperations), name))
      names += (name + " of i32, ").str();
  return names + "arith.cmpi of i1 and i32, arith.fptosi and fptoui to i32, arith.sitofp and "
                 "uitofp of i32, arith.bitcast between i32 and f32, arith.uitofp and extui of i1, "
                 "arith.cmpf (but for true and false)";
}

std::string fp4::whyNotElementwise(Block &body, unsigned inputs, Operation *combining) {
  for (BlockArgument argument : body.getArguments().take_front(inputs))
    if (!isElementType(argument.getType()) && !isKernelOnlyType(argument.getType()))
      return "the elements are not f32, bf16 or f16";
  for (Operation &op : body) {
    bool isEnd = op.hasTrait<OpTrait::IsTerminator>();
    if (isEpilogueOp(&op) || isa<YieldOp>(op))
      continue;
    if (std::string reason = isEnd ? "" : whyNotOperation(op); !reason.empty())
      return reason;
    const unsigned readable = &op == combining ? inputs + 1 : inputs;
    for (Value operand : op.getOperands())
      if (std::string reason = whyNotOperand(operand, body, readable); !reason.empty())
        return reason;
  }
  return {};
}

numerics::ElementProgram fp4::elementProgramOf(Block &body, unsigned inputs, ValueRange results) {
  llvm::DenseSet<Value> needed;
  needed.insert(results.begin(), results.end());
  auto isNeeded = [&](Operation &op) {
    return llvm::any_of(op.getResults(), [&](Value result) { return needed.contains(result); });
  };
  for (Operation &op : llvm::reverse(body.without_terminator()))
    if (isNeeded(op))
      needed.insert(op.operand_begin(), op.operand_end());
  ProgramBuilder builder(body, inputs);
  for (Operation &op : body.without_terminator())
    if (isNeeded(op))
      builder.add(op);
  for (Value result : results)
    builder.program.results.push_back(builder.numberOf(result));
  return builder.program;
}

numerics::ElementProgram fp4::elementProgramOf(Block &body, unsigned inputs) {
  return elementProgramOf(body, inputs, elementwiseResults(body));
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

std::string fp4::whyNotIndexed(linalg::LinalgOp op, OpOperand *input) {
  auto type = dyn_cast<RankedTensorType>(input->get().getType());
  if (!type)
    return "an operand is no tensor";
  if (!op.getMatchingIndexingMap(input).isProjectedPermutation(/*allowZeroInResults=*/true))
    return "an operand is indexed by more than loops";
  SmallVector<unsigned> dimensions = dimensionsOf(op, input->getOperandNumber());
  for (auto [dimension, size] : llvm::zip_equal(dimensions, type.getShape()))
    if (dimension == kSameForAll && size != 1)
      return "an operand is read in part";
  llvm::erase(dimensions, kSameForAll);
  return llvm::is_sorted(dimensions) ? "" : "an operand is transposed";
}

/// Why kernels do not find the elements of an input.
static std::string whyNotFound(linalg::LinalgOp op, OpOperand *input) {
  return isIndexedByExpressions(op, input) ? whyNotIndexExpressions(op, input)
                                           : whyNotIndexed(op, input);
}

std::string fp4::whyNotElementwise(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics())
    return "the operation works on buffers";
  if (op.getNumParallelLoops() != op.getNumLoops())
    return "a loop of it is no parallel one";
  for (OpOperand &init : op.getDpsInitsMutable())
    if (!op.getMatchingIndexingMap(&init).isIdentity())
      return "a result is not indexed by the loops in their order";
  for (OpOperand *input : op.getDpsInputOperands())
    if (std::string reason = whyNotFound(op, input); !reason.empty())
      return reason;
  return whyNotElementwise(*op.getBlock(), op.getNumDpsInputs());
}

std::string fp4::whyNotInMemory(linalg::LinalgOp op, ArrayRef<OpOperand *> others) {
  for (OpOperand &operand : op->getOpOperands())
    if (!llvm::is_contained(others, &operand) &&
        isKernelOnlyType(getElementTypeOrSelf(operand.get())))
      return "conditions (i1) and integers (i32) are not in memory, but go into the operation that "
             "reads them";
  for (OpOperand *input : op.getDpsInputOperands())
    if (!llvm::is_contained(others, input) && !isElementType(getElementTypeOrSelf(input->get())))
      return "the elements are not f32, bf16 or f16";
  for (Type type : op->getResultTypes())
    if (!isResultType(getElementTypeOrSelf(type)))
      return "a result is not f32, bf16, f16 or f8E4M3FN";
  return {};
}
