//===- Warp.h - Modifiers of instructions of warps and CTAs ---------------===//
#pragma once

#include "fp4/Sim/Events/FenceEvent.h"

namespace fp4::sim {

/// The order of the table's list for shfl.
enum class ShuffleMode : uint8_t { Up, Down, Butterfly, Index };

struct ShuffleMap;

/// shfl
struct ShuffleModifiers {
  const ShuffleMap *map = nullptr; ///< the sources, where they are constant
  ShuffleMode mode{};
};

/// The order of the table's list for vote.
enum class VoteMode : uint8_t { All, Any, Uni };

/// vote
struct VoteModifiers {
  VoteMode mode{};
};

/// The order of the table's list for redux.
enum class ReduxOp : uint8_t { Add, Min, Max, And, Or, Xor };

/// redux
struct ReduxModifiers {
  ReduxOp op{};
  bool abs = false;
  bool nan = false; ///< .NaN: a NaN passes through
};

/// The order of the table's list for barrier.red.
enum class BarrierReduction : uint8_t { Popc, And, Or };

/// bar, barrier
struct BarrierModifiers {
  bool aligned = false;
  BarrierReduction reduction{};
  uint8_t predicate = 0; ///< place of the predicate of .red among the operands
};

/// barrier.cluster
struct ClusterBarrierModifiers {
  bool aligned = false;
  MemOrder order{};
};

/// fence, membar
struct FenceModifiers {
  FenceKind kind{};
  MemOrder order{};
  Scope scope{};
  Space space{};
};

/// setmaxnreg
struct RegisterModifiers {
  bool increases = false;
};

/// call
struct CallModifiers {
  uint32_t site = 0; ///< index in Kernel::callSites
};

/// ret of a device function
struct ReturnModifiers {
  uint32_t function = 0; ///< index in Kernel::functions
};

/// brx.idx
struct BranchTableModifiers {
  uint32_t first = 0; ///< index of the first target in Kernel::branchTargets
};

} // namespace fp4::sim
