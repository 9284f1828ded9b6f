//===- MatmulOperands.cpp - Data and scales as operands of a matmul -------===//
//
// fp4.scaled, and the tensors and formats that a matmul has behind its operands. The labels (C1),
// .. are those of Fp4Constraints.td and test/Dialect/Fp4/invalid-matmul.mlir.
//
//===----------------------------------------------------------------------===//
#include "Verify.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/ISA/WeightLayout.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::verify;

//===----------------------------------------------------------------------===//
// scaled
//===----------------------------------------------------------------------===//

void ScaledOp::build(OpBuilder &, OperationState &state, Format format, Value data, Value scales) {
  state.addOperands({data, scales});
  state.addTypes(ScaledType::get(data.getContext(), format, rankedType(data), rankedType(scales)));
}

LogicalResult ScaledOp::verify() {
  ScaledType type = getResult().getType();
  if (type.getData() != getData().getType() || type.getScales() != getScales().getType())
    return withNote(emitOpError("must give the types of its operands, but gives ") << type,
                    "write the types of data and scales in !fp4.scaled<FORMAT, DATA, SCALES>");
  Checked data = operand(*this, "data", getData()), scales = operand(*this, "scales", getScales());
  if (failed(verifyDataElements(data, type.getFormat())) ||  // scaled (C1)
      failed(verifyScaleElements(scales, type.getFormat()))) // scaled (C2)
    return failure();
  return hasF32Scales(type.getFormat()) ? success() : verifyTiled(scales); // scaled (C3)
}

Value fp4::bundle(OpBuilder &builder, Location loc, Format format, Value data, Value scales) {
  return scales ? Value(ScaledOp::create(builder, loc, format, data, scales)) : data;
}

TypedValue<RankedTensorType> fp4::bundleData(Value operand) {
  if (!operand)
    return {};
  if (auto scaled = operand.getDefiningOp<ScaledOp>())
    return scaled.getData();
  return dyn_cast<TypedValue<RankedTensorType>>(operand);
}

TypedValue<RankedTensorType> fp4::bundleScales(Value operand) {
  auto scaled = operand ? operand.getDefiningOp<ScaledOp>() : ScaledOp();
  return scaled ? scaled.getScales() : TypedValue<RankedTensorType>();
}

RankedTensorType fp4::bundleDataType(Type operand) {
  if (auto scaled = dyn_cast<ScaledType>(operand))
    return scaled.getData();
  return cast<RankedTensorType>(operand);
}

void fp4::eraseUnusedBundles(Operation *root) {
  SmallVector<ScaledOp> unused;
  root->walk([&](ScaledOp op) {
    if (op->use_empty())
      unused.push_back(op);
  });
  for (ScaledOp op : unused) {
    SmallVector<Value> tensors(op->getOperands());
    op->erase();
    for (Value tensor : tensors)
      if (auto cast = tensor.getDefiningOp<UnrealizedConversionCastOp>(); cast && cast->use_empty())
        cast->erase();
  }
}

//===----------------------------------------------------------------------===//
// matmul
//===----------------------------------------------------------------------===//

void BlockScaledMatmulOp::build(OpBuilder &builder, OperationState &state, Value lhs,
                                Value lhsScales, Value rhs, Value rhsScales, Value alpha,
                                Format format, Type elementType, std::optional<Format> rhsFormat) {
  int64_t columns = rankedType(rhs).getDimSize(0) * (rhsScales ? 1 : hw::weightTileRows);
  auto type = RankedTensorType::get({rankedType(lhs).getDimSize(0), columns}, elementType);
  Location loc = state.location;
  Value left = bundle(builder, loc, format, lhs, lhsScales);
  Value right = bundle(builder, loc, rhsFormat.value_or(format), rhs, rhsScales);
  build(builder, state, TypeRange{type}, left, right, /*rhs2=*/Value(), alpha, /*alpha2=*/Value(),
        /*offsets=*/Value(), /*inputs=*/ValueRange(), WorkAttr(),
        /*dispatch=*/ArrayAttr(), MatmulArithmeticAttr(), EpilogueAttr());
}

BlockScaledMatmulOp::Tensor BlockScaledMatmulOp::getLhs() { return bundleData(getLhsOperand()); }
BlockScaledMatmulOp::Tensor BlockScaledMatmulOp::getRhs() { return bundleData(getRhsOperand()); }
BlockScaledMatmulOp::Tensor BlockScaledMatmulOp::getRhs2() { return bundleData(getRhs2Operand()); }

BlockScaledMatmulOp::Tensor BlockScaledMatmulOp::getLhsScales() {
  return bundleScales(getLhsOperand());
}

BlockScaledMatmulOp::Tensor BlockScaledMatmulOp::getRhsScales() {
  return bundleScales(getRhsOperand());
}

BlockScaledMatmulOp::Tensor BlockScaledMatmulOp::getRhs2Scales() {
  return bundleScales(getRhs2Operand());
}

SmallVector<Value> BlockScaledMatmulOp::getTensors() {
  SmallVector<Value> tensors;
  for (Value operand : {getLhsOperand(), getRhsOperand(), getRhs2Operand()}) {
    if (Value data = bundleData(operand))
      tensors.push_back(data);
    if (Value scales = bundleScales(operand))
      tensors.push_back(scales);
  }
  for (Value value : getOperands().drop_front(getRhs2Operand() ? 3 : 2))
    tensors.push_back(value);
  return tensors;
}

/// The format that the type of an operand names; none of plain floats. The bytes of a tile name
/// that of prepacked weights.
static std::optional<Format> formatOfOperand(Type operand) {
  if (auto scaled = dyn_cast<ScaledType>(operand))
    return scaled.getFormat();
  auto tensor = cast<RankedTensorType>(operand);
  if (!isa_and_present<WeightLayoutAttr>(tensor.getEncoding()))
    return std::nullopt;
  bool isNV = tensor.getDimSize(2) == hw::weightTileBytes(blockSize(Format::NVFP4));
  return isNV ? Format::NVFP4 : Format::MXFP4;
}

Format BlockScaledMatmulOp::getFormat() {
  if (auto scaled = dyn_cast<ScaledType>(getLhsOperand().getType()))
    return scaled.getFormat();
  return formatOfOperand(getRhsOperand().getType()).value_or(Format::NVFP4);
}

Format BlockScaledMatmulOp::getFormatOfRhs() {
  return formatOfOperand(getRhsOperand().getType()).value_or(getFormat());
}

LogicalResult verify::verifyBundles(BlockScaledMatmulOp op) {
  std::pair<StringRef, Value> operands[] = {
      {"lhs", op.getLhsOperand()}, {"rhs", op.getRhsOperand()}, {"rhs2", op.getRhs2Operand()}};
  for (auto [name, value] : operands)
    if (value && !bundleData(value)) // matmul (C4)
      return withNote(op.emitOpError("operand '")
                          << name << "' must be a result of fp4.scaled, but got another value of "
                          << value.getType(),
                      "functions and control flow hand on tensors: pass data and scales, and write "
                      "fp4.scaled before the matmul");
  return success();
}

ParseResult fp4::parseMatmulOperand(OpAsmParser &parser, OpAsmParser::UnresolvedOperand &operand) {
  if (parser.parseOperand(operand))
    return failure();
  SMLoc at = parser.getCurrentLocation();
  if (failed(parser.parseOptionalKeyword("scaled")))
    return success();
  InFlightDiagnostic diag = parser.emitError(at, "expects no word 'scaled' behind an operand");
  diag.attachNote() << "write %a = fp4.scaled %data, %scales : !fp4.scaled<FORMAT, DATA, SCALES> "
                       "before it, and pass %a";
  return diag;
}

void fp4::printMatmulOperand(OpAsmPrinter &printer, Operation *, Value operand) {
  printer << operand;
}

ParseResult fp4::parseScaledType(OpAsmParser &parser, Type &data, Type &scales, Type &result) {
  SMLoc at = parser.getCurrentLocation();
  if (parser.parseType(result))
    return failure();
  auto scaled = dyn_cast<ScaledType>(result);
  if (!scaled) {
    InFlightDiagnostic diag = parser.emitError(at, "expects a type !fp4.scaled, but got ")
                              << result;
    diag.attachNote() << "write !fp4.scaled<FORMAT, DATA, SCALES> with the types of the operands";
    return diag;
  }
  data = scaled.getData();
  scales = scaled.getScales();
  return success();
}

void fp4::printScaledType(OpAsmPrinter &printer, Operation *, Type, Type, Type result) {
  printer << result;
}
