//===- Copy.h - Modifiers of copies, mbarriers and cluster launches -------===//
#pragma once

#include "Sim/Decode/Types.h"
#include "fp4/Sim/MemoryModel.h"
#include <optional>

namespace fp4::hw {
enum class TensorMapField : uint8_t;
}

namespace fp4::sim {

/// cp.async. Operands that a form may lack are named by their place, 0 where they are absent.
struct LaneCopyModifiers {
  uint8_t bytes = 0;        ///< bytes that each lane copies
  uint8_t sourceSize = 0;   ///< place of the number of bytes to read
  uint8_t ignoreSource = 0; ///< place of the predicate that reads none
};

/// cp.async.wait_group, cp.async.wait_all
struct CopyWaitModifiers {
  bool all = false;
};

/// cp.async.mbarrier.arrive
struct CopyArriveModifiers {
  Space space{};
  bool noIncrement = false; ///< .noinc: the phase expects the arrival already
};

enum class Arrival : uint8_t { Plain, ExpectTx, NoComplete, Drop, DropExpectTx, DropNoComplete };

/// mbarrier
struct MbarrierModifiers {
  Space space{};
  MemOrder order{};
  Scope scope{};
  Arrival arrival{};
  bool parity = false;    ///< a wait names the parity of a phase, not its state
  uint8_t address = 1;    ///< place of the address of a wait, behind what it reports
  uint8_t ranks = 0;      ///< place of the mask of CTAs, 0 where one address is the only one
  bool reporting = false; ///< .layout::v1
};

enum class ReductionOp : uint8_t { Add, Min, Max, Inc, Dec, And, Or, Xor };

/// cp.async.bulk, cp.reduce.async.bulk
struct BulkModifiers {
  bool toOwnCta = false; ///< the destination is .shared::cta
  bool multicast = false;
  uint8_t byteMask = 0; ///< place of the mask of bytes, 0 where it is absent
  bool ignoresEnds = false; ///< .ignore_oob: operands 3 and 4 are bytes that are not read
  std::optional<ReductionOp> reduction = std::nullopt;
  Type type{};                  ///< type of the elements of a reduction
  bool keepsSubnormals = false; ///< .noftz of .f32
};

/// cp.async.bulk.wait_group
struct BulkWaitModifiers {
  bool read = false;
};

/// The boxes of a tensor copy.
enum class TensorMode : uint8_t { Tile, FourRows, Im2col };

/// cp.async.bulk.tensor, cp.reduce.async.bulk.tensor
struct TensorModifiers {
  bool toOwnCta = false; ///< the destination is .shared::cta
  bool multicast = false;
  uint8_t ctaGroup = 1;
  uint8_t dimensions = 0;
  TensorMode mode{};
  std::optional<ReductionOp> reduction = std::nullopt;
};

/// tensormap.replace
struct TensorMapModifiers {
  Space space{};
  hw::TensorMapField field{};
  uint8_t ordinal = 0;
};

/// tensormap.cp_fenceproxy
struct TensorMapCopyModifiers {
  Scope scope{};
};

/// st.async, red.async
struct RemoteStoreModifiers {
  Space space{};
  uint8_t elements = 0;
  uint8_t bytes = 0; ///< bytes of an element
  std::optional<ReductionOp> reduction = std::nullopt;
  Type type{};
};

/// clusterlaunchcontrol.try_cancel
struct CancelModifiers {
  Space space{};
  bool multicast = false; ///< every CTA of the cluster gets the response
};

/// clusterlaunchcontrol.query_cancel.get_first_ctaid of one axis
struct FirstCtaModifiers {
  uint8_t axis = 0;
};

} // namespace fp4::sim
