//===- ForkedWorkTest.cpp - Pieces of work that may crash or never end ----===//
#include "fp4/Support/ForkedWork.h"

#include <csignal>
#include <gmock/gmock.h>
#include <map>
#include <stdexcept>
#include <unistd.h>

using namespace fp4;
using namespace std::chrono_literals;
using End = ForkedResult::End;

namespace {

using Results = std::map<size_t, ForkedResult>;

Results all(size_t items, unsigned processes, std::chrono::milliseconds limit,
            const std::function<void(size_t, const Finish &)> &work) {
  Results results;
  const Status status = forEachForked(items, processes, limit, work, [&](size_t item, auto result) {
    EXPECT_FALSE(results.contains(item));
    results[item] = std::move(result);
  });
  EXPECT_TRUE(status);
  return results;
}

TEST(ForkedWork, GivesEachResultOnce) {
  for (unsigned processes : {0u, 1u, 3u}) {
    const Results results = all(7, processes, 60s, [](size_t item, const Finish &finish) {
      finish(std::string(100'000 * item, char('a' + item)));
    });
    ASSERT_EQ(results.size(), 7u);
    for (const auto &[item, result] : results) {
      EXPECT_EQ(result.end, End::Finished);
      EXPECT_EQ(result.text, std::string(100'000 * item, char('a' + item)));
    }
  }
  EXPECT_TRUE(all(0, 1, 60s, {}).empty());
}

/// Whatever a piece of work does, the others have their results.
TEST(ForkedWork, OutlivesWhatCrashesOrHangs) {
  const Results results = all(6, 2, 500ms, [](size_t item, const Finish &finish) {
    if (item == 0)
      raise(SIGSEGV);
    if (item == 1)
      sleep(600);
    if (item == 2)
      throw std::runtime_error("nobody catches this");
    if (item == 3)
      return; // without a result
    finish("done");
    abort();
  });
  EXPECT_EQ(results.at(0).end, End::Crashed);
  EXPECT_EQ(results.at(0).signal, SIGSEGV);
  EXPECT_EQ(results.at(1).end, End::TimedOut);
  for (size_t item : {2, 3}) {
    EXPECT_EQ(results.at(item).end, End::Crashed);
    EXPECT_EQ(results.at(item).signal, 0);
  }
  for (size_t item : {4, 5}) {
    EXPECT_EQ(results.at(item).end, End::Finished);
    EXPECT_EQ(results.at(item).text, "done");
  }
}

/// A copy changes nothing here, and prints nothing.
TEST(ForkedWork, WorksOnACopy) {
  int counter = 0;
  testing::internal::CaptureStdout();
  std::printf("once ");
  all(3, 1, 60s, [&](size_t, const Finish &finish) {
    ++counter;
    std::puts("never");
    std::fflush(stdout);
    finish("");
  });
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "once ");
  EXPECT_EQ(counter, 0);
}

} // namespace
