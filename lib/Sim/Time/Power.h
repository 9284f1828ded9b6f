//===- Power.h - The power of a timed launch, and the clock it leaves -----===//
//
// A launch that is repeated back to back draws the power of an idle GPU and a part for each thing
// that it does. A GPU whose power is above the limit lowers the clock of its SMs, and their voltage
// with it, until the power is at the limit. A launch alone ends before that happens.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Time/Machine.h"
#include "fp4/Sim/KernelTime.h"

namespace fp4::sim {

/// Shares of the cycles of an SM, on average over the SMs that were simulated.
struct SmActivity {
  double tensor = 0; ///< arithmetic of tensor cores, but for f16
  double half = 0;   ///< arithmetic of f16
  double few = 0;    ///< arithmetic of f16 whose A is in registers: converted from few bits
  double issue = 0;  ///< issue slots
  double shared = 0; ///< shared memory
};
SmActivity activityOf(const Machine &machine, double cycles, size_t processors);

/// Returns the power of the launch; nothing where the target has no rates of power.
std::optional<PowerUse> powerOf(const KernelTime &time, const SmActivity &activity,
                                const Rates &rates);

} // namespace fp4::sim
