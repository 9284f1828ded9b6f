//===- ParserImpl.h - The parser of PTX as its two files share it ---------===//
//
// Recursive descent over Lexer's tokens. The parser knows directives and the shape of instructions,
// not the instructions themselves: those are the decoder's. Syntax errors unwind as an exception
// that does not leave Parser.cpp.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/PTX/Lexer.h"
#include "Sim/PTX/VectorRegisters.h"
#include <cctype>
#include <fmt/format.h>

namespace fp4::sim::ptx {

/// Scopes, lists and initialisers. Compilers write three or four; the parser and everything behind
/// it may recurse over them and look through all of them.
constexpr unsigned kMaxNesting = 64;

struct SyntaxError {
  Loc loc;
  std::string message;
  std::string note;
};

class Parser {
public:
  explicit Parser(std::string_view text) : lexer(text) {}

  Module parseModule();

private:
  [[noreturn]] void fail(const Token &token, std::string message, std::string note = "") {
    throw SyntaxError{token.loc, std::move(message), std::move(note)};
  }
  static std::string found(const Token &token) {
    if (token.kind == TokenKind::End)
      return "the end of the file";
    if (token.text.size() == 1 && !std::isprint(static_cast<unsigned char>(token.text[0])))
      return fmt::format("the byte {:#04x}", static_cast<unsigned char>(token.text[0]));
    return fmt::format("'{}{}'", token.kind == TokenKind::Directive ? "." : "", token.text);
  }
  bool accept(char c) {
    if (!lexer.peek().is(c))
      return false;
    lexer.take();
    return true;
  }
  void expect(char c) {
    if (!accept(c))
      fail(lexer.peek(), fmt::format("expects '{}', but got {}", c, found(lexer.peek())));
  }
  Token expect(TokenKind kind, const char *what) {
    if (lexer.peek().kind != kind)
      fail(lexer.peek(), fmt::format("expects {}, but got {}", what, found(lexer.peek())));
    return lexer.take();
  }
  uint32_t takeInt(const char *what) {
    Token token = expect(TokenKind::Int, what);
    if (token.value > UINT32_MAX)
      fail(token, fmt::format("{} must have at most 32 bits, but got {}", what, token.text));
    return static_cast<uint32_t>(token.value);
  }

  /// One bracket deeper, until it goes out of scope. Functions that recurse over brackets have one.
  class Nested {
  public:
    Nested(Parser &parser, const Token &token) : parser(parser) { parser.open(token); }
    ~Nested() { --parser.depth; }
    Nested(const Nested &) = delete;

  private:
    Parser &parser;
  };
  void open(const Token &token) {
    if (depth == kMaxNesting)
      fail(token, fmt::format("brackets must nest at most {} deep", kMaxNesting));
    ++depth;
  }

  void parseTopLevel(Module &module);
  bool parseDebugDirective(Module &module);
  void parseFile(Module &module);
  void parseLoc();
  Variable parseVariable(bool isExtern);
  void parseVariableResidue(Variable &variable);
  void skipAttribute();
  void parseInitializer(Variable &variable);
  Initializer parseInitializerElement();
  void parseFunction(Module &module, bool isEntry);
  std::vector<Variable> parseParameters(bool ofEntry);
  void parseLanguages();
  void parsePerformanceDirectives(Function &function);
  void parseTriple(uint32_t (&out)[3]);
  void parseBody(Module &module, Function &function);
  void parseStatement(Module &module, Function &function);
  void parseRegisters(Function &function);
  void parseInstruction(Function &function);
  Arg parseArg();
  Arg parsePlainArg();
  Arg parseNumber();
  Arg parseAddress();
  uint64_t parseDisplacement();
  Arg parseList(ArgKind kind, char close);
  void parseTargetList(Function &function);

  Lexer lexer;
  VectorRegisters vectors;
  Loc debugLoc; ///< line and column of the last .loc
  uint32_t debugFile = 0;
  unsigned depth = 0; ///< number of the brackets that are open
};

} // namespace fp4::sim::ptx
