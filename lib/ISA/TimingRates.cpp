//===- TimingRates.cpp - Rates of a target --------------------------------===//
#include "fp4/ISA/TimingRates.h"

namespace fp4::hw {

std::string_view stringify(Mark mark) {
  switch (mark) {
  case Mark::Documented:
    return "documented";
  case Mark::Measured:
    return "measured";
  case Mark::Fitted:
    return "fitted";
  case Mark::Assumed:
    return "assumed";
  }
  return "unknown";
}

/// Checks that each rate has one row: a second one would never be read.
static consteval bool eachOnce() {
  for (const TimingRow &row : timingRows)
    if (timingRate(row.target, row.which) != &row.rate)
      return false;
  return true;
}
static_assert(eachOnce());

} // namespace fp4::hw
