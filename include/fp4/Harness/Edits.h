//===- Edits.h - Judging many versions of a library's PTX -----------------===//
//
// For validation/mutate.py, which makes the synchronization of kernels wrong one place at a time, and
// for whoever has several versions of one kernel. The inputs are made once and the reference is
// computed once; each version then runs in a process of its own, a copy of this one, so that none
// harms the others.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Harness/Runner.h"

namespace fp4::harness {

/// A place of a PTX text, and what comes there instead.
struct PtxEdit {
  std::shared_ptr<const std::string> ptx; ///< kernels that have this text get the other one
  size_t begin = 0, end = 0;
  std::string text;

  std::string result() const { return ptx->substr(0, begin) + text + ptx->substr(end); }
};

/// Reads edits, one JSON object a line: {"begin": 4, "end": 9, "text": "..."}, places in bytes of
/// the text that the last line {"ptx": "..."} before it has. Usage errors name the line.
Expected<std::vector<PtxEdit>> readEdits(const std::string &path);

struct JudgeOptions {
  std::string edits;                             ///< name of the file
  std::vector<std::string> schedules{"eager:1"}; ///< POLICY:SEED
  bool everySchedule = false; ///< true when schedules run also after an earlier one has failed
  std::string expectedError;                     ///< part of what each run ends with; empty: none
  unsigned processes = 1;                        ///< processes at a time
  double seconds = 300;                          ///< seconds for one edit
};

/// Adds --edits, --schedules, --every-schedule, --expect-error, --jobs and --seconds.
void addJudgeOptions(CLI::App &app, JudgeOptions &options);

/// Prints a JSON object for each edit, in the order in which they end: its number, and what became
/// of it under each schedule, null where it passed: a rule of the hazard checker, "result" (the
/// reference has another, or the error that is expected did not come), "deadlock", "livelock",
/// "error" (another of the simulator), "incomplete" (--max-orders left some orders), "refused" (the
/// text does not load), "unused" (no kernel of the run has the text), "crash", "timeout". Returns
/// the exit code of a tool: 0 if all were judged.
int judgeEdits(const Runner &runner, const RunOptions &options, const JudgeOptions &judge);

} // namespace fp4::harness
