//===- PipeHostPatterns.cpp - pipe host operations to runtime calls -------===//
//
// A !pipe.global is a device pointer. A !pipe.tensor_map is the host address of 128 bytes that
// fp4rt_tensor_map fills; the launch passes them by value. With a residue they are 256 bytes, two
// maps of one buffer.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "RuntimeCalls.h"

#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/Dialect/Pipe/IR/PipeMatrices.h"
#include "fp4/Dialect/Utils/ConstantBytes.h"
#include "fp4/ISA/TensorMap.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"

using namespace mlir;
using fp4::constantInt;
using fp4::RuntimeFunction;
namespace hw = fp4::hw;

namespace {

ModuleOp moduleOf(Operation *op) { return op->getParentOfType<ModuleOp>(); }

/// An array in host memory with the given integers of `bits` bits.
Value integerArray(OpBuilder &builder, Location loc, unsigned bits, ValueRange values) {
  Type ptr = LLVM::LLVMPointerType::get(builder.getContext());
  Type type = builder.getIntegerType(bits);
  Value count = constantInt(builder, loc, 64, values.size());
  Value array = LLVM::AllocaOp::create(builder, loc, ptr, type, count);
  for (auto [index, value] : llvm::enumerate(values)) {
    Value slot = LLVM::GEPOp::create(builder, loc, ptr, type, array,
                                     ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
    LLVM::StoreOp::create(builder, loc, value, slot);
  }
  return array;
}

/// The type that TMA has for elements of `type`: packed fp4 travels as bytes (blackwell: same
/// shared image).
hw::TensorMapType mapTypeOf(fp4::pipe::TensorMapType map) {
  Type type = map.getElementType();
  if (map.getLayout() == fp4::pipe::Layout::Swizzle128BPadded)
    return hw::TensorMapType::U4Align16;
  if (map.getLayout() == fp4::pipe::Layout::Swizzle128BPadded6)
    return hw::TensorMapType::U6Align16;
  if (type.isBF16())
    return hw::TensorMapType::BFloat16;
  if (type.isF16())
    return hw::TensorMapType::Float16;
  if (type.isF32())
    return hw::TensorMapType::Float32;
  return hw::TensorMapType::UInt8;
}

/// Elements of one unit of a map of rows: two of packed fp4 are a byte.
int64_t elementsOfUnit(fp4::pipe::TensorMapType map) {
  bool countsBytes = map.getElementType().getIntOrFloatBitWidth() == 4 &&
                     mapTypeOf(map) == hw::TensorMapType::UInt8;
  return countsBytes ? 2 : 1;
}

/// Lowers an argument of a kernel to an address, and bytes of a buffer to another descriptor.
struct ViewLowering : ConvertOpToLLVMPattern<fp4::pipe::ViewOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(fp4::pipe::ViewOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto sourceType = dyn_cast<MemRefType>(op.getSource().getType());
    if (!sourceType)
      return rewriter.notifyMatchFailure(op, "belongs to a kernel");
    MemRefDescriptor source(adaptor.getSource());
    Value first = source.bufferPtr(rewriter, loc, *getTypeConverter(), sourceType);
    auto type = dyn_cast<MemRefType>(op.getType());
    if (!type) {
      rewriter.replaceOp(op, first);
      return success();
    }
    Value address = LLVM::GEPOp::create(rewriter, loc, LLVM::LLVMPointerType::get(getContext()),
                                        rewriter.getI8Type(), first,
                                        ValueRange(constantInt(rewriter, loc, 64, op.getOffset())));
    SmallVector<Value> rows;
    if (op.getRows())
      rows.push_back(adaptor.getRows());
    SmallVector<Value, 4> sizes, strides;
    Value bytes;
    getMemRefDescriptorSizes(loc, type, rows, rewriter, sizes, strides, bytes);
    Value descriptor = createMemRefDescriptor(loc, type, source.allocatedPtr(rewriter, loc),
                                              address, sizes, strides, rewriter);
    rewriter.replaceOp(op, descriptor);
    return success();
  }
};

/// Lowers a constant to a global that tools find by its name too: the manifest may refer to it.
struct DeviceConstantLowering : ConvertOpToLLVMPattern<fp4::pipe::DeviceConstantOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(fp4::pipe::DeviceConstantOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto dense = dyn_cast<DenseElementsAttr>(op.getBytes());
    if (!dense)
      return rewriter.notifyMatchFailure(op, "expects dense bytes");
    Location loc = op.getLoc();
    std::vector<uint8_t> bytes(dense.getValues<uint8_t>().begin(),
                               dense.getValues<uint8_t>().end());
    LLVM::GlobalOp global = fp4::constantGlobal(rewriter, moduleOf(op), bytes);
    Value size = constantInt(rewriter, loc, 64, bytes.size());
    Value address = fp4::callRuntime(rewriter, loc, moduleOf(op), RuntimeFunction::Constant,
                                     {LLVM::AddressOfOp::create(rewriter, loc, global), size});
    Value descriptor =
        MemRefDescriptor::fromStaticShape(rewriter, loc, *getTypeConverter(),
                                          cast<MemRefType>(op.getBuffer().getType()), address);
    rewriter.replaceOp(op, descriptor);
    return success();
  }
};

/// Allocates host memory for maps, aligned as the driver asks of a CUtensorMap.
Value createMapStorage(OpBuilder &builder, Location loc, int64_t bytes) {
  Type ptr = LLVM::LLVMPointerType::get(builder.getContext());
  return LLVM::AllocaOp::create(builder, loc, ptr, builder.getI8Type(),
                                constantInt(builder, loc, 64, bytes), /*alignment=*/64);
}

/// Arguments of fp4rt_tensor_map for a map; arrays in host memory.
struct MapForm {
  hw::TensorMapType type;
  hw::SwizzleMode swizzle;
  int32_t rank;
  Value dims, strides;
  SmallVector<Value> boxes; ///< one box for each map
};

/// Rows behind the last whole box; if there are none, the rows of a box, as nobody asks for them.
Value rowsOfResidue(OpBuilder &b, Location loc, Value rows, int64_t box) {
  Value left = LLVM::URemOp::create(b, loc, rows, constantInt(b, loc, 64, box));
  Value none =
      LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::eq, left, constantInt(b, loc, 64, 0));
  Value some = LLVM::SelectOp::create(b, loc, none, constantInt(b, loc, 64, box), left);
  return LLVM::TruncOp::create(b, loc, b.getI32Type(), some);
}

/// The place of map `number` of several.
Value placeOfMap(OpBuilder &b, Location loc, Value maps, int64_t number) {
  constexpr auto bytes = int64_t(hw::TensorMap::encodedBytes);
  return LLVM::GEPOp::create(b, loc, maps.getType(), b.getI8Type(), maps,
                             ArrayRef<LLVM::GEPArg>{int32_t(number * bytes)});
}

/// Encodes a map of `form`, with one of its boxes, whose elements begin at `first`.
void encodeMap(OpBuilder &b, Operation *op, Value map, Value first, const MapForm &form,
               Value box) {
  Location loc = op->getLoc();
  auto i32 = [&](int64_t value) { return constantInt(b, loc, 32, value); };
  fp4::callRuntime(b, loc, moduleOf(op), RuntimeFunction::TensorMap,
                   {map, first, i32(static_cast<int32_t>(form.type)),
                    i32(hw::tensorMapSwizzleCode(form.swizzle)), i32(form.rank), form.dims,
                    form.strides, box});
}

/// Encodes the maps of `form`, one behind the other, whose elements begin at `first`.
Value encodeMaps(OpBuilder &b, Operation *op, Value first, const MapForm &form) {
  Location loc = op->getLoc();
  constexpr auto bytes = int64_t(hw::TensorMap::encodedBytes);
  Value maps = createMapStorage(b, loc, bytes * int64_t(form.boxes.size()));
  for (auto [number, box] : llvm::enumerate(form.boxes))
    encodeMap(b, op, placeOfMap(b, loc, maps, int64_t(number)), first, form, box);
  return maps;
}

/// The bytes from a row of a matrix to the next one.
/// Bytes from one index of `dimension` of a buffer with strides to the next.
Value strideOf(OpBuilder &b, Location loc, MemRefType type, MemRefDescriptor buffer,
               unsigned dimension) {
  return LLVM::MulOp::create(b, loc, buffer.stride(b, loc, dimension),
                             constantInt(b, loc, 64, type.getElementTypeBitWidth() / 8));
}

Value pitchOf(OpBuilder &b, Location loc, MemRefType type, MemRefDescriptor buffer) {
  int64_t pitch = fp4::pipe::rowPitchOf(type);
  if (!ShapedType::isDynamic(pitch))
    return constantInt(b, loc, 64, pitch);
  return strideOf(b, loc, type, buffer, unsigned(type.getRank()) - 2);
}

/// The first size of a buffer, its rows or planes.
Value firstSizeOf(OpBuilder &b, Location loc, MemRefType type, MemRefDescriptor buffer) {
  return type.isDynamicDim(0) ? buffer.size(b, loc, 0)
                              : constantInt(b, loc, 64, type.getDimSize(0));
}

/// The form of rows of elements, of which `columns` exist, counted in units of the map: bytes for
/// packed fp4.
MapForm formOfRows(OpBuilder &b, Location loc, MemRefType type, MemRefDescriptor buffer,
                   fp4::pipe::TensorMapType map, Value columns) {
  auto i32 = [&](int64_t value) { return constantInt(b, loc, 32, value); };
  Value pitch = pitchOf(b, loc, type, buffer), rows = firstSizeOf(b, loc, type, buffer);
  auto box = [&](Value boxRows) {
    return integerArray(b, loc, 32, {i32(map.getColumns() / elementsOfUnit(map)), boxRows});
  };
  SmallVector<Value> boxes = {box(i32(map.getRows()))};
  if (map.getResidue())
    boxes.push_back(box(rowsOfResidue(b, loc, rows, map.getRows())));
  Value dims = integerArray(b, loc, 64, {columns, rows});
  Value strides = integerArray(b, loc, 64, pitch);
  return {mapTypeOf(map), fp4::pipe::swizzleMode(map.getLayout()), /*rank=*/2, dims, strides,
          boxes};
}

/// Encodes the maps of the sets of rows of f32 scales. A set without rows, which no box needs, has
/// row 0, so that its map is a legal one.
Value encodeSets(OpBuilder &b, fp4::pipe::MakeTensorMapOp op, Value first, Value rows) {
  Location loc = op.getLoc();
  auto i64 = [&](int64_t value) { return constantInt(b, loc, 64, value); };
  auto i32 = [&](int64_t value) { return constantInt(b, loc, 32, value); };
  constexpr auto bytes = int64_t(hw::TensorMap::encodedBytes);
  fp4::pipe::TensorMapType map = op.getType();
  hw::RowSets sets = fp4::pipe::rowSets(map.getLayout());
  int64_t count = sets.count();
  int64_t pitch = fp4::pipe::rowPitchOf(cast<MemRefType>(op.getBuffer().getType()));
  Value maps = createMapStorage(b, loc, bytes * count), none = i64(0);
  Value strides = integerArray(b, loc, 64, i64(count * pitch));
  Value box = integerArray(b, loc, 32, {i32(map.getColumns()), i32(map.getRows() / count)});
  for (int64_t set = 0; set < count; ++set) {
    Value behind = LLVM::AddOp::create(b, loc, rows, i64(count - 1 - set));
    Value ofSet = LLVM::UDivOp::create(b, loc, behind, i64(count));
    Value isEmpty = LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::eq, ofSet, none);
    auto unlessEmpty = [&](int64_t otherwise, int64_t empty) {
      return LLVM::SelectOp::create(b, loc, isEmpty, i64(empty), i64(otherwise));
    };
    int64_t shift = sets.shift(set), columns = *op.getColumns();
    Value begin = LLVM::GEPOp::create(b, loc, first.getType(), b.getI8Type(), first,
                                      ValueRange(unlessEmpty(set * pitch - 4 * shift, 0)));
    Value dims = integerArray(b, loc, 64,
                              {unlessEmpty(columns + shift, columns),
                               LLVM::SelectOp::create(b, loc, isEmpty, i64(1), ofSet).getResult()});
    MapForm form = {mapTypeOf(map), hw::SwizzleMode::None, /*rank=*/2, dims, strides, {box}};
    encodeMap(b, op, placeOfMap(b, loc, maps, set), begin, form, box);
  }
  return maps;
}

/// The form of planes of rows of elements: {columns, rows of a plane, planes}.
MapForm formOfPlanes(OpBuilder &b, Location loc, MemRefType type, MemRefDescriptor memory,
                     fp4::pipe::TensorMapType map, int64_t columns) {
  auto i64 = [&](int64_t value) { return constantInt(b, loc, 64, value); };
  auto i32 = [&](int64_t value) { return constantInt(b, loc, 32, value); };
  ArrayRef<int64_t> buffer = type.getShape(), box = map.getShape();
  Value plane = type.getLayout().isIdentity() ? i64(fp4::pipe::rowPitchOf(type) * buffer[1])
                                              : strideOf(b, loc, type, memory, /*dimension=*/0);
  return {
      mapTypeOf(map),
      fp4::pipe::swizzleMode(map.getLayout()),
      /*rank=*/3,
      integerArray(b, loc, 64, {i64(columns), i64(buffer[1]), firstSizeOf(b, loc, type, memory)}),
      integerArray(b, loc, 64, {pitchOf(b, loc, type, memory), plane}),
      {integerArray(b, loc, 32, {i32(box[2] / elementsOfUnit(map)), i32(box[1]), i32(box[0])})}};
}

/// The form of lists that end with each row of a matrix: {columns, rows, lists}. Lists are a row
/// apart, and the first one, which has no row of the matrix, ends in front of it: `first` moves.
MapForm formOfLists(OpBuilder &b, Location loc, MemRefType type, MemRefDescriptor buffer,
                    fp4::pipe::TensorMapType map, int64_t columns, Value &first) {
  auto i64 = [&](int64_t value) { return constantInt(b, loc, 64, value); };
  auto i32 = [&](int64_t value) { return constantInt(b, loc, 32, value); };
  Value pitch = pitchOf(b, loc, type, buffer), rows = firstSizeOf(b, loc, type, buffer);
  Value lists = LLVM::AddOp::create(b, loc, rows, i64(1));
  Value bytes = LLVM::MulOp::create(b, loc, rows, pitch);
  Value back = LLVM::SubOp::create(b, loc, i64(0), bytes);
  first = LLVM::GEPOp::create(b, loc, first.getType(), b.getI8Type(), first, ValueRange(back));
  ArrayRef<int64_t> box = map.getShape();
  return {mapTypeOf(map),
          fp4::pipe::swizzleMode(map.getLayout()),
          /*rank=*/3,
          integerArray(b, loc, 64, {i64(columns), rows, lists}),
          integerArray(b, loc, 64, {pitch, pitch}),
          {integerArray(b, loc, 32, {i32(box[2]), i32(box[1]), i32(1)})}};
}

/// The form of scale tiles of 512 bytes in rows: {words of a tile, tiles of a row, rows}.
MapForm formOfScales(OpBuilder &b, Location loc, MemRefType type, MemRefDescriptor buffer,
                     fp4::pipe::TensorMapType box) {
  constexpr int64_t words = fp4::pipe::kScaleBlockBytes / 4;
  auto i64 = [&](int64_t value) { return constantInt(b, loc, 64, value); };
  auto i32 = [&](int64_t value) { return constantInt(b, loc, 32, value); };
  Value rows = firstSizeOf(b, loc, type, buffer), columns = i64(type.getDimSize(1)),
        pitch = i64(type.getDimSize(1) * fp4::pipe::kScaleBlockBytes);
  if (type.isDynamicDim(1)) {
    columns = buffer.size(b, loc, 1);
    pitch = LLVM::MulOp::create(b, loc, columns, i64(fp4::pipe::kScaleBlockBytes));
  }
  return {hw::TensorMapType::UInt32,
          hw::SwizzleMode::None,
          /*rank=*/3,
          integerArray(b, loc, 64, {i64(words), columns, rows}),
          integerArray(b, loc, 64, {i64(fp4::pipe::kScaleBlockBytes), pitch}),
          {integerArray(b, loc, 32,
                        {i32(words), i32(box.getColumns() / fp4::pipe::kScaleBlockColumns),
                         i32(box.getRowBlocks())})}};
}

struct MakeTensorMapLowering : ConvertOpToLLVMPattern<fp4::pipe::MakeTensorMapOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(fp4::pipe::MakeTensorMapOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = cast<MemRefType>(op.getBuffer().getType());
    MemRefDescriptor buffer(adaptor.getBuffer());
    fp4::pipe::TensorMapType map = op.getType();
    int64_t known = llvm::divideCeil(int64_t(op.getColumns().value_or(0)), elementsOfUnit(map));
    Value columns = op.getColumns() ? constantInt(rewriter, loc, 64, known)
                                    : unitsOf(rewriter, loc, adaptor.getDynamicColumns(), map);
    Value first = buffer.bufferPtr(rewriter, loc, *getTypeConverter(), type);
    if (fp4::pipe::rowSets(map.getLayout()).count() > 1) {
      Value rows = firstSizeOf(rewriter, loc, type, buffer);
      rewriter.replaceOp(op, encodeSets(rewriter, op, first, rows));
      return success();
    }
    MapForm form = map.isScales()    ? formOfScales(rewriter, loc, type, buffer, map)
                   : op.isOfLists()  ? formOfLists(rewriter, loc, type, buffer, map, known, first)
                   : map.hasPlanes() ? formOfPlanes(rewriter, loc, type, buffer, map, known)
                                     : formOfRows(rewriter, loc, type, buffer, map, columns);
    rewriter.replaceOp(op, encodeMaps(rewriter, op, first, form));
    return success();
  }

private:
  /// The units of memory that `columns` elements of a map take.
  static Value unitsOf(OpBuilder &b, Location loc, Value columns, fp4::pipe::TensorMapType map) {
    int64_t elements = elementsOfUnit(map);
    return elements == 1 ? columns
                         : LLVM::UDivOp::create(b, loc, columns, constantInt(b, loc, 64, elements))
                               .getResult();
  }
};

struct ExpectSizeLowering : ConvertOpToLLVMPattern<fp4::pipe::ExpectSizeOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(fp4::pipe::ExpectSizeOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    ModuleOp module = moduleOf(op);
    fp4::callRuntime(rewriter, loc, module, RuntimeFunction::ExpectSize,
                     {fp4::stringAddress(rewriter, loc, module, "fp4_text", op.getWhat()),
                      adaptor.getFound(), adaptor.getExpected(), adaptor.getExpected(),
                      fp4::stringAddress(rewriter, loc, module, "fp4_text", op.getNote())});
    rewriter.eraseOp(op);
    return success();
  }
};

struct ResultPitchLowering : ConvertOpToLLVMPattern<fp4::pipe::ResultPitchOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(fp4::pipe::ResultPitchOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Value number = constantInt(rewriter, op.getLoc(), 32, op.getNumber());
    rewriter.replaceOp(op, fp4::callRuntime(rewriter, op.getLoc(), moduleOf(op),
                                            RuntimeFunction::ResultPitch,
                                            {number, adaptor.getBytes()}));
    return success();
  }
};

} // namespace

bool fp4::isPassedByAddress(Type type) { return isa<fp4::pipe::TensorMapType>(type); }

void fp4::populatePipeHostPatterns(LLVMTypeConverter &converter, RewritePatternSet &patterns) {
  auto toPointer = [](Type type) { return LLVM::LLVMPointerType::get(type.getContext()); };
  converter.addConversion([=](fp4::pipe::GlobalType type) -> Type { return toPointer(type); });
  converter.addConversion([=](fp4::pipe::TensorMapType type) -> Type { return toPointer(type); });
  patterns.add<DeviceConstantLowering, ExpectSizeLowering, MakeTensorMapLowering,
               ResultPitchLowering, ViewLowering>(converter);
}
