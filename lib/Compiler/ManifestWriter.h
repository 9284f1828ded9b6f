//===- ManifestWriter.h - The description in a compiled library -----------===//
//
// Writers of manifests (include/fp4/Reference/Manifest.h). Functions are described before lowering
// from the fp4 operations of the user; kernels are described after it from the emitted code.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

#include <map>

namespace fp4 {

/// Bytes of constants that a manifest refers to, by the symbol of the global that has them.
using ConstantData = std::map<std::string, std::vector<uint8_t>>;

/// Describes each public function by one object: name, symbol, arguments, results, program,
/// returns. Values are a0, a1, .. (arguments) and v0, v1, .. (in order of definition). A function
/// that the reference cannot interpret, because it has operations of other dialects, has no
/// "program". `data` gets the bytes of the constants.
llvm::json::Array describeFunctions(mlir::ModuleOp module, ConstantData &data);

/// Adds "fused" to the functions' objects: the operations that become kernels, once the program was
/// fused. A function that the reference cannot interpret has no "fused".
void describeFusion(mlir::ModuleOp module, llvm::json::Array &functions);

/// Describes each kernel of every gpu.binary by one object. Facts that ptxas did not report are
/// left out.
llvm::json::Array describeKernels(mlir::ModuleOp module);

/// The manifest's text.
std::string writeManifest(llvm::StringRef target, llvm::json::Array functions,
                          llvm::json::Array kernels);

} // namespace fp4
