//===- DependentLaunchTest.cpp - Programmatic dependent launch --------------===//
#include "Shell.h"
#include <fmt/format.h>
#include <gmock/gmock.h>

using namespace fp4::simcuda::test;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

Outcome run(const std::string &form, const std::string &chain, const std::string &options = "") {
  return shell(fmt::format("{} run {} -- {} {} {}", FP4_SIM_TOOL, options,
                           FP4_DEPENDENT_LAUNCH_PROGRAM, form, chain));
}

constexpr const char *kAttribute = "cudaLaunchAttributeProgrammaticStreamSerialization";

struct Form {
  const char *name, *by; ///< names in the report
};
constexpr Form kForms[] = {{"stream", kAttribute},
                           {"legacy", kAttribute},
                           {"graph", kAttribute},
                           {"two", kAttribute},
                           {"driver", "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION"},
                           {"events", "cudaLaunchAttributeProgrammaticEvent"},
                           {"completions", "cudaLaunchAttributeLaunchCompletionEvent"},
                           {"graph-events", "an edge of type cudaGraphDependencyTypeProgrammatic"},
                           {"edges", "an edge of type cudaGraphDependencyTypeProgrammatic"},
                           {"begin-edges", "an edge of type cudaGraphDependencyTypeProgrammatic"},
                           {"recorded", kAttribute},
                           {"unrelated", kAttribute}};

TEST(DependentLaunch, WhatDoesNotWaitIsReportedInEveryForm) {
  for (const Form &form : kForms)
    for (const char *chain :
         {"unwaited", "middle", "early", "overwritten", "untriggered", "long"}) {
      const Outcome result = run(form.name, chain);
      EXPECT_EQ(result.code, 6) << form.name << " " << chain << ": " << result.output;
      EXPECT_THAT(result.output, HasSubstr("[missing-grid-wait]"));
      EXPECT_THAT(result.output, HasSubstr(fmt::format("note: by {} the launch may ", form.by)))
          << form.name << " " << chain;
    }
}

TEST(DependentLaunch, WhatWaitsIsCleanInEveryForm) {
  for (const Form &form : kForms)
    for (const char *chain :
         {"right", "overwritten-right", "untriggered-right", "long-right", "weights"}) {
      const Outcome result = run(form.name, chain, "--check strict");
      EXPECT_EQ(result.code, 0) << form.name << " " << chain << ": " << result.output;
    }
}

/// A launch begins behind the triggers of the one before, or where it is told so, behind its begin.
TEST(DependentLaunch, ATriggerBehindTheWaitEndsWhatWasWaitedFor) {
  for (const Form &form : kForms) {
    const std::string name = form.name;
    const bool atBegin = name == "completions" || name == "begin-edges";
    const Outcome result = run(name, "late-triggers");
    EXPECT_EQ(result.code, atBegin ? 6 : 0) << name << ": " << result.output;
  }
}

/// The launches of these begin when everything before them has ended.
TEST(DependentLaunch, OrdinaryOrderNeedsNoWait) {
  for (const char *form : {"ordinary", "full-edges", "synchronized", "device", "filled", "crossed",
                           "returned", "asked"}) {
    const Outcome result = run(form, "unwaited");
    EXPECT_EQ(result.code, 0) << form << ": " << result.output;
  }
}

TEST(DependentLaunch, ACaptureMakesProgrammaticEdges) {
  EXPECT_THAT(run("graph", "right").output, HasSubstr("edge of type 1 from port 1\n0 63\n"));
}

/// A policy that lets launches begin early shows what they read too early.
TEST(DependentLaunch, PoliciesChooseWhenALaunchBegins) {
  const auto result = [](const char *chain, const char *policy) {
    return run("stream", chain, std::string("--check off --policy ") + policy).output;
  };
  for (const char *policy : {"eager", "lazy", "random", "random --seed 2", "delay"}) {
    EXPECT_EQ(result("right", policy), "0 63\n") << policy;
    EXPECT_EQ(result("long-right", policy), "0 63\n") << policy;
  }
  for (const char *chain : {"unwaited", "middle", "early"}) {
    EXPECT_EQ(result(chain, "eager"), "0 63\n") << chain;
    EXPECT_EQ(result(chain, "lazy"), "0 0\n") << chain;
  }
}

TEST(DependentLaunch, UnknownAttributesAreNamedOnce) {
  const Outcome result = run("unknown", "right");
  EXPECT_EQ(result.code, 0) << result.output;
  for (const char *name : {"15", "99", "cudaLaunchAttributeDeviceUpdatableKernelNode"}) {
    const std::string text = fmt::format(
        "warning: cudaLaunchKernelExC: launch attribute {} is not known to the simulator\n", name);
    const size_t first = result.output.find(text);
    EXPECT_NE(first, std::string::npos) << name << result.output;
    EXPECT_EQ(result.output.find(text, first + 1), std::string::npos) << name;
  }
  EXPECT_THAT(result.output, Not(HasSubstr("Priority")));
}

/// The simulator's memory of launches that have ended does not grow with each wait.
TEST(DependentLaunch, WaitsOfTheHostAreCounted) {
  const Outcome result = run("waited-for", "right");
  EXPECT_EQ(result.code, 0) << result.output;
}

TEST(DependentLaunch, EventsOfLaunchesHaveNoTimes) {
  const Outcome result = run("bad-events", "right");
  EXPECT_THAT(result.output, HasSubstr("no event: cudaErrorInvalidValue"));
  EXPECT_THAT(result.output, HasSubstr("timed: cudaErrorInvalidValue"));
  EXPECT_THAT(result.output, HasSubstr("destroyed: cudaErrorInvalidResourceHandle"));
}

} // namespace
