//===- Memory.h - Modifiers of loads, stores and atomics ------------------===//
#pragma once

#include "fp4/Sim/MemoryModel.h"

namespace fp4::sim {

/// ld, ldu, st
struct MemoryModifiers {
  Space space{};
  MemOrder order{};
  Scope scope{};
  uint8_t bytes = 0; ///< bytes of an element
  uint8_t width = 0; ///< bytes of each register of the access; 0 when they differ
  bool isSigned = false;
};

enum class AtomicOp : uint8_t { Add, And, Or, Xor, Exch, Min, Max, Inc, Dec };

/// atom, red. The operation of atom.cas is in its handler.
struct AtomicModifiers {
  Space space{};
  MemOrder order{};
  Scope scope{};
  AtomicOp op{};
  bool keepsSubnormals = false; ///< .noftz of .f32
};

/// The place of the bytes of a matrix in the registers of a warp.
enum class Arrangement : uint8_t { Rows, Halves, Columns16, Columns8 };

/// ldmatrix, stmatrix
struct MatrixModifiers {
  Space space{};
  Arrangement arrangement{};
  uint8_t sourceBits = 8; ///< bits of an element in memory
  bool isSigned = false;  ///< narrower elements keep their sign
};

/// alloca
struct StackModifiers {
  uint32_t alignment = 1;
};

} // namespace fp4::sim
