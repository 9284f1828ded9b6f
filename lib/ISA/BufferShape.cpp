// The shape of a tensor in memory.
#include "fp4/ISA/BufferShape.h"

namespace fp4::hw {

std::vector<int64_t> bufferShape(const LogicalShape &tensor, RowPitch pitch) {
  auto quotient = [](int64_t size, int64_t n) { return size < 0 ? size : quotientUp(size, n); };
  std::vector<int64_t> sizes(tensor.sizes.begin(), tensor.sizes.end());
  if (tensor.tiledScales && sizes.size() == 2)
    return {quotient(sizes[0], scaleBlockRows), quotient(sizes[1], scaleBlockColumns),
            scaleBlockBytes};
  if (tensor.elementBits != 4 || sizes.empty())
    return sizes;
  int64_t &columns = sizes.back();
  if (columns >= 0)
    columns = pitch == RowPitch::Padded ? paddedRowBytes(columns) : denseRowBytes(columns);
  return sizes;
}

} // namespace fp4::hw
