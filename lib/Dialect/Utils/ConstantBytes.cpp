//===- ConstantBytes.cpp - Constant tensors as the bytes of their buffers -===//

#include "fp4/Dialect/Utils/ConstantBytes.h"

#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/ISA/BufferShape.h"
#include "fp4/Numerics/ScaleMatrix.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

static bool isPacked(RankedTensorType type) { return isa<Float4E2M1FNType>(type.getElementType()); }

static uint64_t elementBytes(RankedTensorType type) {
  return llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

/// Bytes of dense rows of two elements per byte.
static uint64_t packedBytes(RankedTensorType type) {
  int64_t columns = type.getShape().back();
  return columns ? type.getNumElements() / columns * fp4::hw::denseRowBytes(columns) : 0;
}

/// The bytes that the attribute holds: of all elements, or of the one that they all are. Nothing
/// where they are elsewhere.
static std::optional<ArrayRef<char>> rawBytes(ElementsAttr value) {
  if (auto dense = dyn_cast<DenseElementsAttr>(value))
    return dense.getRawData();
  auto resource = dyn_cast<DenseResourceElementsAttr>(value);
  AsmResourceBlob *blob = resource ? resource.getRawHandle().getBlob() : nullptr;
  return blob ? std::optional(blob->getData()) : std::nullopt;
}

static bool hasBuffer(RankedTensorType type) {
  return type && fp4::userBufferType(type) && !llvm::is_contained(type.getShape(), 0);
}

/// Bytes of a constant, which a program holds several times while it is compiled.
static constexpr uint64_t kMaxConstantBytes = uint64_t(1) << 31;

static bool fits(RankedTensorType type) {
  uint64_t bytes = elementBytes(type);
  for (int64_t extent : type.getShape())
    bytes = llvm::SaturatingMultiply(bytes, uint64_t(extent));
  return bytes <= kMaxConstantBytes;
}

static bool isWhole(ElementsAttr value, RankedTensorType type, ArrayRef<char> bytes) {
  return isa<DenseElementsAttr>(value) ||
         bytes.size() == type.getNumElements() * elementBytes(type) ||
         (isPacked(type) && bytes.size() == packedBytes(type));
}

bool fp4::hasConstantBytes(ElementsAttr value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  std::optional<ArrayRef<char>> bytes = rawBytes(value);
  return hasBuffer(type) && fits(type) && bytes && isWhole(value, type, *bytes);
}

LogicalResult fp4::verifyConstant(ElementsAttr value, function_ref<InFlightDiagnostic()> emitError) {
  if (hasConstantBytes(value))
    return success();
  InFlightDiagnostic diagnostic = emitError();
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!hasBuffer(type)) {
    diagnostic << "must be a tensor with a device buffer, but got " << value.getType();
    diagnostic.attachNote() << "buffers exist for bf16, f16, f32, i32, i64, f4E2M1FN, f8E4M3FN and "
                               "f8E8M0FNU, and none for tensors without elements";
  } else if (!fits(type)) {
    diagnostic << "must have at most " << kMaxConstantBytes << " bytes, but got " << type;
    diagnostic.attachNote() << "make the tensor an argument";
  } else if (std::optional<ArrayRef<char>> bytes = rawBytes(value)) {
    diagnostic << "must have a blob of " << type.getNumElements() * elementBytes(type)
               << " bytes for " << type << ", but got " << bytes->size();
    if (isPacked(type))
      diagnostic.attachNote() << "or of " << packedBytes(type)
                              << ": two elements per byte, even k in the low nibble";
  } else {
    diagnostic << "has elements that are not there";
    diagnostic.attachNote() << "a dense_resource needs its blob in the dialect_resources of the "
                               "file; other constants must be dense";
  }
  return diagnostic;
}

/// One code after the other, from either form.
static std::vector<uint8_t> elements(ElementsAttr value, RankedTensorType type) {
  ArrayRef<char> bytes = *rawBytes(value);
  uint64_t count = type.getNumElements() * elementBytes(type);
  std::vector<uint8_t> all;
  all.reserve(count);
  if (auto dense = dyn_cast<DenseElementsAttr>(value); dense && dense.isSplat()) {
    while (all.size() < count)
      all.insert(all.end(), bytes.begin(), bytes.end());
    return all;
  }
  if (bytes.size() == count) {
    all.assign(bytes.begin(), bytes.end());
    return all;
  }
  int64_t columns = type.getShape().back(), rowBytes = fp4::hw::denseRowBytes(columns);
  for (size_t row = 0; row < bytes.size(); row += rowBytes)
    for (int64_t k = 0; k < columns; ++k)
      all.push_back(static_cast<uint8_t>(bytes[row + k / 2]) >> (k % 2 * 4) & 0xF);
  return all;
}

/// Rows of codes, two to a byte, every `pitch` bytes.
static std::vector<uint8_t> pack(ArrayRef<uint8_t> codes, int64_t columns, int64_t pitch) {
  size_t rows = codes.size() / columns;
  std::vector<uint8_t> packed(rows * pitch);
  for (size_t row = 0; row < rows; ++row)
    for (int64_t k = 0; k < columns; ++k)
      packed[row * pitch + k / 2] |= (codes[row * columns + k] & 0xF) << (k % 2 * 4);
  return packed;
}

std::vector<uint8_t> fp4::constantBytes(ElementsAttr value, MemRefType buffer) {
  auto type = cast<RankedTensorType>(value.getType());
  std::vector<uint8_t> all = elements(value, type);
  if (isPacked(type))
    return pack(all, type.getShape().back(), buffer.getShape().back());
  if (!scaleLayout(type))
    return all;
  return *numerics::layOutScales(all, type.getDimSize(0), type.getDimSize(1),
                                 numerics::ScaleLayout::Tiled128x4);
}

std::string fp4::constantSymbol(ArrayRef<uint8_t> bytes) {
  llvm::XXH128_hash_t hash = llvm::xxh3_128bits(bytes);
  return (kConstantPrefix + llvm::utohexstr(hash.high64, /*LowerCase=*/true, 16) +
          llvm::utohexstr(hash.low64, /*LowerCase=*/true, 16))
      .str();
}

LLVM::GlobalOp fp4::constantGlobal(OpBuilder &builder, ModuleOp module, ArrayRef<uint8_t> bytes) {
  std::string symbol = constantSymbol(bytes);
  if (auto global = module.lookupSymbol<LLVM::GlobalOp>(symbol))
    return global;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  StringRef text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  return LLVM::GlobalOp::create(
      builder, module.getLoc(), LLVM::LLVMArrayType::get(builder.getI8Type(), bytes.size()),
      /*isConstant=*/true, LLVM::Linkage::External, symbol, builder.getStringAttr(text),
      /*alignment=*/32);
}
