//===- Explore.cpp - The page of a program --------------------------------===//
//
// Lines of a program's PTX have lines of its sources as their origin, where nvcc -lineinfo or a
// compiler of another language left .loc directives, and lines of machine code those of the PTX.
//
//===----------------------------------------------------------------------===//
#include "Explore.h"
#include "fp4/Explorer/Explorer.h"
#include "fp4/ISA/GpuModel.h"
#include "fp4/Sim/Program.h"
#include "fp4/Support/InputFile.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>

using namespace fp4;
using namespace fp4::harness;
using explorer::Json;
using explorer::Text;
namespace fs = std::filesystem;

Expected<std::unique_ptr<Exploration>> Exploration::prepare(ProgramOptions &options) {
  if (options.policy == "exhaustive")
    return makeError(ErrorKind::Usage, "--explore does not go with --policy exhaustive",
                     "a launch runs many times, and a page shows one run: choose another policy");
  FP4_TRY(checkDestination(options.explore));
  std::unique_ptr<Exploration> made(new Exploration());
  if (options.dumpPtx.empty()) {
    FP4_ASSIGN(made->own, TemporaryFolder::create("explore"));
    options.dumpPtx = made->own->path();
  }
  made->folder = options.dumpPtx;
  if (options.timeline.empty()) {
    FP4_ASSIGN(auto file, TemporaryFile::create("json"));
    options.timeline = file->path();
    options.timelineSms = explorer::kSms;
    made->traceFile = std::move(file);
  }
  options.quietTimes = !options.time && explorer::predicts(options);
  options.time |= options.quietTimes;
  return made;
}

/// Kernels ran, but a program that ends without its exit leaves no trace of them.
static bool isTraceLost(const Json &report, const Json &data) {
  return !report["kernels"].empty() && data["launches"].empty();
}

/// The names of all PTX files of a folder.
static std::vector<std::string> modulesIn(const fs::path &folder) {
  std::vector<std::string> modules;
  std::error_code failed;
  for (const auto &entry : fs::directory_iterator(folder, failed))
    if (entry.path().extension() == ".ptx")
      modules.push_back(entry.path().filename().string());
  std::ranges::sort(modules);
  return modules;
}

/// The modules of launches and findings, in their order.
static std::vector<std::string> modulesOf(const Json &data) {
  std::vector<std::string> modules;
  for (const char *list : {"launches", "hazards"})
    for (const Json &each : data[list])
      if (const std::string name = each["program"];
          std::ranges::find(modules, name) == modules.end())
        modules.push_back(name);
  return modules;
}

/// PTX of modules, behind the sources that it came from, before its machine code.
static void addTexts(const fs::path &folder, const std::vector<std::string> &modules,
                     const std::string &target, Json &data) {
  std::vector<Text> ptx;
  for (const std::string &module : modules)
    if (auto text = readText((folder / fs::path(module).filename()).string()))
      ptx.push_back(explorer::ptxText(module, std::move(*text), ""));
  data["texts"] = Json::array();
  for (Text &source : explorer::sourceTexts(ptx))
    data["texts"].push_back(toJson(std::move(source)));
  std::vector<Text> machine;
  data["no_sass"] = ptx.empty() ? "no kernel ran" : "";
  for (const Text &text : ptx)
    if (auto sass = explorer::sassText(text.module, text.text, target))
      machine.push_back(std::move(*sass));
    else
      data["no_sass"] = sass.error().message;
  for (auto *list : {&ptx, &machine})
    for (Text &text : *list)
      data["texts"].push_back(toJson(std::move(text)));
}

/// The program and its arguments, without folders.
static std::string commandOf(const ProgramOptions &options) {
  std::string text;
  for (const std::string &word : options.command)
    text += (text.empty() ? "" : " ") + fs::path(word).filename().string();
  return text;
}

/// Launches of one kernel.
struct KernelRuns {
  uint64_t launches = 0, instructions = 0;
  double microseconds = 0;
};

/// A few lines and a table of the kernels.
static std::string verdictOf(const Json &report, const std::vector<std::string> &faults) {
  std::map<std::string, KernelRuns> kernels;
  for (const Json &kernel : report["kernels"]) {
    KernelRuns &runs = kernels[sim::displayName(kernel["name"].get<std::string>())];
    ++runs.launches;
    runs.instructions += kernel["warp_instructions"].get<uint64_t>();
  }
  for (const Json &time : report.value("predicted_times", Json::array()))
    kernels[sim::displayName(time["kernel"].get<std::string>())].microseconds +=
        time.value("microseconds", 0.0);
  std::string text = fmt::format(
      "exit code {}\n{} launches, {} warp instructions\n{} hazards, {} kernels failed\n\n",
      report["exit_code"].get<int>(), report["launches"].get<uint64_t>(),
      report["warp_instructions"].get<uint64_t>(), report["hazards"].size(), faults.size());
  text += fmt::format("{:>8}  {:>17}  {:>12}  {}\n", "launches", "warp instructions",
                      "predicted us", "kernel");
  for (const auto &[name, runs] : kernels)
    text +=
        fmt::format("{:>8}  {:>17}  {:>12}  {}\n", runs.launches, runs.instructions,
                    runs.microseconds > 0 ? fmt::format("{:.2f}", runs.microseconds) : "-", name);
  return text;
}

Status Exploration::write(const ProgramOptions &options, const nlohmann::ordered_json &report,
                          const std::vector<std::string> &faults) const {
  FP4_ASSIGN(const hw::GpuModel *gpu, hw::requireGpu(options.device));
  const std::string target(gpu->target);
  Json data = {{"file", commandOf(options)},
               {"target", fmt::format("{} ({})", options.device, target)},
               {"passed", report["exit_code"] == 0},
               {"verdict", verdictOf(report, faults)},
               {"hazards", report["hazards"]},
               {"faults", faults},
               {"times", report.value("predicted_times", Json::array())}};
  explorer::readTrace(options.timeline, data);
  const bool lost = isTraceLost(report, data);
  // A folder of the user's may have PTX of other programs.
  addTexts(folder, lost && own ? modulesIn(folder) : modulesOf(data), target, data);
  if (lost) {
    data["verdict"] =
        data["verdict"].get<std::string>() + "\nno timeline: the program ended without its exit\n";
    if (data["no_sass"] == "no kernel ran")
      data["no_sass"] = "the program ended without its exit";
  }
  return writeFile(options.explore, explorer::makePage(data));
}
