//===- CostModel.h - Costs of the tiles of a GEMM -------------------------===//
//
// The cycles of a persistent GEMM with tiles of n columns. A tile has 128 rows in one CTA, or 256
// in a pair of CTAs, or 128 in a pair: a CTA then has 64 rows where 128 is written here, and its
// TMEM lanes have n / 2 columns. Words in capitals are fitted; all other numbers are rates that the
// simulator has too (fp4/ISA/TimingRates.h), at the clock of its table. A step of 64 elements of K,
// or of 32 elements of 8 bits, costs the larger of
//   issue  the matrix instruction: its arithmetic, 2 * 128 * n * 64 / fp4 FLOP in each CTA
//          whatever its elements are, or its operands from shared memory,
//          (128 + rows of B in a CTA) * 32 B / the rate of shared memory
//   feed   the bytes that an SM loads: (128 + rows of B) * 32 B of data and whole scale tiles of
//          128 rows, at its part of what L2 delivers of lines that several ask for, but at most at
//          FEED; rows that do not exist are not delivered
// and an output tile costs
//   main = steps * that + FILL + STORE * bytes of the result / rate of the feed
//   epi  = EPILOGUE * n + what threads compute, load and derive besides (EpilogueWork.h)
// because L2 delivers little while it takes results. If tensor memory has one set of scales, a k
// tile waits for the MMAs of the one before and for its scales. The last wave has fewer tiles, to
// which L2 delivers more. Instructions of K = 96 take 48 B of each row, and of the double K
// 64 B, and no longer for their arithmetic. A dual GEMM has n columns and the rows of B twice.
//
// With two accumulators, main and epi overlap, max(main, epi). With one (n = 256, where the second
// does not fit beside the scales) they overlap only partly: max(main + SERIAL * epi', epi), where
// epi' is the part of the columns that are stored before all are read. Columns that registers have
// room for cost reading, scaling and converting. If two accumulators have columns in common, only
// the reads of these columns are added. A kernel takes
//   max(sum of tiles over waves + TAIL + epi, read bytes / memory + written bytes / WRITES) +
//   launch.
//
// Split-K ranges are reduced in a workspace, where the last CTA adds them all, epi for each; or in
// a cluster of S CTAs. In a cluster, a CTA sends S - 1 parts of S of its sums, adds S for its own
// part, which are as many elements as a CTA has, and has an epilogue of a part of S. Workers that
// share tiles (stream-K) have no last wave: tiles / workers waves, and a worker begins twice more,
// leaves the sums of one tile and adds those of another, which takes EPI each. Workers are SMs, or
// pairs of them.
//
// The model is fitted to public measurements of B200 with another compiler's kernels. The model
// ranks plans; its times are predictions.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "EpilogueWork.h"

#include "fp4/ISA/SmemDescriptor.h"
#include "fp4/ISA/TimingRates.h"
#include "fp4/Numerics/BlockScaledGemm.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace fp4 {

/// Rows assumed where the number of rows is dynamic; in a grouped GEMM, those of each group.
inline constexpr int64_t kAssumedRows = 4096;
/// Columns and depth assumed where they are dynamic. The depth is no multiple of 256: no plan may
/// count on one.
inline constexpr int64_t kAssumedColumns = 4096, kAssumedDepth = 4096 - 128;

/// An M x N x K multiplication, in elements; `block` of them share a scale.
struct MatmulSize {
  int64_t m, n, k, block;
  int64_t resultBytes = 2; ///< bytes of one element
  /// Elements of K of one instruction, 32 bytes of each operand row in shared memory: 64 of 4 bits;
  /// 32 if an operand has 8. An instruction of 96 elements of 4 bits takes 48 bytes, and of the
  /// double K 64 bytes, and as long as one of 32.
  int64_t stepK = 64;
  /// Instructions of a k tile: of one panel, or of three.
  int64_t tileSteps() const { return (stepK == 96 ? 3 : 1) * 128 / stepBytes; }
  /// Slices of K, at whose ends split-K cuts.
  int64_t slices() const { return llvm::divideCeil(k, int64_t(numerics::splitSlice)); }
  int64_t splits = 1;      ///< split-K: ranges of K that CTAs take in parallel
  int64_t sliced = 1;      ///< k slices of a CTA that have warpgroups of their own
  int64_t sharers = 0;     ///< workers that share tiles; 0 where each has whole ones
  int64_t products = 1;    ///< GEMMs of one A, whose sums a tile has
  llvm::SmallVector<int64_t> groups = {}; ///< rows of GEMMs that are stacked; none for one GEMM
  bool expectsGroups = false; ///< `groups` are expected sizes, and groups have about as many rows
  uint8_t stepBytes = hw::mmaRowBytes; ///< bytes of a row that an instruction takes
  EpilogueWork epilogue = {}; ///< work besides reading sums and storing elements
};

/// Tiles of `rows` x `columns` of the result, or of those of all groups.
int64_t countTiles(const MatmulSize &size, int64_t rows, int64_t columns);

/// Rows of a tile of one CTA, and the columns that a tile can have.
inline constexpr int64_t kGemmTileM = 128;
inline constexpr int64_t kGemmTileNs[] = {64, 96, 128, 192, 256};
/// Columns of a pair's tile with 128 rows: halves of the columns have whole lines of scales, of 32
/// rows.
inline constexpr int64_t kNarrowTileNs[] = {64, 128, 192, 256};
/// Columns with instructions of K = 96 or of the double K: whole scale tiles of B.
inline constexpr int64_t kLongTileNs[] = {64, 128, 192, 256};

/// Rows of the lhs that a tile with swapped operands can have, and the unit of the rows at which
/// tiles begin: 32 rows of scales share a column of tensor memory.
inline constexpr int64_t kSwappedTileNs[] = {8, 16, 32, 64};
inline constexpr int64_t kSwappedUnit = 32;

/// The fields by which the model tells plans apart.
struct GemmTile {
  bool pair = false; ///< 256 rows by two CTAs, else 128 by one
  int64_t n = 0;     ///< columns; if transposed, rows of the result
  int64_t clusterM = 1, clusterN = 1; ///< CTAs of a cluster
  bool transposed = false;            ///< the tile is one of the transposed result
  bool narrow = false; ///< the pair has 128 rows
  bool joins = false;  ///< the CTAs of the cluster, or its pairs, have split-K ranges of one tile
  int64_t epilogueGroups = 1; ///< warpgroups that read an accumulator, each a part of its columns

  int64_t rows() const { return pair ? 2 * rowsOfA() : kGemmTileM; }
  int64_t rowsOfA() const { return narrow ? kGemmTileM / 2 : kGemmTileM; } ///< rows of a CTA
  int64_t laneColumns() const { return narrow ? n / 2 : n; } ///< columns whose sums a thread has
  int64_t rowsOfB() const { return pair ? n / 2 : n; } ///< rows that a CTA has
  int64_t blocks() const { return clusterM * clusterN; }
};

/// The resource that bounds the steady state of a kernel.
enum class GemmBound { TensorCore, L2Feed, Epilogue, Memory };
std::string_view spell(GemmBound bound);

struct GemmCost {
  double cycles; ///< cycles of the whole kernel, launch included
  double busy;   ///< cycles without the launch and the time that only device memory takes
  GemmBound bound;
};

/// A rate of the target, or of B200 where nobody published one.
double rateOf(hw::TimingRate which, const hw::TargetModel &target);

/// Cycles of the epilogue of a tile, from the end of its MMAs to the end of its stores.
double epilogueCycles(const MatmulSize &size, const GemmTile &tile, const hw::TargetModel &target);

/// The cost of a GEMM with `tile` on a target with tcgen05.
GemmCost gemmCost(const MatmulSize &size, const GemmTile &tile, const hw::TargetModel &target);

/// Bytes that L2 delivers in a cycle to each of so many SMs that load at a time.
double feedBytesPerCycle(int64_t sms, const hw::TargetModel &target);
/// The time of parts that wait for each other where two take nearly as long: their norm of a power,
/// which is the largest where the others are short.
double joinedTime(std::initializer_list<double> parts, double power);
/// Cycles that device memory takes.
double memoryCycles(double read, double written, const hw::TargetModel &target);
/// Cycles that the tensor core takes for operations of fp4 whose operands are in shared memory.
double multiplyCycles(double operations, double operandBytes, const hw::TargetModel &target);

/// Tiles that the target's SMs work on at a time.
int64_t gemmWorkers(const GemmTile &tile, const hw::TargetModel &target);

/// Returns true when results of all tiles of an SM leave faster through shared memory.
bool isStagingFaster(const MatmulSize &size, const GemmTile &tile, const hw::TargetModel &target);
/// Stages of `tileK` elements of K that keep the tensor core busy while a stage that it has
/// released is loaded again from the L2 cache.
int64_t stagesThatCoverLoads(const MatmulSize &size, const GemmTile &tile, int64_t tileK,
                             int64_t stageBytes, const hw::TargetModel &target);

/// The cheapest of `candidates`, which are not empty; of equals, the first. Two warpgroups, and two
/// pairs in a cluster, must gain a hundredth: the model does not know the other costs of more
/// threads, or of clusters whose pairs wait for each other.
GemmTile cheapestTile(llvm::ArrayRef<GemmTile> candidates, const MatmulSize &size,
                      const hw::TargetModel &target);

/// The part by which a k tile takes longer if one warp runs MMAs and copies scales than if a second
/// warp copies them a k tile early. A copy hides behind one MMA, and the rest of its latency behind
/// loads that take longer than all MMAs of a k tile.
double gainOfScaleWarp(const MatmulSize &size, const GemmTile &tile, const hw::TargetModel &target);

/// A divisor of `columns` that is within a quarter of `width`, else `width`: with a divisor all
/// panels are as wide, and a tile is found without a division by a variable.
int64_t evenPanel(double width, int64_t columns);

/// Columns of tiles in a panel, by which tiles that run at a time share most of their operands;
/// none if all operands stay in the L2 cache in any order.
std::optional<int64_t> choosePanel(const MatmulSize &size, const GemmTile &tile,
                                   const hw::TargetModel &target);

} // namespace fp4
