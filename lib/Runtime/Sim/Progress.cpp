//===- Progress.cpp - One line on stderr while a simulation is long -------===//

#include "Progress.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <unistd.h>

namespace fp4::rt {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kQuietSeconds = 1.0; ///< shorter launches show nothing
constexpr double kRefreshSeconds = 0.1;

struct Line {
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
  if (done >= total) {
    if (visible)
      std::fputs("\r\x1b[K", stderr);
    *this = Line();
    return;
  }
  double elapsed = secondsSince(start);
  if (elapsed < kQuietSeconds || (visible && secondsSince(shown) < kRefreshSeconds))
    return;
  visible = true;
  shown = Clock::now();
  std::fprintf(stderr, "\rsimulating: %llu of %llu blocks", static_cast<unsigned long long>(done),
               static_cast<unsigned long long>(total));
  if (done)
    std::fprintf(stderr, ", about %.0f s left",
                 std::ceil(elapsed / double(done) * double(total - done)));
  std::fputs("\x1b[K", stderr);
}

} // namespace

std::function<void(uint64_t, uint64_t)> makeProgressLine() {
  if (!isatty(STDERR_FILENO))
    return nullptr;
  auto line = std::make_shared<Line>();
  return [line](uint64_t done, uint64_t total) { line->update(done, total); };
}

} // namespace fp4::rt
