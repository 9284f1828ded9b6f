//===- GemmKernel.cpp - The kernel of a GEMM ------------------------------===//
//
// The textbook algorithm on tiles, for every route: for every output tile of this CTA, accumulate
// over k tiles, then read the sums, scale, convert and store them. Counters and coordinates are
// i32. If K or N is not a multiple of a tile, the numbers of scale blocks, matrix steps and columns
// that exist are computed per tile; otherwise every count is static.
//
// If a k tile of K = 96 has 256 columns, its scales are loaded, copied and used in parts of twelve
// of a row (Gemm::scaleParts). The parts follow one another in the code, so that they become
// successive stages of a channel that has scales only.
//
//===----------------------------------------------------------------------===//

#include "GemmKernel.h"

#include "Accumulator.h"
#include "FragmentEpilogue.h"
#include "LaneEpilogue.h"

#include "fp4/Dialect/Pipe/IR/ScaleWarps.h"

using namespace mlir;
using namespace fp4;

/// Returns how many CTAs per SM ptxas is told of; 0 where it finds the registers by itself. Without
/// a declared number, ptxas spills sums, or registers of derived results, so that more CTAs would
/// fit than shared or tensor memory allows. With one, plain results of tcgen05 have too many loads
/// on their way.
static int64_t declaredCtasPerSm(const Gemm &gemm, const KernelPlan &plan) {
  using enum route::Core;
  switch (*gemm.route().core) {
  case Tcgen05:
    if (gemm.floatB())
      return *plan.ctasPerSm;
    return gemm.problem.dual || gemm.results.derives() || gemm.results.region ||
           gemm.work.reducesInCluster;
  case Wgmma:
    return gemm.transposes() && *plan.ctasPerSm > 1 ? *plan.ctasPerSm : 0;
  case MmaSync:
    return gemm.transposes() ? *plan.ctasPerSm : 1;
  case Fma:
    break;
  }
  llvm_unreachable("a GEMV has no kernel of tiles");
}

static gpu::GPUFuncOp createFunction(gpu::GPUModuleOp module, const Gemm &gemm,
                                     const KernelPlan &plan, Location loc) {
  gpu::GPUFuncOp func = createKernel(module, KernelArguments::types(gemm), plan, loc);
  if (int64_t ctas = declaredCtasPerSm(gemm, plan))
    declareCtasPerSm(func, ctas);
  if (gemm.scaleParts() > 1)
    func->setAttr(pipe::kSeparateScalesAttr, UnitAttr::get(func.getContext()));
  return func;
}

static std::unique_ptr<Epilogue> makeEpilogue(GemmKernel &kernel, const WorkLoop &works,
                                              FragmentSums &fragments) {
  if (kernel.gemm.hasFragments())
    return std::make_unique<FragmentEpilogue>(kernel, fragments);
  return std::make_unique<LaneEpilogue>(kernel, works);
}

gpu::GPUFuncOp fp4::buildGemmKernel(gpu::GPUModuleOp module, const Gemm &gemm,
                                    const KernelPlan &plan, Location loc) {
  gpu::GPUFuncOp func = createFunction(module, gemm, plan, loc);
  GemmKernel kernel(func, gemm, plan, loc);
  WorkLoop works(kernel);
  OperandLoads loads(kernel);
  KLoop kLoop(kernel, loads);
  OperandPath pathOfA(kernel, loads, /*isA=*/true), pathOfB(kernel, loads, /*isA=*/false);
  FragmentSums fragments(kernel, works, plan);
  Accumulator accumulator(kernel, fragments, kLoop);
  std::unique_ptr<Epilogue> epilogue = makeEpilogue(kernel, works, fragments);

  works.countTilesM();
  epilogue->begin();
  works.forEachTile([&](Tile tile) {
    SmallVector<Value> accs = accumulator.create();
    pathOfA.begin(tile);
    kLoop.forEachStep(tile, [&](const KStep &step) {
      SmallVector<OperandPair> pairs;
      for (int64_t number = 0; number < kLoop.count(); ++number) {
        KTile k = kLoop.kTileOf(step, number);
        pairs.push_back({k, pathOfA.load(tile, k), pathOfB.load(tile, k)});
      }
      for (int64_t part = 0; part < gemm.scaleParts(); ++part) {
        for (OperandPair &pair : pairs) {
          pathOfA.takeScales(pair.a, tile, pair.k, part);
          pathOfB.takeScales(pair.b, tile, pair.k, part);
        }
        accumulator.multiply(accs, tile, step, pairs, part);
      }
    });
    epilogue->finish(accs, tile);
  });
  return func;
}
