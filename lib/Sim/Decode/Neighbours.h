//===- Neighbours.h - Launches and clusters that run beside ----------------===//
#pragma once

namespace fp4::sim {

struct Kernel;

/// Fills Kernel::neighbours of a kernel whose code is complete.
void findNeighbours(Kernel &kernel);

} // namespace fp4::sim
