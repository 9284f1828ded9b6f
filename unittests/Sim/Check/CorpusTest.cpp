// The kernels of integration_test/sim/bugs: right as they are, and wrong in every listed way.
#include "KernelHarness.h"

#include <filesystem>
#include <map>
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

struct CorpusKernel {
  std::string text;
  LaunchConfig config;
  std::map<std::string, Bug> bugs;
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

CorpusKernel load(const std::filesystem::path &path) {
  CorpusKernel kernel;
  kernel.text = readFile("integration_test/sim/bugs/" + path.filename().string());
  std::vector<std::string> lines;
  std::stringstream stream(kernel.text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  for (const std::string &line : lines) {
    unsigned grid, cluster, block;
    if (std::sscanf(line.c_str(), "// run: grid %u cluster %u block %u", &grid, &cluster, &block) ==
        3)
      kernel.config = {{grid, 1, 1}, {block, 1, 1}, {cluster, 1, 1}, 0};
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
  std::set<std::string> rules; ///< with "error" when the run failed
  std::string text;
};

Judged judge(const std::string &ptx, SimOptions options, const LaunchConfig &config, bool strict) {
  auto program = Program::parse(ptx, "kernel.ptx");
  if (!program)
    return {{"parse"}, program.error().message};
  const auto instruments = instrument(strict ? "strict" : "default", options);
  options.trackWrites = false; // nothing fills the buffers
  options.uninitializedReads = UninitializedReads::Ignore;
  Simulator simulator(options);
  constexpr uint64_t bytes = 1024;
  Params params;
  for (const char *name : {"data", "out"}) {
    params.add(simulator.memory().allocate(bytes, name));
  }
  auto stats = simulator.launch(**program, "test", config, params.span());
  Judged judged;
  if (!stats) {
    judged.rules.insert("error");
    judged.text = stats.error().message + "\n";
  }
  for (const HazardReport &report : instruments->hazards()) {
    judged.rules.insert(std::string(stringify(report.rule)));
    judged.text += report.text();
  }
  return judged;
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
        EXPECT_EQ(judge(kernel.text, options, kernel.config, strict).text, "")
            << path << " strict " << strict << " " << describe(options);
  }
}

TEST(Corpus, EveryBugIsFoundUnderEveryPolicy) {
  for (const auto &path : files())
    for (const auto &[name, bug] : load(path).bugs)
      for (const SimOptions &options : schedules(2)) {
        const Judged judged = judge(bug.text, options, load(path).config, bug.strict);
        const bool found = std::any_of(bug.rules.begin(), bug.rules.end(),
                                       [&](auto &rule) { return judged.rules.contains(rule); });
        EXPECT_TRUE(found) << path << " " << name << " " << describe(options) << "\n"
                           << judged.text;
      }
}

/// The default accepts programs that strict mode alone reports.
TEST(Corpus, TheDefaultAcceptsWhatOnlyStrictReports) {
  for (const auto &path : files())
    for (const auto &[name, bug] : load(path).bugs)
      if (bug.strict) {
        EXPECT_EQ(judge(bug.text, schedules()[0], load(path).config, false).text, "")
            << path << " " << name;
      }
}

} // namespace
