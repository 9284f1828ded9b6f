//===- ReferenceBody.cpp - Products of groups with a body, on the host ----===//
//
// What becomes of the sums of each group. A body reads numbers of groups, and rows of no group have
// no element, so that operations on whole tensors do not say what such a product is.
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"

#include "fp4/Numerics/Elementwise.h"
#include "fp4/Numerics/Epilogue.h"

#include <fmt/format.h>

namespace fp4::harness {
namespace {

/// An input of a body: numbers, and how far a row, a column and a group move in them.
struct BodyInput {
  std::vector<float> values;
  uint64_t ofRow = 0, ofColumn = 0, ofGroup = 0;
};

/// A scalar, M x 1, 1 x N, M x N, or of groups G x 1 x 1 or G x 1 x N.
Expected<BodyInput> inputOf(const Step &step, const Tensor &tensor, const ProductSums &sums) {
  BodyInput input{floats(tensor)};
  const std::vector<int64_t> &shape = tensor.type.shape;
  if (shape.empty())
    return input;
  const bool isOfGroups = shape.size() == 3;
  const auto columns = uint64_t(shape.back()), lines = uint64_t(shape.front());
  const uint64_t mostLines = isOfGroups ? sums.groups.size() : sums.rows;
  if (input.values.size() != lines * columns || (columns != 1 && columns != sums.columns) ||
      (lines != 1 && lines != mostLines))
    return step.wrong(fmt::format("has an input of its body of type {}", tensor.type.str()));
  input.ofColumn = columns == 1 ? 0 : 1;
  (isOfGroups ? input.ofGroup : input.ofRow) = lines == 1 ? 0 : columns;
  return input;
}

/// What the body makes of the sums of each product.
struct Body {
  numerics::ElementProgram program;
  std::vector<ProductSums> products;
  std::vector<BodyInput> inputs;

  /// Zero in rows of no group.
  std::vector<float> elements() const;
};

std::vector<float> Body::elements() const {
  const ProductSums &first = products.front();
  std::vector<float> result(first.values.size()), values(program.numValues());
  for (size_t group = 0; group < first.groups.size(); ++group) {
    const auto [begin, rows] = first.groups[group];
    for (uint64_t row = begin; row < begin + rows; ++row)
      for (uint64_t column = 0; column < first.columns; ++column) {
        const uint64_t at = row * first.columns + column;
        auto value = values.begin();
        for (const ProductSums &product : products)
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
  FP4_ASSIGN(auto first, sumsOfProduct(step, WhichProduct::First));
  body.products.push_back(std::move(first));
  if (rhs2) {
    FP4_ASSIGN(auto second, sumsOfProduct(step, WhichProduct::Second));
    body.products.push_back(std::move(second));
  }
  for (const Tensor *tensor : inputs) {
    FP4_ASSIGN(auto input, inputOf(step, *tensor, body.products.front()));
    body.inputs.push_back(std::move(input));
  }
  if (body.program.inputs != body.products.size() + body.inputs.size() ||
      body.program.results.size() != 1)
    return step.wrong("has a body that does not take its sums and inputs");
  return body;
}

} // namespace

Status runProductWithBody(Step &step) {
  FP4_ASSIGN(auto body, readBody(step));
  const ProductSums &sums = body.products.front();
  std::vector<float> elements = body.elements();
  const numerics::EpilogueProgram rounding(/*hasAlpha=*/false, {},
                                           floatType(step.types[0].element));
  for (float &element : elements)
    element = rounding.apply(element, 1);
  FP4_TRY(step.defineFloats(0, elements));
  if (step.op.attributes.contains("unspecified_rows"))
    for (ReferenceValue &result : step.results)
      result.unspecified = bytesOfNoGroup(sums.groups, sums.rows, result.value.bytes.size());
  return {};
}

} // namespace fp4::harness
