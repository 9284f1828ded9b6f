//===- Runner.h - Runs, checks and reports compiled functions -------------===//
//
// The common part of fp4-run and fp4-runner: from a manifest and the address of an entry function
// to a verified result and a report. The caller brings the code (dlopen of an emitted library, or a
// JIT); this file has inputs, device, session, reference, verdict and files. The file needs no
// LLVM.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Benchmark/Benchmark.h"
#include "fp4/Benchmark/EntryCall.h"
#include "fp4/Harness/Simulation.h"
#include "fp4/Harness/TimeCompare.h"
#include "fp4/Harness/Verdict.h"
#include "fp4/Runtime/ModuleCache.h"
#include "fp4/Sim/AccessStatistics.h"
#include "fp4/Sim/HazardChecker.h"
#include "fp4/Sim/KernelTime.h"
#include "fp4/Sim/Orders.h"

#include <functional>
#include <map>
#include <optional>

namespace CLI {
class App;
}

namespace fp4::harness {

/// Finds the entry function of a manifest symbol.
using EntryResolver = std::function<Expected<EntryFunction>(const std::string &symbol)>;

/// State that runs of one function with the same inputs share: Runner::prepare makes it.
struct Prepared;

/// The user's options; addRunOptions fills them from a command line.
struct RunOptions : sim::SimulationOptions {
  std::string device = "auto";           ///< auto | sim | cuda | cuda:N
  std::string distribution = "gaussian"; ///< one of kDistributions
  std::string function;                  ///< empty: the only function
  std::vector<std::string> inputs;       ///< NAME=FILE.npy
  std::vector<std::string> outputs;      ///< NAME=FILE.npy
  std::vector<int64_t> shape;            ///< M,N,K; empty: from the manifest and the inputs
  std::vector<std::string> dims;         ///< NAME=SIZE, of a named dimension or of an argument's rows
  bool verify = true;
  bool benchmark = false; ///< time what was verified
  double warmMilliseconds = 0; ///< time for which --benchmark repeats the work before it counts
  bool json = false;      ///< the report as one JSON object
  bool showProgress = true; ///< progress of simulations that take long
  std::string compare;    ///< JSON of an earlier benchmark, or of predictions; empty: none
  std::string label;      ///< name in comparisons of predictions; empty: the function's name
  std::optional<TimedProgram> before; ///< predictions to compare with
  EntryResolver twin;     ///< same program compiled with --no-arithmetic, to time beside it
  std::shared_ptr<const Prepared> prepared; ///< null: the run makes its own
  rt::ModuleCache::Exchange exchange;       ///< none: the library's own code runs
};

/// The findings and predictions of a simulation; empty after a run on a GPU.
struct SimulationReport {
  std::string policy;
  std::string check;                      ///< mode of the hazard checker; empty on a GPU
  std::vector<sim::HazardReport> hazards; ///< findings of the checker
  bool counted = false;                   ///< accesses were counted
  std::vector<sim::AccessCount> wasteful; ///< accesses that cost more than they must
  std::vector<sim::OrderReport> orders;   ///< one report of each launch, with --policy exhaustive
  std::vector<sim::KernelTime> times;     ///< predicted, with --time
  /// Source of each instruction mix: "of the cubin", "estimated from PTX".
  std::vector<std::string> instructionMixes;
  std::optional<TimeComparison> timeComparison; ///< comparison of times, with --time --compare
};

/// Times with --benchmark, which are taken when the result was right.
struct MeasuredReport {
  bool benchmarked = false;
  std::optional<BenchmarkReport> benchmark; ///< measured times, on hardware
  std::vector<Comparison> comparisons;      ///< comparisons with a baseline, with --compare
};

struct RunReport {
  std::string compiler, function, device, deviceSelector, target;
  bool hardware = false;
  uint64_t seed = 0;
  struct Kernel {
    std::string module, name;
    rt::LaunchShape shape;
    uint32_t registers = 0;
    uint32_t spillBytes = 0;
    uint32_t sharedBytes = 0;
    double milliseconds = 0;
    std::optional<rt::LaunchCounts> counts; ///< counts of a simulator
  };
  struct Operand {
    std::string name;
    Type type;
    std::string source; ///< "gaussian, seed 1" or the file
  };
  std::vector<Operand> arguments, results;
  std::vector<Kernel> kernels;
  std::vector<Verdict> verdicts;
  bool verified = false; ///< true when the reference was run
  double runMilliseconds = 0, referenceMilliseconds = 0;
  std::vector<std::string> notes;
  SimulationReport simulation;
  MeasuredReport measured;

  /// A few lines for a person.
  std::string text() const;
  /// The facts of text(), as one JSON object.
  std::string json() const;
  bool passed() const;
  /// Leaves out how long this host took, so that two reports of one simulation are equal.
  void forgetHostTimes();
  /// The launches with their predicted times.
  TimedProgram timed(std::string label) const;
};

class Runner {
public:
  /// Parses the manifest; malformed JSON and unknown schemas are Usage errors.
  static Expected<Runner> create(std::string_view manifestJson, EntryResolver resolver);

  const Manifest &manifest() const { return manifest_; }
  /// The text of the manifest as it was parsed.
  const std::string &manifestText() const { return text_; }
  const EntryResolver &resolver() const { return resolver_; }

  /// The inputs, and the results that the reference has for them, where the options ask for it.
  Expected<std::shared_ptr<const Prepared>> prepare(const RunOptions &options) const;

  /// Runs one function. A result that differs from the reference is not an Error: the report says
  /// so (passed() is false, exit code 1). Outputs are written whether or not it passed.
  /// `hazards`, where given, has what --check found even when the run ends in an error.
  Expected<RunReport> run(const RunOptions &options,
                          std::vector<sim::HazardReport> *hazards = nullptr) const;

  /// The text of --list: functions with arguments and results, kernels with their resources.
  std::string list() const;

private:
  Manifest manifest_;
  std::string text_;
  EntryResolver resolver_;
};

/// Adds --device, --policy, --check, --explain, --seed, --dist, --function, --input, --output,
/// --shape, --dim,
/// --no-verify, --benchmark, --json and --threads. `options` must outlive the parse.
void addRunOptions(CLI::App &app, RunOptions &options);

/// Prints to stdout and returns the exit code. The code is not 0 if stdout accepts no more output;
/// a line on stderr then names `what`.
int print(const std::string &text, const char *what);

/// Runs, prints the report to stdout or the error to stderr, and returns the exit code of
/// docs/reference/diagnostics.md. The two tools end with this call after they have a runner.
int runAndReport(const Runner &runner, const RunOptions &options);

} // namespace fp4::harness
