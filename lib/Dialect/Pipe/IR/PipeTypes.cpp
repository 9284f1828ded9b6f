//===- PipeTypes.cpp - Buffers with hardware layout, and channels ---------===//
//
// Parsing, printing and verification of the pipe types. A type that verifies has a legal image in
// shared memory or tensor memory; sizes are in bytes or in 32-bit tensor memory columns.
//
//===----------------------------------------------------------------------===//

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include "fp4/ISA/BufferShape.h"
#include "fp4/ISA/FragmentLayout.h"
#include "fp4/ISA/InstrDescriptor.h"
#include "fp4/ISA/ScaleLayout.h"
#include "fp4/ISA/Swizzle.h"
#include "fp4/ISA/TmemLayout.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Alignment of tiles without a swizzle: whole lines, more than bulk copies and TMA ask for.
static constexpr int64_t kLineBytes = 128;
/// More than any memory on a chip holds; keeps sizes far from overflow.
static constexpr int64_t kMaxDimension = 1 << 20;

/// The last word of a type, which says what it is besides; empty where types have none.
template <typename T> constexpr StringLiteral kLastWord = "";
template <> constexpr StringLiteral kLastWord<TmemType> = "pair";
template <> constexpr StringLiteral kLastWord<TensorMapType> = "residue";

/// Parses the words after the element type: a layout, and `last`, which sets `hasLast`.
static ParseResult parseWords(AsmParser &parser, Layout &layout, StringRef last, bool &hasLast) {
  while (succeeded(parser.parseOptionalComma())) {
    StringRef word;
    SMLoc wordLoc = parser.getCurrentLocation();
    if (parser.parseKeyword(&word))
      return failure();
    if (!last.empty() && word == last) {
      hasLast = true;
      return success();
    }
    std::optional<Layout> parsed = symbolizeLayout(word);
    if (!parsed)
      return withNote(parser.emitError(wordLoc)
                          << "layout must be linear, swizzle_32B, swizzle_64B, swizzle_128B, "
                             "swizzle_128B_b4x16_p64, tiled_128x4, halves_128x4 or rows_P_mod_4 "
                             "with P = 1, 2 or 3, but got "
                          << word,
                      "the last three are layouts of scales, the others of data; "
                      "linear is what is meant without a word");
    layout = *parsed;
  }
  return success();
}

/// Parses `<` 128x256xT (`,` layout)? (`,` last word)? `>`.
template <typename T> static Type parseTile(AsmParser &parser, bool allowDynamic) {
  SmallVector<int64_t> shape;
  Type elementType;
  Layout layout = Layout::Linear;
  bool hasLast = false;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseDimensionList(shape, allowDynamic) ||
      parser.parseType(elementType) || parseWords(parser, layout, kLastWord<T>, hasLast) ||
      parser.parseGreater())
    return {};
  auto emitError = [&] { return parser.emitError(loc); };
  if constexpr (!kLastWord<T>.empty())
    return T::getChecked(emitError, parser.getContext(), shape, elementType, layout, hasLast);
  else
    return T::getChecked(emitError, parser.getContext(), shape, elementType, layout);
}

template <typename T> static void printTile(AsmPrinter &printer, T type, bool hasLast = false) {
  printer << '<';
  for (int64_t dim : type.getShape())
    if (ShapedType::isDynamic(dim))
      printer << "?x";
    else
      printer << dim << 'x';
  printer << type.getElementType();
  if (type.getLayout() != Layout::Linear)
    printer << ", " << stringifyLayout(type.getLayout());
  if (hasLast)
    printer << ", " << kLastWord<T>;
  printer << '>';
}

Type GlobalType::parse(AsmParser &parser) { return parseTile<GlobalType>(parser, true); }
void GlobalType::print(AsmPrinter &printer) const { printTile(printer, *this); }
Type TensorMapType::parse(AsmParser &parser) { return parseTile<TensorMapType>(parser, false); }
void TensorMapType::print(AsmPrinter &printer) const { printTile(printer, *this, getResidue()); }
Type SharedType::parse(AsmParser &parser) { return parseTile<SharedType>(parser, false); }
void SharedType::print(AsmPrinter &printer) const { printTile(printer, *this); }
Type TmemType::parse(AsmParser &parser) { return parseTile<TmemType>(parser, false); }
void TmemType::print(AsmPrinter &printer) const { printTile(printer, *this, getPair()); }

/// Parses `<` 64x256xf32 `,` wgmma `>`.
Type FragmentType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type elementType;
  StringRef word;
  SMLoc loc = parser.getCurrentLocation(), wordLoc;
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(elementType) || parser.parseComma() ||
      parser.getCurrentLocation(&wordLoc) || parser.parseKeyword(&word) || parser.parseGreater())
    return {};
  std::optional<FragmentKind> kind = symbolizeFragmentKind(word);
  if (!kind || *kind == FragmentKind::Columns) {
    withNote(parser.emitError(wordLoc)
                 << "fragment must be of wgmma, mma_sync or lanes, but got " << word,
             "wgmma and mma_sync hold what their instruction adds to, lanes what threads read from "
             "tensor memory");
    return {};
  }
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), shape, elementType,
                    *kind);
}

void FragmentType::print(AsmPrinter &printer) const {
  printer << '<';
  for (int64_t dim : getShape())
    printer << dim << 'x';
  printer << getElementType() << ", " << stringifyFragmentKind(getKind()) << '>';
}

#define GET_TYPEDEF_CLASSES
#include "fp4/Dialect/Pipe/IR/PipeTypes.cpp.inc"

void PipeDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "fp4/Dialect/Pipe/IR/PipeTypes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

static_assert(kScaleBlockRows == hw::scaleBlockRows && kScaleBlockBytes == hw::scaleBlockBytes &&
              kScaleBlockColumns == hw::scaleBlockColumns);

int64_t fp4::pipe::bitsInMemory(Type elementType, Layout layout) {
  if (isByteElementType(elementType) && !isPadded(layout))
    return 8;
  return elementType.isIntOrFloat() ? elementType.getIntOrFloatBitWidth() : 0;
}

/// Bytes of a row in global memory.
static int64_t rowBytes(int64_t columns, Type elementType, Layout layout) {
  return llvm::divideCeil(columns * bitsInMemory(elementType, layout), 8);
}

/// Bytes that a row takes in shared memory.
static int64_t sharedRowBytes(int64_t columns, Type elementType, Layout layout) {
  return isPadded(layout) ? columns : rowBytes(columns, elementType, layout);
}

int64_t TensorMapType::getMaps() const { return getResidue() ? 2 : rowSets(getLayout()).count(); }

int64_t GlobalType::getRowPitch() const {
  int64_t columns = getShape().back();
  return isa<Float4E2M1FNType>(getElementType()) ? hw::paddedRowBytes(columns)
                                                 : rowBytes(columns, getElementType(), getLayout());
}

int64_t GlobalType::getScaleBlockRows() const {
  int64_t rows = getShape()[0];
  return ShapedType::isDynamic(rows) ? rows : llvm::divideCeil(rows, kScaleBlockRows);
}

int64_t SharedType::getInnerBytes() const {
  return sharedRowBytes(getColumns(), getElementType(), getLayout());
}

int64_t SharedType::getPanels() const {
  int64_t width = swizzleWidth(getLayout());
  return width ? getInnerBytes() / width : 1;
}

int64_t SharedType::getBytes() const {
  if (isScales())
    return hw::tiled128x4Bytes(getRowBlocks() * kScaleBlockRows, getColumns());
  return getRows() * getInnerBytes();
}

int64_t SharedType::getLoadedBytes() const {
  return isScales() ? getBytes()
                    : getRows() * rowBytes(getColumns(), getElementType(), getLayout());
}

int64_t SharedType::getAlignment() const {
  return std::max<int64_t>(hw::swizzleRepeatBytes(swizzleMode(getLayout())), kLineBytes);
}

/// Columns of a tile of scales: one group per four scale columns. Two halves are in different TMEM
/// lanes.
static int64_t scaleTileColumns(int64_t rows, int64_t columns, Layout layout) {
  int64_t ofBlock = layout == Layout::Halves128x4 ? kScaleBlockRows : rows;
  return hw::scaleColumns(ofBlock) * (columns / kScaleBlockColumns);
}

/// The columns of an accumulator, which TMEM lanes of a pair with 128 rows have in halves.
static int64_t accumulatorColumns(ArrayRef<int64_t> shape, bool pair) {
  auto layout = hw::accumulatorLayout(pair ? 2 : 1, shape[0], /*sparse=*/false,
                                      /*warpSpecialized=*/false);
  return layout ? hw::accumulatorColumns(*layout, shape[1]) : shape[1];
}

/// Columns of tensor memory, of 32 bits, of so many elements.
static int64_t operandColumns(int64_t elements, Type element) {
  return elements * element.getIntOrFloatBitWidth() / 32;
}

int64_t TmemType::getTmemColumns() const {
  if (isOperand())
    return operandColumns(getColumns(), getElementType());
  return isScales() ? scaleTileColumns(getRows(), getColumns(), getLayout())
                    : accumulatorColumns(getShape(), getPair());
}

static hw::FragmentKind toHardware(FragmentKind kind) {
  switch (kind) {
  case FragmentKind::Wgmma:
    return hw::FragmentKind::Wgmma;
  case FragmentKind::MmaSync:
    return hw::FragmentKind::MmaSync;
  case FragmentKind::Lanes:
    return hw::FragmentKind::Lanes;
  case FragmentKind::Columns:
    return hw::FragmentKind::Columns;
  }
  llvm_unreachable("every kind has its instruction");
}

int64_t FragmentType::getNumThreads() const { return hw::fragmentThreads(toHardware(getKind())); }

int64_t FragmentType::getElementsPerThread() const {
  return hw::fragmentElements(toHardware(getKind()), getShape()[0], getShape()[1]);
}

DistributionAttr fp4::pipe::distributionOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<DistributionAttr>(tensor.getEncoding()) : DistributionAttr();
}

bool fp4::pipe::areRowNumbers(Type type) {
  DistributionAttr distribution = distributionOf(type);
  return distribution && hw::isRowNumber(toHardware(distribution.getKind()),
                                         uint32_t(cast<RankedTensorType>(type).getDimSize(1)));
}

VectorType fp4::pipe::vectorOfThread(Type type) {
  DistributionAttr distribution = distributionOf(type);
  if (!distribution)
    return dyn_cast<VectorType>(type);
  auto tensor = cast<RankedTensorType>(type);
  int64_t count = hw::fragmentElements(toHardware(distribution.getKind()), tensor.getDimSize(0),
                                       tensor.getDimSize(1));
  return VectorType::get({count}, tensor.getElementType());
}

RankedTensorType DistributionAttr::tensorOf(FragmentKind kind, int64_t columns, Type elementType) {
  return RankedTensorType::get({hw::fragmentRows(toHardware(kind)), columns}, elementType,
                               get(elementType.getContext(), kind));
}

bool ChannelType::isShared() const { return isa<SharedType>(getPayload().front()); }

int64_t ChannelType::getStageSize() const {
  int64_t size = 0;
  for (Type type : getPayload())
    size += TypeSwitch<Type, int64_t>(type)
                .Case([](SharedType t) { return t.getBytes(); })
                .Case([](TmemType t) { return t.getTmemColumns(); })
                .Default([](Type) { return 0; });
  return size;
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

static LogicalResult refuseElement(EmitError emitError, Type element) {
  return withNote(emitError() << "element type must be an integer or a float, but got " << element,
                  "other types have no bytes in memory: take an integer or a float of their width");
}

static LogicalResult verifyRank2(EmitError emitError, ArrayRef<int64_t> shape) {
  if (shape.size() != 2)
    return withNote(emitError() << "tile must have 2 dimensions, but got " << shape.size(),
                    "write !pipe.shared<ROWSxCOLUMNSxTYPE>");
  for (int64_t dim : shape)
    if (dim < 1 || dim > kMaxDimension)
      return withNote(emitError() << "dimensions of a tile must be 1 to " << kMaxDimension
                                  << ", but got " << dim,
                      "cut the matrix into tiles that a memory on the chip holds");
  return success();
}

/// (C103), and (C423) of halves, each within a scale tile.
static LogicalResult verifyScaleTile(EmitError emitError, ArrayRef<int64_t> shape, Type element,
                                     Layout layout) {
  bool isHalved = layout == Layout::Halves128x4;
  if (isHalved && (shape[0] % 64 || shape[0] < 64 || shape[0] > 2 * kScaleBlockRows)) // (C423)
    return withNote(emitError() << "halves_128x4 tile must have 64, 128, 192 or 256 rows, but got "
                                << shape[0],
                    "halves are of 32 to 128 rows; other tiles of scales have layout tiled_128x4");
  bool hasBlocks = isHalved || shape[0] == kScaleBlockRows / 2 || shape[0] % kScaleBlockRows == 0;
  if (!hasBlocks || shape[1] % kScaleBlockColumns) // (C103)
    return withNote(
        emitError() << stringifyLayout(layout)
                    << " tile must have 64 rows or a multiple of 128, and a multiple of 4 "
                       "columns, but got "
                    << shape[0] << "x" << shape[1],
        "scales are stored as scale tiles, 128x4; round the tile up to whole scale tiles");
  if (!isScaleElementType(element))
    return withNote(emitError() << "scale factors must be f8E4M3FN or f8E8M0FNU, but got "
                                << element,
                    "block-scaled instructions read scales of these types");
  return success();
}

/// (C290)
static LogicalResult verifyPadding(EmitError emitError, Type element, Layout layout) {
  bool isOfSix = layout == Layout::Swizzle128BPadded6;
  bool fits = isOfSix ? isSixBitElementType(element) : isa<Float4E2M1FNType>(element);
  if (!isPadded(layout) || fits)
    return success();
  return withNote(
      emitError() << "tile of layout " << stringifyLayout(layout) << " must have elements of "
                  << (isOfSix ? "f6E2M3FN or f6E3M2FN" : "f4E2M1FN") << ", but got " << element,
      "the padding makes rows of bytes of smaller elements; write layout swizzle_128B for elements "
      "of 8 bits or more");
}

/// (C670) Rows in sets. Each set begins where TMA can write, at a multiple of 128 bytes.
static LogicalResult verifyRowSets(EmitError emitError, ArrayRef<int64_t> shape, Type element,
                                   Layout layout, bool isBox = false) {
  constexpr int64_t rowsOfLine = 128 / (4 * hw::RowSets::unit);
  int64_t rows = rowSets(layout).count() * rowsOfLine;
  int64_t longest = std::max(shape[0] / rowSets(layout).count(), shape[1]); // TMA: of a box
  if (element.isF32() && shape[0] % rows == 0 && shape[1] % hw::RowSets::unit == 0 &&
      (!isBox || longest <= 256))
    return success();
  return withNote(emitError() << "tile of layout " << stringifyLayout(layout)
                              << " must have a multiple of " << rows << " rows by one of "
                              << hw::RowSets::unit << " columns of f32"
                              << (isBox ? ", at most 256 of a set" : "") << ", but got " << shape[0]
                              << "x" << shape[1] << "x" << element,
                  "round the rows up: nobody reads those behind the last one");
}

LogicalResult GlobalType::verify(EmitError emitError, ArrayRef<int64_t> shape, Type element,
                                 Layout layout) {
  if (!element.isIntOrFloat())
    return refuseElement(emitError, element);
  if (shape.size() > 2)
    return withNote(emitError() << "global buffer must have at most 2 dimensions, but got "
                                << shape.size(),
                    "collapse the leading dimensions into the rows");
  if (shape.size() == 1 && element.getIntOrFloatBitWidth() % 8)
    return withNote(
        emitError() << "global buffer of 1 dimension must have elements of whole bytes, but got "
                    << element,
        "pack the elements into i8, or give the buffer two dimensions");
  if (layout != Layout::Linear && layout != Layout::Tiled128x4)
    return withNote(
        emitError() << "layout of a global buffer must be linear or tiled_128x4, but got "
                    << stringifyLayout(layout),
        "swizzles are of tiles in shared memory, which a tensor map makes while it loads");
  if (layout == Layout::Tiled128x4 && (shape.size() != 2 || !isScaleElementType(element)))
    return withNote(
        emitError() << "tiled_128x4 buffer must be 2-dimensional of f8E4M3FN or f8E8M0FNU, but got "
                    << element,
        "leave the layout out where the buffer has no scale factors");
  return success();
}

/// (C666) Planes of rows of a box.
static LogicalResult verifyPlanes(EmitError emitError, ArrayRef<int64_t> shape, Type element,
                                  Layout layout, bool residue) {
  bool hasBytes = !isa<Float4E2M1FNType>(element) && !isPadded(layout) &&
                  rowSets(layout).count() == 1 && layout != Layout::Tiled128x4 &&
                  layout != Layout::Halves128x4;
  bool isInRange = llvm::all_of(shape, [](int64_t dim) { return dim > 0 && dim <= 256; });
  if (hasBytes && !residue && isInRange && shape[0] * shape[1] <= 256)
    return success();
  return withNote(emitError() << "box of planes must have elements of whole bytes, no residue, and "
                                 "at most 256 rows in all, but got "
                              << shape[0] << " planes of " << shape[1] << " rows of " << element
                              << (residue ? ", with a residue" : ""),
                  "describe the buffer as a matrix, with a box of rows and columns");
}

/// (C101), (C290) Rows of elements of a box.
static LogicalResult verifyBox(EmitError emitError, ArrayRef<int64_t> shape, Type element,
                               Layout layout) {
  if (!bitsInMemory(element, layout))
    return refuseElement(emitError, element);
  if (failed(verifyPadding(emitError, element, layout))) // (C290)
    return failure();
  if (shape[0] > 256) // (C101)
    return withNote(emitError() << "box must have at most 256 rows, but got " << shape[0],
                    "load a higher tile with several operations");
  int64_t inner = sharedRowBytes(shape[1], element, layout), width = swizzleWidth(layout);
  if (isPadded(layout) && inner != width) // (C290)
    return withNote(emitError() << "rows of a box of layout " << stringifyLayout(layout)
                                << " must have " << width << " elements, but got " << shape[1],
                    "a wider tile consists of panels of this width");
  if (inner % 16 || inner > 256) // (C101)
    return withNote(
        emitError() << "rows of the box must be a multiple of 16 bytes, at most 256, but got "
                    << inner << " bytes",
        "TMA copies units of 16 bytes; pad the columns of the tile");
  if (width && inner > width) // (C101)
    return withNote(
        emitError() << "rows of the box must be at most " << width << " bytes for "
                    << stringifyLayout(layout) << ", but got " << inner << " bytes",
        "take a wider swizzle, or a tile of several panels, whose map has the box of one");
  return success();
}

LogicalResult TensorMapType::verify(EmitError emitError, ArrayRef<int64_t> shape, Type element,
                                    Layout layout, bool residue) {
  if (shape.size() == 3) {
    if (failed(verifyPlanes(emitError, shape, element, layout, residue)))
      return failure();
    return verify(emitError, {shape[0] * shape[1], shape[2]}, element, layout, residue);
  }
  if (failed(verifyRank2(emitError, shape)))
    return failure();
  if (residue && layout == Layout::Tiled128x4) // (C471)
    return withNote(emitError() << "map with a residue must have rows of elements, but got layout "
                                << stringifyLayout(layout),
                    "scale tiles have no residue: leave 'residue' out");
  if (layout == Layout::Halves128x4) // (C423)
    return withNote(emitError() << "box of scales must have layout tiled_128x4, but got "
                                << stringifyLayout(layout),
                    "write 'tiled_128x4' behind the element type");
  if (layout == Layout::Tiled128x4)
    return verifyScaleTile(emitError, shape, element, layout);
  if (rowSets(layout).count() > 1) {
    if (!residue)
      return verifyRowSets(emitError, shape, element, layout, /*isBox=*/true); // (C670)
    return withNote(emitError() << "map of layout " << stringifyLayout(layout) // (C670)
                                << " must have no residue, but got one",
                    "leave 'residue' out: rows behind the last one load as zeros");
  }
  return verifyBox(emitError, shape, element, layout);
}

LogicalResult SharedType::verify(EmitError emitError, ArrayRef<int64_t> shape, Type element,
                                 Layout layout) {
  if (failed(verifyRank2(emitError, shape)))
    return failure();
  if (layout == Layout::Tiled128x4 || layout == Layout::Halves128x4)
    return verifyScaleTile(emitError, shape, element, layout);
  if (!bitsInMemory(element, layout))
    return refuseElement(emitError, element);
  if (rowSets(layout).count() > 1)
    return verifyRowSets(emitError, shape, element, layout); // (C670)
  if (failed(verifyPadding(emitError, element, layout))) // (C290)
    return failure();
  int64_t inner = sharedRowBytes(shape[1], element, layout), width = swizzleWidth(layout);
  if (width && inner % width) // (C102)
    return withNote(emitError() << "rows of a " << stringifyLayout(layout)
                                << " tile must be a multiple of " << width << " bytes, but got "
                                << inner << " bytes",
                    "pad the columns to whole panels, or take a narrower swizzle");
  if (inner % 16)
    return withNote(emitError() << "rows of a tile must be a multiple of 16 bytes, but got "
                                << inner << " bytes",
                    "copies have units of 16 bytes; pad the columns of the tile");
  return success();
}

/// An operand (C466) or an accumulator (C104) in tensor memory.
static LogicalResult verifyNumbers(EmitError emitError, ArrayRef<int64_t> shape, Type element,
                                   bool pair) {
  if (element.isF16() || element.isBF16() || isa<Float8E4M3FNType, Float4E2M1FNType>(element)) {
    constexpr int64_t unit = 64;
    if (shape[0] == kMmaM && shape[1] % unit == 0 && !pair)
      return success();
    return withNote(emitError() << "operand must be 128 rows of a multiple of " << unit
                                << " columns and belong to no pair, but got " << shape[0] << "x"
                                << shape[1] << "x" << element,
                    "take a tile of 128 rows, and pad its columns");
  }
  bool hasRows = shape[0] == kMmaM || (pair && shape[0] == 2 * kMmaM);
  if (element.isF32() && hasRows &&
      hw::validateMmaShape(hw::MmaKind::MXF4NVF4, pair ? 2 : 1, shape[0], shape[1]))
    return success();
  return withNote(
      emitError() << "accumulator"
                  << (pair ? " of a pair must be 256 or 128 rows of f32 and 16 to 256 columns in "
                             "steps of 16, but got "
                           : " must be 128 rows of f32 and 8 to 256 columns in steps of 8, "
                             "but got ")
                  << shape[0] << "x" << shape[1] << "x" << element,
      "block-scaled instructions make these shapes; take several accumulators for a "
      "larger tile"); // (C104)
}

LogicalResult TmemType::verify(EmitError emitError, ArrayRef<int64_t> shape, Type element,
                               Layout layout, bool pair) {
  if (failed(verifyRank2(emitError, shape)))
    return failure();
  bool isScales = layout == Layout::Tiled128x4 || layout == Layout::Halves128x4;
  if (layout == Layout::Halves128x4 && !pair) // (C423)
    return withNote(emitError() << "halves_128x4 tile in tensor memory must belong to a pair",
                    "add ', pair', or take layout tiled_128x4");
  if (isScales) {
    if (failed(verifyScaleTile(emitError, shape, element, layout)))
      return failure();
  } else if (layout != Layout::Linear) {
    return withNote(emitError() << "layout of a tensor memory tile must be linear, tiled_128x4 or "
                                   "halves_128x4, but got "
                                << stringifyLayout(layout),
                    "leave the layout out where the tile has no scales: there are no swizzles");
  } else if (failed(verifyNumbers(emitError, shape, element, pair))) {
    return failure();
  }
  int64_t columns =
      isScales ? scaleTileColumns(shape[0], shape[1], layout) : operandColumns(shape[1], element);
  if (columns > hw::tmemColumnCount) // (C105)
    return withNote(emitError() << "tile must fit in " << hw::tmemColumnCount
                                << " tensor memory columns, but needs " << columns,
                    "cut the tile into several, which different iterations use");
  return success();
}

LogicalResult FragmentType::verify(EmitError emitError, ArrayRef<int64_t> shape, Type element,
                                   FragmentKind kind) { // (C158)
  if (failed(verifyRank2(emitError, shape)))
    return failure();
  if (!element.isF32() && !(kind == FragmentKind::Wgmma && isa<Float8E4M3FNType>(element)))
    return withNote(
        emitError() << "fragment must have elements of f32, or of wgmma f8E4M3FN, but got "
                    << element,
        "threads convert what they have read from a fragment, as vectors");
  if (Status status = hw::validateFragment(toHardware(kind), shape[0], shape[1]); !status)
    return withNote(emitError() << "fragment must be what its instruction makes: "
                                << status.error().message,
                    "wgmma makes multiples of 64x8, mma_sync of 16x8, and lanes are 128 rows of 16 "
                    "to 128 columns");
  return success();
}

LogicalResult DistributionAttr::verifyEncoding(ArrayRef<int64_t> shape, Type element,
                                               EmitError emitError) const { // (C653)
  if (!element) // the parser asks even after it has reported that it found none
    return failure();
  if (!element.isIntOrIndexOrFloat())
    return withNote(emitError() << "tensor of " << *this << " must have elements that a register "
                                << "holds, but got " << element,
                    "write a float, an integer or an index");
  if (shape.size() != 2 || ShapedType::isDynamicShape(shape) ||
      llvm::any_of(shape, [](int64_t size) { return size > kMaxDimension; }))
    return withNote(emitError() << "tensor of " << *this
                                << " must have 2 static dimensions of a tile, but got "
                                << shape.size() << " of [" << shape << ']',
                    "a thread has a constant number of elements, because registers have names");
  if (Status status = hw::validateDistribution(toHardware(getKind()), shape[0], shape[1]); !status)
    return withNote(
        emitError() << "tensor of " << *this << " must have " << status.error().message,
        "wgmma has 64 rows and mma_sync 16, by 1 or multiples of 8 columns; lanes have 128 "
        "rows, and columns are 32");
  return success();
}

LogicalResult ChannelType::verify(EmitError emitError, ArrayRef<Type> payload) {
  if (payload.empty())
    return withNote(emitError() << "channel must have a payload of at least one tile",
                    "write !pipe.channel<TILE> with a !pipe.shared or !pipe.tmem tile");
  bool shared = isa<SharedType>(payload.front());
  for (Type type : payload) {
    if (!isa<SharedType, TmemType>(type))
      return withNote(
          emitError() << "payload must be tiles in shared or tensor memory, but got " << type,
          "values of other types cross from role to role as operands that are computed in both");
    if (isa<SharedType>(type) != shared) // (C106)
      return withNote(emitError() << "payload must lie in one memory, but got " << payload.front()
                                  << " and " << type,
                      "make a channel for each memory");
  }
  return success();
}
