//===- Verdict.cpp - One result against its reference ---------------------===//

#include "fp4/Harness/Verdict.h"

#include "fp4/Numerics/Compare.h"

#include <fmt/format.h>

namespace fp4::harness {
namespace {

numerics::FloatType floatType(ElementType type) {
  return type == ElementType::BF16       ? numerics::FloatType::BF16
         : type == ElementType::F16      ? numerics::FloatType::F16
         : type == ElementType::F8E4M3FN ? numerics::FloatType::E4M3
                                         : numerics::FloatType::F32;
}

bool isFloat(ElementType type) {
  return type == ElementType::BF16 || type == ElementType::F16 || type == ElementType::F32;
}

void compareBits(Verdict &verdict, const Tensor &got, const Tensor &expected,
                 const numerics::CompareOptions &options) {
  numerics::CompareReport report =
      isFloat(got.type.element)
          ? numerics::compareBits(numerics::decodeFloats(options.type, got.bytes),
                                  numerics::decodeFloats(options.type, expected.bytes), options)
          : numerics::compareBytes(got.as<uint8_t>(), expected.as<uint8_t>(), options);
  verdict.elements = report.elements;
  verdict.mismatches = report.mismatches;
  verdict.passed = report.ok();
  if (!report.ok())
    verdict.details = report.text();
}

/// The judgement by the exact value and the allowed distance from it: the second one of a GEMM,
/// which is independent of the first, and the only one where a result has no bits of its own.
void compareWithin(Verdict &verdict, const Tensor &got, const ReferenceValue &expected,
                   const numerics::CompareOptions &options) {
  numerics::CompareReport report = numerics::compareWithin(
      numerics::decodeFloats(options.type, got.bytes), expected.sums, expected.bounds,
      expected.mayOverflow, options);
  verdict.hasBound = true;
  verdict.elements = report.elements;
  verdict.outside = report.mismatches;
  verdict.maxError = report.maxError;
  verdict.maxErrorOfBound = report.maxErrorOfBound;
  if (expected.model.empty()) {
    verdict.passed = report.ok();
    verdict.mismatches = report.mismatches;
  }
  if (report.ok())
    return;
  verdict.passed = false;
  verdict.details += (verdict.details.empty() ? "" : "\n") +
                     ("of the plain sum: " + report.text());
}

} // namespace

Verdict judge(const std::string &name, const Tensor &got, const ReferenceValue &expected) {
  if (!expected.unspecified.empty() && got.bytes.size() == expected.value.bytes.size()) {
    Tensor specified = got;
    clearUnspecified(specified, expected.unspecified);
    ReferenceValue whole = expected;
    whole.unspecified.clear();
    Verdict verdict = judge(name, specified, whole);
    verdict.method += " where it is specified";
    return verdict;
  }
  Verdict verdict;
  verdict.name = name;
  const bool hasModel = !expected.model.empty(), hasBound = !expected.bounds.empty();
  verdict.method = hasModel
                       ? fmt::format("the {} model, bit for bit, and the fp64 sum within its bound",
                                     expected.model)
                   : hasBound ? "the fp64 value within its bound"
                              : "the reference, bit for bit";
  if (got.type != expected.value.type || got.bytes.size() != expected.value.bytes.size()) {
    verdict.details =
        fmt::format("expected {}, but got {}", expected.value.type.str(), got.type.str());
    return verdict;
  }
  numerics::CompareOptions options;
  options.type = floatType(got.type.element);
  std::vector<int64_t> shape = got.type.bufferShape();
  options.columns = shape.empty() ? 1 : uint64_t(shape.back());
  if (hasModel || !hasBound)
    compareBits(verdict, got, expected.value, options);
  if (hasBound)
    compareWithin(verdict, got, expected, options);
  return verdict;
}

} // namespace fp4::harness
