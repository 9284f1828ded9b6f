//===- MatmulKernel.cpp - The sequential kernel of a matrix multiplication ===//
//
// The textbook algorithm on tiles: for every output tile of this CTA, accumulate over k tiles, then
// read the accumulator in column chunks, scale, convert and store. Counters and coordinates are
// i32. If K or N is not a multiple of a tile, the numbers of scale blocks, matrix steps and columns
// that exist are computed per tile; otherwise every count is static.
//
// If a k tile of K = 96 has 256 columns, its scales are loaded, copied and used in parts of twelve
// of a row (Gemm::scaleParts). The parts follow one another in the code, so that they become
// successive stages of a channel that has scales only:
//
//   a, b = load                         (of the k tile)
//   for each part
//     sa, sb = load                     (12 scales of each row)
//     ta, tb = copy_scales sa, sb
//     mma acc, a scaled ta, b scaled tb {part}
//
//===----------------------------------------------------------------------===//

#include "MatmulKernel.h"

#include "LaneEpilogue.h"
#include "OperandPath.h"

#include "fp4/Dialect/Pipe/IR/ScaleWarps.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

namespace {
/// Emits the body of the kernel; one method per part, in the order of the code.
class MatmulBuilder {
public:
  explicit MatmulBuilder(GemmKernel &kernel)
      : b(kernel.b), gemm(kernel.gemm), args(kernel.args), operands(kernel), works(kernel) {}
  void build() {
    works.accumulate(
        [&](ValueRange accs, const LaneTile &tile, Value k) { buildKTile(accs, tile, k); });
  }

private:
  void buildKTile(ValueRange accs, const LaneTile &tile, Value k);
  /// The common values of the MMAs of a k tile.
  struct Product {
    Value accumulator, a, b, accumulate, steps;
  };
  void multiplyParts(const Product &product, const LaneTile &tile, Value kBlock);

  TileBuilder &b;
  const Gemm &gemm;
  const KernelArguments &args;
  OperandPath operands;
  LaneLoop works;
};
} // namespace

void MatmulBuilder::buildKTile(ValueRange accs, const LaneTile &tile, Value k) {
  Value kElement = b.mul(k, gemm.tiling.tileK);
  auto [kBlock, blocks] = operands.scaleBlocksOf(k);
  Value steps = blocks; // a block of 4 scales is one step of 64 when 16 elements share a scale
  if (int64_t tileSteps = gemm.tiling.tileK / gemm.stepK();
      gemm.problem.block != 16 || gemm.problem.k96)
    steps = operands.existingOfK(b.mul(k, tileSteps), tileSteps, gemm.stepK());

  // The last step reads scales behind those that exist, which TMA has made zero.
  if (gemm.problem.k96)
    blocks = Value();
  SmallVector<Value> bTiles, bScales;
  Value aTile =
      operands.loadShared(args.a, tile.rowA, kElement, gemm.tiling.partsA(), Direction::N);
  auto loadB = [&](Value map) {
    bTiles.push_back(operands.loadShared(map, tile.rowB, kElement, gemm.tiling.partsB(),
                                         gemm.tiling.directionB()));
  };
  auto loadScalesB = [&](Value from) {
    bScales.push_back(operands.loadLaneScales(from, tile.scaleRowB, tile.blockB, kBlock, blocks));
  };
  loadB(args.bb);
  if (gemm.problem.dual)
    loadB(args.b2);
  auto isMore = [&] { return b.compare(arith::CmpIPredicate::sgt, k, tile.k.begin); };
  if (gemm.scaleParts() > 1)
    return multiplyParts({accs.front(), aTile, bTiles.front(), isMore(), steps}, tile, kBlock);
  Value sa = operands.loadLaneScales(args.scalesA, tile.scaleRowA, tile.blockA, kBlock, blocks);
  loadScalesB(args.scalesB);
  if (gemm.problem.dual)
    loadScalesB(args.scalesB2);
  Value ta = operands.copyScales(sa, blocks);
  SmallVector<Value> tbs = llvm::map_to_vector(
      bScales, [&](Value s) -> Value { return operands.copyScales(s, blocks); });
  Value more = isMore();
  for (auto [acc, bTile, tb] : llvm::zip_equal(accs, bTiles, tbs))
    MmaOp::create(b, acc, aTile, ta, bTile, tb, tile.bScaleRow, more, steps, gemm.problem.k96,
                  DenseI64ArrayAttr());
}

/// The scales of each part are loaded and copied when those of the part before are on their way.
void MatmulBuilder::multiplyParts(const Product &product, const LaneTile &tile, Value kBlock) {
  int64_t ofPart = Gemm::kScalesOfPart * gemm.problem.block / gemm.stepK();
  for (int64_t part = 0; part < gemm.scaleParts(); ++part) {
    Value block = b.add(kBlock, b.constant(part * gemm.scaleColumns() / kScaleBlockColumns));
    Value sa = operands.loadLaneScales(args.scalesA, tile.scaleRowA, tile.blockA, block, Value());
    Value sb = operands.loadLaneScales(args.scalesB, tile.scaleRowB, tile.blockB, block, Value());
    Value ta = operands.copyScales(sa, Value()), tb = operands.copyScales(sb, Value());
    Value more = part ? arith::ConstantIntOp::create(b, 1, 1).getResult() : product.accumulate;
    MmaOp::create(b, product.accumulator, product.a, ta, product.b, tb, tile.bScaleRow, more,
                  product.steps, gemm.problem.k96, b.getDenseI64ArrayAttr({part * ofPart, ofPart}));
  }
}

gpu::GPUFuncOp fp4::buildMatmulKernel(gpu::GPUModuleOp module, const Gemm &gemm,
                                      const KernelPlan &plan, Location loc) {
  gpu::GPUFuncOp func = createKernel(module, gemm.argumentTypes(), plan, loc);
  // Without a declared number of CTAs per SM, ptxas spills registers of derived results, so that
  // more CTAs would fit than the shared memory allows. With the declaration, plain results have too
  // many loads on their way.
  if (gemm.problem.dual || gemm.results.withAmax || gemm.results.quantizer ||
      gemm.work.reducesInCluster || gemm.results.region)
    declareCtasPerSm(func, 1);
  if (gemm.scaleParts() > 1)
    func->setAttr(pipe::kSeparateScalesAttr, UnitAttr::get(func.getContext()));
  GemmKernel kernel(func, gemm, plan, loc);
  MatmulBuilder(kernel).build();
  return func;
}
