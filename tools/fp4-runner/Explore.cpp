//===- Explore.cpp - The page that --explore writes -----------------------===//
//
// Collection of data for the page (fp4/Explorer/Explorer.h). Lines of phases up to `scheduled` have
// lines of the source as their origin, and lines of later phases have lines of `scheduled`: a
// kernel is one operation of the source, and many of that phase.
//
//===----------------------------------------------------------------------===//

#include "Explore.h"

#include "fp4/Sim/ReportJson.h"
#include "fp4/Support/InputFile.h"
#include "fp4/Support/OutputFile.h"
#include "fp4/Tuning/LoadedProgram.h"

#include <iostream>

namespace fp4::runner {
namespace {

using explorer::Json;

constexpr const char *kSource = "source", *kAnchor = "scheduled";

Json phase(std::string name, std::string base, Listing listing) {
  return explorer::toJson({.name = std::move(name),
                           .text = std::move(listing.text),
                           .bases = {std::move(base)},
                           .origins = std::move(listing.origins)});
}

/// The program from the source to `nvvm`, and the memory of its kernels on the way.
Status compilePhases(Compiler &compiler, const Options &options, Json &data) {
  FP4_ASSIGN(auto source, readText(options.input));
  Json &texts = data["texts"] = Json::array();
  texts.push_back(phase(kSource, "", {std::move(source), {}}));
  for (Phase step : {Phase::Fused, Phase::Planned, Phase::Tiles, Phase::Roles, Phase::Pipelined,
                     Phase::Scheduled}) {
    FP4_TRY(compiler.compileTo(step));
    texts.push_back(
        phase(std::string(stringifyPhase(step)), kSource, compiler.listing(options.input)));
    if (step == Phase::Pipelined)
      data["memory"] = Json::parse(compiler.memoryMap(), nullptr, /*allow_exceptions=*/false);
  }
  FP4_TRY(compiler.anchorListing(kAnchor));
  FP4_TRY(compiler.compileTo(Phase::Nvvm));
  texts.push_back(phase("nvvm", kAnchor, compiler.listing(kAnchor)));
  return compiler.keepLines();
}

/// PTX of each kernel, and its machine code or the reason why there is none.
Status compileKernels(Compiler &compiler, const Options &options, Json &data) {
  FP4_ASSIGN(bool assembler, hasAssembler(compiler, ""));
  FP4_TRY(compiler.compileTo(assembler ? Phase::Cubin : Phase::Ptx));
  data["no_sass"] = "";
  for (const KernelCode &kernel : compiler.kernels()) {
    data["texts"].push_back(toJson(explorer::ptxText(kernel.module, kernel.ptx, kAnchor)));
    auto sass = explorer::sassText(kernel.module, kernel.ptx, options.compiler.target,
                                   options.compiler.ptxas);
    if (sass)
      data["texts"].push_back(toJson(std::move(*sass)));
    else
      data["no_sass"] = sass.error().message;
  }
  return {};
}

/// Adds the facts of a run, which ended with `report`.
void describeRun(const Expected<harness::RunReport> &report,
                 const std::vector<sim::HazardReport> &hazards, Json &data) {
  data["hazards"] = data["times"] = data["faults"] = Json::array();
  for (const sim::HazardReport &hazard : hazards)
    data["hazards"].push_back(sim::toJson(hazard));
  if (!report) {
    data["faults"].push_back(report.error().message);
    return;
  }
  for (const sim::KernelTime &time : report->simulation.times)
    data["times"].push_back(sim::toJson(time));
}

/// Simulates the program and adds facts about the run. Returns its exit code.
Expected<int> simulate(Compiler &compiler, const Options &options, Json &data) {
  FP4_ASSIGN(bool assembler, hasAssembler(compiler, ""));
  FP4_ASSIGN(auto program, tuning::loadProgram(compiler, assembler ? Phase::Cubin : Phase::Ptx));
  FP4_ASSIGN(auto trace, TemporaryFile::create("json"));
  harness::RunOptions run = options.run;
  run.timeline = trace->path();
  run.timelineSms = explorer::kSms;
  run.time = explorer::predicts(run);
  run.device = "sim"; // a GPU has no timeline
  std::vector<sim::HazardReport> hazards;
  auto report = program.runner.run(run, &hazards);
  explorer::readTrace(run.timeline, data);
  if (report)
    report->forgetHostTimes();
  describeRun(report, hazards, data);
  data["passed"] = report && report->passed();
  data["verdict"] = report ? report->text() : format(report.error());
  if (!report)
    return exitCode(report.error());
  return report->passed() ? 0
         : hazards.empty() ? int(ErrorKind::Mismatch)
                           : int(ErrorKind::Hazard);
}

Expected<int> explore(Compiler &compiler, const Options &options) {
  if (options.input == "-")
    return makeError(ErrorKind::Usage, "--explore must be given a file, but got standard input",
                     "its lines are shown beside those of every phase: write it to a file");
  FP4_TRY(checkDestination(options.explore));
  Json data = {{"file", options.input}, {"target", options.compiler.target}};
  FP4_TRY(compilePhases(compiler, options, data));
  FP4_TRY(compileKernels(compiler, options, data));
  FP4_ASSIGN(int code, simulate(compiler, options, data));
  data["layout"] = layoutTables();
  FP4_TRY(writeFile(options.explore, explorer::makePage(data)));
  if (int printed = harness::print(data["verdict"].get<std::string>() + "\n", "report"))
    return printed;
  return code;
}

} // namespace

int exploreProgram(Compiler &compiler, const Options &options) {
  Expected<int> code = explore(compiler, options);
  if (code)
    return *code;
  std::cerr << format(code.error());
  return exitCode(code.error());
}

} // namespace fp4::runner
