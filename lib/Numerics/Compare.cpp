#include "fp4/Numerics/Compare.h"
#include "fp4/Numerics/E4M3.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace fp4::numerics {
namespace {

constexpr uint64_t farApart = std::numeric_limits<uint64_t>::max();

/// Position of a value on the line of its type's values: adjacent values differ by one, -0 is just
/// below +0.
int64_t ordinal(FloatType type, float x) {
  uint32_t u = bitsOf(x);
  if (type == FloatType::E4M3)
    u = static_cast<uint32_t>(encodeE4M3(x)) << 24;
  else if (type == FloatType::BF16)
    u = static_cast<uint32_t>(encodeBF16(x)) << 16;
  else if (type == FloatType::F16)
    u = static_cast<uint32_t>(encodeF16(x)) << 16;
  const int shift = type == FloatType::F32 ? 0 : type == FloatType::E4M3 ? 24 : 16;
  const int64_t magnitude = (u & 0x7FFFFFFF) >> shift;
  return u >> 31 ? -1 - magnitude : magnitude;
}

/// Returns true when `x` is what an overflow may become: an infinity, or 448 in E4M3.
bool isOverflow(Overflow may, FloatType type, float x) {
  const bool isInfinity = !std::isfinite(x) || (type == FloatType::E4M3 && std::fabs(x) == e4m3Max);
  return may && (isInfinity || (may == MayBeZero && x == 0));
}

struct Reporter {
  const CompareOptions &options;
  CompareReport report;

  void mismatch(uint64_t index, Mismatch m) {
    const uint64_t columns = std::max<uint64_t>(options.columns, 1);
    m.row = index / columns;
    m.column = index % columns;
    ++report.mismatches;
    if (report.first.size() < options.keep)
      report.first.push_back(m);
  }

  /// Counts the elements that only one side has.
  void surplus(size_t a, size_t b) {
    report.mismatches += a > b ? a - b : b - a;
    report.elements = std::max(a, b);
  }

  void distance(const Mismatch &m) {
    report.maxUlps = std::max(report.maxUlps, m.ulps);
    if (const double error = std::fabs(m.got - m.expected); error > report.maxError)
      report.maxError = error;
  }
};

std::string line(const Mismatch &m) {
  std::string text =
      fmt::format("  [{}, {}] got {:.9g}, expected {:.9g}", m.row, m.column, m.got, m.expected);
  if (m.bound != 0)
    text += fmt::format(", bound {:.3g}", m.bound);
  if (m.ulps == farApart)
    return text + " (one is not a number)\n";
  return text + fmt::format(" ({} ulp)\n", m.ulps);
}

} // namespace

std::string CompareReport::text() const {
  if (ok())
    return withinBounds
               ? fmt::format("all {} elements within their bound (largest {:.3g} of it)", elements,
                             maxErrorOfBound)
               : fmt::format("all {} elements equal", elements);
  std::string out =
      fmt::format("{} of {} elements {}, largest distance {}\n", mismatches, elements,
                  withinBounds ? "lie beyond their bound" : "differ",
                  maxUlps == farApart ? "not a number" : fmt::format("{} ulp", maxUlps));
  for (const Mismatch &m : first)
    out += line(m);
  return out;
}

uint64_t ulpDistance(FloatType type, float a, float b) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) && std::isnan(b) ? 0 : farApart;
  const int64_t d = ordinal(type, a) - ordinal(type, b);
  return static_cast<uint64_t>(d < 0 ? -d : d);
}

CompareReport compareBits(std::span<const float> got, std::span<const float> expected,
                          const CompareOptions &options) {
  Reporter r{options, {}};
  r.surplus(got.size(), expected.size());
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    if (bitsOf(got[i]) == bitsOf(expected[i]))
      continue;
    const bool bothNaN = std::isnan(got[i]) && std::isnan(expected[i]);
    if (bothNaN && options.nanEqual)
      continue;
    const Mismatch m{.got = got[i],
                     .expected = expected[i],
                     .ulps = ulpDistance(options.type, got[i], expected[i])};
    r.distance(m);
    r.mismatch(i, m);
  }
  return r.report;
}

CompareReport compareBytes(std::span<const uint8_t> got, std::span<const uint8_t> expected,
                           const CompareOptions &options) {
  Reporter r{options, {}};
  r.surplus(got.size(), expected.size());
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    if (got[i] == expected[i])
      continue;
    const Mismatch m{.got = double(got[i]),
                     .expected = double(expected[i]),
                     .ulps = static_cast<uint64_t>(std::abs(int(got[i]) - int(expected[i])))};
    r.distance(m);
    r.mismatch(i, m);
  }
  return r.report;
}

CompareReport compareWithin(std::span<const float> got, std::span<const double> expected,
                            std::span<const double> bound, std::span<const Overflow> mayOverflow,
                            const CompareOptions &options) {
  Reporter r{options, {}};
  r.report.withinBounds = true;
  r.surplus(got.size(), std::min(expected.size(), bound.size()));
  for (size_t i = 0; i < std::min({got.size(), expected.size(), bound.size()}); ++i) {
    const double error = std::fabs(got[i] - expected[i]);
    const bool same = got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i])) ||
                      (i < mayOverflow.size() && isOverflow(mayOverflow[i], options.type, got[i]));
    if (same)
      continue;
    const Mismatch m{.got = got[i],
                     .expected = expected[i],
                     .bound = bound[i],
                     .ulps = ulpDistance(options.type, got[i],
                                         roundTo(options.type, static_cast<float>(expected[i])))};
    r.distance(m);
    if (bound[i] > 0)
      r.report.maxErrorOfBound = std::max(r.report.maxErrorOfBound, error / bound[i]);
    if (!(error <= bound[i]))
      r.mismatch(i, m);
  }
  return r.report;
}

} // namespace fp4::numerics
