//===- SumConversion.h - Elements of the result from sums -----------------===//
//
// The epilogue of every matmul and attention as far as it does not depend on where the sums are:
// alpha, named steps, an epilogue region.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "GemmKernel.h"

namespace fp4 {

class SumConversion {
public:
  using Value = mlir::Value;
  explicit SumConversion(GemmKernel &kernel)
      : SumConversion(kernel.b, kernel.gemm.results, kernel.args.inputs, kernel.args.rows) {}
  /// `inputs` are those of the region, and `rows` the number of dynamic rows; the kernel keeps
  /// both.
  SumConversion(TileBuilder &b, const Results &results, const llvm::SmallVector<Value> &inputs,
                const Value &rows)
      : b(b), results(results), inputs(inputs), rows(rows) {}

  /// The place of sums in the result.
  struct Place {
    Value row, column, group; ///< the first of each thread; group is null without groups
    bool transposed;          ///< a thread has sums of one column of the result
  };
  /// The factors of `sums` whose `alphas` are those of rows or columns.
  Value loadAlphas(mlir::RankedTensorType sums, Value alphas, const Place &place);
  /// Sums of one GEMM, and their alpha, if there is one.
  struct Sums {
    Value values, factor;
  };
  /// Elements of the result from a tile of sums of each GEMM.
  Value convertSums(llvm::ArrayRef<Sums> products, const Place &place);
  /// Sums times 2^exponent.
  Value timesPower(Value sums, int exponent);

  /// Most sums of a thread that an epilogue region takes at a time.
  int64_t regionWidth = std::numeric_limits<int64_t>::max();

private:
  Value emitStep(numerics::EpilogueOp step, Value sums, Value factor);
  Value emitRegion(llvm::ArrayRef<Value> sums, const Place &place);
  Value emitRegionOf(llvm::ArrayRef<Value> arguments, int64_t first, int64_t width);
  Value loadInput(Value input, bool isOfGroups, mlir::RankedTensorType sums, const Place &place);
  /// The numbers of `global` that go with sums; `rows` is their limit or null. With `ofGroup` they
  /// are those of the row that the group of the sums has.
  Value load(mlir::RankedTensorType type, Value global, Value rows, bool ofGroup,
             const Place &place);
  Value narrow(Value sums);

  TileBuilder &b;
  const Results &results;
  const llvm::SmallVector<Value> &inputs;
  const Value &rows;
};

} // namespace fp4
