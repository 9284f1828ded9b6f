//===- TokenMutator.cpp - Mutations that know what a token is -------------===//
#include "TokenMutator.h"
#include <algorithm>
#include <cctype>
#include <cstdlib>

using namespace fp4::fuzz;

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

namespace {

bool isWordChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$'; }

class Scanner {
public:
  Scanner(std::string_view text, const Language &language) : text(text), language(language) {}
  bool next(Token &token);

private:
  char at(size_t i) const { return i < text.size() ? text[i] : '\0'; }
  void skipSpace();
  Kind scan();
  Kind scanNumber();
  void skipWord() {
    while (isWordChar(at(position)) ||
           (!language.dots && at(position) == '.' && isWordChar(at(position + 1))))
      ++position;
  }

  std::string_view text;
  const Language &language;
  size_t position = 0;
  bool afterSize = false; ///< an 'x' here separates sizes
};

void Scanner::skipSpace() {
  while (position < text.size()) {
    if (std::isspace(static_cast<unsigned char>(text[position])))
      ++position;
    else if (text.substr(position).starts_with(language.comment))
      position = std::min(text.find('\n', position), text.size());
    else
      return;
  }
}

Kind Scanner::scanNumber() {
  if (at(position) == '0' && at(position + 1) == 'x' &&
      std::isxdigit(static_cast<unsigned char>(at(position + 2))) &&
      !(language.times && (afterSize || at(position + 2) == 'b'))) {
    skipWord();
    return Kind::Number;
  }
  while (std::isdigit(static_cast<unsigned char>(at(position))) ||
         (at(position) == '.' && std::isdigit(static_cast<unsigned char>(at(position + 1)))))
    ++position;
  if (!language.times)
    skipWord(); // 0f3F800000, 16U
  return Kind::Number;
}

Kind Scanner::scan() {
  const char c = at(position);
  const size_t begin = position;
  if (std::isdigit(static_cast<unsigned char>(c)))
    return scanNumber();
  if (language.times && c == 'x' && afterSize) {
    ++position;
    return Kind::Punct;
  }
  if (c == '"') {
    for (++position; position < text.size() && text[position] != '"'; ++position)
      position += text[position] == '\\';
    position = std::min(position + 1, text.size());
    return Kind::Text;
  }
  ++position;
  const bool sigil = std::string_view("%@#!^").find(c) != std::string_view::npos;
  if (isWordChar(c) || (language.dots && c == '.') || (sigil && isWordChar(at(position)))) {
    skipWord();
    return c == '.'               ? Kind::Modifier
           : c == '%' || c == '^' ? Kind::Value
           : c == '@'             ? Kind::Symbol
           : c == '#'             ? Kind::Attribute
           : c == '!'             ? Kind::Type
                                  : Kind::Word;
  }
  if ((c == '-' && at(begin + 1) == '>') || (c == ':' && at(begin + 1) == ':'))
    ++position;
  return Kind::Punct;
}

bool Scanner::next(Token &token) {
  size_t begin = position;
  skipSpace();
  token.before = text.substr(begin, position - begin);
  begin = position;
  if (position >= text.size())
    return false;
  token.kind = scan();
  token.text = text.substr(begin, position - begin);
  afterSize = token.kind == Kind::Number || token.text == "?";
  return true;
}

bool opens(const Token &token) {
  return token.kind == Kind::Punct && std::string_view("([{<").find(token.text[0]) != std::string_view::npos;
}

/// Returns the index behind the bracket that `begin` opens, or `begin` when it is not closed.
size_t behindBracket(const Tokens &tokens, size_t begin) {
  const char open = tokens[begin].text[0];
  const char close = open == '(' ? ')' : open == '[' ? ']' : open == '{' ? '}' : '>';
  size_t depth = 0;
  for (size_t i = begin; i < tokens.size() && i < begin + 400; ++i) {
    if (tokens[i].kind != Kind::Punct)
      continue;
    depth += tokens[i].text[0] == open && tokens[i].text.size() == 1;
    if (tokens[i].text[0] == close && tokens[i].text.size() == 1 && --depth == 0)
      return i + 1;
  }
  return begin;
}

/// The first token of the line that `at` is in, and the first of the next.
std::pair<size_t, size_t> lineAround(const Tokens &tokens, size_t at) {
  auto begins = [&](size_t i) { return tokens[i].before.find('\n') != std::string::npos; };
  size_t begin = at, end = at + 1;
  while (begin > 0 && !begins(begin))
    --begin;
  while (end < tokens.size() && !begins(end))
    ++end;
  return {begin, end};
}

} // namespace

Tokens fp4::fuzz::tokenize(std::string_view text, const Language &language) {
  Scanner scanner(text, language);
  Tokens tokens;
  for (Token token; scanner.next(token);)
    tokens.push_back(token);
  return tokens;
}

std::string fp4::fuzz::spell(const Tokens &tokens) {
  std::string text;
  for (const Token &token : tokens)
    text += token.before + token.text;
  return text + "\n";
}

//===----------------------------------------------------------------------===//
// The corpus
//===----------------------------------------------------------------------===//

void TokenMutator::remember(const Tokens &tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto kind = static_cast<size_t>(tokens[i].kind);
    if (known[kind].insert(tokens[i].text).second)
      words[kind].push_back(tokens[i].text);
    if (i == 0)
      continue;
    std::vector<Token> &behind = followers[tokens[i - 1].text];
    const bool seen = std::any_of(behind.begin(), behind.end(), [&](const Token &other) {
      return other.text == tokens[i].text;
    });
    if (!seen && behind.size() < 200)
      behind.push_back(tokens[i]);
    if (std::vector<Tokens> &all = brackets[tokens[i - 1].text];
        opens(tokens[i]) && all.size() < 400)
      if (size_t end = behindBracket(tokens, i); end > i + 2 && end < i + 60)
        all.emplace_back(tokens.begin() + i, tokens.begin() + end);
  }
}

void TokenMutator::add(std::string_view text) {
  Tokens tokens = tokenize(text, language);
  if (tokens.empty())
    return;
  remember(tokens);
  for (size_t i = 0; i < tokens.size();) {
    auto [begin, end] = lineAround(tokens, i);
    lines.emplace_back(tokens.begin() + begin,
                       tokens.begin() + end);
    i = end;
  }
  texts.push_back(std::move(tokens));
}

void TokenMutator::addLine(std::string_view line) {
  Tokens tokens = tokenize(line, language);
  if (tokens.empty())
    return;
  tokens[0].before = "\n";
  remember(tokens);
  loose.push_back(tokens);
  lines.push_back(std::move(tokens));
}

/// Most often one of the same text, which is likely to be declared.
std::string TokenMutator::alternative(const Tokens &tokens, Kind kind, Random &random) const {
  if (!random.oneIn(3))
    for (unsigned attempt = 0; attempt < 30; ++attempt)
      if (const Token &token = random.of(tokens); token.kind == kind)
        return token.text;
  const auto &all = words[static_cast<size_t>(kind)];
  return all.empty() ? "" : random.of(all);
}

size_t TokenMutator::choose(const Tokens &tokens, Random &random) {
  size_t at = random.below(tokens.size());
  for (unsigned attempt = 0; attempt < 12 && tokens[at].kind == Kind::Punct; ++attempt)
    at = random.below(tokens.size());
  return at;
}

/// Most often what stands behind the same word elsewhere, which is likely to parse.
std::string TokenMutator::alternativeAt(const Tokens &tokens, size_t at, Random &random) const {
  if (at > 0 && random.below(4) < 3)
    if (auto found = followers.find(tokens[at - 1].text); found != followers.end())
      for (unsigned attempt = 0; attempt < 20; ++attempt)
        if (const Token &token = random.of(found->second);
            token.kind == tokens[at].kind && token.text != tokens[at].text)
          return token.text;
  return alternative(tokens, tokens[at].kind, random);
}

//===----------------------------------------------------------------------===//
// Mutations
//===----------------------------------------------------------------------===//

void TokenMutator::replaceToken(Tokens &tokens, Random &random) const {
  const size_t at = choose(tokens, random);
  tokens[at].text = alternativeAt(tokens, at, random);
}

void TokenMutator::changeNumber(Tokens &tokens, Random &random) const {
  static const std::vector<std::string> edges = {
      "0",    "1",     "2",     "3",     "4",          "7",          "8",
      "15",   "16",    "17",    "31",    "32",         "33",         "63",
      "64",   "65",    "127",   "128",   "129",        "255",        "256",
      "512",  "1024",  "4095",  "65535", "65536",      "1048576",    "2147483647",
      "2147483648", "4294967295", "4294967296", "9223372036854775807", "9223372036854775808",
      "18446744073709551615", "18446744073709551616", "-1", "-2147483648"};
  for (unsigned attempt = 0; attempt < 50; ++attempt) {
    Token &token = tokens[random.below(tokens.size())];
    if (token.kind != Kind::Number)
      continue;
    const long long value = std::strtoll(token.text.c_str(), nullptr, 0);
    const bool small = value > -(1ll << 60) && value < (1ll << 60);
    const long long base = small ? value : 0;
    const long long near[] = {base + 1, base - 1, base / 2, -base};
    token.text = random.oneIn(2) && small ? std::to_string(near[random.below(4)]) : random.of(edges);
    return;
  }
}

void TokenMutator::replaceEverywhere(Tokens &tokens, Random &random) const {
  const size_t at = choose(tokens, random);
  const Token old = tokens[at];
  if (old.kind == Kind::Punct)
    return;
  const std::string text = alternativeAt(tokens, at, random);
  for (Token &token : tokens)
    if (token.kind == old.kind && token.text == old.text)
      token.text = text;
}

void TokenMutator::removeToken(Tokens &tokens, Random &random) const {
  tokens.erase(tokens.begin() + random.below(tokens.size()));
}

void TokenMutator::insertToken(Tokens &tokens, Random &random) const {
  const size_t place = random.below(tokens.size());
  Token token = tokens[place];
  token.text = alternative(tokens, static_cast<Kind>(random.below(words.size())), random);
  token.before = " ";
  tokens.insert(tokens.begin() + place, token);
}

void TokenMutator::swapTokens(Tokens &tokens, Random &random) const {
  const size_t first = random.below(tokens.size());
  for (unsigned attempt = 0; attempt < 30; ++attempt) {
    const size_t second = random.below(tokens.size());
    if (tokens[first].kind != tokens[second].kind || tokens[first].text == tokens[second].text)
      continue;
    std::swap(tokens[first].text, tokens[second].text);
    return;
  }
}

void TokenMutator::removeLine(Tokens &tokens, Random &random) const {
  auto [begin, end] = lineAround(tokens, random.below(tokens.size()));
  if (end - begin < tokens.size())
    tokens.erase(tokens.begin() + begin,
                 tokens.begin() + end);
}

void TokenMutator::copyLine(Tokens &tokens, Random &random) const {
  auto [begin, end] = lineAround(tokens, random.below(tokens.size()));
  const Tokens line(tokens.begin() + begin,
                    tokens.begin() + end);
  const size_t place = lineAround(tokens, random.below(tokens.size())).first;
  tokens.insert(tokens.begin() + place, line.begin(), line.end());
}

void TokenMutator::insertLine(Tokens &tokens, Random &random) const {
  const Tokens &line = random.of(lines);
  const size_t place = lineAround(tokens, random.below(tokens.size())).second;
  tokens.insert(tokens.begin() + place, line.begin(), line.end());
}

/// A type, an attribute or a list becomes another, in half of the cases wherever it stands.
void TokenMutator::replaceBracket(Tokens &tokens, Random &random) const {
  for (unsigned attempt = 0; attempt < 50; ++attempt) {
    const size_t begin = random.below(tokens.size());
    const size_t end = opens(tokens[begin]) ? behindBracket(tokens, begin) : begin;
    auto found = begin > 0 ? brackets.find(tokens[begin - 1].text) : brackets.end();
    if (end == begin || found == brackets.end() || found->second.empty())
      continue;
    const Tokens old(tokens.begin() + begin, tokens.begin() + end);
    const Tokens &other = random.of(found->second);
    if (other[0].text != old[0].text)
      continue;
    const bool everywhere = random.oneIn(2);
    auto same = [](const Token &a, const Token &b) { return a.text == b.text; };
    for (auto at = everywhere ? tokens.begin() : tokens.begin() + begin;;) {
      at = std::search(at, tokens.end(), old.begin(), old.end(), same);
      if (at == tokens.end())
        return;
      at = tokens.insert(tokens.erase(at, at + old.size()), other.begin(), other.end());
      at += other.size();
      if (!everywhere)
        return;
    }
  }
}

void TokenMutator::removeBracket(Tokens &tokens, Random &random) const {
  for (unsigned attempt = 0; attempt < 50; ++attempt) {
    const size_t begin = random.below(tokens.size());
    const size_t end = opens(tokens[begin]) ? behindBracket(tokens, begin) : begin;
    if (end == begin)
      continue;
    const size_t inside = random.oneIn(2) && end > begin + 2; // leaves () behind
    tokens.erase(tokens.begin() + begin + inside,
                 tokens.begin() + end - inside);
    return;
  }
}

/// (a) becomes ((((a)))), or (a, a, a).
void TokenMutator::repeatBracket(Tokens &tokens, Random &random) const {
  for (unsigned attempt = 0; attempt < 50; ++attempt) {
    const size_t begin = random.below(tokens.size());
    const size_t end = opens(tokens[begin]) ? behindBracket(tokens, begin) : begin;
    if (end == begin)
      continue;
    const size_t times = random.oneIn(8) ? 300 : 1 + random.below(4);
    const Token open = tokens[begin], close = tokens[end - 1];
    tokens.insert(tokens.begin() + end, times, close);
    tokens.insert(tokens.begin() + begin, times, open);
    return;
  }
}

void TokenMutator::cut(Tokens &tokens, Random &random) const {
  if (random.oneIn(8))
    tokens.resize(1 + random.below(tokens.size()));
}

std::string TokenMutator::make(Random &random) const {
  static const std::vector<Mutation> gentle = {
      &TokenMutator::replaceToken,      &TokenMutator::replaceToken,   &TokenMutator::changeNumber,
      &TokenMutator::replaceEverywhere, &TokenMutator::replaceBracket, &TokenMutator::replaceBracket,
      &TokenMutator::removeLine,        &TokenMutator::swapTokens};
  static const std::vector<Mutation> rough = {
      &TokenMutator::removeToken,   &TokenMutator::insertToken,   &TokenMutator::copyLine,
      &TokenMutator::insertLine,    &TokenMutator::removeBracket, &TokenMutator::repeatBracket,
      &TokenMutator::cut};
  Tokens tokens = random.of(texts);
  for (size_t count = 1 + random.below(random.oneIn(4) ? 6 : 2); count > 0; --count)
    if (!tokens.empty())
      (this->*random.of(random.oneIn(4) ? rough : gentle))(tokens, random);
  return spell(tokens);
}

std::string TokenMutator::makeLine(Random &random) const {
  Tokens line = random.of(loose);
  if (random.oneIn(4))
    changeNumber(line, random);
  else if (random.oneIn(3))
    replaceToken(line, random);
  return spell(line);
}
