//===- fp4-sim.cpp - The PTX simulator as a tool --------------------------===//
//
//   fp4-sim check kernel.ptx...   loads and decodes; lists kernels; reports the first thing the
//                                 simulator does not know, with its place
//
//===----------------------------------------------------------------------===//
#include "fp4/Sim/Simulator.h"
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <iterator>

using namespace fp4;

static std::string describe(const sim::KernelInfo &kernel) {
  std::string text =
      fmt::format("  {}: {} instructions, {} bytes of parameters, {} bytes of static shared memory",
                  kernel.name, kernel.instructions, kernel.paramBytes, kernel.staticSharedBytes);
  if (kernel.requiredBlock[0])
    text += fmt::format(", blocks of {}x{}x{}", kernel.requiredBlock[0], kernel.requiredBlock[1],
                        kernel.requiredBlock[2]);
  if (kernel.requiredCluster[0])
    text += fmt::format(", clusters of {}x{}x{}", kernel.requiredCluster[0],
                        kernel.requiredCluster[1], kernel.requiredCluster[2]);
  return text + "\n";
}

static Status check(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return makeError(ErrorKind::Usage, fmt::format("cannot read '{}'", path), "check the path");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  auto program = sim::Program::parse(text, path);
  if (!program)
    return tl::unexpected<Error>(std::move(program.error()));
  fmt::print("{}: PTX {} for {}, {} kernels\n", path, (*program)->ptxVersion(),
             (*program)->target(), (*program)->kernels().size());
  for (const sim::KernelInfo &kernel : (*program)->kernels())
    fmt::print("{}", describe(kernel));
  return {};
}

int main(int argc, char **argv) {
  CLI::App app{"The PTX simulator: reads PTX text and says whether it can run it", "fp4-sim"};
  std::vector<std::string> files;
  CLI::App *command = app.add_subcommand("check", "Load and decode PTX files, list their kernels");
  command->add_option("files", files, "PTX files")->required();
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  int code = 0;
  for (const std::string &file : files)
    if (Status checked = check(file); !checked) {
      std::fputs(format(checked.error()).c_str(), stderr);
      code = exitCode(checked.error());
    }
  return code;
}
