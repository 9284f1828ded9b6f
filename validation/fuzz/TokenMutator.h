//===- TokenMutator.h - Mutations that know what a token is ---------------===//
//
// Texts are lists of tokens, each with the white space in front of it. A mutation takes a token, a
// line or a bracket and puts something of the same kind there, from the same text or from the whole
// corpus; most of what it makes still parses, which mutated bytes hardly ever do.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Random.h"
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fp4::fuzz {

enum class Kind : uint8_t { Number, Word, Modifier, Value, Symbol, Attribute, Type, Text, Punct };

struct Token {
  Kind kind = Kind::Punct;
  std::string before; ///< white space
  std::string text;
};
using Tokens = std::vector<Token>;

struct Language {
  std::string_view comment = "//";
  bool dots = false;  ///< ".b32" is a token of its own (PTX)
  bool times = false; ///< the 'x' between sizes is one (MLIR)
};

Tokens tokenize(std::string_view text, const Language &language);
std::string spell(const Tokens &tokens);

class TokenMutator {
public:
  explicit TokenMutator(Language language) : language(language) {}

  void add(std::string_view text);
  /// A line that is inserted, and no text that is mutated.
  void addLine(std::string_view line);
  bool empty() const { return texts.empty(); }
  /// One of the texts, changed in one to six places.
  std::string make(Random &random) const;
  /// One of the lines of addLine, in half of the cases with one token changed.
  std::string makeLine(Random &random) const;

private:
  using Mutation = void (TokenMutator::*)(Tokens &, Random &) const;
  void replaceToken(Tokens &tokens, Random &random) const;
  void changeNumber(Tokens &tokens, Random &random) const;
  void replaceEverywhere(Tokens &tokens, Random &random) const;
  void removeToken(Tokens &tokens, Random &random) const;
  void insertToken(Tokens &tokens, Random &random) const;
  void swapTokens(Tokens &tokens, Random &random) const;
  void removeLine(Tokens &tokens, Random &random) const;
  void copyLine(Tokens &tokens, Random &random) const;
  void insertLine(Tokens &tokens, Random &random) const;
  void replaceBracket(Tokens &tokens, Random &random) const;
  void removeBracket(Tokens &tokens, Random &random) const;
  void repeatBracket(Tokens &tokens, Random &random) const;
  void cut(Tokens &tokens, Random &random) const;

  /// A token to change: rarely punctuation.
  static size_t choose(const Tokens &tokens, Random &random);
  std::string alternative(const Tokens &tokens, Kind kind, Random &random) const;
  std::string alternativeAt(const Tokens &tokens, size_t at, Random &random) const;
  void remember(const Tokens &tokens);

  Language language;
  std::vector<Tokens> texts, lines, loose; ///< loose: of addLine alone
  std::array<std::vector<std::string>, 9> words; ///< by kind, each once
  std::array<std::set<std::string>, 9> known;
  /// Text behind a word somewhere in the corpus: tokens, and brackets with their content.
  std::map<std::string, std::vector<Token>, std::less<>> followers;
  std::map<std::string, std::vector<Tokens>, std::less<>> brackets;
};

} // namespace fp4::fuzz
