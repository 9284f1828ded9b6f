// The kernels of integration_test/sim/bugs: right as they are, and wrong in every listed way.
#include "KernelHarness.h"
#include "fp4/Sim/Stepper.h"

#include <filesystem>
#include <map>
#include <optional>
#include <ranges>
#include <set>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;

namespace {

/// One way to make a kernel wrong: the text, and the rules of which one must be reported.
struct Bug {
  std::string text;
  std::set<std::string> rules;
  bool strict = false;
};

struct Run {
  std::string entry = "test";
  LaunchConfig config;
  bool dependent = false; ///< may begin before the run before it has ended
};

struct CorpusKernel {
  std::string text;
  std::vector<Run> runs;
  std::map<std::string, Bug> bugs;
  std::multimap<std::string, std::string> says; ///< parts of the report of a bug
  bool unwritten = false; ///< nobody fills the buffers before the runs, and strict mode notices
};

std::string trim(std::string text) {
  const size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
  return first == text.npos ? "" : text.substr(first, last - first + 1);
}

struct Marker {
  std::string name, rules, replacement;
};

/// The "// bug NAME: RULES => REPLACEMENT" of a line.
std::vector<Marker> markersOf(const std::string &line) {
  std::vector<Marker> markers;
  const std::string tag = "// bug ";
  for (size_t at = line.find(tag); at != line.npos;) {
    const size_t next = line.find(tag, at + 1);
    std::string text =
        line.substr(at + tag.size(), next == line.npos ? next : next - at - tag.size());
    Marker marker;
    if (const size_t arrow = text.find("=>"); arrow != text.npos) {
      marker.replacement = trim(text.substr(arrow + 2));
      text.resize(arrow);
    }
    marker.name = trim(text.substr(0, text.find(':')));
    marker.rules = trim(text.substr(text.find(':') + 1));
    markers.push_back(marker);
    at = next;
  }
  return markers;
}

std::set<std::string> splitRules(const std::string &text) {
  std::set<std::string> rules;
  std::stringstream stream(text);
  for (std::string rule; std::getline(stream, rule, ',');)
    rules.insert(trim(rule));
  return rules;
}

/// The launch that "// run: grid 2 cluster 1 block 32 entry NAME dependent" asks for.
Run parseRun(const std::string &text) {
  Run run;
  std::stringstream stream(text);
  for (std::string word; stream >> word;) {
    if (word == "entry")
      stream >> run.entry;
    else if (word == "dependent")
      run.dependent = true;
    else
      stream >> (word == "grid"      ? run.config.grid
                 : word == "cluster" ? run.config.cluster
                                     : run.config.block)[0];
  }
  return run;
}

/// The text behind `tag` in a line that begins with it.
std::optional<std::string> behind(const std::string &line, const std::string &tag) {
  return line.starts_with(tag) ? std::optional(line.substr(tag.size())) : std::nullopt;
}

void readHead(const std::string &line, CorpusKernel &kernel) {
  if (const auto run = behind(line, "// run: "))
    kernel.runs.push_back(parseRun(*run));
  if (const auto says = behind(line, "// says ")) {
    const size_t colon = says->find(": ");
    kernel.says.emplace(says->substr(0, colon), says->substr(colon + 2));
  }
  kernel.unwritten |= line == "// unwritten";
}

CorpusKernel load(const std::filesystem::path &path) {
  CorpusKernel kernel;
  kernel.text = readFile("integration_test/sim/bugs/" + path.filename().string());
  std::vector<std::string> lines;
  std::stringstream stream(kernel.text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  for (const std::string &line : lines) {
    readHead(line, kernel);
    for (const Marker &marker : markersOf(line)) {
      Bug &bug = kernel.bugs[marker.name];
      bug.strict = marker.rules.starts_with("strict ");
      bug.rules = splitRules(bug.strict ? marker.rules.substr(7) : marker.rules);
    }
  }
  for (auto &[name, bug] : kernel.bugs)
    for (const std::string &line : lines) {
      std::string written = line;
      for (const Marker &marker : markersOf(line))
        if (marker.name == name)
          written = marker.replacement;
      bug.text += written + "\n";
    }
  return kernel;
}

struct Judged {
  std::set<std::string> rules; ///< with "error" when a run failed, and "deadlock" if by one
  std::string text;
  std::vector<std::byte> out; ///< bytes of the buffers
};

/// Runs the launches of a kernel one after the other, up to the first that fails. Returns the
/// number of warp instructions.
Expected<uint64_t> launchAll(Simulator &simulator, const Program &program,
                             const CorpusKernel &kernel) {
  constexpr uint64_t bytes = 1024;
  Params params;
  for (const char *name : {"data", "out"})
    params.add(simulator.memory().allocate(bytes, name));
  LaunchRef before;
  uint64_t instructions = 0;
  for (const Run &run : kernel.runs) {
    LaunchConfig config = run.config;
    if (run.dependent)
      config.dependence.on = {{before}};
    config.dependence.by = "an attribute";
    config.dependence.mark = before = std::make_shared<LaunchMark>();
    FP4_ASSIGN(const LaunchStats stats,
               simulator.launch(program, run.entry, config, params.span()));
    instructions += stats.warpInstructions;
  }
  return instructions;
}

/// Uses of unwritten shared memory end a run, and would hide a race that comes behind them.
Judged judge(const std::string &ptx, SimOptions options, const CorpusKernel &kernel, bool strict,
             UninitializedReads reads = UninitializedReads::Ignore) {
  auto program = Program::parse(ptx, "kernel.ptx");
  if (!program)
    return {{"parse"}, program.error().message, {}};
  const auto instruments = instrument(strict ? "strict" : "default", options);
  options.trackWrites &= kernel.unwritten; // nothing fills the buffers
  options.uninitializedReads = reads;
  Simulator simulator(options);
  const auto status = launchAll(simulator, **program, kernel);
  Judged judged;
  if (!status) {
    judged.rules.insert(status.error().message.starts_with("deadlock") ? "deadlock" : "error");
    judged.rules.insert("error");
    if (reads == UninitializedReads::Error && status.error().message.ends_with("never written"))
      judged.rules.insert("unwritten");
    judged.text = status.error().message + "\n" + status.error().note;
  }
  for (const auto &allocation : simulator.memory().allocations())
    judged.out.insert(judged.out.end(), allocation->bytes.get(),
                      allocation->bytes.get() + allocation->size);
  for (const HazardReport &report : instruments->hazards()) {
    judged.rules.insert(std::string(stringify(report.rule)));
    judged.text += report.text();
  }
  return judged;
}

/// The first lines of a report, which a terminal shows at once.
std::string firstScreen(const std::string &text) {
  constexpr int lines = 24;
  size_t end = 0;
  for (int line = 0; line < lines && end != text.npos; ++line)
    end = text.find('\n', end + (line > 0));
  return text.substr(0, end);
}

std::vector<std::filesystem::path> files() {
  std::vector<std::filesystem::path> found;
  for (const auto &entry : std::filesystem::directory_iterator(std::string(FP4_SOURCE_DIR) +
                                                               "/integration_test/sim/bugs"))
    if (entry.path().extension() == ".ptx")
      found.push_back(entry.path());
  EXPECT_GE(found.size(), 4u);
  return found;
}

TEST(Corpus, TheKernelsAreClean) {
  for (const auto &path : files()) {
    const CorpusKernel kernel = load(path);
    for (const bool strict : {false, true})
      for (const SimOptions &options : schedules(3))
        EXPECT_EQ(judge(kernel.text, options, kernel, strict, UninitializedReads::Error).text, "")
            << path << " strict " << strict << " " << describe(options);
  }
}

TEST(Corpus, EveryBugIsFoundUnderEveryPolicy) {
  for (const auto &path : files()) {
    const CorpusKernel kernel = load(path);
    for (const auto &[name, bug] : kernel.bugs)
      for (const SimOptions &options : schedules(2)) {
        const auto reads = bug.rules.contains("unwritten") ? UninitializedReads::Error
                                                           : UninitializedReads::Ignore;
        Judged judged = judge(bug.text, options, kernel, bug.strict, reads);
        if (bug.rules.contains("wrong") && judged.rules.empty() &&
            judged.out != judge(kernel.text, options, kernel, bug.strict, reads).out)
          judged.rules.insert("wrong");
        const bool found = std::any_of(bug.rules.begin(), bug.rules.end(),
                                       [&](auto &rule) { return judged.rules.contains(rule); });
        EXPECT_TRUE(found) << path << " " << name << " " << describe(options) << "\n"
                           << judged.text;
        const auto [first, last] = kernel.says.equal_range(name);
        for (const auto &[bugName, words] : std::ranges::subrange(first, last))
          EXPECT_THAT(firstScreen(judged.text), testing::HasSubstr(words))
              << path << " " << bugName << " " << describe(options);
      }
  }
}

/// Counts instructions, as a debugger that never stops.
class Counter final : public Stepper {
public:
  void began(const Launch &) override {}
  bool before(Cluster &, Warp &, const LaneGroup &) override { return ++count < limit; }
  void hazard(const HazardReport &) override {}
  void failed(Cluster &, const Error &error) override { failure = error.message; }
  uint64_t count = 0, limit = ~uint64_t(0);
  std::string failure;
};

/// A debugger sees each instruction once, and changes no result. Turns of warps that poll are its
/// only mark: they are not parked, which other policies than eager and lazy notice.
TEST(Corpus, StepsAsWithoutADebugger) {
  for (const auto &path : files()) {
    const CorpusKernel kernel = load(path);
    const auto program = Program::parse(kernel.text, "kernel.ptx");
    ASSERT_TRUE(program);
    for (SimOptions options : schedules(2)) {
      options.hostThreads = 1;
      std::array<uint64_t, 2> executed{};
      std::array<std::vector<std::byte>, 2> bytes;
      Counter counter;
      for (const bool stepped : {false, true}) {
        options.stepper = stepped ? &counter : nullptr;
        Simulator simulator(options);
        const auto count = launchAll(simulator, **program, kernel);
        ASSERT_TRUE(count) << path << count.error().message;
        executed[stepped] = *count;
        for (const auto &allocation : simulator.memory().allocations())
          bytes[stepped].insert(bytes[stepped].end(), allocation->bytes.get(),
                                allocation->bytes.get() + allocation->size);
      }
      EXPECT_EQ(executed[1], counter.count) << path << " " << describe(options);
      if (options.policy == CompletionPolicy::Eager || options.policy == CompletionPolicy::Lazy) {
        EXPECT_EQ(executed[0], executed[1]) << path << " " << describe(options);
      }
      EXPECT_EQ(bytes[0], bytes[1]) << path << " " << describe(options);
    }
  }
}

/// A debugger that says no ends the launch, and hears of the end while the cluster is there.
TEST(Corpus, EndsWhenADebuggerSaysSo) {
  const CorpusKernel kernel = load(files().front());
  const auto program = Program::parse(kernel.text, "kernel.ptx");
  ASSERT_TRUE(program);
  Counter counter;
  counter.limit = 20;
  SimOptions options;
  options.stepper = &counter;
  Simulator simulator(options);
  const auto count = launchAll(simulator, **program, kernel);
  ASSERT_FALSE(count);
  EXPECT_THAT(count.error().message, testing::HasSubstr("the debugger ended the launch"));
  EXPECT_EQ(counter.failure, count.error().message);
  EXPECT_EQ(counter.count, 20u);
}

/// A line that says what is reported belongs to a bug of the file.
TEST(Corpus, EveryReportIsOfABug) {
  for (const auto &path : files()) {
    const CorpusKernel kernel = load(path);
    EXPECT_FALSE(kernel.runs.empty()) << path;
    for (const auto &[name, words] : kernel.says)
      EXPECT_TRUE(kernel.bugs.contains(name)) << path << " " << name;
  }
}

/// The default accepts programs that strict mode alone reports.
TEST(Corpus, TheDefaultAcceptsWhatOnlyStrictReports) {
  for (const auto &path : files()) {
    const CorpusKernel kernel = load(path);
    for (const auto &[name, bug] : kernel.bugs)
      if (bug.strict) {
        EXPECT_EQ(judge(bug.text, schedules()[0], kernel, false).text, "") << path << " " << name;
      }
  }
}

} // namespace
