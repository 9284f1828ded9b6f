//===- Options.cpp - The command line of fp4-runner -----------------------===//

#include "Options.h"
#include "fp4/ISA/GpuModel.h"
#include "fp4/Support/FormerNames.h"
#include "fp4/Support/Version.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

namespace fp4::runner {
namespace {

constexpr const char *kDescription =
    "Compiles a program of fp4 operations, runs it and checks the result against the reference.";

constexpr const char *kFooter = R"(Examples:
  fp4-runner examples/nvfp4_linear.mlir --shape 300,384,272 --policy=random --seed=7
  fp4-runner examples/nvfp4_linear.mlir --input x=x.npy --output y=y.npy
  fp4-runner examples/nvfp4_linear.mlir --emit=mlir --compile-to=pipelined
  fp4-runner examples/nvfp4_linear.mlir --emit=so -o linear.so    (then: fp4-run linear.so)
  fp4-runner layout --scales nvfp4 --row 37 --k 5
  fp4-runner routes --target=sm_90a
  fp4-runner quantize --recipe transformer_engine x.npy -o q      (then: dequantize ... q -o y.npy)
  fp4-runner quantize --recipe modelopt --compare flashinfer x.npy

Exit codes:
  0 success    1 a wrong result    2 command line, file or input data    3 does not compile    4 device
  5 the simulated program is wrong    6 a hazard    7 orders that did not run    70 internal)";

/// Flags of former versions are errors that give their present names.
void addFormerFlags(CLI::App &app) {
  for (const char *flag : {"--overlap-launches", "--no-overlap-launches", "--multiprocessors"})
    app.add_flag_function(
           flag, [flag](int64_t) { throw CLI::ParseError(renamedNote(flag), 2); }, "")
        ->group("");
}

void addPdlOptions(CLI::App &app, Options &options) {
  auto *pdl = app.add_flag_callback(
      "--pdl", [&options] { options.compiler.pdl = PdlLaunches::All; },
      "Let each kernel begin while the one before it ends (programmatic dependent launch), and not "
      "only a quantizer behind its amax and a GEMM of prepacked weights or with wgmma of FP8 "
      "with f32 scales");
  app.add_flag_callback(
         "--no-pdl", [&options] { options.compiler.pdl = PdlLaunches::None; },
         "Let each kernel begin when the one before it has ended")
      ->excludes(pdl);
}

void addTargetOptions(CLI::App &app, Options &options) {
  app.add_option("--target", options.compiler.target, "Target to compile for")
      ->capture_default_str();
  app.add_option("--plan-device", options.compiler.device,
                 "GPU of the target that plans are for: " + hw::gpuOptions());
  app.add_option("--sms", options.compiler.sms,
                 "SMs that the grids of GEMMs and of transforms on the tensor core "
                 "fill (default: all of the target)")
      ->check(CLI::Range(uint64_t(1), uint64_t(UINT16_MAX)));
}

void addCompilerOptions(CLI::App &app, Options &options) {
  app.add_option("program", options.input, "The .mlir file, or - for standard input");
  addTargetOptions(app, options);
  app.add_option("--ptxas", options.compiler.ptxas,
                 "The ptxas to run (default: $FP4_PTXAS, PATH, $CUDA_HOME/bin, ...)");
  app.add_option("--emit", options.emit, "Write this instead of running the program")
      ->check(CLI::IsMember({"mlir", "ptx", "cubin", "so"}));
  app.add_option("--compile-to", options.phase, "Phase that --emit=mlir shows")
      ->capture_default_str()
      ->check([](const std::string &text) {
        return parsePhase(text) ? "" : "unknown phase '" + text + "', known: " + phaseNames();
      });
  app.add_option(
      "-o", options.output,
      "File that --emit or --tune writes; a directory receives one file per kernel module");
  app.add_option("--explore", options.explore,
                 "Write a page that shows the program at every phase, and its simulation")
      ->excludes(app.get_option("--emit"));
  app.add_option("--kernel", options.kernel, "Emit only this kernel module");
  app.add_flag("--remarks", options.compiler.remarks,
               "Print which operations were fused, and why others were not");
  app.add_option(
         "--plan", options.compiler.plans,
         "Plan for kernels of its family, such as 'tile_gemm, tile = [128, 64, 256]' "
         "(--emit=mlir --compile-to=planned shows all; may be repeated); @FILE: what --tune "
         "wrote")
      ->allow_extra_args(false);
  addPdlOptions(app, options);
  addFormerFlags(app);
  app.add_flag("--no-arithmetic", options.compiler.noArithmetic,
               "For measurements: row-wise kernels only load and store; results are meaningless "
               "(see fp4-run --twin)");
  app.add_flag("--time-phases", options.timePhases, "Print how long each step of compiling took");
}

void addTuneOptions(CLI::App &app, Options &options) {
  app.add_flag(
         "--tune", options.tune,
         "Search for faster plans by predicted time, verify the best, measure them on a GPU if "
         "there is one, and write them: -o FILE.mlir, or a file for --plan @FILE")
      ->excludes(app.get_option("--emit"))
      ->excludes(app.get_option("--explore"))
      ->excludes(app.get_option("--benchmark"))
      ->excludes(app.get_option("--compare"));
  for (const char *ofRuns : {"--benchmark", "--output"}) // --emit writes, and runs nothing
    app.get_option("--emit")->excludes(app.get_option(ofRuns));
  app.add_option("--tune-limit", options.tuneLimit, "Predictions of --tune")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t(1), uint64_t(1) << 20));
  app.add_flag("--retune", options.retune, "Search again although --tune has found plans before");
}

void addLayoutCommand(CLI::App &app, Options &options) {
  CLI::App *layout = app.add_subcommand(
      "layout", "Say where the scale of an element lies in global, shared and tensor memory");
  const CLI::Range extent(uint64_t(0), uint64_t(1) << 40);
  layout->add_option("--scales", options.scales, "nvfp4 or mxfp4")->capture_default_str();
  layout->add_option("--row", options.question.row, "Row of the element")
      ->required()
      ->check(extent);
  layout->add_option("--k", options.question.k, "Column of the element")->required()->check(extent);
  layout->add_option("--rows", options.question.rows, "Rows of the matrix (default: row + 1)")
      ->check(extent);
  layout->add_option("--depth", options.question.depth, "Columns of the matrix (default: k + 1)")
      ->check(extent);
  layout->add_option("--cta-group", options.question.ctaGroup, "1 or 2 CTAs per MMA")
      ->capture_default_str();
  layout->callback([&options] { options.layout = true; });
}

void addRoutesCommand(CLI::App &app, Options &options) {
  CLI::App *routes = app.add_subcommand(
      "routes", "List how GEMMs reach the core of a target: the routes that a plan may have");
  routes->add_option("--target", options.compiler.target, "Target")->capture_default_str();
  routes->callback([&options] { options.routes = true; });
}

/// Options for measurements and tests. --help leaves them out and fits a screen; --help-all has
/// them.
constexpr const char *kRareOptions[] = {
    "--ptxas",      "--kernel",  "--sms",          "--no-arithmetic", "--time-phases",
    "--explain",    "--threads", "--unwritten",    "--stats",         "--limit",
    "--no-verify",  "--compare", "--sample-after", "--tune-limit",    "--retune",
    "--mix",        "--clock",   "--gpu",          "--time-only",     "--clusters",
    "--max-orders", "--replay",  "--pdl",          "--no-pdl",        "--plan-device"};

/// Adds help. Options without a group are not in the help, and CLI11 does not name them in an error
/// either.
void addHelp(CLI::App &app, int argc, char **argv) {
  app.set_help_flag("-h,--help", "Print the usual options and exit");
  app.set_help_all_flag("--help-all", "Print every option and those of the subcommands");
  const auto asksForUsual = [](std::string_view text) { return text == "-h" || text == "--help"; };
  if (std::none_of(argv, argv + argc, asksForUsual))
    return;
  for (const char *name : kRareOptions)
    app.get_option(name)->group("");
}

} // namespace

std::optional<int> parseCommandLine(int argc, char **argv, Options &options) {
  CLI::App app(kDescription, "fp4-runner");
  app.footer(kFooter);
  app.set_version_flag("--version", versionText("fp4-runner"));
  addCompilerOptions(app, options);
  harness::addRunOptions(app, options.run);
  addTuneOptions(app, options);
  addLayoutCommand(app, options);
  addRoutesCommand(app, options);
  harness::addQuantizeCommands(app, options.quantize);
  app.get_option("--shape")->description(
      "M[,N[,K]]: sizes of the dimensions that fp4.dims names M, N and K");
  app.get_option("--compare")
      ->description("FILE.json that --benchmark --json or --time --json wrote; with --time also "
                    "FILE.mlir, a plan, "
                    "or @FILE of plans: say what is faster and slower now, and with --time why");
  addHelp(app, argc, argv);
  try {
    app.parse(argc, argv);
    const bool command = options.layout || options.routes ||
                         options.quantize.verb != harness::QuantizeCommand::Verb::None;
    if (!command && options.input.empty())
      throw CLI::RequiredError("program");
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0)
      return app.exit(error) + harness::print("", "help"); // --help
    std::cerr << format(
        Error{ErrorKind::Usage, error.what(), "fp4-runner --help lists the options"});
    return static_cast<int>(ErrorKind::Usage);
  }
  return std::nullopt;
}

} // namespace fp4::runner
