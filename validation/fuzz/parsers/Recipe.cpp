//===- Recipe.cpp - Recipes as text --------------------------------------===//
#include "../Parsers.h"
#include "fp4/Numerics/Recipe.h"

using namespace fp4;

void fp4::fuzz::parseRecipe(Bytes bytes) {
  auto recipe = numerics::parseRecipe(textOf(bytes));
  if (recipe && !numerics::parseRecipe(numerics::spell(*recipe)))
    __builtin_trap(); // what is spelled must parse
}
