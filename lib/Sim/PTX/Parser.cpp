//===- Parser.cpp - PTX 9.0 text to AST: module, functions, statements ----===//
#include "Sim/PTX/Parser.h"
#include "Sim/PTX/ParserImpl.h"
#include <algorithm>
#include <set>

using namespace fp4;
using namespace fp4::sim::ptx;

static const std::set<std::string_view> kSpaces = {"global", "const", "shared", "local", "param"};

Module Parser::parseModule() {
  Module module;
  module.files.emplace_back();
  while (lexer.peek().kind != TokenKind::End)
    parseTopLevel(module);
  for (auto [name, value] : {std::pair(".version", module.version), {".target", module.target}})
    if (value.empty())
      fail(lexer.peek(), fmt::format("a module must have a {}, but got none", name),
           "PTX begins with '.version 8.7' and '.target sm_100a', for example");
  module.made = vectors.takeText();
  return module;
}

void Parser::parseTopLevel(Module &module) {
  Token token = lexer.peek();
  if (token.kind != TokenKind::Directive)
    fail(token, fmt::format("expects a directive, but got {}", found(token)));
  if (parseDebugDirective(module))
    return;
  bool isExtern = false;
  static const std::set<std::string_view> linkage = {"extern", "visible", "weak", "common"};
  while (token.kind == TokenKind::Directive && linkage.count(token.text)) {
    isExtern |= token.text == "extern";
    lexer.take();
    token = lexer.peek();
  }
  if (token.isDirective("version")) {
    lexer.take();
    module.version = expect(TokenKind::Float, "a version number").text;
  } else if (token.isDirective("target")) {
    lexer.take();
    module.target = expect(TokenKind::Name, "a target").text;
    while (accept(','))
      expect(TokenKind::Name, "a target option");
  } else if (token.isDirective("address_size")) {
    lexer.take();
    if (uint32_t bits = takeInt("an address size"); bits != 64)
      fail(token, fmt::format(".address_size must be 64, but got {}", bits));
  } else if (token.isDirective("entry") || token.isDirective("func")) {
    lexer.take();
    parseFunction(module, token.text == "entry");
  } else if (token.kind == TokenKind::Directive && kSpaces.count(token.text)) {
    module.variables.push_back(parseVariable(isExtern));
  } else {
    fail(token, fmt::format("unknown directive {}", found(token)));
  }
}

/// .file, .loc, .loc_intermediate, .section and .pragma may stand anywhere.
bool Parser::parseDebugDirective(Module &module) {
  const Token &token = lexer.peek();
  if (token.isDirective("file")) {
    parseFile(module);
  } else if (token.isDirective("loc")) {
    parseLoc();
  } else if (token.isDirective("loc_intermediate")) {
    lexer.take();
    for (const char *what : {"a file index", "a line", "a column"})
      takeInt(what);
  } else if (token.isDirective("section")) {
    while (!lexer.peek().is('{') && lexer.peek().kind != TokenKind::End)
      lexer.take();
    lexer.skipBraces();
  } else if (token.isDirective("pragma")) {
    lexer.take();
    expect(TokenKind::String, "a string");
    expect(';');
  } else {
    return false;
  }
  return true;
}

void Parser::parseFile(Module &module) {
  lexer.take();
  uint32_t index = takeInt("a file index");
  Token name = expect(TokenKind::String, "a file name");
  while (accept(','))
    expect(TokenKind::Int, "a time stamp or size");
  if (index > 0xFFFF)
    fail(name, fmt::format(".file index must be at most 65535, but got {}", index));
  if (index >= module.files.size())
    module.files.resize(index + 1);
  module.files[index] = name.text;
}

void Parser::parseLoc() {
  lexer.take();
  debugFile = takeInt("a file index");
  debugLoc.line = takeInt("a line");
  debugLoc.column = takeInt("a column");
  while (accept(',')) {
    Token word = expect(TokenKind::Name, "function_name or inlined_at");
    if (word.text == "function_name") {
      expect(TokenKind::Name, "a label");
      if (accept('+'))
        takeInt("an offset");
    } else if (word.text == "inlined_at") {
      takeInt("a file index"), takeInt("a line"), takeInt("a column");
    } else {
      fail(word, fmt::format("expects function_name or inlined_at, but got {}", found(word)));
    }
  }
}

/// Parses a variable from the space directive up to the name and dimensions.
Variable Parser::parseVariable(bool isExtern) {
  Variable variable;
  variable.isExtern = isExtern;
  variable.space = lexer.take().text;
  if (variable.space == "param" && lexer.peek().isDirective("entry"))
    fail(lexer.peek(), "expects a type, but got '.entry'");
  bool isPointer = false;
  while (lexer.peek().kind == TokenKind::Directive) {
    Token token = lexer.take();
    if (token.text == "align") {
      // Behind .ptr it is what the pointer points at that is aligned.
      uint64_t align = takeInt("an alignment");
      if (!isPointer)
        variable.align = align;
    } else if (token.text == "ptr")
      isPointer = true;
    else if (token.text == "v2" || token.text == "v4")
      variable.vector = token.text == "v2" ? 2 : 4;
    else if (token.text == "attribute")
      skipAttribute();
    else if (!(variable.space == "param" && kSpaces.count(token.text)))
      variable.type = token.text;
  }
  Token name = expect(TokenKind::Name, "a variable name");
  variable.name = name.text;
  variable.loc = name.loc;
  if (variable.type.empty())
    fail(name, fmt::format("variable '{}' expects a type", name.text));
  parseVariableResidue(variable);
  return variable;
}

/// (.managed), (.unified(19, 95)): where a variable lies is the host's to say.
void Parser::skipAttribute() {
  expect('(');
  for (unsigned open = 1; open > 0;) {
    const Token token = lexer.take();
    if (token.kind == TokenKind::End)
      fail(token, "expects ')' after an attribute, but got the end of the text");
    open += token.is('(');
    open -= token.is(')');
  }
}

void Parser::parseVariableResidue(Variable &variable) {
  while (accept('[')) {
    if (accept(']')) {
      variable.unsized = true;
      continue;
    }
    Token size = expect(TokenKind::Int, "an array size");
    if (__builtin_mul_overflow(variable.count, size.value, &variable.count))
      fail(size, fmt::format("array '{}' is too large", variable.name));
    expect(']');
  }
  bool isParameter = variable.space == "param" || variable.space == "reg";
  if (isParameter && (lexer.peek().is(',') || lexer.peek().is(')')))
    return;
  if (accept('='))
    parseInitializer(variable);
  expect(';');
}

/// Parses parameters; those of device functions may be registers.
std::vector<Variable> Parser::parseParameters(bool ofEntry) {
  std::vector<Variable> params;
  expect('(');
  while (!accept(')')) {
    Token token = lexer.peek();
    if (!token.isDirective("param") && (ofEntry || !token.isDirective("reg")))
      fail(token, fmt::format("expects .param, but got {}", found(token)));
    params.push_back(parseVariable(false));
    if (!lexer.peek().is(')'))
      expect(',');
  }
  return params;
}

void Parser::parseTriple(uint32_t (&out)[3]) {
  std::fill(out, out + 3, 1u);
  out[0] = takeInt("a dimension");
  for (int i = 1; i < 3 && accept(','); ++i)
    out[i] = takeInt("a dimension");
}

/// The languages that a function comes from, by names or numbers.
void Parser::parseLanguages() {
  do {
    if (lexer.peek().kind == TokenKind::String)
      lexer.take();
    else
      takeInt("a language");
  } while (accept(','));
}

void Parser::parsePerformanceDirectives(Function &function) {
  while (lexer.peek().kind == TokenKind::Directive) {
    Token token = lexer.take();
    if (token.text == "maxntid")
      parseTriple(function.maximumCta);
    else if (token.text == "reqntid")
      parseTriple(function.requiredCta);
    else if (token.text == "reqnctapercluster")
      parseTriple(function.requiredCluster);
    else if (token.text == "blocksareclusters")
      function.blocksAreClusters = true;
    else if (token.text == "maxnreg")
      function.maximumRegisters = takeInt("a number");
    else if (token.text == "minnctapersm")
      function.minimumCtasPerSm = takeInt("a number");
    else if (token.text == "maxclusterrank")
      function.maximumCluster = takeInt("a number");
    else if (token.text == "maxnctapersm" || token.text == "minperctamemory")
      takeInt("a number");
    else if (token.text == "language")
      parseLanguages();
    else if (token.text == "pragma") {
      expect(TokenKind::String, "a string");
      expect(';');
    } else if (token.text != "explicitcluster" && token.text != "noreturn")
      fail(token, fmt::format("unknown directive {} of a function", found(token)));
  }
}

void Parser::parseFunction(Module &module, bool isEntry) {
  Function function;
  function.isEntry = isEntry;
  if (!isEntry && lexer.peek().is('('))
    function.results = parseParameters(false);
  Token name = expect(TokenKind::Name, "a function name");
  function.name = name.text;
  function.loc = name.loc;
  if (lexer.peek().is('('))
    function.params = parseParameters(isEntry);
  parsePerformanceDirectives(function);
  if (!accept(';')) {
    function.hasBody = true;
    debugFile = 0;
    debugLoc = {};
    expect('{');
    parseBody(module, function);
  }
  module.functions.push_back(std::move(function));
}

/// Statements up to the '}' that closes the body; nested scopes become items.
void Parser::parseBody(Module &module, Function &function) {
  vectors.beginFunction();
  const unsigned outside = depth++;
  while (depth > outside) {
    const Token token = lexer.peek();
    if (token.kind == TokenKind::End)
      fail(token, fmt::format("the body of '{}' expects '}}'", function.name));
    if (accept('{')) {
      open(token);
      vectors.beginScope();
      function.items.push_back({ItemKind::ScopeBegin, 0});
    } else if (accept('}')) {
      --depth;
      vectors.endScope();
      if (depth > outside)
        function.items.push_back({ItemKind::ScopeEnd, 0});
    } else {
      parseStatement(module, function);
    }
  }
}

void Parser::parseStatement(Module &module, Function &function) {
  Token token = lexer.peek();
  if (accept(';'))
    return;
  if (token.kind != TokenKind::Directive)
    return parseInstruction(function);
  if (parseDebugDirective(module))
    return;
  bool isExtern = false;
  while (token.isDirective("extern") || token.isDirective("visible") || token.isDirective("weak")) {
    isExtern |= token.text == "extern";
    lexer.take();
    token = lexer.peek();
  }
  if (token.isDirective("reg"))
    return parseRegisters(function);
  if (token.isDirective("branchtargets") || token.isDirective("calltargets") ||
      token.isDirective("callprototype"))
    return parseTargetList(function);
  if (token.kind == TokenKind::Directive && kSpaces.count(token.text)) {
    auto index = static_cast<uint32_t>(function.variables.size());
    function.variables.push_back(parseVariable(isExtern));
    vectors.hide(function.variables.back().name);
    function.items.push_back({ItemKind::Variable, index});
    return;
  }
  fail(token, fmt::format("unknown directive {} in a function body", found(token)));
}

/// Behind its name, which was read as a label. A prototype adds nothing: each function has its own.
void Parser::parseTargetList(Function &function) {
  Token directive = lexer.take();
  if (function.items.empty() || function.items.back().kind != ItemKind::Label)
    fail(directive, fmt::format("'.{}' expects a name in front of it", directive.text));
  Label name = function.labels.back();
  function.items.pop_back();
  function.labels.pop_back();
  TargetList list{name.loc, name.name, {}};
  while (!accept(';')) {
    if (lexer.peek().kind == TokenKind::End)
      fail(lexer.peek(), "expects ';', but got the end of the file");
    Token token = lexer.take();
    if (directive.text == "branchtargets" && token.kind == TokenKind::Name)
      list.labels.push_back(token.text);
  }
  if (directive.text == "branchtargets")
    function.targetLists.push_back(std::move(list));
}

void Parser::parseRegisters(Function &function) {
  lexer.take();
  Token type = expect(TokenKind::Directive, "a register type");
  const unsigned elements = type.text == "v2" ? 2 : type.text == "v4" ? 4 : 0;
  if (elements)
    type = expect(TokenKind::Directive, "the type of the elements");
  const auto add = [&](const RegisterDecl &decl) {
    auto index = static_cast<uint32_t>(function.registers.size());
    function.registers.push_back(decl);
    function.items.push_back({ItemKind::Register, index});
  };
  do {
    Token name = expect(TokenKind::Name, "a register name");
    RegisterDecl decl{name.loc, type.text, name.text, 0};
    if (!elements && accept('<')) {
      decl.count = takeInt("a register count");
      expect('>');
    }
    if (elements) {
      for (std::string_view element : vectors.declare(name.text, elements))
        add({name.loc, type.text, element, 0});
    } else {
      vectors.hide(name.text);
      add(decl);
    }
  } while (accept(','));
  expect(';');
}

/// [label:] [@[!]p] opcode{.modifier} [args] ;
void Parser::parseInstruction(Function &function) {
  Instruction insn;
  insn.loc = lexer.peek().loc;
  if (accept('@')) {
    insn.guardNegated = accept('!');
    insn.guard = expect(TokenKind::Name, "a guard predicate").text;
  }
  Token opcode = expect(TokenKind::Name, "an instruction");
  if (insn.guard.empty() && accept(':')) {
    auto index = static_cast<uint32_t>(function.labels.size());
    function.labels.push_back({opcode.loc, opcode.text});
    function.items.push_back({ItemKind::Label, index});
    return;
  }
  insn.opcode = opcode.text;
  while (lexer.peek().kind == TokenKind::Directive)
    insn.modifiers.push_back(lexer.take().text);
  if (!lexer.peek().is(';')) {
    do {
      insn.args.push_back(parseArg());
      while (lexer.peek().is('|')) {
        lexer.take();
        insn.args.back().paired = true;
        insn.args.push_back(parseArg());
      }
    } while (accept(','));
  }
  expect(';');
  insn.debugFile = debugFile;
  insn.debugLine = debugLoc.line;
  insn.debugColumn = debugLoc.column;
  auto index = static_cast<uint32_t>(function.instructions.size());
  function.instructions.push_back(std::move(insn));
  function.items.push_back({ItemKind::Instruction, index});
}

Expected<Module> fp4::sim::ptx::parse(std::string_view text, std::string_view name) {
  try {
    return Parser(text).parseModule();
  } catch (SyntaxError &error) {
    return makeError(
        ErrorKind::Simulation,
        fmt::format("{}:{}:{}: {}", name, error.loc.line, error.loc.column, error.message),
        std::move(error.note));
  }
}
