//===- host.cpp - A small host compiler that has fp4 operations -----------===//
//
// Compiles mixed.mlir, in which linalg and fp4 stand in one function, and runs it: fp4 compiles the
// islands of its operations for the GPU, upstream passes and ExecutionEngine compile the rest for
// this machine, and the islands run on the best device there is. Every number is then checked.
// docs/guides/embed.md explains the steps.
//
//===----------------------------------------------------------------------===//

#include "fp4/Compiler/Compiler.h"
#include "fp4/Dialect/Fp4/Transforms/Islands.h"
#include "fp4/InitAll.h"
#include "fp4/Runtime/OpenDevice.h"
#include "fp4/Runtime/Session.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/ExecutionEngine/CRunnerUtils.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace mlir;

/// Separates what fp4 compiles from the host's part; what is simpler makes larger islands.
static const char *kOutline = "inline,canonicalize,cse,fp4-outline-islands";

/// Upstream's passes for the host's part, as for any other program.
static const char *kLower =
    "one-shot-bufferize{bufferize-function-boundaries=1 "
    "function-boundary-type-conversion=identity-layout-map},buffer-deallocation-pipeline,"
    "convert-linalg-to-loops,convert-scf-to-cf,expand-strided-metadata,lower-affine,"
    "convert-bufferization-to-memref,finalize-memref-to-llvm,convert-func-to-llvm,"
    "convert-arith-to-llvm,convert-index-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts";

static LogicalResult runPasses(ModuleOp module, const char *pipeline) {
  PassManager manager(module.getContext());
  return success(succeeded(parsePassPipeline(pipeline, manager)) && succeeded(manager.run(module)));
}

/// One address in compiled code per function of the islands.
using Islands = llvm::StringMap<void *>;

/// Compiles `islands` into `program`, and finds what the declarations in the host call.
static fp4::Expected<Islands> compileIslands(ModuleOp islands,
                                             std::unique_ptr<fp4::JitProgram> &program) {
  fp4::Compiler compiler({});
  FP4_TRY(compiler.loadModule(islands));
  FP4_TRY(compiler.compileTo(fp4::Phase::Ptx));
  FP4_ASSIGN(program, compiler.jit());
  Islands addresses;
  for (auto function : islands.getOps<func::FuncOp>()) {
    std::string symbol = ("_mlir_ciface_" + function.getName()).str();
    FP4_ASSIGN(addresses[symbol], program->lookup(symbol));
  }
  return addresses;
}

/// Compiles the host's part into this process, where it finds the islands.
static std::unique_ptr<ExecutionEngine> compileHost(ModuleOp host, const Islands &islands) {
  if (failed(runPasses(host, kLower)))
    return nullptr;
  auto engine = ExecutionEngine::create(host);
  if (!engine) {
    llvm::errs() << "error: " << llvm::toString(engine.takeError()) << "\n";
    return nullptr;
  }
  (*engine)->registerSymbols([&](llvm::orc::MangleAndInterner mangle) {
    llvm::orc::SymbolMap symbols;
    for (const auto &[name, address] : islands)
      symbols[mangle(name)] = {llvm::orc::ExecutorAddr::fromPtr(address),
                               llvm::JITSymbolFlags::Exported};
    return symbols;
  });
  return std::move(*engine);
}

using MemRef = StridedMemRefType<float, 2>;

struct Matrix {
  Matrix(int64_t rows, int64_t columns) : rows(rows), columns(columns), values(rows * columns) {}
  float &at(int64_t row, int64_t column) { return values[row * columns + column]; }
  /// The matrix as MLIR's C interface passes it.
  MemRef descriptor() { return {values.data(), values.data(), 0, {rows, columns}, {columns, 1}}; }

  int64_t rows, columns;
  std::vector<float> values;
};

/// Fills a matrix with numbers that mxfp4 stores without an error: codes of E2M1, in blocks of 32
/// whose scale is 1.
static void fillWithCodes(Matrix &matrix, unsigned seed) {
  static const float codes[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (size_t i = 0; i < matrix.values.size(); ++i) {
    seed = seed * 1664525 + 1013904223;
    float value = i % 32 == 0 ? 6 : codes[seed >> 29];
    matrix.values[i] = seed & 0x1000 ? -value : value;
  }
}

/// mixed.mlir in C++. All sums are exact, so the result is the same to the last bit.
static Matrix expectedOf(Matrix &sum, Matrix &weights, int64_t rows) {
  Matrix result(rows, 32);
  float amax = 0;
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t n = 0; n < 32; ++n) {
      float y = 0;
      for (int64_t k = 0; k < 64; ++k)
        y += sum.at(m, k) * weights.at(n, k);
      result.at(m, n) = std::max(y - 2.5f, 0.f);
      amax = std::max(amax, result.at(m, n));
    }
  for (float &value : result.values)
    value /= amax;
  return result;
}

using Layer = void (*)(MemRef *result, MemRef *x, MemRef *residual, MemRef *weights);

/// Runs the function with `rows` rows and compares every element.
static bool runAndCheck(Layer layer, int64_t rows) {
  Matrix x(rows, 64), residual(rows, 64), weights(32, 64);
  fillWithCodes(x, 1);
  fillWithCodes(weights, 2);
  Matrix expected = expectedOf(x, weights, rows);
  for (size_t i = 0; i < x.values.size(); ++i) { // x + residual is what was filled in
    residual.values[i] = 1;
    x.values[i] -= 1;
  }
  MemRef result, operands[] = {x.descriptor(), residual.descriptor(), weights.descriptor()};
  layer(&result, &operands[0], &operands[1], &operands[2]);
  bool same =
      result.sizes[0] == rows && result.sizes[1] == 32 &&
      std::equal(expected.values.begin(), expected.values.end(), result.data + result.offset);
  std::printf("%lld rows: %s\n", static_cast<long long>(rows),
              same ? "every number is as computed by hand" : "wrong");
  std::free(result.basePtr);
  return same;
}

/// The current session of this thread is where the islands run, with buffers of the host.
static fp4::Expected<bool> runOnDevice(Layer layer) {
  FP4_ASSIGN(auto device, fp4::rt::openDevice("auto", {})); // for sm_100a
  fp4::rt::Session session(*device);
  session.setCallerMemory(fp4::rt::CallerMemory::Host);
  fp4::rt::Session::Scope scope(session);
  bool right = runAndCheck(layer, 40) && runAndCheck(layer, 1);
  FP4_TRY(session.finish()); // the first error, if any
  std::printf("%zu kernels were launched on %s\n", session.launches().size(),
              device->name().c_str());
  return right;
}

static fp4::Expected<bool> compileAndRun(ModuleOp host) {
  if (failed(runPasses(host, kOutline)))
    return fp4::makeError(fp4::ErrorKind::Compile, "the program was not outlined");
  OwningOpRef<ModuleOp> islands = fp4::takeIslands(host);
  if (!islands)
    return fp4::makeError(fp4::ErrorKind::Compile, "the program has no fp4 operation");
  std::unique_ptr<fp4::JitProgram> program; // lives as long as the host calls it
  FP4_ASSIGN(auto addresses, compileIslands(*islands, program));
  std::unique_ptr<ExecutionEngine> engine = compileHost(host, addresses);
  if (!engine)
    return fp4::makeError(fp4::ErrorKind::Compile, "the host's part was not compiled");
  llvm::Expected<void *> layer = engine->lookup("_mlir_ciface_layer");
  if (!layer)
    return fp4::makeError(fp4::ErrorKind::Compile, llvm::toString(layer.takeError()));
  return runOnDevice(reinterpret_cast<Layer>(*layer));
}

int main(int argc, char **argv) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  fp4::registerUpstreamDialects(registry);
  fp4::registerDialects(registry);
  registerAllPasses();
  fp4::registerPasses();
  MLIRContext context(registry);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  auto module = parseSourceFile<ModuleOp>(argc > 1 ? argv[1] : "mixed.mlir", sources, &context);
  if (!module)
    return 1;
  fp4::Expected<bool> right = compileAndRun(*module);
  if (!right) {
    std::fputs(fp4::format(right.error()).c_str(), stderr);
    return fp4::exitCode(right.error());
  }
  return *right ? 0 : 1;
}
