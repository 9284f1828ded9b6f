//===- RemoveOnSignal.cpp - Unfinished files of a process that is stopped -===//
#include "RemoveOnSignal.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/syscall.h>
#include <unistd.h>

namespace fp4 {
namespace {

/// Paths at which a handler may look at any moment: a path is whole when it is here, and the one
/// who takes it out owns it.
std::array<std::atomic<char *>, 64> paths;

/// An entry of a folder, as the kernel gives it.
struct Entry {
  uint64_t inode;
  int64_t next;
  uint16_t bytes; ///< of the entry
  unsigned char type;
  char name[1];
};

/// Removes a folder and the files in it. A handler may make system calls, but not allocate as
/// opendir does.
void removeFolder(const char *path) {
  const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return;
  alignas(Entry) char buffer[4096];
  for (long read; (read = syscall(SYS_getdents64, folder, buffer, sizeof buffer)) > 0;)
    for (long at = 0; at < read;) {
      const auto *entry = reinterpret_cast<const Entry *>(buffer + at);
      unlinkat(folder, entry->name, 0);
      at += entry->bytes;
    }
  close(folder);
  rmdir(path);
}

void onSignal(int signal) {
  for (std::atomic<char *> &slot : paths)
    if (const char *path = slot.exchange(nullptr); path && unlink(path) != 0 && errno == EISDIR)
      removeFolder(path);
  std::signal(signal, SIG_DFL);
  std::raise(signal); // the signal is delivered when this handler returns
}

void watchSignals() {
  for (int signal : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU}) {
    struct sigaction old = {}, action = {};
    if (sigaction(signal, nullptr, &old) != 0 || old.sa_handler != SIG_DFL)
      continue;
    action.sa_handler = onSignal;
    sigaction(signal, &action, nullptr);
  }
}

} // namespace

int removeOnSignal(const std::string &path) {
  static std::once_flag once;
  std::call_once(once, watchSignals);
  char *copy = strdup(path.c_str());
  for (size_t i = 0; i < paths.size(); ++i)
    if (char *free = nullptr; paths[i].compare_exchange_strong(free, copy))
      return static_cast<int>(i);
  std::free(copy);
  return -1;
}

void keepOnSignal(int slot) {
  if (slot >= 0)
    std::free(paths[static_cast<size_t>(slot)].exchange(nullptr));
}

bool hasComeFor(int slot) { return slot >= 0 && !paths[static_cast<size_t>(slot)]; }

} // namespace fp4
