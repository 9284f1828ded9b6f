//===- BufferLines.cpp - Places and number of a buffer's rows -------------===//
#include "Common/BufferLines.h"

#include "fp4/Dialect/Pipe/IR/PipeMatrices.h"
#include "fp4/ISA/ScaleLayout.h"

#include "mlir/IR/Matchers.h"

#include <numeric>

using namespace mlir;

static fp4::pipe::GlobalType typeOf(Value global) {
  return cast<fp4::pipe::GlobalType>(global.getType());
}

Value fp4::rowsOfBuffer(OpBuilder &b, Location loc, Value global) {
  int64_t rows = typeOf(global).getShape()[0];
  return ShapedType::isDynamic(rows) ? pipe::matrixOf(global).getRows() : constantI32(b, loc, rows);
}

Value fp4::columnsOfBuffer(OpBuilder &b, Location loc, Value global) {
  pipe::GlobalType type = typeOf(global);
  return type.hasDynamicColumns() ? pipe::matrixOf(global).getColumns()
                                  : constantI32(b, loc, type.getShape()[1]);
}

/// Returns x of the quotient of x and `divisor`, rounded up, in the form that kernels write; else
/// null.
static Value roundedUp(Value quotient, APInt &divisor) {
  auto division = quotient.getDefiningOp<arith::DivUIOp>();
  auto sum = division ? division.getLhs().getDefiningOp<arith::AddIOp>() : arith::AddIOp();
  APInt added;
  bool isUp = sum && matchPattern(division.getRhs(), m_ConstantInt(&divisor)) &&
              matchPattern(sum.getRhs(), m_ConstantInt(&added)) && added + 1 == divisor;
  return isUp ? sum.getLhs() : Value();
}

Value fp4::scaleBlockColumnsOfBuffer(OpBuilder &b, Location loc, Value global) {
  pipe::GlobalType type = typeOf(global);
  if (!type.hasDynamicColumns())
    return constantI32(b, loc, type.getScaleBlockColumns());
  Value columns = columnsOfBuffer(b, loc, global);
  int64_t count = pipe::kScaleBlockColumns;
  APInt block;
  // Dividing the elements takes one division in place of two, which LLVM does not find.
  if (Value elements = roundedUp(columns, block)) {
    columns = elements;
    count *= block.getSExtValue();
  }
  Value up = arith::AddIOp::create(b, loc, columns, constantI32(b, loc, count - 1));
  return arith::DivUIOp::create(b, loc, up, constantI32(b, loc, count));
}

Value fp4::lineOfBuffer(OpBuilder &b, Location loc, Value global, Value base, Value row) {
  pipe::ViewOp matrix = pipe::matrixOf(global);
  if (!matrix)
    return stridedPointer(b, loc, base, row, typeOf(global).getRowPitch());
  Value wide = arith::ExtUIOp::create(b, loc, b.getI64Type(), row);
  Value bytes = arith::MulIOp::create(b, loc, wide, matrix.getPitch());
  return LLVM::GEPOp::create(b, loc, base.getType(), b.getI8Type(), base,
                             ArrayRef<LLVM::GEPArg>{bytes}, LLVM::GEPNoWrapFlags::inbounds);
}

Value fp4::laterLine(OpBuilder &b, Location loc, Value global, Value pointer, int64_t rows) {
  return lineOfBuffer(b, loc, global, pointer, constantI32(b, loc, rows));
}

int64_t fp4::unitOfRows(pipe::GlobalType type) {
  return type.hasDynamicColumns() ? pipe::kRowUnitBytes : type.getRowPitch();
}

int64_t fp4::elementsOfUnit(Type element) {
  return pipe::kRowUnitBytes * 8 / element.getIntOrFloatBitWidth();
}

bool fp4::hasMultipleColumns(pipe::GlobalType type, int64_t count) {
  if (!type.hasDynamicColumns())
    return type.getShape()[1] % count == 0;
  return elementsOfUnit(type.getElementType()) % count == 0;
}

void fp4::pinSizes(gpu::GPUFuncOp kernel) {
  kernel.walk([](pipe::ViewOp matrix) { // a raw pointer has no sizes
    if (!isa<pipe::GlobalType>(matrix.getSource().getType()))
      return; // a view of the host, which has no kernel code
    OpBuilder b(matrix);
    for (OpOperand &size : matrix->getOpOperands().drop_front()) {
      if (!isa<BlockArgument>(size.get()))
        continue;
      Type type = size.get().getType();
      Value zero = arith::ConstantIntOp::create(b, matrix.getLoc(), type, 0);
      size.set(arith::AddIOp::create(b, matrix.getLoc(), size.get(), zero));
    }
  });
}
