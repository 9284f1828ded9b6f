//===- fp4-run.cpp - Executes an emitted library, without the compiler ----===//

#include "fp4/Tools/Engine.h"
#include "fp4/Tools/Library.h"

#include <CLI/CLI.hpp>
#include <cstdio>

using namespace fp4;

int main(int argc, char **argv) {
  CLI::App app("Runs a library that fp4-runner --emit=so wrote, on a GPU or in the simulator, and "
               "compares its results with the reference.",
               "fp4-run");
  app.set_version_flag("--version", "fp4-run " FP4_VERSION);
  std::string path;
  bool list = false;
  tools::RunOptions options;
  app.add_option("library", path, "the library")->required();
  std::string twin;
  app.add_option(
      "--twin", twin,
      "the library of the same program compiled with fp4-runner --no-arithmetic; --benchmark "
      "times its kernels beside the library's");
  app.add_flag("--list", list, "print its functions and kernels, run nothing");
  tools::addRunOptions(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0)
      return app.exit(error) + tools::print("", "help"); // --help, --version
    Error usage{ErrorKind::Usage, error.what(), "fp4-run --help lists the options"};
    std::fputs(format(usage).c_str(), stderr);
    return exitCode(usage);
  }
  auto engine = tools::openLibrary(path);
  if (!engine) {
    std::fputs(format(engine.error()).c_str(), stderr);
    return exitCode(engine.error());
  }
  if (!twin.empty()) {
    auto bare = tools::openLibrary(twin);
    if (!bare) {
      std::fputs(format(bare.error()).c_str(), stderr);
      return exitCode(bare.error());
    }
    options.twin = bare->resolver();
  }
  if (list)
    return tools::print(engine->list(), "list");
  return tools::runAndReport(*engine, options);
}
