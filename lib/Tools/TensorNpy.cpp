//===- TensorNpy.cpp - Tensors from and to .npy arrays --------------------===//

#include "fp4/Numerics/Float16.h"
#include "fp4/Tools/Tensor.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fp4::tools {
namespace {

/// The file types a tensor element may be read from; the first is the one it is written as.
std::vector<std::string> acceptedDescrs(ElementType type) {
  switch (type) {
  case ElementType::BF16:
    return {"<f4", "<u2", "<V2", "|V2"};
  case ElementType::F16:
    return {"<f2", "<f4"};
  case ElementType::F32:
    return {"<f4"};
  case ElementType::I64:
    return {"<i8", "<u8"};
  default:
    return {"|u1"};
  }
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + (shape[i] < 0 ? std::string("any") : std::to_string(shape[i]));
  return text + (shape.size() == 1 ? ",)" : ")");
}

/// Matches the file's shape with the buffer's and returns the type with its dynamic size fixed.
Expected<Type> resolveShape(const NpyArray &array, const Type &type, const std::string &name) {
  std::vector<int64_t> expected = type.bufferShape();
  bool matches = expected.size() == array.shape.size();
  for (size_t i = 0; matches && i < expected.size(); ++i)
    matches = expected[i] < 0 || expected[i] == array.shape[i];
  bool tiledDynamic = type.isDynamic() && type.layout == Layout::Tiled128x4;
  if (!matches || tiledDynamic)
    return makeError(ErrorKind::Usage,
                     fmt::format("input '{}' expects an array of shape {} for {}, but got {}", name,
                                 shapeText(expected), type.str(), array.str()),
                     tiledDynamic ? "fix its rows with --dim " + name + "=ROWS" : "");
  Type resolved = type;
  const bool packed = type.element == ElementType::F4E2M1FN;
  for (size_t i = 0; i < resolved.shape.size(); ++i)
    if (resolved.shape[i] < 0)
      resolved.shape[i] = array.shape[i] * (packed && i + 1 == resolved.shape.size() ? 2 : 1);
  if (resolved.elements() == 0)
    return makeError(ErrorKind::Usage,
                     fmt::format("input '{}' must not be empty, but got {}", name, array.str()));
  return resolved;
}

} // namespace

Expected<Tensor> fromNpy(const NpyArray &array, const Type &type, const std::string &name) {
  std::vector<std::string> accepted = acceptedDescrs(type.element);
  if (std::find(accepted.begin(), accepted.end(), array.descr) == accepted.end())
    return makeError(ErrorKind::Usage,
                     fmt::format("input '{}' expects element type '{}' for {}, but got {}", name,
                                 fmt::join(accepted, "' or '"), type.str(), array.str()),
                     "convert it with numpy's astype or view");
  auto resolved = resolveShape(array, type, name);
  if (!resolved)
    return tl::unexpected<Error>(resolved.error());
  Tensor tensor(*resolved);
  bool convert = array.descr == "<f4" && type.element != ElementType::F32;
  if (!convert) {
    tensor.bytes = array.data;
    return tensor;
  }
  auto out = tensor.as<uint16_t>();
  for (size_t i = 0; i < out.size(); ++i) {
    float value;
    std::memcpy(&value, array.data.data() + i * sizeof(value), sizeof(value));
    out[i] = type.element == ElementType::BF16 ? numerics::encodeBF16(value)
                                               : numerics::encodeF16(value);
  }
  return tensor;
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

} // namespace fp4::tools
