//===- FileTest.cpp - Files read and written whole ------------------------===//
#include "fp4/Support/InputFile.h"
#include "fp4/Support/OutputFile.h"
#include "fp4/Support/TemporaryFolder.h"

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fp4;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
namespace fs = std::filesystem;

namespace {

/// An empty folder for each test.
class Files : public testing::Test {
protected:
  /// The parent process may ignore some signals, as nohup does; then nothing would end by them.
  static void SetUpTestSuite() {
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE})
      std::signal(signal, SIG_DFL);
  }
  void SetUp() override {
    folder = testing::TempDir() + "fp4-files-" + std::to_string(getpid());
    fs::remove_all(folder);
    fs::create_directories(folder);
  }
  void TearDown() override { fs::remove_all(folder); }

  std::string in(const std::string &name) const { return folder + "/" + name; }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto &entry : fs::directory_iterator(folder))
      names.push_back(entry.path().filename());
    return names;
  }

  std::string folder;
};

std::string messageOf(const Status &status) { return status ? "" : status.error().message; }

/// The status of a process that does `work`, and with no signal before ends with its result.
int inChild(const std::function<int()> &work) {
  const pid_t child = fork();
  if (child == 0)
    _exit(work());
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

TEST_F(Files, AppearWhenTheyAreCommitted) {
  auto file = OutputFile::open(in("a"));
  ASSERT_TRUE(file) << file.error().message;
  (*file)->stream() << "text";
  EXPECT_FALSE(fs::exists(in("a")));
  ASSERT_TRUE((*file)->commit());
  EXPECT_EQ(readText(in("a")).value(), "text");
  EXPECT_THAT(names(), UnorderedElementsAre("a"));
  EXPECT_THAT(messageOf((*file)->commit()), HasSubstr("is committed twice"));
}

TEST_F(Files, WithoutACommitTheOldOneStays) {
  ASSERT_TRUE(writeFile(in("a"), "old"));
  {
    auto file = OutputFile::open(in("a"));
    ASSERT_TRUE(file);
    (*file)->stream() << std::string(1 << 20, 'x') << std::flush;
  }
  EXPECT_EQ(readText(in("a")).value(), "old");
  EXPECT_THAT(names(), UnorderedElementsAre("a"));
  ASSERT_TRUE(writeFile(in("a"), "new"));
  EXPECT_EQ(readText(in("a")).value(), "new");
}

/// A limit on the size of files stands for a full disk: the system refuses part of the bytes.
TEST_F(Files, AreNotWrittenInPart) {
  ASSERT_TRUE(writeFile(in("a"), "old"));
  auto limited = [&](rlim_t bytes) {
    return inChild([&] {
      const rlimit limit{bytes, bytes};
      setrlimit(RLIMIT_FSIZE, &limit);
      Status written = writeFile(in("a"), std::string(100'000, 'x'));
      if (written)
        return 0;
      EXPECT_EQ(written.error().kind, ErrorKind::Usage);
      EXPECT_THAT(written.error().message, HasSubstr("cannot write '" + in("a") + "': File too"));
      return testing::Test::HasFailure() ? 1 : exitCode(written.error());
    });
  };
  EXPECT_EQ(WEXITSTATUS(limited(50'000)), 2);
  EXPECT_EQ(readText(in("a")).value(), "old");
  EXPECT_THAT(names(), UnorderedElementsAre("a"));
  EXPECT_EQ(limited(100'000), 0);
  EXPECT_EQ(readText(in("a")).value().size(), 100'000u);
}

TEST_F(Files, AreRemovedByTheSignalThatEndsTheProcess) {
  ASSERT_TRUE(writeFile(in("a"), "old"));
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    const int status = inChild([&] {
      auto file = OutputFile::open(in("a"));
      auto temporary = TemporaryFile::create("test");
      (*file)->stream() << "half" << std::flush;
      if (names().size() != 2 || !fs::exists((*temporary)->path()))
        return 1;
      fs::create_hard_link((*temporary)->path(), in("link"));
      std::raise(signal);
      return 0;
    });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    EXPECT_THAT(names(), UnorderedElementsAre("a", "link"));
    EXPECT_EQ(fs::hard_link_count(in("link")), 1u) << "the temporary file is still there";
    fs::remove(in("link"));
  }
  EXPECT_EQ(readText(in("a")).value(), "old");
}

/// The path of a folder is in `link`, so that the test finds it.
TEST_F(Files, AFolderGoesWithItsFiles) {
  const auto make = [&](int signal) {
    return inChild([&] {
      auto folder = TemporaryFolder::create("test");
      fs::remove(in("link"));
      fs::create_symlink((*folder)->path(), in("link"));
      for (int i = 0; i < 200; ++i)
        (void)writeFile(in("link") + "/file" + std::to_string(i), "text");
      if (signal)
        std::raise(signal);
      return fs::exists(in("link")) ? 0 : 1;
    });
  };
  EXPECT_EQ(make(0), 0);
  EXPECT_FALSE(fs::exists(fs::read_symlink(in("link"))));
  EXPECT_EQ(WTERMSIG(make(SIGTERM)), SIGTERM);
  EXPECT_FALSE(fs::exists(fs::read_symlink(in("link"))));
}

/// Another file has the name that would be the first one.
TEST_F(Files, LeaveTheFilesOfOthersToThem) {
  const int status = inChild([&] {
    const std::string taken = "a.tmp." + std::to_string(getpid()) + ".0";
    (void)writeFile(in(taken), "foreign");
    auto file = OutputFile::open(in("a"));
    (*file)->stream() << "half" << std::flush;
    if (names().size() != 2)
      return 1;
    fs::rename(in(taken), in("foreign")); // and has the name again when the signal comes
    fs::create_hard_link(in("foreign"), in(taken));
    std::raise(SIGTERM);
    return 0;
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  EXPECT_EQ(fs::hard_link_count(in("foreign")), 2u) << "the file of others is gone";
  EXPECT_EQ(names().size(), 2u) << "the unfinished file is still there";
}

/// A program that handles a signal goes on, and its files with it.
TEST_F(Files, OutliveASignalThatTheProgramHandles) {
  EXPECT_EQ(inChild([&] {
              std::signal(SIGTERM, [](int) {});
              auto file = OutputFile::open(in("a"));
              (*file)->stream() << "text";
              std::raise(SIGTERM);
              return (*file)->commit() ? 0 : 1;
            }),
            0);
  EXPECT_EQ(readText(in("a")).value(), "text");
}

TEST_F(Files, SayWhyTheyCannotBeWritten) {
  EXPECT_THAT(messageOf(writeFile(in("none/a"), "text")),
              HasSubstr("cannot write '" + in("none/a") + "': No such file or directory"));
  EXPECT_THAT(messageOf(writeFile(folder, "text")), HasSubstr("it is a directory"));
  EXPECT_THAT(messageOf(writeFile("/dev/full", "text")),
              HasSubstr("cannot write '/dev/full': No space left on device"));
  EXPECT_TRUE(writeFile("/dev/null", "text"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_TRUE(checkDestination("/dev/null"));
  EXPECT_TRUE(checkDestination(in("a")));
  EXPECT_THAT(messageOf(checkDestination(in("none/a"))), HasSubstr("No such file"));
  EXPECT_TRUE(names().empty());
}

/// The target of a rename must still be a file: here it became a folder meanwhile.
TEST_F(Files, AreRemovedWhenTheyCannotBeRenamed) {
  auto file = OutputFile::open(in("a"));
  ASSERT_TRUE(file);
  (*file)->stream() << "text";
  fs::create_directories(in("a/b"));
  Status committed = (*file)->commit();
  EXPECT_THAT(messageOf(committed), HasSubstr("cannot write '" + in("a") + "': Is a directory"));
  file->reset();
  EXPECT_THAT(names(), UnorderedElementsAre("a"));
}

TEST_F(Files, KeepLinksAndPermissions) {
  ASSERT_TRUE(writeFile(in("a"), "old"));
  fs::permissions(in("a"), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("a", in("link"));
  ASSERT_TRUE(writeFile(in("link"), "new"));
  EXPECT_TRUE(fs::is_symlink(in("link")));
  EXPECT_EQ(readText(in("a")).value(), "new");
  EXPECT_EQ(fs::status(in("a")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(Files, MayHaveTheLongestName) {
  const std::string name(255, 'n');
  EXPECT_TRUE(writeFile(in(name), "text"));
  EXPECT_THAT(names(), UnorderedElementsAre(name));
  EXPECT_THAT(messageOf(writeFile(in(name + "n"), "text")), HasSubstr("File name too long"));
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

TEST_F(Files, AreReadToTheLimit) {
  ASSERT_TRUE(writeFile(in("a"), std::string(300'000, 'x')));
  EXPECT_EQ(readBytes(in("a")).value().size(), 300'000u);
  EXPECT_EQ(readText(in("a"), 300'000).value().size(), 300'000u);
  EXPECT_EQ(readText(in("a"), 299'999).error().message,
            "'" + in("a") + "' must have at most 299999 bytes, but has more");
  EXPECT_GT(readText("/proc/self/status").value().size(), 100u); // of size 0, as stat() has it
  EXPECT_THAT(readText("/proc/self/status", 10).error().message, HasSubstr("must have at most 10"));
  ASSERT_TRUE(writeFile(in("empty"), ""));
  EXPECT_EQ(readText(in("empty")).value(), "");
}

TEST_F(Files, ThatAreNoneAreRefused) {
  mkfifo(in("pipe").c_str(), 0600);
  for (auto [path, what] :
       {std::pair(std::string("/"), "a directory"), std::pair(std::string("/dev/zero"), "a device"),
        std::pair(in("pipe"), "a pipe")}) {
    auto text = readText(path);
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().kind, ErrorKind::Usage);
    EXPECT_EQ(text.error().message, "'" + path + "' must be a regular file, but it is " + what);
    EXPECT_STREQ(kindOfSpecial(path), what);
  }
  EXPECT_EQ(readText(in("none")).error().message,
            "cannot read '" + in("none") + "': No such file or directory");
  ASSERT_TRUE(writeFile(in("huge"), ""));
  ASSERT_EQ(truncate(in("huge").c_str(), off_t(1) << 37), 0);
  EXPECT_THAT(readBytes(in("huge")).error().message, HasSubstr("bytes, but has more"));
}

} // namespace
