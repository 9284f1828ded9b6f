//===- PipeMma.h - MMAs, and the conversion of their operands -------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"
#include "fp4/ISA/MmaAtoms.h"

#define GET_OP_CLASSES
#include "fp4/Dialect/Pipe/IR/PipeMmaOps.h.inc"

namespace fp4::pipe {

/// Returns `op` if it is an MMA whose atom has the form `form`, else null.
inline MmaOp mmaOfForm(mlir::Operation *op, hw::MmaForm form) {
  auto mma = llvm::dyn_cast_or_null<MmaOp>(op);
  const hw::MmaAtom *atom = mma ? mma.getAtom() : nullptr;
  return atom && atom->form == form ? mma : MmaOp();
}

} // namespace fp4::pipe
