//===- VectorRegisters.h - Names of .reg .v2 and .v4 -----------------------===//
//
// A vector register is a set of registers whose names end in .x, .y, .z and .w; as an operand the
// vector stands for all of them. Like all names it ends with its scope, and a declaration in an
// inner scope hides it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <deque>
#include <fmt/format.h>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fp4::sim::ptx {

class VectorRegisters {
public:
  using Names = std::vector<std::string_view>;

  void beginFunction() { scopes.assign(1, {}); }
  void beginScope() { scopes.emplace_back(); }
  void endScope() { scopes.pop_back(); }

  /// The names of the elements of a vector that is declared here.
  const Names &declare(std::string_view vector, unsigned count) {
    Names &names = scopes.back()[vector];
    names.clear();
    for (unsigned i = 0; i < count; ++i)
      names.push_back(join(vector, std::string_view("xyzw").substr(i, 1)));
    return names;
  }

  /// "v.x" of "v" and "x".
  std::string_view join(std::string_view vector, std::string_view component) {
    return made.emplace_back(fmt::format("{}.{}", vector, component));
  }

  /// Something else of this name is declared here.
  void hide(std::string_view name) {
    if (find(name))
      scopes.back()[name].clear();
  }

  /// The names of the elements; null where the name is not a vector's.
  const Names *find(std::string_view name) const {
    for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope)
      if (const auto vector = scope->find(name); vector != scope->end())
        return vector->second.empty() ? nullptr : &vector->second;
    return nullptr;
  }

  /// The storage that the names point into.
  std::deque<std::string> takeText() { return std::move(made); }

private:
  std::vector<std::map<std::string_view, Names>> scopes; ///< innermost last; no names: hidden
  std::deque<std::string> made;
};

} // namespace fp4::sim::ptx
