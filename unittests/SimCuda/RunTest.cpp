//===- RunTest.cpp - fp4-sim run, with a program made by hand -------------===//
#include "Shell.h"
#include <csignal>
#include <cstdio>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <string>
#include <vector>

using namespace fp4::simcuda::test;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

Outcome run(const std::string &mode, const std::string &options = "") {
  return shell(fmt::format("{} run {} -- {} {}", FP4_SIM_TOOL, options, FP4_TEST_PROGRAM, mode));
}

TEST(Run, KernelsVariablesAndCopies) {
  for (const char *policy : {"eager", "lazy", "random"}) {
    Outcome result = run("scale", fmt::format("--policy {} --stats", policy));
    EXPECT_EQ(result.code, 0) << result.output;
    EXPECT_THAT(result.output, HasSubstr("factor was 3, all equal"));
    EXPECT_THAT(result.output, HasSubstr("fp4-sim: 1 launches, "));
  }
}

TEST(Run, StrictModeKnowsWhatNobodyWrote) {
  const Outcome clean = run("written", "--check strict");
  EXPECT_EQ(clean.code, 0) << clean.output;
  const Outcome found = run("unwritten", "--check strict");
  EXPECT_EQ(found.code, 6) << found.output;
  EXPECT_THAT(found.output, HasSubstr("[uninitialized-read]"));
  EXPECT_EQ(run("unwritten").code, 0);
}

TEST(Run, EveryOrder) {
  Outcome result = run("scale", "--policy exhaustive --check strict");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("all equal"));
  EXPECT_THAT(result.output, HasSubstr("orders of scale: 1 order, "));
  EXPECT_THAT(result.output, HasSubstr(": complete"));
  EXPECT_EQ(run("scale", "--policy every").code, 2);
}

/// The options of fp4-run, with the same meaning.
TEST(Run, JsonIsTheLastLine) {
  Outcome clean = run("scale", "--json --check 2>/dev/null");
  EXPECT_EQ(clean.code, 0) << clean.output;
  EXPECT_THAT(clean.output, HasSubstr("all equal\n{\"program\":"));
  EXPECT_THAT(clean.output, HasSubstr("\"check\":\"default\",\"exit_code\":0,\"launches\":1,"));
  EXPECT_THAT(clean.output, HasSubstr("\"kernels\":[{\"name\":\"scale\",\"grid\":[4,1,1],"));
  EXPECT_THAT(clean.output, HasSubstr("\"hazards\":[]}"));
  Outcome racy = run("racy", "--json --check strict");
  EXPECT_EQ(racy.code, 6) << racy.output;
  EXPECT_THAT(racy.output, HasSubstr("[shared-race]"));
  EXPECT_THAT(racy.output, HasSubstr("\"hazards\":[{\"rule\":\"shared-race\","));
  EXPECT_THAT(racy.output, HasSubstr("\"exit_code\":6"));
}

/// pytest keeps what a test that passes printed: the reports go past it.
TEST(Run, ReportsAreSeenThroughACapture) {
  for (const char *mode : {"racy", "captured", "closed"}) {
    Outcome result = run(mode, "--check");
    EXPECT_EQ(result.code, 6) << mode << result.output;
    EXPECT_THAT(result.output, HasSubstr("[shared-race]")) << mode;
    EXPECT_THAT(result.output, Not(HasSubstr("not to be seen")));
  }
  const std::string file = testing::TempDir() + "fp4-run-stderr";
  Outcome outside = shell(fmt::format("({} run --check -- {} captured) 2>{}; cat {}", FP4_SIM_TOOL,
                                      FP4_TEST_PROGRAM, file, file));
  EXPECT_THAT(outside.output, HasSubstr("[shared-race]"));
}

TEST(Run, UsesOfWhatNobodyWroteMayPass) {
  Outcome refused = run("idle");
  EXPECT_EQ(refused.code, 5) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("branches on a value of shared byte 0x400 ('word'), which "
                                        "was never written"));
  EXPECT_THAT(refused.output, HasSubstr("read it: ld.shared.u32 %r1, [word];"));
  EXPECT_THAT(refused.output, HasSubstr("--unwritten=ignore lets it pass"));
  EXPECT_EQ(run("idle", "--unwritten ignore").code, 0);
  EXPECT_EQ(run("padded", "--check strict").code, 0);
  EXPECT_EQ(run("idle", "--unwritten").code, 2);
}

TEST(Run, StatisticsAndTimeline) {
  const std::string file = testing::TempDir() + "fp4-run-timeline.json";
  Outcome result = run("scale", "--stats --timeline " + file);
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("fp4-sim: accesses: "));
  Outcome trace = shell("cat " + file);
  EXPECT_THAT(trace.output, HasSubstr("scale"));
  EXPECT_EQ(trace.output.substr(trace.output.find_last_not_of('\n'), 1), "]");
  EXPECT_EQ(run("scale", "--timeline /no/such/folder/x").code, 2);
  EXPECT_EQ(shell(std::string(FP4_SIM_TOOL) + " run --explain shared-race -- true").code, 0);
}

/// The hazard checker needs no option.
TEST(Run, TimesWithoutResults) {
  const Outcome times = run("scale", "--time-only --sample-after 0 --json");
  EXPECT_EQ(times.code, 0) << times.output;
  EXPECT_THAT(times.output, HasSubstr("--time-only computes no results"));
  EXPECT_THAT(times.output, HasSubstr("\"check\":\"off\""));
  EXPECT_THAT(times.output, HasSubstr("\"predicted_times\":[{"));
  EXPECT_THAT(times.output, HasSubstr("\"microseconds\":"));
  const Outcome checked = run("scale", "--time-only --check strict");
  EXPECT_EQ(checked.code, 2) << checked.output;
  EXPECT_THAT(checked.output, HasSubstr("--time-only expects no hazard check, but got strict"));
}

TEST(Run, HazardsAreLookedForByDefault) {
  Outcome racy = run("racy");
  EXPECT_EQ(racy.code, 6) << racy.output;
  EXPECT_THAT(racy.output, HasSubstr("[shared-race]"));
  EXPECT_EQ(run("racy", "--check=off").code, 0);
  EXPECT_THAT(run("scale", "--json").output, HasSubstr("\"check\":\"default\""));
}

/// Files of a folder that are called `name` or begin so.
std::string filesNamed(const std::string &path) { return shell("ls -d " + path + "*").output; }

TEST(Run, ATimelineIsWholeOrNotThere) {
  const std::string file = testing::TempDir() + "fp4-run-whole.json";
  shell("rm -f " + file + "*; echo old > " + file);
  const std::string command =
      fmt::format("{} run --timeline {} -- {} ", FP4_SIM_TOOL, file, FP4_TEST_PROGRAM);
  Outcome full = shell("ulimit -f 1; " + command + "scale");
  EXPECT_EQ(full.code, 2) << full.output;
  EXPECT_THAT(full.output, HasSubstr("cannot write '" + file + "': File too large"));
  EXPECT_EQ(filesNamed(file) + shell("cat " + file).output, file + "\nold\n");
  EXPECT_EQ(shell(command + "wild").code, 5); // events that led to the fault are worth seeing
  EXPECT_EQ(shell("tail -c 2 " + file).output, "]\n");
}

TEST(Run, AProgramThatDiesLeavesNoTimeline) {
  const std::string file = testing::TempDir() + "fp4-run-dies.json";
  shell("rm -f " + file + "*");
  Outcome died = run("touch", "--timeline " + file);
  EXPECT_EQ(died.code, 5) << died.output;
  EXPECT_THAT(died.output,
              HasSubstr("no timeline was written: the program ended without its exit"));
  EXPECT_THAT(filesNamed(file), HasSubstr("No such file"));
}

/// Waits until the process whose number `file` holds is gone, or would be if its parent asked.
std::string awaitEnd(const std::string &file) {
  return fmt::format("gone() {{ ! grep -q '^State:.[^Z]' /proc/$(cat {0})/status 2>/dev/null; }}; "
                     "for i in $(seq 100); do gone && break; sleep 0.05; done; gone",
                     file);
}

TEST(Run, TheProgramEndsWithTheTool) {
  std::signal(SIGHUP, SIG_DFL); // the parent may ignore it, as nohup does
  const std::string file = testing::TempDir() + "fp4-run-pid";
  for (const char *signal : {"KILL", "TERM", "HUP"}) {
    Outcome ended = shell(fmt::format(
        "rm -f {1}; {0} run -- sh -c 'echo $$ > {1}; exec sleep 1000' < /dev/null & "
        "while [ ! -s {1} ]; do sleep 0.02; done; kill -{2} $!; wait $!; echo code $?; {3}",
        FP4_SIM_TOOL, file, signal, awaitEnd(file)));
    EXPECT_EQ(ended.code, 0) << "it is still there: " << ended.output;
    const int number = signal[0] == 'K' ? 9 : signal[0] == 'T' ? 15 : 1;
    EXPECT_THAT(ended.output, HasSubstr(fmt::format("code {}", 128 + number))) << signal;
  }
}

/// With what it started, where they do not share our terminal.
TEST(Run, SignalsReachTheWholeGroup) {
  const std::string file = testing::TempDir() + "fp4-run-group";
  Outcome ended = shell(fmt::format(
      "rm -f {1}; {0} run -- sh -c 'sleep 1000 & echo $! > {1}; wait' < /dev/null & "
      "while [ ! -s {1} ]; do sleep 0.02; done; kill -TERM $!; wait $!; echo code $?; {2}",
      FP4_SIM_TOOL, file, awaitEnd(file)));
  EXPECT_EQ(ended.code, 0) << "it is still there: " << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("code 143"));
}

/// A program may handle a signal and end as it likes.
TEST(Run, AProgramMayHandleASignal) {
  Outcome ended = shell(fmt::format(
      "{0} run -- sh -c 'trap \"exit 7\" TERM; echo ready > {1}; while :; do sleep 0.02; done' "
      "< /dev/null & while [ ! -s {1} ]; do sleep 0.02; done; kill -TERM $!; wait $!; echo code "
      "$?; rm {1}",
      FP4_SIM_TOOL, testing::TempDir() + "fp4-run-ready"));
  EXPECT_THAT(ended.output, HasSubstr("code 7"));
}

TEST(Run, TheRuntimeOfCuda12) {
  for (const char *mode : {"scale", "queries"}) {
    Outcome result = shell(fmt::format("{} run -- {} {}", FP4_SIM_TOOL, FP4_TEST_PROGRAM_12, mode));
    EXPECT_EQ(result.code, 0) << result.output;
  }
}

/// nvcc's default: the runtime is part of the program.
TEST(Run, AStaticRuntimeIsReplaced) {
  for (const char *mode : {"scale", "queries", "managed", "capture"}) {
    Outcome result =
        shell(fmt::format("{} run -- {} {}", FP4_SIM_TOOL, FP4_TEST_PROGRAM_STATIC, mode));
    EXPECT_EQ(result.code, 0) << mode << ": " << result.output;
  }
  EXPECT_NE(shell(fmt::format("{} scale", FP4_TEST_PROGRAM_STATIC)).code, 0) << "runs its own";
  Outcome stripped =
      shell(fmt::format("{} run -- {} scale", FP4_SIM_TOOL, FP4_TEST_PROGRAM_STRIPPED));
  EXPECT_EQ(stripped.code, 2) << stripped.output;
  EXPECT_THAT(stripped.output,
              HasSubstr("has the CUDA runtime linked in statically, and no names of "
                        "its functions\nnote: link it without stripping it"));
}

/// A Python module with a runtime inside, known by the functions that it exports.
TEST(Run, TheRuntimeInsideCudaBindingsIsReplaced) {
  const std::string program =
      fmt::format("env FP4_TEST_RUNTIME={0} PYTHONPATH={1}/unittests/SimCuda/Python "
                  "PYTHONDONTWRITEBYTECODE=1 {2} python3 {1}/unittests/SimCuda/Python/bindings.py",
                  FP4_INSIDE_RUNTIME, FP4_SOURCE_DIR, "{}");
  const auto with = [&](const std::string &tool) {
    return shell(fmt::format(fmt::runtime(program), tool));
  };
  EXPECT_EQ(with("").output, "_cudaGetDeviceCount 999 -1\n_cudaDriverGetVersion 999 -1\n");
  Outcome result = with(FP4_SIM_TOOL " run --");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_EQ(result.output, "_cudaGetDeviceCount 0 1\n_cudaDriverGetVersion 0 13000\n");
}

Outcome runDriver(const std::string &mode, const std::string &options = "") {
  return shell(fmt::format("{} run {} -- {} {}", FP4_SIM_TOOL, options, FP4_DRIVER_PROGRAM, mode));
}

TEST(Run, WhatCuda13Added) {
  Outcome result = runDriver("kernels");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output,
              HasSubstr("2 kernels, first: 2 parameters, last 8+4, shared 232448 115712\n"));
  EXPECT_THAT(result.output,
              HasSubstr("2 kernels, second: 0 parameters, last 0+0, shared 231424 114688\n"));
  EXPECT_THAT(result.output, HasSubstr("grid 296, block 1024, device 0\n"));
}

TEST(Run, LookUpsAreNoCalls) {
  Outcome result = runDriver("lookups");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("two functions: 1\ncuNoSuchThing: not found, 1\n"
                                       "cuMemAlloc: not found, 2\ncuIpcCloseMemHandle: found, 0"));
  Outcome called = runDriver("missing");
  EXPECT_EQ(called.code, 4) << called.output;
  EXPECT_THAT(called.output, HasSubstr("called, but not implemented: cuIpcCloseMemHandle"));
}

/// Kernels that a program has as machine code alone.
TEST(Run, PtxByTheNamesOfKernels) {
  const std::string folder = testing::TempDir() + "fp4-ptx-dir";
  shell(fmt::format("rm -rf {0} && mkdir -p {0}/none {0}/other {0}/right", folder));
  shell(
      fmt::format("{} run -- {} ptx > {}/right/any.ptx", FP4_SIM_TOOL, FP4_DRIVER_PROGRAM, folder));
  shell(fmt::format("sed s/sm_100a/sm_90a/ {0}/right/any.ptx > {0}/other/any.ptx", folder));
  const auto run = [&](const std::string &name) {
    return runDriver("cubin", name.empty() ? "" : "--ptx-dir " + folder + "/" + name);
  };
  Outcome without = run("");
  EXPECT_EQ(without.code, 4) << without.output;
  EXPECT_THAT(without.output, HasSubstr("the image is machine code, not PTX\n"));
  EXPECT_THAT(without.output, HasSubstr("the PTX of the kernels: --ptx-dir"));
  Outcome none = run("none");
  EXPECT_THAT(none.output,
              HasSubstr("the module of kernel 'first' is machine code, not PTX; no .ptx "
                        "file of '"));
  Outcome other = run("other");
  EXPECT_THAT(other.output, HasSubstr("has PTX of the kernel for sm_90a, but not for sm_100a"));
  Outcome right = run("right");
  EXPECT_EQ(right.code, 4) << "it asks for a kernel that no file has";
  EXPECT_THAT(right.output, HasSubstr("other: 209\n"));
  EXPECT_THAT(right.output, HasSubstr("the kernel of a file: 42\n"));
  Outcome registered =
      shell(fmt::format("{0} run --dump-ptx {1} -- {2} scale && {0} run --ptx-dir {1} -- "
                        "{2} codeonly",
                        FP4_SIM_TOOL, folder, FP4_TEST_PROGRAM));
  EXPECT_EQ(registered.code, 14) << registered.output;
  EXPECT_THAT(registered.output, HasSubstr("launch: cudaSuccess"));
}

TEST(Run, EveryModuleHasADumpOfItsOwn) {
  const std::string folder = testing::TempDir() + "fp4-dumps";
  shell(fmt::format("rm -rf {0} && mkdir {0}", folder));
  EXPECT_EQ(runDriver("modules", "--dump-ptx " + folder).code, 0);
  EXPECT_EQ(shell("ls " + folder).output,
            "CudaDriverProgram.0.ptx\nCudaDriverProgram.1.ptx\nCudaDriverProgram.2.ptx\n");
}

/// The conformance suite against the stand-in, as it runs against a GPU's driver.
TEST(Run, RandomTensorMapsThroughTheDriver) {
  Outcome result =
      shell(fmt::format("FP4_DEVICE=sim FP4_CTS_LIBCUDA=libcuda.so.1 {} run --device h200 -- "
                        "{} --gtest_filter=CtsTensorMap.Random* 2>&1 | tail -1",
                        FP4_SIM_TOOL, FP4_CTS));
  EXPECT_THAT(result.output, HasSubstr("[  PASSED  ] 1 test."));
}

TEST(Run, ClusterLaunch) {
  Outcome result = run("cluster");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("without the attribute: cudaErrorInvalidValue"));
  EXPECT_THAT(result.output, HasSubstr("with 65536 bytes of dynamic shared memory, but the kernel "
                                       "allows 49152"));
  EXPECT_THAT(result.output, HasSubstr("0 1 2 3 0 1 2 3 \n"));
}

TEST(Run, BlocksAreClusters) {
  Outcome result = run("pairs");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("32 33 32 33\n"));
  EXPECT_THAT(result.output, HasSubstr("with other threads: cudaErrorInvalidConfiguration\n"));
  EXPECT_THAT(result.output, HasSubstr("requires CTAs of (32,1,1) (.reqntid), but got (64,1,1)"));
}

/// A CTA of Rubin that has an SM alone may have 327 KiB.
TEST(Run, OversizedSharedMemory) {
  Outcome result = run("oversized", "--device vr200");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("334848 bytes: cudaSuccess\n"));
  EXPECT_THAT(result.output, HasSubstr("334849 bytes: cudaErrorInvalidValue\n"));
}

TEST(Run, PreferredClusters) {
  const std::string two = "0 1 0 1 ", four = "0 1 2 3 ";
  for (auto [sizes, ranks] : {std::pair("preferred", four + four), {"fallback", two + two}}) {
    Outcome result = run("preferred", fmt::format("--clusters {}", sizes));
    EXPECT_EQ(result.code, 0) << result.output;
    EXPECT_THAT(result.output, HasSubstr("clusters of 3: cudaErrorInvalidConfiguration\n"));
    EXPECT_THAT(result.output, HasSubstr("clusters of 4: cudaSuccess\n" + ranks + "\n"));
  }
  EXPECT_THAT(run("preferred").output,
              ::testing::AnyOf(HasSubstr(two + four + "\n"), HasSubstr(four + two + "\n")));
}

TEST(Run, AFaultIsExplainedAndSticks) {
  Outcome result = run("wild");
  EXPECT_EQ(result.code, 5) << result.output;
  EXPECT_THAT(result.output, HasSubstr("kernel 'wild', CTA (0,0,0), warp 0"));
  EXPECT_THAT(result.output, HasSubstr("4064 bytes past the end of 'cudaMalloc #1' (32 bytes"));
  EXPECT_THAT(result.output, HasSubstr("synchronize: cudaErrorLaunchFailure"));
  EXPECT_THAT(result.output, HasSubstr("copy: cudaErrorLaunchFailure"));
  EXPECT_THAT(result.output, HasSubstr("fp4-sim: a kernel failed"));
}

TEST(Run, AKernelThatSpinsForEverIsEnded) {
  Outcome spins = run("spin");
  EXPECT_EQ(spins.code, 5) << spins.output;
  EXPECT_THAT(spins.output, HasSubstr("livelock: warps repeat loops in which nothing changes"));
  EXPECT_THAT(spins.output,
              HasSubstr("reads 4 bytes of global 0x1000000000 ('cudaMalloc #1' + 0), which "
                        "is 0x0: ld.volatile.global.u32 %r1, [%rd1];"));
  Outcome passes = run("spun");
  EXPECT_EQ(passes.code, 0) << passes.output;
  EXPECT_THAT(passes.output, HasSubstr("spun: cudaSuccess"));
  EXPECT_EQ(run("spun", "--limit -3").code, 2);
}

TEST(Run, OnlyTheKernelWithAnUnknownInstructionIsRefused) {
  Outcome result = run("unknown");
  EXPECT_EQ(result.code, 5) << result.output;
  EXPECT_THAT(result.output, HasSubstr("unknown instruction 'frobnicate.sync.aligned'"));
  EXPECT_THAT(result.output, HasSubstr("launch: cudaErrorNotSupported"));
}

TEST(Run, NeedsPtxForTheDevice) {
  Outcome codeOnly = run("codeonly");
  EXPECT_EQ(codeOnly.code, 4) << codeOnly.output;
  EXPECT_THAT(codeOnly.output,
              HasSubstr("the module of kernel 'scale' has no PTX, but machine code for sm_100"));
  EXPECT_THAT(codeOnly.output, HasSubstr("launch: cudaErrorNoKernelImageForDevice"));
  Outcome other = run("hopper");
  EXPECT_EQ(other.code, 4) << other.output;
  EXPECT_THAT(other.output, HasSubstr("has PTX for sm_90a, but not for sm_100a"));
  Outcome fits = run("hopper", "--device h200");
  EXPECT_EQ(fits.code, 14) << fits.output;
  EXPECT_THAT(fits.output, HasSubstr("launch: cudaSuccess"));
}

TEST(Run, AMissingFunctionIsNamedOnce) {
  Outcome result = run("missing");
  EXPECT_EQ(result.code, 4) << result.output;
  EXPECT_THAT(result.output, HasSubstr("fp4-sim: cudaIpcGetMemHandle is not implemented\n"));
  EXPECT_THAT(result.output, HasSubstr("ipc: cudaErrorNotSupported\nipc: cudaErrorNotSupported"));
  EXPECT_THAT(result.output,
              HasSubstr("fp4-sim: called, but not implemented: cudaIpcGetMemHandle\n"));
}

/// Modes of the program that check themselves.
TEST(Run, MemoryForBothSides) {
  std::vector<const char *> modes = {"managed", "mapped"};
#ifndef FP4_SANITIZED // which keep their shadow where the variables of a device lie
  modes.push_back("variable");
#endif
  for (const char *mode : modes)
    for (const char *options : {"", "--check strict"}) {
      Outcome result = run(mode, options);
      EXPECT_EQ(result.code, 0) << mode << ": " << result.output;
    }
}

TEST(Run, Graphs) {
  for (const char *program : {FP4_TEST_PROGRAM, FP4_TEST_PROGRAM_12})
    for (const char *mode : {"capture", "nodes", "memory"}) {
      Outcome result = shell(fmt::format("{} run -- {} {}", FP4_SIM_TOOL, program, mode));
      EXPECT_EQ(result.code, 0) << mode << ": " << result.output;
    }
}

TEST(Run, CopiesOfRowsAndOrderOfNodes) {
  for (const char *mode : {"pitched", "sliced", "ordered", "updated"}) {
    Outcome result = run(mode);
    EXPECT_EQ(result.code, 0) << mode << ": " << result.output;
  }
}

TEST(Run, WhatIsRefused) {
  Outcome result = run("refusals");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("direction: cudaErrorInvalidMemcpyDirection"));
  EXPECT_THAT(result.output, HasSubstr("fill of host memory: cudaErrorInvalidValue"));
  EXPECT_THAT(result.output, HasSubstr("fill of freed memory: cudaErrorInvalidValue"));
  EXPECT_THAT(result.output, HasSubstr("free of registered memory: cudaErrorInvalidValue"));
  EXPECT_THAT(result.output, HasSubstr("merge: cudaErrorStreamCaptureMerge"));
  EXPECT_THAT(result.output, HasSubstr("end: cudaErrorStreamCaptureInvalidated"));
}

TEST(Run, PlacesThatAreMissingAreErrors) {
  Outcome result = runDriver("nothing");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("1 1 1 1 1 1 1 1 1 1 1 1 1 1 "));
  EXPECT_THAT(result.output, HasSubstr("cuMemsetD8: writes 64 bytes of device memory at"));
}

/// As the driver documents: INVALID_CONTEXT, INVALID_HANDLE and, of graphs, INVALID_VALUE.
TEST(Run, HandlesOfNothingAreErrors) {
  Outcome result = runDriver("handles");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("live: context 0 0; stream 0 0 0 0 0; event 0 0 0 0; "
                                       "graph 0 0 0 1; module 0; function 0 0\n"));
  EXPECT_THAT(result.output,
              HasSubstr("destroyed: context 0 0; stream 400 400 400 400 400; event 400 400 400 "
                        "400; graph 1 1 1 1; module 400; function 400 400\n"));
  EXPECT_THAT(result.output,
              HasSubstr("nobody's: context 201 201; stream 400 400 400 400 400; event 400 400 400 "
                        "400; graph 1 1 1 1; module 400; function 400 400\n"));
  EXPECT_THAT(result.output, HasSubstr("again: 400 400 1 400\n"));
  EXPECT_THAT(result.output, HasSubstr("captured: 400\n"));
  EXPECT_THAT(result.output, HasSubstr("cuModuleGetFunction: "));
  EXPECT_THAT(result.output, HasSubstr("must be the handle of a live object"));
}

/// Each limit with a value that just reaches it. A limit of memory is the chip's, not the host's.
TEST(Run, LimitsOfTheDevice) {
  Outcome result = run("limits");
  EXPECT_EQ(result.code, 0) << result.output;
  for (const char *axis : {"y", "z"}) {
    EXPECT_THAT(result.output, HasSubstr(fmt::format("65535 in {}: cudaSuccess", axis)));
    EXPECT_THAT(result.output,
                HasSubstr(fmt::format("65536 in {}: cudaErrorInvalidConfiguration", axis)));
  }
  EXPECT_THAT(result.output, HasSubstr("the grid must have at most 65535 CTAs in y and z, but got "
                                       "65536 and 1"));
  EXPECT_THAT(result.output, HasSubstr("two for each SM: cudaSuccess"));
  EXPECT_THAT(result.output, HasSubstr("a cooperative grid of 297 CTAs, but 296 fit at once"));
  EXPECT_THAT(result.output, HasSubstr("one more: cudaErrorCooperativeLaunchTooLarge"));
  // on 148 SMs, and on 132 of them, two CTAs on each
  EXPECT_THAT(result.output, HasSubstr("clusters of 2: 148\nclusters of 4: 66\n"));
  EXPECT_THAT(result.output, HasSubstr("CTAs of 64 threads: 32, of 65: 21\n"));
  EXPECT_THAT(result.output, HasSubstr("more than the memory: cudaErrorMemoryAllocation"));
  EXPECT_THAT(result.output, Not(HasSubstr("has no memory left")));
}

TEST(Run, WhatACaptureDoesNotAllow) {
  Outcome result = run("errors");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("default stream: cudaErrorStreamCaptureUnsupported"));
  EXPECT_THAT(result.output, HasSubstr("synchronize: cudaErrorStreamCaptureUnsupported"));
  EXPECT_THAT(result.output, HasSubstr("end: cudaErrorStreamCaptureInvalidated"));
  EXPECT_THAT(result.output, HasSubstr("legacy: cudaErrorStreamCaptureImplicit"));
  for (const char *what : {"device", "default"}) {
    EXPECT_THAT(result.output,
                HasSubstr(fmt::format("\n{}: cudaErrorStreamCaptureUnsupported", what)));
    EXPECT_THAT(result.output,
                HasSubstr(fmt::format("end after {}: cudaErrorStreamCaptureInvalidated", what)));
  }
  EXPECT_THAT(result.output, HasSubstr("unjoined: cudaErrorStreamCaptureUnjoined"));
  EXPECT_THAT(result.output, HasSubstr("record an event there"));
}

TEST(Run, AHostAccessToDeviceMemoryIsExplained) {
  Outcome result = run("touch");
  EXPECT_EQ(result.code, 5) << result.output;
  EXPECT_THAT(result.output, HasSubstr("the host accesses device memory: 0x1000000008 lies in "
                                       "'cudaMalloc #1' (32 bytes at 0x1000000000)"));
  EXPECT_THAT(result.output, HasSubstr("ended by signal 11"));
}

TEST(Run, BadCopiesAreExplained) {
  Outcome result = run("copies");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("long: cudaErrorInvalidValue"));
  EXPECT_THAT(result.output, HasSubstr("reads 64 bytes of device memory at 0x1000000000, which is "
                                       "out of bounds"));
  EXPECT_THAT(result.output, HasSubstr("direction: cudaErrorInvalidValue"));
  EXPECT_THAT(result.output, HasSubstr("reads host memory, but 0x1000000010 is a device address"));
  EXPECT_THAT(result.output, HasSubstr("host source: cudaErrorInvalidValue"));
  EXPECT_THAT(result.output, HasSubstr("writes host memory, but 0x1000000010 is a device address"));
  EXPECT_THAT(result.output, HasSubstr("host destination: cudaErrorInvalidValue"));
  EXPECT_THAT(result.output, HasSubstr("both on the device: cudaSuccess"));
  EXPECT_THAT(result.output, HasSubstr("free: cudaErrorInvalidValue"));
  EXPECT_THAT(result.output, HasSubstr("11111111, last error cudaErrorInvalidValue"));
}

TEST(Run, TheDeviceIsTheOneChosen) {
  EXPECT_THAT(run("queries").output, HasSubstr("NVIDIA B200, 148 SMs, 2 CTAs, time passes"));
  EXPECT_THAT(run("queries", "--device h200").output, HasSubstr("NVIDIA H200, 132"));
  Outcome unknown = run("queries", "--device voodoo");
  EXPECT_EQ(unknown.code, 2) << unknown.output;
}

TEST(Run, TensorMapsThroughTheDriver) {
  Outcome result = run("tensormap");
  EXPECT_EQ(result.code, 0) << result.output; // to ask for cuNoSuchThing is not to call it
  EXPECT_THAT(result.output, HasSubstr("status 0\n"));
  EXPECT_THAT(result.output, HasSubstr("status 1\n"));
  EXPECT_THAT(result.output, HasSubstr("stride: cudaErrorInvalidValue"));
  EXPECT_THAT(result.output, HasSubstr("cuTensorMapEncodeTiled: "));
  EXPECT_THAT(result.output,
              HasSubstr("no strides: cudaErrorInvalidValue, of one dimension: cudaSuccess"));
  EXPECT_THAT(result.output,
              HasSubstr("corner 0: cudaSuccess, 65536: cudaErrorInvalidValue, lower: "
                        "cudaErrorInvalidValue; no strides: cudaErrorInvalidValue"));
}

TEST(Run, OwnExitCodesPass) {
  EXPECT_EQ(shell(std::string(FP4_SIM_TOOL) + " run -- sh -c 'exit 42'").code, 42);
  Outcome crash = shell(std::string(FP4_SIM_TOOL) + " run -- sh -c 'kill -9 $$'");
  EXPECT_EQ(crash.code, 128 + 9);
  EXPECT_THAT(crash.output, HasSubstr("the program ended by signal 9"));
  Outcome absent = shell(std::string(FP4_SIM_TOOL) + " run -- ./no/such/program");
  EXPECT_EQ(absent.code, 2);
  EXPECT_THAT(absent.output, HasSubstr("cannot execute './no/such/program'"));
}

} // namespace
