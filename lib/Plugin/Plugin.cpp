//===- Plugin.cpp - The dialects and passes for stock MLIR tools ----------===//
//
// mlir-opt-22 --load-dialect-plugin=FP4Plugin.so --load-pass-plugin=FP4Plugin.so \
//     --pass-pipeline='builtin.module(fp4-compile{to=nvvm})' gemm.mlir
//
// Passes of a plugin are reachable through --pass-pipeline only: mlir-opt has built its options
// when it loads the plugin.
//
//===----------------------------------------------------------------------===//

#include "fp4/InitAll.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT DialectPluginLibraryInfo mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "FP4", FP4_VERSION, [](DialectRegistry *registry) {
            fp4::registerUpstreamDialects(*registry);
            fp4::registerDialects(*registry);
          }};
}

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "FP4", FP4_VERSION, [] { fp4::registerPasses(); }};
}
