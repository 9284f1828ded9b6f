//===- OperandNames.cpp - Names of operands in errors ---------------------===//
#include "fp4/Dialect/Utils/OperandNames.h"

#include "mlir/IR/Location.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace mlir;

std::string fp4::placeOfOperand(Operation *op, StringRef kind, StringRef name) {
  std::string place = ("operand '" + name + "'").str();
  if (auto at = op->getLoc()->findInstanceOf<FileLineColLoc>())
    place +=
        llvm::formatv(" of the {0} at {1}:{2}:{3}", kind,
                      llvm::sys::path::filename(at.getFilename()), at.getLine(), at.getColumn());
  return place;
}
