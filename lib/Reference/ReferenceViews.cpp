//===- ReferenceViews.cpp - Operations that only move elements ------------===//

#include "Interpreter.h"

#include <bit>
#include <charconv>
#include <fmt/format.h>

namespace fp4::harness {
namespace {

using Shape = std::vector<int64_t>;

/// The numbers of an attribute such as "0,128".
Expected<Shape> numbers(const Step &step, const char *name, int64_t least = 0) {
  FP4_ASSIGN(auto text, step.attribute(name));
  Shape values;
  const char *at = text.data(), *end = at + text.size();
  while (at != end) {
    int64_t value = 0;
    auto [rest, error] = std::from_chars(at, end, value);
    if (error != std::errc() || value < least || (rest != end && *rest != ','))
      return step.wrong(fmt::format("expects numbers as '{}', but got '{}'", name, text));
    values.push_back(value);
    at = rest == end ? end : rest + 1;
  }
  return values;
}

/// Defines one fp32 number, spelled by its bits in decimal.
Status runScalar(Step &step) {
  FP4_ASSIGN(auto text, step.attribute("value"));
  uint32_t bits = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits);
  if (error != std::errc() || end != text.data() + text.size())
    return step.wrong(fmt::format("must have the bits of one fp32 number, but got '{}'", text));
  const float value = std::bit_cast<float>(bits);
  return step.defineFloats(0, {&value, 1});
}

/// Copies the bytes of a slice, from `at` on of one dimension after the other.
class SliceCopy {
public:
  SliceCopy(std::span<const uint8_t> source, const Shape &shape, const Shape &offsets,
            const Shape &sizes, size_t unit)
      : source_(source), shape_(shape), offsets_(offsets), sizes_(sizes), unit_(unit) {
    copy(0, 0);
  }
  const std::vector<uint8_t> &bytes() const { return bytes_; }

private:
  void copy(size_t dim, size_t index) {
    if (dim == shape_.size()) {
      const auto element = source_.subspan(index * unit_, unit_);
      bytes_.insert(bytes_.end(), element.begin(), element.end());
      return;
    }
    for (int64_t i = 0; i < sizes_[dim]; ++i)
      copy(dim + 1, index * size_t(shape_[dim]) + size_t(offsets_[dim] + i));
  }

  std::span<const uint8_t> source_;
  const Shape &shape_, &offsets_, &sizes_;
  size_t unit_;
  std::vector<uint8_t> bytes_;
};

/// Scales offsets and sizes of elements to those of the buffer: of packed pairs, of tiles.
void toBuffer(const Type &type, Shape &offsets, Shape &sizes) {
  auto scale = [&](size_t dim, int64_t unit) {
    offsets[dim] /= unit;
    sizes[dim] = (sizes[dim] + unit - 1) / unit;
  };
  if (type.layout == Layout::Tiled128x4) {
    scale(0, 128);
    scale(1, 4);
    offsets.push_back(0);
    sizes.push_back(512);
  } else if (type.element == ElementType::F4E2M1FN) {
    scale(offsets.size() - 1, 2);
  }
}

} // namespace

/// Defines a number, or a constant by the name of the bytes that the code carries.
Status runConstant(Step &step) {
  FP4_TRY(step.expect(0, 1));
  if (!step.op.attributes.contains("symbol"))
    return runScalar(step);
  FP4_ASSIGN(auto symbol, step.attribute("symbol"));
  if (!step.data)
    return step.wrong("has bytes that are not at hand");
  FP4_ASSIGN(auto address, step.data(symbol));
  return step.define(0, {static_cast<const uint8_t *>(address), step.types[0].bufferBytes()});
}

/// Defines the same elements in the same order.
Status runReshape(Step &step) {
  FP4_TRY(step.expect(1, 1));
  return step.define(0, bytesOf(*step.operands[0]));
}

Status runSlice(Step &step) {
  FP4_TRY(step.expect(1, 1));
  const Type &type = step.operands[0]->type;
  FP4_ASSIGN(auto offsets, numbers(step, "static_offsets"));
  FP4_ASSIGN(auto sizes, numbers(step, "static_sizes", /*least=*/-1)); // -1: all of the rest
  bool fits = offsets.size() == type.shape.size() && sizes.size() == type.shape.size();
  for (size_t dim = 0; fits && dim < sizes.size(); ++dim)
    sizes[dim] = sizes[dim] < 0 ? type.shape[dim] - offsets[dim] : sizes[dim];
  for (size_t dim = 0; fits && dim < sizes.size(); ++dim)
    fits = offsets[dim] <= type.shape[dim] && sizes[dim] <= type.shape[dim] - offsets[dim];
  if (!fits)
    return step.wrong(fmt::format("must take a part of {}", type.str()));
  toBuffer(type, offsets, sizes);
  const Shape shape = type.bufferShape();
  return step.define(
      0, SliceCopy(bytesOf(*step.operands[0]), shape, offsets, sizes, type.storageBytes()).bytes());
}

/// Concatenates tensors of whole bytes along a dimension.
Status runConcat(Step &step) {
  FP4_ASSIGN(auto dim, step.integer("dim", 0));
  const Type &type = step.types.at(0);
  const size_t rank = type.shape.size();
  if (dim >= rank || type.layout == Layout::Tiled128x4 || type.element == ElementType::F4E2M1FN)
    return step.wrong(fmt::format("cannot be computed for {}", type.str()));
  uint64_t outer = 1; // indices of the dimensions before, each with a run of every operand
  for (size_t i = 0; i < dim; ++i)
    outer *= static_cast<uint64_t>(type.shape[i]);
  std::vector<uint8_t> bytes;
  for (uint64_t at = 0; at < outer; ++at)
    for (const Tensor *operand : step.operands) {
      std::span<const uint8_t> all = bytesOf(*operand);
      const uint64_t run = all.size() / outer;
      bytes.insert(bytes.end(), all.begin() + int64_t(at * run),
                   all.begin() + int64_t((at + 1) * run));
    }
  return step.define(0, bytes);
}

/// Gathers rows of a matrix of whole bytes by their numbers: zeros for a negative number.
Status runGather(Step &step) {
  FP4_TRY(step.expect(2, 1));
  FP4_ASSIGN(auto size, step.matrix(0));
  const Tensor &source = *step.operands[0], &numbers = *step.operands[1];
  if (step.attributeOr("gather_dims", "") != "0" || numbers.type.element != ElementType::I64 ||
      step.types[0].shape.size() != 2)
    return step.wrong(fmt::format("cannot be computed for {}", step.types[0].str()));
  const uint64_t run = size.second * source.type.storageBytes();
  std::vector<uint8_t> bytes;
  for (const int64_t row : numbers.as<int64_t>()) {
    if (row < 0) {
      bytes.insert(bytes.end(), run, 0);
      continue;
    }
    if (uint64_t(row) >= size.first)
      return makeError(
          ErrorKind::Usage,
          fmt::format("'tensor.gather' reads row {}, but its source has {} rows", row, size.first),
          "row numbers begin at 0, and rows with a negative number are zero");
    std::span<const uint8_t> from = bytesOf(source).subspan(uint64_t(row) * run, run);
    bytes.insert(bytes.end(), from.begin(), from.end());
  }
  return step.define(0, bytes);
}

/// Scatters rows by their numbers into memory whose other rows are unspecified. A row with a
/// negative number is left out.
Status runScatter(Step &step) {
  FP4_TRY(step.expect(2, 1));
  FP4_ASSIGN(auto size, step.matrix(0));
  const Tensor &numbers = *step.operands[1];
  const Type &type = step.types[0];
  std::span<const uint8_t> from = bytesOf(*step.operands[0]);
  const uint64_t rows = type.shape.size() == 2 ? uint64_t(type.shape[0]) : 0;
  if (step.attributeOr("scatter_dims", "") != "0" || numbers.type.element != ElementType::I64 ||
      type.layout == Layout::Tiled128x4 || rows == 0 || size.first != numbers.type.elements())
    return step.wrong(fmt::format("cannot be computed for {}", type.str()));
  const uint64_t run = type.bufferBytes() / rows;
  std::vector<uint8_t> bytes(type.bufferBytes());
  std::vector<bool> isWritten(rows);
  for (uint64_t i = 0; i < size.first; ++i) {
    const int64_t row = numbers.as<int64_t>()[i];
    if (row < 0)
      continue;
    if (uint64_t(row) >= rows || isWritten[size_t(row)])
      return makeError(ErrorKind::Usage,
                       fmt::format("'tensor.scatter' must write each row of {} at most once, but "
                                   "row number {} is {}",
                                   rows, i, row),
                       "give rows that are not to be written a negative number");
    isWritten[size_t(row)] = true;
    std::ranges::copy(from.subspan(i * run, run), bytes.begin() + int64_t(uint64_t(row) * run));
  }
  FP4_TRY(step.define(0, bytes));
  for (uint64_t row = 0; row < rows; ++row)
    if (!isWritten[size_t(row)])
      step.results[0].unspecified.push_back({row * run, run});
  return {};
}

/// Defines a place for results, which nobody reads.
Status runEmpty(Step &step) {
  FP4_TRY(step.expect(0, 1));
  return step.define(0, std::vector<uint8_t>(step.types[0].bufferBytes()));
}

/// Transposes matrices of whole bytes.
Status runTranspose(Step &step) {
  FP4_TRY(step.expect(1, 1));
  FP4_ASSIGN(auto permutation, numbers(step, "permutation"));
  FP4_ASSIGN(auto size, step.matrix(0));
  const Type &type = step.operands[0]->type;
  if (permutation != Shape{1, 0} || type.element == ElementType::F4E2M1FN)
    return step.wrong(fmt::format("cannot be computed for {}", type.str()));
  const auto [rows, columns] = size;
  const size_t unit = type.storageBytes();
  std::span<const uint8_t> from = bytesOf(*step.operands[0]);
  std::vector<uint8_t> bytes(from.size());
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column)
      std::copy_n(from.begin() + long((row * columns + column) * unit), unit,
                  bytes.begin() + long((column * rows + row) * unit));
  return step.define(0, bytes);
}

} // namespace fp4::harness
