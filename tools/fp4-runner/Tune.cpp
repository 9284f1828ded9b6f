//===- Tune.cpp - Searching for the fastest plans -------------------------===//
//
// A descent: field by field, every legal value is predicted, and the best is kept, until a whole
// round changes nothing or the predictions are used up. The compiler says which plans are legal
// (Compiler::planChanges); a plan that does not compile is passed over.
//
//===----------------------------------------------------------------------===//

#include "Tune.h"

#include "TuneCache.h"

#include "fp4/ISA/TimingRates.h"
#include "fp4/Runtime/OpenDevice.h"
#include "fp4/Support/InputFile.h"
#include "fp4/Support/OutputFile.h"
#include "fp4/Support/Progress.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <algorithm>
#include <iostream>
#include <numeric>
#include <sstream>

namespace fp4::runner {
namespace {

namespace json = llvm::json;
using Plans = std::vector<std::string>; ///< plans of each kernel, in the order of the program

/// Trials that are verified, and measured if there is a GPU.
constexpr size_t kFinalists = 3;
/// The ratio above which a better prediction is not worth a step.
constexpr double kWorthwhile = 0.995;

struct Trial {
  Plans plans;
  harness::TimedProgram timed; ///< predicted
  double microseconds = 0;
  bool verified = false;
  std::optional<double> measured = std::nullopt; ///< microseconds
};

class Tuner {
public:
  explicit Tuner(const Options &options) : options(options) {}

  Expected<int> run();

private:
  Status begin();
  Status search();
  Status judge();
  bool isFinalist(Trial &trial, bool gpu);
  Expected<bool> verify(const Trial &trial);
  Expected<std::optional<double>> measure(const Trial &trial);
  Status write() const;
  std::string text() const;
  std::string json() const;

  Status prepare(Compiler &compiler, const Plans &plans) const;
  Expected<harness::RunReport> execute(const Plans &plans, const harness::RunOptions &run) const;
  Status predict(const Plans &plans, bool &better);
  Status descend(size_t kernel, bool &moved);
  std::vector<PlanChange> changesOf(const Plans &plans, size_t kernel) const;
  std::vector<size_t> kernelsByTime() const;
  std::string question() const;
  bool isAnswer(const TunedPlans &known) const;
  std::string describe(const Plans &plans) const;

  const Options &options;
  mutable std::ostringstream quiet; ///< why a plan does not compile
  std::vector<PlannedKernel> kernels;
  std::string program; ///< text of the program with the plans of the compiler
  std::vector<Trial> trials;
  std::vector<Plans> tried;
  size_t best = 0; ///< number of the best trial
  uint64_t predictions = 0;
  std::function<void(uint64_t, uint64_t)> progress;
  bool fromCache = false;
  std::string device; ///< device that measured; empty: none
  std::vector<std::string> notes;
};

//===----------------------------------------------------------------------===//
// A trial
//===----------------------------------------------------------------------===//

/// Loads the program and gives its kernels these plans; none: those of the compiler.
Status Tuner::prepare(Compiler &compiler, const Plans &plans) const {
  FP4_TRY(loadInput(compiler, options));
  FP4_TRY(compiler.compileTo(Phase::Planned));
  for (size_t i = 0; i < plans.size(); ++i)
    FP4_TRY(compiler.setPlan(i, plans[i]));
  return {};
}

Expected<harness::RunReport> Tuner::execute(const Plans &plans,
                                            const harness::RunOptions &run) const {
  CompilerOptions silent = options.compiler;
  silent.remarks = false;
  silent.diagnostics = &quiet;
  Compiler compiler(silent);
  FP4_TRY(prepare(compiler, plans));
  const bool onGpu = run.benchmark && compiler.checkAssembler();
  FP4_ASSIGN(auto loaded, loadProgram(compiler, onGpu ? Phase::Cubin : Phase::Ptx));
  return loaded.runner.run(run);
}

/// Adds a trial, unless these plans were tried or do not compile.
Status Tuner::predict(const Plans &plans, bool &better) {
  better = false;
  if (std::find(tried.begin(), tried.end(), plans) != tried.end())
    return {};
  tried.push_back(plans);
  harness::RunOptions run = options.run;
  run.time = run.timesOnly = true;
  run.device = "sim";
  run.check.clear();
  run.outputs.clear();
  run.showProgress = false;
  auto report = execute(plans, run);
  if (!report && trials.empty())
    return tl::unexpected<Error>(std::move(report.error()));
  if (!report && report.error().kind != ErrorKind::Compile)
    notes.push_back("a plan was passed over: " + describe(plans) + ": " + report.error().message);
  if (!report)
    return {};
  Trial trial{plans, report->timed(describe(plans))};
  auto time = trial.timed.microseconds();
  if (!time)
    return makeError(ErrorKind::Usage,
                     "--tune expects predictions, but there are none for " +
                         options.compiler.target,
                     report->times.empty() ? "the program launches no kernel"
                                           : sim::text(report->times.front()));
  ++predictions;
  trial.microseconds = *time;
  trials.push_back(std::move(trial));
  better = trials.back().microseconds < trials[best].microseconds * kWorthwhile;
  if (progress)
    progress(std::min<uint64_t>(predictions, options.tuneLimit - 1), options.tuneLimit);
  return {};
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

std::vector<PlanChange> Tuner::changesOf(const Plans &plans, size_t kernel) const {
  CompilerOptions silent = options.compiler;
  silent.diagnostics = &quiet;
  Compiler compiler(silent);
  return prepare(compiler, plans) ? compiler.planChanges(kernel) : std::vector<PlanChange>();
}

/// Tries the fields of one kernel, in turn.
Status Tuner::descend(size_t kernel, bool &moved) {
  Plans fields;
  for (const PlanChange &change : changesOf(trials[best].plans, kernel))
    if (std::find(fields.begin(), fields.end(), change.field) == fields.end())
      fields.push_back(change.field);
  for (const std::string &field : fields) {
    const Plans from = trials[best].plans;
    for (const PlanChange &change : changesOf(from, kernel)) {
      if (change.field != field || predictions >= options.tuneLimit)
        continue;
      Plans plans = from;
      plans[kernel] = change.plan;
      bool better = false;
      FP4_TRY(predict(plans, better));
      if (better)
        best = trials.size() - 1;
      moved |= better;
    }
  }
  return {};
}

/// Kernels in order of their time, the longest first, if launches and kernels are as many.
std::vector<size_t> Tuner::kernelsByTime() const {
  std::vector<size_t> order(kernels.size());
  std::iota(order.begin(), order.end(), size_t(0));
  const auto &launches = trials.front().timed.launches;
  if (launches.size() == kernels.size())
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return launches[a].time.microseconds > launches[b].time.microseconds;
    });
  return order;
}

Status Tuner::search() {
  bool moved = true;
  while (moved && predictions < options.tuneLimit) {
    moved = false;
    for (size_t kernel : kernelsByTime())
      FP4_TRY(descend(kernel, moved));
  }
  if (progress)
    progress(options.tuneLimit, options.tuneLimit);
  return {};
}

//===----------------------------------------------------------------------===//
// The finalists
//===----------------------------------------------------------------------===//

/// Returns true when a trial is bit-equal to the reference in the functional simulator.
Expected<bool> Tuner::verify(const Trial &trial) {
  harness::RunOptions run = options.run;
  run.time = run.timesOnly = false;
  run.clock = 0;
  run.gpu.clear();
  run.device = "sim";
  FP4_ASSIGN(auto report, execute(trial.plans, run));
  if (!report.passed())
    notes.push_back("a plan computes a wrong result and was passed over: " +
                    describe(trial.plans));
  return report.passed() && report.verified;
}

/// The median time of the program on a GPU that runs it.
Expected<std::optional<double>> Tuner::measure(const Trial &trial) {
  harness::RunOptions run = options.run;
  run.time = run.timesOnly = false;
  run.clock = 0;
  run.gpu.clear();
  run.check.clear();
  run.benchmark = true;
  FP4_ASSIGN(auto report, execute(trial.plans, run));
  if (!report.benchmark || !report.passed())
    return std::optional<double>();
  device = report.device;
  constexpr double perMillisecond = 1e3;
  return std::optional<double>(report.benchmark->entries.back().timing.median * perMillisecond);
}

/// The name of the GPU that --device finds for the target; empty: none.
std::string gpuOf(const Options &options) {
  if (options.run.device == "sim")
    return "";
  rt::DeviceOptions device;
  device.target = options.compiler.target;
  auto opened = rt::openDevice(options.run.device, device);
  return opened && (*opened)->isHardware() ? (*opened)->name() : "";
}

/// Verifies a trial and, if there is a GPU, measures it. Returns true when it may win: one plan
/// that fails must not end the search for all.
bool Tuner::isFinalist(Trial &trial, bool gpu) {
  Expected<bool> verified = verify(trial);
  if (!verified) {
    notes.push_back("a plan does not run and was passed over: " + describe(trial.plans) + ": " +
                    verified.error().message);
    return false;
  }
  trial.verified = *verified;
  if (!trial.verified || !gpu)
    return trial.verified;
  Expected<std::optional<double>> measured = measure(trial);
  if (measured)
    trial.measured = *measured;
  else
    notes.push_back("a plan was not measured: " + describe(trial.plans) + ": " +
                    measured.error().message);
  return true;
}

/// Sorts the trials, and verifies and measures the first ones.
Status Tuner::judge() {
  std::stable_sort(trials.begin(), trials.end(),
                   [](const Trial &a, const Trial &b) { return a.microseconds < b.microseconds; });
  best = 0;
  if (!options.run.verify) {
    notes.push_back("not verified: --no-verify");
    return {};
  }
  const bool gpu = !gpuOf(options).empty();
  size_t finalists = 0;
  for (size_t i = 0; i < trials.size() && finalists < kFinalists;) {
    if (!isFinalist(trials[i], gpu)) {
      trials.erase(trials.begin() + ptrdiff_t(i));
      continue;
    }
    if (trials[i].measured && *trials[i].measured < trials[best].measured.value_or(1e300))
      best = i;
    ++finalists;
    ++i;
  }
  if (trials.empty())
    return makeError(ErrorKind::Mismatch, "no plan computes the result of the reference",
                     (notes.empty() ? "" : notes.front() + "; ") +
                         "without --tune the program shows where");
  return {};
}

//===----------------------------------------------------------------------===//
// Begin and end
//===----------------------------------------------------------------------===//

/// A text that tells whether a file has changed: its size and its time.
std::string stampOf(const std::string &path) {
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(path, status))
    return "absent";
  return llvm::formatv("{0} {1}", status.getSize(),
                       status.getLastModificationTime().time_since_epoch().count())
      .str();
}

/// The key of the cache: everything that an answer depends on, except the facts that isAnswer asks.
/// Another build of the compiler is another file.
std::string Tuner::question() const {
  const harness::RunOptions &run = options.run;
  std::ostringstream text;
  text << "tune 2\n"
       << stampOf(llvm::sys::fs::getMainExecutable(nullptr, nullptr)) << '\n'
       << options.compiler.target << ' ' << options.compiler.sms << ' '
       << int(options.compiler.pdl) << ' ' << options.compiler.noArithmetic << ' '
       << options.tuneLimit << ' ' << run.function << '\n'
       << run.distribution << ' ' << run.seed << ' ' << run.policy << ' ' << run.check << ' '
       << run.mix << ' ' << run.clock << ' ' << run.gpu << ' ' << run.sampleAfter << '\n';
  for (int64_t size : run.shape)
    text << size << ',';
  for (const std::string &dim : run.dims)
    text << dim << ',';
  for (const std::string &input : run.inputs)
    text << '\n' << input << ' ' << stampOf(input.substr(input.find('=') + 1));
  for (const hw::TimingRow &row : hw::timingRows)
    if (row.target == options.compiler.target)
      text << '\n' << int(row.which) << " " << row.rate.value;
  text << '\n' << program;
  return text.str();
}

/// Returns true when the cache knows as much as this search would find: plans are verified, unless
/// nobody asks for it, and measured on the same GPU, if there is one.
bool Tuner::isAnswer(const TunedPlans &known) const {
  if (!options.run.verify)
    return true;
  const std::string gpu = gpuOf(options);
  return known.verified && (gpu.empty() || (known.measured && known.device == gpu));
}

Status Tuner::begin() {
  CompilerOptions given = options.compiler;
  given.remarks = false;
  Compiler compiler(given);
  FP4_TRY(prepare(compiler, {}));
  kernels = compiler.plans();
  program = compiler.ir();
  if (kernels.empty())
    return makeError(ErrorKind::Usage, "--tune expects a program with operations that have plans",
                     "--emit=mlir --compile-to=planned shows the plans of a program");
  return {};
}

/// The plans that the compiler would not have chosen, as text.
std::string Tuner::describe(const Plans &plans) const {
  std::string text;
  for (size_t i = 0; i < plans.size(); ++i)
    if (plans[i] != kernels[i].plan)
      text += (text.empty() ? "" : "; ") +
              (kernels.size() > 1 ? llvm::formatv("kernel {0}: {1}", i, plans[i]).str() : plans[i]);
  return text.empty() ? "the plans of the compiler" : text;
}

Status Tuner::write() const {
  if (options.output.empty())
    return {};
  const Trial &winner = trials[best];
  if (llvm::StringRef(options.output).ends_with(".mlir")) {
    Compiler compiler(options.compiler);
    FP4_TRY(prepare(compiler, winner.plans));
    return writeFile(options.output, compiler.ir());
  }
  std::string text = "// Plans for " + options.compiler.target + ", found by fp4-runner --tune: " +
                     "fp4-runner --plan @FILE\n";
  Plans families, lines;
  for (const std::string &plan : winner.plans) {
    const std::string family = llvm::StringRef(plan).split(',').first.str();
    if (llvm::is_contained(lines, plan))
      continue;
    if (llvm::is_contained(families, family))
      return makeError(ErrorKind::Usage,
                       "a plan file has one plan for each family, but kernels of " + family +
                           " have different ones",
                       "write the program instead: -o FILE.mlir");
    families.push_back(family);
    lines.push_back(plan);
    text += plan + "\n";
  }
  return writeFile(options.output, text);
}

std::string Tuner::text() const {
  std::string text = llvm::formatv("tuned {0} for {1}: {2}\n", options.input,
                                   options.compiler.target,
                                   fromCache ? "from the cache"
                                             : llvm::formatv("{0} predictions", predictions).str())
                         .str();
  for (size_t i = 0; i < std::min(trials.size(), kFinalists); ++i) {
    const Trial &trial = trials[i];
    text += llvm::formatv("  {0} predicted {1:f2} us{2}{3}  {4}\n", i == best ? "*" : " ",
                          trial.microseconds, trial.verified ? ", verified" : "",
                          trial.measured ? llvm::formatv(", measured {0:f2} us", *trial.measured).str()
                                         : "",
                          describe(trial.plans))
                .str();
  }
  if (!device.empty())
    text += "  measured on " + device + "\n";
  for (const Trial &trial : trials)
    if (trial.plans == tried.front())
      text += harness::compareTimes(trial.timed, trials[best].timed).text();
  for (const std::string &note : notes)
    text += "note: " + note + "\n";
  return text;
}

std::string Tuner::json() const {
  json::Array list, kernelList;
  for (const Trial &trial : trials) {
    json::Object object{{"plans", json::Array(trial.plans)},
                        {"predicted_microseconds", trial.microseconds},
                        {"verified", trial.verified}};
    if (trial.measured)
      object["measured_microseconds"] = *trial.measured;
    list.push_back(std::move(object));
  }
  for (const PlannedKernel &kernel : kernels)
    kernelList.push_back(json::Object{{"function", kernel.function},
                                      {"operation", kernel.operation},
                                      {"plan_of_the_compiler", kernel.plan}});
  json::Object object{{"program", options.input},
                      {"target", options.compiler.target},
                      {"from_cache", fromCache},
                      {"predictions", int64_t(predictions)},
                      {"kernels", std::move(kernelList)},
                      {"best", int64_t(best)},
                      {"trials", std::move(list)},
                      {"notes", json::Array(notes)}};
  if (!device.empty())
    object["device"] = device;
  std::string text;
  llvm::raw_string_ostream(text) << llvm::formatv("{0:2}", json::Value(std::move(object))) << "\n";
  return text;
}

Expected<int> Tuner::run() {
  if (!options.output.empty())
    FP4_TRY(checkDestination(options.output));
  FP4_TRY(begin());
  Plans own;
  for (const PlannedKernel &kernel : kernels)
    own.push_back(kernel.plan);
  const TuneCache cache(question());
  bool damaged = false, better = false;
  std::optional<TunedPlans> known = options.retune ? std::nullopt : cache.read(damaged);
  if (damaged)
    notes.push_back("the entry of the cache is damaged and is replaced: " + cache.path());
  FP4_TRY(predict(own, better));
  if (known && known->plans.size() == own.size() && isAnswer(*known)) {
    FP4_TRY(predict(known->plans, better));
    fromCache = trials.back().plans == known->plans;
  }
  if (!fromCache) {
    progress = makeProgressLine("tuning", "predictions");
    FP4_TRY(search());
    FP4_TRY(judge());
    const Trial &winner = trials[best];
    const auto before = std::find_if(trials.begin(), trials.end(),
                                     [&](const Trial &trial) { return trial.plans == own; });
    Status kept = cache.write({winner.plans, winner.microseconds,
                               before == trials.end() ? 0 : before->microseconds, predictions,
                               winner.verified, winner.measured, device});
    if (!kept)
      notes.push_back("not remembered: " + kept.error().message);
  } else {
    best = trials.size() - 1;
    trials[best].verified = known->verified;
    trials[best].measured = known->measured;
    device = known->device;
    std::swap(trials.front(), trials[best]);
    best = 0;
  }
  FP4_TRY(write());
  return harness::print(options.run.json ? json() : text(), "report");
}

} // namespace

int tuneProgram(const Options &options) {
  Expected<int> code = Tuner(options).run();
  if (code)
    return *code;
  std::cerr << format(code.error());
  return exitCode(code.error());
}

Status readPlanFiles(std::vector<std::string> &plans) {
  std::vector<std::string> all;
  for (const std::string &plan : plans) {
    if (plan.empty() || plan.front() != '@') {
      all.push_back(plan);
      continue;
    }
    FP4_ASSIGN(auto text, readText(plan.substr(1)));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      if (llvm::StringRef rest = llvm::StringRef(line).trim();
          !rest.empty() && !rest.starts_with("//"))
        all.push_back(rest.str());
  }
  plans = std::move(all);
  return {};
}

} // namespace fp4::runner
