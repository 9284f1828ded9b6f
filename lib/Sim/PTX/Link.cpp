//===- Link.cpp - Several modules in one text -----------------------------===//
//
// nvcc -rdc=true leaves one PTX text per source file. Joined one after the other they are one
// module, in which a name may be declared and defined, and weak definitions (inline functions,
// templates) may occur more than once.
//
//===----------------------------------------------------------------------===//
#include "Sim/PTX/Parser.h"
#include <set>

using namespace fp4::sim::ptx;

/// Keeps the first of each name, and no declaration of what is defined.
template <typename Item, typename Defines>
static void keepOne(std::vector<Item> &items, Defines &&defines) {
  std::set<std::string_view> defined, kept;
  for (const Item &item : items)
    if (defines(item))
      defined.insert(item.name);
  std::vector<Item> linked;
  for (Item &item : items)
    if ((defines(item) || !defined.contains(item.name)) && kept.insert(item.name).second)
      linked.push_back(std::move(item));
  items = std::move(linked);
}

void fp4::sim::ptx::link(Module &module) {
  keepOne(module.variables, [](const Variable &variable) { return !variable.isExtern; });
  keepOne(module.functions, [](const Function &function) { return function.hasBody; });
}
