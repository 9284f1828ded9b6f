//===- Report.cpp - Errors, for people and for fp4-sim --------------------===//
#include "Report.h"
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <mutex>
#include <set>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

using namespace fp4;
using namespace fp4::simcuda;

/// The descriptor that fp4-sim handed down, if the program has neither closed nor reused it.
static int messageFile() {
  const char *handed = std::getenv("FP4_SIM_STDERR");
  int file;
  unsigned long long device, inode;
  struct stat now;
  const bool known = handed && std::sscanf(handed, "%d:%llu:%llu", &file, &device, &inode) == 3 &&
                     fstat(file, &now) == 0 && now.st_dev == device && now.st_ino == inode;
  return known ? file : STDERR_FILENO;
}

void fp4::simcuda::print(std::string_view text) {
  std::fflush(stdout);
  const int file = messageFile();
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno != EINTR)
      return;
    text.remove_prefix(size_t(std::max<ssize_t>(written, 0)));
  }
}

void fp4::simcuda::printError(std::string_view function, const Error &error) {
  print(format(Error{error.kind, fmt::format("{}: {}", function, error.message), error.note}));
}

void fp4::simcuda::reportLine(std::string_view line) {
  const char *path = std::getenv("FP4_SIM_REPORT");
  if (!path)
    return;
  int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0)
    return;
  std::string text = std::string(line) + "\n";
  [[maybe_unused]] ssize_t written = write(file, text.data(), text.size());
  close(file);
}

void fp4::simcuda::warnOnce(std::string_view function, std::string_view message,
                            std::string_view note) {
  static std::mutex lock;
  static std::set<std::string> known;
  std::lock_guard<std::mutex> guard(lock);
  const std::string text = fmt::format("warning: {}: {}\nnote: {}\n", function, message, note);
  if (known.insert(text).second)
    print(text);
}

void fp4::simcuda::reportMissing(const char *function) {
  static std::mutex lock;
  static std::set<std::string> known;
  std::lock_guard<std::mutex> guard(lock);
  if (!known.insert(function).second)
    return;
  print(fmt::format("fp4-sim: {} is not implemented\n", function));
  reportLine(fmt::format("missing {}", function));
}
