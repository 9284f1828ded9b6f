//===- GemmKernel.cpp - A GEMM's kernel that is being built ---------------===//

#include "GemmKernel.h"

#include "fp4/Dialect/Pipe/IR/PipeMatrices.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// The arguments of the results that are derived from the elements.
static void takeDerived(const Gemm &gemm, ResultArguments &derived,
                        llvm::function_ref<Value()> next) {
  if (gemm.results.quantizer && gemm.results.quantizer->hasAmax)
    derived.quantizeAmax = next();
  if (gemm.results.quantizer && gemm.results.quantizer->rows) {
    derived.codes = next();
    derived.scales = next();
  }
  if (gemm.results.quantizer && gemm.results.quantizer->columns) {
    derived.columnCodes = next();
    derived.columnScales = next();
  }
  if (gemm.results.withAmax)
    derived.amax = next();
}

KernelArguments::KernelArguments(TileBuilder &b, gpu::GPUFuncOp func, const Gemm &gemm) {
  unsigned number = 0;
  auto next = [&]() -> Value { return func.getArgument(number++); };
  auto nextIf = [&](bool exists) { return exists ? next() : Value(); };
  a = next();
  bb = next();
  scalesA = nextIf(gemm.hasScalesA());
  scalesB = nextIf(gemm.hasScalesB());
  alpha = nextIf(gemm.results.alpha != Results::Alpha::None);
  b2 = nextIf(gemm.problem.dual);
  scalesB2 = nextIf(gemm.problem.dual && gemm.secondScales());
  alpha2 = nextIf(gemm.problem.dual && alpha);
  for (size_t i = 0; i < gemm.results.inputs.size(); ++i)
    inputs.push_back(next());
  derived.elements = result = nextIf(gemm.results.storesElements);
  Value pitch = nextIf(gemm.pitchedResult());
  resultBuffer = gemm.storesEnds() ? next() : result;
  takeDerived(gemm, derived, next);
  rows = nextIf(gemm.problem.dynamicRows());
  columns = nextIf(gemm.problem.dynamicWidth());
  depth = nextIf(gemm.problem.dynamicDepth());
  table = nextIf(gemm.hasTable());
  report = nextIf(gemm.work.searchedOffsets);
  workspace = nextIf(gemm.work.hasWorkspace());
  counters = nextIf(gemm.work.hasWorkspace());
  takeSizes(b, gemm, pitch);
}

/// `global`, whose sizes are those of `type` and numbers; a null pitch is that of dense rows.
static Value sized(TileBuilder &b, Value global, Type type, Value sizeOfRows, Value sizeOfColumns,
                   Value pitch) {
  auto matrix = cast<GlobalType>(type);
  if (!pitch) {
    bool isTiled = matrix.isScales(), isPacked = isa<Float4E2M1FNType>(matrix.getElementType());
    int64_t bytes = isTiled    ? kScaleBlockBytes
                    : isPacked ? kRowUnitBytes
                               : matrix.getElementType().getIntOrFloatBitWidth() / 8;
    Value count = sizeOfColumns ? sizeOfColumns : b.constant(matrix.getShape()[1]);
    if (isTiled || isPacked)
      count = b.quotientUp(count, isTiled ? kScaleBlockColumns : 2 * kRowUnitBytes);
    Value wide = arith::ExtUIOp::create(b, b.getI64Type(), count);
    pitch = b.mul(wide, arith::ConstantIntOp::create(b, bytes, 64));
  }
  return MatrixOp::create(b, type, global, sizeOfRows,
                          matrix.hasDynamicColumns() ? sizeOfColumns : Value(), pitch);
}

/// Buffers whose sizes are numbers.
void KernelArguments::takeSizes(TileBuilder &b, const Gemm &gemm, Value pitch) {
  if (pitch)
    derived.elements = result = resultBuffer =
        sized(b, result, gemm.resultBuffer(), /*rows=*/{}, columns, pitch);
  auto take = [&](Value &global, Type type, Value sizeOfRows, Value sizeOfColumns) {
    auto argument = dyn_cast<GlobalType>(Gemm::argumentOf(type, bool(sizeOfRows)));
    if (global && argument && argument.hasDynamicColumns())
      global = sized(b, global, type, sizeOfRows, sizeOfColumns, /*pitch=*/{});
  };
  if (!columns && !depth)
    return;
  Value blocks = depth ? b.quotientUp(depth, gemm.problem.block) : Value();
  take(scalesA, gemm.scalesA(), /*sizeOfRows=*/{}, blocks);
  Value ofB =
      columns && gemm.problem.hasF32Scales() ? b.quotientUp(columns, gemm.problem.block) : columns;
  take(scalesB, gemm.scalesB(), ofB, blocks);
  take(scalesB2, gemm.scalesB(), ofB, blocks);
  if (alpha)
    take(alpha, gemm.alphas(), /*sizeOfRows=*/{}, columns);
  if (alpha2)
    take(alpha2, gemm.alphas(), /*sizeOfRows=*/{}, columns);
  for (auto [input, given] : llvm::zip_equal(inputs, gemm.results.inputs))
    take(input, given.type, /*sizeOfRows=*/{}, columns);
  derived.columns = columns;
  if (columns && gemm.results.quantizer)
    takeQuantized(b, gemm, take);
}

/// Codes and scales of rows, and those of columns, which are rows of their buffers.
void KernelArguments::takeQuantized(TileBuilder &b, const Gemm &gemm, TakeSized take) {
  SmallVector<GlobalType> types = gemm.derivedTypes();
  auto next = types.begin() + gemm.results.quantizer->hasAmax;
  if (gemm.results.quantizer->rows) {
    take(derived.codes, *next++, /*sizeOfRows=*/{}, columns);
    take(derived.scales, *next++, /*sizeOfRows=*/{},
         b.quotientUp(columns, gemm.results.quantizer->block()));
  }
  if (gemm.results.quantizer->columns) {
    take(derived.columnCodes, *next++, columns, {});
    take(derived.columnScales, *next++, columns, {});
  }
}
