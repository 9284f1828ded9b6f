//===- Lexer.cpp - PTX tokens ---------------------------------------------===//
#include "Sim/PTX/Lexer.h"
#include <cctype>
#include <cstdlib>
#include <cstring>

using namespace fp4::sim::ptx;

static bool isNameChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$';
}

void Lexer::skipSpace() {
  while (position < text.size()) {
    char c = text[position];
    if (c == '\n') {
      ++position;
      ++line;
      lineBegin = position;
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      ++position;
    } else if (c == '/' && at(position + 1) == '/') {
      while (position < text.size() && text[position] != '\n')
        ++position;
    } else if (c == '/' && at(position + 1) == '*') {
      position += 2;
      while (position < text.size() && !(text[position] == '*' && at(position + 1) == '/')) {
        if (text[position++] == '\n') {
          ++line;
          lineBegin = position;
        }
      }
      position = std::min(position + 2, text.size());
    } else {
      break;
    }
  }
}

void Lexer::finish(TokenKind kind, size_t begin, size_t end) {
  current.kind = kind;
  current.text = text.substr(begin, end - begin);
}

void Lexer::advance() {
  current = Token();
  skipSpace();
  current.loc = {line, static_cast<uint32_t>(position - lineBegin + 1)};
  tokenBegin = position;
  char c = at(position), next = at(position + 1);
  if (position >= text.size())
    return;
  if (std::isdigit(static_cast<unsigned char>(c)))
    return lexNumber();
  if (isNameChar(c) || (c == '%' && isNameChar(next)))
    return lexName();
  if (c == '.' && isNameChar(next))
    return lexDirective();
  if (c == '"')
    return lexString();
  ++position;
  bool known = std::strchr("{}[]()<>,;:@!|+-=*/%&^~?", c) != nullptr;
  finish(known ? TokenKind::Punct : TokenKind::Bad, tokenBegin, position);
}

void Lexer::lexName() {
  size_t begin = position++;
  while (isNameChar(at(position)))
    ++position;
  // %tid.x and the elements of vectors: the component belongs to the name.
  char component = at(position + 1);
  if (at(position) == '.' && component && std::strchr("xyzw", component) &&
      !isNameChar(at(position + 2)))
    position += 2;
  finish(TokenKind::Name, begin, position);
}

static bool isDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }

/// A colon is part of a modifier where it is double, or between digits: .sp::2:4.
void Lexer::lexDirective() {
  size_t begin = ++position;
  while (true) {
    const char c = at(position), next = at(position + 1);
    const bool isDouble = c == ':' && next == ':' && isNameChar(at(position + 2));
    const bool isRatio = c == ':' && isDigit(at(position - 1)) && isDigit(next);
    if (!isNameChar(c) && !isDouble && !isRatio)
      break;
    position += isDouble ? 2 : 1;
  }
  finish(TokenKind::Directive, begin, position);
}

void Lexer::lexString() {
  size_t begin = ++position;
  while (position < text.size() && text[position] != '"' && text[position] != '\n')
    ++position;
  bool closed = at(position) == '"';
  finish(closed ? TokenKind::String : TokenKind::Bad, begin, position);
  position += closed;
}

static uint64_t digitValue(char c) {
  return std::isdigit(static_cast<unsigned char>(c))
             ? static_cast<uint64_t>(c - '0')
             : static_cast<uint64_t>(std::tolower(static_cast<unsigned char>(c)) - 'a' + 10);
}

/// The bits of a float: 0f and 8 hexadecimal digits, or 0d and 16.
void Lexer::lexFloatBits(unsigned digits) {
  size_t begin = position;
  position += 2;
  while (std::isxdigit(static_cast<unsigned char>(at(position))) && position - begin - 2 < digits)
    current.value = current.value * 16 + digitValue(at(position++));
  current.floatBits = static_cast<uint8_t>(digits * 4);
  finish(position - begin - 2 == digits ? TokenKind::Float : TokenKind::Bad, begin, position);
}

/// Integers: decimal, 0x, 0b, octal, with an optional U. Floats: 0fXXXXXXXX, 0dXXXXXXXXXXXXXXXX and
/// decimal with a point or exponent.
void Lexer::lexNumber() {
  size_t begin = position;
  char marker = static_cast<char>(std::tolower(static_cast<unsigned char>(at(position + 1))));
  if (at(position) == '0' && (marker == 'f' || marker == 'd'))
    return lexFloatBits(marker == 'f' ? 8 : 16);
  int base = 10;
  if (at(position) == '0' && (marker == 'x' || marker == 'b')) {
    base = marker == 'x' ? 16 : 2;
    position += 2;
  } else if (at(position) == '0') {
    base = 8;
  }
  bool fits = true, isDigits = true;
  size_t firstDigit = position;
  while (std::isxdigit(static_cast<unsigned char>(at(position)))) {
    char c = at(position);
    if (base <= 10 && !std::isdigit(static_cast<unsigned char>(c)))
      break;
    uint64_t digit = digitValue(c);
    isDigits &= digit < static_cast<uint64_t>(base);
    fits &= current.value <= (~0ull - digit) / static_cast<uint64_t>(base);
    current.value = current.value * static_cast<uint64_t>(base) + digit;
    ++position;
  }
  char c = at(position), next = at(position + 1);
  const bool point =
      c == '.' && (std::isdigit(static_cast<unsigned char>(next)) || !isNameChar(next));
  if (base != 16 && (point || c == 'e' || c == 'E'))
    return lexDecimalFloat(begin);
  if (c == 'U')
    ++position;
  bool clean = isDigits && position > firstDigit && !isNameChar(at(position));
  while (isNameChar(at(position)))
    ++position;
  finish(fits && clean ? TokenKind::Int : TokenKind::Bad, begin, position);
}

void Lexer::lexDecimalFloat(size_t begin) {
  position = begin;
  while (std::isalnum(static_cast<unsigned char>(at(position))) || at(position) == '.' ||
         ((at(position) == '+' || at(position) == '-') &&
          (at(position - 1) == 'e' || at(position - 1) == 'E')))
    ++position;
  std::string copy(text.substr(begin, position - begin));
  char *end = nullptr;
  current.number = std::strtod(copy.c_str(), &end);
  finish(*end == '\0' ? TokenKind::Float : TokenKind::Bad, begin, position);
}

void Lexer::skipBraces() {
  int depth = 0;
  do {
    if (current.is('{'))
      ++depth;
    if (current.is('}'))
      --depth;
    advance();
  } while (depth > 0 && current.kind != TokenKind::End);
}
