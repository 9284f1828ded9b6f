//===- Driver.cpp - Many cases in processes that may die ------------------===//
#include "Driver.h"
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <new>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace fp4::fuzz;
using Clock = std::chrono::steady_clock;

namespace {

std::string caseOf(Target &target, uint64_t seed, uint64_t number) {
  Random random(seed * 0x100000001B3ull + number);
  random.next();
  return target.make(number, random);
}

/// One worker process and the cases it still has to run.
class Worker {
public:
  Worker(Target &target, const DriverOptions &options, uint64_t first, uint64_t end)
      : target(target), options(options), next(first), end(end) {
    void *page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared = new (page) Shared;
    log = options.out / (std::string("fuzz-") + target.name() + "-" + std::to_string(getpid()) +
                         "-" + std::to_string(end) + ".log");
  }
  Worker(const Worker &) = delete;
  bool busy() const { return child > 0 || next < end; }
  /// Starts, watches, notes failures; false when there was nothing to do.
  void poll();
  uint64_t failures = 0;

private:
  void start();
  [[noreturn]] void work();
  void ended(int status);
  void fail(uint64_t number, const std::string &what);
  /// Memory that the driver and the worker process share.
  struct Shared {
    std::atomic<uint64_t> current{0}; ///< the number of the case that runs, plus one; 0: none
    std::atomic<uint64_t> end{0};     ///< the number behind the last case of the process
  };
  Target &target;
  const DriverOptions &options;
  std::string log; ///< path of the file with the output of the worker
  Shared *shared;
  uint64_t next, end, last = 0, seen = 0;
  Clock::time_point since;
  pid_t child = 0;
  bool killed = false;
};

void Worker::start() {
  last = std::min<uint64_t>(end, next + options.perWorker);
  shared->current = seen = 0;
  shared->end = last;
  since = Clock::now();
  killed = false;
  std::fflush(nullptr);
  child = fork();
  if (child == 0)
    work();
}

void Worker::work() {
  int file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  if (rlimit none{0, 0}; true)
    setrlimit(RLIMIT_CORE, &none);
  if (options.memory) {
    rlimit limit{uint64_t(options.memory) << 20, uint64_t(options.memory) << 20};
    setrlimit(RLIMIT_AS, &limit);
  }
  bool spent = false;
  for (uint64_t number = next; number < last && !spent; ++number) {
    shared->current = number + 1;
    target.run(caseOf(target, options.seed, number));
    spent = target.spent();
    shared->end = spent ? number + 1 : last;
  }
  shared->current = 0;
  std::exit(0); // a leak checker looks here
}

void Worker::poll() {
  if (child <= 0)
    return next < end ? start() : void();
  int status = 0;
  if (waitpid(child, &status, WNOHANG) == child)
    return ended(status);
  if (uint64_t now = shared->current; now != seen) {
    seen = now;
    since = Clock::now();
  } else if (!killed && Clock::now() - since > std::chrono::seconds(options.timeout)) {
    killed = true;
    kill(child, SIGKILL);
  }
}

void Worker::ended(int status) {
  child = 0;
  const bool clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  const uint64_t running = shared->current;
  last = shared->end;
  if (clean || running == 0) {
    if (!clean)
      fail(next, "a leak, or the end of the process, in one of cases " + std::to_string(next) +
                     " to " + std::to_string(last - 1));
    next = last;
  } else {
    fail(running - 1, killed                ? "a hang of " + std::to_string(options.timeout) + " s"
                      : WIFSIGNALED(status) ? std::string("signal ") + strsignal(WTERMSIG(status))
                                            : "exit code " + std::to_string(WEXITSTATUS(status)));
    next = running;
  }
  std::error_code ignored;
  fs::remove(log, ignored);
}

void Worker::fail(uint64_t number, const std::string &what) {
  ++failures;
  fs::path file = options.out / (std::string("fuzz-") + target.name() + "-" +
                                 std::to_string(options.seed) + "-" + std::to_string(number));
  std::ofstream(file, std::ios::binary) << caseOf(target, options.seed, number);
  std::string said = slurp(log);
  std::printf("%s: case %llu of seed %llu: %s; run again with --reproduce %s\n%s\n", target.name(),
              static_cast<unsigned long long>(number),
              static_cast<unsigned long long>(options.seed), what.c_str(), file.c_str(),
              said.substr(said.size() - std::min<size_t>(said.size(), 6000)).c_str());
  std::fflush(stdout);
}

uint64_t number(const char *text) { return std::strtoull(text, nullptr, 0); }

/// Takes the options out of the command line; what is left is the corpus.
std::vector<fs::path> parseOptions(int argc, char **argv, DriverOptions &options,
                                   std::string &reproduce, std::string &show) {
  std::vector<fs::path> corpus;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    const std::pair<const char *, unsigned *> small[] = {{"--timeout", &options.timeout},
                                                         {"--jobs", &options.jobs},
                                                         {"--per-worker", &options.perWorker},
                                                         {"--memory", &options.memory}};
    const std::pair<const char *, uint64_t *> large[] = {
        {"--cases", &options.cases}, {"--first", &options.first}, {"--seed", &options.seed}};
    bool taken = word == "--out" || word == "--reproduce" || word == "--show";
    for (auto [name, place] : small)
      if (word == name)
        *place = static_cast<unsigned>(number(value)), taken = true;
    for (auto [name, place] : large)
      if (word == name)
        *place = number(value), taken = true;
    if (word == "--out")
      options.out = value;
    if (word == "--reproduce")
      reproduce = value;
    if (word == "--show")
      show = value;
    if (taken)
      ++i;
    else
      corpus.push_back(word);
  }
  return corpus;
}

} // namespace

uint64_t fp4::fuzz::drive(Target &target, const DriverOptions &options) {
  const unsigned jobs = std::max(1u, options.jobs);
  std::deque<Worker> workers;
  for (unsigned i = 0; i < jobs; ++i)
    workers.emplace_back(target, options, options.first + options.cases * i / jobs,
                         options.first + options.cases * (i + 1) / jobs);
  while (std::any_of(workers.begin(), workers.end(), [](auto &w) { return w.busy(); })) {
    for (Worker &worker : workers)
      worker.poll();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  uint64_t failures = 0;
  for (const Worker &worker : workers)
    failures += worker.failures;
  return failures;
}

int fp4::fuzz::fuzzMain(int argc, char **argv, Target &target) {
  DriverOptions options;
  std::string reproduce, show;
  const std::vector<fs::path> corpus = parseOptions(argc, argv, options, reproduce, show);
  if (!reproduce.empty()) {
    target.run(slurp(reproduce));
    return 0;
  }
  if (!target.load(corpus)) {
    std::fprintf(stderr, "error: the corpus has no file for '%s'\n", target.name());
    return 2;
  }
  if (const uint64_t all = target.count())
    options.cases = std::min(options.cases, all);
  if (!show.empty()) {
    std::fputs(caseOf(target, options.seed, number(show.c_str())).c_str(), stdout);
    return 0;
  }
  const auto start = Clock::now();
  const uint64_t failures = drive(target, options);
  std::printf("%s: %llu cases of seed %llu, %llu failures, %.1f s\n", target.name(),
              static_cast<unsigned long long>(options.cases),
              static_cast<unsigned long long>(options.seed),
              static_cast<unsigned long long>(failures),
              std::chrono::duration<double>(Clock::now() - start).count());
  return failures ? 1 : 0;
}

std::string fp4::fuzz::slurp(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<fs::path> fp4::fuzz::filesOf(const std::vector<fs::path> &corpus,
                                         const std::vector<std::string> &endings) {
  std::vector<fs::path> files;
  auto add = [&](const fs::path &path) {
    if (std::find(endings.begin(), endings.end(), path.extension()) != endings.end())
      files.push_back(path);
  };
  for (const fs::path &root : corpus) {
    if (!fs::is_directory(root)) {
      add(root);
      continue;
    }
    for (const auto &entry : fs::recursive_directory_iterator(root))
      if (entry.is_regular_file())
        add(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}
