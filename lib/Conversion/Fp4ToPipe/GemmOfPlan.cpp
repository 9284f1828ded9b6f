//===- GemmOfPlan.cpp - The values of a GEMM from its plan ----------------===//
//
// Each value is made once, of the operation, the plan and the values before it: the problem, the
// results, the shares of the work and the tiles. The table of routes has the route.
//
//===----------------------------------------------------------------------===//

#include "Gemm.h"

#include "WorkTables.h"

#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Utils/StridedArguments.h"
#include "fp4/ISA/ClusterLimit.h"
#include "fp4/ISA/TargetModel.h"

using namespace mlir;
using namespace fp4;

static Problem problemOf(BlockScaledMatmulOp op, const KernelPlan &plan) {
  auto lhs = cast<RankedTensorType>(op.getLhs().getType());
  Problem problem;
  problem.rows = lhs.getDimSize(0);
  problem.columns = op.getColumns();
  problem.depth = lhs.getDimSize(1);
  problem.depthUnit = knownUnitOfDepth(op, plan);
  problem.block = blockSize(op.getFormat());
  problem.lhs = lhs.getElementType();
  problem.rhs = cast<RankedTensorType>(op.getRhs().getType()).getElementType();
  problem.scaleType = scaleType(op.getContext(), op.getFormat());
  problem.unitScales = op.hasUnitScales();
  if (!op.getLhsScales() && !problem.unitScales)
    problem.floats = problem.lhs;
  problem.prepacked = op.hasPrepackedRhs();
  problem.mmaDepth = op.getMmaDepth();
  problem.dual = op.isDual();
  return problem;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

static Results::Alpha alphaOf(BlockScaledMatmulOp op) {
  if (!op.getAlpha())
    return Results::Alpha::None;
  auto type = cast<RankedTensorType>(op.getAlpha().getType());
  if (type.getRank() == 0)
    return Results::Alpha::One;
  if (type.getRank() == 1)
    return Results::Alpha::Groups;
  return type.getDimSize(1) == 1 ? Results::Alpha::Rows : Results::Alpha::Columns;
}

std::optional<unsigned> fp4::placeOfResult(BlockScaledMatmulOp op) {
  bool isPlain = op.hasOnlyElements() && !op.isGrouped();
  return isPlain ? stridedResultOf(op.getResult()) : std::nullopt;
}

static std::optional<ResultQuantizer> quantizerOf(BlockScaledMatmulOp op) {
  if (!op.getQuantizeRecipe())
    return std::nullopt;
  auto isTiled = [&](unsigned scales) {
    return scaleLayout(cast<RankedTensorType>(op.getQuantized()[scales].getType())).has_value();
  };
  ResultQuantizer quantizer{*op.getQuantizeRecipe(), static_cast<bool>(op.getQuantizeAmax())};
  quantizer.rows = op.quantizesRows();
  quantizer.columns = op.quantizesColumns();
  quantizer.tiledRows = quantizer.rows && isTiled(1);
  quantizer.tiledColumns = quantizer.columns && isTiled(quantizer.rows ? 3 : 1);
  return quantizer;
}

Results fp4::resultsOf(AttentionOp op) {
  Results results;
  results.type = op.getElementType();
  results.alpha = Results::Alpha::None;
  if (!op.getEpilogueBody().empty())
    results.region = &op.getEpilogueBody();
  for (Value input : op.getEpilogueInputs())
    results.inputs.push_back(Results::inputOf(cast<RankedTensorType>(input.getType())));
  results.storesElements = bool(op.getResult());
  results.isStrided = bool(stridedMatrixOf(op.getResult()));
  EpilogueQuantizeOp quantize = op.getEpilogueQuantize();
  if (!quantize)
    return results;
  auto scales = cast<RankedTensorType>(op.getQuantized()[1].getType());
  results.quantizer = ResultQuantizer{quantize.getRecipe(), bool(quantize.getAmax())};
  results.quantizer->rows = true;
  results.quantizer->tiledRows = scaleLayout(scales).has_value();
  return results;
}

static Results resultsOfGemm(BlockScaledMatmulOp op, const KernelPlan &plan) {
  Results results;
  results.type = op.getElementType();
  results.alpha = alphaOf(op);
  if (auto epilogue = op.getEpilogue())
    results.steps.assign(epilogue->getSteps().begin(), epilogue->getSteps().end());
  if (!op.getEpilogueBody().empty())
    results.region = &op.getEpilogueBody();
  for (Value input : op.getEpilogueInputs())
    results.inputs.push_back(Results::inputOf(cast<RankedTensorType>(input.getType())));
  results.quantizer = quantizerOf(op);
  results.withAmax = op.getWithAmax();
  results.storesElements = static_cast<bool>(op.getResult());
  results.storesTiles = plan.store == ResultStore::Tma;
  results.isStrided = placeOfResult(op).has_value();
  return results;
}

//===----------------------------------------------------------------------===//
// Tiles and works
//===----------------------------------------------------------------------===//

/// Returns true when loads leave out missing rows. If only the last of several boxes had a residue,
/// CTAs would wait for zeros before a whole box. With tcgen05 that costs more than missing rows.
static bool loadsResidues(const Gemm &gemm, BlockScaledMatmulOp op, const KernelPlan &plan,
                          const hw::TargetModel &target) {
  if (gemm.route().core != route::Core::Tcgen05)
    return target.features.hasSlowPartialBoxes;
  const Tiling &tiling = gemm.tiling;
  int64_t most = mostRowsOf(op, plan),
          box = gemm.swapsOperands() ? tiling.blockN() : tiling.blockM();
  return target.features.hasSlowPartialBoxes && !tiling.pair && !ShapedType::isDynamic(most) &&
         most <= box;
}

/// Sets the tile: that of the plan, or its transpose where the plan has one matrix and the
/// accumulator the other. Fragments are stored as they are, so the accumulator is of the result.
static void setTile(Gemm &gemm, const KernelPlan &plan) {
  Tiling &tiling = gemm.tiling;
  bool isOfOther = (gemm.record->tile == route::Tile::Transpose) != gemm.swapsOperands();
  tiling.tileM = plan.tile[isOfOther ? 1 : 0];
  tiling.tileN = plan.tile[isOfOther ? 0 : 1];
  tiling.tileK = plan.tile[2];
  if (gemm.problem.hasF32Scales()) { // the tensor core sums one scale block
    tiling.blocksOfTileK = tiling.tileK / pipe::kPromotedBlock;
    tiling.tileK = pipe::kPromotedBlock;
  }
  tiling.pair = plan.pair;
}

/// Sets the number of warpgroups that read sums in tensor memory.
static void setWarpgroups(Gemm &gemm, const KernelPlan &plan) {
  auto roles = cast<pipe::RolePlanAttr>(plan.roles);
  if (pipe::RoleAttr auxiliary = roles.getAuxiliary())
    gemm.tiling.auxiliary = StringAttr::get(roles.getContext(), auxiliary.getName());
  if (gemm.route().core != route::Core::Tcgen05)
    return;
  if (gemm.promotesLanes())
    gemm.tiling.laneGroups = roles.getDriver(pipe::Engine::Threads).getNumWarps() / 4;
  else
    gemm.tiling.epilogueGroups = plan.pipeline.epilogueWarps.value_or(4) / 4;
}

/// Sets split-K and the cluster, whose CTAs share loads or have parts of K.
static void setCluster(Gemm &gemm, BlockScaledMatmulOp op, const KernelPlan &plan) {
  bool reduces = plan.split.reduction == ReductionPlace::Cluster;
  gemm.work.splits = splitsOf(op, plan);
  gemm.work.ranges = plan.split.kSlices.value_or(1);
  for (pipe::RoleAttr role : cast<pipe::RolePlanAttr>(plan.roles).getSlices())
    gemm.work.sliceRoles.push_back(StringAttr::get(op.getContext(), role.getName()));
  gemm.work.reducesInCluster = reduces || (gemm.hasFragments() && plan.cluster[0] > 1);
  if (!plan.cluster[0] || gemm.hasFragments())
    return;
  gemm.tiling.clusterM = plan.cluster[0] / (reduces ? gemm.work.splits : 1);
  gemm.tiling.clusterN = plan.cluster[1];
  gemm.tiling.fallsBack = plan.fallback[0] > 0;
}

int64_t fp4::residentCtasPerSm(const Gemm &gemm, const KernelPlan &plan,
                               const hw::TargetModel &target) {
  int64_t blocks = plan.fallback[0] ? 1 : gemm.clusterCtasM() * gemm.tiling.clusterN;
  return *plan.ctasPerSm * hw::smsOfClusters(target, blocks);
}

/// A CTA has several tiles, as far as is known. A kernel of one tile for each CTA would have fewer
/// sets of scales for nothing.
static bool takesTurns(const Gemm &gemm, const KernelPlan &plan, const hw::TargetModel &target) {
  return gemm.problem.dynamicRows() || gemm.problem.dynamicWidth() ||
         gemm.works() * gemm.clusterCtasM() * gemm.tiling.clusterN >
             residentCtasPerSm(gemm, plan, target);
}

Gemm fp4::gemmOf(BlockScaledMatmulOp op, const KernelPlan &plan, const hw::TargetModel &target) {
  Gemm gemm;
  gemm.problem = problemOf(op, plan);
  gemm.record = &recordOf(op, plan, target);
  gemm.results = resultsOfGemm(op, plan);
  setTile(gemm, plan);
  setWarpgroups(gemm, plan);
  gemm.tiling.loadsResidues = loadsResidues(gemm, op, plan, target);
  setCluster(gemm, op, plan);
  if (op.isGrouped())
    setGroups(gemm, op);
  if (auto stream = op.getStreamK())
    setStream(gemm, {uint64_t((*stream)[0]), uint64_t((*stream)[1]), uint64_t((*stream)[2])});
  gemm.tiling.hasOneTile = !takesTurns(gemm, plan, target);
  gemm.tiling.alternates =
      gemm.holdsHalves() && plan.pipeline.accumulators != 1 && !gemm.tiling.hasOneTile;
  return gemm;
}
