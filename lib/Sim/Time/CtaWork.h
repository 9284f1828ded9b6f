//===- CtaWork.h - Equality of the work of CTAs of a launch -------------===//
//
// A part of a launch stands for the rest if CTAs do about the same, each by itself. The text shows
// exceptions: loops that go on for as long as the index of the CTA or data in memory says, and
// instructions by which a CTA learns from global memory what others have done.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Time/TimedCode.h"
#include <cmath>
#include <limits>

namespace fp4::sim {

/// Lines of the PTX; 0: there is none.
struct CtaWork {
  uint32_t loop = 0;  ///< decides how long a loop goes on, and may do so differently in each CTA
  uint32_t inner = 0; ///< decides so about a loop inside of another
  uint32_t talk = 0;  ///< has what other CTAs have stored or counted: TimedInsn::talks
};
CtaWork ctaWorkOf(const TimedCode &code, const Kernel &kernel);

/// Mean and deviation of what CTAs did.
class Spread {
public:
  void add(double value) {
    const double before = value - mean;
    mean += before / double(++number);
    squares += before * (value - mean);
  }
  uint64_t count() const { return number; }
  /// The deviation, of the mean.
  double relative() const {
    return number && mean > 0 ? std::sqrt(squares / double(number)) / mean : 0;
  }
  /// The error of a mean of so many of them.
  double errorOf(double samples) const {
    const double one = relative();
    if (one == 0)
      return 0;
    return samples > 0 ? one / std::sqrt(samples) : std::numeric_limits<double>::infinity();
  }

private:
  uint64_t number = 0;
  double mean = 0, squares = 0;
};

} // namespace fp4::sim
