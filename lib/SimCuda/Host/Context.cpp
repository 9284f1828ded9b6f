//===- Context.cpp - Options, errors and the end of the process -----------===//
#include "Context.h"
#include "fp4/Harness/Check.h"
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
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

void Context::readOptions() {
  currentChip = orExit(findChip(variable("FP4_SIM_DEVICE", "b200")), "FP4_SIM_DEVICE");
  options.target = std::string(currentChip->target);
  options.policy =
      orExit(sim::parseCompletionPolicy(variable("FP4_SIM_POLICY", "eager")), "FP4_SIM_POLICY");
  options.seed = orExit(number(variable("FP4_SIM_SEED", "0")), "FP4_SIM_SEED");
  options.hostThreads =
      static_cast<uint32_t>(orExit(number(variable("FP4_SIM_THREADS", "0")), "FP4_SIM_THREADS"));
  if (variable("FP4_SIM_UNWRITTEN", "error") == "ignore")
    options.uninitializedReads = sim::UninitializedReads::Ignore;
  options.spinLimit = orExit(number(variable("FP4_SIM_LIMIT", "4294967296")), "FP4_SIM_LIMIT");
  makeObservers();
  dumpDirectory = variable("FP4_SIM_DUMP_PTX", "");
  if (const std::string folder = variable("FP4_SIM_PTX_DIR", ""); !folder.empty())
    ptxFolder.emplace(folder);
  traced = variable("FP4_SIM_TRACE", "0") != "0";
}

void Context::makeObservers() {
  std::string check = variable("FP4_SIM_CHECK", "default");
  if (check != "off" && check != "default" && check != "strict")
    orExit<int>(makeError(ErrorKind::Usage, fmt::format("unknown check '{}'", check),
                          "choose off, default or strict"),
                "FP4_SIM_CHECK");
  if (check != "strict")
    options.judgement = sim::Judgement::Practice;
  if (check != "off")
    checker = std::make_unique<sim::HazardChecker>(sim::HazardOptions{check == "strict", 64});
  if (variable("FP4_SIM_STATS", "0") != "0")
    statistics = std::make_unique<sim::AccessStatistics>();
  if (const std::string path = variable("FP4_SIM_TIMELINE", ""); !path.empty()) {
    timelineFile = orExit(OutputFile::open(path), "FP4_SIM_TIMELINE");
    reportLine("timeline-begun " + timelineFile->temporary());
    timeline = std::make_unique<sim::Timeline>(timelineFile->stream());
  }
  for (sim::Observer *observer :
       std::initializer_list<sim::Observer *>{checker.get(), statistics.get(), timeline.get()})
    if (observer) {
      observers.add(observer);
      options.observer = &observers;
    }
  if (checker && !statistics && !timeline)
    options.observer = checker.get();
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
  simulator = std::make_unique<sim::Simulator>(options);
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
  const std::vector<sim::AccessCount> wasteful = statistics->wasteful();
  trace("accesses: " + harness::accessText(wasteful));
  for (const sim::AccessCount &count : wasteful)
    reportLine("access " + harness::accessToJson(count));
}

/// A process that was forked from the one that began the timeline leaves it alone.
void Context::finishTimeline() {
  if (!timeline || getpid() != process) {
    (void)timeline.release();
    (void)timelineFile.release();
    return;
  }
  timeline.reset(); // ends the JSON
  const std::string temporary = timelineFile->temporary();
  if (Status written = timelineFile->commit(); !written) {
    printError("FP4_SIM_TIMELINE", written.error());
    reportLine("lost");
  }
  timelineFile.reset();
  reportLine("timeline-ended " + temporary);
}

void Context::finish() {
  finishTimeline();
  if (statistics)
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

void Context::trace(std::string_view what) const {
  print(fmt::format("fp4-sim: {}\n", what));
}

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
