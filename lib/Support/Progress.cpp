//===- Progress.cpp - One line on stderr while something takes long -------===//

#include "fp4/Support/Progress.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>
#include <unistd.h>

namespace fp4 {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kQuietSeconds = 1.0; ///< shorter work shows nothing
constexpr double kRefreshSeconds = 0.1;

struct Line {
  std::string activity, units;
  Clock::time_point start{}, shown{};
  uint64_t last = 0;
  bool visible = false;

  void update(uint64_t done, uint64_t total);
};

double secondsSince(Clock::time_point from) {
  return std::chrono::duration<double>(Clock::now() - from).count();
}

void Line::update(uint64_t done, uint64_t total) {
  if (start == Clock::time_point{} || done < last)
    start = Clock::now();
  last = done;
  if (total && done >= total) {
    if (visible)
      std::fputs("\r\x1b[K", stderr);
    *this = Line{.activity = activity, .units = units};
    return;
  }
  double elapsed = secondsSince(start);
  if (elapsed < kQuietSeconds || (visible && secondsSince(shown) < kRefreshSeconds))
    return;
  visible = true;
  shown = Clock::now();
  std::fprintf(stderr, "\r%s: %llu ", activity.c_str(), static_cast<unsigned long long>(done));
  if (total)
    std::fprintf(stderr, "of %llu ", static_cast<unsigned long long>(total));
  std::fputs(units.c_str(), stderr);
  if (done && total)
    std::fprintf(stderr, ", about %.0f s left",
                 std::ceil(elapsed / double(done) * double(total - done)));
  std::fputs("\x1b[K", stderr);
}

} // namespace

std::function<void(uint64_t, uint64_t)> makeProgressLine(std::string activity,
                                                          std::string units) {
  if (!isatty(STDERR_FILENO))
    return nullptr;
  auto line = std::make_shared<Line>(Line{.activity = std::move(activity), .units = std::move(units)});
  return [line](uint64_t done, uint64_t total) { line->update(done, total); };
}

} // namespace fp4
