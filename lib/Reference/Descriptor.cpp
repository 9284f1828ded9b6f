//===- Descriptor.cpp - The memref descriptor of a boundary buffer --------===//

#include "fp4/Reference/Descriptor.h"

#include "fp4/ISA/BufferShape.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fp4::harness {
using namespace descriptor;

size_t descriptorWords(const Type &type) { return 3 + 2 * type.bufferShape().size(); }

std::vector<uint64_t> makeDescriptor(const Type &type, uint64_t address) {
  std::vector<int64_t> shape = type.bufferShape();
  std::vector<uint64_t> words(kSizes + 2 * shape.size());
  words[kAllocated] = words[kAligned] = address;
  uint64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    words[kSizes + i] = uint64_t(shape[i]);
    words[kSizes + shape.size() + i] = stride;
    stride *= uint64_t(shape[i]);
  }
  return words;
}

namespace {

tl::unexpected<Error> wrongStrides(const Type &type, const Strides &strides, const char *must) {
  return makeError(ErrorKind::Usage,
                   fmt::format("strides of {} must {}, but got ({})", type.str(), must,
                               fmt::join(strides, ", ")),
                   "pass a copy, or a slice of a tensor whose rows are padded to 16 bytes");
}

/// Bytes of the logical stride of `dimension`; nothing where it is no multiple of 16.
std::optional<int64_t> bytesOfStride(const Type &type, const Strides &strides, size_t dimension) {
  const int64_t perByte = type.element == ElementType::F4E2M1FN ? 2 : 1,
                stride = strides[dimension];
  if (stride < 0 || stride > (int64_t(1) << 40) || stride % perByte)
    return {};
  const int64_t bytes = stride / perByte * type.storageBytes();
  return bytes % kStrideBytes ? std::nullopt : std::optional(bytes);
}

} // namespace

Expected<std::vector<uint64_t>> makeDescriptor(const Type &type, const Strides &strides) {
  std::vector<uint64_t> words = makeDescriptor(type, 0);
  if (strides.empty())
    return words;
  const size_t rank = type.shape.size();
  if (type.layout != Layout::Linear || rank < 2 || strides.size() != rank)
    return wrongStrides(type, strides, "be those of a linear matrix or batch");
  if (strides.back() != 1 && type.shape.back() != 1)
    return wrongStrides(type, strides, "keep the elements of a row together");
  const int64_t rowBytes = int64_t(words[kSizes + rank - 1]) * type.storageBytes();
  for (size_t dimension = 0; dimension + 1 < rank; ++dimension) {
    auto bytes = type.shape[dimension] <= 1
                     ? std::optional(hw::quotientUp(rowBytes, kStrideBytes) * kStrideBytes)
                     : bytesOfStride(type, strides, dimension);
    if (!bytes)
      return wrongStrides(type, strides, "be multiples of 16 bytes");
    if (*bytes < rowBytes)
      return wrongStrides(type, strides, "be at least as long as a row");
    words[kSizes + rank + dimension] = uint64_t(*bytes) / type.storageBytes();
  }
  return words;
}

std::vector<MatrixRows> matricesOf(const Type &type, const std::vector<uint64_t> &words) {
  const size_t rank = (words.size() - kSizes) / 2;
  const uint64_t element = type.storageBytes(), *sizes = &words[kSizes], *strides = sizes + rank;
  MatrixRows matrix{0, 0, sizes[rank - 2], sizes[rank - 1] * element, strides[rank - 2] * element};
  std::vector<MatrixRows> matrices;
  for (uint64_t i = 0; i < (rank > 2 ? sizes[0] : 1); ++i) {
    matrices.push_back(matrix);
    matrix.dense += matrix.rows * matrix.width;
    matrix.offset += strides[0] * element;
  }
  return matrices;
}

uint64_t stridedBytes(const Type &type, const std::vector<uint64_t> &words) {
  uint64_t end = 0;
  for (const MatrixRows &matrix : matricesOf(type, words))
    if (matrix.rows)
      end = std::max(end, matrix.offset + (matrix.rows - 1) * matrix.pitch + matrix.width);
  return end;
}

uint64_t descriptorAddress(const Type &type, const uint64_t *words) {
  return words[kAligned] + words[kOffset] * type.storageBytes();
}

Expected<RowPitch> rowPitch(const Type &type, const uint64_t *words) {
  const std::vector<uint64_t> dense = makeDescriptor(type, 0);
  const size_t rank = (dense.size() - kSizes) / 2;
  const uint64_t *strides = words + kSizes + rank;
  if (std::equal(strides, strides + rank, dense.begin() + ptrdiff_t(kSizes + rank)))
    return RowPitch{1, type.bufferBytes(), type.bufferBytes()};
  if (rank != 2 || strides[1] != 1)
    return makeError(ErrorKind::Usage, "strides that are not row-major");
  const uint64_t element = type.storageBytes();
  return RowPitch{dense[kSizes], dense[kSizes + 1] * element, strides[0] * element};
}

} // namespace fp4::harness
