//===- ConvertedGemmKernel.cpp - GEMMs on tensor cores without fp4 -----===//
//
// The textbook algorithm of MatmulKernel.cpp, for a tensor core that multiplies 16-bit floats and
// leaves its sums in registers: the k tile of B is converted in shared memory, that of A on its way
// to the tensor core. The power of two of a conversion is undone before alpha. Groups have their
// tiles in a table (GroupTable.cpp).
//
//===----------------------------------------------------------------------===//

#include "FragmentEpilogue.h"
#include "MatmulKernel.h"
#include "OperandPath.h"

#include "fp4/Numerics/BlockScaledGemm.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Beside many sums and the values that an epilogue region reads, a thread has registers for what
/// it computes of few.
static constexpr int64_t kManySums = 128, kRegionWidth = 4;

/// Rows of A that an MMA of both warpgroups takes at a time.
static constexpr int64_t kRows = 128;

namespace {
class ConvertedGemmBuilder {
public:
  ConvertedGemmBuilder(GemmKernel &kernel, const KernelPlan &plan)
      : b(kernel.b), gemm(kernel.gemm), args(kernel.args), operands(kernel), loop(kernel, plan) {
    if (sumsOfThread() >= kManySums && !gemm.results.inputs.empty())
      loop.epilogue.conversion.regionWidth = kRegionWidth;
  }
  void build() {
    loop.forEachTile([&](Value m, Value n) { buildTile(m, n); });
  }

private:
  using Tile = WorkLoop::Tile;
  int64_t sumsOfThread() const {
    return gemm.tiling.tileM * gemm.tiling.tileN * (gemm.problem.dual ? 2 : 1) /
           loop.fragments.threads;
  }
  void buildTile(Value m, Value n);
  void buildKTile(ArrayRef<Value> accs, ArrayRef<Value> second, const Tile &tile, Value k);
  Value lastRowBlock();

  TileBuilder &b;
  const Gemm &gemm;
  const KernelArguments &args;
  OperandPath operands;
  FragmentLoop loop;
};
} // namespace

void ConvertedGemmBuilder::buildTile(Value m, Value n) {
  Tile tile = loop.works.findTile(m, n);
  SmallVector<Value> accs, second;
  for (int64_t first = 0; first < gemm.tiling.tileM; first += kRows) {
    accs.push_back(loop.fragments.create());
    second.push_back(gemm.problem.dual ? loop.fragments.create() : Value());
  }
  b.loop(tile.k.begin, tile.k.end, b.constant(1),
         [&](Value k) { buildKTile(accs, second, tile, k); });
  for (auto [i, acc] : llvm::enumerate(accs)) {
    Value first = i ? b.add(tile.row, b.constant(int64_t(i) * kRows)) : tile.row;
    loop.epilogue.storeSums(acc, first, tile.column, {operands.restoringExponent()}, tile.group, {},
                            second[i]);
  }
  loop.epilogue.finishTile();
}

/// The scale tile of A that has the last row.
Value ConvertedGemmBuilder::lastRowBlock() {
  if (!args.rows)
    return b.constant((gemm.scaleRowsA() - 1) / kScaleBlockRows);
  return operands.rowBlockOf(b.sub(args.rows, b.constant(1)));
}

/// Rows of A behind the first of a tile may not exist. Then they take the scales of the last block.
/// The second B of a dual GEMM is converted while the first one is multiplied.
void ConvertedGemmBuilder::buildKTile(ArrayRef<Value> accs, ArrayRef<Value> second,
                                      const Tile &tile, Value k) {
  Value element = b.mul(k, gemm.tiling.tileK);
  auto [kBlock, blocks] = operands.scaleBlocksOf(k);
  SmallVector<Value> firstRows = {tile.row}, aTiles, aScales, bTiles, bScales;
  for (size_t i = 1; i < accs.size(); ++i)
    firstRows.push_back(b.add(tile.row, b.constant(int64_t(i) * kRows)));
  for (auto [i, first] : llvm::enumerate(firstRows)) {
    aTiles.push_back(operands.load(args.a, first, element));
    Value rowBlock = operands.rowBlockOf(tile.scaleRowA);
    if (i) {
      Value next = args.table ? b.add(tile.scaleRowA, b.constant(int64_t(i) * kRows)) : first;
      rowBlock = arith::MinUIOp::create(b, operands.rowBlockOf(next), lastRowBlock());
    }
    aScales.push_back(operands.loadScales(args.scalesA, rowBlock, kBlock, blocks, kRows));
  }
  auto loadB = [&](Value map, Value scales) {
    bTiles.push_back(operands.load(map, tile.rowB, element));
    bScales.push_back(operands.loadScales(scales, operands.rowBlockOf(tile.scaleRowB), kBlock,
                                          blocks, gemm.tiling.tileN));
  };
  loadB(args.bb, args.scalesB);
  if (gemm.problem.dual)
    loadB(args.b2, args.scalesB2);
  Value more = b.compare(arith::CmpIPredicate::sgt, k, b.constant(0));
  for (auto [number, bTile] : llvm::enumerate(bTiles)) {
    Value half = operands.convert(bTile, bScales[number], blocks);
    for (auto [acc, aTile, ofA] : llvm::zip(number ? second : accs, aTiles, aScales))
      MmaConvertedOp::create(b, acc, aTile, ofA, half, more, blocks);
  }
}

gpu::GPUFuncOp fp4::buildConvertedGemmKernel(gpu::GPUModuleOp module, const Gemm &gemm,
                                             const KernelPlan &plan, Location loc) {
  gpu::GPUFuncOp func = createKernel(module, gemm.argumentTypes(), plan, loc);
  GemmKernel kernel(func, gemm, plan, loc);
  ConvertedGemmBuilder(kernel, plan).build();
  return func;
}
