//===- ActivityEvent.h - Issuing and waiting of a warp --------------------===//
#pragma once

#include "fp4/Sim/Actor.h"
#include "fp4/Sim/KernelTime.h"

namespace fp4::sim {

/// With the policy timed, a stretch of the life of a warp: it issued the instruction at `at`, or
/// waited with that instruction as its next one. Stretches of one warp follow each other without a
/// gap. An event comes when the length of its stretch is known, which may be before the stretch
/// ends. Without a prediction there are none.
struct ActivityEvent {
  Actor actor;
  CodePoint at;
  Activity activity{};
  double begin = 0, end = 0; ///< nanoseconds, as LaunchEvent::nanoseconds
};

} // namespace fp4::sim
