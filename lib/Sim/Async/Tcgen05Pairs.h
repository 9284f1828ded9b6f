//===- Tcgen05Pairs.h - tcgen05 operations that keep the order of issue ---===//
//
// The queue runs tickets by this table (Tcgen05Pairs.def); the hazard checker judges by it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Sim/Events/TicketEvent.h"

#include <cstdint>
#include <optional>

namespace fp4::sim {

/// The properties of an operation that the table uses.
struct PipelinedOp {
  enum Kind : uint8_t { Mma, Copy, Shift };
  Kind kind{};
  bool narrow = false;      ///< Copy: .4x256b
  uint64_t accumulator = 0; ///< Mma: D and the shape
  bool operator==(const PipelinedOp &) const = default;
};

/// Returns the row of the table for a tcgen05 operation; nothing for one that has none.
inline std::optional<PipelinedOp> tcgen05Op(const TicketEvent &event) {
  switch (event.kind) {
  case TicketKind::Mma:
    return PipelinedOp{PipelinedOp::Mma, false, event.accumulator};
  case TicketKind::TmemCopy:
    return PipelinedOp{PipelinedOp::Copy, event.narrowCopy, 0};
  case TicketKind::TmemShift:
    return PipelinedOp{PipelinedOp::Shift, false, 0};
  default:
    return std::nullopt;
  }
}

enum class PairBasis : uint8_t { PtxText, Practice };

/// Returns true when `second` executes after `first`, which was issued earlier in the same
/// cta_group.
inline bool keepOrder(const PipelinedOp &first, const PipelinedOp &second, bool textOnly) {
  enum Condition : uint8_t { Always, SameAccumulator, Narrow };
  const auto row = [&](PipelinedOp::Kind from, PipelinedOp::Kind to, Condition condition,
                       PairBasis basis) {
    return first.kind == from && second.kind == to && (basis == PairBasis::PtxText || !textOnly) &&
           (condition != SameAccumulator || first.accumulator == second.accumulator) &&
           (condition != Narrow || second.narrow);
  };
#define FP4_TCGEN05_PAIR(from, to, condition, basis, why)                                          \
  row(PipelinedOp::from, PipelinedOp::to, condition, PairBasis::basis) ||
  return
#include "Tcgen05Pairs.def"
      false;
}

} // namespace fp4::sim
