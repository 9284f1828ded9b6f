//===- EntryPoints.h - int32_t fp4_entry_<function>(void **args) ----------===//
#pragma once

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringMap.h"

namespace fp4 {

/// The entry points of a module's public functions. Constructed before the conversion to LLVM, when
/// signatures can still be read; create() is called after it.
class EntryPoints {
public:
  explicit EntryPoints(mlir::ModuleOp module);

  /// Adds `fp4_entry_<name>` and `_mlir_ciface_<name>` for every public function, and makes all
  /// other functions internal.
  void create();

private:
  struct Argument {
    std::string name;
    mlir::MemRefType type;
  };
  struct Signature {
    llvm::SmallVector<Argument> arguments;
    llvm::SmallVector<mlir::MemRefType> results;
  };

  mlir::LLVM::LLVMFuncOp createEntry(mlir::LLVM::LLVMFuncOp wrapper, const Signature &signature);
  /// The C interface of a declaration with arguments and destinations.
  void createInterface(mlir::LLVM::LLVMFuncOp entry, const Signature &signature);
  void checkSizes(mlir::OpBuilder &builder, mlir::Location loc, const Argument &argument,
                  mlir::Value descriptor);

  void checkElements(mlir::OpBuilder &, mlir::Location, const Argument &, mlir::Value descriptor);
  void checkStrides(mlir::OpBuilder &builder, mlir::Location loc, const Argument &argument,
                    mlir::Value descriptor);

  mlir::ModuleOp module;
  llvm::StringMap<Signature> signatures;
};

} // namespace fp4
