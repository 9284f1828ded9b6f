//===- OperandNames.h - Names of operands in errors -----------------------===//
//
// Names of operands in messages. A check that the host makes when a program runs has no operation
// at which to report: the name of the operand and the place of its operation in the source are part
// of the text.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Operation.h"

#include <string>

namespace fp4 {

/// "operand 'NAME' of the KIND at FILE:12:8", or without a place where `op` has none.
std::string placeOfOperand(mlir::Operation *op, llvm::StringRef kind, llvm::StringRef name);

} // namespace fp4
