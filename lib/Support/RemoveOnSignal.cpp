//===- RemoveOnSignal.cpp - Unfinished files of a process that is stopped -===//
#include "RemoveOnSignal.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unistd.h>

namespace fp4 {
namespace {

/// Paths at which a handler may look at any moment: a path is whole when it is here, and the one
/// who takes it out owns it.
std::array<std::atomic<char *>, 64> paths;

void onSignal(int signal) {
  for (std::atomic<char *> &slot : paths)
    if (const char *path = slot.exchange(nullptr))
      unlink(path);
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
