//===- Progress.h - One line on stderr while something takes long ---------===//
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace fp4 {

/// A callback that, after one second, shows "ACTIVITY: DONE of TOTAL UNITS" and how long the rest
/// may take, or "ACTIVITY: DONE UNITS" while the total is 0, that is, unknown. The line is erased
/// when all is done. Calls may not overlap. Null when stderr is not a terminal.
std::function<void(uint64_t done, uint64_t total)> makeProgressLine(std::string activity,
                                                                    std::string units);

} // namespace fp4
