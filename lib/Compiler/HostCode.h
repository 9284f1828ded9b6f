//===- HostCode.h - Host functions as machine code ------------------------===//
//
// A module in the llvm dialect becomes LLVM IR, and then either code in this process (ORC) or an
// object file for the host machine.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Compiler/Compiler.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"

namespace fp4 {

/// Compiles `module` into this process.
Expected<std::unique_ptr<JitProgram>> jitHostCode(mlir::ModuleOp module);

/// Compiles `module` to a relocatable object with position-independent code.
Expected<llvm::SmallVector<char, 0>> compileHostObject(mlir::ModuleOp module);

/// Links `object` to the shared library `path` with the first linker found: ld.lld-22, ld.lld, ld,
/// cc, clang, gcc. On failure nothing is left at `path`.
Status linkSharedLibrary(llvm::ArrayRef<char> object, const std::string &path);

} // namespace fp4
