// The epilogue of a GEMM: a step that attributes name is one row here.
#include "fp4/Numerics/Epilogue.h"
#include "fp4/Numerics/E4M3.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace fp4::numerics {
namespace {

/// A step without operands.
struct NamedStep {
  EpilogueOp op;
  std::string_view name;
  float (*evaluate)(float x);
  BoundedValue (*bound)(BoundedValue x);
};

constexpr std::array namedSteps = {
    NamedStep{EpilogueOp::Relu, "relu", [](float x) { return x > 0 || std::isnan(x) ? x : 0.f; },
              // Relu moves values toward each other, if at all.
              [](BoundedValue x) { return BoundedValue{std::max(x.value, 0.0), x.error}; }},
};

const NamedStep *find(EpilogueOp op) {
  const auto *step = std::ranges::find(namedSteps, op, &NamedStep::op);
  return step == namedSteps.end() ? nullptr : step;
}

struct Rounding {
  double unit, smallest; ///< relative and absolute half steps of a type
  double largest;        ///< bound above which a value may be infinite
};

Rounding roundingOf(FloatType type) {
  switch (type) {
  case FloatType::BF16:
    return {0x1p-8, 0x1p-134, 0x1.FEp127};
  case FloatType::F16:
    return {0x1p-11, 0x1p-25, 65504};
  case FloatType::E4M3: // saturates
    return {0x1p-4, 0x1p-10, std::numeric_limits<double>::infinity()};
  case FloatType::F32:
    break;
  }
  return {0, 0, 0x1.FFFFFEp127}; // the value is fp32 already
}

BoundedValue scaled(BoundedValue x, double alpha) {
  const double value = alpha * x.value, error = std::fabs(alpha) * x.error;
  return {value, error + 0x1p-24 * (std::fabs(value) + error) + 0x1p-150};
}

BoundedValue rounded(BoundedValue x, FloatType type) {
  const Rounding rounding = roundingOf(type);
  if (type == FloatType::E4M3) // saturation moves values toward each other, if at all
    x.value = std::clamp<double>(x.value, -e4m3Max, e4m3Max);
  return {x.value, x.error + rounding.unit * (std::fabs(x.value) + x.error) + rounding.smallest};
}

} // namespace

std::string_view stringify(EpilogueOp op) {
  const NamedStep *step = find(op);
  return step ? step->name : std::string_view();
}

Expected<EpilogueOp> parseEpilogueOp(std::string_view name) {
  std::string known;
  for (const NamedStep &step : namedSteps) {
    if (step.name == name)
      return step.op;
    known += (known.empty() ? "" : ", ") + std::string(step.name);
  }
  return makeError(ErrorKind::Usage, "unknown epilogue step '" + std::string(name) + "'",
                   "known epilogue steps: " + known);
}

std::string spellEpilogue(std::span<const EpilogueOp> steps) {
  std::string text;
  for (EpilogueOp op : steps)
    text += (text.empty() ? "" : ",") + std::string(stringify(op));
  return text;
}

Expected<std::vector<EpilogueOp>> parseEpilogue(std::string_view text) {
  std::vector<EpilogueOp> steps;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    auto op = parseEpilogueOp(text.substr(0, comma));
    if (!op)
      return tl::unexpected(op.error());
    steps.push_back(*op);
    text = comma == text.npos ? std::string_view() : text.substr(comma + 1);
  }
  return steps;
}

std::vector<EpilogueOp> epilogueSteps(bool hasAlpha, std::span<const EpilogueOp> named) {
  std::vector<EpilogueOp> steps;
  if (hasAlpha)
    steps.push_back(EpilogueOp::Scale);
  steps.insert(steps.end(), named.begin(), named.end());
  steps.push_back(EpilogueOp::Round);
  return steps;
}

EpilogueProgram::EpilogueProgram(bool hasAlpha, std::span<const EpilogueOp> named, FloatType output)
    : ops(epilogueSteps(hasAlpha, named)), output(output) {}

float EpilogueProgram::apply(float sum, float alpha) const {
  for (EpilogueOp op : ops)
    sum = op == EpilogueOp::Scale   ? alpha * sum
          : op == EpilogueOp::Round ? roundTo(output, sum)
                                    : find(op)->evaluate(sum);
  return sum;
}

BoundedValue EpilogueProgram::bound(BoundedValue sum, float alpha) const {
  for (EpilogueOp op : ops)
    sum = op == EpilogueOp::Scale   ? scaled(sum, alpha)
          : op == EpilogueOp::Round ? rounded(sum, output)
                                    : find(op)->bound(sum);
  return sum;
}

bool EpilogueProgram::mayOverflow(const BoundedValue &element, float alpha) const {
  return std::fabs(element.value) + element.error > roundingOf(output).largest ||
         (ops.front() == EpilogueOp::Scale && std::isinf(alpha));
}

} // namespace fp4::numerics
