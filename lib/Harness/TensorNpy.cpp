//===- TensorNpy.cpp - Tensors from and to .npy arrays --------------------===//
//
// Floating-point files convert to the type of the argument, rounded once, to nearest even. 8-bit
// and 4-bit types come as bytes; ml_dtypes saves them as '<V1', one element per byte.
//
//===----------------------------------------------------------------------===//

#include "fp4/Harness/TensorNpy.h"
#include "fp4/ISA/BufferShape.h"
#include "fp4/ISA/ScaleLayout.h"

#include "fp4/Numerics/E2M1.h"
#include "fp4/Numerics/E4M3.h"
#include "fp4/Numerics/Float16.h"
#include "fp4/Numerics/QuantizeMatrix.h"
#include "fp4/Numerics/UE8M0.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fp4::harness {
namespace {

/// The file types a tensor element may be read from; the first is the one for writing.
std::vector<std::string> acceptedDescrs(ElementType type) {
  switch (type) {
  case ElementType::BF16:
    return {"<f4", "<f2", "<f8", "<u2", "<V2", "|V2"};
  case ElementType::F16:
    return {"<f2", "<f4", "<f8"};
  case ElementType::F32:
    return {"<f4", "<f2", "<f8", "<V2", "|V2"};
  case ElementType::I64:
    return {"<i8", "<u8"};
  case ElementType::I32:
    return {"<i4", "<u4"};
  default:
    return {"|u1", "<V1", "|V1"};
  }
}

template <typename T> T element(const NpyArray &array, size_t i) {
  T value;
  std::memcpy(&value, array.data.data() + i * sizeof(value), sizeof(value));
  return value;
}

bool isV1(const NpyArray &array) { return array.descr == "<V1" || array.descr == "|V1"; }
bool isV2(const NpyArray &array) { return array.descr == "<V2" || array.descr == "|V2"; }

/// Element `i` of a file of floats; of 64 bits so that a second rounding to `type` does no harm.
float floatAt(const NpyArray &array, size_t i, ElementType type) {
  if (array.descr == "<f8")
    return type == ElementType::F32 ? static_cast<float>(element<double>(array, i))
                                    : numerics::stickyFloat(element<double>(array, i));
  if (array.descr == "<f2")
    return numerics::decodeF16(element<uint16_t>(array, i));
  return isV2(array) ? numerics::decodeBF16(element<uint16_t>(array, i)) : element<float>(array, i);
}

/// Returns true when the bytes of the file are those of the tensor.
bool isVerbatim(const NpyArray &array, ElementType type) {
  switch (type) {
  case ElementType::BF16:
    return isV2(array) || array.descr == "<u2";
  case ElementType::F16:
    return array.descr == "<f2";
  case ElementType::F32:
    return array.descr == "<f4";
  case ElementType::F4E2M1FN:
    return !isV1(array);
  default:
    return true;
  }
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + (shape[i] < 0 ? std::string("any") : std::to_string(shape[i]));
  return text + (shape.size() == 1 ? ",)" : ")");
}

/// A note for tiles, which do not say how many rows and scale blocks they have.
std::string noteOfShape(const Type &type, const std::string &name) {
  if (type.layout != Layout::Tiled128x4)
    return "write the array in this shape, or say another size with --shape or --dim";
  if (type.isDynamic())
    return "tiles do not say their sizes: give M, N and K with --shape, or those of '" + name +
           "' by the names of fp4.dims with --dim";
  return "swizzle linear scales first: docs/reference/fp4-attributes.md, the layout tiled_128x4";
}

/// Matches the file's shape with the buffer's, or the tensor's where each element has a byte, and
/// returns the type with its dynamic size fixed.
Expected<Type> resolveShape(const NpyArray &array, const Type &type, const std::string &name) {
  const bool packed = type.element == ElementType::F4E2M1FN && !isV1(array);
  std::vector<int64_t> expected =
      type.element == ElementType::F4E2M1FN && !packed ? type.shape : type.bufferShape();
  bool matches = expected.size() == array.shape.size();
  for (size_t i = 0; matches && i < expected.size(); ++i)
    matches = expected[i] < 0 || expected[i] == array.shape[i];
  bool tiledDynamic = type.isDynamic() && type.layout == Layout::Tiled128x4;
  if (!matches || tiledDynamic)
    return makeError(ErrorKind::Usage,
                     fmt::format("input '{}' expects an array of shape {} for {}, but got {}", name,
                                 shapeText(expected), type.str(), array.str()),
                     noteOfShape(type, name));
  Type resolved = type;
  for (size_t i = 0; i < resolved.shape.size(); ++i)
    if (resolved.shape[i] < 0)
      resolved.shape[i] = array.shape[i] * (packed && i + 1 == resolved.shape.size() ? 2 : 1);
  return resolved;
}

bool itemsAreBytes(const NpyArray &array) {
  return isV1(array) || array.descr == "|u1" || array.descr == "<u2";
}

/// Decodes elements of 6 and 8 bits with their dequantizer under unit scales.
std::vector<float> decodeWide(numerics::BlockFormat format, std::span<const uint8_t> codes) {
  numerics::QuantizedSide side;
  side.rows = 1;
  side.columns = codes.size();
  side.blocks = codes.size() / numerics::blockSizeOf(format) + 1;
  side.packed = false;
  side.data.assign(codes.begin(), codes.end());
  side.scales.assign(side.blocks, numerics::encodeUE8M0Up(1.f));
  return *numerics::dequantizeSide(numerics::defaultRecipe(format), side);
}

/// Decodes elements of 4 bits, two to a byte.
void decodeCodes(const Tensor &tensor, std::vector<float> &values) {
  const auto bytes = tensor.as<uint8_t>();
  const uint64_t columns = tensor.type.shape.empty() ? 1 : uint64_t(tensor.type.shape.back());
  const auto rowBytes = static_cast<uint64_t>(hw::denseRowBytes(int64_t(columns)));
  for (uint64_t i = 0; i < values.size(); ++i) {
    const uint64_t row = i / columns, column = i % columns;
    values[i] =
        numerics::decodeE2M1(uint8_t(bytes[row * rowBytes + column / 2] >> (column % 2 * 4)));
  }
}

template <typename T> std::vector<float> numbersOf(const Tensor &tensor) {
  const auto numbers = tensor.as<T>();
  return {numbers.begin(), numbers.end()};
}

std::vector<float> decodeTensor(const Tensor &tensor) {
  const auto bytes = tensor.as<uint8_t>();
  std::vector<float> values(tensor.type.elements());
  switch (tensor.type.element) {
  case ElementType::F8E4M3FN:
    std::ranges::transform(bytes, values.begin(), numerics::decodeE4M3);
    return values;
  case ElementType::F8E5M2:
    return decodeWide(numerics::BlockFormat::MXFP8E5M2, bytes);
  case ElementType::F6E2M3FN:
    return decodeWide(numerics::BlockFormat::MXFP6E2M3, bytes);
  case ElementType::F6E3M2FN:
    return decodeWide(numerics::BlockFormat::MXFP6E3M2, bytes);
  case ElementType::F8E8M0FNU:
    std::ranges::transform(bytes, values.begin(), numerics::decodeUE8M0);
    return values;
  case ElementType::F4E2M1FN:
    decodeCodes(tensor, values);
    return values;
  case ElementType::BF16:
    return numerics::decodeFloats(numerics::FloatType::BF16, tensor.bytes);
  case ElementType::F16:
    return numerics::decodeFloats(numerics::FloatType::F16, tensor.bytes);
  case ElementType::F32:
    return numerics::decodeFloats(numerics::FloatType::F32, tensor.bytes);
  case ElementType::I8:
    return {bytes.begin(), bytes.end()};
  case ElementType::I64:
    return numbersOf<int64_t>(tensor);
  case ElementType::I32:
    return numbersOf<int32_t>(tensor);
  }
  return values;
}

/// Packs a byte per element to two per byte, each row by itself.
Status packCodes(const NpyArray &array, Tensor &tensor, const std::string &name) {
  const size_t columns = static_cast<size_t>(tensor.type.shape.back());
  if (array.data.empty())
    return {};
  const size_t rows = array.data.size() / columns, rowBytes = tensor.bytes.size() / rows;
  const auto *codes = reinterpret_cast<const uint8_t *>(array.data.data());
  for (size_t i = 0; i < array.data.size(); ++i)
    if (codes[i] > 15)
      return makeError(
          ErrorKind::Usage,
          fmt::format("input '{}' expects codes from 0 to 15 for {}, but got {} in row "
                      "{}, column {}",
                      name, tensor.type.str(), codes[i], i / columns, i % columns));
  for (size_t row = 0; row < rows; ++row)
    numerics::packE2M1({codes + row * columns, columns},
                       tensor.as<uint8_t>().subspan(row * rowBytes, rowBytes));
  return {};
}

/// Checks the scales behind the last scale block of a row. GEMMs multiply them by codes that are
/// zero: a NaN there would be the result.
Status checkPadding(const Tensor &tensor, const std::string &name) {
  if (tensor.type.layout != Layout::Tiled128x4)
    return {};
  const auto rows = uint64_t(tensor.type.shape[0]), blocks = uint64_t(tensor.type.shape[1]);
  const uint64_t end =
      (blocks + hw::scaleBlockColumns - 1) / hw::scaleBlockColumns * hw::scaleBlockColumns;
  for (uint64_t row = 0; row < rows; ++row)
    for (uint64_t block = blocks; block < end; ++block)
      if (uint8_t byte = tensor.as<uint8_t>()[hw::tiled128x4Offset(row, block, blocks)])
        return makeError(
            ErrorKind::Usage,
            fmt::format("input '{}' expects zeros behind the {} scales of a row for {}, but got {} "
                        "in row {}, place {}",
                        name, blocks, tensor.type.str(), byte, row, block),
            "fill the padding of tiled scales with zeros");
  return {};
}

} // namespace

Expected<Tensor> fromNpy(const NpyArray &array, const Type &type, const std::string &name) {
  std::vector<std::string> accepted = acceptedDescrs(type.element);
  if (std::find(accepted.begin(), accepted.end(), array.descr) == accepted.end())
    return makeError(ErrorKind::Usage,
                     fmt::format("input '{}' expects element type '{}' for {}, but got {}", name,
                                 fmt::join(accepted, "' or '"), type.str(), array.str()),
                     "convert it with numpy's astype or view");
  FP4_ASSIGN(auto resolved, resolveShape(array, type, name));
  Tensor tensor(resolved);
  if (isVerbatim(array, type.element)) {
    tensor.bytes = array.data;
    FP4_TRY(checkPadding(tensor, name));
    return tensor;
  }
  if (type.element == ElementType::F4E2M1FN) {
    FP4_TRY(packCodes(array, tensor, name));
    return tensor;
  }
  for (size_t i = 0; i < resolved.elements(); ++i) {
    const float value = floatAt(array, i, type.element);
    if (type.element == ElementType::F32)
      tensor.as<float>()[i] = value;
    else
      tensor.as<uint16_t>()[i] = type.element == ElementType::BF16 ? numerics::encodeBF16(value)
                                                                   : numerics::encodeF16(value);
  }
  return tensor;
}

Expected<std::vector<float>> valuesOf(const NpyArray &array, const std::string &type,
                                      const std::string &name) {
  FP4_ASSIGN(auto element, parseElementType(type.empty() ? "f32" : type));
  Type whole{array.shape, element, Layout::Linear};
  if (element == ElementType::F4E2M1FN && !isV1(array) && !array.shape.empty())
    whole.shape.back() *= 2;
  auto tensor = fromNpy(array, whole, name);
  if (!tensor && type.empty() && itemsAreBytes(array))
    tensor.error().note = "--type says what its bytes are: bf16, f8E4M3FN, f8E5M2, f8E8M0FNU, "
                          "f6E2M3FN, f6E3M2FN, f4E2M1FN";
  if (!tensor)
    return tl::unexpected<Error>(std::move(tensor.error()));
  return decodeTensor(*tensor);
}

NpyArray toNpy(const Tensor &tensor) {
  NpyArray array{acceptedDescrs(tensor.type.element).front(), tensor.type.bufferShape(), {}};
  if (tensor.type.element != ElementType::BF16) {
    array.data = tensor.bytes;
    return array;
  }
  auto bits = tensor.as<uint16_t>();
  array.data.resize(bits.size() * sizeof(float));
  for (size_t i = 0; i < bits.size(); ++i) {
    float value = numerics::decodeBF16(bits[i]);
    std::memcpy(array.data.data() + i * sizeof(value), &value, sizeof(value));
  }
  return array;
}

} // namespace fp4::harness
