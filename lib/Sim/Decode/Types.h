//===- Types.h - PTX fundamental and packed types -------------------------===//
#pragma once

#include <cstdint>
#include <string_view>

namespace fp4::sim {

enum class Type : uint8_t {
  None,
#define FP4_TYPE(Name, text, bits, kind) Name,
#include "Sim/Decode/Types.def"
#undef FP4_TYPE
};

unsigned bitsOf(Type type); ///< 1 for Pred
inline unsigned bytesOf(Type type) { return (bitsOf(type) + 7) / 8; }
bool isSigned(Type type);
bool isFloat(Type type);
unsigned partsOf(Type type); ///< elements of a packed type, 2 or 4; else 1
std::string_view spelling(Type type);
Type typeFromSpelling(std::string_view text); ///< None when it is no type

} // namespace fp4::sim
