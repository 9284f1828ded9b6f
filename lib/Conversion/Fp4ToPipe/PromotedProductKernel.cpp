//===- PromotedProductKernel.cpp - Products of FP8 with f32 scales --------===//
//
// The textbook algorithm of MatmulKernel.cpp, where a k tile is a block of scales: the tensor core
// sums its products in registers, and the sums times their scales are added in fp32. A tile of more
// rows than the warpgroups have at a time consists of parts, each with an accumulator of its own.
//
//===----------------------------------------------------------------------===//

#include "FragmentEpilogue.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

namespace {
class PromotedProductBuilder : FragmentEpilogue {
public:
  PromotedProductBuilder(gpu::GPUFuncOp func, const MatmulShape &shape, const KernelPlan &plan,
                         Location loc)
      : FragmentEpilogue(func, shape, plan, loc),
        partRows(std::min(shape.tileM, kMostPartRows)) {}
  void build() {
    buildTiles([&](Value m, Value n) { buildTile(m, n); });
  }

private:
  /// Rows of two warpgroups.
  static constexpr int64_t kMostPartRows = 128;

  void buildTile(Value m, Value n);
  void buildKTile(ArrayRef<Value> accumulators, Value row, Value column, Value k);
  Value partRow(Value row, size_t part) {
    return part ? add(row, constant(int64_t(part) * partRows)) : row;
  }

  int64_t partRows;
};
} // namespace

void PromotedProductBuilder::buildTile(Value m, Value n) {
  Value row = mul(m, shape.tileM), column = mul(n, shape.tileN);
  SmallVector<Value> accumulators;
  for (int64_t first = 0; first < shape.tileM; first += partRows)
    accumulators.push_back(newFragment());
  loop(constant(0), constant(shape.tilesK()), constant(1),
       [&](Value k) { buildKTile(accumulators, row, column, k); });
  for (auto [part, acc] : llvm::enumerate(accumulators))
    storeSums(acc, partRow(row, part), column, /*exponent=*/0);
}

/// Scales are asked for before the tiles are there.
void PromotedProductBuilder::buildKTile(ArrayRef<Value> accumulators, Value row, Value column,
                                        Value k) {
  auto type = VectorType::get({2 + promotedBlocks(shape.tileN)}, b.getF32Type());
  SmallVector<Value> scales;
  for (size_t part = 0; part < accumulators.size(); ++part)
    scales.push_back(BlockScalesOp::create(b, loc, type, scalesA, partRow(row, part), scalesB, column,
                                           b.getI64IntegerAttr(shape.tileN), k, rows));
  Value element = mul(k, shape.tileK);
  Value aTile = load(a, row, element), bTile = load(bb, column, element);
  for (auto [part, acc] : llvm::enumerate(accumulators)) {
    Value sums = newFragment();
    MmaFragmentOp::create(b, loc, sums, aTile, b.getI64IntegerAttr(int64_t(part) * partRows), bTile);
    PromoteOp::create(b, loc, acc, sums, scales[part], column);
  }
}

gpu::GPUFuncOp fp4::buildPromotedProductKernel(gpu::GPUModuleOp module, const MatmulShape &shape,
                                               const KernelPlan &plan, Location loc) {
  gpu::GPUFuncOp func = createKernel(module, shape.argumentTypes(), plan, loc);
  PromotedProductBuilder(func, shape, plan, loc).build();
  return func;
}
