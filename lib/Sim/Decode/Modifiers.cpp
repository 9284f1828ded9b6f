//===- Modifiers.cpp - Types of factors -----------------------------------===//
#include "Sim/Decode/Modifiers.h"
#include "fp4/Numerics/DenseMma.h"

using namespace fp4;
using namespace fp4::sim;

unsigned fp4::sim::containerBits(FactorType type) {
  if (type == FactorType::B1)
    return 1;
  return type > FactorType::S8 ? 4 : 256 / numerics::factorsPerRow(mmaType(type));
}

FactorType fp4::sim::factorType(std::string_view text) {
  for (unsigned i = 0; i <= unsigned(FactorType::S8); ++i)
    if (text == hw::stringify(hw::MmaType(i)))
      return FactorType(i);
  return text == "u4" ? FactorType::U4 : text == "s4" ? FactorType::S4 : FactorType::B1;
}
