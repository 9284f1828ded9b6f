//===- WeightRates.h - Rates of GEMMs whose weights wgmma has in registers -===//
//
// The time of a GEMM of prepacked weights by the tile of its result, from few numbers that are
// fitted to measured kernels. The cost model of plans ranks tiles and split-K factors with it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/Rates.h"

#include <optional>

namespace fp4::hw {

struct TargetModel;

/// Kinds of kernels: factors of 16 bits, e4m3 whose sums stay in the tensor core, and e4m3 whose
/// sums are promoted after each k tile.
enum class WeightGemm : uint8_t { Halves, Bytes, PromotedBytes };

/// The most rows of a tile that a cluster reduces. Beside stages of e4m3 whose sums are not
/// promoted there is room for the sums that the tallest tile sends.
constexpr int64_t mostReducedRows(WeightGemm kind) { return kind == WeightGemm::Bytes ? 256 : 128; }

/// Cycles of a part of a GEMM, and of each row of 128 columns.
struct CyclesOfRows {
  double once, row;
};

/// Cycles of the parts of a GEMM. A k tile has 128 elements of K, and a warpgroup's 128 columns of
/// the result; rows are those of the tile.
struct WeightRates {
  double convert, convertRow; ///< loading and converting a k tile of weights, and beside each row
  double multiplyRow;         ///< the MMAs of a k tile, for each row
  double wide;                ///< time of each half of a tile of 256 columns, by that of 128
  double three;               ///< that of the conversions of three warpgroups, by that of two
  double shared;              ///< time of two CTAs that share an SM, by that of one
  double ahead;               ///< that of a CTA alone whose MMAs go on between k tiles, by that of
                              ///< one that waits, where few rows leave time; 0 where none goes on
  double slice;               ///< time of a further k slice of few rows, by that of the first
  double epilogueRow;         ///< the epilogue of 128 columns, for each row
  double launch;              ///< a kernel besides its tiles
  double overlapped;          ///< the part of it beside which the next kernel has its own SMs
  double memoryBytes;         ///< bytes that memory delivers to all SMs in a cycle
  CyclesOfRows workspace;     ///< a reduction of split-K in a workspace, rows of each range
  CyclesOfRows cluster;       ///< a reduction in a cluster
  double clusterRange;        ///< each range of it behind the second
  CyclesOfRows share;         ///< the parts of tiles that CTAs share (stream-K)
  Mark mark;
  std::string_view source;
  WeightGemm kind = WeightGemm::Halves;
};

/// Returns the rates of `kind` on `target`, with the memory of its device; nothing where wgmma is
/// missing.
std::optional<WeightRates> weightRates(const TargetModel &target, WeightGemm kind);

} // namespace fp4::hw
