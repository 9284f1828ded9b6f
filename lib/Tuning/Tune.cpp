//===- Tune.cpp - Searching for the fastest plans of a program ------------===//

#include "fp4/Tuning/Tune.h"

#include "CompiledProgram.h"

#include "fp4/ISA/TimingRates.h"
#include "fp4/Tuning/TuneCache.h"

#include "llvm/Support/FileSystem.h"

#include <algorithm>
#include <sstream>

namespace fp4::tuning {
namespace {

//===----------------------------------------------------------------------===//
// The finalists
//===----------------------------------------------------------------------===//

/// Verifies and measures the trials of a search.
class Judge {
public:
  Judge(const CompiledProgram &program, TuneReport &report) : program(program), report(report) {}

  /// Sorts the trials, and verifies and measures the first ones.
  Status judge();

private:
  bool isFinalist(Trial &trial, bool gpu);
  Expected<bool> verify(const Trial &trial);
  Expected<std::optional<double>> measure(const Trial &trial);
  void note(const std::string &what, const Trial &trial, const std::string &why = "") {
    report.notes.push_back(what + ": " + describePlans(trial.plans, report.own) +
                           (why.empty() ? "" : ": " + why));
  }

  const CompiledProgram &program;
  TuneReport &report;
};

/// Returns true when a trial is bit-equal to the reference in the functional simulator.
Expected<bool> Judge::verify(const Trial &trial) {
  FP4_ASSIGN(auto run, program.verify(trial.plans));
  if (!run.passed())
    note("a plan computes a wrong result and was passed over", trial);
  return run.passed() && run.verified;
}

/// The median time of the program on a GPU that runs it.
Expected<std::optional<double>> Judge::measure(const Trial &trial) {
  FP4_ASSIGN(auto run, program.measure(trial.plans));
  if (!run.measured.benchmark || !run.passed())
    return std::optional<double>();
  report.device = run.device;
  constexpr double perMillisecond = 1e3;
  return std::optional<double>(run.measured.benchmark->entries.back().timing.median * perMillisecond);
}

/// Verifies a trial and, if there is a GPU, measures it. Returns true when it may win: one plan
/// that fails must not end the search for all.
bool Judge::isFinalist(Trial &trial, bool gpu) {
  Expected<bool> verified = verify(trial);
  if (!verified) {
    note("a plan does not run and was passed over", trial, verified.error().message);
    return false;
  }
  trial.verified = *verified;
  if (!trial.verified || !gpu)
    return trial.verified;
  Expected<std::optional<double>> measured = measure(trial);
  if (measured)
    trial.measured = *measured;
  else
    note("a plan was not measured", trial, measured.error().message);
  return true;
}

Status Judge::judge() {
  std::vector<Trial> &trials = report.trials;
  const bool gpu = !program.gpu().empty();
  size_t finalists = 0;
  for (size_t i = 0; i < trials.size() && finalists < kFinalists;) {
    if (!isFinalist(trials[i], gpu)) {
      trials.erase(trials.begin() + ptrdiff_t(i));
      continue;
    }
    if (trials[i].measured && *trials[i].measured < trials[report.best].measured.value_or(1e300))
      report.best = i;
    ++finalists;
    ++i;
  }
  if (trials.empty())
    return makeError(ErrorKind::Mismatch, "no plan computes the result of the reference",
                     (report.notes.empty() ? "" : report.notes.front() + "; ") +
                         "without --tune the program shows where");
  return {};
}

//===----------------------------------------------------------------------===//
// Plans of the cache
//===----------------------------------------------------------------------===//

/// A text that tells whether a file has changed: its size and its time.
std::string stampOf(const std::string &path) {
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(path, status))
    return "absent";
  return std::to_string(status.getSize()) + " " +
         std::to_string(status.getLastModificationTime().time_since_epoch().count());
}

/// The key of the cache: everything that an answer depends on, except the facts that isAnswer asks.
/// Another build of the compiler is another file.
std::string questionOf(const TuneOptions &options, const std::string &program) {
  const harness::RunOptions &run = options.run;
  std::ostringstream text;
  text << "tune 2\n"
       << stampOf(llvm::sys::fs::getMainExecutable(nullptr, nullptr)) << '\n'
       << options.compiler.target << ' ' << options.compiler.sms << ' ' << int(options.compiler.pdl)
       << ' ' << options.compiler.noArithmetic << ' ' << options.limit << ' ' << run.function
       << '\n'
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
bool isAnswer(const TunedPlans &known, const TuneOptions &options, const CompiledProgram &program) {
  if (known.plans.size() != program.own().size())
    return false;
  if (!options.run.verify)
    return true;
  const std::string gpu = program.gpu();
  return known.verified && (gpu.empty() || (known.measured && known.device == gpu));
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

void append(std::vector<std::string> &notes, std::vector<std::string> more) {
  notes.insert(notes.end(), more.begin(), more.end());
}

/// The answer of the cache, whose plans are the last trial of `search`.
void takeKnown(TuneReport &report, Search &search, const TunedPlans &known) {
  report.fromCache = true;
  report.trials = std::move(search.trials);
  report.trials.back().verified = known.verified;
  report.trials.back().measured = known.measured;
  report.device = known.device;
  std::swap(report.trials.front(), report.trials.back());
}

/// Searches, and remembers the answer.
Status takeFound(TuneReport &report, Search &search, const TuneOptions &options,
                 const CompiledProgram &program, const TuneCache &cache) {
  FP4_TRY(search.descend(options.progress));
  report.trials = std::move(search.trials);
  std::stable_sort(report.trials.begin(), report.trials.end(),
                   [](const Trial &a, const Trial &b) { return a.microseconds < b.microseconds; });
  append(report.notes, search.notes);
  if (options.run.verify)
    FP4_TRY(Judge(program, report).judge());
  else
    report.notes.push_back("not verified: --no-verify");
  const Trial &winner = report.trials[report.best];
  const auto before = std::find_if(report.trials.begin(), report.trials.end(),
                                   [&](const Trial &t) { return t.plans == report.own; });
  Status kept = cache.write({winner.plans, winner.microseconds,
                             before == report.trials.end() ? 0 : before->microseconds,
                             search.predictions, winner.verified, winner.measured, report.device});
  if (!kept)
    report.notes.push_back("not remembered: " + kept.error().message);
  return {};
}

} // namespace

Expected<TuneReport> tune(const TuneOptions &options) {
  CompiledProgram program(options);
  FP4_TRY(program.begin());
  TuneReport report;
  report.kernels = program.kernels();
  report.own = program.own();
  const TuneCache cache(questionOf(options, program.text()));
  bool damaged = false;
  std::optional<TunedPlans> known = options.retune ? std::nullopt : cache.read(damaged);
  if (damaged)
    report.notes.push_back("the entry of the cache is damaged and is replaced: " + cache.path());
  Search search(program, options.limit);
  FP4_ASSIGN([[maybe_unused]] bool first, search.predict(report.own));
  if (known && isAnswer(*known, options, program)) {
    FP4_ASSIGN([[maybe_unused]] bool better, search.predict(known->plans));
    if (search.trials.back().plans == known->plans)
      takeKnown(report, search, *known);
  }
  if (!report.fromCache)
    FP4_TRY(takeFound(report, search, options, program, cache));
  report.predictions = search.predictions;
  return report;
}

Expected<std::string> tunedProgram(const TuneOptions &options, const Plans &plans) {
  Compiler compiler(options.compiler);
  FP4_TRY(CompiledProgram(options).prepare(compiler, plans));
  return compiler.ir();
}

} // namespace fp4::tuning
