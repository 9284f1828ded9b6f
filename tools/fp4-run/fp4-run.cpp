//===- fp4-run.cpp - Executes an emitted library, without the compiler ----===//

#include "fp4/Harness/Edits.h"
#include "fp4/Harness/Library.h"
#include "fp4/Support/Version.h"

#include <CLI/CLI.hpp>
#include <cstdio>

using namespace fp4;

static int fail(const Error &error) {
  std::fputs(format(error).c_str(), stderr);
  return exitCode(error);
}

int main(int argc, char **argv) {
  CLI::App app("Runs a library that fp4-runner --emit=so wrote, on a GPU or in the simulator, and "
               "compares its results with the reference.",
               "fp4-run");
  app.set_version_flag("--version", versionText("fp4-run"));
  app.set_help_all_flag("--help-all", "Print every option, as --help does");
  std::string path, twin;
  bool list = false;
  harness::RunOptions options;
  harness::JudgeOptions judge;
  app.add_option("library", path, "the library")->required();
  app.add_option(
      "--twin", twin,
      "the library of the same program compiled with fp4-runner --no-arithmetic; --benchmark "
      "times its kernels beside the library's");
  app.add_flag("--list", list,
               "print its functions and kernels, with --json its manifest, and run nothing");
  harness::addRunOptions(app, options);
  harness::addJudgeOptions(app, judge);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0)
      return app.exit(error) + harness::print("", "help"); // --help, --version
    return fail({ErrorKind::Usage, error.what(), "fp4-run --help lists the options"});
  }
  auto runner = harness::openLibrary(path);
  if (!runner)
    return fail(runner.error());
  if (!twin.empty()) {
    auto bare = harness::openLibrary(twin);
    if (!bare)
      return fail(bare.error());
    options.twin = bare->resolver();
  }
  if (list)
    return harness::print(options.json ? runner->manifestText() : runner->list(), "list");
  return judge.edits.empty() ? harness::runAndReport(*runner, options)
                             : harness::judgeEdits(*runner, options, judge);
}
