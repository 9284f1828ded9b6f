//===- ScaledTypes.h - Types of an operand and of its scales --------------===//
//
// The directive custom<ScaledTypes> of assembly formats.
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

} // namespace fp4::pipe
