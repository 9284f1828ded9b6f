//===- Tune.cpp - The option --tune ---------------------------------------===//

#include "Tune.h"

#include "fp4/Support/OutputFile.h"
#include "fp4/Support/Progress.h"
#include "fp4/Tuning/PlanFile.h"
#include "fp4/Tuning/Tune.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <algorithm>
#include <iostream>

namespace fp4::runner {
namespace {

namespace json = llvm::json;
using tuning::Trial;
using tuning::TuneReport;

std::string textOf(const TuneReport &report, const Options &options) {
  std::string text =
      llvm::formatv("tuned {0} for {1}: {2}\n", options.input, options.compiler.target,
                    report.fromCache ? "from the cache"
                                     : llvm::formatv("{0} predictions", report.predictions).str())
          .str();
  for (size_t i = 0; i < std::min(report.trials.size(), tuning::kFinalists); ++i) {
    const Trial &trial = report.trials[i];
    text += llvm::formatv(
                "  {0} predicted {1:f2} us{2}{3}  {4}\n", i == report.best ? "*" : " ",
                trial.microseconds, trial.verified ? ", verified" : "",
                trial.measured ? llvm::formatv(", measured {0:f2} us", *trial.measured).str() : "",
                tuning::describePlans(trial.plans, report.own))
                .str();
  }
  if (!report.device.empty())
    text += "  measured on " + report.device + "\n";
  for (const Trial &trial : report.trials)
    if (trial.plans == report.own)
      text += harness::compareTimes(trial.timed, report.trials[report.best].timed).text();
  for (const std::string &note : report.notes)
    text += "note: " + note + "\n";
  return text;
}

std::string jsonOf(const TuneReport &report, const Options &options) {
  json::Array trials, kernels;
  for (const Trial &trial : report.trials) {
    json::Object object{{"plans", json::Array(trial.plans)},
                        {"predicted_microseconds", trial.microseconds},
                        {"verified", trial.verified}};
    if (trial.measured)
      object["measured_microseconds"] = *trial.measured;
    trials.push_back(std::move(object));
  }
  for (const PlannedKernel &kernel : report.kernels)
    kernels.push_back(json::Object{{"function", kernel.function},
                                   {"operation", kernel.operation},
                                   {"plan_of_the_compiler", kernel.plan}});
  json::Object object{
      {"program", options.input},       {"target", options.compiler.target},
      {"from_cache", report.fromCache}, {"predictions", int64_t(report.predictions)},
      {"kernels", std::move(kernels)},  {"best", int64_t(report.best)},
      {"trials", std::move(trials)},    {"notes", json::Array(report.notes)}};
  if (!report.device.empty())
    object["device"] = report.device;
  std::string text;
  llvm::raw_string_ostream(text) << llvm::formatv("{0:2}", json::Value(std::move(object))) << "\n";
  return text;
}

/// Writes the output of -o.
Status writeOutput(const tuning::TuneOptions &tune, const TuneReport &report,
                   const std::string &path) {
  if (path.empty())
    return {};
  const tuning::Plans &plans = report.trials[report.best].plans;
  FP4_ASSIGN(auto text, llvm::StringRef(path).ends_with(".mlir")
                            ? tuning::tunedProgram(tune, plans)
                            : tuning::writePlanFile(plans, tune.compiler.target));
  return writeFile(path, text);
}

Expected<int> run(const Options &options) {
  if (!options.output.empty())
    FP4_TRY(checkDestination(options.output));
  const tuning::TuneOptions tune{options.input,  options.compiler,
                                 options.run,    options.tuneLimit,
                                 options.retune, makeProgressLine("tuning", "predictions")};
  FP4_ASSIGN(auto report, tuning::tune(tune));
  FP4_TRY(writeOutput(tune, report, options.output));
  return harness::print(options.run.json ? jsonOf(report, options) : textOf(report, options),
                        "report");
}

} // namespace

int tuneProgram(const Options &options) {
  Expected<int> code = run(options);
  if (code)
    return *code;
  std::cerr << format(code.error());
  return exitCode(code.error());
}

} // namespace fp4::runner
