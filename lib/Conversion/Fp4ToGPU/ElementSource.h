//===- ElementSource.h - Elements of a streaming kernel -------------------===//
//
// A kernel that streams reads one matrix. Either memory has the matrix, or it is the prologue of
// its readers (fp4/Dialect/Fp4/IR/Prologue.h), and the kernel loads the inputs of the elementwise
// operation and computes it. A kernel says how it loads a run of elements of one tensor, and gets
// the run of the matrix:
//
//   ElementSource source(kernel, op.getInput(), noArithmetic);
//   words = source.words(row, count, [&](const ElementSource::Input &input) {
//     return loadWords(b, place(input, row, column), count * input.elementBytes() / 4, ...);
//   });
//
//===----------------------------------------------------------------------===//
#pragma once

#include "KernelBuilder.h"

namespace fp4 {

class ElementSource {
public:
  /// `tensor` is an operand of the operation that `kernel` is for. A twin without arithmetic mixes
  /// the bits that it loads.
  ElementSource(KernelBuilder &kernel, mlir::Value tensor, bool noArithmetic);

  /// A tensor in memory.
  struct Input {
    InputRows rows;
    mlir::RankedTensorType type;
    bool hasRows = true, hasColumns = true; ///< false when elements are the same for all of them

    int64_t elementBytes() const { return type.getElementTypeBitWidth() / 8; }
    /// Returns where run number `run` of a row begins; a run has `count` elements.
    mlir::Value placeOf(mlir::ImplicitLocOpBuilder &b, mlir::Value row, mlir::Value run,
                        int64_t count) const;
    /// Bytes that an access to a run of `count` elements may take.
    int64_t accessBytes(int64_t count, int64_t widest) const {
      return rows.widestAccess(std::min(widest, count * elementBytes()));
    }
  };
  using Load = llvm::function_ref<llvm::SmallVector<mlir::Value>(const Input &)>;

  bool isComputed() const { return static_cast<bool>(prologue); }
  /// The tensors of which a run has elements of its own.
  auto inputsOfRuns() const {
    return llvm::make_filter_range(inputs, [](const Input &input) { return input.hasColumns; });
  }
  /// Every input has an element for each of the matrix, and rows follow each other.
  bool isFlat() const;
  /// The matrix, which is in memory.
  InputRows &matrix();

  /// Packed words of `count` elements of the matrix in row `row` (i32, unused where the source is
  /// flat). `load` returns such words of an input that has columns: of those in the row, or of the
  /// first row where it has one. A run of one element is one word, whose upper half may be zero.
  llvm::SmallVector<mlir::Value> words(mlir::Value row, int64_t count, Load load);

private:
  void addInput(mlir::OpOperand *operand);
  mlir::Value argument(const Input &input, mlir::Value row, int64_t count, Load load);
  llvm::SmallVector<mlir::Value> mixed(int64_t count, Load load);

  KernelBuilder &kernel;
  mlir::ImplicitLocOpBuilder &b;
  mlir::RankedTensorType type;
  mlir::linalg::GenericOp prologue;
  llvm::SmallVector<Input> inputs;
  bool noArithmetic;
};

} // namespace fp4
