//===- SearchTest.cpp - A descent to the plans of the shortest prediction -===//
//
// Kernels here have plans "x y" of two digits. The time of a kernel is known, so the tests know the
// plans that a search must find.
//
//===----------------------------------------------------------------------===//

#include "fp4/Tuning/Search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace fp4;
using namespace fp4::tuning;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

/// A program whose kernel i takes 10 + i us more than the distance of its plan from `fastest`.
class Digits : public Predictor {
public:
  explicit Digits(Plans fastest) : fastest(std::move(fastest)) {}

  Expected<harness::TimedProgram> predict(const Plans &plans) override {
    asked.push_back(plans);
    for (const Plans &bad : doNotCompile)
      if (plans == bad)
        return makeError(kind, "the plan is bad", "");
    harness::TimedProgram timed;
    for (size_t i = 0; i < plans.size(); ++i) {
      sim::KernelTime time;
      time.microseconds = 10 + double(i) + distance(plans[i], fastest[i]) * step;
      timed.launches.push_back({"kernel", time});
    }
    return timed;
  }

  std::vector<PlanChange> changesOf(const Plans &plans, size_t kernel) override {
    std::vector<PlanChange> changes;
    const std::string &plan = plans[kernel];
    for (char digit = '0'; digit <= '4'; ++digit) {
      changes.push_back({"x", {digit, ' ', plan[2]}});
      changes.push_back({"y", {plan[0], ' ', digit}});
    }
    return changes;
  }

  static double distance(const std::string &x, const std::string &y) {
    return std::abs(x[0] - y[0]) + std::abs(x[2] - y[2]);
  }

  Plans fastest;
  double step = 1; ///< microseconds of a digit
  std::vector<Plans> doNotCompile, asked;
  ErrorKind kind = ErrorKind::Compile;
};

TEST(Search, FindsTheFastestPlanOfEachKernel) {
  Digits program({"3 1", "0 4"});
  Search search(program, 1000);
  ASSERT_TRUE(search.predict({"0 0", "0 0"}));
  ASSERT_TRUE(search.descend());
  EXPECT_THAT(search.trials[search.best].plans, ElementsAre("3 1", "0 4"));
  EXPECT_EQ(search.trials[search.best].microseconds, 21);
  EXPECT_EQ(search.predictions, search.trials.size());
}

TEST(Search, AsksForEachPlanOnce) {
  Digits program({"3 1"});
  Search search(program, 1000);
  ASSERT_TRUE(search.predict({"0 0"}));
  ASSERT_TRUE(search.descend());
  std::vector<Plans> once = program.asked;
  std::sort(once.begin(), once.end());
  EXPECT_EQ(std::unique(once.begin(), once.end()), once.end());
}

TEST(Search, EndsAtItsLimitAndSaysHowFarItIs) {
  Digits program({"4 4"});
  Search search(program, 5);
  ASSERT_TRUE(search.predict({"0 0"}));
  std::vector<uint64_t> shown;
  ASSERT_TRUE(search.descend([&](uint64_t done, uint64_t total) {
    shown.push_back(done);
    EXPECT_EQ(total, 5u);
  }));
  EXPECT_EQ(search.predictions, 5u);
  EXPECT_THAT(shown, ElementsAre(2, 3, 4, 4, 5)) << "all is done at the end, and not before";
}

TEST(Search, TakesNoStepThatIsHardlyBetter) {
  Digits program({"1 0"});
  program.step = 0.01; // of 10 us: 0.1 %
  Search search(program, 1000);
  ASSERT_TRUE(search.predict({"0 0"}));
  ASSERT_TRUE(search.descend());
  EXPECT_EQ(search.best, 0u);
  program.step = 1;
  Search twin(program, 1000);
  ASSERT_TRUE(twin.predict({"0 0"}));
  ASSERT_TRUE(twin.descend());
  EXPECT_THAT(twin.trials[twin.best].plans, ElementsAre("1 0"));
}

TEST(Search, PassesOverPlansThatDoNotCompile) {
  Digits program({"3 0"});
  program.doNotCompile = {{"3 0"}};
  Search search(program, 1000);
  ASSERT_TRUE(search.predict({"0 0"}));
  ASSERT_TRUE(search.descend());
  EXPECT_EQ(Digits::distance(search.trials[search.best].plans[0], "3 0"), 1);
  EXPECT_THAT(search.notes, IsEmpty()) << "the compiler refuses many plans";
}

TEST(Search, SaysWhichPlanFailsInAnotherWay) {
  Digits program({"3 0"});
  program.doNotCompile = {{"3 0"}};
  program.kind = ErrorKind::Simulation;
  Search search(program, 1000);
  ASSERT_TRUE(search.predict({"0 0"}));
  ASSERT_TRUE(search.descend());
  EXPECT_THAT(search.notes, Contains(HasSubstr("a plan was passed over: 3 0: the plan is bad")));
}

TEST(Search, NeedsThePlansOfTheCompiler) {
  Digits program({"3 0"});
  program.doNotCompile = {{"0 0"}};
  Search search(program, 1000);
  auto first = search.predict({"0 0"});
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().message, "the plan is bad");
}

TEST(Search, DescribesThePlansThatDiffer) {
  EXPECT_EQ(describePlans({"0 0", "1 1"}, {"0 0", "1 1"}), "the plans of the compiler");
  EXPECT_EQ(describePlans({"0 0", "1 2"}, {"0 0", "1 1"}), "kernel 1: 1 2");
  EXPECT_EQ(describePlans({"1 2"}, {"1 1"}), "1 2");
}

} // namespace
