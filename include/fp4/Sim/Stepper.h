//===- Stepper.h - A look at every instruction before it is executed ------===//
//
// The debugger's way into a launch (SimOptions::stepper). The scheduler asks before each
// instruction of a warp; policies, checkers and waits work as without it. One host thread runs the
// clusters, one after the other where they do not wait for each other, and no polling warp is
// parked.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"
#include <memory>

namespace fp4::sim {

class Cluster;
class Warp;
struct HazardReport;
struct LaneGroup;
struct Launch;

class Stepper {
public:
  virtual ~Stepper() = default;
  virtual void began(const Launch &launch) = 0;
  /// `group` of `warp` is about to execute the instruction at its pc. Returns false to end the
  /// launch with an error.
  virtual bool before(Cluster &cluster, Warp &warp, const LaneGroup &group) = 0;
  /// The hazard checker has found something.
  virtual void hazard(const HazardReport &report) = 0;
  /// The cluster cannot go on; it is still as it was then.
  virtual void failed(Cluster &cluster, const Error &error) = 0;
};

/// The debugger of a process, which takes its commands from the other end of a socket
/// (lib/Sim/Debug/DebugServer.h says which there are).
std::unique_ptr<Stepper> makeDebugServer(int socket);

} // namespace fp4::sim
