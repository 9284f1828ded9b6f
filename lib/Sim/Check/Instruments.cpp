//===- Instruments.cpp - Observers of a simulation ------------------------===//
#include "fp4/ISA/GpuModel.h"
#include "fp4/Sim/Instruments.h"
#include "fp4/Sim/Predictor.h"

#include <fmt/format.h>
#include <fstream>

namespace fp4::sim {

/// The order to replay: the text itself, or what a file of that name holds.
static Expected<std::string> orderToReplay(const std::string &text) {
  if (text.empty() || text.find(": ") != text.npos)
    return text;
  std::ifstream file(text);
  std::string order;
  if (!std::getline(file, order) || order.find(": ") == order.npos)
    return makeError(ErrorKind::Usage,
                     fmt::format("--replay expects an order or a file that holds one, but got '{}'",
                                 text),
                     "an order is what a report of --policy exhaustive names: 'KERNEL: 0.0.1 ...'");
  return order;
}

/// Reads the options of the policy exhaustive, and refuses those that do not go with the policy.
static Status readOrders(const SimulationOptions &options, SimOptions &settings) {
  const bool exhaustive = settings.policy == CompletionPolicy::Exhaustive;
  const auto refuse = [](std::string_view option, std::string_view note) {
    return makeError(ErrorKind::Usage,
                     fmt::format("{} does not go with this policy of the simulator", option),
                     std::string(note));
  };
  if (!exhaustive && (options.maxOrders || !options.replay.empty()))
    return refuse(options.maxOrders ? "--max-orders" : "--replay", "add --policy exhaustive");
  if (exhaustive && (options.statistics || !options.timeline.empty()))
    return refuse(options.statistics ? "--stats" : "--timeline",
                  "a launch runs many times with --policy exhaustive: choose another");
  settings.orders.most = options.maxOrders;
  FP4_ASSIGN(settings.orders.replay, orderToReplay(options.replay));
  return {};
}

static Status checkClock(const SimulationOptions &options) {
  constexpr double slowest = 0.2, fastest = 4; // no GPU runs slower or faster
  if (options.clock == 0)
    return {};
  if (!(options.clock >= slowest && options.clock <= fastest))
    return makeError(ErrorKind::Usage,
                     fmt::format("--clock expects {} to {} GHz, but got {}", slowest, fastest,
                                 options.clock),
                     "leave --clock out for the clock of the target's table of rates");
  if (!options.time)
    return makeError(ErrorKind::Usage, "--clock is the clock of a prediction, but nothing predicts",
                     "add --time");
  return {};
}

/// A product must have the target of the code, since all but a few rates are the target's.
static Status checkGpu(const SimulationOptions &options) {
  if (options.gpu.empty())
    return {};
  if (!options.time)
    return makeError(ErrorKind::Usage, "--gpu is the GPU of a prediction, but nothing predicts",
                     "add --time");
  FP4_ASSIGN(const hw::GpuModel *gpu, hw::requireGpu(options.gpu));
  if (gpu->target == options.target)
    return {};
  const std::string others = hw::gpuOptions(options.target);
  return makeError(ErrorKind::Usage,
                   fmt::format("--gpu must name a device with target {}, but {} has target {}",
                               options.target, gpu->option, gpu->target),
                   others.empty() ? "leave --gpu out" : "choose " + others);
}

Expected<SimOptions> settingsOf(const SimulationOptions &options) {
  FP4_ASSIGN(auto policy, parseCompletionPolicy(options.policy));
  if (options.unwritten != "error" && options.unwritten != "ignore")
    return makeError(ErrorKind::Usage,
                     fmt::format("unknown mode '{}' of --unwritten", options.unwritten),
                     "choose error or ignore");
  SimOptions settings;
  settings.target = options.target;
  if (options.time && policy != CompletionPolicy::Eager && policy != CompletionPolicy::Timed)
    return makeError(ErrorKind::Usage,
                     fmt::format("--time expects the policy timed, but got {}", options.policy),
                     "leave --policy out");
  FP4_TRY(checkClock(options));
  FP4_TRY(checkGpu(options));
  FP4_ASSIGN(settings.clusters, parseClusterSizes(options.clusters));
  settings.policy = options.time ? CompletionPolicy::Timed : policy;
  settings.seed = options.seed;
  settings.hostThreads = options.hostThreads;
  settings.spinLimit = options.spinLimit;
  if (options.unwritten == "ignore")
    settings.uninitializedReads = UninitializedReads::Ignore;
  FP4_TRY(readOrders(options, settings));
  return settings;
}

/// Returns the predictor that --time asks for, without a receiver.
static Expected<Predictor> predictorOf(const SimulationOptions &options) {
  if (options.timesOnly && !options.check.empty() && options.check != "off")
    return makeError(ErrorKind::Usage,
                     fmt::format("--time-only expects no hazard check, but got {}", options.check),
                     "it computes no results: leave --check out, or use --time");
  if (options.mix != "ptx" && options.mix != "cubin" && options.mix != "auto")
    return makeError(ErrorKind::Usage, fmt::format("unknown source '{}' of --mix", options.mix),
                     "choose ptx, cubin or auto");
  Predictor predictor;
  predictor.gpu = options.gpu;
  predictor.gigahertz = options.clock;
  predictor.timesOnly = options.timesOnly;
  predictor.sampleAfter = options.sampleAfter;
  predictor.mix = options.mix == "ptx"     ? InstructionMix::Ptx
                  : options.mix == "cubin" ? InstructionMix::Cubin
                                           : InstructionMix::Auto;
  return predictor;
}

Status Instruments::receiveTimes(const SimulationOptions &options, SimOptions &settings) {
  FP4_ASSIGN(auto predictor, predictorOf(options));
  predictor.receive = [this](KernelTime time, std::string mix) {
    predicted.push_back(std::move(time));
    mixes.push_back(std::move(mix));
  };
  settings.predicted = std::move(predictor);
  return {};
}

Expected<std::unique_ptr<Instruments>> Instruments::create(const SimulationOptions &options,
                                                           SimOptions &settings) {
  const std::string check = options.timesOnly       ? "off"
                            : options.check.empty() ? "default"
                                                    : options.check;
  const bool strict = check == "strict";
  if (check != "off" && check != "default" && !strict)
    return makeError(ErrorKind::Usage, fmt::format("unknown mode '{}' of --check", check),
                     "choose default, strict or off");
  std::unique_ptr<Instruments> instruments(new Instruments());
  if (check != "off") {
    instruments->checker = std::make_unique<HazardChecker>(
        HazardOptions{.strict = strict, .noticed = options.noticed});
    instruments->observers.add(instruments->checker.get());
  }
  if (options.statistics) {
    instruments->statistics = std::make_unique<AccessStatistics>();
    instruments->observers.add(instruments->statistics.get());
  }
  if (!options.timeline.empty()) {
    FP4_ASSIGN(auto file, OutputFile::open(options.timeline));
    instruments->timelineFile = std::move(file);
    instruments->timeline =
        std::make_unique<Timeline>(instruments->timelineFile->stream(), options.timelineSms);
    instruments->observers.add(instruments->timeline.get());
  }
  settings.orders.hazards = [kept = instruments.get()] { return kept->hazardCount(); };
  settings.orders.report = [kept = instruments.get()](OrderReport report) {
    kept->explored.push_back(std::move(report));
  };
  if (options.time)
    FP4_TRY(instruments->receiveTimes(options, settings));
  // The checker alone needs no list; none at all is faster still.
  settings.observer = options.statistics || !options.timeline.empty()
                          ? static_cast<Observer *>(&instruments->observers)
                          : instruments->checker.get();
  settings.judgement = strict ? Judgement::Letter : Judgement::Practice;
  settings.trackWrites = strict; // memory needs its first write
  return instruments;
}

std::vector<HazardReport> Instruments::hazards() const {
  return checker ? checker->reports() : std::vector<HazardReport>();
}

uint64_t Instruments::hazardCount() const { return checker ? checker->found() : 0; }

void Instruments::clearHazards() {
  if (checker)
    checker->clear();
}

std::vector<AccessCount> Instruments::wasteful() const {
  return statistics ? statistics->wasteful() : std::vector<AccessCount>();
}

std::string Instruments::timelineDraft() const {
  return timelineFile ? timelineFile->temporary() : "";
}

Status Instruments::finish() {
  if (!timeline)
    return {};
  observers.remove(timeline.get());
  timeline.reset(); // ends the JSON
  Status written = timelineFile->commit();
  timelineFile.reset();
  return written;
}

void Instruments::abandonTimeline() {
  (void)timeline.release();
  (void)timelineFile.release();
}

} // namespace fp4::sim
