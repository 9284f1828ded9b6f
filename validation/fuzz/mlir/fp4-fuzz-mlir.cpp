//===- fp4-fuzz-mlir.cpp - Mutated .mlir through the compiler -------------===//
//
//   fp4-fuzz-mlir [options] CORPUS...              as fp4-opt and fp4-runner would
//   fp4-fuzz-mlir --plugin FILE [options] ...      as mlir-opt-22 with the plugin would
//   fp4-fuzz-mlir --phases [options] CORPUS...     every pass over every op (Phases.h)
//
// Everything happens in this process, which the driver watches. The first line of a case, a
// comment, names the passes; what verifies also has to survive being printed and read again.
//
//===----------------------------------------------------------------------===//
#include "Corpus.h"
#include "Driver.h"
#include "Phases.h"
#include "TokenMutator.h"

#include "fp4/Compiler/Compiler.h"
#include "fp4/InitAll.h"
#include "fp4/Sim/Program.h"
#include "fp4/Reference/Manifest.h"
#include "fp4/Support/Version.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/SourceMgr.h"

#include <cstdio>
#include <sstream>

using namespace mlir;
using namespace fp4::fuzz;

namespace {

constexpr const char *kMark = "// fuzz: ";
/// Through fp4::Compiler, to PTX.
constexpr const char *kRunner = "fp4-runner";
constexpr const char *kRoundTrip = "round trip";

const std::vector<std::string> &pipelines() {
  static const std::vector<std::string> all = {
      kRoundTrip,
      kRoundTrip,
      "builtin.module(canonicalize,cse)",
      "builtin.module(inline,canonicalize,fp4-fuse)",
      "builtin.module(fp4-set-target,fp4-plan-kernels,convert-fp4-to-gpu)",
      "builtin.module(fp4-set-target{target=sm_90a},fp4-plan-kernels,convert-fp4-to-gpu)",
      "builtin.module(fp4-set-target,fp4-plan-kernels,convert-fp4-to-pipe)",
      "builtin.module(fp4-set-target,fp4-plan-kernels,convert-fp4-to-pipe,pipe-specialize-warps,pipe-pipeline)",
      "builtin.module(pipe-specialize-warps)",
      "builtin.module(fp4-set-target,pipe-pipeline,canonicalize)",
      "builtin.module(pipe-verify-sync,fp4-set-target,pipe-verify-capacity)",
      "builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm),canonicalize)",
      "builtin.module(convert-host-to-runtime)",
      "builtin.module(fp4-compile{to=fused})",
      "builtin.module(fp4-compile{to=tiles})",
      "builtin.module(fp4-compile{to=pipelined})",
      "builtin.module(fp4-compile{to=pipelined target=sm_90a})",
      "builtin.module(fp4-compile{to=nvvm})"};
  return all;
}

/// MLIR 22.1.8 itself crashes on these, without the plugin too (test/Tools/upstream-crashes.test):
/// such cases are left out. linalg.transpose and linalg.broadcast take their list for one of
/// integers, whatever it is (NamedAttrList::set of null); tensor.expand_shape looks into an empty
/// group (getSymbolLessAffineMaps); array<index: ...> asks index for its width; linalg.generic takes
/// every element of iterator_types for a string; a canonicalization of memref.dim takes a negative
/// index for a place in a list.
bool crashesUpstream(StringRef text) {
  static const llvm::Regex emptyGroup(R"(expand_shape[^:]*\[[ \t\n]*\])");
  static const llvm::Regex integers(
      R"(^[ \t\n]*=[ \t\n]*\[[ \t\n]*[0-9]{1,9}[ \t\n]*(,[ \t\n]*[0-9]{1,9}[ \t\n]*)*\])");
  for (StringRef word : {"permutation", "dimensions"})
    for (StringRef rest = text.split(word).second; !rest.empty(); rest = rest.split(word).second)
      if (rest.ltrim().starts_with("=") && !integers.match(rest.take_front(200)))
        return true;
  static const llvm::Regex arrayOfIndex(R"(array[ \t\n]*<[ \t\n]*index)");
  static const llvm::Regex noString(
      R"(iterator_types[ \t\n]*=[ \t\n]*\[([ \t\n]*"[a-z]*"[ \t\n]*,)*[ \t\n]*[^] \t\n"])");
  static const llvm::Regex negativeIndex(R"(constant[ \t\n]*-[0-9]+[ \t\n]*:[ \t\n]*index)");
  if (text.contains("memref.dim") && negativeIndex.match(text))
    return true;
  return emptyGroup.match(text) || arrayOfIndex.match(text) || noString.match(text);
}

class MlirTarget final : public Target {
public:
  explicit MlirTarget(std::string plugin) : plugin(std::move(plugin)) {}
  const char *name() const override { return plugin.empty() ? "mlir" : "mlir-plugin"; }
  bool load(const std::vector<std::filesystem::path> &corpus) override;
  std::string make(Random &random) override;
  void run(const std::string &input) override;
  /// MLIR 22.1.8 may write to freed memory after an error of the parser, when it drops the operations
  /// of a function (Operation::dropAllReferences). A case behind such an error could fail without a
  /// fault of its own. The address sanitizer keeps freed memory from new owners, and its processes
  /// start slowly, so they go on.
  bool spent() const override {
#if __has_feature(address_sanitizer)
    return false;
#else
    return !parsed;
#endif
  }
  /// Registers dialects and passes, once; false when the plugin does not load.
  bool prepare();
  const DialectRegistry &dialects() const { return registry; }

private:
  void runPasses(ModuleOp module, const std::string &passes);
  TokenMutator mutator{Language{"//", /*dots=*/false, /*times=*/true}};
  std::string plugin;
  DialectRegistry registry;
  bool parsed = true; ///< the text of the last case
};

bool MlirTarget::prepare() {
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registerAllPasses();
  if (plugin.empty()) {
    fp4::registerUpstreamDialects(registry);
    fp4::registerDialects(registry);
    fp4::registerPasses();
    return true;
  }
  auto dialects = DialectPlugin::load(plugin);
  auto passes = PassPlugin::load(plugin);
  if (!dialects || !passes)
    return false;
  dialects->registerDialectRegistryCallbacks(registry);
  passes->registerPassRegistryCallbacks();
  return true;
}

/// Loads the corpus. A valid program gets further than one that a verifier refuses, and is taken
/// more often.
bool MlirTarget::load(const std::vector<std::filesystem::path> &corpus) {
  for (const std::string &part : partsOf(corpus)) {
    const bool valid = part.find("expected-error") == std::string::npos;
    for (unsigned times = valid ? 4 : 1; times > 0; --times)
      mutator.add(part);
  }
  return !mutator.empty();
}

std::string MlirTarget::make(Random &random) {
  std::string passes = random.of(pipelines());
  if (plugin.empty() && random.oneIn(20))
    passes = kRunner;
  return kMark + passes + "\n" + mutator.make(random);
}

/// Prints `module` in three forms and reads each again.
void roundTrip(ModuleOp module, const ParserConfig &config) {
  for (OpPrintingFlags flags : {OpPrintingFlags(), OpPrintingFlags().printGenericOpForm()}) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module.print(stream, flags);
    (void)parseSourceString<ModuleOp>(text, config);
  }
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  if (succeeded(writeBytecodeToFile(module, stream)))
    (void)parseSourceString<ModuleOp>(bytes, config);
}

void MlirTarget::runPasses(ModuleOp module, const std::string &passes) {
  std::string errors;
  llvm::raw_string_ostream stream(errors);
  FailureOr<OpPassManager> parsed = parsePassPipeline(passes, stream);
  if (failed(parsed)) {
    std::fprintf(stderr, "cannot parse '%s': %s\n", passes.c_str(), errors.c_str());
    std::exit(3); // a mistake of this file, or of a reproducer
  }
  PassManager manager(module.getContext(), "builtin.module");
  static_cast<OpPassManager &>(manager) = std::move(*parsed);
  (void)manager.run(module);
}

/// Does what fp4-runner and fp4-run do with a program before anything is launched.
bool runCompiler(const std::string &text) {
  std::ostringstream diagnostics;
  fp4::CompilerOptions options;
  options.diagnostics = &diagnostics;
  options.remarks = true;
  fp4::Compiler compiler(options);
  if (!compiler.loadText(text, "fuzz.mlir"))
    return false;
  std::map<std::string, int64_t> dims;
  for (const std::string &dim : compiler.dimNames())
    dims[dim] = 128;
  if (!compiler.specialize(dims) || !compiler.compileTo(fp4::Phase::Ptx))
    return true;
  for (const fp4::KernelCode &code : compiler.kernels())
    (void)fp4::sim::Program::parse(code.ptx, code.module);
  (void)fp4::harness::Manifest::parse(compiler.manifest());
  (void)compiler.compileTo(fp4::Phase::Host);
  return true;
}

void MlirTarget::run(const std::string &input) {
  const size_t line = std::min(input.find('\n'), input.size());
  const std::string passes =
      input.starts_with(kMark) ? input.substr(strlen(kMark), line - strlen(kMark)) : kRoundTrip;
  parsed = true;
  if (crashesUpstream(input))
    return;
  if (passes == kRunner) {
    parsed = runCompiler(input);
    return;
  }
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  llvm::SourceMgr sources;
  std::string said;
  llvm::raw_string_ostream stream(said);
  SourceMgrDiagnosticHandler handler(sources, &context, stream);
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(input, "fuzz.mlir"),
                             llvm::SMLoc());
  const ParserConfig config(&context);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, config);
  parsed = static_cast<bool>(module);
  if (!module)
    return;
  if (passes == kRoundTrip)
    roundTrip(*module, config);
  else
    runPasses(*module, passes);
}

} // namespace

int main(int argc, char **argv) {
  std::vector<char *> rest(argv, argv + argc);
  if (argc > 1 && std::string_view(argv[1]) == "--version") {
    std::puts(fp4::versionText("fp4-fuzz-mlir").c_str());
    return 0;
  }
  std::string plugin;
  if (argc > 2 && std::string_view(argv[1]) == "--plugin") {
    plugin = argv[2];
    rest.erase(rest.begin() + 1, rest.begin() + 3);
  }
  const bool phases = argc > 1 && std::string_view(argv[1]) == "--phases";
  if (phases)
    rest.erase(rest.begin() + 1);
  MlirTarget target(plugin);
  if (!target.prepare()) {
    std::fprintf(stderr, "error: cannot load the plugin '%s'\n", plugin.c_str());
    return 2;
  }
  if (phases) {
    PhasesTarget every(target.dialects());
    return fuzzMain(static_cast<int>(rest.size()), rest.data(), every);
  }
  return fuzzMain(static_cast<int>(rest.size()), rest.data(), target);
}
