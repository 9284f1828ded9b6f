//===- Gemm.h - A GEMM and the kernel that computes it --------------------===//
#pragma once

#include "GemmValues.h"

#include "fp4/ISA/WeightLayout.h"
#include "fp4/Plans/KernelPlans.h"
#include "fp4/Plans/WarpFragment.h"
#include "fp4/Routes/Routes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <numeric>

namespace fp4 {

/// A GEMM and its kernel. A and B are the operands that the tensor core takes: with swapped
/// operands of tcgen05, A is the rhs. Functions here are facts that follow from several of the
/// values.
struct Gemm {
  Problem problem;
  const route::Record *record = nullptr; ///< the route, and the kernel that is built for it
  Tiling tiling;
  WorkShares work;
  Results results;

  const route::Route &route() const { return record->route; }
  /// Gives `op` to the threads that neither load nor multiply; returns it.
  template <typename OpT> OpT byAuxiliary(OpT op) const {
    if (tiling.auxiliary)
      op->setAttr(pipe::PipeDialect::kRoleAttr, tiling.auxiliary);
    return op;
  }
  /// Gives `op` to the warpgroups of k slice `slice`, where each slice has its own; returns it.
  template <typename OpT> OpT bySlice(OpT op, int64_t slice) const {
    if (slice && !work.sliceRoles.empty())
      op->setAttr(pipe::PipeDialect::kRoleAttr, work.sliceRoles[size_t(slice) - 1]);
    return op;
  }
  /// k tiles of a split-K part, where all have as many. The last tile may be a part of one.
  int64_t tilesOfSplit() const;
  /// A is the rhs and B the lhs: TMEM lanes are columns of the result.
  bool swapsOperands() const { return record->isSwapped() && route().core == route::Core::Tcgen05; }
  /// Fragments have columns of the result in their rows: B is the operand that the tensor core
  /// takes from registers. A is floats, or so few rows that they fill no instruction otherwise.
  bool transposes() const { return record->isSwapped() && route().core != route::Core::Tcgen05; }

  /// Columns that a thread leaves side by side, and rows of them that a CTA leaves of a tile.
  static constexpr int64_t kShareColumns = 4;
  int64_t rowsOfShare() const { return tiling.blockM() * tiling.tileN / kShareColumns; }

  /// Rows and columns of the accumulator's matrix: rows of A and of B.
  int64_t m() const { return swapsOperands() ? problem.columns : problem.rows; }
  int64_t n() const { return swapsOperands() ? problem.rows : problem.columns; }
  mlir::Type dataTypeA() const { return swapsOperands() ? typeOfWeights() : problem.lhs; }
  mlir::Type dataTypeB() const { return swapsOperands() ? problem.lhs : typeOfWeights(); }
  /// The elements of activations that reach the core without scales: bf16, f16 or f8E4M3FN; else
  /// null.
  mlir::Type floatsOfLhs() const {
    return route().lhs() == route::Operand::Pre ? problem.preDequantizedType() : problem.floats;
  }
  /// bf16, f16 or f8E4M3FN: the elements of A, which has no scales; else null.
  mlir::Type floatA() const {
    return route().core == route::Core::Tcgen05 ? mlir::Type() : floatsOfLhs();
  }
  /// bf16, f16 or f8E4M3FN: the elements of B, which has no scales. A becomes such elements in
  /// tensor memory.
  mlir::Type floatB() const {
    return route().core == route::Core::Tcgen05 ? floatsOfLhs() : mlir::Type();
  }
  /// An operand is tiles of fp4.prepack, which contain its scales: A where weights are TMEM lanes.
  bool prepackedA() const { return problem.prepacked && swapsOperands(); }
  bool prepackedB() const {
    return problem.prepacked && !swapsOperands() && route().rhs() != route::Operand::Pre;
  }
  /// The operand of activations has unit scales, of a buffer of one k tile. Unit scales of mma.sync
  /// are in registers, and a kernel that converts the operand before reads scales of all rows.
  bool loadsUnitScales() const {
    return problem.unitScales && route().core != route::Core::MmaSync &&
           route().lhs() != route::Operand::Pre;
  }
  bool hasUnitScalesOfA() const { return loadsUnitScales() && !swapsOperands(); }
  bool hasUnitScalesOfB() const { return loadsUnitScales() && swapsOperands(); }
  pipe::GlobalType scalesOfOne() const; ///< type of unit scales, as many as any tile has
  /// The exponent of what undoes the powers of two that operands have been converted with.
  int restoringExponent() const;

  /// Columns that an epilogue thread stores at a time. A row of a staged tile is as wide as the
  /// widest swizzle that divides the tile, of at most 64 columns, whose sums a thread reads. More
  /// columns, with the values that an epilogue region reads for them, are too many registers. If
  /// the next tile waits for some of the columns, few leave at a time, at most 64 bytes of a row:
  /// the first soon, while nothing is multiplied, and the others spread, because L2 delivers little
  /// else while it takes them. Narrow stores leave room for another stage of operands, too.
  int64_t storedColumns() const;
  /// Columns of sums that it reads and converts at a time, which divide those that it stores, or
  /// are twice as many. Beside columns that it holds, these and the next are to fit in its
  /// registers too.
  int64_t chunk() const;
  pipe::Layout stagedLayout() const;
  /// Tiles at the end of a group have rows of another one, so the kernel stores their elements
  /// directly.
  bool storesEnds() const { return results.storesTiles && problem.groups; }
  /// All staged tiles of a fragment are one stage. If the stores last as long as the next tile is
  /// multiplied, each tile is a stage, so that the first is free before the last has left.
  bool storesAtOnce() const { return problem.dynamicDepth() || tilesK() > 8; }
  /// Rows of a staged tile: those of accumulators that are complete together.
  int64_t storedRows() const { return std::min<int64_t>(tiling.blockM(), 128); }
  /// Columns whose elements become results together: where rows are quantized, those of a word of
  /// scales, or all that a thread has sums of.
  int64_t resultGroup() const {
    bool rows = results.quantizer && results.quantizer->rows;
    return rows ? std::min(results.quantizer->columnsOfWord(), tiling.laneColumns()) : chunk();
  }
  /// Columns of a row whose blocks one thread quantizes, and that all threads have at a time
  /// (pipe.gather_rows), for sums in registers of `threads` threads.
  int64_t gatheredColumns(int64_t threads) const {
    if (transposes()) // beside all elements of a tile, or the sums of another part, few fit
      return results.bits() == 32 || tiling.tileN > pipe::kMmaM ? 32 : 64;
    return fp4::gatheredColumns(tiling.tileN, threads);
  }
  /// Threads quantize rows of a transposed tile with fewer rows than there are threads, and other
  /// tiles may have the rows behind it.
  bool sharesRowsOfThreads() const {
    bool isOneTile = !problem.groups && !problem.dynamicRows() && tilesM() == 1;
    return transposes() && results.quantizer && partRows() < pipe::kMmaM && !isOneTile;
  }
  int64_t gatheredSection(int64_t threads) const {
    return gatheredColumns(threads) * threads / kGatheredRows;
  }
  /// Tensor memory has no second accumulator, or pair of them, beside the scales. The scales of k
  /// tiles of K = 96 take 12 columns for 128 rows, three times as many as others.
  bool hasOneAccumulator() const {
    int64_t columns = tiling.accumulatorColumns() * (problem.dual ? 2 : 1);
    if (tiling.laneGroups || floatB()) // accumulators are those of k tiles, or other warps need
      return false;                    // registers
    return columns == 256 || (problem.usesK96() && columns == 192);
  }
  /// Fewer columns where an epilogue region of any sizes has the registers that converting warps
  /// leave.
  int64_t narrowChunk() const {
    bool isNarrow = floatB() && results.region && problem.dynamicWidth() && !results.quantizer;
    return std::gcd<int64_t>(isNarrow ? 16 : 32, tiling.laneColumns());
  }
  /// Registers in which a thread keeps what it will store, see heldColumns().
  static constexpr int64_t kResidentRegisters = 128;

  /// Kind mxf8f6f4 multiplies: tiled scales, and elements of 6 or 8 bits on one side or on both.
  bool isMXF8F6F4() const {
    bool areCodes =
        isa<mlir::Float4E2M1FNType>(problem.lhs) && isa<mlir::Float4E2M1FNType>(typeOfWeights());
    return !problem.hasF32Scales() && !floatB() &&
           (!floatA() || route().lhs() == route::Operand::Pre) && !areCodes;
  }
  /// Twelve scales of a row belong to whole instructions of K = 96 and are whole blocks.
  static constexpr int64_t kScalesOfPart = 12;
  /// Parts of a k tile whose scales are loaded and copied by themselves. The scales of a whole k
  /// tile would take 144 columns of tensor memory beside 256 columns of an accumulator, and more
  /// shared memory than two stages of operands leave.
  int64_t scaleParts() const {
    bool hasParts = problem.usesK96() && tiling.tileN == 256;
    return hasParts ? tiling.tileK / (kScalesOfPart * problem.block) : 1;
  }
  /// Columns of a tile of scales.
  int64_t scaleColumns() const { return tiling.tileK / problem.block / scaleParts(); }
  /// TMA spreads elements of 4 and 6 bits over bytes.
  bool spreadsCodes() const { return route().core == route::Core::Tcgen05; }
  /// Elements of K of one instruction of a block-scaled kind.
  int64_t stepK() const {
    auto kind = isMXF8F6F4() ? hw::MmaKind::MXF8F6F4 : hw::MmaKind::MXF4NVF4;
    return hw::mmaK(kind, /*sparse=*/false, problem.mmaDepth);
  }
  /// Activations reach the core as e4m3 without scales.
  bool takesBytes() const { return floatsOfLhs() && floatsOfLhs().getIntOrFloatBitWidth() == 8; }
  /// Threads add sums of k tiles in tensor memory to those in their registers.
  bool promotesLanes() const {
    return route().core == route::Core::Tcgen05 && route().accumulate == route::Accumulate::Promote;
  }
  /// The scales of so many scale blocks of K have a row of a tile in shared memory, as narrow as
  /// TMA allows.
  static constexpr int64_t kStagedBlocks = 4;
  /// f32 scales reach shared memory in tiles of as many blocks, of which every split-K part has
  /// whole ones; or in tiles of fewer, where K is static and has no parts.
  bool stagesScales() const {
    return problem.hasF32Scales() && (hasWholeFours() || mayStageFewer());
  }
  /// Scale blocks of K whose scales are loaded together.
  int64_t blocksTogether() const;
  bool mayStageFewer() const {
    return route().core == route::Core::Wgmma && !problem.dynamicDepth() && work.splits == 1 &&
           !work.stream;
  }
  bool hasWholeFours() const {
    return problem.depthUnit % (kStagedBlocks * tiling.tileK * work.splits) == 0;
  }
  /// The core sums few k tiles, and threads add what it sums in f32.
  bool sumsFewOfK() const { return problem.hasF32Scales() || route().rhs() == route::Operand::Pre; }
  /// The core multiplies elements and their scales, which are in tensor memory or registers.
  bool takesScales() const {
    return record->unit == numerics::TensorCore::BlockScaled && !problem.hasF32Scales() &&
           !problem.prepacked;
  }
  /// A has scales in memory. Unit scales of mma.sync are constants.
  bool hasScalesA() const {
    bool areConstant = route().a == route::Operand::UnitScales && !loadsUnitScales();
    return !floatA() && !areConstant && !prepackedA();
  }
  /// B has scales in memory.
  bool hasScalesB() const { return !prepackedB() && !floatB(); }
  /// Some operand has scale tiles of 128 x 4.
  bool hasScaleTiles() const { return !problem.hasF32Scales() && (hasScalesA() || hasScalesB()); }
  /// Some box of `box` rows of the result reaches beyond them, and its map has a residue.
  bool hasResidue(int64_t box) const {
    return tiling.loadsResidues && !problem.groups &&
           (problem.dynamicRows() || problem.rows % box != 0);
  }
  /// The kernel gets the pitch of the elements that it stores.
  bool pitchedResult() const {
    return results.storesElements && !results.storesTiles &&
           (results.isStrided || problem.dynamicWidth());
  }
  /// Returns true when the columns of the GEMM that the tensor core computes are dynamic.
  bool dynamicColumns() const { return swapsOperands() && problem.dynamicRows(); }
  /// All sums of a thread have one alpha: they are of one row, or with swapped operands of one
  /// column.
  bool hasAlphaOfThread() const {
    using enum Results::Alpha;
    return results.alpha == (swapsOperands() ? Columns : Rows);
  }
  bool hasAlphaOfColumns() const {
    using enum Results::Alpha;
    return results.alpha == (swapsOperands() ? Rows : Columns);
  }
  /// Some tile has columns that do not exist.
  bool hasRaggedColumns() const {
    return mlir::ShapedType::isDynamic(n()) || n() % tiling.workN() != 0 ||
           (swapsOperands() && problem.groups);
  }
  /// Sums are in registers of the threads that multiply.
  bool hasFragments() const { return route().core != route::Core::Tcgen05; }

  /// A warp has a part of a tile of its own. Sums that threads promote, and those of swapped
  /// operands, have the fragments of wgmma, 16 rows in each warp.
  bool hasWarpFragments() const {
    return route().core == route::Core::MmaSync && !transposes() && !sumsFewOfK();
  }

  /// Columns that are read before any of them is stored. A tile of 256 columns has no second
  /// accumulator beside its scales, so the next tile waits until all of it is read.
  int64_t heldColumns() const;
  /// A thread holds half of a tile, so it may read either end of it first, and the next tile waits
  /// for no more than that.
  bool holdsHalves() const {
    return tiling.tileN == 256 && tiling.epilogueGroups == 1 && 2 * heldColumns() >= tiling.tileN &&
           !results.region && !floatB() && !problem.dual && !work.addsRanges() &&
           !results.derives();
  }
  /// Rows of the result among those that a CTA, or a cluster, works on at a time.
  int64_t workRows() const { return swapsOperands() ? tiling.workN() : tiling.workM(); }
  /// Counts of tiles, for static rows and for groups with static places.
  int64_t tilesM() const {
    bool areOfTable = problem.groups && !swapsOperands();
    return areOfTable ? work.tablePlaces : (m() + tiling.workM() - 1) / tiling.workM();
  }
  int64_t tilesN() const {
    bool areOfTable = problem.groups && swapsOperands();
    return areOfTable ? work.tablePlaces : (n() + tiling.workN() - 1) / tiling.workN();
  }
  int64_t tilesK() const { return (problem.depth + tiling.tileK - 1) / tiling.tileK; }
  /// Works along n of all split-K parts that have works of their own.
  int64_t worksN() const { return work.worksOfTile() * tilesN(); }
  /// Works of the whole kernel, where the rows are static.
  int64_t works() const { return work.stream ? work.streamWorks : tilesM() * worksN(); }
  /// Groups have lists of scale tiles, of the lhs or of results; f32 scales follow their rows.
  bool hasScaleLists() const {
    return !problem.hasF32Scales() || (results.quantizer && results.quantizer->tiledRows);
  }
  /// Returns true when its works are rows of a table.
  bool hasTable() const { return problem.groups || work.stream; }
  /// CTAs of a work.
  int64_t clusterCtasM() const {
    return (work.reducesInCluster ? work.reducedCtas() : 1) * tiling.clusterM;
  }
  /// Columns of a tile that a thread adds for a reduction in a cluster; and those of them that it
  /// converts at a time.
  int64_t reducedColumns() const {
    return fp4::reducedColumns(tiling.laneColumns(), work.reducedCtas());
  }
  int64_t reducedChunk() const {
    return std::gcd(std::gcd(reducedColumns(), tiling.laneColumns()), narrowChunk());
  }

  int64_t partsScalesA() const;
  int64_t partsScalesB() const;
  /// The map whose boxes are such parts of `rows` rows of scales.
  pipe::TensorMapType mapOfScales(int64_t rows, int64_t parts) const;

  /// Tiles begin within a scale tile of B.
  bool splitsScaleBlocks() const {
    bool isOneTile =
        !dynamicColumns() && !problem.dynamicWidth() && tilesN() * tiling.clusterN == 1;
    return tiling.tileN % pipe::kScaleBlockRows && !isOneTile && !tiling.splitsColumns() &&
           !floatB();
  }
  /// Rows of scales of each operand; groups have whole scale tiles.
  int64_t scaleRowsA() const {
    return !problem.groups   ? m()
           : swapsOperands() ? problem.groups * problem.alignedColumns()
                             : problem.groupScaleRows;
  }
  /// Rows of scales that the kernel takes, where each 64 rows have a scale tile (HalveScales.cpp)
  /// or each 128.
  int64_t rowsOfBlocksA() const { return (tiling.splitsColumns() ? 2 : 1) * scaleRowsA(); }
  int64_t scaleRowsB() const {
    if (halvesScalesB())
      return std::max<int64_t>(problem.groups, 1) * halvesOfGroupB() * pipe::kScaleBlockRows;
    return !problem.groups   ? n()
           : swapsOperands() ? problem.groupScaleRows
                             : problem.groups * problem.alignedColumns();
  }
  /// Each half of the columns of a tile has a scale tile of B of its own, in memory too.
  bool halvesScalesB() const {
    return tiling.splitsColumns() && tiling.accumulatorColumns() != pipe::kScaleBlockRows;
  }
  /// Scale tiles of the halves of a group.
  int64_t halvesOfGroupB() const {
    return llvm::alignTo(n(), tiling.tileN) / tiling.accumulatorColumns();
  }
  /// Rows behind which the weights of the next group begin.
  int64_t rowsOfGroupWeights() const {
    return prepackedA() || prepackedB() ? problem.alignedColumns() : problem.columns;
  }
  /// Rows behind which the scales of the rhs of the next group begin, as many as its scale tiles
  /// stand for.
  int64_t scaleRowsOfGroup() const {
    return halvesScalesB() ? llvm::alignTo(n(), tiling.tileN) : problem.alignedColumns();
  }
  /// Rows of scales of B that a CTA loads: whole scale tiles of 128 rows that its tile reaches
  /// into, or those of the tile in halves.
  int64_t rowsScalesB() const;
  /// Every tile has several whole scale tiles of these rows, all of which exist.
  bool fillsScaleBlocksB() const {
    return tiling.tileN > pipe::kScaleBlockRows && tiling.tileN % pipe::kScaleBlockRows == 0 &&
           !swapsOperands() && !problem.dynamicWidth() && n() % tiling.tileN == 0;
  }
  /// Bytes of K in one row of a box: the widest swizzle.
  static constexpr int64_t kPanelBytes = 128;

  pipe::TensorMapType mapA() const;
  pipe::TensorMapType mapB() const;
  /// Bytes of a tile of a prepacked operand.
  int64_t packedBytes() const {
    return takesBytes() ? hw::byteTileBytes : hw::weightTileBytes(problem.block);
  }
  /// Tiles of a prepacked operand along a static K, of which the last may end behind K.
  int64_t packedTilesOfK() const { return hw::weightTilesOfColumns(problem.depth, packedBytes()); }
  /// Elements of K of the operands of the result's columns: pre-dequantized weights have those of
  /// whole tiles, zeros behind K.
  int64_t depthOfB() const {
    return route().rhs() == route::Operand::Pre ? packedTilesOfK() * hw::byteTileColumns
                                                : problem.depth;
  }
  /// One k tile of prepacked B before the rows that it multiplies.
  bool holdsWeights() const {
    return prepackedB() && takesBytes() && route().accumulate != route::Accumulate::Fast &&
           route().core == route::Core::Wgmma && tiling.tileK == hw::byteTileColumns;
  }
  /// Rows of a fragment that a warpgroup has.
  static constexpr int64_t kWarpgroupRows = 64;
  /// Rows and columns of a tile that have a fragment of their own. Fragments of wgmma have the rows
  /// of two warpgroups, or transposed as many columns as a warpgroup has rows. Beside weights that
  /// are converted before, a thread has fragments and sums of 192 rows, or fragments of 256 and
  /// sums of 128.
  int64_t partRows() const {
    if (transposes())
      return route().rhs() == route::Operand::Pre && tiling.tileM == 256 ? 128 : tiling.tileM;
    return route().core == route::Core::Wgmma ? std::min<int64_t>(tiling.tileM, 128) : tiling.tileM;
  }
  int64_t partColumns() const {
    return transposes() && !hasUnevenWeights() ? hw::weightTileRows : tiling.tileN;
  }
  /// Three warpgroups multiply, which have one and a half tiles of prepacked weights.
  bool hasUnevenWeights() const {
    return transposes() && prepackedB() && tiling.tileN % hw::weightTileRows != 0;
  }
  int64_t partsOfTile() const {
    return int64_t(llvm::divideCeil(tiling.tileM, partRows())) * (tiling.tileN / partColumns());
  }
  /// Threads exchange the elements of a transposed tile before they store them, if it has rows
  /// enough to pay for the barriers, and weights whose stages leave room. Each warp reduces through
  /// a workspace by itself, so that other warps of its warpgroup may have nothing to store: of
  /// stream-K, only whole tiles are staged. Results derived from the elements take the room, or the
  /// registers.
  bool stagesStores() const;
  pipe::GlobalType packedTiles() const; ///< a prepacked operand, in its place
  /// The second weights of a dual GEMM, and their scales, null where they are prepacked.
  mlir::Type secondWeights() const {
    if (prepackedA() || prepackedB())
      return packedTiles();
    return swapsOperands() ? mapA() : mapB();
  }
  mlir::Type secondScales() const {
    if (prepackedA() || prepackedB())
      return {};
    return swapsOperands() ? scalesA() : scalesB();
  }
  /// Rows of the scales of weights.
  int64_t scaleRowsOfWeights() const { return swapsOperands() ? rowsOfBlocksA() : scaleRowsB(); }
  mlir::Type scalesA() const;
  mlir::Type scalesB() const;
  /// The placement of rows of f32 scales, by the pitch that they have in memory.
  pipe::Layout layoutOfF32Scales() const;
  hw::RowSets rowSetsOfScales() const;
  /// A map of boxes of `boxRows` of f32 scales, or the buffer of all `rows`.
  mlir::Type f32Scales(int64_t boxRows, int64_t rows, bool residue) const;
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
    return pipe::GlobalType::get({problem.rows, problem.columns}, results.type);
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
  int64_t gaps() const { return results.clearsRows ? problem.groups + 1 : 0; }
  /// The partial sums of split-K, each part with whole tiles; and what pipe.count_partial counts
  /// with, a row for each tile of a CTA. Accumulators in registers have a row for each tile of each
  /// split-K part.
  pipe::GlobalType workspace() const;
  pipe::GlobalType counters() const;

private:
  mlir::MLIRContext *context() const { return problem.scaleType.getContext(); }
  mlir::Type i32() const { return mlir::IntegerType::get(context(), 32); }
  mlir::Type f32() const { return mlir::Float32Type::get(context()); }
  /// Pre-dequantized weights are e4m3, and their scales are powers of their rows
  /// (PreDequantizedWeights.cpp).
  mlir::Type typeOfWeights() const;
};

/// Returns the kernel that `plan` makes of `op`.
Gemm gemmOf(BlockScaledMatmulOp op, const KernelPlan &plan, const hw::TargetModel &target);

/// CTAs of `plan` that the target runs at a time. Smaller clusters fill what larger ones leave.
int64_t residentCtasPerSm(const Gemm &gemm, const KernelPlan &plan, const hw::TargetModel &target);

/// The number of the result whose rows the caller places, where the kernel can write them.
std::optional<unsigned> placeOfResult(BlockScaledMatmulOp op);

/// The buffer in which a kernel leaves what is wrong with the rows of groups.
pipe::GlobalType groupReportType(mlir::MLIRContext *context);

} // namespace fp4
