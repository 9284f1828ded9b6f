//===- fp4-sim.cpp - The PTX simulator as a tool --------------------------===//
//
//   fp4-sim check kernel.ptx...      loads and decodes; lists kernels and unknown instructions
//   fp4-sim run -- ./program args    runs a CUDA program without a GPU
//   fp4-sim debug -- ./program args  the same, warp by warp
//   fp4-sim --explain RULE           says what a rule of the hazard checker means
//
//===----------------------------------------------------------------------===//
#include "Check.h"
#include "Debug.h"
#include "Run.h"
#include "fp4/Harness/Check.h"
#include "fp4/Harness/Runner.h"
#include "fp4/ISA/GpuModel.h"
#include "fp4/Support/Version.h"
#include <CLI/CLI.hpp>
#include <cstdio>
#include <vector>

using namespace fp4;

static int report(const Error &error) {
  std::fflush(stdout);
  std::fputs(format(error).c_str(), stderr);
  return exitCode(error);
}

static std::vector<std::string> deviceNames() {
  std::vector<std::string> names;
  for (const hw::GpuModel &gpu : hw::gpus())
    names.emplace_back(gpu.option);
  return names;
}

/// The options of a program that is run, which come before it.
static void addProgram(CLI::App &run, harness::ProgramOptions &options,
                       std::vector<std::string> policies) {
  run.add_option("--device", options.device, "The GPU that the program finds")
      ->capture_default_str()
      ->check(CLI::IsMember(deviceNames()));
  harness::addSimulationOptions(run, options, "the random policy");
  run.get_option("--policy")->check(CLI::IsMember(std::move(policies)));
  run.add_option("--dump-ptx", options.dumpPtx, "Folder for the PTX that messages refer to")
      ->check(CLI::ExistingDirectory);
  run.add_option("--ptx-dir", options.ptxDir,
                 "Folder with the PTX of kernels that the program has only as machine code")
      ->check(CLI::ExistingDirectory);
  run.add_flag("--trace", options.trace, "Print every allocation, copy, tensor map and launch");
  run.add_option("command", options.command, "-- program and its arguments")->required();
  run.positionals_at_end();
}

static void addRun(CLI::App &app, harness::ProgramOptions &options) {
  CLI::App *run = app.add_subcommand("run", "Run a CUDA program that has PTX");
  addProgram(*run, options, {"eager", "lazy", "random", "delay", "timed", "exhaustive"});
  harness::addJsonOption(*run, options.json);
  run->add_option("--explore", options.explore,
                  "FILE of a page: PTX, sources and machine code side by side, the predicted run "
                  "over time, findings at their lines");
  run->add_flag("--annotations", options.annotations,
                "Print findings as annotations of GitHub Actions too");
}

/// The help of `run` has the options that both have.
static void addDebug(CLI::App &app, harness::DebugOptions &options) {
  CLI::App *debug =
      app.add_subcommand("debug", "Run a CUDA program warp by warp, with a prompt, and the options "
                                  "of run but --time and --replay");
  addProgram(*debug, options, {"eager", "lazy", "random", "delay"});
  for (CLI::Option *option : debug->get_options())
    if (!option->get_positional())
      option->group("");
  auto *dap =
      debug->add_flag("--dap", options.dap, "Speak the Debug Adapter Protocol on stdin and stdout");
  debug->add_option("--dap-port", options.port, "Speak it with one client at this port")
      ->check(CLI::Range(1, 65535))
      ->excludes(dap);
}

int main(int argc, char **argv) {
  CLI::App app{"The PTX simulator: runs CUDA programs, and says whether it can run PTX", "fp4-sim"};
  app.set_version_flag("--version", versionText("fp4-sim"));
  app.set_help_all_flag("--help-all", "Print the options of the subcommands too");
  std::vector<std::string> files;
  std::string chip;
  CLI::App *check = app.add_subcommand("check", "Load and decode PTX; list kernels");
  check->add_option("files", files, "PTX text, fat binaries, programs or libraries")->required();
  check->add_option("--target", chip,
                    "The target that will run it (sm_100a): of several texts only its own is read");
  harness::ProgramOptions run;
  addRun(app, run);
  harness::DebugOptions debug;
  addDebug(app, debug);
  harness::addExplainOption(app);
  app.require_subcommand(1);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0)
      return app.exit(error) + harness::print("", "help"); // --help, --explain
    const char *note = app.got_subcommand("run")     ? "fp4-sim run --help lists the options"
                       : app.got_subcommand("debug") ? "fp4-sim debug --help lists the options"
                       : app.got_subcommand(check)
                           ? "fp4-sim check --help lists the options"
                           : "fp4-sim run -- PROGRAM runs a program, fp4-sim "
                             "check FILE decodes PTX";
    return report({ErrorKind::Usage, error.what(), note});
  }
  if (!run.command.empty() || !debug.command.empty()) {
    Expected<int> code =
        debug.command.empty() ? harness::runProgram(run) : harness::debugProgram(debug);
    return code ? *code : report(code.error());
  }
  int code = 0;
  for (const std::string &file : files)
    if (Status checked = harness::checkFile(file, chip); !checked)
      code = report(checked.error());
  return code;
}
