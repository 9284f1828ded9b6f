//===- ManifestWriter.h - What a compiled library says about itself -------===//
//
// Writes manifests (include/fp4/Reference/Manifest.h). Functions are described before lowering from
// the fp4 operations of the user; kernels are described after it from the emitted code.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

#include <map>

namespace fp4 {

/// Bytes of constants that a manifest refers to, by the symbol of the global that has them.
using ConstantData = std::map<std::string, std::vector<uint8_t>>;

/// One object per public function: name, symbol, arguments, results, program, returns. Values are
/// a0, a1, .. (arguments) and v0, v1, .. (in order of definition). A body that the reference cannot
/// interpret, because it has operations of other dialects, leaves "program" out. `data` gets the
/// bytes of the constants.
llvm::json::Array describeFunctions(mlir::ModuleOp module, ConstantData &data);

/// Adds "fused" to the functions' objects: the operations that become kernels, once the program was
/// fused. A body that the reference cannot interpret leaves it out.
void describeFusion(mlir::ModuleOp module, llvm::json::Array &functions);

/// One object per kernel of every gpu.binary. What ptxas did not report is left out.
llvm::json::Array describeKernels(mlir::ModuleOp module);

/// The manifest's text.
std::string writeManifest(llvm::StringRef target, llvm::json::Array functions,
                          llvm::json::Array kernels);

} // namespace fp4
