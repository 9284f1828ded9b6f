//===- RunnerTest.cpp - Libraries through the runner, on the simulator ----===//

#include "fp4/Harness/Check.h"
#include "fp4/Harness/Library.h"
#include "fp4/Harness/Npy.h"
#include "fp4/Sim/HazardChecker.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <filesystem>
#include <unistd.h>

namespace fp4::harness {
namespace {

using testing::HasSubstr;

Expected<RunReport> run(RunOptions options) {
  static Expected<Runner> runner = openLibrary(FP4_HAND_LIBRARY);
  if (!runner)
    return tl::unexpected<Error>(runner.error());
  options.device = "sim";
  return runner->run(options);
}

RunOptions function(const char *name) {
  RunOptions options;
  options.function = name;
  return options;
}

TEST(Runner, RunsAndVerifies) {
  for (const char *distribution : {"gaussian", "exact", "zeros", "arange"})
    for (int64_t rows : {1, 7, 300}) {
      RunOptions options = function("amax");
      options.distribution = distribution;
      options.shape = {rows};
      auto report = run(options);
      ASSERT_TRUE(report) << format(report.error());
      EXPECT_TRUE(report->verified);
      EXPECT_TRUE(report->passed()) << report->text();
      ASSERT_EQ(report->kernels.size(), 1u);
      EXPECT_THAT(report->text(), HasSubstr("  kernels  1 launched\n"));
      EXPECT_EQ(report->kernels[0].registers, 20u);
      EXPECT_EQ(report->arguments[0].type.shape[0], rows);
    }
}

TEST(Runner, AWrongResultFailsWithItsPlace) {
  auto report = run(function("wrong"));
  ASSERT_TRUE(report) << format(report.error());
  EXPECT_FALSE(report->passed());
  EXPECT_EQ(report->verdicts[0].mismatches, 1u);
  EXPECT_THAT(report->text(), HasSubstr("wrong: FAILED"));
  EXPECT_THAT(report->text(), HasSubstr("differs from the reference"));
  EXPECT_THAT(report->json(), HasSubstr("\"passed\": false"));
}

TEST(Runner, TheFirstErrorOfHostCodeIsReported) {
  auto report = run(function("refuse"));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message, "size 3 of 'x' must be a multiple of 16");
  EXPECT_EQ(report.error().note, "pad it");
}

TEST(Runner, AnOutOfBoundsReadIsASimulationError) {
  auto report = run(function("overrun"));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, ErrorKind::Simulation) << report.error().message;
}

TEST(Runner, ResultsWithARowPitchArePacked) {
  auto report = run(function("copy"));
  ASSERT_TRUE(report) << format(report.error());
  EXPECT_TRUE(report->passed()) << report->text();
}

TEST(Runner, FilesGoInAndOut) {
  auto folder = std::filesystem::temp_directory_path() / "fp4_runner_test";
  std::filesystem::create_directories(folder);
  std::string in = (folder / "in.npy").string(), out = (folder / "out.npy").string();
  NpyArray array{"<f4", {2, 48}, std::vector<std::byte>(2 * 48 * 4)};
  for (size_t i = 0; i < 96; ++i) {
    float value = float(i) - 40;
    std::memcpy(&array.data[i * 4], &value, 4);
  }
  ASSERT_TRUE(writeNpy(in, array));
  RunOptions options = function("copy");
  options.inputs = {"x=" + in};
  options.outputs = {"y=" + out};
  auto report = run(options);
  ASSERT_TRUE(report) << format(report.error());
  EXPECT_TRUE(report->passed());
  auto back = readNpy(out);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->data, array.data);
  EXPECT_EQ(back->shape, array.shape);
  std::filesystem::remove_all(folder);
}

std::string errorOf(const RunOptions &options) {
  auto report = run(options);
  if (report)
    return "ran";
  EXPECT_EQ(report.error().kind, ErrorKind::Usage);
  return report.error().message;
}

TEST(Runner, WrongOptionsAreErrorsThatNameThem) {
  EXPECT_THAT(errorOf(function("")), HasSubstr("several functions: amax, wrong"));
  EXPECT_EQ(errorOf(function("nope")), "the library has no function named 'nope'");
  EXPECT_THAT(errorOf(function("missing")), HasSubstr("has no symbol 'fp4_entry_missing'"));
  RunOptions options = function("amax");
  options.inputs = {"z=x.npy"};
  EXPECT_EQ(errorOf(options), "the function has no argument named 'z'");
  options.inputs = {"x"};
  EXPECT_EQ(errorOf(options), "--input expects NAME=VALUE, but got 'x'");
  options.inputs = {"x=/nonexistent.npy"};
  EXPECT_EQ(errorOf(options), "cannot read '/nonexistent.npy': No such file or directory");
  options = function("amax");
  options.outputs = {"amax=/nonexistent/a.npy"};
  EXPECT_EQ(errorOf(options), "cannot write '/nonexistent/a.npy': No such file or directory");
  options.outputs = {"y=a.npy"};
  EXPECT_EQ(errorOf(options), "the function has no result named 'y'");
  options = function("amax");
  options.dims = {"x=-1"};
  EXPECT_EQ(errorOf(options), "--dim expects a size from 0 to 2147483647, but got '-1'");
  options = function("amax");
  options.shape = {5, 6, 32};
  EXPECT_EQ(errorOf(options), "--shape has K = 32, but argument 'x' is ?x64xbf16");
  options.shape = {INT32_MAX};
  EXPECT_THAT(errorOf(options), HasSubstr("argument 'x', 2147483647x64xbf16, must fit half of"));
  // A tensor that fits alone may not fit with its copies.
  options.shape = {int64_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE) / 128 / 3};
  EXPECT_THAT(errorOf(options), HasSubstr("what is between them must fit this machine's"));
  options = function("amax");
  options.policy = "hasty";
  EXPECT_EQ(errorOf(options), "unknown simulation policy 'hasty'");
  options = function("amax");
  options.distribution = "cauchy";
  EXPECT_EQ(errorOf(options), "unknown distribution 'cauchy'");
}

TEST(Runner, ListsWhatIsInside) {
  auto runner = openLibrary(FP4_HAND_LIBRARY);
  ASSERT_TRUE(runner);
  EXPECT_THAT(runner->list(), HasSubstr("function amax\n  argument x          ?x64xbf16\n"));
  EXPECT_THAT(runner->list(), HasSubstr("kernel amax_amax_0.amax: 20 registers"));
}

//===----------------------------------------------------------------------===//
// The tool
//===----------------------------------------------------------------------===//

struct ToolRun {
  int exitCode;
  std::string output;
};

ToolRun fp4Run(const std::string &arguments) {
  std::FILE *pipe = popen((std::string(FP4_RUN_TOOL) + " " + arguments + " 2>&1").c_str(), "r");
  std::string output;
  char chunk[4096];
  while (size_t got = std::fread(chunk, 1, sizeof(chunk), pipe))
    output.append(chunk, got);
  int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

const std::string kLibrary = FP4_HAND_LIBRARY;

TEST(Fp4Run, ExitCodesAreTheErrorKinds) {
  ToolRun passed = fp4Run(kLibrary + " --device sim --function amax --shape 9");
  EXPECT_EQ(passed.exitCode, 0) << passed.output;
  EXPECT_THAT(passed.output, HasSubstr("amax: passed"));
  ToolRun wrong = fp4Run(kLibrary + " --device sim --function wrong");
  EXPECT_EQ(wrong.exitCode, 1) << wrong.output;
  EXPECT_THAT(wrong.output, HasSubstr("error: the result differs from the reference"));
  ToolRun option = fp4Run(kLibrary + " --no-such-option");
  EXPECT_EQ(option.exitCode, 2);
  EXPECT_THAT(option.output, HasSubstr("error: The following argument was not expected"));
  EXPECT_EQ(fp4Run("").exitCode, 2);
  EXPECT_EQ(fp4Run(kLibrary + " --device gpu9 --function amax").exitCode, 2);
  EXPECT_EQ(fp4Run(kLibrary + " --device sim --function overrun").exitCode, 5);
  EXPECT_EQ(fp4Run("--help").exitCode, 0);
  EXPECT_THAT(fp4Run("--version").output, HasSubstr("fp4-run 0."));
}

TEST(Fp4Run, FilesThatAreNoLibrariesAreErrors) {
  ToolRun absent = fp4Run("/nonexistent.so");
  EXPECT_EQ(absent.exitCode, 2);
  EXPECT_THAT(absent.output, HasSubstr("error: cannot read '/nonexistent.so'"));
  ToolRun text = fp4Run(FP4_SOURCE_DIR "/CMakeLists.txt");
  EXPECT_EQ(text.exitCode, 2);
  EXPECT_THAT(text.output, HasSubstr("error: cannot load library"));
}

TEST(Fp4Run, JsonIsOneObject) {
  ToolRun run = fp4Run(kLibrary + " --device sim --function amax --json --threads 1");
  EXPECT_EQ(run.exitCode, 0);
  EXPECT_EQ(run.output.front(), '{');
  EXPECT_THAT(run.output, HasSubstr("\"passed\": true"));
}

// A machine without a driver says so, and what to do; one with a driver runs.
TEST(Fp4Run, AnAbsentGpuIsADeviceError) {
  ToolRun run = fp4Run(kLibrary + " --device cuda:63 --function amax");
  EXPECT_EQ(run.exitCode, 4) << run.output;
  EXPECT_THAT(run.output, HasSubstr("--device sim"));
}

TEST(Check, HazardsAreCounted) {
  sim::HazardReport hazard;
  hazard.message = "a race";
  EXPECT_FALSE(reportHazards({}));
  auto one = reportHazards({hazard});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->kind, ErrorKind::Hazard);
  EXPECT_EQ(one->message, "1 hazard found");
  EXPECT_EQ(reportHazards({hazard, hazard})->message, "2 hazards found");
}

} // namespace
} // namespace fp4::harness
