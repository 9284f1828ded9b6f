//===- Deadlock.h - Warps that cannot go on, in words ---------------------===//
#pragma once

#include "Sim/State/Cluster.h"
#include <string>

namespace fp4::sim {

/// A line, each behind a line break, for every group of lanes that waits: where it is, and for
/// what.
std::string describeBlocked(const Cluster &cluster);
/// "warps 0, 2 of CTA rank 0 have exited", of CTAs that have others; empty when none has.
std::string describeExited(const Cluster &cluster);

} // namespace fp4::sim
