//===- Report.cpp - What went wrong, for people and for fp4-sim -----------===//
#include "Report.h"
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <mutex>
#include <set>
#include <string>
#include <unistd.h>

using namespace fp4;
using namespace fp4::simcuda;

void fp4::simcuda::printError(std::string_view function, const Error &error) {
  std::fflush(stdout); // the program's own words first
  std::string text =
      format(Error{error.kind, fmt::format("{}: {}", function, error.message), error.note});
  std::fputs(text.c_str(), stderr);
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

void fp4::simcuda::reportMissing(const char *function) {
  static std::mutex lock;
  static std::set<std::string> known;
  std::lock_guard<std::mutex> guard(lock);
  if (!known.insert(function).second)
    return;
  std::fflush(stdout);
  std::fprintf(stderr, "fp4-sim: %s is not implemented\n", function);
  reportLine(fmt::format("missing {}", function));
}
