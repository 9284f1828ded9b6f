//===- VerifyMma.h - Checks of MMAs by the form of their atom -------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/PipeMma.h"

namespace fp4::pipe {

/// (C650) An atom has the types, and reads the fields that are there.
llvm::LogicalResult verifyAtom(MmaOp op);

// MMAs that tcgen05 executes (PipeMma.cpp).
llvm::LogicalResult verifyTcgen05Scaled(MmaOp op);
llvm::LogicalResult verifyTcgen05Dense(MmaOp op);
llvm::LogicalResult verifyTcgen05TmemA(MmaOp op);
llvm::LogicalResult verifyTcgen05Slices(MmaOp op);

// MMAs with accumulators in registers (PipeMmaRegisters.cpp).
llvm::LogicalResult verifyWgmmaShared(MmaOp op);
llvm::LogicalResult verifyWgmmaFloat(MmaOp op);
llvm::LogicalResult verifyWgmmaDequantized(MmaOp op);
llvm::LogicalResult verifyWgmmaPrepacked(MmaOp op);
llvm::LogicalResult verifyWgmmaResident(MmaOp op);
llvm::LogicalResult verifyMmaSync(MmaOp op);
/// (C625) The MMAs, or the loop, that `chain` speaks of are there.
llvm::LogicalResult verifyChain(MmaOp op);

} // namespace fp4::pipe
