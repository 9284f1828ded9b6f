//===- ProcessTest.cpp - Other programs, and threads ----------------------===//
#include "fp4/Support/Process.h"
#include "fp4/Support/Threads.h"

#include <atomic>
#include <gmock/gmock.h>
#include <stdexcept>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fp4;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

namespace {

Expected<ProcessResult> shell(const std::string &command, std::chrono::milliseconds limit = 60s) {
  return runProcess({"/bin/sh", "-c", command}, limit);
}

TEST(Process, GivesCodeAndOutput) {
  auto result = shell("echo out; echo err >&2; cat; exit 3");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->code, 3);
  EXPECT_EQ(result->output, "out\nerr\n");
  EXPECT_EQ(result->ending(60s), "ended with code 3");
  EXPECT_EQ(shell("exit 255")->ending(60s), "ended with code 255"); // there is no signal 127
  EXPECT_EQ(shell("head -c 3000000 /dev/zero")->output.size(), size_t(1) << 20);
  EXPECT_EQ(shell("kill -9 $$")->ending(60s), "was ended by signal 9 (Killed)");
}

TEST(Process, ThatIsNoneIsAnError) {
  EXPECT_EQ(runProcess({"/no/such/program"}, 1s).error().message,
            "cannot run '/no/such/program': No such file or directory");
  EXPECT_EQ(runProcess({"/"}, 1s).error().message, "cannot run '/': Permission denied");
}

/// With what it started, which would write to the file otherwise.
TEST(Process, IsKilledAtTheLimit) {
  const std::string file = testing::TempDir() + "fp4-process-" + std::to_string(getpid());
  auto result = shell("(sleep 1; touch " + file + ") & echo begun; sleep 600", 300ms);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->timedOut);
  EXPECT_EQ(result->output, "begun\n");
  EXPECT_EQ(result->ending(300ms), "has not ended after 0.3 s");
  usleep(1'200'000);
  EXPECT_NE(access(file.c_str(), F_OK), 0);
  EXPECT_FALSE(shell("sleep 0.1", 20s)->timedOut);
}

/// A process in the background keeps the output open, and is not waited for.
TEST(Process, IsNotKeptByItsChildren) {
  auto start = std::chrono::steady_clock::now();
  auto result = shell("sleep 30 & echo done");
  EXPECT_EQ(result->output, "done\n");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
}

TEST(Threads, ShareTheWork) {
  std::atomic<int> next = 0, sum = 0;
  onThreads(4, [&] {
    for (int i; (i = next++) < 100;)
      sum += i;
  });
  EXPECT_EQ(sum, 4950);
  EXPECT_EQ(threadCount(3), 3u);
  EXPECT_GE(threadCount(0), 1u);
}

TEST(Threads, HandOnWhatIsThrown) {
  EXPECT_THROW(onThreads(3, [] { throw std::runtime_error("work"); }), std::runtime_error);
}

/// The limit on processes does not hold for root: the child becomes another user.
TEST(Threads, AreFewerWhereTheSystemHasNoMore) {
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t otherUser = 54321;
    const rlimit limit{20, 20};
    setrlimit(RLIMIT_NPROC, &limit);
    if (getuid() == 0 && setuid(otherUser) != 0)
      _exit(2);
    std::atomic<int> next = 0, sum = 0, workers = 0;
    onThreads(1000, [&] {
      ++workers;
      for (int i; (i = next++) < 1000; usleep(100))
        sum += i;
    });
    _exit(sum == 499'500 && workers <= 20 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

} // namespace
