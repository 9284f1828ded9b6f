//===- Types.cpp - Properties of PTX types --------------------------------===//
#include "Sim/Decode/Types.h"
#include <iterator>

using namespace fp4::sim;

namespace {
struct TypeFacts {
  std::string_view text;
  unsigned bits;
  char kind;
};
constexpr TypeFacts kFacts[] = {
    {"", 0, 'N'},
#define FP4_TYPE(Name, text, bits, kind) {text, bits, #kind[0]},
#include "Sim/Decode/Types.def"
#undef FP4_TYPE
};
} // namespace

unsigned fp4::sim::bitsOf(Type type) { return kFacts[static_cast<unsigned>(type)].bits; }
bool fp4::sim::isSigned(Type type) { return kFacts[static_cast<unsigned>(type)].kind == 'S'; }
bool fp4::sim::isFloat(Type type) { return kFacts[static_cast<unsigned>(type)].kind == 'F'; }
unsigned fp4::sim::partsOf(Type type) {
  const std::string_view text = spelling(type);
  return text.ends_with("x2") ? 2 : text.ends_with("x4") ? 4 : 1;
}
std::string_view fp4::sim::spelling(Type type) { return kFacts[static_cast<unsigned>(type)].text; }

Type fp4::sim::typeFromSpelling(std::string_view text) {
  for (unsigned i = 1; i < std::size(kFacts); ++i)
    if (kFacts[i].text == text)
      return static_cast<Type>(i);
  return Type::None;
}
