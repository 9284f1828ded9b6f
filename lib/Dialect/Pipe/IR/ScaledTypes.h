//===- ScaledTypes.h - Types of an operand and of its scales --------------===//
//
// The directives custom<ScaledTypes> and custom<ViewedType> of assembly formats.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/OpImplementation.h"

namespace fp4::pipe {

/// Parses the type of a tile, and of its scales where `operand` is there.
mlir::ParseResult parseScaledTypes(mlir::OpAsmParser &parser, mlir::Type &tile, mlir::Type &scales,
                                   std::optional<mlir::OpAsmParser::UnresolvedOperand> operand);
void printScaledTypes(mlir::OpAsmPrinter &printer, mlir::Operation *, mlir::Type tile,
                      mlir::Type scales, mlir::Value);

/// Parses the type of what a view is of, and derives that of `rows`, where there are some.
mlir::ParseResult parseViewedType(mlir::OpAsmParser &parser, mlir::Type &source, mlir::Type &rows,
                                  std::optional<mlir::OpAsmParser::UnresolvedOperand> operand);
void printViewedType(mlir::OpAsmPrinter &printer, mlir::Operation *, mlir::Type source, mlir::Type,
                     mlir::Value);

} // namespace fp4::pipe
