//===- SumConversion.h - Elements of the result from sums -----------------===//
//
// The epilogue of every matmul as far as it does not depend on the place of the sums: alpha, named
// steps, an epilogue region.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "GemmKernel.h"

namespace fp4 {

class SumConversion {
public:
  using Value = mlir::Value;
  explicit SumConversion(GemmKernel &kernel) : b(kernel.b), gemm(kernel.gemm), args(kernel.args) {}

  /// The numbers of `global` that go with the sums; `rows` is their limit or null. With `ofGroup`
  /// they are those of the row that their group has.
  using Numbers = llvm::function_ref<Value(mlir::RankedTensorType type, Value global, Value rows,
                                           bool ofGroup)>;
  /// The factors of `sums` whose `alphas` are those of rows or columns.
  Value loadAlphas(mlir::RankedTensorType sums, Value alphas, Numbers numbers);
  /// Sums of one GEMM, and their alpha, if there is one.
  struct Sums {
    Value values, factor;
  };
  /// Elements of the result from a tile of sums of each GEMM.
  Value convertSums(llvm::ArrayRef<Sums> products, Numbers numbers);
  /// Sums times 2^exponent.
  Value timesPower(Value sums, int exponent);

  /// Most sums of a thread that an epilogue region takes at a time.
  int64_t regionWidth = std::numeric_limits<int64_t>::max();

private:
  Value emitStep(numerics::EpilogueOp step, Value sums, Value factor);
  Value emitRegion(llvm::ArrayRef<Value> sums, Numbers numbers);
  Value emitRegionOf(llvm::ArrayRef<Value> arguments, int64_t first, int64_t width);
  Value loadInput(Value input, bool isOfGroups, mlir::RankedTensorType sums, Numbers numbers);
  Value narrow(Value sums);

  TileBuilder &b;
  const Gemm &gemm;
  const KernelArguments &args;
};

} // namespace fp4
