//===- KernelArguments.cpp - Arguments of the kernel of a GEMM ------------===//

#include "GemmKernel.h"

#include "fp4/Dialect/Pipe/IR/PipeMatrices.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

SmallVector<Value *> ResultArguments::derived(const Results &results) {
  bool ofRows = results.quantizer && results.quantizer->rows,
       ofColumns = results.quantizer && results.quantizer->columns;
  SmallVector<Value *> places;
  for (auto [place, exists] :
       {std::pair(&quantizeAmax, results.quantizer && results.quantizer->hasAmax),
        std::pair(&codes, ofRows), std::pair(&scales, ofRows), std::pair(&columnCodes, ofColumns),
        std::pair(&columnScales, ofColumns), std::pair(&amax, results.withAmax)})
    if (exists)
      places.push_back(place);
  return places;
}

void KernelArguments::forEach(const Gemm &gemm, Visitor visit) {
  bool hasRowsOfB = !gemm.swapsOperands();
  bool hasAlpha = gemm.results.alpha != Results::Alpha::None;
  visit(a, gemm.prepackedA() ? Type(gemm.packedTiles()) : gemm.mapA());
  visit(bb, gemm.prepackedB() ? Type(gemm.packedTiles()) : gemm.mapB());
  if (gemm.hasScalesA())
    visit(scalesA, Gemm::argumentOf(gemm.scalesA()));
  if (gemm.hasScalesB())
    visit(scalesB, Gemm::argumentOf(gemm.scalesB(), hasRowsOfB));
  if (hasAlpha)
    visit(alpha, Gemm::argumentOf(gemm.alphas()));
  if (gemm.problem.dual) {
    visit(b2, gemm.secondWeights());
    if (Type type = gemm.secondScales())
      visit(scalesB2, Gemm::argumentOf(type, hasRowsOfB));
    if (hasAlpha)
      visit(alpha2, Gemm::argumentOf(gemm.alphas()));
  }
  inputs.resize(gemm.results.inputs.size());
  for (auto [input, given] : llvm::zip_equal(inputs, gemm.results.inputs))
    visit(input, Gemm::argumentOf(given.type));
  forEachResult(gemm, visit);
  auto i32 = IntegerType::get(gemm.results.type.getContext(), 32);
  for (auto [size, isGiven] : {std::pair(&rows, gemm.problem.dynamicRows()),
                               std::pair(&columns, gemm.problem.dynamicWidth()),
                               std::pair(&depth, gemm.problem.dynamicDepth())})
    if (isGiven)
      visit(*size, i32);
  if (gemm.hasTable())
    visit(table, gemm.table());
  if (gemm.work.searchedOffsets)
    visit(report, groupReportType(i32.getContext()));
  if (gemm.work.hasWorkspace()) {
    visit(workspace, gemm.workspace());
    visit(counters, gemm.counters());
  }
}

/// Y, and its pitch if it has one, and what is derived from it.
void KernelArguments::forEachResult(const Gemm &gemm, Visitor visit) {
  if (gemm.pitchedResult()) {
    visit(result, Gemm::withoutSizes(gemm.resultBuffer()));
    visit(pitch, IntegerType::get(gemm.results.type.getContext(), 64));
  } else if (gemm.results.storesElements) {
    visit(result, gemm.result());
  }
  if (gemm.storesEnds())
    visit(resultBuffer, gemm.resultBuffer());
  for (auto [place, type] : llvm::zip_equal(derived.derived(gemm.results), gemm.derivedTypes()))
    visit(*place, Gemm::argumentOf(type, /*hasRows=*/gemm.problem.dynamicWidth()));
}

SmallVector<Type> KernelArguments::types(const Gemm &gemm) {
  SmallVector<Type> types;
  KernelArguments().forEach(gemm, [&](Value &, Type type) { types.push_back(type); });
  return types;
}

SmallVector<Value> KernelArguments::values(const Gemm &gemm) {
  SmallVector<Value> values;
  forEach(gemm, [&](Value &argument, Type) { values.push_back(argument); });
  return values;
}

KernelArguments::KernelArguments(TileBuilder &b, gpu::GPUFuncOp func, const Gemm &gemm) {
  unsigned number = 0;
  forEach(gemm, [&](Value &argument, Type) { argument = func.getArgument(number++); });
  if (!gemm.storesEnds())
    resultBuffer = result;
  derived.elements = result;
  takeSizes(b, gemm);
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
  return ViewOp::create(b, type, global, /*offset=*/uint64_t(0), sizeOfRows,
                        matrix.hasDynamicColumns() ? sizeOfColumns : Value(), pitch);
}

/// Buffers whose sizes are numbers.
void KernelArguments::takeSizes(TileBuilder &b, const Gemm &gemm) {
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
  if (scalesB2)
    take(scalesB2, gemm.secondScales(), gemm.swapsOperands() ? Value() : ofB, blocks);
  if (alpha)
    take(alpha, gemm.alphas(), /*sizeOfRows=*/{}, columns);
  if (alpha2)
    take(alpha2, gemm.alphas(), /*sizeOfRows=*/{}, columns);
  for (auto [input, given] : llvm::zip_equal(inputs, gemm.results.inputs))
    take(input, given.type, /*sizeOfRows=*/{}, columns);
  derived.columns = columns;
  if (!columns)
    return;
  // Codes and scales of columns are rows of their buffers.
  for (auto [place, type] : llvm::zip_equal(derived.derived(gemm.results), gemm.derivedTypes())) {
    bool ofColumns = place == &derived.columnCodes || place == &derived.columnScales;
    Value width = place == &derived.codes ? columns
                  : place == &derived.scales
                      ? b.quotientUp(columns, gemm.results.quantizer->block())
                      : Value();
    take(*place, type, ofColumns ? columns : Value(), width);
  }
}
