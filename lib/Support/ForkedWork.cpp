//===- ForkedWork.cpp - Pieces of work that may crash or never end --------===//
#include "fp4/Support/ForkedWork.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace fp4 {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Work = std::function<void(size_t, const Finish &)>;

struct Child {
  size_t item = 0;
  pid_t pid = 0;
  int output = -1;
  Clock::time_point end;
  std::string text;
};

/// Runs the work in a child and never returns. Nothing of the parent's is ended here: its
/// destructors and buffers are copies.
[[noreturn]] void beChild(pid_t parent, int output, size_t item, const Work &work) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(1);
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    dup2(nowhere, stream);
  const Finish finish = [output](const std::string &text) {
    for (size_t at = 0; at < text.size();) {
      const ssize_t written = write(output, text.data() + at, text.size() - at);
      if (written < 0 && errno != EINTR)
        _exit(1);
      at += size_t(std::max<ssize_t>(written, 0));
    }
    _exit(0);
  };
  try {
    work(item, finish);
  } catch (const std::exception &) {
    // The child has no result.
  }
  _exit(1);
}

class Pool {
public:
  Pool(milliseconds limit, const Work &work, const std::function<void(size_t, ForkedResult)> &done)
      : limit_(limit), work_(work), done_(done) {}
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;
  ~Pool() {
    for (Child &child : children_)
      (void)end(child, true);
  }

  size_t running() const { return children_.size(); }
  Status start(size_t item);
  /// Reads available output, and ends children that have ended or must end.
  void wait();

private:
  /// Returns true when more output may come.
  static bool collect(Child &child);
  ForkedResult end(Child &child, bool late);

  const milliseconds limit_;
  const Work &work_;
  const std::function<void(size_t, ForkedResult)> &done_;
  std::vector<Child> children_;
};

Status Pool::start(size_t item) {
  const auto refused = [] {
    return makeError(ErrorKind::Usage, fmt::format("cannot make a process: {}", strerror(errno)),
                     "run fewer at a time");
  };
  int ends[2];
  if (pipe2(ends, O_CLOEXEC))
    return refused();
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    close(ends[0]);
    close(ends[1]);
    return refused();
  }
  if (pid == 0)
    beChild(parent, ends[1], item, work_);
  close(ends[1]);
  children_.push_back({item, pid, ends[0], Clock::now() + limit_, ""});
  return {};
}

bool Pool::collect(Child &child) {
  std::array<char, 4096> buffer;
  const ssize_t got = read(child.output, buffer.data(), buffer.size());
  if (got > 0)
    child.text.append(buffer.data(), size_t(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

ForkedResult Pool::end(Child &child, bool late) {
  if (late)
    kill(child.pid, SIGKILL);
  close(child.output);
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR)
    ;
  if (late)
    return {"", ForkedResult::End::TimedOut, 0};
  if (WIFSIGNALED(status))
    return {"", ForkedResult::End::Crashed, WTERMSIG(status)};
  if (WEXITSTATUS(status))
    return {"", ForkedResult::End::Crashed, 0};
  return {std::move(child.text), ForkedResult::End::Finished, 0};
}

void Pool::wait() {
  std::vector<pollfd> files;
  Clock::time_point first = Clock::time_point::max();
  for (const Child &child : children_) {
    files.push_back({child.output, POLLIN, 0});
    first = std::min(first, child.end);
  }
  const auto left = std::chrono::duration_cast<milliseconds>(first - Clock::now()).count();
  poll(files.data(), files.size(), int(std::clamp<int64_t>(left + 1, 0, 1000)));
  for (size_t i = children_.size(); i-- > 0;) {
    const bool ended = files[i].revents && !collect(children_[i]);
    const bool late = !ended && Clock::now() >= children_[i].end;
    if (!ended && !late)
      continue;
    ForkedResult result = end(children_[i], late);
    const size_t item = children_[i].item;
    children_.erase(children_.begin() + ptrdiff_t(i));
    done_(item, std::move(result));
  }
}

} // namespace

Status forEachForked(size_t items, unsigned processes, milliseconds limit, const Work &work,
                     const std::function<void(size_t, ForkedResult)> &done) {
  Pool pool(limit, work, done);
  for (size_t next = 0; next < items || pool.running();) {
    if (next < items && pool.running() < std::max(1u, processes)) {
      FP4_TRY(pool.start(next++));
    } else {
      pool.wait();
    }
  }
  return {};
}

} // namespace fp4
