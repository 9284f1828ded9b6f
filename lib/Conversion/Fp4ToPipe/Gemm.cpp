//===- Gemm.cpp - Facts and types of a GEMM's kernel ---------------===//
//
// The types of a kernel's arguments, which follow from the sizes of the matmul and from its plan:
// tensor maps and their boxes, scales, alphas, results, tables and workspaces.
//
//===----------------------------------------------------------------------===//

#include "Gemm.h"

#include "fp4/Dialect/Pipe/IR/Cluster.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/Numerics/BlockScaledGemm.h"
#include "fp4/Plans/StagedScales.h"

#include <numeric>

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

Type Problem::preDequantizedType() const {
  MLIRContext *context = scaleType.getContext();
  bool isHalf = block == 16 && !prepacked;
  return isHalf ? Type(Float16Type::get(context)) : Type(BFloat16Type::get(context));
}

Type Gemm::typeOfWeights() const {
  return route().rhs() == route::Operand::Pre ? Type(Float8E4M3FNType::get(context()))
                                              : problem.rhs;
}

int64_t Gemm::storedColumns() const {
  int64_t bits = results.bits(), widest = std::min<int64_t>(64, 128 * 8 / bits);
  widest /= tiling.epilogueGroups; // a staged tile has the columns of all warpgroups
  if (results.storesTiles && !results.region && !holdsHalves() &&
      tiling.laneColumns() % widest == 0)
    return widest;
  return results.storesTiles && tiling.alternates ? std::min(64 * 8 / bits, narrowChunk())
                                                  : narrowChunk();
}

int64_t Gemm::chunk() const {
  if (work.reducesInCluster && !hasFragments())
    return reducedChunk();
  if (tiling.epilogueGroups > 1) // columns not kept in registers are stored as they are converted
    return std::min(narrowChunk(), storedColumns());
  return hasOneAccumulator() ? narrowChunk() : storedColumns();
}

int64_t Gemm::heldColumns() const {
  if (problem.dual && tiling.hasOneTile) // nothing waits, and ptxas takes long for all columns
    return 0;                            // at once
  int64_t bits = work.addsRanges() ? 32 : results.bits(), registers = kResidentRegisters;
  if (results.region) // has others
    registers = kResidentRegisters / 2;
  if (results.alpha == Results::Alpha::Groups && !results.storesTiles)
    registers = std::min(registers, 3 * kResidentRegisters / 4); // as limits of rows and the factor
  registers /= tiling.epilogueGroups;                            // each thread has fewer columns
  return hasOneAccumulator() ? std::min<int64_t>(tiling.laneColumns(), registers * 32 / bits) : 0;
}

bool Gemm::stagesStores() const {
  constexpr int64_t fewestRows = 64, chunk = 8;
  bool haveRoom =
      route().rhs() == route::Operand::Pre || route().lhs() == route::Operand::Pre ||
      (prepackedB() && (!takesBytes() || route().accumulate == route::Accumulate::Fast));
  return haveRoom && !results.derives() && (work.stream || !work.hasWorkspace()) &&
         tiling.tileM >= fewestRows && n() % chunk == 0 && results.bits() == 16;
}

/// A tile begins at a multiple of what its columns and a scale tile have in common.
int64_t Gemm::rowsScalesB() const {
  if (tiling.splitsColumns())
    return tiling.tileN;
  int64_t first =
      splitsScaleBlocks() ? kScaleBlockRows - std::gcd(tiling.tileN, kScaleBlockRows) : 0;
  return llvm::alignTo(first + tiling.tileN, kScaleBlockRows);
}

/// Number of parts in which the pairs load the half of B that each CTA of a pair has. Each pair
/// loads as many rows, of which swizzles keep 8 in one place; with too few rows each loads all of
/// them.
int64_t Tiling::partsB() const {
  constexpr int64_t unit = 8;
  int64_t pairs = clusterM / 2;
  if (!pair)
    return clusterM;
  return blockN() % (pairs * unit) ? 1 : pairs;
}

/// `blocks` CTAs that load tiles of scales of `rows` rows together, or 1, where each loads all of
/// them. Each has rows of scale tiles, or an equal share of one row. Rows are not cut where two
/// CTAs are the whole cluster, which is predicted to gain nothing and takes an instruction more;
/// nor where smaller clusters may run the kernel, whose CTAs have a branch for each further part;
/// nor into boxes of less than 1 KiB.
static int64_t partsOfScales(const Gemm &gemm, int64_t rows, int64_t blocks) {
  constexpr int64_t leastBlocks = 2, few = 2;
  int64_t rowBlocks = llvm::divideCeil(rows, kScaleBlockRows),
          columnBlocks = gemm.scaleColumns() / kScaleBlockColumns;
  int64_t rowParts = rowPartsOfScales(rows, blocks), columnParts = blocks / rowParts;
  bool mayCut = gemm.tiling.clusterM * gemm.tiling.clusterN > few && !gemm.tiling.fallsBack &&
                rowParts == rowBlocks && columnBlocks % columnParts == 0 &&
                columnBlocks / columnParts >= leastBlocks;
  return columnParts == 1 || mayCut ? blocks : 1;
}
int64_t Gemm::partsScalesA() const {
  return partsOfScales(*this, tiling.blockM(), tiling.clusterN);
}
int64_t Gemm::partsScalesB() const {
  if (tiling.splitsColumns())
    return tiling.clusterM == 2 ? 2 : 1;
  if (work.reducesInCluster) // the other pairs along m have other split-K parts
    return 1;
  return partsOfScales(*this, rowsScalesB(), tiling.clusterM);
}
TensorMapType Gemm::mapOfScales(int64_t rows, int64_t parts) const {
  int64_t rowParts = rowPartsOfScales(rows, parts);
  return TensorMapType::get({rows / rowParts, scaleColumns() / (parts / rowParts)},
                            problem.scaleType, Layout::Tiled128x4);
}

/// A box has `rows` rows of one panel, and the swizzle that is as wide as the panel. Elements of 4
/// and 6 bits that are spread take 8 in shared memory.
static TensorMapType mapOf(const Gemm &gemm, Type element, int64_t rows, bool residue) {
  bool isFloat8 = isa<Float8E4M3FNType, Float8E5M2Type>(element);
  bool isSpread = gemm.spreadsCodes() && gemm.isMXF8F6F4() && !isFloat8;
  int64_t bits = isSpread || isByteElementType(element) ? 8 : element.getIntOrFloatBitWidth();
  int64_t widest = Gemm::kPanelBytes * 8 / bits;
  int64_t panel = std::min(gemm.tiling.tileK, widest);
  Layout layout = panel < widest ? Layout::Swizzle64B : Layout::Swizzle128B;
  if (isSpread)
    layout = isSixBitElementType(element) ? Layout::Swizzle128BPadded6 : Layout::Swizzle128BPadded;
  return TensorMapType::get({rows, panel}, element, layout, residue);
}
TensorMapType Gemm::mapA() const {
  if (floatA()) // a line of the widest swizzle
    return TensorMapType::get({partRows(), kPanelBytes * 8 / floatA().getIntOrFloatBitWidth()},
                              floatA(), Layout::Swizzle128B, hasResidue(partRows()));
  // A tall tile of converted operands has a box for each 128 rows, those of a scale tile.
  int64_t rows =
      problem.hasF32Scales() ? tiling.blockM() : std::min(tiling.blockM(), kScaleBlockRows);
  return mapOf(*this, dataTypeA(), rows / tiling.partsA(),
               !swapsOperands() && tiling.partsA() == 1 && hasResidue(rows));
}
TensorMapType Gemm::mapB() const {
  bool residue = swapsOperands() && tiling.partsB() == 1 && hasResidue(tiling.blockN());
  if (floatB())
    return TensorMapType::get({tiling.blockN(), kPanelBytes * 8 / floatB().getIntOrFloatBitWidth()},
                              floatB(), Layout::Swizzle128B, residue);
  // Transposed, a wide tile has a box for each of its accumulators.
  int64_t rows = transposes() ? std::min(tiling.blockN(), hw::weightTileRows) : tiling.blockN();
  return mapOf(*this, dataTypeB(), rows / tiling.partsB(), residue);
}
/// Codes of 4 bits are as they are in memory or prepacked, as bytes.
static numerics::BlockFormat formatOfCodes(Type data, int64_t block) {
  using enum numerics::BlockFormat;
  if (isa<Float8E4M3FNType>(data))
    return MXFP8E4M3;
  if (isa<Float8E5M2Type>(data))
    return MXFP8E5M2;
  if (isSixBitElementType(data))
    return isa<Float6E2M3FNType>(data) ? MXFP6E2M3 : MXFP6E3M2;
  return block == 16 ? NVFP4 : MXFP4;
}

int64_t Gemm::tilesOfSplit() const {
  constexpr auto unit = int64_t(numerics::splitSlice);
  return int64_t(llvm::divideCeil(problem.depth, unit)) / work.splits * (unit / tiling.tileK);
}

int Gemm::restoringExponent() const {
  using enum route::Operand;
  auto isOneOf = [](auto way, auto... ways) { return ((way == ways) || ...); };
  auto exponentOf = [&](Type data) {
    bool besideHalves = problem.floats && problem.floats.isF16();
    return numerics::convertedExponent(formatOfCodes(data, problem.block),
                                       besideHalves ? numerics::FloatType::F16
                                                    : numerics::FloatType::BF16);
  };
  // Weights beside e4m3 have powers of their own, and the kernel before a GEMM with prepacked
  // weights restores the lhs.
  bool hasWeights = isOneOf(route().rhs(), Registers, Shared, Tmem) && !takesBytes(),
       hasLhs = isOneOf(route().lhs(), Registers, Shared, Pre) && !problem.floats &&
                !(route().lhs() == Pre && prepackedB());
  return -(hasWeights ? exponentOf(problem.rhs) : 0) - (hasLhs ? exponentOf(problem.lhs) : 0);
}
GlobalType Gemm::scalesOfOne() const {
  constexpr int64_t mostRows = 256;
  return GlobalType::get({mostRows, tiling.tileK / problem.block}, problem.scaleType,
                         Layout::Tiled128x4);
}
Type Gemm::scalesA() const {
  if (problem.hasF32Scales())
    return f32Scales(tiling.blockM(), m(), hasResidue(tiling.blockM()));
  if (tiling.inCluster())
    return mapOfScales(tiling.blockM(), partsScalesA());
  if (hasUnitScalesOfA())
    return scalesOfOne();
  return GlobalType::get({scaleRowsA(), problem.blocksOfRow()}, problem.scaleType,
                         Layout::Tiled128x4);
}
Type Gemm::scalesB() const {
  if (problem.hasF32Scales())
    return f32Scales(promotedBlocks(tiling.tileN), problem.f32ScaleRowsB(), /*residue=*/false);
  if (route().rhs() == route::Operand::Pre)
    return GlobalType::get({tilesN() * tilesK(), hw::weightTileRows}, f32());
  if (tiling.splitsColumns())
    return TensorMapType::get({kScaleBlockRows, kScaleBlockColumns}, problem.scaleType,
                              Layout::Tiled128x4);
  if (tiling.inCluster())
    return mapOfScales(rowsScalesB(), partsScalesB());
  if (hasUnitScalesOfB())
    return scalesOfOne();
  return GlobalType::get({scaleRowsB(), problem.blocksOfRow()}, problem.scaleType,
                         Layout::Tiled128x4);
}
hw::RowSets Gemm::rowSetsOfScales() const { return rowSets(layoutOfF32Scales()); }
Layout Gemm::layoutOfF32Scales() const {
  constexpr std::array<Layout, 4> layouts = {Layout::Linear, Layout::Rows1Mod4, Layout::Rows2Mod4,
                                             Layout::Rows3Mod4};
  return problem.dynamicDepth() ? Layout::Linear : layouts[tilesK() % hw::RowSets::unit];
}
int64_t Gemm::blocksTogether() const {
  return hasWholeFours() ? kStagedBlocks : stagedScales(tilesK(), tiling.blocksOfTileK).together;
}
Type Gemm::f32Scales(int64_t boxRows, int64_t rows, bool residue) const {
  if (stagesScales()) {
    Layout layout = layoutOfF32Scales();
    int64_t sets = rowSetsOfScales().count();
    constexpr int64_t rowsOfLine = 8; // each set begins at a multiple of 128 bytes
    if (sets > 1)
      return TensorMapType::get({int64_t(llvm::alignTo(boxRows, rowsOfLine * sets)),
                                 stagedScales(tilesK(), tiling.blocksOfTileK).columns},
                                problem.scaleType, layout);
    return TensorMapType::get({boxRows, kStagedBlocks}, problem.scaleType, layout, residue);
  }
  int64_t columns = problem.dynamicDepth() ? problem.depth : tilesK();
  return GlobalType::get({rows, columns}, problem.scaleType);
}
GlobalType Gemm::packedTiles() const {
  Type byte = IntegerType::get(context(), 8);
  if (problem.dynamicWidth() || problem.dynamicDepth())
    return GlobalType::get({ShapedType::kDynamic, packedBytes()}, byte);
  int64_t ofColumns = std::max<int64_t>(1, problem.groups) * hw::weightTilesOfRows(problem.columns);
  return GlobalType::get({ofColumns * packedTilesOfK(), packedBytes()}, byte);
}
GlobalType Gemm::alphas() const {
  SmallVector<int64_t> size;
  if (results.alpha == Results::Alpha::Rows)
    size = {problem.rows, 1};
  else if (results.alpha == Results::Alpha::Columns)
    size = {1, problem.columns};
  else if (results.alpha == Results::Alpha::Groups)
    size = {problem.groups};
  return GlobalType::get(size, f32());
}
/// G x 1 x N, of groups, is G x N in a kernel.
Results::Input Results::inputOf(RankedTensorType type) {
  bool isOfGroups = type.getRank() == 3;
  SmallVector<int64_t> shape(type.getShape());
  if (isOfGroups)
    shape.erase(shape.begin() + 1);
  return {GlobalType::get(shape, type.getElementType()), isOfGroups};
}
Layout Gemm::stagedLayout() const {
  int64_t bytes = storedColumns() * results.bits() / 8;
  return bytes == 128 ? Layout::Swizzle128B : bytes == 64 ? Layout::Swizzle64B : Layout::Swizzle32B;
}
Type Gemm::result() const {
  if (results.storesTiles)
    return TensorMapType::get({storedRows(), storedColumns()}, results.type, stagedLayout());
  return resultBuffer();
}

std::array<GlobalType, 2> ResultQuantizer::typesOf(int64_t rows, int64_t columns, bool isTiled,
                                                   int64_t scaleRows) const {
  MLIRContext *context = recipe.getContext();
  Format format = formatOf(recipe.getDecisions().format);
  int64_t blocks =
      ShapedType::isDynamic(columns) ? columns : int64_t(llvm::divideCeil(columns, block()));
  return {GlobalType::get({rows, columns}, fp4::dataType(context, format)),
          GlobalType::get({scaleRows, blocks}, fp4::scaleType(context, format),
                          isTiled ? Layout::Tiled128x4 : Layout::Linear)};
}

SmallVector<GlobalType> Gemm::derivedTypes() const {
  SmallVector<GlobalType> types;
  GlobalType scalar = GlobalType::get({}, f32());
  auto addSide = [&](int64_t rows, int64_t columns, bool isTiled) {
    bool hasOwnRows = problem.groups && isTiled; // whole scale tiles of each
    llvm::append_range(types,
                       results.quantizer->typesOf(rows, columns, isTiled,
                                                  hasOwnRows ? problem.groupScaleRows : rows));
  };
  if (results.quantizer && results.quantizer->hasAmax)
    types.push_back(scalar);
  if (results.quantizer && results.quantizer->rows)
    addSide(problem.rows, problem.columns, results.quantizer->tiledRows);
  if (results.quantizer && results.quantizer->columns)
    addSide(problem.columns, problem.rows, results.quantizer->tiledColumns);
  if (results.withAmax)
    types.push_back(scalar);
  return types;
}

GlobalType Gemm::table() const {
  if (work.stream)
    return GlobalType::get({2 * work.streamWorks, 4}, i32());
  if (work.searchedOffsets)
    return GlobalType::get({problem.groups + 2 - work.searchedOffsets, 2 * work.searchedOffsets},
                           i32());
  int64_t places = problem.dynamicRows() ? ShapedType::kDynamic : work.gapPlaces() + gaps();
  return GlobalType::get({places, 4}, i32());
}

GlobalType Gemm::workspace() const {
  if (hasFragments()) {
    int64_t rows = work.stream             ? work.streamParts
                   : problem.dynamicRows() ? ShapedType::kDynamic
                                           : work.splits * tilesM() * tilesN();
    return GlobalType::get({rows, tiling.tileM * tiling.tileN}, f32());
  }
  if (work.stream) // threads of a warp leave 16 bytes each, side by side
    return GlobalType::get({work.streamParts * rowsOfShare() * tiling.clusterM, kShareColumns},
                           f32());
  if (dynamicColumns()) // parts of each tile of columns, one behind the other
    return GlobalType::get({ShapedType::kDynamic, tiling.tileN}, f32());
  int64_t rows =
      problem.dynamicRows() ? ShapedType::kDynamic : work.splits * tilesM() * tiling.workM();
  return GlobalType::get({rows, tilesN() * tiling.workN()}, f32());
}

GlobalType Gemm::counters() const {
  constexpr int64_t warps = 8, warpsOfLanes = 4;
  int64_t ctas = tiling.clusterM * tiling.clusterN;
  int64_t rows = work.stream             ? work.streamReductions * ctas
                 : problem.dynamicRows() ? ShapedType::kDynamic
                                         : tilesM() * tilesN() * ctas;
  return GlobalType::get({rows, hasFragments() ? warps : warpsOfLanes}, i32());
}

Type Gemm::argumentOf(Type type, bool hasRows) {
  auto global = dyn_cast<GlobalType>(type);
  bool isSized =
      global && global.getRank() == 2 &&
      (global.hasDynamicColumns() || (hasRows && ShapedType::isDynamic(global.getShape()[0])));
  return isSized ? withoutSizes(global) : type;
}
