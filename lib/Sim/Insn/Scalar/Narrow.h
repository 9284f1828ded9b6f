//===- Narrow.h - Floating-point formats of at most 8 bits ----------------===//
#pragma once

#include "Sim/Decode/Types.h"
#include "Sim/Insn/Scalar/Floats.h"

namespace fp4::sim {

/// A format of at most 8 bits: IEEE fields, but the top exponent may hold finite values.
struct Narrow {
  Type pair, quad;
  Format format;
  uint8_t maximum; ///< code of the largest finite value
  uint8_t nan;     ///< the result for NaN
  bool hasNaN;
  bool isUnsigned = false; ///< the magnitude alone is kept
};

/// The format of the elements of a packed type; null for a type of others.
const Narrow *narrowOf(Type type);

/// Bits of a code, without padding.
unsigned widthOf(const Narrow &narrow);

/// Bits from one element of a packed narrow type to the next: 4, or 8 with padding.
unsigned paddedBits(const Narrow &narrow);

/// Returns the code of `x`, rounded by `mode`. A magnitude beyond the largest finite one saturates,
/// or without `saturates` becomes infinity or NaN.
uint32_t encodeNarrow(double x, const Narrow &narrow, Round mode, bool relu, bool saturates = true);

double decodeNarrow(uint32_t code, const Narrow &narrow);

} // namespace fp4::sim
