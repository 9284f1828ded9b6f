//===- Edits.cpp - Judging many versions of a library's PTX ---------------===//

#include "fp4/Harness/Edits.h"

#include "fp4/Sim/HazardChecker.h"
#include "fp4/Sim/Simulator.h"
#include "fp4/Support/ForkedWork.h"
#include "fp4/Support/InputFile.h"
#include "fp4/Support/JsonText.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sstream>

namespace fp4::harness {
namespace {

using Json = nlohmann::ordered_json;

struct Schedule {
  std::string policy;
  uint64_t seed = 0;
};

Expected<Schedule> parseSchedule(const std::string &text) {
  Schedule schedule{text.substr(0, text.find(':')), 0};
  const char *end = text.data() + text.size();
  const char *seed = text.data() + std::min(schedule.policy.size() + 1, text.size());
  const auto [last, error] = std::from_chars(seed, end, schedule.seed);
  if (error != std::errc() || last != end)
    return makeError(ErrorKind::Usage,
                     fmt::format("--schedules expects POLICY:SEED, but got '{}'", text));
  FP4_TRY(sim::parseCompletionPolicy(schedule.policy));
  return schedule;
}

/// The edit of one line; a line that has a text sets `ptx` instead.
Expected<std::optional<PtxEdit>> parseEdit(const std::string &line,
                                           std::shared_ptr<const std::string> &ptx) {
  const auto malformed = [](const char *what) { return makeError(ErrorKind::Usage, what); };
  const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object())
    return malformed("must be a JSON object");
  const auto text = [&](const char *key) {
    auto it = object.find(key);
    return it != object.end() && it->is_string() ? it->get_ptr<const std::string *>() : nullptr;
  };
  const auto place = [&](const char *key) {
    auto it = object.find(key);
    return it != object.end() && it->is_number_unsigned() ? it->get<uint64_t>() : ~uint64_t(0);
  };
  if (const std::string *whole = text("ptx")) {
    ptx = std::make_shared<const std::string>(*whole);
    return std::nullopt;
  }
  if (!ptx)
    return malformed("must be behind a line with 'ptx', the text that is edited");
  const std::string *to = text("text");
  const uint64_t begin = place("begin"), end = place("end");
  if (!to || begin > end || end > ptx->size())
    return malformed("must have 'begin' and 'end', places of the text in order, and 'text'");
  return PtxEdit{ptx, begin, end, *to};
}

/// The fate of a run without a hazard: empty if it passed, or if it ended with the error that is
/// expected.
std::string fateOf(const Expected<RunReport> &report, const std::string &expected) {
  if (!report && !expected.empty() && report.error().message.find(expected) != std::string::npos)
    return "";
  if (report && !expected.empty())
    return "result";
  if (report && !report->passed())
    return "result";
  if (report)
    return std::ranges::all_of(report->simulation.orders, &sim::OrderReport::complete)
               ? ""
               : "incomplete";
  for (const char *kind : {"deadlock", "livelock"})
    if (report.error().message.starts_with(kind))
      return kind;
  return "error";
}

/// Judges one edit of the library, in a process of its own.
class Judge {
public:
  Judge(const Runner &runner, const RunOptions &options, const PtxEdit &edit, const Finish &finish,
        const JudgeOptions &judge)
      : runner_(runner), options_(options), edit_(edit), text_(edit.result()), finish_(finish),
        judge_(judge) {
    options_.noticed = [this](const sim::HazardReport &report) { notice(report); };
    options_.exchange = [this](const fp4rt_module &module) { return exchange(module); };
  }

  void operator()(const std::vector<Schedule> &schedules) {
    for (const Schedule &schedule : schedules) {
      run(schedule);
      fates_.push_back(fate_.empty() ? Json() : Json(fate_));
      if (!fate_.empty() && !judge_.everySchedule)
        break;
    }
    end();
  }

private:
  void run(const Schedule &schedule) {
    fate_.clear();
    options_.policy = schedule.policy;
    options_.seed = schedule.seed;
    module_.clear();
    const auto report = runner_.run(options_);
    if (!fate_.empty())
      return; // a hazard
    fate_ = fateOf(report, judge_.expectedError);
    if (fate_.empty() && module_.empty())
      fate_ = "unused";
    if (report || fate_.empty())
      return;
    explain(report.error().message);
    if (!module_.empty() && report.error().message.starts_with(module_ + ":"))
      fate_ = "refused"; // errors of a run begin with the kernel
  }

  /// Ends the run at the first hazard, which is enough: most of the run need not happen.
  void notice(const sim::HazardReport &report) {
    if (!fate_.empty())
      return;
    fate_ = stringify(report.rule);
    explain(report.text());
    if (judge_.everySchedule)
      return;
    fates_.push_back(fate_);
    end();
  }

  fp4rt_module exchange(const fp4rt_module &module) {
    fp4rt_module changed = module;
    if (std::string_view(module.ptx, module.ptx_size) != *edit_.ptx)
      return changed;
    module_ = module.name;
    changed.ptx = text_.data();
    changed.ptx_size = text_.size();
    return changed;
  }

  void explain(const std::string &message) {
    constexpr size_t most = 300;
    if (message_.empty())
      message_ = message.substr(0, most);
  }

  void end() {
    Json object = {{"fates", fates_}};
    if (!message_.empty())
      object["message"] = message_;
    finish_(jsonText(object));
  }

  const Runner &runner_;
  RunOptions options_;
  const PtxEdit &edit_;
  const std::string text_;
  const Finish &finish_;
  const JudgeOptions &judge_;
  Json fates_ = Json::array();
  std::string fate_;    ///< fate under the present schedule
  std::string message_; ///< message of the first error
  std::string module_;  ///< the last that was loaded with the other text
};

Status judgeAll(const Runner &runner, RunOptions options, const JudgeOptions &judge) {
  if (options.device != "sim" && options.device != "auto")
    return makeError(ErrorKind::Usage,
                     fmt::format("--edits expects the device sim, but got {}", options.device),
                     "a kernel that is wrong may take a GPU down");
  options.device = "sim";
  options.hostThreads = 1; // threads of a process have ended when it is copied
  options.showProgress = false;
  std::vector<Schedule> schedules;
  for (const std::string &text : judge.schedules) {
    FP4_ASSIGN(schedules.emplace_back(), parseSchedule(text));
    if (schedules.back().policy == "exhaustive" && !judge.expectedError.empty())
      return makeError(ErrorKind::Usage,
                       "--expect-error expects a schedule of one order, but got exhaustive",
                       "a run that fails does not say whether all orders ran");
  }
  FP4_ASSIGN(const auto edits, readEdits(judge.edits));
  FP4_ASSIGN(options.prepared, runner.prepare(options));
  Status printed;
  const auto print = [&](size_t number, const ForkedResult &result) {
    Json object = {{"edit", number}};
    if (result.end == ForkedResult::End::Finished)
      object.update(Json::parse(result.text));
    else
      object["fates"] = {result.end == ForkedResult::End::TimedOut ? "timeout" : "crash"};
    if (harness::print(jsonText(object) + "\n", "verdicts") && printed)
      printed = makeError(ErrorKind::Usage, "the verdicts could not be printed");
  };
  FP4_TRY(forEachForked(
      edits.size(), judge.processes, std::chrono::milliseconds(int64_t(judge.seconds * 1000)),
      [&](size_t number, const Finish &finish) {
        Judge(runner, options, edits[number], finish, judge)(schedules);
      },
      print));
  return printed;
}

} // namespace

Expected<std::vector<PtxEdit>> readEdits(const std::string &path) {
  FP4_ASSIGN(const std::string file, readText(path));
  std::vector<PtxEdit> edits;
  std::shared_ptr<const std::string> ptx;
  std::istringstream lines(file);
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    auto edit = parseEdit(line, ptx);
    if (!edit)
      return makeError(ErrorKind::Usage,
                       fmt::format("{}:{}: an edit {}", path, number, edit.error().message));
    if (*edit)
      edits.push_back(std::move(**edit));
  }
  return edits;
}

void addJudgeOptions(CLI::App &app, JudgeOptions &options) {
  auto *group = app.add_option_group("Judging versions of the PTX");
  group->add_option("--edits", options.edits,
                    "FILE with a JSON object a line: {\"ptx\": a kernel's text}, then edits of it, "
                    "{\"begin\": B, \"end\": E, \"text\": T}. Print what becomes of each");
  group->add_option("--schedules", options.schedules, "POLICY:SEED,... in which each of them runs")
      ->delimiter(',')
      ->capture_default_str();
  group->add_flag("--every-schedule", options.everySchedule,
                  "go on when an edit has failed under one schedule");
  group->add_option("--expect-error", options.expectedError,
                    "part of the error with which each run must end");
  group->add_option("--jobs", options.processes, "processes at a time")->capture_default_str();
  group->add_option("--seconds", options.seconds, "for one edit, which is ended then")
      ->capture_default_str();
}

int judgeEdits(const Runner &runner, const RunOptions &options, const JudgeOptions &judge) {
  Status status = judgeAll(runner, options, judge);
  if (status)
    return 0;
  std::fputs(format(status.error()).c_str(), stderr);
  return exitCode(status.error());
}

} // namespace fp4::harness
