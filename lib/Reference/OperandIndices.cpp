//===- OperandIndices.cpp - Indices of operands ---------------------------===//
#include "OperandIndices.h"

#include "fp4/Reference/ProgramTypes.h"

#include <charconv>
#include <sstream>

namespace fp4::harness {
namespace {

/// Evaluates "(X+Y)", "d1" or "64" from the front of a text.
class Evaluator {
public:
  Evaluator(std::string_view text, int64_t at) : text(text), at(at) {}

  std::optional<int64_t> run() {
    auto value = expression();
    return text.empty() ? value : std::nullopt;
  }

private:
  char take() {
    const char c = text.empty() ? '\0' : text.front();
    text.remove_prefix(text.empty() ? 0 : 1);
    return c;
  }

  std::optional<int64_t> number() {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc())
      return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return value;
  }

  std::optional<int64_t> expression() {
    if (text.starts_with('d')) {
      take();
      return number() ? std::optional(at) : std::nullopt;
    }
    if (!text.starts_with('('))
      return number();
    take();
    const auto x = expression();
    const char operation = take();
    const auto y = expression();
    if (!x || !y || take() != ')')
      return std::nullopt;
    return apply(operation, *x, *y);
  }

  static std::optional<int64_t> apply(char operation, int64_t x, int64_t y) {
    const bool isDivided = x >= 0 && y > 0;
    switch (operation) {
    case '+':
      return x + y;
    case '*':
      return x * y;
    case '/':
      return isDivided ? std::optional(x / y) : std::nullopt;
    case '%':
      return isDivided ? std::optional(x % y) : std::nullopt;
    default:
      return std::nullopt;
    }
  }

  std::string_view text;
  int64_t at;
};

/// The words of the attribute, those of operands or those of loops.
std::vector<std::string> wordsOf(const ProgramOp &op, bool ofLoops) {
  std::vector<std::string> found;
  const auto attribute = op.attributes.find("dimensions");
  std::istringstream words(attribute == op.attributes.end() ? "" : attribute->second);
  for (std::string word; words >> word;)
    if (word.starts_with('i') == ofLoops)
      found.push_back(word);
  return found;
}

} // namespace

std::vector<std::vector<std::string>> operandIndices(const ProgramOp &op) {
  std::vector<std::vector<std::string>> operands;
  for (const std::string &word : wordsOf(op, /*ofLoops=*/false)) {
    std::istringstream indices(word == "-" ? "" : word);
    auto &texts = operands.emplace_back();
    for (std::string index; std::getline(indices, index, ',');)
      texts.push_back(index);
  }
  return operands;
}

std::vector<size_t> loopInputs(const ProgramOp &op) {
  std::vector<size_t> loops;
  for (const std::string &word : wordsOf(op, /*ofLoops=*/true))
    if (word.size() == 2 && word[1] >= '0' && word[1] <= '9')
      loops.push_back(static_cast<size_t>(word[1] - '0'));
  return loops;
}

std::optional<size_t> dimensionOf(std::string_view expression) {
  const size_t at = expression.find('d');
  if (!expression.starts_with('(') || at + 1 >= expression.size() || expression[at + 1] < '0' ||
      expression[at + 1] > '9')
    return std::nullopt;
  return static_cast<size_t>(expression[at + 1] - '0');
}

std::optional<int64_t> evaluateIndex(std::string_view expression, int64_t at) {
  return Evaluator(expression, at).run();
}

} // namespace fp4::harness
