//===- LifeEvent.h - Starts, exits and lifetimes --------------------------===//
#pragma once

#include "fp4/Sim/Actor.h"

namespace fp4::sim {

enum class LifeOp : uint8_t {
  CtaStart, ///< begin of a CTA on the SM `object`, with the policy timed
  WarpExit,
  CtaExit,
  ClusterEnd, ///< the last operation of the cluster is done
  TmemAlloc,
  TmemDealloc,
  TmemRelinquish
};

/// Starts, exits and resource lifetimes. TMEM: `object` is the address, `count` the columns.
struct LifeEvent {
  Actor actor;
  CodePoint at;
  LifeOp op{};
  uint32_t laneMask = 0;
  uint64_t object = 0;
  uint64_t count = 0;
};

} // namespace fp4::sim
