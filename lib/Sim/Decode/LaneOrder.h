//===- LaneOrder.h - In which order diverged lanes have their turn --------===//
#pragma once

#include "Sim/Decode/ProgramImpl.h"

namespace fp4::sim {

/// Fills Kernel::turns of a kernel whose code is complete.
void orderLanes(Kernel &kernel);

} // namespace fp4::sim
