//===- Lexer.h - PTX tokens -----------------------------------------------===//
#pragma once

#include "Sim/PTX/Ast.h"

namespace fp4::sim::ptx {

enum class TokenKind : uint8_t {
  End,
  Name,      ///< identifier, or special register with component
  Directive, ///< .word (text without the dot); modifiers too: .32x32b, .shared::cta
  Int,
  Float,
  String, ///< text without the quotes
  Punct,  ///< one character
  Bad,    ///< `text` is the offending text
};

struct Token {
  TokenKind kind = TokenKind::End;
  Loc loc;
  std::string_view text;
  uint64_t value = 0;
  double number = 0;
  uint8_t floatBits = 0;

  bool is(char c) const { return kind == TokenKind::Punct && text[0] == c; }
  bool isDirective(std::string_view word) const {
    return kind == TokenKind::Directive && text == word;
  }
};

/// One token of lookahead over the text.
class Lexer {
public:
  explicit Lexer(std::string_view text) : text(text) { advance(); }

  const Token &peek() const { return current; }
  Token take() {
    Token token = current;
    advance();
    return token;
  }
  /// Skips a { } block whose '{' is the current token.
  void skipBraces();

private:
  void advance();
  void skipSpace();
  void lexName();
  void lexDirective();
  void lexFloatBits(unsigned digits);
  void lexNumber();
  void lexDecimalFloat(size_t begin);
  void lexString();
  char at(size_t i) const { return i < text.size() ? text[i] : '\0'; }
  void finish(TokenKind kind, size_t begin, size_t end);

  std::string_view text;
  size_t position = 0;
  size_t lineBegin = 0;
  uint32_t line = 1;
  size_t tokenBegin = 0;
  Token current;
};

} // namespace fp4::sim::ptx
