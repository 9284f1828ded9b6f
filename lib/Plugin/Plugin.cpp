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
#include "mlir/Pass/PassManager.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/raw_ostream.h"

#include <dlfcn.h>
#include <link.h>

using namespace mlir;

/// Libraries of MLIR in this process: that of the plugin, and another one.
struct LoadedMlir {
  llvm::StringRef ours;
  std::string other;
};

static int compareLibrary(dl_phdr_info *info, size_t, void *data) {
  auto *found = static_cast<LoadedMlir *>(data);
  const llvm::StringRef path(info->dlpi_name ? info->dlpi_name : "");
  const llvm::StringRef name = path.rsplit('/').second.empty() ? path : path.rsplit('/').second;
  if (name.starts_with("libMLIR.so") && path != found->ours)
    found->other = path.str();
  return 0;
}

/// The version of the interface; 0, which MLIR refuses, after a message in a tool of another MLIR,
/// where the plugin would bring a second one and end in a crash.
static uint32_t interfaceVersion() {
  Dl_info own = {};
  dladdr(reinterpret_cast<void *>(&mlir::registerPassManagerCLOptions), &own);
  LoadedMlir found{own.dli_fname ? own.dli_fname : "", ""};
  dl_iterate_phdr(compareLibrary, &found);
  if (found.other.empty())
    return MLIR_PLUGIN_API_VERSION;
  llvm::errs() << "error: FP4Plugin.so of fp4 " FP4_VERSION
                  " must run with MLIR " LLVM_VERSION_STRING " ('"
               << found.ours << "'), but this tool has '" << found.other
               << "'\nnote: use mlir-opt of LLVM " << LLVM_VERSION_MAJOR
               << ", or build fp4 with -DFP4_LLVM_CONFIG of the other one\n";
  return 0;
}

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT DialectPluginLibraryInfo mlirGetDialectPluginInfo() {
  return {interfaceVersion(), "FP4", FP4_VERSION, [](DialectRegistry *registry) {
            fp4::registerUpstreamDialects(*registry);
            fp4::registerDialects(*registry);
          }};
}

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {interfaceVersion(), "FP4", FP4_VERSION, [] { fp4::registerPasses(); }};
}
