//===- DebugServer.h - The side of a debugger that sees the simulator -----===//
//
// Reads commands from a socket and answers them, each one JSON object in a line:
//
//   {"do": "continue"}                       and "step" (with "warp", "count"), "next" ("warp")
//   {"do": "pause"}                          stops at the next instruction
//   {"do": "quit"}                           ends the launch
//   {"do": "break", "line": 12}              with "file": in the source; or "opcode"; or "kernel"
//   {"do": "delete", "breakpoint": 1}        or {"do": "clear", "file": ""}: all lines of a file
//   {"do": "clear_names"}                    all opcodes and kernels
//   {"do": "breakpoints"}
//   {"do": "warps"}, "groups" ("warp"), "registers" ("warp", "lane"), "register" ("name", "type")
//   {"do": "mbarriers"}, "barriers", "tickets", "tile", "tensor" (View.h)
//   {"do": "source"}                         the PTX, and the line of it where "warp" stands
//
// The answer has "reply", the name of the command, or "error". At a stop the
// server sends {"event": "stopped"} with a "reason" (launch, breakpoint, step, pause, hazard,
// error), a "text", the warp and its place; then it waits for commands. While the program runs,
// commands are read now and then. When the other side is gone, the program runs on.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Debug/Breakpoints.h"
#include "Sim/Debug/View.h"
#include "fp4/Sim/Stepper.h"
#include "fp4/Support/LineSocket.h"
#include <map>

namespace fp4::sim::debug {

class DebugServer final : public Stepper {
public:
  explicit DebugServer(int socket) : socket(socket) {}

  void began(const Launch &launch) override;
  bool before(Cluster &cluster, Warp &warp, const LaneGroup &group) override;
  void hazard(const HazardReport &report) override;
  void failed(Cluster &cluster, const Error &error) override;

private:
  enum class Mode : uint8_t { Run, Step, Line };
  struct Stop {
    std::string reason, text;
    int breakpoint = 0;
  };
  struct Place {
    uint32_t pc = 0, mask = 0;
    bool operator==(const Place &) const = default;
  };

  std::optional<Stop> whyStop(const Warp &warp, Place place, bool moved);
  std::optional<Stop> steppedTo(const Warp &warp, Place place, bool moved);
  /// Tells of a stop and follows commands until the program goes on; false: it shall end.
  bool converse(const Stop &stop, Place place);
  Json answer(const Json &request);
  Expected<Json> look(const std::string &what, const Json &request);
  Json addBreakpoint(const Json &request);
  Json describeBreakpoints() const;
  void go(Mode next, const Json &request);
  uint32_t lineAt(uint32_t pc) const;
  uint32_t pcOf(uint32_t warp) const;

  LineSocket socket;
  Breakpoints breakpoints;
  bool attached = true, goes = true, ends = false, paused = false;
  bool first = true;   ///< no launch has begun yet
  bool begins = false; ///< the launch has not executed anything yet
  Mode mode = Mode::Run;
  uint32_t target = 0;            ///< the warp that steps
  uint64_t steps = 0;             ///< steps that are left
  uint32_t line = 0;              ///< line that Mode::Line leaves
  uint64_t count = 0;             ///< instructions
  std::string found;              ///< findings of the hazard checker since the last stop
  std::map<uint32_t, Place> seen; ///< last instruction of each warp
  // The instruction that is about to be executed is that of
  const Launch *launch = nullptr;
  Cluster *cluster = nullptr;
  Warp *warp = nullptr;
  uint32_t current = 0; ///< the number of `warp`, which outlives the cluster
};

} // namespace fp4::sim::debug
