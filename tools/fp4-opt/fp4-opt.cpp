//===- fp4-opt.cpp - mlir-opt with the fp4 and pipe dialects --------------===//
//
// A tool that runs passes and named phases on .mlir files, for tests and developers.
// `--compile-to=` shows every form of a program.
//
//===----------------------------------------------------------------------===//

#include "../Help.h"

#include "fp4/InitAll.h"
#include "fp4/Pipelines/Passes.h"
#include "fp4/Pipelines/Pipelines.h"
#include "fp4/Support/FormerNames.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

/// True if `argument` asks to load fp4's own plugin. Dialects of the plugin are a second copy of
/// those linked in here, and MLIR aborts when a dialect namespace is registered twice.
static bool loadsOwnPlugin(StringRef argument, StringRef next) {
  argument = argument.ltrim('-');
  if (!argument.consume_front("load-dialect-plugin") && !argument.consume_front("load-pass-plugin"))
    return false;
  StringRef path = argument.consume_front("=") ? argument : next;
  Expected<mlir::DialectPlugin> plugin = mlir::DialectPlugin::load(path.str());
  if (!plugin) {
    consumeError(plugin.takeError());
    return false; // MlirOptMain words this error itself
  }
  return plugin->getPluginName() == "FP4";
}

/// The text of --help: a screen. The hundreds of options and passes of MLIR are behind --help-all.
constexpr const char *kHelp = R"(fp4-opt runs passes and named phases on .mlir files.

  fp4-opt FILE --compile-to=PHASE   run the phases up to this one and print the program:
                                    PHASES
  fp4-opt FILE --PASS --PASS ...    run single passes, of fp4 and of MLIR, in this order
  fp4-opt FILE --pass-pipeline='builtin.module(PASS{OPTION=VALUE},...)'

  --target=NAME                     GPU to compile for (default: the module's, else sm_100a)
  --plan=PLAN                       plan for kernels of its family (docs/concepts/plans.md)
  -o FILE                           write here instead of standard output
  --split-input-file                programs are separated by lines of // -----
  --verify-diagnostics              the errors must be those of the expected-error comments
  --mlir-print-ir-after-all         print the program after every pass
  --mlir-print-debuginfo            print locations
  --mlir-timing                     say how long every pass takes
  --remarks-filter=REGEX            print remarks: fp4-fuse says what it merged and why not
  --emit-bytecode                   write bytecode
  --allow-unregistered-dialect      accept dialects that are not linked in, such as stablehlo

  --help-all                        every option, and every pass with its options
  --show-dialects                   the dialects that are linked in
  docs/concepts/phases.md describes the phases, docs/guides/tools.md the other tools.
)";

/// kHelp with the names of the phases.
static std::string helpText() {
  auto [before, after] = StringRef(kHelp).split("PHASES");
  return (before + fp4::phaseNames() + after).str();
}

/// Prints an error with a note and returns false.
static bool explain(const Twine &error, const Twine &note) {
  errs() << "error: " << error << "\nnote: " << note << "\n";
  return false;
}

/// The note on a former spelling in an argument: of a flag or a pass, or of an option that a pass
/// is given, as in --fp4-set-target=multiprocessors=66. Empty where there is none.
static std::string noteOnFormerWord(StringRef argument) {
  if (!argument.starts_with("-"))
    return "";
  auto [flag, options] = argument.ltrim('-').split('=');
  std::string note = fp4::renamedNote(("--" + flag).str());
  while (note.empty() && !options.empty()) {
    auto [option, rest] = options.split('=');
    note = fp4::renamedNote((option.substr(option.find_last_of(" {,(") + 1) + "=").str());
    options = rest;
  }
  return note;
}

/// --compile-to=PHASE, --target=NAME and --plan=PLAN are short for the pipeline fp4-compile with
/// its options. Returns false, with an explanation on stderr, when the command line cannot work.
static bool expandArguments(ArrayRef<char *> arguments, std::vector<std::string> &expanded) {
  std::string phase, target, plans;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (loadsOwnPlugin(arguments[i], i + 1 < arguments.size() ? arguments[i + 1] : ""))
      return explain("fp4-opt has the fp4 dialects built in and cannot load the fp4 plugin",
                     "drop this option here; the plugin is for tools such as mlir-opt-22");
    if (std::string note = noteOnFormerWord(arguments[i]); !note.empty())
      return explain(Twine("unknown option '") + arguments[i] + "'", note);
    StringRef option = StringRef(arguments[i]).ltrim('-');
    if (option.consume_front("compile-to=")) {
      if (!fp4::parsePhase(option))
        return explain("unknown phase '" + option + "'", "known phases: " + fp4::phaseNames());
      phase = (" to=" + option).str();
    } else if (option.consume_front("target=")) {
      target = (" target=" + option).str();
    } else if (option.consume_front("plan=")) {
      plans += (option + ";").str();
    } else {
      expanded.push_back(arguments[i]);
    }
  }
  if (!plans.empty())
    plans = " plans={" + plans + "}";
  if (std::string options = phase + target + plans; !options.empty())
    expanded.push_back("--fp4-compile=" + StringRef(options).ltrim().str());
  return true;
}

/// Runs what the command line asks for, on a program without former spellings.
static LogicalResult runOnFile(int argc, char **argv, StringRef input, StringRef output,
                               mlir::DialectRegistry &registry) {
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::MlirOptMain(argc, argv, input, output, registry);
  mlir::MlirOptMainConfig asked = config;
  config.setPassPipelineSetupFn([asked](mlir::PassManager &manager) {
    manager.addPass(fp4::createUpgrade());
    return asked.setupPassPipeline(manager);
  });
  std::string error;
  std::unique_ptr<MemoryBuffer> buffer = mlir::openInputFile(input, &error);
  std::unique_ptr<ToolOutputFile> file = mlir::openOutputFile(output, &error);
  if (!buffer || !file) {
    errs() << error << "\n";
    return failure();
  }
  if (failed(mlir::MlirOptMain(file->os(), std::move(buffer), registry, config)))
    return failure();
  file->keep();
  return success();
}

int main(int argc, char **argv) {
  InitLLVM initLLVM(argc, argv);
  if (fp4::printHelp(ArrayRef(argv, argc), helpText()))
    return 0;
  fp4::askForAllOptions(MutableArrayRef(argv, argc));
  fp4::setVersion("fp4-opt");
  std::vector<std::string> arguments;
  if (!expandArguments(ArrayRef(argv, argc), arguments))
    return 1;
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  fp4::registerUpstreamDialects(registry);
  fp4::registerDialects(registry);
  mlir::registerAllPasses();
  fp4::registerPasses();
  std::vector<char *> pointers;
  for (std::string &argument : arguments)
    pointers.push_back(argument.data());
  auto [input, output] = mlir::registerAndParseCLIOptions(
      pointers.size(), pointers.data(),
      "fp4 optimizer driver\n\n  --compile-to=" + fp4::phaseNames() +
          "\n      run the named phases up to this one, for --target=NAME (default sm_100a), "
          "with --plan=PLAN for kernels of its family\n",
      registry);
  return mlir::asMainReturnCode(runOnFile(argc, argv, input, output, registry));
}
