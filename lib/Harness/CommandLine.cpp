//===- CommandLine.cpp - The options both tools share ---------------------===//

#include "fp4/Harness/Check.h"
#include "fp4/Harness/Inputs.h"
#include "fp4/Harness/Runner.h"
#include "fp4/ISA/GpuModel.h"
#include "fp4/Support/OutputFile.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fp4::harness {

void addRunOptions(CLI::App &app, RunOptions &options) {
  auto *group = app.add_option_group("Running");
  group
      ->add_option("--device", options.device,
                   "auto (a GPU that runs the code, else the simulator), sim, cuda or cuda:N")
      ->capture_default_str();
  addSimulationOptions(*group, options, "the inputs and the random policy");
  group->add_option("--gpu", options.gpu,
                    "the GPU whose memory --time predicts for: " + hw::gpuOptions() +
                        "; without it, that of the target's table of rates");
  addJsonOption(*group, options.json);
  group
      ->add_option("--dist", options.distribution,
                   fmt::format("inputs: {}", fmt::join(kDistributions, ", ")))
      ->capture_default_str();
  group->add_option("--function", options.function, "function to run, if there are several");
  group->add_option("--input", options.inputs, "NAME=FILE.npy: an argument from a file");
  group->add_option("--output", options.outputs, "NAME=FILE.npy: write a result");
  group->add_option("--shape", options.shape, "M[,N[,K]]: the dynamic sizes")
      ->delimiter(',')
      ->expected(1, 3)
      ->check(CLI::Range(int64_t(0), int64_t(INT32_MAX)));
  group->add_option("--dim", options.dims,
                    "NAME=SIZE: the size of the dimension that fp4.dims names NAME, or the dynamic "
                    "size of the argument of that name");
  group->add_flag("!--no-verify", options.verify, "do not compare with the reference");
  group->add_flag("--benchmark", options.benchmark,
                  "time the program and its kernels on a GPU, once the result is verified; on the "
                  "simulator, show its counts");
  group->add_option("--warm", options.warmMilliseconds, "ms of work before --benchmark counts")
      ->check(CLI::NonNegativeNumber);
  group->add_option("--compare", options.compare,
                    "FILE of an earlier --json: say what is faster and slower now, and with --time "
                    "why");
}

int print(const std::string &text, const char *what) {
  Status written = writeStandardOutput(text, what);
  if (written)
    return 0;
  std::fputs(format(written.error()).c_str(), stderr);
  return exitCode(written.error());
}

/// The exit code when nothing failed: not every order may have run.
static int codeOfOrders(const std::vector<sim::OrderReport> &launches) {
  for (const sim::OrderReport &launch : launches)
    if (!launch.complete) {
      const Error left{ErrorKind::Simulation,
                       fmt::format("not every order of kernel '{}' has run", launch.kernel),
                       "raise --max-orders, or run a smaller problem"};
      std::fputs(format(left).c_str(), stderr);
      return sim::kOrdersLeft;
    }
  return 0;
}

int runAndReport(const Runner &runner, const RunOptions &options) {
  std::vector<sim::HazardReport> hazards;
  auto report = runner.run(options, &hazards);
  if (!report) {
    (void)reportHazards(hazards); // hazards may be the reason
    std::fputs(format(report.error()).c_str(), stderr);
    return exitCode(report.error());
  }
  if (int code = print(options.json ? report->json() : report->text(), "report"); code != 0)
    return code;
  if (report->passed())
    return codeOfOrders(report->simulation.orders);
  if (auto found = reportHazards(hazards)) {
    for (const sim::OrderReport &orders : report->simulation.orders)
      if (!orders.order.empty())
        found->note += fmt::format("; --replay '{}' repeats the order", orders.order);
    std::fputs(format(*found).c_str(), stderr);
    return exitCode(*found);
  }
  Error mismatch{ErrorKind::Mismatch, "the result differs from the reference",
                 fmt::format("repeat with --seed {}; --dist exact takes rounding out of the "
                             "comparison, --policy lazy and random other schedules",
                             options.seed)};
  std::fputs(format(mismatch).c_str(), stderr);
  return exitCode(mismatch);
}

} // namespace fp4::harness
