//===- OperandIndices.h - Indices of operands -----------------------------===//
//
// Expressions of manifests for the places at which an elementwise operation reads an operand:
// "((d1+64)%128)" is the dimension of an operand that is read at (index 1 of the result + 64)
// modulo 128.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fp4::harness {

struct ProgramOp;

/// For each operand the texts of its dimensions, from the attribute "dimensions".
std::vector<std::vector<std::string>> operandIndices(const ProgramOp &op);
/// The dimensions of the result that the program reads itself ("i1"), behind the operands.
std::vector<size_t> loopInputs(const ProgramOp &op);

/// The dimension of the result that an expression is of; none where the text is no expression.
std::optional<size_t> dimensionOf(std::string_view expression);
/// The value of an expression where that dimension is `at`; none where the text is wrong, or a
/// division has a negative operand.
std::optional<int64_t> evaluateIndex(std::string_view expression, int64_t at);

} // namespace fp4::harness
