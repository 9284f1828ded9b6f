//===- MatmulShape.cpp - Facts and types of a GEMM's kernel ---------------===//
//
// The types of a kernel's arguments, which follow from the sizes of the matmul and from its plan:
// tensor maps and their boxes, scales, alphas, results, tables and workspaces.
//
//===----------------------------------------------------------------------===//

#include "MatmulKernel.h"

#include "fp4/Dialect/Pipe/IR/Cluster.h"
#include "fp4/ISA/WeightLayout.h"
#include "fp4/Numerics/BlockScaledGemm.h"

#include <numeric>

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// A tile begins at a multiple of what its columns and a scale tile have in common.
int64_t MatmulShape::rowsScalesB() const {
  if (splitsColumns())
    return tileN;
  int64_t first = splitsScaleBlocks() ? kScaleBlockRows - std::gcd(tileN, kScaleBlockRows) : 0;
  return llvm::alignTo(first + tileN, kScaleBlockRows);
}

/// Number of parts in which the pairs load the half of B that each CTA of a pair has. Each pair
/// loads as many rows, of which swizzles keep 8 in one place; with too few rows each loads all of
/// them.
int64_t MatmulShape::partsB() const {
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
static int64_t partsOfScales(const MatmulShape &shape, int64_t rows, int64_t blocks) {
  constexpr int64_t leastBlocks = 2, few = 2;
  int64_t rowBlocks = llvm::divideCeil(rows, kScaleBlockRows),
          columnBlocks = shape.scaleColumns() / kScaleBlockColumns;
  int64_t rowParts = rowPartsOfScales(rows, blocks), columnParts = blocks / rowParts;
  bool mayCut = shape.clusterM * shape.clusterN > few && !shape.fallsBack &&
                rowParts == rowBlocks && columnBlocks % columnParts == 0 &&
                columnBlocks / columnParts >= leastBlocks;
  return columnParts == 1 || mayCut ? blocks : 1;
}
int64_t MatmulShape::partsScalesA() const { return partsOfScales(*this, blockM(), clusterN); }
int64_t MatmulShape::partsScalesB() const {
  if (splitsColumns())
    return clusterM == 2 ? 2 : 1;
  if (reducesInCluster) // the other pairs along m have other split-K parts
    return 1;
  return partsOfScales(*this, rowsScalesB(), clusterM);
}
TensorMapType MatmulShape::mapOfScales(int64_t rows, int64_t parts) const {
  int64_t rowParts = rowPartsOfScales(rows, parts);
  return TensorMapType::get({rows / rowParts, scaleColumns() / (parts / rowParts)}, scaleType,
                            Layout::Tiled128x4);
}

/// A box has `rows` rows of one panel, and the swizzle that is as wide as the panel. Elements of 4
/// and 6 bits that are spread take 8 in shared memory.
static TensorMapType mapOf(const MatmulShape &shape, Type element, int64_t rows, bool residue) {
  bool isFloat8 = isa<Float8E4M3FNType, Float8E5M2Type>(element);
  bool isSpread = shape.spreadsCodes && shape.isMXF8F6F4() && !isFloat8;
  int64_t bits = isSpread || isByteElementType(element) ? 8 : element.getIntOrFloatBitWidth();
  int64_t widest = MatmulShape::kPanelBytes * 8 / bits;
  int64_t panel = std::min(shape.tileK, widest);
  Layout layout = panel < widest ? Layout::Swizzle64B : Layout::Swizzle128B;
  if (isSpread)
    layout = isSixBitElementType(element) ? Layout::Swizzle128BPadded6 : Layout::Swizzle128BPadded;
  return TensorMapType::get({rows, panel}, element, layout, residue);
}
TensorMapType MatmulShape::mapA() const {
  if (floatA) // a line of the widest swizzle
    return TensorMapType::get({partRows(), kPanelBytes * 8 / floatA.getIntOrFloatBitWidth()},
                              floatA, Layout::Swizzle128B, hasResidue(partRows()));
  // A tall tile of converted operands has a box for each 128 rows, those of a scale tile.
  int64_t rows = hasF32Scales() ? blockM() : std::min(blockM(), kScaleBlockRows);
  return mapOf(*this, dataTypeA, rows / partsA(), !swap && partsA() == 1 && hasResidue(rows));
}
TensorMapType MatmulShape::mapB() const {
  bool residue = swap && partsB() == 1 && hasResidue(blockN());
  if (floatB)
    return TensorMapType::get({blockN(), kPanelBytes * 8 / floatB.getIntOrFloatBitWidth()}, floatB,
                              Layout::Swizzle128B, residue);
  // Transposed, a wide tile has a box for each of its accumulators.
  int64_t rows = transposed ? std::min(blockN(), hw::weightTileRows) : blockN();
  return mapOf(*this, dataTypeB, rows / partsB(), residue);
}
int MatmulShape::restoringExponent() const {
  using enum numerics::BlockFormat;
  return floatB ? -numerics::convertedExponent(block == 16 ? NVFP4 : MXFP4) : 0;
}
GlobalType MatmulShape::scalesOfOne() const {
  constexpr int64_t mostRows = 256;
  return GlobalType::get({mostRows, tileK / block}, scaleType, Layout::Tiled128x4);
}
Type MatmulShape::scalesA() const {
  if (hasF32Scales())
    return f32Scales(blockM(), m, hasResidue(blockM()));
  if (inCluster())
    return mapOfScales(blockM(), partsScalesA());
  if (hasUnitScalesOfA())
    return scalesOfOne();
  return GlobalType::get({scaleRowsA(), blocksOfRow()}, scaleType, Layout::Tiled128x4);
}
Type MatmulShape::scalesB() const {
  if (hasF32Scales())
    return f32Scales(promotedBlocks(tileN), f32ScaleRowsB(), /*residue=*/false);
  if (preDequantizedWeights)
    return GlobalType::get({tilesN() * tilesK(), hw::weightTileRows},
                           Float32Type::get(scaleType.getContext()));
  if (splitsColumns())
    return TensorMapType::get({kScaleBlockRows, kScaleBlockColumns}, scaleType, Layout::Tiled128x4);
  if (inCluster())
    return mapOfScales(rowsScalesB(), partsScalesB());
  if (hasUnitScalesOfB())
    return scalesOfOne();
  return GlobalType::get({scaleRowsB(), blocksOfRow()}, scaleType, Layout::Tiled128x4);
}
GlobalType MatmulShape::packedTiles() const {
  int64_t bytes = packedBytes();
  int64_t rows = (prepackedA ? m : n) * std::max<int64_t>(1, groups);
  int64_t tiles = rows / hw::weightTileRows * (k / hw::weightColumnsOf(bytes));
  return GlobalType::get({tiles, bytes}, IntegerType::get(scaleType.getContext(), 8));
}
GlobalType MatmulShape::alphas() const {
  SmallVector<int64_t> size;
  if (alpha == Alpha::Rows)
    size = {resultRows(), 1};
  else if (alpha == Alpha::Columns)
    size = {1, resultColumns()};
  else if (alpha == Alpha::Groups)
    size = {groups};
  return GlobalType::get(size, Float32Type::get(scaleType.getContext()));
}
/// G x 1 x N, of groups, is G x N in a kernel.
MatmulShape::BodyInput MatmulShape::bodyInput(RankedTensorType type) {
  bool isOfGroups = type.getRank() == 3;
  SmallVector<int64_t> shape(type.getShape());
  if (isOfGroups)
    shape.erase(shape.begin() + 1);
  return {GlobalType::get(shape, type.getElementType()), isOfGroups};
}
Layout MatmulShape::stagedLayout() const {
  int64_t bytes = storedColumns() * resultType.getIntOrFloatBitWidth() / 8;
  return bytes == 128 ? Layout::Swizzle128B : bytes == 64 ? Layout::Swizzle64B : Layout::Swizzle32B;
}
Type MatmulShape::result() const {
  if (storesTiles)
    return TensorMapType::get({storedRows(), storedColumns()}, resultType, stagedLayout());
  return resultBuffer();
}

SmallVector<GlobalType> MatmulShape::derivedTypes() const {
  SmallVector<GlobalType> types;
  GlobalType scalar = GlobalType::get({}, Float32Type::get(scaleType.getContext()));
  auto addSide = [&](int64_t rows, int64_t columns, bool isTiled) {
    Format format = formatOf(quantizer->recipe.getDecisions().format);
    int64_t blocks = ShapedType::isDynamic(columns)
                         ? columns
                         : int64_t(llvm::divideCeil(columns, quantizer->block()));
    types.push_back(
        GlobalType::get({rows, columns}, Float4E2M1FNType::get(scaleType.getContext())));
    if (groups && isTiled) // whole scale tiles of each
      rows = groupScaleRows;
    types.push_back(GlobalType::get({rows, blocks}, fp4::scaleType(scaleType.getContext(), format),
                                    isTiled ? Layout::Tiled128x4 : Layout::Linear));
  };
  if (quantizer && quantizer->hasAmax)
    types.push_back(scalar);
  if (quantizer && quantizer->rows)
    addSide(m, n, quantizer->tiledRows);
  if (quantizer && quantizer->columns)
    addSide(n, m, quantizer->tiledColumns);
  if (withAmax)
    types.push_back(scalar);
  return types;
}

static Type i32(const MatmulShape &shape) {
  return IntegerType::get(shape.scaleType.getContext(), 32);
}

GlobalType MatmulShape::table() const {
  if (stream)
    return GlobalType::get({2 * streamWorks, 4}, i32(*this));
  if (searchedOffsets)
    return GlobalType::get({groups + 2 - searchedOffsets, 2 * searchedOffsets}, i32(*this));
  int64_t places = dynamicRows() ? ShapedType::kDynamic : gapPlaces() + gaps();
  return GlobalType::get({places, 4}, i32(*this));
}

GlobalType MatmulShape::workspace() const {
  if (stream) // threads of a warp leave 16 bytes each, side by side
    return GlobalType::get({streamParts * rowsOfShare() * clusterM, kShareColumns},
                           Float32Type::get(scaleType.getContext()));
  if (dynamicColumns()) // parts of each tile of columns, one behind the other
    return GlobalType::get({ShapedType::kDynamic, tileN}, Float32Type::get(scaleType.getContext()));
  int64_t rows = dynamicRows() ? m : splits * tilesM() * workM();
  return GlobalType::get({rows, tilesN() * workN()}, Float32Type::get(scaleType.getContext()));
}

GlobalType MatmulShape::counters() const {
  if (stream)
    return GlobalType::get({streamReductions * clusterM * clusterN, 4}, i32(*this));
  int64_t rows = dynamicRows() ? ShapedType::kDynamic : tilesM() * clusterM * tilesN() * clusterN;
  return GlobalType::get({rows, 4}, i32(*this));
}

GlobalType MatmulShape::fragmentWorkspace() const {
  int64_t rows = stream ? streamParts : dynamicRows() ? m : splits * tilesM() * tilesN();
  return GlobalType::get({rows, tileM * tileN}, Float32Type::get(scaleType.getContext()));
}

GlobalType MatmulShape::fragmentCounters() const {
  constexpr int64_t warps = 8;
  int64_t rows = stream ? streamReductions : dynamicRows() ? m : tilesM() * tilesN();
  return GlobalType::get({rows, warps}, i32(*this));
}

Type MatmulShape::argumentOf(Type type, bool hasRows) {
  auto global = dyn_cast<GlobalType>(type);
  bool isSized =
      global && global.getRank() == 2 &&
      (global.hasDynamicColumns() || (hasRows && ShapedType::isDynamic(global.getShape()[0])));
  return isSized ? withoutSizes(global) : type;
}

SmallVector<Type> MatmulShape::argumentTypes() const {
  SmallVector<Type> types = {prepackedA ? Type(packedTiles()) : mapA()};
  if (prepackedB)
    types.push_back(packedTiles());
  else
    types.push_back(mapB());
  if (hasScalesA())
    types.push_back(argumentOf(scalesA()));
  if (!prepackedB && !floatB)
    types.push_back(argumentOf(scalesB(), /*hasRows=*/!swap));
  if (alpha != Alpha::None)
    types.push_back(argumentOf(alphas()));
  if (dual)
    types.push_back(secondWeights());
  if (dual && secondScales())
    types.push_back(argumentOf(secondScales(), /*hasRows=*/!swap));
  if (dual && alpha != Alpha::None)
    types.push_back(argumentOf(alphas()));
  for (const BodyInput &input : inputs)
    types.push_back(argumentOf(input.type));
  llvm::append_range(types, elementTypes());
  for (GlobalType derived : derivedTypes())
    types.push_back(argumentOf(derived, /*hasRows=*/dynamicWidth()));
  for (bool isGiven : {dynamicRows(), dynamicWidth(), dynamicDepth()})
    if (isGiven)
      types.push_back(i32(*this));
  if (hasTable())
    types.push_back(table());
  if (searchedOffsets)
    types.push_back(groupReportType(scaleType.getContext()));
  if (hasWorkspace() && hasFragments())
    llvm::append_values(types, Type(fragmentWorkspace()), Type(fragmentCounters()));
  else if (hasWorkspace())
    llvm::append_values(types, Type(workspace()), Type(counters()));
  return types;
}
