//===- PipeMma.cpp - MMAs with accumulators in tensor memory --------------===//
//
// Verifiers of the forms of pipe.mma that tcgen05 executes. Labels such as (C114) refer to
// PipeConstraints.td.
//
//===----------------------------------------------------------------------===//

#include "VerifyFragment.h"
#include "VerifyMma.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/ISA/SmemDescriptor.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

//===----------------------------------------------------------------------===//
// With scales
//===----------------------------------------------------------------------===//

int64_t MmaOp::getBlockSize() {
  auto scales = getAScalesAs<TmemType>();
  int64_t columns = llvm::alignTo(getScaledK() / 32, kScaleBlockColumns);
  bool isPower = isa<Float8E8M0FNUType>(scales.getElementType());
  return isPower && scales.getColumns() == columns ? 32 : 16;
}

/// Rows and columns of A, in shared or in tensor memory.
static ArrayRef<int64_t> shapeOfA(MmaOp op) {
  Type type = op.getA().getType();
  return isa<TmemType>(type) ? cast<TmemType>(type).getShape() : cast<SharedType>(type).getShape();
}

int64_t MmaOp::getMaxSteps() {
  return getPart() ? (*getPart())[1] : shapeOfA(*this)[1] / getStepK();
}

/// (C291) Operands of kind mxf8f6f4.
static LogicalResult verifyWideOperand(MmaOp op, StringRef name, SharedType tile) {
  bool isFloat8 = isa<Float8E4M3FNType, Float8E5M2Type>(tile.getElementType());
  bool isHalfLine = isFloat8 && tile.getColumns() == kPaddedRun / 2; // a head of 64 elements
  if ((!isFloat8 && !isPadded(tile.getLayout())) ||
      (tile.getColumns() % kPaddedRun && !isHalfLine) || tile.getColumns() != shapeOfA(op)[1])
    return withNote(
        op.emitOpError() << name << " must be f8E4M3FN, f8E5M2, or of 6 or 4 bits in layout "
                         << "swizzle_128B_b6x16_p32 or swizzle_128B_b4x16_p64, with the K of a, a "
                         << "multiple of " << kPaddedRun
                         << ", beside an operand of 6 or 8 bits, but got " << tile,
        "a map pads smaller elements to bytes while it loads: write the layout of padded rows");
  Type scales = op.getAScalesAs<TmemType>().getElementType();
  if (isa<Float8E8M0FNUType>(scales))
    return success();
  return withNote(op.emitOpError()
                      << "scales of operands of 6 or 8 bits must be f8E8M0FNU, but got " << scales,
                  "quantize both operands to formats of f8E8M0FNU, such as mxfp4 and mxfp8");
}

/// (C115) Operands of kind mxf4nvf4.
static LogicalResult verifyPackedOperand(MmaOp op, StringRef name, SharedType tile) {
  if (isa<Float4E2M1FNType>(tile.getElementType()) && !isPadded(tile.getLayout()) &&
      tile.getColumns() % kMmaK == 0 && tile.getColumns() == shapeOfA(op)[1])
    return success();
  return withNote(op.emitOpError() << name << " must be f4E2M1FN with the K of a, a multiple of "
                                   << kMmaK << ", but got " << tile,
                  "pad K with zeros, and write no padded layout beside operands of 4 bits");
}

/// (C116) The scale tile has one column per scale block of k and enough rows for the operand.
static LogicalResult verifyScales(MmaOp op, StringRef name, TmemType scales, int64_t rows) {
  if (!scales.isScales())
    return withNote(op.emitOpError() << name << " must have layout tiled_128x4, but got " << scales,
                    "pipe.copy_scales makes such a tile");
  int64_t k = op.getScaledK(), block = op.getBlockSize();
  int64_t columns = llvm::alignTo(k / block, kScaleBlockColumns);
  if (scales.getColumns() != columns)
    return withNote(op.emitOpError()
                        << name << " must have " << columns << " columns for K = " << k
                        << " and blocks of " << block << ", but got " << scales.getColumns(),
                    "copy the scales of as many blocks as the tile has, rounded up to 4");
  if (scales.getRows() < rows)
    return withNote(op.emitOpError() << name << " must have at least " << rows << " rows, but got "
                                     << scales.getRows(),
                    "copy whole scale tiles of 128 rows");
  return success();
}

/// (C311) Operands of K = 96 are fp4 elements in the widest swizzle.
static LogicalResult verifyK96(MmaOp op, StringRef name, SharedType tile) {
  if (isa<Float4E2M1FNType>(tile.getElementType()) && tile.getLayout() == Layout::Swizzle128B &&
      tile.getColumns() % hw::mmaK96TileK == 0)
    return success();
  return withNote(op.emitOpError()
                      << name
                      << " must be f4E2M1FN of layout swizzle_128B, with a K that is a multiple of "
                      << hw::mmaK96TileK << ", for instructions of K = 96, but got " << tile,
                  "leave 'depth' out, and instructions have K = 64");
}

/// (C311), (C317) The scales of an instruction may end in the next scale tile along K, whose place
/// depends on the columns.
static LogicalResult verifyScaleRows(MmaOp op, TmemType acc, TmemType scales, StringRef which) {
  int64_t rows = llvm::alignTo(acc.getColumns(), kScaleBlockRows);
  if (scales.getRows() == rows)
    return success();
  return withNote(op.emitOpError()
                      << "b_scales of instructions " << which << " must have " << rows
                      << " rows, those of the accumulator in whole scale tiles, but got " << scales,
                  "copy the scales of every column, in scale tiles of 128 rows");
}

static LogicalResult verifyK96(MmaOp op) {
  auto acc = op.getAccumulatorAs<TmemType>(), scales = op.getBScalesAs<TmemType>();
  if (!acc.getPair() || acc.isOfHalves())
    return withNote(
        op.emitOpError()
            << "accumulator of instructions of K = 96 must be 256 rows of a pair, but got " << acc,
        "leave 'depth' out, or take !pipe.tmem<256xNxf32, pair>");
  if (failed(verifyK96(op, "a", op.getAAs<SharedType>())) ||
      failed(verifyK96(op, "b", op.getB().getType())))
    return failure();
  return verifyScaleRows(op, acc, scales, "of K = 96");
}

/// (C317) Operands of the double K are elements of 4 bits or of 8 in the widest swizzle.
static LogicalResult verifyDoubleK(MmaOp op, StringRef name, SharedType tile) {
  bool isFp4 = isa<Float4E2M1FNType>(tile.getElementType());
  bool isFloat8 = isa<Float8E4M3FNType, Float8E5M2Type>(tile.getElementType());
  bool isWide = op.getAtom()->kind != hw::MmaKind::MXF4NVF4;
  if ((isWide ? isFloat8 : isFp4) && tile.getLayout() == Layout::Swizzle128B &&
      tile.getInnerBytes() % swizzleWidth(Layout::Swizzle128B) == 0)
    return success();
  return withNote(op.emitOpError()
                      << name
                      << " must be f4E2M1FN, or of f8E4M3FN or f8E5M2 like the other operand, of "
                         "layout swizzle_128B with whole lines of 128 bytes, for instructions of "
                         "twice the K, but got "
                      << tile,
                  "leave 'depth' out, and instructions have K = 64 or 32");
}

static LogicalResult verifyDoubleK(MmaOp op) {
  auto acc = op.getAccumulatorAs<TmemType>();
  if (acc.isOfHalves() || acc.getRowsOfBlock() != kMmaM)
    return withNote(op.emitOpError()
                        << "accumulator of instructions of twice the K must be 128 rows "
                           "of a CTA or 256 of a pair, but got "
                        << acc,
                    "leave 'depth' out, or take !pipe.tmem<128xNxf32> or <256xNxf32, pair>");
  if (failed(verifyDoubleK(op, "a", op.getAAs<SharedType>())) ||
      failed(verifyDoubleK(op, "b", op.getB().getType())))
    return failure();
  if (!op.getBScales())
    return success();
  return verifyScaleRows(op, acc, op.getBScalesAs<TmemType>(), "of twice the K");
}

/// (C486) A part has instructions of the tile, and groups of four scales of its own.
static LogicalResult verifyPart(MmaOp op) {
  ArrayRef<int64_t> part = *op.getPart();
  int64_t all = op.getAAs<SharedType>().getColumns() / op.getStepK();
  bool fits = op.getKDepth() == MmaDepth::K96 && part.size() == 2 && part[0] >= 0 && part[1] >= 1 &&
              part[0] <= all && part[1] <= all - part[0];
  if (fits && part[0] * op.getStepK() % (kScaleBlockColumns * op.getBlockSize()) == 0)
    return success();
  InFlightDiagnostic diag = op.emitOpError()
                            << "part must be [first, number] of the " << all
                            << " instructions of K = 96 that the tile has, from a block of four "
                               "scales on, but got "
                            << op.getPartAttr();
  diag.attachNote() << "scales of 16 elements begin with every second of them, of 32 with every "
                       "fourth";
  return diag;
}

/// (C440) The scales of B are in halves exactly where the columns of the accumulator are.
static LogicalResult verifyHalves(MmaOp op) {
  auto acc = op.getAccumulatorAs<TmemType>(), scales = op.getBScalesAs<TmemType>();
  if (op.getAScalesAs<TmemType>().isHalved())
    return withNote(op.emitOpError() << "a_scales must have layout tiled_128x4, but got "
                                     << op.getAScales().getType(),
                    "only the scales of b are in halves");
  if (!acc.isOfHalves() && !scales.isHalved())
    return success();
  bool fits = acc.isOfHalves() && scales.isHalved() && scales.getRows() == acc.getColumns();
  if (fits && !op.getBScaleRow())
    return success();
  return withNote(op.emitOpError()
                      << "b_scales must have layout halves_128x4 and a row for each column of "
                         "the accumulator, from the first on, where a pair has 128 rows, and "
                         "only there, but got "
                      << scales << " for " << acc,
                  "write halves_128x4 for the scales of b and leave out their row, where the "
                  "accumulator has 128 rows of a pair; write tiled_128x4 elsewhere");
}

/// (C114) The rows of both operands are those of the accumulator.
static LogicalResult verifyShape(MmaOp op, TmemType acc, SharedType b) {
  int64_t rows = acc.getRowsOfBlock(), ofA = shapeOfA(op)[0];
  if (ofA != rows) // (C114)
    return withNote(op.emitOpError() << "a must have " << rows << " rows, but got " << ofA,
                    "load as many rows of a as a CTA has TMEM lanes of the accumulator");
  int64_t blocks = acc.getPair() ? 2 : 1;
  if (b.getRows() * blocks != acc.getColumns()) // (C114)
    return withNote(op.emitOpError() << "b must have as many rows as the accumulator has columns"
                                     << (blocks > 1 ? " for each CTA of the pair, " : ", ")
                                     << acc.getColumns() / blocks << ", but got " << b.getRows(),
                    blocks > 1 ? "each CTA of the pair loads half of the rows of b"
                               : "load a row of b for each column of the accumulator");
  return success();
}

LogicalResult fp4::pipe::verifyTcgen05Scaled(MmaOp op) {
  auto acc = op.getAccumulatorAs<TmemType>();
  SharedType b = op.getB().getType();
  auto sa = op.getAScalesAs<TmemType>(), sb = op.getBScalesAs<TmemType>();
  if (acc.getPair() != sa.getPair() || acc.getPair() != sb.getPair()) // (C150)
    return withNote(
        op.emitOpError()
            << "accumulator and scales must all belong to a pair, or none of them, but got " << acc
            << ", " << sa << " and " << sb,
        "add ', pair' to the types of all three, or to none");
  if (failed(verifyShape(op, acc, b))) // (C114)
    return failure();
  bool isWide = op.getAtom()->kind == hw::MmaKind::MXF8F6F4;
  for (auto [name, operand] : {std::pair("a", op.getA()), {"b", op.getB()}})
    if (auto tile = dyn_cast<SharedType>(operand.getType());
        tile && failed(isWide ? verifyWideOperand(op, name, tile)     // (C291)
                              : verifyPackedOperand(op, name, tile))) // (C115)
      return failure();
  if (op.getKDepth() == MmaDepth::K96 && failed(verifyK96(op))) // (C311)
    return failure();
  if (op.getKDepth() == MmaDepth::Double && failed(verifyDoubleK(op))) // (C317)
    return failure();
  if (op.getPart() && failed(verifyPart(op))) // (C486)
    return failure();
  if (sa.getElementType() != sb.getElementType())
    return withNote(op.emitOpError() << "scales must have one element type, but got "
                                     << sa.getElementType() << " and " << sb.getElementType(),
                    "quantize both operands with one type of scales");
  if (failed(verifyScales(op, "a_scales", sa, shapeOfA(op)[0])) ||
      failed(verifyHalves(op))) // (C440)
    return failure();
  return verifyScales(op, "b_scales", sb, acc.getColumns());
}

//===----------------------------------------------------------------------===//
// Without scales
//===----------------------------------------------------------------------===//

/// The columns of an instruction are a multiple of this number.
static constexpr int64_t kColumnStep = 16;

/// (C373) 16-bit floats as TMA loads them: rows of one swizzle each, or panels of such.
static LogicalResult verifyFloatTiles(MmaOp op, SharedType a, SharedType b) {
  constexpr int64_t panel = kPromotedRowBytes / 2;
  auto expected = [&](SharedType tile) {
    return SharedType::get({tile.getRows(), a.getColumns()}, a.getElementType(),
                           Layout::Swizzle128B);
  };
  if (a.getColumns() % panel == 0 && a == expected(a) && b == expected(b))
    return success();
  return withNote(op.emitOpError()
                      << "a and b must have the same 16-bit floats and K, a multiple of " << panel
                      << ", in layout swizzle_128B, but got " << a << " and " << b,
                  "load both operands with boxes of 64 elements of K"); // (C373)
}

/// Returns true for a layout of swizzled rows, or panels of such, of 64 bytes or 128.
static bool isWideSwizzle(Layout layout) {
  return layout == Layout::Swizzle128B || layout == Layout::Swizzle64B;
}

/// (C373) Elements of e4m3 as TMA loads them: rows of one swizzle each, or panels of such.
static LogicalResult verifySwizzledBytes(MmaOp op, SharedType a, SharedType b) {
  bool isSame = a.getElementType() == b.getElementType() && a.getColumns() == b.getColumns() &&
                a.getLayout() == b.getLayout();
  if (isSame && isWideSwizzle(a.getLayout()) &&
      a.getInnerBytes() % swizzleWidth(a.getLayout()) == 0)
    return success();
  return withNote(op.emitOpError()
                      << "a and b must have the same f8E4M3FN and K, in layout swizzle_128B or "
                         "swizzle_64B, but got "
                      << a << " and " << b,
                  "load both operands with boxes of 128 elements of K, or of 64"); // (C373)
}

LogicalResult fp4::pipe::verifyTcgen05Dense(MmaOp op) {
  auto acc = op.getAccumulatorAs<TmemType>();
  auto a = op.getAAs<SharedType>();
  SharedType b = op.getB().getType();
  bool areFloats = op.getAtom()->kind == hw::MmaKind::F16;
  if (failed(areFloats ? verifyFloatTiles(op, a, b) : verifySwizzledBytes(op, a, b))) // (C373)
    return failure();
  if (a.getRows() != kMmaM)
    return withNote(op.emitOpError() << "a must have " << kMmaM << " rows, but got " << a,
                    "an instruction has 128 TMEM lanes: load a tile of as many rows"); // (C373)
  int64_t columns = acc.getColumns();
  if (acc.isOfHalves() || columns % kColumnStep) // the type has at most 256
    return withNote(op.emitOpError() << "accumulator must have sums in a multiple of "
                                     << kColumnStep << " columns, but got " << acc,
                    "take an accumulator of a multiple of 16 columns, with 256 rows where it is of "
                    "a pair"); // (C373)
  if (op.getKDepth() == MmaDepth::K96 || op.getPart())
    return withNote(op.emitOpError()
                        << "depth must be single or double for operands without scales, "
                           "and have no part",
                    "leave 'depth' and 'part' out");                   // (C373)
  if (op.getKDepth() == MmaDepth::Double && failed(verifyDoubleK(op))) // (C317)
    return failure();
  if (b.getRows() * (acc.getPair() ? 2 : 1) != columns)
    return withNote(op.emitOpError() << "b must have a row for each of " << columns
                                     << " columns, of a pair for half of them, but got " << b,
                    "each CTA of a pair loads half of the rows of b"); // (C373)
  return success();
}

LogicalResult fp4::pipe::verifyTcgen05TmemA(MmaOp op) {
  auto acc = op.getAccumulatorAs<TmemType>(), a = op.getAAs<TmemType>();
  SharedType b = op.getB().getType();
  int64_t columns = b.getRows(), k = b.getColumns();
  if (op.getTransposed())
    std::swap(columns, k);
  bool isBytes = isa<Float8E4M3FNType>(a.getElementType());
  if (b.getElementType() != a.getElementType() || k != a.getColumns() ||
      !(op.getTransposed() && isBytes ? isWideSwizzle(b.getLayout())
                                      : b.getLayout() == Layout::Swizzle128B))
    return withNote(op.emitOpError() << "b must be " << a.getElementType() << " with K = "
                                     << a.getColumns() << " and layout swizzle_128B, but got " << b,
                    op.getTransposed()
                        ? "load a row of the operand's type for each element of K"
                        : "load activations of the operand's type and depth"); // (C468)
  if (!acc.getPair() && acc.getColumns() == columns)
    return success();
  return withNote(op.emitOpError() << "accumulator must be 128 rows of f32 of no pair, with "
                                   << columns << " columns, but got " << acc,
                  op.getTransposed()
                      ? "let the accumulator have the columns of b"
                      : "let the accumulator have a column for each row of b"); // (C468)
}

LogicalResult fp4::pipe::verifyTcgen05Slices(MmaOp op) { // (C125)
  auto acc = op.getAccumulatorAs<TmemType>();
  auto a = op.getAAs<SharedType>();
  SharedType b = op.getB().getType();
  if (a.getColumns() != kMmaM || a.getRows() % kDenseMmaK || !swizzleWidth(a.getLayout()))
    return withNote(op.emitOpError() << "a must be a multiple of " << kDenseMmaK << " rows of "
                                     << kMmaM << " and swizzled, but got " << a,
                    "load 128 columns, with a swizzle");
  if (b.getElementType() != a.getElementType() || b.getColumns() != kDenseMmaK ||
      b.getRows() % kDenseMmaK || b.getLayout() != Layout::Swizzle32B)
    return withNote(op.emitOpError()
                        << "b must be " << a.getElementType() << ", a multiple of " << kDenseMmaK
                        << " rows of " << kDenseMmaK << " with layout swizzle_32B, but got " << b,
                    "pipe.hadamard_matrix makes such a tile");
  int64_t slices = a.getRows() / kDenseMmaK;
  if (!acc.getPair() && acc.getColumns() == slices * b.getRows())
    return success();
  return withNote(op.emitOpError()
                      << "accumulator must have " << slices * b.getRows() << " columns, "
                      << b.getRows() << " for each of " << slices << " slices, but got " << acc,
                  "write an accumulator of these columns, of one CTA");
}
