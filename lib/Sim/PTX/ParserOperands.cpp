//===- ParserOperands.cpp - PTX 9.0 text to AST: operands, initialisers ---===//
#include "Sim/PTX/ParserImpl.h"
#include <algorithm>

using namespace fp4::sim::ptx;

void Parser::parseInitializer(Variable &variable) {
  const Nested nested(*this, lexer.peek());
  if (!accept('{')) {
    variable.initial.push_back(parseInitializerElement());
    return;
  }
  while (!accept('}')) {
    parseInitializer(variable);
    if (!lexer.peek().is('}'))
      expect(',');
  }
  if (variable.unsized)
    variable.count = std::max<uint64_t>(variable.count, variable.initial.size());
}

Initializer Parser::parseInitializerElement() {
  Initializer element;
  element.loc = lexer.peek().loc;
  if (lexer.peek().kind == TokenKind::Name) {
    Token name = lexer.take();
    bool generic = name.text == "generic" && accept('(');
    element.symbol = generic ? expect(TokenKind::Name, "a variable name").text : name.text;
    if (generic)
      expect(')');
    element.value = parseDisplacement();
    return element;
  }
  Arg number = parseNumber();
  element.isFloat = number.kind == ArgKind::Float;
  element.value = number.value;
  element.number = number.number;
  element.floatBits = number.floatBits;
  return element;
}

Arg Parser::parseArg() {
  const Nested nested(*this, lexer.peek());
  Loc loc = lexer.peek().loc;
  Arg arg;
  if (accept('['))
    arg = parseAddress();
  else if (accept('{'))
    arg = parseList(ArgKind::Vector, '}');
  else if (accept('('))
    arg = parseList(ArgKind::Parens, ')');
  else if (accept('!')) {
    arg = parsePlainArg();
    arg.negated = true;
  } else
    arg = parsePlainArg();
  arg.loc = loc;
  return arg;
}

Arg Parser::parsePlainArg() {
  if (lexer.peek().kind != TokenKind::Name)
    return parseNumber();
  Arg arg;
  arg.loc = lexer.peek().loc;
  arg.text = lexer.take().text;
  if (lexer.peek().kind == TokenKind::Directive) // "v .x": white space may precede the component
    arg.text = vectors.join(arg.text, lexer.take().text);
  arg.value = parseDisplacement();
  if (const auto *vector = vectors.find(arg.text)) {
    Arg list;
    list.kind = ArgKind::Vector;
    list.loc = arg.loc;
    for (std::string_view element : *vector) {
      list.elements.push_back(arg);
      list.elements.back().text = element;
    }
    return list;
  }
  return arg;
}

Arg Parser::parseNumber() {
  Arg arg;
  arg.loc = lexer.peek().loc;
  bool negative = accept('-');
  if (!negative)
    accept('+');
  Token token = lexer.peek();
  if (token.kind != TokenKind::Int && token.kind != TokenKind::Float)
    fail(token, fmt::format("expects an operand, but got {}", found(token)));
  lexer.take();
  arg.kind = token.kind == TokenKind::Int ? ArgKind::Int : ArgKind::Float;
  arg.text = token.text;
  arg.value = token.value;
  arg.number = negative ? -token.number : token.number;
  arg.floatBits = token.floatBits;
  if (negative && token.floatBits)
    arg.value ^= 1ull << (token.floatBits - 1);
  else if (negative)
    arg.value = 0 - token.value;
  return arg;
}

/// [+|-] integer, also "+-4"; 0 when absent.
uint64_t Parser::parseDisplacement() {
  bool plus = accept('+');
  bool minus = accept('-');
  if (!plus && !minus)
    return 0;
  uint64_t value = expect(TokenKind::Int, "an integer").value;
  return minus ? 0 - value : value;
}

/// After '['.
Arg Parser::parseAddress() {
  Arg arg;
  arg.kind = ArgKind::Address;
  arg.loc = lexer.peek().loc;
  arg.elements.push_back(parsePlainArg());
  arg.value = arg.elements[0].kind == ArgKind::Name ? arg.elements[0].value : parseDisplacement();
  arg.elements[0].value = arg.elements[0].kind == ArgKind::Name ? 0 : arg.elements[0].value;
  if (accept(','))
    arg.elements.push_back(parseArg());
  expect(']');
  return arg;
}

/// After the opening character.
Arg Parser::parseList(ArgKind kind, char close) {
  Arg arg;
  arg.kind = kind;
  arg.loc = lexer.peek().loc;
  while (!accept(close)) {
    arg.elements.push_back(parseArg());
    if (!lexer.peek().is(close))
      expect(',');
  }
  return arg;
}
