//===- FragmentEpilogue.cpp - Products whose sums are in registers --------===//

#include "FragmentEpilogue.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Elements of a thread that are handled at a time, at most: half of the columns that it covers.
static constexpr int64_t kElements = 16;

Value FragmentEpilogue::countTilesM() {
  Value count = constant(shape.dynamicRows() ? 0 : shape.tilesM());
  if (rows)
    count =
        arith::DivUIOp::create(b, loc, add(rows, constant(shape.tileM - 1)), constant(shape.tileM));
  return count;
}

Value FragmentEpilogue::load(Value map, Value row, Value column) {
  auto box = cast<TensorMapType>(map.getType());
  auto type = SharedType::get(box.getShape(), box.getElementType(), box.getLayout());
  return LoadOp::create(b, loc, type, map, row, column, Value(), Value(), Value()).getResult();
}

FragmentType FragmentEpilogue::fragment() {
  return FragmentType::get(b.getContext(), {64, shape.tileN}, b.getF32Type(), FragmentKind::Wgmma);
}

void FragmentEpilogue::storeSums(Value acc, Value row, Value column, int exponent) {
  Value scalar;
  if (shape.alpha == MatmulShape::Alpha::One)
    scalar = LoadScalarOp::create(b, loc, b.getF32Type(), alpha);
  Value factor;
  for (int64_t first = 0; first < shape.tileN; first += 2 * kElements) {
    int64_t count = std::min(kElements, (shape.tileN - first) / 2);
    auto type = VectorType::get({count}, b.getF32Type());
    Value at = add(column, constant(first));
    auto numbers = [&](VectorType ofType, Value global, Value limit) -> Value {
      return FragmentFactorsOp::create(b, loc, ofType, global, row, at, limit);
    };
    if (scalar)
      factor = vector::BroadcastOp::create(b, loc, type, scalar);
    else if (shape.alpha == MatmulShape::Alpha::Columns ||
             (shape.alpha == MatmulShape::Alpha::Rows && (first == 0 || count < kElements)))
      factor = loadAlphas(count, alpha, numbers);
    Value values = ReadFragmentOp::create(b, loc, type, acc, b.getI64IntegerAttr(first));
    if (exponent) {
      auto power = b.getF32FloatAttr(float(std::ldexp(1.0, exponent))).getValue();
      values = arith::MulFOp::create(
          b, loc, values, arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, power)));
    }
    StoreFragmentOp::create(b, loc, convertSums({{values, factor}}, numbers), result, row, at,
                            rows);
  }
}
