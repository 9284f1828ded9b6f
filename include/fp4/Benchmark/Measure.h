//===- Measure.h - Times of work on a device, with their statistics -------===//
//
// Work is issued on one operand set after the other, so that each run finds its operands outside of
// the L2 cache. Work under 50 us is captured and replayed as a graph of at least ten nodes, so that
// the launches of the host are not measured. Longer work is issued in rows of about 2 ms with an
// event on either side of the row. Measuring stops when the standard error of the median is small
// enough, or at a limit.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Runtime/Device.h"

namespace fp4::harness {

struct Timing {
  std::vector<double> samples; ///< milliseconds per run, in the order of measuring
  double median = 0, p20 = 0, p80 = 0;
  /// Standard error of the median over the median, for a normal distribution whose 20th and 80th
  /// percentiles are the samples'.
  double relativeError = 0;
  bool settled = false; ///< relativeError reached the tolerance
  bool graph = false;
  size_t runsPerSample = 1;
  uint32_t clockMin = 0, clockMax = 0; ///< MHz by NVML; 0: not sampled
  double trueClock = 0;         ///< MHz that the SMs had, the mean of all samples; 0: not known
  double watts = 0;             ///< largest sample; 0: not known
  uint64_t throttleReasons = 0; ///< NVML's bits, of all samples
};

struct MeasureOptions {
  double tolerance = 0.002;
  size_t minSamples = 20, maxSamples = 500;
  double maxMilliseconds = 1000; ///< limit of device time
  double warmMilliseconds = 0;   ///< device time of the work before it counts: clocks fall so long
  bool graphs = true;            ///< false: rows, however short a run is
};

/// Fills everything that follows from the samples. There must be at least one.
void summarize(Timing &timing, double tolerance);

/// `issue(set)` issues one run on an operand set below `sets`; it must not wait for the device.
/// A graph of fewer than ten nodes is an Error: it would time nothing.
Expected<Timing> measure(rt::Device &device, size_t sets,
                         const std::function<Status(size_t set)> &issue,
                         const MeasureOptions &options = {});

} // namespace fp4::harness
