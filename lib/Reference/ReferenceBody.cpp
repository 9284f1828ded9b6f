//===- ReferenceBody.cpp - Grouped GEMMs with an epilogue region ----------===//
//
// The epilogue region of a grouped GEMM, applied to the sums of each group. An epilogue region
// reads numbers of groups, and rows of no group have no element, so that operations on whole
// tensors cannot describe such a GEMM.
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"

#include "fp4/Numerics/Elementwise.h"
#include "fp4/Numerics/Epilogue.h"
#include "fp4/Numerics/QuantizeMatrix.h"

#include <fmt/format.h>

namespace fp4::harness {
namespace {

/// An input of an epilogue region: numbers, and the distances in them of a row, a column and a
/// group.
struct BodyInput {
  std::vector<float> values;
  uint64_t ofRow = 0, ofColumn = 0, ofGroup = 0;
};

/// Reads an input: a scalar, M x 1, 1 x N, M x N, or, for groups, G x 1 x 1 or G x 1 x N.
Expected<BodyInput> inputOf(const Step &step, const Tensor &tensor, const GemmSums &sums) {
  BodyInput input{floats(tensor)};
  const std::vector<int64_t> &shape = tensor.type.shape;
  if (shape.empty())
    return input;
  const bool isOfGroups = shape.size() == 3;
  const auto columns = uint64_t(shape.back()), lines = uint64_t(shape.front());
  const uint64_t mostLines = isOfGroups ? sums.groups.size() : sums.rows;
  if (input.values.size() != lines * columns || (columns != 1 && columns != sums.columns) ||
      (lines != 1 && lines != mostLines))
    return step.wrong(
        fmt::format("has an input of its epilogue region of type {}", tensor.type.str()));
  input.ofColumn = columns == 1 ? 0 : 1;
  (isOfGroups ? input.ofGroup : input.ofRow) = lines == 1 ? 0 : columns;
  return input;
}

/// The epilogue region, and the sums of each GEMM that it reads.
struct Body {
  numerics::ElementProgram program;
  std::vector<GemmSums> products;
  std::vector<BodyInput> inputs;

  /// The results, zero in rows of no group.
  std::vector<float> elements() const;
};

std::vector<float> Body::elements() const {
  const GemmSums &first = products.front();
  std::vector<float> result(first.values.size()), values(program.numValues());
  for (size_t group = 0; group < first.groups.size(); ++group) {
    const auto [begin, rows] = first.groups[group];
    for (uint64_t row = begin; row < begin + rows; ++row)
      for (uint64_t column = 0; column < first.columns; ++column) {
        const uint64_t at = row * first.columns + column;
        auto value = values.begin();
        for (const GemmSums &product : products)
          *value++ = product.values[at];
        for (const BodyInput &input : inputs)
          *value++ =
              input.values[row * input.ofRow + column * input.ofColumn + group * input.ofGroup];
        program.evaluate(values);
        result[at] = values[program.results.front()];
      }
  }
  return result;
}

Expected<Body> readBody(Step &step) {
  FP4_ASSIGN(auto text, step.attribute("program"));
  FP4_ASSIGN(auto program, numerics::ElementProgram::parse(text));
  FP4_ASSIGN(auto inputs, step.segment(5));
  FP4_ASSIGN(auto rhs2, step.optional(7));
  Body body{std::move(program), {}, {}};
  FP4_ASSIGN(auto first, sumsOfGemm(step, WhichGemm::First));
  body.products.push_back(std::move(first));
  if (rhs2) {
    FP4_ASSIGN(auto second, sumsOfGemm(step, WhichGemm::Second));
    body.products.push_back(std::move(second));
  }
  for (const Tensor *tensor : inputs) {
    FP4_ASSIGN(auto input, inputOf(step, *tensor, body.products.front()));
    body.inputs.push_back(std::move(input));
  }
  if (body.program.inputs != body.products.size() + body.inputs.size() ||
      body.program.results.size() != 1)
    return step.wrong("has an epilogue region that does not take its sums and inputs");
  return body;
}

/// Puts the part of one group into the bytes of a matrix, from `at` on.
void put(std::vector<uint8_t> &all, uint64_t at, const std::vector<uint8_t> &part) {
  std::copy(part.begin(), part.end(), all.begin() + int64_t(at));
}

/// Defines codes and scales of the rows of each group, as results `first` and the next. Tiled
/// scales are a list of tiles, in which each group begins anew.
Status defineCodes(Step &step, size_t first, const GemmSums &sums,
                   std::span<const float> elements) {
  FP4_ASSIGN(auto text, step.attribute("quantize_recipe"));
  FP4_ASSIGN(auto recipe, numerics::parseRecipe(text));
  FP4_ASSIGN(auto amax, step.optional(10));
  const bool isTiled = step.types[first + 1].layout == Layout::Tiled128x4;
  std::vector<uint8_t> codes(step.types[first].bufferBytes()),
      scales(step.types[first + 1].bufferBytes());
  const uint64_t rows = std::max<uint64_t>(1, sums.rows), pitch = codes.size() / rows,
                 pitchOfScales = scales.size() / rows;
  numerics::QuantizeOptions options;
  options.rowwise = numerics::SideOptions{};
  if (amax)
    options.rowwise->amax = scalarOf(*amax);
  uint64_t used = 0; // bytes of the list
  for (const RowRange &group : sums.groups) {
    FP4_ASSIGN(auto pair,
               numerics::quantizeMatrix(
                   recipe, elements.subspan(group.begin * sums.columns, group.rows * sums.columns),
                   group.rows, sums.columns, options));
    const numerics::QuantizedSide &side = *pair.rowwise;
    std::vector<uint8_t> laidOut = side.scales; // f32 scales follow their rows
    if (!numerics::hasF32Scales(recipe.format)) {
      FP4_ASSIGN(laidOut, numerics::layOutScales(side.scales, side.rows, side.blocks,
                                                 isTiled ? numerics::ScaleLayout::Tiled128x4
                                                         : numerics::ScaleLayout::Linear));
    }
    put(codes, group.begin * pitch, side.data);
    put(scales, isTiled ? used : group.begin * pitchOfScales, laidOut);
    used += laidOut.size();
  }
  FP4_TRY(step.define(first, codes));
  FP4_TRY(step.define(first + 1, scales));
  if (isTiled && step.op.attributes.contains("unspecified_rows"))
    step.results[first + 1].unspecified = {{used, scales.size() - used}};
  return {};
}

} // namespace

Status runGemmWithBody(Step &step) {
  FP4_ASSIGN(auto body, readBody(step));
  const GemmSums &sums = body.products.front();
  std::vector<float> elements = body.elements();
  const bool quantizes = step.op.attributes.contains("quantize_recipe");
  const size_t derived = quantizes ? 2 : 0, kept = step.results.size() - derived;
  if (kept) { // else the body alone rounds, and codes may have a type of floats
    const numerics::EpilogueProgram rounding(/*hasAlpha=*/false, {},
                                             floatType(step.types[0].element));
    for (float &element : elements)
      element = rounding.apply(element, 1);
  }
  if (kept > 1)
    return step.wrong("has more results than elements, codes and scales");
  if (kept)
    FP4_TRY(step.defineFloats(0, elements));
  if (quantizes)
    FP4_TRY(defineCodes(step, kept, sums, elements));
  if (!step.op.attributes.contains("unspecified_rows"))
    return {};
  for (ReferenceValue &result : step.results)
    if (result.value.type.layout == Layout::Linear)
      result.unspecified = bytesOfNoGroup(sums.groups, sums.rows, result.value.bytes.size());
  return {};
}

} // namespace fp4::harness
