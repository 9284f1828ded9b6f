//===- BufferLines.h - Where the rows of a buffer are, and how many --------===//
//
// Sizes and pitches that the type of a buffer has are constants. The others are operands of the
// pipe.matrix that makes the buffer. `global` is a buffer before the conversion.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Lowering.h"

namespace fp4 {

/// i32: the rows and columns.
mlir::Value rowsOfBuffer(mlir::OpBuilder &, mlir::Location, mlir::Value global);
mlir::Value columnsOfBuffer(mlir::OpBuilder &, mlir::Location, mlir::Value global);
/// i32: blocks of 4 columns in a row of scale blocks.
mlir::Value scaleBlockColumnsOfBuffer(mlir::OpBuilder &, mlir::Location, mlir::Value global);
/// The address of row `row`; `base` is that of the buffer.
mlir::Value lineOfBuffer(mlir::OpBuilder &, mlir::Location, mlir::Value global, mlir::Value base,
                         mlir::Value row);
/// An address as it is in the row `rows` further on.
mlir::Value laterLine(mlir::OpBuilder &, mlir::Location, mlir::Value global, mlir::Value pointer,
                      int64_t rows);
/// Bytes of which every row has a multiple, where as many are stored at a time.
int64_t unitOfRows(pipe::GlobalType type);
/// Elements of 16 bytes, of which rows with dynamic columns have a multiple.
int64_t elementsOfUnit(mlir::Type element);
/// Columns are a multiple of `count`, which is a power of two.
bool hasMultipleColumns(pipe::GlobalType type, int64_t count);

/// Sizes are no arguments of `kernel`: patterns read operands of operations that have been
/// converted.
void pinSizes(mlir::gpu::GPUFuncOp kernel);

} // namespace fp4
