//===- Explore.cpp - The page that --explore writes -----------------------===//
//
// Collection of data as one JSON object, which is put into explorer.html. Lines of phases up to
// `scheduled` have lines of the source as their origin, and lines of later phases have lines of
// `scheduled`: a kernel is one operation of the source, and many of that phase.
//
//===----------------------------------------------------------------------===//

#include "Explore.h"

#include "fp4/Support/InputFile.h"
#include "fp4/Support/OutputFile.h"
#include "fp4/Tuning/LoadedProgram.h"

#include "llvm/Support/raw_ostream.h"

#include <iostream>

namespace fp4::runner {
namespace {

namespace json = llvm::json;
using llvm::StringRef;

constexpr const char *kAnchor = "scheduled";
/// Events of the simulation that a page shows; a browser draws no more.
constexpr size_t kMostEvents = 60000;

const char *kPage =
#include "explorer.html.inc"
    ;

/// Texts are copied: json would only refer to a StringRef.
json::Object phase(std::string name, std::string base, Listing listing) {
  json::Array origins;
  for (const std::vector<unsigned> &lines : listing.origins)
    origins.push_back(json::Array(lines));
  return json::Object{{"name", std::move(name)},
                      {"base", std::move(base)},
                      {"text", std::move(listing.text)},
                      {"origins", std::move(origins)}};
}

/// The program from the source to `nvvm`, and the memory of its kernels on the way.
Status compilePhases(Compiler &compiler, const Options &options, json::Object &data) {
  FP4_ASSIGN(auto source, readText(options.input));
  json::Array phases;
  phases.push_back(phase("source", "", {std::move(source), {}}));
  for (Phase step : {Phase::Fused, Phase::Planned, Phase::Tiles, Phase::Roles, Phase::Pipelined,
                     Phase::Scheduled}) {
    FP4_TRY(compiler.compileTo(step));
    phases.push_back(
        phase(std::string(stringifyPhase(step)), "source", compiler.listing(options.input)));
    if (step != Phase::Pipelined)
      continue;
    llvm::Expected<json::Value> memory = json::parse(compiler.memoryMap());
    data["memory"] = memory ? std::move(*memory) : json::Value(json::Array());
  }
  FP4_TRY(compiler.anchorListing(kAnchor));
  FP4_TRY(compiler.compileTo(Phase::Nvvm));
  phases.push_back(phase("nvvm", kAnchor, compiler.listing(kAnchor)));
  FP4_TRY(compiler.keepLines());
  data["phases"] = std::move(phases);
  return {};
}

Status compileKernels(Compiler &compiler, json::Object &data) {
  FP4_ASSIGN(bool assembler, hasAssembler(compiler, ""));
  FP4_TRY(compiler.compileTo(assembler ? Phase::Cubin : Phase::Ptx));
  std::string why;
  json::Array &phases = *data.getArray("phases");
  for (const KernelCode &kernel : compiler.kernels())
    for (json::Value &listing : codeListings(kernel, why))
      phases.push_back(std::move(listing));
  data["no_sass"] = why;
  return {};
}

json::Object describeAccess(const sim::HazardAccess &access) {
  return json::Object{{"line", access.line},
                      {"what", access.what},
                      {"source", access.source},
                      {"origin", access.origin}};
}

json::Array describeHazards(const std::vector<sim::HazardReport> &hazards) {
  json::Array array;
  for (const sim::HazardReport &hazard : hazards)
    array.push_back(json::Object{{"rule", StringRef(sim::stringify(hazard.rule))},
                                 {"program", hazard.program},
                                 {"kernel", hazard.kernel},
                                 {"place", hazard.place},
                                 {"message", hazard.message},
                                 {"remedy", hazard.remedy},
                                 {"first", describeAccess(hazard.first)},
                                 {"second", describeAccess(hazard.second)}});
  return array;
}

/// Adds the events of a trace, and their number.
void addTimeline(const std::string &path, json::Object &data) {
  Expected<std::string> text = readText(path);
  llvm::Expected<json::Value> trace = json::parse(text ? StringRef(*text) : "[]");
  json::Array events;
  size_t count = 0;
  if (json::Array *all = trace ? trace->getAsArray() : nullptr) {
    count = all->size();
    for (json::Value &event : llvm::MutableArrayRef(all->data(), std::min(count, kMostEvents)))
      events.push_back(std::move(event));
  } else {
    llvm::consumeError(trace.takeError());
  }
  data["events"] = std::move(events);
  data["event_count"] = int64_t(count);
}

/// Simulates the program and adds facts about the run. Returns its exit code.
Expected<int> simulate(Compiler &compiler, const Options &options, json::Object &data) {
  FP4_ASSIGN(bool assembler, hasAssembler(compiler, ""));
  FP4_ASSIGN(auto program, tuning::loadProgram(compiler, assembler ? Phase::Cubin : Phase::Ptx));
  FP4_ASSIGN(auto trace, TemporaryFile::create("json"));
  harness::RunOptions run = options.run;
  run.timeline = trace->path();
  run.device = "sim"; // a GPU has no timeline
  std::vector<sim::HazardReport> hazards;
  auto report = program.runner.run(run, &hazards);
  addTimeline(run.timeline, data);
  data["hazards"] = describeHazards(hazards);
  if (report)
    report->forgetHostTimes();
  data["passed"] = report && report->passed();
  data["verdict"] = report ? report->text() : format(report.error());
  if (!report)
    return exitCode(report.error());
  return report->passed() ? 0
         : hazards.empty() ? int(ErrorKind::Mismatch)
                           : int(ErrorKind::Hazard);
}

/// The page with its data. A '<' in the data could end the script that holds it.
std::string makePage(json::Object data) {
  std::string text;
  llvm::raw_string_ostream(text) << json::Value(std::move(data));
  std::string safe;
  for (char c : text)
    safe += c == '<' ? std::string("\\u003c") : std::string(1, c);
  auto [before, after] = StringRef(kPage).split("FP4_DATA");
  return (before + safe + after).str();
}

Expected<int> explore(Compiler &compiler, const Options &options) {
  if (options.input == "-")
    return makeError(ErrorKind::Usage, "--explore must be given a file, but got standard input",
                     "its lines are shown beside those of every phase: write it to a file");
  FP4_TRY(checkDestination(options.explore));
  json::Object data{{"file", options.input}, {"target", options.compiler.target}};
  FP4_TRY(compilePhases(compiler, options, data));
  FP4_TRY(compileKernels(compiler, data));
  FP4_ASSIGN(int code, simulate(compiler, options, data));
  const std::string verdict = data.getString("verdict").value_or("").str();
  data["layout"] = layoutTables();
  FP4_TRY(writeFile(options.explore, makePage(std::move(data))));
  if (int printed = harness::print(verdict + "\n", "report"))
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
