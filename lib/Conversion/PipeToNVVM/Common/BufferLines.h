//===- BufferLines.h - Places and number of a buffer's rows ---------------===//
//
// Sizes and pitches that the type of a buffer has are constants. All other sizes are operands of
// the pipe.view that makes the buffer. `global` is a buffer before the conversion.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Common/Lowering.h"

namespace fp4 {

/// The rows and the columns, i32.
mlir::Value rowsOfBuffer(mlir::OpBuilder &, mlir::Location, mlir::Value global);
mlir::Value columnsOfBuffer(mlir::OpBuilder &, mlir::Location, mlir::Value global);
/// Scale tiles (4 columns each) in a row of scale tiles, i32.
mlir::Value scaleBlockColumnsOfBuffer(mlir::OpBuilder &, mlir::Location, mlir::Value global);
/// The address of row `row`; `base` is the address of the buffer.
mlir::Value lineOfBuffer(mlir::OpBuilder &, mlir::Location, mlir::Value global, mlir::Value base,
                         mlir::Value row);
/// The address of the element `rows` rows behind `pointer`.
mlir::Value laterLine(mlir::OpBuilder &, mlir::Location, mlir::Value global, mlir::Value pointer,
                      int64_t rows);
/// Bytes of which every row has a multiple, so that stores may have this width.
int64_t unitOfRows(pipe::GlobalType type);
/// Elements of 16 bytes, of which rows with dynamic columns have a multiple.
int64_t elementsOfUnit(mlir::Type element);
/// Returns true when columns are a multiple of `count`, which is a power of two.
bool hasMultipleColumns(pipe::GlobalType type, int64_t count);

/// Adds zero to sizes that are arguments of `kernel`, because patterns read operands of operations
/// that have been converted.
void pinSizes(mlir::gpu::GPUFuncOp kernel);

} // namespace fp4
