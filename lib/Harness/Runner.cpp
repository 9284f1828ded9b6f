//===- Runner.cpp - Runs, checks and reports compiled functions -----------===//

#include "fp4/Harness/Runner.h"

#include "Arguments.h"
#include "fp4/Harness/TensorNpy.h"
#include "fp4/Runtime/OpenDevice.h"
#include "fp4/Sim/Instruments.h"
#include "fp4/Support/OutputFile.h"

#include <chrono>
#include <fmt/format.h>
#include <new>

namespace fp4::harness {
namespace {

using Clock = std::chrono::steady_clock;

double millisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Checks outputs before anything runs: a wrong name or a folder that does not exist should not
/// cost a simulation.
Expected<std::vector<std::pair<size_t, std::string>>> parseOutputs(const Function &function,
                                                                   const RunOptions &options) {
  std::vector<std::pair<size_t, std::string>> outputs;
  for (const std::string &text : options.outputs) {
    FP4_ASSIGN(auto pair, splitAssignment(text, "--output"));
    FP4_ASSIGN(auto index, findOperand(function.results, pair.first, "result"));
    FP4_TRY(checkDestination(pair.second));
    outputs.emplace_back(index, pair.second);
  }
  return outputs;
}

Expected<std::unique_ptr<rt::Device>> openDevice(const Manifest &manifest,
                                                 const RunOptions &options, RunReport &report) {
  rt::DeviceOptions device;
  static_cast<sim::SimulationOptions &>(device) = options;
  device.target = manifest.target;
  device.showProgress = options.showProgress;
  std::string note;
  auto opened = rt::openDevice(options.timesOnly ? "sim" : options.device, device, &note);
  if (!note.empty())
    report.notes.push_back(note);
  return opened;
}

void describeDevice(RunReport &report, const rt::Device &device, const RunOptions &options) {
  report.device = device.name();
  report.deviceSelector = device.selector();
  report.target = device.target();
  report.hardware = device.isHardware();
  report.simulation.policy = device.isHardware() ? "" : options.time ? "timed" : options.policy;
  if (!device.isHardware())
    report.simulation.check = options.timesOnly       ? "off"
                              : options.check.empty() ? "default"
                                                      : options.check;
  report.seed = options.seed;
}

/// Describes launches, with the resources that ptxas reported if the device does not know them.
void describeKernels(RunReport &report, const rt::Session &session, const Manifest &manifest) {
  for (const rt::LaunchRecord &launch : session.launches()) {
    RunReport::Kernel kernel{
        launch.module,          launch.kernel,
        launch.shape,           launch.info.registers,
        launch.info.localBytes, launch.info.staticSharedBytes + launch.shape.dynamicSharedBytes,
        launch.milliseconds,    launch.counts};
    for (const KernelResources &known : manifest.kernels)
      if (known.module == launch.module && known.name == launch.kernel && !report.hardware) {
        kernel.registers = known.registers;
        kernel.spillBytes = known.spillBytes;
      }
    report.kernels.push_back(std::move(kernel));
  }
}

/// Data and functions of the library are found in the same way.
Expected<std::vector<ReferenceValue>> reference(const Manifest &manifest,
                                                const EntryResolver &resolver,
                                                const Function &function, const RunOptions &options,
                                                std::span<const Tensor> arguments) {
  const auto bytesOf = [&](const std::string &symbol) -> Expected<const void *> {
    FP4_ASSIGN(auto address, resolver(symbol));
    return reinterpret_cast<const void *>(address);
  };
  return runReference(function, arguments, options.hostThreads, bytesOf,
                      hw::lookupTarget(manifest.target));
}

/// Executes a run step by step: the request, the device, the call, the results, the verdict.
class Run {
public:
  Run(const Manifest &manifest, const EntryResolver &resolver, const RunOptions &options)
      : manifest_(manifest), resolver_(resolver), options_(options) {}

  Expected<RunReport> execute(std::vector<sim::HazardReport> *hazards) {
    FP4_TRY(prepare());
    Status called = call();
    const Status finished = device_->finish();
    if (const sim::Instruments *instruments = device_->instruments()) {
      report_.simulation.hazards = instruments->hazards();
      report_.simulation.counted = instruments->counts();
      report_.simulation.times = instruments->times();
      report_.simulation.orders = instruments->orders();
      report_.simulation.instructionMixes = instruments->instructionMixes();
      report_.simulation.wasteful = instruments->wasteful();
    }
    if (before_)
      report_.simulation.timeComparison = compareTimes(
          *before_, report_.timed(options_.label.empty() ? function_->name : options_.label));
    if (hazards)
      *hazards = report_.simulation.hazards;
    FP4_TRY(called);
    FP4_TRY(finished);
    FP4_TRY(write());
    FP4_TRY(verify());
    FP4_TRY(time());
    return std::move(report_);
  }

private:
  Status prepare();
  Status call();
  Status write();
  Status verify();
  Status time();
  const BoundArguments &arguments() const { return prepared_->arguments; }

  const Manifest &manifest_;
  const EntryResolver &resolver_;
  const RunOptions &options_;
  const Function *function_ = nullptr;
  std::vector<std::pair<size_t, std::string>> outputs_;
  std::shared_ptr<const Prepared> prepared_;
  EntryFunction entry_ = nullptr, twin_ = nullptr;
  std::unique_ptr<rt::Device> device_;
  std::vector<Tensor> results_;
  std::vector<std::vector<ByteRange>> unspecified_; ///< bytes of each result
  RunReport report_;
  Baseline baseline_; ///< baseline of --compare
  std::optional<TimedProgram> before_;
};

/// Checks --time-only, which computes nothing that could be looked at.
static Status checkTimesOnly(const RunOptions &options) {
  if (!options.timesOnly)
    return {};
  if (options.benchmark)
    return makeError(ErrorKind::Usage, "--benchmark times only what was verified",
                     "leave --time-only out");
  if (!options.outputs.empty())
    return makeError(ErrorKind::Usage, "--time-only computes no results, but got --output",
                     "use --time, which computes them");
  if (options.device != "sim" && options.device != "auto")
    return makeError(ErrorKind::Usage,
                     fmt::format("--time-only expects the device sim, but got {}", options.device),
                     "--benchmark measures on a GPU");
  return {};
}

Status Run::prepare() {
  FP4_TRY(checkTimesOnly(options_));
  if (options_.benchmark && !options_.verify)
    return makeError(ErrorKind::Usage, "--benchmark times only what was verified",
                     "leave --no-verify out");
  if (!options_.compare.empty() && options_.benchmark == options_.time)
    return makeError(ErrorKind::Usage, "--compare expects --benchmark, or --time",
                     options_.time ? "leave one of them out" : "add one of them");
  if (options_.twin && !options_.benchmark)
    return makeError(ErrorKind::Usage, "--twin expects --benchmark", "add it");
  before_ = options_.before;
  if (!options_.compare.empty() && options_.time) {
    FP4_ASSIGN(before_, readTimes(options_.compare));
  } else if (!options_.compare.empty()) {
    FP4_ASSIGN(baseline_, readBaseline(options_.compare));
  }
  FP4_ASSIGN(function_, manifest_.find(options_.function));
  FP4_ASSIGN(outputs_, parseOutputs(*function_, options_));
  prepared_ = options_.prepared;
  if (!prepared_) {
    auto made = std::make_shared<Prepared>();
    FP4_ASSIGN(made->arguments, bindArguments(*function_, options_));
    prepared_ = std::move(made);
  }
  FP4_ASSIGN(entry_, resolver_(function_->symbol));
  if (options_.twin) {
    FP4_ASSIGN(twin_, options_.twin(function_->symbol));
  }
  report_.compiler = manifest_.compiler;
  report_.function = function_->name;
  report_.notes = arguments().notes;
  FP4_ASSIGN(device_, openDevice(manifest_, options_, report_));
  describeDevice(report_, *device_, options_);
  for (size_t i = 0; i < arguments().values.size(); ++i)
    report_.arguments.push_back(
        {function_->arguments[i].name, arguments().values[i].type, arguments().sources[i]});
  return {};
}

Status Run::call() {
  rt::ModuleCache cache(*device_, options_.exchange);
  rt::Session session(*device_, {.cache = &cache});
  EntryCall call(session, *function_);
  FP4_TRY(call.upload(arguments().values));
  Clock::time_point start = Clock::now();
  FP4_TRY(call.call(entry_));
  report_.runMilliseconds = millisecondsSince(start);
  describeKernels(report_, session, manifest_);
  FP4_ASSIGN(results_, call.download());
  for (size_t i = 0; i < results_.size(); ++i)
    report_.results.push_back({function_->results[i].name, results_[i].type, ""});
  return {};
}

Status Run::write() {
  for (auto &[index, path] : outputs_) {
    FP4_TRY(writeNpy(path, toNpy(results_[index])));
    report_.results[index].source = path;
  }
  return {};
}

Status Run::verify() {
  if (options_.timesOnly)
    report_.notes.push_back("not verified: --time-only computes no results");
  if (!options_.verify || options_.timesOnly)
    return {};
  if (!function_->hasProgram) {
    report_.notes.push_back("not verified: the manifest has no program for the reference");
    return {};
  }
  const Clock::time_point start = Clock::now();
  std::vector<ReferenceValue> own;
  if (prepared_->expected.empty()) {
    FP4_ASSIGN(own, reference(manifest_, resolver_, *function_, options_, arguments().values));
  }
  const auto &expected = prepared_->expected.empty() ? own : prepared_->expected;
  for (size_t i = 0; i < results_.size(); ++i) {
    report_.verdicts.push_back(judge(function_->results[i].name, results_[i], expected[i]));
    unspecified_.push_back(expected[i].unspecified);
  }
  report_.referenceMilliseconds = millisecondsSince(start);
  report_.verified = true;
  return {};
}

/// Times a run. Wrong results are not timed; the report and the exit code say that they are wrong.
Status Run::time() {
  if (!options_.benchmark)
    return {};
  if (!report_.verified)
    return makeError(
        ErrorKind::Usage,
        fmt::format("--benchmark times only what was verified, and '{}' has no program "
                    "for the reference",
                    function_->name));
  if (!report_.passed())
    return {};
  report_.measured.benchmarked = true;
  if (!device_->isHardware() && (options_.twin || !options_.compare.empty()))
    return makeError(ErrorKind::Usage,
                     fmt::format("{} expects a GPU, but the device is a simulator",
                                 options_.twin ? "--twin" : "--compare"),
                     "its times are those of this host");
  if (!device_->isHardware())
    return {};
  FP4_ASSIGN(report_.measured.benchmark,
             harness::benchmark(*device_, *function_, entry_, arguments().values, results_,
                                MeasureOptions{.warmMilliseconds = options_.warmMilliseconds},
                                twin_, unspecified_));
  if (!options_.compare.empty()) {
    FP4_ASSIGN(report_.measured.comparisons,
               compare(*report_.measured.benchmark, report_.device, baseline_));
  }
  return {};
}

} // namespace

Expected<Runner> Runner::create(std::string_view manifestJson, EntryResolver resolver) {
  FP4_ASSIGN(auto manifest, Manifest::parse(manifestJson));
  Runner runner;
  runner.manifest_ = std::move(manifest);
  runner.text_ = manifestJson;
  runner.resolver_ = std::move(resolver);
  return runner;
}

static tl::unexpected<Error> tooLittleMemory() {
  return makeError(ErrorKind::Device, "this machine has too little memory",
                   "use a smaller --shape, or --no-verify to do without the reference");
}

Expected<std::shared_ptr<const Prepared>> Runner::prepare(const RunOptions &options) const {
  try {
    auto made = std::make_shared<Prepared>();
    FP4_ASSIGN(const Function *function, manifest_.find(options.function));
    FP4_ASSIGN(made->arguments, bindArguments(*function, options));
    if (options.verify && function->hasProgram) {
      FP4_ASSIGN(made->expected,
                 reference(manifest_, resolver_, *function, options, made->arguments.values));
    }
    return std::shared_ptr<const Prepared>(std::move(made));
  } catch (const std::bad_alloc &) {
    return tooLittleMemory();
  }
}

Expected<RunReport> Runner::run(const RunOptions &options,
                                std::vector<sim::HazardReport> *hazards) const {
  try {
    return Run(manifest_, resolver_, options).execute(hazards);
  } catch (const std::bad_alloc &) {
    return tooLittleMemory();
  }
}

std::string Runner::list() const {
  std::string text = fmt::format("{} for {}\n", manifest_.compiler, manifest_.target);
  for (const Function &function : manifest_.functions) {
    text += fmt::format("function {}\n", function.name);
    for (const Operand &argument : function.arguments)
      text += fmt::format("  argument {:<10} {}\n", argument.name, argument.type.str());
    for (const Operand &result : function.results)
      text += fmt::format("  result   {:<10} {}\n", result.name, result.type.str());
  }
  for (const KernelResources &kernel : manifest_.kernels)
    text += fmt::format("kernel {}.{}: {} registers, {} bytes spilled, {} bytes of shared memory, "
                        "PTX {} bytes, cubin {} bytes\n",
                        kernel.module, kernel.name, kernel.registers, kernel.spillBytes,
                        kernel.sharedBytes, kernel.ptxBytes, kernel.cubinBytes);
  return text;
}

} // namespace fp4::harness
