//===- BarrierEvent.h - Barriers and mbarriers ----------------------------===//
#pragma once

#include "fp4/Sim/Actor.h"
#include "fp4/Sim/MemoryModel.h"

namespace fp4::sim {

enum class BarrierOp : uint8_t {
  CtaArrive, ///< barrier.cta arrive/sync/red reached; `object` is the barrier number, count the
             ///< generation arrived at
  CtaPass,   ///< barrier.cta sync or red passed; count = the generation of the barrier that ended
  WarpSync,  ///< bar.warp.sync passed by `laneMask`
  Exchange,  ///< lanes `laneMask` have given their operands to a .sync instruction: shfl, vote,
             ///< match, redux, mma, ldmatrix. All 32 where no other lane lives
  Parted,    ///< an .aligned instruction, barriers excepted, of a warp whose lanes parted at the
             ///< branch with index `count` and have not synchronized since
  ClusterArrive, ///< barrier.cluster.arrive; count = the generation arrived at
  ClusterWait,   ///< barrier.cluster.wait passed; count = the generation after it
  MbarInit,      ///< `object` is the shared::cluster address of the mbarrier, `count` the arrivals
  MbarInval,
  MbarArrive,   ///< count = arrivals
  MbarExpectTx, ///< count = bytes
  MbarCompleteTx,
  MbarPhaseDone, ///< a phase completed; count = its number
  MbarWaitPass,  ///< a test_wait or try_wait returned true; count = the phase number waited for
};

struct BarrierEvent {
  Actor actor;
  CodePoint at;
  BarrierOp op{};
  uint64_t object = 0;
  uint64_t count = 0;
  uint32_t laneMask = 0;
  MemOrder order = MemOrder::AcqRel;
  Scope scope = Scope::Cta;
};

} // namespace fp4::sim
