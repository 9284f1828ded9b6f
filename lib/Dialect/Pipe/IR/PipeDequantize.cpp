//===- PipeDequantize.cpp - Conversion of operands of MMAs ----------------===//
//
// Verifiers of pipe.dequantize, by the types of its source and of what it fills. Labels such as
// (C180) refer to PipeConstraints.td.
//
//===----------------------------------------------------------------------===//

#include "ScaledTypes.h"
#include "VerifyFragment.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/Dialect/Pipe/IR/PipeMma.h"
#include "fp4/ISA/WeightLayout.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

ParseResult fp4::pipe::parseScaledTypes(OpAsmParser &parser, Type &tile, Type &scales,
                                        std::optional<OpAsmParser::UnresolvedOperand> operand) {
  if (parser.parseType(tile))
    return failure();
  return operand ? ParseResult(failure(parser.parseComma() || parser.parseType(scales)))
                 : success();
}

void fp4::pipe::printScaledTypes(OpAsmPrinter &printer, Operation *, Type tile, Type scales,
                                 Value) {
  printer << tile;
  if (scales)
    printer << ", " << scales;
}

#define GET_OP_CLASSES
#include "fp4/Dialect/Pipe/IR/PipeMmaOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Interfaces
//===----------------------------------------------------------------------===//

Engine DequantizeTileOp::getEngine() { return fillsRegisters() ? Engine::Tensor : Engine::Threads; }
void DequantizeTileOp::getAsmResultNames(OpAsmSetValueNameFn name) {
  if (getResult())
    name(getResult(), fillsRegisters() ? "held" : "converted");
}
/// Registers are no tile of a stage.
Value DequantizeTileOp::getFilledTile() {
  return getResult() && !fillsRegisters() ? Value(getResult()) : Value();
}
Value DequantizeTileOp::getSlot() { return getDest(); }
int64_t DequantizeTileOp::getUnitBytes() { return 0; }
Value DequantizeTileOp::getUnits() { return {}; }
void DequantizeTileOp::fillSlot(OpBuilder &builder, Value slot, Value) {
  create(builder, getLoc(), Type(), getSource(), getScales(), getExisting(), slot);
}

//===----------------------------------------------------------------------===//
// VerifyFragment.h
//===----------------------------------------------------------------------===//

Type fp4::pipe::convertedType(Type scale) {
  if (isa<Float8E4M3FNType>(scale))
    return Float16Type::get(scale.getContext());
  return BFloat16Type::get(scale.getContext());
}

static int64_t blockOf(Type scale) { return isa<Float8E4M3FNType>(scale) ? 16 : 32; }

LogicalResult fp4::pipe::verifyConvertible(Operation *op, StringRef name, SharedType data,
                                           SharedType scales) { // (C180)
  bool isPacked = isa<Float4E2M1FNType>(data.getElementType());
  bool isWide =
      isByteElementType(data.getElementType()) && isa<Float8E8M0FNUType>(scales.getElementType());
  if ((!isPacked && !isWide) || data.getPanels() != 1 ||
      data.getLayout() != (isPacked ? Layout::Swizzle64B : Layout::Swizzle128B))
    return withNote(op->emitOpError()
                        << name << " must be f4E2M1FN with rows of 64 bytes and layout "
                        << "swizzle_64B, or with scales of f8E8M0FNU elements of 6 or 8 bits "
                        << "with rows of 128 bytes and layout swizzle_128B, but got " << data,
                    "only one panel is converted at a time: load 128 elements of k");
  int64_t columns = scales.isScales() ? data.getColumns() / blockOf(scales.getElementType()) : 0;
  if (!scales.isScales() || scales.getColumns() != columns || scales.getRows() < data.getRows())
    return withNote(op->emitOpError()
                        << "scales of " << name << " must have layout tiled_128x4, a column "
                        << "for each block of " << data.getColumns() << " elements, and at least "
                        << data.getRows() << " rows, but got " << scales,
                    "copy scale tiles of 128 rows beside the tile");
  return success();
}

bool fp4::pipe::hasWarpgroups(Operation *op, int64_t rows) {
  auto region = op->getParentOfType<RoleRegionOp>();
  return !region || region.getRole().getNumThreads() == rows / kFragmentRows * kGroupThreads;
}

LogicalResult fp4::pipe::verifyTwoWarpgroups(Operation *op) {
  if (hasWarpgroups(op, hw::weightTileRows))
    return success();
  return withNote(op->emitOpError() << "must be in a role of two warpgroups",
                  "a tile has 128 rows, 64 for each warpgroup: write 'warps 0 to 8'");
}

LogicalResult fp4::pipe::verifyResident(Operation *op, FragmentType held, StringRef name,
                                        SharedType tile) {
  MLIRContext *context = op->getContext();
  auto ofWeights = FragmentType::get(context, {kFragmentRows, hw::byteTileColumns},
                                     Float8E4M3FNType::get(context), FragmentKind::Wgmma);
  if (held != ofWeights)
    return withNote(op->emitOpError() << "register-resident weights must be " << ofWeights
                                      << ", but got " << held,
                    "take the result of pipe.dequantize"); // (C318)
  auto ofTile =
      SharedType::get({1, hw::byteTileBytes}, IntegerType::get(context, 8), Layout::Linear);
  if (tile != ofTile)
    return withNote(op->emitOpError()
                        << name << " must be the tile " << ofTile << ", but got " << tile,
                    "load one tile of weights at a time, as fp4.prepack makes them"); // (C318)
  return verifyTwoWarpgroups(op);                                                     // (C318)
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

/// (C652) The operands that go with the source, and with what is filled.
static LogicalResult verifyForm(DequantizeTileOp op) {
  if (bool(op.getResult()) == bool(op.getDest()))
    return withNote(op.emitOpError() << "must return a tile or fill a destination",
                    "write a result, or 'into %slot', and not both");
  if (bool(op.getScales()) == op.isPrepacked())
    return withNote(op.emitOpError()
                        << "source " << op.getSource().getType() << " must have "
                        << (op.isPrepacked() ? "no scales" : "scales") << " beside it, but got "
                        << (op.isPrepacked() ? "some" : "none"),
                    "prepacked weights have their scales; write 'scaled %s' for other elements");
  bool isOfPrepacked = op.isPrepacked() && !isa<SharedType>(op.getFilledType());
  if (op.isPrepacked() ? !isOfPrepacked : op.fillsRegisters())
    return withNote(op.emitOpError() << "tile must be in "
                                     << (op.isPrepacked() ? "tensor memory or registers"
                                                          : "shared or tensor memory")
                                     << " for source " << op.getSource().getType() << ", but got "
                                     << op.getFilledType(),
                    "registers hold prepacked weights for e4m3, and nothing else");
  if (op.fillsRegisters() && op.getExisting())
    return withNote(op.emitOpError("'existing' must be left out for registers, but is there"),
                    "registers hold one tile of weights, which exists");
  return success();
}

static LogicalResult verifyShared(DequantizeTileOp op) {
  SharedType source = op.getSource().getType(), scales = op.getScalesType();
  if (failed(verifyConvertible(op, "source", source, scales))) // (C180)
    return failure();
  auto expected = SharedType::get(source.getShape(), convertedType(scales.getElementType()),
                                  Layout::Swizzle128B);
  if (op.getFilledType() != expected)
    return withNote(
        op.emitOpError() << "tile must be " << expected << ", but got " << op.getFilledType(),
        "write the shape of the source, f16 for scales of f8E4M3FN, and bf16 for others"); // (C180)
  return success();
}

/// Returns true when `tile` is an operand in tensor memory, of `shape`.
static bool isHalfOperand(TmemType tile, ArrayRef<int64_t> shape) {
  bool isHalf = tile.getElementType().isBF16() || tile.getElementType().isF16();
  return tile.isOperand() && isHalf && tile.getShape() == shape;
}

static LogicalResult verifyTmem(DequantizeTileOp op) {
  SharedType source = op.getSource().getType();
  bool hasSix = isSixBitElementType(source.getElementType());
  if ((!hasSix && !isa<Float4E2M1FNType>(source.getElementType())) || source.getRows() != kMmaM)
    return withNote(
        op.emitOpError() << "source must be " << kMmaM << " rows of 4 or 6 bits, but got "
                         << source,
        "a row of an operand in tensor memory is a TMEM lane, of which there are 128"); // (C467)
  if (failed(verifyConvertible(op, "source", source, op.getScalesType())))              // (C180)
    return failure();
  auto tile = cast<TmemType>(op.getFilledType());
  if (isHalfOperand(tile, source.getShape()) && (!hasSix || tile.getElementType().isBF16()))
    return success();
  StringRef elements = hasSix ? "bf16" : "bf16 or f16";
  return withNote(op.emitOpError() << "tile must have the shape of the source and elements of "
                                   << elements << ", but got " << tile,
                  "write the shape of the source and " + elements); // (C467)
}

static LogicalResult verifyTmemOfPrepacked(DequantizeTileOp op) {
  SharedType source = op.getSource().getType();
  int64_t bytes = source.getInnerBytes();
  bool isForBytes = bytes == hw::byteTileBytes;
  if (source.getLayout() != Layout::Linear ||
      (!isForBytes && bytes != hw::weightTileBytes(16) && bytes != hw::weightTileBytes(32)))
    return withNote(op.emitOpError() << "source must be i8 in linear rows of "
                                     << hw::weightTileBytes(16) << ", " << hw::weightTileBytes(32)
                                     << " or " << hw::byteTileBytes << " bytes, but got " << source,
                    "fp4.prepack makes such weights, a row for each tile"); // (C499)
  auto region = op->getParentOfType<RoleRegionOp>();
  if (region && region.getRole().getStageThreads() != kMmaM)
    return withNote(
        op.emitOpError() << "must be in a role of one warpgroup, or of several in turn, but is in "
                         << region.getRole(),
        "write 4 warps from a multiple of 4 on, or 'in_turn stages' for more"); // (C499)
  auto tile = cast<TmemType>(op.getFilledType());
  int64_t columns = hw::weightColumnsOf(bytes);
  SmallVector<int64_t> expected = {kMmaM, source.getRows() * columns};
  auto ofBytes = TmemType::get(expected, Float8E4M3FNType::get(op.getContext()));
  if (isForBytes ? tile == ofBytes : isHalfOperand(tile, expected))
    return success();
  return withNote(
      op.emitOpError() << "tile must be " << expected[0] << "x" << expected[1] << " of "
                       << (isForBytes ? "f8E4M3FN" : "bf16 or f16") << ", but got " << tile,
      "a row of the source becomes " + Twine(columns) + " columns of 128 TMEM lanes"); // (C499)
}

LogicalResult DequantizeTileOp::verify() {
  if (failed(verifyForm(*this)))
    return failure();
  if (auto held = dyn_cast<FragmentType>(getFilledType()))
    return verifyResident(*this, held, "source", getSource().getType());
  if (isa<SharedType>(getFilledType()))
    return verifyShared(*this);
  return isPrepacked() ? verifyTmemOfPrepacked(*this) : verifyTmem(*this);
}
