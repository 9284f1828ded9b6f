//===- Run.cpp - fp4-sim run ----------------------------------------------===//
//
// The program is not changed: the loader finds the simulator's libcudart and libcuda first. Results
// of the program come back in a report file (lib/SimCuda/Host/Report.h), which a crash does not
// destroy.
//
//===----------------------------------------------------------------------===//
#include "Run.h"
#include "Annotations.h"
#include "Child.h"
#include "Explore.h"
#include "fp4/Harness/Runner.h"
#include "fp4/SimCuda/LinkedRuntime.h"
#include "fp4/Support/InputFile.h"
#include "fp4/Support/JsonText.h"
#include "fp4/Support/OutputFile.h"
#include "fp4/Support/Process.h"
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fp4;
using namespace fp4::simcuda;
using namespace fp4::harness;
namespace fs = std::filesystem;

namespace {

/// lib/fp4-cuda next to the folder of this tool.
Expected<fs::path> libraryFolder() {
  std::error_code failed;
  fs::path self = fs::read_symlink("/proc/self/exe", failed);
  for (const char *folder : {"../lib/fp4-cuda", "../" FP4_CUDA_INSTALL_DIR}) {
    fs::path candidate = self.parent_path() / folder;
    if (fs::exists(candidate / "libcuda.so.1", failed))
      return fs::canonical(candidate, failed);
  }
  return makeError(
      ErrorKind::Usage,
      fmt::format("the stand-ins for CUDA's libraries are not next to '{}'", self.string()),
      "build the target fp4-cuda, or install the project as a whole");
}

/// The simulator's runtime that a program gets: libcudart.so.13, ...; none if it loads one later,
/// as Python modules do.
Expected<std::string> neededRuntime(const std::string &program) {
  FP4_ASSIGN(auto bytes, readBytes(program));
  if (!ElfFile::isElf(bytes))
    return "";
  auto elf = ElfFile::open(bytes);
  if (!elf)
    return makeError(ErrorKind::Usage, fmt::format("'{}' is {}", program, elf.error().message));
  for (const std::string &library : elf->neededLibraries()) {
    if (library == "libcudart.so.12" || library == "libcudart.so.13")
      return library;
    if (library.substr(0, 13) == "libcudart.so.")
      return makeError(
          ErrorKind::Usage,
          fmt::format("'{}' needs {}, but versions 12 and 13 are simulated", program, library),
          "compile it with a newer toolkit");
  }
  return linkedRuntime(*elf, bytes, program);
}

void putFirst(const char *variable, const std::string &value, char separator) {
  const char *old = std::getenv(variable);
  setenv(variable, old && *old ? (value + separator + old).c_str() : value.c_str(), 1);
}

std::string checkOf(const ProgramOptions &options) {
  return !options.check.empty() ? options.check : options.timesOnly ? "off" : "default";
}

/// The absolute path, because the program may go to another folder before its first call.
std::string absolute(const std::string &path) {
  return path.empty() ? "" : fs::absolute(path).string();
}

/// Preloads the sanitizer's runtime in a build with sanitizers: the program need not be
/// instrumented, and the simulator's libraries need the runtime. Leaks of streams and graphs that
/// the program need not destroy are not reported; a bad access of the program is the simulator's to
/// explain.
void preloadSanitizer() {
#ifdef FP4_SANITIZER_RUNTIME
  putFirst("LD_PRELOAD", FP4_SANITIZER_RUNTIME, ' ');
  for (const char *variable : {"ASAN_OPTIONS", "TSAN_OPTIONS"})
    putFirst(variable, "detect_leaks=0:handle_segv=0:handle_sigbus=0", ':');
#endif
}

/// The value of FP4_SIM_TIME.
const char *timeOf(const ProgramOptions &options) {
  return options.timesOnly ? "only" : options.quietTimes ? "quiet" : options.time ? "1" : "0";
}

void setEnvironment(const ProgramOptions &options, const fs::path &folder,
                    const std::string &runtime, const std::string &report) {
  setenv("FP4_SIM_DEVICE", options.device.c_str(), 1);
  setenv("FP4_SIM_POLICY", options.policy.c_str(), 1);
  setenv("FP4_SIM_CLUSTERS", options.clusters.c_str(), 1);
  setenv("FP4_SIM_MAX_ORDERS", std::to_string(options.maxOrders).c_str(), 1);
  const bool isOrder = options.replay.find(": ") != options.replay.npos;
  setenv("FP4_SIM_REPLAY", (isOrder ? options.replay : absolute(options.replay)).c_str(), 1);
  setenv("FP4_SIM_TIME", timeOf(options), 1);
  setenv("FP4_SIM_SAMPLE_AFTER", std::to_string(options.sampleAfter).c_str(), 1);
  setenv("FP4_SIM_MIX", options.mix.c_str(), 1);
  setenv("FP4_SIM_CLOCK", fmt::format("{}", options.clock).c_str(), 1);
  setenv("FP4_SIM_SEED", std::to_string(options.seed).c_str(), 1);
  setenv("FP4_SIM_THREADS", std::to_string(options.hostThreads).c_str(), 1);
  setenv("FP4_SIM_LIMIT", std::to_string(options.spinLimit).c_str(), 1);
  setenv("FP4_SIM_UNWRITTEN", options.unwritten.c_str(), 1);
  setenv("FP4_SIM_CHECK", checkOf(options).c_str(), 1);
  setenv("FP4_SIM_DUMP_PTX", absolute(options.dumpPtx).c_str(), 1);
  setenv("FP4_SIM_PTX_DIR", absolute(options.ptxDir).c_str(), 1);
  setenv("FP4_SIM_PROCESS", std::to_string(getpid()).c_str(), 1);
  setenv("FP4_SIM_STATS", options.statistics ? "1" : "0", 1);
  setenv("FP4_SIM_TIMELINE", absolute(options.timeline).c_str(), 1);
  setenv("FP4_SIM_TIMELINE_SMS", std::to_string(options.timelineSms).c_str(), 1);
  setenv("FP4_SIM_TRACE", options.trace ? "1" : "0", 1);
  setenv("FP4_SIM_REPORT", report.c_str(), 1);
  // Triton asks ptxas for machine code; the stand-in gives it the PTX.
  for (const char *variable : {"TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"})
    setenv(variable, (folder / "ptxas").c_str(), 1);
  putFirst("LD_LIBRARY_PATH", folder.string(), ':');
  putFirst("PYTHONPATH", (folder / "python").string(), ':'); // a sitecustomize for cuda.bindings
  // A run path in the program would find CUDA's libraries first.
  if (!runtime.empty())
    putFirst("LD_PRELOAD", (folder / "libcuda.so.1").string() + " " + (folder / runtime).string(),
             ' ');
  putFirst("LD_PRELOAD", (folder / "libfp4child.so").string(), ' '); // for what the program starts
  preloadSanitizer();
}

/// Hands stderr down for the reports (lib/SimCuda/Host/Report.h).
void handDownStderr() {
  const int file = handDown(STDERR_FILENO);
  struct stat now;
  if (file >= 0 && fstat(file, &now) == 0)
    setenv("FP4_SIM_STDERR",
           fmt::format("{}:{}:{}", file, uint64_t(now.st_dev), uint64_t(now.st_ino)).c_str(), 1);
}

/// A report file in memory, where no full disk can change the verdict. The program's processes open
/// it by its name among the files of this process.
class ReportFile {
public:
  ReportFile() : file(memfd_create("fp4-sim-report", MFD_CLOEXEC)) {}
  ~ReportFile() { close(file); }
  ReportFile(const ReportFile &) = delete;
  bool made() const { return file >= 0; }
  std::string path() const { return fmt::format("/proc/{}/fd/{}", getpid(), file); }

private:
  int file;
};

struct Findings {
  bool fault = false, refused = false;
  std::vector<std::string> faults; ///< messages
  std::vector<std::string> missing;
  std::set<std::string> unfinished; ///< timelines of processes that died
  bool lost = false;                ///< a file could not be written
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  nlohmann::ordered_json hazards = nlohmann::ordered_json::array();
  /// Accesses that cost too much.
  nlohmann::ordered_json accesses = nlohmann::ordered_json::array();
  nlohmann::ordered_json times = nlohmann::ordered_json::array();    ///< predicted
  nlohmann::ordered_json orders = nlohmann::ordered_json::array();   ///< orders of each launch
  unsigned processes = 0;                                            ///< that launched kernels
  uint64_t launches = 0, instructions = 0;
  double seconds = 0;
};

Findings readReport(const std::string &path) {
  Findings found;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::stringstream words(line);
    std::string kind;
    words >> kind;
    const std::string rest = line.substr(std::min(line.size(), kind.size() + 1));
    found.fault |= kind == "fault";
    if (const auto message = nlohmann::ordered_json::parse(rest, nullptr, false);
        kind == "fault" && message.is_string())
      found.faults.push_back(message);
    found.refused |= kind == "refused";
    found.lost |= kind == "lost";
    if (kind == "missing")
      found.missing.push_back(rest);
    if (kind == "timeline-begun")
      found.unfinished.insert(rest);
    if (kind == "timeline-ended")
      found.unfinished.erase(rest);
    for (auto [name, list] :
         {std::pair("kernel", &found.kernels), std::pair("hazard", &found.hazards),
          std::pair("access", &found.accesses), std::pair("time", &found.times),
          std::pair("orders", &found.orders)})
      if (kind == name)
        list->push_back(nlohmann::ordered_json::parse(rest, nullptr, false));
    uint64_t launches = 0, instructions = 0;
    double seconds = 0;
    if (kind == "launches" && words >> launches >> instructions >> seconds) {
      found.processes += launches > 0;
      found.launches += launches;
      found.instructions += instructions;
      found.seconds += seconds;
    }
  }
  return found;
}

/// "3 shared-race, the first at x.0.ptx:41:3": a line, however many reports there are.
std::string countsOf(const nlohmann::ordered_json &hazards) {
  std::map<std::string, size_t> counts;
  for (const auto &hazard : hazards)
    ++counts[hazard["rule"]];
  std::string text;
  for (const auto &[rule, count] : counts)
    text += fmt::format("{} {}, ", count, rule);
  const auto &hazard = hazards.front(), &access = hazard["second"];
  const std::string place =
      fmt::format("{}:{}:{}", hazard["program"].get<std::string>(), access["line"].get<unsigned>(),
                  access["column"].get<unsigned>());
  return text + "the first at " + access.value("origin", place);
}

void summarize(const Findings &found, int status, bool statistics) {
  if (WIFSIGNALED(status))
    fmt::print(stderr, "fp4-sim: the program ended by signal {} ({}{})\n", WTERMSIG(status),
               strsignal(WTERMSIG(status)),
               WTERMSIG(status) == SIGKILL ? "; the host may have had no memory left" : "");
  std::string names;
  for (const std::string &name : found.missing)
    names += (names.empty() ? "" : ", ") + name;
  if (!names.empty())
    fmt::print(stderr, "fp4-sim: called, but not implemented: {}\n", names);
  for (const std::string &file : found.unfinished) {
    unlink(file.c_str());
    fmt::print(stderr, "fp4-sim: no timeline was written: the program ended without its exit\n");
  }
  if (found.fault)
    fmt::print(stderr, "fp4-sim: a kernel failed; its report is above\n");
  if (!found.hazards.empty())
    fmt::print(stderr, "fp4-sim: the hazard checker found {}; its reports are above\n",
               countsOf(found.hazards));
  if (statistics)
    fmt::print(stderr, "fp4-sim: {} launches, {} warp instructions in {:.3f} s\n", found.launches,
               found.instructions, found.seconds);
}

int codeOf(const Findings &found, int status) {
  if (found.fault)
    return static_cast<int>(ErrorKind::Simulation);
  if (!found.hazards.empty())
    return static_cast<int>(ErrorKind::Hazard);
  if (WIFSIGNALED(status))
    return 128 + WTERMSIG(status);
  if (found.refused || (!found.missing.empty() && WEXITSTATUS(status) == 0))
    return static_cast<int>(ErrorKind::Device);
  if (WEXITSTATUS(status) == 0 && (found.lost || !found.unfinished.empty()))
    return static_cast<int>(ErrorKind::Usage);
  if (WEXITSTATUS(status) == 0 && std::ranges::any_of(found.orders, [](const auto &launch) {
        return !launch.value("complete", true);
      }))
    return sim::kOrdersLeft;
  return WEXITSTATUS(status);
}

void printAnnotations(const Findings &found) {
  for (const auto &hazard : found.hazards)
    fmt::print("{}", annotationOf(hazard));
  for (const std::string &message : found.faults)
    fmt::print("{}", annotationOf(message));
}

/// The report as one line, behind the output of the program.
nlohmann::ordered_json toJson(const Findings &found, const ProgramOptions &options, int code) {
  nlohmann::ordered_json object = {{"program", options.command.front()},
                                   {"device", options.device},
                                   {"policy", options.policy},
                                   {"seed", options.seed},
                                   {"check", checkOf(options)},
                                   {"exit_code", code},
                                   {"launches", found.launches},
                                   {"warp_instructions", found.instructions},
                                   {"simulation_seconds", found.seconds},
                                   {"kernel_failed", found.fault},
                                   {"not_implemented", found.missing},
                                   {"kernels", found.kernels},
                                   {"hazards", found.hazards}};
  if (options.statistics)
    object["wasteful_accesses"] = found.accesses;
  if (options.time)
    object["predicted_times"] = found.times;
  if (!found.orders.empty())
    object["orders"] = found.orders;
  return object;
}

} // namespace

/// Runs the program with a companion, if any, and returns how it ended.
static Expected<int> runBeside(const ProgramOptions &options, Companion *companion,
                               const std::string &reportPath) {
  FP4_ASSIGN(auto folder, libraryFolder());
  FP4_ASSIGN(auto program, findProgram(options.command.front()));
  FP4_ASSIGN(auto runtime, neededRuntime(program));
  if (!options.timeline.empty())
    FP4_TRY(checkDestination(options.timeline));
  std::function<void(pid_t)> beside;
  if (companion)
    beside = [&](pid_t child) { companion->beside(child); };
  const auto prepare = [&] {
    setEnvironment(options, folder, runtime, reportPath);
    if (companion)
      companion->inProgram();
    handDownStderr();
  };
  return runChild(program, options.command, prepare, beside);
}

/// A page has the trace of one process, and modules of several may share a name.
static Status checkProcesses(const Findings &found, const ProgramOptions &options) {
  const size_t processes = found.processes + found.unfinished.size();
  if (processes < 2)
    return {};
  return makeError(
      ErrorKind::Usage,
      fmt::format("'{}': --explore expects kernels of one process, but got those of {}",
                  options.command.front(), processes),
      "give fp4-sim run the command of the process to show");
}

Expected<int> fp4::harness::runProgram(const ProgramOptions &asked, Companion *companion) {
  ProgramOptions options = asked;
  std::unique_ptr<Exploration> exploration;
  if (!options.explore.empty()) {
    FP4_ASSIGN(exploration, Exploration::prepare(options));
  }
  ReportFile report;
  if (!report.made())
    return makeError(ErrorKind::Usage,
                     fmt::format("cannot keep a report: {}", std::strerror(errno)));
  FP4_ASSIGN(int status, runBeside(options, companion, report.path()));
  if (companion && companion->left)
    return 0;
  const Findings found = readReport(report.path());
  summarize(found, status, options.statistics);
  if (options.timesOnly)
    fmt::print(stderr, "fp4-sim: --time-only computes no results: what the program found in them "
                       "means nothing\n");
  const int code = codeOf(found, status);
  if (companion)
    companion->ended(code);
  if (options.annotations)
    printAnnotations(found);
  if (exploration) {
    FP4_TRY(checkProcesses(found, options));
    FP4_TRY(exploration->write(options, toJson(found, options, code), found.faults));
  }
  const int printed =
      options.json ? print(jsonText(toJson(found, options, code)) + "\n", "report") : 0;
  return code ? code : printed;
}
