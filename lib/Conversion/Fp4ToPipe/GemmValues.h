//===- GemmValues.h - Values that describe a GEMM and its kernel ------------===//
//
// Four values and a route describe the kernel of a GEMM (Gemm.h). `Problem` and `Results` say what
// the program asks for. The route, `Tiling` and `WorkShares` say what the plan decided.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Pipe/IR/Cluster.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"
#include "fp4/Numerics/Epilogue.h"
#include "fp4/Numerics/StreamK.h"

#include <array>

namespace fp4 {

/// The GEMM of the program: rows x columns = (rows x depth) (columns x depth)^T.
struct Problem {
  int64_t rows, columns, depth; ///< sizes, or ShapedType::kDynamic
  int64_t depthUnit;            ///< known divisor of the depth: the depth where it is static
  int64_t block;                ///< elements of K that share a scale: 16, 32 or 128
  /// f4E2M1FN, f8E4M3FN or f8E5M2; f8E4M3FN with scales of f32.
  mlir::Type lhs, rhs;
  mlir::Type scaleType; ///< f8E4M3FN, f8E8M0FNU or f32
  /// bf16, f16 or f8E4M3FN: the elements of a lhs without scales; else null.
  mlir::Type floats;
  bool unitScales = false;    ///< lhs has no scales, and is multiplied as if all were one
  bool prepacked = false;     ///< rhs is tiles of fp4.prepack, which contain its scales
  hw::MmaDepth mmaDepth = hw::MmaDepth::Single; ///< K of instructions
  bool dual = false;          ///< two GEMMs of lhs, for the epilogue region
  int64_t groups = 0;         ///< groups whose rows are stacked; 0 where there is one
  int64_t groupScaleRows = 0; ///< rows of scales of lhs, of which each group has whole scale tiles
  bool knowsGroups = false;   ///< the rows of all groups are static

  bool usesK96() const { return mmaDepth == hw::MmaDepth::K96; }
  bool dynamicRows() const { return mlir::ShapedType::isDynamic(rows); }
  /// The kernel gets the columns of the result, or K, as a number.
  bool dynamicWidth() const { return mlir::ShapedType::isDynamic(columns); }
  bool dynamicDepth() const { return mlir::ShapedType::isDynamic(depth); }
  /// Scales are row-major f32, of 1 x 128 elements of lhs and 128 x 128 of rhs.
  bool hasF32Scales() const { return scaleType.isF32(); }
  /// bf16 or f16: the elements of a pre-dequantized lhs. Prepacked weights become bf16 with fewer
  /// instructions than f16.
  mlir::Type preDequantizedType() const;
  /// Scales of a row, or ShapedType::kDynamic.
  int64_t blocksOfRow() const { return dynamicDepth() ? depth : depth / block; }
  /// Rows of whole scale tiles of the rhs, or of that of each group.
  int64_t alignedColumns() const { return llvm::alignTo(columns, pipe::kScaleBlockRows); }
  /// Scale blocks of rows of a rhs with f32 scales, of which each group has whole ones.
  int64_t f32ScaleRowsB() const {
    return dynamicWidth()
               ? columns
               : std::max<int64_t>(groups, 1) * int64_t(llvm::divideCeil(columns, block));
  }
  /// Places of the table beyond the whole tiles of all rows, for groups whose rows are dynamic.
  int64_t morePlaces() const { return groups; }
};

/// Tiles, and the CTAs and warps that work on one of them. M and N are those of the accumulator:
/// with swapped operands of tcgen05, columns and rows of the result.
struct Tiling {
  int64_t tileM, tileN, tileK;        ///< rows, columns and depth of an output tile
  int64_t clusterM = 1, clusterN = 1; ///< CTAs of a cluster
  bool fallsBack = false;             ///< smaller clusters may run the kernel
  bool pair = false;                  ///< two CTAs along m have one tile, of 256 or 128 rows
  int64_t blocksOfTileK = 1;          ///< k tiles of a stage, for f32 scales
  /// Warpgroups that add up sums of f32 scales from tensor memory, each of a part of the columns; 0
  /// where the tensor core leaves sums in registers.
  int64_t laneGroups = 0;
  /// Warpgroups that read an accumulator in tensor memory, each a part of its columns.
  int64_t epilogueGroups = 1;
  mlir::StringAttr auxiliary;   ///< name of the role of threads that neither load nor multiply
  bool hasOneTile = false;      ///< no CTA has a second one
  /// Even and odd tiles of a CTA are read from different ends, so that their accumulators may have
  /// columns in common.
  bool alternates = false;
  /// Boxes of the rows of the result have no more rows than exist, where some tile has fewer.
  bool loadsResidues = false;

  /// Rows of A and of B that a CTA has of its tile.
  int64_t blockM() const { return pair ? tileM / 2 : tileM; }
  int64_t blockN() const { return pair ? tileN / 2 : tileN; }
  bool inCluster() const { return clusterM * clusterN > 1; }
  /// Rows and columns of the result that a CTA, or a cluster, works on at a time.
  int64_t workM() const { return blockM() * clusterM; }
  int64_t workN() const { return tileN * clusterN; }
  /// A pair has 128 rows: TMEM lanes have halves of the columns (pipe.place).
  bool splitsColumns() const { return pair && tileM == pipe::kMmaM; }
  /// Columns of tensor memory that an accumulator takes.
  int64_t accumulatorColumns() const { return splitsColumns() ? tileN / 2 : tileN; }
  /// Columns of a tile that a thread has sums of.
  int64_t laneColumns() const {
    return accumulatorColumns() / (laneGroups ? laneGroups : epilogueGroups);
  }
  /// CTAs that load a tile together: those along n need the same A and its scales, those along m
  /// the same B, of pairs those that have the same half, and its scales.
  int64_t partsA() const { return clusterN; }
  int64_t partsB() const;
  pipe::Direction directionB() const { return pair ? pipe::Direction::Pairs : pipe::Direction::M; }
};

/// Shares of the GEMM that are works: tiles, split-K parts of them, or what a table says.
struct WorkShares {
  int64_t splits = 1; ///< split-K parts
  int64_t ranges = 1; ///< k slices of a CTA; all have as many k tiles
  /// Roles of the k slices behind the first, where each slice has warpgroups of its own; else none.
  llvm::SmallVector<mlir::StringAttr, 2> sliceRoles;
  /// The split-K parts of a tile are those of the CTAs of a cluster, which reduce in shared memory.
  /// Otherwise they are works of their own, which reduce through a workspace.
  bool reducesInCluster = false;
  /// Workers that share tiles, where some tile is of several; with the works of all, the tiles that
  /// have several, and the sums that these leave.
  std::optional<numerics::StreamK> stream;
  int64_t streamWorks = 0, streamReductions = 0, streamParts = 0;
  int64_t tablePlaces = 0; ///< places in the table of the tiles of rows of groups
  /// Numbers of the offsets that belong to a group, 1 or 2, where the kernel searches the few
  /// groups itself; 0 where a kernel before it makes a table of their tiles.
  int64_t searchedOffsets = 0;

  /// CTAs leave sums of tiles in fp32, of all or of some.
  bool addsRanges() const { return splits > 1 || stream; }
  /// CTAs that have the split-K parts of a tile.
  int64_t reducedCtas() const { return splits / ranges; }
  /// Split-K parts that have works of their own.
  int64_t worksOfTile() const { return reducesInCluster ? 1 : reducedCtas(); }
  bool hasWorkspace() const { return (reducedCtas() > 1 && !reducesInCluster) || stream; }
  int64_t gapPlaces() const { return tablePlaces + 1; }
};

/// Quantization of the elements in the epilogue.
struct ResultQuantizer {
  RecipeAttr recipe;
  bool hasAmax;                       ///< the recipe has a tensor scale
  bool rows = false, columns = false; ///< orientations that are written
  bool tiledRows = false,
       tiledColumns = false; ///< true for scales in layout tiled_128x4, else row-major

  int64_t block() const { return numerics::blockSizeOf(format()); }
  int64_t columnsOfWord() const { return numerics::elementsOfScaleWord(format()); }
  bool hasF32Scales() const { return numerics::hasF32Scales(format()); }
  numerics::BlockFormat format() const { return recipe.getDecisions().format; }
  /// The types of codes and of scales, of `scaleRows` rows.
  std::array<pipe::GlobalType, 2> typesOf(int64_t rows, int64_t columns, bool isTiled,
                                          int64_t scaleRows) const;
};

/// Results of a GEMM, or of an attention: what becomes of its sums.
struct Results {
  mlir::Type type; ///< f32, bf16 or f16
  /// No alpha, one, one for each row of the result (M x 1), one for each column (1 x N), or one for
  /// each group.
  enum class Alpha { None, One, Rows, Columns, Groups } alpha;
  llvm::SmallVector<numerics::EpilogueOp> steps; ///< named steps, after alpha
  mlir::Region *region = nullptr; ///< epilogue region behind these, or none: BlockScaledMatmulOp's
  /// An input of the epilogue region, behind the element. The input of groups has a row for each of
  /// them.
  struct Input {
    pipe::GlobalType type;
    bool isOfGroups;
  };
  llvm::SmallVector<Input> inputs;
  static Input inputOf(mlir::RankedTensorType type);
  std::optional<ResultQuantizer> quantizer; ///< quantizer of the elements
  bool withAmax = false;                    ///< true when the amax of the elements is a result too
  bool storesElements = true;               ///< the elements are a result themselves
  bool storesTiles = false; ///< the result leaves through shared memory and TMA stores
  bool isStrided = false;   ///< the caller says where the rows are
  /// The kernel writes zeros to the rows of no group. Otherwise its result begins as zeros, or
  /// nobody says what they are.
  bool clearsRows = false;

  /// More, or something else, than the elements leaves the kernel (ResultStores.h).
  bool derives() const { return quantizer || withAmax; }
  int64_t bits() const { return int64_t(type.getIntOrFloatBitWidth()); }
};

/// The results of an attention (GemmOfPlan.cpp).
Results resultsOf(AttentionOp op);

} // namespace fp4
