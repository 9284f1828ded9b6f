//===- MatmulKernel.h - The sequential kernel of a matrix multiplication --===//
#pragma once

#include "fp4/Plans/KernelPlans.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"
#include "fp4/ISA/WeightLayout.h"
#include "fp4/Numerics/Epilogue.h"
#include "fp4/Numerics/StreamK.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <numeric>

namespace fp4 {

/// Quantization of the elements in the epilogue.
struct ResultQuantizer {
  RecipeAttr recipe;
  bool hasAmax;                       ///< the recipe has a tensor scale
  bool rows = false, columns = false; ///< orientations that are written
  bool tiledRows = false,
       tiledColumns = false; ///< true for scales in layout tiled_128x4, else row-major

  int64_t block() const { return numerics::blockSizeOf(recipe.getDecisions().format); }
};

/// The parameters of the kernel of Y[M,N] = epilogue(A[M,K] B[N,K]^T). With `swap`, of Y^T: A is
/// the rhs and B the lhs, and TMEM lanes of the accumulator are columns of Y.
struct MatmulShape {
  int64_t m;                          ///< rows of A and Y, or ShapedType::kDynamic
  int64_t n, k;                       ///< or ShapedType::kDynamic
  bool swap = false;                  ///< m and n are columns and rows of Y
  int64_t tileM, tileN, tileK;        ///< rows, columns and depth of an output tile
  int64_t clusterM = 1, clusterN = 1; ///< CTAs of a cluster
  bool fallsBack = false;             ///< smaller clusters may run the kernel
  bool pair = false;                  ///< two CTAs along m have one tile, of 256 or 128 rows
  int64_t depthUnit;                  ///< known divisor of K: K where it is static
  int64_t block;                      ///< elements of K that share a scale: 16, 32 or 128
  /// f4E2M1FN, f8E4M3FN or f8E5M2; f8E4M3FN with scales of f32.
  mlir::Type dataTypeA, dataTypeB;
  mlir::Type scaleType;  ///< f8E4M3FN, f8E8M0FNU or f32
  mlir::Type resultType; ///< f32, bf16 or f16
  /// No alpha, one, one for each row of the result (M x 1), one for each column (1 x N), or one for
  /// each group.
  enum class Alpha { None, One, Rows, Columns, Groups } alpha;
  llvm::SmallVector<numerics::EpilogueOp> epilogue; ///< named steps, after alpha
  mlir::Region *body = nullptr; ///< region behind these, or none: BlockScaledMatmulOp's
  /// An input of the epilogue region, behind the element. The input of groups has a row for each of
  /// them.
  struct BodyInput {
    pipe::GlobalType type;
    bool isOfGroups;
  };
  llvm::SmallVector<BodyInput> inputs;
  static BodyInput bodyInput(mlir::RankedTensorType type);
  /// Warpgroups that add up sums of f32 scales from tensor memory, each of a part of the columns; 0
  /// where the tensor core leaves sums in registers.
  int64_t laneGroups = 0;
  int64_t blocksOfTileK = 1; ///< k tiles of a stage, for f32 scales
  int64_t splits = 1;        ///< split-K parts
  int64_t ranges = 1;        ///< k slices of a CTA; all have one length
  /// The split-K parts of a tile are those of the CTAs of a cluster, which reduce in shared memory.
  /// Otherwise they are works of their own, which reduce through a workspace.
  bool reducesInCluster = false;
  /// Workers that share tiles, where some tile is of several; with the works of all, the tiles that
  /// have several, and the sums that these leave.
  std::optional<numerics::StreamK> stream;
  /// Columns that a thread leaves side by side, and rows of them that a CTA leaves of a tile.
  static constexpr int64_t kShareColumns = 4;
  int64_t rowsOfShare() const { return blockM() * tileN / kShareColumns; }
  int64_t streamWorks = 0, streamReductions = 0, streamParts = 0;
  int64_t groups = 0; ///< groups whose rows are stacked; 0 where there is one
  /// For groups: places in the table of their tiles of rows, and the rows of scales of the lhs, of
  /// which each group has whole scale tiles.
  int64_t tablePlaces = 0, groupScaleRows = 0;
  bool hasOneTile = false;  ///< no CTA has a second one
  bool knowsGroups = false; ///< all places of the table are rows of groups
  /// Numbers of the offsets that belong to a group, 1 or 2, where the kernel searches the few
  /// groups itself; 0 where a kernel before it makes a table of their tiles.
  int64_t searchedOffsets = 0;
  /// The kernel writes zeros to the rows of no group. Otherwise its result begins as zeros, or
  /// nobody says what they are.
  bool clearsRows = false;
  /// Even and odd tiles of a CTA are read from different ends, so that their accumulators may have
  /// columns in common.
  bool alternates = false;
  bool hasSpareThreads = false; ///< a role has threads that neither load nor multiply
  /// Warpgroups that read an accumulator in tensor memory, each a part of its columns.
  int64_t epilogueGroups = 1;
  bool storesTiles = false;   ///< the result leaves through shared memory and TMA stores
  bool stridedResult = false; ///< the caller says where the rows are
  /// Boxes of the rows of the result have no more rows than exist, where some tile has fewer.
  bool loadsResidues = false;
  bool dual = false;                        ///< two GEMMs of A, for the epilogue region
  std::optional<ResultQuantizer> quantizer; ///< quantizer of the elements
  bool withAmax = false;                    ///< with the amax of the elements
  bool storesElements = true;               ///< the elements are a result themselves
  mlir::Type floatA; ///< bf16, f16 or f8E4M3FN: the elements of A, which has no scales; else null
  /// The operand of activations has unit scales, of a buffer of one k tile.
  bool loadsUnitScales = false;
  bool hasUnitScalesOfA() const { return loadsUnitScales && !swap; }
  bool hasUnitScalesOfB() const { return loadsUnitScales && swap; }
  pipe::GlobalType scalesOfOne() const; ///< as many as any tile has
  /// bf16 or f16: the elements of B, which has no scales. A becomes such floats in tensor memory.
  mlir::Type floatB;
  /// The exponent of what undoes the power of two that A became floats with.
  int restoringExponent() const;
  /// Fragments have columns of Y in their rows: B is the operand that the tensor core takes from
  /// registers. A is floats, or so few rows that they fill no instruction otherwise.
  bool transposed = false;
  /// A was converted by a kernel of its own and is `floatA` (PreDequantize.h).
  bool preDequantizes = false;
  /// An operand is tiles of fp4.prepack, which contain its scales: A where weights are TMEM lanes.
  bool prepackedA = false, prepackedB = false;
  /// B was such tiles and is e4m3 now, and its scales are powers of its rows
  /// (PreDequantizedWeights.h).
  bool preDequantizedWeights = false;
  /// Sums of e4m3 and prepacked weights stay in the tensor core for a split-K part, and rows of
  /// weights have one power of two.
  bool accumulatesFast = false;

  /// Columns that an epilogue thread stores at a time. A row of a staged tile is as wide as the
  /// widest swizzle that divides the tile, of at most 64 columns, whose sums a thread reads. More
  /// columns, with the values that an epilogue region reads for them, are too many registers. If
  /// the next tile waits for some of the columns, few leave at a time, at most 64 bytes of a row:
  /// the first soon, while nothing is multiplied, and the others spread, because L2 delivers little
  /// else while it takes them. Narrow stores leave room for another stage of operands, too.
  int64_t storedColumns() const {
    int64_t bits = resultType.getIntOrFloatBitWidth(),
            widest = std::min<int64_t>(64, 128 * 8 / bits);
    widest /= epilogueGroups; // a staged tile has the columns of all warpgroups
    if (storesTiles && !body && !holdsHalves() && laneColumns() % widest == 0)
      return widest;
    return storesTiles && alternates ? std::min(64 * 8 / bits, narrowChunk()) : narrowChunk();
  }
  /// Columns of sums that it reads and converts at a time, which divide those that it stores, or
  /// are twice as many. Beside columns that it holds, these and the next are to fit in its
  /// registers too.
  int64_t chunk() const {
    if (reducesInCluster && !hasFragments())
      return reducedChunk();
    if (epilogueGroups > 1) // columns not kept in registers are stored as they are converted
      return std::min(narrowChunk(), storedColumns());
    return hasOneAccumulator() ? narrowChunk() : storedColumns();
  }
  pipe::Layout stagedLayout() const;
  /// Tiles at the end of a group have rows of another one, so the kernel stores their elements
  /// directly.
  bool storesEnds() const { return storesTiles && groups; }
  /// All staged tiles of a fragment are one stage. If the stores last as long as the next tile is
  /// multiplied, each tile is a stage, so that the first is free before the last has left.
  bool storesAtOnce() const { return dynamicDepth() || tilesK() > 8; }
  /// Rows of a staged tile: those of accumulators that are complete together.
  int64_t storedRows() const { return std::min<int64_t>(blockM(), 128); }
  /// More, or something else, than the elements leaves the kernel (ResultStores.h).
  bool derivesResults() const { return quantizer || withAmax; }
  /// Columns whose elements become results together: where rows are quantized, those of a word of
  /// tiled scales.
  int64_t resultGroup() const {
    bool rows = quantizer && quantizer->rows;
    return rows ? pipe::kScaleBlockColumns * quantizer->block() : chunk();
  }
  /// Columns of a row whose blocks one thread quantizes, and that all threads have at a time
  /// (pipe.gather_rows), for sums in registers of `threads` threads.
  int64_t gatheredColumns(int64_t threads) const {
    if (transposed) // beside all elements of a tile, or the sums of another part, few fit
      return resultType.getIntOrFloatBitWidth() == 32 || tileN > pipe::kMmaM ? 32 : 64;
    return std::clamp<int64_t>(tileN * pipe::kMmaM / threads, 32, 64);
  }
  int64_t gatheredSection(int64_t threads) const {
    return gatheredColumns(threads) * threads / pipe::kMmaM;
  }
  /// Tensor memory has no second accumulator, or pair of them, beside the scales. The scales of k
  /// tiles of K = 96 take 12 columns for 128 rows, three times as many as others.
  bool hasOneAccumulator() const {
    int64_t columns = accumulatorColumns() * (dual ? 2 : 1);
    if (laneGroups || floatB) // accumulators are those of k tiles, or other warps need registers
      return false;
    return columns == 256 || (k96 && columns == 192);
  }
  /// Fewer columns where an epilogue region of any sizes has the registers that converting warps
  /// leave.
  int64_t narrowChunk() const {
    return std::gcd<int64_t>(floatB && body && dynamicWidth() ? 16 : 32, laneColumns());
  }
  /// Registers in which a thread keeps what it will store, see heldColumns().
  static constexpr int64_t kResidentRegisters = 128;

  /// Kind mxf8f6f4 multiplies: tiled scales, and elements of 6 or 8 bits on one side or on both.
  bool isMXF8F6F4() const {
    return !hasF32Scales() && !floatB && (!floatA || preDequantizes) &&
           !(isa<mlir::Float4E2M1FNType>(dataTypeA) && isa<mlir::Float4E2M1FNType>(dataTypeB));
  }
  bool k96 = false;           ///< instructions have K = 96
  bool unitScalesA = false;   ///< A is e4m3, and its scales in an instruction are 1
  bool warpsMultiply = false; ///< mma.sync: beside floats, warps have the fragments of wgmma
  /// Twelve scales of a row belong to whole instructions of K = 96 and are whole blocks.
  static constexpr int64_t kScalesOfPart = 12;
  /// Parts of a k tile whose scales are loaded and copied by themselves. The scales of a whole k
  /// tile would take 144 columns of tensor memory beside 256 columns of an accumulator, and more
  /// shared memory than two stages of operands leave.
  int64_t scaleParts() const { return k96 && tileN == 256 ? tileK / (kScalesOfPart * block) : 1; }
  /// Columns of a tile of scales.
  int64_t scaleColumns() const { return tileK / block / scaleParts(); }
  bool spreadsCodes = false; ///< TMA spreads elements of 4 and 6 bits over bytes
  /// Elements of K of one instruction of a block-scaled kind.
  int64_t stepK() const { return isMXF8F6F4() ? 32 : k96 ? 96 : pipe::kMmaK; }
  /// A is e4m3 without scales, and the tensor core sums 128 products at a time.
  bool takesBytes() const { return floatA && floatA.getIntOrFloatBitWidth() == 8; }
  /// The scales of so many scale blocks of K have a row of a tile in shared memory, as narrow as
  /// TMA allows.
  static constexpr int64_t kStagedBlocks = 4;
  /// f32 scales reach shared memory in tiles of as many blocks, of which every split-K part has
  /// whole ones.
  bool stagesScales() const { return hasF32Scales() && hasWholeFours(); }
  bool hasWholeFours() const { return depthUnit % (kStagedBlocks * tileK * splits) == 0; }
  /// K tiles of e4m3 beside prepacked weights that follow one another in the code.
  int64_t writtenKTiles() const { return hasWholeFours() ? kStagedBlocks : 1; }
  /// Scale blocks of rows of B, of which each group has whole ones.
  int64_t f32ScaleRowsB() const {
    return dynamicWidth() ? n : std::max<int64_t>(groups, 1) * int64_t(llvm::divideCeil(n, block));
  }
  /// A map of boxes of `boxRows` of f32 scales, or the buffer of all `rows`.
  mlir::Type f32Scales(int64_t boxRows, int64_t rows, bool residue) const {
    if (stagesScales())
      return pipe::TensorMapType::get({boxRows, kStagedBlocks}, scaleType, pipe::Layout::Linear,
                                      residue);
    return pipe::GlobalType::get({rows, dynamicDepth() ? k : tilesK()}, scaleType);
  }
  /// Scales are row-major f32, of 1 x 128 elements of A and 128 x 128 of B.
  bool hasF32Scales() const { return scaleType.isF32(); }
  /// A has scales in memory.
  bool hasScalesA() const { return !floatA && !unitScalesA && !prepackedA; }
  /// Some box of `box` rows of the result reaches beyond them, and its map has a residue.
  bool hasResidue(int64_t box) const {
    return loadsResidues && !groups && (dynamicRows() || resultRows() % box != 0);
  }
  bool dynamicRows() const { return mlir::ShapedType::isDynamic(resultRows()); }
  /// The kernel gets the columns of the result, or K, as a number.
  bool dynamicWidth() const { return mlir::ShapedType::isDynamic(resultColumns()); }
  bool dynamicDepth() const { return mlir::ShapedType::isDynamic(k); }
  /// The kernel gets the pitch of the elements that it stores.
  bool pitchedResult() const {
    return storesElements && !storesTiles && (stridedResult || dynamicWidth());
  }
  /// Returns true when the columns of the GEMM that the tensor core computes are dynamic.
  bool dynamicColumns() const { return swap && dynamicRows(); }
  int64_t resultRows() const { return swap ? n : m; }
  int64_t resultColumns() const { return swap ? m : n; }
  /// All sums of a thread have one alpha: they are of one row, or with `swap` of one column.
  bool hasAlphaOfThread() const { return alpha == (swap ? Alpha::Columns : Alpha::Rows); }
  bool hasAlphaOfColumns() const { return alpha == (swap ? Alpha::Rows : Alpha::Columns); }
  /// Some tile has columns that do not exist.
  bool hasRaggedColumns() const {
    return mlir::ShapedType::isDynamic(n) || n % workN() != 0 || (swap && groups);
  }
  /// The partial sums of split-K are those of fragments.
  bool hasFragments() const {
    return transposed || warpsMultiply || (hasF32Scales() && !laneGroups);
  }
  bool inCluster() const { return clusterM * clusterN > 1; }

  /// Rows of A and of B that a CTA has of its tile.
  int64_t blockM() const { return pair ? tileM / 2 : tileM; }
  int64_t blockN() const { return pair ? tileN / 2 : tileN; }
  /// A pair has 128 rows: TMEM lanes have halves of the columns (pipe.lane_half).
  bool splitsColumns() const { return pair && tileM == pipe::kMmaM; }
  /// Columns of tensor memory that an accumulator takes.
  int64_t accumulatorColumns() const { return splitsColumns() ? tileN / 2 : tileN; }
  /// Columns of a tile that a thread has sums of.
  int64_t laneColumns() const { return accumulatorColumns() / epilogueGroups; }
  /// Columns that are read before any of them is stored. A tile of 256 columns has no second
  /// accumulator beside its scales, so the next tile waits until all of it is read.
  int64_t heldColumns() const {
    if (dual && hasOneTile) // nothing waits, and ptxas takes long for all columns at once
      return 0;
    int64_t bits = addsRanges() ? 32 : resultType.getIntOrFloatBitWidth();
    int64_t registers = body ? kResidentRegisters / 2 : kResidentRegisters; // others for the region
    if (alpha == Alpha::Groups && !storesTiles) // the limits of rows and the factor do, too
      registers = std::min(registers, 3 * kResidentRegisters / 4);
    registers /= epilogueGroups; // each thread has fewer columns
    return hasOneAccumulator() ? std::min<int64_t>(laneColumns(), registers * 32 / bits) : 0;
  }
  /// A thread holds half of a tile, so it may read either end of it first, and the next tile waits
  /// for no more than that.
  bool holdsHalves() const {
    return tileN == 256 && epilogueGroups == 1 && 2 * heldColumns() >= tileN && !body && !floatB &&
           !dual && !addsRanges() && !derivesResults();
  }
  /// CTAs leave sums of tiles in fp32, of all or of some.
  bool addsRanges() const { return splits > 1 || stream; }
  /// Rows and columns of the result that a CTA, or a cluster, works on at a time.
  int64_t workM() const { return blockM() * clusterM; }
  int64_t workN() const { return tileN * clusterN; }
  /// Rows of the result among these.
  int64_t workRows() const { return swap ? workN() : workM(); }
  /// Counts of tiles, for static rows and for groups with static places.
  int64_t tilesM() const { return groups && !swap ? tablePlaces : (m + workM() - 1) / workM(); }
  int64_t tilesN() const { return groups && swap ? tablePlaces : (n + workN() - 1) / workN(); }
  /// Works along n of all split-K parts that have works of their own.
  int64_t worksN() const { return worksOfTile() * tilesN(); }
  /// Split-K parts that have works of their own.
  int64_t worksOfTile() const { return reducesInCluster ? 1 : reducedCtas(); }
  /// CTAs that have the split-K parts of a tile.
  int64_t reducedCtas() const { return splits / ranges; }
  bool hasWorkspace() const { return (reducedCtas() > 1 && !reducesInCluster) || stream; }
  /// Works of the whole kernel, where the rows are static.
  int64_t works() const { return stream ? streamWorks : tilesM() * worksN(); }
  /// Returns true when its works are rows of a table.
  bool hasTable() const { return groups || stream; }
  /// CTAs of a work.
  int64_t clusterCtasM() const { return (reducesInCluster ? reducedCtas() : 1) * clusterM; }
  /// Columns of a tile that a thread adds for a reduction in a cluster; and those of them that it
  /// converts at a time.
  int64_t reducedColumns() const { return fp4::reducedColumns(laneColumns(), reducedCtas()); }
  int64_t reducedChunk() const {
    return std::gcd(std::gcd(reducedColumns(), laneColumns()), narrowChunk());
  }
  int64_t tilesK() const { return (k + tileK - 1) / tileK; }
  /// Scales of a row, or ShapedType::kDynamic.
  int64_t blocksOfRow() const { return dynamicDepth() ? k : k / block; }

  /// CTAs that load a tile together: those along n need the same A and its scales, those along m
  /// the same B, of pairs those that have the same half, and its scales.
  int64_t partsA() const { return clusterN; }
  int64_t partsB() const;
  pipe::Direction directionB() const { return pair ? pipe::Direction::Pairs : pipe::Direction::M; }
  int64_t partsScalesA() const;
  int64_t partsScalesB() const;
  /// The map whose boxes are such parts of `rows` rows of scales.
  pipe::TensorMapType mapOfScales(int64_t rows, int64_t parts) const;

  /// Tiles begin within a scale tile of B.
  bool splitsScaleBlocks() const {
    bool isOneTile = !dynamicColumns() && !dynamicWidth() && tilesN() * clusterN == 1;
    return tileN % pipe::kScaleBlockRows && !isOneTile && !splitsColumns() && !floatB;
  }
  /// Rows of scales of each operand; groups have whole scale tiles.
  int64_t scaleRowsA() const {
    return !groups ? m : swap ? groups * alignedColumns() : groupScaleRows;
  }
  /// As many rows as the kernel takes, where each 64 rows have a scale tile (HalveScales.h) or each
  /// 128.
  int64_t rowsOfBlocksA() const { return (splitsColumns() ? 2 : 1) * scaleRowsA(); }
  int64_t scaleRowsB() const {
    if (halvesScalesB())
      return std::max<int64_t>(groups, 1) * halvesOfGroupB() * pipe::kScaleBlockRows;
    return !groups ? n : swap ? groupScaleRows : groups * alignedColumns();
  }
  /// Rows of whole scale tiles of the rhs, or of that of each group.
  int64_t alignedColumns() const { return llvm::alignTo(resultColumns(), pipe::kScaleBlockRows); }
  /// Each half of the columns of a tile has a scale tile of B of its own, in memory too.
  bool halvesScalesB() const {
    return splitsColumns() && accumulatorColumns() != pipe::kScaleBlockRows;
  }
  /// Scale tiles of the halves of a group.
  int64_t halvesOfGroupB() const { return llvm::alignTo(n, tileN) / accumulatorColumns(); }
  /// Rows behind which the scales of the rhs of the next group begin, as many as its scale tiles
  /// stand for.
  int64_t scaleRowsOfGroup() const {
    return halvesScalesB() ? llvm::alignTo(n, tileN) : alignedColumns();
  }
  /// Rows of scales of B that a CTA loads: whole scale tiles of 128 rows that its tile reaches
  /// into, or those of the tile in halves.
  int64_t rowsScalesB() const;
  /// Every tile has several whole scale tiles of these rows, all of which exist.
  bool fillsScaleBlocksB() const {
    return tileN > pipe::kScaleBlockRows && tileN % pipe::kScaleBlockRows == 0 && !swap &&
           !dynamicWidth() && n % tileN == 0;
  }
  /// Bytes of K in one row of a box: the widest swizzle.
  static constexpr int64_t kPanelBytes = 128;

  /// Kernel argument types in order: A and B maps, A and B scales (a cluster has maps of them),
  /// alpha if any, of a dual GEMM the second B, its scales and alpha, the inputs of the epilogue
  /// region, Y and its pitch if it has one, what is derived from it, the i32 numbers of rows, of
  /// columns and of elements of K, those that are dynamic, the table of tiles of groups or of
  /// works, the report of searched groups, and the workspace and the counters of split-K.
  pipe::TensorMapType mapA() const;
  pipe::TensorMapType mapB() const;
  /// Bytes of a tile of a prepacked operand.
  int64_t packedBytes() const {
    return takesBytes() ? hw::byteTileBytes : hw::weightTileBytes(block);
  }
  /// One k tile of prepacked B before the rows that it multiplies.
  bool holdsWeights() const {
    return prepackedB && takesBytes() && !accumulatesFast && tileK == hw::byteTileColumns;
  }
  /// Rows of A that have an accumulator of their own. A thread has accumulators and sums of 192
  /// rows, or accumulators of 256 and sums of 128.
  int64_t partRows() const { return preDequantizedWeights && tileM == 256 ? 128 : tileM; }
  /// Threads exchange the elements of a transposed tile before they store them, if it has rows
  /// enough to pay for the barriers, and weights whose stages leave room. Each warp reduces through
  /// a workspace by itself, so that other warps of its warpgroup may have nothing to store. Results
  /// derived from the elements take the room, or the registers.
  bool stagesStores() const {
    constexpr int64_t fewestRows = 64, chunk = 8;
    bool haveRoom = preDequantizedWeights || preDequantizes ||
                    (prepackedB && (!takesBytes() || accumulatesFast));
    return haveRoom && !derivesResults() && !hasWorkspace() && tileM >= fewestRows &&
           n % chunk == 0 && resultType.getIntOrFloatBitWidth() == 16;
  }
  pipe::GlobalType packedTiles() const; ///< a prepacked operand, in its place
  /// The second weights of a dual GEMM, and their scales, null where they are prepacked.
  mlir::Type secondWeights() const {
    return prepackedA || prepackedB ? mlir::Type(packedTiles()) : mapB();
  }
  mlir::Type secondScales() const { return prepackedA || prepackedB ? mlir::Type() : scalesB(); }
  mlir::Type scalesA() const;
  mlir::Type scalesB() const;
  pipe::GlobalType alphas() const; ///< null without alpha
  /// The type of an argument that becomes a buffer of `type`: without sizes where some of these are
  /// numbers that the kernel gets. Rows are where `hasRows`; those of A and of the result are given
  /// by themselves.
  static mlir::Type argumentOf(mlir::Type type, bool hasRows = false);
  static pipe::GlobalType withoutSizes(pipe::GlobalType type) {
    constexpr int64_t any = mlir::ShapedType::kDynamic;
    return pipe::GlobalType::get({any, any}, type.getElementType(), type.getLayout());
  }
  mlir::Type result() const; ///< a map of staged tiles where they are stored
  pipe::GlobalType resultBuffer() const {
    return pipe::GlobalType::get({resultRows(), resultColumns()}, resultType);
  }
  llvm::SmallVector<mlir::Type> elementTypes() const {
    llvm::SmallVector<mlir::Type> types;
    if (pitchedResult())
      llvm::append_values(types, mlir::Type(withoutSizes(resultBuffer())),
                          mlir::Type(mlir::IntegerType::get(scaleType.getContext(), 64)));
    else if (storesElements)
      types.push_back(result());
    if (storesEnds())
      types.push_back(resultBuffer());
    return types;
  }
  /// The amax of the quantizer, codes and scales of rows and of columns, the amax: those that
  /// exist.
  llvm::SmallVector<pipe::GlobalType> derivedTypes() const;
  /// For groups, a row for each tile of rows: its first row, the end of its group's rows, its
  /// group, and its first row of scales of the lhs. One more row begins with the number of tiles.
  /// Rows from `gapPlaces` on begin with the first row and the end of what lies before each group,
  /// and behind all. For searched groups, the offsets as words of 32 bits. StreamTable.cpp
  /// describes the rows for workers that share tiles.
  pipe::GlobalType table() const;
  int64_t gapPlaces() const { return tablePlaces + 1; }
  /// Places beyond the whole tiles of all rows, for groups whose rows are dynamic.
  int64_t morePlaces() const { return groups; }
  int64_t gaps() const { return clearsRows ? groups + 1 : 0; }
  /// The partial sums of split-K, each part with whole tiles; and what pipe.count_partial counts
  /// with, a row for each tile of a CTA.
  pipe::GlobalType workspace() const;
  pipe::GlobalType counters() const;
  /// The workspace and counters of accumulators in registers: a row for each tile of each split-K
  /// part.
  pipe::GlobalType fragmentWorkspace() const;
  pipe::GlobalType fragmentCounters() const;
  llvm::SmallVector<mlir::Type> argumentTypes() const;
};

/// The buffer in which a kernel leaves what is wrong with the rows of groups.
pipe::GlobalType groupReportType(mlir::MLIRContext *context);

/// Adds `gpu.func @kernel` of the sequential form to `module`. The plan says which roles execute it
/// and which schedule shares out its tiles.
mlir::gpu::GPUFuncOp buildMatmulKernel(mlir::gpu::GPUModuleOp module, const MatmulShape &shape,
                                       const KernelPlan &plan, mlir::Location loc);

/// Builds the kernel for targets without fp4 tensor cores: operands are converted, and accumulators
/// are in registers (ConvertedGemmKernel.cpp).
mlir::gpu::GPUFuncOp buildConvertedGemmKernel(mlir::gpu::GPUModuleOp module,
                                              const MatmulShape &shape, const KernelPlan &plan,
                                              mlir::Location loc);

/// Builds the kernel of floats and weights whose A is converted in tensor memory
/// (WeightLaneKernel.cpp).
mlir::gpu::GPUFuncOp buildWeightLaneKernel(mlir::gpu::GPUModuleOp module, const MatmulShape &shape,
                                           const KernelPlan &plan, mlir::Location loc);

/// Builds the kernel of operands of FP8 with f32 scales (PromotedGemmKernel.cpp).
mlir::gpu::GPUFuncOp buildPromotedGemmKernel(mlir::gpu::GPUModuleOp module,
                                             const MatmulShape &shape, const KernelPlan &plan,
                                             mlir::Location loc);

/// Builds the kernel of FP8 with f32 scales whose sums are in tensor memory
/// (LaneGemmKernel.cpp).
mlir::gpu::GPUFuncOp buildLaneGemmKernel(mlir::gpu::GPUModuleOp module, const MatmulShape &shape,
                                         const KernelPlan &plan, mlir::Location loc);

/// Builds the kernel of transposed fragments: the tensor core takes converted B from registers
/// (WeightGemmKernel.cpp).
mlir::gpu::GPUFuncOp buildWeightGemmKernel(mlir::gpu::GPUModuleOp module, const MatmulShape &shape,
                                           const KernelPlan &plan, mlir::Location loc);

} // namespace fp4
