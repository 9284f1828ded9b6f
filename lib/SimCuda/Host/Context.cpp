//===- Context.cpp - Options, errors and the end of the process -----------===//
#include "Context.h"
#include "fp4/Sim/ReportJson.h"
#include "fp4/Support/JsonText.h"
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

using namespace fp4;
using namespace fp4::simcuda;

static thread_local Code threadError = Success;

Context &Context::get() {
  static Context *context = new Context();
  return *context;
}

static std::string variable(const char *name, const char *otherwise) {
  const char *value = std::getenv(name);
  return value && *value ? value : otherwise;
}

/// Options that cannot be right end the program before it does anything.
template <typename T> static T orExit(Expected<T> value, const char *name) {
  if (value)
    return std::move(*value);
  printError(name, value.error());
  _exit(exitCode(value.error()));
}

static Expected<uint64_t> number(const std::string &text) {
  char *end = nullptr;
  uint64_t value = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end || text[0] == '-')
    return makeError(ErrorKind::Usage, fmt::format("expects a number, but got '{}'", text));
  return value;
}

static Expected<double> decimal(const std::string &text) {
  char *end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end)
    return makeError(ErrorKind::Usage, fmt::format("expects a number, but got '{}'", text));
  return value;
}

static uint32_t countOf(const char *name) {
  return static_cast<uint32_t>(orExit(number(variable(name, "0")), name));
}

void Context::readOptions() {
  currentChip = orExit(hw::requireGpu(variable("FP4_SIM_DEVICE", "b200")), "FP4_SIM_DEVICE");
  sim::SimulationOptions options;
  options.target = std::string(currentChip->target);
  options.policy = variable("FP4_SIM_POLICY", "eager");
  options.clusters = variable("FP4_SIM_CLUSTERS", "mixed");
  options.maxOrders = orExit(number(variable("FP4_SIM_MAX_ORDERS", "0")), "FP4_SIM_MAX_ORDERS");
  options.replay = variable("FP4_SIM_REPLAY", "");
  const std::string time = variable("FP4_SIM_TIME", "0");
  options.time = time != "0";
  options.timesOnly = time == "only";
  quietTimes = time == "quiet";
  if (options.time)
    options.gpu = std::string(currentChip->option);
  options.sampleAfter =
      orExit(number(variable("FP4_SIM_SAMPLE_AFTER", std::to_string(options.sampleAfter).c_str())),
             "FP4_SIM_SAMPLE_AFTER");
  options.mix = variable("FP4_SIM_MIX", "ptx");
  options.clock = orExit(decimal(variable("FP4_SIM_CLOCK", "0")), "FP4_SIM_CLOCK");
  options.seed = orExit(number(variable("FP4_SIM_SEED", "1")), "FP4_SIM_SEED");
  options.check = variable("FP4_SIM_CHECK", "default");
  options.statistics = variable("FP4_SIM_STATS", "0") != "0";
  options.timeline = variable("FP4_SIM_TIMELINE", "");
  options.timelineSms = countOf("FP4_SIM_TIMELINE_SMS");
  options.unwritten = variable("FP4_SIM_UNWRITTEN", "error");
  options.hostThreads = countOf("FP4_SIM_THREADS");
  options.spinLimit = orExit(number(variable("FP4_SIM_LIMIT", "4294967296")), "FP4_SIM_LIMIT");
  if (const std::string socket = variable("FP4_SIM_DEBUG", ""); !socket.empty()) {
    const int file = static_cast<int>(orExit(number(socket), "FP4_SIM_DEBUG"));
    stepper = sim::makeDebugServer(file);
    fcntl(file, F_SETFD, FD_CLOEXEC); // processes that the program starts are not debugged
    unsetenv("FP4_SIM_DEBUG");
    options.noticed = [this](const sim::HazardReport &report) { stepper->hazard(report); };
  }
  makeSimulator(options);
  dumpDirectory = variable("FP4_SIM_DUMP_PTX", "");
  if (const std::string folder = variable("FP4_SIM_PTX_DIR", ""); !folder.empty())
    ptxFolder.emplace(folder);
  traced = variable("FP4_SIM_TRACE", "0") != "0";
}

void Context::makeSimulator(const sim::SimulationOptions &options) {
  sim::SimOptions settings = orExit(sim::settingsOf(options), "fp4-sim run");
  instruments = orExit(sim::Instruments::create(options, settings), "fp4-sim run");
  if (instruments->hasTimeline())
    reportLine("timeline-begun " + instruments->timelineDraft());
  settings.stepper = stepper.get();
  simulator = std::make_unique<sim::Simulator>(std::move(settings));
}

static std::atomic<bool> contextMade{false};

/// A host access to device memory is the most common mistake of a new program: say so. Installed
/// before the program runs, so a handler of its own takes precedence.
static void onBadAccess(int signal, siginfo_t *info, void *) {
  auto address = reinterpret_cast<uint64_t>(info->si_addr);
  if (const sim::Allocation *found = Context::get().find(address)) {
    std::string text = fmt::format(
        "error: the host accesses device memory: {:#x} lies in '{}' ({} bytes at {:#x})\n"
        "note: copy with cudaMemcpy; memory of cudaMallocManaged is for both\n",
        address, found->name, found->size, found->address);
    [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    reportLine("fault");
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

static void watchBadAccesses() {
  struct sigaction old = {}, action = {};
  if (sigaction(SIGSEGV, nullptr, &old) != 0 || old.sa_handler != SIG_DFL)
    return;
  action.sa_sigaction = onBadAccess;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, nullptr);
}

Context::Context() {
  readOptions();
  std::error_code failed;
  auto self = std::filesystem::read_symlink("/proc/self/exe", failed);
  programName = failed ? "program" : self.filename().string();
  // Processes that the program starts dump their PTX beside its own.
  if (const std::string pid = std::to_string(getpid());
      variable("FP4_SIM_PROCESS", pid.c_str()) != pid)
    programName += "." + pid;
  watchBadAccesses();
  contextMade = true;
}

/// Runs when the library is unloaded, at the very end of the process.
__attribute__((destructor)) static void processEnds() {
  if (contextMade)
    Context::get().finish();
}

void Context::reportAccesses() const {
  const std::vector<sim::AccessCount> wasteful = instruments->wasteful();
  trace("accesses: " + sim::textOf(wasteful));
  for (const sim::AccessCount &count : wasteful)
    reportLine("access " + jsonText(sim::toJson(count)));
}

/// A process that was forked from the one that began the timeline leaves it alone.
void Context::finishTimeline() {
  if (getpid() != process)
    return instruments->abandonTimeline();
  if (!instruments->hasTimeline())
    return;
  const std::string draft = instruments->timelineDraft();
  if (Status written = instruments->finish(); !written) {
    printError("FP4_SIM_TIMELINE", written.error());
    reportLine("lost");
  }
  reportLine("timeline-ended " + draft);
}

void Context::finish() {
  finishTimeline();
  if (instruments->counts())
    reportAccesses();
  reportLine(fmt::format("launches {} {} {:.3f}", launches, warpInstructions, seconds));
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

Code Context::fail(const char *function, Code code, const Error &error) {
  printError(function, error);
  if (error.kind == ErrorKind::Device)
    reportLine("refused");
  return quiet(code);
}

Code Context::fail(const char *function, Code code, std::string message, std::string note) {
  return fail(function, code, Error{ErrorKind::Usage, std::move(message), std::move(note)});
}

void Context::trace(std::string_view what) const { print(fmt::format("fp4-sim: {}\n", what)); }

Code Context::quiet(Code code) {
  threadError = code;
  return code;
}

Code Context::lastError(bool reset) {
  if (stickyCode != Success)
    return stickyCode;
  Code code = threadError;
  if (reset)
    threadError = Success;
  return code;
}
