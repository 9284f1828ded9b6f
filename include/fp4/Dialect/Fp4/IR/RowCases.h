//===- RowCases.h - Plans of a kernel by its number of rows ---------------===//
//
// The attribute `fp4.dispatch` of the last operation of a row kernel or of a stream has a case for
// each range of few rows, in ascending order. `fp4.plan` beside it holds for all other numbers of
// rows. Host code launches the kernel of the first case whose range does not end before the rows of
// a call.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

namespace fp4 {

inline constexpr llvm::StringLiteral kRowCasesAttr = "fp4.dispatch";

/// Returns true when plans of `family` may be cases of ranges of rows.
inline bool hasRowCases(KernelFamily family) {
  using enum KernelFamily;
  return llvm::is_contained({StreamBlocks, StreamItems, ReduceRows}, family);
}

/// The cases of `op`; none where one plan is for all rows.
inline llvm::SmallVector<CaseAttr> rowCasesOf(mlir::Operation *op) {
  llvm::SmallVector<CaseAttr> cases;
  if (auto list = op->getAttrOfType<mlir::ArrayAttr>(kRowCasesAttr))
    llvm::append_range(cases, list.getAsRange<CaseAttr>());
  return cases;
}

} // namespace fp4
