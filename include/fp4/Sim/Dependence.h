//===- Dependence.h - Launches that may run beside earlier ones -----------===//
//
// Programmatic dependent launch: a launch may begin before those that it depends on have ended, and
// griddepcontrol.wait returns when they have.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace fp4::sim {

/// A launch that later ones may depend on. The simulator remembers what it did as long as somebody
/// holds its mark.
struct LaunchMark {};
using LaunchRef = std::shared_ptr<const LaunchMark>;

struct Prerequisite {
  LaunchRef launch;
  /// The dependent launch may begin when every CTA of this one has triggered
  /// (griddepcontrol.launch_dependents) or ended; false: when every CTA has begun.
  bool triggers = true;
};

struct Dependence {
  /// All other launches before have ended when this one begins.
  std::vector<Prerequisite> on;
  std::string by; ///< reason for reports: the name of a launch attribute, an edge
  LaunchRef mark; ///< mark of the launch itself; null: no later one depends on it
};

} // namespace fp4::sim
