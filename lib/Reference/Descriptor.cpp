//===- Descriptor.cpp - The memref descriptor of a boundary buffer --------===//

#include "fp4/Reference/Descriptor.h"

#include <algorithm>

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
