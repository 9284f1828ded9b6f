//===- RowGathers.cpp - Rows that a row kernel reads by number ------------===//
#include "Rows/RowElements.h"

#include "fp4/Dialect/Fp4/IR/IndexExpressions.h"

using namespace mlir;
using namespace fp4;

/// Returns true when all rows of a thread read the same row: that of a token, whose heads follow
/// each other.
bool RowElements::isOfAllRows(const Operand &operand) {
  return operand.hasRows && sharesRows(operand.row, rowTeam.rowsOfThread());
}

/// Returns true when a thread of several rows has what `operand` reads in the other half of the row
/// among its own elements.
bool RowElements::isOfOwnHalves(const Operand &operand) {
  if (!rowTeam.hasHalves() || !operand.hasRows || operand.row || !operand.column ||
      !readsOtherHalf(operand.column, rowTeam.columns(), RowTeam::kChunk))
    return false;
  return sources.contains(keyOf({operand.tensor, /*hasRows=*/true, /*hasColumns=*/true}));
}

/// The number among what is found once for each row, or for all.
size_t RowElements::placeOfSelected(const Source &source) {
  return isOfAllRows(source.operand) ? 0 : rowTeam.selectedRow();
}

void RowElements::forEachRowOf(const Source &source, llvm::function_ref<void()> body) {
  if (isOfAllRows(source.operand))
    return body();
  rowTeam.forEachRow(body);
}

/// Loads the row number of the selected row of a gather. One that is negative reads row 0, which
/// its zeros replace.
void RowElements::findGathered(Source &source) {
  Value index = source.operand.hasRows ? Value(rowIndexOf(source.operand)) : constI32(b, 0);
  Value number = fp4::load(b, b.getI64Type(), address(b, source.rows.table, index, 8), 8);
  Value zero = constI64(b, 0);
  source.exist.push_back(arith::CmpIOp::create(b, arith::CmpIPredicate::sge, number, zero));
  number = arith::MaxSIOp::create(b, number, zero);
  InputRows rows = source.rows;
  rows.table = {};
  source.places.push_back(rows.at(b, arith::TruncIOp::create(b, b.getI32Type(), number)));
}

/// `loaded` of the selected row; zero where its number is negative.
Value RowElements::unlessNegative(const Source &source, Value loaded) {
  if (!source.rows.table)
    return loaded;
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(loaded.getType()));
  return arith::SelectOp::create(b, source.exist[placeOfSelected(source)], loaded, zero);
}
