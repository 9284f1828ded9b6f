//===- Actor.h - Actors of a simulation and their places ------------------===//
//
// An actor is a warp (CTA, warp) or a ticket (an asynchronous operation, by its id).
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>

namespace fp4::sim {

/// The actor: a warp if `ticket` is 0, otherwise the asynchronous operation with that id.
struct Actor {
  uint32_t cluster = 0; ///< linear cluster index in the grid
  uint32_t ctaRank = 0; ///< rank of the CTA in the cluster
  uint32_t warp = 0;
  uint64_t ticket = 0;
};

/// The place in the PTX: the index of the instruction in its kernel, and the line.
struct CodePoint {
  uint32_t pc = 0;
  uint32_t line = 0;
};

} // namespace fp4::sim
